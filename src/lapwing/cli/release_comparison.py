"""`lapwing release compare`: two releases of the same tables, with intervals that know the noise of both."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import RenderableType
from rich.text import Text

import lapwing as lw
from lapwing.cli import figures, options
from lapwing.cli.characters import to_json
from lapwing.cli.console import Fitted, labelled, new_table, note, print_text, show, text
from lapwing.errors import InvalidParameter
from lapwing.privacy.figures import NOTHING, noisy, separated, significant

if TYPE_CHECKING:
    from lapwing.tabulation import CellChange, NumberChanges, PublishedRelease

EXAMPLE: Final = options.examples(
    "lapwing release compare 2026-01/manifest.json 2026-02/manifest.json",
    "lapwing release compare 2026-01/manifest.json 2026-02/manifest.json --format json",
)
MOST_ROWS: Final = 30
"""Changes in the table; JSON has all of them."""


def command(
    before: Annotated[
        Path, typer.Argument(metavar="BEFORE", help="The manifest.json of the earlier release.", show_default=False)
    ],
    now: Annotated[
        Path, typer.Argument(metavar="NOW", help="The manifest.json of the later release.", show_default=False)
    ],
    form: options.ReportFormat = options.ReportFormatName.table,
) -> None:
    """Compare two releases of the same tables. The ± of a change covers the noise of both.

    Free: it reads published files only.
    """
    earlier, later = (lw.tabulation.PublishedRelease.from_file(file) for file in (before, now))
    changes = lw.tabulation.changes_between(earlier, later)
    if not changes:
        raise InvalidParameter("The releases have no table with the same name, number and keys.")
    if form is options.ReportFormatName.json:
        print_text(to_json(lw.tabulation.comparison_document(earlier, later, changes)))
        return
    show(*as_page(earlier, later, changes))
    for said in notes_on(changes):
        note("note", said)


def as_page(
    before: "PublishedRelease", now: "PublishedRelease", changes: "Sequence[NumberChanges]"
) -> list[RenderableType]:
    """Return a comparison for people: of each table how many cells changed, and the changes beyond their ±."""
    facts = [(name, _titled(one)) for name, one in (("before", before), ("now", now))]
    if (promise := lw.tabulation.combined_promise(before, now)) is not None:
        at = f", delta {significant(promise.delta, 2)}" if promise.delta else ""
        facts.append(("together", f"epsilon {figures.size(promise.epsilon)}{at}, for people in the data of both"))
    counts = new_table("table", "cells", "changed", "by noise alone", numbers=("cells", "changed", "by noise alone"))
    for each in changes:
        counts.add_row(
            *map(text, (_named(each, changes), f"{len(each.changes):,}", f"{len(each.clear):,}", _by_noise_alone(each)))
        )
    clear = new_table("cell", "before", "now", "change", numbers=("before", "now", "change"))
    for each, change in list(_clear(changes))[:MOST_ROWS]:
        clear.add_row(*map(text, (f"{_named(each, changes)}, {each.number.where(change.keys)}", *_figures(change))))
    page: list[RenderableType] = [labelled(*facts), Text(), Fitted(counts)]
    return page + ([Text(), Fitted(clear)] if clear.rows else [])


def _titled(release: "PublishedRelease") -> str:
    return f"{release.manifest['title']}, epsilon {release.manifest['epsilon']}, of {release.manifest['dataset']}"


def _named(each: "NumberChanges", changes: "Sequence[NumberChanges]") -> str:
    """Return the name of a table, with that of the number if it has several."""
    number = each.number
    several = sum(other.number.table == number.table for other in changes) > 1
    return f"{number.table}: {number.name}" if several else number.table


def _by_noise_alone(each: "NumberChanges") -> str:
    """Return how many cells would change by more than their ± if the data were the same."""
    if each.is_same:
        return NOTHING
    expected = figures.size(each.by_noise)
    return f"about {expected}" if each.number.is_normal and each.confidence == 0.95 else f"at most {expected}"


def _clear(changes: "Sequence[NumberChanges]") -> "Iterator[tuple[NumberChanges, CellChange]]":
    return ((each, change) for each in changes for change in each.clear)


def _figures(change: "CellChange") -> tuple[str, str, str]:
    difference = change.now - change.before
    value, half = noisy(difference, difference - change.half_width, difference + change.half_width)
    return separated(change.before), separated(change.now), f"{value} {half}"


def notes_on(changes: "Sequence[NumberChanges]") -> Iterator[str]:
    """Yield how to read a comparison."""
    yield "`changed`: cells whose change is larger than its ±. `by noise alone`: how many, if no data had changed."
    if same := [_named(each, changes) for each in changes if each.is_same]:
        yield f"both releases show the same result, bought once, in {', '.join(same)}."
    if (hidden := sum(1 for _ in _clear(changes)) - MOST_ROWS) > 0:
        yield f"{hidden:,} more cells changed. `--format json` has all cells."
