"""Questions across linked tables: what SQL means, unit by unit, whatever the data; and no unit moves more than is said.

Every question is asked of the engine without noise, and of plain DuckDB, of tables in which exactly the rows are that
exist. Then each unit is taken out of all tables: no measure may move by more than the sensitivity that is claimed.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from lapwing.errors import QueryRefused
from lapwing.query.derivation.derived import measures_of
from lapwing.query.from_clause import comma_joins as listed
from lapwing.query.from_clause import unit_joins
from lapwing.query.plan.plan import Plan
from lapwing.query.relations.unit_join import UnitJoin
from lapwing.query.sensitivity.stability import of_question
from tests.support.effort import one_in
from tests.support.query.asked import Cells, Tables, World, left, plain
from tests.support.query.printing import print_otherwise
from tests.support.refusals import refused_as

CATALOG = """
[dataset]
name = "shop"
ledger = "sqlite:shop.db"
[budget]
epsilon = 1
[tables.customer]
source = "customer.parquet"
privacy_unit = "ck"
max_rows_per_unit = 1
[tables.customer.columns]
ck = { type = "integer" }
site = { type = "string", values = ["n", "s"] }
[tables.orders]
source = "orders.parquet"
link = { table = "customer", on = { ock = "ck" } }
max_rows_per_unit = 4
[tables.orders.columns]
ok = { type = "integer" }
ock = { type = "integer" }
kind = { type = "string", values = ["a", "b", "c"] }
total = { type = "integer", lower = 0, upper = 50 }
[tables.items]
source = "items.parquet"
link = { table = "orders", on = { iok = "ok" } }
max_rows_per_unit = 8
[tables.items.columns]
iok = { type = "integer" }
tag = { type = "integer" }
price = { type = "integer", lower = -5, upper = 20 }
[tables.tags]
source = "tags.parquet"
public = true
[tables.tags.columns]
tid = { type = "integer" }
label = { type = "string" }
"""
QUESTIONS = (
    "SELECT COUNT(*) FROM customer",
    "SELECT COUNT(*), SUM(total) FROM orders",
    "SELECT kind, COUNT(*), SUM(price) FROM orders JOIN items ON iok = ok GROUP BY kind",
    "SELECT kind, COUNT(*), SUM(price) FROM items JOIN orders ON ok = iok GROUP BY kind",
    "SELECT kind, COUNT(*), SUM(price) FROM orders LEFT JOIN items ON iok = ok GROUP BY kind",
    "SELECT site, SUM(price), COUNT(DISTINCT ck) FROM customer, orders, items WHERE ck = ock AND ok = iok "
    "GROUP BY site",
    "SELECT site, SUM(price) FROM items, orders, customer WHERE ck = ock AND ok = iok AND total > 9 GROUP BY site",
    "SELECT site, COUNT(*) FROM customer LEFT JOIN orders ON ock = ck AND kind <> 'c' GROUP BY site",
    "SELECT site, COUNT(*) FROM customer c JOIN orders o ON c.ck = o.ock JOIN items ON iok = o.ok GROUP BY site",
    "SELECT COUNT(*) FROM orders WHERE EXISTS (SELECT 1 FROM items WHERE iok = ok AND price > 3)",
    "SELECT COUNT(*) FROM orders WHERE NOT EXISTS (SELECT 1 FROM items WHERE iok = ok)",
    "SELECT COUNT(*) FROM customer WHERE ck IN (SELECT ock FROM orders WHERE kind = 'a')",
    "SELECT COUNT(*) FROM customer WHERE ck NOT IN (SELECT ock FROM orders WHERE kind = 'a')",
    "SELECT SUM(total) FROM orders WHERE ok IN (SELECT iok FROM items GROUP BY iok HAVING SUM(price) > 10)",
    "SELECT n, COUNT(*) FROM (SELECT ck, COUNT(ok) FROM customer LEFT JOIN orders ON ck = ock GROUP BY ck) c (ck, n) "
    "GROUP BY n",
    "SELECT COUNT(*), SUM(s) FROM (SELECT iok, SUM(price) AS s FROM items GROUP BY iok)",
    "SELECT COUNT(*) FROM orders a JOIN orders b ON a.ock = b.ock WHERE a.ok < b.ok",
    "SELECT COUNT(*), SUM(a.price) FROM items a JOIN items b ON a.iok = b.iok",
    "SELECT COUNT(*) FROM orders JOIN (SELECT iok, MAX(price) AS top FROM items GROUP BY iok) t ON t.iok = ok "
    "WHERE top > 2",
    "SELECT label, SUM(price) FROM tags, items, orders WHERE tid = tag AND ok = iok AND kind = 'a' GROUP BY label",
    "SELECT SUM(price) FROM items, tags WHERE (tid = tag AND label = 'x') OR (tid = tag AND price > 10)",
    "SELECT x, COUNT(*) FROM (SELECT ock, kind AS x FROM orders UNION ALL SELECT ck, site FROM customer) GROUP BY x",
    "SELECT kind, COUNT(*) FROM items a, orders, items b WHERE a.iok = ok AND b.iok = ok GROUP BY kind",
    "SELECT COUNT(*) FROM (SELECT ock, kind, ROW_NUMBER() OVER (PARTITION BY ock ORDER BY ok) AS r FROM orders) "
    "WHERE r = 1",
    "SELECT COUNT(*) FROM orders JOIN items ON iok = ok AND price > total - 30",
)
MARKS = (
    "SELECT COUNT(*) FROM orders WHERE total > 30 OR EXISTS (SELECT 1 FROM items WHERE iok = ok AND price > 10)",
    "SELECT kind, COUNT(*) FROM orders WHERE NOT (total > 30 AND EXISTS (SELECT 1 FROM items WHERE iok = ok)) "
    "GROUP BY kind",
    "SELECT COUNT(*) FROM orders WHERE total > 40 OR ok IN (SELECT iok FROM items WHERE price > 15)",
    "SELECT COUNT(*) FROM customer WHERE site = 'n' OR ck NOT IN (SELECT ock FROM orders WHERE kind = 'a')",
    "SELECT COUNT(*), SUM(total) FROM orders WHERE EXISTS (SELECT 1 FROM items WHERE iok = ok AND tag = 1) "
    "OR EXISTS (SELECT 1 FROM items WHERE iok = ok AND tag = 2 AND price > total - 40)",
    "SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM orders, items WHERE ck = ock AND iok = ok "
    "AND price > 9)",
    "SELECT COUNT(*) FROM customer c WHERE NOT EXISTS (SELECT * FROM tags, items, orders WHERE c.ck = ock AND iok = ok "
    "AND tid = tag AND label = 'x') OR EXISTS (SELECT * FROM orders JOIN items ON iok = ok "
    "WHERE c.ck = ock AND price > 9)",
)
"""Where a row has a match is asked beside other conditions, or of several tables together."""
FULL = (
    "SELECT COUNT(*), COUNT(ok), COUNT(iok), SUM(price), SUM(total) FROM orders FULL JOIN items "
    "ON iok = ok AND price > 5",
    "SELECT COUNT(*), SUM(total) FROM items FULL OUTER JOIN orders ON iok = ok AND total > 10 "
    "WHERE price IS NULL OR total IS NULL",
    "SELECT COUNT(*), COUNT(site) FROM customer RIGHT JOIN orders ON ck = ock AND site = 'n'",
    "SELECT COUNT(*), SUM(a.total), SUM(b.total) FROM (SELECT ock, ok, total FROM orders WHERE kind = 'a') a "
    "FULL JOIN (SELECT ock, ok, total FROM orders WHERE kind <> 'c') b USING (ock, ok)",
    "SELECT COUNT(DISTINCT ock), SUM(n), SUM(m) FROM (SELECT ock, COUNT(*) AS n FROM orders WHERE kind = 'a' "
    "GROUP BY ock) FULL JOIN (SELECT ock, COUNT(*) AS m FROM orders WHERE total > 20 GROUP BY ock) c USING (ock)",
)
ALL = (*QUESTIONS, *MARKS, *FULL)
REFUSED = {
    "SELECT COUNT(*) FROM orders JOIN items ON tag = ok": "ON orders.ok = items.iok",
    "SELECT COUNT(*) FROM customer, orders": "Nothing says what rows of 'orders' are joined with",
    "SELECT COUNT(*) FROM orders, items WHERE tag = ok": "ON orders.ok = items.iok",
    "SELECT COUNT(*) FROM items a JOIN items b ON a.tag = b.tag": "pairs only rows of the same",
    "SELECT COUNT(*) FROM customer JOIN items ON ck = iok": "pairs only rows of the same",
    "SELECT COUNT(*) FROM orders WHERE ok NOT IN (SELECT iok FROM items)": "NOT EXISTS",
    "SELECT COUNT(*) FROM orders WHERE total IN (SELECT price FROM items)": "pairs only rows of the same",
    "SELECT COUNT(*) FROM orders WHERE NOT (total > 1 AND ok IN (SELECT iok FROM items))": "NOT EXISTS",
    "SELECT COUNT(*) FROM orders WHERE total > 1 OR EXISTS (SELECT 1 FROM items WHERE tag = ok)": "rows of the same",
    "SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM orders, items WHERE ck = ock)": "Nothing says what rows",
    "SELECT MAX(n) FROM (SELECT o.ok, MAX(total) AS n FROM customer c JOIN orders o ON ck = ock GROUP BY o.kind)": (
        "'ok' is neither a key nor inside an aggregate"
    ),
}
ROOMY = 1_000


def tables(random: Random, *, dirty: bool) -> Tables:
    """Return random tables; dirty ones have orphans, NULL keys, values out of bounds, and more rows than may be."""
    customers = list(range(1, 7))
    owners = [*customers, *customers, 77, None] if dirty else customers
    low, high = (-5, 60) if dirty else (0, 50)
    orders = [
        (100 + n, random.choice(owners), random.choice("abcd" if dirty else "abc"), random.randint(low, high))
        for n in range(random.randint(6, 22))
    ]
    parents = [key for key, *_ in orders]
    items = [
        (random.choice([*parents, 999, None] if dirty else parents), random.randint(1, 4), random.randint(-5, 20))
        for _ in range(random.randint(8, 50))
    ]
    return {
        "customer": _table({"ck": customers, "site": [random.choice("nsx" if dirty else "ns") for _ in customers]}),
        "orders": _table(dict(zip(("ok", "ock", "kind", "total"), map(list, zip(*orders, strict=True)), strict=True))),
        "items": _table(dict(zip(("iok", "tag", "price"), map(list, zip(*items, strict=True)), strict=True))),
        "tags": _table({"tid": [1, 2, 3, 3], "label": ["x", "y", "x", "z"]}),
    }


def _table(columns: dict[str, list[Any]]) -> pa.Table:
    texts = {"site", "kind", "label"}
    fields = [(name, pa.string() if name in texts else pa.int64()) for name in columns]
    return pa.table(columns, schema=pa.schema(fields))


def without(unit: int, found: Tables) -> Tables:
    """Take a unit out of all tables."""
    mine = f"SELECT ok FROM orders WHERE ock = {unit}"
    rest = {
        "customer": f"SELECT * FROM customer WHERE ck <> {unit}",
        "orders": f"SELECT * FROM orders WHERE ock IS DISTINCT FROM {unit}",
        "items": f"SELECT * FROM items WHERE iok IS NULL OR iok NOT IN ({mine})",
    }
    return left(rest, found)


def shop(folder: Path, found: Tables, *, roomy: bool = False) -> World:
    text = CATALOG.replace("= 4\n", f"= {ROOMY}\n").replace("= 8\n", f"= {ROOMY}\n") if roomy else CATALOG
    return World(folder, text, found)


def shown(plan: Plan, cells: Cells) -> list[tuple[Any, ...]]:
    """Return the answer without noise, as SQL shows it; sums of nothing are 0 here and NULL there."""
    places = [plan.question.keys.index(key) for key in plan.keys]
    wanted = [plan.question.measures.index(measure) for output in plan.outputs for measure in measures_of(output.value)]
    rows = [(*(keys[i] for i in places), *(values[i] for i in wanted)) for keys, values in cells.items()]
    return sorted((row for row in rows if not places or any(row[len(places) :])), key=str)


def check_meaning(world: World, text: str, found: Tables) -> None:
    plan = world.plan(text)
    places = len(plan.keys)
    theirs = [
        tuple(0 if value is None and i >= places else value for i, value in enumerate(row))
        for row in plain(text, found)
    ]
    wanted = sorted((row for row in theirs if not places or any(row[places:])), key=str)
    assert [tuple(map(str, row)) for row in shown(plan, world.exact(plan.question))] == [
        tuple(map(str, row)) for row in wanted
    ], text


def check_neighbours(folder: Path, found: Tables, questions: Sequence[str], units: int = 6) -> None:
    """Take out every unit, of so many, and look how far every measure moves."""
    with shop(folder / "all", found) as world:
        plans = [world.plan(text) for text in questions]
        whole = [world.exact(plan.question) for plan in plans]
    for unit in range(1, units + 1):
        with shop(folder / str(unit), without(unit, found)) as world:
            for plan, text, cells in zip(plans, questions, whole, strict=True):
                moved = _moved(cells, world.exact(plan.question), len(plan.question.numbers))
                for candidates, differences in zip(of_question(plan.question, "add_remove"), moved, strict=True):
                    for candidate in candidates:
                        assert sum(map(abs, differences)) <= candidate.sensitivity.l1, text
                        assert sum(d * d for d in differences) <= candidate.sensitivity.l2_squared, text


def _moved(one: dict[Any, Any], other: dict[Any, Any], count: int) -> list[list[int]]:
    zero = (0,) * count
    cells = one.keys() | other.keys()
    return [[one.get(cell, zero)[i] - other.get(cell, zero)[i] for cell in cells] for i in range(count)]


# ---- what SQL means --------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(("seed", "every"), one_in(4, [(0, 4), (0, 1), (1, 1), (2, 1)], many=True))
def test_answers_are_those_of_sql(tmp_path: Path, seed: int, every: int) -> None:
    found = tables(Random(seed), dirty=False)
    with shop(tmp_path, found, roomy=True) as world:
        for text in ALL[::every]:
            check_meaning(world, text, found)


def test_twin_a_condition_that_is_lost_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed, "_in_all_branches", lambda *_: [])
    found = tables(Random(0), dirty=False)
    with shop(tmp_path, found, roomy=True) as world, pytest.raises(QueryRefused):
        check_meaning(world, "SELECT SUM(price) FROM items, tags WHERE (tid = tag AND label = 'x') OR tid = tag", found)


@pytest.mark.parametrize("text", one_in(10, REFUSED))
def test_what_one_unit_could_do_to_another_is_refused(tmp_path: Path, text: str) -> None:
    with shop(tmp_path, tables(Random(0), dirty=False)) as world:
        with pytest.raises(QueryRefused) as refused:
            world.plan(text)
        assert REFUSED[text] in str(refused.value)


def test_a_key_that_links_keeps_the_rows_of_a_unit_few(tmp_path: Path) -> None:
    """An item has one order, whichever side of the join it stands on, so that a unit has no more pairs than items."""
    with shop(tmp_path, tables(Random(0), dirty=False)) as world:
        for text, most in {
            "SELECT COUNT(*) FROM orders JOIN items ON iok = ok": 8,
            "SELECT COUNT(*) FROM items JOIN orders ON iok = ok": 8,
            "SELECT COUNT(*) FROM customer, orders, items WHERE ck = ock AND iok = ok": 8,
            "SELECT COUNT(*) FROM orders LEFT JOIN items ON iok = ok": 4 + 8 - 1,
            "SELECT COUNT(*) FROM orders a JOIN orders b ON a.ock = b.ock": 16,
            "SELECT COUNT(*) FROM items a JOIN items b ON a.iok = b.iok": 64,
            "SELECT COUNT(*) FROM orders WHERE EXISTS (SELECT 1 FROM items WHERE iok = ok)": 4,
        }.items():
            assert world.plan(text).question.selection.rows_per_unit == most, text


def test_what_a_subquery_shows_and_nothing_reads_is_no_part_of_the_plan(tmp_path: Path) -> None:
    with shop(tmp_path, tables(Random(0), dirty=False)) as world:
        texts = (
            f"SELECT SUM(price) FROM orders JOIN (SELECT {columns} FROM items) AS i ON iok = ok"
            for columns in ("*", "iok, price", "price, iok, tag")
        )
        assert len({str(world.plan(text).question) for text in texts}) == 1


# ---- neighbours ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "units", "every"), one_in(4, [(0, 1, 5), (0, 3, 1), (0, 6, 1), (1, 6, 1)], many=True))
def test_no_unit_moves_a_measure_by_more_than_is_claimed(tmp_path: Path, seed: int, units: int, every: int) -> None:
    check_neighbours(tmp_path, tables(Random(seed), dirty=True), ALL[::every], units)


def crowded() -> Tables:
    """Return tables in which one unit has as many pairs of rows as may be, and the key of a link is there twice."""
    return {
        "customer": _table({"ck": [1, 2, 3], "site": ["n", "n", "s"]}),
        "orders": _table({"ok": [1, 2, 3, 4, 5, 6], "ock": [1, 1, 1, 1, 2, 3], "kind": ["a"] * 6, "total": [9] * 6}),
        "items": _table({"iok": [1, 1, 1, 1, 1, 1, 1, 1, 5, 6], "tag": [1] * 10, "price": [20] * 10}),
        "tags": _table({"tid": [1], "label": ["x"]}),
    }


PAIRS = (
    "SELECT COUNT(*), SUM(a.price) FROM items a JOIN items b ON a.iok = b.iok",
    "SELECT COUNT(*) FROM orders a JOIN orders b ON a.ock = b.ock",
    "SELECT COUNT(*) FROM orders a LEFT JOIN orders b ON a.ock = b.ock AND a.kind = b.kind",
    "SELECT COUNT(*) FROM orders o LEFT JOIN (SELECT ock, MAX(ok) AS m FROM orders GROUP BY ock) c "
    "ON o.ock = c.ock AND o.ok = c.m JOIN orders b ON b.ock = o.ock",
    "SELECT COUNT(*) FROM orders b JOIN (SELECT o.ock, c.m FROM orders o LEFT JOIN "
    "(SELECT ock, MAX(ok) AS m FROM orders GROUP BY ock) c ON o.ock = c.ock AND o.ok = c.m) x ON x.ock = b.ock",
)


@pytest.mark.long
def test_pairs_of_a_crowded_unit(tmp_path: Path) -> None:
    check_neighbours(tmp_path, crowded(), PAIRS, units=3)


@pytest.mark.long
def test_twin_a_fan_out_that_is_not_bounded_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        UnitJoin,
        "rows_within",
        lambda self, _: max(self.source.rows_per_unit, self.other.rows_per_unit),
    )
    with pytest.raises(AssertionError):
        check_neighbours(tmp_path, crowded(), PAIRS, units=3)


@pytest.mark.long
def test_twin_a_key_that_is_believed_unique_and_is_not_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit_joins, "at_most_one", lambda *_: True)
    with pytest.raises(AssertionError):
        check_neighbours(tmp_path, crowded(), PAIRS, units=3)


@pytest.mark.parametrize(
    ("text", "rows"), one_in(4, [(MARKS[0], 4), (MARKS[4], 4), (FULL[0], 4 + 8), (FULL[2], 4)], many=True)
)
def test_rows_of_a_unit_after_marks_and_full_joins(tmp_path: Path, text: str, rows: int) -> None:
    with shop(tmp_path, tables(Random(0), dirty=False)) as world:
        assert world.plan(text).question.selection.rows_per_unit == rows


def test_twin_a_mark_that_looks_at_rows_of_others_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = tables(Random(0), dirty=False)
    text = (
        "SELECT COUNT(*) FROM orders a WHERE total < 0 OR EXISTS (SELECT 1 FROM orders WHERE ock = a.ock AND ok = 100)"
    )
    _losing(r'ours\.unit IS NOT DISTINCT FROM (theirs\."?holder"?)', r"\1 IS NOT NULL", monkeypatch)
    with pytest.raises(AssertionError):
        check_neighbours(tmp_path, found, [text])


def test_twin_a_mark_that_forgets_the_key_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = tables(Random(0), dirty=False)
    text = "SELECT COUNT(*) FROM orders WHERE total > 45 OR EXISTS (SELECT 1 FROM items WHERE iok = ok AND price > 17)"
    _losing(r"ours\.on0 = theirs\.on0", "TRUE", monkeypatch)
    with shop(tmp_path, found, roomy=True) as world, pytest.raises(AssertionError):
        check_meaning(world, text, found)


def _losing(lost: str, instead: str, monkeypatch: pytest.MonkeyPatch) -> None:
    print_otherwise(lambda text: re.sub(lost, instead, text), monkeypatch)


def test_rows_that_match_nothing_are_not_told_by_what_they_lack(tmp_path: Path) -> None:
    """A LEFT JOIN to one row of a unit leaves the unit's other rows, and all of them meet a further join."""
    with shop(tmp_path, crowded()) as world:
        for text in PAIRS[3:]:
            assert world.plan(text).question.selection.rows_per_unit == 16, text


def test_long_lists_of_tables_are_refused_at_once(tmp_path: Path) -> None:
    tables_listed = ", ".join(f"orders o{i}" for i in range(80))
    joined = " AND ".join(f"o{i}.ok = o{i + 1}.ok" for i in range(79))
    explicit = " ".join(f"JOIN orders o{i} ON o{i}.ok = o0.ok" for i in range(1, 80))
    with shop(tmp_path, crowded()) as world:
        for text in (f"{tables_listed} WHERE {joined}", f"orders o0 {explicit}"):
            with refused_as("too_many_tables", saying="20"):
                world.plan(f"SELECT COUNT(*) FROM {text}")


@pytest.mark.long
def test_twin_an_identity_that_is_lost_in_a_join_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Joined on nothing but what the text says, rows meet those of others."""
    _losing(r'ON ours\.unit IS NOT DISTINCT FROM theirs\."?holder"?', "ON TRUE", monkeypatch)
    with pytest.raises(AssertionError):
        check_neighbours(tmp_path, crowded(), PAIRS, units=3)
