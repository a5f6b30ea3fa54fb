"""A protected table: where it is, who is protected in it, and its columns.

A table says itself whose rows it has, by a column, or is linked to a table that does. Linked tables are one fact told
in several files: what there is of a person's orders, and of the items of these orders. So a link holds the table that
it leads to, and a table all that its rows mean. Values like these cannot go round in a circle.
"""

from dataclasses import dataclass
from typing import final

from lapwing.catalog import spelling
from lapwing.catalog.column import Column
from lapwing.catalog.facts import Facts, column_facts, digest
from lapwing.catalog.names import check_columns, check_text
from lapwing.catalog.place import refuse, within
from lapwing.errors import InvalidParameter

ROW = "row"

MOST_COLUMNS = 10_000
MOST_ROWS_PER_UNIT = 10**9
MOST_LINKS = 16
KEY_TYPES = ("integer", "string", "date", "timestamp")  # those whose cleaned value is the value itself


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Whose rows those of a table are: a row belongs to the unit of the parent's row with the same key.

    Args: parent: the table that the link leads to.
        on: the key, as pairs of a column here and the column there that it equals.
    """

    parent: "Table"
    on: tuple[tuple[str, str], ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table: where it is, who is protected in it, and its columns.

    The rows that exist, for questions, and their units are defined from the root of the links downwards. Of a table
    with a privacy unit of its own: the rows with a unit, of the unit's part, and of these the first K of each unit in
    an order that depends on the unit's own rows alone. Of a linked table: the rows whose key equals that of a row that
    exists in the parent, with that row's unit, and of these again the first K of each unit. So rows with no parent, or
    with NULL in the key, do not exist, nor do those whose parent is one row too many.

    Guarantee: what exists is E(D) = ⋃ E(D_u) over the units u, where D_u is what belongs to u: its rows in the root,
        and in linked tables those whose keys lead to them. Premise, for the curator to vouch for: keys are unique among
        the parent's rows. Proof, by induction along the links: it holds in the root, where each unit is bounded by
        itself. A row of the child meets at most one row of the parent, hence one of at most one E(D_u), and whether it
        does depends on the row and that E(D_u); which K are kept depends on those of u. ∎ So to remove a unit from the
        root is to remove it everywhere, whether its rows in linked tables are removed with it or are left there.
        If the premise is broken, a row exists once for every row of the parent that it meets. Then E(D) still falls
        into units when the linked tables are held fixed, so that it is hidden whether a unit is in the root; but what
        such a row says is said of several units, and hidden less well.

    Args: name: as questions call it.
        source: a file, relative to the catalog's folder (for a database engine, a table's name).
        privacy_unit: the column that says whose row it is, or "row" if every row stands alone. None in a linked table.
        max_rows_per_unit: 1 or more; further rows of a unit do not exist for any question. 1 if the unit is the row.
        columns: those that questions may use; all others are invisible.
        part: a column with values that splits the units into disjoint parts. A unit's part is the first of the values,
            in their order, among the unit's own rows; its rows of another value, or of none, do not exist for any
            question, and neither does a unit without a part. This comes before `max_rows_per_unit`.
        link: leads to the table that says whose row it is, if this one has no privacy unit.
        unit: what sort of unit the privacy unit names: tables that say the same protect the same units.

    Raises: CatalogError, starting with `tables.<name>.<key>`.
    """

    name: str
    source: str
    privacy_unit: str | None = None
    max_rows_per_unit: int
    columns: tuple[Column, ...]
    part: str | None = None
    link: Link | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        with within(f"tables.{spelling.key(self.name)}"):
            check_text("", self.name)
            check_text(".source", self.source)
            check_columns(tuple(column.name for column in self.columns), MOST_COLUMNS)
            for check in (_check_whose, _check_unit, _check_unit_name, _check_link, _check_rows, _check_part):
                check(self)

    @property
    def unit_is_row(self) -> bool:
        """Whether every row is a privacy unit of its own."""
        return self.privacy_unit == ROW

    @property
    def unit_column(self) -> str:
        """The table's own column that says whose row it is.

        Raises: InvalidParameter if it has none: the unit of a linked table's row is found along its links.
        """
        if self.privacy_unit is None or self.unit_is_row:
            raise InvalidParameter(f"No column of {spelling.text(self.name)} says whose row it is; ask its root.")
        return self.privacy_unit

    @property
    def unit_type(self) -> str:
        """The type by which the values of `unit_column` are compared: a column that is not declared holds texts."""
        column = self.column(self.unit_column)
        return "string" if column is None else column.type

    @property
    def lineage(self) -> tuple["Table", ...]:
        """The table itself, its parent, and so on along the links to the table that has a privacy unit."""
        return (self,) if self.link is None else (self, *self.link.parent.lineage)

    @property
    def root(self) -> "Table":
        """The table at the end of the links, which has a privacy unit: without a link, the table itself."""
        return self.lineage[-1]

    @property
    def units(self) -> str:
        """A name for the units that are protected: equal for two tables of a catalog if these are the same ones.

        It is the root's `unit` in quotes, or the root's name and its privacy unit; neither can be taken for the other.
        """
        if self.root.unit is not None:
            return spelling.text(self.root.unit)
        return f"{spelling.key(self.root.name)}.{spelling.key(self.root.privacy_unit or ROW)}"

    @property
    def part_column(self) -> Column | None:
        """The column that says a row's part, if the table has parts."""
        return self.column(self.part)

    def column(self, name: str | None) -> Column | None:
        """Return the column of exactly this name, if there is one."""
        return next((column for column in self.columns if column.name == name), None)

    @property
    def facts(self) -> Facts:
        """What the table means, its parent left aside; but for `unit`, which says nothing about one table alone."""
        facts: Facts = {
            "max_rows_per_unit": str(self.max_rows_per_unit),
            "columns": {column.name: column_facts(column) for column in self.columns},
        }
        facts |= self.owner
        return facts if self.part is None else facts | {"part": self.part}

    @property
    def owner(self) -> Facts:
        """Whose rows the table has, as it says itself: its privacy unit, or where its link leads."""
        if self.link is not None:
            return {"link": {"table": self.link.parent.name, "on": dict(self.link.on)}}
        return {"privacy_unit": self.privacy_unit}

    @property
    def digest(self) -> str:
        """A fingerprint of what the table means, hence of all tables up to its root (SHA-256); see `Catalog.digest`."""
        return digest({"tables": {table.name: table.facts for table in self.lineage}})


def _check_whose(table: Table) -> None:
    """Refuse a table that does not say whose rows it has, or says it twice."""
    if table.link is None:
        if table.privacy_unit is None:
            reason = "missing; name the column that says whose row it is, or link the table to one that has it"
            refuse(".privacy_unit", reason)
        return
    parent = spelling.text(table.link.parent.name)
    if table.privacy_unit is not None:
        refuse(".privacy_unit", f"the rows belong to the units of {parent} by the link; remove one of the two")
    if table.unit is not None:
        refuse(".unit", f"the rows belong to the units of {parent} by the link; remove it, or write it at their table")
    if table.part is not None:
        refuse(".part", f"a unit's part is told by the table at the end of the links from {parent}; remove it here")


def _check_unit(table: Table) -> None:
    if table.privacy_unit is None:
        return
    place = ".privacy_unit"
    check_text(place, table.privacy_unit)
    for column in table.columns:
        if column.name.casefold() != table.privacy_unit.casefold():
            continue
        unit, listed = spelling.text(table.privacy_unit), spelling.text(column.name)
        if table.unit_is_row:
            refuse(place, f"{unit} means that each row stands alone, but there is a column {listed}; leave it out")
        if column.name != table.privacy_unit:
            refuse(place, f"{unit} differs only by case from the column {listed}; write both alike")
        if column.type in ("float", "boolean"):
            remedy = "store identifiers as integers or strings"
            refuse(place, f"{unit} is of type {column.type}, which cannot tell people apart reliably; {remedy}")


def _check_unit_name(table: Table) -> None:
    """Refuse a name for units that cannot be the same in two tables, or whose type is not said."""
    if table.unit is None or table.privacy_unit is None:
        return
    place = ".unit"
    check_text(place, table.unit)
    if table.unit_is_row:
        refuse(place, "each row stands alone, so that no other table can have the same units; remove it")
    column, named = table.column(table.privacy_unit), spelling.text(table.privacy_unit)
    if column is None:
        refuse(place, f"needs the type of the privacy unit, to find it in other tables; declare the column {named}")
    if column.type not in KEY_TYPES:
        reason = f"{named} is of type {column.type}; units are found in other tables by one of {', '.join(KEY_TYPES)}"
        refuse(place, f"{reason}, declare it as such")


def _check_link(table: Table) -> None:
    link = table.link
    if link is None:
        return
    parent = link.parent
    if parent.unit_is_row:
        unit = spelling.text(link.on[0][1] if len(link.on) == 1 else "person_id")
        reason = f"each row of {spelling.text(parent.name)} stands alone, so that nothing else can belong to it"
        refuse(".link.table", f"{reason}; declare its key there, for example privacy_unit = {unit}")
    if len(parent.lineage) > MOST_LINKS:
        refuse(".link.table", f"more than {MOST_LINKS} links up to the privacy unit; link to a table nearer to it")
    if not link.on:
        refuse(".link.on", 'no columns; write which column here equals which there, like { order_id = "id" }')
    if len({there for _, there in link.on}) < len(link.on) or len({here for here, _ in link.on}) < len(link.on):
        refuse(".link.on", "a column is there more than once; write pairs of different columns")
    for here, there in link.on:
        _check_key(table, parent, here, there)


def _check_key(table: Table, parent: Table, here: str, there: str) -> None:
    """Refuse a pair of columns whose equality, as they are cleaned, is not that of the data's own keys."""
    place = f".link.on.{spelling.key(here)}"
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
            reason = (
                f"{spelling.text(column.name)} promises not to be NULL, so that a missing key would count as a value"
            )
            refuse(place, f"{reason}; remove nullable in {at}")


def _key_column(table: Table, name: str, place: str) -> Column:
    """Return a declared column that a link compares."""
    column = table.column(name)
    if column is not None:
        return column
    given, at = spelling.text(name), f"[tables.{spelling.key(table.name)}.columns]"
    like = next((other.name for other in table.columns if other.name.casefold() == name.casefold()), None)
    if like is not None:
        refuse(place, f"{given} differs only by case from {spelling.text(like)} in {at}; write both alike")
    return refuse(place, f"there is no column {given} in {at}; declare it there with its type")


def _check_rows(table: Table) -> None:
    rows, place = table.max_rows_per_unit, ".max_rows_per_unit"
    if type(rows) is not int:
        refuse(place, f"{spelling.value(rows)} is not an integer; write the most rows that one unit may have, like 10")
    if not 1 <= rows <= MOST_ROWS_PER_UNIT:
        refuse(place, f"{rows} is not allowed; write an integer from 1 to {MOST_ROWS_PER_UNIT}")
    if table.unit_is_row and rows != 1:
        refuse(place, f"{rows}, but the privacy unit is the row; write 1 or remove it")


def _check_part(table: Table) -> None:
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
        refuse(place, f"{part} is the privacy unit, so that every unit would be a part; name another column")
    if column.values is None:
        refuse(place, f"the column {part} lists no values; list the public parts there")
    if column.other is not None:
        refuse(place, f"the column {part} has other, which is no part; list the value instead, or remove other")
