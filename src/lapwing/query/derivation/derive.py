"""Make derived values, checking what a function of released numbers may be applied to, and the type of its result.

Everything is checked when the question is bound, so that nothing can fail once the answer is paid.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from fractions import Fraction
from typing import ClassVar, Final, Protocol, final, runtime_checkable
from typing import Literal as Choice

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.derivation import intervals
from lapwing.query.derivation.answer_functions import FUNCTIONS
from lapwing.query.derivation.columns import NUMERIC, Column, Shape, constant, some
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.derived import NoisyCells, measures_of, values_in
from lapwing.query.derivation.intervals import Interval
from lapwing.query.derivation.node import Derived, Part
from lapwing.query.derivation.rationals import either
from lapwing.query.expressions.conversion import temporal
from lapwing.query.expressions.types import DATE, TIMESTAMP, Plain
from lapwing.query.measures.measures import Measure

_SYMBOLS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "negate": "-", "concatenate": "||"}
_SPELLED = {
    "absolute": "ABS",
    "square_root": "SQRT",
    "logarithm": "LN",
    "exponential": "EXP",
    "null_if": "NULLIF",
    "modulo": "MOD",
}

MOST_EXPONENT: Final = 64
MOST_DEGREE: Final = 256
"""How many factors a power may multiply in all."""
MOST_FACTORS: Final = 1_024
"""How many factors a value may be made of: numbers and texts that are multiplied over and over grow without end."""

_TEMPORAL: Mapping[Shape, Plain] = {"date": DATE, "timestamp": TIMESTAMP}
_MULTIPLYING: Final = frozenset({"multiply", "divide", "modulo", "concatenate", "sample_factor"})
_COMPARED: Final = frozenset({"=", "<>", "<", "<=", ">", ">=", "between", "in", "null_if", "coalesce", "case"})


Side = Choice["low", "high"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionValue:
    """A function of `answer_functions.FUNCTIONS` over derived values. Made by `compute`, which checks it."""

    function: str
    arguments: tuple[Derived, ...]
    shape: Shape
    degree: int = field(compare=False, repr=False)

    parts: ClassVar[tuple[Part, ...]] = ()

    @property
    def children(self) -> tuple[Derived, ...]:
        """What it is computed from."""
        return self.arguments

    @property
    def has_interval(self) -> bool:
        """Whether intervals pass through the function, and each argument has one."""
        return FUNCTIONS[self.function].interval is not None and all(part.has_interval for part in self.arguments)

    @property
    def never_null(self) -> bool:
        """Whether it has a value in every cell: LEAST and GREATEST skip what has none."""
        return not FUNCTIONS[self.function].partial and all(part.never_null for part in self.arguments)

    def column(self, cells: NoisyCells) -> Column:
        """Return its value in every cell."""
        return FUNCTIONS[self.function].column([part.column(cells) for part in self.arguments], self.shape)

    def interval(self, cells: NoisyCells, margins: Mapping[Measure, Fraction]) -> Interval | None:
        """Return where the true value is in every cell, if every argument is in its interval; None: none follows."""
        if isinstance(margins, intervals.JointMargins) and self in margins.known:
            return margins.known[self](cells)
        function = FUNCTIONS[self.function]
        every = [argument.interval(cells, margins) for argument in self.arguments]
        parts = [part for part in every if part is not None]
        if len(parts) < len(every) or function.interval is None:
            return None
        if function.skips_null and not all(argument.never_null for argument in self.arguments):
            return intervals.hull(*parts)
        return function.interval(*parts)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalEnd:
    """An end of a noisy number's 95 % interval; NULL where it is infinite. Made by `interval_end`.

    It is computed from released numbers and hides nothing itself, so that it has no interval of its own.
    """

    value: Derived
    side: Side

    @property
    def degree(self) -> int:
        """How many released numbers are multiplied in it."""
        return degree_of(self.value)

    parts: ClassVar[tuple[Part, ...]] = ()
    has_interval: ClassVar[bool] = False
    never_null: ClassVar[bool] = False

    @property
    def children(self) -> tuple[Derived, ...]:
        """What it is an end of."""
        return (self.value,)

    @property
    def shape(self) -> Shape:
        """The type of the value as the analyst sees it."""
        return self.value.shape

    def column(self, cells: NoisyCells) -> Column:
        """Return the end in every cell."""
        interval = self.value.interval(cells, cells.margins(self.value))
        if interval is None:
            return constant(None)
        end = interval[0 if self.side == "low" else 1]
        infinite = None if end.infinite is None else some(end.infinite != 0)
        return replace(end.numbers, null=either(end.numbers.null, infinite))

    def interval(self, _cells: NoisyCells, _margins: Mapping[Measure, Fraction]) -> None:
        """Return that it has none."""


def compute(function: str, *arguments: Derived) -> FunctionValue:
    """Apply a function, checking its arguments so that nothing can fail once the answer is paid.

    Raises:
        QueryRefused: If they do not fit.
    """
    parts = _alike(arguments) if function in _COMPARED else arguments
    if _RULES.get(function) is _comparison and any(part.shape == "boolean" for part in parts):
        parts = tuple(map(_as_truth, parts))
    shape = _RULES.get(function, _numeric)(function, parts)
    degree = _degree(function, parts, shape)
    if degree > MOST_FACTORS:
        reason = f"A value of the result would be made of more than {MOST_FACTORS:,} factors"
        raise QueryRefused(reason, cause=RefusalCause.QUERY_TOO_COMPLEX, remedy="Multiply or put together less.")
    return FunctionValue(function=function, arguments=tuple(parts), shape=shape, degree=degree)


def interval_end(value: Derived, side: Side) -> IntervalEnd:
    """Take an end of the 95 % interval of a noisy number.

    Raises:
        QueryRefused: If the value is not a noisy number, or no interval follows for it.
    """
    if value.shape not in NUMERIC or not measures_of(value):
        raise QueryRefused(
            "Only a noisy number has an interval",
            cause=RefusalCause.NO_INTERVAL,
            remedy="Name a COUNT, SUM, AVG or a formula.",
        )
    if not value.has_interval:
        raise QueryRefused(
            "No interval follows for this column",
            cause=RefusalCause.NO_INTERVAL,
            remedy="CASE, COALESCE, conditions and ends of intervals have none.",
        )
    return IntervalEnd(value=value, side=side)


def rests_on_ends(derived: Derived) -> bool:
    """Tell whether a value is computed from ends of intervals, so that there is no true value that it hides."""
    return any(isinstance(value, IntervalEnd) for value in values_in(derived))


def _alike(arguments: Sequence[Derived]) -> tuple[Derived, ...]:
    """Read constant texts as dates or timestamps where other arguments are, and dates as timestamps beside others.

    Raises:
        QueryRefused: If a text is none.
    """
    kinds = {argument.shape for argument in arguments} & _TEMPORAL.keys()
    if len(kinds) == 2:
        arguments = [_at_midnight(argument) for argument in arguments]
        kinds = {argument.shape for argument in arguments} & _TEMPORAL.keys()
    if len(kinds) != 1:
        return tuple(arguments)
    (kind,) = kinds
    return tuple(_as_temporal(argument, kind) for argument in arguments)


def _as_truth(argument: Derived) -> Derived:
    """Return the constants 1 and 0, compared with a condition, as true and false."""
    if isinstance(argument, ConstantValue) and argument.shape in NUMERIC and argument.value in (0, 1):
        return ConstantValue(value=argument.value == 1, shape="boolean")
    return argument


def _as_temporal(argument: Derived, kind: Shape) -> Derived:
    if isinstance(argument, ConstantValue) and isinstance(argument.value, str):
        return ConstantValue(value=temporal(argument.value, _TEMPORAL[kind]).value, shape=kind)
    return argument


def _at_midnight(argument: Derived) -> Derived:
    if isinstance(argument, ConstantValue) and isinstance(argument.value, date) and argument.shape == "date":
        return ConstantValue(value=datetime.combine(argument.value, time()), shape="timestamp")
    return compute("to_timestamp", argument) if argument.shape == "date" else argument


def _numeric(function: str, arguments: Sequence[Derived]) -> Shape:
    for argument in arguments:
        if argument.shape not in NUMERIC:
            name = _SYMBOLS.get(function) or _SPELLED.get(function, function.upper())
            raise QueryRefused(
                f"{name} over the result needs numbers, not {argument.shape}", cause=RefusalCause.WRONG_TYPE
            )
    return NUMERIC[max(NUMERIC.index(argument.shape) for argument in arguments)]


def _rounded(function: str, arguments: Sequence[Derived]) -> Shape:
    _numeric(function, arguments)
    return "decimal" if len(arguments) > 1 else "integer"


def _power(function: str, arguments: Sequence[Derived]) -> Shape:
    shape = _numeric(function, arguments[:1])
    base, exponent = arguments
    value = exponent.value if isinstance(exponent, ConstantValue) else None
    if not isinstance(value, Fraction) or value.denominator != 1 or abs(value) > MOST_EXPONENT:
        raise QueryRefused(
            f"POWER over the result takes a whole exponent up to {MOST_EXPONENT}",
            cause=RefusalCause.INVALID_ARGUMENT,
            remedy="Write POWER(x, 2); the square root is SQRT(x).",
        )
    if abs(value) * degree_of(base) > MOST_DEGREE:
        raise QueryRefused(
            f"POWER over the result would multiply more than {MOST_DEGREE} numbers",
            cause=RefusalCause.QUERY_TOO_COMPLEX,
            remedy="Use a smaller exponent.",
        )
    return shape if value >= 0 else "real"


@runtime_checkable
class Composed(Protocol):
    """A value that is computed from released numbers, and is none."""

    @property
    def degree(self) -> int:
        """How many released numbers are multiplied in it, at most."""


def degree_of(derived: Derived) -> int:
    """Return how many released numbers are multiplied in a value, or texts put together, at most."""
    return derived.degree if isinstance(derived, Composed) else 1


def _degree(function: str, arguments: Sequence[Derived], shape: Shape) -> int:
    """Return the degree of a function's value; adding fractions multiplies their denominators."""
    degrees = [degree_of(argument) for argument in arguments]
    if shape == "boolean":
        return 1
    if function == "power":
        exponent = arguments[1].value if isinstance(arguments[1], ConstantValue) else None
        return degrees[0] * max(1, abs(int(exponent)) if isinstance(exponent, Fraction) else 1)
    if function == "exponential":  # a double's 1,100 binary digits
        return 16
    grows = function in _MULTIPLYING or (shape == "real" and function in ("add", "subtract"))
    return sum(degrees) if grows else max(degrees, default=1)


def _common(_function: str, arguments: Sequence[Derived]) -> Shape:
    shapes = [argument.shape for argument in arguments if argument.shape != "null"]
    if not shapes:
        return "null"
    if all(shape in NUMERIC for shape in shapes):
        return NUMERIC[max(NUMERIC.index(shape) for shape in shapes)]
    if len(set(shapes)) > 1:
        raise QueryRefused(
            f"{' and '.join(sorted(set(shapes)))} do not go together in the result",
            cause=RefusalCause.INCOMPATIBLE_TYPES,
        )
    return shapes[0]


def _chosen(function: str, arguments: Sequence[Derived]) -> Shape:
    _condition(function, arguments[:-1:2])
    return _common(function, [*arguments[1::2], arguments[-1]])


def _comparison(function: str, arguments: Sequence[Derived]) -> Shape:
    _common(function, arguments)
    return "boolean"


def _first(function: str, arguments: Sequence[Derived]) -> Shape:
    _common(function, arguments)
    return arguments[0].shape


def _condition(_function: str, arguments: Sequence[Derived]) -> Shape:
    _require(("boolean", "null"), "A condition over the result is needed", arguments, "Write a comparison.")
    return "boolean"


def _text(function: str, arguments: Sequence[Derived]) -> Shape:
    name = _SYMBOLS.get(function, function.upper())
    _require(("text", "null"), f"{name} over the result needs text", arguments)
    return "text"


def _text_or_number(function: str, arguments: Sequence[Derived]) -> Shape:
    _text(function, arguments[:1])
    return "integer" if function == "length" else "text"


def _written(_function: str, arguments: Sequence[Derived]) -> Shape:
    reason = "A cast to text is answered for whole numbers, conditions, dates and texts"
    remedy = "CAST(CAST(x AS DATE) AS VARCHAR)" if arguments[0].shape == "timestamp" else "CAST(ROUND(x, 2) AS VARCHAR)"
    _require(("integer", "boolean", "date", "text", "null"), reason, arguments, f"Write {remedy}.")
    return "text"


def _of_numbers(shape: Shape) -> "_Rule":
    def rule(function: str, arguments: Sequence[Derived]) -> Shape:
        _numeric(function, arguments)
        return shape

    return rule


def _of_times(shape: Shape, times: slice = slice(None)) -> "_Rule":
    """Return the rule of a function some of whose arguments are times; the others are constants of `calendar`."""

    def rule(_function: str, arguments: Sequence[Derived]) -> Shape:
        _require(tuple(_TEMPORAL), "A date or timestamp of the result is needed", arguments[times])
        return shape

    return rule


def _require(allowed: Sequence[Shape], reason: str, arguments: Sequence[Derived], remedy: str = "") -> None:
    for argument in arguments:
        if argument.shape not in allowed:
            raise QueryRefused(f"{reason}, not {argument.shape}", cause=RefusalCause.WRONG_TYPE, remedy=remedy)


_Rule = Callable[[str, Sequence[Derived]], Shape]
_RULES: Mapping[str, _Rule] = {
    **dict.fromkeys(("divide", "square_root", "logarithm", "exponential", "sample_factor"), _of_numbers("real")),
    **dict.fromkeys(("round", "floor", "ceiling"), _rounded),
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "between", "in"), _comparison),
    **dict.fromkeys(("and", "or", "not"), _condition),
    **dict.fromkeys(("concatenate", "upper", "lower"), _text),
    **dict.fromkeys(("substring", "left", "right", "length"), _text_or_number),
    "written": _written,
    "written_decimal": _of_numbers("text"),
    "sign": _of_numbers("integer"),
    "date_at": _of_numbers("date"),
    "moment_at": _of_numbers("timestamp"),
    "day_number": _of_times("integer"),
    "second_number": _of_times("real"),
    "truncate": _of_times("timestamp", slice(1, None)),
    "part": _of_times("integer", slice(1, None)),
    "shift": _of_times("timestamp", slice(1)),
    "to_date": _of_times("date"),
    "to_timestamp": _of_times("timestamp"),
    "power": _power,
    "coalesce": _common,
    "null_if": _first,
    "case": _chosen,
    "is_null": lambda _function, _arguments: "boolean",
}
