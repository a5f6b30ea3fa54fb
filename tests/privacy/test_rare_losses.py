"""Small samples: nearly all mass near no loss, and rare large ones that decay more slowly than any exponential."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import pytest
from dp_accounting.pld import privacy_loss_distribution as peer
from mpmath import mp, mpf

from lapwing.privacy import inversion, windows
from lapwing.privacy.atoms import AtomLaw
from lapwing.privacy.certified_curve import Interval, bound_delta
from lapwing.privacy.combined_pairs import SubsampledPair
from lapwing.privacy.discretisation import merge, spread
from lapwing.privacy.loss_distribution import LossDistribution, compose, usual_width
from lapwing.privacy.loss_laws import Laws
from lapwing.privacy.pairs import GaussianPair, LaplacePair, RandomizedResponsePair, pieces_of
from lapwing.privacy.windows import Effort
from tests.support.effort import only
from tests.support.privacy import oracle
from tests.support.privacy.intervals import check_delta, check_epsilon, forget
from tests.support.privacy.oracle import normal, real

MILLIONTH = Fraction(1, 10**6)
HUNDREDTH = Fraction(1, 100)
THOUSANDTH = Fraction(1, 1000)


def sampled(rate: str, mu: Fraction = Fraction(1)) -> SubsampledPair:
    return SubsampledPair(GaussianPair(mu**2), Fraction(rate))


def ratio(x: mpf, rate: mpf) -> mpf:
    return 1 - rate + rate * mp.exp(x - mpf(1) / 2)


def once(direction: str, epsilon: mpf, rate: mpf) -> mpf:
    """The curve of one use at μ = 1, at any ε: what one law has more than e^ε of the other, beyond where they cross."""
    level = mp.exp(epsilon if direction == "remove" else -epsilon)
    if level <= 1 - rate:
        return 1 - mp.exp(epsilon) if direction == "remove" else mpf(0)
    at = mp.log((level - 1 + rate) / rate) + mpf(1) / 2
    side = -1 if direction == "remove" else 1
    plain, mixed = normal(side * at), (1 - rate) * normal(side * at) + rate * normal(side * (at - 1))
    first, second = (mixed, plain) if direction == "remove" else (plain, mixed)
    return first - mp.exp(epsilon) * second


@cache
def twice(epsilon: Fraction, rate: Fraction) -> mpf:
    """The larger curve of two uses: over the first one's outcome, that of the second at what is left of ε."""
    with mp.workdps(18):
        e, r = real(epsilon), real(rate)

        def remove(x: mpf) -> mpf:
            density = (1 - r) * mp.npdf(x) + r * mp.npdf(x, 1)
            return density * once("remove", e - mp.log(ratio(x, r)), r)

        def add(x: mpf) -> mpf:
            return mp.npdf(x) * once("add", e + mp.log(ratio(x, r)), r)

        kink = mp.log((mp.exp(e) / (1 - r) - 1 + r) / r) + mpf(1) / 2
        cuts = sorted([mpf(-12), mpf(-4), mpf(4), mpf(13), kink])
        return max(mp.quad(remove, cuts, maxdegree=6), mp.quad(add, cuts, maxdegree=6))


@pytest.mark.parametrize(
    "epsilons", [(), pytest.param(("1/40", "1/200", "1/5"), marks=pytest.mark.long)], ids=["epsilon", "and deltas"]
)
def test_two_uses_by_quadrature(epsilons: tuple[str, ...]) -> None:
    rate = Fraction(1, 1000)
    law = compose([(sampled("1e-3"), 2)], width=THOUSANDTH)
    check_epsilon(law.to_epsilon(MILLIONTH), lambda e: twice(e, rate), MILLIONTH, width=1e-3)
    for epsilon in map(Fraction, epsilons):
        check_delta(law.to_delta(epsilon), twice(epsilon, rate), relative=0.01)


@pytest.mark.long
@pytest.mark.parametrize("rate", ["1e-5", "0.3"])
def test_two_uses_at_other_rates(rate: str) -> None:
    law = compose([(sampled(rate), 2)], width=THOUSANDTH)
    for delta in (MILLIONTH / 10**3, THOUSANDTH / 10**2):
        found = law.to_epsilon(delta)
        check_epsilon(found, lambda e: twice(e, Fraction(rate)), delta, width=1e-3)


@pytest.mark.long
def test_twin_the_copies_of_rare_losses_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A period too short lets copies of the curve in; charged, they only widen the interval.

    The first window is enough to see it: that an interval is never narrow enough takes long.
    """
    forget()
    honest = windows.Cumulants.period

    def short(self: windows.Cumulants, aim: windows.Aim, tilt: float) -> tuple[float, float]:
        period, beyond = honest(self, aim, tilt)
        return period / 12, beyond

    def check_removing() -> None:
        found = bound_delta(((sampled("1e-3"), 2),), "remove", Fraction(1, 40), 0.1, Fraction(1))
        check_delta(Interval(float(found.lower), float(found.upper)), twice(Fraction(1, 40), Fraction(1, 1000)))

    monkeypatch.setattr(windows.Cumulants, "period", short)
    check_removing()
    monkeypatch.setattr(inversion, "copies", lambda *_: (0.0, -1e6))
    with pytest.raises(AssertionError):
        check_removing()
    forget()


@pytest.mark.long
def test_copies_of_rare_losses_that_are_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same in both directions and through all windows."""
    forget()
    honest = windows.Cumulants.period

    def short(self: windows.Cumulants, aim: windows.Aim, tilt: float) -> tuple[float, float]:
        period, beyond = honest(self, aim, tilt)
        return period / 12, beyond

    monkeypatch.setattr(windows.Cumulants, "period", short)
    law, true = compose([(sampled("1e-3"), 2)], width=Fraction(1, 10)), twice(Fraction(1, 40), Fraction(1, 1000))
    check_delta(law.to_delta(Fraction(1, 40)), true)
    monkeypatch.setattr(inversion, "copies", lambda *_: (0.0, -1e6))
    with pytest.raises(AssertionError):
        check_delta(law.to_delta(Fraction(1, 40)), true)
    forget()


@pytest.mark.long
@pytest.mark.parametrize("rate", only([1], [Fraction(9, 10000), Fraction(11, 10000)]), ids=str)
def test_twin_another_rate(rate: Fraction) -> None:
    found = compose([(sampled("1e-3"), 2)], width=THOUSANDTH).to_epsilon(MILLIONTH)
    with pytest.raises(AssertionError):
        check_epsilon(found, lambda e: twice(e, rate), MILLIONTH)


def both(sigma: float, rate: float, count: int, delta: float, step: float) -> tuple[float, float]:
    """The peer's estimates from below and from above."""
    ends = [
        peer.from_gaussian_mechanism(
            sigma,
            sampling_prob=rate,
            value_discretization_interval=step,
            pessimistic_estimate=above,
            use_connect_dots=above,
        )
        .self_compose(count)
        .get_epsilon_for_delta(delta)
        for above in (False, True)
    ]
    return ends[0], ends[1]


@pytest.mark.parametrize(
    ("pair", "count", "delta", "peers"),
    only(
        [],
        [
            (sampled("1e-3"), 10, "1e-6", (1.0, 1e-3, 10, 1e-6, 1e-4)),
            (sampled("1e-3", Fraction(100, 167)), 5000, "1e-8", (1.67, 1e-3, 5000, 1e-8, 1e-4)),
            (sampled("1e-5"), 10**6, "1e-6", (1.0, 1e-5, 10**6, 1e-6, 1e-4)),
        ],
        many=True,
    ),
    ids=["10 × 1e-3", "5,000 × 1e-3", "1e6 × 1e-5"],
)
def test_as_narrow_as_asked(
    pair: SubsampledPair, count: int, delta: str, peers: tuple[float, float, int, float, float]
) -> None:
    law = compose([(pair, count)], width=THOUSANDTH)
    found = law.to_epsilon(Fraction(delta))
    assert found.upper - found.lower <= 1e-3
    below, above = both(*peers)
    assert found.lower <= above
    assert below <= found.upper
    assert found.upper <= above + 1e-3


@pytest.mark.long
def test_far_below_all_else() -> None:
    """At δ = 10⁻¹² rounding is what is left: 0.01 is still kept."""
    found = compose([(sampled("1e-5"), 10)], width=HUNDREDTH).to_epsilon(MILLIONTH**2)
    assert found.upper - found.lower <= 0.01


@pytest.mark.parametrize("width", only([0], [Fraction(1, 20), HUNDREDTH]), ids=str)
def test_a_wider_wish_takes_no_more_nodes(width: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes: list[int] = []
    made = inversion.Inversion.of

    def counted(laws: Laws, window: inversion.FourierWindow) -> inversion.Inversion:
        nodes.append(window.nodes.size)
        return made(laws, window)

    monkeypatch.setattr(inversion.Inversion, "of", counted)
    found = compose([(sampled("0.01"), 1000)], width=width).to_delta(1)
    assert found.upper - found.lower <= 0.01 * found.upper
    assert 0 < sum(nodes) < 10**4


def laws_of(pair: SubsampledPair, make: Callable[..., AtomLaw] = merge) -> tuple[AtomLaw, AtomLaw]:
    pieces = pieces_of(pair, 512)
    return spread(pieces), make(pieces)


def check_largest(lower: AtomLaw, upper: AtomLaw) -> None:
    assert lower.most is not None
    assert upper.most is not None
    assert lower.most <= upper.most


@pytest.mark.long
def test_the_law_below_has_no_larger_loss() -> None:
    upper, lower = laws_of(sampled("1e-3"))
    check_largest(lower, upper)


def test_twin_the_last_piece_at_its_mean() -> None:
    upper, lower = laws_of(sampled("1e-3"))
    last = pieces_of(sampled("1e-3"), 512)[-1]
    assert last.high is None
    mean = Fraction(math.log(last.p / last.q))
    raised = AtomLaw((*lower.positions, mean), (*lower.masses, last.p))
    with pytest.raises(AssertionError):
        check_largest(raised, upper)


def test_what_is_made_finer_is_what_is_coarse() -> None:
    cut, window = Effort(closed=False), Effort(closed=False)
    assert cut.more(4.0, 4.0)
    assert (cut.cells > 512, cut.fineness) == (True, 1.0)
    assert window.more(4.0, 0.0)
    assert (window.cells, window.fineness > 1) == (512, True)


def small_lists() -> list[tuple[LossDistribution, Fraction]]:
    """A δ, and lists with an ε from 1e-6 to 1e-5 there."""
    billionth = Fraction(1, 10**9)
    return [
        (compose([(GaussianPair(MILLIONTH**2), 1)]), billionth),
        (compose([(LaplacePair(billionth), 10**6)]), 10 * billionth),
        (compose([(RandomizedResponsePair(MILLIONTH / 10), 20)]), 10 * billionth),
        (compose([(sampled("1e-4", Fraction(1, 10)), 10)]), 10 * billionth),
    ]


@pytest.mark.parametrize(("law", "delta"), only([0, 1, 2], small_lists(), many=True), ids=str)
def test_small_losses_are_told_apart_from_none(law: LossDistribution, delta: Fraction) -> None:
    found = law.to_epsilon(delta)
    assert 0 < found.lower <= found.upper
    assert found.upper - found.lower <= 0.01 * found.upper
    assert law.to_delta(Fraction(found.upper)).lower <= delta
    assert law.to_delta(Fraction(found.lower)).upper >= delta


def test_a_small_gaussian_loss() -> None:
    law, delta = small_lists()[0]
    check_epsilon(law.to_epsilon(delta), lambda e: oracle.gdp_delta(MILLIONTH**2, e), delta, width=3e-8)
    of_one_width_for_all = LossDistribution(law.parts, Fraction(1, 10**4)).to_epsilon(delta)
    with pytest.raises(AssertionError):
        check_epsilon(of_one_width_for_all, lambda e: oracle.gdp_delta(MILLIONTH**2, e), delta, width=3e-8)


def test_the_usual_width() -> None:
    assert [usual_width(e) for e in (0.0, 1e-6, 0.01, 1.0, 2000.0, 1e6)] == pytest.approx(
        [1e-9, 1e-8, 1e-4, 1e-4, 1e-4, 0.05]
    )
    million = compose([(LaplacePair(Fraction(1)), 10**6)]).to_epsilon(Fraction(1, 2))
    assert 0 < million.upper - million.lower <= usual_width(million.upper)
    assert compose([]).to_epsilon(HUNDREDTH) == (0, 0)
