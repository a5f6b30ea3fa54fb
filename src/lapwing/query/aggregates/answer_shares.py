"""Where a row of the result is among others: NTILE(4), PERCENT_RANK() and CUME_DIST() OVER (ORDER BY …).

Each is a formula of the row's number or rank and of how many rows there are, all of them of released rows.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Final

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.derive import compute
from lapwing.query.derivation.node import Derived
from lapwing.query.expressions.rows import RowScope

SHARES: Final = (exp.Ntile, exp.PercentRank, exp.CumeDist)
_MOST_TILES: Final = 10**6
Over = Callable[[exp.Expression], Derived]
"""Binds a window function."""


def bind_share(node: exp.Expression, rows: RowScope, over: Over) -> Derived:
    """Bind one of `SHARES`, with its window.

    Raises:
        QueryRefused: If it has no order, or NTILE takes something else than a whole constant.
    """
    inner = node.this
    rows.only(inner, *(["this"] if isinstance(inner, exp.Ntile) else []))
    if node.args.get("order") is None:
        name = type(inner).sql_name()
        raise rows.refusal(
            node, RefusalCause.WINDOW_NEEDS_ORDER, f"{name} needs an order", "Write OVER (ORDER BY COUNT(*) DESC)."
        )
    if node.args.get("spec") is not None:
        raise rows.refusal(node, RefusalCause.INVALID_FRAME, "This function takes no frame", "Leave it out.")
    every = over(_with(node, exp.Count(this=exp.Star()), ordered=False))
    if isinstance(inner, exp.Ntile):
        return _tile(_tiles(inner, rows), over(_with(node, exp.RowNumber())), every)
    if isinstance(inner, exp.CumeDist):
        return compute("divide", over(_with(node, exp.Count(this=exp.Star()))), every)
    others = compute("subtract", every, _number(1))
    share = compute("divide", compute("subtract", over(_with(node, exp.Rank())), _number(1)), others)
    return compute("case", compute("=", others, _number(0)), _number(0), share)


def _with(node: exp.Expression, function: exp.Expression, *, ordered: bool = True) -> exp.Expression:
    """Return a window with another function over the same rows."""
    other = node.copy()
    other.set("this", function)
    if not ordered:
        other.set("order", None)
    return other


def _tiles(inner: exp.Expression, rows: RowScope) -> Derived:
    node = inner.this
    text = str(node.this) if isinstance(node, exp.Literal) and not node.is_string else ""
    if not text.isdecimal() or not 0 < int(text) <= _MOST_TILES:
        raise rows.refusal(inner, RefusalCause.NOT_CONSTANT, "NTILE takes a whole number", "Write NTILE(4).")
    return _number(int(text))


def _tile(tiles: Derived, number: Derived, every: Derived) -> Derived:
    """Return the tile of a row by its number: the first ones have a row more where rows do not divide evenly."""
    least = compute("floor", compute("divide", every, tiles))
    larger = compute("modulo", every, tiles)
    most = compute("add", least, _number(1))
    before = compute("subtract", number, _number(1))
    in_larger = compute("multiply", larger, most)
    first = compute("add", compute("floor", compute("divide", before, most)), _number(1))
    beyond = compute("floor", compute("divide", compute("subtract", before, in_larger), least))
    second = compute("add", compute("add", larger, beyond), _number(1))
    return compute("case", compute("<=", number, in_larger), first, second)


def _number(value: int) -> Derived:
    return ConstantValue(value=Fraction(value), shape="integer")
