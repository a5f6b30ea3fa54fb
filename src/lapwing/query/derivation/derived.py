"""What is derived: post-processing of released numbers and keys, which costs nothing and cannot leak."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final
from typing import Literal as Choice

from lapwing.query.expressions.expression import Constant
from lapwing.query.keys import Key
from lapwing.query.measures import Count, Distribution, Measure, Sum

Shape = Choice["integer", "decimal", "real", "text", "boolean", "date", "timestamp", "null"]
NUMERIC: Final[tuple[Shape, ...]] = ("integer", "decimal", "real")
Side = Choice["low", "high"]
RankKind = Choice["discrete", "continuous", "extreme"]
INTERVAL_CONFIDENCE: Final = Fraction(95, 100)
"""The confidence of the intervals whose ends a question may use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """The released value of a measure."""

    measure: Measure

    @property
    def shape(self) -> Shape:
        """The type of the value as the analyst sees it."""
        return "integer" if self.measure.step.denominator == 1 else "decimal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Average:
    """origin + sum/count, clamped to the argument's bounds; NULL where the released count is below 1."""

    total: Sum
    count: Count
    shape: Shape = "real"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderStatistic:
    """The value of a row by its rank in a distribution; NULL where the noisy number of rows is below 1.

    Discrete is the first value with a share of the rows up to it; continuous lies between two rows. An extreme, of
    share 0 or 1, is the outermost value that is seen through the noise (`noisy_trees`).

    Args: unit: what a unit of the number is called, "days" or "seconds" where it stands for a time (`calendar`).
    """

    distribution: Distribution
    share: Fraction
    kind: RankKind
    shape: Shape
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValue:
    """The value of a key."""

    key: Key
    shape: Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixture:
    """A constant of the question."""

    value: Constant
    shape: Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    """A function of `derivations.FUNCTIONS` over derived values. Made by `derive.compute`, which checks it."""

    function: str
    arguments: tuple["Derived", ...]
    shape: Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalEnd:
    """An end of a noisy number's 95 % interval; NULL where it is infinite. Made by `derive.interval_end`.

    It is computed from released numbers and hides nothing itself, so that it has no interval of its own.
    """

    value: "Derived"
    side: Side

    @property
    def shape(self) -> Shape:
        """The type of the value as the analyst sees it."""
        return self.value.shape


OverFunction = Choice[
    "sum", "rows", "average", "least", "greatest", "row_at", "rank", "dense_rank", "row_number"
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Which rows around its own a function sees, in order: from `start` to `end`, both included, 0 being its own.

    Args: start, end: None for the first or the last row of the partition; peers: whether rows that tie with the first
        or the last are among them.
    """

    start: int | None = None
    end: int | None = None
    peers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """A function over the rows of the answer with the same values of `partition`, as HAVING leaves them (`over`).

    Args: span: which of these rows it is over; `row_at` takes the first of them.
    """

    function: OverFunction
    argument: "Derived | None"
    partition: tuple["Derived", ...]
    order: tuple["Order", ...]
    shape: Shape
    span: Span = Span()

    @property
    def inside(self) -> tuple["Derived", ...]:
        """What it is computed from."""
        own = () if self.argument is None else (self.argument,)
        return (*own, *self.partition, *(term.value for term in self.order))


Derived = Released | Average | OrderStatistic | KeyValue | Fixture | Compute | IntervalEnd | Over


Part = Measure | OrderStatistic
"""What an interval rests on: released numbers, and order statistics, each of which may miss the truth by itself."""


def measures_of(derived: Derived) -> tuple[Measure, ...]:
    """Return the measures that a derived value rests on, each once, in order of appearance."""
    return tuple(dict.fromkeys(measure for value in _values_in(derived) for measure in _measures(value)))


def keys_of(derived: Derived) -> tuple[Key, ...]:
    """Return the keys whose values a derived value shows, each once, in order of appearance."""
    return tuple(dict.fromkeys(value.key for value in _values_in(derived) if isinstance(value, KeyValue)))


def parts_of(derived: Derived) -> tuple[Part, ...]:
    """Return the parts that a derived value's interval rests on, each once, in order of appearance."""
    return tuple(dict.fromkeys(part for value in _values_in(derived) for part in _parts(value)))


def _measures(value: Derived) -> tuple[Measure, ...]:
    match value:
        case Released():
            return (value.measure,)
        case Average():
            return (value.total, value.count)
        case OrderStatistic():
            return (value.distribution,)
        case _:
            return ()


def _parts(value: Derived) -> tuple[Part, ...]:
    return (value,) if isinstance(value, OrderStatistic) else _measures(value)


def _values_in(derived: Derived) -> Iterator[Derived]:
    """Yield a derived value and those inside it, from left to right; one that is used in many places, once."""
    waiting, seen = [derived], set[int]()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        match value:
            case IntervalEnd():
                waiting.append(value.value)
            case Compute():
                waiting.extend(reversed(value.arguments))
            case Over():
                waiting.extend(reversed(value.inside))


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A column of the answer."""

    name: str
    value: Derived


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One ORDER BY term."""

    value: Derived
    descending: bool
    nulls_first: bool
