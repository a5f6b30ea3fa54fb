"""Bind expressions over one row: syntax nodes become checked expressions, by an allow-list of nodes and arguments."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import cast

from sqlglot import exp

from lapwing.catalog.model import Column as Declared
from lapwing.catalog.model import Table
from lapwing.errors import QueryRefused
from lapwing.query import functions
from lapwing.query.expression import Column, Expression, Literal
from lapwing.query.parse import position_of
from lapwing.query.types import BOOLEAN, DATE, TEXT, TIMESTAMP, UNBOUNDED_INTEGER, UNBOUNDED_REAL, Fixed, Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The columns that an expression may name, and the text that positions refer to."""

    text: str
    table: Table
    alias: str | None = None

    def column(self, node: exp.Column) -> Column:
        """Find a column of the table by SQL's rules: plain names fold case, quoted names do not."""
        only(self, node, "this", "table")
        qualifier = node.args.get("table")
        if qualifier is not None and not same_name(qualifier, self.alias or self.table.name):
            raise refusal(self, node, f"'{qualifier.name}' is not the table of this question")
        identifier = node.this
        if not isinstance(identifier, exp.Identifier):
            raise refusal(self, node, "SELECT * and column patterns are not answered", "Name the columns.")
        for declared in self.table.columns:
            if same_name(identifier, declared.name):
                return Column(name=declared.name, type=column_type(declared))
        if self.is_unit(node):
            raise refusal(
                self,
                node,
                f"'{identifier.name}' is the privacy unit and not a column of the catalog",
                f"Use COUNT(DISTINCT {identifier.name}).",
            )
        known = ", ".join(column.name for column in self.table.columns)
        raise refusal(self, node, f"There is no column '{identifier.name}' in {self.table.name}", f"Columns: {known}.")

    def is_unit(self, node: exp.Expression) -> bool:
        """Tell whether a node names the privacy unit of the table."""
        unit = self.table.privacy_unit
        return (
            isinstance(node, exp.Column)
            and isinstance(node.this, exp.Identifier)
            and unit != "row"
            and same_name(node.this, unit)
        )


def column_type(declared: Declared) -> Type:
    """Return the type of a declared column's value."""
    match declared.type:
        case "boolean":
            return BOOLEAN
        case "string":
            return TEXT
        case "date":
            return DATE
        case "timestamp":
            return TIMESTAMP
    if not declared.bounded or declared.step is None:
        return UNBOUNDED_INTEGER if declared.type == "integer" else UNBOUNDED_REAL
    return Fixed(step=declared.step, low=declared.low, high=declared.high)


def same_name(identifier: exp.Expression, name: str) -> bool:
    """Compare an identifier with a declared name: exactly when quoted, else without regard to case."""
    quoted = bool(identifier.args.get("quoted"))
    return identifier.name == name if quoted else identifier.name.casefold() == name.casefold()


def refusal(rows: Rows, node: exp.Expression, reason: str, remedy: str = "") -> QueryRefused:
    """Return a refusal that knows where in the text it points."""
    return QueryRefused(reason, remedy=remedy, position=position_of(node, rows.text))


def only(rows: Rows, node: exp.Expression, *allowed: str) -> None:
    """Refuse a node that carries any argument outside an allow-list."""
    for name, value in node.args.items():
        if name not in allowed and value not in (None, False, [], ""):
            what = name.rstrip("_").replace("_", " ").upper()
            raise refusal(rows, node, f"{what} is not answered here", "See the SQL reference for what is.")


def bind_expression(node: exp.Expression, rows: Rows) -> Expression:
    """Turn a syntax node into a checked expression over one row, or refuse it at its position."""
    handler = HANDLERS.get(type(node))
    if handler is None:
        raise refusal(rows, node, f"{_name_of(node)} is not an expression that can be answered here", _ALLOWED)
    try:
        return handler(node, rows)
    except QueryRefused as refused:
        if refused.position is not None:
            raise
        raise refusal(rows, node, refused.reason, refused.remedy) from None


_ALLOWED = (
    "Use columns, constants, + - * /, comparisons, AND OR NOT IN BETWEEN LIKE IS NULL, CASE, COALESCE, ABS, LEAST, "
    "GREATEST, ROUND, FLOOR, CEIL, CAST."
)


def _name_of(node: exp.Expression) -> str:
    if isinstance(node, exp.Anonymous):
        return f"The function {node.name.upper()}"
    if isinstance(node, exp.AggFunc):
        return f"The aggregate {node.sql_name()} inside another aggregate or a WHERE"
    if isinstance(node, exp.Func):
        return f"The function {node.sql_name()}"
    if isinstance(node, exp.Subquery | exp.Select):
        return "A subquery"
    return node.key.upper()


def literal(node: exp.Expression, rows: Rows) -> Expression:
    """Bind a constant."""
    if isinstance(node, exp.Null):
        return functions.NULL_LITERAL
    if isinstance(node, exp.Boolean):
        return Literal(value=bool(node.this), type=BOOLEAN)
    if node.is_string:
        return Literal(value=str(node.this), type=TEXT)
    return functions.number(exact_number(str(node.this), node, rows))


def exact_number(text: str, node: exp.Expression, rows: Rows) -> Fraction:
    """Read a numeric constant exactly, whatever its exponent."""
    try:
        value = Decimal(text)
        readable = value.is_finite() and (not value or abs(value.adjusted()) <= 40)
    except ArithmeticError:
        readable = False
    if not readable:
        raise refusal(rows, node, f"'{text[:40]}' is not a number in range", "Use numbers up to 1e30.")
    return Fraction(value)


def _unary(rule: Callable[[Expression], Expression]) -> Callable[[exp.Expression, Rows], Expression]:
    def bind(node: exp.Expression, rows: Rows) -> Expression:
        only(rows, node, "this")
        return rule(bind_expression(node.this, rows))

    return bind


def _binary(rule: Callable[[Expression, Expression], Expression]) -> Callable[[exp.Expression, Rows], Expression]:
    def bind(node: exp.Expression, rows: Rows) -> Expression:
        only(rows, node, "this", "expression", "typed", "safe")
        return rule(bind_expression(node.this, rows), bind_expression(node.expression, rows))

    return bind


def _variadic(rule: Callable[..., Expression]) -> Callable[[exp.Expression, Rows], Expression]:
    def bind(node: exp.Expression, rows: Rows) -> Expression:
        only(rows, node, "this", "expressions", "ignore_nulls")
        return rule(*(bind_expression(part, rows) for part in (node.this, *node.expressions)))

    return bind


def _comparison(symbol: str) -> Callable[[exp.Expression, Rows], Expression]:
    return _binary(lambda left, right: functions.compare(symbol, left, right))


def _between(node: exp.Expression, rows: Rows) -> Expression:
    only(rows, node, "this", "low", "high")
    value, low, high = (bind_expression(node.args[part], rows) for part in ("this", "low", "high"))
    return functions.both(functions.compare(">=", value, low), functions.compare("<=", value, high))


def _member(node: exp.Expression, rows: Rows) -> Expression:
    only(rows, node, "this", "expressions")
    choices = [bind_expression(choice, rows) for choice in node.expressions]
    return functions.member(bind_expression(node.this, rows), choices)


def _is(node: exp.Expression, rows: Rows) -> Expression:
    only(rows, node, "this", "expression")
    argument = bind_expression(node.this, rows)
    if isinstance(node.expression, exp.Null):
        return functions.is_null(argument)
    if isinstance(node.expression, exp.Boolean):
        wanted = argument if node.expression.this else functions.negation(argument)
        return functions.coalesce(wanted, Literal(value=False, type=BOOLEAN))
    raise refusal(rows, node, "IS takes NULL, TRUE or FALSE")


def _case(node: exp.Expression, rows: Rows) -> Expression:
    only(rows, node, "this", "ifs", "default")
    conditions = []
    for branch in node.args["ifs"]:
        only(rows, branch, "this", "true")
        condition = bind_expression(branch.this, rows)
        if node.this is not None:
            condition = functions.compare("=", bind_expression(node.this, rows), condition)
        conditions.append(condition)
    values = [bind_expression(branch.args["true"], rows) for branch in node.args["ifs"]]
    default = node.args.get("default")
    return functions.case(conditions, values, bind_expression(default, rows) if default else functions.NULL_LITERAL)


def _round(node: exp.Expression, rows: Rows) -> Expression:
    only(rows, node, "this", "decimals")
    digits = node.args.get("decimals")
    return functions.round_to(bind_expression(node.this, rows), bind_expression(digits, rows) if digits else None)


def _cast(node: exp.Expression, rows: Rows) -> Expression:
    only(rows, node, "this", "to", "safe")
    argument, target = bind_expression(node.this, rows), node.args["to"]
    if target.expressions:
        raise refusal(rows, node, "A cast with a precision is not answered", "Write ROUND(x, 2).")
    kind = target.this
    guarded = isinstance(node, exp.TryCast)
    if kind in exp.DataType.INTEGER_TYPES:
        return functions.to_integer(argument)
    if kind in exp.DataType.NUMERIC_TYPES:
        return functions.try_number(argument) if guarded else functions.to_number(argument)
    if kind in exp.DataType.TEXT_TYPES and argument.type == TEXT:
        return argument
    if kind == exp.DataType.Type.BOOLEAN and argument.type == BOOLEAN:
        return argument
    if isinstance(argument, Literal) and isinstance(argument.value, str) and kind in _TEMPORAL:
        return functions.temporal(argument.value, _TEMPORAL[kind])
    raise refusal(
        rows, node, f"A cast to {kind.value} can fail on data", "Use TRY_CAST(x AS DOUBLE) for numbers in text."
    )


_TEMPORAL = {exp.DataType.Type.DATE: DATE, exp.DataType.Type.TIMESTAMP: TIMESTAMP}


def _paren(node: exp.Expression, rows: Rows) -> Expression:
    only(rows, node, "this")
    return bind_expression(node.this, rows)


Handler = Callable[[exp.Expression, Rows], Expression]
HANDLERS: Mapping[type[exp.Expression], Handler] = {
    exp.Column: lambda node, rows: rows.column(cast(exp.Column, node)),
    exp.Literal: literal,
    exp.Boolean: literal,
    exp.Null: literal,
    exp.Paren: _paren,
    exp.Add: _binary(functions.add),
    exp.Sub: _binary(functions.subtract),
    exp.Mul: _binary(functions.multiply),
    exp.Div: _binary(functions.divide),
    exp.Neg: _unary(functions.negate),
    exp.Abs: _unary(functions.absolute),
    exp.Floor: _unary(functions.floor_to),
    exp.Ceil: _unary(functions.ceiling),
    exp.Round: _round,
    exp.Least: _variadic(functions.smallest),
    exp.Greatest: _variadic(functions.largest),
    exp.Coalesce: _variadic(functions.coalesce),
    exp.Case: _case,
    exp.EQ: _comparison("="),
    exp.NEQ: _comparison("<>"),
    exp.LT: _comparison("<"),
    exp.LTE: _comparison("<="),
    exp.GT: _comparison(">"),
    exp.GTE: _comparison(">="),
    exp.And: _binary(functions.both),
    exp.Or: _binary(functions.either),
    exp.Not: _unary(functions.negation),
    exp.Between: _between,
    exp.In: _member,
    exp.Is: _is,
    exp.Like: _binary(functions.like),
    exp.Cast: _cast,
    exp.TryCast: _cast,
}
