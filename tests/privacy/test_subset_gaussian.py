"""The moments of Gaussian noise on a subset: against quadrature to 30 digits, the law in pieces, and planted bugs."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpc, mpf

from lapwing.privacy import subset_gaussian
from lapwing.privacy.loss_distribution import compose
from lapwing.privacy.loss_laws import Nodes
from lapwing.privacy.pairs import GaussianPair
from lapwing.privacy.subset_gaussian import SubsetGaussianLaw
from lapwing.privacy.subset_pair import SubsetPair
from tests.support.effort import one_in
from tests.support.privacy.intervals import forget
from tests.support.privacy.oracle import real

CASES = {
    "training": (1 / Fraction("1.1") ** 2, Fraction(1, 100)),
    "little noise": (Fraction(4), Fraction(1, 10)),
    "half": (Fraction(1, 100), Fraction(1, 2)),
}
NODES = Nodes(5.25, 0.5, 8)


def moment(law: SubsetGaussianLaw, z: mpc) -> mpc:
    with mp.workdps(30):
        mu, q = mp.sqrt(real(law.mu_squared)), real(law.rate)

        def value(x: mpf) -> mpc:
            w = 1 - q + q * mp.exp(mu * x - mu * mu / 2)
            return (w ** (z + 1) + w ** (-z)) * mp.npdf(x)

        places = [mu / 2, *np.arange(float(mu) / 2 + 1, float(mu * (z.real + 1)) + 13, 1.0)]
        return mp.quad(value, places) + (1 - q) * (1 - 2 * mp.ncdf(-mu / 2))


def check(name: str, nodes: Nodes) -> None:
    law = SubsetGaussianLaw(*CASES[name])
    discs, scale = law.transform(nodes)
    assert discs.radius < 1e-10
    for n in (0, nodes.size - 1):
        true = moment(law, mpc(nodes.tilt, n * nodes.step)) * mp.exp(-real(scale))
        assert abs(mpc(complex(discs.centres[n])) - true) <= discs.radius
        assert abs(true) <= discs.bound


@pytest.mark.parametrize("name", one_in(3, CASES))
def test_moments(name: str) -> None:
    check(name, NODES)


@pytest.mark.long
def test_moments_at_a_large_tilt() -> None:
    for name in CASES:
        check(name, Nodes(20.0, 3.0, 16))


@pytest.mark.parametrize(
    ("name", "fault"),
    one_in(
        4,
        [
            ("losses_at", lambda f: lambda m, rate, x: f(m, rate * Fraction(999, 1000), x)),
            ("losses_at", lambda f: lambda m, rate, x: f(m, 1 - rate, x)),
            ("_rest", lambda f: lambda law: f(replace(law, rate=law.rate * 2))),
            ("_FAR", lambda f: 2.0),
            ("gauss_rule", lambda f: lambda: f()._replace(shares=f().shares * (1 - 1e-7))),
        ],
        many=True,
    ),
    ids=["a smaller rate", "1 − rate", "less at 0", "a truncated tail", "weights rounded inwards"],
)
def test_twins(monkeypatch: pytest.MonkeyPatch, name: str, fault: Callable[..., object]) -> None:
    monkeypatch.setattr(subset_gaussian, name, fault(getattr(subset_gaussian, name)))
    with pytest.raises(AssertionError):
        check("training", NODES)


@pytest.mark.long
@pytest.mark.parametrize("name", ["training", "half"])
def test_moments_fall_as_is_stated(name: str) -> None:
    """Along the line, from each of some heights on."""
    law = SubsetGaussianLaw(*CASES[name])
    whole = abs(moment(law, mpc(4.0, 0)))
    for reach in (2.0, 10.0, 40.0):
        bound = law.log_decay(4.0, reach)
        assert bound <= 0
        for height in (reach, 1.3 * reach, 2.5 * reach):
            assert mp.log(abs(moment(law, mpc(4.0, height))) / whole) <= bound + 1e-12


@pytest.mark.long
@pytest.mark.parametrize(("name", "count"), [("training", 1000), ("half", 300)])
def test_both_ways_to_a_curve_agree(name: str, count: int) -> None:
    mu_squared, rate = CASES[name]
    pair = SubsetPair(GaussianPair(mu_squared), rate.numerator, rate.denominator)
    forget()
    for delta in (Fraction(1, 1000), Fraction(1, 10**9)):
        found, cut = (
            compose([(each, count)], width=Fraction(1, 1000)).to_epsilon(delta)
            for each in (pair, replace(pair, is_cut=True))
        )
        assert max(found.lower, cut.lower) <= min(found.upper, cut.upper)
        assert found.upper - found.lower <= 1e-3
