"""Questions that are bought together and are about the same rows, by the same keys: measured as one vector.

A batch may ask for COUNT(*) in one question and for SUM(x) in another. Both repeat a part of what the other says
(`query.pricing.measured_vectors`). So the planner writes the numbers of all such questions as one question. Its price
is the sum of their prices. The engine runs that question, and each of the others gets its own numbers. A number that
several questions ask for is measured once, with the noise of all their prices together.

Guarantee:
    The vector is one question of rows (`query.pricing.row_price`), which loses its price at most. That is the sum of
    the charges for the questions in its place. The ledger makes these charges before a row is read. The choice of the
    questions follows from plans, prices and mechanisms. Their answers are post-processing of the vector. So an analyst
    who sees only one of the answers sees a function of what all of them paid for.

A question keeps its own key in the ledger. There stand its numbers, each with its own error. So the question is free a
second time, in the batch and by itself. A stored number says nothing of the noise that it shares with others. So a
question stays out if two of its own numbers would share noise: intervals of what is computed from both would be wrong.
It also stays out if a number would err by more than by itself.

Pure ledgers have no record of a sum of Laplace numbers, so that their questions stay apart. So do questions with other
kinds of numbers, with private keys, in a workload of tables (`workloads`), and those that make an answer sharper.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Final, final

from lapwing.catalog.model import Budget
from lapwing.engines import Exact
from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import square_root_up
from lapwing.exact.entropy import Entropy
from lapwing.ledger.entries import Charged
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.mechanisms.combined_noise import CombinedNoise
from lapwing.mechanisms.merged_gaussian import gaussians, slack_of
from lapwing.mechanisms.reconstructed_gaussian import ReconstructedGaussian
from lapwing.privacy.measures import PureDP
from lapwing.query.measures.measures import Measure
from lapwing.query.plan.plan import Question
from lapwing.query.pricing.measured_vectors import vector_of
from lapwing.query.pricing.quote import Quote, at_price, bounds_of
from lapwing.query.pricing.row_price import RowsOfQuestion, is_of_rows
from lapwing.release import workloads
from lapwing.release.cells import cells_of, columns_of, exact_values
from lapwing.release.refinement import as_accurate
from lapwing.release.request import Access, Release
from lapwing.release.stored import Purchase

MOST_NUMBERS: Final = 40
"""Of all questions of one vector, so that it is planned in some hundredths of a second."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SharedVector:
    """Questions that are measured together.

    Args:
        places: Theirs among the purchases.
        priced: All their numbers as one question, at the sum of their prices.
    """

    places: tuple[int, ...]
    priced: Quote

    @property
    def measured(self) -> Quote:
        """The question that is run, with its noise."""
        return self.priced if self.priced.vector is None else self.priced.vector.bought

    @property
    def laws(self) -> Mapping[Measure, NoiseLaw]:
        """The law of each number's error, in the form that the ledger keeps."""
        drawn, vector = [term.mechanism for term in self.measured.terms], self.priced.vector
        laws: Sequence[NoiseLaw] = drawn if vector is None else vector.laws(drawn)
        return dict(zip(self.priced.question.measures, map(_kept, laws), strict=True))

    def values(self, exact: Sequence[IntArray], entropy: Entropy) -> Mapping[Measure, IntArray]:
        """Return the noisy numbers."""
        pairs, vector = zip(self.measured.terms, exact, strict=True), self.priced.vector
        noisy = tuple(term.mechanism.release(values, entropy) for term, values in pairs)
        return dict(zip(self.priced.question.measures, noisy if vector is None else vector.values(noisy), strict=True))

    def serves(self, bought: Quote) -> bool:
        """Tell whether a question's numbers err by no more than by themselves, and have no noise in common."""
        laws, vector = self.laws, self.priced.vector
        if not all(as_accurate(laws[term.measure], term.mechanism) for term in bought.terms):
            return False
        if vector is None:
            return True
        used = dict(zip(self.priced.question.measures, vector.weights, strict=True))
        pairs = combinations((used[term.measure] for term in bought.terms), 2)
        return not any(one and other for first, second in pairs for one, other in zip(first, second, strict=True))


def _kept(law: NoiseLaw) -> NoiseLaw:
    """Return the law of a number that follows from others as that of a number by itself."""
    if not isinstance(law, CombinedNoise):
        return law
    normal = gaussians(law.laws)
    if law.alone is not None or normal is None:
        return law.alone or law
    pairs = [(abs(weight), noise) for weight, noise in zip(law.weights, normal, strict=True)]
    variance = sum(((weight * noise.sigma) ** 2 for weight, noise in pairs), Fraction(0))
    slack = sum((weight * slack_of(noise) for weight, noise in pairs), law.rounding)
    return ReconstructedGaussian(sigma=square_root_up(variance), slack=slack)


def shared_vectors(buying: Sequence[Purchase], apart: Collection[int], budget: Budget) -> list[SharedVector]:
    """Return the vectors of questions that are bought together; those `apart` stay by themselves."""
    alike: dict[object, list[int]] = {}
    for place, purchase in enumerate(buying):
        if place not in apart and _is_eligible(purchase):
            question = purchase.bought.question
            rows = (question.selection, question.keys, question.sets, question.combined)
            alike.setdefault(rows, []).append(place)
    found = (_shared(tuple(places), buying, budget) for places in alike.values() if len(places) > 1)
    return [shared for shared in found if shared is not None]


def _is_eligible(purchase: Purchase) -> bool:
    bought = purchase.bought
    question = bought.question
    chosen = purchase.refinement is not None or bought.key_selection is not None or bought.choosing is not None
    if chosen or question.private_keys or question.units_of_row > 1 or isinstance(bought.loss, PureDP):
        return False
    return bool(bought.terms) and all(
        is_of_rows(term.measure) and workloads.adds_up(term, question.measures) for term in bought.terms
    )


def _shared(places: tuple[int, ...], buying: Sequence[Purchase], budget: Budget) -> SharedVector | None:
    """Return the vector of questions of the same rows; None if one by one they are as good."""
    members = [buying[place].bought for place in places]
    for priced in _ways(members, budget):
        shared = SharedVector(places=places, priced=priced)
        left = tuple(place for place, member in zip(places, members, strict=True) if shared.serves(member))
        if left == places:
            return shared
        if len(left) > 1:
            return _shared(left, buying, budget)
    return None


def _ways(members: Sequence[Quote], budget: Budget) -> Iterator[Quote]:
    """Yield quotes of all numbers as one question: by a vector, and with each number by itself, if several ask it."""
    first, kind = members[0], members[0].loss.kind
    shares: dict[Measure, Fraction] = {}
    for term in (term for member in members for term in member.terms):
        shares[term.measure] = shares.get(term.measure, Fraction(0)) + term.loss(kind).amount
    measures = tuple(sorted(shares, key=str))
    if len(measures) > MOST_NUMBERS:
        return
    question = replace(first.question, measures=measures)
    loss = first.loss.from_amount(sum((member.loss.amount for member in members), Fraction(0)))
    bounds, rows = bounds_of(question, budget), RowsOfQuestion.of(question, budget.neighbouring)
    rows = replace(rows, products=any(member.rows is not None and member.rows.products for member in members))
    priced = at_price(question, bounds, loss, tuple(shares[measure] for measure in measures), Fraction(0))
    try:
        priced = replace(priced, loss=loss, rows=rows)
    except InvalidParameter:  # the questions lose less by themselves: each of its rows where another value is NULL
        return
    found = vector_of(priced, budget)
    if found.vector is not None:
        yield found
    if len(measures) < sum(len(member.terms) for member in members):
        yield priced


def released_as_vectors(
    shared: Sequence[SharedVector],
    buying: Sequence[Purchase],
    charged: Sequence[Charged],
    versions: Sequence[Mapping[str, str]],
    access: Access,
) -> dict[int, Release]:
    """Return the answers to all questions of shared vectors, by the ledger's entries that paid for them."""
    found: dict[int, Release] = {}
    for vector in shared:
        question, run = vector.measured.question, access.engine.run
        laws, numbers = vector.laws, _noisy(vector, run(question, versions[vector.places[0]]), access.entropy)
        for place in vector.places:
            asked = buying[place].bought
            found[charged[place].sequence] = Release(
                question=asked.question,
                mechanisms=tuple(laws[term.measure] for term in asked.terms),
                selection=None,
                keys=columns_of(cells_of(asked.question), len(asked.question.keys)),
                values=tuple(numbers[term.measure] for term in asked.terms),
                sequence=charged[place].sequence,
                cost=asked.loss,
                stored=False,
            )
    return found


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """The workloads and vectors of a batch; a question is in one of them at most."""

    workloads: Sequence[workloads.Workload]
    vectors: Sequence[SharedVector]

    def released(
        self,
        buying: Sequence[Purchase],
        charged: Sequence[Charged],
        versions: Sequence[Mapping[str, str]],
        access: Access,
    ) -> dict[int, Release]:
        """Return the answers to all of these questions, by the ledger's entries that paid for them."""
        found = workloads.released_together(self.workloads, buying, charged, versions, access)
        return found | released_as_vectors(self.vectors, buying, charged, versions, access)


def measured_together(buying: Sequence[Purchase], access: Access) -> Together | None:
    """Return the workloads and vectors of questions that are bought together; None if there are none."""
    budget = access.catalog.budget
    tables = workloads.workloads_of(buying, budget.neighbouring, access.nestings)
    vectors = shared_vectors(buying, {place for table in tables for place, _ in table.members}, budget)
    # Before the charge, as of a question by itself: what fails here costs nothing.
    for vector in vectors:
        access.engine.prepare(vector.measured.question)
    return Together(workloads=tables, vectors=vectors) if tables or vectors else None


def _noisy(vector: SharedVector, exact: Exact, entropy: Entropy) -> Mapping[Measure, IntArray]:
    question: Question = vector.measured.question
    return vector.values(exact_values(question, exact.cells, cells_of(question), exact.leaves), entropy)
