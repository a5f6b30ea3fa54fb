"""Intervals of sums, differences and shares of numbers that have noise in common."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from lapwing.answer import joint_numbers
from lapwing.answer.interval_ends import intervals_of
from lapwing.exact.entropy import SYSTEM
from lapwing.mechanisms import DiscreteLaplace, RoundedGaussian
from lapwing.mechanisms.combined_noise import CombinedNoise
from lapwing.query.derivation.derived import NoisyCells
from lapwing.query.expressions.expression import ColumnReference
from lapwing.query.expressions.types import Fixed
from lapwing.query.measures.measures import Count
from lapwing.query.pricing.quote import CONFIDENCE, Quote
from lapwing.release.cells import cells_of, exact_values
from tests.support.effort import is_long, only
from tests.support.release.small import GDP, PURE, catalog, exact, opened, priced, row

BUDGETS = {"gdp": GDP.replace("100", "100000"), "pure": PURE.replace("100", "100000")}
MANY = 10_000 if is_long() else 4_000
"""Cells: a share of them that is .95 in the mean strays by .02 once in 10⁸ runs of 4,000."""
LEAST, MOST = (0.939, 0.968) if is_long() else (0.93, 0.975)
ROWS = [row(n, cost=None if n % 5 == 0 else (n % 17) / 2, age=n % 5 - 1, code=n % 4) for n in range(400)]
FEW, MORE = "COUNT(*) FILTER (WHERE code > 2)", "COUNT(*) FILTER (WHERE code > 1)"
MEANS = {
    "q": "SUM(cost) / COUNT(cost)",
    "r": "1.0 * SUM(cost) / NULLIF(COUNT(cost), 0)",
    "c": "CAST(SUM(cost) AS DOUBLE) / COUNT(*)",
    "p": "ROUND(100.0 * SUM(cost) / COUNT(*), 6)",
    "d": "SUM(cost) - 3 * COUNT(cost)",
    "s": "-SUM(cost) + COUNT(cost) / 2 + 1",
    "a": "AVG(cost)",
}
SHARES = {"share": f"100.0 * {FEW} / COUNT(*)", "rest": f"COUNT(*) - {MORE}", "both": f"{FEW} + {MORE}"}


def question(columns: Mapping[str, str]) -> str:
    return f"SELECT {', '.join(f'{text} AS {name}' for name, text in columns.items())} FROM visits"


def true_values(asked: Quote, described: Any) -> dict[Any, int]:
    found = exact(asked.question, described, ROWS)
    values = exact_values(asked.question, found.cells, cells_of(asked.question))
    return {measure: int(each[0]) for measure, each in zip(asked.question.measures, values, strict=True)}


def shares_held(folder: Path, kind: str, columns: Mapping[str, str], of_laws: Any = dict) -> dict[str, float]:
    """Return how often the interval of each column holds the truth, over new noise in many cells."""
    text, price = question(columns), Fraction(1, 8)
    with opened(folder, ROWS, budget=BUDGETS[kind], most=1, entropy=SYSTEM) as session:
        answer = session.sql(text, epsilon=price)
    described = catalog(folder, budget=BUDGETS[kind], most=1)
    asked = priced(text, described, epsilon=price)
    assert asked.vector is not None
    measured = true_values(asked.vector.bought, described)
    noisy = [
        term.mechanism.release(np.full(MANY, measured[term.measure]), SYSTEM) for term in asked.vector.bought.terms
    ]
    numbers = dict(zip(asked.question.measures, asked.vector.values(noisy), strict=True))
    cells = replace(answer._released, size=MANY, measures=numbers)
    exactly = replace(
        cells, size=1, measures={m: np.array([value]) for m, value in true_values(asked, described).items()}
    )
    ends = intervals_of(answer.plan.outputs, cells, of_laws(answer.mechanisms), CONFIDENCE)
    found = {}
    for output in answer.plan.outputs:
        true = float(cast(Any, exactly.column(output.value).values()[0]))
        low, high = (np.asarray(end, dtype=np.float64) for end in ends[output.name])
        found[output.name] = float(((low <= true + 1e-9) & (true - 1e-9 <= high)).mean())
    return found


@pytest.mark.parametrize(("kind", "columns"), only([0], product(["gdp", "pure"], [MEANS, SHARES]), many=True))
def test_they_hold_as_often_as_they_say(tmp_path: Path, kind: str, columns: dict[str, str]) -> None:
    for name, share in shares_held(tmp_path, kind, columns).items():
        assert LEAST < share < MOST, name  # .950 to .958 in 40,000 cells


@pytest.mark.long
def test_a_mean_by_hand_is_as_narrow_as_avg(tmp_path: Path) -> None:
    with opened(tmp_path, ROWS, budget=GDP, most=1) as session:
        ends = session.sql(question({**MEANS, "n": "COUNT(cost)"}), epsilon=1).interval()
    widths = {name: float(high[0] - low[0]) for name, (low, high) in ends.items()}
    assert widths["q"] == widths["r"] <= 1.08 * widths["a"]  # both of its numbers were rounded


@pytest.mark.long
def test_a_mean_by_hand_alone_is_as_narrow_as_avg_alone(tmp_path: Path) -> None:
    (tmp_path / "apart").mkdir()
    with opened(tmp_path / "apart", ROWS, budget=GDP, most=1) as session:
        by_hand = session.sql(question({"q": MEANS["q"]}), epsilon=1).interval()["q"]
        mean = session.sql("SELECT AVG(cost) AS a FROM visits WHERE code >= 0", epsilon=1).interval()["a"]
    assert float(by_hand[1][0] - by_hand[0][0]) <= 1.01 * float(mean[1][0] - mean[0][0])


@pytest.mark.long
def test_what_is_computed_is_inside_its_interval_where_no_mean_can_be_known(tmp_path: Path) -> None:
    """Of so few rows the count may be 0: then it is anywhere inside its bounds, and what is shown is not left out."""
    with opened(tmp_path, ROWS[:2], budget=GDP, most=1) as session:
        answer = session.sql(question({"q": MEANS["q"], "n": "COUNT(cost)"}), epsilon=Fraction(1, 10))
    (low,), (high,) = answer.interval()["q"]
    assert low <= 0
    assert high >= 8
    value = answer.rows()[0]["q"]
    assert value is None or low <= float(cast(Any, value)) <= high


@pytest.mark.long
def test_what_has_no_bound_keeps_a_margin_for_each_number(tmp_path: Path) -> None:
    with opened(tmp_path, ROWS, budget=GDP, most=1) as session:
        answer = session.sql(question({"x": "COUNT(*) / SUM(age)", "y": "SUM(cost) - COUNT(*)"}), epsilon=1)
    quotient, difference = (output.value for output in answer.plan.outputs)
    assert joint_numbers.joint_numbers(quotient, answer.mechanisms, CONFIDENCE) is None
    assert joint_numbers.joint_numbers(difference, answer.mechanisms, CONFIDENCE) is not None
    laplace, normal = DiscreteLaplace(scale=Fraction(3)), RoundedGaussian(sigma=Fraction(3))
    kinds = {measure: laplace if isinstance(measure, Count) else normal for measure in answer.mechanisms}
    assert joint_numbers.joint_numbers(difference, kinds, CONFIDENCE) is None


def test_twin_noise_in_common_that_is_taken_for_apart_is_found(tmp_path: Path) -> None:
    def apart(mechanisms: Mapping[Any, Any]) -> dict[Any, Any]:
        own = {}
        for at, (measure, law) in enumerate(mechanisms.items()):
            laws = (*law.laws, RoundedGaussian(sigma=Fraction(2 + at)))  # so that none is that of another number
            own[measure] = CombinedNoise(weights=(*law.weights, Fraction(0)), laws=laws)
        return own

    assert shares_held(tmp_path, "gdp", SHARES, apart)["both"] < 0.93


def test_twin_noise_that_is_taken_for_more_is_found(tmp_path: Path) -> None:
    def more(mechanisms: Mapping[Any, Any]) -> dict[Any, Any]:
        return {
            measure: replace(law, laws=tuple(RoundedGaussian(sigma=one.sigma * Fraction(6, 5)) for one in law.laws))
            for measure, law in mechanisms.items()
        }

    assert min(shares_held(tmp_path, "gdp", SHARES, more).values()) > MOST


# ---- of quotients ----------------------------------------------------------------------------------------------------

TOP, COUNT = Count(argument=ColumnReference(name="x", type=Fixed(step=Fraction(1), low=0, high=3))), Count()
QUOTIENT = joint_numbers._Quotient(joint_numbers._Weighted({TOP: Fraction(1)}), COUNT, Fraction(-1, 3), Fraction(5, 2))


def mechanisms_of(kind: str) -> dict[Any, Any]:
    laws = [RoundedGaussian(sigma=Fraction(n)) if kind == "gdp" else DiscreteLaplace(scale=Fraction(n)) for n in (9, 4)]
    weights = {TOP: (Fraction(1), Fraction(-1)), COUNT: (Fraction(1, 2), Fraction(3))}
    return {measure: CombinedNoise(weights=each, laws=tuple(laws)) for measure, each in weights.items()}


def is_within_bounds(kind: str, bounds: list[Fraction]) -> bool:
    """Whether what A − d·N strays by is at most the bound of the piece of d, between its ends, too."""
    weighted, width = joint_numbers._Weighted, (QUOTIENT.high - QUOTIENT.low) / len(bounds)
    for piece, bound in enumerate(bounds):
        for part in (Fraction(1, 3), Fraction(4, 5)):
            form = weighted({TOP: Fraction(1), COUNT: -(QUOTIENT.low + (piece + part) * width)})
            # The quantile of Laplace noise is rounded up, by a 4000th at most.
            if joint_numbers._noises(form, mechanisms_of(kind)).beyond(Fraction(1, 20)) > bound * Fraction(4001, 4000):
                return False
    return True


@pytest.mark.parametrize("kind", ["gdp", "pure"])
def test_the_noise_of_a_quotient_is_within_the_bound_of_its_piece(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = joint_numbers._bounds(QUOTIENT, mechanisms_of(kind), Fraction(1, 20))
    assert is_within_bounds(kind, bounds)
    monkeypatch.setattr(joint_numbers, "max", min, raising=False)  # the twin: the smaller end of each piece
    assert not is_within_bounds(kind, joint_numbers._bounds(QUOTIENT, mechanisms_of(kind), Fraction(1, 20)))


def holds_all(taken: list[Fraction], bounds: list[Fraction], count_from: int = -5) -> tuple[bool, float]:
    """Whether the interval with `taken` has every d in reach with `bounds`, and how far its ends are from these."""
    random = np.random.default_rng(3)
    counts = random.integers(count_from, 60, 4000)
    tops = np.round(random.uniform(-1, 3, 4000) * np.maximum(counts, 1)).astype(np.int64)
    cells = NoisyCells(size=4000, measures={TOP: tops, COUNT: counts}, keys={}, margins=lambda _: {})
    low, high = (end.floats(4000) for end in joint_numbers._of_quotient(QUOTIENT, taken)(cells))
    places = np.linspace(float(QUOTIENT.low), float(QUOTIENT.high), 1601)[1:-1]
    pieces = np.minimum(((places - places[0]) / (places[-1] - places[0]) * len(bounds)).astype(int), len(bounds) - 1)
    reach = np.array([float(bound) for bound in bounds])[pieces]
    met = np.abs(tops[:, None] - places * np.maximum(counts, 1)[:, None]) <= reach
    met[counts < 1] = True
    inside = (low[:, None] <= places + 1e-9) & (places - 1e-9 <= high[:, None])
    known = met.any(axis=1) & (counts >= 1)
    shown = tops / np.where(counts == 0, 1, counts)
    first, last = places[met.argmax(axis=1)], places[met.shape[1] - 1 - met[:, ::-1].argmax(axis=1)]
    far = np.maximum(np.minimum(first, shown) - low, high - np.maximum(last, shown))[known].max()
    return bool((inside | ~met).all()), float(far)


@pytest.mark.long
def test_the_interval_of_a_quotient_has_all_that_is_in_reach_and_hardly_more() -> None:
    bounds = [Fraction(4) + Fraction(abs(piece - 5), 2) for piece in range(16)]
    held, far = holds_all(bounds, bounds)
    assert held
    assert far <= float(QUOTIENT.high - QUOTIENT.low) / 16 + 0.01
    assert not holds_all(bounds[::-1], bounds)[0]  # the twin: bounds of other pieces
