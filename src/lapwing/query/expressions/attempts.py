"""The causes that answer an attempt: if only binding can tell what something is, a refusal may be the answer.

Each set has the causes that answer one question. `rows.attempted` raises all other refusals. So no fault of a text is
taken for an answer.
"""

from collections.abc import Set
from typing import Final

from lapwing.errors import RefusalCause

Causes = Set[RefusalCause]

NAMES: Final[Causes] = frozenset(
    {RefusalCause.UNKNOWN_TABLE, RefusalCause.UNKNOWN_COLUMN, RefusalCause.AMBIGUOUS_COLUMN}
)
"""No column of these rows has a name, or several have it."""

VALUES: Final[Causes] = frozenset(
    {
        RefusalCause.BOUNDS_TOO_WIDE,
        RefusalCause.CAST_CAN_FAIL,
        RefusalCause.CAST_NOT_SUPPORTED,
        RefusalCause.INCOMPATIBLE_TYPES,
        RefusalCause.INVALID_ARGUMENT,
        RefusalCause.NOT_CONSTANT,
        RefusalCause.NUMBER_OVERFLOW,
        RefusalCause.QUERY_TOO_COMPLEX,
        RefusalCause.TEXT_TOO_LONG,
        RefusalCause.UNBOUNDED,
        RefusalCause.UNBOUNDED_TIME,
        RefusalCause.WRONG_TYPE,
    }
)
"""An operation is not total, or too large, for such types and bounds: for narrower ones it may be (`as_read`)."""

FORMS: Final[Causes] = frozenset({RefusalCause.CLAUSE_NOT_SUPPORTED, RefusalCause.FUNCTION_NOT_SUPPORTED})
"""Something is written that has no meaning in one row, or in rows: it may have one elsewhere."""

NOT_THEIRS: Final = NAMES | {RefusalCause.PRIVACY_UNIT_AS_VALUE, RefusalCause.STAR_NOT_SUPPORTED}
"""An expression is none of the columns of these rows."""

MEETINGS: Final[Causes] = frozenset(
    {RefusalCause.DIFFERENT_UNITS, RefusalCause.UNLINKED_TABLES, RefusalCause.JOIN_CONDITION_MISSING}
)
"""Rows of different units would meet."""

NO_KEY: Final = (
    NOT_THEIRS
    | FORMS
    | VALUES
    | {
        RefusalCause.EMPTY_CONDITION,
        RefusalCause.NOT_A_CONDITION,
        RefusalCause.PATTERN_TOO_LARGE,
        RefusalCause.SYNTAX_ERROR,
        RefusalCause.UNLISTED_VALUE,
        RefusalCause.WRONG_ARGUMENT_COUNT,
    }
)
"""An expression over released numbers and keys is none over rows."""

NO_PUBLIC_ROWS: Final = (
    NOT_THEIRS
    | FORMS
    | VALUES
    | MEETINGS
    | {RefusalCause.MIXES_UNITS, RefusalCause.NO_FROM, RefusalCause.ONLY_PUBLIC_TABLES}
)
"""A query does not give public rows by itself: it reads protected ones, rows around it, joins, or computes more."""
