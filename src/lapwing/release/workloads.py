"""Questions that are bought together and are marginals of the same rows: measured by residuals, not one by one.

Counts and sums over the same selection, each by some of the same public keys, repeat what the others say. They are put
together from `ResidualMarginals`, for what their noise would have cost one by one, where that is as accurate for each.

Guarantee:
    The measurements of a workload lose at most what the mechanisms in whose place they stand lose together, exactly,
    and each question is charged at least its own of these. Which questions form a workload follows from their plans,
    prices and mechanisms, before any row is read. So the sum of the charges covers all that is released, in whatever
    order it is shown; and whoever has only one of the answers has a function of what all of them paid for.

Proof that they are marginals. Questions of a workload have the same selection: so the same rows, of which a unit has
at most K, each adding a value in its measure's range to one cell at most of each table (`query.stability`, rows). All
are run over rows that carry bounded numbers as they were read, too, whether they look at these or not (`_run`): so it
is the same for all which of two rows of a unit with equal hashes is kept (`engines.duckdb.cleaned.kept`). A key that is
not exhaustive gets one more cell here, for the rows without a value of it, unless it is in every question: rows that
lack one of those are in no table. Each row that is left is then in a cell of each key, so that every table is the
margin of the table by all keys. That is all that `residual_marginals` asks for. What the added cells hold is the table
without the key less the sum over its values, and they are not shown.

Different numbers of units or of values, per-group clamps, rows that several units share, limits on groups, keys of
which not every combination is a cell, grouping sets and private keys have no such tables, or better bounds; they keep
noise of their own. So do sums of which a variance is made, whose interval needs that noise.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Final

import numpy as np

from lapwing.answer.exhaustive_keys import is_exhaustive
from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import ROOM, IntArray, largest, total
from lapwing.exact.entropy import Entropy
from lapwing.ledger.entries import Charged
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.mechanisms.residual_marginals import ResidualMarginals, RowsOfUnit
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.privacy.measures import PureDP
from lapwing.query.expressions.expression import written_in
from lapwing.query.measures.measures import Count, Key, Measure, Sum
from lapwing.query.plan.parts_read import parts_read
from lapwing.query.plan.plan import Question
from lapwing.query.pricing.quote import NoisyMeasure
from lapwing.query.relations.per_unit import FirstGroups
from lapwing.query.relations.public_join import PublicJoin
from lapwing.query.relations.relation import FilteredRows, ProtectedRows
from lapwing.release.cells import cells_of, columns_of, exact_values
from lapwing.release.refinement import as_accurate
from lapwing.release.request import Access, Release
from lapwing.release.stored import Purchase

Number = tuple[int, int]
"""A number of a batch: the place of its question among the purchases, and that of its measure in the question."""

MOST_OPEN: Final = 6
"""Keys of one question that may lack values of rows: what they lack is read off the tables by fewer of them."""
MOST_READ: Final = 2
"""How many times as many tables may be read as there are in the batch."""
Keys = frozenset[Key]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Numbers that are marginals of the same rows.

    Args:
        keys: The attributes, in order.
        open: Those with a cell for rows without a listed value.
        members: Each number, with the place of its marginal in the mechanism.
    """

    keys: tuple[Key, ...]
    open: Keys
    mechanism: ResidualMarginals
    members: Mapping[Number, int]

    def keys_of(self, marginal: int) -> tuple[Key, ...]:
        """Return the keys of a marginal, by its place in the mechanism."""
        return tuple(self.keys[place] for place in self.mechanism.marginals[marginal])

    @property
    def largest(self) -> list[tuple[Key, ...]]:
        """The marginals that are inside no other."""
        every = [self.keys_of(place) for place in range(len(self.mechanism.marginals))]
        return [keys for keys in every if not any(set(keys) < set(other) for other in every)]

    @property
    def read(self) -> list[Keys]:
        """The tables of listed values that all others follow from."""
        found = dict.fromkeys(
            frozenset(keys) - frozenset(left)
            for keys in self.largest
            for open_keys in [[key for key in keys if key in self.open]]
            for many in range(len(open_keys) + 1)
            for left in combinations(open_keys, many)
        )
        return list(found)

    def table(self, question: Question, values: IntArray) -> IntArray:
        """Return the cells of a question as a table whose axes are in the order of the attributes."""
        shaped = values.reshape([len(key.domain) for key in question.keys])
        return shaped.transpose(self._axes(question))

    def cells(self, question: Question, table: IntArray) -> IntArray:
        """Return the listed values of a table as the cells of a question, in their order."""
        axes = self._axes(question)
        listed = table[tuple(slice(len(question.keys[place].domain)) for place in axes)]
        flat: IntArray = listed.transpose(sorted(range(len(axes)), key=lambda place: axes[place])).reshape(-1)
        return flat

    def _axes(self, question: Question) -> list[int]:
        return sorted(range(len(question.keys)), key=lambda place: self.keys.index(question.keys[place]))

    def complete(self, listed: Mapping[Keys, IntArray]) -> list[IntArray]:
        """Return the tables of all marginals, with the cells of what is not listed."""
        whole = {keys: _completed(keys, [key for key in keys if key in self.open], listed) for keys in self.largest}
        tables = []
        for place in range(len(self.mechanism.marginals)):
            keys = self.keys_of(place)
            around = next(other for other in whole if set(keys) <= set(other))
            others = tuple(axis for axis, key in enumerate(around) if key not in keys)
            tables.append(_added_up(whole[around], others))
        return tables

    def noise(self, number: Number) -> NoiseLaw:
        """Return what each cell of a number errs by."""
        return self.mechanism.noise(self.mechanism.marginals[self.members[number]])


def _completed(keys: Sequence[Key], waiting: Sequence[Key], listed: Mapping[Keys, IntArray]) -> IntArray:
    """Return a table with one more cell for each key that waits for it: what the table without the key has more."""
    if not waiting:
        return listed[frozenset(keys)]
    key, *others = waiting
    axis, without = keys.index(key), [other for other in keys if other != key]
    known = _completed(keys, others, listed)
    every = np.expand_dims(_completed(without, others, listed), axis)
    rest = total(np.asarray(every), -_added_up(known, (axis,)).reshape(every.shape))
    joined: IntArray = np.concatenate([known, rest], axis=axis)
    return joined


def _added_up(table: IntArray, axes: tuple[int, ...]) -> IntArray:
    """Return the sums of a table along axes, exactly."""
    if table.dtype == np.int64 and table.size and largest(table) * table.size >= ROOM:
        table = table.astype(object)
    return np.asarray(table.sum(axis=axes))


def workloads_of(buying: Sequence[Purchase], neighbouring: str) -> list[Workload]:
    """Return the workloads among questions that are bought together: none where noise on each is as good."""
    alike: dict[object, list[Number]] = {}
    for place, purchase in enumerate(buying):
        for kind, number in _eligible(place, purchase):
            alike.setdefault(kind, []).append(number)
    found = (_workload(numbers, buying, neighbouring) for numbers in alike.values())
    return [workload for workload in found if workload is not None]


def _eligible(place: int, purchase: Purchase) -> Iterator[tuple[object, Number]]:
    """Yield the numbers of a question that may be in a workload, each after what those of one have in common."""
    bought = purchase.bought
    question = bought.question
    chosen = purchase.refinement is not None or bought.key_selection is not None or bought.choosing is not None
    if chosen or not has_margins(question) or isinstance(bought.loss, PureDP):
        return
    for at, term in enumerate(bought.terms):
        if adds_up(term, question.measures):
            yield rows_and_measure(question, term.measure), (place, at)


def has_margins(question: Question) -> bool:
    """Tell whether the cells of a question are all combinations of public keys, and each row adds to one at most."""
    unlike = question.private_keys or question.sets or question.combined or question.units_of_row > 1
    twice = len(set(question.keys)) < len(question.keys)
    return not (twice or unlike or isinstance(question.selection.relation, FirstGroups))


def rows_and_measure(question: Question, measure: Measure) -> Hashable:
    """Return the rows of a question and what is added up over them: tables in which both are equal are margins."""
    return _with_what_was_read(question.selection), measure, parts_read(question)


def _with_what_was_read(selection: FilteredRows) -> FilteredRows:
    """Return a selection of a table's rows, joined to public ones or not, that have bounded numbers as read, too."""
    relation = selection.relation
    if isinstance(relation, ProtectedRows):
        return replace(selection, relation=replace(relation, reads=True))
    if isinstance(relation, PublicJoin):
        return replace(selection, relation=replace(relation, source=_with_what_was_read(relation.source)))
    return selection


def adds_up(term: NoisyMeasure, beside: Sequence[Measure]) -> bool:
    """Tell whether a measure is a sum over rows, with noise of the kind that residuals have."""
    measure = term.measure
    if not isinstance(measure, Count | Sum) or measure.clamp is not None or measure.row_range == (0, 0):
        return False
    squared = isinstance(measure, Sum) and any(
        isinstance(other, Sum) and other != measure and written_in(other.argument) == written_in(measure.argument)
        for other in beside
    )
    return isinstance(term.mechanism, RoundedGaussian) and not squared


def _workload(numbers: Sequence[Number], buying: Sequence[Purchase], neighbouring: str) -> Workload | None:
    """Return a workload of these numbers, if it is at least as accurate in each of them."""
    questions = [buying[place].bought.question for place, _ in numbers]
    keys = tuple(dict.fromkeys(key for question in questions for key in question.keys))
    wholes = [tuple(sorted(keys.index(key) for key in set(question.keys))) for question in questions]
    if len(set(wholes)) < 2:
        return None
    shared, relation = (
        frozenset(keys).intersection(*(question.keys for question in questions)),
        questions[0].selection.relation,
    )
    open_keys = frozenset(key for key in keys if key not in shared and not is_exhaustive(key, relation))
    if any(len(open_keys.intersection(question.keys)) > MOST_OPEN for question in questions):
        return None
    terms = [buying[place].bought.terms[at] for place, at in numbers]
    loss = buying[0].bought.loss
    paid = sum((term.loss(loss.kind).amount for term in terms), Fraction(0))
    beside: dict[tuple[int, ...], Fraction] = {}
    for whole, term in zip(wholes, terms, strict=True):
        beside[whole] = min(term.mechanism.scale**2, beside.get(whole, term.mechanism.scale**2))
    try:
        mechanism = ResidualMarginals.for_loss(
            loss.from_amount(paid),
            sizes=[len(key.domain) + (key in open_keys) for key in keys],
            marginals=list(beside),
            unit=_unit(questions[0], terms[0].measure, neighbouring),
            beside=list(beside.values()),
        )
    except InvalidParameter:  # more keys than it can have
        return None
    members = {number: mechanism.marginals.index(whole) for number, whole in zip(numbers, wholes, strict=True)}
    workload = Workload(keys=keys, open=open_keys, mechanism=mechanism, members=members)
    if len(workload.read) > MOST_READ * len(set(wholes)):  # tables that nobody asked for take their time
        return None
    pairs = zip(numbers, terms, strict=True)
    return workload if all(as_accurate(workload.noise(number), term.mechanism) for number, term in pairs) else None


def _unit(question: Question, measure: Measure, neighbouring: str) -> RowsOfUnit:
    """Return what a unit can have in the tables: `query.stability` has the proof."""
    if not isinstance(measure, Count | Sum):
        raise InvalidParameter("Only counts and sums of rows add up over marginals.")
    low, high = measure.row_range
    rows = question.selection.rows_per_unit
    return RowsOfUnit(rows=rows, low=low, high=high, replaced=neighbouring == "replace_one")


def released_together(
    workloads: Sequence[Workload],
    buying: Sequence[Purchase],
    charged: Sequence[Charged],
    versions: Sequence[Mapping[str, str]],
    access: Access,
) -> dict[int, Release]:
    """Return the answers to all questions with a number in a workload, by the ledger's entries that paid for them."""
    places = sorted({place for workload in workloads for place, _ in workload.members})
    exact: dict[Number, IntArray] = {}
    tables: list[dict[Keys, IntArray]] = [{} for _ in workloads]
    noisy: dict[Number, tuple[IntArray, NoiseLaw]] = {}
    try:
        for place in places:
            exact.update(_numbered(place, _run(buying[place].bought.question, versions[place], access)))
        for workload, listed in zip(workloads, tables, strict=True):
            _read(workload, buying, versions, exact, listed, access)
        for workload, listed in zip(workloads, tables, strict=True):
            noisy.update(_measured(workload, buying, listed, access.entropy))
        for place, at in exact.keys() - noisy.keys():
            law = buying[place].bought.terms[at].mechanism
            noisy[place, at] = (law.release(exact[place, at], access.entropy), law)
    finally:  # an error that is raised here, or later, holds no exact sums
        exact.clear()
        for listed in tables:
            listed.clear()
    return {charged[place].sequence: _release(place, buying[place], charged[place], noisy) for place in places}


def _run(question: Question, versions: Mapping[str, str], access: Access) -> tuple[IntArray, ...]:
    asked = replace(question, selection=_with_what_was_read(question.selection))
    return exact_values(question, access.engine.run(asked, versions).cells, cells_of(question))


def _numbered(place: int, sums: Sequence[IntArray]) -> dict[Number, IntArray]:
    return {(place, at): values for at, values in enumerate(sums)}


def _read(
    workload: Workload,
    buying: Sequence[Purchase],
    versions: Sequence[Mapping[str, str]],
    exact: Mapping[Number, IntArray],
    listed: dict[Keys, IntArray],
    access: Access,
) -> None:
    """Fill in the tables that a workload needs: those that were asked for, and of the same rows by fewer keys."""
    asked = {frozenset(buying[number[0]].bought.question.keys): number for number in workload.members}
    place, at = next(iter(workload.members))
    one = buying[place].bought.question
    for keys in workload.read:
        if keys in asked:
            listed[keys] = workload.table(buying[asked[keys][0]].bought.question, exact[asked[keys]])
        else:
            fewer = replace(one, keys=tuple(key for key in workload.keys if key in keys), measures=(one.measures[at],))
            listed[keys] = workload.table(fewer, _run(fewer, versions[place], access)[0])


def _measured(
    workload: Workload, buying: Sequence[Purchase], listed: Mapping[Keys, IntArray], entropy: Entropy
) -> dict[Number, tuple[IntArray, NoiseLaw]]:
    """Return the noisy numbers of a workload, each with what it errs by."""
    told = workload.mechanism.release(workload.complete(listed), entropy)
    return {
        number: (workload.cells(buying[number[0]].bought.question, told[marginal]), workload.noise(number))
        for number, marginal in workload.members.items()
    }


def _release(
    place: int, purchase: Purchase, charged: Charged, noisy: Mapping[Number, tuple[IntArray, NoiseLaw]]
) -> Release:
    question = purchase.bought.question
    numbers = [noisy[place, at] for at in range(len(question.measures))]
    return Release(
        question=question,
        mechanisms=tuple(law for _, law in numbers),
        selection=None,
        keys=columns_of(cells_of(question), len(question.keys)),
        values=tuple(values for values, _ in numbers),
        sequence=charged.sequence,
        cost=purchase.bought.loss,
        stored=False,
    )
