"""A source from the command line: drafted, looked at, accepted, refreshed; and what is refused on the way."""

import json
import sqlite3
from pathlib import Path

import pytest

from lapwing.catalog.toml import load
from tests.support.cli.command import Run, run
from tests.support.effort import one_in
from tests.support.sources import rows

__all__ = ["run"]

INIT = (
    *("init", "sqlite:clinic.db", "--table", "visits", "--privacy-unit", "person", "--epsilon", "3", "--delta", "1e-6"),
    *("--max-rows", "3", "--bounds", "cost=0:500", "--values", "plan=a,B"),
)
QUESTION = ("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.5")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows.fill_sqlite(tmp_path / "clinic.db", rows.visits())
    return tmp_path


@pytest.mark.long
def test_from_a_database_to_an_answer(folder: Path, run: Run) -> None:
    assert run(*INIT, "--types", "weight=decimal:0.5").status == 0
    (table,) = load(folder / "lapwing.toml").tables
    assert table.source == "sqlite:clinic.db#visits"
    kinds = {column.name: column.type for column in table.columns}
    assert kinds == {
        **{"person": "integer", "plan": "string", "cost": "decimal", "weight": "decimal"},
        **{"insured": "boolean", "day": "date", "at": "timestamp"},
    }
    early = run(*QUESTION)
    assert (early.status, "were not fetched yet" in early.err) == (6, True)
    assert not list(folder.glob("*.lapwing.db"))
    checked = run("data", "check", "--format", "json")
    assert json.loads(checked.out)["tables"][0]["rows"] == 400
    assert "fetched  visits: 400 rows" in checked.err
    assert run(*QUESTION).status == 0
    refreshed = run("data", "refresh")
    assert refreshed.out == "The rows are the same as in version 1. Nothing was changed.\n"
    rows.fill_sqlite(folder / "clinic.db", rows.visits(10, seed=2))
    assert run("data", "refresh", "--whole").out == "Version 2 is current from now on.\n"
    assert run(*QUESTION).status == 0


@pytest.mark.long
def test_what_was_looked_at_is_what_is_accepted(folder: Path, run: Run) -> None:
    run(*INIT)
    assert run("data", "refresh").out == "Version 1 is current from now on.\n"
    with sqlite3.connect(folder / "clinic.db") as connection:
        connection.execute("INSERT INTO visits (person, cost) VALUES (1, 'much')")
    connection.close()
    checked = run("data", "check")
    assert checked.status == 6
    assert "'much' (1)" in checked.out
    assert run("data", "accept").status == 6
    assert run(*QUESTION).status == 0, "version 1 answers"
    rows.fill_sqlite(folder / "clinic.db", rows.visits(10, seed=2))
    assert "Version 2 is current" in run("data", "accept", "--unreadable", "null").out
    checked = run("data", "check", "--format", "json")
    assert json.loads(checked.out)["tables"][0]["rows"] == 411, "and now the ten rows are there, too"


@pytest.mark.parametrize(
    ("arguments", "said"),
    one_in(
        3,
        [
            (["visits.parquet", "--table", "visits"], "--table goes with the address of a database"),
            (["sqlite:clinic.db"], "the address names no table"),
            (["sqlite:clinic.db", "--table", "nothing"], "The database has no table nothing"),
            (["sqlite:nowhere.db", "--table", "visits"], "There is no database nowhere.db"),
            (
                ["postgresql://reader:hunter2@db.example.org/clinic", "--table", "visits"],
                "the address holds a password",
            ),
            (["delta:lake", "--table", "visits"], "the address names a table behind #, and is one itself"),
            (["sqlite:clinic.db", "--table", "visits", "--types", "cost=money"], '"money" is unknown'),
            (["sqlite:clinic.db", "--table", "visits", "--types", "price=integer"], 'there is no column "price"'),
        ],
        many=True,
    ),
)
def test_what_cannot_be_meant_is_refused(arguments: list[str], said: str, folder: Path, run: Run) -> None:
    refused = run("init", *arguments, "--privacy-unit", "person", "--epsilon", "3", "--max-rows", "3")
    assert refused.status in (2, 6)
    assert said in " ".join(refused.err.split())
    assert "hunter2" not in refused.err
    assert not list(folder.glob("*.toml"))


def test_files_are_not_refreshed(folder: Path, run: Run) -> None:
    rows.fill_parquet(folder / "visits.parquet", rows.visits())
    run("init", "visits.parquet", "--privacy-unit", "person", "--epsilon", "3", "--max-rows", "3")
    refused = run("data", "refresh")
    assert refused.status == 2
    assert "Lapwing reads files where they are" in " ".join(refused.err.split())
