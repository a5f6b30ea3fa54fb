"""What a question computes, as Python values: columns with operators and methods, named as Ibis names them.

A `Value` only remembers. `==` and its like make conditions, so a `Value` is never true or false by itself: `and`, `or`,
`not` and chains such as `1 < x < 3` raise, with what to write instead.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Final, Literal, NoReturn, TypedDict, Union, Unpack, final

from lapwing.builder.literals import Given, column_name, constant, number, printed, type_name, whole, word
from lapwing.builder.nodes import (
    ADD,
    AND,
    ATOM,
    COMPARE,
    MULTIPLY,
    NOT,
    OR,
    SIGN,
    ColumnNode,
    ConstantNode,
    Formula,
    Hole,
    Node,
    call,
    formula,
    infix,
    listed,
    sql,
)
from lapwing.errors import InvalidParameter

Operand = Union["Value", Given]
"""A value, or a constant."""
Named = Union["Value", str]
"""A value, or the name of a column."""
Number = int | float | Decimal | Fraction
How = Literal["sample", "pop"]


class Bounds(TypedDict, total=False):
    """What an aggregate may say about its own privacy: the named arguments of SQL."""

    contribution_bounds_per_row: tuple[Number, Number] | Literal["auto"]
    contribution_bounds_per_group: tuple[Number, Number] | Literal["auto", "race"]
    epsilon: Number


TYPES: Final[Mapping[str, str]] = {
    "int8": "TINYINT", "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT",
    "uint8": "UTINYINT", "uint16": "USMALLINT", "uint32": "UINTEGER", "uint64": "UBIGINT",
    "float64": "DOUBLE", "string": "VARCHAR", "boolean": "BOOLEAN", "date": "DATE", "timestamp": "TIMESTAMP",
}  # fmt: skip
PARTS: Final[Mapping[str, str]] = {
    unit: unit.upper()
    for unit in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
}  # fmt: skip


@final
class Value:
    """An expression over a row or an answer: a column, a constant, or what is computed from them."""

    __slots__ = ("label", "node")

    def __init__(self, node: Node, label: str | None = None) -> None:
        self.node = node
        self.label = label

    def name(self, name: str) -> "Value":
        """Return the same under a name."""
        return Value(self.node, column_name(name))

    def __repr__(self) -> str:
        return sql(self.node)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> NoReturn:
        raise InvalidParameter(
            "A condition is neither true nor false before it is asked. Write & for and, | for or, ~ for not, each side "
            "in parentheses, and x.between(a, b) for a chain."
        )

    def __contains__(self, _item: object) -> NoReturn:
        raise InvalidParameter("`in` asks Python. Write x.isin([…]) for a list, or x.contains('…') for a text.")

    def __iter__(self) -> NoReturn:
        raise InvalidParameter("A value of a question has no parts in Python; it is one value in every row.")

    # ---- operators --------------------------------------------------------------------------------------------------

    def __add__(self, other: Operand | timedelta) -> "Value":
        if isinstance(other, str):
            return self.concat(other)
        return self._infix("+", other, ADD)

    def __radd__(self, other: Operand) -> "Value":
        return value(other).concat(self) if isinstance(other, str) else value(other)._infix("+", self, ADD)

    def __sub__(self, other: Operand | timedelta) -> "Value":
        return self._infix("-", other, ADD)

    def __rsub__(self, other: Operand) -> "Value":
        return value(other)._infix("-", self, ADD)

    def __mul__(self, other: Operand) -> "Value":
        return self._infix("*", other, MULTIPLY)

    def __rmul__(self, other: Operand) -> "Value":
        return value(other)._infix("*", self, MULTIPLY)

    def __truediv__(self, other: Operand) -> "Value":
        return self._infix("/", other, MULTIPLY)

    def __rtruediv__(self, other: Operand) -> "Value":
        return value(other)._infix("/", self, MULTIPLY)

    def __floordiv__(self, other: Operand) -> "Value":
        return (self / other).floor()

    def __rfloordiv__(self, other: Operand) -> "Value":
        return (value(other) / self).floor()

    def __mod__(self, other: Operand) -> "Value":
        return self._infix("%", other, MULTIPLY)

    def __rmod__(self, other: Operand) -> "Value":
        return value(other)._infix("%", self, MULTIPLY)

    def __pow__(self, other: Operand) -> "Value":
        return self._call("POWER", other)

    def __neg__(self) -> "Value":
        return Value(formula("-", Hole(self.node, ATOM), binds=SIGN))

    def __eq__(self, other: Operand) -> "Value":  # type: ignore[override]
        return self._compared("=", other)

    def __ne__(self, other: Operand) -> "Value":  # type: ignore[override]
        return self._compared("<>", other)

    def __lt__(self, other: Operand) -> "Value":
        return self._compared("<", other)

    def __le__(self, other: Operand) -> "Value":
        return self._compared("<=", other)

    def __gt__(self, other: Operand) -> "Value":
        return self._compared(">", other)

    def __ge__(self, other: Operand) -> "Value":
        return self._compared(">=", other)

    def __and__(self, other: Union["Value", bool]) -> "Value":
        return self._infix("AND", other, AND)

    def __rand__(self, other: bool) -> "Value":
        return value(other)._infix("AND", self, AND)

    def __or__(self, other: Union["Value", bool]) -> "Value":
        return self._infix("OR", other, OR)

    def __ror__(self, other: bool) -> "Value":
        return value(other)._infix("OR", self, OR)

    def __xor__(self, other: Union["Value", bool]) -> "Value":
        return self._call("XOR", other)

    def __invert__(self) -> "Value":
        return Value(formula("NOT ", Hole(self.node, COMPARE), binds=NOT))

    def _infix(self, operator: str, other: Operand | timedelta, binds: int) -> "Value":
        return Value(infix(operator, self.node, value(other).node, binds, chains=True))

    def _compared(self, operator: str, other: Operand) -> "Value":
        if other is None:
            raise InvalidParameter("Nothing equals NULL. Write x.isnull() or x.notnull().")
        return Value(infix(operator, self.node, value(other).node, COMPARE))

    def _call(self, function: str, *others: Operand) -> "Value":
        return Value(call(function, self.node, *(value(other).node for other in others)))

    def _suffix(self, words: str) -> "Value":
        return Value(formula(Hole(self.node, ADD), words, binds=COMPARE))

    # ---- any value --------------------------------------------------------------------------------------------------

    def isin(self, values: Iterable[Operand]) -> "Value":
        """Tell whether it is one of some values."""
        if isinstance(values, str | bytes | Value) or not isinstance(values, Iterable):
            raise InvalidParameter(f"isin takes a list of values, not {type_name(values)}. For a table, use semi_join.")
        found = [value(one).node for one in values]
        if not found:
            raise InvalidParameter("isin takes at least one value.")
        return Value(formula(Hole(self.node, ADD), " IN (", *listed(found), ")", binds=COMPARE))

    def notin(self, values: Iterable[Operand]) -> "Value":
        """Tell whether it is none of some values."""
        return ~self.isin(values)

    def between(self, lower: Operand, upper: Operand) -> "Value":
        """Tell whether it lies between two values, or equals one."""
        ends = (value(lower).node, value(upper).node)
        return Value(
            formula(Hole(self.node, ADD), " BETWEEN ", Hole(ends[0], ADD), " AND ", Hole(ends[1], ADD), binds=COMPARE)
        )

    def isnull(self) -> "Value":
        """Tell whether it is NULL."""
        return self._suffix(" IS NULL")

    def notnull(self) -> "Value":
        """Tell whether it is not NULL."""
        return self._suffix(" IS NOT NULL")

    def identical_to(self, other: Operand) -> "Value":
        """Tell whether both are equal, or both NULL."""
        return Value(infix("IS NOT DISTINCT FROM", self.node, value(other).node, COMPARE))

    def fill_null(self, other: Operand) -> "Value":
        """Put another value in the place of NULL."""
        return self._call("COALESCE", other)

    def nullif(self, other: Operand) -> "Value":
        """Return NULL where it equals a value."""
        return self._call("NULLIF", other)

    def ifelse(self, true: Operand, false: Operand = None) -> "Value":
        """Return one value where this condition is true, and another where it is not."""
        pieces = ("CASE WHEN ", Hole(self.node, OR), " THEN ", Hole(value(true).node, OR))
        otherwise = () if false is None else (" ELSE ", Hole(value(false).node, OR))
        return Value(formula(*pieces, *otherwise, " END"))

    def cases(self, *branches: tuple[Operand, Operand], else_: Operand = None) -> "Value":
        """Return the second of the first pair whose first it equals."""
        return Value(formula("CASE ", Hole(self.node, OR), *branches_of(branches, else_)))

    def cast(self, kind: str | type) -> "Value":
        """Convert it to a type such as "int64", "float64", "string" or "date", where that cannot fail."""
        return self._cast("CAST", kind)

    def try_cast(self, kind: str | type) -> "Value":
        """Convert it to a type, to NULL where that fails."""
        return self._cast("TRY_CAST", kind)

    def _cast(self, function: str, kind: str | type) -> "Value":
        wanted = {int: "int64", float: "float64", str: "string", bool: "boolean"}.get(kind, kind)  # type: ignore[arg-type]
        return Value(formula(f"{function}(", Hole(self.node, OR), f" AS {word(wanted, TYPES, 'The type')})"))

    # ---- numbers ----------------------------------------------------------------------------------------------------

    def abs(self) -> "Value":
        """Return its size."""
        return self._call("ABS")

    def round(self, digits: int = 0) -> "Value":
        """Round it half up, to a number of digits behind the point."""
        return self._call("ROUND", *([digits] if digits else []))

    def floor(self) -> "Value":
        """Round it down."""
        return self._call("FLOOR")

    def ceil(self) -> "Value":
        """Round it up."""
        return self._call("CEIL")

    def trunc(self) -> "Value":
        """Cut it off towards zero."""
        return self._call("TRUNC")

    def sign(self) -> "Value":
        """Return -1, 0 or 1."""
        return self._call("SIGN")

    def clip(self, lower: Operand = None, upper: Operand = None) -> "Value":
        """Keep it between two values; this gives a number the bounds that sums need."""
        raised = self if lower is None else self._call("GREATEST", lower)
        return raised if upper is None else raised._call("LEAST", upper)

    def sqrt(self) -> "Value":
        """Return its square root."""
        return self._call("SQRT")

    def exp(self) -> "Value":
        """Return e to its power."""
        return self._call("EXP")

    def ln(self) -> "Value":
        """Return its natural logarithm."""
        return self._call("LN")

    def log2(self) -> "Value":
        """Return its logarithm to base 2."""
        return self._call("LOG2")

    def log10(self) -> "Value":
        """Return its logarithm to base 10."""
        return self._call("LOG10")

    def log(self, base: Operand) -> "Value":
        """Return its logarithm to a base."""
        return value(base)._call("LOG", self)

    def sin(self) -> "Value":
        """Return its sine."""
        return self._call("SIN")

    def cos(self) -> "Value":
        """Return its cosine."""
        return self._call("COS")

    def atan(self) -> "Value":
        """Return its arc tangent."""
        return self._call("ATAN")

    def degrees(self) -> "Value":
        """Convert it from radians."""
        return self._call("DEGREES")

    def radians(self) -> "Value":
        """Convert it from degrees."""
        return self._call("RADIANS")

    def width_bucket(self, low: Operand, high: Operand, buckets: int) -> "Value":
        """Return which of equal buckets it falls into, from 1; 0 below them and one more above."""
        return self._call("WIDTH_BUCKET", low, high, whole(buckets, "The number of buckets", 1))

    # ---- texts ------------------------------------------------------------------------------------------------------

    def concat(self, *others: Operand) -> "Value":
        """Append texts; NULL if one is."""
        found = self.node
        for other in others:
            found = infix("||", found, value(other).node, ADD, chains=True)
        return Value(found)

    def upper(self) -> "Value":
        """Return it in upper case."""
        return self._call("UPPER")

    def lower(self) -> "Value":
        """Return it in lower case."""
        return self._call("LOWER")

    def strip(self) -> "Value":
        """Remove spaces on both sides."""
        return self._call("TRIM")

    def lstrip(self) -> "Value":
        """Remove spaces on the left."""
        return self._call("LTRIM")

    def rstrip(self) -> "Value":
        """Remove spaces on the right."""
        return self._call("RTRIM")

    def length(self) -> "Value":
        """Return how many characters it has."""
        return self._call("LENGTH")

    def reverse(self) -> "Value":
        """Return it from the end to the beginning."""
        return self._call("REVERSE")

    def left(self, characters: int) -> "Value":
        """Return its first characters."""
        return self._call("LEFT", whole(characters, "The number of characters"))

    def right(self, characters: int) -> "Value":
        """Return its last characters."""
        return self._call("RIGHT", whole(characters, "The number of characters"))

    def substr(self, start: int, length: int | None = None) -> "Value":
        """Return a part of it; the first character is number 0."""
        first = whole(start, "The start") + 1
        return self._call("SUBSTRING", first, *([] if length is None else [whole(length, "The length")]))

    def lpad(self, length: int, pad: str = " ") -> "Value":
        """Fill it up on the left."""
        return self._call("LPAD", whole(length, "The length"), pad)

    def rpad(self, length: int, pad: str = " ") -> "Value":
        """Fill it up on the right."""
        return self._call("RPAD", whole(length, "The length"), pad)

    def replace(self, pattern: Operand, replacement: Operand) -> "Value":
        """Put a text in the place of another, everywhere."""
        return self._call("REPLACE", pattern, replacement)

    def split_part(self, delimiter: str, part: int) -> "Value":
        """Return one of the parts between delimiters; the first is number 1."""
        return self._call("SPLIT_PART", delimiter, whole(part, "The part", 1))

    def strpos(self, text: Operand) -> "Value":
        """Return where a text begins in it, from 1; 0 if it does not."""
        return self._call("STRPOS", text)

    def contains(self, text: Operand) -> "Value":
        """Tell whether a text is a part of it."""
        return self._call("CONTAINS", text)

    def startswith(self, text: Operand) -> "Value":
        """Tell whether it begins with a text."""
        return self._call("STARTS_WITH", text)

    def endswith(self, text: Operand) -> "Value":
        """Tell whether it ends with a text."""
        return self._call("ENDS_WITH", text)

    def like(self, pattern: str) -> "Value":
        """Tell whether it matches a pattern with % and _."""
        return Value(infix("LIKE", self.node, value(pattern).node, COMPARE))

    def ilike(self, pattern: str) -> "Value":
        """Tell whether it matches a pattern with % and _, whatever its case."""
        return Value(infix("ILIKE", self.node, value(pattern).node, COMPARE))

    def re_search(self, pattern: str) -> "Value":
        """Tell whether a regular expression matches a part of it."""
        return self._call("REGEXP_MATCHES", pattern)

    def re_fullmatch(self, pattern: str) -> "Value":
        """Tell whether a regular expression matches all of it."""
        return self._call("REGEXP_FULL_MATCH", pattern)

    def re_extract(self, pattern: str, index: int = 0) -> "Value":
        """Return what a group of a regular expression matches; group 0 is all of it."""
        return self._call("REGEXP_EXTRACT", pattern, whole(index, "The group"))

    def re_replace(self, pattern: str, replacement: str) -> "Value":
        """Put a text in the place of every match of a regular expression."""
        return self._call("REGEXP_REPLACE", pattern, replacement, "g")

    # ---- dates and timestamps ---------------------------------------------------------------------------------------

    def _part(self, part: str) -> "Value":
        return Value(formula(f"EXTRACT({part} FROM ", Hole(self.node, OR), ")"))

    def year(self) -> "Value":
        """Return the year."""
        return self._part("YEAR")

    def quarter(self) -> "Value":
        """Return the quarter, from 1."""
        return self._part("QUARTER")

    def month(self) -> "Value":
        """Return the month, from 1."""
        return self._part("MONTH")

    def week_of_year(self) -> "Value":
        """Return the week by ISO 8601."""
        return self._part("WEEK")

    def day(self) -> "Value":
        """Return the day of the month."""
        return self._part("DAY")

    def day_of_year(self) -> "Value":
        """Return the day of the year, from 1."""
        return self._part("DOY")

    def isodow(self) -> "Value":
        """Return the day of the week, Monday as 1."""
        return self._part("ISODOW")

    def hour(self) -> "Value":
        """Return the hour."""
        return self._part("HOUR")

    def minute(self) -> "Value":
        """Return the minute."""
        return self._part("MINUTE")

    def second(self) -> "Value":
        """Return the second."""
        return self._part("SECOND")

    def epoch_seconds(self) -> "Value":
        """Return the seconds since 1970."""
        return self._call("EPOCH")

    def monthname(self) -> "Value":
        """Return the English name of the month."""
        return self._call("MONTHNAME")

    def dayname(self) -> "Value":
        """Return the English name of the day of the week."""
        return self._call("DAYNAME")

    def date(self) -> "Value":
        """Return the date of a timestamp."""
        return self.cast("date")

    def last_day(self) -> "Value":
        """Return the last day of the month."""
        return self._call("LAST_DAY")

    def truncate(self, unit: str) -> "Value":
        """Return where its year, quarter, month, week, day, hour, minute or second begins."""
        return Value(formula(f"DATE_TRUNC('{word(unit, PARTS, 'The unit')}', ", Hole(self.node, OR), ")"))

    def strftime(self, pattern: str) -> "Value":
        """Write it by a pattern such as "%Y-%m"."""
        return self._call("STRFTIME", pattern)

    def delta(self, other: Operand, unit: str) -> "Value":
        """Return how many units begin between another date and this one."""
        start = formula(f"DATE_DIFF('{word(unit, PARTS, 'The unit')}', ", Hole(value(other).node, OR), ", ",
                        Hole(self.node, OR), ")")  # fmt: skip
        return Value(start)

    # ---- aggregates -------------------------------------------------------------------------------------------------

    def count(self, where: "Value | None" = None, **bounds: Unpack[Bounds]) -> "Value":
        """Count the rows in which it is not NULL."""
        return aggregate("COUNT", (self,), where, bounds)

    def nunique(self, where: "Value | None" = None, **bounds: Unpack[Bounds]) -> "Value":
        """Count its different values; of the privacy unit, the units."""
        distinct = Value(formula("DISTINCT ", Hole(self.node, OR)))
        return aggregate("COUNT", (distinct,), where, bounds)

    def sum(self, where: "Value | None" = None, **bounds: Unpack[Bounds]) -> "Value":
        """Add it up."""
        return aggregate("SUM", (self,), where, bounds)

    def mean(self, where: "Value | None" = None, **bounds: Unpack[Bounds]) -> "Value":
        """Return its mean."""
        return aggregate("AVG", (self,), where, bounds)

    def var(self, how: How = "sample", where: "Value | None" = None, **bounds: Unpack[Bounds]) -> "Value":
        """Return its variance, of a "sample" or of the population, "pop"."""
        return aggregate(word(how, {"sample": "VAR_SAMP", "pop": "VAR_POP"}, "how"), (self,), where, bounds)

    def std(self, how: How = "sample", where: "Value | None" = None, **bounds: Unpack[Bounds]) -> "Value":
        """Return its standard deviation, of a "sample" or of the population, "pop"."""
        return aggregate(word(how, {"sample": "STDDEV_SAMP", "pop": "STDDEV_POP"}, "how"), (self,), where, bounds)

    def cov(self, other: Named, how: How = "sample", where: "Value | None" = None, **bounds: Unpack[Bounds]) -> "Value":
        """Return its covariance with another number."""
        function = word(how, {"sample": "COVAR_SAMP", "pop": "COVAR_POP"}, "how")
        return aggregate(function, (self, named(other)), where, bounds)

    def corr(self, other: Named, where: "Value | None" = None, **bounds: Unpack[Bounds]) -> "Value":
        """Return its correlation with another number."""
        return aggregate("CORR", (self, named(other)), where, bounds)

    def median(self, where: "Value | None" = None, **bounds: Unpack[Bounds]) -> "Value":
        """Return its median."""
        return aggregate("MEDIAN", (self,), where, bounds)

    def quantile(self, quantile: Number, where: "Value | None" = None, **bounds: Unpack[Bounds]) -> "Value":
        """Return the value up to which a share of the rows lies, between two rows if need be."""
        return aggregate("QUANTILE_CONT", (self, value(number(quantile))), where, bounds)

    def min(self, where: "Value | None" = None, **bounds: Unpack[Bounds]) -> "Value":
        """Return the least value that noise lets one see; in rows of one unit, the least."""
        return aggregate("MIN", (self,), where, bounds)

    def max(self, where: "Value | None" = None, **bounds: Unpack[Bounds]) -> "Value":
        """Return the greatest value that noise lets one see; in rows of one unit, the greatest."""
        return aggregate("MAX", (self,), where, bounds)

    def any(self, where: "Value | None" = None) -> "Value":
        """Tell whether it is true in a row of a unit."""
        return aggregate("BOOL_OR", (self,), where, {})

    def all(self, where: "Value | None" = None) -> "Value":
        """Tell whether it is true in all rows of a unit."""
        return aggregate("BOOL_AND", (self,), where, {})

    # ---- around rows, and in an answer ------------------------------------------------------------------------------

    def lag(self, offset: int = 1, default: Operand = None) -> "Value":
        """Return its value some rows before, for `over`."""
        return self._shifted("LAG", offset, default)

    def lead(self, offset: int = 1, default: Operand = None) -> "Value":
        """Return its value some rows after, for `over`."""
        return self._shifted("LEAD", offset, default)

    def _shifted(self, function: str, offset: int, default: Operand) -> "Value":
        given = [value(whole(offset, "The offset")), *([] if default is None else [value(default)])]
        return Value(formula(f"{function}(", *listed([self.node, *(one.node for one in given)]), ")", kind="aggregate"))

    def over(
        self, *, group_by: Named | Iterable[Named], order_by: "Named | Order | Iterable[Named | Order]" = ()
    ) -> "Value":
        """Compute it among the rows of one unit: group by the privacy unit."""
        if not (isinstance(self.node, Formula) and self.node.kind == "aggregate"):
            raise InvalidParameter("over follows an aggregate, a rank, lag or lead: col.x.sum().over(group_by=…).")
        order = [ordered(term) for term in several(order_by)]
        pieces: list[str | Hole] = [Hole(self.node, ATOM), " OVER (PARTITION BY "]
        pieces += listed([named(key).node for key in several(group_by)])
        for place, term in enumerate(order):
            pieces += [", " if place else " ORDER BY ", Hole(term.value.node, OR), term.suffix]
        return Value(formula(*pieces, ")", kind="window"))

    def asc(self, *, nulls_first: bool = False) -> "Order":
        """Order by it."""
        return Order(self, " NULLS FIRST" if nulls_first else "")

    def desc(self, *, nulls_first: bool = False) -> "Order":
        """Order by it from the greatest down."""
        return Order(self, " DESC NULLS FIRST" if nulls_first else " DESC")

    def interval_low(self) -> "Value":
        """Return the lower end of the 95 % interval of a number of the answer."""
        return self._call("DP_INTERVAL_LOW")

    def interval_high(self) -> "Value":
        """Return the upper end of the 95 % interval of a number of the answer."""
        return self._call("DP_INTERVAL_HIGH")


@final
class Order:
    """A value and the direction in which to order by it."""

    __slots__ = ("suffix", "value")

    def __init__(self, value: Value, suffix: str = "") -> None:
        self.value = value
        self.suffix = suffix

    def __repr__(self) -> str:
        return f"{self.value!r}{self.suffix}"


@final
class Columns:
    """The columns of whatever table an expression is used with: `col.age`, or `col["odd name"]`."""

    def __getattr__(self, name: str) -> Value:
        if name.startswith("_"):  # what Python and notebooks look for on any object is no column
            raise AttributeError(f'Write col["{name}"] for a column whose name begins with _.')
        return Value(ColumnNode(column_name(name)))

    def __getitem__(self, name: str) -> Value:
        return Value(ColumnNode(column_name(name)))

    def __repr__(self) -> str:
        return "col"


col: Final = Columns()
"""The columns of whatever table an expression is used with."""


def literal(given: Given) -> Value:
    """Return a constant as a value, to begin an expression with."""
    return Value(ConstantNode(constant(given)))


def value(given: Operand | timedelta) -> Value:
    """Return a value: as it is, or a constant."""
    if isinstance(given, timedelta):
        if given % timedelta(days=1):
            raise InvalidParameter(f"A timedelta of {given} is not a whole number of days. Write lapwing.interval.")
        return interval(days=given.days)
    return given if isinstance(given, Value) else literal(given)


def named(given: object) -> Value:
    """Return a value: as it is, or the column of a name."""
    if isinstance(given, Value):
        return given
    if isinstance(given, str):
        return Value(ColumnNode(column_name(given)))
    raise InvalidParameter(
        f"The name of a column, or an expression such as col.age, is needed, not {type_name(given)}."
    )


def ordered(given: object) -> Order:
    """Return what to order by."""
    return given if isinstance(given, Order) else named(given).asc()


def several(given: object) -> tuple[object, ...]:
    """Return one or many things as many."""
    if isinstance(given, str | Value | Order) or not isinstance(given, Iterable):
        return (given,)
    return tuple(given)


def interval(*, years: Operand = 0, months: Operand = 0, weeks: Operand = 0, days: Operand = 0) -> Value:
    """Return a time to add to a date or timestamp, in one unit."""
    given = {"YEAR": years, "MONTH": months, "WEEK": weeks, "DAY": days}
    used = {unit: amount for unit, amount in given.items() if isinstance(amount, Value) or amount != 0}
    if len(used) > 1:
        raise InvalidParameter("An interval has one unit. Add several, one after another.")
    unit, amount = next(iter(used.items()), ("DAY", 0))
    return Value(formula("INTERVAL (", Hole(value(amount).node, OR), f") {unit}"))


def branches_of(branches: tuple[tuple[Operand, Operand], ...], otherwise: Operand) -> Iterable[str | Hole]:
    """Yield the branches of a CASE and its end."""
    if not branches:
        raise InvalidParameter("cases takes at least one pair of what to look for and what to return.")
    for branch in branches:
        if not isinstance(branch, tuple) or len(branch) != 2:
            raise InvalidParameter("cases takes pairs: (what to look for, what to return).")
        yield from (" WHEN ", Hole(value(branch[0]).node, OR), " THEN ", Hole(value(branch[1]).node, OR))
    if otherwise is not None:
        yield from (" ELSE ", Hole(value(otherwise).node, OR))
    yield " END"


# ---- aggregates -----------------------------------------------------------------------------------------------------


def aggregate(function: str, arguments: Iterable[Value], where: Value | None, bounds: Bounds) -> Value:
    """Make an aggregate, over the rows where a condition is true, with what it says about its own privacy."""
    pieces: list[str | Hole] = [f"{function}(", *listed([argument.node for argument in arguments])]
    said = [f"{name} => {_said(name, given)}" for name, given in bounds.items() if given is not None]
    pieces.append("".join(f", {one}" for one in said) + ")")
    if where is not None:
        if not isinstance(where, Value):
            raise InvalidParameter(f"where is a condition such as col.x > 1, not {type_name(where)}.")
        pieces += [" FILTER (WHERE ", Hole(where.node, OR), ")"]
    return Value(formula(*pieces, kind="aggregate"))


def _said(name: str, given: object) -> str:
    allowed = Bounds.__annotations__
    if name not in allowed:
        raise InvalidParameter(f"There is no argument '{name[:40]}'. Allowed: where, {', '.join(allowed)}.")
    if name == "epsilon":
        return printed(number(given))
    if given == "auto" or (given == "race" and name == "contribution_bounds_per_group"):
        return str(given).upper()
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InvalidParameter(f"{name} takes two numbers, as in {name}=(0, 100).")
    return f"({printed(number(given[0]))}, {printed(number(given[1]))})"
