"""Choose the mechanisms that select: private keys, and the best measure of a question that releases nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from lapwing.catalog.model import Budget
from lapwing.catalog.protection import noun_of
from lapwing.errors import InvalidParameter, QueryRefused, RefusalCause
from lapwing.mechanisms.additive import CellMechanism
from lapwing.mechanisms.generalised import GeneralisedExponential
from lapwing.mechanisms.partitions import MOST_KEYS, KeySelection
from lapwing.mechanisms.thresholding import CountThresholding
from lapwing.mechanisms.truncated_geometric import TruncatedGeometric
from lapwing.mechanisms.weighted_gaussian import WeightedGaussian
from lapwing.privacy.amounts import Number, exact, positive, probability
from lapwing.privacy.figures import delta as delta_text
from lapwing.privacy.measures import (
    ApproxDP,
    ApproximateGaussianDP,
    GaussianDP,
    Loss,
    PureDP,
    ZeroConcentratedDP,
)
from lapwing.query.measures.key_examples import listed
from lapwing.query.plan.plan import Question
from lapwing.query.sensitivity.stability import SensitivityBound

KEY_SELECTIONS = (WeightedGaussian, TruncatedGeometric, CountThresholding)
"""The mechanisms that select private keys; the last is a count's own noise (`one_noise`)."""

CHOICE_CONFIDENCE = Fraction(9999, 10000)
"""Of the handicap with which candidates are compared (`aggregates.truncation` says why)."""
_DECLARE: Final = "declare the values in the catalog, if they are public"
"""The remedy of the curator for private keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySelectionQuote:
    """The selection of private keys: its mechanism, and what it loses, but for `delta`.

    That keys and measures together lose the sum of their losses, and `delta` once, is proven in `release`.

    Args:
        noisy_alternative: Where a count of units selects, what two noises of the same price would be: of the selection,
        and of
            the count.
    """

    mechanism: KeySelection
    loss: Loss
    delta: Fraction
    noisy_alternative: "tuple[KeySelectionQuote, CellMechanism] | None" = None

    @property
    def counting(self) -> CountThresholding | None:
        """The mechanism, if it releases the counts that select: its loss is that of these then (`one_noise`)."""
        return self.mechanism if isinstance(self.mechanism, CountThresholding) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceQuote:
    """The choice of the best measure of a question that releases nothing else: its mechanism, and what it loses.

    Guarantee:
        The score of a measure is its sum over all cells, which moves by no more than the measure does in L1. Of its
        bounds the least in L1 is taken for its sensitivity.
    """

    mechanism: GeneralisedExponential
    loss: Loss


def delta_for_keys(question: Question, budget: Budget, delta: Number | None) -> Fraction:
    """Check that private keys can be selected, and return the delta that it takes."""
    names = ", ".join(key.name for key in question.private_keys)
    if not names:
        if delta is not None and not 0 <= exact(delta, "delta") < 1:
            raise InvalidParameter(f"delta is {delta}; it must be from 0 to below 1, or left out: all keys are public.")
        return Fraction(0)
    if not budget.delta_keys:
        raise QueryRefused(
            f"The values of {names} are not public, and the budget reserves no delta for finding them",
            cause=RefusalCause.NEEDS_DELTA,
            remedy=f"List some values, as in WHERE {listed(question.private_keys[0])}. Group a number by "
            "FLOOR(x / 10), or a date by EXTRACT(MONTH FROM x).",
            curator_remedy=f"{_DECLARE}, or reserve a part of delta for finding values (delta_keys)",
        )
    if budget.neighbouring != "add_remove":
        raise QueryRefused(
            f"The values of {names} are not public, and Lapwing can find values only in add_remove budgets",
            cause=RefusalCause.PRIVATE_KEYS_UNPROVEN,
            curator_remedy=_DECLARE,
        )
    if delta is None:
        raise QueryRefused(
            f"The values of {names} are not public, so finding them takes some delta",
            cause=RefusalCause.NEEDS_DELTA,
            remedy=f"Give delta: the budget reserves {delta_text(budget.delta_keys)} for all such queries. Or list "
            f"values, as in WHERE {listed(question.private_keys[0])}.",
        )
    if question.table.unit_is_row and question.keys_per_unit > 1:
        raise QueryRefused(
            f"One row may hold {question.keys_per_unit:,} values of {names} after a join or a union, which bear no "
            "mark of it",
            cause=RefusalCause.PRIVATE_KEYS_UNPROVEN,
            remedy="Join and unite less.",
            curator_remedy=_DECLARE,
        )
    if question.keys_per_unit > MOST_KEYS:
        raise QueryRefused(
            f"One {noun_of(question.lineage)} may be in {question.keys_per_unit:,} groups, more than {MOST_KEYS:,}",
            cause=RefusalCause.NEEDS_MAX_GROUPS,
            remedy="Give max_groups_contributed.",
        )
    return probability(positive(delta, "delta"), "delta")


def key_selection_for(share: Loss, delta: Fraction, question: Question) -> KeySelectionQuote:
    """Return the selection of keys that loses at most a share, and delta.

    In a pure ledger it flips coins whose chances follow from ε and δ; else it adds Gaussian noise to weights of length
    1, which loses 1/σ² in a gdp ledger and 1/(2σ²) in a zcdp ledger, but for δ (`mechanisms.partitions`: there P⁰ and Q
    are a Gaussian mechanism and its rounding, whatever measure its loss is stated in).
    """
    max_keys, minimum = question.keys_per_unit, question.fewest_units
    if isinstance(share, PureDP):
        coins = TruncatedGeometric.for_loss(ApproxDP(share.epsilon, delta), max_keys=max_keys, minimum=minimum)
        return KeySelectionQuote(mechanism=coins, loss=PureDP(coins.epsilon), delta=delta)
    amount = 2 * share.amount if isinstance(share, ZeroConcentratedDP) else share.amount
    wanted = ApproximateGaussianDP.of(GaussianDP.from_mu_squared(amount), delta)
    noise = WeightedGaussian.for_loss(wanted, max_keys=max_keys, minimum=minimum)
    lost = 1 / noise.sigma**2
    loss = type(share).from_amount(lost / 2 if isinstance(share, ZeroConcentratedDP) else lost)
    return KeySelectionQuote(mechanism=noise, loss=loss, delta=delta)


def choosing(bounds: Sequence[Sequence[SensitivityBound]], loss: Loss) -> ChoiceQuote:
    """Return the choice among measures that spends a loss."""
    moved = [min(int(candidate.sensitivity.l1) for candidate in found) for found in bounds]
    mechanism = GeneralisedExponential.for_loss(loss, moved, CHOICE_CONFIDENCE)
    return ChoiceQuote(mechanism=mechanism, loss=mechanism.loss(loss.kind))
