"""`lapwing ledger`: the durable record of what was spent."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lapwing.cli import figures
from lapwing.cli.characters import visible
from lapwing.cli.console import note, print_text
from lapwing.cli.options import DEFAULT_CATALOG, CatalogFile, Dataset, Server, examples, open_session
from lapwing.errors import InvalidParameter, LedgerFault

if TYPE_CHECKING:
    from lapwing.catalog.model import Catalog
    from lapwing.ledger.curating import Declared
    from lapwing.ledger.entries import Entry
    from lapwing.ledger.ledger import Ledger
    from lapwing.privacy.additive import Loss


app = typer.Typer(
    help="Verify, copy and restore the record of spending.",
    epilog=examples("lapwing ledger verify", "lapwing ledger backup visits.ledger.jsonl"),
    rich_markup_mode=None,
)


@app.callback()
def ledger() -> None:
    """Look after the record of what was spent."""


@app.command(
    epilog=examples("lapwing ledger verify", "lapwing ledger verify --file visits.ledger.jsonl"),
    short_help="Check that no entry was changed.",
)
def verify(
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", metavar="FILE", help="Check a copy instead of the ledger; needs neither catalog nor ledger."
        ),
    ] = None,
    catalog: CatalogFile = DEFAULT_CATALOG,
) -> None:
    """Check the seal (a hash) of every entry of the ledger. A changed entry is an error. Reads no data."""
    if file is not None:
        _verify_copy(file)
        return
    with _opened(catalog) as (described, book):
        entries, state = book.verify(), book.state()
    print_text(
        f"{visible(described.ledger_path.name)}: {_counted(entries)}, an unbroken chain.\n"
        f"The seal of the newest entry is {state.hash}.\n"
    )


@app.command(epilog=examples("lapwing ledger export visits.ledger.jsonl"), short_help="Write all entries to a file.")
def export(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="Standard output unless given.")] = None,
    catalog: CatalogFile = DEFAULT_CATALOG,
    server: Server = None,
    dataset: Dataset = None,
) -> None:
    """Write all entries, one a line, as JSON that `lapwing ledger verify --file` checks. As secret as the ledger."""
    from lapwing.ledger import exporting

    with _entries(catalog, server, dataset) as entries:
        if file is None:
            for line in exporting.lines(entries):
                print_text(line)
            return
        state = exporting.write(entries, file)
    note("written", f"{state.sequence:,} entries to {file}, with the seal {state.hash}")


@app.command(
    epilog=examples("lapwing ledger backup visits.ledger.jsonl"), short_help="Copy the ledger, and check the copy."
)
def backup(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The command replaces an older copy of the same ledger.")
    ],
    catalog: CatalogFile = DEFAULT_CATALOG,
) -> None:
    """Copy the ledger to a file while others use it, and check the copy. It has the form of an export."""
    from lapwing.ledger import exporting

    with _opened(catalog) as (_, book):
        state = exporting.write(book.entries(), file, newer=True)
    note("written", f"{state.sequence:,} entries to {file}, with the seal {state.hash}")


@app.command(
    epilog=examples("lapwing ledger restore visits.ledger.jsonl"), short_help="Restore a lost ledger from a copy."
)
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A copy from `lapwing ledger backup`.")],
    newest: Annotated[
        bool, typer.Option("--newest", help="Without a mark: declare that nothing was charged after this copy.")
    ] = False,
    lost: Annotated[
        bool, typer.Option("--lost", help="Declare that entries are lost; the whole budget then counts as spent.")
    ] = False,
    catalog: CatalogFile = DEFAULT_CATALOG,
) -> None:
    """Replace a lost ledger by a copy (for the curator). Lapwing refuses a copy that would undo spending.

    The mark, a small file next to the ledger, has the number of its entries. If the copy has fewer, Lapwing refuses it,
    unless you declare by --lost that entries are lost. Then the whole budget counts as spent, and you may raise it.
    """
    from lapwing.catalog.toml import load  # here, so that `lapwing --help` loads no engine
    from lapwing.ledger import exporting
    from lapwing.ledger.restoring import restore_in
    from lapwing.release.account import principal, registration

    if newest and lost:
        raise InvalidParameter(
            "Either the copy is the newest, or entries are lost. Give only one of --newest and --lost."
        )
    described = load(catalog)
    declared: Declared | None = "newest" if newest else "lost" if lost else None
    entries = tuple(exporting.entries_of(file))
    state = restore_in(described.ledger, described.folder, entries, registration(described), declared, principal())
    left = "nothing of the budget" if lost else _share(state.account.remaining, state.account.budget)
    name = visible(described.ledger_path.name)
    print_text(
        f"{name}: {len(entries):,} entries restored; {left} is left. Entry {state.sequence:,} of the ledger records "
        "this.\n"
    )


def _verify_copy(file: Path) -> None:
    from lapwing.ledger import exporting  # here, so that `lapwing --help` loads no engine

    state = exporting.verified(file)
    spent = _share(state.account.spent, state.account.budget)
    print_text(
        f"{visible(file.name)}: {_counted(state.sequence)} of "
        f"{visible(state.registration.dataset)}, an unbroken chain.\n"
        f"{spent} is spent. The seal of the newest entry is {state.hash}.\n"
        "A copy without its newest entries passes this check, too. Compare the seal with the one "
        "of the ledger, which `lapwing ledger verify` shows. It is also the last word in the ledger's .mark file.\n"
    )


def _counted(number: int) -> str:
    return f"{number:,} {'entry' if number == 1 else 'entries'}"


def _share(part: "Loss", budget: "Loss") -> str:
    return f"{figures.share(float(part.amount / budget.amount))} of the budget"


@contextmanager
def _entries(catalog: Path, server: str | None, dataset: str | None) -> Iterator[Iterator["Entry"]]:
    """Open all entries of a ledger, or of a server's, which takes the right `audit`."""
    if server is not None or dataset is not None:
        with open_session(catalog, server, dataset) as session:
            yield session.ledger_entries()
        return
    with _opened(catalog) as (_, book):
        yield book.entries()


@contextmanager
def _opened(catalog: Path) -> Iterator[tuple["Catalog", "Ledger"]]:
    """Open the ledger of a catalog, if there is one, and close it at the end."""
    from lapwing.catalog.toml import load  # here, so that `lapwing --help` loads no engine
    from lapwing.ledger.opening import is_begun, open_ledger
    from lapwing.release.account import registration

    described = load(catalog)
    if not is_begun(described.ledger, described.folder):
        raise LedgerFault(f"There is no ledger {described.ledger_path.name} yet; the first query creates it.")
    book = open_ledger(described.ledger, described.folder, registration(described))
    try:
        yield described, book
    finally:
        book.close()
