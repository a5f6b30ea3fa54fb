"""What was found of a table's data as a document, and in sentences: for the curator, who may see it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from lapwing.catalog import spelling
from lapwing.catalog.condition import in_words
from lapwing.catalog.ways_of_writing import like, ways

if TYPE_CHECKING:
    from lapwing.catalog.model import Column
    from lapwing.catalog.ways_of_writing import Notation
    from lapwing.engines.data_check import ColumnCheck, TableCheck

PRIVATE: Final = (
    "Exact figures of the data, without noise: for the curator, not for publication. Do not copy a figure from here "
    "into the catalog unless it is known from elsewhere."
)
NOUNS: Final = {
    "integer": "an integer",
    "decimal": "a number",
    "float": "a number",
    "boolean": "true or false",
    "date": "a date like 2024-12-31",
    "timestamp": "a timestamp like 2024-12-31 23:59:59",
}


def as_document(check: "TableCheck") -> dict[str, object]:
    """Return what was found of a table, as JSON has it."""
    units = check.units
    return {
        "table": check.table.name,
        "source": check.table.source,
        "where": in_words(check.table.where) or None,
        "passes": check.passes,
        "rows": check.rows,
        "columns": [
            {**asdict(column), **{name: _counted_values(getattr(column, name)) for name in VALUES}}
            for column in check.columns
        ],
        "units": None
        if units is None
        else {
            "column": units.column,
            "units": units.units,
            "rows_without_unit": units.without,
            "most_rows_of_one": units.greatest,
            "limits": [
                {"max_rows_per_unit": most, "rows_left_out": rows, "units_cut": cut, "declared": most == units.most}
                for most in units.choices()
                for rows, cut in [units.beyond(most)]
            ],
        },
        "repeated_keys": [{"columns": list(key), "values": values} for key, values in check.repeated],
    }


VALUES: Final = ("examples", "unlisted_values", "codes")


def _counted_values(values: "Sequence[tuple[str, int]]") -> list[dict[str, object]]:
    return [{"value": value, "times": times} for value, times in values]


def findings(check: "TableCheck") -> Iterator[tuple[str, str]]:
    """Yield what is worth a word of each column, and of the rows, with its name."""
    declared = {column.name: column for column in check.table.columns}
    for column in check.columns:
        for said in _said(column, declared[column.name], check.rows):
            yield column.name, said
    for key, values in check.repeated:
        said = f"in several rows, so it is not clear whose the rows are that link to them: {counted(values, 'value')}"
        yield ", ".join(key), said
    yield from ((check.table.name, said) for said in code_findings(check))
    units = check.units
    if units is not None and units.without:
        parent = None if check.table.link is None else check.table.link.parent.name
        why = f"no row of {parent} has their key" if parent else f"{units.column} is NULL or cannot be read"
        yield check.table.name, f"left out of every query, because {why}: {counted(units.without, 'row')}"


def _said(column: "ColumnCheck", declared: "Column", rows: int) -> Iterator[str]:
    examples = _times(column.examples)
    if column.unreadable:
        values = counted(column.unreadable, "value")
        said = f"not {_noun(declared)}, counted as NULL: {values}, like {examples}"
        yield said + _way_of_writing(column, declared, rows)
    if column.fractions:
        yield f"not whole, and rounded: {counted(column.fractions, 'value')}, like {examples}"
    if column.unfit and declared.unreadable is not None:
        what = "accepts" if declared.unreadable == "null" else "refuses"
        yield f"the catalog {what} such values here, as unreadable = {spelling.text(declared.unreadable)} says"
    where = " in SUM and AVG, and left out of GROUP BY" if declared.numeric else ""  # a date counts so everywhere
    for count, side, bound in ((column.below, "below", declared.lower), (column.above, "above", declared.upper)):
        if count:
            yield f"{side} {bound}: {counted(count, 'value')}, counted as {bound}{where}"
    if column.unlisted:
        how = "left out of GROUP BY" if declared.other is None else f"counted as {declared.other}"
        every = ", which is all: none is spelled as in the catalog" if column.unlisted == rows - column.nulls else ""
        which = "" if not column.unlisted_values else f", like {_times(column.unlisted_values)}"
        yield f"not listed in the catalog, {how}: {counted(column.unlisted, 'value')}{every}{which}"
    if column.too_long:
        yield f"longer than {declared.max_length} bytes, counted as NULL: {counted(column.too_long, 'text')}"


def _noun(declared: "Column") -> str:
    written = None if declared.reading is None else declared.reading.format
    if written is not None:
        return f"a {declared.type} like {like(written)}, as format = {spelling.text(written)} says"
    return NOUNS.get(declared.type, declared.type)


def code_findings(check: "TableCheck") -> Iterator[str]:
    """Yield values that look like codes for missing ones, with the columns that have them, the same codes together."""
    alike: dict[tuple[str, ...], list[ColumnCheck]] = {}
    for column in check.columns:
        if column.codes:
            alike.setdefault(tuple(value for value, _ in column.codes), []).append(column)
    for values, columns in alike.items():
        named = ", ".join(f"{column.name} ({sum(times for _, times in column.codes):,})" for column in columns)
        written = ", ".join(map(_written, values))
        yield (
            f"{', '.join(map(repr, values))} may be codes for missing values, in {named}. If the codebook says so, "
            f"write missing = [{written}] at the columns in the catalog"
        )


def _times(values: "Sequence[tuple[str, int]]") -> str:
    return ", ".join(f"{value!r} ({times:,})" for value, times in values)


def _written(value: str) -> str:
    return value if re.fullmatch(r"-?[0-9]+", value) else spelling.text(value)


def _way_of_writing(column: "ColumnCheck", declared: "Column", rows: int) -> str:
    """Say of values that are all written in one known way how they can be read.

    A column has one way. Where the catalog says one, or as many values are written otherwise, the data are to be
    corrected: a decimal comma would make numbers with a point unreadable, and a format all other dates.
    """
    found = ways([str(example).strip() for example, _ in column.examples])
    if not found:
        return ""
    if declared.reading is not None and declared.reading.changes_texts:
        return f"; written with {found[0].words}, and the catalog says another way for the column"
    proposed = [way for way in found if _others(way, column, rows) < column.unreadable]
    if not proposed:
        others, these = _others(found[0], column, rows), "this value" if column.unreadable == 1 else "these values"
        words = " or ".join(dict.fromkeys(way.words for way in found))
        return f"; written with {words}, unlike {counted(others, 'other value')}: correct {these} in the data"
    found = tuple(proposed)
    said = [", ".join(f"{key} = {spelling.text(text)}" for key, text in way.entries) for way in found]
    words = " or ".join(dict.fromkeys(way.words for way in found))
    return f"; written with {words}: say {', or '.join(said)}, in the catalog"


def _others(way: "Notation", column: "ColumnCheck", rows: int) -> int:
    """Return how many values can be read now, and could not in this way."""
    if way.reading.format is not None:
        return rows - column.nulls - column.unreadable
    return column.pointed if way.reading.decimal_mark == "," else 0


def counted(count: int, what: str) -> str:
    """Return a number with what it counts."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
