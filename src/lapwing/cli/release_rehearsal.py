"""`lapwing release rehearse`: a release tried on data that are not protected."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

import lapwing as lw
from lapwing.cli import figures, options
from lapwing.cli.characters import to_json
from lapwing.cli.console import Fitted, labelled, new_table, note, print_text, show, text
from lapwing.errors import InvalidParameter
from lapwing.privacy.figures import NOTHING

if TYPE_CHECKING:
    from lapwing.catalog.model import Catalog
    from lapwing.tabulation import Rehearsal, RehearsedNumber

EXAMPLE = options.examples(
    "lapwing release rehearse release.toml --data public.csv",
    "lapwing release rehearse release.toml --data visits=made-up.parquet --data people=made-up-people.csv",
    "lapwing release rehearse release.toml --earlier 2026-01/manifest.json",
)


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The release file, in TOML.", show_default=False)],
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[TABLE=]FILE",
            help="Public or synthetic data with the columns of a protected table. Never a copy or a sample of it.",
            show_default=False,
        ),
    ] = None,
    earlier: Annotated[
        Path | None,
        typer.Option(metavar="MANIFEST", help="Instead: an earlier release of the same tables.", show_default=False),
    ] = None,
    times: Annotated[int, typer.Option(metavar="N", help="How many repetitions.")] = 20,
    form: options.ReportFormat = options.ReportFormatName.table,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
) -> None:
    """Run a release several times on data that are not protected, and compare its errors with the plan. Free."""
    if (data is None) == (earlier is None):
        raise InvalidParameter("Give either --data with public or synthetic data, or --earlier with a manifest.")
    release = lw.tabulation.TableRelease.from_file(file)
    before = None if earlier is None else lw.tabulation.PublishedRelease.from_file(earlier)
    with lw.connect(catalog) as session:
        given = before or _files(data or [], session.catalog)
        rehearsal = lw.tabulation.rehearse_release(session, release, given, times=times)
    if form is options.ReportFormatName.json:
        print_text(to_json(as_document(rehearsal)))
        return
    show(*as_page(rehearsal))
    for said in notes_on(rehearsal):
        note("note", said)


def _files(given: Sequence[str], catalog: "Catalog") -> Mapping[str, str]:
    """Return the file of each table: TABLE=FILE, or FILE if there is one table."""
    names = [table.name for table in catalog.tables]
    found: dict[str, str] = {}
    for one in given:
        name, equals, file = one.partition("=")
        if not equals or name not in names:
            name, file = names[0], one
            if len(names) > 1:
                raise InvalidParameter(f"--data has {one!r}; write TABLE=FILE, with a table of {', '.join(names)}.")
        if name in found:
            raise InvalidParameter(f"--data has two files for {name!r}; give a folder or a pattern for several files.")
        found[name] = file
    return found


def as_document(rehearsal: "Rehearsal") -> dict[str, object]:
    """Return a rehearsal for programs."""
    return {
        "title": rehearsal.plan.title,
        "times": rehearsal.times,
        "earlier": rehearsal.earlier,
        "numbers": [{**asdict(number), "ratio": number.ratio} for number in rehearsal.numbers],
    }


def as_page(rehearsal: "Rehearsal") -> list[RenderableType]:
    """Return a rehearsal for people."""
    on = "the data that you gave" if rehearsal.earlier is None else f"the earlier release “{rehearsal.earlier}”"
    facts = [("release", rehearsal.plan.title), ("tried", f"{rehearsal.times:,} times on {on}")]
    columns = ["table", "cells", "planned ±", "tried ±", "within ±", "right sign", "right order", "unreliable"]
    private = any(number.missing for number in rehearsal.numbers)
    columns += ["missing"] if private else []
    page = new_table(*columns, numbers=columns[1:])
    for number in rehearsal.numbers:
        errors = number.errors
        planned = None if number.is_adjusted else number.planned.half_width
        row = [_named(number, rehearsal), f"{round(errors.cells / rehearsal.times):,}", _margin(planned)]
        row.append(_margin(errors.half_width))
        row += [_part(one) for one in (errors.within_interval, errors.right_sign, errors.right_order)]
        row += [_part(number.unreliable)] + ([_part(number.missing)] if private else [])
        page.add_row(*map(text, row))
    return [labelled(*facts), Text(), Fitted(page)]


def _named(number: "RehearsedNumber", rehearsal: "Rehearsal") -> str:
    """Return the name of a table, with that of the number if it has several."""
    several = len({one.planned.name for one in rehearsal.numbers if one.table == number.table}) > 1
    name = f"{number.table}: {number.planned.name}" if several else number.table
    return f"{name}, adjusted" if number.is_adjusted else name


def _margin(half_width: float | None) -> str:
    return NOTHING if half_width is None else figures.margin(half_width)


def _part(part: float | None) -> str:
    return NOTHING if part is None else figures.share(part)


def notes_on(rehearsal: "Rehearsal") -> Iterator[str]:
    """Yield how to read a rehearsal."""
    yield "95 of 100 errors are at most `tried ±`. It is of a few cells in a small table, so it varies."
    if any(number.errors.right_order is not None for number in rehearsal.numbers):
        yield "`right order`: of all pairs of cells, the part that noise leaves in their order."
    if any(number.missing for number in rehearsal.numbers):
        yield "`missing`: cells that were not published, as their keys are private and too few people have them."
    if rehearsal.earlier is None:
        yield "the data must not be a copy or a sample of the protected data. Lapwing recognizes only exact copies."
    else:
        yield "published numbers have noise already, so they differ more than the numbers that they stand for."
