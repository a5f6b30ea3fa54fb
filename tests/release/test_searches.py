"""contribution_bounds_per_row => AUTO: bounds of a value, found for a fifth of the price."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.answer.notes import BOUNDS_FOUND, code_of
from lapwing.engines import DuckDB
from lapwing.ledger.ledger import Ledger
from lapwing.mechanisms import RoundedGaussian
from lapwing.query.aggregates.approximate_bounds import SHARE, ApproximateBounds, bounds_from_counts, margin_of
from lapwing.query.bind.bind import bind
from lapwing.query.derivation.derived import measures_of
from lapwing.query.expressions.expression import ColumnReference
from lapwing.query.expressions.magnitudes import Magnitudes, magnitudes_of
from lapwing.query.expressions.types import Fixed, Real
from lapwing.query.pricing import calibrate as calibrate_module
from lapwing.query.pricing import joint_price, quote
from lapwing.query.pricing.calibrate import calibrate
from lapwing.query.pricing.joint_price import calibrate_found
from lapwing.query.pricing.quote import Quote
from lapwing.release import searches
from lapwing.release.cells import cells_of, exact_values
from lapwing.session import Session
from tests.support.effort import one_in, only
from tests.support.refusals import refused_as
from tests.support.release.found_laws import EPSILON, laws, loss
from tests.support.release.small import BUDGETS, GDP, PURE, catalog, exact, opened, row, shown

AUTO = "contribution_bounds_per_row => AUTO"
PEOPLE = [row(n, plan="ab"[n % 2], town=["Ulm", "Rom"][n % 2], age=n % 3, code=3 * (n % 60)) for n in range(600)]
TOTAL = sum(person["code"] for person in PEOPLE)
SUM = f"SELECT SUM(code, {AUTO}) AS s FROM visits"
AVERAGE = f"SELECT plan, AVG(code, {AUTO}) AS a FROM visits GROUP BY plan"


@pytest.fixture(params=one_in(3, BUDGETS))
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Session]:
    with opened(tmp_path, PEOPLE, budget=BUDGETS[request.param]) as found:
        yield found


def spent(session: Session) -> Fraction:
    return session.budget().spent.amount


def small_budget(amount: int) -> str:
    return PURE.replace("100", str(amount))


# ---- what is found ---------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_column_without_bounds_is_summed(session: Session) -> None:
    with refused_as("unbounded", saying="code"):
        session.sql("SELECT SUM(code) AS s FROM visits", epsilon=10)
    answer = session.sql(SUM, epsilon=10)
    assert "code: Lapwing chose the bounds 0 and 256" in answer.notes[-1]
    ((low,), (high,)) = answer.interval(1 - 1e-9)["s"]
    assert low <= TOTAL <= high
    assert high - low < TOTAL / 2


@pytest.mark.long
def test_the_noise_is_that_of_the_bounds_in_numbers(session: Session) -> None:
    answer = session.sql(SUM, epsilon=3)
    again = session.explain(SUM.replace("AUTO", "(0, 256)"), epsilon=3)
    (found,) = answer.describe()[0].measures
    (alone,) = again.measures
    rest = 1 / (1 - SHARE) if session.budget().total.kind == "pure" else (1 / (1 - SHARE)) ** Fraction(1, 2)
    assert found.scale == pytest.approx(alone.scale * float(rest), rel=1e-3)


def test_found_bounds_mean_what_numbers_mean(session: Session) -> None:
    """The question after the search is the question with numbers: whoever asks that gets its answer."""
    answer = session.sql(SUM, epsilon=10)
    (written,) = session.sql(SUM.replace("AUTO", "(0, 256)"), epsilon=7).rows()
    assert written == answer.rows()[0]
    assert len(session.budget().history) == 2


@pytest.mark.long
def test_means_of_groups(session: Session) -> None:
    answer = session.sql(AVERAGE, epsilon=20)
    truth = {plan: np.mean([p["code"] for p in PEOPLE if p["plan"] == plan]) for plan in "ab"}
    ends = answer.interval(1 - 1e-9)["a"]
    for found, low, high in zip(shown(answer), *ends, strict=True):
        assert low <= truth[found["plan"]] <= high
        assert high - low < 120


@pytest.mark.parametrize(
    "aggregate",
    only(
        [0],
        [
            f"STDDEV(code, {AUTO})",
            f"VAR_POP(code, {AUTO})",
            f"CORR(code, age, {AUTO})",
            f"SUM(code, {AUTO}) FILTER (WHERE plan = 'a')",
            f"SUM(cost / age, {AUTO})",
            f"SUM(size, {AUTO}, contribution_bounds_per_group => RACE) + COUNT(*)",
            f"SUM(code, {AUTO}, contribution_bounds_per_group => (0, 1000))",
            f"SUM(-age, {AUTO}) / SUM(code, {AUTO})",
        ],
    ),
)
def test_every_aggregate_that_takes_bounds_finds_them(aggregate: str, session: Session) -> None:
    question = f"SELECT plan, {aggregate} AS x FROM visits GROUP BY plan HAVING SUM(code, {AUTO}) > -1e30"
    before = session.explain(question, epsilon=20)
    answer = session.sql(question, epsilon=20)
    assert len(answer) == 2
    assert answer.cost.amount <= before.price.amount
    after = session.explain(question, epsilon=20)
    assert after.stored
    assert session.sql(question, epsilon=20).rows() == answer.rows()


@pytest.mark.long
def test_bounds_reach_to_both_sides_of_nothing(tmp_path: Path) -> None:
    people = [row(n, code=(-1) ** n * (5 if n % 2 else 1000)) for n in range(600)]
    with opened(tmp_path, people) as session:
        assert "bounds -8 and 1,024" in session.sql(SUM, epsilon=20).notes[-1]
        flipped = SUM.replace("code", "CASE WHEN code > 0 THEN -8 ELSE 3 END")
        assert "bounds -8 and 3" in session.sql(flipped, epsilon=20).notes[-1]


def test_of_what_is_nothing_no_bounds_are_found(tmp_path: Path) -> None:
    with opened(tmp_path, PEOPLE) as session:
        preview = session.explain(SUM.replace("code", "0 * age"), epsilon=1)
        assert [measure.measure for measure in preview.measures] == ["s"]
        assert preview.columns[0].half_width is not None
        session.sql(SUM.replace("code", "0 * age"), epsilon=1)
        assert len(session.budget().history) == 1


def test_too_few_rows_are_a_guess_and_said_to_be(tmp_path: Path) -> None:
    with opened(tmp_path, [row(1)]) as session:
        answer = session.sql(SUM, epsilon=0.1)
        assert "are a guess" in answer.notes[-1]


# ---- what it costs ---------------------------------------------------------------------------------------------------


def is_paid_as_promised(session: Session) -> bool:
    """Tell whether the charges add up to the price, a fifth of it for the search, which comes first."""
    answer = session.sql(SUM, epsilon=1)
    price = session.price(1).amount
    search, question = session.budget().history
    assert "magnitude" in search.question
    grain = Fraction(1, 10**22)
    return (
        answer.cost.amount <= spent(session) <= price + grain
        and abs(spent(session) - price) < grain
        and abs(search.loss.amount - SHARE * price) < grain
        and abs(question.loss.amount - (1 - SHARE) * price) < grain
    )


def test_search_and_answer_cost_the_price(session: Session) -> None:
    assert is_paid_as_promised(session)
    assert session.sql(SUM, epsilon=1).cost.amount == 0
    assert session.sql(SUM, epsilon=0.5).stored


def test_a_search_that_is_not_paid_for_is_found(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole price for the question, and the search on top of it."""
    with_searches = joint_price.with_searches

    def free(plan: Any, bounds: Any, loss: Any, budget: Any, delta: Any) -> Quote:
        whole = quote.at_loss(plan, bounds, loss, budget, delta)
        return replace(whole, searches=with_searches(plan, bounds, loss, budget, delta).searches)

    monkeypatch.setattr(calibrate_module, "with_searches", free)
    assert not is_paid_as_promised(session)


def test_each_charge_precedes_its_reading(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    charge_all, run = Ledger.charge_all, DuckDB.run

    def charging(self: Ledger, requests: Any, *more: Any) -> Any:
        events.extend(f"charge {'search' if 'magnitude' in r.question else 'sum'}" for r in requests)
        return charge_all(self, requests)

    def running(self: DuckDB, question: Any, digests: Any) -> Any:
        events.append(f"run {'search' if 'magnitude' in str(question) else 'sum'}")
        return run(self, question, digests)

    monkeypatch.setattr(Ledger, "charge_all", charging)
    monkeypatch.setattr(DuckDB, "run", running)
    session.sql(SUM, epsilon=1)
    assert events == ["charge search", "run search", "charge sum", "run sum"]


def test_nothing_is_charged_unless_both_fit(tmp_path: Path) -> None:
    with opened(tmp_path, PEOPLE, budget=small_budget(1)) as session:
        with pytest.raises(lw.BudgetExhausted, match="110 % of the budget"):
            session.sql(SUM, epsilon=1.1)
        assert spent(session) == 0
        session.sql(SUM, epsilon=1)
        assert spent(session) == 1
        assert session.sql(SUM, epsilon=1).stored
        with pytest.raises(lw.BudgetExhausted):
            session.sql(AVERAGE.replace("code", "age"), epsilon=0.1)


@pytest.mark.long
def test_who_is_overtaken_hears_that_the_search_was_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between search and question somebody else spends the rest."""
    with opened(tmp_path, PEOPLE, budget=small_budget(1)) as session:
        findings = searches.findings

        def overtaken(*arguments: Any) -> Any:
            session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.5)
            return findings(*arguments)

        monkeypatch.setattr("lapwing.release.searches.findings", overtaken)
        with pytest.raises(lw.BudgetExhausted, match="The bounds were found and charged, and stay free"):
            session.sql(SUM, epsilon=0.8)
        assert spent(session) == Fraction(66, 100)
        monkeypatch.undo()
        assert session.explain(SUM, epsilon=0.4).price.amount == Fraction(32, 100)


@pytest.mark.parametrize(
    "error", [lw.QueryRefused("too wide", remedy="Bound it.", position=(1, 8)), lw.InvalidParameter("too small")]
)
def test_who_is_refused_with_found_bounds_hears_that_the_search_was_charged(
    error: lw.LapwingError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(*_arguments: Any) -> Any:
        raise error

    with opened(tmp_path, PEOPLE, budget=small_budget(1)) as session:
        monkeypatch.setattr(searches, "bind", refusing)
        with pytest.raises(type(error), match="The bounds were found and charged, and stay free") as first:
            session.sql(SUM, epsilon=0.8)
        assert spent(session) == Fraction(16, 100)
        assert str(error).removesuffix(" Bound it.").removesuffix(".") in str(first.value)
        assert getattr(first.value, "position", None) == getattr(error, "position", None)
        with pytest.raises(type(error)) as again:
            session.sql(SUM, epsilon=0.8)
        assert str(again.value) == str(error), "nothing was charged this time"


@pytest.mark.long
def test_a_sharper_question_finds_its_bounds_anew_and_refines_the_rest(tmp_path: Path) -> None:
    with opened(tmp_path, PEOPLE, budget=GDP) as session:
        first, second = session.sql(SUM, epsilon=10), session.sql(SUM, epsilon=12)
        assert first.notes[-1].split(". ")[0] == second.notes[-2].split(". ")[0]  # the last one says that it is refined
        assert abs(spent(session) - session.price(12).amount - SHARE * session.price(10).amount) < Fraction(1, 10)
        assert second.describe()[0].half_width < first.describe()[0].half_width  # type: ignore[operator]


@pytest.mark.long
def test_other_groups_of_the_same_rows_share_a_search(session: Session) -> None:
    session.sql(SUM, epsilon=10)
    answer = session.sql(AVERAGE, epsilon=10)
    assert abs(answer.cost.amount - (1 - SHARE) * session.price(10).amount) < Fraction(1, 10**20)
    assert len(session.budget().history) == 3


@pytest.mark.long
def test_a_batch_searches_once_and_costs_its_price(session: Session) -> None:
    literal = SUM.replace("AUTO", "(0, 256)")
    answers = session.batch([SUM, AVERAGE, literal, "SELECT COUNT(*) AS n FROM visits"], epsilon=30)
    assert sum(answer.cost.amount for answer in answers) == spent(session) <= session.price(30).amount
    assert sum("magnitude" in charge.question for charge in session.budget().history) == 1
    assert BOUNDS_FOUND in map(code_of, answers[0].notes)
    assert answers[0].rows()[0] == answers[2].rows()[0]
    ((low,), (high,)) = answers[0].interval(1 - 1e-9)["s"]
    assert low <= TOTAL <= high


# ---- what is said before ---------------------------------------------------------------------------------------------


@pytest.mark.long
def test_explain_promises_nothing_that_it_cannot_know(session: Session) -> None:
    before = session.explain(SUM, epsilon=10)
    assert before.columns[0].half_width is None
    assert before.cost == before.price
    assert abs(before.price.amount - session.price(10).amount) < Fraction(1, 10**20)
    assert [measure.measure for measure in before.measures] == ["bounds of code", "s"]
    assert "for 20 % of the cost" in before.notes[-2]
    assert code_of(before.notes[-1]) == BOUNDS_FOUND
    assert spent(session) == 0
    session.sql(SUM, epsilon=10)
    after = session.explain(SUM, epsilon=10)
    assert after.stored
    assert after.columns[0].half_width is not None
    other = session.explain(AVERAGE, epsilon=10)
    assert [measure.measure for measure in other.measures] == ["count of a", "sum of a"]
    assert code_of(other.notes[-1]) == BOUNDS_FOUND


@pytest.mark.parametrize(
    ("question", "reason"),
    one_in(
        2,
        [
            (f"SELECT COUNT(*, {AUTO}) AS n FROM visits", "inapplicable_option"),
            (f"SELECT SUM(town, {AUTO}) AS n FROM visits", "wrong_type"),
            (f"SELECT MEDIAN(code, {AUTO}) AS n FROM visits", "invalid_bounds"),
            (f"SELECT SUM(code, {AUTO}, contribution_bounds_per_group => RACE) AS n FROM visits", "needs_nonnegative"),
            (
                f"SELECT SUM(code, {AUTO}, contribution_bounds_per_group => AUTO) AS n FROM visits",
                "bounds_not_searchable",
            ),
            (f"SELECT SUM(code, {AUTO}, epsilon => 1) AS n FROM visits", "shares_exceed_cost"),
        ],
        many=True,
    ),
)
def test_what_finds_no_bounds_is_refused(question: str, reason: str, tmp_path: Path) -> None:
    with opened(tmp_path, PEOPLE[:4]) as session, refused_as(reason):
        session.sql(question, epsilon=1)


def test_an_error_has_no_price(tmp_path: Path) -> None:
    with opened(tmp_path, PEOPLE[:4]) as session, refused_as("error_not_public"):
        session.sql(SUM, error=10)


# ---- beside everything else ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", one_in(3, BUDGETS.values()))
def test_private_keys(tmp_path: Path, budget: str) -> None:
    with opened(tmp_path, PEOPLE, budget=budget) as session:
        answer = session.sql(f"SELECT town, SUM(code, {AUTO}) AS s FROM visits GROUP BY town", epsilon=20, delta=1e-4)
        assert [found["town"] for found in shown(answer)] == ["Rom", "Ulm"]
        assert len(session.budget().history) == 2
        assert sum(charge.delta for charge in session.budget().history) == Fraction(1, 10**4)


@pytest.mark.long
def test_grouping_sets(session: Session) -> None:
    answer = session.sql(f"SELECT plan, SUM(code, {AUTO}) AS s FROM visits GROUP BY ROLLUP (plan)", epsilon=20)
    assert [found["plan"] for found in shown(answer)] == ["a", "b", None]


@pytest.mark.long
def test_one_unit_for_another(tmp_path: Path) -> None:
    budget = 'epsilon = 100\ndelta = 1e-6\nneighbouring = "replace_one"'
    with opened(tmp_path, PEOPLE, budget=budget) as session:
        alone = session.explain(SUM, epsilon=20).measures[0]
        assert alone.sensitivity == pytest.approx(2 * 2**0.5)
        assert code_of(session.sql(SUM, epsilon=20).notes[-1]) == BOUNDS_FOUND


@pytest.mark.long
def test_rows_as_units(tmp_path: Path) -> None:
    with opened(tmp_path, PEOPLE, unit="row") as session:
        assert session.explain(SUM, epsilon=20).measures[0].sensitivity == 1
        assert code_of(session.sql(SUM, epsilon=20).notes[-1]) == BOUNDS_FOUND


@pytest.mark.long
def test_parts(tmp_path: Path) -> None:
    with opened(tmp_path, PEOPLE, part="plan") as session:
        session.sql(f"{SUM} WHERE plan = 'a'", epsilon=20)
        assert {charge.parts for charge in session.budget().history} == {("a",)}


# ---- the candidates --------------------------------------------------------------------------------------------------

KINDS: list[Fixed | Real] = [
    Fixed(step=Fraction(1), low=None, high=None),
    Fixed(step=Fraction(1, 100), low=0, high=500_000),
    Fixed(step=Fraction(1), low=-7, high=-2),
    Fixed(step=Fraction(1), low=1900, high=2100),
    Fixed(step=Fraction(1, 10**6), low=-(2**110), high=2**110),
    Real(low=None, high=None),
    Real(low=Fraction(0), high=Fraction(5000)),
    Real(low=-(Fraction(2) ** -40), high=Fraction(2) ** 90),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_candidates_ascend_through_nothing_to_the_declared_bounds(kind: Fixed | Real) -> None:
    magnitudes = magnitudes_of(ColumnReference(name="x", type=kind))
    edges = magnitudes.edges
    assert list(edges) == sorted(set(edges))
    assert 0 in edges
    low, high = kind.interval()
    for end, widest in zip((low, high), magnitudes.widest, strict=True):
        if end is not None and isinstance(kind, Fixed):
            assert widest in (end, 0)
        if end is not None:
            assert abs(widest) >= abs(end) or widest == 0
    for below, above in pairwise(edges):
        assert below <= 0 <= above or Fraction(1, 2) <= abs(below / above) <= 2 or 0 in (below, above)
    for classes in [[], [0], [len(edges) - 1], list(range(len(edges)))]:
        bounds = magnitudes.reaching(classes)
        assert bounds[0] <= 0 <= bounds[1]
        assert bounds[0] < bounds[1]


@pytest.mark.parametrize(
    ("value", "aggregate"),
    only(
        [0],
        product(
            ["code", "cost", "cost / age", "age - 1", "TRY_CAST(town AS DOUBLE)", "age * 0.0001"],
            ["SUM({})", "AVG({})", "STDDEV({})", "CORR({}, {})"],
        ),
        many=True,
    ),
)
def test_whatever_is_found_can_be_asked(aggregate: str, value: str, tmp_path: Path) -> None:
    """Once the search is paid, its question is never refused."""
    described = catalog(tmp_path)
    question = f"SELECT {aggregate.format(*[value] * 2)[:-1]}, {AUTO}) AS x FROM visits"
    plan = bind(question, described)
    (search,) = plan.searches
    edges = search.magnitudes.edges
    origin = edges.index(0)
    for low, high in product({0, origin // 2, origin}, range(origin, len(edges), 7)):
        bounds = search.magnitudes.reaching([low, high])
        found = bind(question, described, bounds={search.measure: bounds})
        priced = calibrate_found(found, described.budget, calibrate(plan, described.budget, epsilon=1))
        assert len(priced.terms) == len(measures_of(found.outputs[0].value))
        assert not found.unsettled
        assert found.searches == plan.searches


@pytest.mark.long
def test_the_class_of_a_value_is_that_of_its_nearest_bound(tmp_path: Path) -> None:
    codes = [0, 1, -1, 2, 3, 4, 5, -4, -5, 2**52, 2**52 - 1, -(2**62), 2**62, None, 1000]
    costs = [0.0, 0.5, 1.0, 1.5, 2.0, 8.0, 4.5, None]
    people = [row(n, code=code, cost=costs[n % len(costs)]) for n, code in enumerate(codes)]
    described = catalog(tmp_path)
    for name in ("code", "cost", "cost / 3"):
        plan = bind(f"SELECT SUM({name}, {AUTO}) AS s FROM visits", described)
        (search,) = plan.searches
        found = exact(search.question, described, people)
        (counts,) = exact_values(search.question, found.cells, cells_of(search.question), found.leaves)
        expected = [0] * len(search.magnitudes.edges)
        for person in people:
            value = person[name[:4]]
            if value is not None:
                expected[_nearest(value / 3 if "/" in name else value, search.magnitudes)] += 1
        assert counts.tolist() == [expected]


def _nearest(value: float, magnitudes: Magnitudes) -> int:
    """Return the place of the edge nearest to a value on the side away from 0, or the outermost."""
    edges = magnitudes.edges
    outside = [i for i, edge in enumerate(edges) if (value >= 0 and edge >= value) or (value < 0 and edge <= value)]
    if not outside:
        return 0 if value < 0 else len(edges) - 1
    return min(outside, key=lambda i: abs(edges[i]))


def test_the_margin_holds_for_all_classes_at_once() -> None:
    magnitudes = magnitudes_of(ColumnReference(name="x", type=KINDS[0]))
    noise = RoundedGaussian(sigma=Fraction(40))
    margin = margin_of(noise, magnitudes)
    assert 3.3 * 40 < margin < 3.8 * 40
    counts = [0] * len(magnitudes.edges)
    counts[60] = margin
    assert not bounds_from_counts(counts, noise, magnitudes).clear
    counts[60] += 1
    assert bounds_from_counts(counts, noise, magnitudes) == ApproximateBounds(
        bounds=magnitudes.reaching([60]), beyond=2 * margin, clear=True
    )


# ---- the law of the whole --------------------------------------------------------------------------------------------


def test_bounds_and_sum_together_lose_the_price(tmp_path: Path) -> None:
    one, other = laws(tmp_path, AUTO, bounds_from_counts)
    assert abs(sum(one.values()) - 1) < 1e-9
    assert EPSILON / 2 < loss(one, other) <= EPSILON + 1e-6


def test_bounds_from_exact_counts_are_found(tmp_path: Path) -> None:
    one, other = laws(tmp_path, AUTO, bounds_from_counts, counted=False)
    assert loss(one, other) > EPSILON + 1


@pytest.mark.long
def test_noise_of_a_smaller_bound_than_found_is_found(tmp_path: Path) -> None:
    one, other = laws(tmp_path, AUTO, bounds_from_counts, noise_of=1)
    assert loss(one, other) > EPSILON + 1
