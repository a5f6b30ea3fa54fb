"""`lapwing data`: the data that the questions are about. For the curator."""

import sys
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.text import Text

import lapwing as lw
from lapwing.catalog.large_delta import delta_warnings
from lapwing.catalog.source_address import is_address
from lapwing.catalog.toml import load
from lapwing.cli.characters import to_json, visible
from lapwing.cli.console import Fitted, complain, new_table, note, print_text, show, text
from lapwing.cli.data_check import as_page
from lapwing.cli.options import (
    DEFAULT_CATALOG,
    CatalogFile,
    Dataset,
    ReportFormat,
    ReportFormatName,
    Server,
    Unreadable,
    UnreadableOption,
    examples,
    name_of,
    open_session,
)
from lapwing.documents.check_document import as_document
from lapwing.engines import open_checking_engine
from lapwing.errors import DataFault, InvalidParameter
from lapwing.ledger.events import EVENTS_ALLOWED
from lapwing.ledger.faults import FAULTS_ALLOWED
from lapwing.ledger.opening import is_begun

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.console import RenderableType

    from lapwing.catalog.model import Catalog
    from lapwing.client import RemoteSession
    from lapwing.ledger.reading import FaultRow
    from lapwing.session import Session

CAUSES: Final = {"fault": "failed", "death": "process died"}

app = typer.Typer(
    help="Check, accept and close the data of a catalog (for the curator).",
    epilog=examples("lapwing data accept", "lapwing data faults"),
    rich_markup_mode=None,
)


@app.callback()
def data() -> None:
    """Look after the data behind the catalog (for the curator)."""


@app.command(
    epilog=examples("lapwing data check", "lapwing data check --format json"),
    short_help="Read all data and show what is wrong with them.",
)
def check(form: ReportFormat = ReportFormatName.table, catalog: CatalogFile = DEFAULT_CATALOG) -> None:
    """Read every row by the catalog, and show which values are missing, of another type or out of bounds.

    Lapwing fetches data of a source first; `lapwing data accept` then takes the same rows. The report also shows how
    many rows each limit of rows would leave out, and whether delta is too large. Nothing is charged, and no ledger is
    opened. The command fails if the data would not be accepted as they are.

    The figures are exact and private. Do not publish them, and do not copy them into the catalog, which is public.
    """
    described = load(catalog)
    _fetch(described)
    with closing(open_checking_engine(described)) as engine:
        checks = [engine.check(table) for table in described.tables]
    warnings = delta_warnings(described.budget.delta, [table.people for table in described.tables])
    if form is ReportFormatName.json:
        warned = [{"code": warning.code, "text": warning} for warning in warnings]
        print_text(to_json({"private": True, "tables": [as_document(one) for one in checks], "warnings": warned}))
    else:
        show(*as_page(checks, warnings))
    refused = [one.table.name for one in checks if not one.passes]
    if refused:
        raise DataFault(
            f"The data of {', '.join(refused)} cannot be accepted as they are. Correct the data or the catalog. Or let "
            'values that are not of their type count as NULL: write unreadable = "null" in the table or the column, '
            "or run `lapwing data accept --unreadable null` once."
        )


@app.command(
    epilog=examples("lapwing data accept", "lapwing data accept --unreadable null"),
    short_help="Accept the present data as the current version.",
)
def accept(
    unreadable: Unreadable = None,
    catalog: CatalogFile = DEFAULT_CATALOG,
    server: Server = None,
    dataset: Dataset = None,
) -> None:
    """Make the data as they are now the current version. Until then, Lapwing refuses queries of changed data.

    Data with values that are not of their declared type are refused: see `lapwing data check`.

    The budget that was spent stays spent, because the people in the data are the same. A data set that is stopped after
    faults stays stopped until `lapwing data resume`.
    """
    with _to_accept(catalog, server, dataset, unreadable) as (session, before):
        version = _accepted(session, unreadable)
        stopped = session.budget().stopped
    if version == before:
        print_text(f"The data are the same as in version {version}. Nothing was changed.\n")
    elif not before:
        print_text(f"Version {version} is current from now on. It is the first.\n")
    else:
        print_text(
            f"Version {version} is current from now on. The budget that was spent stays spent. "
            "Lapwing does not mix old results with new ones.\n"
        )
    if stopped:
        print_text("The data set stays stopped, because too many queries failed: see `lapwing data faults`.\n")


@app.command(
    epilog=examples(
        "lapwing data refresh",
        "lapwing data refresh --unreadable null",
        "lapwing data refresh --server https://dp.example.org --dataset visits",
    ),
    short_help="Fetch data from their source, and make them the current version.",
)
def refresh(
    unreadable: Unreadable = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Read all rows, even if the source can deliver only new ones.")
    ] = False,
    catalog: CatalogFile = DEFAULT_CATALOG,
    server: Server = None,
    dataset: Dataset = None,
) -> None:
    """Fetch the present data from the sources of the catalog as the current version; made for a schedule.

    Until then, and if anything fails, queries use the version before. Nothing is charged. If the rows are the same, the
    version stays.
    """
    if server is not None or dataset is not None:
        with open_session(catalog, server, dataset) as there:
            before = there.budget().version
            print_text(_outcome(before, _refreshed(there, unreadable, whole=whole)))
        return
    described = load(catalog)
    if not described.at_addresses:
        raise InvalidParameter(
            "No table of the catalog comes from a source: Lapwing reads files where they are. `lapwing data accept` "
            "accepts changed files as a new version."
        )
    _fetch(described, whole=whole)
    if not any(is_address(table.source) for table in described.tables):
        print_text("Public tables were fetched. Everybody who opens the catalog from now on has them.\n")
        return
    with _to_accept(catalog, None, None, unreadable) as (session, before):
        version = _accepted(session, unreadable)
    print_text(_outcome(before, version))


@app.command(
    epilog=examples("lapwing data faults --format json"),
    short_help="Show the queries that failed after their charge.",
)
def faults(
    form: ReportFormat = ReportFormatName.table,
    catalog: CatalogFile = DEFAULT_CATALOG,
    server: Server = None,
    dataset: Dataset = None,
) -> None:
    """Show the queries that failed, or whose process died, after their charge and since you last looked.

    A failure can depend on the data: on memory, time or room on the disk. So repeated faults stop the data set until
    `lapwing data resume`.
    """
    with open_session(catalog, server, dataset) as session:
        rows, view = session.faults(), session.budget(history=False)
    if form is ReportFormatName.json:
        faults = [_document(fault) for fault in rows]
        print_text(to_json({"faults": faults, "stopped": view.stopped, "late": view.late}))
        return
    if rows:
        show(*_page(rows, view.stopped))
    else:
        print_text("No query has failed since the curator last looked.\n")
    if view.late:
        print_text(
            f"Results of a service were late {_times(view.late)} since then. {EVENTS_ALLOWED} faults and late results "
            "stop the data set until `lapwing data resume`. They stop it for people who are not trusted with time.\n"
        )


@app.command(
    epilog=examples("lapwing data resume"),
    short_help="Confirm that you looked at the failed queries, and answer queries again.",
)
def resume(catalog: CatalogFile = DEFAULT_CATALOG, server: Server = None, dataset: Dataset = None) -> None:
    """Confirm that you looked at the failed queries, and answer queries again.

    Look at `lapwing data faults` first, and correct the common cause: too little memory or disk, or somebody who sends
    queries that should fail. Lapwing refunds nothing.
    """
    with open_session(catalog, server, dataset) as session:
        late = session.budget(history=False).late
        count = session.resume()
    if count:
        faults = "1 fault counts" if count == 1 else f"{count} faults count"
        what = f"{count} faults and late results count" if late else faults
        print_text(f"{what} no more. The data set answers queries again. All charges stay charged.\n")
    else:
        print_text("No query has failed since the curator last looked. Nothing was changed.\n")


@app.command(epilog=examples("lapwing data close --yes"), short_help="Close the data set for ever.")
def close(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    catalog: CatalogFile = DEFAULT_CATALOG,
    server: Server = None,
    dataset: Dataset = None,
) -> None:
    """Close the data set for ever. Lapwing then charges nothing any more, and you cannot undo it.

    Earlier results stay free while the data are there.
    """
    with open_session(catalog, server, dataset) as session:
        name = name_of(session)
        if not yes:
            _confirm(name)
        closed = session.close_for_ever()
    print_text("The data set is closed.\n" if closed else "The data set was already closed; nothing was changed.\n")


def _refreshed(session: "Session | RemoteSession", unreadable: UnreadableOption | None, *, whole: bool) -> int:
    """Let a service fetch its data and make them the current version; return its number."""
    if isinstance(session, lw.Session):  # that of a service was asked for, and no other is opened
        raise InvalidParameter("To refresh a catalog on this machine, give only --catalog.")
    _require_as_declared(unreadable)
    return session.refresh_data(whole=whole)


def _outcome(before: int, version: int) -> str:
    same = f"The rows are the same as in version {version}. Nothing was changed.\n"
    return same if version == before else f"Version {version} is current from now on.\n"


@contextmanager
def _to_accept(
    catalog: "Path", server: str | None, dataset: str | None, unreadable: UnreadableOption | None
) -> "Iterator[tuple[Session | RemoteSession, int]]":
    """Open a session, and yield it with the version before it; 0 if there was no ledger.

    A new ledger takes the data as version 1 while it is opened, so `unreadable` must hold there too.
    """
    if server is not None or dataset is not None:
        with open_session(catalog, server, dataset) as session:
            yield session, session.budget().version
        return
    described = load(catalog)
    begun = is_begun(described.ledger, described.folder)
    with lw.connect(catalog, unreadable=unreadable and unreadable.value) as session:
        yield session, session.budget().version if begun else 0


def _accepted(session: "Session | RemoteSession", unreadable: UnreadableOption | None) -> int:
    """Make the data as they are now the current version, and return its number."""
    if isinstance(session, lw.Session):
        return session.accept_data(unreadable=unreadable and unreadable.value)
    _require_as_declared(unreadable)
    return session.accept_data()


def _require_as_declared(unreadable: UnreadableOption | None) -> None:
    """Refuse what a server takes from its catalog alone."""
    if unreadable is not None:
        raise InvalidParameter(
            "--unreadable goes with a catalog on this machine. The data of a server are accepted if its catalog says "
            'unreadable = "null" of the table or the column.'
        )


def _fetch(catalog: "Catalog", *, whole: bool = False) -> None:
    """Fetch what a catalog has from sources, if anything."""
    if catalog.from_sources:
        from lapwing.sources import fetch  # here: with it come the clients of databases

        snapshot = fetch(catalog, whole=whole)
        for tables, kind in ((snapshot.tables, ""), (snapshot.public, ", public")):
            for name, table in tables.items():
                version = "" if table.version is None else f", version {table.version} of the source"
                note("fetched", f"{visible(name)}: {table.rows:,} rows{version}{kind}")


def _confirm(name: str) -> None:
    """Let the curator repeat the name.

    Raises:
        InvalidParameter: For anything else, and where nobody is there to be asked.
    """
    if not sys.stdin.isatty():
        raise InvalidParameter("Nothing was changed. Repeat the command with --yes to close the data set for ever.")
    complain(f"To close the data set for ever, type its name, {visible(name)}:")
    if sys.stdin.readline().strip() != name:
        raise InvalidParameter("That is another name. Nothing was changed.")


def _page(rows: "tuple[FaultRow, ...]", stopped: bool) -> "list[RenderableType]":
    table = new_table("time (UTC)", "who", "what", "query")
    for fault in rows:
        first = fault.charges[0]
        more = f" and {len(fault.charges) - 1} more" if len(fault.charges) > 1 else ""
        when = fault.time[:16].replace("T", " ")
        table.add_row(text(when), text(first.principal), text(CAUSES[fault.cause]), text(f"{first.asked}{more}"))
    effect = (
        "The data set is stopped. Once you have looked, run `lapwing data resume`." if stopped else _left(len(rows))
    )
    return [Fitted(table), Text(), text(effect)]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _left(count: int) -> str:
    left = FAULTS_ALLOWED - count
    return (
        f"{left} more {'stops' if left == 1 else 'stop'} the data set. Once you have looked, run `lapwing data resume`."
    )


def _document(fault: "FaultRow") -> dict[str, object]:
    charges = [
        {
            "sequence": row.sequence,
            "principal": row.principal,
            "question": row.question,
            "text": None if row.wording is None else row.wording.text,
        }
        for row in fault.charges
    ]
    return {"sequence": fault.sequence, "time": fault.time, "cause": fault.cause, "charges": charges}
