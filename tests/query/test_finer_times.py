"""Cells of times that WHERE keeps to a span: exactly those that some moment in it has, by brute force."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from lapwing.catalog.model import Catalog
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.opening import open_session
from lapwing.query.aggregates import possible_keys
from lapwing.query.bind.bind import bind
from lapwing.query.expressions import days
from lapwing.query.relations import bounded_values
from lapwing.release.cells import cells_of
from tests.support.effort import one_in
from tests.support.query import clean

TEXT = "SELECT {key} AS k, COUNT(*) AS n FROM visits WHERE {where} GROUP BY k"
KEYS = [
    "DATE_TRUNC('hour', seen)",
    "EXTRACT(minute FROM seen)",
    "TIME_BUCKET(INTERVAL '25 minutes', seen)",
    "DATE_BIN('7 hours', seen + INTERVAL '90 minutes', TIMESTAMP '2001-01-01 00:30:00')",
    "DATE_TRUNC('week', seen + INTERVAL '1 day') - INTERVAL '1 day'",
    "CAST(seen - INTERVAL '6 hours' AS DATE)",
    "CASE WHEN seen - INTERVAL '30 minutes' > TIMESTAMP '2004-03-02 06:00:00' THEN HOUR(seen) ELSE -1 END",
]
CONDITIONS = [
    "seen BETWEEN '2004-03-01 22:00:00' AND '2004-03-02 22:00:00'",
    "seen > TIMESTAMP '2004-03-01 21:29:59.999999' AND seen + INTERVAL '2 hours' < '2004-03-02 01:00:00'",
    "seen >= '2004-02-28T23:00:00Z' AND seen <= DATE '2004-03-01' + INTERVAL '1 hour' AND HOUR(seen) IN (0, 23)",
    "seen = '2004-03-02 06:30:00'",
]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return clean.catalog_in(tmp_path_factory.mktemp("times"))


@pytest.fixture(scope="module")
def facts(catalog: Catalog) -> Iterator[PublicData]:
    facts = PublicData(catalog)
    yield facts
    facts.close()


@pytest.fixture(scope="module")
def moments() -> Iterator[duckdb.DuckDBPyConnection]:
    """Half minutes of some days, with the microseconds beside them."""
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT t + to_microseconds(d) AS seen FROM"
            " range(TIMESTAMP '2004-02-27', TIMESTAMP '2004-03-05', INTERVAL 30 SECOND) r(t),"
            " (VALUES (-1), (0), (1)) v(d)"
        )
        yield connection


def cells(key: str, where: str, catalog: Catalog, facts: PublicData) -> set[object]:
    plan = bind(TEXT.format(key=key, where=where), catalog, facts)
    assert not plan.question.private_keys
    return set() if plan.composition is not None else {cell[0] for cell in cells_of(plan.question)}


def possible(key: str, where: str, moments: duckdb.DuckDBPyConnection) -> set[object]:
    key = key.replace("DATE_BIN('7 hours'", "TIME_BUCKET(INTERVAL '7 hours'")
    return {row[0] for row in moments.execute(f"SELECT DISTINCT {key} FROM visits WHERE {where}").fetchall()}


@pytest.mark.parametrize("where", one_in(3, CONDITIONS))
@pytest.mark.parametrize("key", KEYS)
def test_the_cells_are_those_that_some_moment_has(
    key: str, where: str, catalog: Catalog, facts: PublicData, moments: duckdb.DuckDBPyConnection
) -> None:
    assert cells(key, where, catalog, facts) == possible(key, where, moments)


BUGS: list[tuple[str, Any]] = [
    ("_ENDS", {**bounded_values._ENDS, "less_equal": (None, -1)}),  # the last moment is left out
    ("_SHIFTS", {"add_days": days.DAY, "add_microseconds": 2}),  # moved too far
    ("FIXED", {**days.FIXED, "minute": 3_600_000_000}),  # changes are looked for too rarely
]


@pytest.mark.parametrize(("name", "bug"), BUGS, ids=[name for name, _ in BUGS])
def test_narrowing_that_leaves_out_a_cell_is_found(
    name: str,
    bug: Any,
    catalog: Catalog,
    facts: PublicData,
    moments: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The twins: each drops a cell that could have rows."""
    monkeypatch.setattr(bounded_values, name, bug)

    def lost(key: str, where: str) -> set[object]:
        return possible(key, where, moments) - cells(key, where, catalog, facts)

    assert any(lost(key, where) for key in KEYS for where in CONDITIONS[:2])


def test_what_no_moment_fulfils_has_no_cells(catalog: Catalog, facts: PublicData) -> None:
    assert not cells(KEYS[0], "seen > '2004-01-02' AND seen < '2004-01-01'", catalog, facts)


def test_a_day_by_hour_has_the_hours_of_the_day(catalog: Catalog, facts: PublicData) -> None:
    assert len(cells(KEYS[0], CONDITIONS[0], catalog, facts)) == 25


STORED = (
    "SELECT MONTH(seen + INTERVAL '1 hour') AS k, plan, COUNT(*) AS n, SUM(age) AS s FROM visits WHERE {} GROUP BY 1, 2"
)


def test_what_was_bought_with_more_cells_stays_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = STORED.format("seen BETWEEN '2004-02-01' AND '2004-04-30'")
    new: Callable[..., Any] = possible_keys.possible_keys
    with open_session(clean.catalog_in(tmp_path)) as session:
        with monkeypatch.context() as patch:
            patch.setattr(possible_keys, "possible_keys", lambda *given: new(*given, by_day=True))
            before = session.sql(text, epsilon=1).rows()
        session._plans._known.clear()
        preview = session.explain(text, epsilon=1)
        assert preview.cost.amount == 0
        assert preview.cells == 9
        now = session.sql(text, epsilon=1)
        assert now.cost.amount == 0
        assert now.rows() == [row for row in before if row["k"] in (2, 3, 4)]
        assert len(before) == 36
        assert session.explain(text, epsilon=2).cost.amount > 0


def test_cells_that_are_cut_at_the_wrong_places_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: the first cells are taken for those that are left."""
    from lapwing.release import bought_before

    text = STORED.format("seen BETWEEN '2004-02-01' AND '2004-04-30'")
    new: Callable[..., Any] = possible_keys.possible_keys
    with open_session(clean.catalog_in(tmp_path)) as session:
        with monkeypatch.context() as patch:
            patch.setattr(possible_keys, "possible_keys", lambda *given: new(*given, by_day=True))
            before = session.sql(text, epsilon=1).rows()
        session._plans._known.clear()
        monkeypatch.setattr(
            bought_before, "cells_of", lambda question: sorted(cells_of(question), key=str, reverse=True)
        )
        assert session.sql(text, epsilon=1).rows() != [row for row in before if row["k"] in (2, 3, 4)]
