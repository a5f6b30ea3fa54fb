"""Checks of a catalog: names, what a table says of its rows, and what tables say of one another.

Columns are checked in `column_checks`. Each refusal names the place that is wrong and says what to write instead.
"""

import re
from collections.abc import Iterable
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING

from lapwing.catalog import spelling
from lapwing.catalog.condition import check_conditions
from lapwing.catalog.place import refuse
from lapwing.catalog.source_address import OF_STORES, is_address, is_in_store, read_address
from lapwing.catalog.source_names import is_text
from lapwing.catalog.text_files import ENCODINGS

if TYPE_CHECKING:  # the values below call these checks when they are made
    from lapwing.catalog.model import Catalog
    from lapwing.catalog.public import PublicTable
    from lapwing.catalog.table import Column, Table
    from lapwing.catalog.text_files import TextFormat

ROW = "row"

MOST_COLUMNS = 10_000
MOST_ROWS_PER_UNIT = 10**9
MOST_ROWS = 10**12
MOST_LINKS = 16
KEY_TYPES = ("integer", "string", "date", "timestamp")  # those whose cleaned value is the value itself


# ---- names -----------------------------------------------------------------------------------------------------------


def one_of(place: str, word: str, allowed: tuple[str, ...]) -> None:
    """Refuse a word that is not on a list."""
    if word not in allowed:
        refuse(place, f"{spelling.value(word)} is unknown; write one of {', '.join(allowed)}")


def check_text(place: str, text: str) -> None:
    """Refuse a text that is empty or that some engine cannot hold."""
    if not text or not spelling.storable(text):
        refuse(place, "use at least one character, valid UTF-8, no NUL")


def refuse_same_names(place: str, names: Iterable[str]) -> None:
    """Refuse names that are equal, or differ only by case, because questions fold it."""
    seen: dict[str, str] = {}
    for name in names:
        folded = name.casefold()
        if folded in seen:
            both = f"{spelling.text(seen[folded])} and {spelling.text(name)}"
            refuse(place, f"{both} are the same name in a query, which ignores case; rename or remove one")
        seen[folded] = name


def check_columns(names: tuple[str, ...], most: int) -> None:
    """Refuse too many columns, and columns that a question cannot tell apart."""
    if len(names) > most:
        refuse(".columns", f"{len(names)} columns; at most {most} are allowed, list only those that queries need")
    refuse_same_names(".columns", names)


# ---- a table ---------------------------------------------------------------------------------------------------------


def check_table(table: "Table") -> None:
    """Refuse a protected table that contradicts itself or makes no sense."""
    check_text("", table.name)
    check_text(".source", table.source)
    check_columns(tuple(column.name for column in table.columns), MOST_COLUMNS)
    for check in (
        check_source, _check_whose, _check_privacy_unit, _check_unit_day, _check_name_of_units, _check_link_of,
        _check_most_rows, _check_rows_in_all, _check_people, _check_unreadable, _check_part_of, check_conditions,
    ):  # fmt: skip
        check(table)
    check_text_format(table.source, table.text)


def check_source(table: "Table | PublicTable") -> None:
    """Refuse an address that cannot be read, or that holds a password; nothing of it is repeated."""
    if is_address(table.source):
        try:
            read_address(table.source)
        except ValueError as error:
            refuse(".source", f"{error}")
    elif is_in_store(table.source):
        refuse(".source", OF_STORES)


def _check_whose(table: "Table") -> None:
    """Refuse a table that does not say whose rows it has, or says it twice."""
    if table.link is None:
        if table.privacy_unit is None:
            reason = "missing; name the column that says whose row it is, or link the table to one that has it"
            refuse(".privacy_unit", reason)
        return
    parent = spelling.text(table.link.parent.name)
    if table.privacy_unit is not None:
        refuse(".privacy_unit", f"the link to {parent} already says whose the rows are; remove one of the two")
    if table.unit is not None:
        refuse(".unit", f"the link to {parent} already says whose the rows are; remove it, or write it at {parent}")
    if table.part is not None:
        refuse(".part", f"the table at the end of the links from {parent} gives the part; remove it here")


def _check_privacy_unit(table: "Table") -> None:
    if table.privacy_unit is None:
        return
    place = ".privacy_unit"
    check_text(place, table.privacy_unit)
    for column in table.columns:
        if column.name.casefold() != table.privacy_unit.casefold():
            continue
        unit, listed = spelling.text(table.privacy_unit), spelling.text(column.name)
        if table.unit_is_row:
            refuse(place, f"{unit} protects each row by itself, but there is a column {listed}; leave it out")
        if column.name != table.privacy_unit:
            refuse(place, f"{unit} differs only by case from the column {listed}; write both alike")
        if column.type in ("float", "boolean"):
            remedy = "store identifiers as integers or strings"
            refuse(place, f"{unit} is of type {column.type}, which cannot tell people apart reliably; {remedy}")
        if column.reading is not None and (column.reading.recode or column.reading.changes_texts):
            said = f"columns.{spelling.key(column.name)}"
            refuse(
                f".{said}",
                "is the privacy unit, which Lapwing reads as stored; it may have missing, but no other key for reading",
            )


def _check_unit_day(table: "Table") -> None:
    """Refuse a person and a day where the day is no timestamp, or the person none."""
    if table.unit_day is None:
        return
    place, day = ".privacy_unit", spelling.text(table.unit_day)
    column = table.column(table.unit_day)
    if table.privacy_unit is None or table.unit_is_row:
        refuse(place, f"names the day of {day} but not the column that says whose row it is")
    if column is None or column.type != "timestamp":
        refuse(place, f"the day of {day} is part of what is protected; declare it as a column of type timestamp")
    if column.bounded or not column.nullable:
        refuse(
            place,
            f"the day of {day} is part of what is protected: remove its bounds and nullable, which would move days",
        )
    if table.part is not None or table.unit is not None or table.people is not None:
        refuse(place, "a table that protects a person and a day has no part, unit or people; remove them")


def _check_name_of_units(table: "Table") -> None:
    """Refuse a name for units that cannot be the same in two tables, or whose type is not said."""
    if table.unit is None or table.privacy_unit is None:
        return
    place = ".unit"
    check_text(place, table.unit)
    if table.unit_is_row:
        refuse(place, "each row is protected by itself, so no other table can have rows of the same; remove it")
    column, named = table.column(table.privacy_unit), spelling.text(table.privacy_unit)
    if column is None:
        refuse(place, f"needs the type of the privacy unit, to find it in other tables; declare the column {named}")
    if column.type not in KEY_TYPES:
        reason = f"{named} is of type {column.type}; tables are compared by one of {', '.join(KEY_TYPES)}"
        refuse(place, f"{reason}, declare it as such")


def _check_link_of(table: "Table") -> None:
    link = table.link
    if link is None:
        return
    parent = link.parent
    if parent.root.unit_day is not None:
        refuse(
            ".link.table", f"{spelling.text(parent.name)} protects persons and days, and no row can be linked to these"
        )
    if parent.unit_is_row:
        unit = spelling.text(link.on[0][1] if len(link.on) == 1 else "person_id")
        reason = f"each row of {spelling.text(parent.name)} is protected by itself, so no other row can belong to it"
        refuse(".link.table", f"{reason}; declare its key there, for example privacy_unit = {unit}")
    if len(parent.lineage) > MOST_LINKS:
        refuse(".link.table", f"more than {MOST_LINKS} links to the privacy unit; link to a table nearer to it")
    if not link.on:
        refuse(".link.on", 'no columns; write which column here equals which there, like { order_id = "id" }')
    if len({there for _, there in link.on}) < len(link.on) or len({here for here, _ in link.on}) < len(link.on):
        refuse(".link.on", "a column appears more than once; write pairs of different columns")
    for here, there in link.on:
        check_key(table, parent, here, there, f".link.on.{spelling.key(here)}")


def check_key(table: "Table", parent: "Table", here: str, there: str, place: str) -> None:
    """Refuse a pair of columns that may be equal once they are cleaned, though the keys in the data are not."""
    child, other = _key_column(table, here, place), _key_column(parent, there, place)
    if child.type != other.type:
        reason = f"{child.type}, but {spelling.text(there)} of {spelling.text(parent.name)} is of type {other.type}"
        refuse(place, f"is of type {reason}; declare both alike")
    if child.type not in KEY_TYPES:
        refuse(place, f"is of type {child.type}, which cannot tell keys apart reliably; use {', '.join(KEY_TYPES)}")
    for owner, column in ((table, child), (parent, other)):
        at = f"[tables.{spelling.key(owner.name)}.columns]"
        if column.bounded or column.step is not None:
            reason = f"{spelling.text(column.name)} has bounds or a step, which make different keys one"
            refuse(place, f"{reason}; remove lower, upper and step in {at}")
        if not column.nullable:
            reason = f"{spelling.text(column.name)} promises not to be NULL, so a missing key would count as a value"
            refuse(place, f"{reason}; remove nullable in {at}")


def _key_column(table: "Table", name: str, place: str) -> "Column":
    """Return a declared column that a link compares."""
    column = table.column(name)
    if column is not None:
        return column
    named, at = spelling.text(name), f"[tables.{spelling.key(table.name)}.columns]"
    like = next((other.name for other in table.columns if other.name.casefold() == name.casefold()), None)
    if like is not None:
        refuse(place, f"{named} differs only by case from {spelling.text(like)} in {at}; write both alike")
    return refuse(place, f"there is no column {named} in {at}; declare it there with its type")


def _check_most_rows(table: "Table") -> None:
    rows, place = table.max_rows_per_unit, ".max_rows_per_unit"
    if type(rows) is not int:
        refuse(place, f"{spelling.value(rows)} is not an integer; write the most rows of one privacy unit, like 10")
    if not 1 <= rows <= MOST_ROWS_PER_UNIT:
        refuse(place, f"{rows} is not allowed; write an integer from 1 to {MOST_ROWS_PER_UNIT}")
    if table.unit_is_row and rows != 1:
        refuse(place, f"{rows}, but the privacy unit is the row; write 1 or remove it")


def _check_rows_in_all(table: "Table") -> None:
    rows, place = table.rows_at_most, ".rows_at_most"
    if rows is not None and (type(rows) is not int or not 1 <= rows <= MOST_ROWS):
        refuse(
            place, f"{spelling.value(rows)} is not allowed; write an integer from 1 to {MOST_ROWS:,}, without commas"
        )


def _check_people(table: "Table") -> None:
    """Refuse a number of people that is none, or where more than one row may be somebody's."""
    people, place = table.people, ".people"
    if people is None:
        return
    if type(people) is not int or not 1 <= people <= MOST_ROWS:
        refuse(
            place, f"{spelling.value(people)} is not allowed; write an integer from 1 to {MOST_ROWS:,}, without commas"
        )
    if table.link is not None or table.max_rows_per_unit != 1:
        refuse(place, "a number of people serves means over one row of each; set max_rows_per_unit = 1, or remove it")


def check_text_format(source: str, text: "TextFormat | None") -> None:
    """Refuse a way of writing that no CSV file has, or one of a file that is none."""
    if text is None:
        return
    if not is_text(Path(source)):
        refuse(".delimiter, quote and encoding", f"are for CSV files, and the source is {spelling.text(source)}")
    if text.encoding not in ENCODINGS:
        refuse(".encoding", f"{spelling.value(text.encoding)} is unknown; write one of {', '.join(ENCODINGS)}")
    if text.quote not in ('"', "'"):
        refuse(".quote", f"{spelling.value(text.quote)} is not allowed; write '\"' or \"'\"")
    if not re.fullmatch(r"[\t !#-'*-/:;<=>?@^_`|~]", text.delimiter) or text.delimiter == text.quote:
        refuse(".delimiter", f"{spelling.value(text.delimiter)} is not allowed; write one character, like ; or \\t")


def _check_unreadable(table: "Table") -> None:
    if table.unreadable not in (None, "null"):
        refuse(
            ".unreadable",
            f'{spelling.value(table.unreadable)} is not allowed; write "null" to count values that are not of their '
            "type as NULL, or remove it to refuse them",
        )


def _check_part_of(table: "Table") -> None:
    """Refuse a part that is not a list of public values.

    A unit that is a row may have parts: it has one row, hence one value, and the rule says that this is its part.
    """
    if table.part is None:
        return
    place, part = ".part", spelling.text(table.part)
    column = table.part_column
    if column is None:
        listed = ", ".join(spelling.key(column.name) for column in table.columns if column.values is not None)
        refuse(place, f"there is no column {part}; write one of those with values: {listed or 'none has any'}")
    if column.name == table.privacy_unit:
        refuse(place, f"{part} is the privacy unit, so each value would be a part; name another column")
    if column.values is None:
        refuse(place, f"the column {part} lists no values; list the public parts there")
    if column.other is not None:
        refuse(place, f"the column {part} has other, which cannot be a part; list the value instead, or remove other")


# ---- the tables of a catalog -----------------------------------------------------------------------------------------


def check_tables(catalog: "Catalog") -> None:
    """Refuse tables that contradict one another."""
    for check in (_check_links, _check_units, _check_unit_days, _check_parts, _check_sources, _check_known_people):
        check(catalog)


def _check_unit_days(catalog: "Catalog") -> None:
    """Refuse persons and days beside other units: their promise is a weaker one, and has a ledger of its own."""
    by_day = [table for table in catalog.tables if table.root.unit_day is not None]
    for table in catalog.tables if by_day else ():
        if table.root.unit_day is None:
            reason = f"{spelling.text(by_day[0].name)} is of persons and days, a weaker promise that needs a ledger of "
            refuse(f"tables.{spelling.key(table.name)}.privacy_unit", f"{reason}its own; write another catalog for it")


def _check_known_people(catalog: "Catalog") -> None:
    """Refuse a known number of people where it is what is protected."""
    for table in catalog.tables:
        if table.people is not None and catalog.budget.neighbouring != "replace_one":
            reason = 'who is among them is protected under "add_remove", so that nobody knows how many they are; set '
            refuse(f"tables.{spelling.key(table.name)}.people", f'{reason}budget.neighbouring = "replace_one"')


def _check_links(catalog: "Catalog") -> None:
    """Refuse a link to anything but a table of this catalog."""
    for table in catalog.tables:
        if table.link is None or table.link.parent in catalog.tables:
            continue
        place, parent = f"tables.{spelling.key(table.name)}.link.table", table.link.parent.name
        if parent in (other.name for other in catalog.tables):
            reason = f"leads to a different {spelling.text(parent)} than the one in this catalog"
            refuse(place, f"{reason}; link to that one, or change a table by Catalog.with_table")
        refuse(place, f"there is no table {spelling.text(parent)}; put it into the catalog")


def _check_units(catalog: "Catalog") -> None:
    """Refuse units of one name that cannot be compared: one person would then count as two."""
    first: dict[str, Table] = {}
    for table in catalog.tables:
        if table.unit is None:
            continue
        place, other = f"tables.{spelling.key(table.name)}.unit", first.setdefault(table.unit.casefold(), table)
        if table.unit != other.unit:
            both = f"{spelling.text(other.unit or '')} and {spelling.text(table.unit)}"
            refuse(place, f"{both} differ only by case; write both alike, or choose another name")
        if table.unit_type != other.unit_type:
            here, there = (f"{spelling.text(t.unit_column)} of {spelling.text(t.name)}" for t in (table, other))
            reason = f"{here} is of type {table.unit_type}, but {there} is of type {other.unit_type}"
            refuse(place, f"{reason}; declare both alike")


def _check_parts(catalog: "Catalog") -> None:
    """Refuse parts in two tables: a person may be in one part of the first and in another part of the second."""
    divided = [table.name for table in catalog.tables if table.part is not None]
    for name in divided[1:]:
        place, other = f"tables.{spelling.key(name)}.part", spelling.text(divided[0])
        refuse(place, f"the table {other} has parts already, and people may be in both tables; remove one of the two")


def _check_sources(catalog: "Catalog") -> None:
    """Refuse a public table that shows the file of a protected one, or its table in a source."""

    def place_of(table: "Table | PublicTable") -> object:
        if not is_address(table.source):
            return normpath(catalog.source_path(table))
        address = read_address(table.source)
        return (address.door, address.place, address.table)

    protected = {place_of(table): table for table in catalog.tables}
    for table in catalog.public_tables:
        other = protected.get(place_of(table))
        if other is not None:
            place, source = f"tables.{spelling.key(table.name)}.source", spelling.text(table.source)
            reason = f"{source} is also the source of the protected table {spelling.text(other.name)}"
            refuse(place, f"{reason}; a protected file cannot be public, so name another")
