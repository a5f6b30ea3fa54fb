"""Which adjusted tables may add up to less than others: those by a key without a cell for every row, with the remedy.

A function of the release, the catalog and public tables: a plan shows it before any charge.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, final

from lapwing.query.derivation.derived import KeyValue
from lapwing.query.expressions.as_read import declared
from lapwing.query.expressions.expression import ColumnReference, Constant, walk
from lapwing.query.expressions.types import Plain
from lapwing.query.measures.measures import Key
from lapwing.query.plan.plan import Plan
from lapwing.release.nested_keys import NestedKeys
from lapwing.tabulation.consistency import open_attributes
from lapwing.tabulation.hierarchy import Hierarchy, literal
from lapwing.tabulation.public_totals import Number

if TYPE_CHECKING:
    from lapwing.tabulation.declaration import TableRelease

MOST_NAMED: Final = 3
MOST_LISTED: Final = 8


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class IncompleteKeys:
    """A key, or the levels of a hierarchy, of which rows may have no cell, as far as public facts say.

    Args:
        keys: The names of the key's columns in the tables.
        tables: The tables by one of them. Their adjusted cells add up to at most the tables without it.
        remedy: A change after which they add up exactly.
    """

    keys: tuple[str, ...]
    tables: tuple[str, ...]
    remedy: str

    def __str__(self) -> str:
        named = ", ".join(f"“{table}”" for table in self.tables[:MOST_NAMED])
        more = f" and {len(self.tables) - MOST_NAMED:,} more" if len(self.tables) > MOST_NAMED else ""
        return (
            f"Rows may lack a listed value of {' or '.join(self.keys)}. So the adjusted numbers of {named}{more} add "
            f"up to at most the numbers of tables without it. {self.remedy}"
        )


def incomplete_keys(
    release: "TableRelease",
    plans: Sequence[Plan],
    deviations: Mapping[Number, float],
    nestings: Sequence[NestedKeys],
) -> tuple[IncompleteKeys, ...]:
    """Return the keys of adjusted tables that may lack rows, each once.

    Args:
        deviations: Of the noise of each number.
    """
    tables: dict[tuple[str, ...], dict[str, None]] = {}
    remedies: dict[tuple[str, ...], str] = {}
    for numbers, levels in open_attributes([plan.question for plan in plans], deviations, nestings):
        places = [place for place, _ in numbers if set(levels) & set(plans[place].question.keys)]
        named = {key: name for place in places for key, name in _names(plans[place]).items()}
        names = tuple(named[key] for key in levels)
        tables.setdefault(names, {}).update(dict.fromkeys(release.tables[place].name for place in places))
        remedies[names] = _remedy(levels, names, release.hierarchies)
    return tuple(
        IncompleteKeys(keys=names, tables=tuple(found), remedy=remedies[names]) for names, found in tables.items()
    )


def _listed(column: ColumnReference, key: Key) -> str:
    """Return the condition that keeps the values of a column with few of them."""
    values = key.domain
    if declared(key.expression) != column or len(values) > MOST_LISTED or not all(map(_is_plain, values)):
        return ""
    return f', such as where = "{column.name} IN ({", ".join(map(_in_sql, values))})"'


def _is_plain(value: Constant) -> bool:
    return isinstance(value, str | Fraction)


def _in_sql(value: Constant) -> str:
    return literal(value if isinstance(value, str) else int(value))  # type: ignore[arg-type]  # which `_is_plain` says


def _names(plan: Plan) -> dict[Key, str]:
    return {output.value.key: output.name for output in plan.outputs if isinstance(output.value, KeyValue)}


def lacking_in_words(facts: Mapping[str, Any]) -> list[str]:
    """Return a sentence for readers about each key in a manifest that rows may lack."""
    sentences = []
    for one in facts.get("incomplete_keys", ()):
        tables = ", ".join(f"“{table}”" for table in one["tables"])
        sentences.append(
            f"Some rows may lack a listed value of {' or '.join(one['keys'])}. So adjusted numbers of the following "
            f"tables add up to at most the numbers of tables without it: {tables}."
        )
    return sentences


def _remedy(levels: Sequence[Key], names: Sequence[str], hierarchies: Sequence[Hierarchy]) -> str:
    """Return what makes a key complete, in words."""
    for hierarchy in hierarchies:
        if hierarchy.table is not None and set(names) <= set(hierarchy.levels):
            own = hierarchy.column or hierarchy.levels[-1]
            return (
                f'To give these rows a cell, write missing = "elsewhere" in [hierarchies.{hierarchy.name}]. Or keep '
                f"only listed values of {own} by where, in all tables."
            )
    columns = {declared(part) for key in levels for part in walk(key.expression) if isinstance(part, ColumnReference)}
    column = min((part for part in columns if isinstance(part, ColumnReference)), key=lambda one: one.name)
    kept = f"keep only listed values of {column.name} by where, in all tables{_listed(column, levels[0])}."
    if isinstance(column.type, Plain) and column.type.name == "date":
        return f"If no row lacks a date, write nullable = false at {column.name} in the catalog."
    if isinstance(column.type, Plain) and column.type.name == "text":
        return f"To give these rows a cell, write other = true at {column.name} in the catalog. Or {kept}"
    return f"To leave these rows out of all tables, {kept}"
