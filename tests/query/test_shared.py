"""Joins in which different units meet: what SQL means, and how far a unit of whatever kind moves what is measured.

Every question is asked of the engine without noise, and of plain DuckDB. Then each unit is taken out of all tables of
its kind: no measure may move by more than the sensitivity that is claimed.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from lapwing.catalog.toml import load
from lapwing.engines import truncated_rows as engine_shared
from lapwing.engines.duckdb import engine as engine
from lapwing.errors import EngineFault, QueryRefused
from lapwing.mechanisms import packing
from lapwing.query.bind.bind import bind
from lapwing.query.from_clause import comma_joins as listed
from lapwing.query.from_clause import shared_joins
from lapwing.query.measures.measures import Count, Sum
from lapwing.query.plan.plan import Plan
from lapwing.query.relations import relation
from lapwing.query.relations.shared_join import SharedJoin
from lapwing.query.sensitivity.stability import of_question
from tests.support.effort import one_in, only
from tests.support.query.asked import TOML, Tables, World, left, plain
from tests.support.refusals import refused_as

CATALOG = """
[dataset]
name = "market"
ledger = "sqlite:market.db"
[budget]
epsilon = 1
neighbouring = "{neighbouring}"
[tables.people]
source = "people.parquet"
privacy_unit = "who"
unit = "person"
max_rows_per_unit = 1
[tables.people.columns]
who = {{ type = "integer" }}
home = {{ type = "integer" }}
[tables.orders]
source = "orders.parquet"
link = {{ table = "people", on = {{ buyer = "who" }} }}
max_rows_per_unit = {rows}
[tables.orders.columns]
number = {{ type = "integer" }}
buyer = {{ type = "integer" }}
shop = {{ type = "integer" }}
kind = {{ type = "string", values = ["a", "b"] }}
paid = {{ type = "integer", lower = 0, upper = 9 }}
change = {{ type = "integer", lower = -9, upper = 9 }}
[tables.friends]
source = "friends.parquet"
privacy_unit = "me"
unit = "person"
max_rows_per_unit = {rows}
[tables.friends.columns]
me = {{ type = "integer" }}
other = {{ type = "integer" }}
[tables.visits]
source = "visits.parquet"
privacy_unit = "guest"
max_rows_per_unit = {rows}
[tables.visits.columns]
place = {{ type = "integer" }}
[tables.shops]
source = "shops.parquet"
privacy_unit = "owner"
max_rows_per_unit = {rows}
[tables.shops.columns]
shop = {{ type = "integer" }}
town = {{ type = "integer" }}
unit0 = {{ type = "integer" }}
[tables.alone]
source = "shops.parquet"
privacy_unit = "row"
[tables.alone.columns]
shop = {{ type = "integer" }}
[tables.towns]
source = "towns.parquet"
public = true
[tables.towns.columns]
town = {{ type = "integer" }}
name = {{ type = "string" }}
"""
LEVELS = (1, 4, 20)
ROOMY = 100_000
"""A level that truncates nothing."""
QUESTIONS = {
    "SELECT COUNT(*) FROM visits a JOIN visits b ON a.place = b.place": 2,
    "SELECT COUNT(*) FROM visits a JOIN visits b ON a.place = b.place AND a.guest <> b.guest": 2,
    "SELECT COUNT(*) FROM visits a, visits b WHERE a.place = b.place AND b.guest <> a.guest AND a.place > 1": 2,
    "SELECT COUNT(*) FROM orders JOIN shops ON orders.shop = shops.shop": 2,
    "SELECT SUM(paid) FROM shops s JOIN orders o ON o.shop = s.shop AND s.town < 3 AND o.paid > s.town": 2,
    "SELECT SUM(paid) FROM shops s, people, orders o WHERE o.shop = s.shop AND who = buyer AND home = s.town": 2,
    "SELECT COUNT(*) FROM shops s JOIN orders o ON o.shop = s.shop JOIN people p ON p.who = o.buyer": 2,
    "SELECT kind, COUNT(*), SUM(paid) FROM orders JOIN shops ON orders.shop = shops.shop GROUP BY kind": 2,
    "SELECT name, COUNT(*) FROM orders o, shops s, towns t WHERE o.shop = s.shop AND s.town = t.town GROUP BY name": 2,
    "SELECT COUNT(*) FROM friends f JOIN friends g ON f.other = g.me AND g.other = f.me AND f.me < g.me": 2,
    "SELECT COUNT(*) FROM friends f, friends g, friends h "
    "WHERE f.other = g.me AND g.other = h.me AND h.other = f.me AND f.me < g.me AND f.me < h.me": 3,
    "SELECT COUNT(*) FROM visits a, visits b, shops "
    "WHERE a.place = b.place AND a.guest <> b.guest AND town = a.place": 3,
    "SELECT COUNT(*) FROM orders o, shops s WHERE o.shop = s.shop AND o.buyer IN "
    "(SELECT buyer FROM orders GROUP BY buyer HAVING SUM(paid) > 12)": 2,
    "SELECT COUNT(*) FROM orders o, shops s WHERE o.shop = s.shop AND EXISTS "
    "(SELECT 1 FROM orders p WHERE p.buyer = o.buyer AND p.number <> o.number)": 2,
    "SELECT COUNT(*) FROM shops s, orders o WHERE o.shop = s.shop AND NOT EXISTS "
    "(SELECT 1 FROM orders p WHERE p.buyer = o.buyer AND p.paid > o.paid)": 2,
    "SELECT SUM(top) FROM (SELECT buyer, MAX(paid) AS top, MAX(shop) AS last FROM orders GROUP BY buyer) o "
    "JOIN shops ON shop = last": 2,
    "SELECT SUM(paid) FROM (SELECT paid, o.shop AS shop, town FROM orders o JOIN shops s ON o.shop = s.shop) "
    "WHERE town > 1 AND paid < 8": 2,
    "SELECT COUNT(*) FILTER (WHERE paid > 4) FROM orders o JOIN shops s ON o.shop = s.shop": 2,
    "SELECT COUNT(*) FROM orders o JOIN shops s ON o.shop = s.shop LEFT JOIN towns t ON s.town = t.town": 2,
}
"""Questions, and how many units share a row; what a unit adds is limited where they are asked."""
REFUSED = {
    "SELECT COUNT(*) FROM orders o JOIN shops s ON o.shop = s.shop": "contribution_bounds_per_group => AUTO",
    "SELECT COUNT(*) FROM visits a JOIN visits b ON a.place = b.place": "contribution_bounds_per_group => AUTO",
    "SELECT COUNT(*, !), AVG(paid) FROM orders o JOIN shops s ON o.shop = s.shop": "only counted and summed",
    "SELECT COUNT(*, !), COUNT(*) FROM orders o JOIN shops s ON o.shop = s.shop": "only counted and summed",
    "SELECT COUNT(*, !), COUNT(DISTINCT owner) FROM orders o JOIN shops s ON o.shop = s.shop": "only counted",
    "SELECT COUNT(*, !), MAX(paid) FROM orders o JOIN shops s ON o.shop = s.shop": "",
    "SELECT SUM(change, !) FROM orders o JOIN shops s ON o.shop = s.shop": "no negative",
    "SELECT COUNT(*, contribution_bounds_per_group => (1, 5)) FROM orders o JOIN shops s ON o.shop = s.shop": "from 0",
    "SELECT COUNT(*, contribution_bounds_per_group => (0, 0)) FROM orders o JOIN shops s ON o.shop = s.shop": "from 0",
    "SELECT COUNT(*, !) FROM orders o LEFT JOIN shops s ON o.shop = s.shop": "not joined",
    "SELECT COUNT(*, !) FROM orders o WHERE NOT EXISTS (SELECT 1 FROM shops s WHERE o.shop = s.shop)": "not joined",
    "SELECT COUNT(*, !) FROM orders o WHERE shop IN (SELECT shop FROM shops)": "",
    "SELECT COUNT(*, !) FROM orders o, shops s": "Rows of several people are joined on",
    "SELECT COUNT(*, !) FROM orders o JOIN shops s ON o.shop < s.shop": "Rows of several people are joined on",
    "SELECT COUNT(*, !) FROM orders o JOIN shops s USING (shop)": "",
    "SELECT COUNT(*, !) FROM orders o JOIN alone s ON o.shop = s.shop": "each row by itself",
    "SELECT COUNT(*, !) FROM (SELECT DISTINCT o.buyer, s.town FROM orders o JOIN shops s ON o.shop = s.shop)": "",
    "SELECT COUNT(*, !) FROM (SELECT o.buyer, COUNT(*) AS n FROM orders o JOIN shops s ON o.shop = s.shop "
    "GROUP BY o.buyer)": "",
    "SELECT COUNT(*, !) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY o.buyer ORDER BY paid) AS n FROM orders o "
    "JOIN shops s ON o.shop = s.shop) WHERE n = 1": "",
    "SELECT COUNT(*, !) FROM (SELECT paid FROM orders o JOIN shops s ON o.shop = s.shop LIMIT 5)": "LIMIT",
    "SELECT COUNT(*, !) FROM (SELECT buyer AS x FROM orders o JOIN shops s ON o.shop = s.shop "
    "UNION ALL SELECT who FROM people)": "",
    "SELECT n, COUNT(*, !) FROM (SELECT o.shop n FROM orders o JOIN shops s ON o.shop = s.shop) GROUP BY n": "public",
    "SELECT kind, COUNT(*, !) FROM orders o JOIN shops s ON o.shop = s.shop GROUP BY ROLLUP (kind)": "one grouping",
    "SELECT SUM(paid, !, contribution_bounds_per_row => AUTO) FROM orders o JOIN shops s ON o.shop = s.shop": "",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 2) COUNT(*, !) FROM orders o "
    "JOIN shops s ON o.shop = s.shop": "belong to several people",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1) kind, COUNT(*, !) FROM orders o "
    "JOIN shops s ON o.shop = s.shop GROUP BY kind": "belong to several people",
    "SELECT COUNT(*, !) FROM orders o JOIN shops s ON o.shop = s.shop WHERE EXISTS "
    "(SELECT 1 FROM orders p WHERE p.buyer = o.buyer AND p.number > s.town)": "",
    "SELECT COUNT(*, !) FROM visits a, visits b, visits c, visits d, visits e "
    "WHERE a.place = b.place AND b.place = c.place AND c.place = d.place AND d.place = e.place": "more than 4 people",
}
AUTO = "contribution_bounds_per_group => AUTO"
RACE = "contribution_bounds_per_group => RACE"


def tables(seed: int) -> Tables:
    random = Random(seed)
    people = list(range(1, 6))
    orders = [(n, random.choice(people), random.randint(1, 4), random.choice("ab"), random.randint(0, 9), 0)
              for n in range(14)]  # fmt: skip
    friends = [(me, other) for me in people for other in people if me != other and random.random() < 0.7]
    visits = [(random.randint(1, 5), random.randint(1, 3)) for _ in range(12)]
    shops = [(random.randint(1, 3), n % 4 + 1, random.randint(1, 3), 0) for n in range(6)]
    return {
        "people": _table(["who", "home"], [(who, who % 3 + 1) for who in people]),
        "orders": _table(["number", "buyer", "shop", "kind", "paid", "change"], orders),
        "friends": _table(["me", "other"], friends),
        "visits": _table(["guest", "place"], visits),
        "shops": _table(["owner", "shop", "town", "unit0"], shops),
        "towns": _table(["town", "name"], [(1, "x"), (2, "y"), (3, "x"), (3, "z")]),
    }


def _table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> pa.Table:
    texts = {"kind", "name"}
    schema = pa.schema([(name, pa.string() if name in texts else pa.int64()) for name in names])
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)) if rows else {n: [] for n in names}
    return pa.table(columns, schema=schema)


KINDS = {
    "person": ({"people": "who", "orders": "buyer", "friends": "me"}, range(1, 6)),
    "guest": ({"visits": "guest"}, range(1, 6)),
    "owner": ({"shops": "owner"}, range(1, 4)),
}


def without(kind: str, unit: int, found: Tables) -> Tables:
    """Take a unit of one kind out of all tables of that kind."""
    columns = KINDS[kind][0].items()
    return left({name: f"SELECT * FROM {name} WHERE {column} <> {unit}" for name, column in columns}, found)


def market(folder: Path, found: Tables, neighbouring: str = "add_remove", rows: int = 100) -> World:
    return World(folder, CATALOG.format(neighbouring=neighbouring, rows=rows), found)


def limited(text: str, level: int) -> str:
    """Say what a unit adds at most, in every aggregate of the outer question."""
    bound = f"contribution_bounds_per_group => (0, {level})"
    head, rest = text.split(" FROM ", 1)
    head = head.replace("COUNT(*)", f"COUNT(*, {bound})").replace("SUM(paid)", f"SUM(paid, {bound})")
    return f"{head.replace('SUM(top)', f'SUM(top, {bound})')} FROM {rest}"


def all_cells(world: World, text: str) -> dict[Any, Any]:
    return world.exact(world.plan(text).question)


# ---- what SQL means --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "every"), one_in(3, [(0, 3), (0, 1), (1, 1)], many=True))
def test_answers_are_those_of_sql_where_nothing_is_cut(tmp_path: Path, seed: int, every: int) -> None:
    found = tables(seed)
    with market(tmp_path, found) as world:
        for text, units in list(QUESTIONS.items())[::every]:
            plan = world.plan(limited(text, ROOMY))
            assert plan.question.units_of_row == units, text
            order = [plan.question.measures.index(output.value.measure) for output in plan.outputs[len(plan.keys) :]]  # type: ignore[attr-defined]
            ours = {
                (*keys, *(values[place] for place in order))
                for keys, values in world.exact(plan.question).items()
                if any(values)
            }
            theirs = {tuple(0 if value is None else value for value in row) for row in plain(text, found)}
            assert ours == {row for row in theirs if any(row[len(plan.keys) :])}, text


def test_units_that_meet_are_told_apart_whatever_their_columns_are_called(tmp_path: Path) -> None:
    """A column of shops is called like the units of shared rows."""
    text = limited("SELECT COUNT(*) FROM orders JOIN shops ON orders.shop = shops.shop AND unit0 = 0", ROOMY)
    with market(tmp_path, tables(0)) as world:
        assert all_cells(world, text) == all_cells(world, text.replace(" AND unit0 = 0", ""))


def test_the_rows_that_exist_of_a_unit_are_bounded_before_they_meet(tmp_path: Path) -> None:
    text = limited("SELECT COUNT(*) FROM visits a JOIN visits b ON a.place = b.place AND a.guest <> b.guest", ROOMY)
    found = tables(0) | {"visits": _table(["guest", "place"], [(1, 1)] * 10 + [(2, 1)] * 10)}
    with market(tmp_path, found, rows=3) as world:
        assert all_cells(world, text) == {(): (2 * 3 * 3,)}


@pytest.mark.long
def test_units_of_different_passes_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [limited(text, level) for text in (SELF, OWNED) for level in LEVELS]
    with market(tmp_path, tables(0)) as world:
        whole = [all_cells(world, text) for text in asked]
        monkeypatch.setattr(engine, "passes_for", lambda *_: 3)
        assert [all_cells(world, text) for text in asked] == whole
        monkeypatch.setattr(engine, "is_additive", lambda _: True)  # the twin: each pass by itself
        assert [all_cells(world, text) for text in asked] != whole


def test_texts_and_numbers_of_units_are_told_apart(tmp_path: Path) -> None:
    """Units are compared as the catalog says, whatever their type: here 40 digits, of which the last differ."""
    names = [f"{'9' * 37}{n}" for n in (1, 2, 3)]
    found = tables(0) | {"visits": pa.table({"guest": [*names, names[0]], "place": pa.array([1, 1, 1, 1], pa.int64())})}
    text = limited("SELECT COUNT(*) FROM visits a JOIN visits b ON a.place = b.place AND a.guest <> b.guest", 4)
    with market(tmp_path, found) as world:
        # Pairs both ways: 4 of the first with either other, 2 of the others; at most 4 of each.
        assert all_cells(world, text) == {(): (6,)}


@pytest.mark.long
def test_the_order_in_which_tables_stand_makes_no_difference(tmp_path: Path) -> None:
    conditions = "o.shop = s.shop AND who = buyer AND home < 3 AND s.town = t.town AND name = 'x'"
    found = tables(1)
    with market(tmp_path, found) as world:
        answers = set()
        for order in ("people, orders o, shops s, towns t", "towns t, shops s, orders o, people", "s, t, o, p"):
            text = order.replace("s, t, o, p", "shops s, towns t, orders o, people")
            cells = all_cells(world, limited(f"SELECT SUM(paid) FROM {text} WHERE {conditions}", 11))
            answers.add(str(cells))
        assert len(answers) == 1


# ---- neighbours ------------------------------------------------------------------------------------------------------


def at_all_levels(texts: Sequence[str]) -> list[str]:
    return [limited(text, level) for text in texts for level in LEVELS]


def in_turn(texts: Sequence[str]) -> list[str]:
    """Ask each question at one of the levels."""
    return [limited(text, LEVELS[place % len(LEVELS)]) for place, text in enumerate(texts)]


def check_neighbours(
    folder: Path, found: Tables, asked: Sequence[str], neighbouring: str = "add_remove", step: int = 1
) -> None:
    """Take out every unit of every kind, and look how far every measure moves; one for another, if so declared.

    Args: step: of each kind, one unit in so many is taken out.
    """
    with market(folder / "all", found, neighbouring) as world:
        plans = [world.plan(text) for text in asked]
        whole = [world.exact(plan.question) for plan in plans]
    for kind, (_, units) in KINDS.items():
        fewer = []
        for unit in units[::step]:
            with market(folder / f"{kind}{unit}", without(kind, unit, found), neighbouring) as world:
                fewer.append([world.exact(plan.question) for plan in plans])
            if neighbouring == "add_remove":
                for plan, text, one, other in zip(plans, asked, whole, fewer.pop(), strict=True):
                    _check_moved(plan, one, other, neighbouring, text)
        for place, (plan, text) in enumerate(zip(plans, asked, strict=True)):
            others = [cells[place] for cells in fewer]
            for one, other in product(others, repeat=2):  # one of the units that are left out, for another
                _check_moved(plan, one, other, neighbouring, text)


def _check_moved(plan: Plan, one: Any, other: Any, neighbouring: str, text: str) -> None:
    zero = (0,) * len(plan.question.numbers)
    cells = one.keys() | other.keys()
    for i, candidates in enumerate(of_question(plan.question, neighbouring)):
        moved = [one.get(cell, zero)[i] - other.get(cell, zero)[i] for cell in cells]
        for candidate in candidates:
            assert sum(map(abs, moved)) <= candidate.sensitivity.l1, text
            assert sum(d * d for d in moved) <= candidate.sensitivity.l2_squared, text


@pytest.mark.parametrize("levels", [in_turn, pytest.param(at_all_levels, marks=pytest.mark.long)])
def test_no_unit_of_any_kind_moves_a_measure_by_more_than_is_claimed(
    tmp_path: Path, levels: Callable[[Sequence[str]], list[str]]
) -> None:
    texts, step = (list(QUESTIONS)[::4], 12) if levels is in_turn else (list(QUESTIONS), 1)
    check_neighbours(tmp_path, tables(2), levels(texts), step=step)


@pytest.mark.long
@pytest.mark.parametrize("levels", [in_turn, pytest.param(at_all_levels, marks=pytest.mark.long)])
def test_one_unit_for_another_moves_no_measure_by_more(
    tmp_path: Path, levels: Callable[[Sequence[str]], list[str]]
) -> None:
    texts, step = (list(QUESTIONS)[:5], 3) if levels is in_turn else (list(QUESTIONS)[:8], 1)
    check_neighbours(tmp_path, tables(3), levels(texts), "replace_one", step=step)


SELF = "SELECT COUNT(*) FROM visits a JOIN visits b ON a.place = b.place AND a.guest <> b.guest"
OWNED = "SELECT COUNT(*) FROM orders JOIN shops ON orders.shop = shops.shop"


def crowded() -> Tables:
    """Return tables in which one unit of each kind meets many others, each in few rows."""
    return tables(4) | {
        "visits": _table(
            ["guest", "place"], [(n % 5 + 1, n % 5 + 1) for n in range(5)] + [(5, n) for n in (1, 2, 3, 4)]
        ),
        "shops": _table(["owner", "shop", "town", "unit0"], [(1, n, 1, 0) for n in (1, 2, 3, 4)] + [(2, 1, 1, 0)]),
    }


@pytest.mark.long
@pytest.mark.parametrize("text", [SELF, pytest.param(OWNED, marks=pytest.mark.long)])
def test_crowded_units_move_nothing_further(tmp_path: Path, text: str) -> None:
    check_neighbours(tmp_path, crowded(), at_all_levels([text]))


@pytest.mark.parametrize("text", only((1,), [SELF, OWNED]))
def test_twin_a_sum_that_is_not_truncated_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(packing.SharedRows, "value", lambda self, _: int(self.weights.sum()))
    with pytest.raises(AssertionError):
        check_neighbours(tmp_path, crowded(), at_all_levels([text]))


def spread() -> Tables:
    """Return tables in which one buyer meets many owners, each in one row."""
    orders = [(n, 1, n, "a", 1, 0) for n in range(1, 4)]
    return crowded() | {
        "orders": _table(["number", "buyer", "shop", "kind", "paid", "change"], orders),
        "shops": _table(["owner", "shop", "town", "unit0"], [(n, n, 1, 0) for n in range(1, 4)]),
    }


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "place", "found"),
    only((2,), [(SELF, 0, crowded), (OWNED, 0, crowded), (OWNED, 1, spread)], many=True),
)
def test_twin_a_unit_of_a_row_that_is_lost_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, place: int, found: Callable[[], Tables]
) -> None:
    """Only one of the units of a row bounds it, so that the other's partners all come and go with it."""
    numbered = engine_shared._numbered

    def one(*arguments: Any) -> Any:
        numbers, count = numbered(*arguments)
        return [numbers[place]] * len(numbers), count

    monkeypatch.setattr(engine_shared, "_numbered", one)
    with pytest.raises(AssertionError):
        check_neighbours(tmp_path, found(), at_all_levels([text]))


MERGED = "SELECT COUNT(*, !) FROM (SELECT DISTINCT o.buyer, s.town FROM orders o JOIN shops s ON o.shop = s.shop)"


def test_twin_without_the_rule_that_shared_rows_go_one_by_one_they_would_be_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A merged row would stay when one of several owners leaves: it is the rule that refuses this, and nothing else."""
    text = MERGED.replace("!", AUTO).replace("DISTINCT", "DISTINCT buyer AS unit,")
    with market(tmp_path, crowded()) as world:
        with pytest.raises(QueryRefused):
            world.plan(text)
        monkeypatch.setattr(relation, "require_one_unit", lambda _: None)
        monkeypatch.setattr(SharedJoin, "rows_within", lambda *_: 1)
        assert world.plan(text).question.units_of_row == 1


# ---- levels, refusals, faults ----------------------------------------------------------------------------------------


def test_a_race_asks_at_levels_down_to_a_row(tmp_path: Path) -> None:
    with market(tmp_path, tables(0)) as world:
        question = world.plan(f"SELECT COUNT(*, {RACE}) FROM visits a JOIN visits b ON a.place = b.place").question
        levels = sorted(m.clamp[1] for m in question.measures if isinstance(m, Count) and m.clamp is not None)
        assert levels == [4**n for n in range(11)]
        sums = world.plan(f"SELECT SUM(paid, {RACE}) FROM orders o JOIN shops s ON o.shop = s.shop").question
        levels = sorted(m.clamp[1] for m in sums.measures if isinstance(m, Sum) and m.clamp is not None)
        assert len(levels) == 12
        assert levels[-1] == 9 << 20


def test_noise_covers_what_a_value_of_three_units_may_lack(tmp_path: Path) -> None:
    pair, triangle = (next(text for text, units in QUESTIONS.items() if units == number) for number in (2, 3))
    with market(tmp_path, tables(0)) as world:
        for text, level, wanted in ((pair, 4096, 4096), (triangle, 4096, 4100), (triangle, 1, 2)):
            ((candidate,),) = of_question(world.plan(limited(text, level)).question, "add_remove")
            assert (candidate.sensitivity.l1, candidate.sensitivity.l2_squared) == (wanted, wanted**2)


@pytest.fixture(scope="module")
def open_market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with market(tmp_path_factory.mktemp("open"), tables(0)) as world:
        yield world


@pytest.mark.parametrize("text", one_in(4, REFUSED))
def test_what_is_not_proven_is_refused(open_market: World, text: str) -> None:
    with pytest.raises(QueryRefused) as refused:
        open_market.plan(text.replace("!", AUTO))
    assert REFUSED[text] in str(refused.value)
    assert refused.value.remedy or "alone" in text


def test_data_in_parts_do_not_meet(tmp_path: Path) -> None:
    text = limited(OWNED, 5)
    with market(tmp_path, tables(0)) as world:
        world.plan(text)
    toml = (
        (tmp_path / TOML)
        .read_text()
        .replace('town = { type = "integer" }\nunit0', 'town = { type = "integer", values = [1, 2, 3] }\nunit0', 1)
    )
    toml = toml.replace('privacy_unit = "owner"', 'privacy_unit = "owner"\npart = "town"')
    (tmp_path / TOML).write_text(toml)
    with refused_as("shared_rows_not_supported"):
        bind(text, load(tmp_path / TOML))


@pytest.mark.parametrize("broken", ["tuples", "proof"])
def test_what_cannot_be_computed_fails_with_the_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    if broken == "tuples":
        monkeypatch.setattr(engine_shared, "MOST_TUPLES", 2)
    else:
        monkeypatch.setattr(packing, "peeled", lambda *_: 1 / 0)
    with market(tmp_path, crowded()) as world, pytest.raises(EngineFault, match="could not finish"):
        all_cells(world, limited(SELF, 1))


@pytest.mark.long
@pytest.mark.parametrize("text", one_in(12, QUESTIONS))
def test_tables_without_rows_are_answered(tmp_path: Path, text: str) -> None:
    """A question fails or not whatever the data are: of no rows too there is an answer, of zeros."""
    found = {name: table if name == "towns" else table.slice(0, 0) for name, table in tables(0).items()}
    with market(tmp_path, found) as world:
        assert not any(any(values) for values in all_cells(world, limited(text, 3)).values())


def test_without_the_solver_nothing_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "find_spec", lambda _: None)
    with market(tmp_path, tables(0)) as world, refused_as("missing_extra", saying=r"lapwing-dp\[joins\]") as refused:
        world.plan(limited(OWNED, 5))
    assert refused.value.position == (1, 75)


def test_clusters_keep_the_units_of_a_row_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = limited("SELECT COUNT(*) FROM shops s, orders o, people p WHERE o.shop = s.shop AND p.who = o.buyer", 5)
    with market(tmp_path, tables(0)) as world:
        assert world.plan(text).question.units_of_row == 2
        monkeypatch.setattr(listed, "_connected", lambda bound, items, conditions, scope: (bound, items, conditions))
        assert world.plan(text).question.units_of_row == 3


def test_twin_a_condition_on_units_that_is_lost_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_joins, "place_apart", lambda *_: None)
    with market(tmp_path, tables(0)) as world, refused_as("privacy_unit_as_value"):
        world.plan(limited(SELF, 5))
