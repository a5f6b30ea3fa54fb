"""`lapwing audit-log`: who did what to people, rights and data, as a service keeps it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lapwing.cli.characters import visible
from lapwing.cli.console import print_text
from lapwing.cli.options import DEFAULT_CATALOG, CatalogFile, examples
from lapwing.errors import Fault, InvalidParameter

if TYPE_CHECKING:
    from lapwing.server.audit_mark import AuditMark
    from lapwing.server.store import Store

app = typer.Typer(
    help="Who did what to people, rights and data, as a service keeps it.",
    epilog=examples("lapwing audit-log verify --catalog visits.lapwing.toml"),
    rich_markup_mode=None,
)
People = Annotated[
    str | None,
    typer.Option(
        "--people",
        metavar="FILE | ADDRESS",
        help="The store of people, as `lapwing serve` takes it. Where the catalog's ledger is, unless given.",
        show_default=False,
    ),
]


@app.callback()
def audit_log() -> None:
    """Look after the audit log of a service."""


@app.command(
    epilog=examples(
        "lapwing audit-log verify --catalog visits.lapwing.toml", "lapwing audit-log verify --file audit.jsonl"
    )
)
def verify(
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="An export of `/v1/audit` from its first line on."),
    ] = None,
    people: People = None,
    catalog: CatalogFile = DEFAULT_CATALOG,
) -> None:
    """Check every line of the audit log, and that none is missing at its end. Needs no data."""
    if file is not None:
        _verify_export(file)
        return
    with _opened(people, catalog) as (store, mark):
        newest = mark.verify()
        print_text(
            f"{visible(store.name)}: {newest.sequence:,} lines, an unbroken chain, as far as its mark. The newest is "
            f"{newest.hash}.\n"
        )


@app.command(epilog=examples("lapwing audit-log accept --catalog visits.lapwing.toml"))
def accept(people: People = None, catalog: CatalogFile = DEFAULT_CATALOG) -> None:
    """Take the audit log as it is after people were put back from a copy (for the operator). The log says so."""
    from lapwing.opening import principal  # here, so that `lapwing --help` loads no engine

    with _opened(people, catalog) as (store, mark):
        had = mark.accept(principal())
        print_text(
            f"{visible(store.name)}: nothing is missing.\n"
            if had is None
            else f"{visible(store.name)}: taken as it is; it had come to line {had.sequence:,}. The log says so.\n"
        )


def _verify_export(file: Path) -> None:
    import json

    from lapwing.server.audit_log import first_broken  # here: it needs the extra `server`

    try:
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        place, newest = first_broken(iter(lines)), lines[-1]["hash"] if lines else "none"
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidParameter(f"{file.name} is no audit log; give what `/v1/audit` returned, whole.") from None
    if place is not None:
        raise Fault(f"{file.name} is broken: its line {place:,} cannot follow the one before.")
    print_text(
        f"{visible(file.name)}: {len(lines):,} lines, an unbroken chain. The newest is {newest}; a chain that was cut "
        "off is whole too, so compare.\n"
    )


@contextmanager
def _opened(people: str | None, catalog: Path) -> Iterator[tuple["Store", "AuditMark"]]:
    """Open the store of a service and the mark of its audit log, and close it at the end."""
    from lapwing.catalog.ledger import POSTGRES  # here, so that `lapwing --help` loads no engine
    from lapwing.catalog.toml import load

    try:
        from lapwing.server.audit_mark import AuditMark, base_of
        from lapwing.server.service import open_store, people_of
    except ModuleNotFoundError as missing:
        raise InvalidParameter(
            f"The audit log needs {missing.name}, which is not installed. Run `pip install 'lapwing[server]'`."
        ) from None
    in_database = people is not None and people.startswith(POSTGRES)
    described = load(catalog) if people is None or in_database else None
    place = people if people is not None else people_of(described) if described is not None else ""
    if not place.startswith(POSTGRES) and not Path(place).is_file():
        raise InvalidParameter(f"There is no store of people {place}; name it by --people.")
    store = open_store(place)
    try:
        folder = Path() if described is None else described.folder
        yield store, AuditMark(store, base_of(place, folder))
    finally:
        store.close()
