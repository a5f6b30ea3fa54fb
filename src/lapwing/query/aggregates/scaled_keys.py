"""Keys that are a column times a constant: GROUP BY age / 12 makes the groups that GROUP BY age makes.

Two values of a column are equal where their multiples are, if the factor is not 0. So the column is the key, with its
public values, and `age / 12` in the SELECT list is computed of that. A double of a quotient has 53 bits, and a column
has fewer different values by far. So it tells them apart, too.

Grouping sets are refused. There `age / 12` is NULL in a set that has `age` alone, and a key of one name cannot tell.
"""

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.expressions.rows import RowScope, is_column
from lapwing.query.from_clause.listed_values import has_only
from lapwing.query.relations.images import MAX_VALUES
from lapwing.query.text.trees import has


def unscaled(node: exp.Expression, rows: RowScope) -> exp.Expression:
    """Return the column of which a key that is a fraction is a multiple.

    Raises:
        QueryRefused: If it is anything else.
    """
    found, select = _scaled(node), node.find_ancestor(exp.Select)
    group = None if select is None else select.args.get("group")
    sets = group is not None and has(group, exp.GroupingSets, exp.Rollup, exp.Cube)
    if found is None or found is node or sets:
        reason = "GROUP BY takes no fractions of unknown values"
        remedy = f"Round them: FLOOR(x / 10), to at most {MAX_VALUES:,} whole numbers."
        raise rows.refusal(node, RefusalCause.INVALID_GROUP_KEY, reason, remedy)
    return found


def _scaled(node: exp.Expression) -> exp.Expression | None:
    if is_column(node):
        return node
    if isinstance(node, exp.Paren | exp.Neg):
        return _scaled(node.this)
    if isinstance(node, exp.Div) and _is_factor(node.expression):
        return _scaled(node.this)
    if isinstance(node, exp.Mul):
        sides = ((node.this, node.expression), (node.expression, node.this))
        return next((_scaled(one) for one, factor in sides if _is_factor(factor)), None)
    return None


def _is_factor(node: exp.Expression) -> bool:
    """Tell whether a node is a number that is neither 0 nor beyond what doubles tell apart after it."""
    if isinstance(node, exp.Neg | exp.Paren):
        return _is_factor(node.this)
    if not isinstance(node, exp.Literal) or node.is_string or not has_only(node, "this", "is_string"):
        return False
    return 1e-6 <= float(node.this) <= 1e6
