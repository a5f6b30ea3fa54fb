"""A (μ, δ) above a list: at every ε, in both directions, and not by much."""

from collections.abc import Callable
from fractions import Fraction

import pytest
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.privacy import dominating_gaussian as module
from lapwing.privacy.approximate import ApproximateGaussianDP
from lapwing.privacy.certified_curve import Interval
from lapwing.privacy.combined_pairs import SubsampledPair
from lapwing.privacy.dominating_gaussian import best_gaussian_above, gaussian_above
from lapwing.privacy.loss_distribution import LossDistribution, compose
from lapwing.privacy.pairs import ApproximatePair, GaussianPair, LaplacePair, RandomizedResponsePair
from tests.support.effort import only
from tests.support.privacy import exact_composition as exact
from tests.support.privacy import oracle
from tests.support.privacy.coarse import coarse
from tests.support.privacy.oracle import real

__all__ = ["coarse"]

DELTA = Fraction(1, 10**7)
TENTH = Fraction(1, 10)
TRAINING = SubsampledPair(GaussianPair(1 / Fraction("1.1") ** 2), Fraction(1, 100))


def above_at(found: ApproximateGaussianDP, epsilon: Fraction) -> mpf:
    delta = real(found.delta)
    return delta + (1 - delta) * oracle.gdp_delta(found.exact_part.amount, epsilon)


def check_single_step(found: ApproximateGaussianDP, mu: Fraction, rate: Fraction, every: int = 150) -> None:
    """One use on a sample, whose curves are known, at many ε between the points and beyond the last."""
    for n in range(0, 400, every):
        epsilon = Fraction(n, 43)
        both = exact.subsampled_gaussian_deltas(real(mu), real(rate), real(epsilon))
        assert max(both) <= above_at(found, epsilon)


MU, RATE = Fraction(3, 2), Fraction(1, 5)


def single() -> LossDistribution:
    return compose([(SubsampledPair(GaussianPair(MU**2), RATE), 1)])


@pytest.mark.usefixtures("coarse")
def test_it_is_above_between_few_points() -> None:
    check_single_step(gaussian_above(single(), DELTA), MU, RATE)


@pytest.mark.long
def test_it_is_above_at_every_epsilon() -> None:
    check_single_step(gaussian_above(single(), DELTA), MU, RATE, every=1)


@pytest.mark.long
def test_the_reverse_of_one_direction_is_the_other_below_one() -> None:
    """H(x) = 1 − x + x·H'(1/x) for the curves of remove and add, and δ + (1 − δ)·H_μ is its own reverse."""
    found = gaussian_above(single(), DELTA)
    for n in (1, 7, 30):
        x = mp.exp(mpf(n) / 10)
        remove, add = exact.subsampled_gaussian_deltas(real(MU), real(RATE), mp.log(x))
        for curve in (remove, add):
            below = 1 - 1 / x + curve / x
            delta = real(found.delta)
            gaussian = 1 - 1 / x + oracle.gdp_delta(found.exact_part.amount, Fraction(n, 10)) / x
            assert below <= delta + (1 - delta) * gaussian


@pytest.mark.parametrize(
    ("loss", "most"),
    only(
        (0,),
        [
            (compose([(GaussianPair(Fraction(1)), 1)]), Fraction("1.001")),
            (compose([(GaussianPair(TENTH**2), 1)]), Fraction("0.1003")),
            (
                compose([(SubsampledPair(GaussianPair(1 / Fraction("1.1") ** 2), Fraction(1, 100)), 10_000)]),
                Fraction("1.17"),
            ),
            (compose([(LaplacePair(TENTH), 100)]), Fraction("0.99")),
            (compose([(RandomizedResponsePair(Fraction(1)), 3)]), Fraction("1.86")),
        ],
        many=True,
    ),
    ids=["gaussian", "small gaussian", "training", "laplace", "responses"],
)
def test_it_is_not_much_above(loss: LossDistribution, most: Fraction) -> None:
    found = gaussian_above(loss, DELTA)
    assert found.exact_part.amount <= most**2
    for epsilon in (0, 1, 3):
        assert loss.to_delta(epsilon).lower <= above_at(found, Fraction(epsilon))


def test_what_is_given_away_counts_towards_delta() -> None:
    loss = compose([(ApproximatePair(TENTH, DELTA / 2), 1)])
    assert gaussian_above(loss, DELTA).delta == DELTA
    with pytest.raises(InvalidParameter, match="no finite epsilon"):
        gaussian_above(loss, DELTA / 4)


def test_a_loss_below_delta_needs_no_mu() -> None:
    assert gaussian_above(compose([(GaussianPair(Fraction(1, 10**20)), 1)]), TENTH).exact_part.amount == 0


RARE = compose([(SubsampledPair(GaussianPair(Fraction(64)), Fraction(1, 1000)), 5)])
TOTAL = Fraction(1, 10**5)


@pytest.mark.long
def test_a_list_of_rare_and_large_losses_gets_most_of_delta() -> None:
    best, tenth = best_gaussian_above(RARE, TOTAL), gaussian_above(RARE, TOTAL / 10)
    assert RARE.to_epsilon(TOTAL).lower <= best.to_epsilon(delta=TOTAL) <= 49.2
    assert tenth.to_epsilon(delta=TOTAL) > 56
    assert best.delta >= TOTAL / 2


def given_away() -> ApproximateGaussianDP:
    """Return the best above a list that gives away all with half of the total δ, and check that it is above."""
    loss = compose([(ApproximatePair(TENTH, TOTAL / 2), 1)])
    best = best_gaussian_above(loss, TOTAL)
    for hundredths in range(0, 12, 2):
        epsilon = Fraction(hundredths, 100)
        assert loss.to_delta(epsilon).lower <= above_at(best, epsilon)
    return best


@pytest.mark.long
def test_the_share_is_searched() -> None:
    """Shares up to one half imply nothing here, and far above it μ has little δ left: at 15/16 ε is .518."""
    best = given_away()
    assert TENTH <= Fraction(best.to_epsilon(delta=TOTAL)) < Fraction("0.465")
    assert TOTAL / 2 < best.delta < TOTAL * 9 / 16
    with pytest.raises(InvalidParameter):
        best_gaussian_above(compose([(ApproximatePair(TENTH, TOTAL), 1)]), TOTAL)


def test_a_wrong_guess_costs_tightness_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: where the largest share seems best, what it has is above all the same, and further above."""
    monkeypatch.setattr(module, "rough_epsilon", lambda _mu, delta: delta)
    monkeypatch.setattr(module, "best_above", module.best_above.__wrapped__)
    assert given_away().to_epsilon(delta=TOTAL) > 0.465


def test_a_list_that_gives_away_nearly_all_of_delta_has_a_share() -> None:
    loss = compose([(ApproximatePair(TENTH, TOTAL * 97 / 100), 1)])
    best = best_gaussian_above(loss, TOTAL)
    assert TOTAL * 97 / 100 < best.delta < TOTAL
    assert TENTH <= Fraction(best.to_epsilon(delta=TOTAL)) < 1
    for hundredths in range(0, 12, 2):
        epsilon = Fraction(hundredths, 100)
        assert loss.to_delta(epsilon).lower <= above_at(best, epsilon)


def mills(t: mpf) -> mpf:
    return mp.ncdf(-t) / mp.npdf(t)


def spared(mu: mpf, t: mpf, factor: mpf) -> mpf:
    """How much less ε of μ-GDP is at its δ, times `factor`, than at its δ for ε = μ·(t + μ/2)."""

    def delta(epsilon: mpf) -> mpf:
        return oracle.gdp_delta(Fraction(str(mu)) ** 2, epsilon)

    start = mu * (t + mu / 2)
    aim = delta(start) / factor
    low, high = start, start + 30 * (mu + 1)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta(middle) > aim else (low, middle)
    return high - start


READINGS = [
    (mpf(mu), mpf(t), factor)
    for mu in ("0.01", "0.5", "2", "10")
    for t in ("0", "1", "3", "5")
    for factor in (mpf(64) / 63, mpf(2))
]


def within_mills_ratio(shift: bool) -> bool:
    """Whether a smaller δ costs no more ε than the proof says; with the ratio at t + μ in its place, if `shift`."""
    return all(
        spared(mu, t, factor) <= mp.log(factor) * mu * mills(t + mu * shift) * (1 + mpf(10) ** -9)
        for mu, t, factor in READINGS
    )


def test_what_other_shares_would_spare_is_bounded() -> None:
    assert within_mills_ratio(shift=False)
    assert not within_mills_ratio(shift=True)  # the twin


@pytest.mark.long
@pytest.mark.parametrize(
    "loss", [RARE, compose([(GaussianPair(Fraction(1)), 1)]), single()], ids=["rare", "one", "sample"]
)
def test_smaller_shares_spare_no_more_than_that(loss: LossDistribution) -> None:
    best = best_gaussian_above(loss, TOTAL).to_epsilon(delta=TOTAL)
    for part in (100, 1000, 10**6):
        found = gaussian_above(loss, TOTAL / part)
        epsilon, mu = mpf(found.to_epsilon(delta=TOTAL)), mp.sqrt(real(found.exact_part.amount))
        assert best <= epsilon + mp.log(mpf(64) / 63) * mu * mills(epsilon / mu - mu / 2) + epsilon / 1000


@pytest.mark.long
@pytest.mark.usefixtures("coarse")
def test_at_the_best_share_it_is_above_between_few_points() -> None:
    check_single_step(best_gaussian_above(single(), DELTA), MU, RATE)


@pytest.mark.parametrize("bad", [0, 1, -1])
def test_a_delta_outside_is_refused(bad: int) -> None:
    with pytest.raises(InvalidParameter):
        gaussian_above(single(), bad)


@pytest.mark.long
def test_a_list_that_loses_far_too_much_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="too much"):
        gaussian_above(compose([(GaussianPair(Fraction(10**7)), 1)]), DELTA)


def one_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LossDistribution, "directions", lambda _: ("add",))


def points_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first and the last, and nothing said of what is between them."""
    monkeypatch.setattr(module, "CELLS", 1)
    room = module._room

    def at_points(e0: object, u0: object, e1: object, u1: object, *rest: object) -> object:
        return room(e0, u0, e0, u0, *rest).min(room(e1, u1, e1, u1, *rest))  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_room", at_points)


def lower_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    deltas = LossDistribution.to_deltas

    def lowered(loss: LossDistribution, epsilons: list[Fraction]) -> list[Interval]:
        return [each._replace(upper=each.lower * 0.9) for each in deltas(loss, epsilons)]

    monkeypatch.setattr(LossDistribution, "to_deltas", lowered)


@pytest.mark.parametrize("fault", only((0,), [one_direction, points_alone, lower_ends]))
def test_twins(monkeypatch: pytest.MonkeyPatch, fault: Callable[[pytest.MonkeyPatch], None]) -> None:
    fault(monkeypatch)
    module._least_above.cache_clear()
    with pytest.raises(AssertionError):
        check_single_step(gaussian_above(single(), DELTA), MU, RATE)
    module._least_above.cache_clear()
