"""`lapwing shell`: what it takes for a statement, what it completes, and that nothing is paid that is not asked."""

import io
import math
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import lapwing as lw
from lapwing.cli.charts import LEAST_BAR, Bar, drawn
from lapwing.cli.shell.completion import FUNCTIONS, SqlCompleter
from lapwing.cli.shell.settings import ShellSettings
from lapwing.cli.shell.shell import COMMANDS, GROUPS, Shell
from lapwing.cli.shell.statements import is_complete, quoted_before, split
from lapwing.cli.shell.terminal import history_file, prompt_session
from lapwing.query.expressions.naming import REMEDIES
from lapwing.session import Session
from lapwing.tables import ColumnDescription, TableDescription, Tables
from tests.support.cli.command import Outcome, Run
from tests.support.docs.pages import DOCS
from tests.support.effort import one_in

COUNT = "SELECT COUNT(*) AS n FROM visits"
Piped = Callable[..., Outcome]


@pytest.fixture
def piped(run: Run, monkeypatch: pytest.MonkeyPatch) -> Piped:
    """Return the shell, with a text on its standard input."""

    def running(text: str, *options: str) -> Outcome:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        return run("shell", *options)

    return running


# ---- What is a statement ----


@pytest.mark.parametrize(
    ("text", "statements", "begun"),
    [
        ("SELECT 1;\nSELECT\n 2;", ["SELECT 1", "SELECT\n 2"], ""),
        ("SELECT 1; .tables", ["SELECT 1", ".tables"], ""),
        (".epsilon 1\nSELECT 1;", [".epsilon 1", "SELECT 1"], ""),
        (".label one; two", [".label one; two"], ""),
        ("SELECT ';'", [], "SELECT ';'"),
        ("SELECT 'it''s;' ; x", ["SELECT 'it''s;'"], "x"),
        ('SELECT ";";', ['SELECT ";"'], ""),
        ("-- a; b\nSELECT 1; -- c;", ["-- a; b\nSELECT 1"], ""),
        ("SELECT /* ; */ 1;", ["SELECT /* ; */ 1"], ""),
        ("SELECT 1\n.tables", [], "SELECT 1\n.tables"),
        ("SELECT 1 - 2 / 3;;", ["SELECT 1 - 2 / 3"], ""),
        ("quit", ["quit"], ""),
        ("?\n\\d visits\nSHOW TABLES;\nSELECT 1;", ["?", "\\d visits", "SHOW TABLES;", "SELECT 1"], ""),
        ("  ", [], ""),
    ],
)
def test_statements(text: str, statements: list[str], begun: str) -> None:
    assert split(text) == (statements, begun)
    assert is_complete(text) is (begun == "")


@pytest.mark.parametrize(
    ("text", "inside"),
    [("x = 'a", "a"), ("x = '", ""), ("x = 'a'", None), ("x = ''", None), ("x = 'a'' b", "a'' b"), ("x --'", None)],
)
def test_whether_a_text_ends_in_quotes(text: str, inside: str | None) -> None:
    assert quoted_before(text) == inside


# ---- What it does ----


def test_questions_are_paid_at_the_price_that_was_set(visits: Path, piped: Piped) -> None:
    outcome = piped(f".epsilon 0.25\n.label heads\n{COUNT};\n.mode csv\n{COUNT} WHERE plan = 'a'\n")
    assert (outcome.status, outcome.err.count("cost")) == (0, 2)
    assert outcome.out.splitlines()[-2].split(",") == ["n", "n_low", "n_high"]
    with lw.connect() as session:
        history = session.budget().history
        assert [row.asked for row in history] == [f"heads: {COUNT}", f"heads: {COUNT} WHERE plan = 'a'"]
        assert {row.loss for row in history} == {session.price(0.25).rounded_up()}
    assert visits.exists()


def test_what_is_known_is_noted_once(visits: Path, piped: Piped) -> None:
    outcome = piped(f"{COUNT};{COUNT} WHERE plan = 'a';", "--epsilon", "0.1")
    assert outcome.err.count("queries use at most 3 rows of each person_id") == 1, visits


def test_a_script_ends_at_what_is_refused(visits: Path, piped: Piped) -> None:
    outcome = piped(f"SELECT nothing FROM visits;\n{COUNT};", "--epsilon", "0.1")
    assert (outcome.status, outcome.out) == (3, "")
    assert "There is no column 'nothing'" in outcome.err
    with lw.connect() as session:
        assert session.budget().history == (), visits


def test_explaining_is_free(visits: Path, piped: Piped) -> None:
    outcome = piped(
        f".explain on\n{COUNT};\n.explain off\n.explain {COUNT};\nEXPLAIN PRIVACY {COUNT};", "--epsilon", "0.5"
    )
    assert (outcome.status, outcome.out.count("± at 95 %")) == (0, 6)
    with lw.connect() as session:
        assert session.budget().history == (), visits


@pytest.mark.long
def test_pages_and_files(visits: Path, piped: Piped) -> None:
    outcome = piped(
        f".tables\n.describe\n.describe visits\n{COUNT};\n.save n.csv\n.plot n.json\n.budget\n.help\n.quit\nnothing;",
        *("--error", "40"),
    )
    assert outcome.status == 0
    assert outcome.out.count("visits: protects each person_id, at most 3 rows of each") == 2
    assert all(name in outcome.out for name in COMMANDS)
    assert "left" in outcome.out
    assert (visits / "n.csv").read_text().startswith("n,n_low,n_high\n")
    assert (visits / "n.json").read_text().startswith("{")
    assert "nothing" not in outcome.err


@pytest.mark.parametrize(
    ("line", "words"),
    one_in(
        3,
        [
            (".budge", "Did you mean '.budget'?"),
            (".epsilon -1", ".epsilon is '-1'"),
            (".describe visit", "Did you mean 'visits'?"),
            (".mode xml", "write .mode table | csv | json | markdown"),
            (".save n.csv", "There is no result yet"),
            (".save", "There is no result yet"),
            (".plot", "There is no result yet"),
            (".tables visits", ".tables takes nothing after it"),
            (".help plo", "Did you mean '.plot'"),
            (f"{COUNT};", "Give --epsilon 0.5"),
        ],
        many=True,
    ),
)
def test_what_is_wrong(visits: Path, piped: Piped, line: str, words: str) -> None:
    outcome = piped(line)
    assert outcome.status in (2, 3), visits
    assert words in outcome.err


def test_an_error_says_where_a_script_stopped(visits: Path, piped: Piped) -> None:
    """As psql does with ON_ERROR_STOP: the line, and that nothing after it was run."""
    outcome = piped(f".epsilon 0.1\n\n{COUNT};\n-- next\nSELECT nothing\nFROM visits; .tables\n{COUNT} WHERE cost > 1;")
    assert outcome.status == 3, visits
    assert "stopped at line 5 of the input, and ran nothing after it" in outcome.err
    (visits / "some.sql").write_text(f"{COUNT};\n.foo\n")
    outcome = piped(".epsilon 0.1\n.read some.sql\n.tables")
    assert (outcome.status, "visits: " in outcome.out) == (2, False)
    assert outcome.err.count("line 2 of some.sql, and") == outcome.err.count("line 2 of the input, and") == 1


def test_what_is_set_is_shown(visits: Path, piped: Piped) -> None:
    settings = ".epsilon 0.25\n.label heads\n.timer on\n.confidence 0.9\n"
    asked = ".epsilon\n.error\n.delta\n.label\n.timer\n.mode\n.width\n.explain\n.verbose\n.confidence\n"
    outcome = piped(settings + asked)
    assert outcome.status == 0, visits
    words = dict(line.split(maxsplit=1) for line in outcome.err.splitlines())
    assert words.pop("epsilon") == words.pop("error") == "Each query costs epsilon 0.25."
    assert words == {"delta": "off", "label": "heads", "timer": "on", "mode": "table", "width": "auto"} | {
        "explain": "off", "verbose": "off", "confidence": "90 %"
    }  # fmt: skip


def test_the_number_of_queries_and_the_command_are_obeyed(visits: Path, piped: Piped) -> None:
    both = f"{COUNT};{COUNT} WHERE plan = 'a';"
    assert piped(f"{both}\n.budget 1", "--epsilon", "0.1").out.count("FROM visits") == 1, visits
    assert piped(".budget 2").out.count("FROM visits") == 2
    for name in (".help plot", ".help .plot", ".HELP PLOT"):
        assert [line.split()[0] for line in piped(name).out.splitlines()] == [".plot"]


def test_the_data_are_no_file_to_save_to(visits: Path, piped: Piped) -> None:
    before = (visits / "visits.parquet").read_bytes()
    outcome = piped(f"{COUNT};\n.save visits.parquet", "--epsilon", "0.1")
    assert (outcome.status, "belongs to the data set" in outcome.err) == (2, True)
    assert (visits / "visits.parquet").read_bytes() == before


def test_after_ctrl_c_it_can_be_pressed_again(visits: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that asks ignores it afterwards, to say what was charged; a shell goes on."""
    import signal

    before = signal.getsignal(signal.SIGINT)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with lw.connect() as session:
        shell = Shell(session, ShellSettings())
        with monkeypatch.context() as patch:
            patch.setattr(Session, "sql", interrupted)
            with pytest.raises(lw.Interrupted, match="nothing was paid"):
                shell.run(COUNT)
        assert signal.getsignal(signal.SIGINT) is before
    assert (visits.exists(), run("budget").status) == (True, 0)


# ---- What a person types ----


def completions(text: str) -> list[str]:
    with lw.connect() as session:
        completer = SqlCompleter(session.tables)
        return [found.text for found in completer.get_completions(Document(text), CompleteEvent())]


@pytest.mark.parametrize(
    ("text", "offered"),
    one_in(
        8,
        [
            ("SELECT COUNT(*) FROM v", ["visits"]),
            ("SELECT pl", ["plan"]),
            ("select per", ["person_id", "PERCENTILE_CONT(", "PERCENTILE_DISC(", "PERCENT_RANK("]),
            ("SELECT AVG(cou", ["COUNT(", "COUNT_IF("]),
            (
                "SELECT COUNT(*) FROM visits GROUP BY R",
                [
                    "RADIANS(",
                    "RANK(",
                    "REGEXP_CONTAINS(",
                    "REGEXP_EXTRACT(",
                    "REGEXP_FULL_MATCH(",
                    "REGEXP_MATCHES(",
                    "REGEXP_REPLACE(",
                    "REPLACE(",
                    "REVERSE(",
                    "RIGHT(",
                    "ROUND(",
                    "ROW_NUMBER(",
                    "ROLLUP",
                ],
            ),
            ("SELECT COUNT(*) FROM visits WHERE plan = '", ["a'", "b'"]),
            ("SELECT COUNT(*) FROM visits WHERE \"plan\" IN ('a', 'b", ["b'"]),
            ("SELECT COUNT(*) FROM visits WHERE cost = 'a", []),
            ("SELECT COUNT(*) FROM visits ", []),
            (".des", [".describe"]),
            (".describe v", ["visits"]),
            (".mode c", ["csv"]),
            (".explain SELECT pl", ["plan"]),
        ],
        many=True,
    ),
)
def test_completion(visits: Path, text: str, offered: list[str]) -> None:
    assert completions(text) == offered, visits


def test_completions_say_what_names_and_values_mean() -> None:
    plan = ColumnDescription(
        name="plan",
        type="string",
        values=("a", "b'c"),
        title="Plan of care\x1b[2J",
        labels={"a": "Small", "b'c": "Grand"},
    )
    table = TableDescription(name="visits", kind="protected", columns=(plan, ColumnDescription(name="cost", type=None)))
    completer = SqlCompleter(Tables([table]))

    def meanings(text: str) -> dict[str, str]:
        return {one.text: one.display_meta_text for one in completer.get_completions(Document(text), CompleteEvent())}

    assert meanings("SELECT pla")["plan"] == "Plan of care\\x1b[2J"
    assert meanings("SELECT cos")["cost"] == ""
    assert meanings("SELECT COUNT(*) FROM visits WHERE plan = '") == {"a'": "Small", "b''c'": "Grand"}


def test_only_what_is_answered_is_offered() -> None:
    page = (DOCS / "reference" / "sql.md").read_text()
    assert not [name for name in FUNCTIONS if not re.search(rf"\b{name}\b", page)]
    assert not set(FUNCTIONS) & set(REMEDIES)


def test_a_name_that_is_no_word_is_quoted(visits: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table({"order": [1], "Zip Code": [2], "id": [3]}), visits / "odd.parquet")
    with lw.protect(visits / "odd.parquet", privacy_unit="id", epsilon=1, max_rows_per_unit=1) as session:
        completer = SqlCompleter(session.tables)
        found = [
            next(one.text for one in completer.get_completions(Document(text), CompleteEvent()))
            for text in ("SELECT ord", "SELECT Zip", 'SELECT "zi')
        ]
    assert found == ['"order"', '"Zip Code"', '"Zip Code"']


@pytest.mark.long
@pytest.mark.parametrize(
    ("keys", "taken"),
    one_in(
        6,
        [
            ("SELECT 1;\r", "SELECT 1;"),
            ("SELECT\r1;\r", "SELECT\n1;"),
            (".tables\r", ".tables"),
            ("quit\r", "quit"),
            ("SELECT ';\r';\r", "SELECT ';\n';"),
        ],
        many=True,
    ),
)
def test_enter_takes_what_is_complete(visits: Path, monkeypatch: pytest.MonkeyPatch, keys: str, taken: str) -> None:
    monkeypatch.setenv("LAPWING_SHELL_HISTORY", "")
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()), lw.connect() as session:
        pipe.send_text(keys)
        shell = Shell(session, ShellSettings())
        assert prompt_session(shell).prompt(shell.prompt) == taken
        assert shell.prompt == "visits 100 % left> ", visits


def test_what_was_typed_is_kept_for_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAPWING_SHELL_HISTORY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file = history_file()
    assert file == tmp_path / "state" / "lapwing" / "shell-history"
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    monkeypatch.setenv("LAPWING_SHELL_HISTORY", "")
    assert history_file() is None
    (tmp_path / "file").touch()
    monkeypatch.setenv("LAPWING_SHELL_HISTORY", str(tmp_path / "file" / "below"))
    assert history_file() is None


# ---- Files, charts and widths ----


def test_a_file_is_read_and_ends_at_the_first_refusal(visits: Path, piped: Piped) -> None:
    (visits / "some.sql").write_text(f".epsilon 0.1\n{COUNT};\nSELECT nothing FROM visits;\n{COUNT} WHERE cost > 1;")
    outcome = piped(".read some.sql")
    assert outcome.status == 3
    with lw.connect("lapwing.toml") as session:
        assert len(session.history()) == 1
    (visits / "loop.sql").write_text(".read loop.sql")
    assert piped(".read loop.sql").status == 2
    assert piped(".read").status == 2
    assert piped(".read missing.sql").status == 6


def test_what_was_charged_how_long_it_took_and_the_schema(visits: Path, piped: Piped) -> None:
    outcome = piped(
        f".history\n.epsilon 0.1\n.timer on\n{COUNT};\n.timer off\n{COUNT} WHERE cost > 1;\n.history 1\n.schema"
    )
    assert outcome.status == 0, visits
    assert "Lapwing has not charged a query yet" in outcome.err
    assert len(re.findall(r"^time +[0-9.]+ s$", outcome.err, re.M)) == 1
    assert " ".join(outcome.out.split()).count("WHERE cost > 1") == 1
    assert "visits: protects each person_id" in outcome.out
    for wrong in (".history x", ".timer maybe", ".width 3", ".schema nothing"):
        assert piped(wrong).status == 2


def test_a_width_is_for_all_pages_of_this_shell(visits: Path, piped: Piped) -> None:
    wide = piped(".schema")
    narrow = piped(".width 30\n.schema\n.width auto")
    assert max(map(len, narrow.out.splitlines())) <= 30 < max(map(len, wide.out.splitlines())), visits
    assert piped(".schema").out == wide.out


@pytest.mark.long
def test_a_chart_is_drawn_where_no_file_is_named(visits: Path, piped: Piped, run: Run) -> None:
    by_plan = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"
    assert "█" in piped(f".epsilon 1\n{by_plan};\n.plot").err
    outcome = run("query", by_plan, "--epsilon", "1", "--plot", "--format", "csv")
    assert (outcome.status, "█" in outcome.out, "█" in outcome.err) == (0, False, True), visits
    assert "is drawn" not in outcome.err
    both = by_plan.replace("AS n", "AS n, AVG(cost) AS mean")
    assert "only n is drawn" in run("query", both, "--epsilon", "1", "--plot").err
    assert [path.name for path in visits.iterdir() if path.name.startswith("-")] == []
    assert run("account", "3 laplace epsilon=0.1", "--delta", "1e-6", "--plot", "-v").status == 2


def test_help_lists_every_command_once() -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(COMMANDS)


BARS = [
    Bar("a", 4.0, 2.0, 6.0, "4 ±2"),
    Bar("b", -1.0, -3.0, 1.0, "-1 ±2"),
    Bar("–", math.nan, math.nan, math.nan, "–"),
]


@pytest.mark.parametrize("width", [10, 22, 80, 250])
def test_bars_fill_the_width_and_end_at_their_numbers(width: int) -> None:
    lines = drawn(BARS, width)
    assert {len(line) for line in lines} == {max(width, LEAST_BAR + 8)}
    strip = [line[2:-6] for line in lines]
    zero, cells = strip[0].index("│"), len(strip[0])
    ends = strip[0].rindex("▓") + 1, strip[0].rindex("░") + 1, strip[1].index("░")
    expected = [cells * (at + 3) / 9 for at in (4, 6, -3)]
    assert all(abs(end - wanted) <= 1 for end, wanted in zip(ends, expected, strict=True))
    assert strip[2].strip(" │") == ""
    assert abs(zero - cells / 3) <= 1


@pytest.mark.parametrize("line", ["local estimate --bogus", "data check --catalog", "people add --server"])
def test_a_usage_error_names_the_help_of_its_command(visits: Path, run: Run, line: str) -> None:
    outcome = run(*line.split())
    command = " ".join(word for word in line.split()[:2] if not word.startswith("-"))
    assert (outcome.status, f"`lapwing {command} --help`" in outcome.err) == (2, True), visits
