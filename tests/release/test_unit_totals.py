"""contribution_bounds_per_group => AUTO: how much a unit adds to a group, found for a fifth of the price."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lapwing.mechanisms import DiscreteLaplace, RoundedGaussian
from lapwing.query.aggregates import unit_totals
from lapwing.query.aggregates.approximate_bounds import SHARE, ApproximateBounds, margin_of
from lapwing.query.aggregates.unit_totals import bound_from_counts
from lapwing.query.bind.bind import bind
from lapwing.query.expressions.expression import ColumnReference
from lapwing.query.expressions.magnitudes import magnitudes_of
from lapwing.query.expressions.types import Fixed
from lapwing.query.plan.plan import Plan
from lapwing.query.plan.search import Search
from lapwing.query.pricing import calibrate as calibrate_module
from lapwing.query.pricing import joint_price, quote
from lapwing.query.pricing.calibrate import calibrate
from lapwing.query.pricing.quote import Quote
from lapwing.query.relations.per_unit import FirstGroups, FirstRows, PerUnit
from lapwing.release.cells import cells_of, exact_values
from lapwing.session import Session
from tests.support.effort import one_in, only
from tests.support.refusals import refused_as
from tests.support.release.found_laws import EPSILON, laws, loss
from tests.support.release.small import BUDGETS, GDP, catalog, exact, opened, row, shown

AUTO = "contribution_bounds_per_group => AUTO"
PEOPLE = [row(n // 3, plan="ab"[n // 3 % 2], town=["Ulm", "Rom"][n % 2], age=n % 3) for n in range(3000)]
COUNT = f"SELECT COUNT(*, {AUTO}) AS n FROM visits"
BY_PLAN = f"SELECT plan, SUM(age, {AUTO}) AS s FROM visits GROUP BY plan"
MANY = 64
"""Rows that a person may have; three are there."""


@pytest.fixture(params=one_in(3, BUDGETS))
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Session]:
    with opened(tmp_path, PEOPLE, budget=BUDGETS[request.param], most=MANY) as found:
        yield found


def spent(session: Session) -> Fraction:
    return session.budget().spent.amount


# ---- what is found ---------------------------------------------------------------------------------------------------


def test_the_bound_follows_the_data_and_not_the_limit(session: Session) -> None:
    """A class of 1,000 people, noise of at most 5: it is not found with a probability below e^-40."""
    answer = session.sql(COUNT, epsilon=10)
    assert "Lapwing chose 4 as the most" in answer.notes[-1]
    assert session.explain(COUNT, epsilon=10).measures[0].sensitivity == 4
    ((low,), (high,)) = answer.interval(1 - 1e-9)["n"]
    assert low <= 3000 <= high
    assert high - low < 200


@pytest.mark.long
def test_the_noise_is_that_of_the_bound_in_numbers(session: Session) -> None:
    answer = session.sql(COUNT, epsilon=10)
    (written,) = session.sql(COUNT.replace("AUTO", "(0, 4)"), epsilon=7).rows()
    assert written == answer.rows()[0]
    assert len(session.budget().history) == 2


@pytest.mark.long
def test_one_bound_serves_all_groups(session: Session) -> None:
    answer = session.sql(BY_PLAN, epsilon=20)
    ends = answer.interval(1 - 1e-9)["s"]
    for found, low, high in zip(shown(answer), *ends, strict=True):
        assert low <= sum(person["age"] for person in PEOPLE if person["plan"] == found["plan"]) <= high


@pytest.mark.parametrize(
    ("aggregate", "low", "high"), [("age - 3", -8, 0), ("age - 1", -2, 2), ("age + 1", 0, 8), ("0 * age", None, None)]
)
def test_signs(aggregate: str, low: int | None, high: int | None, tmp_path: Path) -> None:
    """Values of both signs are limited on both sides, others on one."""
    described = catalog(tmp_path, most=3)
    plan = bind(f"SELECT SUM({aggregate}, {AUTO}) AS s FROM visits", described)
    if high is None:
        assert not plan.searches
        assert not plan.unsettled
        return
    bound = Fraction(max(-(low or 0), high))
    found = bind(
        f"SELECT SUM({aggregate}, {AUTO}) AS s FROM visits",
        described,
        bounds={plan.searches[0].bounded: (Fraction(0), bound)},
    )
    (measure,) = found.question.measures
    assert measure.clamp == (low, high)


@pytest.mark.long
def test_several_aggregates_share_what_the_searches_cost(session: Session) -> None:
    question = f"SELECT COUNT(*, {AUTO}) AS n, SUM(age, {AUTO}) AS s, SUM(age, {AUTO}) / COUNT(*, {AUTO}) FROM visits"
    answer = session.sql(question, epsilon=40)
    first, second, last = session.budget().history
    assert first.loss == second.loss
    assert last.loss.amount > 7 * first.loss.amount
    assert len(answer.notes) >= 2
    assert session.sql(question, epsilon=40).cost.amount == 0


def test_grouping_sets_take_the_bound_of_what_they_share(tmp_path: Path) -> None:
    plan = bind(f"SELECT plan, COUNT(*, {AUTO}) AS n FROM visits GROUP BY ROLLUP (plan)", catalog(tmp_path))
    (search,) = plan.searches
    relation = search.question.selection.relation
    assert isinstance(relation, PerUnit)
    assert relation.groups == ()


@pytest.mark.long
def test_private_keys(tmp_path: Path) -> None:
    with opened(tmp_path, PEOPLE, budget=GDP) as session:
        answer = session.sql(f"SELECT town, COUNT(*, {AUTO}) AS n FROM visits GROUP BY town", epsilon=20, delta=1e-4)
        assert [found["town"] for found in shown(answer)] == ["Rom", "Ulm"]
        assert sum(charge.delta for charge in session.budget().history) == Fraction(1, 10**4)


def test_few_units_are_a_guess_and_said_to_be(tmp_path: Path) -> None:
    with opened(tmp_path, [row(1)], most=MANY) as session:
        assert "That is a guess" in session.sql(COUNT, epsilon=0.1).notes[-1]


def test_rows_as_units_are_refused(tmp_path: Path) -> None:
    with opened(tmp_path, PEOPLE[:4], unit="row") as session, refused_as("inapplicable_option"):
        session.sql(COUNT, epsilon=1)


# ---- which class -----------------------------------------------------------------------------------------------------

LADDER = magnitudes_of(ColumnReference(name="x", type=Fixed(step=Fraction(1), low=0, high=1 << 40)))
LAWS = [DiscreteLaplace(scale=Fraction(10)), RoundedGaussian(sigma=Fraction(10))]


@pytest.mark.parametrize("noise", LAWS, ids=["laplace", "gaussian"])
def test_the_search_climbs_from_the_class_that_counts_most(noise: Any) -> None:
    counts = [0] * len(LADDER.edges)
    counts[0], counts[3], counts[5] = 10**6, 500, 200
    found = bound_from_counts(counts, noise, LADDER)
    assert found == ApproximateBounds(bounds=(Fraction(0), Fraction(16)), beyond=margin_of(noise, LADDER), clear=True)
    counts[7] = unit_totals._explained(noise, 2)
    assert bound_from_counts(counts, noise, LADDER).bounds[1] == 16
    counts[7] += 1
    assert bound_from_counts(counts, noise, LADDER).bounds[1] == 64
    counts[8] = unit_totals._explained(noise, 1) + 1  # near what is believed, less is believed
    assert bound_from_counts(counts, noise, LADDER).bounds[1] == 128


@pytest.mark.parametrize("noise", LAWS, ids=["laplace", "gaussian"])
def test_a_class_far_above_is_believed_less_readily(noise: Any) -> None:
    thresholds = [unit_totals._explained(noise, doublings) for doublings in range(1, 90)]
    assert thresholds == sorted(thresholds)
    for doublings in (1, 5, 20):
        within = noise.coverage(unit_totals._explained(noise, doublings)).lower
        assert (1 - within) / 2 <= Fraction(1, unit_totals.DOUBT << doublings)


# ---- the question that is asked first --------------------------------------------------------------------------------


def searched(text: str, folder: Path, **catalogued: Any) -> Search:
    (search,) = bind(text, catalog(folder, **catalogued)).searches
    return search


@pytest.mark.parametrize(
    ("question", "most"),
    [
        (COUNT, 1),
        (f"{COUNT} WHERE age > 0", 1),
        (BY_PLAN, 2),
        (f"SELECT town, COUNT(*, {AUTO}) AS n FROM visits GROUP BY town", 5),
        (f"SELECT plan, size, COUNT(*, {AUTO}) AS n FROM visits GROUP BY plan, size", 5),
        (f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1) {BY_PLAN[7:]}", 1),
        (f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 1) {BY_PLAN[7:]}", 1),
    ],
)
def test_a_unit_counts_once_for_each_of_its_groups(question: str, most: int, tmp_path: Path) -> None:
    search = searched(question, tmp_path, most=5)
    assert search.question.selection.rows_per_unit == most


def moved(question: str, folder: Path, people: Sequence[dict[str, Any]], person: int, most: int) -> tuple[int, int]:
    """Return how far one person moves the histogram, and how far it may."""
    described = catalog(folder, most=most)
    (search,) = bind(question, described).searches
    priced = calibrate(bind(question, described), described.budget, epsilon=1).searches[0]
    counts = []
    for rows in (people, [one for one in people if one["person"] != person]):
        found = exact(search.question, described, rows)
        (values,) = exact_values(search.question, found.cells, cells_of(search.question), found.leaves)
        counts.append(values[0])
    return int(abs(counts[0] - counts[1]).sum()), int(priced.terms[0].candidate.sensitivity.l1)


HEAVY = [*PEOPLE[:30], *(row(99, plan="ab"[n % 2], size=5 * (n % 3), age=n % 4 - 1) for n in range(6))]


@pytest.mark.parametrize(
    ("question", "far"),
    only((1, 2), [
        (COUNT, 1),
        (BY_PLAN, 2),
        (f"SELECT plan, size, COUNT(*, {AUTO}) AS n FROM visits GROUP BY plan, size", 6),
        (f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 2) plan, size, COUNT(*, {AUTO}) AS n "
         "FROM visits GROUP BY plan, size", 2),
    ], many=True),
)  # fmt: skip
def test_nobody_moves_the_histogram_further_than_is_paid_for(question: str, far: int, tmp_path: Path) -> None:
    assert moved(question, tmp_path, HEAVY, 99, most=6) == (far, far)


def test_a_histogram_of_more_groups_than_are_paid_for_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit said, but not kept: the rows of `PerUnit` itself, under the sensitivity of fewer."""
    monkeypatch.setattr(unit_totals, "FirstRows", lambda source, most: source.relation)
    monkeypatch.setattr(PerUnit, "rows_per_unit", property(lambda _: 1))
    question = f"SELECT plan, size, COUNT(*, {AUTO}) AS n FROM visits GROUP BY plan, size"
    far, paid = moved(question, tmp_path, HEAVY, 99, most=6)
    assert far > paid


def test_the_limit_on_groups_is_kept_where_the_relation_has_none(tmp_path: Path) -> None:
    kinds = {text: type(searched(text, tmp_path, most=5).question.selection.relation) for text in (COUNT, BY_PLAN)}
    assert kinds == {COUNT: PerUnit, BY_PLAN: FirstRows}
    limited = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1) {BY_PLAN[7:]}"
    relation = searched(limited, tmp_path, most=5).question.selection.relation
    assert isinstance(relation, PerUnit)
    assert isinstance(relation.source.relation, FirstGroups)


# ---- what it costs ---------------------------------------------------------------------------------------------------


def is_paid_as_promised(session: Session) -> bool:
    """Tell whether the charges add up to the price, a fifth of it for the search, which comes first."""
    answer = session.sql(COUNT, epsilon=1)
    price = session.price(1).amount
    search, question = session.budget().history
    grain = Fraction(1, 10**22)
    return (
        "magnitude" in search.question
        and answer.cost.amount <= spent(session) <= price + grain
        and abs(spent(session) - price) < grain
        and abs(search.loss.amount - SHARE * price) < grain
        and abs(question.loss.amount - (1 - SHARE) * price) < grain
    )


def test_search_and_answer_cost_the_price(session: Session) -> None:
    before = session.explain(COUNT, epsilon=1)
    assert before.columns[0].half_width is None
    assert [measure.measure for measure in before.measures] == ["bounds of count of rows", "n"]
    assert "for 20 % of the cost" in before.notes[-2]
    assert is_paid_as_promised(session)
    assert session.explain(COUNT, epsilon=1).stored


def test_an_answer_that_is_not_paid_for_is_found(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole price for the search, and the answer on top of it."""
    with_searches = joint_price.with_searches

    def free(plan: Plan, bounds: Any, loss: Any, budget: Any, delta: Any) -> Quote:
        whole = quote.at_loss(plan, bounds, loss, budget, delta)
        return replace(whole, searches=with_searches(plan, bounds, loss, budget, delta).searches)

    monkeypatch.setattr(calibrate_module, "with_searches", free)
    assert not is_paid_as_promised(session)


# ---- the law of the whole --------------------------------------------------------------------------------------------


def test_bound_and_sum_together_lose_the_price(tmp_path: Path) -> None:
    one, other = laws(tmp_path, AUTO, bound_from_counts)
    assert abs(sum(one.values()) - 1) < 1e-9
    assert EPSILON / 2 < loss(one, other) <= EPSILON + 1e-6


@pytest.mark.parametrize(
    "bug", one_in(2, [{"counted": False}, {"noise_of": 1}]), ids=["no noise in the search", "too little"]
)
def test_bugs_are_found(bug: dict[str, Any], tmp_path: Path) -> None:
    one, other = laws(tmp_path, AUTO, bound_from_counts, **bug)
    assert loss(one, other) > EPSILON + 1


@pytest.mark.long
def test_a_clamp_that_is_missing_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise for the bound that was found, and a sum without it."""
    monkeypatch.setattr("lapwing.engines.duckdb.clamped_sums.clamp", lambda value, *_: value)
    one, other = laws(tmp_path, AUTO, bound_from_counts)
    assert loss(one, other) > EPSILON + 1
