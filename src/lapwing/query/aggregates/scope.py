"""The names that a SELECT list may use, and the needs of its aggregates beside their measures."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from sqlglot import exp

from lapwing.query.derivation.columns import Shape
from lapwing.query.derivation.node import Derived
from lapwing.query.expressions.expression import Expression
from lapwing.query.expressions.magnitudes import Magnitudes, ValueBounds
from lapwing.query.expressions.rows import RowScope
from lapwing.query.expressions.types import Fixed, Plain, Type
from lapwing.query.measures.distribution import Distribution
from lapwing.query.measures.measures import Count, Key, Measure, Sum
from lapwing.query.relations.contribution import EpsilonShare
from lapwing.query.relations.relation import FilteredRows
from lapwing.query.text.privacy_options import NamedArguments

Bounded = Distribution | Count | Sum
"""What the answer of a search bounds: a value, by the histogram it is read off, or what a unit adds to a measure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectScope:
    """What the SELECT list, HAVING, QUALIFY and ORDER BY may refer to.

    Args:
        selection: The rows that are aggregated.
        sets: The keys of each grouping set.
        aliases: Columns of the answer by their names.
        condition: Of the FILTER around the aggregate at hand.
        arguments: What aggregates say about their own privacy, by where they start in the text.
    """

    rows: RowScope
    selection: FilteredRows
    keys: tuple[Key, ...]
    aliases: Mapping[str, Derived] = field(default_factory=dict)
    sets: tuple[tuple[Key, ...], ...] = ()
    condition: Expression | None = None
    arguments: Mapping[int, NamedArguments] = field(default_factory=dict)

    def named(self, node: exp.Expression) -> NamedArguments | None:
        """Return what an aggregate says about its own privacy."""
        return self.arguments.get(node.meta.get("start", -1))


@dataclass(slots=True, kw_only=True)
class Requests:
    """What aggregates ask for beside their measures, written down while a question is bound.

    It is the one value that binding changes, and it is passed on by name, so that a reader sees who writes to it.

    Args:
        bounds: the answers of searches that were asked before, by what they bound.
        shares: the epsilon that a measure may take, where its aggregate says so.
        weights: the part of the rest of the price that a measure gets, where that is not 1.
        value_searches: the histograms to search for bounds of values, each with its candidates and the value's name.
        total_searches: the measures to which the most that a unit adds is to be found.
        unsettled: the measures that such bounds will change.
    """

    bounds: Mapping[Bounded, ValueBounds] = field(default_factory=dict)
    shares: dict[Measure, EpsilonShare] = field(default_factory=dict)
    weights: dict[Measure, Fraction] = field(default_factory=dict)
    value_searches: dict[Distribution, tuple[Magnitudes, str]] = field(default_factory=dict)
    total_searches: set[Count | Sum] = field(default_factory=set)
    unsettled: set[Measure] = field(default_factory=set)

    @property
    def searches(self) -> bool:
        """Whether bounds are to be found."""
        return bool(self.value_searches or self.total_searches)


Aggregate = Callable[[exp.Expression, SelectScope, Requests], Derived]
"""Binds an aggregate: to its measures, and to what is derived from them."""


def has_aggregate(node: exp.Expression) -> bool:
    """Tell whether there is an aggregate in a node, other than in a subquery of its own."""
    if isinstance(node, exp.Subquery | exp.Select | exp.Grouping):
        return False
    return isinstance(node, exp.AggFunc) or any(has_aggregate(child) for child in node.iter_expressions())


def shape_of(kind: Type) -> Shape:
    """Return the type that a value over a row has in the answer."""
    if isinstance(kind, Plain):
        return kind.name
    return "integer" if isinstance(kind, Fixed) and kind.step.denominator == 1 else "decimal"
