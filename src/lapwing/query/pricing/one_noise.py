"""One noise for private keys and for the count of their units, where that is better than one for each.

A question that counts the units of each private key, and groups by nothing else, may release the noisy counts by which
its keys are selected (`mechanisms.thresholding` has the proof). Then the count gets the share of the price that the
selection would have had besides its own: noise less by a factor of 2 in pure ledgers, of √2 in others. But noise on
counts must hide a unit that is in all of its k keys, where weights divide a unit among the keys that it holds: units of
fewer keys show fewer keys then. So it is taken if of the numbers of units that a key needs to appear, its own, c, is no
more than the geometric mean of those of the other selection, a for units of one key and b for units of the most: c² ≤
ab. With even shares that is so in pure ledgers for any k, and in gdp and zcdp ledgers up to k = 3. All of this is
public.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from lapwing.errors import InvalidParameter
from lapwing.mechanisms.additive import CellMechanism, Mechanism
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.partitions import KeySelection
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.mechanisms.thresholding import CountThresholding
from lapwing.query.measures.distinct_counts import CountUnits
from lapwing.query.measures.measures import Count, Measure
from lapwing.query.plan.plan import Question
from lapwing.query.pricing.selection_mechanisms import KeySelectionQuote
from lapwing.query.relations.contribution import PriceRequest

if TYPE_CHECKING:
    from lapwing.query.pricing.quote import Quote

Narrowest = Callable[[str, Fraction, tuple[Sensitivity, ...]], tuple[int, Mechanism]]
_SURE = Fraction(95, 100)


def count_of_units(question: Question) -> Measure | None:
    """Return the measure that counts the units which hold each private key, if the question has one and no other keys.

    Where a unit has one row at most, a count of rows is that count.
    """
    if not question.private_keys or len(question.private_keys) < len(question.keys) or question.units_of_row > 1:
        return None
    counts = [CountUnits(), Count()] if question.selection.rows_per_unit == 1 else [CountUnits()]
    return next((measure for measure in question.measures if measure in counts), None)


def with_one_noise(priced: "Quote", asked: PriceRequest, narrowest: Narrowest) -> "Quote":
    """Return a quote whose count of units selects its keys, if that is better; else the quote as it is.

    What the question says of its price by itself stays as it says.

    Args:
        narrowest: Returns the mechanism that errs least, for a kind of ledger, an amount of loss, and sensitivities.
    """
    counted, selecting = count_of_units(priced.question), priced.key_selection
    if (
        counted is None
        or selecting is None
        or asked.selection is not None
        or counted in (*asked.shares, *asked.weights)
    ):
        return priced
    place = priced.question.measures.index(counted)
    term, kind = priced.terms[place], priced.loss.kind
    amount = term.loss(kind).amount + selecting.loss.amount
    _, law = narrowest(kind, amount, (term.candidate.sensitivity,))
    if not isinstance(law, RoundedGaussian | DiscreteLaplace):
        return priced
    keys, fewest = selecting.mechanism.max_keys, priced.question.fewest_units
    both = CountThresholding(law=law, delta=selecting.delta, max_keys=keys, minimum=fewest)
    if not _needs_no_more(both, selecting.mechanism):
        return priced
    instead = (selecting, term.mechanism)
    chosen = KeySelectionQuote(
        mechanism=both, loss=priced.loss.nothing(), delta=selecting.delta, noisy_alternative=instead
    )
    return _with(priced, place, law, chosen)


def with_two_noises(priced: "Quote") -> "Quote | None":
    """Return the quote of the same price with a noise for its selection and one for its count, if it has one for both.

    An answer that was bought so is as good as what the price buys now: it stays free.
    """
    counted, selecting = count_of_units(priced.question), priced.key_selection
    if counted is None or selecting is None or selecting.noisy_alternative is None:
        return None
    chosen, law = selecting.noisy_alternative
    return _with(priced, priced.question.measures.index(counted), law, chosen)


def _with(priced: "Quote", place: int, law: CellMechanism, selecting: KeySelectionQuote) -> "Quote":
    changed = replace(priced.terms[place], mechanism=law)
    return replace(priced, terms=(*priced.terms[:place], changed, *priced.terms[place + 1 :]), key_selection=selecting)


def _needs_no_more(one: KeySelection, other: KeySelection) -> bool:
    """Tell whether a selection shows keys of as few units as another, by the geometric mean over units' degrees."""
    try:
        fewest, most = one.units_needed(_SURE)
    except InvalidParameter:
        return False
    try:
        other_fewest, other_most = other.units_needed(_SURE)
    except InvalidParameter:
        return True
    return fewest * most <= other_fewest * other_most
