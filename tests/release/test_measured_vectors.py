"""Numbers about the same rows measured as one vector: what it gains, what it loses, and what stays free.

How far a unit moves what is measured is found by running neighbours; losses are written down anew.
"""

import json
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import sqrt
from pathlib import Path
from random import Random
from typing import Any, cast

import numpy as np
import pytest

import lapwing as lw
from lapwing.answer.notes import MEASURED_TOGETHER, code_of
from lapwing.catalog.toml import loads
from lapwing.errors import InvalidParameter
from lapwing.exact.entropy import SYSTEM
from lapwing.mechanisms import DiscreteLaplace, RoundedGaussian
from lapwing.mechanisms.combined_noise import CombinedNoise, strays
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.privacy.measures import PRIVACY_MEASURES
from lapwing.query.bind.bind import bind
from lapwing.query.expressions import arithmetic, logic
from lapwing.query.expressions.arithmetic import negate
from lapwing.query.expressions.conversion import number, rescale
from lapwing.query.expressions.expression import ColumnReference
from lapwing.query.expressions.types import Fixed
from lapwing.query.measures import row_kinds as row_kinds_module
from lapwing.query.measures.centred import both_counts, nulls, without_null
from lapwing.query.measures.measures import Count, Sum
from lapwing.query.measures.row_kinds import RowKinds, row_kinds
from lapwing.query.pricing import error_price, measured_vectors, quote, row_price, vector_forms
from lapwing.query.pricing.quote import CONFIDENCE, Quote
from lapwing.release.cells import cells_of, exact_values
from lapwing.release.measured import notes_on_vector
from lapwing.release.refinement import Refinement
from tests.support.effort import is_long, one_in, only
from tests.support.release.small import BUDGETS, CATALOG, GDP, PURE, catalog, exact, opened, priced, row, shown, write

THREE = "COUNT(*) AS n, SUM(cost) AS s, AVG(cost) AS a"
NEVER_NULL = 'cost = { type = "float", lower = 0, upper = 8, step = 0.5, nullable = false }'


@pytest.fixture(autouse=True)
def _nothing_chosen_stays() -> Iterator[None]:
    """Forget what was chosen in a test, as some of them change how that is done."""
    yield
    measured_vectors.CHOSEN.clear()


def asked(folder: Path, columns: str, budget: str = GDP, *, rest: str = "", most: int = 1, **price: Any) -> Quote:
    """Return the quote of a question as if none was asked before."""
    measured_vectors.CHOSEN.clear()
    return asked_later(folder, columns, budget, rest=rest, most=most, **price)


def asked_later(folder: Path, columns: str, budget: str, *, rest: str, most: int, **price: Any) -> Quote:
    write(folder, [])
    described = catalog(folder, budget=budget, most=most)
    return priced(f"SELECT {columns} FROM visits{rest}", described, **(price or {"epsilon": Fraction(1, 10)}))


def ratios(found: Quote) -> list[float]:
    """What each number errs by, in units of what it would err by with a noise of its own at the same price."""
    assert found.vector is not None
    assert found.vector.bought.loss == found.loss == found.vector.before.loss
    pairs = zip(found.terms, found.vector.before.terms, strict=True)
    return [now.mechanism.standard_deviation / own.mechanism.standard_deviation for now, own in pairs]


def flags(many: int) -> str:
    return ", ".join(f"COUNT(*) FILTER (WHERE code > {place}) AS c{place}" for place in range(many))


@pytest.mark.parametrize("kind", BUDGETS)
@pytest.mark.parametrize("columns", [THREE, "COUNT(*) AS n, AVG(cost) AS a", "COUNT(*) AS n, SUM(age) AS s"])
def test_numbers_are_priced_by_the_laws_that_follow_from_what_was_measured(
    tmp_path: Path, columns: str, kind: str
) -> None:
    for rest in ("", " WHERE code > 1"):  # the second takes over what was chosen for the first
        found = asked_later(tmp_path, columns, BUDGETS[kind], rest=rest, most=1)
        if found.vector is not None:  # `release.measured` shows these in the place of those
            measured = tuple(term.mechanism for term in found.vector.bought.terms)
            assert found.vector.laws(measured) == tuple(term.mechanism for term in found.terms)
            worse = tuple(
                DiscreteLaplace(scale=Fraction(9)) if kind == "pure" else RoundedGaussian(sigma=Fraction(9))
                for _ in measured
            )
            assert found.vector.laws(worse) != tuple(term.mechanism for term in found.terms)


# ---- what is gained --------------------------------------------------------------------------------------------------

WHOLE = "COUNT(COALESCE(cost, 0)) AS n, SUM(COALESCE(cost, 0)) AS s"
"""Of numbers that are never NULL."""


@pytest.mark.parametrize(
    ("columns", "kind", "most"),
    [
        (f"{WHOLE}, AVG(COALESCE(cost, 0)) AS a", "gdp", [0.84, 0.60, 0.84]),
        (f"{WHOLE}, AVG(COALESCE(cost, 0)) AS a", "zcdp", [0.84, 0.60, 0.84]),
        (f"{WHOLE}, AVG(COALESCE(cost, 0)) AS a", "pure", [0.50, 0.35, 0.50]),
        (WHOLE, "gdp", [1.0, 0.72]),
        (flags(2), "gdp", [0.86] * 2),
        (flags(5), "gdp", [0.73] * 5),
        (flags(10), "gdp", [0.67] * 10),
        (flags(3), "pure", [0.91] * 3),
        (flags(10), "pure", [0.68] * 10),
        ("AVG(COALESCE(cost, 0)) AS a", "pure", [0.72, 0.72]),
        ("COUNT(*) AS n, COUNT(age) AS m, SUM(age) AS s", "pure", [0.48, 0.58, 0.36]),
        ("COUNT(*) AS n, SUM(cost) AS s, COUNT(*) FILTER (WHERE code > 0) AS m", "gdp", [0.90, 0.70, 0.70]),
        (THREE, "gdp", [0.74, 0.74, 0.525, 0.735]),  # three noises would have √(4/3) of it: .85, .61 and .85
        (THREE, "zcdp", [0.74, 0.74, 0.525, 0.735]),
        ("COUNT(*) AS n, AVG(cost) AS a", "gdp", [0.86, 0.86, 0.85]),
    ],
)
def test_numbers_err_by_less_at_the_same_price(tmp_path: Path, columns: str, kind: str, most: list[float]) -> None:
    found = asked(tmp_path, columns, BUDGETS[kind])
    assert all(now <= wanted + 0.002 for now, wanted in zip(sorted(ratios(found)), sorted(most), strict=True))


REPLACED = '\nneighbouring = "replace_one"'
OF_COST = "COUNT(cost) AS n, SUM(cost) AS s, AVG(cost) AS a"


@pytest.mark.parametrize(
    ("columns", "rest", "kind", "wanted"),
    [
        (OF_COST, "", "gdp", [2 / 3, 2 / 3, 1 / sqrt(3)]),
        ("COUNT(cost) AS n, SUM(cost) AS s", "", "gdp", [sqrt(2 / 3)] * 2),
        ("COUNT(cost) AS n, SUM(cost) AS s", "", "zcdp", [sqrt(2 / 3)] * 2),
        (OF_COST, " GROUP BY plan", "gdp", [sqrt(2 / 3), 1 / sqrt(3), 1 / sqrt(3)]),
        (OF_COST, "", "pure", [2 / 3, sqrt(2) / 3, 1 / 3]),
        ("COUNT(cost) AS n, SUM(cost) AS s", "", "pure", [sqrt(1 / 2)] * 2),
        (OF_COST, " GROUP BY plan", "pure", [sqrt(2) / 3, 1 / 3, sqrt(2) / 3]),
        (THREE, "", "gdp", None),
        ("AVG(cost) AS a", "", "gdp", [sqrt(2 / 3), sqrt(1 / 2)]),
        ("AVG(cost) AS a", " GROUP BY plan", "zcdp", [1, sqrt(1 / 2)]),
        ("VAR_POP(cost) AS v", "", "gdp", [0.712] * 3),
        ("COVAR_POP(cost, age) AS v", "", "gdp", [sqrt(1 / 2)] * 4),
        ("COVAR_POP(cost, age) AS v", "", "pure", [1, 1 / 2, 1 / 2, 1 / 2]),
        ("CORR(cost, age) AS v", "", "pure", [0.635] * 6),
    ],
)
def test_what_is_gained_where_one_unit_comes_for_another(
    tmp_path: Path, columns: str, rest: str, kind: str, wanted: list[float] | None
) -> None:
    """N + U of variance 4 and N − U of 4/3 have N, U of 4/3; in several cells a row for another moves two of them."""
    found = ratios(asked(tmp_path, columns, BUDGETS[kind] + REPLACED, rest=rest))
    assert max(found) <= 1 if wanted is None else found == pytest.approx(wanted, rel=0.01)


@pytest.mark.parametrize(
    ("x", "low", "high"),
    [("COALESCE(cost, 0)", 0, 8), ("GREATEST(COALESCE(cost, 2), 2)", 2, 8), ("COALESCE(age, 0)", -1, 3)],
)
def test_the_gain_is_the_one_that_was_derived(tmp_path: Path, x: str, low: int, high: int) -> None:
    """For bounds l and h, r = l/h: √((1 + r²)/3) and √((1 + r²)/2) in gdp, √(1 + r²)/3 in pure, of the sum."""
    r = low / high
    two, three = f"COUNT(*) AS n, SUM({x}) AS s", f"COUNT(*) AS n, SUM({x}) AS s, AVG({x}) AS a"
    for columns, kind, wanted in [
        (three, "gdp", sqrt((1 + r * r) / 3)),
        (two, "gdp", sqrt((1 + r * r) / 2)),
        (three, "pure", sqrt(1 + r * r) / 3),
    ]:
        found = asked(tmp_path, columns, BUDGETS[kind])
        gains = {str(term.measure): gain for term, gain in zip(found.terms, ratios(found), strict=True)}
        (sum_gain,) = [gain for name, gain in gains.items() if name.startswith("SUM") and "- 0;" in name]
        assert sum_gain == pytest.approx(wanted, rel=0.01)


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        ("COUNT(*) AS n, AVG(COALESCE(cost, 0)) AS a", "gdp"),  # which are a count and a centred sum
        ("SUM(cost - 4) AS s, SUM(age - 1) AS t", "gdp"),  # signed
        (flags(2), "pure"),
        ("COUNT(DISTINCT person) AS n, SUM(cost) AS s", "gdp"),
    ],
)
def test_where_a_noise_for_each_is_as_good_it_stays(tmp_path: Path, columns: str, kind: str) -> None:
    assert asked(tmp_path, columns, BUDGETS[kind]).vector is None


@pytest.mark.long
def test_no_number_errs_by_more_at_any_price(tmp_path: Path) -> None:
    columns = f"{THREE}, COUNT(size) AS m, {flags(2)}, SUM(age) AS t, COUNT(DISTINCT town) AS d"
    for kind, epsilon in product(BUDGETS, (Fraction(1, 100), 1, 20)):
        found = asked(tmp_path, columns, BUDGETS[kind], epsilon=epsilon)
        if found.vector is not None:
            assert max(ratios(found)) <= 1.005
            pairs = zip(found.terms, found.vector.before.terms, strict=True)
            assert all(now.half_width(CONFIDENCE) <= 1.005 * own.half_width(CONFIDENCE) for now, own in pairs)


FORESEEN = [
    (THREE, "gdp", ""),
    (f"SUM(size) AS s, AVG(cost) AS a, {flags(3)}", "gdp", " GROUP BY plan"),
    (f"{THREE}, COUNT(age) AS m", "zcdp", " GROUP BY ROLLUP (plan)"),
    ("SUM(cost) / COUNT(cost) AS q, SUM(age) AS s", "gdp", ""),
    (THREE, "pure", " GROUP BY plan"),
    (flags(4), "pure", ""),
]


@pytest.mark.long
def test_the_way_that_is_foreseen_is_the_best_of_all(tmp_path: Path, monkeypatch: Any) -> None:
    """Priced is only the way that gains most in floating point; with all of them priced it is the same one."""
    priced_ways: list[object] = []
    own, foreseen = measured_vectors.quote_of, measured_vectors.best_first

    def noted(*asked: Any) -> Quote | None:
        priced_ways.append(asked)
        return own(*asked)

    monkeypatch.setattr(measured_vectors, "quote_of", noted)
    for (columns, kind, rest), others, epsilon in product(FORESEEN, ("", REPLACED), (Fraction(1, 50), 1, 15)):
        vectors = list[Any]()
        for first in (foreseen, lambda *_: None):
            monkeypatch.setattr(measured_vectors, "best_first", first)
            priced_ways.clear()
            found = asked(tmp_path, columns, BUDGETS[kind] + others, rest=rest, epsilon=epsilon).vector
            vectors.append(found and (found.weights, found.bought))
            assert first is not foreseen or epsilon == 15 or len(priced_ways) <= 1
        assert vectors[0] == vectors[1]


def test_twin_a_way_that_is_foreseen_wrongly_is_found(tmp_path: Path, monkeypatch: Any) -> None:
    best, foreseen = asked(tmp_path, THREE).vector, measured_vectors.best_first
    assert best is not None
    monkeypatch.setattr(measured_vectors, "best_first", lambda *asked: list(reversed(foreseen(*asked) or ())))
    worse = asked(tmp_path, THREE).vector
    assert worse is None or worse.weights != best.weights


def test_the_ways_of_an_error_are_written_once(tmp_path: Path, monkeypatch: Any) -> None:
    """Twelve prices are tried, for which the ways and what they lose together are the same."""
    forms, made = vector_forms.Forms.__iter__, list[object]()

    def counted(self: Any) -> Any:
        made.append(self)
        return forms(self)

    measured_vectors._ways.cache_clear()
    monkeypatch.setattr(vector_forms.Forms, "__iter__", counted)
    assert asked(tmp_path, flags(4), error=30).vector is not None
    assert len(made) == 1


@pytest.mark.parametrize("kind", ["gdp", "pure"])
def test_the_price_of_an_error_takes_few_tries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    tried, right = list[Fraction](), quote.at_loss

    def counted(plan: Any, bounds: Any, loss: Any, *more: Any) -> Quote:
        tried.append(loss.amount)
        return right(plan, bounds, loss, *more)

    monkeypatch.setattr(error_price, "at_loss", counted)
    wanted = 47
    found = asked(tmp_path, flags(5), BUDGETS[kind], error=wanted)
    assert len(tried) <= 5
    assert {term.half_width(CONFIDENCE) for term in found.terms} <= {wanted, wanted - 1}
    plan = bind(f"SELECT {flags(5)} FROM visits", catalog(tmp_path, budget=BUDGETS[kind], most=1))
    budget = catalog(tmp_path, budget=BUDGETS[kind], most=1).budget
    cheaper = found.loss.from_amount(found.loss.amount - tried[0] / 1000)
    less = right(plan, quote.bounds_of(plan.question, budget), cheaper, budget, Fraction(0))
    assert max(term.half_width(CONFIDENCE) for term in less.terms) > wanted


def width(law: Any, amount: Fraction, kind: str, distance: int) -> tuple[int, float]:
    loss = PRIVACY_MEASURES[kind].from_amount(amount)
    found = law.for_loss(loss, Sensitivity(l1=distance, l2_squared=distance**2))
    return found.half_width(CONFIDENCE), found.standard_deviation


@pytest.mark.parametrize("kind", ["gdp", "zcdp"])
def test_normal_noise_is_the_narrower_where_no_other_is_tried(kind: str) -> None:
    most = quote.NORMAL_UP_TO[kind]
    for amount, distance in product((most, most * Fraction(9, 10), most / 50), (1, 2, 3, 10, 1000)):
        assert width(RoundedGaussian, amount, kind, distance) < width(DiscreteLaplace, amount, kind, distance)
    # As a twin, prices at which a limit that is too high would take the wider one.
    assert width(RoundedGaussian, 20 * most, kind, 10) > width(DiscreteLaplace, 20 * most, kind, 10)


def promised(folder: Path, columns: str, budget: str = GDP, table: str = "") -> Quote:
    """Price a question of a column that is never NULL."""
    write(folder, [])
    text = CATALOG.format(budget=budget, unit="person", table=f"max_rows_per_unit = 1{table}", plan="", age="")
    text = text.replace('cost = { type = "float", lower = 0, upper = 8, step = 0.5 }', NEVER_NULL)
    return priced(f"SELECT {columns} FROM visits", loads(text, file="s", folder=folder), epsilon=1)


@pytest.mark.parametrize("kind", BUDGETS)
def test_a_mean_of_a_public_number_of_people_pays_for_no_count(tmp_path: Path, kind: str) -> None:
    """The centred sum has the noise that it has for the whole price, whatever else is asked for of the same rows."""
    budget, people = BUDGETS[kind] + REPLACED, "\npeople = 1000"
    alone = promised(tmp_path, "AVG(cost) AS a", budget, people).terms[0]
    for columns in ("1000 * AVG(cost) AS s", f"{THREE}", "SUM(cost) AS s, AVG(cost) AS a"):
        found = {term.measure: term.mechanism for term in promised(tmp_path, columns, budget, people).terms}
        assert found[alone.measure].standard_deviation == pytest.approx(alone.mechanism.standard_deviation, rel=1e-6)


BOUNDED = "size, contribution_bounds_per_row => (0, 8)"


@pytest.mark.parametrize("kind", ["pure", "gdp"])
@pytest.mark.parametrize("rows", ["", " FILTER (WHERE code > 0)"])
def test_a_value_within_bounds_of_the_question_is_null_where_it_is(tmp_path: Path, rows: str, kind: str) -> None:
    """SUM(x)/COUNT(x) with bounds that the question says, or finds, is AVG(x): one count serves both."""
    found = asked(tmp_path, f"SUM({BOUNDED}){rows} / COUNT(size){rows} AS a", BUDGETS[kind])
    average = asked(tmp_path, f"AVG({BOUNDED}){rows} AS a", BUDGETS[kind])
    assert found.vector is not None
    bought = (average if average.vector is None else average.vector.bought).terms
    assert [t.mechanism for t in found.vector.bought.terms] == [t.mechanism for t in bought]


def test_bounds_that_are_found_come_before_the_vector(tmp_path: Path) -> None:
    text = "SELECT SUM(size, contribution_bounds_per_row => AUTO) / COUNT(size) AS a FROM visits"
    with opened(tmp_path, CROWD, budget=GDP, most=1) as session:
        answer = session.sql(text, epsilon=2)
        assert all(isinstance(law, CombinedNoise) for law in answer.mechanisms.values())
        assert session.sql(text, epsilon=2).stored
        assert MEASURED_TOGETHER in map(code_of, session.explain(text, epsilon=2).notes)


def test_a_column_without_null_shares_one_count(tmp_path: Path) -> None:
    found = promised(tmp_path, "COUNT(*) AS n, AVG(cost) AS a")
    assert found.vector is not None
    assert [type(measure) for measure in found.vector.bought.question.measures] == [Count, Sum]


# ---- privacy: what a unit moves, by running neighbours ---------------------------------------------------------------

VALUES: list[list[tuple[Any, ...]]] = [
    [(0.0, -1, "a", 0), (0.0, -1, "a", 0)],
    [(8.0, 3, "a", 10), (8.0, 3, "a", 10)],
    [(8.0, 3, "a", 10), (8.0, 3, "b", 10)],
    [(0.0, 3, "a", 0), (8.0, -1, "b", 10)],
    [(None, None, "a", None), (None, None, "a", None)],
    [(None, 3, "b", None), (4.0, None, "a", 5)],
    [(4.5, 1, None, 5)],
]
UNITS = [[row(9, cost=cost, age=age, plan=plan, size=size) for cost, age, plan, size in rows] for rows in VALUES]
OTHERS = [row(n, cost=n % 9, age=n % 4 - 1, plan="ab"[n % 2]) for n in range(4)]
FORMS = [
    (THREE, ""),
    (f"{THREE}, COUNT(cost) AS m", " GROUP BY plan"),
    ("COUNT(*) AS n, SUM(age) AS s, AVG(age) AS a", " GROUP BY ROLLUP (plan)"),
    (f"SUM(size) AS s, {flags(3)}", " GROUP BY plan"),
    ("COUNT(*) AS n, COUNT(age) AS m, SUM(age) AS s, SUM(cost) AS t", " WHERE size > 0"),
]
CENTRED = [
    ("AVG(cost) AS a", " GROUP BY plan"),
    ("VAR_SAMP(age) AS v", ""),
    ("CORR(cost, age) AS c", ""),
    ("STDDEV(cost) AS d", " GROUP BY plan"),
    ("REGR_SLOPE(cost, age) AS r, REGR_INTERCEPT(cost, age) AS i", ""),
]
"""Of sums that are centred already, so that they are measured themselves."""
WITHIN = ("SUM(size, contribution_bounds_per_row => (0, 8)) AS s, COUNT(size) AS n, AVG(size) AS a", "")


def moved(folder: Path, bought: Quote, budget: str, units: Any = UNITS) -> Iterator[list[list[int]]]:
    """Yield by how much each measure moves in each cell if a unit is added."""
    described = catalog(folder, budget=budget, most=2)
    cells = cells_of(bought.question)

    def values(rows: Sequence[Any]) -> Any:
        return exact_values(bought.question, exact(bought.question, described, rows).cells, cells)

    before = values(OTHERS)
    for unit in units:
        yield [(now - then).tolist() for now, then in zip(values([*OTHERS, *unit]), before, strict=True)]


def lost(differences: list[list[int]], laws: Sequence[Any]) -> Fraction:
    """Return ε, or μ², of vectors at this distance with this noise."""
    pairs = zip(differences, laws, strict=True)
    if isinstance(laws[0], DiscreteLaplace):
        return sum((abs(Fraction(d)) / law.scale for each, law in pairs for d in each), Fraction(0))
    return sum((Fraction(d) ** 2 / law.sigma**2 for each, law in pairs for d in each), Fraction(0))


@pytest.mark.parametrize(
    ("columns", "rest", "kind"),
    one_in(6, [(*form, kind) for kind in ("pure", "gdp") for form in (*FORMS, WITHIN)], many=True),
)
def test_a_unit_moves_what_is_measured_within_its_price(tmp_path: Path, columns: str, rest: str, kind: str) -> None:
    found = asked(tmp_path, columns, BUDGETS[kind], rest=rest, most=2, epsilon=1)
    assert found.vector is not None
    bought = found.vector.bought
    laws = [term.mechanism for term in bought.terms]
    losses = [lost(differences, laws) for differences in moved(tmp_path, bought, BUDGETS[kind])]
    assert max(losses) <= found.loss.amount
    if columns == THREE:  # whose corners are all there: nothing is paid in vain
        assert max(losses) > found.loss.amount * Fraction(9, 10)


@pytest.mark.parametrize(
    ("columns", "rest", "kind"),
    one_in(4, [(*form, kind) for kind in ("pure", "gdp") for form in (*FORMS, *CENTRED)], many=True),
)
def test_a_unit_for_another_moves_it_within_its_price(tmp_path: Path, columns: str, rest: str, kind: str) -> None:
    budget = BUDGETS[kind] + REPLACED
    found = asked(tmp_path, columns, budget, rest=rest, most=2, epsilon=1)
    assert found.vector is not None
    laws = [term.mechanism for term in found.vector.bought.terms]
    losses = of_pairs(list(moved(tmp_path, found.vector.bought, budget)), laws)
    assert max(losses) <= found.loss.amount
    if columns == THREE:
        assert max(losses) > found.loss.amount * Fraction(9, 10)


def of_pairs(differences: list[list[list[int]]], laws: Sequence[Any]) -> list[Fraction]:
    """Return what each unit, or none, loses for each other."""
    none = [[0] * len(cells) for cells in differences[0]]
    return [
        lost([[a - b for a, b in zip(one, two, strict=True)] for one, two in zip(first, second, strict=True)], laws)
        for first, second in combinations([none, *differences], 2)
    ]


@pytest.mark.parametrize("bug", ["a unit for another is one more", "a row for all"])
def test_twins_of_what_a_unit_has_are_found(tmp_path: Path, bug: str, monkeypatch: Any) -> None:
    """Each plants a proof of less, and a pair of neighbours that lose more than the price is found."""
    right, less = row_price.RowsOfQuestion.of, {"replaced": False} if "another" in bug else {"rows": 1}
    monkeypatch.setattr(row_price.RowsOfQuestion, "of", lambda *asked: replace(right(*asked), **cast(Any, less)))
    budget = GDP + REPLACED
    found = asked(tmp_path, THREE, budget, most=2, epsilon=1)
    assert found.vector is not None
    laws = [term.mechanism for term in found.vector.bought.terms]
    assert max(of_pairs(list(moved(tmp_path, found.vector.bought, budget)), laws)) > found.loss.amount


X = ColumnReference(name="x", type=Fixed(step=Fraction(1, 2), low=-2, high=6))
Y = ColumnReference(name="y", type=Fixed(step=Fraction(1), low=0, high=3))
NULLABLE: list[tuple[Count | Sum, Any]] = [
    (Count(), lambda x, y: 1),
    (Count(argument=X), lambda x, y: int(x is not None)),
    (nulls(X), lambda x, y: int(x is None)),
    (both_counts(X)[0], lambda x, y: 4 if x is None else 8),
    (both_counts(X)[1], lambda x, y: 4 if x is None else 0),
    (Sum(argument=X, origin=2), lambda x, y: 0 if x is None else x - 2),
    (Sum(argument=X, origin=-10), lambda x, y: 0 if x is None else x + 10),
    (Sum(argument=X, origin=-2), lambda x, y: 0 if x is None else x + 2),
    (Sum(argument=negate(X), origin=-6), lambda x, y: 0 if x is None else 6 - x),
    (Sum(argument=rescale(X, Fraction(1, 4)), origin=3), lambda x, y: 0 if x is None else 2 * x - 3),
    (without_null(Sum(argument=X)), lambda x, y: 0 if x is None else x),
    (Sum(argument=Y, origin=1), lambda x, y: 0 if y is None else y - 1),
    (Count(argument=Y), lambda x, y: int(y is not None)),
]
"""Measures, each with what a row of x and y adds to it, in steps, written down anew."""
BOTH = logic.both(logic.negation(logic.is_null(X)), logic.negation(logic.is_null(Y)))
OF_X = arithmetic.subtract(X, number(Fraction(1)))


def where_both(expression: Any, origin: int = 0) -> Sum:
    return Sum(argument=logic.only_where(expression, BOTH), origin=origin)


PRODUCTS: list[tuple[Count | Sum, Any]] = [
    (Count(argument=X), lambda x, y: int(x is not None)),
    (Sum(argument=X, origin=2), lambda x, y: 0 if x is None else x - 2),
    (Sum(argument=arithmetic.multiply(OF_X, OF_X), origin=8), lambda x, y: 0 if x is None else (x - 2) ** 2 - 8),
    (Sum(argument=arithmetic.multiply(X, negate(X)), origin=-3), lambda x, y: 0 if x is None else 3 - x * x),
    (Count(argument=logic.only_where(X, BOTH)), lambda x, y: 0 if None in (x, y) else 1),
    (where_both(X, 1), lambda x, y: 0 if None in (x, y) else x - 1),
    (where_both(Y), lambda x, y: 0 if None in (x, y) else y),
    (where_both(arithmetic.multiply(OF_X, Y), 2), lambda x, y: 0 if None in (x, y) else (x - 2) * y - 2),
    (where_both(arithmetic.multiply(Y, Y)), lambda x, y: 0 if None in (x, y) else y * y),
    (Sum(argument=arithmetic.multiply(X, Y)), lambda x, y: 0 if None in (x, y) else x * y),
    (Sum(argument=Y, origin=1), lambda x, y: 0 if y is None else y - 1),
]
"""The same of squares and products."""


def prices_of_rows(squared: bool, products: bool = False) -> Iterator[tuple[Fraction, Fraction]]:
    """Yield what measures are charged, and the most that any two rows of x and y lose, in one cell and in two."""
    draw = Random(f"rows {squared}")
    power = 2 if squared else 1
    rows = [(x, y) for x in (None, *range(-2, 7)) for y in (None, 0, 1, 3)]
    for place in range(400 if is_long() else 40 if products else 20):
        # A sum and the NULLs, of which the latter lose more; two sums of x; and any others.
        several = 1 + place % 4
        chosen = NULLABLE[6:8] if place == 1 else draw.sample(NULLABLE, several)
        if products:
            first = 4 * (place % 2)
            chosen = PRODUCTS[first : first + 2 + several] if place < 8 else draw.sample(PRODUCTS, several + 1)
        units = {measure: Fraction(draw.randint(1, 9), draw.randint(1, 9)) for measure, _ in chosen}
        if place == 0 and not products:
            chosen, units = [NULLABLE[5], NULLABLE[2]], {NULLABLE[5][0]: Fraction(1, 16), nulls(X): Fraction(2)}
        none, each = (0,) * len(chosen), tuple(units.values())
        vectors = {tuple(add(*row) for _, add in chosen) for row in rows} | {none}

        def size(v: Any, w: Any, each: tuple[Fraction, ...] = each) -> Fraction:
            return sum((e * abs(a - b) ** power for e, a, b in zip(each, v, w, strict=True)), Fraction(0))

        most, apart = max(size(v, none) for v in vectors), max(size(v, w) for v in vectors for w in vectors)
        for replaced, several, wanted in [
            (False, True, most),
            (True, False, apart),
            (True, True, max(apart, 2 * most)),
        ]:
            found = row_price.RowsOfQuestion(rows=3, sets=(several,), replaced=replaced, products=products)
            charged = found.amount(units, squared=squared)
            yield charged, wanted * 3**power
            assert replace(found, sets=(several, several)).amount(units, squared=squared) == 2 * charged


@pytest.mark.parametrize("squared", [True, False])
def test_the_price_of_rows_is_at_least_what_any_two_rows_lose(squared: bool) -> None:
    prices = list(prices_of_rows(squared))
    assert all(charged >= lost for charged, lost in prices)
    assert sum(charged == lost for charged, lost in prices) > len(prices) // 3  # with y, too, a little more


@pytest.mark.parametrize("squared", [True, False])
def test_the_price_of_squares_and_products_is_at_least_what_any_two_rows_lose(squared: bool) -> None:
    row_price.kinds_of.cache_clear()
    prices = list(prices_of_rows(squared, products=True))
    assert all(charged >= lost for charged, lost in prices)
    assert sum(charged <= lost * Fraction(11, 10) for charged, lost in prices) > len(prices) // 2


@pytest.mark.parametrize(
    "bug", one_in(2, ["a square is at its ends alone", "a product is never NULL", "a factor is missing"])
)
def test_twins_of_what_a_row_adds_to_products_are_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    corners, factors = row_kinds_module.corners_of, row_kinds_module.factors_of
    if "ends" in bug:
        monkeypatch.setattr(row_kinds_module, "corners_of", lambda expression, _: corners(expression, False))
    elif "NULL" in bug:
        monkeypatch.setattr(row_kinds_module, "on_curves", lambda points, *_: points)
        monkeypatch.setattr(row_kinds_module, "nullable", lambda _: False)
    else:
        monkeypatch.setattr(row_kinds_module, "factors_of", lambda argument: factors(argument)[:1] * 2)
    row_price.kinds_of.cache_clear()
    try:
        assert any(charged < lost for charged, lost in prices_of_rows(squared=True, products=True))
    finally:
        row_price.kinds_of.cache_clear()


@pytest.mark.parametrize("bug", ["NULL is no kind", "no end but the low one", "the high end of one is at the low x"])
def test_twins_of_what_a_row_adds_are_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def turned(points: Any) -> Any:
        return tuple((*one[:-1], other[-1]) for one, other in zip(points, reversed(points), strict=True))

    def wrong(measures: Any) -> Iterator[RowKinds]:
        for kinds in row_kinds(measures):
            if bug == "NULL is no kind":
                yield replace(kinds, kinds=kinds.kinds[:1])
            elif bug == "no end but the low one":
                yield replace(kinds, kinds=tuple(tuple(points[:1] for points in kind) for kind in kinds.kinds))
            else:
                turned = tuple(
                    tuple(
                        tuple((*p[:-1], q[-1]) for p, q in zip(points, reversed(points), strict=True))
                        for points in kind
                    )
                    for kind in kinds.kinds
                )
                yield replace(kinds, kinds=turned)

    monkeypatch.setattr(row_price, "kinds_of", lambda measures, _: tuple(wrong(measures)))
    with pytest.raises(AssertionError):
        test_the_price_of_rows_is_at_least_what_any_two_rows_lose(squared=True)


def test_a_part_of_a_vector_costs_what_it_loses_by_itself(tmp_path: Path) -> None:
    """What sharpens a stored vector may measure one number alone: nothing is let off for numbers that are not."""
    found = asked(tmp_path, THREE, epsilon=1)
    assert found.vector is not None
    bought = found.vector.bought
    each = [bought.lost((term,)).amount for term in bought.terms]
    assert each == [term.loss("gdp").amount for term in bought.terms]
    assert bought.lost(bought.terms).amount <= bought.loss.amount < sum(each)
    own, stored = bought.terms[0], [cast(Any, term.mechanism) for term in bought.terms]
    twice = cast(Any, RoundedGaussian(sigma=own.mechanism.scale / 2))
    lacking = Refinement(wanted=bought, bought=tuple(stored), fresh={0: twice}, aims={})
    assert lacking.priced.loss.amount == 4 * each[0]


@pytest.mark.parametrize(
    "bug", ["one row more", "a cell forgotten", pytest.param("half the noise of one", marks=pytest.mark.long)]
)
def test_twins_that_lose_more_are_found(tmp_path: Path, bug: str) -> None:
    found, of_one = (asked(tmp_path, THREE, PURE, most=most, epsilon=1).vector for most in (2, 1))
    assert found is not None
    assert of_one is not None
    bought = found.bought
    laws: list[Any] = [term.mechanism for term in (of_one.bought if bug == "one row more" else bought).terms]
    place = next(at for at, term in enumerate(bought.terms) if isinstance(term.measure, Count))
    if bug == "half the noise of one":
        laws[-1] = replace(laws[-1], scale=laws[-1].scale / 2)
    if bug == "a cell forgotten":  # and with its noise as small as if NULL moved nothing
        laws[place] = replace(laws[place], scale=laws[place].scale / 100)
    losses = [lost(differences, laws) for differences in moved(tmp_path, bought, PURE, UNITS[2:5])]
    assert max(losses) > bought.loss.amount


def test_a_price_covers_what_is_measured(tmp_path: Path) -> None:
    found = asked(tmp_path, THREE, epsilon=1)
    assert found.vector is not None
    dear = replace(found.vector.bought, loss=2 * found.loss)
    with pytest.raises(InvalidParameter):
        replace(found, vector=replace(found.vector, bought=dear))


# ---- the law of what is shown ----------------------------------------------------------------------------------------

CROWD = [row(n, cost=(n % 17) / 2, age=n % 5 - 1, plan="ab"[n % 2]) for n in range(340)]


def drawn(found: Quote, truth: dict[Any, int], many: int) -> dict[Any, Any]:
    """Return what would be released in so many cells of the same true numbers."""
    assert found.vector is not None
    terms = found.vector.bought.terms
    measured = [term.mechanism.release(np.full(many, truth[term.measure]), SYSTEM) for term in terms]
    return dict(zip(found.question.measures, found.vector.values(measured), strict=True))


def truths(folder: Path, found: Quote, budget: str) -> tuple[dict[Any, int], dict[Any, int]]:
    described, numbers = catalog(folder, budget=budget, most=1), []
    assert found.vector is not None
    for question in (found.vector.bought.question, found.question):
        (values,) = exact(question, described, CROWD).cells.values()
        numbers.append(dict(zip(question.numbers, values, strict=True)))
    return numbers[0], numbers[1]


@pytest.mark.parametrize(
    ("columns", "kind"),
    one_in(
        2, [(THREE, "gdp"), (THREE, "pure"), (f"{flags(3)}, SUM(age) AS s", "pure"), (f"{flags(3)}", "gdp")], many=True
    ),
)
def test_what_is_shown_is_true_but_for_the_noise_that_is_said(tmp_path: Path, kind: str, columns: str) -> None:
    found = asked(tmp_path, columns, BUDGETS[kind], epsilon=1)
    many = 20_000
    measured, wanted = truths(tmp_path, found, BUDGETS[kind])
    for measure, values in drawn(found, measured, many).items():
        (law,) = [term.mechanism for term in found.terms if term.measure == measure]
        off = values.astype(np.float64) - wanted[measure]
        deviation = law.standard_deviation
        assert abs(off.mean()) < 5 * deviation / sqrt(many) + 0.05
        assert off.std() == pytest.approx(deviation, rel=0.04)  # Laplace tails: 5 standard errors
        assert (np.abs(off) <= law.half_width(CONFIDENCE)).mean() > 0.95 - 5 * sqrt(0.05 / many)


def test_a_half_goes_to_the_nearest_even_number() -> None:
    values = measured_vectors._combined((Fraction(1, 2),), [np.array([-3, -1, 0, 1, 2, 3, 5])])
    assert values.tolist() == [-2, 0, 0, 0, 1, 2, 2]
    wide = measured_vectors._combined((Fraction(1, 3), Fraction(2)), [np.array([1 << 62, 4]), np.array([1 << 62, 0])])
    assert wide.tolist() == [((1 << 62) * 7 + 1) // 3, 1]


MEANS = "COUNT(*) AS n, SUM(cost) AS s, AVG(cost) AS a, SUM(age) AS t, AVG(age) AS b"
"""Computed from numbers that have noise in common."""


def coverage(folder: Path, budget: str, text: str = MEANS) -> float:
    """Return how often the interval of a mean holds."""
    low: Any
    with opened(folder, CROWD, budget=budget, most=1, entropy=SYSTEM) as session:
        answer = session.sql(f"SELECT {text} FROM visits", epsilon=1)
        assert any(isinstance(law, CombinedNoise) for law in answer.mechanisms.values()) == (text == MEANS)
        found = priced(f"SELECT {text} FROM visits", catalog(folder, budget=budget, most=1), epsilon=1)
        many = 20_000
        measured, _ = truths(folder, found, budget)
        numbers = drawn(found, measured, many)
        cells = replace(answer._released, size=many, measures=numbers)
        value = next(output.value for output in answer.plan.outputs if output.name == "a")
        from lapwing.answer.interval_ends import margins_of  # of the answer's own noise

        low, high = cast(Any, value.interval(cells, margins_of(value, answer.mechanisms, CONFIDENCE)))
        ends = [end.floats(many) for end in (low, high)]
    true = sum(each["cost"] for each in CROWD) / len(CROWD)
    return float(((ends[0] <= true) & (true <= ends[1])).mean())


@pytest.mark.parametrize("kind", [pytest.param("gdp", marks=pytest.mark.long), "pure"])
def test_intervals_of_means_hold_as_often_as_they_say(tmp_path: Path, kind: str) -> None:
    budget = BUDGETS[kind].replace("100", "100000")
    assert 0.94 < coverage(tmp_path, budget) < (0.97 if kind == "gdp" else 0.985)


@pytest.mark.parametrize("kind", ["gdp", pytest.param("zcdp", marks=pytest.mark.long)])
def test_intervals_of_numbers_that_are_measured_themselves_hold_as_often_as_they_say(tmp_path: Path, kind: str) -> None:
    budget = BUDGETS[kind].replace("100", "100000") + REPLACED
    assert 0.945 < coverage(tmp_path, budget, "AVG(cost) AS a, VAR_POP(cost) AS v") < 0.985


def test_twin_a_line_that_forgets_what_they_have_in_common_is_found(tmp_path: Path, monkeypatch: Any) -> None:
    from lapwing.answer import joint_margins

    def of_half(weights: Any, laws: Any, chance: Fraction) -> Fraction:
        first = next(place for place, weight in enumerate(weights) if weight)
        return strays(tuple(w if at == first else Fraction(0) for at, w in enumerate(weights)), laws, chance)

    joint_margins._apart.cache_clear()
    monkeypatch.setattr(joint_margins, "strays", of_half)
    try:
        assert coverage(tmp_path, PURE) < 0.94
    finally:
        joint_margins._apart.cache_clear()


def test_combined_noise_strays_no_farther_than_is_said() -> None:
    laws = (RoundedGaussian(sigma=Fraction(3)), RoundedGaussian(sigma=Fraction(5)))
    law = CombinedNoise(weights=(Fraction(1, 2), Fraction(3, 2)), laws=laws)
    assert law.half_width(CONFIDENCE) >= 1.95 * sqrt((3 / 2) ** 2 + (15 / 2) ** 2)
    assert law.standard_deviation == pytest.approx(sqrt(9 / 4 + 225 / 4), rel=0.02)
    with pytest.raises(InvalidParameter):
        CombinedNoise(weights=(Fraction(1), Fraction(1)), laws=(laws[0], DiscreteLaplace(scale=Fraction(3))))
    with pytest.raises(InvalidParameter):
        law.release(np.array([1]))


def test_what_is_measured_is_named(tmp_path: Path) -> None:
    write(tmp_path, [])
    text = f"SELECT {THREE} FROM visits"
    plan = bind(text, catalog(tmp_path, budget=GDP, most=1))
    (note,) = notes_on_vector(plan, asked(tmp_path, THREE))
    assert code_of(note) == MEASURED_TOGETHER
    assert all(name in note for name in ("where cost is NULL", "count of cost", "sum of cost, less 4 each"))


# ---- what is remembered of a shape ----------------------------------------------------------------------------------

SHAPES = (
    (THREE, "", 1, {"epsilon": Fraction(1, 10)}),
    (THREE, " WHERE code > 1", 1, {"epsilon": Fraction(1, 10)}),
    (THREE, " WHERE code > 2", 1, {"epsilon": Fraction(1, 5)}),
    (THREE, " WHERE code > 2", 2, {"epsilon": Fraction(1, 10)}),
    (THREE, " GROUP BY plan", 1, {"epsilon": Fraction(1, 10)}),
    (THREE, " WHERE code > 3 GROUP BY plan", 1, {"epsilon": Fraction(1, 10)}),
    ("COUNT(*) AS n, AVG(cost) AS a", " WHERE code > 1", 1, {"epsilon": Fraction(1, 10)}),
    ("COUNT(*) AS n, SUM(cost) AS s", " WHERE code > 1", 1, {"epsilon": Fraction(1, 10)}),
)


def differing(folder: Path, budget: str) -> list[int]:
    """Return which of some questions get another quote after the others than by themselves."""
    found = []
    for place, (columns, rest, most, price) in enumerate(SHAPES):
        alone = asked(folder, columns, budget, rest=rest, most=most, **price)
        measured_vectors.CHOSEN.clear()
        for theirs, condition, rows, paid in SHAPES[:place] + SHAPES[place + 1 :]:
            asked_later(folder, theirs, budget, rest=condition, most=rows, **paid)
        if asked_later(folder, columns, budget, rest=rest, most=most, **price) != alone:
            found.append(place)
    return found


@pytest.mark.parametrize("budget", [GDP, PURE])
def test_a_question_of_a_known_shape_is_measured_as_by_itself(tmp_path: Path, budget: str) -> None:
    assert differing(tmp_path, budget) == []


def test_twin_a_shape_without_its_price_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured_vectors, "CHOSEN", _WithoutPrice())
    with pytest.raises(InvalidParameter):  # a quote that loses more than its price is none
        differing(tmp_path, GDP)


class _WithoutPrice(dict[tuple[object, ...], Any]):
    """Takes questions for alike whose measures are the same, at whatever price and of however many rows."""

    def get(self, shape: tuple[object, ...], otherwise: Any = None) -> Any:
        return super().get(_measures(shape), otherwise)

    def __setitem__(self, shape: tuple[object, ...], chosen: Any) -> None:
        super().__setitem__(_measures(shape), chosen)


def _measures(shape: Any) -> tuple[object, ...]:
    return tuple(term.measure for term in shape[0])


# ---- what is stored, and served --------------------------------------------------------------------------------------


def by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan as before there were vectors."""
    monkeypatch.setattr(measured_vectors, "with_vector", lambda priced, *_: priced)


EARLIER = Path(__file__).parents[1] / "fixtures" / "stored_numbers.tar.xz"
"""Written by the version of commit 8ef8aea5: questions of numbers that are measured as vectors now, in five ledgers."""


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("earlier")
    with tarfile.open(EARLIER) as tar:
        tar.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize("name", only([0, 1, 3], ["gdp", "pure", "zcdp", "replaced", "replaced_pure"]))
def test_what_an_earlier_version_sold_stays_free(name: str, earlier: Path) -> None:
    asked_then = [json.loads(line) for line in (earlier / name / "questions.jsonl").read_text().splitlines()]
    assert len(asked_then) > 10
    head = json.loads((earlier / name / "head.json").read_text())
    with lw.connect(earlier / name / "lapwing.toml") as session:
        for entry in asked_then:
            price: Any = {kind: Fraction(value) for kind, value in entry["price"].items()}
            answer = session.sql(entry["text"], **price)
            assert answer.stored, entry["text"]
            assert [{column: str(value) for column, value in one.items()} for one in answer.rows()] == entry["rows"]
        newest = list(session.ledger_entries())[-1]
    assert (newest.sequence, newest.hash) == (head["sequence"], head["hash"])


@pytest.mark.parametrize("kind", ["gdp", pytest.param("pure", marks=pytest.mark.long)])
def test_what_was_bought_number_by_number_stays_free(tmp_path: Path, kind: str, monkeypatch: Any) -> None:
    text = f"SELECT {THREE} FROM visits"
    with opened(tmp_path, CROWD, budget=BUDGETS[kind], most=1) as session:
        with monkeypatch.context() as patch:
            by_itself(patch)
            before = session.sql(text, epsilon=1)
        assert session.explain(text, epsilon=1).stored
        again = session.sql(text, epsilon=1)
        assert again.stored
        assert again.rows() == before.rows()
        sharper = session.sql(text, epsilon=2)
        if kind == "gdp":  # pays the difference, and keeps a noise for each
            assert sharper.cost < session.price(2)
            assert not any(isinstance(law, CombinedNoise) for law in sharper.mechanisms.values())
        else:
            assert sharper.cost == session.price(2)


@pytest.mark.parametrize("kind", ["gdp", pytest.param("zcdp", marks=pytest.mark.long)])
def test_numbers_that_are_measured_themselves_are_served_and_sharpened(
    tmp_path: Path, kind: str, monkeypatch: Any
) -> None:
    """What was bought with a price for each stays free, and a higher price sharpens it to what one price buys."""
    text, budget = "SELECT AVG(cost) AS a, VAR_POP(cost) AS v FROM visits", BUDGETS[kind] + REPLACED
    with opened(tmp_path, CROWD, budget=budget, most=1) as session:
        with monkeypatch.context() as patch:
            by_itself(patch)
            before = session.sql(text, epsilon=Fraction(1, 10))
        for price in (Fraction(1, 10), Fraction(1, 20)):
            preview, again = session.explain(text, epsilon=price), session.sql(text, epsilon=price)
            assert preview.stored
            assert again.stored
            assert again.rows() == before.rows()
        preview = session.explain(text, epsilon=Fraction(1, 5))
        sharper = session.sql(text, epsilon=Fraction(1, 5))
        assert preview.cost == sharper.cost < session.price(Fraction(1, 5))
        fresh = priced(text, catalog(tmp_path, budget=budget, most=1), epsilon=Fraction(1, 5))
        of_fresh = {term.measure: term.mechanism.standard_deviation for term in fresh.terms}
        assert all(law.standard_deviation <= of_fresh[measure] * 1.001 for measure, law in sharper.mechanisms.items())
        assert session.sql(text, epsilon=Fraction(1, 5)).stored
        assert not session.explain(text, epsilon=Fraction(3, 10)).stored, "more was asked for than was paid"


@pytest.mark.parametrize("kind", [pytest.param("gdp", marks=pytest.mark.long), "pure"])
def test_what_is_measured_itself_is_said_and_shared_out(tmp_path: Path, kind: str) -> None:
    text = "SELECT VAR_POP(cost) AS v, STDDEV_POP(age) AS d FROM visits"
    with opened(tmp_path, CROWD, budget=BUDGETS[kind] + REPLACED, most=1) as session:
        preview = session.explain(text, epsilon=1)
        assert MEASURED_TOGETHER in map(code_of, preview.notes)
        answer = session.sql(text, epsilon=1)
        assert preview.cost == answer.cost == session.price(1)
        shares = [column.price_share for column in answer.describe()]
        assert sum(cast(Any, shares)) == pytest.approx(1)


@pytest.mark.parametrize("kind", [pytest.param("gdp", marks=pytest.mark.long), "pure"])
def test_a_vector_is_served_again_and_what_follows_from_it_is_free(tmp_path: Path, kind: str) -> None:
    text = "SELECT COUNT(cost) AS n, SUM(cost) AS s, AVG(cost) AS a FROM visits"
    with opened(tmp_path, CROWD, budget=BUDGETS[kind], most=1) as session:
        answer = session.sql(text, epsilon=1)
        assert not answer.stored
        assert session.explain(text, epsilon=1).stored
        assert session.sql(text, epsilon=1).rows() == answer.rows()
        mean = session.sql("SELECT AVG(cost) AS a FROM visits", epsilon=Fraction(1, 2))
        assert mean.stored
        assert shown(mean)[0]["a"] == shown(answer)[0]["a"]
        assert session.budget().spent == session.price(1)
    with opened(tmp_path, CROWD, budget=BUDGETS[kind], most=1) as session:  # with noise beside which rounding is little
        text = text.replace("visits", "visits WHERE code > 0")
        session.sql(text, epsilon=Fraction(1, 10))
        sharper = session.sql(text, epsilon=Fraction(1, 5))
        assert not sharper.stored
        assert (sharper.cost < session.price(Fraction(1, 5))) == (kind == "gdp")


@pytest.mark.long
def test_the_price_of_an_error_is_that_of_the_vector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"SELECT {flags(4)} FROM visits"
    with opened(tmp_path, CROWD, budget=GDP, most=1) as session:
        preview = session.explain(text, error=30)
        assert MEASURED_TOGETHER in map(code_of, preview.notes)
        answer = session.sql(text, error=30)
        assert preview.cost == answer.cost
        assert all(column.half_width is not None and column.half_width <= 30 for column in preview.columns)
        assert session.sql(text, error=30).stored
        by_itself(monkeypatch)
        assert preview.cost < session.explain(f"{text} WHERE size > 0", error=30).cost


@pytest.mark.long
@pytest.mark.parametrize("kind", ["gdp", pytest.param("pure", marks=pytest.mark.long)])
def test_it_goes_with_everything_else(tmp_path: Path, kind: str) -> None:
    """Private keys, grouping sets, answers in FROM, conditions on noisy numbers, batches, HAVING and ORDER BY."""
    questions: list[tuple[str, dict[str, Any]]] = [
        (f"SELECT town, {THREE} FROM visits GROUP BY town", {"delta": 1e-5}),
        (f"SELECT plan, {THREE} FROM visits GROUP BY ROLLUP (plan)", {}),
        (f"SELECT SUM(s) AS t, MAX(a) AS b FROM (SELECT plan, {THREE} FROM visits GROUP BY plan)", {}),
        (f"SELECT {THREE} FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)", {}),
        (f"SELECT plan, {THREE} FROM visits GROUP BY plan HAVING COUNT(*) > 10 ORDER BY s DESC LIMIT 1", {}),
    ]
    budget = BUDGETS[kind].replace("100", "100000")
    with opened(tmp_path, CROWD, budget=budget, most=1) as session:
        for text, price in questions:
            preview = session.explain(text, epsilon=300, **price)
            answer = session.sql(text, epsilon=300, **price)
            assert answer.rows()
            assert answer.cost <= preview.price
            assert session.sql(text, epsilon=300, **price).stored, text
        batch = session.batch([questions[1][0], f"SELECT {THREE} FROM visits WHERE size = 5"], epsilon=200)
        assert sum(answer.cost.amount for answer in batch) <= session.price(200).amount
