"""A data set in DCAT, the W3C's vocabulary of data catalogues, as JSON-LD: public facts only.

The data set is a `dcat:Dataset`, and so is each of its tables, which are its parts. DCAT-AP 3 asks for a title and a
description of each, and for the name of each agent. Where the curator wrote no title, it is the name. Where the curator
wrote no description, it is a sentence about protection. There is no distribution, because nobody can download a row.
"""

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from lapwing.documents.dataset_document import units_protected

CONTEXT: Final[Mapping[str, str]] = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
}
_ADDRESS: Final = re.compile(r"https?://[^\s<>\"{}|\\^`]+")
_MAIL: Final = re.compile(r"[^\s@<>\"]+@[^\s@<>\"]+\.[^\s@<>\"]+")


def dcat_document(dataset: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document of JSON-LD.

    Args:
        dataset: A document of `documents.dataset_document`.
    """
    tables = dataset["tables"]
    return {
        "@context": dict(CONTEXT),
        **_resource(dataset, dataset["name"], protection_of(dataset)),
        "dct:accessRights": {"@type": "dct:RightsStatement", "rdfs:label": protection_of(dataset)},
        "dct:hasPart": [
            _resource(table, f"{dataset['name']}.{table['name']}", _about(table)) for table in tables
        ],
    }  # fmt: skip


def protection_of(dataset: Mapping[str, Any]) -> str:
    """Say how rows of a data set can be used, and which budget protects the people in them."""
    budget = dataset["budget"]
    return (
        f"Lapwing answers queries with differential privacy and publishes no protected row. All results together have "
        f"epsilon = {budget['epsilon']} and delta = {budget['delta']}, for {units_protected(dataset)}."
    )


def is_address(text: str) -> bool:
    """Tell whether a text is the address of a page."""
    return _ADDRESS.fullmatch(text) is not None


def _resource(said: Mapping[str, Any], identifier: str, description: str) -> dict[str, Any]:
    """Return a data set or a table with the texts that there are."""
    resource: dict[str, Any] = {
        "@type": "dcat:Dataset",
        "dct:identifier": identifier,
        "dct:title": said.get("title", said["name"]),
        "dct:description": said.get("description", description),
    }
    if "owner" in said:
        resource["dct:publisher"] = {"@type": "foaf:Agent", "foaf:name": said["owner"]}
    if "contact" in said:
        resource["dcat:contactPoint"] = _contact(said["contact"])
    if "licence" in said:
        resource["dct:license"] = _licence(said["licence"])
    if "provenance" in said:
        resource["dct:provenance"] = {"@type": "dct:ProvenanceStatement", "rdfs:label": said["provenance"]}
    return resource


def _about(table: Mapping[str, Any]) -> str:
    if not table["protected"]:
        return f"The public table {table['name']}, in which nobody is protected."
    return f"The table {table['name']}, which protects {table.get('protects', 'its privacy units')}."


def _contact(contact: str) -> dict[str, Any]:
    kind: dict[str, Any] = {"@type": "vcard:Kind", "vcard:fn": contact}
    if _MAIL.fullmatch(contact):
        kind["vcard:hasEmail"] = {"@id": f"mailto:{quote(contact, safe='@+.')}"}
    elif is_address(contact):
        kind["vcard:hasURL"] = {"@id": contact}
    return kind


def _licence(licence: str) -> dict[str, Any]:
    if is_address(licence):
        return {"@id": licence, "@type": "dct:LicenseDocument"}
    return {"@type": "dct:LicenseDocument", "rdfs:label": licence}
