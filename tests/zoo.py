"""Every measure and mechanism; law tests run over all rows. A new one adds a row here and gets the laws for nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from mpmath import mp, mpf

from lapwing.mechanisms import DiscreteLaplace, Mechanism, RoundedGaussian, Sensitivity
from lapwing.privacy.measures import GaussianDP, Loss, PureDP, ZeroConcentratedDP

MEASURES: tuple[type[PureDP] | type[GaussianDP] | type[ZeroConcentratedDP], ...] = (
    PureDP,
    GaussianDP,
    ZeroConcentratedDP,
)

SENSITIVITIES = (
    Sensitivity(l1=1, l2_squared=1),
    Sensitivity(l1=5, l2_squared=13),
    Sensitivity(l1=30, l2_squared=180),
    Sensitivity(l1=2**40, l2_squared=2**80),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditiveRow:
    """A mechanism that adds noise; `law` is P(noise = x) at a scale, computed apart from the code under test."""

    name: str
    family: type[DiscreteLaplace] | type[RoundedGaussian]
    build: Callable[[Fraction], Mechanism]
    kinds: tuple[str, ...]
    refused_kinds: tuple[str, ...]
    law: Callable[[Fraction, int], mpf]


def laplace_law(scale: Fraction, x: int) -> mpf:
    """(1 − q)/(1 + q)·q^|x|."""
    q = mp.exp(-mpf(scale.denominator) / scale.numerator)
    return (1 - q) / (1 + q) * q ** abs(x)


def gaussian_law(sigma: Fraction, x: int) -> mpf:
    """Φ((x + ½)/σ) − Φ((x − ½)/σ), by integration-free differences of erfc on the side of the tail."""
    spread = mpf(sigma.numerator) / sigma.denominator * mp.sqrt(2)
    return (mp.erfc((abs(x) - mpf(1) / 2) / spread) - mp.erfc((abs(x) + mpf(1) / 2) / spread)) / 2


ADDITIVE = (
    AdditiveRow(
        name="discrete Laplace",
        family=DiscreteLaplace,
        build=lambda scale: DiscreteLaplace(scale=scale),
        kinds=("pure", "gdp", "zcdp"),
        refused_kinds=(),
        law=laplace_law,
    ),
    AdditiveRow(
        name="rounded Gaussian",
        family=RoundedGaussian,
        build=lambda sigma: RoundedGaussian(sigma=sigma),
        kinds=("gdp", "zcdp"),
        refused_kinds=("pure",),
        law=gaussian_law,
    ),
)


def losses(*amounts: Fraction) -> tuple[Loss, ...]:
    """Every measure at every amount."""
    return tuple(measure.from_amount(amount) for measure in MEASURES for amount in amounts)
