"""What a release chooses: which private keys an answer shows, and which measure of a question is the best.

Private keys. Where a key's values are private, noise is added twice, unless a count of units selects its own keys
(`selected_by_counts`): the keys are selected first, then the cells of those that were get noise. Together they lose the
selection's loss and the measures', and δ once. Proof. Let unit v be added to D, which makes D'. The selection is a pair
of its loss but for an event of probability δ at most on D': that it releases a key that only v holds, or that only v
brings to the least number of units (`mechanisms.partitions`; in a pure ledger it is (ε, δ)-DP, which says the same by
`privacy.approximate`). Otherwise its outcome is a set K of keys that could have come from D too. Given K, whichever it
is, what is measured in the cells of K is a part of the vector over all cells, and leaving entries out brings no two
vectors further apart: so the sensitivities of `query.stability`, which hold for any number of cells, hold for it. Hence
the measures, chosen in the light of K, are a pair of their own losses, and losses of pairs chosen along the way add up
(`privacy.filters`): with probability 1 − δ keys and values together are a pair of the sum. What was not selected leaves
no trace: its integers are dropped before any noise is drawn, and how much there is to do from then on follows from K,
which is released, and from the public keys. ∎
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lapwing.engines import FAILED, Exact
from lapwing.errors import EngineFault
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import Entropy
from lapwing.ledger.entries import Charged
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.mechanisms.noise_above import NoiseAboveThreshold
from lapwing.mechanisms.thresholding import CountThresholding
from lapwing.query.pricing.one_noise import count_of_units
from lapwing.query.pricing.quote import Quote
from lapwing.query.pricing.selection_mechanisms import ChoiceQuote
from lapwing.release.cells import Chosen, cells_of, columns_of, exact_values
from lapwing.release.payload import ChosenMeasure
from lapwing.release.request import Release

if TYPE_CHECKING:
    from lapwing.engines.holders import UnitCountsByKey


def selected_keys(priced: Quote, holders: "UnitCountsByKey | None", entropy: Entropy) -> Chosen:
    """Return the values of the private keys that are released, in an order that follows from the values.

    Guarantee:
        The loss of `priced.selecting`, of which the engine has bounded the units: each holds at most `max_keys` values,
        and puts a weight on each that depends on how many it holds.
    """
    if priced.key_selection is None or holders is None:
        return ()
    mechanism = priced.key_selection.mechanism
    return holders.named(mechanism.select(holders.units_at, holders.weighed(mechanism.weight), entropy))


def selected_by_counts(
    bought: Quote, selecting: CountThresholding, charged: Charged, exact: Exact, entropy: Entropy
) -> Release:
    """Select keys by the noisy count of units that the question asks for of each, and answer the rest of it.

    Guarantee:
        The losses of the question's measures, of which the count is one, and once the selection's δ. Keys and their
        counts together lose the loss of the count and δ (`mechanisms.thresholding`); given these, the other measures
        are chosen in their light as above.
    """
    question, counted = bought.question, count_of_units(bought.question)
    holders = exact.holders
    if holders is None or counted is None:
        raise EngineFault(FAILED)
    # Keys are selected before any other sum is looked at: what follows is of keys that noise has let through.
    shown, counts = selecting.counted(holders.units_at, entropy)
    cells = cells_of(question, holders.named(shown))
    sums = exact_values(question, exact.cells, cells, exact.leaves)
    pairs = list(zip(bought.terms, sums, strict=True))
    return Release(
        question=question,
        mechanisms=shown_mechanisms(bought),
        selection=selecting,
        keys=columns_of(cells, len(question.keys)),
        values=tuple(
            counts if term.measure == counted else term.mechanism.release(values, entropy) for term, values in pairs
        ),
        sequence=charged.sequence,
        cost=bought.loss,
        stored=False,
    )


def shown_mechanisms(bought: Quote) -> tuple[NoiseLaw, ...]:
    """Return the noise of each measure as an answer has it: of a count that selects its keys, what lies above."""
    selecting = None if bought.key_selection is None else bought.key_selection.counting
    if selecting is None:
        return tuple(term.mechanism for term in bought.terms)
    counted = count_of_units(bought.question)
    law = NoiseAboveThreshold(law=selecting.law, threshold=selecting.threshold, minimum=selecting.minimum)
    return tuple(law if term.measure == counted else term.mechanism for term in bought.terms)


def chosen(
    bought: Quote, choosing: ChoiceQuote, charged: Charged, sums: Sequence[IntArray], entropy: Entropy
) -> Release:
    """Choose among the measures of a question, and release the place of the best alone.

    Guarantee:
        The loss of `choosing`; the score of a measure is its sum over all cells.
    """
    scores = [sum(values.tolist()) for values in sums]
    return Release(
        question=bought.question,
        mechanisms=(),
        selection=None,
        keys=((),) * len(bought.question.keys),
        values=(),
        sequence=charged.sequence,
        cost=bought.loss,
        stored=False,
        choice=ChosenMeasure(place=choosing.mechanism.release(scores, entropy), mechanism=choosing.mechanism),
    )
