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

Nested keys are one attribute, whose digits are axes (`nested_keys`). Each row has the digits of its finest value, and a
table by a coarser key is the margin by the first of them. Only tables that lie inside no other are read. So a wrong
nesting makes wrong numbers, but no larger loss under `add_remove`.
Under `replace_one` the loss needs that tables by different keys put a row into cells with the same digits. The maker of
`NestedKeys` proves that.

Different numbers of units or of values, per-group clamps, rows that several units share, limits on groups, keys of
which not every combination is a cell, grouping sets and private keys have no such tables, or better bounds; they keep
noise of their own. So do sums of which a variance is made, whose interval needs that noise.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import prod
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
from lapwing.release.nested_keys import NestedAttribute, NestedKeys, attributes_of
from lapwing.release.refinement import as_accurate
from lapwing.release.request import Access, Release
from lapwing.release.stored import Purchase

Number = tuple[int, int]
"""A number of a batch: the place of its question among the purchases, and that of its measure in the question."""

MOST_OPEN: Final = 6
"""Keys of one question that may lack values of rows: what they lack is read off the tables by fewer of them."""
MOST_READ: Final = 2
"""How many times as many tables may be read as there are in the batch."""
MOST_CELLS: Final = 4_000_000
"""Of a table by the digits of nested keys."""
Keys = frozenset[Key]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Numbers that are marginals of the same rows.

    Args:
        attributes: In order. The digits of each are axes of the mechanism.
        members: Each number, with the place of its marginal in the mechanism.
    """

    attributes: tuple[NestedAttribute, ...]
    mechanism: ResidualMarginals
    members: Mapping[Number, int]

    @property
    def largest(self) -> list[tuple[Key, ...]]:
        """The keys of the marginals that are inside no other."""
        every = self.mechanism.marginals
        outer = [whole for whole in every if not any(set(whole) < set(other) for other in every)]
        return [tuple(_keys_of(self.attributes, whole)) for whole in outer]

    @property
    def read(self) -> list[Keys]:
        """The tables of listed values that all others follow from."""
        found = dict.fromkeys(
            frozenset(keys) - frozenset(left)
            for keys in self.largest
            for open_keys in [self._open(keys)]
            for many in range(len(open_keys) + 1)
            for left in combinations(open_keys, many)
        )
        return list(found)

    def _open(self, keys: Sequence[Key]) -> list[Key]:
        return [key for key in keys if any(one.is_open and key in one.levels for one in self.attributes)]

    def table(self, question: Question, values: IntArray) -> IntArray:
        """Return the cells of a question as a table with the axes of its digits, in order; what is not listed is 0."""
        axes, places = self._places(question)
        shape = [self.mechanism.sizes[axis] for axis in axes]
        table: IntArray = np.zeros(shape, dtype=np.int64) if values.dtype == np.int64 else np.full(shape, 0, object)
        table[places] = values.reshape([len(key.domain) for key in question.keys])
        return table

    def cells(self, question: Question, table: IntArray) -> IntArray:
        """Return the listed values of a table as the cells of a question, in their order."""
        flat: IntArray = np.asarray(table[self._places(question)[1]]).reshape(-1)
        return flat

    def _places(self, question: Question) -> tuple[tuple[int, ...], tuple[IntArray, ...]]:
        """Return the axes of a question, and along each the place of every cell."""
        axes, along = _axes(self.attributes), dict[int, IntArray]()
        for place, key in enumerate(question.keys):
            shape = [-1 if other == place else 1 for other in range(len(question.keys))]
            digits = next(one.digits[one.levels.index(key)] for one in self.attributes if key in one.levels)
            along.update(
                (axis, np.array(digit, dtype=np.int64).reshape(shape))
                for axis, digit in zip(axes[key], digits, strict=True)
            )
        return tuple(sorted(along)), tuple(along[axis] for axis in sorted(along))

    def complete(self, listed: Mapping[Keys, IntArray]) -> list[IntArray]:
        """Return the tables of all marginals, with the cells of what is not listed."""
        axes = _axes(self.attributes)
        whole = {
            tuple(axis for key in keys for axis in axes[key]): _completed(keys, self._open(keys), listed, axes)
            for keys in self.largest
        }
        tables = []
        for marginal in self.mechanism.marginals:
            around = next(other for other in whole if set(marginal) <= set(other))
            others = tuple(place for place, axis in enumerate(around) if axis not in marginal)
            tables.append(_added_up(whole[around], others))
        return tables

    def noise(self, number: Number) -> NoiseLaw:
        """Return what each cell of a number errs by."""
        return self.mechanism.noise(self.mechanism.marginals[self.members[number]])


def _axes(attributes: Sequence[NestedAttribute]) -> dict[Key, tuple[int, ...]]:
    """Return the axes of each key, in order: those of its digits."""
    axes, first = dict[Key, tuple[int, ...]](), 0
    for attribute in attributes:
        axes.update((key, tuple(range(first, first + many + 1))) for many, key in enumerate(attribute.levels))
        first += len(attribute.levels)
    return axes


def _keys_of(attributes: Sequence[NestedAttribute], marginal: Sequence[int]) -> Iterator[Key]:
    """Yield the keys of a marginal, of each attribute at most one."""
    axes = _axes(attributes)
    for attribute in attributes:
        if inside := [key for key in attribute.levels if set(axes[key]) <= set(marginal)]:
            yield inside[-1]


def _completed(
    keys: Sequence[Key], waiting: Sequence[Key], listed: Mapping[Keys, IntArray], axes: Mapping[Key, tuple[int, ...]]
) -> IntArray:
    """Return a table in which the cell for rows without a value of each waiting key has what the others leave over."""
    if not waiting:
        return listed[frozenset(keys)]
    key, *others = waiting
    known = _completed(keys, others, listed, axes)
    every = _completed([other for other in keys if other != key], others, listed, axes)
    order = [axis for other in keys for axis in axes[other]]
    mine = [order.index(axis) for axis in axes[key]]
    rest = total(every, -_added_up(known, tuple(mine)))
    filled: IntArray = known.astype(object) if rest.dtype == object else known.copy()
    filled[tuple(-1 if place == mine[0] else 0 if place in mine else slice(None) for place in range(len(order)))] = rest
    return filled


def _added_up(table: IntArray, axes: tuple[int, ...]) -> IntArray:
    """Return the sums of a table along axes, exactly."""
    if table.dtype == np.int64 and table.size and largest(table) * table.size >= ROOM:
        table = table.astype(object)
    return np.asarray(table.sum(axis=axes))


def workloads_of(buying: Sequence[Purchase], neighbouring: str, nestings: Sequence[NestedKeys] = ()) -> list[Workload]:
    """Return the workloads among questions that are bought together: none where noise on each is as good.

    Args:
        nestings: Keys that are known to be nested.
    """
    alike: dict[object, list[Number]] = {}
    for place, purchase in enumerate(buying):
        for kind, number in _eligible(place, purchase):
            alike.setdefault(kind, []).append(number)
    found = (_workload(numbers, buying, neighbouring, nestings) for numbers in alike.values())
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


def _workload(
    numbers: Sequence[Number], buying: Sequence[Purchase], neighbouring: str, nestings: Sequence[NestedKeys]
) -> Workload | None:
    """Return a workload of these numbers, if it is at least as accurate in each of them."""
    questions = [buying[place].bought.question for place, _ in numbers]
    attributes = _attributes(questions, nestings)
    axes = _axes(attributes)
    wholes = [tuple(sorted({axis for key in question.keys for axis in axes[key]})) for question in questions]
    if len(set(wholes)) < 2:
        return None
    open_keys = frozenset(key for attribute in attributes if attribute.is_open for key in attribute.levels)
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
            sizes=[size for attribute in attributes for size in attribute.sizes],
            marginals=list(beside),
            unit=_unit(questions[0], terms[0].measure, neighbouring),
            beside=list(beside.values()),
            digits=[len(attribute.sizes) for attribute in attributes],
        )
    except InvalidParameter:  # more keys than it can have
        return None
    members = {number: mechanism.marginals.index(whole) for number, whole in zip(numbers, wholes, strict=True)}
    workload = Workload(attributes=attributes, mechanism=mechanism, members=members)
    if len(workload.read) > MOST_READ * len(set(wholes)):  # tables that nobody asked for take their time
        return None
    pairs = zip(numbers, terms, strict=True)
    return workload if all(as_accurate(workload.noise(number), term.mechanism) for number, term in pairs) else None


def _attributes(questions: Sequence[Question], nestings: Sequence[NestedKeys]) -> tuple[NestedAttribute, ...]:
    """Return the attributes of some questions; each key is its own if nested ones would make too large tables."""
    relation, keys = questions[0].selection.relation, [question.keys for question in questions]
    attributes = tuple(attributes_of(keys, nestings, lambda key: is_exhaustive(key, relation)))
    sizes = {
        key: prod(attribute.sizes[: level + 1])
        for attribute in attributes
        for level, key in enumerate(attribute.levels)
    }
    small = all(prod(sizes[key] for key in some) <= MOST_CELLS for some in keys)
    return attributes if small or not nestings else _attributes(questions, ())


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
            ordered = tuple(key for key in _axes(workload.attributes) if key in keys)
            fewer = replace(one, keys=ordered, measures=(one.measures[at],))
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
