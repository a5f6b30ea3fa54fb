"""Bind expressions over one row: syntax nodes become checked expressions, by an allow-list of nodes and arguments."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from lapwing.errors import QueryRefused
from lapwing.query import arithmetic, conversion, functions, instants, strings, temporal
from lapwing.query.expression import Expression, Literal, Operation
from lapwing.query.functions import NULL_LITERAL
from lapwing.query.library import ANONYMOUS, CLOCK_REMEDY, CLOCKS, LIBRARY, REMEDIES, Call
from lapwing.query.limits import require_small
from lapwing.query.rows import Rows, only, refusal
from lapwing.query.types import BOOLEAN, DATE, TEXT, TIMESTAMP, describe, is_temporal
from lapwing.query.weight import bearable


def bind_expression(node: exp.Expression, rows: Rows) -> Expression:
    """Turn a syntax node into a checked expression over one row, or refuse it at its position."""
    require_present(node)
    ready = rows.ready(node)
    if ready is not None:
        return ready
    handler = HANDLERS.get(type(node))
    if handler is None:
        raise refusal(rows, node, f"{name_of(node)} is not answered here", _ALLOWED)
    try:
        return bearable(require_small(handler(node, rows), node, rows))
    except QueryRefused as refused:
        if refused.position is not None:
            raise
        raise refusal(rows, node, refused.reason, refused.remedy) from None


def require_present(node: object) -> None:
    """Refuse what the parser let pass though something is missing, as after a NOT at the end."""
    if not isinstance(node, exp.Expression):
        raise QueryRefused("A part of the question is missing", remedy="Write what an operator or function applies to.")


_ALLOWED = "Use columns, constants, operators, CASE, CAST and the functions of the SQL reference."


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
        return NULL_LITERAL
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


def _like(node: exp.Expression, rows: Rows, escape: Expression | None = None) -> Expression:
    only(rows, node, "this", "expression", "negate")
    argument, pattern = bind_expression(node.this, rows), bind_expression(node.expression, rows)
    matched = strings.like(argument, pattern, escape, case=isinstance(node, exp.Like))
    return functions.negation(matched) if node.args.get("negate") else matched


def _escape(node: exp.Expression, rows: Rows) -> Expression:
    only(rows, node, "this", "expression")
    if type(node.this) not in (exp.Like, exp.ILike):
        raise refusal(rows, node, "ESCAPE belongs to LIKE", "Write x LIKE '50!%' ESCAPE '!'.")
    return _like(node.this, rows, bind_expression(node.expression, rows))


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
    if chosen is not None and _size(chosen) * len(node.args["ifs"]) > _MOST_REPEATED:  # every branch repeats it
        raise refusal(rows, node, "CASE x WHEN repeats a long x too often", "Write CASE WHEN condition THEN ….")
    conditions = []
    for branch in node.args["ifs"]:
        only(rows, branch, "this", "true")
        condition = bind_expression(branch.this, rows)
        conditions.append(condition if chosen is None else functions.compare("=", chosen, condition))
    values = [bind_expression(branch.args["true"], rows) for branch in node.args["ifs"]]
    default = node.args.get("default")
    return functions.case(conditions, values, bind_expression(default, rows) if default else NULL_LITERAL)


_MOST_REPEATED = 500


def _size(expression: Expression) -> int:
    """Return how many parts an expression has; more than can be repeated if it has a CASE, which repeats by itself."""
    if not isinstance(expression, Operation):
        return 1
    if expression.function == "case":
        return _MOST_REPEATED + 1
    return 1 + sum(map(_size, expression.arguments))


def _if(node: exp.Expression, rows: Rows) -> Expression:
    only(rows, node, "this", "true", "false")
    condition, chosen = bind_expression(node.this, rows), bind_expression(node.args["true"], rows)
    otherwise = node.args.get("false")
    return functions.case([condition], [chosen], bind_expression(otherwise, rows) if otherwise else NULL_LITERAL)


def _added(sign: int) -> Callable[[exp.Expression, Rows], Expression]:
    """Add or subtract: numbers, dates and days, dates and intervals."""

    def bind(node: exp.Expression, rows: Rows) -> Expression:
        only(rows, node, "this", "expression")
        left, right = node.this, node.expression
        if isinstance(left, exp.Interval) and sign > 0:
            left, right = right, left
        if isinstance(right, exp.Interval):
            only(rows, right, "this", "unit")
            unit = word_of(right.args.get("unit"), right, rows)
            return temporal.shift(bind_expression(left, rows), unit, _amount(right, rows), sign)
        first, second = bind_expression(left, rows), bind_expression(right, rows)
        if is_temporal(second.type) and not is_temporal(first.type) and sign > 0:
            first, second = second, first
        if is_temporal(first.type):
            between = is_temporal(second.type) and sign < 0
            return temporal.days_between(first, second) if between else temporal.shift_days(first, second, sign)
        return (arithmetic.add if sign > 0 else arithmetic.subtract)(first, second)

    return bind


def _date_add(node: exp.Expression, rows: Rows) -> Expression:
    if not isinstance(node.expression, exp.Interval):
        raise refusal(rows, node, "DATE_ADD takes an INTERVAL", "Write x + INTERVAL 3 DAY.")
    return _added(+1)(node, rows)


def _amount(interval: exp.Expression, rows: Rows) -> Expression:
    node = interval.this
    if isinstance(node, exp.Literal) and node.is_string:
        only(rows, node, "this", "is_string")
        return conversion.number(exact_number(str(node.this), node, rows))
    return bind_expression(node, rows)


def _cast(node: exp.Expression, rows: Rows) -> Expression:
    only(rows, node, "this", "to", "safe")
    argument, target = bind_expression(node.this, rows), node.args["to"]
    if target.expressions:
        raise refusal(rows, node, "A cast to a type with parameters is not answered", "Write ROUND(x, 2).")
    only(rows, target, "this")
    kind = target.this
    if isinstance(node, exp.TryCast) and argument.type == TEXT and kind in _INTEGERS:
        return functions.try_integer(argument, _INTEGERS[kind][0])
    if kind in _INTEGERS:
        return functions.to_integer(argument, *_INTEGERS[kind])
    if kind in (exp.DType.DOUBLE, exp.DType.FLOAT):
        return functions.try_number(argument) if isinstance(node, exp.TryCast) else functions.to_number(argument)
    if kind in (exp.DType.TEXT, exp.DType.VARCHAR):
        return strings.to_text(argument)
    if kind == exp.DType.BOOLEAN and argument.type == BOOLEAN:
        return argument
    if isinstance(argument, Literal) and isinstance(argument.value, str) and kind in _TEMPORAL:
        return conversion.temporal(argument.value, _TEMPORAL[kind])
    if kind in _TEMPORAL and is_temporal(argument.type):
        return instants.to_date(argument) if kind == exp.DType.DATE else instants.to_timestamp(argument)
    if kind in _TEMPORAL and argument.type == TEXT:
        if isinstance(node, exp.TryCast):
            return instants.read(argument, _TEMPORAL[kind])
        wanted = _TEMPORAL[kind].name
        raise refusal(rows, node, f"A cast of text to {wanted} can fail", f"Write TRY_CAST(x AS {wanted.upper()}).")
    name = kind.value if isinstance(kind, exp.DType) else "that type"
    raise refusal(rows, node, f"A cast of {describe(argument.type)} to {name} is not answered", _CASTS)


_CASTS = "Cast numbers to DOUBLE, integers or VARCHAR, dates to TIMESTAMP or VARCHAR; TRY_CAST texts."
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


def _called(call: Call) -> Callable[[exp.Expression, Rows], Expression]:
    """Bind a function of the library by the names of its arguments."""

    def bind(node: exp.Expression, rows: Rows) -> Expression:
        only(rows, node, *call.words, *call.flags, *call.needed, *call.optional, *call.rest, *call.ignored)
        words: list[object] = [word_of(node.args.get(name), node, rows) for name in call.words]
        words += [str(node.args.get(name) or "") for name in call.flags]
        given = [node.args.get(name) for name in (*call.needed, *call.optional)]
        if any(part is None for part in given[: len(call.needed)]):
            raise refusal(rows, node, f"{name_of(node)} needs more arguments")
        given += [part for name in call.rest for part in node.args.get(name) or []]
        return call.rule(*words, *(None if part is None else bind_expression(part, rows) for part in given))

    return bind


def word_of(node: object, around: exp.Expression, rows: Rows) -> str:
    """Return a parameter that is written as a word, like the unit of an interval."""
    if isinstance(node, exp.Var | exp.Literal) and isinstance(node.this, str):
        only(rows, node, "this", "is_string")
        if isinstance(node, exp.Var) or node.is_string:
            return str(node.this)
    raise refusal(rows, around, f"{name_of(around)} takes a unit of time", "Write one like DAY, MONTH or YEAR.")


def _anonymous(node: exp.Expression, rows: Rows) -> Expression:
    """Bind a function that the parser has no node for."""
    only(rows, node, "this", "expressions")
    name = node.name.upper()
    if name in ANONYMOUS:
        rule, words, count = ANONYMOUS[name]
        parts = node.expressions
        if len(parts) != words + count:
            raise refusal(rows, node, f"{name} takes {words + count} arguments")
        given = [word_of(part, node, rows) for part in parts[:words]]
        return rule(*given, *(bind_expression(part, rows) for part in parts[words:]))
    if name in CLOCKS:
        return _clock(node, rows)
    raise refusal(rows, node, f"{name_of(node)} is not answered here", REMEDIES.get(name, _ALLOWED))


def _clock(node: exp.Expression, rows: Rows) -> Expression:
    raise refusal(rows, node, f"{name_of(node)} would change the answer with the time of day", CLOCK_REMEDY)


Handler = Callable[[exp.Expression, Rows], Expression]
HANDLERS: Mapping[type[exp.Expression], Handler] = {
    exp.Column: lambda node, rows: rows.column(node),
    exp.Literal: literal,
    exp.Boolean: literal,
    exp.Null: literal,
    exp.Paren: _paren,
    exp.Add: _added(+1),
    exp.Sub: _added(-1),
    exp.DateAdd: _date_add,
    exp.Mul: _binary(arithmetic.multiply),
    exp.Div: _binary(arithmetic.divide, "typed", "safe"),
    exp.Neg: _unary(arithmetic.negate),
    exp.Abs: _unary(arithmetic.absolute),
    exp.Floor: _unary(arithmetic.floor_to),
    exp.Ceil: _unary(arithmetic.ceiling),
    exp.If: _if,
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
    exp.ILike: _like,
    exp.Escape: _escape,
    exp.Anonymous: _anonymous,
    exp.CurrentDate: _clock,
    exp.CurrentTimestamp: _clock,
    exp.CurrentTime: _clock,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    **{kind: _called(call) for kind, call in LIBRARY.items()},
}
