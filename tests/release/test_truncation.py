"""contribution_bounds_per_group => AUTO where different units meet: the level is chosen, then the question is asked."""

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.answer.notes import BOUNDS_FOUND, code_of
from lapwing.errors import LedgerFault
from lapwing.exact.entropy import Entropy
from lapwing.mechanisms import GeneralisedExponential
from lapwing.query.aggregates import truncation
from lapwing.query.aggregates.truncation import THRESHOLD_SHARE, threshold_from_choice
from lapwing.query.bind.bind import bind
from lapwing.query.expressions.magnitudes import ValueBounds
from lapwing.query.plan.search import Search
from lapwing.query.pricing import quote
from lapwing.query.pricing.calibrate import calibrate
from lapwing.query.pricing.quote import Quote
from lapwing.query.sensitivity.stability import SensitivityBound, of_question
from lapwing.release import payload, restoring
from lapwing.release.payload import AnswerContent, ChosenMeasure
from tests.support.effort import one_in
from tests.support.refusals import refused_as
from tests.support.release.found_laws import EPSILON, Values, laws_of, loss
from tests.support.release.small import BUDGETS, PURE, Row, catalog, opened, row, shown

AUTO = "contribution_bounds_per_group => AUTO"
PAIRS = f"SELECT COUNT(*, {AUTO}) AS n FROM visits a JOIN visits b ON a.code = b.code AND a.person <> b.person"
BY_PLAN = PAIRS.replace("SELECT", "SELECT a.plan,") + " GROUP BY a.plan"
PEOPLE = [row(n, code=n // 5, plan="ab"[n % 2]) for n in range(5_000)]  # each meets the four others of a code


@pytest.fixture(params=one_in(3, BUDGETS))
def session(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[lw.Session]:
    with opened(tmp_path, PEOPLE, budget=BUDGETS[request.param]) as session:
        yield session


@pytest.mark.long
def test_the_error_is_that_of_a_level_near_the_best(session: lw.Session) -> None:
    """20,000 ordered pairs, 8 a person: τ of 8 to 64 cut nothing, and have half-widths of 2 to 40 at this price.

    A level of 4 lacks half of them, 10,000, and 128 is 8 doublings of the unit above what is needed: its handicap
    beyond that of 8 is 24/7·120 (in a pure ledger, ε = 18·2/5), but for chances of 10^-9.
    """
    answer = session.sql(PAIRS, epsilon=18)
    (row,) = shown(answer)
    assert abs(row["n"] - 20_000) < 200
    assert BOUNDS_FOUND in map(code_of, answer.notes)
    low, high = answer.interval()["n"]
    assert high[0] - low[0] < 200
    race = shown(session.sql(PAIRS.replace("AUTO", "RACE"), epsilon=18))[0]["n"]
    assert abs(row["n"] - 20_000) < abs(race - 20_000)


def test_the_price_is_divided_and_asked_again_is_free(session: lw.Session) -> None:
    price = session.price(1)
    before = session.explain(PAIRS, epsilon=1)
    assert before.price.amount <= price.amount
    assert before.columns[0].half_width is None
    assert before.measures[0].mechanism == GeneralisedExponential.name
    assert any("for 40 % of the cost, within 0 to 1,048,576" in note for note in before.notes)
    answer = session.sql(PAIRS, epsilon=1)
    first, second = (entry.loss.amount for entry in session.budget().history)
    assert abs(first - THRESHOLD_SHARE * price.amount) < Fraction(1, 10**20)
    assert abs(second - (1 - THRESHOLD_SHARE) * price.amount) < Fraction(1, 10**20)
    assert session.budget().spent == answer.cost
    again = session.explain(PAIRS, epsilon=1)
    assert again.stored
    assert again.columns[0].half_width is not None
    assert session.sql(PAIRS, epsilon=1).rows() == answer.rows()
    assert session.sql(PAIRS, epsilon=0.5).cost.amount == 0
    assert session.budget().spent == answer.cost


@pytest.mark.long
def test_a_dearer_question_chooses_anew(session: lw.Session) -> None:
    session.sql(PAIRS, epsilon=1)
    assert session.sql(PAIRS, epsilon=4).cost.amount > 0
    questions = [entry.question for entry in session.budget().history]
    assert sum("CHOOSE AMONG" in question for question in questions) in (0, 2)
    assert len(questions) == 4


@pytest.mark.long
def test_all_groups_have_one_level(session: lw.Session) -> None:
    rows = shown(session.sql(BY_PLAN, epsilon=18))
    assert [row["plan"] for row in rows] == ["a", "b"]
    # Ten people and ten people: of five of a code two or three are of plan a, each with four others.
    assert all(abs(row["n"] - 10_000) < 400 for row in rows)


@pytest.mark.long
def test_questions_of_a_batch_find_their_own(tmp_path: Path) -> None:
    with opened(tmp_path, PEOPLE) as session:
        one, other = session.batch([PAIRS, BY_PLAN], epsilon=18)
        assert abs(shown(one)[0]["n"] - 20_000) < 400
        assert all(abs(row["n"] - 10_000) < 800 for row in shown(other))
        assert len(session.budget().history) == 4


def test_too_many_cells_are_refused_before_anything_is_paid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(truncation, "LARGEST_SENSITIVITY", 1 << 20)
    with opened(tmp_path, PEOPLE[:10]) as session:
        session.explain(PAIRS, epsilon=1)
        with refused_as("bounds_not_searchable", saying="2") as refused:
            session.sql(BY_PLAN, epsilon=1)
        assert "contribution_bounds_per_group => (0, 100)" in str(refused.value)
        assert not session.budget().history


@pytest.mark.parametrize("value", ["LEAST(GREATEST(a.age, 0), 3)", "a.size", "a.cost"])
def test_thresholds_double_from_a_quarter_of_a_value(value: str, tmp_path: Path) -> None:
    text = f"SELECT SUM({value}, {AUTO}) AS s FROM visits a JOIN visits b ON a.code = b.code AND a.person <> b.person"
    (search,) = bind(text, catalog(tmp_path)).searches
    edges = search.magnitudes.edges
    assert edges[0] == 0
    most = {"LEAST(GREATEST(a.age, 0), 3)": 3, "a.size": 10, "a.cost": 8}[value]
    assert edges[-1] == most << 20
    assert all(low < high <= 2 * low for low, high in pairwise(edges[1:]))
    step = search.total.step if search.total is not None else 0
    assert edges[1] == max(step, -(-Fraction(most, 4) // step) * step)
    assert [measure.clamp[1] * step for measure in search.question.measures] == list(edges[1:])  # type: ignore[index]


# ---- what is charged for the choice ----------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_choice_is_as_sensitive_as_the_measures_and_loses_its_price(budget: str, tmp_path: Path) -> None:
    described = catalog(tmp_path, budget=BUDGETS[budget])
    for text in (PAIRS, BY_PLAN):
        plan = bind(text, described)
        (bought,) = calibrate(plan, described.budget, epsilon=2).searches
        assert bought.choosing is not None
        moved = [found[0].sensitivity.l1 for found in of_question(bought.question, "add_remove")]
        assert list(bought.choosing.mechanism.sensitivities) == moved
        assert moved == [2**place * (2 if text == BY_PLAN else 1) for place in range(21)]
        assert bought.choosing.loss <= bought.loss
        assert bought.choosing.loss.amount > Fraction(999, 1000) * bought.loss.amount


# ---- what the ledger keeps -------------------------------------------------------------------------------------------


def test_a_choice_is_kept_and_read_again(tmp_path: Path) -> None:
    described = catalog(tmp_path)
    (bought,) = calibrate(bind(PAIRS, described), described.budget, epsilon=1).searches
    assert bought.choosing is not None
    content = AnswerContent(
        mechanisms=(), values=(), choice=ChosenMeasure(place=3, mechanism=bought.choosing.mechanism)
    )
    kept = payload.written(bought.question, content)
    assert restoring.read(bought.question, kept) == content
    for place in (-1, 21):
        record = json.loads(kept)
        record["choice"][0] = place
        with pytest.raises(LedgerFault):
            restoring.read(bought.question, json.dumps(record))


# ---- the law of the whole -------------------------------------------------------------------------------------------


def hubs(number: int, others: int = 8) -> list[Row]:
    """Return people who meet so many others each, who meet nobody else: the first takes what he adds with him."""
    meeting = [row(hub, code=hub, plan="a") for hub in range(number)]
    return [*meeting, *(row(number + n, code=n % number, plan="b") for n in range(number * others))]


MEETINGS = PAIRS.replace("a.person <> b.person", "a.plan < b.plan")


@pytest.fixture
def low(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thresholds of 1 to 8, so that there are few ways that noise can go."""
    monkeypatch.setattr(truncation, "MOST_ROWS", 8)


def chosen(search: Search, bought: Quote, values: Values, entropy: Entropy) -> ValueBounds:
    assert bought.choosing is not None
    mechanism = bought.choosing.mechanism
    place = mechanism.release([sum(level.tolist()) for level in values], entropy)
    return threshold_from_choice(place, mechanism, search).bounds


def best(search: Search, bought: Quote, values: Values, entropy: Entropy) -> ValueBounds:
    """Choose without noise, a bug."""
    assert bought.choosing is not None
    mechanism = bought.choosing.mechanism
    scores = [sum(level.tolist()) for level in values]
    handicapped = [q - mechanism.margin * level for q, level in zip(scores, mechanism.sensitivities, strict=True)]
    return threshold_from_choice(handicapped.index(max(handicapped)), mechanism, search).bounds


@pytest.mark.usefixtures("low")
def test_level_and_number_together_lose_the_price(tmp_path: Path) -> None:
    one, other = laws_of(tmp_path, MEETINGS, hubs(2), chosen)
    assert abs(sum(one.values()) - 1) < 1e-9
    assert len({outcome[0] for outcome in one}) > 2  # type: ignore[index]
    assert EPSILON / 2 < loss(one, other) <= EPSILON + 1e-6


@pytest.mark.usefixtures("low")
def test_a_choice_without_noise_is_found(tmp_path: Path) -> None:
    assert loss(*laws_of(tmp_path, MEETINGS, hubs(3), best)) > EPSILON + 1


@pytest.mark.long
@pytest.mark.usefixtures("low")
def test_noise_of_a_lower_level_than_found_is_found(tmp_path: Path) -> None:
    assert loss(*laws_of(tmp_path, MEETINGS, hubs(3), chosen, noise_of=1)) > EPSILON + 1


@pytest.mark.long
@pytest.mark.usefixtures("low")
def test_sensitivities_that_are_too_small_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def small(question: Any, neighbouring: str) -> tuple[tuple[SensitivityBound, ...], ...]:
        found = of_question(question, neighbouring)
        if not question.choosing:
            return found
        few = [replace(c, sensitivity=replace(c.sensitivity, l1=1)) for (c,) in found]
        return tuple((candidate,) for candidate in few)

    monkeypatch.setattr(quote, "of_question", small)
    assert loss(*laws_of(tmp_path, MEETINGS, hubs(2), chosen)) > EPSILON + 1


def test_what_is_found_is_twice_what_is_chosen(tmp_path: Path) -> None:
    (search,) = bind(PAIRS, catalog(tmp_path, budget=PURE)).searches
    mechanism = GeneralisedExponential(
        scale=Fraction(1), sensitivities=tuple(2**k for k in range(21)), margin=Fraction(9)
    )
    thresholds = [threshold_from_choice(place, mechanism, search).bounds[1] for place in (0, 3, 19, 20)]
    assert thresholds == [2, 16, 1 << 20, 1 << 20]
    assert [threshold_from_choice(place, mechanism, search).clear for place in (18, 19)] == [True, False]
    assert threshold_from_choice(3, mechanism, search).beyond == mechanism.shortfall(5, Fraction(95, 100))
