"""Functions under names of other databases, made of those that there are: so they are total, and bounded, as these."""

from fractions import Fraction

from lapwing.errors import QueryRefused
from lapwing.query.expressions import arithmetic, conversion, functions, instants, strings, temporal
from lapwing.query.expressions.expression import Expression, Literal
from lapwing.query.expressions.types import DATE, TEXT, TIMESTAMP, Plain

ZERO = conversion.number(Fraction(0))


# ---- numbers ---------------------------------------------------------------------------------------------------------


def square(argument: Expression) -> Expression:
    """Bind SQUARE(x)."""
    return arithmetic.multiply(argument, argument)


def zero_if_null(argument: Expression) -> Expression:
    """Bind ZEROIFNULL(x)."""
    return functions.coalesce(argument, ZERO)


def null_if_zero(argument: Expression) -> Expression:
    """Bind NULLIFZERO(x)."""
    return functions.null_if(argument, ZERO)


def divide_or_zero(left: Expression, right: Expression) -> Expression:
    """Bind DIV0(x, y): 0 where y is zero and x is not NULL."""
    zero = functions.both(functions.compare("=", right, ZERO), _is_known(left))
    return functions.case([zero], [ZERO], arithmetic.divide(left, right))


def divide_or_zero_or_null(left: Expression, right: Expression) -> Expression:
    """Bind DIV0NULL(x, y): 0 where y is zero or NULL and x is not NULL."""
    nothing = functions.either(functions.compare("=", right, ZERO), functions.is_null(right))
    return functions.case([functions.both(nothing, _is_known(left))], [ZERO], arithmetic.divide(left, right))


# ---- choice ----------------------------------------------------------------------------------------------------------


def _is_known(argument: Expression) -> Expression:
    return functions.negation(functions.is_null(argument))


def choose(condition: Expression, chosen: Expression, otherwise: Expression) -> Expression:
    """Bind IFF(condition, x, y)."""
    return functions.case([condition], [chosen], otherwise)


def by_null(argument: Expression, known: Expression, null: Expression) -> Expression:
    """Bind NVL2(x, y, z): y where x is not NULL, else z."""
    return functions.case([_is_known(argument)], [known], null)


def is_null_or(argument: Expression, otherwise: Expression | None = None) -> Expression:
    """Bind ISNULL(x), a condition, and ISNULL(x, y), which is y where x is NULL."""
    return functions.is_null(argument) if otherwise is None else functions.coalesce(argument, otherwise)


# ---- dates -----------------------------------------------------------------------------------------------------------


def to_date(argument: Expression) -> Expression:
    """Bind DATE(x) and TO_DATE(x): of a timestamp, a date or a constant text."""
    return _instant(argument, DATE)


def to_timestamp(argument: Expression) -> Expression:
    """Bind TIMESTAMP(x)."""
    return _instant(argument, TIMESTAMP)


def _instant(argument: Expression, kind: Plain) -> Expression:
    if isinstance(argument, Literal) and isinstance(argument.value, str):
        return conversion.temporal(argument.value, kind)
    if argument.type == TEXT:
        wanted = kind.name
        raise QueryRefused(
            f"A cast of text to {wanted} can fail", remedy=f"Write TRY_CAST(x AS {wanted.upper()}): NULL where it does."
        )
    return instants.to_date(argument) if kind == DATE else instants.to_timestamp(argument)


def date_of(argument: Expression, month: Expression | None = None, *day: Expression) -> Expression:
    """Bind DATE(x) and DATE(year, month, day)."""
    if month is None:
        return to_date(argument)
    if len(day) != 1:
        raise QueryRefused("DATE takes a timestamp, or a year, a month and a day", remedy="Write CAST(x AS DATE).")
    return temporal.make_date(argument, month, day[0])


def try_date(argument: Expression) -> Expression:
    """Bind TRY_TO_DATE(x): NULL where a text is no date."""
    return instants.read(argument, DATE) if argument.type == TEXT else to_date(argument)


def try_timestamp(argument: Expression) -> Expression:
    """Bind TRY_TO_TIMESTAMP(x): NULL where a text is no timestamp."""
    return instants.read(argument, TIMESTAMP) if argument.type == TEXT else to_timestamp(argument)


def date_add(unit: str, amount: Expression, argument: Expression) -> Expression:
    """Bind DATEADD(unit, amount, x)."""
    return temporal.shift(argument, unit, amount, +1)


# ---- texts -----------------------------------------------------------------------------------------------------------


def trim_both(argument: Expression, characters: Expression | None = None) -> Expression:
    """Bind BTRIM(x) and BTRIM(x, characters)."""
    return strings.trim("both", argument, characters)


def matches_any_case(argument: Expression, pattern: Expression) -> Expression:
    """Bind x ~* pattern."""
    return strings.matches(argument, pattern, temporal.word("i"))


def without(argument: Expression, searched: Expression, by: Expression | None = None) -> Expression:
    """Bind REPLACE(x, searched), which leaves it out, and REPLACE(x, searched, by)."""
    return strings.replace(argument, searched, temporal.word("") if by is None else by)


def pad(side: str, argument: Expression, length: Expression, fill: Expression | None) -> Expression:
    """Bind LPAD and RPAD, which fill up with spaces if nothing else is said."""
    return strings.pad(side, argument, length, temporal.word(" ") if fill is None else fill)
