"""Shuffled reports: the bounds against formulas summed term by term, and against mechanisms written out in full."""

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.local import BinaryResponse, KaryResponse, LocalHashing, SubsetSelection, UnaryEncoding, client
from lapwing.local.frequencies.hashing import meeting
from lapwing.local.frequencies.randomizer import Randomizer, Rates
from lapwing.local.shuffling import amplification as module
from lapwing.local.shuffling.amplification import SYMMETRIC, amplified_delta, amplified_epsilon, local_epsilon
from lapwing.local.shuffling.binomial import Binomial
from tests.support.docs.pages import DOCS
from tests.support.effort import examples, is_long, one_in, only, some
from tests.support.local.mechanism_cases import MECHANISM_CASES

Law = dict[tuple[int, ...], Any]
MILLIONTH = Fraction(1, 10**6)


def real(x: Fraction | float) -> mpf:
    x = Fraction(x)
    return mpf(x.numerator) / x.denominator


def gain(first: Law, second: Law, factor: mpf) -> mpf:
    return mp.fsum(max(mpf(0), mass - factor * second.get(key, 0)) for key, mass in first.items())


@cache
def clones(local: Fraction, reports: int) -> tuple[Law, Law]:
    """The pair as Feldman, McMillan and Talwar state it: C ~ Bin(n − 1, 2/(p + 1)) clones, half of each kind."""
    p = mp.exp(real(local))
    share, high = 2 / (p + 1), p / (p + 1)
    laws: tuple[Law, Law] = (defaultdict(mpf), defaultdict(mpf))
    for c in range(reports):
        at = comb(reports - 1, c) * share**c * (1 - share) ** (reports - 1 - c)
        for h in range(c + 1):
            both = at * comb(c, h) / mpf(2) ** c
            for law, chance in zip(laws, (high, 1 - high), strict=True):
                law[h + 1, c - h] += both * chance
                law[h, c - h + 1] += both * (1 - chance)
    return laws


def clones_delta(local: Fraction, reports: int, epsilon: Fraction) -> mpf:
    return gain(*clones(local, reports), mp.exp(real(epsilon)))


CASES = tuple((Fraction(e0), n) for e0 in ("0.5", "1", "3") for n in (1, 2, 7, 60))


def check_that_it_is_the_pairs(upper: Callable[[Fraction, int, Fraction], float]) -> None:
    for local, reports in CASES:
        for part in some(2, (0, 1, 3, 7)):
            epsilon = local * Fraction(part, 10)
            true = clones_delta(local, reports, epsilon)
            stated = mpf(upper(local, reports, epsilon))
            assert true * (1 - mpf(10) ** -14) <= stated <= true * (1 + mpf(10) ** -7) + mpf(10) ** -250


def upper_bound(local: Fraction, reports: int, epsilon: Fraction) -> float:
    return amplified_delta(local, reports, epsilon).upper


def test_the_upper_bound_is_that_of_its_pair() -> None:
    check_that_it_is_the_pairs(upper_bound)


@pytest.mark.parametrize(
    "twin",
    [
        lambda local, reports, epsilon: upper_bound(local, reports + 1, epsilon),
        lambda local, reports, epsilon: upper_bound(local * Fraction(999, 1000), reports, epsilon),
        lambda local, reports, epsilon: upper_bound(local, reports, epsilon) * 0.9999,
    ],
    ids=["n + 1 people", "a smaller local epsilon", "a little less"],
)
def test_twins_of_the_upper_bound_are_caught(twin: Callable[[Fraction, int, Fraction], float]) -> None:
    with pytest.raises(AssertionError):
        check_that_it_is_the_pairs(twin)


@pytest.mark.parametrize("more", [1, -1])
def test_another_share_of_clones_is_caught(monkeypatch: pytest.MonkeyPatch, more: int) -> None:
    law = module._randomizer_law
    monkeypatch.setattr(
        module,
        "_randomizer_law",
        lambda local: replace(law(local), share=1 / (law(local).ratio + 1 + Fraction(more, 1000))),
    )
    with pytest.raises((AssertionError, ArithmeticError)):
        check_that_it_is_the_pairs(upper_bound)


# Published figures: shuffling.md says where from.
KNOWN = (
    (4, 10**5, 0.118153),
    (1, 10**3, 0.148671),
    (1, 10**4, 0.043206),
)


@pytest.mark.long
@pytest.mark.parametrize(("local", "people", "figure"), only([1], KNOWN, many=True))
def test_published_figures(local: int, people: int, figure: float) -> None:
    bounds = amplified_epsilon(local, people, MILLIONTH)
    assert figure - 2e-6 <= bounds.upper <= figure * 1.0005
    assert bounds.lower < figure
    assert 0 <= stated_on_the_page()[local, people] - bounds.upper <= 1e-5


def stated_on_the_page() -> dict[tuple[int, int], float]:
    page = (DOCS / "local" / "shuffling.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \|$", page, re.MULTILINE)
    assert [(int(e0), int(n.replace(",", "")), float(figure)) for e0, n, _, figure in rows] == list(KNOWN)
    return {(int(e0), int(n.replace(",", ""))): float(stated) for e0, n, stated, _ in rows}


def histogram(rows: list[tuple[Fraction, ...]]) -> Law:
    """The law of the shuffled reports: how many there are of each."""
    law: Law = {(0,) * len(rows[0]): Fraction(1)}
    for row in rows:
        after: Law = defaultdict(Fraction)
        for counts, mass in law.items():
            for report, chance in enumerate(row):
                after[(*counts[:report], counts[report] + 1, *counts[report + 1 :])] += mass * chance
        law = after
    return law


def worst_delta(mechanism: Randomizer, people: int, growths: list[Fraction]) -> list[Fraction]:
    """The greatest δ at each e^ε, over all values of all people."""
    rows = mechanism.transition_matrix().rows
    worst = [Fraction(0)] * len(growths)
    for others in combinations_with_replacement(rows, people - 1):
        rest = histogram([*others]) if others else {(0,) * len(rows[0]): Fraction(1)}
        laws = [_with_one_more(rest, row) for row in rows]
        for a, b in product(laws, laws):
            for place, growth in enumerate(growths):
                lost = sum((max(Fraction(0), m - growth * b.get(key, 0)) for key, m in a.items()), start=Fraction(0))
                worst[place] = max(worst[place], lost)
    return worst


def _with_one_more(law: Law, row: tuple[Fraction, ...]) -> Law:
    after: Law = defaultdict(Fraction)
    for counts, mass in law.items():
        for report, chance in enumerate(row):
            after[(*counts[:report], counts[report] + 1, *counts[report + 1 :])] += mass * chance
    return after


REAL: tuple[tuple[Any, int], ...] = (
    *((KaryResponse.for_epsilon(e, k), n) for e in (Fraction(1, 2), Fraction(2)) for k in (2, 3) for n in (1, 2, 4, 6)),
    *((BinaryResponse.for_epsilon(e), n) for e in (Fraction(1), Fraction(3)) for n in (2, 6)),
    (BinaryResponse.from_coins(Fraction(1, 2), Fraction(1, 10)), 5),
    (KaryResponse.for_epsilon(1, 5), 3),
    (UnaryEncoding.optimised(1, 3), 3),
    (UnaryEncoding.symmetric(2, 3), 3),
    (SubsetSelection.for_epsilon(1, 4, 2), 3),
    (SubsetSelection.for_epsilon(2, 5, 2), 2),
)
PARTS = (0, 1, 2, 5, 8)


def check_between(mechanism: Randomizer, people: int) -> list[tuple[float, Fraction, float]]:
    """Return lower bounds, truths and upper bounds that are in order, at several ε."""
    log = mp.log(real(mechanism.ratio))
    epsilons = [Fraction(part, 10) * Fraction(str(float(log))) for part in PARTS]
    truths = worst_delta(mechanism, people, [Fraction(str(mp.exp(real(epsilon)))) for epsilon in epsilons])
    found = []
    for epsilon, truth in zip(epsilons, truths, strict=True):
        bounds = amplified_delta(mechanism, people, epsilon)
        tolerance = Fraction(1, 10**30)  # of the growth, which is no fraction
        assert bounds.lower <= truth + tolerance
        assert truth <= Fraction(bounds.upper) + tolerance
        found.append((bounds.lower, truth, bounds.upper))
    return found


@pytest.mark.parametrize("real_one", one_in(10, REAL), ids=lambda pair: f"{pair[0].name}-{pair[1]}")
def test_real_mechanisms_are_between_the_bounds(real_one: tuple[Randomizer, int]) -> None:
    mechanism, people = real_one
    found = check_between(mechanism, people)
    assert any(lower > 0 for lower, _, _ in found)
    general = [amplified_delta(Fraction(str(float(mp.log(real(mechanism.ratio)) * (1 + mpf(10) ** -9)))), people, 0)]
    assert found[0][2] <= general[0].upper * (1 + 1e-6)


def theorem(mechanism: Randomizer, people: int, growth: mpf) -> mpf:
    """E[(W₁ + … + W_n)₊]/n, over all numbers of each of the three values that are not 0."""
    p, own, other = real(mechanism.ratio), *map(real, mechanism.rates(1))
    share = (own - other) / (p - 1)
    common, total = (1 - (p + 1) * share) / p, mpf(0)
    none = 1 - 2 * share - common
    for a, b, c in product(range(people + 1), repeat=3):
        if (rest := people - a - b - c) >= 0:
            ways = comb(people, a) * comb(people - a, b) * comb(people - a - b, c)
            chance = ways * share ** (a + b) * common**c * none**rest
            total += chance * max(0, a * (p - growth) + b * (1 - p * growth) - c * p * (growth - 1))
    return total / people


@pytest.mark.parametrize(
    "mechanism", only([0], [KaryResponse.for_epsilon(2, 6), UnaryEncoding.optimised(1, 9)]), ids=repr
)
def test_the_upper_bound_of_a_mechanism_is_the_theorem(mechanism: Randomizer) -> None:
    for epsilon in (Fraction(0), Fraction(1, 5), Fraction(4, 5)):
        true = theorem(mechanism, 12, mp.exp(real(epsilon)))
        upper = amplified_delta(mechanism, 12, epsilon).upper
        assert true <= upper <= true * (1 + mpf(10) ** -7)


@pytest.mark.parametrize("people", only([0], [1, 2, 5, 9]))
@pytest.mark.parametrize("local", only([0], [Fraction(1, 2), Fraction(1), Fraction(3)]))
def test_the_lower_bound_of_the_coin_is_its_own(people: int, local: Fraction) -> None:
    """For few people all values of the others are tried, so the bound is what the coin really has."""
    for lower, truth, _ in check_between(BinaryResponse.for_epsilon(local), people):
        assert lower >= float(truth) * (1 - 1e-6)


def twin_of(**changed: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return `_randomizer_law` with fields changed, and nothing known of two values."""
    law = module._randomizer_law
    return lambda local: replace(
        law(local), pair=None, **{name: change(law(local)) for name, change in changed.items()}
    )


def check_all_real() -> None:
    for mechanism, people in REAL[:8]:
        check_between(mechanism, people)


@pytest.mark.parametrize(
    ("name", "twin"),
    [
        ("_honest", lambda respondents, forged: respondents + 2),
        ("_apart", lambda mechanism: mechanism.rates(1).p / 2),
        ("_randomizer_law", twin_of(share=lambda known: known.share / 2)),
        ("_randomizer_law", twin_of(rates=lambda known: Rates(known.rates.p, known.rates.q / 2))),
    ],
    ids=["n + 2", "a third value supports too often", "a smaller distance", "others support too rarely"],
)
def test_twins_of_a_mechanism_are_caught(monkeypatch: pytest.MonkeyPatch, name: str, twin: Callable[..., Any]) -> None:
    monkeypatch.setattr(module, name, twin)
    with pytest.raises((AssertionError, ArithmeticError)):
        check_all_real()


def test_bounds_that_contradict_each_other_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_upper", lambda *given: 1e-12)
    with pytest.raises(ArithmeticError, match="contradict"):
        amplified_delta(1, 1000, Fraction(1, 100))


@pytest.mark.parametrize("mechanism", [m for _, m in MECHANISM_CASES], ids=[name for name, _ in MECHANISM_CASES])
def test_distance_of_two_values(mechanism: Randomizer) -> None:
    """The theorem takes TV = p − q; here it is summed from the exact law, the worst of all pairs."""
    if isinstance(mechanism, LocalHashing):
        return  # its law is under one hash function; see below
    rows = mechanism.transition_matrix().rows
    distances = {
        sum((max(Fraction(0), x - y) for x, y in zip(a, b, strict=True)), start=Fraction(0))
        for a, b in product(rows, rows)
        if a is not b
    }
    p, q = mechanism.rates(1)
    assert distances == {p - q}


def test_distance_of_two_values_under_a_hash_function() -> None:
    mechanism = LocalHashing.for_epsilon(1, 8)
    chance = Fraction(mechanism.threshold, 1 << 64)
    apart = chance - (1 - chance) / (mechanism.range - 1)  # of two faces; of one, 0
    p, q = mechanism.rates(1)
    assert p - q == (1 - meeting(mechanism.range, client.PRIME)) * apart


@pytest.mark.parametrize(
    ("trials", "chance"),
    only(
        [0],
        [
            (1, Fraction(1, 2)),
            (7, Fraction(1, 3)),
            (400, Fraction(1, 2)),
            (1500, Fraction(1, 50)),
            (1500, Fraction(49, 50)),
        ],
        many=True,
    ),
)
def test_tables_against_sums(trials: int, chance: Fraction) -> None:
    law = Binomial.of(trials, chance)
    q = real(chance)
    exact = [comb(trials, j) * q**j * (1 - q) ** (trials - j) for j in range(trials + 1)]
    for j, mass in enumerate(law.mass, start=law.first):
        assert abs(mpf(float(mass)) - exact[j]) <= exact[j] * mpf(10) ** -11
    assert mp.fsum(exact[: law.first]) <= law.below <= 1e-18
    assert mp.fsum(exact[law.last + 1 :]) <= law.above <= 1e-18
    middle = float(trials * chance)
    ys = np.array([middle + step for step in (-90.0, -1.25, 0.0, 0.5, 3.75, 30.0, 1000.0)])
    true = [mp.fsum((j - mpf(float(y))) * exact[j] for j in range(trials + 1) if j > y) for y in ys]
    for up, down, value in zip(law.excess().up(ys), law.excess(whole=False).down(ys), true, strict=True):
        assert value * (1 - mpf(10) ** -10) <= float(up) <= value * (1 + mpf(10) ** -10) + mpf(10) ** -15
        assert float(down) <= value * (1 + mpf(10) ** -10)


@pytest.mark.long
@examples(2, 60)
@given(
    st.fractions(min_value=Fraction(1, 10), max_value=8, max_denominator=100),
    st.integers(min_value=1, max_value=10**4),
    st.fractions(min_value=0, max_value=1, max_denominator=50),
)
def test_bounds_are_in_order_and_more_people_hide_better(local: Fraction, people: int, part: Fraction) -> None:
    epsilon = part * local
    bounds = amplified_delta(local, people, epsilon)
    assert 0 <= bounds.lower <= bounds.upper <= 1
    assert amplified_delta(local, 4 * people + 400, epsilon).upper <= bounds.upper * (1 + 1e-7) + 1e-18


@pytest.mark.long
def test_a_million_reports() -> None:
    bounds = amplified_epsilon(4, 10**6, MILLIONTH)
    assert 0.033 < bounds.lower < bounds.upper < 0.0344
    assert amplified_delta(4, 10**6, Fraction(str(bounds.upper))).upper <= 1e-6 * (1 + 1e-9)
    assert amplified_delta(4, 10**6, Fraction(str(bounds.lower))).lower >= 1e-6 * (1 - 1e-9)


@pytest.mark.long
def test_a_mechanism_hides_better_than_any_must() -> None:
    general = amplified_epsilon(4, 10**4, MILLIONTH).upper
    many = amplified_epsilon(KaryResponse.for_epsilon(4, 100), 10**4, MILLIONTH)
    assert many.upper < general * 0.6
    assert many.upper < many.lower * 1.03  # both bounds are nearly tight


@pytest.mark.long
def test_forged_reports_hide_nobody() -> None:
    assert amplified_delta(1, 1000, 0.1, forged=300) == amplified_delta(1, 700, 0.1)
    if not is_long():
        return
    assert amplified_delta(1, 1000, 0.1, forged=999) == amplified_delta(1, 1, 0.1)
    assert amplified_epsilon(2, 100, 1e-3, forged=60) == amplified_epsilon(2, 40, 1e-3)


@pytest.mark.long
def test_where_nothing_is_lost_the_lower_bound_is_zero() -> None:
    lower, _ = amplified_epsilon(1, 100, 0.5)
    assert str(lower) == "0.0"


@pytest.mark.parametrize(("delta", "least", "most"), only([], [(1e-40, 1, 1.000001), (1e-23, 0, 0.2)], many=True))
def test_a_delta_that_is_too_small_is_not_certified(delta: float, least: float, most: float) -> None:
    """The tables end; what is beyond counts against the bound, so that the local one remains."""
    assert least <= amplified_epsilon(1, 10_000, delta).upper < most


def test_ends() -> None:
    assert amplified_delta(1, 10, 1).upper <= 1e-18  # e^ε₀ is rounded up, by 2⁻⁶⁴
    assert amplified_delta(1, 10, 2) == (0, 0)
    alone = amplified_delta(1, 1, 0.5)
    true = float((mp.e - mp.exp("0.5")) / (1 + mp.e))
    assert alone.lower <= true <= alone.upper
    assert alone.upper == pytest.approx(true, rel=1e-7)
    assert alone.lower == pytest.approx(true, rel=1e-7)


@pytest.mark.parametrize("make", one_in(2, [None, lambda e: KaryResponse.for_epsilon(e, 50)]), ids=["any", "k-ary"])
def test_local_epsilon(make: Any) -> None:
    local = local_epsilon(Fraction(1, 2), MILLIONTH, 20_000, mechanism=make)
    assert local > 3
    assert amplified_delta(make(local) if make else local, 20_000, Fraction(1, 2)).upper <= MILLIONTH
    more = local * Fraction(103, 100)
    assert amplified_delta(make(more) if make else more, 20_000, Fraction(1, 2)).upper > MILLIONTH
    assert local_epsilon(Fraction(1, 2), MILLIONTH, 20_000, mechanism=make, forged=10_000) < local
    assert local_epsilon(2, MILLIONTH, 1, mechanism=make) == 2


def test_what_is_refused() -> None:
    for epsilon in (0, 33, -1):
        with pytest.raises(InvalidParameter, match="epsilon"):
            amplified_delta(epsilon, 10, 0.1)
    for people, forged in ((0, 0), (10, 10), (10, -1), (10**10, 0)):
        with pytest.raises(InvalidParameter, match="whole number"):
            amplified_delta(1, people, 0.1, forged=forged)
    with pytest.raises(InvalidParameter, match="delta"):
        amplified_epsilon(1, 10, 0)
    with pytest.raises(InvalidParameter, match="give its epsilon"):
        amplified_delta("k-ary", 10, 0.1)  # type: ignore[arg-type]
    assert len(SYMMETRIC) == 5  # another mechanism needs its own proof of TV = p − q
