"""`lapwing release`: tables that are planned, bought and published together."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import RenderableType
from rich.text import Text

import lapwing as lw
from lapwing.cli import figures, options, release_advice, release_comparison, release_rehearsal
from lapwing.cli.characters import to_json
from lapwing.cli.console import Fitted, labelled, new_table, note, print_text, show, text
from lapwing.errors import InvalidParameter
from lapwing.privacy.figures import NOTHING

if TYPE_CHECKING:
    from lapwing.tabulation import PlanAlternative, PlannedNumber, PlannedTable, ReleasePlan

EXAMPLE: Final = options.examples(
    "lapwing release plan release.toml",
    "lapwing release plan release.toml --epsilon 0.5",
    "lapwing release rehearse release.toml --data public.csv",
    "lapwing release run release.toml --output published",
    "lapwing release verify published/manifest.json",
    "lapwing release compare 2026-01/manifest.json 2026-02/manifest.json",
)
app = typer.Typer(help="Plan and publish a set of tables.", epilog=EXAMPLE, rich_markup_mode=None)
ReleaseFile = Annotated[Path, typer.Argument(metavar="FILE", help="The release file, in TOML.", show_default=False)]


@app.callback()
def group() -> None:
    """Plan and publish a set of tables."""


@app.command("plan", epilog=EXAMPLE, short_help="Show what a release costs and how exact it is, for free.")
def plan(
    file: ReleaseFile,
    without: Annotated[
        bool,
        typer.Option(
            "--without",
            help="Also show what leaving out each table saves, or a coarser level of it.",
        ),
    ] = False,
    epsilon: Annotated[
        Fraction | None,
        options.amount(options.above_zero("--epsilon"), "Plan with this cost instead of that in the file."),
    ] = None,
    form: options.ReportFormat = options.ReportFormatName.table,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
) -> None:
    """Show how a release divides its cost among its tables, and the error of each. Free, and reads no row."""
    release = lw.tabulation.TableRelease.from_file(file)
    release = release if epsilon is None else replace(release, epsilon=epsilon)
    with lw.connect(catalog) as session:
        planned = lw.tabulation.plan_release(session, release)
        saved = lw.tabulation.savings(session, release) if without else ()
    noisy = tuple(lw.tabulation.unreliable_tables(release, planned))
    if form is options.ReportFormatName.json:
        more = {"unreliable_tables": [asdict(one) for one in noisy], "savings": [asdict(one) for one in saved]}
        print_text(to_json({**lw.tabulation.plan_document(planned), **more}))
        return
    show(*as_page(planned), *release_advice.as_page(saved))
    for said in (*release_advice.notes_on(noisy), *notes_on(planned)):
        note("note", said)


app.command("rehearse", epilog=release_rehearsal.EXAMPLE, short_help="Try a release on public data, for free.")(
    release_rehearsal.command
)


@app.command("run", epilog=EXAMPLE, short_help="Buy all tables of a release, and write them to files.")
def run(
    file: ReleaseFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="A new folder for the files.", show_default=False)
    ],
    key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="An Ed25519 private key in PEM: signs the manifest.", show_default=False),
    ] = None,
    previous: Annotated[
        Path | None,
        typer.Option(
            metavar="MANIFEST", help="The last release: the method report compares with it.", show_default=False
        ),
    ] = None,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
) -> None:
    """Charge a release once, and write its tables, a method report and a manifest.

    A second run is free and writes the same files.
    """
    release = lw.tabulation.TableRelease.from_file(file)
    signing_key = None if key is None else lw.tabulation.SigningKey.from_file(key)
    before = None if previous is None else lw.tabulation.PublishedRelease.from_file(previous)
    lw.tabulation.require_new(output)
    with lw.connect(catalog) as session:
        released = lw.tabulation.run_release(session, release)
        manifest = released.write(output, signing_key=signing_key, previous=before)
        left = session.budget(history=False).share_spent
    cells = sum(len(table.answer) for table in released.tables)
    facts = [("tables", f"{len(released.tables):,}, with {cells:,} rows"), ("manifest", str(manifest))]
    show(labelled(*facts))
    cost = "nothing: bought before" if released.stored else figures.loss(released.plan.cost)
    note("cost", f"{cost}; {figures.share(1 - left)} of the budget left")


@app.command("verify", epilog=EXAMPLE, short_help="Check the files of a release, and who signed them.")
def verify(
    manifest: Annotated[Path, typer.Argument(metavar="MANIFEST", help="Its manifest.json.", show_default=False)],
    public_key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The publisher's public key in PEM.", show_default=False),
    ] = None,
) -> None:
    """Compare the files of a release with the hashes in its manifest, and the manifest with its signature.

    A file in the folder that the manifest does not list is an error.
    """
    faults = lw.tabulation.faults_of(manifest, public_key)
    if unlisted := lw.tabulation.unlisted_files(manifest, public_key):
        faults.append(f"the manifest does not list {_names(unlisted)}, so move such files to another folder")
    if faults:
        raise InvalidParameter(f"{manifest}: {'; '.join(faults)}.")
    signed = "" if public_key is None else ", and the signature matches"
    print_text(f"{manifest}: all files are as published{signed}.\n")


app.command(
    "compare", epilog=release_comparison.EXAMPLE, short_help="Compare two releases of the same tables, for free."
)(release_comparison.command)


def as_page(planned: "ReleasePlan") -> list[RenderableType]:
    """Return a plan for people."""
    fits = "" if planned.fits else "; the budget has less left"
    proven = "; proven to be the best division" if planned.is_optimal else ""
    facts = [
        ("release", planned.title),
        ("protects", planned.unit),
        (
            "cost",
            f"epsilon {figures.epsilon(planned.epsilon)}, {figures.share(planned.share_of_budget)} of the budget{fits}",
        ),
        ("aim", f"{planned.objective}{proven}"),
    ]
    if planned.epsilon_needed is not None:
        facts.append(("needed", f"about epsilon {figures.size(planned.epsilon_needed)} for all wanted errors"))
    return [labelled(*facts), Text(), _errors(planned), Text(), _alternatives(planned)]


def _errors(planned: "ReleasePlan") -> Fitted:
    wanted = any(table.wanted is not None for table in planned.tables)
    assumed = any(number.relative is not None for table in planned.tables for number in table.numbers)
    columns = ["table", "cells", "share", "±", "table by table"]
    columns += (["wanted"] if wanted else []) + (["of a cell"] if assumed else []) + ["unreliable below"]
    page = new_table(*columns, numbers=columns[1:])
    for table in planned.tables:
        for number in table.numbers:
            cells = NOTHING if table.cells is None else f"{table.cells:,}"
            row = [_named(table, number), cells, figures.share(table.share), _margin(number.half_width)]
            row.append(_margin(number.table_by_table))
            row += [_margin(table.wanted)] if wanted else []
            row += [NOTHING if number.relative is None else figures.share(number.relative)] if assumed else []
            row.append(NOTHING if number.unreliable_below is None else figures.size(number.unreliable_below))
            page.add_row(*map(text, row))
    return Fitted(page)


def _alternatives(planned: "ReleasePlan") -> Fitted:
    """Return the errors at other costs, and in other kinds of ledgers."""
    others = [*planned.other_costs, *planned.other_measures]
    heads = [_head(one, planned) for one in others]
    page = new_table("± instead", *heads, numbers=heads)
    for place, table in enumerate(planned.tables):
        for at, number in enumerate(table.numbers):
            page.add_row(*map(text, (_named(table, number), *(_margin(one.half_widths[place][at]) for one in others))))
    return Fitted(page)


def _named(table: "PlannedTable", number: "PlannedNumber") -> str:
    """Return the name of a table, with that of the number if it has several."""
    return table.name if len(table.numbers) == 1 else f"{table.name}: {number.name}"


def _head(one: "PlanAlternative", planned: "ReleasePlan") -> str:
    if one.measure == planned.measure:
        return f"epsilon {figures.epsilon(one.epsilon)}"
    return f"{one.measure} ledger"


def _margin(half_width: float | None) -> str:
    return "depends on the data" if half_width is None else figures.margin(half_width)


def notes_on(planned: "ReleasePlan") -> Iterable[str]:
    """Yield what to know of a plan before it is paid."""
    if missed := [table.name for table in planned.tables if table.is_met is False]:
        yield f"the wanted error is not met in {_names(missed)}."
    if any(table.measured_with for table in planned.tables):
        yield "± is of each table measured together with the others; `table by table` is at the same cost without that."
    yield from map(str, planned.incomplete_keys)
    deltas = sorted({one.delta for one in planned.other_measures if one.delta not in (0, planned.delta)})
    if deltas:
        yield f"the other kinds of ledgers are shown with delta {', '.join(f'{one:g}' for one in deltas)}."


def _names(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"
