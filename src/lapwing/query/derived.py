"""What is derived: post-processing of released numbers and keys, which costs nothing and cannot leak."""

from dataclasses import dataclass
from typing import Literal as Choice

from lapwing.query.expression import Constant
from lapwing.query.keys import Key
from lapwing.query.measures import Count, Measure, Sum

Shape = Choice["integer", "decimal", "real", "text", "boolean", "date", "timestamp", "null"]


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
    """A function of `derive.FUNCTIONS` over derived values."""

    function: str
    arguments: tuple["Derived", ...]
    shape: Shape


Derived = Released | Average | KeyValue | Fixture | Compute


def measures_of(derived: Derived) -> tuple[Measure, ...]:
    """Return the measures that a derived value rests on, each once, in order of appearance."""
    match derived:
        case Released():
            return (derived.measure,)
        case Average():
            return (derived.total, derived.count)
        case Compute():
            return tuple(dict.fromkeys(m for argument in derived.arguments for m in measures_of(argument)))
        case _:
            return ()


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
