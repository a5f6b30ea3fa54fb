"""`lapwing tables`: what may be asked about."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from lapwing.cli import options
from lapwing.cli.characters import to_json
from lapwing.cli.console import Fitted, new_table, print_text, show, text

if TYPE_CHECKING:
    from lapwing.tables import TableDescription

COLUMN: Final = (
    "name", "type", "lower", "upper", "step", "values", "other", "max_length", "nullable",
    "missing", "recode", "format", "decimal_mark", "thousands_mark", "currency",
    "title", "description", "unit", "provenance", "labels",
)  # fmt: skip

EXAMPLE = options.examples("lapwing tables", "lapwing describe visits")


def command(
    form: options.ReportFormat = options.ReportFormatName.table,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
    dataset: options.Dataset = None,
) -> None:
    """List the tables and views that you can query, and who is protected in them. Free, and reads no row."""
    with options.open_session(catalog, server, dataset) as session:
        tables = list(session.tables.values())
    if form is options.ReportFormatName.json:
        print_text(to_json({"tables": [as_document(table) for table in tables]}))
        return
    show(as_page(tables))


def as_page(tables: "Iterable[TableDescription]") -> Fitted:
    """Return what may be asked about, for people."""
    page = new_table("table", "columns", "what it is", numbers=["columns"])
    for table in tables:
        page.add_row(text(table.name), text(f"{len(table.columns):,}"), text(table.titled_summary))
    return Fitted(page)


def as_document(table: "TableDescription") -> dict[str, object]:
    """Return a description as JSON has it: what does not apply is left out."""
    facts = {
        "privacy_unit": table.privacy_unit,
        "max_rows_per_unit": table.max_rows_per_unit,
        "rows_at_most": table.rows_at_most,
        "people": table.people,
        "part": table.part,
        "where": table.where,
        "link": None if table.link is None else {"table": table.link[0], "on": dict(table.link[1])},
        "references": {to: dict(on) for to, on in table.references.items()} or None,
        "sql": table.sql,
        "title": table.title,
        "description": table.description,
        **table.background,
    }
    return {
        "name": table.name,
        "kind": table.kind,
        **{name: fact for name, fact in facts.items() if fact is not None},
        "columns": [
            {name: fact for name in COLUMN if (fact := getattr(column, name)) is not None} for column in table.columns
        ],
    }
