"""What may be asked about: the tables and views of a data set, as its catalog describes them. All of it is public."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, final

from lapwing.catalog.dictionary import OF_COLUMN, OF_TABLE
from lapwing.catalog.protection import unit_in_words
from lapwing.catalog.suggestions import meant, shown
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.privacy import figures

if TYPE_CHECKING:
    import ibis

MOST_DIGITS: Final = 12
"""Of a step that is shown: those that floats have by default are finer than anybody asks for."""
MOST_VALUES: Final = 8
"""Listed values that are shown of a column."""


def quoted(name: str) -> str:
    """Write a name in SQL: in quotes, so that it is exactly itself and never a word of the language."""
    return '"' + name.replace('"', '""') + '"'


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDescription:
    """A column. A number, a date or a timestamp in the data is a text here, in the catalog's form.

    Args:
        type: None of the privacy unit of a view, and where an older server does not say it.
        lower: None without.
        upper: None without.
        step: None without.
        values: That are listed, in order.
        other: The value that all others count as.
        max_length: Bytes of a text.
        missing: Stored values that are NULL.
        recode: Stored values, with what they stand for; both as a catalog spells them.
        format: How dates and numbers are written in the data.
        decimal_mark: How dates and numbers are written in the data.
        thousands_mark: How dates and numbers are written in the data.
        currency: How dates and numbers are written in the data.
        title: Its name for people.
        description: The meaning of its values.
        unit: Of its numbers.
        provenance: Where its values come from.
        labels: The label of a listed value, by the value. Pages show the label; queries name the value.
    """

    name: str
    type: str | None
    lower: str | None = None
    upper: str | None = None
    step: str | None = None
    values: tuple[str, ...] | None = None
    other: str | None = None
    max_length: int | None = None
    nullable: bool = True
    missing: tuple[str, ...] | None = None
    recode: Mapping[str, str] | None = None
    format: str | None = None
    decimal_mark: str | None = None
    thousands_mark: str | None = None
    currency: str | None = None
    title: str | None = None
    description: str | None = None
    unit: str | None = None
    provenance: str | None = None
    labels: Mapping[str, str] | None = None

    @property
    def meaning(self) -> str:
        """Its title, unit and description, in one line; empty without texts."""
        unit = None if self.unit is None else f"in {self.unit}"
        named = ", ".join(part for part in (self.title, unit) if part)
        return " ".join(": ".join(part for part in (named, self.description) if part).split())

    @property
    def comment(self) -> str:
        """Its texts and its possible values, in one line."""
        return "; ".join(filter(None, [self.meaning, self.allowed]))

    @property
    def allowed(self) -> str:
        """The values that it may hold, in words."""
        parts = []
        if self.lower is not None:
            parts.append(f"{self.lower} to {self.upper}")
        if self.step is not None and self.type in ("decimal", "float") and len(self.step) <= MOST_DIGITS:
            parts = [" ".join([*parts, f"in steps of {self.step}"])]
        if self.values is not None and self.type != "boolean":
            values = _some([self.shown(value) for value in self.values])
            listed = "" if not parts else "each value listed" if self._lists_all else f"listed: {values}"
            parts = [", ".join([*parts, listed])] if self._lists_all else [*parts, listed or values]
        if self.other is not None:
            parts.append(f"others are {self.other}")
        if self.max_length is not None:
            parts.append(f"up to {self.max_length:,} bytes")
        if self.missing:
            parts.append(f"{_some(self.missing)} {'is' if len(self.missing) == 1 else 'are'} missing")
        if self.recode:
            parts.append(_some([f"{stored} is {meant_by}" for stored, meant_by in self.recode.items()]))
        if self.format is not None:
            example = "2024-06-01" if self.type == "date" else "2024-06-01 12:30:00"
            parts.append(f"write {example} (in the file {self.format})")
        return "; ".join(parts)

    def shown(self, value: str) -> str:
        """Return a listed value, with its label if it has one."""
        label = (self.labels or {}).get(value)
        return value if label is None else f"{value} ({label})"

    @property
    def _lists_all(self) -> bool:
        """Whether the listed values are all whole numbers between the bounds, and none has a label."""
        if self.labels or self.type != "integer" or self.values is None or self.lower is None or self.upper is None:
            return False
        return len(self.values) == int(self.upper) - int(self.lower) + 1


def _some(texts: Sequence[str]) -> str:
    more = len(texts) - MOST_VALUES
    return ", ".join(texts[:MOST_VALUES]) + (f" and {more:,} more" if more > 0 else "")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableDescription:
    """A table or view that questions may name.

    Args:
        kind: "protected", "public" or "view".
        privacy_unit: The column, here or in the table that `link` leads to in the end, that says whose row it is, or
            "row". None where nobody is protected, and in views.
        link: The table that says whose rows these are, with the pairs of columns that are equal.
        references: To tables whose rows it names, with such pairs.
        where: The condition that its rows fulfil, in words.
        sql: Of a view.
        unit_name: The unit in words: that column, or it "and day of" a timestamp where a unit is a person's day.
        title: Its name for people.
        description: The meaning of its rows.
        owner: The person or the office that answers for the data.
        provenance: Where the data come from.
        licence: Under which the results may be used.
        contact: Where to ask.
        unit_title: A word for one of those whom the privacy unit names.
    """

    name: str
    kind: str
    columns: tuple[ColumnDescription, ...]
    privacy_unit: str | None = None
    max_rows_per_unit: int | None = None
    rows_at_most: int | None = None
    people: int | None = None
    part: str | None = None
    where: str | None = None
    link: tuple[str, Mapping[str, str]] | None = None
    references: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    sql: str | None = None
    unit_name: str | None = None
    title: str | None = None
    description: str | None = None
    owner: str | None = None
    provenance: str | None = None
    licence: str | None = None
    contact: str | None = None
    unit_title: str | None = None

    @property
    def summary(self) -> str:
        """The table, and who is protected in it, in words."""
        rows = [] if self.where is None else [f"the rows of which {self.where}"]
        if self.kind == "view":
            return f"view: {' '.join((self.sql or '').split())}"
        if self.kind == "public" or self.privacy_unit == "row":
            return "; ".join(["public" if self.kind == "public" else f"protects {unit_in_words(None)}", *rows])
        most = "one row" if self.max_rows_per_unit == 1 else f"at most {self.max_rows_per_unit:,} rows"
        parts = [f"protects {unit_in_words(self.unit_name or self.privacy_unit, self.unit_title)}, {most} of each"]
        if self.link is not None:
            keys = " and ".join(f"{here} = {there}" for here, there in self.link[1].items())
            parts.append(f"linked to {self.link[0]} by {keys}")
        for to, on in self.references.items():
            parts.append(f"refers to {to} by {' and '.join(f'{here} = {there}' for here, there in on.items())}")
        parts += rows
        if self.part is not None:
            parts.append(f"in parts by {self.part}")
        if self.rows_at_most is not None:
            parts.append(f"at most {self.rows_at_most:,} rows in all")
        if self.people is not None:
            parts.append(f"{self.people:,} of them in all")
        return "; ".join(parts)

    @property
    def meaning(self) -> str:
        """Its title and description, in one line; empty without texts."""
        return " ".join(": ".join(part for part in (self.title, self.description) if part).split())

    @property
    def titled_summary(self) -> str:
        """Its title and its summary, in one line."""
        return "; ".join(filter(None, [self.title, self.summary]))

    @property
    def comment(self) -> str:
        """Its texts and its summary, in one line."""
        return "; ".join(filter(None, [self.meaning, self.summary]))

    @property
    def background(self) -> dict[str, str]:
        """Owner, provenance, licence and contact, as far as the curator said them."""
        said = {key: getattr(self, key) for key in ("owner", "provenance", "licence", "contact")}
        return {key: content for key, content in said.items() if content is not None}

    def about(self, column: ColumnDescription) -> str:
        """Say what one of the columns may hold, or that it says whose row it is."""
        own = self.link is None and column.name == self.privacy_unit
        return "; ".join(filter(None, ["whose row it is" if own else "", column.allowed]))

    def comment_on(self, column: ColumnDescription) -> str:
        """Say what one of the columns means and may hold, in one line."""
        return "; ".join(filter(None, [column.meaning, self.about(column)]))

    def __str__(self) -> str:
        return "\n".join([f"{self.name}: {self.comment}", *_aligned(self._rows())])

    def _repr_html_(self) -> str:
        rows = self._rows()
        return figures.html_table(["column", "type", "public facts"], rows, caption=f"{self.name}: {self.comment}")

    def _rows(self) -> list[tuple[str, ...]]:
        return [(column.name, column.type or "", self.comment_on(column)) for column in self.columns]


@final
class Tables(Mapping[str, TableDescription]):
    """Tables and views by name; a name that is not there raises a KeyError that names those which resemble it.

    `tables["visits"]` is the description of a table, and `tables.visits` an Ibis table to begin a question with.
    """

    def __init__(self, tables: Sequence[TableDescription]) -> None:
        self._tables = {table.name: table for table in tables}
        self._folded = {table.name.casefold(): table for table in tables}

    def __getitem__(self, name: str) -> TableDescription:
        found = self._tables.get(name) or self._folded.get(str(name).casefold())
        if found is None:
            raise KeyError(f"There is no table or view {name!r:.80}. {meant('Tables', str(name), self._tables)}")
        return found

    def __getattr__(self, name: str) -> "ibis.Table":
        if name.startswith("_") or name not in self:
            raise AttributeError(f"There is no table or view {name!r:.80}.", name=name, obj=self)
        return self.table(name)

    def table(self, name: str) -> "ibis.Table":
        """Return a table or view as an Ibis table of its columns, which holds no data, to begin a question with.

        Raises:
            QueryRefused: If there is none of this name.
            InvalidParameter: If Ibis is not installed.
        """
        from lapwing.tables.ibis_questions import table_of

        if name not in self:
            raise QueryRefused(
                f"There is no table '{shown(str(name))}'",
                cause=RefusalCause.UNKNOWN_TABLE,
                remedy=meant("Tables", str(name), self),
            )
        return table_of(self[name])

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *filter(str.isidentifier, self._tables)})

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __repr__(self) -> str:
        return "\n".join(_aligned(self._rows()))

    def _repr_html_(self) -> str:
        return figures.html_table(["table", "what it is"], self._rows(), caption="")

    def _rows(self) -> list[tuple[str, ...]]:
        return [(table.name, table.titled_summary) for table in self._tables.values()]


def tables_of(document: Mapping[str, Any]) -> Tables:
    """Return the tables and views of what is public about a data set (`documents.dataset_document`)."""
    begun = {one["name"]: one for one in document.get("relations", ())}
    tables = [_table(facts) for facts in document["tables"]]
    views = [
        TableDescription(
            name=name,
            kind="view",
            columns=tuple(_computed(column, begun[name].get("types", {})) for column in begun[name]["columns"])
            if name in begun
            else (),
            sql=sql,
        )
        for name, sql in document["views"].items()
    ]
    return Tables([*tables, *views])


def _table(facts: Mapping[str, Any]) -> TableDescription:
    link = facts.get("link")
    return TableDescription(
        name=facts["name"],
        kind="protected" if facts["protected"] else "public",
        columns=tuple(_column(name, column) for name, column in facts["columns"].items()),
        privacy_unit=facts.get("privacy_unit"),
        max_rows_per_unit=facts.get("max_rows_per_unit"),
        rows_at_most=facts.get("rows_at_most"),
        people=facts.get("people"),
        part=facts.get("part"),
        where=facts.get("where"),
        link=None if link is None else (link["table"], link["on"]),
        references=facts.get("references", {}),
        unit_name=facts.get("unit_name"),
        **{key: facts.get(key) for key in OF_TABLE},
    )


def _computed(name: str, types: Mapping[str, Mapping[str, Any]]) -> ColumnDescription:
    return _column(name, types[name]) if name in types else ColumnDescription(name=name, type=None)


def _column(name: str, facts: Mapping[str, Any]) -> ColumnDescription:
    values, length = facts.get("values"), facts.get("max_length")
    return ColumnDescription(
        name=name,
        type=facts["type"],
        lower=facts.get("lower"),
        upper=facts.get("upper"),
        step=facts.get("step"),
        values=None if values is None else tuple(values),
        other=facts.get("other"),
        max_length=None if length is None else int(length),
        nullable=facts.get("nullable") != "false",
        missing=None if facts.get("missing") is None else tuple(facts["missing"]),
        labels=facts.get("labels"),
        **{
            key: facts.get(key)
            for key in ("recode", "format", "decimal_mark", "thousands_mark", "currency", *OF_COLUMN)
        },
    )


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max((len(row[place]) for row in rows), default=0) for place in range(len(rows[0]))] if rows else []
    padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    return [f"  {'  '.join(cells)}".rstrip() for cells in padded]
