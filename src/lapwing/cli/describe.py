"""`lapwing describe`: what is public about a table, and about a data set in the forms of data catalogues."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

import lapwing as lw
from lapwing.cli import options
from lapwing.cli.characters import to_json
from lapwing.cli.console import Fitted, labelled, new_table, print_text, show, text
from lapwing.cli.tables import as_document
from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.client.remote_session import RemoteSession
    from lapwing.session import Session
    from lapwing.tables import TableDescription, Tables

EXAMPLE = options.examples(
    "lapwing describe visits",
    "lapwing describe visits --server https://dp.example.org",
    "lapwing describe --format dcat",
)


class DescriptionFormat(StrEnum):
    """How a description is written; the last two are of the whole data set."""

    table = "table"
    json = "json"
    dcat = "dcat"
    csvw = "csvw"


def command(
    table: Annotated[str | None, typer.Argument(metavar="[TABLE]", help="A table or view.", show_default=False)] = None,
    form: Annotated[
        DescriptionFormat,
        typer.Option("--format", help="How to write it. dcat and csvw describe the data set, without TABLE."),
    ] = DescriptionFormat.table,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
    dataset: options.Dataset = None,
) -> None:
    """Show the columns of a table or view: types, bounds, listed values. Free, and reads no row."""
    with options.open_session(catalog, server, dataset) as session:
        if form in (DescriptionFormat.dcat, DescriptionFormat.csvw):
            if table is not None:
                raise InvalidParameter(f"--format {form.value} describes the data set. Leave out {table}.")
            print_text(to_json(exported(session, form)))
            return
        if table is None:
            raise InvalidParameter(f"Name a table, as in `lapwing describe {next(iter(session.tables))}`.")
        described = described_in(session.tables, table)
    if form is DescriptionFormat.json:
        print_text(to_json(as_document(described)))
        return
    show(*as_page(described))


def exported(session: "Session | RemoteSession", form: DescriptionFormat) -> dict[str, object]:
    """Return the description of a data set as DCAT or as metadata of CSVW."""
    from lapwing.documents.csvw_document import csvw_document  # here, as few commands export
    from lapwing.documents.dataset_document import dataset_document
    from lapwing.documents.dcat_document import dcat_document

    if isinstance(session, lw.Session):
        document: Mapping[str, Any] = dataset_document(session.catalog.name, session.catalog)
    else:
        document = session.schema
    return dcat_document(document) if form is DescriptionFormat.dcat else csvw_document(document)


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
