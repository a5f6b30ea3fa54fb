"""What is public about a data set, as JSON: its budget, and what a question may begin with."""

from collections.abc import Mapping
from typing import Any, NotRequired, cast

from typing_extensions import TypedDict  # pydantic describes those of `typing` from Python 3.12 on only

from lapwing.catalog.condition import in_words
from lapwing.catalog.digests import column_facts
from lapwing.catalog.model import Catalog, PublicTable, Table
from lapwing.catalog.protection import bound_of, units_of
from lapwing.privacy.amounts import written


class DatasetDocument(TypedDict):
    """What is public about a data set; `relations` are what a question may begin with, `graphs` what has statistics."""

    name: str
    budget: dict[str, str]
    tables: list[dict[str, Any]]
    views: dict[str, str]
    relations: NotRequired[list[dict[str, Any]]]
    graphs: NotRequired[list[dict[str, Any]]]
    title: NotRequired[str]
    description: NotRequired[str]
    owner: NotRequired[str]
    provenance: NotRequired[str]
    licence: NotRequired[str]
    contact: NotRequired[str]


def dataset_document(name: str, catalog: Catalog) -> DatasetDocument:
    """Return what is public about a data set: tables, columns with bounds and values, views, unit and budget."""
    budget = catalog.budget
    return {
        "name": name,
        **cast("DatasetDocument", catalog.dictionary.dataset.facts),
        "budget": {
            "epsilon": written(budget.epsilon),
            "delta": written(budget.delta),
            "delta_keys": written(budget.delta_keys),
            "measure": budget.measure,
            "neighbouring": budget.neighbouring,
        },
        "tables": [
            {
                "name": table.name,
                "protected": True,
                "privacy_unit": table.root.privacy_unit,
                "unit_name": table.unit_name,
                "protects": units_of([table], catalog.dictionary),
                "bound": bound_of([table], catalog.dictionary),
                "link": None if table.link is None else {"table": table.link.parent.name, "on": dict(table.link.on)},
                "references": {
                    reference.to: dict(reference.on)
                    for reference in catalog.references
                    if reference.table == table.name
                },
                "max_rows_per_unit": table.max_rows_per_unit,
                "rows_at_most": table.rows_at_most,
                "people": table.people,
                "part": table.part,
                "where": in_words(table.where) or None,
                **catalog.dictionary.table(table.name).facts,
                "columns": _columns(table, catalog),
            }
            for table in catalog.tables
        ]
        + [
            {"name": table.name, "protected": False, **table.facts}
            | ({"where": in_words(table.where)} if table.where else {})
            | catalog.dictionary.table(table.name).facts
            | {"columns": _columns(table, catalog)}
            for table in catalog.public_tables
        ],
        "views": {view.name: view.sql for view in catalog.views},
    }


def units_protected(dataset: Mapping[str, Any]) -> str:
    """Say whom a data set protects, as its document words it for each table: "each person"."""
    units = dict.fromkeys(table["protects"] for table in dataset["tables"] if table.get("protects"))
    return " and ".join(units) or "each edge"


def _columns(table: Table | PublicTable, catalog: Catalog) -> dict[str, dict[str, Any]]:
    """Return what is public about each column, and what the data dictionary says of it."""
    said = catalog.dictionary
    return {
        column.name: column_facts(column) | said.column(table.name, column.name).document for column in table.columns
    }
