"""The SQL of linked tables finds the rows that the catalog's definition says exist, and a unit's rows go with it."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import duckdb
import pytest
from hypothesis import example, given

from lapwing.catalog import Column, Table
from lapwing.catalog.table import Link
from lapwing.engines.duckdb import cleaned, linked_rows, literals
from lapwing.engines.duckdb.cleaned import Location, Pass
from tests.catalog.test_existing import CHILD, LEAF, ROOT, SMALL, TABLES, cascaded, rows, without
from tests.support.catalog.existing import Data
from tests.support.effort import examples, one_in
from tests.support.engines.linked import Bag, defined, found, put, source_of
from tests.support.query import composed

MANY = examples(6, 600)
A_LEAF: Data = {  # one that exists, three times: few random ones meet a parent that meets one
    "root": [{"k": 2, "site": 1, "who": 0}, {"k": 1, "site": 2, "who": None}],
    "child": [{"k": 2, "day": 0, "of": 2}, {"k": 3, "day": 0, "of": 1}],
    "leaf": [{"of": 2, "day": 0, "n": 0}, {"of": 2, "day": 0, "n": 1}, {"of": 2, "day": 0, "n": 1}],
}


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with composed.connect() as connection:
        yield connection


def others(rows: Bag, unit: int) -> Bag:
    return Counter({row: n for row, n in rows.items() if row[0] != unit})  # type: ignore[index]


@pytest.mark.long
@MANY
@given(rows(unique=True))
@example(A_LEAF)
def test_rows_exist_by_the_definition(data: Data) -> None:
    with composed.connect() as connection:
        put(connection, TABLES, data)
        for table in TABLES:
            assert found(connection, table) == defined(connection, table, data)


@pytest.mark.long
@MANY
@given(rows(unique=False))
@example(A_LEAF)
def test_a_row_with_several_parents_exists_once_for_each(data: Data) -> None:
    with composed.connect() as connection:
        put(connection, TABLES, data)
        for table in TABLES:
            assert found(connection, table) == defined(connection, table, data)


@pytest.mark.long
@MANY
@given(rows(unique=True))
def test_the_rows_of_all_passes_are_those_of_one(data: Data) -> None:
    with composed.connect() as connection:
        put(connection, TABLES, data)
        for table in TABLES:
            parts = [found(connection, table, Pass(index=i, of=3)) for i in range(3)]
            assert sum(parts, Counter()) == found(connection, table)
            units = [{row[0] for row in part} for part in parts]  # type: ignore[index]
            assert sum(map(len, units)) == len(set().union(*units))


@MANY
@given(rows(unique=True), SMALL)
def test_to_remove_a_unit_is_to_remove_its_rows_everywhere(data: Data, unit: int) -> None:
    assert not moved(data, unit)


def moved(data: Data, unit: int) -> list[str]:
    """Return the tables in which more changes than a unit's rows if it is removed from the root, or from all."""
    with composed.connect() as connection:
        put(connection, TABLES, data)
        left = {table.name: others(found(connection, table), unit) for table in TABLES}
        names = []
        for neighbour in (without(data, unit), cascaded(data, unit)):
            put(connection, TABLES, neighbour)
            names += [table.name for table in TABLES if found(connection, table) != left[table.name]]
        return names


# ---- planted bugs ----------------------------------------------------------------------------------------------------

SHOP: Data = {
    "root": [{"k": 10 * who + n, "who": who, "site": 1} for who in (1, 2) for n in (0, 1)],
    "child": [{"k": k, "day": k % 2, "of": 10 * (1 + k % 2) + k // 2 % 2} for k in range(12)]
    + [{"k": 90, "day": 0, "of": 99}, {"k": 91, "day": 0, "of": None}],
    "leaf": [{"of": k % 12, "day": k % 2} for k in range(40)] + [{"of": 90, "day": 0}, {"of": 3, "day": None}],
}


def is_wrong() -> bool:
    """Tell whether some table has other rows than by the definition."""
    with composed.connect() as connection:
        put(connection, TABLES, SHOP)
        return any(found(connection, table) != defined(connection, table, SHOP) for table in TABLES)


@pytest.mark.long
def test_what_is_right_is_not_caught(connection: duckdb.DuckDBPyConnection) -> None:
    assert not is_wrong()
    assert not moved(SHOP, 1)
    put(connection, TABLES, SHOP)
    sizes = [sum(found(connection, table).values()) for table in TABLES]
    assert sizes == [4, 6, 8], "the bounds cut in both linked tables"


@pytest.mark.long
def test_an_orphan_that_is_kept_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = linked_rows.linked
    monkeypatch.setattr(
        cleaned, "linked", lambda *given, **reads: right(*given, **reads).replace(" JOIN ", " LEFT JOIN ")
    )
    assert is_wrong()
    assert moved(SHOP, 1)


def test_keys_that_are_null_and_meet_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = linked_rows.linked
    monkeypatch.setattr(
        cleaned, "linked", lambda *given, **reads: right(*given, **reads).replace(" = ", " IS NOT DISTINCT FROM ")
    )
    data = {**SHOP, "root": [*SHOP["root"], {"k": None, "who": 3, "site": 1}]}
    with composed.connect() as connection:
        put(connection, TABLES, data)
        assert found(connection, CHILD) != defined(connection, CHILD, data)


def bounding(by: str) -> Callable[[Table, str, Location, bool], str]:
    right = cleaned.kept

    def other(table: Table, unit: str, source: Location, reads: bool) -> str:
        rows = right(table, unit, source, reads)
        return rows if table.link is None else rows.replace(f"PARTITION BY {unit}", f"PARTITION BY {by}")

    return other


@pytest.mark.long
def test_a_bound_for_each_parent_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaned, "kept", bounding('"of"'))
    assert is_wrong()
    with composed.connect() as connection:
        put(connection, TABLES, SHOP)
        units = Counter(row[0] for row in found(connection, CHILD).elements())  # type: ignore[index]
    assert max(units.values()) > CHILD.max_rows_per_unit


def test_a_bound_over_all_units_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaned, "kept", bounding("1"))
    assert is_wrong()
    assert moved(SHOP, 1)


@pytest.mark.long
def test_a_unit_that_is_not_carried_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the parent's key in its place, a person is as many units as it has orders."""
    right = linked_rows.linked

    def own(table: Table, link: Link, rows: str, reads: bool) -> str:
        return right(table, link, rows, reads).replace(
            f"theirs.{literals.unit_name(link.parent)} AS", 'theirs."k" AS', 1
        )

    monkeypatch.setattr(cleaned, "linked", own)
    assert is_wrong()


def test_a_parent_of_the_file_and_not_of_what_is_kept_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a parent that is one row too many do not exist."""
    data = {**SHOP, "root": [{"k": k, "who": 1, "site": 1} for k in (10, 11, 20, 21)]}
    with composed.connect() as connection:
        put(connection, TABLES, data)
        assert found(connection, CHILD) == defined(connection, CHILD, data)
        right = linked_rows.linked
        raw = "(SELECT *, who AS unit FROM r)"
        monkeypatch.setattr(
            cleaned, "linked", lambda *given, **reads: right(*given, **reads).replace('"kept root"', raw)
        )
        assert found(connection, CHILD) != defined(connection, CHILD, data)


def test_rows_of_a_pass_over_all_parents_are_caught(connection: duckdb.DuckDBPyConnection) -> None:
    put(connection, TABLES, SHOP)
    whole = cleaned.layer(ROOT, source_of(ROOT), True)
    child = cleaned.layer(CHILD, source_of(CHILD), True)
    parts = []
    for i in range(3):
        layers = f"{whole}, {child}, {cleaned.layer(LEAF, source_of(LEAF), True, Pass(index=i, of=3))}"
        parts += connection.execute(f'WITH {layers} SELECT * FROM "kept leaf"').fetchall()
    assert len(parts) == 3 * sum(found(connection, LEAF).values())


# ---- names, types ----------------------------------------------------------------------------------------------------


def test_columns_of_any_name_are_columns(connection: duckdb.DuckDBPyConnection) -> None:
    names = ("unit", "ours", "theirs", 'o"f', "cleaned")
    child = Table(
        name='chi"ld',
        source='chi"ld'.replace('"', ""),
        max_rows_per_unit=3,
        columns=tuple(Column(name=name, type="integer") for name in names),
        link=Link(parent=ROOT, on=(('o"f', "k"),)),
    )
    put(connection, [ROOT], {"root": [{"k": 1, "who": 7, "site": 1}]})
    listed = ", ".join(f'{n} AS "{name.replace(chr(34), chr(34) * 2)}"' for n, name in enumerate(names, start=-2))
    connection.execute(f"CREATE TABLE child AS SELECT {listed}")
    types = dict.fromkeys(names, "INTEGER")
    layers = [
        cleaned.layer(ROOT, source_of(ROOT), True),
        cleaned.layer(child, Location(relation="child", types=types), True),
    ]
    rows = connection.execute(f"WITH {', '.join(layers)} SELECT * FROM {literals.kept_name(child)}").fetchall()
    assert rows == [(7, -2, -1, 0, 1, 2)]


def paid(unit: str | None) -> Table:
    columns = (Column(name="pid", type="integer"), Column(name="n", type="integer"))
    return Table(name="bills", source="b", privacy_unit="pid", max_rows_per_unit=2, columns=columns, unit=unit)


def apart(connection: duckdb.DuckDBPyConnection, unit: str | None, kind: str) -> bool:
    """Tell whether a unit is in different passes of two tables, as which it is stored in different integers."""
    people, bills = replace(ROOT, unit=unit), paid(unit)
    units = range(30) if kind == "UBIGINT" else range(-15, 15)
    put(connection, [people], {"root": [{"k": n, "who": n, "site": 1} for n in units]})
    put(connection, [bills], {"bills": [{"pid": n, "n": n} for n in units]}, kind)
    for i in range(4):
        part = Pass(index=i, of=4)
        here, there = (found(connection, *of) for of in ((people, part), (bills, part, kind)))
        if {row[0] for row in here} != {row[0] for row in there}:  # type: ignore[index]
            return True
    return False


@pytest.mark.parametrize("kind", one_in(3, ["TINYINT", "INTEGER", "UBIGINT", "HUGEINT", "VARCHAR", "DECIMAL(9,0)"]))
def test_a_unit_is_in_one_pass_of_all_tables(kind: str, connection: duckdb.DuckDBPyConnection) -> None:
    assert not apart(connection, "person", kind)


def test_a_unit_of_its_own_type_in_every_table_is_caught(connection: duckdb.DuckDBPyConnection) -> None:
    assert any(apart(connection, None, kind) for kind in ("TINYINT", "HUGEINT", "VARCHAR"))


@pytest.mark.parametrize("kind", ["BIGINT", "VARCHAR", "INTEGER"])
def test_texts_that_name_a_unit_are_texts_in_all_tables(kind: str) -> None:
    columns = (Column(name="pid", type="string"),)
    table = Table(name="b", source="b", privacy_unit="pid", max_rows_per_unit=2, columns=columns, unit="person")
    value = cleaned.unit_value(table, kind)
    with composed.connect() as connection:
        connection.execute(f"CREATE TABLE b (pid {kind})")
        assert connection.execute(f"SELECT {value} FROM b").description[0][1] == "VARCHAR"
