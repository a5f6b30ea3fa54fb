"""Showing a scene: its words, the command, the answer beside the truth, the price and the gauge."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from lapwing.cli import figures
from lapwing.cli.answer_formats import coloured_margins
from lapwing.cli.asking import price_of
from lapwing.cli.console import Fitted, labelled, new_table
from lapwing.cli.demo.scenes import Scene
from lapwing.cli.demo.truth import Fact, truth
from lapwing.cli.streams import coded
from lapwing.errors import LapwingError
from lapwing.privacy.figures import plain

if TYPE_CHECKING:
    from lapwing.answer import Answer
    from lapwing.budget import BudgetView
    from lapwing.session import Session

TEACHING: Final = "truth –\nteaching only"
WARNING: Final = "truth – teaching only, computed outside Lapwing from the raw file; never do this with real data"


def heading(number: int, title: str, width: int) -> RenderableType:
    """Return the line above a scene."""
    text = Text(f"\n── {number}  {title} ", style="bold")
    return text.append("─" * max(0, width - len(f"── {number}  {title} ")), style="dim")


def prompt(scene: Scene) -> RenderableType:
    """Return the command as one would type it."""
    lines = scene.sql.split("\n")
    sql = lines[0] if len(lines) == 1 else "\n" + textwrap.indent(scene.sql, " " * 6)
    return Text.assemble(("  $ ", "dim"), (f'lapwing query "{sql}" {scene.price}', "green"))


def comparison(scene: Scene, session: "Session") -> RenderableType:
    """Return what the tighter bound of a question wins; both promises are free."""
    promised = []
    for sql in (scene.wider or scene.sql, scene.sql):
        preview = session.explain(sql, epsilon=scene.epsilon, error=scene.error, assuming_count=scene.rows)
        promised.append(next(figures.margin(c.half_width) for c in preview.columns if c.half_width is not None))
    return Text(
        f"`lapwing explain`, free of charge, promises for {scene.rows:,} rows: {promised[0]} without these "
        f"bounds, {promised[1]} with them."
    )


def answered(scene: Scene, answer: "Answer", session: "Session", *, warn: bool) -> RenderableType:
    """Return the answer beside the truth, what it cost, and what is left; `warn` says what the truth is there for."""
    table, inside, cells = beside_truth(answer, truth(scene.truth or scene.sql))
    teaching = Text(f"{WARNING}\n" if warn else "", style="yellow").append(_score(inside, cells))
    view = session.budget()
    return _indented(table, teaching, bill(price_of(answer, view), view))


def _indented(*parts: RenderableType) -> RenderableType:
    """Return parts below each other, each after an empty line."""
    return Group(*(Padding(part, (1, 0, 0, 2)) for part in parts))


def _score(inside: int, cells: int) -> str:
    if cells == 1:
        return (
            "The truth is inside the ± here; it is in 95 of 100 cases."
            if inside
            else ("The truth is outside the ± here; that happens in 5 of 100 cases.")
        )
    return f"{inside} of {cells} truths are inside their ±; in the long run 95 of 100 are, or more."


def refused(error: LapwingError, session: "Session") -> RenderableType:
    """Return a refusal as the command line writes it, with its exit status, and the untouched gauge."""
    message = "\n".join([f"lapwing: {coded(error)}", *getattr(error, "__notes__", ())])
    return _indented(Text(message, style="red"), bill(f"nothing; exit status {error.exit_status}", session.budget()))


def bill(price: str, view: "BudgetView") -> RenderableType:
    """Return a cost and the gauge below it."""
    return labelled(("cost", price), ("budget", Text(figures.gauge(view.share_spent), style="cyan")))


def beside_truth(answer: "Answer", facts: Sequence[Mapping[str, Fact]]) -> tuple[Fitted, int, int]:
    """Return the answer with truth columns, the number of truths inside their ±, and the number of noisy cells."""
    intervals = answer.interval()
    keys = [name for name in answer.columns if name not in intervals]
    extra = [name for name in facts[0] if name not in answer.columns]
    fact_of: dict[tuple[object, ...], Mapping[str, Fact]] = {tuple(fact[key] for key in keys): fact for fact in facts}
    rows = [(row, fact_of.get(tuple(row[key] for key in keys), {})) for row in answer.rows()]
    table = new_table(*answer.columns, numbers=intervals)
    for name in (*intervals, *extra):
        label = name if len(intervals) + len(extra) > 1 else ""
        header = Text(f"{TEACHING}\n{label}".rstrip(), style="yellow")
        table.add_column(header, justify="right", style="yellow")
    columns = [
        coloured_margins([row[name] for row, _ in rows], *intervals[name])
        if name in intervals
        else [Text(plain(row[name])) for row, _ in rows]
        for name in answer.columns
    ]
    columns += [[Text(_fact(fact.get(name))) for _, fact in rows] for name in (*intervals, *extra)]
    for cells in zip(*columns, strict=True):
        table.add_row(*cells)
    hits = [
        _inside(fact.get(name), float(low[i]), float(high[i]))
        for name, (low, high) in intervals.items()
        for i, (_, fact) in enumerate(rows)
    ]
    return Fitted(table), sum(hits), len(hits)


def _inside(fact: Fact, low: float, high: float) -> bool:
    return fact is not None and not isinstance(fact, str) and low <= float(fact) <= high


def _fact(fact: Fact) -> str:
    if fact is None or isinstance(fact, bool | str):
        return plain(fact)
    number = float(fact)
    return f"{number:,.0f}" if number.is_integer() or abs(number) >= 1000 else f"{number:,.2f}"
