"""`lapwing describe`: what is public about a table."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from lapwing.cli import options
from lapwing.cli.characters import to_json
from lapwing.cli.console import Fitted, labelled, new_table, print_text, show, text
from lapwing.cli.tables import as_document
from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.tables import TableDescription, Tables

EXAMPLE = options.examples("lapwing describe visits", "lapwing describe visits --server https://dp.example.org")


def command(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A table or view.", show_default=False)],
    form: options.ReportFormat = options.ReportFormatName.table,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
    dataset: options.Dataset = None,
) -> None:
    """Show the columns of a table or view: types, bounds, listed values. Free, and reads no row."""
    with options.open_session(catalog, server, dataset) as session:
        described = described_in(session.tables, table)
    if form is options.ReportFormatName.json:
        print_text(to_json(as_document(described)))
        return
    show(*as_page(described))


def described_in(tables: "Tables", name: str) -> "TableDescription":
    """Return the description of a table or view.

    Raises:
        InvalidParameter: If there is none.
    """
    try:
        return tables[name]
    except KeyError as error:
        raise InvalidParameter(error.args[0]) from None


def as_page(described: "TableDescription") -> list[RenderableType]:
    """Return a description for people."""
    explained = any(column.meaning for column in described.columns)
    page = new_table("column", "type", *(["meaning"] if explained else []), "what it may hold", "NULL")
    for column in described.columns:
        null = "" if column.type is None else "yes" if column.nullable else "no"
        meaning = [text(column.meaning)] if explained else []
        page.add_row(text(column.name), text(column.type or ""), *meaning, text(described.about(column)), text(null))
    said: list[RenderableType] = [text(described.meaning)] if described.meaning else []
    if described.background:
        said.append(labelled(*described.background.items()))
    return [text(f"{described.name}: {described.summary}", "bold"), *said, Text(), Fitted(page)]
