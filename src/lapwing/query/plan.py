"""What a question means: noisy measures per cell of public keys, and what is derived from them afterwards.

A `Question` is the part that touches data and is paid for; it is also what identifies a stored answer. A `Plan` adds
the names, order and arithmetic of the answer, which are post-processing of released numbers and cost nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

from lapwing.catalog.model import Table
from lapwing.query.derivation.derived import Derived, Order, Output
from lapwing.query.expressions.expression import Column, Expression, columns_of
from lapwing.query.expressions.magnitudes import Magnitudes
from lapwing.query.keys import Key
from lapwing.query.measures import Count, Distribution, Measure, NumberMeasure, Sum, argument_of
from lapwing.query.relations.contribution import Asked
from lapwing.query.relations.per_unit import FirstGroups
from lapwing.query.relations.relation import (
    Kept,
    Selection,
    declared_columns_of,
    public_tables_of,
    table_of,
    tables_of,
    units_of_row,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The part of a plan that touches data: measures of selected rows, in cells of keys.

    `fewest_units` is the least number of units for which a private key may be released. `sets` are the grouping sets,
    where there are several: each has cells of its own, by some of the keys, and the other keys are NULL there. Where
    it is `choosing`, no measure is released but which of them is best, all cells together.
    """

    selection: Selection
    keys: tuple[Key, ...]
    measures: tuple[Measure, ...]
    fewest_units: int = 1
    sets: tuple[tuple[Key, ...], ...] = ()
    choosing: bool = False

    def __str__(self) -> str:
        """Return the canonical text: equal questions, and only they, have equal texts."""
        keys = f" GROUP BY {', '.join(map(str, self.keys))}" if self.keys else ""
        if self.sets:
            keys = f" GROUP BY SETS {', '.join(f'({_listed(keys)})' for keys in self.sets)}"
        fewest = f" OF {self.fewest_units} UNITS" if self.fewest_units > 1 else ""
        shown = "CHOOSE AMONG" if self.choosing else "SELECT"
        return f"{shown} {', '.join(map(str, self.measures))} FROM {self.selection}{keys}{fewest}"

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
    def public_tables(self) -> frozenset[str]:
        """The names of the public tables that the question reads."""
        return frozenset(name for name, _ in public_tables_of(self.selection.relation))

    @property
    def public_contents(self) -> tuple[str, ...]:
        """The digests of their data."""
        return tuple(digest for _, digest in sorted(public_tables_of(self.selection.relation)))

    @property
    def units_of_row(self) -> int:
        """How many units a row may belong to."""
        return units_of_row(self.selection.relation)

    @property
    def private_keys(self) -> tuple[Key, ...]:
        """The keys whose values are private."""
        return tuple(key for key in self.keys if key.private)

    @property
    def cells(self) -> int | None:
        """The number of cells in the answer, a public fact; None if there are private keys."""
        if self.private_keys:
            return None
        return sum(prod(len(key.domain) for key in part.keys) for part in self.parts)

    @property
    def parts(self) -> tuple["Question", ...]:
        """A question for each grouping set, with the keys of that set alone."""
        if not self.sets:
            return (self,)
        return tuple(replace(self, keys=keys, sets=()) for keys in self.sets)

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
    def passed_on(self) -> frozenset[str]:
        """The columns of a table that are private keys as they are, and that nothing else looks at."""
        if not isinstance(self.selection.relation, Kept):
            return frozenset()
        plain = [key.expression for key in self.private_keys if isinstance(key.expression, Column)]
        others = [key.expression for key in self.keys if key.expression not in plain]
        looked_at = [self.where, *others, *map(argument_of, self.measures)]
        return frozenset(column.name for column in plain).difference(*map(columns_of, looked_at))

    @property
    def columns(self) -> frozenset[tuple[str, str]]:
        """The declared columns that the question reads: names of tables, each with the name of a column."""
        outer = [*(key.expression for key in self.keys), *map(argument_of, self.measures)]
        return declared_columns_of(self.selection, frozenset().union(*map(columns_of, outer)))


def _listed(keys: Sequence[Key]) -> str:
    return ", ".join(map(str, keys))


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A question of its own, from whose answer bounds follow: how many rows there are of each class of a value.

    `magnitudes` are the candidates, one for each class; `name` says of what they are bounds. `total` is the measure, if
    they are bounds of what a unit adds to a group of it in all: then a row is a unit in a group. Of rows that several
    units share there are no classes: the question chooses among the candidates.
    """

    question: Question
    magnitudes: Magnitudes
    name: str
    total: Count | Sum | None = None

    @property
    def measure(self) -> Distribution:
        """What the question measures."""
        return self.question.distributions[0]

    @property
    def bounded(self) -> Distribution | Count | Sum:
        """What the bounds are found by, or for: no two searches of a plan have the same."""
        return self.measure if self.total is None else self.total


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A bound question and how its answer is shown.

    `searches` find the bounds that the question leaves open. Until they are found it stands with the widest that may
    be, and `unsettled` are the sums that will change.
    """

    question: Question
    keys: tuple[Key, ...]
    outputs: tuple[Output, ...]
    having: Derived | None = None
    qualify: Derived | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    asked: Asked = field(default_factory=Asked)
    explain: bool = False
    searches: tuple[Search, ...] = ()
    unsettled: frozenset[Measure] = frozenset()
