"""The catalog as values: data set, budget, tables, columns; each is valid or does not exist."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import final

from lapwing.catalog import spelling
from lapwing.catalog.column import Column
from lapwing.catalog.place import refuse, within
from lapwing.privacy.calibration import loss_for
from lapwing.privacy.measures import Loss

__all__ = ["Budget", "Catalog", "Column", "Table"]

ENGINES = ("duckdb", "postgres", "spark")
MEASURES = ("pure", "gdp", "zcdp")
NEIGHBOURING = ("add_remove", "replace_one")
ROW = "row"
LEDGER = "sqlite:"

MOST_COLUMNS = 10_000
MOST_ROWS_PER_UNIT = 10**9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that all answers together may reveal about one privacy unit.

    Args: epsilon: > 0.
        delta: 0 ≤ delta < 1.
        delta_keys: the part of delta set aside for private group keys, 0 ≤ delta_keys ≤ delta.
        measure: what the ledger adds up: "pure" (epsilon), "gdp" (mu²) or "zcdp" (rho). The pure measure uses no
            delta of its own, so there delta must equal delta_keys; the others need some delta beyond delta_keys.
        neighbouring: "add_remove" or "replace_one".

    Raises: CatalogError, starting with `budget.<key>`.
    """

    epsilon: Fraction
    delta: Fraction
    delta_keys: Fraction
    measure: str
    neighbouring: str

    def __post_init__(self) -> None:
        for key, number in (("epsilon", self.epsilon), ("delta", self.delta), ("delta_keys", self.delta_keys)):
            if not spelling.is_decimal(number):
                reason = f"{number} is not a decimal of at most {spelling.LONGEST} digits on a side; round it"
                refuse(f"budget.{key}", reason)
        if self.epsilon <= 0:
            refuse("budget.epsilon", f"{spelling.number(self.epsilon)} is not allowed; write a number above 0")
        if not 0 <= self.delta < 1:
            shown = spelling.number(self.delta)
            refuse("budget.delta", f"{shown} is not allowed; write a number from 0 to less than 1, like 1e-6")
        if not 0 <= self.delta_keys <= self.delta:
            shown = f"{spelling.number(self.delta_keys)} is not between 0 and delta = {spelling.number(self.delta)}"
            refuse("budget.delta_keys", f"{shown}; it is the part of delta kept for private group keys")
        _one_of("budget.measure", self.measure, MEASURES)
        _one_of("budget.neighbouring", self.neighbouring, NEIGHBOURING)
        self._check_measure()

    def _check_measure(self) -> None:
        if self.measure == "pure" and self.delta != self.delta_keys:
            shown = spelling.number(self.delta)
            refuse("budget.delta", f'{shown}, but measure = "pure" uses no delta; set delta = 0 or measure = "gdp"')
        if self.measure != "pure" and self.delta == self.delta_keys:
            given = f'measure = "{self.measure}" needs a delta'
            if self.delta:
                refuse("budget.delta_keys", f"takes all of delta, but {given} beyond it; make it smaller than delta")
            refuse("budget.delta", f'0, but {given}; set delta, like 1e-6, or measure = "pure"')

    @property
    def loss(self) -> Loss:
        """The budget in the ledger's measure: the most loss that still implies (epsilon, delta − delta_keys)."""
        return loss_for(self.measure, self.epsilon, self.delta - self.delta_keys)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table: where it is, who is protected in it, and its columns.

    Args: name: as questions call it.
        source: a file, relative to the catalog's folder (for a database engine, a table's name).
        privacy_unit: the column that says whose row it is, or "row" if every row stands alone.
        max_rows_per_unit: 1 or more; further rows of a unit do not exist for any question. 1 if the unit is the row.
        columns: those that questions may use; all others are invisible.

    Raises: CatalogError, starting with `tables.<name>.<key>`.
    """

    name: str
    source: str
    privacy_unit: str
    max_rows_per_unit: int
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        with within(f"tables.{spelling.key(self.name)}"):
            _check_text("", self.name)
            _check_text(".source", self.source)
            _check_columns(self.columns)
            _check_unit(self)
            _check_rows(self)

    @property
    def unit_is_row(self) -> bool:
        """Whether every row is a privacy unit of its own."""
        return self.privacy_unit == ROW

    @property
    def digest(self) -> str:
        """A fingerprint of what the table means (SHA-256, hexadecimal); see `Catalog.digest`."""
        return _digest({self.name: _facts(self)})


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """All that a curator says in public about a data set.

    Args: name: of the data set.
        engine: "duckdb", "postgres" or "spark".
        ledger: where spending is recorded, "sqlite:<file>"; the file is relative to `folder`.
        budget: shared by all tables.
        tables: at least one.
        folder: the folder that relative paths start from.

    Raises: CatalogError, starting with the place of what is wrong.
    """

    name: str
    engine: str
    ledger: str
    budget: Budget
    tables: tuple[Table, ...]
    folder: Path

    def __post_init__(self) -> None:
        _check_text("dataset.name", self.name)
        _one_of("dataset.engine", self.engine, ENGINES)
        _check_text("dataset.ledger", self.ledger)
        if not self.ledger.startswith(LEDGER) or self.ledger == LEDGER:
            remedy = 'write "sqlite:" and a file, like "sqlite:visits.lapwing.db"'
            refuse("dataset.ledger", f"{spelling.text(self.ledger)} is not a ledger; {remedy}")
        if not self.tables:
            refuse("tables", "missing; describe at least one table in a section like [tables.visits]")
        _refuse_same_names("tables", (table.name for table in self.tables))

    @property
    def ledger_path(self) -> Path:
        """The ledger's file."""
        return self.folder / self.ledger.removeprefix(LEDGER)

    def source_path(self, table: Table) -> Path:
        """Return the file that holds a table's rows."""
        return self.folder / table.source

    @property
    def digest(self) -> str:
        """A fingerprint of what the tables mean (SHA-256, hexadecimal).

        Two catalogs with the same digest give every question the same plan and the same law of its answer at a given
        price. It covers names, privacy units, row bounds, types, bounds, steps and values. It leaves out where data
        and ledger are (the ledger knows the data by their own digest) and the budget (which the ledger has registered).
        The order of tables and columns has no meaning; the order of values has: answers show keys in that order.
        """
        return _digest({table.name: _facts(table) for table in self.tables})


def _facts(table: Table) -> dict[str, object]:
    return {
        "privacy_unit": table.privacy_unit,
        "max_rows_per_unit": str(table.max_rows_per_unit),
        "columns": {column.name: _column_facts(column) for column in table.columns},
    }


def _column_facts(column: Column) -> dict[str, object]:
    bounds = {"lower": column.lower, "upper": column.upper, "step": column.step, "other": column.other}
    facts: dict[str, object] = {key: _fact(content) for key, content in bounds.items() if content is not None}
    if column.values is not None:
        facts["values"] = [_fact(content) for content in column.values]
    return facts | {"type": column.type}


def _fact(content: object) -> str:
    return content if isinstance(content, str) else spelling.value(content)


def _digest(tables: dict[str, dict[str, object]]) -> str:
    document = json.dumps({"format": 1, "tables": tables}, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(document.encode("ascii")).hexdigest()


def _one_of(place: str, given: str, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        refuse(place, f"{spelling.value(given)} is unknown; write one of {', '.join(allowed)}")


def _check_text(place: str, given: str) -> None:
    if not given or not spelling.storable(given):
        refuse(place, "use at least one character, valid UTF-8, no NUL")


def _refuse_same_names(place: str, names: Iterable[str]) -> None:
    """Refuse names that differ only by case, because questions fold it."""
    seen: dict[str, str] = {}
    for name in names:
        first = seen.setdefault(name.casefold(), name)
        if first is not name:
            both = f"{spelling.text(first)} and {spelling.text(name)}"
            refuse(place, f"{both} are the same name for a question, which ignores case; rename or remove one")


def _check_columns(columns: tuple[Column, ...]) -> None:
    if len(columns) > MOST_COLUMNS:
        refuse(".columns", f"{len(columns)} columns; at most {MOST_COLUMNS} are allowed, list only those to ask about")
    _refuse_same_names(".columns", (column.name for column in columns))


def _check_unit(table: Table) -> None:
    place = ".privacy_unit"
    _check_text(place, table.privacy_unit)
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


def _check_rows(table: Table) -> None:
    rows, place = table.max_rows_per_unit, ".max_rows_per_unit"
    if type(rows) is not int:
        refuse(place, f"{spelling.value(rows)} is not an integer; write the most rows that one unit may have, like 10")
    if not 1 <= rows <= MOST_ROWS_PER_UNIT:
        refuse(place, f"{rows} is not allowed; write an integer from 1 to {MOST_ROWS_PER_UNIT}")
    if table.unit_is_row and rows != 1:
        refuse(place, f"{rows}, but the privacy unit is the row; write 1 or remove it")
