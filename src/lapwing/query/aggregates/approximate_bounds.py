"""Find bounds of a value, privately: how many rows there are of each magnitude.

How large a number is may not be public, or only a limit that is far too high. Then a fifth of the price buys its
bounds, and the rest the question with these bounds. The candidates are public (`magnitudes`), and each row is in one
class between two of them, or in none. The numbers of rows in all classes are a `Distribution` of one level, without
keys: a question of its own (`query.search`), priced, charged, answered and stored like any other, whose noise is that
of K rows a unit. From its answer follow the bounds: they reach to the outermost classes in which more rows are counted
than noise alone explains, and contain 0. So they are post-processing, public once released, and the question with these
bounds is one with numbers for bounds.

Guarantee:
    Classes and bounds need no proof but those of `stability` for a distribution, and for sums of values between two
    numbers. Both questions are charged before the rows that they read are read, the second in the light of the first's
    answer: losses of questions chosen along the way add up (`privacy.filters`), to the price of both.

How good they are. Let t be the half-width of the noise at 1 − 5 %/classes: with 95 % probability all counts are within
t of the truth at once. Then a class that counts more than t holds a row, so that a bound is at most twice the outermost
value, or the least candidate; and each class beyond a bound holds at most 2t rows. If no class counts more than t, the
bounds reach to the one that counts most: it may be any, and the answer says so.

Source:
    The histogram of magnitudes with a threshold is that of Wilson et al. 2020 (Differentially Private SQL with Bounded
    User Contribution, arXiv 1909.01917, "approximate bounds"); law, threshold and classes are worked out here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.query.aggregates.scope import Requests
from lapwing.query.derivation.intervals import INTERVAL_CONFIDENCE
from lapwing.query.expressions import logic
from lapwing.query.expressions.expression import Expression, written_in
from lapwing.query.expressions.magnitudes import Magnitudes, ValueBounds, class_of, magnitudes_of
from lapwing.query.measures.distribution import Distribution
from lapwing.query.relations.contribution import kept_inside, per_row
from lapwing.query.text.privacy_options import NamedArguments

SHARE: Final = Fraction(1, 5)
"""The part of a question's price that finds its bounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproximateBounds:
    """Bounds that follow from noisy counts.

    Args:
        beyond: The most rows that each class beyond them holds, with 95 % probability.
        clear: Whether any class counts more rows than noise alone explains.
    """

    bounds: ValueBounds
    beyond: int
    clear: bool


def within_bounds(
    argument: Expression, named: NamedArguments | None, condition: Expression | None, requests: Requests
) -> Expression:
    """Return a value inside the bounds that an aggregate says: numbers, or those of a search, else the widest.

    Args:
        condition: Of the FILTER around the aggregate, outside of which no row counts.
    """
    if named is None or named.contribution_bounds_per_row != "auto":
        return per_row(argument, named)
    magnitudes = magnitudes_of(argument)
    if magnitudes.classes == 1:  # the value is 0
        return argument
    if named.contribution_bounds_per_group == "auto":
        raise QueryRefused(
            "Bounds are found per row or per group, and not both",
            cause=RefusalCause.BOUNDS_NOT_SEARCHABLE,
            remedy="Write one of them, or leave it to the catalog; a RACE per group goes with AUTO per row.",
        )
    histogram = Distribution(
        argument=logic.only_where(class_of(argument, magnitudes), condition), branching=magnitudes.classes
    )
    name = " and ".join(sorted(written_in(argument))) or "a constant"
    requests.value_searches.setdefault(histogram, (magnitudes, name))
    return kept_inside(argument, requests.bounds.get(histogram, magnitudes.widest))


def bounds_from_counts(counts: Sequence[int], noise: NoiseLaw, magnitudes: Magnitudes) -> ApproximateBounds:
    """Return the bounds that follow from noisy numbers of rows, one of each class."""
    margin = margin_of(noise, magnitudes)
    clear = [place for place, count in enumerate(counts) if count > margin]
    most = max(range(len(counts)), key=lambda place: counts[place])
    return ApproximateBounds(bounds=magnitudes.reaching(clear or [most]), beyond=2 * margin, clear=bool(clear))


@lru_cache(maxsize=64)
def margin_of(noise: NoiseLaw, magnitudes: Magnitudes) -> int:
    """Return a t such that with 95 % probability no class is off by more than t rows."""
    return int(noise.half_width(1 - (1 - INTERVAL_CONFIDENCE) / magnitudes.classes))
