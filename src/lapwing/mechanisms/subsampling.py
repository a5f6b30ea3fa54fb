"""Subsampling: a mechanism that sees a secret random sample of the rows tells less about each of them.

Each privacy unit has one row. Let q be the chance of a row to be in the sample, and ε' = ln(1 + q(e^ε − 1)). If the
mechanism is (ε, δ)-DP, then on the sample it is (ε', qδ)-DP, for the neighbours that go with the way of sampling; the
proofs are below. They compare samples as bags of rows, so the inner loss must not rest on the order of the rows. The
gain is lost if the sample, or its size where that varies, becomes known: say neither.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, TypeVar, final, overload

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.bounds import Ball, dyadic_down, dyadic_up, enclose_tightly
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms.parameters import rational, whole_number
from lapwing.privacy.measures import ApproxDP, PureDP

_BITS = 64

Row = TypeVar("Row")
Scalar = TypeVar("Scalar", bound=np.generic)
Output = TypeVar("Output")
Amplified = TypeVar("Amplified", PureDP, ApproxDP)


class Sample(Protocol):
    """A way of drawing a sample: the neighbours that it protects, each row's chance, and the draw."""

    neighbouring: ClassVar[str]

    @property
    def share(self) -> Fraction:
        """The chance q of each row to be in the sample."""
        ...

    def draw(self, rows: int, entropy: Entropy) -> NDArray[np.int64]:
        """Return the indices of a sample of so many rows, ascending."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonSample:
    """Take each row by a coin of its own.

    For `add_remove`: let A be the output's law without the row, and B that with it in the sample for sure. For each
    outcome of the other coins B's samples have one row more than A's, so a = A(E), b = B(E) have b ≤ e^ε·a + δ and
    a ≤ e^ε·b + δ. With the row the law is (1 − q)A + qB.

    - (1 − q)a + qb ≤ (1 − q)a + q(e^ε·a + δ) = e^ε'·a + qδ.
    - e^ε'((1 − q)a + qb) + qδ ≥ e^ε'(1 − q + q·e^(−ε))a − q·e^(ε'−ε)δ + qδ ≥ a, because ε' ≤ ε, and because
      (1 + q(e^ε − 1))(1 − q(1 − e^(−ε))) = 1 + q(1 − q)(e^ε + e^(−ε) − 2) ≥ 1.

    Args: rate: q, above 0 and at most 1.
    Source: Balle, Barthe and Gaboardi 2018 (Privacy Amplification by Subsampling), Theorem 8.
    """

    neighbouring: ClassVar[str] = "add_remove"
    rate: Fraction

    def __post_init__(self) -> None:
        rate = rational(self.rate, "rate")
        if not 0 < rate <= 1:
            raise InvalidParameter(f"rate is {self.rate}; it must be above 0 and at most 1.")
        object.__setattr__(self, "rate", rate)

    @property
    def share(self) -> Fraction:
        """The rate."""
        return self.rate

    def draw(self, rows: int, entropy: Entropy) -> NDArray[np.int64]:
        """Return the indices of a sample of so many rows, ascending."""
        return np.flatnonzero(samplers.bernoulli(self.rate, rows, entropy)).astype(np.int64, copy=False)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSizeSample:
    """Take a set of a fixed size, each as likely.

    For `replace_one`, where the number of rows is public, and inner losses for `replace_one`: let A be the output's law
    given that the row is not in the sample, and B and B' given that it is, with its one value or its other. B' is B
    with one row of the sample replaced. So is A, in law: replace the row by another one, each outside of the sample as
    likely, and the sample is uniform among those without the row. So B(E) ≤ e^ε(λA + (1 − λ)B')(E) + δ for every λ
    from 0 to 1. With q = size/population the two laws are (1 − q)A + qB and (1 − q)A + qB', and 1 − λ = e^(ε'−ε) makes

        (1 − q)A + qB  ≤  (1 − q + q·e^ε·λ)A + q·e^ε'·B' + qδ  =  e^ε'((1 − q)A + qB') + qδ.

    Args: size: from 1 to population; population: the public number of rows.
    Source: Balle, Barthe and Gaboardi 2018, Theorem 9.
    """

    neighbouring: ClassVar[str] = "replace_one"
    size: int
    population: int

    def __post_init__(self) -> None:
        population = whole_number(self.population, "population", least=1, most=(1 << 63) - 1)
        object.__setattr__(self, "population", population)
        object.__setattr__(self, "size", whole_number(self.size, "size", least=1, most=population))

    @property
    def share(self) -> Fraction:
        """Size over population."""
        return Fraction(self.size, self.population)

    def draw(self, rows: int, entropy: Entropy) -> NDArray[np.int64]:
        """Return the indices of a sample, ascending.

        Raises: InvalidParameter unless there are as many rows as the population, a public number.
        """
        if rows != self.population:
            raise InvalidParameter(f"There are {rows} rows, but the population is {self.population}; give all of it.")
        return samplers.subset(self.population, self.size, entropy)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Subsampled:
    """Run a mechanism on a secret random sample.

    Guarantee: `loss(inner, …)`, where `inner` is the loss of what is run on the sample: for samples of every size, and
        for neighbours in which rows may also stand in another order.
    Args: sample: a PoissonSample or a FixedSizeSample.
    """

    name: ClassVar[str] = "subsampled"
    sample: Sample

    def __post_init__(self) -> None:
        if not isinstance(self.sample, PoissonSample | FixedSizeSample):
            raise InvalidParameter(
                f"sample is a {type(self.sample).__name__}; give a PoissonSample or a FixedSizeSample."
            )

    def loss(self, inner: Amplified, *, neighbouring: str) -> Amplified:
        """Return (ε', qδ) for an inner (ε, δ): ε' = ln(1 + q(e^ε − 1)) = ε + ln(q + (1 − q)e^(−ε)), rounded up.

        Args: inner: a PureDP or ApproxDP loss; neighbouring: the neighbours that it holds for, add_remove for a
            PoissonSample and replace_one for a FixedSizeSample; the result is for the same.
        Raises: InvalidParameter for other neighbours and for other measures, in which there is no such theorem.
        """
        self._check(inner, neighbouring)
        epsilon_up = _through(inner.epsilon, lambda e, q: q + (1 - q) * (-e).exp(), self.sample.share)[1]
        if isinstance(inner, PureDP):
            return PureDP(epsilon_up)
        return ApproxDP(epsilon_up, self.sample.share * inner.delta)

    def inner_loss(self, wanted: Amplified, *, neighbouring: str) -> Amplified:
        """Return the largest inner loss whose amplified loss is at most the wanted one, ε rounded down.

        ε = ln(1 + (e^ε' − 1)/q) = ε' + ln(1/q − (1/q − 1)e^(−ε')), δ = δ'/q, or 1.
        """
        self._check(wanted, neighbouring)
        share = self.sample.share
        epsilon_down = _through(wanted.epsilon, lambda e, q: 1 / q - (1 / q - 1) * (-e).exp(), share)[0]
        if isinstance(wanted, PureDP):
            return PureDP(epsilon_down)
        return ApproxDP(epsilon_down, min(Fraction(1), wanted.delta / share))

    @overload
    def release(
        self,
        rows: NDArray[Scalar],
        compute: Callable[[NDArray[Scalar], Entropy], Output],
        entropy: Entropy = SYSTEM,
    ) -> Output: ...
    @overload
    def release(
        self, rows: Sequence[Row], compute: Callable[[list[Row], Entropy], Output], entropy: Entropy = SYSTEM
    ) -> Output: ...
    def release(
        self, rows: NDArray[Any] | Sequence[Any], compute: Callable[[Any, Entropy], Output], entropy: Entropy = SYSTEM
    ) -> Output:
        """Draw a fresh sample and return what `compute` makes of its rows and of the source of randomness.

        Whatever `compute` returns is released: it must be private by itself, as a function of any rows, and must not
        return the number of rows.

        Args: rows: an array, sampled along its first axis, or a list; one row for each unit. compute: a function of
            the rows of the sample, in their order, and of an Entropy to draw from.
        """
        indices = self.sample.draw(len(rows), entropy)
        if isinstance(rows, np.ndarray):
            return compute(rows[indices], entropy)
        return compute([rows[index] for index in indices.tolist()], entropy)

    def _check(self, loss: PureDP | ApproxDP, neighbouring: str) -> None:
        if neighbouring != self.sample.neighbouring:
            raise InvalidParameter(
                f"neighbouring is {neighbouring!r}; a {type(self.sample).__name__} is proven to amplify losses for "
                f"{self.sample.neighbouring!r} only."
            )
        if not isinstance(loss, PureDP | ApproxDP):
            kind = getattr(loss, "kind", type(loss).__name__)
            raise InvalidParameter(
                f"A {kind} loss is not amplified to one of its kind (what a sampled Gaussian mechanism loses has no "
                "useful μ or ρ: its worst ratios remain); state an (ε, δ) of it, or keep an account of the whole batch."
            )


def _through(epsilon: Fraction, factor: Callable[[Ball, Ball], Ball], share: Fraction) -> tuple[Fraction, Fraction]:
    """Return ε + ln(factor(ε, q)), rounded down and up to 64 binary digits."""
    if epsilon == 0 or share == 1:
        return epsilon, epsilon
    bounds = enclose_tightly(lambda e, q: e + factor(e, q).log(), epsilon, share, bits=_BITS)
    return dyadic_down(bounds.lower, _BITS), dyadic_up(bounds.upper, _BITS)
