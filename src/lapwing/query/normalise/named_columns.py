"""WITH f (p, w) AS (SELECT plan, COUNT(*) …): a common table expression with a list of names for its columns.

Each name is written at its item: WITH f AS (SELECT plan AS p, COUNT(*) AS w …). Both have the same columns in the same
order. A name inside must mean what it did before. So no clause may name what an item was called, or what it is
called now, unless that is the column itself.
"""

from collections.abc import Iterator, Sequence

from sqlglot import exp

from lapwing.query.expressions.rows import is_column, is_star, same_name
from lapwing.query.from_clause.listed_values import has_only
from lapwing.query.text.trees import nodes_of

_CLAUSES = ("where", "group", "having", "qualify", "windows", "order", "distinct")


def with_named_columns(table: exp.Expression) -> exp.Expression | None:
    """Return a table of WITH whose items have the names of its list; None if it has none, or they are not free."""
    alias, inner = table.args.get("alias"), table.this
    listed = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    names = [name for name in listed or () if type(name) is exp.Identifier]
    if not isinstance(alias, exp.TableAlias) or not names or len(names) != len(listed or ()):
        return None
    if not has_only(alias, "this", "columns"):
        return None
    if table.parent is None or table.parent.args.get("recursive"):  # its columns are named inside, too
        return None
    while isinstance(inner, exp.SetOperation) and not inner.args.get("order") and not inner.args.get("by_name"):
        inner = inner.this
    if not isinstance(inner, exp.Select) or len(inner.expressions) != len(names):
        return None
    if any(map(is_star, inner.expressions)) or not all(_is_free(inner, *pair) for pair in _pairs(inner, names)):
        return None
    items = [exp.alias_(item.unalias().copy(), name.copy()) for item, name in _pairs(inner, names)]
    inner.set("expressions", items)
    alias.set("columns", None)
    return table


def _pairs(select: exp.Select, names: Sequence[exp.Identifier]) -> Iterator[tuple[exp.Expression, exp.Identifier]]:
    return zip(select.expressions, names, strict=True)


def _is_free(select: exp.Select, item: exp.Expression, name: exp.Identifier) -> bool:
    """Tell whether nothing in a SELECT depends on what an item is called."""
    itself = item.unalias()
    kept = _is_plain(item) and same_name(name, itself.name)
    called = [name, *([item.args["alias"]] if isinstance(item, exp.Alias) else [])]
    named = [column for column in _named_in(select) if not column.text("table")]
    taken = [column for column in named if any(same_name(one, column.name) for one in called)]
    return all(kept and same_name(name, column.name) for column in taken)


def _named_in(select: exp.Select) -> Iterator[exp.Column]:
    """Yield the columns that are named in the clauses of a SELECT, and in items beside a whole column."""
    for part in (*select.expressions, *(select.args.get(clause) for clause in _CLAUSES)):
        for node in part if isinstance(part, list) else [part]:
            if isinstance(node, exp.Expression) and not _is_plain(node):
                yield from nodes_of(node, exp.Column)


def _is_plain(item: exp.Expression) -> bool:
    column = item.unalias()
    return isinstance(column, exp.Column) and is_column(column)
