"""Exact movements on made neighbours: honest ones pass, and each kind of violation is found in what was seen."""

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.audit import path
from lapwing.audit.asking import HISTORY, MadeQuery, World, worlds
from lapwing.audit.made_data import RECIPES, cast_of, made_catalog, made_rows
from lapwing.audit.made_queries import BATCH_FORM, FORMS, PLAIN_FORM, made_queries, plain_queries
from lapwing.audit.movement_losses import loss_of, numbers_of
from lapwing.audit.movements import (
    AGAIN,
    CONTROL,
    LOSS,
    MOVEMENT,
    NO_NOISE,
    RELEASE,
    SeenPair,
    TriedQueries,
    Violation,
    compare_worlds,
    faults,
    flow_differs,
)
from lapwing.audit.neighbours import neighbours
from lapwing.audit.path import quick_queries
from lapwing.audit.watching import Call, Watch
from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.mechanisms import DiscreteLaplace
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.quantiles_of_counts import QuantilesOfCounts
from tests.support.catalog.linked import linked
from tests.support.query.neighbours import CODE_SCHEMA, CODES
from tests.support.query.shop import CATALOG

GROUPED = MadeQuery(text="SELECT plan, COUNT(*) AS n FROM customers GROUP BY plan", form="groups")
TABLES = MadeQuery(
    text="SELECT plan, COUNT(*) AS n FROM customers GROUP BY plan",
    more=(
        "SELECT member, COUNT(*) AS n FROM customers GROUP BY member",
        "SELECT plan, member, COUNT(*) AS n FROM customers GROUP BY plan, member",
    ),
    form=BATCH_FORM,
)
APART = MadeQuery(
    text="SELECT COUNT(*) AS n FROM customers", more=("SELECT SUM(age) AS a FROM customers",), form=BATCH_FORM
)
ROWS = 2


def shop(folder: Path, measure: str = "gdp", neighbouring: str = "add_remove") -> Catalog:
    """A catalog of linked tables, without data but for a public table."""
    pq.write_table(pa.Table.from_pylist(list(CODES), schema=CODE_SCHEMA), folder / "codes.parquet")
    text = CATALOG.format(
        measure=measure, neighbouring=neighbouring, unit="who", customers=ROWS, orders=3, items=4, items_on='iok = "ok"'
    )
    text = text.replace("delta = 1e-6", "delta = 1e-7") if measure == "pure" else text
    return loads(text, file="shop.toml", folder=folder)


# ---- made rows -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbouring", ["add_remove", "replace_one"])
def test_neighbours_differ_in_one_unit(tmp_path: Path, neighbouring: str) -> None:
    catalog = made_catalog(shop(tmp_path, neighbouring=neighbouring), tmp_path)
    for world in range(8):
        apart = neighbours(catalog, world)
        assert apart == neighbours(catalog, world)
        for table in catalog.tables:
            one, other = ({repr(row): row for row in side.tables[table.name]} for side in (apart.one, apart.other))
            changed = [one[row] for row in one.keys() - other.keys()] + [
                other[row] for row in other.keys() - one.keys()
            ]
            gone, new = ({row.owner for row in changed if row in side.values()} for side in (one, other))
            assert len(gone) <= 1
            assert len(new) <= (neighbouring == "replace_one")
        roots = [row.owner for row in apart.one.tables["customers"]]
        assert max(map(roots.count, {1, 2} & set(roots))) == ROWS + 1, "nobody has more rows than may be used"


def test_made_rows_are_at_and_beyond_the_bounds(tmp_path: Path) -> None:
    catalog = made_catalog(shop(tmp_path), tmp_path)
    rows = [neighbours(catalog, world).one.tables for world in range(8)]
    ages = {row.values["age"] for tables in rows for row in tables["customers"]}
    assert {0, 110} <= ages
    assert any(age is not None and age > 110 for age in ages)
    assert any(age is not None and age < 0 for age in ages)
    assert None in {row.values["plan"] for tables in rows for row in tables["customers"]}
    assert any(row.owner is None for row in rows[0]["orders"])


def test_a_unit_has_one_row_where_links_lead_to_units() -> None:
    """With two rows, the link would not be clear, and no made data would open."""
    for world in range(len(RECIPES)):
        whose, _ = cast_of(world)
        owners = [row.owner for row in made_rows(linked(), random.Random(1), whose).tables["customer"]]
        assert len(owners) == len(set(owners)) >= len(whose.flavours)


def test_every_form_is_asked(tmp_path: Path) -> None:
    queries = list(islice(made_queries(shop(tmp_path), 0), 200))
    assert {query.form for query in queries} == {PLAIN_FORM, BATCH_FORM, *(name for name, _ in FORMS)}
    assert queries == list(islice(made_queries(shop(tmp_path), 0), 200))


def test_a_quick_audit_asks_a_fixed_set_of_queries(tmp_path: Path) -> None:
    """The numbers of queries are the same on every machine, and the queries too."""
    history = [MadeQuery(text=f"SELECT COUNT(*) + {n} AS c FROM customers", form=HISTORY) for n in range(70)]
    for typed, planned in (([], 60), (history[:5], 70), (history, 120)):
        worlds_asked = quick_queries(shop(tmp_path), typed)
        assert sum(map(len, worlds_asked)) == planned
        assert worlds_asked == quick_queries(shop(tmp_path), typed)
    asked = [query.text for queries in worlds_asked for query in queries if query.form == HISTORY]
    assert asked == [query.text for query in history[:9:-1]], "the newest 60, each once"


# ---- the source of randomness ----------------------------------------------------------------------------------------


def test_a_mechanism_is_seen_with_its_values_and_draws_the_same_noise_on_a_neighbour() -> None:
    noise, seen, drawn = DiscreteLaplace(scale=Fraction(50)), list[Call](), list[int]()
    for value in (7, 3):
        watch = Watch(b"secret")
        watch.begin(1)
        drawn.append(noise.release(value, watch) - value)
        seen += watch.taken()
    assert [call.values for call in seen] == [{"values": 7}, {"values": 3}]
    assert [call.mechanism for call in seen] == [noise, noise]
    assert drawn[0] == drawn[1]


def test_two_mechanisms_draw_different_noise() -> None:
    watch, noise = Watch(b"secret"), DiscreteLaplace(scale=Fraction(10**6))
    assert noise.release(0, watch) != noise.release(0, watch)
    assert len(watch.taken()) == 2


# ---- what was seen ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SeenPair, World, World]]:
    """What two neighbours show of a query."""
    with worlds(shop(tmp_path_factory.mktemp("shop")), 0) as (one, other, _):
        pair = SeenPair(query=GROUPED, one=one.ask(GROUPED), other=other.ask(GROUPED))
        one.read_payloads()
        other.read_payloads()
        yield pair, one, other


def found(pair: SeenPair, one: World, other: World) -> list[str]:
    return [code for code, _ in faults(pair, one, other, "gdp", TriedQueries())]


def moved_further(pair: SeenPair) -> SeenPair:
    (call,) = pair.other.calls
    further = replace(call, values={"values": call.values["values"] - random.randint(1, 9)})
    return replace(pair, other=replace(pair.other, calls=(further,)))


def test_an_honest_pair_passes_and_moves_by_all_that_is_declared(seen: tuple[SeenPair, World, World]) -> None:
    pair, tally = seen[0], TriedQueries()
    assert flow_differs(pair) is None
    assert faults(*seen, "gdp", tally) == []
    assert (tally.declared, tally.attained) == (1, 1)


def test_a_movement_beyond_the_declared_sensitivity_is_found(seen: tuple[SeenPair, World, World]) -> None:
    pair, *both = seen
    assert {MOVEMENT, LOSS, RELEASE} <= set(found(moved_further(pair), *both))


def test_a_charge_that_is_too_small_or_missing_is_found(seen: tuple[SeenPair, World, World]) -> None:
    pair, *both = seen
    (charge,) = pair.one.charges
    less = (*charge[:2], charge[2] * Fraction(99, 100), *charge[3:])
    for charges in ((less,), ()):
        charged = replace(pair, one=replace(pair.one, charges=charges), other=replace(pair.other, charges=charges))
        assert LOSS in found(charged, *both)


def test_missing_noise_and_noise_of_nobody_are_found(seen: tuple[SeenPair, World, World]) -> None:
    pair, *both = seen
    (call,) = pair.one.calls
    for calls in ((), (call, replace(call, mechanism=None))):
        changed = (replace(side, calls=calls) for side in (pair.one, pair.other))
        assert NO_NOISE in found(SeenPair(query=GROUPED, one=next(changed), other=next(changed)), *both)


def test_a_number_without_its_noise_or_with_other_noise_is_found(seen: tuple[SeenPair, World, World]) -> None:
    """Noise that is drawn and not added: the numbers of both worlds move as they should, and are exact."""
    pair, one, other = seen
    (sequence,), honest = pair.one.entries, (one.payloads, other.payloads)
    for shown in (lambda exact, noisy: exact, lambda exact, noisy: [noisy[0] + 1, *noisy[1:]]):
        for world, seen_here in ((one, pair.one), (other, pair.other)):
            exact, noisy = numbers_of(seen_here.calls[0]), world.released(sequence)[0][0]
            assert exact != noisy
            payload = {**world.payloads[sequence], "values": [shown(exact, noisy)]}
            world.payloads = {**world.payloads, sequence: payload}
        assert found(pair, one, other) == [RELEASE, RELEASE]
        one.payloads, other.payloads = honest


def test_an_answer_that_changes_when_it_is_asked_again_is_found(seen: tuple[SeenPair, World, World]) -> None:
    pair, *both = seen
    assert AGAIN in found(replace(pair, one=replace(pair.one, again="was charged a second time")), *both)


def test_control_flow_that_differs_is_found(seen: tuple[SeenPair, World, World]) -> None:
    pair, (call,) = seen[0], seen[0].other.calls
    longer = replace(call, values={"values": (1, 2, 3, 4)})
    for other in (
        replace(pair.other, refusal="QueryRefused"),
        replace(pair.other, charges=()),
        replace(pair.other, public_facts=("other",)),
        replace(pair.other, calls=(longer,)),
    ):
        assert flow_differs(replace(pair, other=other)) is not None


def test_a_crash_is_found_though_both_worlds_crash(seen: tuple[SeenPair, World, World]) -> None:
    pair, *both = seen
    crashed = replace(pair.one, refusal="ValueError", crashed=True)
    assert found(replace(pair, one=crashed, other=crashed), *both) == [CONTROL]


def test_a_limit_on_groups_is_reached_in_two_groups(tmp_path: Path) -> None:
    """Twin: a sensitivity that forgets that a unit counts in two groups."""
    catalog, tally = shop(tmp_path), TriedQueries()
    queries = [one for table in catalog.tables for one in plain_queries(table) if "max_groups" in one.text]
    with worlds(catalog, 1) as (one, other, _):
        pairs = [SeenPair(query=query, one=one.ask(query), other=other.ask(query)) for query in queries]
        one.read_payloads()
        other.read_payloads()
        for pair in pairs:
            assert faults(pair, one, other, "gdp", tally) == []
            assert MOVEMENT in found(of_one_group(pair), one, other)
    assert tally.attained == tally.declared == len(queries) == 5


def of_one_group(pair: SeenPair) -> SeenPair:
    (quote,) = pair.one.quotes
    (term,) = quote.terms
    whole = term.candidate.sensitivity
    half = Sensitivity(l1=whole.l1 // 2, l2_squared=whole.l2_squared // 2)
    planted = replace(quote, terms=(replace(term, candidate=replace(term.candidate, sensitivity=half)),))
    return replace(pair, one=replace(pair.one, quotes=(planted,)))


@pytest.mark.parametrize("kind", ["gdp", "zcdp"])
def test_quantiles_in_two_cells_lose_no_more_than_they_state(kind: str) -> None:
    """A unit with a row in each of two cells loses less than one with both rows in one cell."""
    mechanism = QuantilesOfCounts(
        quantiles=(Fraction(1, 2), Fraction(9, 10)), points=8, way="halves", count_noise="gaussian",
        count_ratio=Fraction(43, 16), scale=Fraction(700),
    )  # fmt: skip
    lost = []
    for cells, square in (([0, 1], 2), ([0, 0], 4)):
        rows = np.zeros((2, 8), dtype=np.int64)
        for at, cell in enumerate(cells):
            rows[cell, at] += 1
        calls = [Call(mechanism=mechanism, method="release", values={"values": one}) for one in (rows, rows * 0)]
        lost.append(loss_of(calls[0], calls[1], kind))
        assert 0 < lost[-1] <= mechanism.loss(Sensitivity(l1=2, l2_squared=square), kind).amount
    assert lost[1] > mechanism.loss(Sensitivity(l1=2, l2_squared=2), kind).amount * Fraction(99, 100) > lost[0]


# ---- several queries at one price ------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["gdp", "zcdp"])
def batches(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[tuple[str, dict[MadeQuery, SeenPair], World, World]]:
    """What two neighbours show of tables that are measured together, and of numbers with noise of their own."""
    with worlds(shop(tmp_path_factory.mktemp("shop"), request.param), 0) as (one, other, _):
        pairs = {query: SeenPair(query=query, one=one.ask(query), other=other.ask(query)) for query in (TABLES, APART)}
        yield request.param, pairs, one, other


Batches = tuple[str, dict[MadeQuery, SeenPair], World, World]


def test_honest_batches_pass(batches: Batches) -> None:
    kind, pairs, one, other = batches
    assert [call.name for call in pairs[TABLES].one.calls] == ["ResidualMarginals.release"]
    assert [call.name for call in pairs[APART].one.calls] == ["RoundedGaussian.release"] * 2
    for pair in pairs.values():
        assert len(pair.one.charges) == 1 + len(pair.query.more)
        assert flow_differs(pair) is None
        assert faults(pair, one, other, kind, TriedQueries()) == []


def test_twin_tables_priced_as_if_a_unit_had_one_row_less_are_found(batches: Batches) -> None:
    """The neighbour's unit has all of its rows in one cell: a charge for one row less is below what they lose."""
    kind, pairs, one, other = batches
    pair, part = pairs[TABLES], Fraction(ROWS - 1, ROWS) ** 2
    less = tuple((*charge[:2], charge[2] * part, *charge[3:]) for charge in pair.one.charges)
    sides = (replace(side, charges=less) for side in (pair.one, pair.other))
    cheaper = SeenPair(query=TABLES, one=next(sides), other=next(sides))
    assert [code for code, _ in faults(cheaper, one, other, kind, TriedQueries())] == [LOSS]


def test_twin_a_batch_of_which_one_query_is_free_is_found(batches: Batches) -> None:
    kind, pairs, one, other = batches
    for pair in pairs.values():
        sides = (replace(side, charges=side.charges[1:]) for side in (pair.one, pair.other))
        cheaper = SeenPair(query=pair.query, one=next(sides), other=next(sides))
        assert LOSS in [code for code, _ in faults(cheaper, one, other, kind, TriedQueries())]


def test_twin_a_batch_of_which_one_query_has_no_noise_is_found(batches: Batches) -> None:
    kind, pairs, one, other = batches
    for pair in pairs.values():
        sides = (replace(side, calls=side.calls[1:]) for side in (pair.one, pair.other))
        exact = SeenPair(query=pair.query, one=next(sides), other=next(sides))
        assert NO_NOISE in [code for code, _ in faults(exact, one, other, kind, TriedQueries())]


@pytest.mark.long
@pytest.mark.parametrize("measure", ["pure", "gdp", "zcdp"])
@pytest.mark.parametrize("neighbouring", ["add_remove", "replace_one"])
def test_no_form_moves_further_than_is_paid_for(tmp_path: Path, measure: str, neighbouring: str) -> None:
    tally = TriedQueries()
    for world in range(8):
        queries = list(islice(made_queries(shop(tmp_path), world), 40))
        assert compare_worlds(shop(tmp_path, measure, neighbouring), world, queries, lambda: True, tally) == []
    assert tally.attained > 20
    assert len(tally.queries) == 2 + len({name for name, _ in FORMS})


@pytest.mark.parametrize(("fewer", "said"), [(0, False), (1, True)])
def test_a_query_that_was_asked_again_with_other_bits_was_asked(tmp_path: Path, fewer: int, said: bool) -> None:
    def asked(_c: object, _n: int, queries: list[MadeQuery], _on: object, tally: TriedQueries) -> list[Violation]:
        tally.unsettled += 1
        tally.queries["numbers"] += len(queries) - 1 - fewer
        return []

    subject: Any = SimpleNamespace(catalog=shop(tmp_path), questions=())
    with patch.object(path, "compare_worlds", asked):
        check = path._movements(subject, 60.0, TriedQueries(), 2)
    assert ("queries of a quick audit" in check.not_tried) is said
