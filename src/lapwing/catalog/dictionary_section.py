"""The data dictionary in a catalog's file: its keys read from sections, and written into them."""

from collections.abc import Mapping
from typing import Final, cast

from lapwing.catalog import spelling
from lapwing.catalog.dictionary import NONE, OF_COLUMN, OF_DATASET, OF_TABLE, Dictionary, Texts, check_labels
from lapwing.catalog.place import refuse, within
from lapwing.catalog.section import TomlSection
from lapwing.catalog.table import Column, Value

_EXAMPLES: Final = {
    "title": "Visits to outpatient clinics", "description": "One row for each visit.", "unit": "kg",
    "owner": "Department of Statistics", "provenance": "Billing system, 2020 to 2024", "licence": "CC-BY-4.0",
    "contact": "data@example.org", "unit_title": "patient",
}  # fmt: skip


def dictionary_in(
    dataset: TomlSection, tables: Mapping[str, TomlSection], columns: Mapping[str, tuple[Column, ...]]
) -> Dictionary:
    """Read the texts of a data set, of its tables and of their columns.

    Args:
        tables: Their sections, by name.
        columns: The columns of each table.

    Raises:
        CatalogError: With the place of what is wrong.
    """
    entries: dict[tuple[str, ...], Texts] = {}
    for name, section in tables.items():
        entries[(name,)] = _texts(section, OF_TABLE)
        described = section.section("columns")
        for column in columns.get(name, ()):
            own = described.section(column.name)
            labels = _labels(own)
            with within(own.path):
                check_labels(column, labels)
            entries[(name, column.name)] = _texts(own, OF_COLUMN, labels)
    return Dictionary.of(entries, _texts(dataset, OF_DATASET))


def values_in(section: TomlSection) -> tuple[object, ...]:
    """Return the listed values of a column, without their labels."""
    return tuple(value for value, _ in _listed(section))


def dataset_lines(dictionary: Dictionary) -> list[str]:
    """Return the lines for the texts of a data set."""
    return _lines(dictionary.dataset)


def table_lines(dictionary: Dictionary, table: str) -> list[str]:
    """Return the lines for the texts of a table."""
    return _lines(dictionary.table(table))


def values_entry(column: Column, texts: Texts) -> str:
    """Return the listed values of a column, with their labels."""
    labels = dict(texts.labels)
    return f"values = [{', '.join(_value_entry(value, labels.get(value)) for value in column.values or ())}]"


def column_entries(texts: Texts) -> list[str]:
    """Return the entries for the texts of a column; `values_entry` has its labels."""
    return _lines(texts)


def _texts(section: TomlSection, keys: tuple[str, ...], labels: tuple[tuple[Value, str], ...] = ()) -> Texts:
    said = {key: section.text(key, example=_EXAMPLES[key]) for key in keys if section.has(key)}
    if not said and not labels:
        return NONE
    with within(section.path):
        return Texts(**said, labels=labels)


def _labels(section: TomlSection) -> tuple[tuple[Value, str], ...]:
    if not section.has("values"):
        return ()
    return tuple((cast("Value", value), label) for value, label in _listed(section) if label is not None)


def _listed(section: TomlSection) -> list[tuple[object, str | None]]:
    """Return the listed values, each with its label or None."""
    return [_entry(section, value) for value in section.items("values")]


def _entry(section: TomlSection, value: object) -> tuple[object, str | None]:
    if not isinstance(value, dict):
        return value, None
    if value.keys() != {"value", "label"} or not isinstance(value["label"], str):
        reason = 'has an entry that is not a value with its label; write it like { value = 1, label = "male" }'
        refuse(section.place("values"), reason)
    return value["value"], value["label"]


def _lines(texts: Texts) -> list[str]:
    return [f"{key} = {spelling.text(content)}" for key, content in texts.facts.items()]


def _value_entry(value: Value, label: str | None) -> str:
    spelled = spelling.value(value)
    return spelled if label is None else f"{{ value = {spelled}, label = {spelling.text(label)} }}"
