"""What stands beside columns in a question built in Python: aggregates, choices, ranks, groupings.

A text given to an aggregate is the name of a column; elsewhere it is a text.
"""

from collections.abc import Iterable
from typing import Unpack, final

from lapwing.builder.literals import type_name
from lapwing.builder.nodes import Hole, Node, call, formula
from lapwing.builder.values import (
    Bounds,
    How,
    Named,
    Number,
    Operand,
    Order,
    Value,
    aggregate,
    branches_of,
    named,
    several,
)
from lapwing.builder.values import value as as_value
from lapwing.errors import InvalidParameter

# ---- aggregates -----------------------------------------------------------------------------------------------------


def count(value: Named | None = None, where: Value | None = None, **bounds: Unpack[Bounds]) -> Value:
    """Count rows, or those in which a value is not NULL."""
    if value is None:
        return aggregate("COUNT", (Value(formula("*")),), where, bounds)
    return named(value).count(where, **bounds)


def count_where(condition: Value, **bounds: Unpack[Bounds]) -> Value:
    """Count the rows in which a condition is true."""
    if not isinstance(condition, Value):
        raise InvalidParameter(f"count_where takes a condition such as col.age > 30, not {type_name(condition)}.")
    return aggregate("COUNT_IF", (condition,), None, bounds)


def nunique(value: Named, where: Value | None = None, **bounds: Unpack[Bounds]) -> Value:
    """Count different values; of the privacy unit, the units."""
    return named(value).nunique(where, **bounds)


def sum(value: Named, where: Value | None = None, **bounds: Unpack[Bounds]) -> Value:
    """Add a number up."""
    return named(value).sum(where, **bounds)


def mean(value: Named, where: Value | None = None, **bounds: Unpack[Bounds]) -> Value:
    """Return the mean of a number."""
    return named(value).mean(where, **bounds)


def var(value: Named, how: How = "sample", where: Value | None = None, **bounds: Unpack[Bounds]) -> Value:
    """Return the variance of a number, of a "sample" or of the population, "pop"."""
    return named(value).var(how, where, **bounds)


def std(value: Named, how: How = "sample", where: Value | None = None, **bounds: Unpack[Bounds]) -> Value:
    """Return the standard deviation of a number, of a "sample" or of the population, "pop"."""
    return named(value).std(how, where, **bounds)


def cov(left: Named, right: Named, how: How = "sample", where: Value | None = None, **bounds: Unpack[Bounds]) -> Value:
    """Return the covariance of two numbers."""
    return named(left).cov(right, how, where, **bounds)


def corr(left: Named, right: Named, where: Value | None = None, **bounds: Unpack[Bounds]) -> Value:
    """Return the correlation of two numbers."""
    return named(left).corr(right, where, **bounds)


def median(value: Named, where: Value | None = None, **bounds: Unpack[Bounds]) -> Value:
    """Return the median of a number."""
    return named(value).median(where, **bounds)


def quantile(value: Named, quantile: Number, where: Value | None = None, **bounds: Unpack[Bounds]) -> Value:
    """Return the value up to which a share of the rows lies."""
    return named(value).quantile(quantile, where, **bounds)


def min(value: Named, where: Value | None = None, **bounds: Unpack[Bounds]) -> Value:
    """Return the least value that noise lets one see; in rows of one unit, the least."""
    return named(value).min(where, **bounds)


def max(value: Named, where: Value | None = None, **bounds: Unpack[Bounds]) -> Value:
    """Return the greatest value that noise lets one see; in rows of one unit, the greatest."""
    return named(value).max(where, **bounds)


# ---- choices --------------------------------------------------------------------------------------------------------


def ifelse(condition: Value, true: Operand, false: Operand = None) -> Value:
    """Return one value where a condition is true, and another where it is not."""
    return as_value(condition).ifelse(true, false)


def cases(*branches: tuple[Value, Operand], else_: Operand = None) -> Value:
    """Return the second of the first pair whose condition is true."""
    return Value(formula("CASE", *branches_of(branches, else_)))


def coalesce(*values: Operand) -> Value:
    """Return the first value that is not NULL."""
    return _of_several("COALESCE", values)


def least(*values: Operand) -> Value:
    """Return the least value, without those that are NULL."""
    return _of_several("LEAST", values)


def greatest(*values: Operand) -> Value:
    """Return the greatest value, without those that are NULL."""
    return _of_several("GREATEST", values)


def _of_several(function: str, values: tuple[Operand, ...]) -> Value:
    if not values:
        raise InvalidParameter(f"{function.lower()} takes at least one value.")
    return Value(call(function, *(as_value(one).node for one in values)))


# ---- ranks ----------------------------------------------------------------------------------------------------------


def row_number() -> Value:
    """Give the rows of a unit numbers from 1, for `over`."""
    return Value(formula("ROW_NUMBER()", kind="aggregate"))


def rank() -> Value:
    """Rank the rows of a unit from 1, with gaps after ties, for `over`."""
    return Value(formula("RANK()", kind="aggregate"))


def dense_rank() -> Value:
    """Rank the rows of a unit from 1, without gaps, for `over`."""
    return Value(formula("DENSE_RANK()", kind="aggregate"))


def asc(value: Named, *, nulls_first: bool = False) -> Order:
    """Order by a value."""
    return named(value).asc(nulls_first=nulls_first)


def desc(value: Named, *, nulls_first: bool = False) -> Order:
    """Order by a value from the greatest down."""
    return named(value).desc(nulls_first=nulls_first)


# ---- several groupings at once --------------------------------------------------------------------------------------


@final
class Groupings:
    """Several groupings by some of the same keys, each with cells of its own."""

    __slots__ = ("sets", "word")

    def __init__(self, word: str, sets: tuple[tuple[Value, ...], ...]) -> None:
        self.word = word
        self.sets = sets

    @property
    def keys(self) -> tuple[Value, ...]:
        """The keys of all groupings."""
        return tuple(key for keys in self.sets for key in keys)


def rollup(*keys: Named | Iterable[Named]) -> Groupings:
    """Group by all keys, by all but the last, and so on to the whole."""
    return Groupings("ROLLUP", _sets(keys))


def cube(*keys: Named | Iterable[Named]) -> Groupings:
    """Group by every choice of the keys."""
    return Groupings("CUBE", _sets(keys))


def grouping_sets(*sets: Named | Iterable[Named]) -> Groupings:
    """Group by each of some lists of keys; an empty list is the whole."""
    return Groupings("GROUPING SETS", _sets(sets))


def _sets(given: tuple[object, ...]) -> tuple[tuple[Value, ...], ...]:
    if not given:
        raise InvalidParameter("Groupings need at least one key.")
    return tuple(tuple(named(key) for key in several(one)) for one in given)


def grouping(key: Named) -> Value:
    """Return 1 in the rows of groupings that lack a key, else 0."""
    node: Node = named(key).node
    return Value(formula("GROUPING(", Hole(node, 0), ")"))
