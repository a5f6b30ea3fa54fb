"""Bind expressions over one row: syntax nodes become checked expressions, by an allow-list of nodes and arguments."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from lapwing.errors import QueryRefused
from lapwing.query import arithmetic, conversion, functions
from lapwing.query.expression import Expression, Literal, Operation
from lapwing.query.rows import Rows, only, refusal
from lapwing.query.types import BOOLEAN, DATE, TEXT, TIMESTAMP, describe


def bind_expression(node: exp.Expression, rows: Rows) -> Expression:
    """Turn a syntax node into a checked expression over one row, or refuse it at its position."""
    require_present(node)
    handler = HANDLERS.get(type(node))
    if handler is None:
        raise refusal(rows, node, f"{name_of(node)} is not answered here", _ALLOWED)
    try:
        return handler(node, rows)
    except QueryRefused as refused:
        if refused.position is not None:
            raise
        raise refusal(rows, node, refused.reason, refused.remedy) from None


def require_present(node: object) -> None:
    """Refuse what the parser let pass though something is missing, as after a NOT at the end."""
    if not isinstance(node, exp.Expression):
        raise QueryRefused("A part of the question is missing", remedy="Write what an operator or function applies to.")


_ALLOWED = (
    "Use columns, constants, + - * /, comparisons, AND OR NOT IN BETWEEN LIKE IS NULL, CASE, COALESCE, ABS, LEAST, "
    "GREATEST, ROUND, FLOOR, CEIL, CAST."
)


def name_of(node: exp.Expression) -> str:
    """Name what a syntax node is, as people write it."""
    if isinstance(node, exp.Anonymous):
        return f"The function {node.name.upper()}"
    if isinstance(node, exp.Subquery | exp.Select | exp.Exists):
        return "A subquery"
    if type(node) in _NODES:
        return _NODES[type(node)]
    if isinstance(node, exp.AggFunc):
        return f"The aggregate {node.sql_name()}"
    return f"The function {node.sql_name()}" if isinstance(node, exp.Func) else node.key.upper()


_NODES: Mapping[type[exp.Expression], str] = {
    exp.And: "AND",
    exp.Or: "OR",
    exp.AtTimeZone: "AT TIME ZONE",
    exp.BitwiseXor: "XOR",
    exp.Bracket: "A list, or an element of one,",
    exp.ByteString: "An e'…' text",
    exp.Cast: "A cast",
    exp.Collate: "COLLATE",
    exp.DPipe: "||",
    exp.Dot: "A field after a point",
    exp.IgnoreNulls: "An aggregate of this kind",
    exp.IntDiv: "//",
    exp.Kwarg: "A named argument",
    exp.Lambda: "A function of your own",
    exp.Mod: "%",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
    exp.Order: "ORDER BY inside an aggregate",
    exp.Placeholder: "A parameter",
    exp.PositionalColumn: "#",
    exp.Pow: "A power",
    exp.PropertyEQ: "A named argument",
    exp.RawString: "A $$…$$ text",
    exp.SimilarTo: "SIMILAR TO",
    exp.Star: "*",
    exp.TryCast: "A cast",
    exp.Tuple: "A list in parentheses",
    exp.Window: "OVER",
    exp.WithinGroup: "WITHIN GROUP",
}


def literal(node: exp.Expression, rows: Rows) -> Expression:
    """Bind a constant."""
    only(rows, node, "this", "is_string")
    if isinstance(node, exp.Null):
        return functions.NULL_LITERAL
    if isinstance(node, exp.Boolean):
        return Literal(value=bool(node.this), type=BOOLEAN)
    if node.is_string:
        return Literal(value=str(node.this), type=TEXT)
    return conversion.number(exact_number(str(node.this), node, rows))


def exact_number(text: str, node: exp.Expression, rows: Rows) -> Fraction:
    """Read a numeric constant exactly, whatever its exponent."""
    only(rows, node, "this", "is_string")
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


def _binary(
    rule: Callable[[Expression, Expression], Expression], *ignored: str
) -> Callable[[exp.Expression, Rows], Expression]:
    def bind(node: exp.Expression, rows: Rows) -> Expression:
        only(rows, node, "this", "expression", *ignored)
        return rule(bind_expression(node.this, rows), bind_expression(node.expression, rows))

    return bind


def _variadic(rule: Callable[..., Expression], *ignored: str) -> Callable[[exp.Expression, Rows], Expression]:
    def bind(node: exp.Expression, rows: Rows) -> Expression:
        only(rows, node, "this", "expressions", *ignored)
        return rule(*(bind_expression(part, rows) for part in (node.this, *node.expressions)))

    return bind


def _comparison(symbol: str) -> Callable[[exp.Expression, Rows], Expression]:
    return _binary(lambda left, right: functions.compare(symbol, left, right))


def _between(node: exp.Expression, rows: Rows) -> Expression:
    only(rows, node, "this", "low", "high")
    value, low, high = (bind_expression(node.args[part], rows) for part in ("this", "low", "high"))
    return functions.between(value, low, high)


def _member(node: exp.Expression, rows: Rows) -> Expression:
    only(rows, node, "this", "expressions")
    choices = [bind_expression(choice, rows) for choice in node.expressions]
    return functions.member(bind_expression(node.this, rows), choices)


def _like(node: exp.Expression, rows: Rows) -> Expression:
    only(rows, node, "this", "expression", "negate")
    matched = functions.like(bind_expression(node.this, rows), bind_expression(node.expression, rows))
    return functions.negation(matched) if node.args.get("negate") else matched


def _is(node: exp.Expression, rows: Rows) -> Expression:
    only(rows, node, "this", "expression")
    argument = bind_expression(node.this, rows)
    only(rows, node.expression, "this")
    if isinstance(node.expression, exp.Null):
        return functions.is_null(argument)
    if isinstance(node.expression, exp.Boolean):
        wanted = argument if node.expression.this else functions.negation(argument)
        return functions.coalesce(wanted, Literal(value=False, type=BOOLEAN))
    raise refusal(rows, node, "IS takes NULL, TRUE or FALSE")


def _case(node: exp.Expression, rows: Rows) -> Expression:
    only(rows, node, "this", "ifs", "default")
    chosen = bind_expression(node.this, rows) if node.this is not None else None
    if isinstance(chosen, Operation):  # it is repeated in every branch, which would let nested ones grow without end
        raise refusal(rows, node, "CASE x WHEN takes a column", "Write CASE WHEN condition THEN ….")
    conditions = []
    for branch in node.args["ifs"]:
        only(rows, branch, "this", "true")
        condition = bind_expression(branch.this, rows)
        conditions.append(condition if chosen is None else functions.compare("=", chosen, condition))
    values = [bind_expression(branch.args["true"], rows) for branch in node.args["ifs"]]
    default = node.args.get("default")
    return functions.case(conditions, values, bind_expression(default, rows) if default else functions.NULL_LITERAL)


def _round(node: exp.Expression, rows: Rows) -> Expression:
    only(rows, node, "this", "decimals")
    digits = node.args.get("decimals")
    return arithmetic.round_to(bind_expression(node.this, rows), bind_expression(digits, rows) if digits else None)


def _cast(node: exp.Expression, rows: Rows) -> Expression:
    only(rows, node, "this", "to", "safe")
    argument, target = bind_expression(node.this, rows), node.args["to"]
    if target.expressions:
        raise refusal(rows, node, "A cast to a type with parameters is not answered", "Write ROUND(x, 2).")
    only(rows, target, "this")
    kind = target.this
    if kind in _INTEGERS:
        return functions.to_integer(argument, *_INTEGERS[kind])
    if kind in (exp.DType.DOUBLE, exp.DType.FLOAT):
        return functions.try_number(argument) if isinstance(node, exp.TryCast) else functions.to_number(argument)
    if kind in exp.DataType.TEXT_TYPES and argument.type == TEXT:
        return argument
    if kind == exp.DType.BOOLEAN and argument.type == BOOLEAN:
        return argument
    if isinstance(argument, Literal) and isinstance(argument.value, str) and kind in _TEMPORAL:
        return conversion.temporal(argument.value, _TEMPORAL[kind])
    name = kind.value if isinstance(kind, exp.DType) else "that type"
    raise refusal(rows, node, f"A cast of {describe(argument.type)} to {name} is not answered", _CASTS)


_CASTS = "Cast numbers to DOUBLE or an integer type, and constants to DATE or TIMESTAMP."
_TEMPORAL = {exp.DType.DATE: DATE, exp.DType.TIMESTAMP: TIMESTAMP, exp.DType.TIMESTAMPNTZ: TIMESTAMP}
_INTEGERS = {
    kind: (name, -(2 ** (bits - 1)) if signed else 0, 2 ** (bits - signed) - 1)
    for kind, name, bits, signed in (
        (exp.DType.TINYINT, "TINYINT", 8, True),
        (exp.DType.SMALLINT, "SMALLINT", 16, True),
        (exp.DType.INT, "INTEGER", 32, True),
        (exp.DType.BIGINT, "BIGINT", 64, True),
        (exp.DType.INT128, "HUGEINT", 128, True),
        (exp.DType.UTINYINT, "UTINYINT", 8, False),
        (exp.DType.USMALLINT, "USMALLINT", 16, False),
        (exp.DType.UINT, "UINTEGER", 32, False),
        (exp.DType.UBIGINT, "UBIGINT", 64, False),
    )
}


def _paren(node: exp.Expression, rows: Rows) -> Expression:
    only(rows, node, "this")
    return bind_expression(node.this, rows)


Handler = Callable[[exp.Expression, Rows], Expression]
HANDLERS: Mapping[type[exp.Expression], Handler] = {
    exp.Column: lambda node, rows: rows.column(node),
    exp.Literal: literal,
    exp.Boolean: literal,
    exp.Null: literal,
    exp.Paren: _paren,
    exp.Add: _binary(arithmetic.add),
    exp.Sub: _binary(arithmetic.subtract),
    exp.Mul: _binary(arithmetic.multiply),
    exp.Div: _binary(arithmetic.divide, "typed", "safe"),
    exp.Neg: _unary(arithmetic.negate),
    exp.Abs: _unary(arithmetic.absolute),
    exp.Floor: _unary(arithmetic.floor_to),
    exp.Ceil: _unary(arithmetic.ceiling),
    exp.Round: _round,
    exp.Least: _variadic(arithmetic.smallest, "ignore_nulls"),
    exp.Greatest: _variadic(arithmetic.largest, "ignore_nulls"),
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
    exp.Like: _like,
    exp.Cast: _cast,
    exp.TryCast: _cast,
}
