"""The tables of a data set as metadata of CSV on the Web (CSVW), a W3C Recommendation: public facts only.

A table is called by a file that nobody can download: `visits.csv` stands for the table `visits`. Bounds are notes and
no constraints, because a value outside of its bounds may stand in the data. Labels of values are concepts of SKOS.
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from lapwing.documents.dcat_document import is_address, protection_of

CONTEXT: Final = "http://www.w3.org/ns/csvw"
DATATYPES: Final[Mapping[str, str]] = {
    "integer": "integer", "decimal": "decimal", "float": "double", "boolean": "boolean", "string": "string",
    "date": "date", "timestamp": "dateTime",
}  # fmt: skip
"""The type in CSVW for each type of a catalog."""
_NAMED: Final = {"title": "dc:title", "description": "dc:description", "owner": "dc:publisher",
                 "provenance": "dc:provenance", "contact": "dcat:contactPoint"}  # fmt: skip


def csvw_document(dataset: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a group of tables.

    Args:
        dataset: A document of `documents.dataset_document`.
    """
    return {
        "@context": CONTEXT,
        "dc:identifier": dataset["name"],
        "dc:accessRights": protection_of(dataset),
        **_texts(dataset),
        "tables": [_table(table) for table in dataset["tables"]],
    }


def _table(table: Mapping[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = {"columns": [_column(name, facts) for name, facts in table["columns"].items()]}
    keys = _foreign_keys(table)
    if keys:
        schema["foreignKeys"] = keys
    return {"url": _file(table["name"]), "dc:identifier": table["name"], **_texts(table), "tableSchema": schema}


def _column(name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    column: dict[str, Any] = {"name": _name(name), "titles": name, "datatype": DATATYPES[facts["type"]]}
    if facts.get("nullable") == "false":
        column["required"] = True
    column |= _texts(facts)
    notes = {"unit": "schema:unitText", "lower": "schema:minValue", "upper": "schema:maxValue"}
    column |= {property_: facts[key] for key, property_ in notes.items() if key in facts}
    if "values" in facts:
        labels = facts.get("labels", {})
        concepts = [_concept(value, labels.get(value)) for value in facts["values"]]
        column["dc:references"] = {"@type": "skos:ConceptScheme", "skos:hasTopConcept": concepts}
    return column


def _concept(value: str, label: str | None) -> dict[str, Any]:
    concept = {"@type": "skos:Concept", "skos:notation": value}
    return concept if label is None else {**concept, "skos:prefLabel": label}


def _texts(said: Mapping[str, Any]) -> dict[str, Any]:
    texts: dict[str, Any] = {property_: said[key] for key, property_ in _NAMED.items() if key in said}
    licence = said.get("licence")
    if licence is not None:
        texts["dc:license"] = {"@id": licence} if is_address(licence) else licence
    return texts


def _foreign_keys(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the link and the references; a catalog declares their columns on both sides."""
    link = table.get("link")
    leads = [*([(link["table"], link["on"])] if link else []), *(table.get("references") or {}).items()]
    return [
        {
            "columnReference": [_name(here) for here in on],
            "reference": {"resource": _file(other), "columnReference": [_name(there) for there in on.values()]},
        }
        for other, on in leads
    ]


def _file(table: str) -> str:
    return f"{quote(table, safe='')}.csv"


def _name(column: str) -> str:
    """Return the name of a column as CSVW allows it: letters, digits, underscores inside, and escapes."""
    plain = quote(column, safe="").replace("-", "%2D").replace("~", "%7E").replace(".", "%2E")
    return f"%5F{plain[1:]}" if plain.startswith("_") else plain
