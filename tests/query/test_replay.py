"""Nothing but mechanism inputs may differ between neighbours, and those by no more than the sensitivity.

Each planted bug is one that a real system has had; a replay that does not see it proves nothing.
"""

import random
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.catalog.model import Catalog
from lapwing.engines.duckdb import bounded_values, cleaned, leaves
from lapwing.engines.duckdb import expressions as render_keys
from lapwing.engines.duckdb import printers as sql_functions
from lapwing.engines.duckdb import queries as render
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.exact.arrays import integer_array
from lapwing.mechanisms import Sensitivity
from lapwing.mechanisms.first_of_thresholds import FirstOfThresholds
from lapwing.query.aggregates import sums
from lapwing.query.pricing import choices
from lapwing.query.relations.set_operations import Union
from lapwing.query.sensitivity import set_stability, stability
from lapwing.query.sensitivity.score_stability import ScoreBound
from lapwing.query.sensitivity.stability import SensitivityBound
from lapwing.release import composing
from lapwing.release import release as release_module
from lapwing.release import searches as release_searches
from tests.support.effort import examples, one_in, only
from tests.support.query.printing import OVER_ALL_UNITS, print_otherwise
from tests.support.replay import Row, compare
from tests.support.strategies import (
    PERSONS,
    PUBLIC,
    catalog_in,
    means,
    newcomers,
    questions,
    rankings,
    tables,
    thresholds,
)

PRICE = {"epsilon": 1}


def shuffled(rows: list[Row], seed: int) -> list[Row]:
    return random.Random(seed).sample(rows, len(rows))


def without(rows: list[Row], person: int) -> list[Row]:
    return [row for row in rows if row["person"] != person]


def catalogs(folder: Path, **changes: Any) -> Catalog:
    name = "-".join(f"{key}{value}" for key, value in changes.items()) or "plain"
    (folder / name).mkdir(exist_ok=True)
    return catalog_in(folder / name, **changes)


replay = examples(2, 400)


@replay
@given(
    rows=tables,
    question=questions(),
    seed=st.integers(0, 9),
    measure=st.sampled_from(["gdp", "pure", "zcdp"]),
    rows_per_unit=st.integers(1, 3),
    other=st.booleans(),
)
def test_removing_a_unit(
    folders: Path, rows: list[Row], question: str, seed: int, measure: str, rows_per_unit: int, other: bool
) -> None:
    catalog = catalogs(folders, measure=measure, rows_per_unit=rows_per_unit, other=other)
    neighbour = shuffled(without(rows, PERSONS[0]), seed)
    assert compare(catalog, rows, neighbour, question, PRICE) == []


@replay
@given(
    rows=tables,
    others=newcomers,
    question=questions(),
    seed=st.integers(0, 9),
    measure=st.sampled_from(["gdp", "pure"]),
)
def test_replacing_a_unit(
    folders: Path, rows: list[Row], others: list[Row], question: str, seed: int, measure: str
) -> None:
    catalog = catalogs(folders, measure=measure, neighbouring="replace_one")
    neighbour = shuffled([*without(rows, PERSONS[0]), *others], seed)
    assert compare(catalog, rows, neighbour, question, PRICE) == []


@examples(2, 100)
@given(rows=tables, question=questions(sources=["visits", PUBLIC]), seed=st.integers(0, 9))
def test_removing_a_row_where_rows_are_the_unit(folders: Path, rows: list[Row], question: str, seed: int) -> None:
    question = question.replace("COUNT(DISTINCT person)", "COUNT(*)").replace("COUNT(person)", "COUNT(*)")
    catalog = catalogs(folders, unit="row")
    assert compare(catalog, rows, shuffled(rows[1:], seed), question, PRICE) == []


@examples(2, 200)
@given(
    rows=tables,
    others=newcomers,
    question=rankings() | thresholds(),
    measure=st.sampled_from(["gdp", "pure", "zcdp"]),
    neighbouring=st.sampled_from(["add_remove", "replace_one"]),
    rows_per_unit=st.integers(1, 3),
)
def test_another_unit_where_the_largest_group_or_the_first_threshold_is_chosen(
    folders: Path,
    rows: list[Row],
    others: list[Row],
    question: str,
    measure: str,
    neighbouring: str,
    rows_per_unit: int,
) -> None:
    catalog = catalogs(folders, measure=measure, neighbouring=neighbouring, rows_per_unit=rows_per_unit)
    rest = without(rows, PERSONS[0])
    neighbour = rest if neighbouring == "add_remove" else [*rest, *others]
    assert compare(catalog, rows, shuffled(neighbour, 1), question, PRICE) == []


KNOWN: dict[str, Any] = {"neighbouring": "replace_one", "rows_per_unit": 1, "people": 3}


@examples(2, 200)
@given(rows=tables, others=newcomers, question=means(), measure=st.sampled_from(["gdp", "pure", "zcdp"]))
def test_another_unit_where_the_number_of_people_is_known(
    folders: Path, rows: list[Row], others: list[Row], question: str, measure: str
) -> None:
    catalog = catalogs(folders, measure=measure, **KNOWN)
    neighbour = shuffled([*without(rows, PERSONS[0]), *others], 1)
    assert compare(catalog, [*rows, *others[:1]], neighbour, question, PRICE) == []


# ---- planted bugs: relations -----------------------------------------------------------------------------------------

WINDOWED = "SELECT SUM(c) AS s FROM (SELECT COUNT(*) OVER (PARTITION BY person) AS c FROM visits)"
JOINED = "SELECT COUNT(*) AS n FROM visits JOIN codes USING (plan)"
RANGED = "SELECT COUNT(*) AS n FROM codes JOIN visits ON visits.age >= codes.factor"
COMPUTED = "SELECT COUNT(*) AS n FROM visits JOIN codes ON visits.age = 0 * codes.factor + 110"


@pytest.mark.long
def test_a_window_over_all_units_is_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(folders, SHARED, WINDOWED) == []
    print_otherwise(lambda text: text.replace(*OVER_ALL_UNITS), monkeypatch)
    assert found(folders, SHARED, WINDOWED)


@pytest.mark.long
@pytest.mark.parametrize(("question", "fact"), [(JOINED, "multiplicity"), (RANGED, "overlap"), (COMPUTED, "overlap")])
def test_a_join_that_multiplies_more_than_is_said_is_found(
    folders: Path, question: str, fact: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row(1), row(1, age=110), row(2)]
    assert found(folders, rows, question) == []
    monkeypatch.setattr(PublicData, fact, lambda *_: 1)
    assert found(folders, rows, question)


PAIRED = "SELECT COUNT(*) AS n FROM visits AS a JOIN visits AS b ON a.person = b.person AND a.age <= b.age"
FRAMED = (
    "SELECT SUM(c) AS s FROM "
    "(SELECT SUM(age) OVER (PARTITION BY person ORDER BY age ROWS UNBOUNDED PRECEDING) AS c FROM visits)"
)


@pytest.mark.long
def test_a_join_with_rows_of_other_units_is_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row(p, age=a) for p in (1, 2, 3) for a in (4, 5)]
    assert found(folders, rows, PAIRED) == []
    print_otherwise(lambda text: text.replace("ON ours.unit IS NOT DISTINCT FROM", "ON 0 <"), monkeypatch)
    assert found(folders, rows, PAIRED)


@pytest.mark.long
def test_a_frame_that_reaches_into_other_units_is_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row(1, age=50), *(row(p, age=a) for p in range(2, 12) for a in (100, 110))]
    assert found(folders, rows, FRAMED) == []
    print_otherwise(lambda text: text.replace(*OVER_ALL_UNITS), monkeypatch)
    assert found(folders, rows, FRAMED)


@pytest.mark.long
def test_a_union_that_counts_one_part_is_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question = "SELECT COUNT(*) AS n FROM (SELECT age FROM visits UNION ALL SELECT age FROM visits)"
    assert found(folders, MANY, question) == []
    monkeypatch.setattr(Union, "rows_within", lambda union, _: union.parts[0].source.rows_per_unit)
    assert found(folders, MANY, question)


# ---- planted bugs ----------------------------------------------------------------------------------------------------


def row(person: int, **values: Any) -> Row:
    plain: Row = {"person": person, "plan": "a", "member": True, "age": 30, "cost": 1.0, "score": 0, "note": "x"}
    return plain | {"day": None, "pay": None} | values


DEAR = [row(1, cost=1e6), *(row(p) for p in (2, 3))]
MANY = [*(row(1, age=a) for a in range(8)), row(2)]
ALONE = [row(1, plan="b"), row(2, plan="a")]
SHARED = [row(p, age=a, plan="ab"[a % 2]) for p in range(2, 12) for a in range(100)] + [row(1)]
GROUPED = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"


def found(
    folder: Path, rows: list[Row], question: str, neighbour: list[Row] | None = None, **changes: Any
) -> list[str]:
    catalog = catalogs(folder, **changes)
    return compare(catalog, rows, without(rows, 1) if neighbour is None else neighbour, question, PRICE)


def test_a_missing_clamp_is_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question = "SELECT SUM(cost) AS s FROM visits"
    assert found(folders, DEAR, question) == []
    monkeypatch.setattr(bounded_values, "clean_fixed", lambda name, *_: f"CAST({name} * 100 AS BIGINT)")
    assert found(folders, DEAR, question)


@pytest.mark.long
def test_a_bound_that_is_not_applied_is_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(folders, MANY, "SELECT COUNT(*) AS n FROM visits") == []
    monkeypatch.setattr(cleaned, "kept", lambda *_: "SELECT * FROM cleaned")
    assert found(folders, MANY, "SELECT COUNT(*) AS n FROM visits")


@pytest.mark.long
def test_one_row_too_many_is_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = cleaned.kept
    monkeypatch.setattr(cleaned, "kept", lambda *facts: kept(*facts).replace("<= 2", "<= 3"))
    assert found(folders, MANY, "SELECT COUNT(*) AS n FROM visits")


@pytest.mark.long
def test_rows_kept_by_position_are_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question = "SELECT plan, SUM(age) AS s FROM visits GROUP BY plan"
    neighbour = list(reversed(without(SHARED, 1)))
    assert found(folders, SHARED, question, neighbour) == []
    position = "SELECT * FROM cleaned QUALIFY row_number() OVER (PARTITION BY unit) <= 2"
    monkeypatch.setattr(cleaned, "kept", lambda *_: position)
    assert found(folders, SHARED, question, neighbour)


@pytest.mark.long
def test_ties_broken_by_position_are_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hash of some columns only leaves ties, and whichever comes first wins."""
    question = "SELECT SUM(age) AS s FROM visits"
    neighbour = list(reversed(without(SHARED, 1)))
    tied = "SELECT * FROM cleaned QUALIFY row_number() OVER (PARTITION BY unit ORDER BY hash(cost)) <= 2"
    monkeypatch.setattr(cleaned, "kept", lambda *_: tied)
    assert found(folders, SHARED, question, neighbour)


# ---- planted bugs: dates ---------------------------------------------------------------------------------------------

DATED = "SELECT MAX(LEAST(GREATEST(day, DATE '2026-01-01'), DATE '2026-01-30')) AS last, COUNT(*) AS n FROM visits"
DAYS = [row(1, day=date(9999, 12, 31)), row(1, day=date(1, 1, 1)), *(row(p, day=date(2026, 1, p)) for p in (2, 3))]


@pytest.mark.long
def test_a_date_beyond_its_bounds_is_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dates are kept inside their bounds, and once more inside the leaves of their tree."""
    assert found(folders, DAYS, DATED) == []
    for function in ("least", "greatest"):
        monkeypatch.setitem(sql_functions.PRINTERS, function, lambda _node, a: a[0])
    assert found(folders, DAYS, DATED) == []
    monkeypatch.setattr(leaves, "clamp", lambda value, *_: value)
    assert found(folders, DAYS, DATED)


@pytest.mark.long
def test_days_counted_as_if_a_unit_had_one_row_are_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(folders, DAYS, DATED) == []
    tree = stability._tree
    monkeypatch.setattr(stability, "_tree", lambda measure, _rows, *rest: tree(measure, 1, *rest))
    assert any("DISTRIBUTION" in violation for violation in found(folders, DAYS, DATED))


# ---- planted bugs: a known number of people --------------------------------------------------------------------------

POLLED = [row(1, age=110), *(row(p, age=p) for p in range(2, 9))]
ANOTHER = [row(1, age=0), *POLLED[1:]]


@pytest.mark.long
def test_a_mean_that_moves_as_if_people_came_and_went_is_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Around the middle of the bounds, one who is replaced moves a sum by twice what one who comes does."""
    question = "SELECT AVG(age) AS m FROM visits"
    assert found(folders, POLLED, question, ANOTHER, **KNOWN) == []
    bounds = stability.sensitivity_bounds
    monkeypatch.setattr(
        stability,
        "sensitivity_bounds",
        lambda *facts, **more: bounds(*facts, **more | {"neighbouring": "add_remove"}),
    )
    assert any("moved by [110]" in one for one in found(folders, POLLED, question, ANOTHER, **KNOWN))


@pytest.mark.long
def test_a_number_of_people_that_is_counted_is_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a WHERE stands, the rows are not everybody's, and how many they are is no constant."""
    question = "SELECT AVG(age) AS m FROM visits WHERE age > 50"
    assert found(folders, POLLED, question, ANOTHER, **KNOWN) == []

    def counted(total: Any, scope: Any) -> int:
        rows = pq.read_table(catalogs(folders, **KNOWN).folder / "visits.parquet").to_pylist()
        return sum(1 for one in rows if one["age"] > 50) + 1

    monkeypatch.setattr(sums, "_known_people", counted)
    assert found(folders, POLLED, question, ANOTHER, **KNOWN)


# ---- planted bugs: the largest groups --------------------------------------------------------------------------------

RANKED = "SELECT plan FROM visits GROUP BY plan ORDER BY COUNT(*) DESC LIMIT 1"


@pytest.mark.long
def test_a_choice_as_if_replacing_moved_all_one_way_is_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes: dict[str, Any] = {"neighbouring": "replace_one", "measure": "pure"}
    rows, neighbour = ([row(1, plan=plan), row(2)] for plan in "ba")
    assert found(folders, rows, RANKED, neighbour, **changes) == []
    monkeypatch.setattr(choices, "score_bound", lambda *_: ScoreBound(range=1, reason=""))
    assert any("differences by more" in violation for violation in found(folders, rows, RANKED, neighbour, **changes))


FIRST = (
    "SELECT ABOVE_THRESHOLD(COUNT_IF(plan = 'a') >= 9, COUNT_IF(plan = 'b') >= 9, COUNT_IF(member) >= 9, "
    "COUNT_IF(age > 20) >= 9, COUNT_IF(age > 10) >= 9) AS first FROM visits"
)


@pytest.mark.long
def test_thresholds_as_if_replacing_moved_all_one_way_are_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes: dict[str, Any] = {"neighbouring": "replace_one", "measure": "pure"}
    rows, neighbour = ([row(1, plan=plan), row(2)] for plan in "ba")
    assert found(folders, rows, FIRST, neighbour, **changes) == []
    made = FirstOfThresholds.for_loss
    one_way = staticmethod(lambda loss, thresholds, **_: made(loss, thresholds, one_way=True))
    monkeypatch.setattr(FirstOfThresholds, "for_loss", one_way)
    assert any("both ways" in violation for violation in found(folders, rows, FIRST, neighbour, **changes))


# ---- planted bugs: bounds that are found -----------------------------------------------------------------------------

SEARCHED = "SELECT SUM(score, contribution_bounds_per_row => AUTO) AS s FROM visits"
SCORED = [*(row(1, score=1000 + a) for a in range(2)), *(row(p, score=5) for p in range(2, 40))]


@pytest.mark.long
def test_classes_counted_as_if_a_unit_had_one_row_are_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(folders, SCORED, SEARCHED) == []
    tree = stability._tree
    monkeypatch.setattr(stability, "_tree", lambda measure, _rows, *rest: tree(measure, 1, *rest))
    assert any("DISTRIBUTION" in violation for violation in found(folders, SCORED, SEARCHED))


@pytest.mark.long
def test_bounds_from_the_data_themselves_are_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exact_values, found_in = vars(release_module)["exact_values"], vars(release_searches)["bounds_from_counts"]
    counted: list[Any] = []

    def seen(question: Any, *rest: Any) -> Any:
        values = exact_values(question, *rest)
        counted.append(values[0])
        return values

    def found_exactly(_counts: Any, *rest: Any) -> Any:
        return found_in([10**6 * count for count in counted[-1].ravel().tolist()], *rest)

    monkeypatch.setattr(release_module, "exact_values", seen)
    assert found(folders, SCORED, SEARCHED) == []
    monkeypatch.setattr(release_searches, "bounds_from_counts", found_exactly)
    assert found(folders, SCORED, SEARCHED)


@pytest.mark.long
def test_noise_of_a_smaller_bound_than_found_is_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question, rows = SEARCHED, [row(p, score=1000) for p in range(1, 90) for _ in range(2)]
    assert found(folders, rows, question) == []
    calibrated = vars(composing)["calibrate_found"]

    def halved(*arguments: Any) -> Any:
        priced = calibrated(*arguments)
        terms = [replace(term, candidate=_half(term.candidate)) for term in priced.terms]
        return replace(priced, terms=tuple(terms))

    monkeypatch.setattr(composing, "calibrate_found", halved)
    # Noise makes the search find twice the bound now and then, half of which still covers what a unit moves.
    assert any(found(folders, rows, question) for _ in range(20))


def _half(candidate: SensitivityBound) -> SensitivityBound:
    """Return the bound on what a unit moves if values went half as far."""
    moved = candidate.sensitivity
    return replace(candidate, sensitivity=Sensitivity(l1=moved.l1 // 2, l2_squared=moved.l2_squared // 4))


@pytest.mark.long
def test_a_key_dropped_when_empty_is_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(folders, ALONE, GROUPED) == []

    def present_only(question: Any, cells: Any, *_: Any) -> Any:
        return tuple(integer_array([c[i] for c in cells.values()]) for i in range(len(question.measures)))

    monkeypatch.setattr(release_module, "exact_values", present_only)
    assert found(folders, ALONE, GROUPED)


@pytest.mark.long
def test_an_unlisted_key_is_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row(1, plan="rare"), row(2)]
    assert found(folders, rows, GROUPED) == []
    monkeypatch.setattr(release_module, "cells_of", lambda _question, *_: (("a",), ("b",), ("it's",)))
    monkeypatch.setattr(render_keys, "listed", lambda _key: "TRUE")
    monkeypatch.setattr(
        release_module,
        "exact_values",
        lambda question, cells, *_: (integer_array([values[0] for values in cells.values()]),),
    )
    assert found(folders, rows, GROUPED)


@pytest.mark.long
def test_a_float_sum_is_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Doubles absorb small terms in the order in which they come; integers do not.

    Units are hidden by a key of the session, so that the order is another one each time: every other try shows it.
    """
    question = "SELECT SUM(cost * cost * cost * cost * cost) AS s FROM visits"

    def moved(people: int) -> list[str]:
        rows = [row(p, cost=99.9 - p / 100_000) for p in range(2, people)] + [row(1, cost=100.0)]
        return found(folders, rows, question, rows_per_unit=1)

    assert moved(30_000) == []
    measured = render.measured

    def in_doubles(measure: Any, unit: str) -> str:
        return measured(measure, unit).replace("SUM(", "SUM(1.0::DOUBLE * ")

    monkeypatch.setattr(render, "measured", in_doubles)
    assert any(moved(people) for people in range(30_000, 30_060))


@pytest.mark.parametrize(
    "question",
    only(
        (0, 3),
        [
            "SELECT COUNT(*) AS n FROM visits",
            "SELECT SUM(DISTINCT age) AS s FROM visits",
            "SELECT COUNT(*) AS n FROM "
            "(SELECT age FROM visits WHERE age > 0 UNION SELECT age FROM visits WHERE member)",
            "SELECT WITH DIFFERENTIAL_PRIVACY AVG(age, contribution_bounds_per_group => (0, 90)) AS a FROM visits",
            "SELECT VAR_POP(age) AS v FROM visits",
        ],
    ),
)
def test_a_sensitivity_that_is_too_small_is_found(
    folders: Path, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidates = stability.sensitivity_bounds

    def too_small(*arguments: Any, **facts: Any) -> tuple[SensitivityBound, ...]:
        smaller = Sensitivity(l1=1, l2_squared=1)
        return tuple(SensitivityBound(sensitivity=smaller, reason=c.reason) for c in candidates(*arguments, **facts))

    monkeypatch.setattr(stability, "sensitivity_bounds", too_small)
    assert any("moved by" in violation for violation in found(folders, MANY, question))


WITHIN = "SELECT COUNT(*) AS n FROM (SELECT age FROM visits INTERSECT SELECT score FROM visits)"
WITHOUT = "SELECT COUNT(*) AS n FROM (SELECT age FROM visits EXCEPT SELECT score FROM visits)"
CROSSED = [row(p, age=2 * p + a, score=2 * p + a + 50) for p in range(2, 12) for a in (0, 1)]
CROSSING = [*CROSSED, *(row(1, age=a + 54, score=a + 4) for a in range(8))]
"""Whatever person 1 has on one side others have on the other: every row of it moves WITHIN by two."""


@pytest.mark.long
@pytest.mark.parametrize(
    "bug", one_in(3, ["the rows of one side", "a side that is not bounded", "sides that are not bounded"])
)
def test_a_set_operation_across_units_that_moves_further_than_is_said_is_found(
    folders: Path, bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found(folders, CROSSING, WITHIN) == []
    if bug == "the rows of one side":
        monkeypatch.setattr(
            set_stability, "moved", lambda _, selection: (0, selection.relation.parts[0].source.rows_per_unit)
        )
    else:
        monkeypatch.setattr(cleaned, "kept", lambda *_: "SELECT * FROM cleaned")
    if bug == "a side that is not bounded":
        grouped, rows = render.grouped, 'FROM "kept visits"'
        bounded = f"{rows} QUALIFY ROW_NUMBER() OVER (PARTITION BY unit ORDER BY age) <= 2"
        monkeypatch.setattr(render, "grouped", lambda *given: grouped(*given).replace(rows, bounded, 1))
    assert found(folders, CROSSING, WITHIN)


@pytest.mark.long
@pytest.mark.parametrize("neighbouring", one_in(2, ["add_remove", "replace_one"]))
def test_a_difference_moves_in_two_directions(
    folders: Path, neighbouring: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of rows that all raise it and rows that all lower it, one unit may have either, and its neighbour the others."""
    lowering = [*CROSSED, *(row(1, age=4, score=a + 6) for a in range(8))]
    others = [*CROSSED, *(row(1, age=a + 90, score=99) for a in range(8))] if neighbouring == "replace_one" else CROSSED
    assert found(folders, lowering, WITHOUT, others, neighbouring=neighbouring) == []
    moved = set_stability.moved
    monkeypatch.setattr(set_stability, "moved", lambda *of: tuple(end // 2 for end in moved(*of)))
    assert found(folders, lowering, WITHOUT, others, neighbouring=neighbouring)


def test_a_refusal_that_depends_on_data_is_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that raises on a value tells that the value is there."""
    rows = [row(1, note="secret"), row(2, note="12")]
    question = "SELECT COUNT(*) AS n FROM visits WHERE TRY_CAST(note AS DOUBLE) > 1"
    assert found(folders, rows, question) == []
    monkeypatch.setitem(sql_functions.PRINTERS, "try_number", lambda _node, a: f"CAST({a[0]} AS DOUBLE)")
    assert found(folders, rows, question)


@pytest.mark.long
def test_a_limit_before_the_noise_is_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grouped = render.grouped
    monkeypatch.setattr(render, "grouped", lambda *given: f"{grouped(*given)} ORDER BY COUNT(*) DESC LIMIT 1")
    rows = [row(p, plan="a") for p in (2, 3, 4, 5)] + [row(p, plan="b") for p in (6, 7, 8, 1, 1)]
    assert found(folders, rows, GROUPED)
