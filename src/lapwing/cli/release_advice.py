"""Advice on the plan of a release, for people."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from rich.console import RenderableType
from rich.text import Text

from lapwing.cli import figures
from lapwing.cli.console import Fitted, new_table, text

if TYPE_CHECKING:
    from lapwing.tabulation import TableSaving, UnreliableTable

MOST_NAMED: Final = 3
MOST_EPSILON: Final = 100
"""A cost beyond this is no advice."""


def as_page(saved: "Sequence[TableSaving]") -> list[RenderableType]:
    """Return what leaving out each table saves, and what coarser levels save."""
    if not saved:
        return []
    page = new_table(
        "without this table", "error of the others", "or the same error at", numbers=["error of the others"]
    )
    for one in saved:
        table = one.table if one.coarser is None else f"{one.table}: by {one.coarser} instead"
        page.add_row(*map(text, (table, _change(one.others), f"epsilon {figures.size(one.epsilon)}")))
    return [Text(), Fitted(page)]


def _change(ratio: float) -> str:
    percent = round(100 * (ratio - 1))
    return "the same" if not percent else f"{abs(percent)} % {'less' if percent < 0 else 'more'}"


def notes_on(noisy: "Sequence[UnreliableTable]") -> Iterator[str]:
    """Yield what makes noisy tables reliable: one note for tables with the same remedy."""
    for merged in dict.fromkeys(one.merged for one in noisy):
        alike = [one for one in noisy if one.merged == merged]
        names = ", ".join(one.table for one in alike[:MOST_NAMED])
        more = f" and {len(alike) - MOST_NAMED:,} more tables" if len(alike) > MOST_NAMED else ""
        epsilon = max(one.epsilon for one in alike)
        pay = f", or pay epsilon {figures.size(epsilon)}" if epsilon <= MOST_EPSILON else ""
        yield (
            f"a cell of the assumed size would be unreliable in {names}{more}. "
            f"It would have to be {merged:,} times as large: use coarser keys{pay}."
        )
