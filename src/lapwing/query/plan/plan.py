"""The meaning of a question: noisy measures per cell of public keys, and values derived from them afterwards.

A `Question` is the part that touches data and is paid for; it is also what identifies a stored answer. A `Plan` adds
the names, order and arithmetic of the answer, which are post-processing of released numbers and cost nothing.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from math import prod
from threading import Lock
from typing import TYPE_CHECKING, Final, Generic, TypeVar, final

from lapwing.catalog.model import Catalog, Table
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.derivation.node import Derived, Output, OutputOrder
from lapwing.query.expressions.expression import Expression, columns_of
from lapwing.query.measures.distribution import Distribution
from lapwing.query.measures.measures import Key, Measure, NumberMeasure, argument_of
from lapwing.query.plan.combined_keys import CombinedKeys, number_of_cells
from lapwing.query.relations.contribution import PriceRequest
from lapwing.query.relations.per_unit import FirstGroups
from lapwing.query.relations.relation import (
    FilteredRows,
    declared_columns_of,
    pruned,
    table_of,
    tables_of,
    units_of_row,
)
from lapwing.query.text.parameters import Parameters

if TYPE_CHECKING:
    from lapwing.query.plan.composition import Composition
    from lapwing.query.plan.search import Search


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The part of a plan that touches data: measures of selected rows, in cells of keys.

    Args:
        fewest_units: a private key that fewer units hold is never released.
        sets: the grouping sets, if there are several. Each has its own cells, by some of the keys; the others are NULL.
        choosing: whether no measure is released, but only which of them is best over all cells together.
        combined: public keys of which not every combination is a cell, with those that are (`possible_keys`).
        wider: the question with the cells of earlier versions, if they had more.
    """

    selection: FilteredRows
    keys: tuple[Key, ...]
    measures: tuple[Measure, ...]
    fewest_units: int = 1
    sets: tuple[tuple[Key, ...], ...] = ()
    choosing: bool = False
    combined: tuple[CombinedKeys, ...] = ()
    wider: "Question | None" = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        """Return the canonical text: equal questions, and only they, have equal texts."""
        sets = [", ".join(map(str, keys)) for keys in self.sets or (self.keys,)]
        keys = f" GROUP BY SETS ({'), ('.join(sets)})" if self.sets else f" GROUP BY {sets[0]}" if self.keys else ""
        fewest = f" OF {self.fewest_units} UNITS" if self.fewest_units > 1 else ""
        shown = "CHOOSE AMONG" if self.choosing else "SELECT"
        return f"{shown} {', '.join(map(str, self.measures)) or 'KEYS'} FROM {self.selection}{keys}{fewest}"

    @property
    def table(self) -> Table:
        """The protected table that the question is about: of several, the one that it begins with."""
        return table_of(self.selection.relation)

    @property
    def tables(self) -> tuple[Table, ...]:
        """The protected tables that the question names, each once, in the order of their names."""
        return tables_of(self.selection.relation)

    @property
    def lineage(self) -> tuple[Table, ...]:
        """These, and all tables that their links lead to: parents first, each once."""
        return tuple({table.name: table for named in self.tables for table in reversed(named.lineage)}.values())

    @property
    def where(self) -> Expression | None:
        """The condition on a row."""
        return self.selection.where

    @property
    def units_of_row(self) -> int:
        """How many units a row may belong to."""
        return units_of_row(self.selection.relation)

    @property
    def private_keys(self) -> tuple[Key, ...]:
        """The keys whose values are private."""
        return tuple(key for key in self.keys if key.private)

    @property
    def combinations(self) -> int:
        """The number of combinations of its public keys, over all grouping sets."""
        sets = self.sets or (self.keys,)
        if self.combined:
            return number_of_cells(sets, self.combined)
        return sum(prod(len(key.domain) for key in keys if not key.private) for keys in sets)

    @property
    def cells(self) -> int | None:
        """The number of cells in the answer, a public fact; None if there are private keys."""
        return None if self.private_keys else self.combinations

    @property
    def parts(self) -> tuple["Question", ...]:
        """A question for each grouping set, with the keys of that set alone, in every combination."""
        return tuple(replace(self, keys=keys, sets=(), combined=()) for keys in self.sets) or (self,)

    @property
    def numbers(self) -> tuple[NumberMeasure, ...]:
        """The measures of one integer a cell."""
        return tuple(measure for measure in self.measures if not isinstance(measure, Distribution))

    @property
    def distributions(self) -> tuple[Distribution, ...]:
        """The measures of a vector a cell."""
        return tuple(measure for measure in self.measures if isinstance(measure, Distribution))

    @property
    def groups_per_unit(self) -> int | None:
        """The most cells that a unit's rows fall into, where the question limits it."""
        relation = self.selection.relation
        return relation.most if isinstance(relation, FirstGroups) and set(self.keys) <= set(relation.keys) else None

    @property
    def keys_per_unit(self) -> int:
        """The most values of the private keys, together, that a unit holds."""
        rows, groups = self.selection.rows_per_unit, self.groups_per_unit
        return rows if groups is None else min(rows, groups)

    @property
    def columns(self) -> frozenset[tuple[str, str]]:
        """The declared columns that the question reads: names of tables, each with the name of a column."""
        outer = [*(key.expression for key in self.keys), *map(argument_of, self.measures)]
        return declared_columns_of(self.selection, frozenset().union(*map(columns_of, outer)))


def without_unread(selection: FilteredRows, keys: Sequence[Key], measures: Sequence[Measure]) -> FilteredRows:
    """Return a selection whose joins show only what a question reads."""
    read = [*(key.expression for key in keys), *map(argument_of, measures)]
    return pruned(selection, frozenset[str]().union(*map(columns_of, read)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A bound question and how its answer is shown.

    Args:
        searches: they find the bounds that the question leaves open; until then it has the widest possible ones.
        unsettled: the sums that those bounds will change.
        composition: the plans whose answers it is over, where it is over several; its own question is of nothing then.
        constants: of the numbers in its conditions that are asked for first; until then others stand in their place.
        moment: what its looks at the clock stand for, if its text has any: a constant of the question.
    """

    question: Question
    keys: tuple[Key, ...]
    outputs: tuple[Output, ...]
    having: Derived | None = None
    qualify: Derived | None = None
    order: tuple[OutputOrder, ...] = ()
    limit: int | None = None
    offset: int = 0
    price_request: PriceRequest = field(default_factory=PriceRequest)
    explain: bool = False
    searches: "tuple[Search, ...]" = ()
    unsettled: frozenset[Measure] = frozenset()
    composition: "Composition | None" = None
    constants: "tuple[Plan, ...]" = ()
    moment: datetime | None = None

    def require_answerable(self) -> None:
        """Refuse to answer what asks for a price alone."""
        if self.explain:
            reason, cause = "EXPLAIN PRIVACY asks for a cost, not for a result", RefusalCause.EXPLAIN_NEEDS_ITS_CALL
            raise QueryRefused(reason, cause=cause, remedy="Call session.explain.")


# ---- plans that were made before -------------------------------------------------------------------------------------

MOST_PLANS: Final = 256
"""Questions that are remembered at once; the one that was asked longest ago goes first."""
LONGEST_TEXT: Final = 4_096
"""Characters of a text that is remembered."""
_PLAIN: Final = frozenset({bool, int, float, str, Decimal, Fraction, date, datetime, type(None)})

Planned = TypeVar("Planned")


@final
class PlanCache(Generic[Planned]):
    """Plans of questions asked before, word for word: binding one takes longer than the rest of a free answer.

    A plan and its price are functions of the question's text, its parameters, the price that is wanted, and the
    catalog; so one that is kept here is the one that would be made again. Where the catalog has public tables they are
    functions of those files too, which must be compared each time: then nothing is kept. Nor is a refusal.

    What one person asked is kept for that person alone. So how long a question takes tells nobody whether somebody else
    has asked, or only priced, the same. Thread-safe; two threads may plan the same at the same time.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[Hashable, tuple[Catalog, Planned]] = OrderedDict()

    def planned(
        self,
        make: Callable[[], Planned],
        *,
        catalog: Catalog,
        principal: str,
        text: str,
        parameters: Parameters,
        numbers: tuple[object, ...],
    ) -> Planned:
        """Return what was planned for this question at the price that is wanted (`numbers`), or what is made now."""
        name = None if catalog.public_tables else _name(principal, text, parameters, numbers)
        if name is None:
            return make()
        with self._lock:
            found = self._known.get(name)
            if found is not None and found[0] is catalog:
                self._known.move_to_end(name)
                return found[1]
        made = make()
        with self._lock:
            self._known[name] = catalog, made
            self._known.move_to_end(name)
            if len(self._known) > MOST_PLANS:
                self._known.popitem(last=False)
        return made


def _name(principal: str, text: object, parameters: object, numbers: tuple[object, ...]) -> Hashable | None:
    """Name a question by all that its plan follows from, None if that is not plain: then it may be anything.

    Values are told apart by their type and how they are written: 1, 1.0 and True are equal, and not the same constant.
    """
    if type(text) is not str or len(text) > LONGEST_TEXT:
        return None
    if isinstance(parameters, Mapping):
        names, values = (*parameters,), (*parameters.values(),)
    elif isinstance(parameters, list | tuple):
        names, values = (None,), tuple(parameters)
    else:
        return None
    given = (*values, *numbers)
    if any(type(value) not in _PLAIN for value in given) or any(type(name) not in (str, type(None)) for name in names):
        return None
    return principal, text, names, tuple((type(value), repr(value)) for value in given)
