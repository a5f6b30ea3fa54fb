"""A data set in DCAT and CSVW has what the standards require, and all that the data dictionary says."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from lapwing.documents.csvw_document import DATATYPES, csvw_document
from lapwing.documents.dataset_document import dataset_document
from lapwing.documents.dcat_document import CONTEXT, dcat_document
from tests.catalog.test_dictionary import described
from tests.support.catalog.examples import TEXT, catalog

HOSTILE = """
[tables."wards & co/2"]
source = "wards.csv"
public = true
licence = "https://creativecommons.org/licenses/by/4.0/"
contact = "javascript:alert(1)"
[tables."wards & co/2".columns]
"_name.of-ward ü" = { type = "string", title = "<script>" }
"""
LINKED = """
[tables.items]
source = "items.parquet"
link = { table = "visits", on = { visit = "number" } }
max_rows_per_unit = 3
[tables.items.columns]
visit = { type = "integer" }
paid = { type = "boolean", nullable = false }
"""
TEXTS = {
    "plain": TEXT,
    "described": described(),
    "hostile": described() + HOSTILE,
    "linked": TEXT + 'number = { type = "integer" }\n' + LINKED,
}


def facts(name: str) -> Mapping[str, Any]:
    return dataset_document("clinic", catalog(TEXTS[name]))


# What DCAT-AP 3.0 calls mandatory (chapter 5, "mandatory properties"), of the classes that a document has.
MANDATORY = {
    "dcat:Dataset": ("dct:title", "dct:description"),
    "foaf:Agent": ("foaf:name",),
    "vcard:Kind": (),
    "dct:LicenseDocument": (),
    "dct:ProvenanceStatement": ("rdfs:label",),  # it has no other
    "dct:RightsStatement": ("rdfs:label",),
}
RANGES = {
    "dct:publisher": "foaf:Agent",
    "dct:license": "dct:LicenseDocument",
    "dct:provenance": "dct:ProvenanceStatement",
    "dct:accessRights": "dct:RightsStatement",
    "dcat:contactPoint": "vcard:Kind",
    "dct:hasPart": "dcat:Dataset",
}


def dcat_faults(node: Any) -> list[str]:
    """Return what is missing in a document of DCAT, or of another class than the range of its property."""
    if isinstance(node, list):
        return [fault for one in node for fault in dcat_faults(one)]
    if not isinstance(node, dict) or node.keys() == {"@id"}:
        return []
    kind = node.get("@type")
    faults = [] if kind in MANDATORY else [f"class {kind}"]
    faults += [f"{kind} without {key}" for key in MANDATORY.get(str(kind), ()) if not str(node.get(key, "")).strip()]
    for key, value in node.items():
        prefix = key.partition(":")[0]
        if key != "@context" and not key.startswith("@") and prefix not in CONTEXT:
            faults.append(f"prefix {prefix}")
        for one in value if isinstance(value, list) else [value]:
            if key in RANGES and one.get("@type") != RANGES[key]:
                faults.append(f"{key} is {one.get('@type')}")
        faults += dcat_faults(value) if key != "@context" else []
    return faults


@pytest.mark.parametrize("name", TEXTS)
def test_dcat_has_what_is_mandatory(name: str) -> None:
    document = dcat_document(facts(name))
    assert dcat_faults(document) == []
    assert json.loads(json.dumps(document)) == document
    assert "dcat:distribution" not in document, "nobody can download a row"
    del document["dct:hasPart"][0]["dct:title"]
    document["dct:accessRights"]["@type"] = "dcat:Dataset"
    assert len(dcat_faults(document)) >= 3, "planted faults must be found"


def test_dcat_says_what_the_curator_said() -> None:
    document = dcat_document(facts("hostile"))
    visits, wards = document["dct:hasPart"]
    assert (document["dct:title"], document["dct:publisher"]["foaf:name"]) == ("The clinic", "Statistics")
    assert document["dct:license"] == {"@type": "dct:LicenseDocument", "rdfs:label": "CC-BY-4.0"}
    assert visits["dcat:contactPoint"]["vcard:hasEmail"] == {"@id": "mailto:data@example.org"}
    assert wards["dct:license"]["@id"] == "https://creativecommons.org/licenses/by/4.0/"
    assert wards["dcat:contactPoint"].keys() == {"@type", "vcard:fn"}, "an address that runs a script is no address"
    assert "epsilon = 3 and delta = 0.000001" in document["dct:accessRights"]["rdfs:label"]


# The Metadata Vocabulary for Tabular Data: 5.1.2 (contexts), 5.3 (groups), 5.4 (tables), 5.5 (schemas), 5.6 (columns).
GROUP = {"@context", "tables"}
TABLE = {"url", "tableSchema"}
SCHEMA = {"columns", "foreignKeys"}
COLUMN = {"name", "titles", "datatype", "required"}
BASES = {"integer", "decimal", "double", "boolean", "string", "date", "dateTime"}
NAME = re.compile(r"(?:[A-Za-z0-9]|%[0-9A-F]{2})(?:[A-Za-z0-9_]|%[0-9A-F]{2})*")
PREFIXES = {"dc", "dcat", "schema", "skos"}  # of the initial context of RDFa, which CSVW knows


def csvw_faults(document: Mapping[str, Any]) -> list[str]:
    faults = [] if document.get("@context") == "http://www.w3.org/ns/csvw" else ["context"]
    faults += _others(document, GROUP) + ([] if document.get("tables") else ["no tables"])
    columns = {table.get("url"): [c["name"] for c in table["tableSchema"]["columns"]] for table in document["tables"]}
    for table in document["tables"]:
        faults += _others(table, TABLE) + _others(table["tableSchema"], SCHEMA)
        if not re.fullmatch(r"[\w.%-]+", table.get("url", ""), re.ASCII):
            faults.append("url")
        names = columns[table.get("url")]
        faults += ["names"] if len(set(names)) < len(names) or not all(map(NAME.fullmatch, names)) else []
        for column in table["tableSchema"]["columns"]:
            faults += _others(column, COLUMN) + ([] if column["datatype"] in BASES else ["datatype"])
        for key in table["tableSchema"].get("foreignKeys", ()):
            there = columns.get(key["reference"]["resource"], [])
            known = set(key["columnReference"]) <= set(names) and set(key["reference"]["columnReference"]) <= set(there)
            faults += [] if known and key["columnReference"] else ["foreign key"]
    return faults


def _others(node: Mapping[str, Any], own: set[str]) -> list[str]:
    """Return the properties of a node that are neither of the vocabulary nor prefixed names of a known prefix."""
    return [f"property {key}" for key in node if key not in own and key.partition(":")[0] not in PREFIXES]


@pytest.mark.parametrize("name", TEXTS)
def test_csvw_has_what_is_required(name: str) -> None:
    document = csvw_document(facts(name))
    assert csvw_faults(document) == []
    assert set(DATATYPES.values()) == BASES
    del document["tables"][0]["url"]
    document["tables"][0]["tableSchema"]["columns"][0] |= {"name": "_x", "datatype": "text", "unit": "kg"}
    assert len(csvw_faults(document)) >= 4, "planted faults must be found"


def test_csvw_says_what_the_curator_said() -> None:
    visits, wards = csvw_document(facts("hostile"))["tables"]
    columns = {column["titles"]: column for column in visits["tableSchema"]["columns"]}
    assert columns["age"]["schema:unitText"] == "years"
    assert columns["age"]["dc:title"] == "Age"
    concepts = columns["plan"]["dc:references"]["skos:hasTopConcept"]
    assert [(one["skos:notation"], one.get("skos:prefLabel")) for one in concepts] == [
        ("a", "Small"),
        ("b", None),
        ("c", "Grand ✚"),
    ]
    assert wards["url"] == "wards%20%26%20co%2F2.csv"
    (name,) = wards["tableSchema"]["columns"]
    assert name["name"] == "%5Fname%2Eof%2Dward%20%C3%BC"
    assert name["titles"] == "_name.of-ward ü"


def test_csvw_has_links() -> None:
    _, items = csvw_document(facts("linked"))["tables"]
    (key,) = items["tableSchema"]["foreignKeys"]
    assert key == {"columnReference": ["visit"], "reference": {"resource": "visits.csv", "columnReference": ["number"]}}
    assert [column.get("required") for column in items["tableSchema"]["columns"]] == [None, True]
