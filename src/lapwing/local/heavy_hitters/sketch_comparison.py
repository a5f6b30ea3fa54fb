"""How much more noise a sketch has than what it could be replaced by, at the same ε: exact, from p and q alone."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from lapwing.local.frequencies.hashing import LocalHashing
from lapwing.local.frequencies.randomizer import Rates
from lapwing.local.frequencies.subset import SubsetSelection
from lapwing.local.frequencies.unary import UnaryEncoding
from lapwing.local.frequencies.variance import Alike, for_respondents, mean_variance
from lapwing.local.heavy_hitters.sketches import CountMeanSketch, HadamardSketch
from lapwing.local.thresholds import epsilon_of
from lapwing.privacy.amounts import Number


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The noise of one mechanism.

    Args:
        rare: n times the variance of the share of a word that hardly anybody has.
        mean: n times the mean squared error of a share, over all words.
        report_bytes: The size of a report, packed.
    """

    mechanism: str
    epsilon: Fraction
    rare: Fraction
    mean: Fraction
    report_bytes: int


def compare_sketches(epsilons: Iterable[Number], categories: int) -> tuple[Compared, ...]:
    """Return the noise of both sketches with 1,024 buckets, and of what beats them, at each ε, for this many words.

    The noise leaves out what the draw of a sketch's functions adds, in the sketches' favour.
    """
    return tuple(each for epsilon in epsilons for each in _at(epsilon, categories))


def _at(epsilon: Number, categories: int) -> tuple[Compared, ...]:
    amount = epsilon_of(epsilon)
    subset, hashing = SubsetSelection.for_epsilon(amount, categories), LocalHashing.for_epsilon(amount, categories)
    unary = UnaryEncoding.optimised(amount, categories)
    sketch, hadamard = CountMeanSketch.for_epsilon(amount), HadamardSketch.for_epsilon(amount)

    def row(name: str, rates: Rates, size: int) -> Compared:
        mean = mean_variance(Alike(categories, rates))
        return Compared(
            mechanism=name,
            epsilon=amount,
            rare=for_respondents(rates, Fraction(0)),
            mean=mean,
            report_bytes=size,
        )

    return (
        row("subset selection", subset.rates(0), subset.report_bytes),
        row("optimised unary", unary.rates(0), unary.report_bytes),
        row("hashing", hashing.rates(0), hashing.report_bytes),
        row("count-mean sketch", sketch.rates(0), sketch.report_bytes),
        row("Hadamard sketch", hadamard.rates(0), hadamard.report_bytes),
    )
