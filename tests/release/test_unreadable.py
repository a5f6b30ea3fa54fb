"""Values that are not of their declared type: no version with them is accepted, unless the curator says so."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.catalog import digests
from lapwing.catalog.model import Column, Table
from lapwing.catalog.toml import dumps, load, loads
from lapwing.engines import DuckDB
from lapwing.engines.duckdb import cleaned
from lapwing.errors import CatalogError, DataFault, EngineFault, InvalidParameter
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


def overriding(folder: Path, columns: str) -> None:
    """A column that begins to refuse keeps what was bought, raises in no query, and accepts no more data."""
    path = write(folder, BAD[columns])
    with lw.protect(path, **PROTECTED, unreadable="null") as session:
        before, first = session.catalog.tables[0].digest, session.sql(QUESTION, epsilon=1).rows()
    file = folder / "visits.lapwing.toml"
    file.write_text(
        file.read_text().replace('amount = { type = "integer"', 'amount = { unreadable = "refuse", type = "integer"')
    )
    with lw.connect(file) as session:
        assert session.catalog.tables[0].digest == before
        again = session.sql(QUESTION, epsilon=1)
        assert (again.rows(), again.stored) == (first, True)
        assert abs(session.sql("SELECT SUM(amount) AS n FROM visits", epsilon=1).rows()[0]["n"] - 7350) < 2500  # type: ignore[operator]
        for unreadable in (None, "null"):
            with pytest.raises(DataFault, match=r"not of the declared type in amount\."):
                session.accept_data(unreadable=unreadable)


@pytest.mark.parametrize("columns", one_in(2, BAD))
def test_a_column_that_refuses_decides_what_is_accepted_and_nothing_else(columns: str, tmp_path: Path) -> None:
    overriding(tmp_path, columns)


def test_a_column_that_accepts_does_so_for_itself_alone(tmp_path: Path) -> None:
    with lw.protect(write(tmp_path), **PROTECTED) as session:
        text = dumps(session.catalog)
    file = tmp_path / "visits.lapwing.toml"
    file.write_text(text.replace('amount = { type = "integer"', 'amount = { unreadable = "null", type = "integer"'))
    write(tmp_path, BAD["amount"])
    with lw.connect(file) as session:
        assert 'unreadable = "null" }' in dumps(session.catalog)
        assert session.accept_data() == 2
        write(tmp_path, BAD["amount, day"])
        with pytest.raises(DataFault, match=r"not of the declared type in day\."):
            session.accept_data()


CLEAN, FACTS = cleaned.clean, digests.column_facts


def strict(column: Column, physical: str) -> str:
    """Return the planted reading: a column that refuses raises on a row that cannot be read."""
    return f'CAST("{column.name}" AS INTEGER)' if column.unreadable == "refuse" else CLEAN(column, physical)


def as_meaning(column: Column) -> dict[str, object]:
    """Return planted facts of a column, with the key."""
    return {**FACTS(column), "unreadable": column.unreadable}


TWINS: dict[str, tuple[Callable[[Path, str], None], str, Callable[..., object]]] = {
    "nobody looks": (refusing, "lapwing.engines.duckdb.engine.DuckDB.unfit_columns", lambda self, table: []),
    "the key is a part of the meaning": (overriding, "lapwing.catalog.digests.column_facts", as_meaning),
    "one row raises": (overriding, "lapwing.engines.duckdb.cleaned.clean", strict),
}
FAILS = (pytest.fail.Exception, AssertionError, EngineFault)


@pytest.mark.parametrize("twin", TWINS)
def test_twins(twin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    law, place, planted = TWINS[twin]
    monkeypatch.setattr(place, planted)

    with pytest.raises(FAILS):
        law(tmp_path, "amount")


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
