"""Answer many marginals of the same rows at once, by measuring what each of them adds to those of fewer attributes.

Theory of operation. Rows have a value of each of several attributes, attribute i one of n_i. A *marginal* W is the
table of sums over all rows with each combination of values of the attributes in W. For a set A let T_A be its
marginal and

    t_A = (⊗_{i ∈ A} (n_i·I − J)) T_A,    J all ones,

which is n_A = Π_{i ∈ A} n_i times the projection P_A of T_A to tables that add up to 0 along each axis: the
*residual* of A, in whole numbers. Measured is y_A = t_A + noise, for every A that is contained in a wanted marginal,
each entry with a rounded Gaussian of its own of variance parameter 1/q_A. Everything else is post-processing of all
y_A.

Loss. t_A is an integer vector, so that t_A + round(N(0, 1/q_A)) is a rounding of the real Gaussian mechanism, entry
by entry, as in `rounded_gaussian`. (The order matters: were rounded noise multiplied by such a matrix afterwards, the
result would be no function of a real Gaussian mechanism's on the vector in question; here the projection of the
*noise* happens only in post-processing, on integers that were released.) So all measurements together are μ-GDP, μ² =
max Σ_A q_A·‖Δt_A‖² over neighbours. A row with the value v in cell x of all attributes adds v times a column. Two
columns have in t_A the inner product Π_{i ∈ A} of n_i·(n_i − 1) where the two cells agree in i, and of −n_i where
they do not: for each i that is an entry of (n_i·I − J)² = n_i·(n_i·I − J). Let G(S) be the sum over A of q_A times
it, for cells that agree exactly in the attributes of S; G = G(all) is the largest. A unit has at most K rows, of
values in [low, high] ∋ 0; so what it adds lies in K·H, H the hull of 0 and of low and high times the columns (a row
in no cell adds 0).
- one unit more or less: a norm is convex, thus largest at a corner: μ² = K²·max(low², high²)·G.
- one unit for another: at a difference of corners, u·column − v·column', u and v in {0, low, high}: μ² = K²·max (u² +
  v²)·G − 2uv·G(S) over these and over S. (The S that occur are all subsets, for n_i ≥ 2.)

Reconstruction. T_W = Σ_{A ⊆ W} (P_A T_A spread evenly over the other axes of W, divided by n_{W∖A}), as I is the sum
of J/n and I − J/n for each axis. So from P_A y_A/n_A, which errs by the projection of noise, P_A being a projection:
a cell's variance is Σ_{A ⊆ W} (1/q_A)·Π_{i ∈ A} (n_i − 1)/n_i³ · Π_{i ∈ W∖A} 1/n_i², the diagonal of P_A being Π (n_i
− 1)/n_i. This is the variance of the Gaussian part, exactly. Each rounding of noise moves an entry by ½ at most, and
rows of P_A have absolute sums Π 2(n_i − 1)/n_i, so that all of them move the cell by at most ½·Π_{i ∈ W} (3n_i −
2)/n_i².

Agreement. Reconstructed tables are margins of one table of rational numbers. They are made whole without losing that:
their sums over all cells up to x in every axis are rounded, and cells are differences of these. At the end of an axis
such a sum is that of the marginal without the axis, where the same number is rounded. A cell is made of 2^|W|
roundings at most, each within ½: they move it by at most 2^(|W| − 1). With the above, that is its *slack*.

Digits. Consecutive attributes may be the digits of one fact, the coarsest first (`digits`). So the digits of a district
are its region and its place in there. Marginals then have the first digits of a fact, or none. All above holds,
as digits are attributes. For agreement, sums go over all cells up to x in the order of the numbers that the digits
make. A marginal with fewer digits has such sums at the ends of its cells, where the same numbers are rounded. So a cell
is made of two roundings for each fact, with any number of digits, and |W| above counts facts.

Never worse. Noise of variance s_W² on each wanted marginal by itself has the loss Σ_W K²·m²/s_W². The precision Σ_{W
⊇ A} 1/(s_W²·n_A·n_W) of every t_A has the same G, and variances that are no larger. That is a point of the convex
problem which `marginal_weights` solves for the least largest ratio of variances.

Source:
    Xiao, He, Zhang and Kifer 2023 (ResidualPlanner, arXiv 2305.08175), with an integer basis in place of theirs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, combinations
from math import prod
from typing import ClassVar, Final, Self, final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import ROOM, IntArray, integer_array, largest
from lapwing.exact.bounds import square_root_up
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.exact.rounded_gaussian import rounded_gaussian
from lapwing.mechanisms.marginal_weights import Floats, precisions_for, precisions_for_sum
from lapwing.mechanisms.noisy import SCALE_BITS, add, check_positive
from lapwing.mechanisms.parameters import LARGEST_SCALE, SMALLEST_SCALE, positive, whole_number
from lapwing.mechanisms.reconstructed_gaussian import ReconstructedGaussian
from lapwing.privacy.measures import GaussianDP, Loss, PureDP, ZeroConcentratedDP

Axes = frozenset[int]
MOST_ATTRIBUTES: Final = 16
MOST_RESIDUALS: Final = 4_096
_GRID: Final = 40
"""Precisions are rounded down to so many binary digits, so that sums of them are short."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowsOfUnit:
    """The rows that one privacy unit can have in the tables.

    Args:
        rows: How many rows at most.
        low: The amount that one row adds to a cell, from low ≤ 0 to high ≥ 0 (0 and 1 in a count).
        high: As `low`.
        replaced: Whether neighbours have one unit in the place of another, and not one more or less.
    """

    rows: int = 1
    low: int = 0
    high: int = 1
    replaced: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", whole_number(self.rows, "rows", least=1))
        object.__setattr__(self, "high", whole_number(self.high, "high"))
        object.__setattr__(self, "low", -whole_number(-self.low, "The negative of low"))
        if self.low == self.high:
            raise InvalidParameter("low and high are both 0, so that rows add nothing: give the range of their values.")


@final
@dataclass(frozen=True, kw_only=True)  # without slots, for what is computed once
class ResidualMarginals:
    """Release marginals of the same rows that agree with each other, from noisy residuals.

    Guarantee:
        GaussianDP(μ) with `loss`, of whole numbers at most `RowsOfUnit` apart; in the same way (μ²/2)-zCDP. The module
        has the proof.

    Args:
        sizes: The number of values of each attribute.
        marginals: The attributes of each wanted table, by their places, ascending, each once.
        precisions: Of `residuals`, the inverse of the variance that their noise has.
        digits: How many consecutive attributes are the digits of each fact; () if each attribute is a fact.
    """

    name: ClassVar[str] = "residual marginals"
    sizes: tuple[int, ...]
    marginals: tuple[tuple[int, ...], ...]
    precisions: tuple[Fraction, ...]
    digits: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        sizes, marginals = _workload(self.sizes, self.marginals)
        object.__setattr__(self, "digits", _digits(self.digits, sizes, marginals))
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "marginals", marginals)
        precisions = tuple(positive(each, "A precision") for each in self.precisions)
        if not all(SMALLEST_SCALE**2 <= 1 / each <= LARGEST_SCALE**2 for each in precisions):
            raise InvalidParameter("The noise of a residual must have a deviation from 2⁻³⁰ to 2⁸⁰: give another loss.")
        object.__setattr__(self, "precisions", precisions)
        if len(precisions) != len(self.residuals):
            raise InvalidParameter(
                f"There are {len(precisions)} precisions for {len(self.residuals)} residuals; give one for each."
            )

    @classmethod
    def for_loss(
        cls,
        loss: Loss,
        *,
        sizes: Sequence[int],
        marginals: Sequence[Sequence[int]],
        unit: RowsOfUnit,
        beside: Sequence[Fraction | int] | None = None,
        digits: Sequence[int] = (),
    ) -> Self:
        """Return the mechanism whose largest variance of a cell is the least, to within a fifth of a percent mostly.

        Args:
            loss: In gdp or zcdp.
            beside: Numbers to compare each marginal's variance with: the largest of these ratios shall be the least.
                Left out, it is 1 for all of them.
            digits: As in the class.

        Raises:
            InvalidParameter: For a pure loss, which no Gaussian noise keeps, and for too large a workload.
        """
        solved = cls._solved(loss, sizes, marginals, unit, beside, lambda *problem: precisions_for(*problem)[0])
        return replace(solved, digits=tuple(digits)) if digits else solved

    @classmethod
    def for_total_variance(
        cls,
        loss: Loss,
        *,
        sizes: Sequence[int],
        marginals: Sequence[Sequence[int]],
        unit: RowsOfUnit,
        weights: Sequence[Fraction | int] | None = None,
    ) -> Self:
        """Return the mechanism whose weighted sum of the variances of `marginals` is the least.

        Args:
            loss: In gdp or zcdp.
            weights: Of the variance of each marginal in the sum, such as its number of cells. Left out, 1.

        Raises:
            InvalidParameter: As `for_loss`.
        """
        return cls._solved(loss, sizes, marginals, unit, weights, lambda *problem: precisions_for_sum(*problem)[0])

    @classmethod
    def _solved(
        cls,
        loss: Loss,
        sizes: Sequence[int],
        marginals: Sequence[Sequence[int]],
        unit: RowsOfUnit,
        numbers: Sequence[Fraction | int] | None,
        solve: Callable[[Floats, Floats, Floats], Floats],
    ) -> Self:
        """Return the mechanism with the precisions that `solve` finds, as many times them as the loss allows.

        Args:
            numbers: One for each marginal, which the problem takes; 1 if they are left out.
            solve: Takes the cost by residual, the variance by marginal and residual, and the numbers.
        """
        check_positive(loss)
        if isinstance(loss, PureDP):
            raise InvalidParameter("Gaussian noise keeps no pure loss; give a GaussianDP or a ZeroConcentratedDP.")
        mu_squared = 2 * loss.rho if isinstance(loss, ZeroConcentratedDP) else loss.mu_squared
        shape, wanted = _workload(sizes, marginals)
        if numbers is not None and len(numbers) != len(wanted):
            raise InvalidParameter(f"There are {len(numbers)} numbers for {len(wanted)} marginals; give as many.")
        each = [Fraction(1)] * len(wanted) if numbers is None else [positive(number, "beside") for number in numbers]
        residuals = tuple(_residuals(shape, wanted))
        cost = np.array([float(_inner_product(shape, axes, axes)) for axes in residuals])
        variance = np.array([[float(_share(shape, whole, axes)) for axes in residuals] for whole in wanted])
        found = solve(cost, variance, np.array([float(number) for number in each]))
        # Exactly from here on: floats are taken as they are, and all of them scaled to what the loss allows.
        parts = [_down(Fraction(precision)) for precision in found.tolist()]
        fits = _down(mu_squared / _mu_squared(shape, residuals, parts, unit))
        return cls(sizes=shape, marginals=wanted, precisions=tuple(part * fits for part in parts))

    @cached_property
    def residuals(self) -> tuple[Axes, ...]:
        """The attributes of each residual, in the order of `precisions`: all sets inside a wanted marginal."""
        return tuple(_residuals(self.sizes, self.marginals))

    def mu_squared(self, unit: RowsOfUnit) -> Fraction:
        """Return the most that one unit moves all residuals together, in squares of their noise's deviations."""
        return _mu_squared(self.sizes, self.residuals, self.precisions, unit)

    def loss(self, unit: RowsOfUnit, kind: str) -> Loss:
        """Return the loss in a measure, gdp or zcdp.

        Raises:
            InvalidParameter: For pure: no Gaussian noise has a finite ε at δ = 0.
        """
        return GaussianDP.from_mu_squared(self.mu_squared(unit)).to_kind(kind)

    def variance(self, marginal: Sequence[int]) -> Fraction:
        """Return the variance of the Gaussian part of what each cell of a wanted marginal errs by, exactly."""
        whole = tuple(marginal)
        if whole not in self.marginals:
            raise InvalidParameter(f"{whole} is not among the wanted marginals.")
        return self._variances[whole]

    @cached_property
    def _variances(self) -> dict[tuple[int, ...], Fraction]:
        """The variance of a cell of each marginal."""
        noises = [(axes, 1 / each) for axes, each in zip(self.residuals, self.precisions, strict=True)]
        return {
            whole: sum((_share(self.sizes, whole, axes) * of for axes, of in noises if axes <= {*whole}), Fraction(0))
            for whole in self.marginals
        }

    def noise(self, marginal: Sequence[int]) -> ReconstructedGaussian:
        """Return what each cell of a wanted marginal errs by, with a deviation that is rounded up."""
        sigma = square_root_up(self.variance(marginal), SCALE_BITS)
        of_noise = Fraction(
            prod(3 * self.sizes[i] - 2 for i in marginal), 2 * prod(self.sizes[i] ** 2 for i in marginal)
        )
        return ReconstructedGaussian(sigma=sigma, slack=Fraction(2 ** len(self._facts(marginal)), 2) + of_noise)

    def _facts(self, marginal: Sequence[int]) -> list[int]:
        """Return how many digits of each fact a marginal has, of those that it has any of."""
        ends = list(accumulate(self.digits or [1] * len(self.sizes)))
        many = [sum(start <= i < end for i in marginal) for start, end in zip([0, *ends], ends, strict=False)]
        return [count for count in many if count]

    def release(self, tables: Sequence[IntArray], entropy: Entropy = SYSTEM) -> tuple[IntArray, ...]:
        """Return noisy tables, in the order of the marginals, that agree with each other.

        Args:
            tables: One for each marginal, in their order, an axis an attribute: margins of one table of all rows. Those
                that lie inside a larger one are not looked at.
        """
        if len(tables) != len(self.marginals):
            raise InvalidParameter(f"There are {len(tables)} tables for {len(self.marginals)} marginals; give as many.")
        for table, whole in zip(tables, self.marginals, strict=True):
            shape = tuple(self.sizes[i] for i in whole)
            if table.shape != shape:
                raise InvalidParameter(f"The table of {whole} has the shape {table.shape}; it must have {shape}.")
        projected = {
            axes: self._measured(axes, each, tables, entropy)
            for axes, each in zip(self.residuals, self.precisions, strict=True)
        }
        return tuple(self._reconstructed(whole, projected) for whole in self.marginals)

    def _measured(self, axes: Axes, precision: Fraction, tables: Sequence[IntArray], entropy: Entropy) -> IntArray:
        """Return n_A·P_A y_A: the only place that touches data, and noise is added before anything else sees it."""
        whole = max((each for each in self.marginals if axes <= frozenset(each)), key=len)
        table = tables[self.marginals.index(whole)]
        others = tuple(n for n, i in enumerate(whole) if i not in axes)
        margin = _wide(table, prod(table.shape)).sum(axis=others)
        exact = _centred(np.asarray(margin).reshape([self.sizes[i] for i in whole if i in axes]))
        noisy = add(exact, lambda size: rounded_gaussian(1 / precision, size, entropy))
        return _centred(np.asarray(noisy))

    def _reconstructed(self, whole: tuple[int, ...], projected: dict[Axes, IntArray]) -> IntArray:
        """Return a marginal in whole numbers, from n_A·P_A y_A for each A inside it."""
        shape = [self.sizes[i] for i in whole]
        total: IntArray = np.zeros(shape, dtype=object)
        for axes, part in projected.items():
            if axes <= frozenset(whole):
                # over the common denominator n_W²: n_A·P_A y_A/n_A², divided by n of the other axes
                factor = prod(self.sizes[i] for i in whole if i not in axes)
                spread = part.reshape([self.sizes[i] if i in axes else 1 for i in whole])
                total = total + spread.astype(object) * factor
        denominator = prod(shape) ** 2
        ends = list(accumulate(self._facts(whole)))
        facts = [prod(shape[start:end]) for start, end in zip([0, *ends], ends, strict=False)]
        total = np.asarray(total, dtype=object).reshape(facts)
        for axis in range(len(facts)):
            total = np.asarray(np.cumsum(total, axis=axis), dtype=object)
        rounded: IntArray = (2 * total + denominator) // (2 * denominator)
        for axis in range(len(facts)):
            rounded = np.diff(rounded, axis=axis, prepend=0)
        flat = integer_array(np.asarray(rounded).reshape(-1).tolist(), below=ROOM)
        return flat.reshape(shape)


def _workload(
    sizes: Sequence[int], marginals: Sequence[Sequence[int]]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Return sizes and marginals as tuples, if they are a workload."""
    shape = tuple(whole_number(size, "The number of values", least=1) for size in sizes)
    wanted = tuple(tuple(whole) for whole in marginals)
    if not wanted or len(shape) > MOST_ATTRIBUTES:
        raise InvalidParameter(
            f"{len(wanted)} marginals of {len(shape)} attributes were given; there must be at least one, of at most "
            f"{MOST_ATTRIBUTES} attributes."
        )
    places = range(len(shape))
    for whole in wanted:
        if list(whole) != sorted(set(whole)) or any(i not in places for i in whole):
            raise InvalidParameter(
                f"The marginal {whole} must be indexes of attributes, ascending, each once and below {len(shape)}."
            )
    if len(set(wanted)) < len(wanted):
        raise InvalidParameter("A marginal is listed twice; list each once.")
    if (
        sum(2 ** len(whole) for whole in wanted) > 64 * MOST_RESIDUALS
        or len(set(_residuals(shape, wanted))) > MOST_RESIDUALS
    ):
        raise InvalidParameter(
            f"The marginals have more than {MOST_RESIDUALS} residuals; ask for fewer, or smaller ones."
        )
    return shape, wanted


def _digits(digits: Sequence[int], sizes: tuple[int, ...], marginals: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the numbers of digits of all facts, if every marginal has the first digits of a fact or none."""
    ends = list(accumulate(digits))
    facts = [range(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    first = all(
        inside == list(fact)[: len(inside)]
        for whole in marginals
        for fact in facts
        for inside in [[i for i in whole if i in fact]]
    )
    if digits and (min(digits) < 1 or ends[-1] != len(sizes) or not first):
        raise InvalidParameter(
            f"digits is {tuple(digits)}; it must be a number of at least 1 for each fact, {len(sizes)} together. Each "
            "marginal must have the first digits of a fact."
        )
    return tuple(digits)


def _residuals(sizes: tuple[int, ...], marginals: Sequence[tuple[int, ...]]) -> Iterator[Axes]:
    """Yield the sets inside a marginal, but those with an attribute of one value, whose residual is 0."""
    several = [tuple(i for i in whole if sizes[i] > 1) for whole in marginals]
    seen = {axes for whole in several for size in range(len(whole) + 1) for axes in combinations(whole, size)}
    yield from (frozenset(axes) for axes in sorted(seen, key=lambda axes: (len(axes), axes)))


def _inner_product(sizes: tuple[int, ...], axes: Axes, agreed: Axes) -> int:
    """Return the inner product of the columns of two cells in the residual of A, by where the cells agree."""
    return prod(sizes[i] * (sizes[i] - 1) if i in agreed else -sizes[i] for i in axes)


def _mu_squared(
    sizes: tuple[int, ...], residuals: Sequence[Axes], precisions: Sequence[Fraction], unit: RowsOfUnit
) -> Fraction:
    """Return μ² as the module has it, exactly."""
    pairs = zip(residuals, precisions, strict=True)
    largest_column = sum((each * _inner_product(sizes, axes, axes) for axes, each in pairs), Fraction(0))
    if not unit.replaced:
        return unit.rows**2 * max(unit.low**2, unit.high**2) * largest_column
    products = _products(sizes, residuals, precisions)
    ends = {0, unit.low, unit.high}
    return unit.rows**2 * max(
        (u**2 + v**2) * largest_column - 2 * u * v * between
        for u in ends
        for v in ends
        for between in (min(products), max(products))
    )


def _products(sizes: tuple[int, ...], residuals: Sequence[Axes], precisions: Sequence[Fraction]) -> list[Fraction]:
    """Return G(S) for each set S of attributes in which two cells agree.

    Attribute by attribute, each sum becomes two: over cells that agree in it, and over those that do not.
    """
    sums = [dict(zip(residuals, precisions, strict=True))]
    for axis, size in enumerate(sizes):
        # two cells always agree in an attribute of one value, and no residual has it
        factors = (size * (size - 1), -size) if size > 1 else (0,)
        sums = [_without(axis, factor, parts) for parts in sums for factor in factors]
    return [sum(parts.values(), Fraction(0)) for parts in sums]


def _without(axis: int, factor: int, parts: Mapping[Axes, Fraction]) -> dict[Axes, Fraction]:
    """Return sums by sets without an attribute, those of sets that had it multiplied by a factor."""
    folded: dict[Axes, Fraction] = {}
    for axes, amount in parts.items():
        rest = axes - {axis}
        folded[rest] = folded.get(rest, Fraction(0)) + (amount * factor if axis in axes else amount)
    return folded


def _share(sizes: tuple[int, ...], whole: tuple[int, ...], axes: Axes) -> Fraction:
    """Return what a residual measured with a precision of 1 adds to the variance of a marginal's cell."""
    if not axes <= frozenset(whole):
        return Fraction(0)
    return Fraction(prod(sizes[i] - 1 for i in axes), prod(sizes[i] ** (3 if i in axes else 2) for i in whole))


def _centred(table: IntArray) -> IntArray:
    """Return (⊗ (n·I − J)) times a table, exactly."""
    table = _wide(table, prod(2 * size for size in table.shape))
    for axis, size in enumerate(table.shape):
        table = size * table - table.sum(axis=axis, keepdims=True)
    return integer_array(table, below=ROOM)


def _wide(table: IntArray, growth: int) -> IntArray:
    """Return a table as Python integers if its entries times a factor may not fit 64 bits."""
    fits = table.dtype == np.int64 and (table.size == 0 or largest(table) * growth < ROOM)
    return table if fits else table.astype(object)


def _down(x: Fraction) -> Fraction:
    """Return a number > 0 rounded down to a few binary digits."""
    exponent = x.numerator.bit_length() - x.denominator.bit_length() - _GRID
    unit = Fraction(2) ** exponent
    return (x // unit) * unit
