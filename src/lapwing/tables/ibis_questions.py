"""Questions as Ibis expressions: the tables that one begins with, and the SQL that an expression says.

Theory of operation. An expression is written as one text by Ibis, and that text goes where every text goes: to the
parser and the binder. So an expression can say nothing that an analyst could not write; every refusal, price and plan
is that of the text, and no privacy argument rests on this module or on Ibis. Ibis is imported here alone, when a table
is asked for or something else than a text is a question.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokenizer_core import TokenType

from lapwing.catalog.suggestions import meant
from lapwing.errors import InvalidParameter
from lapwing.privacy.amounts import exact, written
from lapwing.query.text.privacy_options import STRATEGIES

if TYPE_CHECKING:
    from ibis.expr.types import Expr, Table

    from lapwing.query.text.parameters import Parameters
    from lapwing.tables import ColumnDescription, TableDescription

Question: TypeAlias = "str | Expr"
"""SQL, or an Ibis expression."""

_TYPES: Final = {
    "integer": "int64",
    "float": "float64",
    "string": "string",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
}


OPTIONS: Final = (
    "max_groups_contributed",
    "max_rows_contributed",
    "min_privacy_units_per_group",
    "group_selection_strategy",
    "group_selection_epsilon",
)
"""What an expression cannot say: options of `SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (…)`, said beside it."""


def table_of(description: "TableDescription") -> "Table":
    """Return a table or view as an Ibis table of its columns, which holds no data.

    Raises:
        InvalidParameter: If Ibis is not installed.
    """
    try:
        import ibis
        from ibis.expr import datatypes
    except ModuleNotFoundError as missing:
        raise InvalidParameter(
            f"Questions as expressions need {missing.name}, which is not installed. "
            "Run `pip install 'lapwing-dp[ibis]'`, or write SQL."
        ) from None

    def type_of(column: "ColumnDescription") -> datatypes.DataType:
        if column.type is None:
            return datatypes.unknown
        if column.type == "decimal":
            return datatypes.Decimal(38, len((column.step or "").partition(".")[2]) or None, nullable=column.nullable)
        return datatypes.dtype(_TYPES[column.type], nullable=column.nullable)

    types = {column.name: type_of(column) for column in description.columns}
    unit = None if description.link else description.privacy_unit
    if unit is not None and unit not in ("row", *types):  # the catalog does not declare it as a column
        types = {unit: datatypes.unknown, **types}
    return ibis.table(types, name=description.name)


def text_of(question: "Question", **options: object) -> str:
    """Return a question as SQL.

    Args:
        **options: Of an expression; a text says them itself.

    Raises:
        InvalidParameter: For what is no question, for an expression that cannot be written as SQL, and for options that
            cannot be.
    """
    for name in options:
        if name not in OPTIONS:
            raise InvalidParameter(f"There is no option {name!r:.60}. {meant('Allowed', name, OPTIONS)}")
    if isinstance(question, str):
        if options:
            raise InvalidParameter(
                f"The question is a text, which says {', '.join(options)} itself: "
                "write SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (…)."
            )
        return question
    text = _sql(question)
    if not options:
        return text
    said = ", ".join(f"{name} = {_value(name, value)}" for name, value in options.items())
    at = _select_of_the_whole(text)
    return f"{text[:at]} WITH DIFFERENTIAL_PRIVACY OPTIONS ({said}){text[at:]}"


def texts_of(questions: "Sequence[Question | tuple[str, Parameters]]") -> "list[str | tuple[str, Parameters]]":
    """Return the questions of a batch as texts, or as they are if they are pairs of a text and its parameters.

    Raises:
        InvalidParameter: For what is no list of questions, and as `text_of`.
    """
    if isinstance(questions, str):
        raise InvalidParameter("A batch is a list of questions, and this is a text; give [text], or call sql.")
    if not questions:
        raise InvalidParameter("The batch holds no question; give at least one.")
    return [question if isinstance(question, tuple) else text_of(question) for question in questions]


def _sql(question: object) -> str:
    what = f"A question is a text or an Ibis expression, not {type(question).__name__:.40}."
    if not type(question).__module__.startswith("ibis."):
        raise InvalidParameter(what)
    import ibis
    from ibis.common.exceptions import IbisError

    if not isinstance(question, ibis.expr.types.Expr):
        raise InvalidParameter(f"{what} An expression begins with a table: session.table(…).")
    try:
        return str(ibis.to_sql(question, dialect="duckdb"))
    except (IbisError, TypeError, ValueError, NotImplementedError) as error:
        raise InvalidParameter(f"Ibis cannot write this expression as SQL: {error}") from error


def _value(name: str, value: object) -> str:
    """Write an option: a word, or a number exactly."""
    if name == "group_selection_strategy":
        if value not in STRATEGIES:
            raise InvalidParameter(f"{name} is {value!r:.60}; allowed: {', '.join(STRATEGIES)}.")
        return str(value)
    return written(exact(value, name))  # type: ignore[arg-type]  # what is no number, `exact` refuses


def _select_of_the_whole(text: str) -> int:
    """Return where the SELECT of the whole statement ends, which may stand behind what WITH defines."""
    depth = 0
    for token in DuckDB().tokenize(text):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if token.token_type == TokenType.SELECT and not depth:
            return token.end + 1
    raise InvalidParameter("The expression says no SELECT; begin it with session.table(…).")
