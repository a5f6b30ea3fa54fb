"""Mechanisms on a subset of a fixed size: their curve, their composition, lists of them, and what is refused."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from types import SimpleNamespace

import pytest
from mpmath import mp, mpf

from lapwing.errors import InvalidParameter
from lapwing.privacy import discretisation, subset_pair
from lapwing.privacy.combined_pairs import SubsampledPair
from lapwing.privacy.listing import listed
from lapwing.privacy.loss_distribution import compose
from lapwing.privacy.loss_points import distribution_of
from lapwing.privacy.pairs import ApproximatePair, GaussianPair, LaplacePair, Pair, RandomizedResponsePair
from lapwing.privacy.statements import statements_of
from lapwing.privacy.subset_pair import SubsetPair
from tests.support.effort import one_in
from tests.support.privacy import exact_composition as exact
from tests.support.privacy import oracle
from tests.support.privacy.intervals import check_delta, check_epsilon, forget
from tests.support.privacy.oracle import normal, real

MILLIONTH = Fraction(1, 10**6)
TENTH, HUNDREDTH = Fraction(1, 10), Fraction(1, 100)


def laplace_delta(size: Fraction, epsilon: mpf) -> mpf:
    """1 − e^((ε − size)/2) from 0 to size (Balle, Barthe and Gaboardi 2018, Theorem 3)."""
    return max(mpf(0), 1 - mp.exp((epsilon - real(size)) / 2))


def check_one_use(*named: str, epsilons: Sequence[Fraction] = (Fraction(0), TENTH, Fraction(1, 2))) -> None:
    """q·δ at log(1 + (e^ε − 1)/q), for ε ≥ 0."""
    q = mpf(3) / 20
    cases: dict[str, tuple[Pair, Callable[[mpf], mpf]]] = {
        "gaussian": (GaussianPair(Fraction(4)), lambda e: oracle.gdp_delta(Fraction(4), e)),
        "laplace": (LaplacePair(Fraction(2)), lambda e: laplace_delta(Fraction(2), e)),
    }
    for pair, delta in map(cases.__getitem__, named):
        loss = compose([(SubsetPair(pair, 3, 20), 1)])
        for epsilon in epsilons:
            check_delta(loss.to_delta(epsilon), q * delta(mp.log1p(mp.expm1(real(epsilon)) / q)), relative=0.01)


def check_many_uses() -> None:
    """Of randomized response: atoms at a loss, at its negative, and at 0 for all else, convolved exactly."""
    epsilon, q = Fraction(1), real(TENTH)
    e = mp.exp(real(epsilon))
    p, r = e / (1 + e), 1 / (1 + e)
    above = q * p + (1 - q) * r
    step = Fraction(mp.nstr(mp.log1p(q * (e - 1)), 40))
    law = {1: exact.fixed(above), -1: exact.fixed(r), 0: exact.fixed(1 - above - r)}
    composed = exact.composed([(law, 40)])
    found = compose([(SubsetPair(RandomizedResponsePair(epsilon), 1, 10), 40)]).to_epsilon(MILLIONTH)
    check_epsilon(found, lambda at: exact.lattice_delta(composed, step, at), MILLIONTH)


def test_one_use() -> None:
    check_one_use("laplace")
    check_one_use("gaussian", epsilons=[Fraction(0)])


@pytest.mark.long
def test_one_use_at_more_epsilons() -> None:
    check_one_use("gaussian")


def test_many_uses() -> None:
    check_many_uses()


@pytest.mark.parametrize(
    ("name", "fault"),
    one_in(
        4,
        [
            ("_in_subset", lambda f: lambda law, rate, *, up: f(law, rate * 9 / 10, up=up)),
            ("_in_subset", lambda f: lambda law, rate, *, up: f(law, 1 - rate, up=up)),
            ("discretisation", lambda f: SimpleNamespace(spread=f.merge, merge=f.merge, law_of_masses=f.law_of_masses)),
            ("pieces_of", lambda f: lambda pair, cells: f(pair, cells)[1:]),
        ],
        many=True,
    ),
    ids=["a smaller subset", "1 − rate", "rounding inwards", "a truncated tail"],
)
def test_twins(monkeypatch: pytest.MonkeyPatch, name: str, fault: Callable[..., object]) -> None:
    forget()
    monkeypatch.setattr(subset_pair, name, fault(getattr(subset_pair, name)))
    with pytest.raises((AssertionError, InvalidParameter)):
        check_one_use("laplace")
    forget()


@pytest.mark.parametrize("check", [check_one_use, check_many_uses])
def test_twin_replacement_as_poisson(monkeypatch: pytest.MonkeyPatch, check: Callable[[], None]) -> None:
    """A pair of one direction of a Poisson sample has the same curve above 0, and another below: many uses tell."""
    forget()

    def law(self: SubsetPair, direction: str, side: str, cells: int) -> object:
        pieces = discretisation.thinned(self.pair.pieces(cells), self.rate)
        return discretisation.spread(pieces) if side == "upper" else discretisation.merge(pieces)

    monkeypatch.setattr(SubsetPair, "law", law)
    if check is check_many_uses:
        with pytest.raises(AssertionError):
            check()
    forget()


@pytest.mark.long
def test_no_mechanism_loses_more() -> None:
    """A sum of values from −1 to 1 with noise of deviation 1; the unit's goes from 1 to −1, all others are 0."""
    q, sigma = mpf(1) / 5, mpf(1)
    loss = compose([(SubsetPair(GaussianPair(Fraction(4)), 1, 5), 1)], width=TENTH)

    def density(x: mpf, centre: int) -> mpf:
        return (1 - q) * mp.npdf(x, 0, sigma) + q * mp.npdf(x, centre, sigma)

    for epsilon in (mpf("0.1"), mpf("0.5"), mpf(1)):
        true = mp.quad(
            lambda x, e=epsilon: max(mpf(0), density(x, 1) - mp.exp(e) * density(x, -1)), [-8, -2, 0, 1, 2, 4, 9]
        )
        assert true <= loss.to_delta(Fraction(float(epsilon))).upper
    assert normal(mpf(0)) == mpf(1) / 2


@pytest.mark.long
def test_a_subset_is_no_poisson_sample() -> None:
    """Its neighbours differ by a unit that is replaced: for the same distance it loses more, in many uses."""
    pair: Pair = GaussianPair(Fraction(1))
    subset = compose([(SubsetPair(pair, 1, 100), 100)], width=HUNDREDTH).to_epsilon(MILLIONTH)
    poisson = compose([(SubsampledPair(pair, HUNDREDTH), 100)], width=HUNDREDTH).to_epsilon(MILLIONTH)
    assert poisson.upper < subset.lower < 1.5 * poisson.upper
    whole = compose([(SubsetPair(pair, 7, 7), 5)], width=HUNDREDTH).to_epsilon(MILLIONTH)
    gaussian = compose([(pair, 5)]).to_epsilon(MILLIONTH)
    assert abs(whole.upper - gaussian.upper) < 2e-2


@pytest.mark.long
def test_training_on_batches_of_a_fixed_size() -> None:
    """As a list: every method that is valid, the most exact the least; a lower end is claimed by none."""
    steps = [listed("gaussian", 1000, sigma=2, size=100, population=10_000)]
    said = {one.method: one for one in statements_of(steps, delta=1e-6, neighbouring="replace_one")}
    assert "no smaller zcdp loss" in said["zCDP"].refused
    law, renyi = said["loss distribution"], said["Rényi DP"]
    assert law.epsilon is not None
    assert renyi.epsilon is not None
    assert 0.5 < law.epsilon < renyi.epsilon < 1.2 * law.epsilon
    assert law.lower is None
    pair = SubsetPair(GaussianPair(Fraction(1, 4)), 100, 10_000)
    assert distribution_of(steps, neighbouring="replace_one").parts == ((pair, 1000),)
    assert steps[0].text == "1000 gaussian sigma=2 size=100 population=10000"


def test_numbers_stated_for_add_remove_count_double() -> None:
    twice = listed("gaussian", sigma=1, size=1, population=50, neighbouring="add_remove")
    assert twice.text.endswith("neighbouring=add_remove")
    once = listed("gaussian", sigma=1, sensitivity=2, size=1, population=50)
    for one in (twice, once):
        pair = SubsetPair(GaussianPair(Fraction(4)), 1, 50)
        assert distribution_of([one], neighbouring="replace_one").parts == ((pair, 1),)
    pure = listed("laplace", epsilon=1, size=1, population=50).mechanism
    assert 0.0337 < float(pure.loss("pure").amount) == float(pure.at(MILLIONTH).epsilon) < 0.0338
    response = listed("randomized-response", epsilon=1, size=1, population=50)
    assert distribution_of([response], neighbouring="replace_one").to_epsilon(0).upper < 0.04


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: listed("laplace", epsilon=1, size=3), "give the rate of a Poisson sample, or the size"),
        (lambda: listed("laplace", epsilon=1, size=3, population=9, rate=0.1), "size of a subset and the population"),
        (lambda: listed("laplace", epsilon=1, size=3, population=2), "above the population"),
        (lambda: listed("laplace", epsilon=1, size=1.5, population=9), "size is 1.5; it must be a whole number"),
        (lambda: listed("approx", epsilon=1, delta=1e-6, size=1, population=9), "leave out size and population"),
        (
            lambda: listed("randomized-response", epsilon=1, size=1, population=9, neighbouring="add_remove"),
            "bound to replace_one",
        ),
        (
            lambda: statements_of([listed("laplace", epsilon=1, size=1, population=9)], delta=1e-6),
            "make the list one for replace_one",
        ),
        (lambda: SubsetPair(ApproximatePair(Fraction(1), TENTH), 1, 2), "δ = 0"),
        (lambda: SubsampledPair(SubsetPair(GaussianPair(Fraction(1)), 1, 2), TENTH), "cannot be sampled once more"),
        (lambda: SubsetPair(SubsampledPair(GaussianPair(Fraction(1)), TENTH), 1, 2), "the same in both directions"),
    ],
)
def test_what_is_refused(make: Callable[[], object], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        make()
