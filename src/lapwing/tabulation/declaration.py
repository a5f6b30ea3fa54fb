"""A table release: its tables, its cost and its objective. Read from a file, or made in Python.

    title = "Visits by plan"
    epsilon = 1

    [tables.visits]
    select = "COUNT(*) AS visits"
    from = "rand_hie"
    by = [[], ["sex"], ["plan"], ["sex", "plan"]]

Nothing here is private, and nothing reads data.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Final, Self, TypeVar, final

from lapwing.catalog.place import refuse, within
from lapwing.catalog.section import TomlSection
from lapwing.errors import CatalogError, InvalidParameter
from lapwing.privacy.amounts import Number, positive
from lapwing.tabulation.hierarchy import Hierarchy, all_margins_of, with_levels
from lapwing.tabulation.public_totals import PublicTotal, total_from

Choice = TypeVar("Choice", bound=StrEnum)
USUAL_UNRELIABLE: Final = Fraction(1, 2)
SMALLEST: Final = Fraction(1, 10**50)
"""The least importance, wanted error, or size of a cell."""


class Objective(StrEnum):
    """The aim of the division of the cost.

    The error of a table is the error of its worst number, divided by a reference. The reference is the wanted error, if
    tables have one. Otherwise it is the error that the table would have at the whole cost, divided by its importance.
    """

    LARGEST_ERROR = "largest error"
    """To make the largest error of any table as small as possible."""
    SUM_OF_VARIANCES = "sum of variances"
    """To make the sum of the squares of the errors as small as possible, over all cells of all tables."""


class UnreliableCells(StrEnum):
    """The treatment of unreliable numbers in published tables."""

    MARK = "mark"
    """To publish them, with a mark."""
    LEAVE_OUT = "leave out"
    """To publish the mark only."""
    COARSEN = "coarsen"
    """To publish the mark, and the smallest reliable cell of a coarser table around it."""


class Adjustment(StrEnum):
    """To which numbers the adjusted ones are near."""

    LEAST_SQUARES = "least squares"
    """All released numbers, by the precision of each."""
    TOP_DOWN = "top down"
    """Tables with few cells before those with many, so that totals move less."""


class FileFormat(StrEnum):
    """The format of a published table."""

    CSV = "csv"
    PARQUET = "parquet"
    XLSX = "xlsx"
    """One workbook of all tables, with notes."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MarginQuery:
    """The parts of the query of a margin.

    Args:
        keys: The text of each column or expression in SELECT.
        select: The numbers; `source` is what stands in FROM, and `where` a condition or empty.
    """

    keys: tuple[str, ...]
    select: str
    source: str
    where: str

    @property
    def text(self) -> str:
        """The query in SQL."""
        columns, grouped = ", ".join((*self.keys, self.select)), " GROUP BY ALL" if self.keys else ""
        return f"SELECT {columns} FROM {self.source}{self.where}{grouped}"

    def with_key(self, key: str, other: str) -> Self:
        """Return the query by another key in the place of one."""
        return replace(self, keys=tuple(other if one == key else one for one in self.keys))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseTable:
    """One table of a release.

    Args:
        name: The name that readers see; each name once.
        query: Its text in SQL, without a cost of its own.
        importance: A table of importance 2 gets half the error of a table of importance 1.
        error: The wanted half-width of its 95 % intervals, in units of its number.
        assumed_cell: The size of a cell, by which the plan shows errors in percent.
        relative_error: Instead of `error`: the part of a cell of that size. A larger cell errs by a smaller part. Of
            counts and sums.
        margin: The parts of the query, if it is a margin.
    """

    name: str
    query: str
    importance: Number = 1
    error: Number | None = None
    assumed_cell: Number | None = None
    relative_error: Number | None = None
    margin: MarginQuery | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        for text, what in ((self.name, "The name of a table"), (self.query, "The query of a table")):
            if not isinstance(text, str) or not text.strip():
                raise InvalidParameter(f"{what} is {text!r}; it must be a text that is not empty.")
        for key in ("importance", "error", "assumed_cell", "relative_error"):
            if (value := getattr(self, key)) is not None:
                object.__setattr__(self, key, positive(value, key))
                if getattr(self, key) < SMALLEST:  # whose square is no float
                    raise InvalidParameter(f"{key} must be at least {float(SMALLEST)}.")
        if self.relative_error is not None:
            object.__setattr__(self, "error", self._error_of_cells())

    def _error_of_cells(self) -> Fraction:
        """Return the wanted half-width that the relative error is in a cell of the assumed size."""
        if self.assumed_cell is None:
            raise InvalidParameter("relative_error needs assumed_cell: the size of the smallest cell that it is for.")
        error = Fraction(self.relative_error or 0) * Fraction(self.assumed_cell)
        if error < SMALLEST or self.error not in (None, error):
            raise InvalidParameter(f"{self.name!r} has an error and a relative_error; give one of them.")
        return error

    @classmethod
    def margins(
        cls,
        name: str,
        *,
        select: str,
        source: str,
        by: Sequence[Sequence[str]],
        where: str | None = None,
        importance: Number = 1,
        error: Number | None = None,
        assumed_cell: Number | None = None,
        relative_error: Number | None = None,
        hierarchies: Sequence[Hierarchy] = (),
        beside: Sequence[Sequence[str]] = (),
    ) -> tuple[Self, ...]:
        """Return the tables of some numbers by each of several lists of columns.

        Args:
            select: The numbers, such as `COUNT(*) AS n`; `source` is what stands in FROM.
            by: A list of columns, or of expressions with a name, for each table; the empty list is for the total.
            where: A condition on the rows.
            hierarchies: Their levels may stand in `by`.
            beside: Lists of other tables of the same rows, so that all of them join what one of them names.
        """
        condition = "" if where is None else f" WHERE {where}"
        source, columns_of = with_levels(source, by, hierarchies, beside)
        tables = []
        for named_keys, keys in zip(by, columns_of, strict=True):
            margin = MarginQuery(keys=tuple(keys), select=select, source=source, where=condition)
            named = f"{name} by {', '.join(named_keys)}" if keys else f"{name} in all"
            tables.append(
                cls(
                    name=named,
                    query=margin.text,
                    margin=margin,
                    importance=importance,
                    error=error,
                    assumed_cell=assumed_cell,
                    relative_error=relative_error,
                )
            )
        return tuple(tables)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableRelease:
    """A set of tables that are planned, bought and published together.

    Args:
        title: The name of the release.
        epsilon: The cost of all tables together.
        tables: In the order in which they are shown.
        objective: The aim of the division of the cost.
        delta: Of the budget's `delta_keys`, for all tables with private keys together.
        unreliable: A released number is unreliable if the half-width of its 95 % interval is more than this part of it.
        unreliable_cells: The treatment of unreliable numbers.
        formats: The formats of the files, at least one.
        rounding: Published whole numbers are multiples of it, and the ends of their intervals are rounded outwards.
        hierarchies: Levels that tables are by, so that they are measured together and add up.
        public_totals: Numbers from other sources, which adjusted numbers meet exactly. Never count them in these data.
        adjusted: Whether tables have adjusted numbers, which add up, beside the released ones.
        adjustment: To which numbers these are near.
    """

    title: str
    epsilon: Number
    tables: tuple[ReleaseTable, ...]
    objective: Objective = Objective.LARGEST_ERROR
    unreliable: Number = USUAL_UNRELIABLE
    delta: Number | None = None
    unreliable_cells: UnreliableCells = UnreliableCells.MARK
    formats: tuple[FileFormat, ...] = (FileFormat.CSV,)
    adjusted: bool = False
    adjustment: Adjustment = Adjustment.LEAST_SQUARES
    rounding: int = 1
    hierarchies: tuple[Hierarchy, ...] = ()
    public_totals: tuple[PublicTotal, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", tuple(self.tables))
        object.__setattr__(self, "hierarchies", tuple(self.hierarchies))
        object.__setattr__(self, "public_totals", tuple(self.public_totals))
        if self.public_totals and not self.adjusted:
            raise InvalidParameter(
                "Adjusted numbers meet public totals, and the release has none: set adjusted = true."
            )
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))
        object.__setattr__(self, "unreliable", positive(self.unreliable, "unreliable"))
        if self.delta is not None:
            object.__setattr__(self, "delta", positive(self.delta, "delta"))
        object.__setattr__(self, "objective", _one_of(Objective, self.objective, "objective"))
        treatment = _one_of(UnreliableCells, self.unreliable_cells, "unreliable_cells")
        object.__setattr__(self, "unreliable_cells", treatment)
        object.__setattr__(self, "adjustment", _one_of(Adjustment, self.adjustment, "adjustment"))
        if self.adjustment is not Adjustment.LEAST_SQUARES and not self.adjusted:
            raise InvalidParameter("adjustment is of adjusted numbers, and the release has none: set adjusted = true.")
        formats = tuple(dict.fromkeys(_one_of(FileFormat, one, "formats") for one in self.formats))
        object.__setattr__(self, "formats", formats)
        if not isinstance(self.rounding, int) or isinstance(self.rounding, bool) or self.rounding < 1:
            raise InvalidParameter(f"rounding is {self.rounding!r}; it must be a whole number of at least 1.")
        if self.adjusted and self.rounding > 1:
            raise InvalidParameter("Rounded numbers do not add up. Leave out rounding, or leave out adjusted.")
        if not formats:
            raise InvalidParameter('formats is empty; give at least one, such as "csv".')
        if not isinstance(self.title, str) or not self.title.strip() or not self.title.isprintable():
            raise InvalidParameter(f"title is {self.title!r}; it must be one line of text that is not empty.")
        if not self.tables:
            raise InvalidParameter("The release has no table; give at least one.")
        levels = [level for hierarchy in self.hierarchies for level in hierarchy.levels]
        if again := next((level for level in levels if levels.count(level) > 1), None):
            raise InvalidParameter(f"Two hierarchies have the level {again!r}; give each level its own name.")
        names = [table.name for table in self.tables]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise InvalidParameter(f"Two tables are called {twice!r}; give each its own name.")
        wanted = [table.name for table in self.tables if table.error is not None]
        if wanted and len(wanted) < len(self.tables):
            without = next(table.name for table in self.tables if table.error is None)
            raise InvalidParameter(
                f"{wanted[0]!r} has a wanted error and {without!r} has none. Give all tables an error, or none of them."
            )
        if both := next((one for one in self.tables if one.error is not None and one.importance != 1), None):
            raise InvalidParameter(f"{both.name!r} has an error and an importance; give one of them.")

    @classmethod
    def from_file(cls, file: str | Path) -> Self:
        """Read a release file in TOML.

        Raises:
            CatalogError: With the key, what was given, and what is allowed.
        """
        path = Path(file)
        try:
            content = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            raise CatalogError(f"{path}: cannot be read; give the path of a release file in UTF-8.") from None
        with within(f"{path}: "):
            return cls.from_text(content)

    @classmethod
    def from_text(cls, content: str) -> Self:
        """Read a release from the text of its file; raises as `from_file`."""
        try:
            document = TomlSection(path="", content=tomllib.loads(content, parse_float=Decimal))
        except tomllib.TOMLDecodeError as error:  # its text ends in line and column
            raise CatalogError(f"not TOML: {error}; correct that line") from None
        except (ValueError, ArithmeticError, RecursionError):
            raise CatalogError("not TOML: a number or a section in it is too large; correct it") from None
        document.allow(
            "title",
            "epsilon",
            "delta",
            "objective",
            "unreliable",
            "unreliable_cells",
            "formats",
            "adjusted",
            "adjustment",
            "rounding",
            "hierarchies",
            "public_totals",
            "tables",
        )
        sections = document.section("tables")
        if not sections.content:
            refuse("tables", "missing; add a section such as [tables.visits]")
        hierarchies = _hierarchies_in(document)
        lists = _lists_by_source(sections, hierarchies)
        tables = [
            table for name in sections.content for table in _tables_in(name, sections.section(name), hierarchies, lists)
        ]
        said = {
            "title": document.text("title", example="Visits by plan"),
            "epsilon": document.number("epsilon", example="1"),
            "objective": document.text("objective", Objective.LARGEST_ERROR.value, example="largest error"),
            "unreliable": document.number("unreliable", USUAL_UNRELIABLE, example="0.5"),
            "unreliable_cells": document.text("unreliable_cells", UnreliableCells.MARK.value, example="mark"),
            "adjusted": document.boolean("adjusted", False),
            "adjustment": document.text("adjustment", Adjustment.LEAST_SQUARES.value, example="top down"),
            "rounding": document.integer("rounding", 1, example=10),
            "formats": document.items("formats") if document.has("formats") else (FileFormat.CSV,),
            "delta": document.number("delta", example="1e-7") if document.has("delta") else None,
        }
        try:
            totals = tuple(total_from(section) for section in _totals_in(document))
            return cls(tables=tuple(tables), hierarchies=tuple(hierarchies), public_totals=totals, **said)  # type: ignore[arg-type]  # what it is not, is refused
        except InvalidParameter as refused:
            raise CatalogError(str(refused)) from None


def _one_of(kind: type[Choice], value: object, key: str) -> Choice:
    if value not in tuple(kind):
        allowed = " or ".join(f'"{one.value}"' for one in kind)
        raise InvalidParameter(f"{key} has {value!r}; it must be {allowed}.")
    return kind(str(value))


def _hierarchies_in(document: TomlSection) -> list[Hierarchy]:
    found = []
    if not document.has("hierarchies"):
        return []
    for name in (sections := document.section("hierarchies")).content:
        section = sections.section(name)
        section.allow("table", "column", "levels", "missing")
        try:
            found.append(
                Hierarchy(
                    name=name,
                    levels=tuple(section.items("levels")),  # type: ignore[arg-type]  # what is no name, is refused
                    table=section.text("table", example="places") if section.has("table") else None,
                    column=section.text("column", example="day") if section.has("column") else None,
                    missing=section.content.get("missing"),  # type: ignore[arg-type]  # what is no name, is refused
                )
            )
        except InvalidParameter as refused:
            refuse(section.path, str(refused))
    return found


def _totals_in(document: TomlSection) -> Iterator[dict[str, object]]:
    for item in document.items("public_totals") if document.has("public_totals") else ():
        if not isinstance(item, dict):
            refuse("public_totals", f"has {item!r}; write sections [[public_totals]]")
        yield item


def _lists_by_source(sections: TomlSection, hierarchies: Sequence[Hierarchy]) -> dict[str, list[list[str]]]:
    """Return the lists of keys of all sections, by what stands in FROM."""
    lists: dict[str, list[list[str]]] = {}
    for name in sections.content:
        section = sections.section(name)
        if section.has("from") and not section.has("query"):
            lists.setdefault(section.text("from", example="visits"), []).extend(_keys_in(section, hierarchies))
    return lists


def _tables_in(
    name: str, section: TomlSection, hierarchies: Sequence[Hierarchy], lists: Mapping[str, Sequence[Sequence[str]]]
) -> Iterator[ReleaseTable]:
    """Yield the tables of one section: of a query, or of margins."""
    weights = ("importance", "error", "assumed_cell", "relative_error")
    given = {key: section.number(key, example="1") for key in weights if section.has(key)}
    try:
        if section.has("query"):
            section.allow("query", *weights)
            yield ReleaseTable(name=name, query=section.text("query", example="SELECT …"), margin=None, **given)
            return
        section.allow("select", "from", "where", "by", "all_margins_of", *weights)
        source = section.text("from", example="visits")
        yield from ReleaseTable.margins(
            name,
            select=section.text("select", example="COUNT(*) AS n"),
            source=source,
            hierarchies=hierarchies,
            beside=lists.get(source, ()),
            where=section.text("where", example="age >= 18") if section.has("where") else None,
            by=_keys_in(section, hierarchies),
            **given,
        )
    except InvalidParameter as refused:
        refuse(section.path, str(refused))


def _keys_in(section: TomlSection, hierarchies: Sequence[Hierarchy]) -> list[list[str]]:
    """Return the keys of each table of a section."""
    if not section.has("all_margins_of"):
        return _lists_in(section, "by")
    try:
        margins = all_margins_of(_lists_in(section, "all_margins_of"), hierarchies)
    except InvalidParameter as refused:
        refuse(section.place("all_margins_of"), str(refused))
    return margins + [keys for keys in (_lists_in(section, "by") if section.has("by") else ()) if keys not in margins]


def _lists_in(section: TomlSection, key: str) -> list[list[str]]:
    lists = []
    for item in section.items(key):
        if not isinstance(item, list) or not all(isinstance(column, str) for column in item):
            refuse(section.place(key), f'has {item!r}; write a list of lists, for example {key} = [[], ["sex"]]')
        lists.append(item)
    if not lists:
        refuse(section.place(key), f'is empty; write a list for each table, for example {key} = [["sex"]]')
    return lists
