"""Whom a data set protects is worded by one function, `catalog/protection.py`, wherever people or programs read it."""

import re
from pathlib import Path

import pytest

import lapwing
from lapwing.catalog import protection
from lapwing.cli import main
from tests.server.console.test_asking import SQL, priced
from tests.support.server.browsing import visitor
from tests.support.server.world import World

PACKAGE = Path(lapwing.__file__).parent
WORDED = {"catalog/protection.py": "units", "catalog/table.py": "the rows of each unit that queries use"}


def places(world: World, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Return what each place shows of a data set, or of a query's cost."""
    session, alice = world.session(), visitor(world, "alice")
    preview = session.explain(SQL, epsilon=0.5)
    assert main(["explain", SQL, "--epsilon", "0.5", "--catalog", str(session.catalog.file)]) == 0
    terminal = capsys.readouterr().out
    body = {"sql": SQL, "epsilon": 0.5}
    return {
        "Python": preview.unit,
        "Python, tables": str(session.tables),
        "notebook": session._repr_html_(),
        "guarantee": str(session.guarantee().sections[1].table),
        "command line": terminal,
        "/v1, data set": str(world.ask("GET", "/v1/datasets/open", "alice").document["tables"]),
        "/v1, cost": world.ask("POST", "/v1/datasets/open/explain", "alice", body).document["unit"],
        "console, data": alice.go("/console/data/open").text,
        "console, query": priced(alice).text,
        "console, guarantee": alice.go("/console/data/open/guarantee").text,
    }


def elsewhere(world: World, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the places that word the privacy unit in another way."""
    words = protection.units_of(world.session().catalog.tables)
    return [place for place, text in places(world, capsys).items() if words not in text]


def test_every_place_has_the_same_words(settled: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert protection.units_of(settled.session().catalog.tables) == "each person"
    assert elsewhere(settled, capsys) == []


def test_a_place_with_words_of_its_own_is_found(
    settled: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: the page of the guarantee words it by itself."""
    monkeypatch.setattr("lapwing.guarantee.sections.units_of", lambda tables, texts: "every person")
    assert elsewhere(settled, capsys) == ["guarantee", "console, guarantee"]


def test_no_other_code_words_it() -> None:
    """No other file writes "each" before a name that it is given."""
    writing = re.compile(r"\beach \{")
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*")
        if path.suffix in (".py", ".html", ".js", ".mjs") and writing.search(path.read_text(encoding="utf-8"))
    }
    assert found == set(WORDED)
