"""Each kind of error: its exit status, one readable message, and nothing charged."""

import socket
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import lapwing as lw
from lapwing.cli import answer_formats, commands
from lapwing.cli.console import pointer
from lapwing.cli.streams import COMMAND_LINE, NOTEBOOK, SHELL, Ways, coded, complain_of
from lapwing.errors import AllowanceExhausted, InvalidParameter, QueryRefused, RefusalCause
from lapwing.machine.build import build_id
from lapwing.query.pricing.missing_price import no_single_price
from tests.support.cli.command import BY_PLAN, Outcome, Run
from tests.support.effort import one_in

COUNT = "SELECT COUNT(*) AS n FROM visits"


def require_plain(outcome: Outcome, status: int) -> None:
    """One message, no traceback, nothing on standard output."""
    assert outcome.status == status
    assert outcome.out == ""
    assert outcome.err.startswith("lapwing: ")
    assert "Traceback" not in outcome.err


def spent() -> object:
    with lw.connect() as session:
        return session.budget().spent.amount


@pytest.mark.parametrize(
    "text", one_in(3, ["nan", "inf", "-inf", "0", "-1", "abc", "", "1/0", "1/x", "0x1", "1e999999999", "½"])
)
@pytest.mark.parametrize("option", ["--epsilon", "--error"])
def test_numbers_that_are_none(visits: Path, run: Run, option: str, text: str) -> None:
    outcome = run("query", COUNT, option, text)
    require_plain(outcome, 2)
    assert option in outcome.err
    assert not (visits / "visits.lapwing.db").exists()


@pytest.mark.parametrize(
    ("ways", "own"), [(COMMAND_LINE, " --epsilon"), (SHELL, "`.epsilon"), (NOTEBOOK, "%%lapwing --epsilon")]
)
def test_each_door_says_how_a_cost_is_given_there_and_nowhere_else(ways: Ways, own: str) -> None:
    missing = no_single_price(both=False)
    no_rows = QueryRefused("A mean is of some rows", cause=RefusalCause.ASSUMES_ROWS, remedy="Say how many.")
    for said in (coded(missing, ways), coded(no_rows, ways)):
        assert own in said
        assert said.count("epsilon 0.5") == 1
    assert "--" not in str(missing) + str(no_rows)


def test_the_command_line_says_how_a_cost_is_given(visits: Path, run: Run) -> None:
    outcome = run("query", COUNT)
    require_plain(outcome, 2)
    assert "--epsilon 0.5" in outcome.err
    assert ".epsilon 0.5`" not in outcome.err


@pytest.mark.parametrize("text", ["0", "1", "1.5", "-0.1", "nan", "x"])
def test_confidence_is_between_0_and_1(visits: Path, run: Run, text: str) -> None:
    require_plain(run("query", COUNT, "--epsilon", "1", "--confidence", text), 2)


@pytest.mark.parametrize(
    "arguments",
    one_in(
        3,
        [
            ("bogus",),
            ("query",),
            ("query", COUNT),
            ("query", COUNT, "--epsilon", "1", "--error", "5"),
            ("query", COUNT, "--epsilon", "1", "--format", "xml"),
            ("query", COUNT, "extra", "--epsilon", "1"),
            ("explain", COUNT, "--epsilon", "1", "--assuming-count", "0"),
            ("explain", COUNT, "--bogus"),
            ("budget", "--catalog", "none.toml"),
            ("data",),
            ("lab", "bogus"),
            ("lab", "coin", "--against", "everybody"),
        ],
    ),
)
def test_usage(visits: Path, run: Run, arguments: tuple[str, ...]) -> None:
    outcome = run(*arguments)
    assert outcome.status == 2
    assert outcome.out == ""
    assert "Traceback" not in outcome.err


def test_a_refusal_points_at_its_place(visits: Path, run: Run) -> None:
    outcome = run("query", "SELECT plan,\n       none FROM visits GROUP BY plan", "--epsilon", "1")
    require_plain(outcome, 3)
    *_, line, caret = outcome.err.rstrip("\n").split("\n")
    assert line[caret.index("^") :].startswith("none")
    assert spent() == 0


@pytest.mark.parametrize("column", [1, 40, 95, 96, 300, 500, 506])
def test_the_caret_stands_under_its_character(column: int) -> None:
    text = "x" * (column - 1) + "!" + "y" * (506 - column)
    line, caret = pointer(text, (1, column)).split("\n")
    assert line[caret.index("^")] == "!"
    assert len(line) <= 100


def test_the_caret_counts_wide_characters_twice() -> None:
    line, caret = pointer("SELECT '猫', none", (1, 13)).split("\n")
    assert line.index("none") + 1 == caret.index("^")


def test_a_question_that_is_markup_is_printed_as_it_is(visits: Path, run: Run) -> None:
    outcome = run("query", "SELECT [bold]x[/bold] FROM visits", "--epsilon", "1")
    require_plain(outcome, 3)
    assert "[bold]" in outcome.err


def test_an_exhausted_budget_says_what_fits(visits: Path, run: Run) -> None:
    run("query", COUNT, "--epsilon", "2")
    before = spent()
    outcome = run("query", BY_PLAN, "--epsilon", "2.5")
    require_plain(outcome, 4)
    assert "would still fit" in outcome.err
    assert spent() == before


def test_a_missing_catalog(folder: Path, run: Run) -> None:
    outcome = run("query", COUNT, "--epsilon", "1")
    require_plain(outcome, 2)
    assert "lapwing init" in outcome.err


def test_a_missing_data_file(visits: Path, run: Run) -> None:
    (visits / "visits.parquet").unlink()
    require_plain(run("query", COUNT, "--epsilon", "1"), 6)


def test_a_damaged_ledger(visits: Path, run: Run) -> None:
    run("budget")
    (visits / "visits.lapwing.db").write_bytes(b"not a ledger")
    require_plain(run("query", COUNT, "--epsilon", "1"), 6)


def test_a_bug_is_named_as_one(visits: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_answer: object, _level: object) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr(answer_formats, "as_csv", broken)
    outcome = run("query", COUNT, "--epsilon", "1")
    assert outcome.status == 6
    assert "bug in Lapwing" in outcome.err


def test_version_and_bare_call(run: Run) -> None:
    assert run("--version").out == f"lapwing {lw.__version__} build {build_id()}\n"
    bare = run()
    assert (bare.status, bare.out) == (2, "")
    assert "Queries:" in bare.err


def test_the_prefix_matters() -> None:
    """`require_plain` has teeth: it fails on a traceback, on noise in the results and on another status."""
    good = Outcome(status=3, out="", err="lapwing: no\n")
    require_plain(good, 3)
    for bad in (
        Outcome(status=2, out="", err="lapwing: no\n"),
        Outcome(status=3, out="x", err="lapwing: no\n"),
        Outcome(status=3, out="", err="Traceback\n"),
    ):
        with pytest.raises(AssertionError):
            require_plain(bad, 3)


def test_no_command_is_missing_from_the_table() -> None:
    alone = [
        "demo",
        "tables",
        "describe",
        "explain",
        "query",
        "synthesize",
        "shell",
        "guarantee",
        "init",
        "audit",
        "serve",
        "login",
        "grant",
        "account",
        "holdout",
        "lab",
    ]
    assert [name for name in commands.COMMANDS if not hasattr(commands.load(name), "commands")] == alone


def test_who_is_over_a_limit_hears_how_to_ask_for_a_larger_one() -> None:
    over = AllowanceExhausted("No.", curator_remedy="give a larger limit")
    assert "requests ask" not in coded(over)  # a larger limit of this person alone would not help
    over.dataset, over.larger_limit = "my visits", Fraction("0.47")
    assert ["requests ask 'my visits' --share 47%" in coded(over, ways) for ways in (COMMAND_LINE, SHELL)] == [True] * 2
    assert "Requests" in coded(over, NOTEBOOK)
    assert coded(AllowanceExhausted("The most of one query."), COMMAND_LINE) == "The most of one query."


def test_a_missing_delta_is_given_where_the_message_is_read() -> None:
    refused = QueryRefused("No", cause=RefusalCause.NEEDS_DELTA)
    assert [ways["delta"] in coded(refused, ways) for ways in (COMMAND_LINE, SHELL, NOTEBOOK)] == [True] * 3


def test_a_message_is_broken_between_words_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = InvalidParameter(f"{'word ' * 20}a-name-with-hyphens-{'x' * 60} end.")
    complain_of(error)
    assert capsys.readouterr().err == f"lapwing: {error}\n"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    complain_of(error)
    shown = capsys.readouterr().err
    assert shown.split() == f"lapwing: {error}".split()
    assert all(len(line) <= 40 or "a-name" in line for line in shown.splitlines())
    assert len(shown.splitlines()) > 3


@pytest.mark.parametrize("option", ["--port", "--postgres"])
def test_a_service_without_a_free_port_ends_before_it_begins(
    visits: Path, run: Run, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.setenv("LAPWING_CURATOR_PASSWORD", "of twelve characters")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        outcome = run("serve", "--port", "0", option, str(taken.getsockname()[1]))
    require_plain(outcome, 2)
    assert outcome.err.count("127.0.0.1") == 1
    assert not list(visits.glob("*.people.db"))
