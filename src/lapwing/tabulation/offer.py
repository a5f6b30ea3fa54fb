"""The costs of several tables at given shares of one cost, and the error of each of their numbers.

It takes the steps that a batch takes before its charge (`release.shared_vectors`): quotes, workloads, vectors. So the
noise that is shown is the noise that a batch at these shares gets. Nothing is read, and nothing is charged.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import cast, final

from lapwing.catalog.model import Budget
from lapwing.mechanisms.additive import CellMechanism, NoiseLaw
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.privacy.measures import Number
from lapwing.query.measures.measures import Measure
from lapwing.query.plan.plan import Plan
from lapwing.query.pricing.joint_price import calibrate_together
from lapwing.query.pricing.quote import NoisyMeasure, Quote
from lapwing.release.measured import laws_as_asked
from lapwing.release.nested_keys import NestedKeys
from lapwing.release.shared_vectors import shared_vectors
from lapwing.release.stored import Purchase
from lapwing.release.workloads import Workload, workloads_of


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Tables at shares of a cost.

    Args:
        quotes: Of each table.
        terms: The numbers of each table, with the noise that they get together with the others.
        workloads: Numbers that are measured together.
        groups: The places of tables that share noise; each table is in one group.
    """

    quotes: tuple[Quote, ...]
    terms: tuple[tuple[NoisyMeasure, ...], ...]
    workloads: tuple[Workload, ...]
    groups: tuple[tuple[int, ...], ...]

    def measure(self, member: tuple[int, int]) -> Measure:
        """Return the measure of a number in a workload."""
        place, at = member
        return _bought(self.quotes[place]).terms[at].measure

    @property
    def is_linear(self) -> bool:
        """Whether each table has one number, with normal noise of its own or in a workload of even hierarchies."""
        if not all(attribute.is_even for workload in self.workloads for attribute in workload.attributes):
            return False
        return all(
            len(quote.terms) == 1 and quote.vector is None and isinstance(quote.terms[0].mechanism, RoundedGaussian)
            for quote in self.quotes
        ) and all(
            len(group) == 1 or any({place for place, _ in one.members} == set(group) for one in self.workloads)
            for group in self.groups
        )


def offer_for(
    plans: Sequence[Plan],
    budget: Budget,
    epsilon: Number,
    delta: Number | None,
    shares: Sequence[Fraction],
    nestings: Sequence[NestedKeys] = (),
) -> Offer:
    """Return what tables get for shares of a cost.

    Args:
        nestings: Keys that lie inside others.

    Raises:
        LapwingError: As `calibrate_together`.
    """
    quotes = calibrate_together(plans, budget, epsilon=epsilon, delta=delta, shares=shares)
    buying = [Purchase(key=str(place), bought=_bought(quote)) for place, quote in enumerate(quotes)]
    workloads = workloads_of(buying, budget.neighbouring, nestings)
    vectors = shared_vectors(buying, {place for one in workloads for place, _ in one.members}, budget)
    laws: list[tuple[NoiseLaw, ...]] = []
    for place, (quote, purchase) in enumerate(zip(quotes, buying, strict=True)):
        noisy: list[NoiseLaw] = []
        for at, term in enumerate(purchase.bought.terms):
            within = [one.noise((place, at)) for one in workloads if (place, at) in one.members]
            within += [one.laws[term.measure] for one in vectors if place in one.places]
            noisy.append(within[0] if within else term.mechanism)
        laws.append(laws_as_asked(quote, purchase.bought.question, tuple(noisy)))
    return Offer(
        quotes=quotes,
        terms=tuple(map(_with_laws, quotes, laws)),
        workloads=tuple(workloads),
        groups=_groups(
            len(quotes), [[place for place, _ in one.members] for one in workloads] + [one.places for one in vectors]
        ),
    )


def _bought(quote: Quote) -> Quote:
    """Return what is bought where nothing is stored: as `release.stored.look_up` says it."""
    vector = quote.vector
    return quote if vector is None else vector.bought if vector.is_bought else vector.before


def _with_laws(quote: Quote, laws: Sequence[NoiseLaw]) -> tuple[NoisyMeasure, ...]:
    # Of the noise only the error is asked from here on.
    pairs = zip(quote.terms, laws, strict=True)
    return tuple(replace(term, mechanism=cast(CellMechanism, law)) for term, law in pairs)


def _groups(tables: int, together: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Return the places of all tables, those that are together in anything in one group."""
    group = list(range(tables))
    for places in together:
        joined = {group[place] for place in places}
        group = [min(joined) if one in joined else one for one in group]
    return tuple(tuple(place for place in range(tables) if group[place] == one) for one in sorted(set(group)))
