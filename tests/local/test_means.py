"""Means: exact laws on small grids, no bias, the stated variance, published formulas in the limit, and coverage."""

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import exp, sqrt
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.local import (
    DuchiMean,
    HybridMean,
    MeanEstimate,
    PiecewiseMean,
    advice,
    advise_mean,
    client,
    collect_for,
    estimate_mean,
    grid,
    mean_epsilon_needed,
    mean_randomizer_of,
    mean_respondents_needed,
    new_task,
    on_grid,
    to_toml,
)
from tests.local.test_client import DAYS
from tests.support.effort import one_in, only
from tests.support.exact.fit import LEAST_P_VALUE, p_value
from tests.support.fixed_entropy import StreamEntropy
from tests.support.local.laws import law_of
from tests.support.privacy.oracle import real

WHOLE = 1 << 64
EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(3))
THREE, ONE = grid(-2, 4, 3), grid(0, 1, 1)
THOUSAND = grid(-1, 1, 1000)


def small(epsilon: Fraction, number: Any, width: int = 2, shift: int = 2) -> PiecewiseMean:
    """A window of few places, with the threshold of ε rounded down to 64 bits."""
    outside = number.steps * shift
    truth = int(Fraction(exp(epsilon)) / (Fraction(exp(epsilon)) + Fraction(outside, width)) * WHOLE)
    return PiecewiseMean(number=number, threshold=truth, width=width, shift=shift)


def hybrid(epsilon: Fraction, number: Any) -> HybridMean:
    return HybridMean(branch=WHOLE // 3, window=small(epsilon, number), ends=DuchiMean.for_epsilon(epsilon, number))


SMALL = [
    (f"{make.__name__} at {epsilon}, {number.steps} steps", make(epsilon, number))
    for make in (DuchiMean.for_epsilon, small, hybrid)
    for epsilon in EPSILONS
    for number in (THREE, ONE)
]
EVERY = pytest.mark.parametrize("mechanism", [row[1] for row in SMALL], ids=[row[0] for row in SMALL])
MAKERS: tuple[Any, ...] = (DuchiMean.for_epsilon, PiecewiseMean.for_epsilon, HybridMean.for_epsilon)


# Exact laws


def check_ratio(matrix: Any, ratio: Fraction) -> None:
    assert all(sum(row) == 1 and min(row) > 0 for row in matrix.rows)
    assert max(a / b for column in zip(*matrix.rows, strict=True) for a, b in product(column, column)) == ratio


@EVERY
def test_the_worst_ratio_is_the_stated_one(mechanism: Any) -> None:
    check_ratio(mechanism.transition_matrix(), mechanism.ratio)
    rule = client.NUMBER_RULES[mechanism.name]
    assert rule.ratio(mechanism.parameters, mechanism.number.size) == mechanism.ratio
    true = mp.log(real(mechanism.ratio))
    assert true <= real(mechanism.loss().amount) <= true * (1 + mpf(2) ** -60)


@pytest.mark.parametrize("make", only([0], MAKERS))
def test_an_epsilon_is_kept_and_nearly_used(make: Any) -> None:
    for epsilon in (*EPSILONS, Fraction(16), Fraction(32)):
        for number in (ONE, THOUSAND):
            mechanism = make(epsilon, number)
            assert mp.log(real(mechanism.ratio)) <= real(epsilon)
            assert mechanism.loss().amount >= epsilon * (1 - Fraction(1, 10**5))


def check_moments(mechanism: Any) -> None:
    """Over every report: the position is u on average, and has the stated variance, both exactly."""
    matrix, steps = mechanism.transition_matrix(), mechanism.number.steps
    positions = [mechanism.position(report) for report in matrix.reports]
    for i, row in enumerate(matrix.rows):
        u = Fraction(i, steps)
        mean = sum((p * x for p, x in zip(row, positions, strict=True)), Fraction(0))
        square = sum((p * x**2 for p, x in zip(row, positions, strict=True)), Fraction(0))
        assert mean == u
        assert square - mean**2 == mechanism.variance.at(u)
    assert mechanism.extremes == (min(positions), max(positions))
    shown = mechanism.positions(np.array(matrix.reports))
    assert shown == pytest.approx([float(x) for x in positions], rel=1e-12, abs=1e-12)


@EVERY
def test_there_is_no_bias_and_the_variance_is_the_stated_one(mechanism: Any) -> None:
    check_moments(mechanism)


def test_twins_of_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    """An estimate by a wanted probability, not by the threshold in use; a window that is one too short."""
    coarse = DuchiMean(number=THREE, threshold=WHOLE * 3 // 4 + 12345)
    check_moments(coarse)
    with monkeypatch.context() as planted:
        planted.setattr(DuchiMean, "position", lambda self, report: (report - Fraction(1, 4)) * 2)
        with pytest.raises(AssertionError):
            check_moments(coarse)
    with monkeypatch.context() as planted:
        planted.setattr(PiecewiseMean, "places", property(lambda self: self.outside + self.width - 1))
        with pytest.raises(AssertionError):
            check_moments(small(Fraction(1), THREE))


def test_twins_of_ratios() -> None:
    window = small(Fraction(1), THREE)
    for louder in (replace(window, threshold=WHOLE - (WHOLE - window.threshold) * 9 // 10), replace(window, width=1)):
        with pytest.raises(AssertionError):
            check_ratio(louder.transition_matrix(), window.ratio)
    twice = hybrid(Fraction(1), THREE)
    louder_ends = replace(twice, ends=DuchiMean.for_epsilon(Fraction(11, 10), THREE))
    with pytest.raises(AssertionError):
        check_ratio(louder_ends.transition_matrix(), twice.window.ratio)


# The client


def task_of(mechanism: Any) -> client.Task:
    return new_task("How much?", mechanism.number, mechanism, **DAYS)


def said(mechanism: Any, line: bytes) -> Any:
    return mechanism.read(json.loads(line)["r"])


def client_law(mechanism: Any, answer: str, monkeypatch: pytest.MonkeyPatch) -> dict[Any, Fraction]:
    task = task_of(mechanism)
    report = lambda: said(mechanism, client.report(task, answer, lambda size: bytes(size)))  # noqa: E731
    with monkeypatch.context() as patched:
        return law_of(report, patched)


@EVERY
def test_reports_have_exactly_the_law_of_the_matrix(mechanism: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, number = mechanism.transition_matrix(), mechanism.number
    for i, row in enumerate(matrix.rows):
        answer = f"{number.lower + (number.upper - number.lower) * i / number.steps:f}"
        assert client_law(mechanism, answer, monkeypatch) == dict(zip(matrix.reports, row, strict=True))


def check_between(mechanism: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers off the grid and beyond the bounds: no bias but by the bounds, and no ratio above the stated one."""
    number, laws = mechanism.number, []
    for answer in ("-99", "-2", "-1.5", "0.1", "0.3", "3.9", "4", "123456"):
        law = client_law(mechanism, answer, monkeypatch)
        inside = min(max(Fraction(answer), Fraction(number.lower)), Fraction(number.upper))
        u = (inside - Fraction(number.lower)) / Fraction(number.upper - number.lower)
        assert sum((p * mechanism.position(report) for report, p in law.items()), Fraction(0)) == u
        laws.append(law)
    assert max(a[r] / b[r] for a, b in product(laws, laws) for r in a) == mechanism.ratio


BETWEEN = [make(Fraction(1), THREE) for make in (DuchiMean.for_epsilon, small, hybrid)]


@pytest.mark.parametrize("mechanism", one_in(3, BETWEEN), ids=lambda m: m.name)
def test_numbers_between_points(mechanism: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    check_between(mechanism, monkeypatch)


def to_the_nearest(self: Any, answer: str, read: Any) -> int:
    low, high = Fraction(self.lower), Fraction(self.upper)
    return int(Fraction(1, 2) + (min(max(Fraction(answer), low), high) - low) * self.steps / (high - low))


def without_bounds(self: Any, answer: str, read: Any) -> int:
    low, high = Fraction(self.lower), Fraction(self.upper)
    return int((Fraction(answer) - low) * self.steps / (high - low))


@pytest.mark.parametrize("twin", [to_the_nearest, without_bounds])
def test_twins_of_rounding(twin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client.Number, "point", twin)
    with pytest.raises((AssertionError, ValueError)):
        check_between(BETWEEN[1], monkeypatch)


@pytest.mark.parametrize("answer", ["", "x", "1e3", "nan", "1,5", " 1", "1.", ".5", "1.1234567", "1234567890123", "٣"])
def test_answers_that_are_no_numbers_are_refused(answer: str) -> None:
    with pytest.raises(client.AnswerRefused, match="number such as"):
        client.report(task_of(BETWEEN[0]), answer, StreamEntropy("none").read)


@pytest.mark.parametrize("make", only([0], MAKERS))
def test_tasks_and_reports(make: Any) -> None:
    mechanism = make(Fraction(7, 10), grid(0.25, 120, 480))
    task = task_of(mechanism)
    assert client.read_task(to_toml(task)) == task == client.read_task(json.dumps(task.document))
    assert mean_randomizer_of(task) == mechanism
    with pytest.raises(client.TaskRefused, match="send nothing"):
        client.task_of({**task.document, "epsilon": "0.5"})
    entropy = StreamEntropy(f"reports {task.mechanism}")
    lines = [client.report(task, str(i), entropy.read) for i in range(120)]
    taken = collect_for(mechanism, task, [*lines, lines[0]])
    assert (len(taken.reports), [line.reason for line in taken.rejected]) == (120, ["the id was seen before"])
    assert abs(estimate_mean(mechanism, taken.reports).raw - 59.5) < 6 * 120 * sqrt(mechanism.variance.most() / 120)
    for other in (make(1, mechanism.number), make(Fraction(7, 10), grid(0.25, 121, 480))):
        with pytest.raises(InvalidParameter, match="other parameters"):
            collect_for(other, task, lines)


@pytest.mark.parametrize(
    ("mechanism", "value"),
    [
        (BETWEEN[0], 2), (BETWEEN[0], True), (BETWEEN[1], 8), (BETWEEN[1], -1), (BETWEEN[1], 1.0), (BETWEEN[1], [1]),
        (BETWEEN[2], 1), (BETWEEN[2], [2, 0]), (BETWEEN[2], [0, 2]), (BETWEEN[2], [1, 8]), (BETWEEN[2], [1, 1, 1]),
    ],
)  # fmt: skip
def test_what_no_device_says_is_rejected(mechanism: Any, value: Any) -> None:
    task = task_of(mechanism)
    line = json.dumps({**json.loads(client.report(task, "1", StreamEntropy("x").read)), "r": value}).encode()
    taken = collect_for(mechanism, task, [line])
    assert (len(taken.reports), len(taken.rejected)) == (0, 1)
    assert " r " in f" {taken.rejected[0].reason} "


def test_numbers_that_mean_nothing_are_refused() -> None:
    good = task_of(BETWEEN[0]).document
    grids: tuple[tuple[Any, Any, Any], ...] = (
        ("0", "0", 3), ("0", "1", 0), ("1", "0", 3), ("0", "1", True), ("0", "1", 10**6 + 1), ("nan", "1", 3),
        ("0.0000001", "1", 3), ("0", 10**12, 3), (None, "1", 3),
    )  # fmt: skip
    wrong: list[Any] = [dict(zip(("lower", "upper", "steps"), bounds, strict=True)) for bounds in grids]
    for number in (*wrong, [0, 1, 3], {"lower": "0", "upper": "1"}):
        with pytest.raises(client.TaskRefused):
            client.task_of({**good, "number": number})
    assert client.task_of({**good, "number": {"lower": -2, "upper": Decimal("4.0"), "steps": "3"}}).document == good
    for change in (
        {"values": ["a", "b"]},
        {"text": {"most_bytes": 5}},
        {"mechanism": {"name": "k-ary", "threshold": 1}},
    ):
        with pytest.raises(client.TaskRefused):
            client.task_of({**good, **change})
    with pytest.raises(InvalidParameter, match="made for other number"):
        new_task("How much?", ONE, BETWEEN[0], **DAYS)
    for bounds in ((1, 0, 5), (0, Fraction(1, 3), 5), (0, 1, 0)):
        with pytest.raises(InvalidParameter):
            grid(*bounds)


# Published formulas


def published_piecewise(epsilon: float, number: float) -> Any:
    """The variance on [−1, 1] by integrating the published density; the notes have it in closed form."""
    half, x = mp.e ** (mpf(epsilon) / 2), mpf(number)
    reach = (half + 1) / (half - 1)
    left = (reach + 1) / 2 * x - (reach - 1) / 2
    right, inside = left + reach - 1, half / (half + 1) / (reach - 1)
    outside = inside / half**2
    square = inside * (right**3 - left**3) / 3 + outside * (reach**3 - right**3 + left**3 + reach**3) / 3
    closed = x**2 / (half - 1) + (half + 3) / (3 * (half - 1) ** 2)
    assert abs(square - x**2 - closed) < 1e-30
    return closed


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 6.0])
def test_variances_are_the_published_ones_in_the_limit(epsilon: float) -> None:
    """On [−1, 1] a position is half as long; with many places the published window has the published variance."""
    fine = grid(-1, 1, 100_000)
    half = exp(epsilon / 2)
    guess = PiecewiseMean.for_epsilon(epsilon, fine)
    window = PiecewiseMean.for_epsilon(epsilon, fine, round(guess.outside / half))
    bit = DuchiMean.for_epsilon(epsilon, fine)
    bound = (exp(epsilon) + 1) / (exp(epsilon) - 1)
    for x in (-1.0, -0.3, 0.0, 0.5, 1.0):
        u = Fraction(x + 1) / 2
        assert 4 * float(window.variance.at(u)) == pytest.approx(float(published_piecewise(epsilon, x)), rel=1e-3)
        assert 4 * float(bit.variance.at(u)) == pytest.approx(bound**2 - x**2, rel=1e-9)
    mixed = HybridMean(branch=int((1 - 1 / half) * WHOLE), window=window, ends=bit).variance
    assert float(mixed.square) == pytest.approx(0, abs=1e-3 * float(mixed.most()))


@pytest.mark.parametrize("epsilon", one_in(3, [0.05, 0.3, 1.0, 1.29, 2.0, 4.0, 8.0, 16.0]))
def test_none_is_worse_than_published(epsilon: float) -> None:
    half = exp(epsilon / 2)
    bound = (exp(epsilon) + 1) / (exp(epsilon) - 1)
    window = 4 * PiecewiseMean.for_epsilon(epsilon, THOUSAND).variance.most()
    assert window <= published_piecewise(epsilon, 1.0) * (1 + mpf(10) ** -4)
    mixture = (half + 3) / (3 * half * (half - 1)) + bound**2 / half
    assert float(4 * HybridMean.for_epsilon(epsilon, THOUSAND).variance.most()) <= mixture * 1.0001


def test_a_window_of_another_width_is_no_better() -> None:
    best = PiecewiseMean.for_epsilon(1, THOUSAND)
    for width in (best.width - 1, best.width + 1, best.width // 2, best.width * 2):
        assert PiecewiseMean.for_epsilon(1, THOUSAND, width).variance.most() >= best.variance.most()


@pytest.mark.long
def test_advice() -> None:
    """Duchi's is best for small ε; the mixture then; numbers near the middle favour the window."""
    assert [advise_mean(e, THOUSAND, 100).best.name for e in (0.1, 1, 3)] == ["duchi", "hybrid", "hybrid"]
    assert advise_mean(2, THOUSAND, 100, expected=(0, 0.1)).best.name == "piecewise"
    assert advise_mean(Fraction(1, 2), THOUSAND, 100, expected=(0, 1)).best.name == "duchi"
    one = advise_mean(1, grid(0, 50), 400)
    assert one.best.error == pytest.approx(50 * sqrt(one.best.mechanism.variance.most() / 400))
    assert [option.error for option in one.options] == sorted(option.error for option in one.options)
    for expected in ((2, 0), (0, 1.1), (0, -1)):
        with pytest.raises(InvalidParameter, match="cannot have"):
            advise_mean(1, THOUSAND, 100, expected=expected)


# Estimates

MANY, RUNS = 10_000, 3000
TWENTY = grid(0, 1, 20)
Ends = Callable[[MeanEstimate, Any], tuple[float, float]]
COVERED = (
    DuchiMean.for_epsilon(1, TWENTY),
    DuchiMean.for_epsilon(4, TWENTY),
    small(Fraction(1), TWENTY, 62, 4),
    small(Fraction(5), TWENTY, 15, 4),
    hybrid(Fraction(2), TWENTY),
)
POPULATIONS: tuple[NDArray[np.float64], ...] = tuple(np.zeros(21) for _ in range(4))
POPULATIONS[0][0] = 1.0
POPULATIONS[1][10] = 1.0
POPULATIONS[2][[0, 20]] = 0.9, 0.1
POPULATIONS[3][[3, 8, 15]] = 0.25, 0.5, 0.25


def laws(mechanism: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The positions of all reports, and their law for every point."""
    steps = mechanism.number.steps
    if isinstance(mechanism, DuchiMean):
        p, u = mechanism.threshold / WHOLE, np.arange(steps + 1) / steps
        ones = 1 - p + u * (2 * p - 1)
        return mechanism.positions(np.arange(2)), np.stack([1 - ones, ones], axis=1)
    if isinstance(mechanism, PiecewiseMean):
        place = np.arange(mechanism.places) - mechanism.shift * np.arange(steps + 1)[:, None]
        p = mechanism.threshold / WHOLE
        inside = (place >= 0) & (place < mechanism.width)
        return mechanism.positions(np.arange(mechanism.places)), np.where(
            inside, p / mechanism.width, (1 - p) / mechanism.outside
        )
    (first, window), (last, ends) = laws(mechanism.window), laws(mechanism.ends)
    share = mechanism.branch / WHOLE
    return np.concatenate([first, last]), np.concatenate([share * window, (1 - share) * ends], axis=1)


def runs(mechanism: Any, population: NDArray[np.float64], whom: str, seed: int) -> list[MeanEstimate]:
    """Estimates from 10,000 reports of those respondents, or of a random sample."""
    positions, law = laws(mechanism)
    random = np.random.default_rng(seed)
    if whom == "population":
        counts = random.multinomial(MANY, population @ law, size=RUNS)
    else:
        each = np.rint(population * MANY).astype(np.int64)
        counts = np.sum([random.multinomial(n, law[i], size=RUNS) for i, n in enumerate(each) if n], axis=0)
    first, second = counts @ positions / MANY, counts @ positions**2 / MANY
    return [
        MeanEstimate(mechanism=mechanism, reports=MANY, position=float(a), square=float(b))
        for a, b in zip(first, second, strict=True)
    ]


def check_coverage(ends: Ends, whom: Any, mechanism: Any, seed: int, most: float = 0.965) -> None:
    """At 95 %, for 10,000 reports, the truth is inside in 93.5 to 96.5 % of the runs (fixed seeds)."""
    population = POPULATIONS[seed]
    truth = float(population @ np.arange(21)) / 20
    inside = 0
    for found in runs(mechanism, population, whom, seed):
        low, high = ends(found, whom)
        inside += low <= truth <= high
    assert 0.935 <= inside / RUNS <= most, (mechanism, seed, inside / RUNS)


EVERY_PAIR = pytest.mark.parametrize(("mechanism", "seed"), one_in(10, product(COVERED, range(4)), many=True))
"""In the short run two mechanisms, each with a population."""


@pytest.mark.long
@EVERY_PAIR
def test_intervals_for_a_population_cover(mechanism: Any, seed: int) -> None:
    check_coverage(lambda found, whom: found.interval(whom=whom), "population", mechanism, seed)


@EVERY_PAIR
def test_intervals_for_respondents_cover(mechanism: Any, seed: int) -> None:
    """Duchi's bit cannot tell how far numbers spread, so its interval may be too wide, and is never too narrow."""
    most = 1.0 if isinstance(mechanism, DuchiMean) else 0.965
    check_coverage(lambda found, whom: found.interval(whom=whom), "respondents", mechanism, seed, most)


@pytest.mark.parametrize(
    "twin",
    one_in(
        2,
        [
            lambda found, whom: found.interval(0.9, whom=whom),
            lambda found, whom: (
                found.raw - 1.6 * found.standard_error(whom),
                found.raw + 1.6 * found.standard_error(whom),
            ),
        ],
    ),
)
def test_twins_of_intervals_are_caught(twin: Ends) -> None:
    with pytest.raises(AssertionError):
        check_coverage(twin, "population", COVERED[2], 3)


@pytest.mark.long
def test_the_interval_of_the_respondents_is_not_that_of_the_population() -> None:
    with pytest.raises(AssertionError):
        check_coverage(lambda found, whom: found.interval(whom="respondents"), "population", COVERED[3], 2)


@pytest.mark.parametrize("make", MAKERS)
def test_from_numbers_to_a_mean(make: Any) -> None:
    number = grid(-50, 150, 200)
    mechanism = make(2, number)
    values = 30 + 40 * np.sin(np.arange(50_000))
    points = on_grid(number, values, StreamEntropy(f"points {mechanism.name}"))
    assert abs(points.mean() - 80) < 0.2
    found = estimate_mean(mechanism, mechanism.randomize(points, StreamEntropy(f"mean {mechanism.name}")))
    truth = float(values.mean())
    assert abs(found.raw - truth) < 6 * found.standard_error()
    low, high = found.interval(1 - 1e-7)
    assert low < truth < high
    assert found.standard_error("population") >= found.standard_error()
    assert found.to_arrow().to_pylist() == found.rows()
    assert found.respondents_for(0.5 * (found.interval(whom="population")[1] - found.raw)) > 150_000
    down, up = found.forged(50)
    least, greatest = (-50 + 200 * float(end) for end in mechanism.extremes)
    assert up == pytest.approx(50 * (greatest - found.raw) / 49_950)
    assert down == pytest.approx(50 * (found.raw - least) / 49_950)
    assert replace(found, position=1.2).consistent == 150
    for wrong in (lambda: found.interval(whom="nobody"), lambda: found.respondents_for(0), lambda: found.forged(10**9)):  # type: ignore[arg-type]
        with pytest.raises(InvalidParameter):
            wrong()


def check_simulation(simulated: Any, mechanism: Any) -> None:
    matrix = mechanism.transition_matrix()
    for i, row in enumerate(matrix.rows):
        reports = simulated.randomize(np.full(20_000, i), StreamEntropy(f"{mechanism.name} {i}"))
        seen = np.bincount(reports, minlength=len(row))
        assert p_value(seen, np.array(row, dtype=float)) > LEAST_P_VALUE


@pytest.mark.parametrize("make", [DuchiMean.for_epsilon, small, hybrid])
def test_simulations_fit(make: Any) -> None:
    check_simulation(make(Fraction(1), THREE), make(Fraction(1), THREE))
    with pytest.raises(AssertionError):
        check_simulation(make(Fraction(3, 2), THREE), make(Fraction(1), THREE))


def test_what_means_nothing_is_refused() -> None:
    refused: tuple[Callable[[], object], ...] = (
        lambda: DuchiMean(number=ONE, threshold=WHOLE // 2),
        lambda: PiecewiseMean(number=ONE, threshold=1, width=2, shift=2),
        lambda: PiecewiseMean(number=ONE, threshold=WHOLE - 1, width=0, shift=2),
        lambda: HybridMean(branch=5, window=small(Fraction(1), ONE), ends=DuchiMean.for_epsilon(1, THREE)),
        lambda: DuchiMean.for_epsilon(1, THOUSAND).transition_matrix(),
        lambda: DuchiMean.for_epsilon(1, THREE).randomize(np.array([4])),
        lambda: estimate_mean(BETWEEN[0], np.array([], dtype=np.int64)),
        lambda: estimate_mean(BETWEEN[1], np.array([8])),
        lambda: mean_randomizer_of(client.Asked(client.Values(("a", "b")), "k-ary", (("threshold", 5),))),
    )
    for make in refused:
        with pytest.raises(InvalidParameter):
            make()


# What an accuracy takes


def check_worst_population(mechanism: Any) -> None:
    """No population of two points, in any parts, has reports that vary more than stated; and one does as much."""
    matrix, steps = mechanism.transition_matrix(), mechanism.number.steps
    positions = [float(mechanism.position(report)) for report in matrix.reports]
    law = np.array([[float(chance) for chance in row] for row in matrix.rows])
    first, second = law @ positions, law @ np.square(positions)
    parts = np.linspace(0, 1, 401)
    worst = max(
        float(part * second[i] + (1 - part) * second[j] - (part * first[i] + (1 - part) * first[j]) ** 2)
        for i, j in product(range(steps + 1), repeat=2)
        for part in parts
    )
    assert worst <= float(advice.population_variance(mechanism.variance)) * (1 + 1e-12)
    assert worst >= float(advice.population_variance(mechanism.variance)) * (1 - 1e-3)


@EVERY
def test_the_worst_population_is_found(mechanism: Any) -> None:
    check_worst_population(mechanism)


def test_a_population_taken_for_its_respondents_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice, "population_variance", lambda law: law.most())
    with pytest.raises(AssertionError):
        check_worst_population(small(Fraction(3), THREE))


@pytest.mark.long
@pytest.mark.parametrize("epsilon", one_in(3, EPSILONS))
def test_so_many_respondents_are_needed(epsilon: Fraction) -> None:
    """At the worst numbers, half at each bound, the interval for the population is as wide as asked for, to 3 %."""
    number, wanted = grid(-10, 50), Fraction(2)
    n = mean_respondents_needed(epsilon, number, wanted)
    best = advise_mean(epsilon, number, n).best
    assert abs(1.959964 * best.worst - 2) < 1e-3
    assert n < mean_respondents_needed(epsilon, number, wanted, Fraction("0.99"))
    points = np.where(np.arange(n) % 2, number.steps, 0)
    found = estimate_mean(best.mechanism, best.mechanism.randomize(points, StreamEntropy(f"needed {epsilon}")))
    low, high = found.interval(whom="population")
    assert abs((high - low) / 2 - 2) < 0.06
    least = mean_epsilon_needed(n, number, wanted)
    assert mean_respondents_needed(least, number, wanted) <= n
    assert least <= epsilon + Fraction(1, 1000)


def test_accuracies_that_mean_nothing_are_refused() -> None:
    for width in (0, -1, 30):
        with pytest.raises(InvalidParameter, match="above 0 and below 30"):
            mean_respondents_needed(1, grid(-10, 50), width)
    with pytest.raises(InvalidParameter, match="too few for this accuracy at any epsilon"):
        mean_epsilon_needed(5, grid(-10, 50), 1)
