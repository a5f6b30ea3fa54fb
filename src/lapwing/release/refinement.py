"""A sharper answer to a question that was answered before: pay the difference, and take the mean.

Guarantee:
    The further answer is a release of its own, charged before data are touched; what is returned is post-processing of
    it and of the stored one. Its noise is such that the mean of both, weighted by the inverse of their variances, is as
    accurate as one answer at the wanted price: 1/σ² adds. In a gdp or zcdp ledger a Gaussian answer costs Δ²/σ² (or
    half of it), which adds in the same way: the two together cost what one sharp answer would have, and a little more
    where noise is few steps wide, as the mean is rounded once more.

The further mechanism follows from the stored one's and from what is wanted, never from stored values: so its noise is
independent of the stored answer's, as the proof of `MergedGaussian` takes for granted. The mean's interval covers with
its probability over both noises together. Whoever asks again only because of what the first answer was looks at a part
of the cases, for which no interval of the first answer would cover as said either; the loss is not touched by that.

Not so for Laplace noise, where the mean of two errs by more than one answer of their joint price: in pure ledgers a
sharper answer is bought afresh. Nor are private keys or levels chosen twice, nor are distributions refined: what the
means of their nodes err by together, rounded to integers, is not bounded here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from lapwing.exact.arrays import IntArray
from lapwing.mechanisms.additive import CHOICES, FIRST, QUANTILE, QUANTILES, NoiseLaw
from lapwing.mechanisms.merged_gaussian import Noisy, gaussians, merged, sharpened
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.privacy.measures import PureDP
from lapwing.query.pricing.quote import CONFIDENCE, Quote
from lapwing.release.request import Release


@dataclass(frozen=True, slots=True, kw_only=True)
class Refinement:
    """What is still to be bought, for each measure that is not accurate enough yet, by its place.

    Args:
        bought: The noise of the stored answer.
        fresh: Of the further ones.
        aims: The sigmas of the means with them.
    """

    wanted: Quote
    bought: tuple[Noisy, ...]
    fresh: Mapping[int, RoundedGaussian]
    aims: Mapping[int, Fraction]

    @property
    def priced(self) -> Quote:
        """The further answer and its price."""
        terms = tuple(replace(self.wanted.terms[place], mechanism=noise) for place, noise in self.fresh.items())
        return replace(self.wanted, terms=terms, loss=self.wanted.lost(terms))

    def merge(
        self, stored: Sequence[IntArray], further: Sequence[IntArray]
    ) -> tuple[tuple[IntArray, ...], tuple[Noisy, ...]]:
        """Return the merged values of all measures and their noise.

        Args:
            stored: The values of the stored answer.
            further: Those of the further one, in the order of its terms.
        """
        values, noises = list(stored), list(self.bought)
        for (place, noise), added in zip(self.fresh.items(), further, strict=True):
            values[place], noises[place] = merged(stored[place], noises[place], added, noise, self.aims[place])
        return tuple(values), tuple(noises)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharpening:
    """A stored answer, and what is still to be bought to make it as accurate as is wanted."""

    stored: Release
    refinement: Refinement


def sharpening(wanted: Quote, stored: Iterable[Release]) -> Sharpening | None:
    """Return the stored answer that takes the least to be sharpened, if that costs less than an answer afresh."""
    if not is_refinable(wanted):  # reading many private keys to no end would take longer than to answer
        return None
    refinements = ((answer, refinement(wanted, answer.mechanisms)) for answer in stored)
    cheaper = [
        Sharpening(stored=answer, refinement=needed)
        for answer, needed in refinements
        if needed is not None and needed.priced.loss < wanted.loss
    ]
    return min(cheaper, key=lambda further: further.refinement.priced.loss.amount, default=None)


def is_refinable(wanted: Quote) -> bool:
    """Tell whether answers of this kind can be made sharper for the difference: all of their noise is normal."""
    chosen = wanted.key_selection is not None or wanted.choosing is not None
    return not (isinstance(wanted.loss, PureDP) or chosen or wanted.question.distributions)


def refinement(wanted: Quote, bought: Sequence[NoiseLaw]) -> Refinement | None:
    """Return what a wanted answer needs beyond a stored one; None if it must be bought afresh.

    Args:
        bought: The mechanisms of the stored answer, in the order of the question's measures.
    """
    stored, asked = gaussians(bought), gaussians(term.mechanism for term in wanted.terms)
    if not is_refinable(wanted) or stored is None or asked is None:
        return None
    fresh: dict[int, RoundedGaussian] = {}
    aims: dict[int, Fraction] = {}
    for place, (noise, aim) in enumerate(zip(stored, asked, strict=True)):
        if as_accurate(noise, aim):
            continue
        further = sharpened(noise, aim, CONFIDENCE)
        if further is None:
            return None
        fresh[place], aims[place] = further
    return Refinement(wanted=wanted, bought=stored, fresh=fresh, aims=aims) if fresh else None


def as_accurate(bought: NoiseLaw, asked: NoiseLaw) -> bool:
    """Tell whether a stored number errs by no more than is asked for."""
    if {bought.name, asked.name} & CHOICES:  # numbers err otherwise, and it must be a choice of the same
        if {bought.name, asked.name} <= {QUANTILE, QUANTILES}:
            from lapwing.mechanisms.quantiles_of_counts import as_good  # here: few questions have any

            return as_good(bought, asked)
        laws: Sequence[NoiseLaw] = (asked,)
        if asked.name == FIRST:
            from lapwing.mechanisms.first_of_thresholds import FirstOfThresholds  # here: few questions have any

            laws = asked.accepted if isinstance(asked, FirstOfThresholds) else laws
        same = [law for law in laws if (bought.name, bought.record()[:-1]) == (law.name, law.record()[:-1])]
        return any(bought.scale <= law.scale for law in same)
    return bought.standard_deviation <= asked.standard_deviation and bought.half_width(CONFIDENCE) <= asked.half_width(
        CONFIDENCE
    )
