"""Bind expressions over one row: syntax nodes become checked expressions, by an allow-list of nodes and arguments."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions import arithmetic, casts, conversion, logic, strings, temporal
from lapwing.query.expressions.as_read import as_read, null_alike, with_read
from lapwing.query.expressions.attempts import VALUES
from lapwing.query.expressions.expression import ColumnReference, Expression, Literal, Operation, walk
from lapwing.query.expressions.library import ANONYMOUS, CLOCK_REMEDY, CLOCKS, LIBRARY, Signature
from lapwing.query.expressions.logic import NULL_LITERAL
from lapwing.query.expressions.naming import name_of, remedy_of
from lapwing.query.expressions.rows import RowScope, attempted, is_column, refused_as, require_present
from lapwing.query.expressions.types import BOOLEAN, TEXT, Real, is_temporal
from lapwing.query.expressions.unknown_names import unknown_function
from lapwing.query.expressions.weight import bearable, require_small
from lapwing.query.text.converted import STYLED
from lapwing.query.text.literals import has_size_of_constants


def bind_expression(node: exp.Expression, rows: RowScope) -> Expression:
    """Turn a syntax node into a checked expression over one row, or refuse it at its position."""
    require_present(node)
    ready = rows.ready(node)
    if ready is not None:
        return ready
    handler = HANDLERS.get(type(node))
    if handler is None:
        raise rows.refusal(
            node, RefusalCause.FUNCTION_NOT_SUPPORTED, f"{name_of(node)} is not supported here", remedy_of(node)
        )
    with rows.pointing(node):
        return bearable(require_small(_seen(handler, node, rows)))


def bind_both(node: exp.Expression, rows: RowScope) -> Expression:
    """Bind an expression that may be summed or asked about: it knows what it is of values as they are read."""
    value = bind_expression(node, rows)
    if value.read is not None or rows.mode != "value":
        return value
    if not any(isinstance(part, ColumnReference) and (part.read or part.cleaned) for part in walk(value)):
        return value
    read = attempted(VALUES, bind_expression, node, rows.seen("read"))
    return value if isinstance(read, QueryRefused) else with_read(value, read)


def _seen(handler: "Handler", node: exp.Expression, rows: RowScope) -> Expression:
    """Bind a node in its mode: what is compared as it is read, if that is total (`as_read`)."""
    kind, wide = type(node), None
    if kind in _LOOKING and rows.mode != "bounded":
        wide = rows.seen("read")
    elif rows.mode == "value" and (kind in _ROUNDING or casts.rounds(node)):
        wide = rows.seen("within")
    if wide is not None:
        value = attempted(VALUES, handler, node, wide)
        if not isinstance(value, QueryRefused):
            return value
    if kind in _LOOKING:
        return handler(node, rows.seen("bounded"))
    return handler(node, rows if kind in _PASSING else computing(rows))


def computing(rows: RowScope) -> RowScope:
    """Return rows as what computes something of their values sees them."""
    return rows.seen("computed") if rows.mode == "read" else rows


def ordered_by(node: exp.Expression, rows: RowScope) -> Expression:
    """Bind what rows of a unit are ordered by: doubles as they are read, as steps would make some equal."""
    value = bind_both(node, rows)
    return as_read(value) if isinstance(as_read(value).type, Real) else value


def looked_at(node: exp.Expression, rows: RowScope) -> Expression:
    """Bind what is compared with something, which is bound elsewhere."""
    if rows.mode != "bounded":  # where it was refused once, to try again would double the work at every level
        read = attempted(VALUES, bind_expression, node, rows.seen("read"))
        if not isinstance(read, QueryRefused):
            return read
    return bind_expression(node, rows.seen("bounded"))


def counted(node: exp.Expression, rows: RowScope) -> Expression:
    """Bind what is counted where it is not NULL: as it is read, if it is missing in other rows then."""
    value = bind_expression(node, rows)
    if rows.mode != "value":
        return value
    read = looked_at(node, rows)
    return value if null_alike(read, value) else read


def literal(node: exp.Expression, rows: RowScope) -> Expression:
    """Bind a constant."""
    rows.only(node, "this", "is_string")
    if isinstance(node, exp.Null):
        return NULL_LITERAL
    if isinstance(node, exp.Boolean):
        return Literal(value=bool(node.this), type=BOOLEAN)
    if node.is_string:
        return Literal(value=str(node.this), type=TEXT)
    return conversion.number(exact_number(str(node.this), node, rows))


def exact_number(text: str, node: exp.Expression, rows: RowScope) -> Fraction:
    """Read a numeric constant exactly, whatever its exponent."""
    rows.only(node, "this", "is_string")
    try:
        value = Decimal(text)
        readable = value.is_finite() and has_size_of_constants(value)
    except ArithmeticError:
        readable = False
    if not readable:
        raise rows.refusal(
            node, RefusalCause.INVALID_NUMBER, f"'{text[:40]}' is not a number in range", "Use numbers up to 1e30."
        )
    return Fraction(value)


def _unary(rule: Callable[[Expression], Expression]) -> Callable[[exp.Expression, RowScope], Expression]:
    def bind(node: exp.Expression, rows: RowScope) -> Expression:
        rows.only(node, "this")
        return rule(bind_expression(node.this, rows))

    return bind


def _binary(
    rule: Callable[[Expression, Expression], Expression], *ignored: str
) -> Callable[[exp.Expression, RowScope], Expression]:
    def bind(node: exp.Expression, rows: RowScope) -> Expression:
        rows.only(node, "this", "expression", *ignored)
        return rule(bind_expression(node.this, rows), bind_expression(node.expression, rows))

    return bind


def _chain(rule: Callable[..., Expression]) -> Callable[[exp.Expression, RowScope], Expression]:
    """Bind a chain of ANDs, or of ORs, as one, whatever its parentheses."""

    def bind(node: exp.Expression, rows: RowScope) -> Expression:
        conditions, pending = [], [node]
        while pending:
            part = pending.pop()
            inner = _unwrapped(part, rows)
            if type(inner) is type(node) and (inner is node or rows.ready(inner) is None):
                rows.only(inner, "this", "expression")
                pending += [inner.expression, inner.this]
            else:
                conditions.append(bind_expression(part, rows))
        return rule(*conditions)

    return bind


def _unwrapped(node: exp.Expression, rows: RowScope) -> exp.Expression:
    while type(node) is exp.Paren and rows.ready(node) is None:
        rows.only(node, "this")
        node = node.this
    return node


def _variadic(rule: Callable[..., Expression], *ignored: str) -> Callable[[exp.Expression, RowScope], Expression]:
    def bind(node: exp.Expression, rows: RowScope) -> Expression:
        rows.only(node, "this", "expressions", *ignored)
        return rule(*(bind_expression(part, rows) for part in (node.this, *node.expressions)))

    return bind


def _comparison(symbol: str) -> Callable[[exp.Expression, RowScope], Expression]:
    return _binary(lambda left, right: logic.compare(symbol, left, right))


def _between(node: exp.Expression, rows: RowScope) -> Expression:
    rows.only(node, "this", "low", "high", "symmetric")
    value, low, high = (bind_expression(node.args[part], rows) for part in ("this", "low", "high"))
    inside = logic.between(value, low, high)
    return logic.either(inside, logic.between(value, high, low)) if node.args.get("symmetric") else inside


def _member(node: exp.Expression, rows: RowScope) -> Expression:
    rows.only(node, "this", "expressions")
    argument = bind_expression(node.this, rows)
    choices = [conversion.folded(bind_expression(choice, rows)) for choice in node.expressions]

    def at_the_first_misfit(refused: QueryRefused) -> QueryRefused:
        for choice, written in zip(choices, node.expressions, strict=True):
            with rows.pointing(written):
                _among(argument, [choice])
        return refused

    with refused_as(at_the_first_misfit):
        return _among(argument, choices)


def _among(argument: Expression, choices: list[Expression]) -> Expression:
    if choices and not all(isinstance(choice, Literal) for choice in choices):
        return logic.either(*(logic.compare("=", argument, choice) for choice in choices))
    return logic.member(argument, choices)


def _like(node: exp.Expression, rows: RowScope, escape: Expression | None = None) -> Expression:
    rows.only(node, "this", "expression", "negate")
    argument, together = bind_expression(node.this, rows), _PATTERNS.get(type(node.expression), logic.both)
    patterns = [bind_expression(pattern, rows) for pattern in _patterns(node, rows)]
    matched = together(*(strings.like(argument, p, escape, case=isinstance(node, exp.Like)) for p in patterns))
    return logic.negation(matched) if node.args.get("negate") else matched


_PATTERNS = {exp.Any: logic.either, exp.All: logic.both}


def _patterns(node: exp.Expression, rows: RowScope) -> list[exp.Expression]:
    """Return the pattern of a LIKE, or those of LIKE ANY (…) and LIKE ALL (…)."""
    if type(node.expression) not in _PATTERNS:
        return [node.expression]
    rows.only(node.expression, "this")
    listed = node.expression.this
    if node.args.get("negate") or isinstance(node.parent, exp.Not):
        raise rows.refusal(
            node,
            RefusalCause.FUNCTION_NOT_SUPPORTED,
            "NOT LIKE ANY has two meanings",
            "Write NOT (x LIKE ANY ('A%', 'B%')).",
        )
    if isinstance(listed, exp.Paren):
        return [listed.this]
    if not isinstance(listed, exp.Tuple) or not listed.expressions:
        raise rows.refusal(
            node, RefusalCause.INVALID_ARGUMENT, "LIKE ANY takes a list of patterns", "Write x LIKE ANY ('A%', 'B%')."
        )
    rows.only(listed, "expressions")
    return list(listed.expressions)


def _escape(node: exp.Expression, rows: RowScope) -> Expression:
    rows.only(node, "this", "expression")
    if type(node.this) not in (exp.Like, exp.ILike):
        raise rows.refusal(
            node, RefusalCause.CLAUSE_NOT_SUPPORTED, "ESCAPE belongs to LIKE", "Write x LIKE '50!%' ESCAPE '!'."
        )
    return _like(node.this, rows, bind_expression(node.expression, rows))


def _is(node: exp.Expression, rows: RowScope) -> Expression:
    rows.only(node, "this", "expression")
    rows.only(node.expression, "this")
    if isinstance(node.expression, exp.Null):
        return logic.is_null(_either(node.this, rows))
    if isinstance(node.expression, exp.Boolean):
        argument = looked_at(node.this, rows)
        condition = argument if node.expression.this else logic.negation(argument)
        return logic.coalesce(condition, Literal(value=False, type=BOOLEAN))
    raise rows.refusal(node, RefusalCause.INVALID_ARGUMENT, "IS takes NULL, TRUE or FALSE")


def _either(node: exp.Expression, rows: RowScope) -> Expression:
    """Bind what is asked whether it is NULL: within bounds, where that is NULL in the same rows."""
    read = looked_at(node, rows)
    if rows.mode == "bounded":
        return read
    value = attempted(VALUES, bind_expression, node, rows.seen("bounded"))
    if isinstance(value, QueryRefused):
        return read
    return (value if value.read is None else replace(value, read=None)) if null_alike(read, value) else read


def _case(node: exp.Expression, rows: RowScope) -> Expression:
    rows.only(node, "this", "ifs", "default")
    chosen = looked_at(node.this, rows) if node.this is not None else None
    if chosen is not None and _size(chosen) * len(node.args["ifs"]) > _MOST_REPEATED:  # every branch repeats it
        raise rows.refusal(
            node,
            RefusalCause.QUERY_TOO_COMPLEX,
            "CASE x WHEN repeats a long x too often",
            "Write CASE WHEN condition THEN ….",
        )
    conditions: list[Expression] = []
    for branch in node.args["ifs"]:
        rows.only(branch, "this", "true")
        condition = bind_expression(branch.this, rows)
        if not conditions and chosen is None and logic.always(condition):  # nothing else is ever computed
            return bind_expression(branch.args["true"], rows)
        conditions.append(condition if chosen is None else logic.compare("=", chosen, condition))
    values = [bind_expression(branch.args["true"], rows) for branch in node.args["ifs"]]
    default = node.args.get("default")
    return logic.case(conditions, values, bind_expression(default, rows) if default else NULL_LITERAL)


_MOST_REPEATED = 500


def _size(expression: Expression) -> int:
    """Return how many parts an expression has, or more than may be repeated if it has a CASE, which repeats too."""
    if not isinstance(expression, Operation):
        return 1
    if expression.function == "case":
        return _MOST_REPEATED + 1
    return 1 + sum(map(_size, expression.arguments))


def _if(node: exp.Expression, rows: RowScope) -> Expression:
    rows.only(node, "this", "true", "false")
    condition, chosen = bind_expression(node.this, rows), bind_expression(node.args["true"], rows)
    otherwise = node.args.get("false")
    return logic.case([condition], [chosen], bind_expression(otherwise, rows) if otherwise else NULL_LITERAL)


def _null_if(node: exp.Expression, rows: RowScope) -> Expression:
    rows.only(node, "this", "expression")
    return _unless(node.this, node.expression, rows)


def _unless(value: exp.Expression, other: exp.Expression, rows: RowScope) -> Expression:
    """Bind a value that is NULL where it equals another: both are looked at as they are read."""
    own = bind_expression(value, rows)
    if rows.mode in ("bounded", "read"):  # one form of all
        own = own if own.read is None else replace(own, read=None)
        return logic.null_if(own, own, bind_expression(other, rows))
    return logic.null_if(own, looked_at(value, rows), looked_at(other, rows))


def _added(sign: int) -> Callable[[exp.Expression, RowScope], Expression]:
    """Add or subtract: numbers, dates and days, dates and intervals."""

    def bind(node: exp.Expression, rows: RowScope) -> Expression:
        rows.only(node, "this", "expression")
        sides = [(part, _unwrapped(part, rows)) for part in (node.this, node.expression)]
        left, right = (inner if type(inner) is exp.Interval else part for part, inner in sides)
        if isinstance(left, exp.Interval) and sign > 0:
            left, right = right, left
        if isinstance(right, exp.Interval):
            rows.only(right, "this", "unit", "fraction_in_string")
            if right.args.get("unit") is None or right.args.get("fraction_in_string"):
                from lapwing.query.expressions.time_calls import shifted  # here: most have one unit

                return shifted(bind_expression(left, rows), right, rows, sign)
            unit = word_of(right.args.get("unit"), right, rows)
            return temporal.shift(bind_expression(left, rows), unit, _amount(right, rows), sign)
        return summed(bind_expression(left, rows), bind_expression(right, rows), sign)

    return bind


def summed(first: Expression, second: Expression, sign: int) -> Expression:
    """Add or subtract two values, neither of which is an interval; two texts are joined, as in SQL Server."""
    if sign > 0 and TEXT == first.type == second.type:
        return strings.join(first, second)
    if is_temporal(second.type) and not is_temporal(first.type) and sign > 0:
        first, second = second, first
    if is_temporal(first.type):
        if not is_temporal(second.type) or sign > 0:
            return temporal.shift_days(first, second, sign)
        if first.type.name == second.type.name == "date":  # type: ignore[union-attr]
            return temporal.days_between(first, second)
        from lapwing.query.expressions.instants import seconds_between  # here: few queries subtract times

        return seconds_between(first, second)
    return (arithmetic.add if sign > 0 else arithmetic.subtract)(first, second)


def _shifted(sign: int) -> Callable[[exp.Expression, RowScope], Expression]:
    """Bind DATE_ADD(x, INTERVAL 3 DAY) and its like; a number is of days."""

    def bind(node: exp.Expression, rows: RowScope) -> Expression:
        if node.args.get("unit") is not None:
            raise rows.refusal(
                node, RefusalCause.INVALID_ARGUMENT, f"{name_of(node)} takes an INTERVAL", "Write x + INTERVAL 3 DAY."
            )
        if isinstance(node.this, exp.Interval):
            raise rows.refusal(
                node, RefusalCause.INVALID_ARGUMENT, f"{name_of(node)} takes a date first", "Write x + INTERVAL 3 DAY."
            )
        return _added(sign)(node, rows)

    return bind


def _amount(interval: exp.Expression, rows: RowScope) -> Expression:
    node = interval.this
    if isinstance(node, exp.Literal) and node.is_string:
        rows.only(node, "this", "is_string")
        return conversion.number(exact_number(str(node.this), node, rows))
    return bind_expression(node, rows)


def _cast(node: exp.Expression, rows: RowScope) -> Expression:
    rows.only(node, "this", "to", "safe")
    argument, target = bind_expression(node.this, rows), node.args["to"]
    if target.args.get("expressions") and target.this != exp.DType.DECIMAL:
        raise rows.refusal(
            node,
            RefusalCause.CAST_NOT_SUPPORTED,
            "A cast to a type with parameters is not supported",
            "Leave them out.",
        )
    rows.only(target, "this", "expressions")
    listed = target.args.get("expressions") or []
    if len(listed if isinstance(listed, list) else [listed]) > 2:
        raise rows.refusal(
            node, RefusalCause.WRONG_ARGUMENT_COUNT, "DECIMAL takes two parameters", "Write DECIMAL(10, 2)."
        )
    parameters = [_parameter(part, node, rows) for part in (listed if isinstance(listed, list) else [listed])]
    return casts.cast(argument, target.this, parameters, attempt=isinstance(node, exp.TryCast))


def _parameter(node: exp.Expression, around: exp.Expression, rows: RowScope) -> int:
    rows.only(node, "this")
    rows.only(node.this, "this", "is_string")
    text = str(node.this.this) if type(node.this) is exp.Literal and not node.this.is_string else ""
    if not text.isdecimal() or int(text) > 38:
        raise rows.refusal(
            around, RefusalCause.INVALID_ARGUMENT, "A type takes whole constants up to 38", "Write DECIMAL(10, 2)."
        )
    return int(text)


def _call(signature: Signature) -> Callable[[exp.Expression, RowScope], Expression]:
    """Bind a function of the library by the names of its arguments."""

    def bind(node: exp.Expression, rows: RowScope) -> Expression:
        rows.only(
            node,
            *signature.words,
            *signature.flags,
            *signature.needed,
            *signature.optional,
            *signature.rest,
            *signature.ignored,
        )
        words: list[object] = [word_of(node.args.get(name), node, rows) for name in signature.words]
        # In DATE_TRUNC(x, MONTH) the parser takes the column for the unit.
        swapped = words and not temporal.is_unit(str(words[0]))
        if swapped and any(is_column(part) and temporal.is_unit(part.name) for part in node.args.values()):
            remedy = "Write DATE_TRUNC('month', x) and DATE_DIFF('day', earlier, later)."
            raise rows.refusal(
                node, RefusalCause.INVALID_ARGUMENT, f"{name_of(node)} takes the unit of time first", remedy
            )
        words += [str(node.args.get(name) or "") for name in signature.flags]
        arguments = [node.args.get(name) for name in (*signature.needed, *signature.optional)]
        if any(part is None for part in arguments[: len(signature.needed)]):
            raise rows.refusal(
                node,
                RefusalCause.WRONG_ARGUMENT_COUNT,
                f"{name_of(node)} needs more arguments",
                "See the SQL reference.",
            )
        arguments += [part for name in signature.rest for part in node.args.get(name) or []]
        return signature.rule(*words, *(None if part is None else bind_expression(part, rows) for part in arguments))

    return bind


def word_of(node: object, around: exp.Expression, rows: RowScope) -> str:
    """Return a parameter that is written as a word, like the unit of an interval."""
    if isinstance(node, exp.Var | exp.Literal) and isinstance(node.this, str):
        rows.only(node, "this", "is_string")
        if isinstance(node, exp.Var) or node.is_string:
            return str(node.this)
    raise rows.refusal(
        around,
        RefusalCause.UNKNOWN_TIME_UNIT,
        f"{name_of(around)} takes a unit of time",
        "Write one like DAY, MONTH or YEAR.",
    )


def _unit_of(node: exp.Expression, around: exp.Expression, rows: RowScope) -> str:
    """Return a unit of time that is written like a column, as in DATEADD(month, 3, x)."""
    if is_column(node):
        rows.only(node, "this")
        return node.name
    return word_of(node, around, rows)


def _anonymous(node: exp.Expression, rows: RowScope) -> Expression:
    """Bind a function that the parser has no node for."""
    rows.only(node, "this", "expressions")
    name = node.name.upper()
    if name == "NULLIFZERO" and len(node.expressions) == 1:
        return _unless(node.expressions[0], exp.Literal.number(0), rows)
    if len(node.expressions) == 2 and name in _OF_TWO:
        from lapwing.query.expressions.time_calls import bind_by_format  # here: few queries have one

        if name in _PARTS and (
            part := _part_of_span(_unit_of(node.expressions[0], node, rows), node.expressions[1], rows)
        ):
            return part
        if (read := bind_by_format(node, rows)) is not None:
            return read
    if name == STYLED and [type(part) for part in node.expressions[1:]] == [exp.Literal, exp.Literal]:
        from lapwing.query.expressions.date_styles import styled  # here: few queries have one

        value, style, target = node.expressions
        with rows.pointing(node):
            return styled(bind_expression(value, rows), exact_number(style.name, style, rows), target.name)
    if name in ANONYMOUS:
        rule, words, counts = ANONYMOUS[name]
        parts = node.expressions
        if len(parts) - words not in counts:
            expected = " or ".join(str(words + count) for count in counts)
            raise rows.refusal(
                node, RefusalCause.WRONG_ARGUMENT_COUNT, f"{name} takes {expected} arguments", remedy_of(node)
            )
        units = [_unit_of(part, node, rows) for part in parts[:words]]
        return rule(*units, *(bind_expression(part, rows) for part in parts[words:]))
    if name in CLOCKS:
        return _clock(node, rows)
    if name == "DATE_SUB" and len(node.expressions) == 2 and isinstance(node.expressions[1], exp.Interval):
        return _added(-1)(exp.Sub(this=node.expressions[0], expression=node.expressions[1]), rows)
    raise unknown_function(node, rows, HANDLERS)


def _of_time(node: exp.Expression, rows: RowScope) -> Expression:
    from lapwing.query.expressions.time_calls import TIME_CALLS  # here: few queries have one

    return TIME_CALLS[type(node)](node, rows)


def _field(node: exp.Expression, rows: RowScope) -> Expression:
    from lapwing.query.expressions.json_fields import field_of_json  # here: few queries have one

    inner, path = field_of_json(node, rows)
    return strings.json_field(bind_expression(inner, rows), path)


def _value_of_json(node: exp.Expression, rows: RowScope) -> Expression:
    from lapwing.query.expressions.json_fields import field_of_json  # here: few queries have one

    rows.only(node, "this", "path")
    inner, path = field_of_json(exp.JSONExtractScalar(this=node.this, expression=node.args["path"]), rows)
    return strings.json_field(bind_expression(inner, rows), path, simple=True)


def _extract(node: exp.Expression, rows: RowScope) -> Expression:
    """Bind a part of a time, of a difference of times or of an AGE."""
    rows.only(node, "this", "expression")
    part = _part_of_span(word_of(node.this, node, rows), node.expression, rows)
    return _call(LIBRARY[exp.Extract])(node, rows) if part is None else part


def _part_of(unit: str) -> Callable[[exp.Expression, RowScope], Expression]:
    def bind(node: exp.Expression, rows: RowScope) -> Expression:
        rows.only(node, "this")
        part = _part_of_span(unit, node.this, rows)
        return _call(LIBRARY[type(node)])(node, rows) if part is None else part

    return bind


def _part_of_span(unit: str, node: exp.Expression, rows: RowScope) -> Expression | None:
    inner = _unwrapped(node, rows)
    if not isinstance(inner, exp.Sub | exp.Anonymous):
        return None
    from lapwing.query.expressions.time_calls import part_of_span  # here: few queries have one

    return part_of_span(unit, inner, rows)


def _compared(symbol: str) -> Callable[[exp.Expression, RowScope], Expression]:
    """Compare two values, of which one may be a span of time."""
    plain = _comparison(symbol)

    def bind(node: exp.Expression, rows: RowScope) -> Expression:
        sides = [_unwrapped(side, rows) for side in (node.this, node.expression)]
        if not any(isinstance(side, exp.Interval | exp.Sub) for side in sides):
            return plain(node, rows)
        from lapwing.query.expressions.time_calls import compared_spans  # here: few queries have one

        rows.only(node, "this", "expression")
        return compared_spans(symbol, node, sides, rows)

    return bind


def _clock(node: exp.Expression, rows: RowScope) -> Expression:
    raise rows.refusal(
        node,
        RefusalCause.DEPENDS_ON_CLOCK,
        f"{name_of(node)} would change the result with the time of day",
        CLOCK_REMEDY,
    )


_PARTS = frozenset({"DATE_PART", "DATEPART"})
_OF_TWO = _PARTS | {"TO_DATE", "TRY_TO_DATE", "TRY_TO_TIMESTAMP", "TRY_STRPTIME", "PARSE_DATE", "PARSE_TIMESTAMP"}
Handler = Callable[[exp.Expression, RowScope], Expression]
HANDLERS: Mapping[type[exp.Expression], Handler] = {
    exp.Column: lambda node, rows: rows.column(node),
    exp.Literal: literal,
    exp.Boolean: literal,
    exp.Null: literal,
    exp.Paren: _unary(lambda inner: inner),
    exp.Add: _added(+1),
    exp.Sub: _added(-1),
    exp.DateAdd: _shifted(+1),
    exp.DatetimeAdd: _shifted(+1),
    exp.DatetimeSub: _shifted(-1),
    exp.TimestampAdd: _shifted(+1),
    exp.TimestampSub: _shifted(-1),
    exp.Mul: _binary(arithmetic.multiply),
    exp.Div: _binary(arithmetic.divide, "typed", "safe"),
    exp.Neg: _unary(arithmetic.negate),
    exp.Abs: _unary(arithmetic.absolute),
    exp.Floor: _unary(arithmetic.floor_to),
    exp.Ceil: _unary(arithmetic.ceiling),
    exp.If: _if,
    exp.Least: _variadic(arithmetic.smallest, "ignore_nulls"),
    exp.Greatest: _variadic(arithmetic.largest, "ignore_nulls"),
    exp.Coalesce: _variadic(logic.coalesce),
    exp.Case: _case,
    exp.EQ: _compared("="),
    exp.NEQ: _compared("<>"),
    exp.LT: _compared("<"),
    exp.LTE: _compared("<="),
    exp.GT: _compared(">"),
    exp.GTE: _compared(">="),
    exp.And: _chain(logic.both),
    exp.Or: _chain(logic.either),
    exp.Not: _unary(logic.negation),
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
    **{kind: _call(signature) for kind, signature in LIBRARY.items()},
    exp.Nullif: _null_if,
    exp.Extract: _extract,
    exp.JSONExtractScalar: _field,
    exp.JSONValue: _value_of_json,
    exp.Year: _part_of("year"),
    exp.TimeToUnix: _part_of("epoch"),
    **dict.fromkeys((exp.AtTimeZone, exp.DateBin, exp.StrToTime, exp.UnixToTime), _of_time),
}

_LOOKING: frozenset[type[exp.Expression]] = frozenset(
    {exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.NullSafeEQ, exp.NullSafeNEQ,
     exp.EqualNull, exp.Like, exp.ILike, exp.RegexpLike, exp.RegexpFullMatch, exp.StartsWith, exp.EndsWith,
     exp.Contains}
)  # fmt: skip
"""Nodes that look at values and are none of them."""
_ROUNDING: frozenset[type[exp.Expression]] = frozenset(
    {exp.Floor, exp.Ceil, exp.Round, exp.Trunc, exp.Sign, exp.Mod, exp.WidthBucket}
)
"""Functions that jump: a value that was moved by half a step may be worth one less."""
_PASSING: frozenset[type[exp.Expression]] = frozenset(
    {exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Case, exp.If, exp.Least, exp.Greatest,
     exp.Coalesce, exp.Nullif, exp.And, exp.Or, exp.Not, exp.Is}
)  # fmt: skip
"""Nodes whose value is one of theirs, or a condition's."""
