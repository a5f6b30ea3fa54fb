"""Questions in the cells of a notebook."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from lapwing.datasets import rand_hie_catalog, rand_hie_data
from tests.support.notebooks import Shown, run
from tests.support.server.world import World, service_in, serving

COUNT = "SELECT sex, COUNT(*) AS n FROM rand_hie GROUP BY sex"
OPEN = ["%load_ext lapwing", "%lapwing connect lapwing.toml"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(rand_hie_data(), tmp_path / "rand_hie.parquet")
    shutil.copy(rand_hie_catalog(), tmp_path / "lapwing.toml")
    return tmp_path


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with serving(service_in(tmp_path / "server")) as running:
        yield running


def errors(shown: list[Shown]) -> list[str | None]:
    return [one.error for one in shown]


@pytest.mark.long
def test_a_cell_shows_table_intervals_and_price(folder: Path) -> None:
    shown = run([*OPEN, f"%%lapwing --epsilon 0.5\n{COUNT}", "_.rows()", f"%%lapwing --epsilon 0.5\n{COUNT}"], folder)
    assert not any(errors(shown))
    _, _, first, rows, again = shown
    assert first.result is not None
    assert "<table" in first.result["text/html"]
    assert ">n</th>" in first.result["text/html"]
    assert " ±" in first.result["text/html"]  # the interval beside the number
    (price,) = first.displays
    assert "cost" in price["text/html"]
    assert "epsilon 0.5 for this query" in price["text/plain"]
    assert "left" in price["text/plain"]
    assert rows.result is not None
    assert "'sex': 'male'" in rows.result["text/plain"]
    assert "free: it was bought before" in again.displays[0]["text/plain"]


@pytest.mark.long
def test_names_values_and_explain(folder: Path) -> None:
    question = "SELECT COUNT(*) AS n FROM rand_hie WHERE age >= $age AND health = $health"
    shown = run(
        [
            *OPEN,
            'age, health = 18, "it\'s $health; -- "',
            f"%%lapwing --error 50 --value age --value health adults <<\n{question}",
            "len(adults), adults.columns, adults.cost.kind",
            f"%%lapwing --explain --epsilon 0.5 --value age --value health preview <<\n{question}",
            "preview.epsilon",
            "import lapwing\nother = lapwing.connect('lapwing.toml')",
            "%lapwing use other",
            "%lapwing budget",
            "%%lapwing --help\n-",
        ],
        folder,
    )
    assert not any(errors(shown))
    assert shown[4].result == {"text/plain": "(1, ('n',), 'gdp')"}
    assert shown[5].result is None
    assert "noisy number" in shown[5].stdout
    assert "rounded Gaussian" in shown[5].stdout
    assert shown[6].result == {"text/plain": "0.5"}
    assert "% spent" in shown[9].stdout
    assert "--epsilon EPSILON" in shown[10].stdout


@pytest.mark.long
def test_what_is_wrong_is_said_without_a_trace(folder: Path) -> None:
    cells = {
        f"%%lapwing --epsilon 0.5\n{COUNT}": "UsageError: No data set is open. Write %lapwing connect",
        "%lapwing connect missing.toml": "UsageError: ",
        "%lapwing use nothing": "UsageError: There is no session in a variable 'nothing'",
        "%lapwing buy": "UsageError: Write one of",
        OPEN[1]: None,
        "%%lapwing --epsilon 0.5\nSELECT\n  SUM(weight) FROM rand_hie": "line 2, column 7",
        f"%%lapwing --epsilon none\n{COUNT}": "UsageError: --epsilon is 'none'; it must be a number",
        f"%%lapwing --epsilon -1\n{COUNT}": "UsageError: ",
        f"%%lapwing\n{COUNT}": "%%lapwing --epsilon 0.5",
        f"%%lapwing --seed 1\n{COUNT}": "unrecognized arguments: --seed 1",
        f"%%lapwing --epsilon 1 a-b <<\n{COUNT}": "Write the name of a variable before <<",
        f"%%lapwing --epsilon 1 --value age\n{COUNT}": "there is no variable of this name",
        f"%%lapwing --epsilon 99\n{COUNT}": "UsageError: ",
    }
    shown = run([OPEN[0], *cells], folder)
    for one, expected in zip(shown[1:], cells.values(), strict=True):
        assert (one.error is None) == (expected is None), one.error
        assert expected is None or (one.error is not None and expected in one.error)
        assert "Traceback" not in one.stdout
    refused = shown[6]
    assert refused.error is not None
    assert refused.error.endswith("  SUM(weight) FROM rand_hie\n          ^")


@pytest.mark.long
def test_a_line_is_no_program(folder: Path) -> None:
    """Nothing of a question or its options is run by Python or the shell."""
    attack = "x; __import__('pathlib').Path('stolen').touch()"
    shown = run(
        [
            *OPEN,
            f"%%lapwing --epsilon {attack!r}\n{COUNT}",
            f"%%lapwing --epsilon 1 {attack} <<\n{COUNT}",
            f"%%lapwing --epsilon 1\n!touch stolen\n{COUNT}",
            f"%%lapwing --epsilon 1\n{{{attack}}}",
            f"%lapwing use {attack}",
        ],
        folder,
    )
    assert all(one.error for one in shown[2:])
    assert not (folder / "stolen").exists()


@pytest.mark.long
def test_a_server_is_asked_like_a_file(world: World, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address, token = world.address, world.tokens["carol"]
    monkeypatch.setenv("LAPWING_TOKEN", token)
    question = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"
    shown = run(
        [
            OPEN[0],
            f"%lapwing connect {address} open",
            f"%%lapwing --epsilon 0.5 answer <<\n{question}",
            "sorted(row['plan'] for row in answer.rows())",
            f"%%lapwing --explain --epsilon 0.5\n{question}",
            "%lapwing budget",
            f"import lapwing\nhere = lapwing.connect('{address}', token='{token}', dataset='open')",
            "%lapwing use here",
            f"%%lapwing --epsilon 0.5\n{question}",
            "%%lapwing --epsilon 0.5\nSELECT\n  cost FROM visits",
            f"%lapwing connect {address}",
        ],
        folder,
    )
    assert not any(errors(shown)[:9])
    assert shown[2].result is not None
    assert "<table" in shown[2].result["text/html"]
    assert "cost" in shown[2].displays[0]["text/plain"]
    assert shown[3].result == {"text/plain": "['a', 'b']"}
    assert "rounded Gaussian" in shown[4].stdout
    assert "% spent" in shown[5].stdout
    assert "free: it was bought before" in shown[8].displays[0]["text/plain"]
    assert "line 2, column 3" in (shown[9].error or "")
    assert "Choose a data set with dataset=" in (shown[10].error or "")


def test_it_is_not_loaded_unasked(folder: Path) -> None:
    shown = run(["import sys, lapwing\n'lapwing.cli.magic' in sys.modules", "%lapwing budget"], folder)
    assert shown[0].result == {"text/plain": "False"}
    assert shown[1].error is not None or "not found" in shown[1].stdout
