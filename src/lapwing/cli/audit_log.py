"""`lapwing audit-log`: who did what to people, rights and data, as a service keeps it."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from lapwing.cli.characters import to_json, visible
from lapwing.cli.console import Fitted, new_table, note, print_text, show, text
from lapwing.cli.options import DEFAULT_CATALOG, CatalogFile, ReportFormat, ReportFormatName, Server, examples
from lapwing.cli.service.places import PeopleStore, opened_people, opened_store
from lapwing.documents.audit_words import act_in_words, details_in_words
from lapwing.errors import Fault, InvalidParameter
from lapwing.machine.drafts import draft_of

app = typer.Typer(
    help="Show and check the audit log: who changed people, rights and data. `lapwing budget` lists queries.",
    epilog=examples("lapwing audit-log list --last 20", "lapwing audit-log verify"),
    rich_markup_mode=None,
)


@app.callback()
def audit_log() -> None:
    """Look after the audit log of a service."""


@app.command(
    "list",
    epilog=examples("lapwing audit-log list --last 20", "lapwing audit-log list --server https://dp.example.org"),
    short_help="Show the lines of the log.",
)
def show_lines(
    last: Annotated[
        int | None, typer.Option("--last", metavar="N", min=1, help="Show only the newest N lines.")
    ] = None,
    form: ReportFormat = ReportFormatName.table,
    people: PeopleStore = None,
    catalog: CatalogFile = DEFAULT_CATALOG,
    server: Server = None,
) -> None:
    """Show who did what to people, rights and data, the newest last."""
    with opened_people(people, catalog, server) as administration:
        every = administration.audit_lines()
    lines = [json.loads(line) for line in (every if last is None else every[-last:])]
    if form is ReportFormatName.json:
        print_text(to_json({"lines": lines}))
        return
    table = new_table("time (UTC)", "who", "did", "to", "details")
    for line in lines:
        when = line["time"][:16].replace("T", " ")
        table.add_row(*map(text, (when, line["actor"], act_in_words(line), line["subject"], details_in_words(line))))
    show(Fitted(table))


@app.command(
    epilog=examples("lapwing audit-log export audit.jsonl", "lapwing audit-log verify --file audit.jsonl"),
    short_help="Write all lines to a file.",
)
def export(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="Standard output unless given.")] = None,
    people: PeopleStore = None,
    catalog: CatalogFile = DEFAULT_CATALOG,
    server: Server = None,
) -> None:
    """Write all lines, each as JSON, which `lapwing audit-log verify --file` checks."""
    with opened_people(people, catalog, server) as administration:
        lines = [f"{line}\n" for line in administration.audit_lines()]
    if file is None:
        print_text("".join(lines))
        return
    try:
        with draft_of(lines, file) as draft:
            os.link(draft, file)
    except FileExistsError:
        raise InvalidParameter(f"{file.name} already exists, and may have more lines; name a new file.") from None
    note("written", f"{len(lines):,} lines to {file}")


@app.command(
    epilog=examples("lapwing audit-log verify", "lapwing audit-log verify --file audit.jsonl"),
    short_help="Check that no line was edited or is missing.",
)
def verify(
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", metavar="FILE", help="Check a file of `lapwing audit-log export`, or a download from the console."
        ),
    ] = None,
    people: PeopleStore = None,
    catalog: CatalogFile = DEFAULT_CATALOG,
) -> None:
    """Check every line of the audit log, and that none is missing at its end. Needs no data.

    Of a server, export the log first, and check the file with --file. A file cannot show that lines are missing at its
    end: compare its newest seal with an earlier one, or with the seal that the console shows.
    """
    if file is not None:
        _verify_export(file)
        return
    with opened_store(people, catalog) as (store, base):
        from lapwing.server.audit_mark import AuditMark  # here, so that `lapwing --help` loads no engine

        newest = AuditMark(store, base).verify()
        print_text(
            f"{visible(store.name)}: {_lines(newest.sequence)}, an unbroken chain up to its mark.\n"
            f"The seal of the newest line is {newest.hash}.\n"
        )


@app.command(
    epilog=examples("lapwing audit-log accept"),
    short_help="Accept the log as it is, after you restored people.",
)
def accept(people: PeopleStore = None, catalog: CatalogFile = DEFAULT_CATALOG) -> None:
    """Accept the audit log as it is, after you restored people from a copy. The log records it."""
    with opened_store(people, catalog) as (store, base):
        from lapwing.release.account import principal  # here, so that `lapwing --help` loads no engine
        from lapwing.server.audit_mark import AuditMark

        had = AuditMark(store, base).accept(principal())
        print_text(
            f"{visible(store.name)}: nothing is missing.\n"
            if had is None
            else f"{visible(store.name)}: accepted as it is. Its newest line was {had.sequence:,}, and the log "
            f"records this.\n"
        )


def _lines(number: int) -> str:
    return f"{number:,} {'line' if number == 1 else 'lines'}"


def _verify_export(file: Path) -> None:
    from lapwing.server.audit_log import first_broken  # here, so that `lapwing --help` loads no engine

    try:
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        place, newest = first_broken(iter(lines)), lines[-1]["hash"] if lines else "none"
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidParameter(f"{file.name} is not an audit log; give the whole response of `/v1/audit`.") from None
    if place is not None:
        raise Fault(f"{file.name} is broken: line {place:,} was changed, or a line before it is missing.")
    print_text(
        f"{visible(file.name)}: {_lines(len(lines))}, an unbroken chain.\n"
        f"The seal of the newest line is {newest}.\n"
        "A file without its newest lines passes this check, too. Compare the seal with the one that `lapwing audit-log "
        "verify` shows on the server, or with one that you wrote down earlier.\n"
        "The person who runs the server can write another log with seals that fit. Only a seal kept elsewhere shows "
        "that.\n"
    )
