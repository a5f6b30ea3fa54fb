"""Subsampling: a mechanism that sees a secret random sample of the rows tells less about each of them.

Each privacy unit has one row. Let q be the chance of a row to be in the sample, and ε' = ln(1 + q(e^ε − 1)). If the
mechanism is (ε, δ)-DP, then on the sample it is (ε', qδ)-DP, for the neighbours that go with the way of sampling
(`privacy.amplification` has the proofs). They compare samples as bags of rows, so the inner loss must not rest on the
order of the rows. The gain is lost if the sample becomes known, or its size where that varies: reveal neither.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, TypeVar, final, overload

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms.parameters import rational, whole_number
from lapwing.privacy import amplification
from lapwing.privacy.measures import ApproxDP, PureDP

Row = TypeVar("Row")
Scalar = TypeVar("Scalar", bound=np.generic)
Output = TypeVar("Output")
Amplified = TypeVar("Amplified", PureDP, ApproxDP)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonSample:
    """Take each row by a coin of its own.

    It protects neighbours for `add_remove`; the theorem and its proof are in `privacy.amplification`.

    Args:
        rate: q, above 0 and at most 1.
    """

    neighbouring: ClassVar[str] = "add_remove"
    rate: Fraction

    def __post_init__(self) -> None:
        rate = rational(self.rate, "rate")
        if not 0 < rate <= 1:
            raise InvalidParameter(f"rate is {self.rate}; it must be above 0 and at most 1.")
        object.__setattr__(self, "rate", rate)

    def draw(self, rows: int, entropy: Entropy) -> NDArray[np.int64]:
        """Return the indices of a sample of this many rows, ascending."""
        return np.flatnonzero(samplers.bernoulli(self.rate, rows, entropy)).astype(np.int64, copy=False)

    def amplified(self, inner: Amplified) -> Amplified:
        """Return (ln(1 + rate·(e^ε − 1)), rate·δ) for an inner (ε, δ), ε rounded up."""
        return amplification.subsampled(inner, self.rate)

    def inner(self, wanted: Amplified) -> Amplified:
        """Return the largest inner loss whose amplified loss is at most the wanted one."""
        return amplification.subsampled_inner(wanted, self.rate)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSizeSample:
    """Take a set of a fixed size, each as likely.

    It protects neighbours for `replace_one`, where the number of rows is public; the theorem and its proof are in
    `privacy.amplification`.

    Args:
        size: From 1 to population.
        population: The public number of rows.
    """

    neighbouring: ClassVar[str] = "replace_one"
    size: int
    population: int

    def __post_init__(self) -> None:
        population = whole_number(self.population, "population", least=1, most=(1 << 63) - 1)
        object.__setattr__(self, "population", population)
        object.__setattr__(self, "size", whole_number(self.size, "size", least=1, most=population))

    def draw(self, rows: int, entropy: Entropy) -> NDArray[np.int64]:
        """Return the indices of a sample, ascending.

        Raises:
            InvalidParameter: Unless there are as many rows as the population, a public number.
        """
        if rows != self.population:
            raise InvalidParameter(f"There are {rows} rows, but the population is {self.population}; give all of it.")
        return samplers.subset(self.population, self.size, entropy)

    def amplified(self, inner: Amplified) -> Amplified:
        """Return (ln(1 + q·(e^ε − 1)), q·δ) for an inner (ε, δ) and q = size/population, ε rounded up."""
        return amplification.subsampled(inner, size=self.size, population=self.population)

    def inner(self, wanted: Amplified) -> Amplified:
        """Return the largest inner loss whose amplified loss is at most the wanted one."""
        return amplification.subsampled_inner(wanted, size=self.size, population=self.population)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Subsampled:
    """Run a mechanism on a secret random sample.

    Guarantee:
        `loss(inner, …)`, where `inner` is the loss of the mechanism on the sample. It holds for samples of every size,
        and for neighbours in which rows may also stand in another order.

    Args:
        sample: A PoissonSample or a FixedSizeSample.
    """

    name: ClassVar[str] = "subsampled"
    sample: PoissonSample | FixedSizeSample

    def __post_init__(self) -> None:
        if not isinstance(self.sample, PoissonSample | FixedSizeSample):
            raise InvalidParameter(
                f"sample is a {type(self.sample).__name__}; give a PoissonSample or a FixedSizeSample."
            )

    def loss(self, inner: Amplified, *, neighbouring: str) -> Amplified:
        """Return (ε', qδ) for an inner (ε, δ): ε' = ln(1 + q(e^ε − 1)) = ε + ln(q + (1 − q)e^(−ε)), rounded up.

        Args:
            inner: A PureDP or ApproxDP loss.
            neighbouring: The neighbours that it holds for, add_remove for a PoissonSample and replace_one for a
                FixedSizeSample; the result is for the same.

        Raises:
            InvalidParameter: For other neighbours and for other measures, in which there is no such theorem.
        """
        self._check(neighbouring)
        return self.sample.amplified(inner)

    def inner_loss(self, wanted: Amplified, *, neighbouring: str) -> Amplified:
        """Return the largest inner loss whose amplified loss is at most the wanted one, ε rounded down.

        ε = ln(1 + (e^ε' − 1)/q) = ε' + ln(1/q − (1/q − 1)e^(−ε')), δ = δ'/q, or 1.
        """
        self._check(neighbouring)
        return self.sample.inner(wanted)

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

        Everything that `compute` returns is released, and so is whether it fails. So it must be private by itself,
        failures included, for any rows, and must not return the number of rows.

        Args:
            rows: An array, sampled along its first axis, or a list; one row for each unit.
            compute: A function of the rows of the sample, in their order, and of an Entropy to draw from.
        """
        indices = self.sample.draw(len(rows), entropy)
        if isinstance(rows, np.ndarray):
            return compute(rows[indices], entropy)
        return compute([rows[index] for index in indices.tolist()], entropy)

    def _check(self, neighbouring: str) -> None:
        if neighbouring != self.sample.neighbouring:
            raise InvalidParameter(
                f"neighbouring is {neighbouring!r}; a {type(self.sample).__name__} is proven to amplify losses for "
                f"{self.sample.neighbouring!r} only."
            )
