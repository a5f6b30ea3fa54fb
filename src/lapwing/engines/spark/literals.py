"""Names, constants and types as Spark's SQL.

Texts are written in a form in which nothing has a meaning: plain letters and digits between quotes, and everything else
as bytes in hexadecimal. So no rule about quotes, backslashes or variables decides where a constant of an analyst ends.
"""

import re
from collections.abc import Mapping
from datetime import date, datetime
from fractions import Fraction
from typing import Final, cast

from lapwing.catalog.model import Table
from lapwing.engines.duckdb.literals import width_of
from lapwing.query.expressions.days import count
from lapwing.query.expressions.expression import Literal
from lapwing.query.expressions.types import Fixed, Real, Type

_PLAIN: Final = re.compile(r"[A-Za-z0-9 _.,:+-]*")
WIDE: Final = "DECIMAL(38,0)"
"""Integers of up to 38 digits: what plans compute stays below 2¹²⁰ < 10³⁷."""
NARROW: Final = "BIGINT"


def identifier(name: str) -> str:
    """Quote a name."""
    return "`" + name.replace("`", "``") + "`"


def kept_name(table: Table) -> str:
    """Return the name of the layer that holds a protected table's rows that exist."""
    return identifier(f"kept {table.name}")


def text(value: str) -> str:
    """Write a text constant."""
    return f"'{value}'" if _PLAIN.fullmatch(value) else f"CAST(X'{value.encode().hex().upper()}' AS STRING)"


def whole(value: int | None) -> str:
    """Write an integer constant in the narrowest of the two integer types used."""
    number = value or 0
    return f"{number}L" if is_narrow(number, number) else wide(number)


def wide(value: int) -> str:
    """Write an integer constant in the wider type."""
    return f"CAST({value}BD AS {WIDE})"


def is_narrow(low: int, high: int) -> bool:
    """Tell whether 64 bits hold a range, with room for the sum of two."""
    return width_of(low, high) == "BIGINT"


def width(kind: Fixed) -> str:
    """Return the engine's type for a fixed-point value: 64 bits where its bounds allow, else 38 digits."""
    return NARROW if kind.low is not None and kind.high is not None and is_narrow(kind.low, kind.high) else WIDE


def clamp(value: str, low: int, high: int) -> str:
    """Keep an integer that is not NULL inside its bounds."""
    return f"LEAST(GREATEST({value}, {whole(low)}), {whole(high)})"


def literal(node: Literal) -> str:
    """Write a constant."""
    value = node.value
    if value is None:
        return f"CAST(NULL AS {engine_type(node.type)})"
    if isinstance(value, Fraction):
        return double(value) if isinstance(node.type, Real) else whole(int(value / cast(Fixed, node.type).step))
    return constant(value)


def constant(value: object) -> str:
    """Write a public value of a column."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return whole(value)
    if isinstance(value, datetime):
        return moment(count(value))
    return day(count(value)) if isinstance(value, date) else text(str(value))


def day(days: int) -> str:
    """Write the date so many days after 1970-01-01."""
    return f"date_from_unix_date({days})"


def moment(microseconds: int) -> str:
    """Write the timestamp so many microseconds after 1970-01-01."""
    return f"CAST(timestamp_micros({microseconds}L) AS TIMESTAMP_NTZ)"


def engine_type(kind: Type) -> str:
    """Return the engine's type for values of a type."""
    if isinstance(kind, Fixed):
        return width(kind)
    names = {"text": "STRING", "date": "DATE", "timestamp": "TIMESTAMP_NTZ"}
    return "DOUBLE" if isinstance(kind, Real) else names.get(kind.name, "BOOLEAN")


def double(value: Fraction) -> str:
    """Write the double nearest to a constant."""
    return f"{float(value)!r}D"


def print_in_steps(value: str, step: Fraction) -> str:
    """Divide a double by a step, in one rounding where the step is 1/n or n."""
    multiplied = value if step.denominator == 1 else f"{value} * {double(Fraction(step.denominator))}"
    return multiplied if step.numerator == 1 else f"{multiplied} / {double(Fraction(step.numerator))}"


def floored(value: str) -> str:
    """Round a double down to a 64-bit integer; NULL where there is none.

    `floor` raises beyond 64 bits. LEAST and GREATEST pass over NULL and take NaN for the largest number: so NULL and
    what lies below end at the lower end, NaN and what lies above at the upper one, and both ends become NULL.
    """
    return f"floor(NULLIF(LEAST(NULLIF(GREATEST({value}, -9.2e18D), -9.2e18D), 9.2e18D), 9.2e18D))"


def schema_of(types: Mapping[str, str]) -> str:
    """Return the columns and types as which Spark is told to read files, as DDL."""
    return ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in types.items())
