"""Turn a syntax tree into a plan, reading the catalog only.

Every node kind and every argument of it is on an allow-list; what is not understood is refused with its position and
a remedy. Row expressions are bound in `rows`; this module binds what surrounds them: the table, the keys, the
aggregates, and the post-processing over them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from lapwing.catalog.model import Catalog
from lapwing.errors import QueryRefused
from lapwing.query import functions
from lapwing.query.derive import compute
from lapwing.query.expression import Column, Constant, Expression, is_number
from lapwing.query.parse import parse
from lapwing.query.plan import (
    Average,
    Count,
    CountUnits,
    Derived,
    Fixture,
    Key,
    KeyValue,
    Measure,
    Order,
    Output,
    Plan,
    Question,
    Released,
    Shape,
    Sum,
    measures_of,
)
from lapwing.query.rows import Rows, bind_expression, exact_number, only, refusal, same_name
from lapwing.query.types import BOOLEAN, Fixed, Plain, Type, describe

MAX_CELLS = 1_000_000
MAX_OUTPUTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What the post-processing of an answer may refer to."""

    rows: Rows
    keys: tuple[Key, ...]
    aliases: Mapping[str, Derived]


def bind(text: str, catalog: Catalog) -> Plan:
    """Parse a question and return its plan.

    Raises: QueryRefused with reason, position and remedy; nothing has been read but the text and the catalog.
    """
    select = parse(text)
    rows = _source(select, text, catalog)
    only(rows, select, "expressions", "from_", "where", "group", "having", "order", "limit", "offset")
    where = _where(select, rows)
    scope = Scope(rows=rows, keys=_keys(select, rows), aliases={})
    _check_cells(scope.keys)
    outputs = _outputs(select, scope)
    named = replace(scope, aliases={output.name.casefold(): output.value for output in outputs})
    having = _having(select, named)
    order = _order(select, outputs, named)
    derived = [*(output.value for output in outputs), *([having] if having else []), *(term.value for term in order)]
    question = Question(
        table=rows.table,
        where=where,
        keys=tuple(sorted(scope.keys, key=str)),
        measures=_measures(derived),
    )
    return Plan(
        question=question,
        keys=scope.keys,
        outputs=outputs,
        having=having,
        order=order,
        limit=_whole(select, "limit", rows),
        offset=_whole(select, "offset", rows) or 0,
    )


def _measures(derived: Sequence[Derived]) -> tuple[Measure, ...]:
    """Collect every measure once, in canonical order, so that the order of the SELECT list does not matter."""
    found = {measure for value in derived for measure in measures_of(value)}
    if not found:
        raise QueryRefused(
            "The question has no aggregate, and rows are never shown",
            remedy="Ask for COUNT, SUM or AVG, with GROUP BY.",
        )
    return tuple(sorted(found, key=str))


# ---- FROM, WHERE, GROUP BY ------------------------------------------------------------------------------------------


def _source(select: exp.Select, text: str, catalog: Catalog) -> Rows:
    nowhere = Rows(text=text, table=catalog.tables[0])
    clause = select.args.get("from_")
    known = ", ".join(table.name for table in catalog.tables)
    if clause is None:
        raise refusal(nowhere, select, "The question has no FROM", f"Tables: {known}.")
    only(nowhere, clause, "this")
    node = clause.this
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise refusal(nowhere, node, "FROM takes one table of the catalog", f"Tables: {known}.")
    only(nowhere, node, "this", "alias")
    alias = node.args.get("alias")
    if alias is not None:
        only(nowhere, alias, "this")
    for table in catalog.tables:
        if same_name(node.this, table.name):
            return Rows(text=text, table=table, alias=alias.name if alias is not None else None)
    raise refusal(nowhere, node, f"There is no table '{node.name}'", f"Tables: {known}.")


def _where(select: exp.Select, rows: Rows) -> Expression | None:
    clause = select.args.get("where")
    if clause is None:
        return None
    condition = bind_expression(clause.this, rows)
    if condition.type != BOOLEAN:
        raise refusal(rows, clause, f"WHERE needs a condition, not {describe(condition.type)}", "Write a comparison.")
    return condition


def _keys(select: exp.Select, rows: Rows) -> tuple[Key, ...]:
    clause = select.args.get("group")
    if clause is None:
        return ()
    only(rows, clause, "expressions")
    keys = [_key(_aliased(node, select, rows), rows) for node in clause.expressions]
    return tuple(dict.fromkeys(keys))


def _aliased(node: exp.Expression, select: exp.Select, rows: Rows) -> exp.Expression:
    """Resolve GROUP BY 1 and GROUP BY alias to what the SELECT list says there."""
    if isinstance(node, exp.Literal) and not node.is_string:
        position = exact_number(str(node.this), node, rows)
        if position.denominator != 1 or not 1 <= position <= len(select.expressions):
            raise refusal(rows, node, f"There is no column {node.this} in the SELECT list")
        chosen: exp.Expression = select.expressions[int(position) - 1]
        return chosen.this if isinstance(chosen, exp.Alias) else chosen
    if isinstance(node, exp.Column) and not any(same_name(node.this, column.name) for column in rows.table.columns):
        for item in select.expressions:
            if isinstance(item, exp.Alias) and same_name(node.this, item.alias):
                aliased: exp.Expression = item.this
                return aliased
    return node


def _key(node: exp.Expression, rows: Rows) -> Key:
    if not isinstance(node, exp.Column):
        raise refusal(rows, node, "GROUP BY takes columns with public values", "Group by a column of the catalog.")
    if rows.is_unit(node):
        raise refusal(rows, node, "Grouping by the privacy unit would show each unit", "Group by another column.")
    column = rows.column(node)
    (declared,) = (declared for declared in rows.table.columns if declared.name == column.name)
    if declared.values is None:
        raise refusal(
            rows,
            node,
            f"The values of '{column.name}' are not public, so they may not appear as keys",
            f"Declare `values` of {rows.table.name}.{column.name} in the catalog, if they are public.",
        )
    values = tuple(Fraction(v) if isinstance(v, int) and not isinstance(v, bool) else v for v in declared.values)
    return Key(column=column, values=values, other=declared.other)


def _check_cells(keys: Sequence[Key]) -> None:
    cells = 1
    for key in keys:
        cells *= len(key.domain)
    if cells > MAX_CELLS:
        raise QueryRefused(
            f"GROUP BY spans {cells:,} cells, and every cell appears in the answer",
            remedy=f"Group by fewer or coarser columns: at most {MAX_CELLS:,} cells.",
        )


# ---- SELECT, HAVING, ORDER BY, LIMIT --------------------------------------------------------------------------------


def _outputs(select: exp.Select, scope: Scope) -> tuple[Output, ...]:
    if len(select.expressions) > MAX_OUTPUTS:
        raise QueryRefused(f"The SELECT list has more than {MAX_OUTPUTS} columns", remedy="Ask for fewer at a time.")
    outputs: list[Output] = []
    taken: set[str] = set()
    for item in select.expressions:
        if isinstance(item, exp.Alias):
            only(scope.rows, item, "this", "alias")
            value, name = derived(item.this, scope), item.alias
            if name.casefold() in taken:
                raise refusal(scope.rows, item, f"Two columns of the answer are called '{name}'", "Rename one.")
        else:
            value = derived(item, scope)
            name = _free(_default_name(value), taken)
        taken.add(name.casefold())
        outputs.append(Output(name=name, value=value))
    return tuple(outputs)


def _free(name: str, taken: set[str]) -> str:
    candidate, number = name, 2
    while candidate.casefold() in taken:
        candidate, number = f"{name}_{number}", number + 1
    return candidate


def _default_name(value: Derived) -> str:
    match value:
        case KeyValue():
            return value.key.column.name
        case Released(measure=Count() | CountUnits()):
            return "count"
        case Released(measure=Sum(argument=Column(name=name))):
            return f"sum_{name}"
        case Average(total=Sum(argument=Column(name=name))):
            return f"avg_{name}"
        case Released():
            return "sum"
        case Average():
            return "avg"
        case _:
            return "value"


def _having(select: exp.Select, scope: Scope) -> Derived | None:
    clause = select.args.get("having")
    if clause is None:
        return None
    condition = derived(clause.this, scope)
    if condition.shape != "boolean":
        raise refusal(scope.rows, clause, f"HAVING needs a condition, not {condition.shape}", "Write a comparison.")
    return condition


def _order(select: exp.Select, outputs: Sequence[Output], scope: Scope) -> tuple[Order, ...]:
    clause = select.args.get("order")
    if clause is None:
        return ()
    only(scope.rows, clause, "expressions")
    terms = []
    for node in clause.expressions:
        only(scope.rows, node, "this", "desc", "nulls_first")
        value = _ordinal(node.this, outputs, scope) or derived(node.this, scope)
        terms.append(
            Order(value=value, descending=bool(node.args.get("desc")), nulls_first=bool(node.args.get("nulls_first")))
        )
    return tuple(terms)


def _ordinal(node: exp.Expression, outputs: Sequence[Output], scope: Scope) -> Derived | None:
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    position = exact_number(str(node.this), node, scope.rows)
    if position.denominator != 1 or not 1 <= position <= len(outputs):
        raise refusal(scope.rows, node, f"There is no column {node.this} in the SELECT list to order by")
    return outputs[int(position) - 1].value


def _whole(select: exp.Select, name: str, rows: Rows) -> int | None:
    clause = select.args.get(name)
    if clause is None:
        return None
    only(rows, clause, "expression")
    node = clause.expression
    value = exact_number(str(node.this), node, rows) if isinstance(node, exp.Literal) and not node.is_string else None
    if value is None or value.denominator != 1 or not 0 <= value <= 10**9:
        raise refusal(rows, clause, f"{name.upper()} takes a whole number", f"Write {name.upper()} 10.")
    return int(value)


# ---- aggregates -----------------------------------------------------------------------------------------------------


def _count(node: exp.Expression, scope: Scope) -> Derived:
    rows = scope.rows
    only(rows, node, "this", "big_int")
    inner = node.this
    if isinstance(inner, exp.Star):
        only(rows, inner)
        return Released(measure=Count())
    if isinstance(inner, exp.Distinct):
        only(rows, inner, "expressions")
        if len(inner.expressions) == 1 and rows.is_unit(inner.expressions[0]):
            return Released(measure=CountUnits())
        unit = rows.table.privacy_unit
        remedy = f"COUNT(DISTINCT {unit}) is." if unit != "row" else "COUNT(*) is: the unit is a row."
        raise refusal(rows, node, "COUNT(DISTINCT …) of anything but the privacy unit is not answered", remedy)
    if inner is None:
        raise refusal(rows, node, "COUNT needs an argument", "Write COUNT(*).")
    if rows.is_unit(inner):  # rows without a unit do not exist
        return Released(measure=Count())
    argument = bind_expression(inner, rows)
    return Released(measure=Count(argument=argument) if functions.nullable(argument) else Count())


def _total(node: exp.Expression, scope: Scope) -> Sum:
    rows = scope.rows
    only(rows, node, "this")
    name = node.key.upper()
    if isinstance(node.this, exp.Distinct):
        raise refusal(rows, node, f"{name}(DISTINCT …) is not answered", f"Write {name}(x).")
    argument = bind_expression(node.this, rows)
    if not is_number(argument.type):
        raise refusal(rows, node, f"{name} needs a number, not {describe(argument.type)}")
    try:
        return Sum(argument=functions.summable(argument))
    except QueryRefused as refused:
        raise refusal(rows, node, f"{name}: {refused.reason[0].lower()}{refused.reason[1:]}", refused.remedy) from None


def _sum(node: exp.Expression, scope: Scope) -> Derived:
    return Released(measure=_total(node, scope))


def _average(node: exp.Expression, scope: Scope) -> Derived:
    """Bind AVG as a sum around the middle of the bounds, which halves what one row can change, over a count."""
    total = _total(node, scope)
    low, high = total.type.low or 0, total.type.high or 0
    counted = Count(argument=total.argument) if functions.nullable(total.argument) else Count()
    return Average(total=replace(total, origin=(low + high) // 2), count=counted)


# ---- post-processing ------------------------------------------------------------------------------------------------


def derived(node: exp.Expression, scope: Scope) -> Derived:
    """Bind an expression over aggregates and keys."""
    handler = HANDLERS.get(type(node))
    if handler is None:
        raise refusal(
            scope.rows,
            node,
            f"{node.sql_name() if isinstance(node, exp.Func) else node.key.upper()} is not answered here",
            "Use keys, COUNT, SUM, AVG, and arithmetic, comparisons, CASE, ROUND over them.",
        )
    try:
        return handler(node, scope)
    except QueryRefused as refused:
        if refused.position is not None:
            raise
        raise refusal(scope.rows, node, refused.reason, refused.remedy) from None


def _reference(node: exp.Expression, scope: Scope) -> Derived:
    rows = scope.rows
    if isinstance(node, exp.Column) and node.args.get("table") is None and isinstance(node.this, exp.Identifier):
        for key in scope.keys:
            if same_name(node.this, key.column.name):
                return KeyValue(key=key, shape=_shape_of(key.column.type))
        alias = scope.aliases.get(node.name.casefold())
        if alias is not None:
            return alias
    if rows.is_unit(node):
        raise refusal(rows, node, "The privacy unit is never shown", f"Use COUNT(DISTINCT {node.name}).")
    column = rows.column(node) if isinstance(node, exp.Column) else None
    for key in scope.keys:
        if key.column == column:
            return KeyValue(key=key, shape=_shape_of(key.column.type))
    raise refusal(rows, node, f"'{node.name}' is neither a key nor inside an aggregate", "Add it to GROUP BY.")


def _shape_of(kind: Type) -> Shape:
    if isinstance(kind, Plain):
        return kind.name
    return "integer" if isinstance(kind, Fixed) and kind.step.denominator == 1 else "decimal"


def _fixture(node: exp.Expression, scope: Scope) -> Derived:
    literal = bind_expression(node, scope.rows)
    value: Constant = getattr(literal, "value", None)
    return Fixture(value=value, shape=_shape_of(literal.type))


def _apply(function: str, *parts: str) -> Callable[[exp.Expression, Scope], Derived]:
    def handler(node: exp.Expression, scope: Scope) -> Derived:
        only(scope.rows, node, *parts, "typed", "safe", "ignore_nulls")
        nodes: list[exp.Expression] = []
        for part in parts:
            value = node.args.get(part)
            nodes.extend(value if isinstance(value, list) else [value] if value is not None else [])
        return compute(function, *(derived(child, scope) for child in nodes))

    return handler


def _between(node: exp.Expression, scope: Scope) -> Derived:
    only(scope.rows, node, "this", "low", "high")
    value, low, high = (derived(node.args[part], scope) for part in ("this", "low", "high"))
    return compute("and", compute(">=", value, low), compute("<=", value, high))


def _is(node: exp.Expression, scope: Scope) -> Derived:
    only(scope.rows, node, "this", "expression")
    if not isinstance(node.expression, exp.Null):
        raise refusal(scope.rows, node, "IS over the answer takes NULL", "Write IS NULL.")
    return compute("is_null", derived(node.this, scope))


def _case(node: exp.Expression, scope: Scope) -> Derived:
    only(scope.rows, node, "this", "ifs", "default")
    parts: list[Derived] = []
    for branch in node.args["ifs"]:
        only(scope.rows, branch, "this", "true")
        condition = derived(branch.this, scope)
        parts.append(compute("=", derived(node.this, scope), condition) if node.this is not None else condition)
        parts.append(derived(branch.args["true"], scope))
    default = node.args.get("default")
    return compute("case", *parts, derived(default, scope) if default else Fixture(value=None, shape="null"))


def _round(node: exp.Expression, scope: Scope) -> Derived:
    only(scope.rows, node, "this", "decimals")
    digits = node.args.get("decimals")
    if digits is None:
        return compute("round", derived(node.this, scope))
    places = _fixture(digits, scope) if isinstance(digits, exp.Literal | exp.Neg) else None
    value = places.value if isinstance(places, Fixture) else None
    if not isinstance(value, Fraction) or value.denominator != 1 or abs(value) > 12:
        raise refusal(scope.rows, node, "ROUND takes a whole number of digits up to 12", "Write ROUND(x, 2).")
    return compute("round", derived(node.this, scope), Fixture(value=value, shape="integer"))


def _paren(node: exp.Expression, scope: Scope) -> Derived:
    only(scope.rows, node, "this")
    return derived(node.this, scope)


HANDLERS: Mapping[type[exp.Expression], Callable[[exp.Expression, Scope], Derived]] = {
    exp.Count: _count,
    exp.Sum: _sum,
    exp.Avg: _average,
    exp.Column: _reference,
    exp.Literal: _fixture,
    exp.Boolean: _fixture,
    exp.Null: _fixture,
    exp.Paren: _paren,
    exp.Add: _apply("add", "this", "expression"),
    exp.Sub: _apply("subtract", "this", "expression"),
    exp.Mul: _apply("multiply", "this", "expression"),
    exp.Div: _apply("divide", "this", "expression"),
    exp.Neg: _apply("negate", "this"),
    exp.Abs: _apply("absolute", "this"),
    exp.Floor: _apply("floor", "this"),
    exp.Ceil: _apply("ceiling", "this"),
    exp.Round: _round,
    exp.Least: _apply("least", "this", "expressions"),
    exp.Greatest: _apply("greatest", "this", "expressions"),
    exp.Coalesce: _apply("coalesce", "this", "expressions"),
    exp.Case: _case,
    exp.EQ: _apply("=", "this", "expression"),
    exp.NEQ: _apply("<>", "this", "expression"),
    exp.LT: _apply("<", "this", "expression"),
    exp.LTE: _apply("<=", "this", "expression"),
    exp.GT: _apply(">", "this", "expression"),
    exp.GTE: _apply(">=", "this", "expression"),
    exp.In: _apply("in", "this", "expressions"),
    exp.And: _apply("and", "this", "expression"),
    exp.Or: _apply("or", "this", "expression"),
    exp.Not: _apply("not", "this"),
    exp.Between: _between,
    exp.Is: _is,
}
