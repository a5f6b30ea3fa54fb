"""What a hostile reviewer tried of linked tables: a unit with all rows it may have, keys at the ends of their types.

The shop of `test_linked`, with a second root, a text that is a private key, and views. Every question is asked of all
data and of the data without a unit, and must move by no more than is claimed; from indexes and in several passes it
must find the same.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import load
from lapwing.engines import DuckDB
from lapwing.engines.base import Exact
from lapwing.engines.duckdb import engine as engine_of
from lapwing.engines.duckdb import stored_rows
from lapwing.engines.duckdb.cleaned import WHOLE, Pass
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.engines.duckdb.stored_rows import stored
from lapwing.query.bind.bind import bind
from lapwing.query.from_clause import select_list, subqueries, unit_joins
from lapwing.query.plan.plan import Plan, Question
from tests.query import test_linked as shop
from tests.support.effort import one_in, only
from tests.support.engines.tables import by_value
from tests.support.query.asked import Tables, plain
from tests.support.query.worlds import moved_too_far
from tests.support.refusals import refused_as

MOST = 2**63 - 1
CUSTOMER = 'privacy_unit = "ck"\n'
CATALOG = (
    shop.CATALOG.replace(CUSTOMER, f'{CUSTOMER}unit = "person"\n')
    + '''
[tables.visits]
source = "visits.parquet"
privacy_unit = "vid"
unit = "person"
max_rows_per_unit = 2
[tables.visits.columns]
vid = { type = "integer" }
w = { type = "integer", lower = 0, upper = 9 }
[views.lines]
sql = "SELECT ock, ok, kind, price, tag FROM orders JOIN items ON iok = ok"
[views.numbers]
sql = """SELECT ock AS who, total AS n FROM orders UNION ALL SELECT vid, w FROM visits
UNION ALL SELECT ck, 1 FROM customer"""
'''
)


def crowded() -> Tables:
    """Return tables in which the first unit has all rows that it may have, and those of items all of one order.

    The last two orders are of nobody and share a key; the others' keys are at the ends of what an integer may be.
    """
    return {
        "customer": shop._table({"ck": [1, 2, 3], "site": ["n", "n", "s"]}),
        "orders": shop._table(
            {
                "ok": [MOST, MOST - 1, -MOST, -MOST - 1, 5, 6, 7, 7],
                "ock": [1, 1, 1, 1, 2, 3, 77, None],
                "kind": list("aabcabaa"),
                "total": [9, 50, 0, 7, 9, 9, 9, 9],
            }
        ),
        "items": shop._table(
            {"iok": [MOST] * 8 + [5, 6, 7, None], "tag": [*range(8), 1, 2, 3, 4], "price": [20, -5] * 6}
        ),
        "visits": shop._table({"vid": [1, 1, 2, 9], "w": [9, 0, 4, 4]}),
        "tags": shop._table({"tid": [1, 2, 3, 3], "label": ["x", "y", "x", "z"]}),
    }


def without(unit: int, found: Tables) -> Tables:
    """Take a unit out of all tables."""
    visits = found["visits"].filter([vid != unit for vid in found["visits"]["vid"].to_pylist()])
    return shop.without(unit, {name: table for name, table in found.items() if name != "visits"}) | {"visits": visits}


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """An engine over tables in a folder."""

    catalog: Catalog
    public: PublicData
    engine: DuckDB

    def plan(self, text: str) -> Plan:
        return bind(text, self.catalog, self.public)

    def exact(self, question: Question) -> Exact:
        return self.engine.run(question, {table.name: self.engine.digest(table) for table in question.lineage})


@contextmanager
def world(folder: Path, found: Tables, *, indexed: Sequence[str] = ()) -> Iterator[World]:
    """Open an engine over tables, some of which have an index."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "shop.toml").write_text(CATALOG, encoding="utf-8")
    for name, table in found.items():
        pq.write_table(table, folder / f"{name}.parquet")
    catalog = load(folder / "shop.toml")
    public = PublicData(catalog)
    engine = DuckDB(catalog, public=public, threads=1)
    try:
        for table in catalog.tables:
            assert table.name not in indexed or engine.build_index(table)
        yield World(catalog=catalog, public=public, engine=engine)
    finally:
        engine.close()
        public.close()


def questions_of(plan: Plan) -> list[Question]:
    return [plan.question, *(search.question for search in plan.searches)]


# ---- neighbours ------------------------------------------------------------------------------------------------------

SMALL = "LEAST(GREATEST({}, -3), 9)"
OPTIONS = "WITH DIFFERENTIAL_PRIVACY OPTIONS"
QUESTIONS = (
    "SELECT a.tag, b.tag, COUNT(*) FROM items a JOIN items b ON a.iok = b.iok GROUP BY a.tag, b.tag",
    "SELECT tag, COUNT(DISTINCT ck), SUM(price) FROM customer, orders, items WHERE ck = ock AND ok = iok GROUP BY tag",
    "SELECT tag, kind, COUNT(*) FROM orders LEFT JOIN items ON iok = ok GROUP BY tag, kind",
    "SELECT b.tag, MEDIAN(a.price) FROM items a JOIN items b ON a.iok = b.iok GROUP BY b.tag",
    "SELECT MIN(a.price), MAX(b.price), QUANTILE_CONT(a.price, 0.3) FROM items a JOIN lines b ON a.iok = b.ok",
    "SELECT kind, MEDIAN(price) FROM lines GROUP BY kind",
    "SELECT COUNT(DISTINCT a.tag), COUNT(DISTINCT a.tag + 8 * b.price) FROM "
    "(SELECT iok, LEAST(GREATEST(tag, 0), 7) AS tag FROM items) a JOIN items b ON a.iok = b.iok",
    f"SELECT {OPTIONS} (max_rows_contributed = 3) kind, COUNT(*), SUM(price) FROM lines GROUP BY kind",
    f"SELECT {OPTIONS} (max_groups_contributed = 2) a.tag, b.tag, COUNT(*) FROM items a JOIN items b "
    "ON a.iok = b.iok GROUP BY a.tag, b.tag",
    f"SELECT {OPTIONS} (max_groups_contributed = 1) kind, COUNT(DISTINCT ock), COUNT(*) FROM lines GROUP BY kind",
    "SELECT kind, SUM(price, contribution_bounds_per_group => (-2, 30)), COUNT(*) FROM lines GROUP BY kind",
    "SELECT SUM(GREATEST(price, 0), contribution_bounds_per_group => AUTO) FROM orders JOIN items ON iok = ok",
    "SELECT SUM(tag, contribution_bounds_per_row => AUTO) FROM orders LEFT JOIN items ON iok = ok",
    "SELECT AVG(x.tag, contribution_bounds_per_row => AUTO) FROM items x JOIN items y ON x.iok = y.iok",
    "SELECT site, kind, COUNT(*) FROM customer JOIN lines ON ck = ock GROUP BY ROLLUP (site, kind)",
    "SELECT kind, COUNT(*), MAX(price) FROM lines GROUP BY GROUPING SETS ((kind), ())",
    f"SELECT COUNT(*), SUM({SMALL.format('n')}), COUNT(DISTINCT n) FROM numbers",
    "SELECT COUNT(*) FROM numbers a JOIN numbers b ON a.who = b.who",
    "SELECT COUNT(*) FROM (SELECT who, n FROM numbers INTERSECT SELECT vid, w FROM visits)",
    "SELECT COUNT(*) FROM (SELECT ock, total FROM orders EXCEPT SELECT vid, w FROM visits)",
    "WITH x AS (SELECT ock, ok, ROW_NUMBER() OVER (PARTITION BY ock ORDER BY price) AS r FROM lines) "
    "SELECT COUNT(*) FROM x a JOIN x b ON a.ock = b.ock AND a.r < b.r WHERE a.r <= 3",
    "SELECT COUNT(*) FROM orders SEMI JOIN items ON iok = ok AND price > total",
    "SELECT COUNT(*) FROM customer ANTI JOIN visits ON ck = vid AND w > 5",
    "SELECT label, COUNT(*) FROM tags, items a, items b WHERE tid = a.tag AND a.iok = b.iok GROUP BY label",
)


def moved(folder: Path, questions: Sequence[str] = QUESTIONS, units: Sequence[int] = (1, 2, 3)) -> list[str]:
    """Take out each of some units, and return what moves further than is claimed, or who holds more keys."""
    found = crowded()
    with world(folder / "all", found) as whole:
        plans = [questions_of(whole.plan(text)) for text in questions]
        before = [[whole.exact(question) for question in plan] for plan in plans]
    beyond: list[str] = []
    for unit in units:
        with world(folder / str(unit), without(unit, found)) as rest:
            for plan, exacts in zip(plans, before, strict=True):
                for question, exact in zip(plan, exacts, strict=True):
                    beyond += moved_too_far(question, exact, rest.exact(question), "add_remove")
    return beyond


@pytest.mark.long
@pytest.mark.parametrize(("units", "every"), only((0,), [((1,), 2), ((1, 2), 1), ((3,), 1)], many=True))
def test_no_unit_moves_a_measure_by_more_than_is_claimed(tmp_path: Path, units: tuple[int, ...], every: int) -> None:
    """The first has all rows that it may have."""
    assert not moved(tmp_path, QUESTIONS[::every], units)


@pytest.mark.long
def test_a_unit_holds_as_many_keys_as_is_said(tmp_path: Path) -> None:
    with world(tmp_path, crowded()) as whole:
        for text, most in zip(QUESTIONS, (64, 8, 11, 64), strict=False):
            question = whole.plan(text).question
            assert question.keys_per_unit == most, text
            held = {degree for degrees in by_value(whole.exact(question).holders).values() for degree in degrees}
            assert max(held) <= most, text
        assert max(max(d) for d in by_value(whole.exact(whole.plan(QUESTIONS[0]).question).holders).values()) == 64


@pytest.mark.long
def test_twin_keys_that_are_believed_fewer_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_joins, "at_most_one", lambda *_: True)
    assert any("a unit holds" in what for what in moved(tmp_path, QUESTIONS[:1]))


@pytest.mark.long
def test_twin_levels_of_a_tree_that_a_join_multiplies_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit_joins, "at_most_one", lambda *_: True)
    assert any("DISTRIBUTION" in what for what in moved(tmp_path, QUESTIONS[3:5]))


# ---- indexes and passes ----------------------------------------------------------------------------------------------


def found_in(exact: Exact) -> tuple[Any, ...]:
    leaves = {
        (str(measure), cell): sorted(zip(*(part.tolist() for part in parts), strict=True))
        for measure, cells in exact.leaves.items()
        for cell, parts in cells.items()
    }
    cells = {cell: numbers for cell, numbers in exact.cells.items() if any(numbers)}
    return cells, None if exact.holders is None else by_value(exact.holders), _added(leaves)


def _added(leaves: dict[Any, list[tuple[int, int]]]) -> dict[Any, int]:
    together: dict[Any, int] = {}
    for place, pairs in leaves.items():
        for leaf, count in pairs:
            together[(*place, leaf)] = together.get((*place, leaf), 0) + count
    return together


def differing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, indexed: Sequence[str], questions: Sequence[str] = QUESTIONS
) -> list[str]:
    """Return the questions that find something else in indexes, or in three passes."""
    with world(folder / "files", crowded()) as files:
        plans = {text: files.plan(text).question for text in questions}
        plain = {text: found_in(files.exact(question)) for text, question in plans.items()}
    with world(folder / "indexed", crowded(), indexed=indexed) as kept:
        other = [text for text, question in plans.items() if found_in(kept.exact(question)) != plain[text]]
        monkeypatch.setattr(engine_of, "passes_for", lambda *_: 3)
        return other + [text for text, question in plans.items() if found_in(kept.exact(question)) != plain[text]]


@pytest.mark.long
@pytest.mark.parametrize(
    ("indexed", "every"),
    one_in(
        4,
        [(("customer", "items", "visits"), 3), (("customer", "items", "visits"), 1), ((), 1), (("orders",), 1)],
        many=True,
    ),
)
def test_indexes_and_passes_find_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, indexed: tuple[str, ...], every: int
) -> None:
    assert not differing(tmp_path, monkeypatch, indexed, QUESTIONS[::every])


@pytest.mark.long
def test_twin_an_index_that_gives_a_pass_all_units_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def whole(table: Any, relation: str, part: Pass = WHOLE, within: Pass = WHOLE) -> str:
        return stored(table, relation, WHOLE, within)

    monkeypatch.setattr(stored_rows, "stored", whole)
    assert differing(tmp_path, monkeypatch, ("orders",), QUESTIONS[2:4])


# ---- the unit's place in SELECT * ------------------------------------------------------------------------------------

MISPLACED = (
    "SELECT COUNT(DISTINCT vid) FROM (SELECT * FROM visits UNION ALL SELECT w, vid FROM visits)",
    "SELECT COUNT(*) FROM (SELECT * FROM visits EXCEPT SELECT w, vid FROM visits)",
)


@pytest.mark.long
@pytest.mark.parametrize("text", MISPLACED)
def test_the_unit_is_in_one_place_of_all_parts_also_behind_a_star(tmp_path: Path, text: str) -> None:
    with world(tmp_path, crowded()) as whole, refused_as("set_operation_mismatch"):
        whole.plan(text)


@pytest.mark.parametrize("text", only([0], MISPLACED))
def test_twin_a_place_that_is_not_known_gives_what_sql_does_not_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Vid and w are compared, or counted, together: in SQL also the w of one with the vid of another."""
    real = select_list.bind_list

    def unplaced(*given: Any) -> select_list.SelectList:
        return replace(real(*given), unit_place=None)

    monkeypatch.setattr(subqueries, "bind_list", unplaced)
    found = crowded() | {"visits": shop._table({"vid": [1, 2, 3], "w": [2, 1, 9]})}
    with world(tmp_path, found) as whole:
        ((ours,),) = whole.exact(whole.plan(text).question).cells.values()
    assert plain(text, found) != [(ours,)]


# ---- keys that an integer does not hold ------------------------------------------------------------------------------


@pytest.mark.long
def test_a_key_beyond_64_bits_leads_nowhere_and_its_owner_is_still_told_apart(tmp_path: Path) -> None:
    found = crowded()
    large = pa.array([2**63, 2**63 + 1, 3], pa.uint64())
    found["orders"] = pa.table({"ok": large, "ock": [1, 2, 3], "kind": list("abc"), "total": [1, 2, 3]})
    found["items"] = pa.table(
        {"iok": pa.array([2**63, 2**63 + 1, 3], pa.uint64()), "tag": [1, 2, 3], "price": [1, 1, 1]}
    )
    found["visits"] = pa.table({"vid": pa.array([2**63, 2**63 + 1, 3], pa.uint64()), "w": [1, 2, 3]})
    with world(tmp_path, found) as whole:
        for text, wanted in {
            "SELECT COUNT(*), COUNT(DISTINCT ock) FROM orders": (3, 3),
            "SELECT COUNT(*), COUNT(DISTINCT ock) FROM lines": (1, 1),
            "SELECT COUNT(*), COUNT(DISTINCT vid) FROM visits": (3, 3),
            "SELECT COUNT(*), COUNT(*) FROM visits WHERE vid IS NULL": (2,),
            "SELECT COUNT(*) FROM visits a JOIN visits b ON a.vid = b.vid": (3,),
        }.items():
            question = whole.plan(text).question
            assert whole.exact(question).cells == {(): wanted}, text
