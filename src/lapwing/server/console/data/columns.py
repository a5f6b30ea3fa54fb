"""What is public about tables and columns, in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any, Final, final

from lapwing.catalog.dictionary import OF_COLUMN
from lapwing.catalog.suggestions import name_in_sql
from lapwing.privacy.figures import clip

SHOWN: Final = 12
"""Listed values that are shown, of more."""
MOST_KEYS: Final = 10_000
"""Values between bounds, of a column that is a key by itself."""
FEW_KEYS: Final = 100
"""Steps between bounds that are proposed where a column has more values."""
NUMBERS: Final = ("integer", "decimal", "float")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnText:
    """A column: its type, what of its values is public, and what a question may do with it for that reason.

    Args:
        written: Its name in a question.
        facts: The column in the document of the data set.
    """

    name: str
    written: str
    type: str
    public: str
    allows: str
    is_unit: bool
    facts: Mapping[str, Any]
    title: str = ""
    unit: str = ""
    description: str = ""
    provenance: str = ""
    labelled: bool = False

    @property
    def meaning(self) -> str:
        """Its title and unit, for one line."""
        return ", in ".join(filter(None, [self.title, self.unit])) if self.title else self.unit and f"in {self.unit}"

    @property
    def about(self) -> str:
        """The text that the editor shows for it: title, unit, description, and labelled values."""
        return "\n".join(filter(None, [self.meaning, self.description, self.public if self.labelled else ""]))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableText:
    """A table or view: its columns, and what else is public of it, in sentences."""

    name: str
    written: str
    protected: bool
    columns: Sequence[ColumnText]
    facts: Sequence[str]
    text: str
    title: str = ""
    description: str = ""
    background: Sequence[tuple[str, str]] = ()

    @property
    def about(self) -> str:
        """The text that the editor shows for it."""
        return "\n".join(filter(None, [self.title, self.description]))


def tables_of(document: Mapping[str, Any]) -> list[TableText]:
    """Return the tables and views of a data set's document."""
    relations = {relation["name"]: relation for relation in document["relations"]}
    budget = document["budget"]
    chosen = Fraction(budget["delta_keys"]) > 0 and budget["neighbouring"] == "add_remove"
    tables = [_table(table, relations.get(table["name"], {}), chosen=chosen) for table in document["tables"]]
    return tables + [_view(name, text, relations.get(name, {})) for name, text in document["views"].items()]


def written(name: str) -> str:
    """Return a name as a question writes it.

    >>> written("plan"), written("Plan of care")
    ('plan', '"Plan of care"')
    """
    return name_in_sql(name)


def background_of(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return owner, provenance, licence and contact of a data set or a table, as far as the catalog says them."""
    heads = {"owner": "Owner", "provenance": "Provenance", "licence": "Licence", "contact": "Contact"}
    return [(head, document[key]) for key, head in heads.items() if document.get(key)]


def _table(table: Mapping[str, Any], relation: Mapping[str, Any], *, chosen: bool) -> TableText:
    unit = table.get("privacy_unit") or relation.get("unit")
    columns = [
        _column(name, facts, unit, protected=table["protected"], chosen=chosen)
        for name, facts in table["columns"].items()
    ]
    if unit is not None and unit not in table["columns"] and unit in relation.get("columns", ()):
        columns.insert(0, _column(unit, {}, unit))
    return TableText(
        name=table["name"],
        written=written(table["name"]),
        protected=table["protected"],
        columns=columns,
        facts=_facts(table)
        if table["protected"]
        else ["Public: Lapwing does not protect this table. Queries of only public tables are free."],
        text="",
        title=table.get("title", ""),
        description=table.get("description", ""),
        background=background_of(table),
    )


def _view(name: str, text: str, relation: Mapping[str, Any]) -> TableText:
    types = relation.get("types") or {}
    columns = [_column(column, types.get(column, {}), relation.get("unit")) for column in relation.get("columns", ())]
    facts = ["View: query it like a table."] if relation else ["View: no query can start with it."]
    return TableText(name=name, written=written(name), protected=True, columns=columns, facts=facts, text=text)


def _facts(table: Mapping[str, Any]) -> list[str]:
    facts, unit = [], table["privacy_unit"] != "row"
    if table["link"] is not None:
        pairs = ", ".join(f"{column} = {other}" for column, other in table["link"]["on"].items())
        facts.append(f"Each row belongs to a row of {clip(table['link']['table'], 60)} ({clip(pairs)}).")
    else:
        facts.append(f"Protects {clip(table['protects'], 160)}{', with all its rows' if unit else ''}.")
    if table["max_rows_per_unit"] is not None and unit:
        facts.append(f"Queries use {clip(table['bound'], 200)}.")
    if table["rows_at_most"] is not None:
        facts.append(f"At most {table['rows_at_most']:,} rows.")
    if table["people"] is not None:
        facts.append(f"About {table['people']:,} people.")
    for other, on in table["references"].items():
        pairs = ", ".join(f"{column} = {there}" for column, there in on.items())
        facts.append(f"Joins {clip(other, 60)} on {clip(pairs)}.")
    if table["part"] is not None:
        facts.append(f"Each {clip(table['part'], 60)} has its own budget.")
    return facts


def _column(
    name: str, facts: Mapping[str, Any], unit: str | None, *, protected: bool = True, chosen: bool = False
) -> ColumnText:
    return ColumnText(
        name=name,
        written=written(name),
        type=str(facts.get("type", "")),
        public=_public(facts),
        allows=_allows(written(name), facts, is_unit=name == unit, chosen=chosen) if protected else "anything",
        is_unit=name == unit,
        facts=facts,
        labelled="labels" in facts,
        **{key: str(facts.get(key, "")) for key in OF_COLUMN},
    )


def _allows(name: str, facts: Mapping[str, Any], *, is_unit: bool, chosen: bool) -> str:
    """Say what a question may do with a column of a protected table beyond counting it and conditions.

    >>> _allows("age", {"type": "integer", "lower": "0", "upper": "67", "step": "1"}, is_unit=False, chosen=False)
    'GROUP BY; sum, mean, quantile'
    >>> _allows("income", {"type": "integer", "lower": "0", "upper": "30000", "step": "1"}, is_unit=False, chosen=False)
    'GROUP BY FLOOR(income / 1000); sum, mean, quantile'
    """
    if is_unit:
        return f"people: COUNT(DISTINCT {name})"
    if not facts:  # of what a view's column is, nothing is known
        return ""
    kind = facts.get("type")
    key = _key(name, facts) or ("GROUP BY for a δ, with the values that enough people have" if chosen else "")
    said = [key or f"GROUP BY where listed: WHERE {name} IN (…)"]
    if kind in NUMBERS and "lower" in facts:
        said.append("sum, mean, quantile")
    return "; ".join(said)


def _key(name: str, facts: Mapping[str, Any]) -> str:
    """Say how a column whose values, or bounds, are public is a key; nothing if they are not."""
    kind = facts.get("type")
    if "values" in facts or kind == "boolean":
        return "GROUP BY"
    if "lower" not in facts:
        return ""
    if kind in ("date", "timestamp"):
        first, last = (date.fromisoformat(str(facts[end])[:10]) for end in ("lower", "upper"))
        few = (last - first).days < MOST_KEYS
        day = "GROUP BY" if kind == "date" else f"GROUP BY CAST({name} AS DATE)"
        return f"{day}, or DATE_TRUNC('month', {name})" if few else f"GROUP BY DATE_TRUNC('year', {name})"
    lower, upper, step = (Fraction(str(facts.get(end, 1))) for end in ("lower", "upper", "step"))
    if (upper - lower) / step < MOST_KEYS:
        return "GROUP BY"
    width = 1
    while (upper - lower) / width > FEW_KEYS:
        width *= 10
    return f"GROUP BY FLOOR({name} / {width})"


def _value(value: str, label: str | None) -> str:
    return clip(value, 40) if label is None else f"{clip(value, 40)} ({clip(label, 40)})"


def _public(facts: Mapping[str, Any]) -> str:
    """Say what of a column's values is public."""
    said = []
    if "lower" in facts:
        step = facts.get("step", "1")
        said.append(f"{facts['lower']} to {facts['upper']}" + ("" if step == "1" else f", in steps of {step}"))
    if "values" in facts:
        labels = facts.get("labels", {})
        values = [_value(value, labels.get(value)) for value in facts["values"]]
        more = "" if len(values) <= SHOWN else f", … ({len(values):,} in all)"
        if said and facts.get("type") == "integer" and len(values) == int(facts["upper"]) - int(facts["lower"]) + 1:
            return f"{said[0]}, each value listed"
        said.append(f"{'listed:' if said else 'one of'} {', '.join(values[:SHOWN])}{more}")
    return "; ".join(said)
