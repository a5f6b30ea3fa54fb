"""Values that are not of their declared type: no version with them is accepted, unless the curator says so."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.catalog.model import Table
from lapwing.catalog.toml import dumps, load, loads
from lapwing.engines import DuckDB
from lapwing.errors import CatalogError, DataFault, InvalidParameter
from tests.support.effort import one_in, only

GOOD = "".join(f"{person},{person % 50},2024-05-0{1 + person % 9}\n" for person in range(300))
HEADER = "person,amount,day\n"
PROTECTED: dict[str, Any] = {
    "privacy_unit": "person",
    "epsilon": 3,
    "max_rows_per_unit": 1,
    "types": {"amount": "integer", "day": "date"},
    "bounds": {"amount": (0, 50)},
}
QUESTION = "SELECT COUNT(amount) AS n FROM visits"
BAD = {"amount": "7,A1,2024-05-01\n", "amount, day": "7,3.50,03/05/2024\n"}


def write(folder: Path, more: str = "") -> Path:
    path = folder / "visits.csv"
    path.write_text(HEADER + GOOD + more)
    return path


def refusing(folder: Path, columns: str) -> None:
    """No file with such values is protected, and none accepted later; what was accepted goes on."""
    path = write(folder, BAD[columns])
    with pytest.raises(DataFault, match=rf"not of the declared type in {columns}\. .* `lapwing data check`"):
        lw.protect(path, **PROTECTED)
    assert not list(folder.glob("*.db")), "nothing was begun"
    write(folder)
    with lw.protect(path, **PROTECTED) as session:
        first = session.sql(QUESTION, epsilon=1)
        write(folder, BAD[columns])
        with pytest.raises(DataFault, match="not of the declared type"):
            session.accept_data()
        assert session.budget().version == 1
        write(folder)
        assert session.sql(QUESTION, epsilon=1).rows() == first.rows()


@pytest.mark.parametrize("columns", one_in(2, BAD))
def test_no_version_with_them_is_accepted(columns: str, tmp_path: Path) -> None:
    refusing(tmp_path, columns)


def test_twin_nobody_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing.engines.duckdb.engine.DuckDB.unfit_columns", lambda self, table: [])

    with pytest.raises(pytest.fail.Exception):
        refusing(tmp_path, "amount")


def test_once_or_for_good_as_the_curator_says(tmp_path: Path) -> None:
    path = write(tmp_path)
    with lw.protect(path, **PROTECTED) as session:
        write(tmp_path, BAD["amount"])
        assert session.accept_data(unreadable="null") == 2
        write(tmp_path, BAD["amount, day"])
        with pytest.raises(DataFault, match="not of the declared type"):
            session.accept_data()
    with lw.protect(path, **PROTECTED, unreadable="null") as session:
        assert session.accept_data() == 3
        assert abs(session.sql(QUESTION, epsilon=2).rows()[0]["n"] - 301) < 30  # type: ignore[operator]
    assert load(tmp_path / "visits.lapwing.toml").tables[0].unreadable == "null"
    with lw.protect(path, **PROTECTED) as session:  # as its catalog has it, unless it is said
        assert session.catalog.tables[0].unreadable == "null"
    with (
        pytest.raises(InvalidParameter, match="unreadable is 'zero'"),
        lw.connect(tmp_path / "visits.lapwing.toml") as session,
    ):
        session.accept_data(unreadable="zero")


def test_it_is_kept_and_means_nothing_to_answers(tmp_path: Path) -> None:
    path = write(tmp_path)
    with lw.protect(path, **PROTECTED) as session:
        plain, first = session.catalog, session.sql(QUESTION, epsilon=1)
    with lw.protect(path, **PROTECTED, unreadable="null") as session:
        again = session.sql(QUESTION, epsilon=1)
        said = session.catalog
    assert (again.rows(), again.stored) == (first.rows(), True)
    assert said.tables[0].digest == plain.tables[0].digest
    assert loads(dumps(said), file="x.toml", folder=tmp_path).tables[0].unreadable == "null"


@pytest.mark.parametrize("said", only([0], ['"zero"', "0", "true", '""']))
def test_what_cannot_be_meant(said: str, tmp_path: Path) -> None:
    with lw.protect(write(tmp_path), **PROTECTED, unreadable="null") as session:
        text = dumps(session.catalog)
    assert 'unreadable = "null"' in text
    with pytest.raises(CatalogError, match=r"tables\.visits\.unreadable"):
        loads(text.replace('unreadable = "null"', f"unreadable = {said}"), file="x.toml", folder=tmp_path)


def test_a_ledger_begins_with_one_look_at_the_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, look = [], DuckDB.unfit_columns

    def counted(self: DuckDB, table: Table) -> Sequence[str]:
        looks.append(table.name)
        return look(self, table)

    monkeypatch.setattr(DuckDB, "unfit_columns", counted)
    with lw.protect(write(tmp_path), **PROTECTED) as session:
        assert session.budget().version == 1
    assert looks == ["visits"]
