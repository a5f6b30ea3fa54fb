"""Every measure and mechanism; law tests run over all rows. A new one adds a row here and gets the laws for nothing."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
from mpmath import mp, mpf

from lapwing.exact import samplers
from lapwing.exact.bounds import square_root_up
from lapwing.exact.entropy import Entropy
from lapwing.mechanisms import (
    AboveThreshold,
    AdaptiveDegree,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    FixedSizeSample,
    GeneralisedExponential,
    IntervalExponential,
    PartitionSelection,
    PermuteAndFlip,
    PoissonSample,
    Quantile,
    Quantiles,
    QuantileTree,
    RaceToTheTop,
    RandomizedResponse,
    ReportNoisyMax,
    RoundedGaussian,
    ScoreSensitivity,
    Sensitivity,
    Subsampled,
    TopK,
    TruncatedGeometric,
    UnboundedQuantile,
    WeightedGaussian,
)
from lapwing.mechanisms.sparse_vector import ThresholdSession
from lapwing.privacy.measures import (
    ApproxDP,
    ApproximateGaussianDP,
    GaussianDP,
    Loss,
    PureDP,
    ZeroConcentratedDP,
)
from tests.support.mechanisms import partition_oracle, quantile_oracle, selection_oracle, threshold_oracle

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


Additive = DiscreteLaplace | RoundedGaussian | DiscreteGaussian


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditiveRow:
    """A mechanism that adds noise; `law` is P(noise = x) at a scale, computed apart from the code under test.

    `build` makes it from a scale and `scale` reads the scale back; that of the discrete Gaussian is √variance.
    """

    name: str
    family: type[DiscreteLaplace] | type[RoundedGaussian] | type[DiscreteGaussian]
    build: Callable[[Fraction], Additive]
    scale: Callable[[Any], Fraction]
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


def discrete_gaussian_law(sigma: Fraction, x: int) -> mpf:
    """e^(−x²/(2σ²)) over the sum of all."""
    return mp.exp(-x * x / (2 * mpf(sigma.numerator) ** 2 / sigma.denominator**2)) / gaussian_total(sigma, mp.prec)


@cache
def gaussian_total(sigma: Fraction, precision: int) -> mpf:
    """Σ e^(−x²/(2σ²)) to the precision that is set, by adding up 25 standard deviations."""
    twice = 2 * mpf(sigma.numerator) ** 2 / sigma.denominator**2
    return 1 + 2 * mp.fsum(mp.exp(-x * x / twice) for x in range(1, int(25 * sigma) + 3))


ADDITIVE = (
    AdditiveRow(
        name="discrete Laplace",
        family=DiscreteLaplace,
        build=lambda scale: DiscreteLaplace(scale=scale),
        scale=lambda mechanism: mechanism.scale,
        kinds=("pure", "gdp", "zcdp"),
        refused_kinds=(),
        law=laplace_law,
    ),
    AdditiveRow(
        name="rounded Gaussian",
        family=RoundedGaussian,
        build=lambda sigma: RoundedGaussian(sigma=sigma),
        scale=lambda mechanism: mechanism.sigma,
        kinds=("gdp", "zcdp"),
        refused_kinds=("pure",),
        law=gaussian_law,
    ),
    AdditiveRow(
        name="discrete Gaussian",
        family=DiscreteGaussian,
        build=lambda sigma: DiscreteGaussian(variance=sigma * abs(sigma)),
        scale=lambda mechanism: square_root_up(mechanism.variance, 128),
        kinds=("zcdp",),
        refused_kinds=("pure", "gdp"),
        law=discrete_gaussian_law,
    ),
)


def losses(*amounts: Fraction) -> tuple[Loss, ...]:
    """Every measure at every amount."""
    return tuple(measure.from_amount(amount) for measure in MEASURES for amount in amounts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One mechanism on one pair of neighbouring inputs.

    `run` releases from an input; `law` is the exact output law on an input, computed apart from the code under test;
    `stated` are the losses that the mechanism states for neighbours such as these, by kind. `tight` if the pure loss
    is attained on this pair. `planted` runs a version with a bug, whose law or loss must be found wrong.
    """

    name: str
    run: Callable[[Any, Entropy], Hashable]
    pair: tuple[Any, Any]
    law: Callable[[Any], dict[Any, mpf]]
    stated: Mapping[str, PureDP | GaussianDP | ZeroConcentratedDP | ApproxDP | ApproximateGaussianDP]
    tight: bool = False
    planted: Callable[[Any, Entropy], Hashable]


def laplace_vectors(values: tuple[int, ...], scale: Fraction, reach: int) -> dict[tuple[int, ...], mpf]:
    """The law of values plus independent discrete Laplace noise of at most `reach`."""
    noise = {x: laplace_law(scale, x) for x in range(-reach, reach + 1)}
    return {
        tuple(v + x for v, x in zip(values, chosen, strict=True)): mp.fprod(noise[x] for x in chosen)
        for chosen in product(noise, repeat=len(values))
    }


def coin_faces(codes: tuple[int, ...], keep: Fraction, categories: int) -> dict[tuple[int, ...], mpf]:
    """The law of randomized response on a few rows, face by face."""
    p = mpf(keep.numerator) / keep.denominator
    r = (1 - p) / (categories - 1)
    return {
        faces: mp.fprod(p if face == code else r for face, code in zip(faces, codes, strict=True))
        for faces in product(range(categories), repeat=len(codes))
    }


def noisy_sums(sums: Mapping[int, mpf], scale: Fraction, reach: int) -> dict[int, mpf]:
    """The law of a random sum plus discrete Laplace noise."""
    ends = range(min(sums) - reach, max(sums) + reach + 1)
    return {y: mp.fsum(p * laplace_law(scale, y - s) for s, p in sums.items()) for y in ends}


def sampled_count(rows: int, rate: Fraction) -> dict[int, mpf]:
    """The binomial law of how many rows a Poisson sample has."""
    q = mpf(rate.numerator) / rate.denominator
    return {j: mp.binomial(rows, j) * q**j * (1 - q) ** (rows - j) for j in range(rows + 1)}


def sampled_sum(bits: tuple[int, ...], size: int) -> dict[int, mpf]:
    """The law of the sum of a random set of so many bits."""
    sums = Counter(sum(chosen) for chosen in combinations(bits, size))
    return {total: mpf(count) / sums.total() for total, count in sums.items()}


def noisy(scale: Fraction) -> Callable[[Any, Entropy], int]:
    """Return a function that adds up what it is given and adds discrete Laplace noise."""
    return lambda rows, entropy: DiscreteLaplace(scale=scale).release(int(np.sum(rows)), entropy)


def wrong_faces(codes: tuple[int, ...], entropy: Entropy) -> tuple[int, ...]:
    """Randomized response of three faces, whose other face is the true one every second time."""
    kept = samplers.bernoulli(Fraction(1, 2), len(codes), entropy)
    others = samplers.uniform_integers(2, len(codes), entropy)
    return tuple(int(c if k else o + (o > c)) for c, k, o in zip(codes, kept, others, strict=True))


HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
POISSON = Subsampled(sample=PoissonSample(rate=THIRD))
FIXED = Subsampled(sample=FixedSizeSample(size=2, population=3))

NOISE_AND_COINS = (
    Case(
        name="discrete Laplace on a vector",
        run=lambda values, entropy: tuple(DiscreteLaplace(scale=HALF).release(np.array(values), entropy).tolist()),
        pair=((0, 0), (1, -1)),
        law=lambda values: laplace_vectors(values, HALF, 16),
        stated={
            kind: DiscreteLaplace(scale=HALF).loss(Sensitivity(l1=2, l2_squared=2), kind)
            for kind in ("pure", "gdp", "zcdp")
        },
        tight=True,
        planted=lambda values, entropy: tuple(
            DiscreteLaplace(scale=HALF * Fraction(9, 10)).release(np.array(values), entropy).tolist()
        ),
    ),
    Case(
        name="rounded Gaussian",
        run=lambda value, entropy: RoundedGaussian(sigma=Fraction(3, 2)).release(value, entropy),
        pair=(0, 2),
        law=lambda value: {value + x: gaussian_law(Fraction(3, 2), x) for x in range(-15, 16)},
        stated={
            kind: RoundedGaussian(sigma=Fraction(3, 2)).loss(Sensitivity.from_l1(2), kind) for kind in ("gdp", "zcdp")
        },
        planted=lambda value, entropy: RoundedGaussian(sigma=Fraction(4, 3)).release(value, entropy),
    ),
    Case(
        name="discrete Gaussian",
        run=lambda value, entropy: DiscreteGaussian(variance=Fraction(9, 4)).release(value, entropy),
        pair=(0, 2),
        law=lambda value: {value + x: discrete_gaussian_law(Fraction(3, 2), x) for x in range(-15, 16)},
        stated={"zcdp": DiscreteGaussian(variance=Fraction(9, 4)).loss(Sensitivity.from_l1(2), "zcdp")},
        planted=lambda value, entropy: RoundedGaussian(sigma=Fraction(3, 2)).release(value, entropy),
    ),
    Case(
        name="randomized response of two faces",
        run=lambda codes, entropy: tuple(
            RandomizedResponse(keep=Fraction(3, 4)).release(np.array(codes), entropy).tolist()
        ),
        pair=((0, 1, 1), (1, 1, 1)),
        law=lambda codes: coin_faces(codes, Fraction(3, 4), 2),
        stated={kind: RandomizedResponse(keep=Fraction(3, 4)).loss(kind) for kind in ("pure", "gdp", "zcdp")},
        tight=True,
        planted=lambda codes, entropy: tuple(
            RandomizedResponse(keep=Fraction(4, 5)).release(np.array(codes), entropy).tolist()
        ),
    ),
    Case(
        name="randomized response of three faces",
        run=lambda codes, entropy: tuple(
            RandomizedResponse(keep=HALF, categories=3).release(np.array(codes), entropy).tolist()
        ),
        pair=((2, 0), (2, 1)),
        law=lambda codes: coin_faces(codes, HALF, 3),
        stated={kind: RandomizedResponse(keep=HALF, categories=3).loss(kind) for kind in ("pure", "gdp", "zcdp")},
        tight=True,
        planted=wrong_faces,
    ),
    Case(
        name="Poisson sample",
        run=lambda rows, entropy: POISSON.release(rows, noisy(Fraction(1)), entropy),
        pair=((1, 1), (1, 1, 1)),
        law=lambda rows: noisy_sums(sampled_count(len(rows), THIRD), Fraction(1), 31),
        stated={"pure": POISSON.loss(PureDP(1), neighbouring="add_remove")},
        tight=True,
        planted=lambda rows, entropy: Subsampled(sample=PoissonSample(rate=HALF)).release(
            rows, noisy(Fraction(1)), entropy
        ),
    ),
    Case(
        name="sample of fixed size",
        run=lambda bits, entropy: FIXED.release(np.array(bits), noisy(Fraction(1)), entropy),
        pair=((0, 1, 0), (1, 1, 0)),
        law=lambda bits: noisy_sums(sampled_sum(bits, 2), Fraction(1), 31),
        stated={"pure": FIXED.loss(PureDP(1), neighbouring="replace_one")},
        planted=lambda bits, entropy: Subsampled(sample=FixedSizeSample(size=1, population=2)).release(
            np.array(bits[:2]), noisy(Fraction(1)), entropy
        ),
    ),
    Case(
        name="sample of fixed size, alone",
        run=lambda bits, entropy: FIXED.release(np.array(bits), noisy(Fraction(1)), entropy),
        pair=((0, 0, 0), (1, 0, 0)),
        law=lambda bits: noisy_sums(sampled_sum(bits, 2), Fraction(1), 31),
        stated={"pure": FIXED.loss(PureDP(1), neighbouring="replace_one")},
        tight=True,
        planted=lambda bits, entropy: noisy(Fraction(1))(bits[:2], entropy),
    ),
)


TWO = Fraction(2)
MOVING, RISING = ScoreSensitivity(), ScoreSensitivity(monotonic=True)
ALL_KINDS = ("pure", "gdp", "zcdp")
FOUR_STEPS = IntervalExponential(scale=TWO, lower=0, upper=6, weights=((0, 1), (3, 4), (6, 0)))
GRID_WEIGHTS = (1, 1, 1, 4, 4, 4, 0)


def chosen(mechanism: ExponentialMechanism | PermuteAndFlip | ReportNoisyMax) -> Callable[[Any, Entropy], int]:
    """Return a function that chooses by scores."""
    return lambda scores, entropy: mechanism.release(scores, entropy)


def first_of_largest(scores: tuple[int, ...], entropy: Entropy) -> int:
    """Report noisy max where ties go to the first."""
    return int(np.argmax(np.array(scores) + samplers.discrete_laplace(THIRD, len(scores), entropy)))


SELECTION = (
    Case(
        name="exponential mechanism",
        run=chosen(ExponentialMechanism(scale=TWO)),
        pair=((3, 1, 0, 3), (2, 2, 1, 2)),
        law=lambda scores: selection_oracle.exponential(scores, TWO),
        stated={kind: ExponentialMechanism(scale=TWO).loss(MOVING, kind) for kind in ALL_KINDS},
        planted=chosen(PermuteAndFlip(scale=TWO)),
    ),
    Case(
        name="exponential mechanism, against an outsider",
        run=chosen(ExponentialMechanism(scale=TWO)),
        pair=((44, 0), (43, 1)),
        law=lambda scores: selection_oracle.exponential(scores, TWO),
        stated={kind: ExponentialMechanism(scale=TWO).loss(MOVING, kind) for kind in ALL_KINDS},
        tight=True,
        planted=chosen(ExponentialMechanism(scale=TWO * Fraction(9, 10))),
    ),
    Case(
        name="permute-and-flip",
        run=chosen(PermuteAndFlip(scale=TWO)),
        pair=((0, 2, 1), (1, 1, 0)),
        law=lambda scores: selection_oracle.permute_and_flip(scores, TWO),
        stated={kind: PermuteAndFlip(scale=TWO).loss(MOVING, kind) for kind in ALL_KINDS},
        planted=chosen(ExponentialMechanism(scale=TWO)),
    ),
    Case(
        name="permute-and-flip, of two",
        run=chosen(PermuteAndFlip(scale=TWO)),
        pair=((0, 2), (1, 1)),
        law=lambda scores: selection_oracle.permute_and_flip(scores, TWO),
        stated={kind: PermuteAndFlip(scale=TWO).loss(MOVING, kind) for kind in ALL_KINDS},
        tight=True,
        planted=chosen(PermuteAndFlip(scale=TWO * Fraction(9, 10))),
    ),
    Case(
        name="permute-and-flip, of counts",
        run=chosen(PermuteAndFlip(scale=TWO)),
        pair=((3, 4), (4, 4)),
        law=lambda scores: selection_oracle.permute_and_flip(scores, TWO),
        stated={kind: PermuteAndFlip(scale=TWO).loss(RISING, kind) for kind in ALL_KINDS},
        tight=True,
        planted=chosen(PermuteAndFlip(scale=Fraction(1))),
    ),
    Case(
        name="report noisy max, Laplace",
        run=chosen(ReportNoisyMax(scale=THIRD, noise="laplace")),
        pair=((0, 1, 1), (1, 0, 0)),
        law=lambda scores: selection_oracle.noisy_max(scores, THIRD, 12),
        stated={kind: ReportNoisyMax(scale=THIRD, noise="laplace").loss(MOVING, kind) for kind in ALL_KINDS},
        planted=first_of_largest,
    ),
    Case(
        name="report noisy max, exponential",
        run=chosen(ReportNoisyMax(scale=TWO, noise="exponential")),
        pair=((0, 2, 5), (1, 1, 6)),
        law=lambda scores: selection_oracle.permute_and_flip(scores, TWO),
        stated={kind: ReportNoisyMax(scale=TWO, noise="exponential").loss(MOVING, kind) for kind in ALL_KINDS},
        planted=chosen(ReportNoisyMax(scale=TWO, noise="gumbel")),
    ),
    Case(
        name="report noisy max, Gumbel",
        run=chosen(ReportNoisyMax(scale=TWO, noise="gumbel")),
        pair=((0, 2, 5), (1, 1, 6)),
        law=lambda scores: selection_oracle.exponential(scores, TWO),
        stated={kind: ReportNoisyMax(scale=TWO, noise="gumbel").loss(MOVING, kind) for kind in ALL_KINDS},
        planted=chosen(ReportNoisyMax(scale=TWO, noise="exponential")),
    ),
    Case(
        name="top two",
        run=lambda scores, entropy: tuple(TopK(scale=TWO, count=2).release(scores, entropy).tolist()),
        pair=((3, 1, 0, 3), (2, 2, 1, 2)),
        law=lambda scores: selection_oracle.peeled(scores, TWO, 2),
        stated={kind: TopK(scale=TWO, count=2).loss(MOVING, kind) for kind in ALL_KINDS},
        planted=lambda scores, entropy: tuple(sorted(TopK(scale=TWO, count=2).release(scores, entropy).tolist())),
    ),
    Case(
        name="exponential mechanism on an interval",
        run=lambda pieces, entropy: FOUR_STEPS.release(pieces[0], pieces[1], entropy),
        pair=(((0, 2, 2, 5), (0, 9, 2, 1)), ((0, 1, 4, 5), (1, 1, 2, 2))),
        law=lambda pieces: selection_oracle.on_grid(pieces, TWO, GRID_WEIGHTS),
        stated={kind: FOUR_STEPS.loss(MOVING, kind) for kind in ALL_KINDS},
        planted=lambda pieces, entropy: replace(FOUR_STEPS, weights=((0, 1), (6, 0))).release(
            pieces[0], pieces[1], entropy
        ),
    ),
)


HALVES, SOME = Fraction(1, 2), (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
MEDIAN = Quantile(quantile=HALVES, lower=0, upper=9, scale=Fraction(3, 4))
THIRD_POINT = Quantile(quantile=Fraction(1, 3), lower=-3, upper=5, scale=Fraction(1, 2))
QUARTILES = Quantiles(quantiles=SOME, lower=0, upper=6, scale=Fraction(3, 4))
SPREAD = Quantiles(quantiles=(Fraction(1, 3), Fraction(1, 2)), lower=0, upper=2, scale=HALVES, spread=2)
TREE = QuantileTree(lower=0, upper=2, branching=2, noise=DiscreteLaplace(scale=Fraction(1, 16)))


def tree_counts(tree: QuantileTree, rows: tuple[int, ...], entropy: Entropy) -> tuple[int, ...]:
    """Release all counts of a tree, from the top down."""
    return tuple(int(count) for level in tree.release(rows, entropy).counts for count in level)


QUANTILES = (
    Case(
        name="median",
        run=MEDIAN.release,
        pair=((5, 9), (0, 5, 9)),
        law=lambda rows: quantile_oracle.quantile(rows, HALVES, 0, 9, Fraction(3, 4)),
        stated={kind: MEDIAN.loss(kind) for kind in ALL_KINDS},
        planted=replace(MEDIAN, upper=8).release,
    ),
    Case(
        name="quantile, of rows off the grid and equal ones",
        run=THIRD_POINT.release,
        pair=((-7, 2, 2, 2, 8), (-7, 2, 2, 2, 2, 8)),
        law=lambda rows: quantile_oracle.quantile(rows, Fraction(1, 3), -3, 5, Fraction(1, 2)),
        stated={kind: THIRD_POINT.loss(kind) for kind in ALL_KINDS},
        planted=replace(THIRD_POINT, quantile=Fraction(2, 3)).release,
    ),
    Case(
        name="quantiles",
        run=QUARTILES.release,
        pair=((1, 4, 4), (1, 1, 4, 4)),
        law=lambda rows: quantile_oracle.quantiles(rows, SOME, 0, 6, Fraction(3, 4)),
        stated={kind: QUARTILES.loss(kind) for kind in ALL_KINDS},
        planted=replace(QUARTILES, quantiles=(Fraction(1, 5), Fraction(1, 2), Fraction(3, 4))).release,
    ),
    Case(
        name="quantiles, equal rows spread",
        run=SPREAD.release,
        pair=((1, 1), (1, 1, 1)),
        law=lambda rows: quantile_oracle.quantiles(rows, SPREAD.quantiles, 0, 2, HALVES, spread=2),
        stated={kind: SPREAD.loss(kind) for kind in ALL_KINDS},
        planted=replace(SPREAD, spread=1).release,
    ),
    Case(
        name="quantile tree",
        run=lambda rows, entropy: tree_counts(TREE, rows, entropy),
        pair=((0, 2, 2), (0, 2)),
        law=lambda rows: quantile_oracle.noisy_counts(
            quantile_oracle.node_counts(rows, 0, 2, 2), Fraction(1, 16), reach=3
        ),
        stated={kind: TREE.loss(kind) for kind in ALL_KINDS},
        tight=True,
        planted=lambda rows, entropy: tree_counts(
            replace(TREE, noise=DiscreteLaplace(scale=Fraction(1, 20))), rows, entropy
        ),
    ),
)


def released_keys(mechanism: PartitionSelection) -> Callable[[Any, Entropy], Hashable]:
    """Return what releases the labels of keys from holdings."""

    def run(holdings: Any, entropy: Entropy) -> Hashable:
        data = partition_oracle.contributions(holdings)
        return data.labelled(mechanism.release(data, entropy))

    return run


GEOMETRIC = TruncatedGeometric(epsilon=Fraction(1), delta=Fraction(1, 20))
WEIGHTED = WeightedGaussian(sigma=Fraction(1, 2), delta=Fraction(1, 20), max_keys=2, fraction_bits=2)
# Noise of about a step, so that it can be enumerated: 2^-40 is the step of its weights.
ADAPTIVE = AdaptiveDegree(sigma=Fraction(1, 2 << 40), delta=Fraction(1, 20), max_keys=1)

PARTITIONS = (
    Case(
        name="truncated geometric",
        run=released_keys(GEOMETRIC),
        pair=({"u": "b", "v": "b", "w": "c"}, {"u": "b", "v": "b", "w": "c", "x": "a"}),
        law=lambda holdings: partition_oracle.geometric_law(holdings, GEOMETRIC.epsilon, GEOMETRIC.delta),
        stated={"approx": GEOMETRIC.loss("approx")},
        tight=True,
        # Every chance is that of one unit more.
        planted=lambda holdings, entropy: released_keys(GEOMETRIC)(
            holdings | {f"{key} again": key for key in holdings.values()}, entropy
        ),
    ),
    Case(
        name="weighted Gaussian",
        run=released_keys(WEIGHTED),
        pair=({"u": "a"}, {"u": "a", "v": "ab"}),
        law=lambda holdings: partition_oracle.weighted_law(holdings, WEIGHTED.sigma, WEIGHTED.delta, 2, 2),
        stated={"approx_gdp": WEIGHTED.loss("approx_gdp")},
        # Its threshold is too low.
        planted=released_keys(replace(WEIGHTED, delta=4 * WEIGHTED.delta)),
    ),
    Case(
        name="adaptive degree",
        run=released_keys(ADAPTIVE),
        pair=({}, {"u": "a"}),
        law=lambda holdings: partition_oracle.two_rounds_law(
            holdings, ADAPTIVE.sigma, ADAPTIVE.delta, ADAPTIVE.first_share, int(ADAPTIVE.caution)
        ),
        stated={"approx_gdp": ADAPTIVE.loss("approx_gdp")},
        # Its thresholds are too low.
        planted=released_keys(replace(ADAPTIVE, delta=10 * ADAPTIVE.delta)),
    ),
)

ABOVE = AboveThreshold(threshold_scale=THIRD, query_scale=HALF)
TWO_ABOVE = AboveThreshold(threshold_scale=Fraction(1, 4), query_scale=Fraction(1, 4), count=2)
UNBOUNDED = UnboundedQuantile(threshold_scale=THIRD, query_scale=THIRD, rank=1, growth=Fraction(2), most=4)
RACE = RaceToTheTop(scale=Fraction(2, 5), most=2, failure=HALF)
GENERALISED = GeneralisedExponential(scale=Fraction(3, 2), sensitivities=(1, 2, 4), margin=HALF)


def told(session: ThresholdSession, answers: Sequence[int]) -> tuple[int | None, ...]:
    """Ask a session until it is over."""
    return tuple(session.ask_gap(answer) for answer in answers if session.left)


THRESHOLDS = (
    Case(
        name="above threshold",
        run=lambda answers, entropy: tuple(ABOVE.release(answers, 0, entropy).tolist()),
        pair=([ABOVE.offset - 1, ABOVE.offset], [ABOVE.offset, ABOVE.offset - 1]),
        law=lambda answers: threshold_oracle.verdict_law(THIRD, HALF, 1, answers, threshold_oracle.median(THIRD, HALF)),
        stated={kind: ABOVE.loss(ScoreSensitivity(), kind) for kind in ("pure", "gdp", "zcdp")},
        tight=True,
        # Noise for a sensitivity of Δ where it is 2Δ.
        planted=lambda answers, entropy: tuple(
            AboveThreshold(threshold_scale=THIRD, query_scale=Fraction(1, 4)).release(answers, 0, entropy).tolist()
        ),
    ),
    Case(
        name="above threshold, two gaps, monotonic",
        run=lambda answers, entropy: TWO_ABOVE.release_gaps(answers, 7, entropy),
        pair=([6, 7, 7], [7, 7, 7]),
        law=lambda answers: threshold_oracle.gap_law(Fraction(1, 4), Fraction(1, 4), 2, answers, 7),
        stated={kind: TWO_ABOVE.loss(ScoreSensitivity(monotonic=True), kind) for kind in ("pure", "gdp", "zcdp")},
        tight=True,
        # Noise that does not grow with the cap.
        planted=lambda answers, entropy: AboveThreshold(
            threshold_scale=Fraction(1, 4), query_scale=Fraction(1, 8), count=2
        ).release_gaps(answers, 7, entropy),
    ),
    Case(
        name="above threshold, session",
        run=lambda answers, entropy: told(ABOVE.start(0, entropy), answers),
        pair=([ABOVE.offset - 1, ABOVE.offset], [ABOVE.offset, ABOVE.offset - 1]),
        law=lambda answers: threshold_oracle.gap_law(THIRD, HALF, 1, answers, threshold_oracle.median(THIRD, HALF)),
        stated={kind: ABOVE.loss(ScoreSensitivity(), kind) for kind in ("pure", "gdp", "zcdp")},
        tight=True,
        # No noise on the answers.
        planted=lambda answers, entropy: tuple(
            answer >= ABOVE.offset + noise
            for noise in samplers.geometric(THIRD, 1, entropy).tolist()
            for answer in answers
        ),
    ),
    Case(
        name="unbounded quantile",
        run=lambda values, entropy: UNBOUNDED.release(values, entropy),
        pair=([5, 2], [5]),
        law=lambda values: threshold_oracle.quantile_law(THIRD, THIRD, 1, (1, 2, 4), values),
        stated={kind: UNBOUNDED.loss(kind) for kind in ("pure", "gdp", "zcdp")},
        tight=True,
        # Half the noise on the counts.
        planted=lambda values, entropy: replace(UNBOUNDED, query_scale=Fraction(1, 6)).release(values, entropy),
    ),
    Case(
        name="race to the top",
        run=lambda values, entropy: RACE.release(values, entropy),
        pair=([2, 1, 7], [1, 7]),
        law=lambda values: threshold_oracle.race_law(Fraction(2, 5), (1, 2), HALF, [min(x, 2) for x in values]),
        stated={kind: RACE.loss(kind) for kind in ("pure", "gdp", "zcdp")},
        # Half the noise.
        planted=lambda values, entropy: replace(RACE, scale=Fraction(1, 5)).release(values, entropy),
    ),
    Case(
        name="generalised exponential",
        run=lambda scores, entropy: GENERALISED.release(scores, entropy),
        pair=([3, 10, 12], [4, 8, 16]),
        law=lambda scores: threshold_oracle.generalised_law(Fraction(3, 2), (1, 2, 4), HALF, 1024, scores),
        stated={kind: GENERALISED.loss(kind) for kind in ("pure", "gdp", "zcdp")},
        # The sensitivities are forgotten.
        planted=lambda scores, entropy: replace(GENERALISED, sensitivities=(1, 1, 1)).release(scores, entropy),
    ),
)

MECHANISM_CASES: tuple[Case, ...] = (*NOISE_AND_COINS, *THRESHOLDS, *SELECTION, *QUANTILES, *PARTITIONS)
