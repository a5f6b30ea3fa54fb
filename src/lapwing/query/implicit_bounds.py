"""Bounds that a question leaves to us, as GoogleSQL lets it: those of a group alone, or none.

`SUM(x, contribution_bounds_per_group => (0, 10))` says what a unit may add in all, so that nothing need be known of its
rows: they are kept within a reach that nobody notices (`aggregates.unit_averages`). And in a question that says
`WITH DIFFERENTIAL_PRIVACY`, an aggregate that needs bounds which nobody states has them found, as if
`contribution_bounds_per_row => AUTO` were written: plan and price are those of that text.

Only an aggregate that is refused for want of bounds is read in this way (`second_reading`), one after another.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from sqlglot import exp

from lapwing.errors import QueryRefused
from lapwing.query.text.parse import Parsed
from lapwing.query.text.positions import Position, position_at
from lapwing.query.text.privacy_options import NamedArguments

_FOUND: Final = (
    exp.Sum, exp.Avg, exp.VariancePop, exp.Variance, exp.StddevPop, exp.StddevSamp, exp.Stddev, exp.CovarPop,
    exp.CovarSamp, exp.Corr,
)  # fmt: skip
"""Aggregates that take AUTO bounds."""


def with_implicit_bounds(refused: QueryRefused, parsed: Parsed, text: str) -> Parsed | None:
    """Return a question whose refused aggregate says where its bounds come from; None if it leaves them to nobody."""
    for node, start in _aggregates(parsed.select):
        if position_at(text, start) == refused.position:
            said = _said(node, parsed, start, refused.position)
            return None if said is None else replace(parsed, arguments={**parsed.arguments, start: said})
    return None


def _aggregates(select: exp.Select) -> Iterator[tuple[exp.AggFunc, int]]:
    for node in select.find_all(exp.AggFunc):
        start = node.meta.get("start") if isinstance(node, _FOUND) else None
        if isinstance(start, int):
            yield node, start


def _said(node: exp.AggFunc, parsed: Parsed, start: int, position: Position) -> NamedArguments | None:
    named = parsed.arguments.get(start, NamedArguments(position=position))
    if named.contribution_bounds_per_row is not None:
        return None
    if isinstance(named.contribution_bounds_per_group, tuple):
        return replace(named, contribution_bounds_per_row="wide") if isinstance(node, exp.Sum) else None
    if named.contribution_bounds_per_group is not None or not parsed.options.written:
        return None
    return replace(named, contribution_bounds_per_row="auto")
