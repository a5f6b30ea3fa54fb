"""Turn a syntax tree into a plan, reading the catalog only.

Every node kind and every argument of it is on an allow-list; what is not understood is refused with its position and
a remedy. Row expressions are bound in `calls`, aggregates and what is derived from them in `outputs`; this module binds
the clauses around them: the table, the filter, the keys, the order.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from lapwing.catalog.model import Catalog
from lapwing.errors import QueryRefused
from lapwing.query.calls import bind_expression, exact_number
from lapwing.query.derived import Average, Derived, KeyValue, Order, Output, Released, measures_of
from lapwing.query.expression import Column, Expression
from lapwing.query.keys import Key
from lapwing.query.measures import Count, CountUnits, Measure, Sum
from lapwing.query.outputs import Scope, derived
from lapwing.query.parse import parse
from lapwing.query.plan import Plan, Question
from lapwing.query.rows import Rows, is_column, only, refusal, same_name
from lapwing.query.types import BOOLEAN, describe

MAX_CELLS = 1_000_000
MAX_OUTPUTS = 200


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
    only(nowhere, node.this, "this", "quoted")
    alias = node.args.get("alias")
    if alias is not None:
        only(nowhere, alias, "this")
        only(nowhere, alias.this, "this", "quoted")
    for table in catalog.tables:
        if same_name(node.this, table.name):
            return Rows(text=text, table=table, alias=alias.name if alias is not None else None)
    raise refusal(nowhere, node, f"There is no table '{node.name}'", f"Tables: {known}.")


def _where(select: exp.Select, rows: Rows) -> Expression | None:
    clause = select.args.get("where")
    if clause is None:
        return None
    only(rows, clause, "this")
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
        return chosen.this if type(chosen) is exp.Alias else chosen
    if is_column(node) and not any(same_name(node.this, column.name) for column in rows.table.columns):
        for item in select.expressions:
            if type(item) is exp.Alias and same_name(node.this, item.alias):
                aliased: exp.Expression = item.this
                return aliased
    return node


def _key(node: exp.Expression, rows: Rows) -> Key:
    if not is_column(node):
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
        if type(item) is exp.Alias:
            only(scope.rows, item, "this", "alias")
            only(scope.rows, item.args["alias"], "this", "quoted")
            value, name = derived(item.this, scope), item.alias
            if name.casefold() in taken:
                raise refusal(scope.rows, item, f"Two columns of the answer are called '{name}'", "Rename one.")
        else:
            value = derived(item, scope)
            name = _free(_default_name(value), taken)
        taken.add(name.casefold())
        outputs.append(Output(name=name, value=value))
    _refuse_names_of_ends(outputs)
    return tuple(outputs)


def _refuse_names_of_ends(outputs: Sequence[Output]) -> None:
    """Keep the names that exports give to the ends of a noisy column's interval free for them."""
    names = {output.name.casefold() for output in outputs}
    for output in outputs:
        for end in (f"{output.name}_low", f"{output.name}_high"):
            if measures_of(output.value) and end.casefold() in names:
                raise QueryRefused(
                    f"'{end}' is the name of an end of the interval of '{output.name}'", remedy="Rename one."
                )


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
    only(scope.rows, clause, "this")
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
