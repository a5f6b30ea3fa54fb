"""`lapwing ledger`: the durable record of what was spent."""

from typing import Final

import typer

from lapwing.cli.characters import visible
from lapwing.cli.console import print_text
from lapwing.cli.options import DEFAULT_CATALOG, CatalogFile
from lapwing.errors import LedgerFault

EXAMPLE: Final = """\b
Example:
  lapwing ledger verify --catalog visits.lapwing.toml"""

app = typer.Typer(help="The record of what was spent.", epilog=EXAMPLE, rich_markup_mode=None)


@app.callback()
def ledger() -> None:
    """Look after the record of what was spent."""


@app.command(epilog=EXAMPLE)
def verify(catalog: CatalogFile = DEFAULT_CATALOG) -> None:
    """Walk the whole hash chain of the ledger and check every entry. Needs no data; changes nothing."""
    from lapwing.catalog.toml import load  # here, so that `lapwing --help` loads no engine
    from lapwing.ledger import mark
    from lapwing.ledger.sqlite import SqliteLedger
    from lapwing.opening import registration

    described = load(catalog)
    if not described.ledger_path.exists() and not mark.path_of(described.ledger_path).exists():
        raise LedgerFault(f"There is no ledger {described.ledger_path.name} yet; the first question makes it.")
    book = SqliteLedger.open(described.ledger_path, registration(described))
    try:
        entries = book.verify()
    finally:
        book.close()
    print_text(f"{visible(described.ledger_path.name)}: {entries:,} entries, an unbroken chain.\n")
