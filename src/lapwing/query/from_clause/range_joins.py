"""Joins of rows to public rows by comparisons: `r.day <= s.day AND r.day > s.day - INTERVAL 7 DAY`.

Such a join is one of rows with intervals: every public row is met by the rows whose value f lies in its interval. The
rows of a unit are multiplied by the most public rows that one row meets.

Claim. A row meets at most as many public rows as intervals overlap in one point between the bounds of f.

Proof. Let the comparisons be `f < g`, `f <= g`, `f > g` or `f >= g`, each of one expression f over the row and some g
over a public row. For a public row p they are true of the values in one interval I(p), which is empty where a g is
NULL. A row whose f is NULL meets no row. Else f is one value v, within the bounds of its type, and the row meets just
the p with v in I(p). So it meets no more than max over v of #{p : v in I(p)}, which is public. If there are several
f, the comparisons of each f prove it by themselves. Further conditions only take pairs away. ∎

The intervals of the data are counted with the digest of the public table, as repetitions of values are.

The engine counts what a join compares. Joins compare floats of public tables as they are read (`as_read`). f and each g
are the same expressions in the join and in `PublicFacts.overlap`. Both read the same columns of the same layer
(`engines.duckdb.relations.public_layer`). The proof needs values in one order, and so they are. NaN is NULL. −0.0
equals 0.0 to every comparison and sort. An infinity is ±2¹⁵⁰ on both sides. Floats, decimals and integers are brought
to one type before they are compared (`alike`). Values in steps are not used: between rounded ends, an interval without
an end would be empty, and the bound too small.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from lapwing.query.expressions import logic
from lapwing.query.expressions.calls import looked_at
from lapwing.query.expressions.conversion import alike
from lapwing.query.expressions.expression import Expression
from lapwing.query.expressions.rows import RowScope
from lapwing.query.from_clause.equalities import binds
from lapwing.query.relations.public_rows import ComparedRange, PublicFacts, PublicRows

_SYMBOLS: Final[dict[type[exp.Expr], str]] = {exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A comparison of a value of a row with one of a public row.

    Args:
        symbol: One of <, <=, > and >=, between the first and the second.
    """

    symbol: str
    row: Expression
    public: Expression


def ranges(
    conditions: Sequence[exp.Expression], ours: RowScope, theirs: RowScope
) -> tuple[list[Comparison], list[exp.Expression]]:
    """Separate comparisons between a row and a public row from other conditions."""
    found, rest = list[Comparison](), list[exp.Expression]()
    for node in conditions:
        sides = _sides(node, ours)
        pairs = [_comparison(*each, ours, theirs) for each in sides]
        known = [pair for pair in pairs if pair is not None]
        if known and len(known) == len(pairs):
            found += known
        else:
            rest.append(node)
    return found, rest


def _sides(node: exp.Expression, rows: RowScope) -> list[tuple[str, exp.Expression, exp.Expression]]:
    """Return the comparisons that a condition is made of; none if it is another."""
    symbol = _SYMBOLS.get(type(node))
    if symbol is not None:
        rows.only(node, "this", "expression")
        return [(symbol, node.args["this"], node.args["expression"])]
    if type(node) is not exp.Between:
        return []
    rows.only(node, "this", "low", "high")
    value = node.args["this"]
    return [(">=", value, node.args["low"]), ("<=", value, node.args["high"])]


def _comparison(
    symbol: str, left: exp.Expression, right: exp.Expression, ours: RowScope, theirs: RowScope
) -> Comparison | None:
    for sign, one, other in ((symbol, left, right), (_TURNED[symbol], right, left)):
        if binds(one, ours) and not binds(one, theirs) and binds(other, theirs) and not binds(other, ours):
            row, public = looked_at(one, ours), looked_at(other, theirs)
            with ours.pointing(one):
                logic.compare(sign, row, public)
            row, public = alike((row, public))
            return Comparison(symbol=sign, row=row, public=public)
    return None


def most_met(comparisons: Sequence[Comparison], rows: PublicRows, facts: PublicFacts) -> int:
    """Return the most public rows that one row meets."""
    together: dict[Expression, list[tuple[str, Expression]]] = {}
    for comparison in comparisons:
        together.setdefault(comparison.row, []).append((comparison.symbol, comparison.public))
    return min(
        facts.overlap(ComparedRange(rows=rows, value=value.type, ends=tuple(ends))) for value, ends in together.items()
    )
