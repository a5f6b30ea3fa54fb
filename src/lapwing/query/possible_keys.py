"""Which combinations of keys can have rows at all: the others are no cells of the answer.

A cell may be left out if it is empty for every content of the protected tables, and only then: so whether it is there
is a function of the question, the catalog and the public tables. The combinations that stay are those of the public
view of the rows (`public_view`), which says why no row has another one. They follow from the public tables that are
joined, each with its conditions and with what it is compared with; from what WHERE says of columns with public values;
and from what is known of functions of one column.

Guarantee: fewer cells change nothing that a unit can do to the others, so that every bound on sensitivity stays valid.

Keys that nothing public connects are combined with each other in every way. What is too much to find out stays too:
that costs cells, and says nothing wrong.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from lapwing.errors import QueryRefused
from lapwing.query.aggregates.grouping_sets import Sets
from lapwing.query.combined_keys import CombinedKeys
from lapwing.query.expressions.expression import ColumnReference, Constant, Expression, columns_of, walk
from lapwing.query.measures import Key
from lapwing.query.relations.bounded_values import all_values
from lapwing.query.relations.domains import listed_by, values_of
from lapwing.query.relations.images import MAX_VALUES
from lapwing.query.relations.public_rows import Combinations, JoinedRows, ListedValues, PublicFacts, PublicRows
from lapwing.query.relations.public_view import PublicView, over, public_view, weakened
from lapwing.query.relations.relation import Selection
from lapwing.suggestions import listed

Rows = tuple[tuple[Constant, ...], ...]

MOST_PAIRED: Final = 500_000
"""Rows that may have to be looked at together: anybody may ask for a price, and this is done before it is known."""
MOST_SEARCHED: Final = 1_000
"""The same where a text is searched, or made longer, which takes long for each of them."""
SEARCHES: Final = frozenset(
    {
        "matches",
        "fully_matches",
        "extracted",
        "substituted",
        "pad_left",
        "pad_right",
        "replace",
        "like_any_case",
        "like",
    }
)
MOST_COMBINED: Final = 1_000_000
"""Combinations, each of which is a cell of the answer."""


def possible_keys(
    sets: Sets, selection: Selection, kept: Mapping[str, PublicRows], facts: PublicFacts
) -> tuple[Sets, tuple[CombinedKeys, ...]]:
    """Return the keys of every grouping set with the values that they can have, and what they can have together.

    Args: kept: public rows that are in the answer whether or not they match anybody (`from_clause.scope.Input`).
    Raises: QueryRefused if a key can have none.
    """
    view = public_view(selection, kept)
    # Set by set: a row without a listed value of a key is in no cell of it, and may be in those of sets without it.
    known: list[list[tuple[tuple[Key, ...], Rows]]] = []
    for grouped in sets:
        finder = _Finder(view, facts, sorted(grouped, key=str))  # however they are written: it is the same question
        pairs = [(part.keys, finder.values(part)) for part in finder.parts()]
        known.append([(keys, rows) for keys, rows in pairs if rows is not None])
    empty = [next((keys[0] for keys, rows in found if not rows), None) for found in known]
    if None not in empty and empty[0] is not None:
        texts = [value for value in empty[0].domain if isinstance(value, str)]
        raise QueryRefused(
            f"No row can have a value of {empty[0].name}, whatever the data: the answer would have no rows",
            remedy=f"Look at WHERE, and at what the public tables hold.{f' Values: {listed(texts)}.' if texts else ''}",
        )
    keys = dict.fromkeys(key for grouped in sets for key in grouped)
    new = {key: _among_listed(_narrowed(key, sets, known), selection) for key in keys}
    combined = [
        CombinedKeys.of(tuple(new[key] for key in together), rows, place)
        for place, found in enumerate(known)
        for together, rows in found
        if len(rows) < prod(len(new[key].domain) for key in together)
    ]
    return tuple(tuple(new[key] for key in grouped) for grouped in sets), tuple(combined)


def _narrowed(key: Key, sets: Sets, known: Sequence[Sequence[tuple[tuple[Key, ...], Rows]]]) -> Key:
    """Return a key with only those of its values that it can have in some set."""
    there = set[Constant]()
    for grouped, found in zip(sets, known, strict=True):
        if key in grouped:
            columns = [{row[keys.index(key)] for row in rows} for keys, rows in found if key in keys]
            if not columns:  # nothing more is known of it there
                return key
            there |= columns[0]
    if not there:  # its sets have no cells then
        return key
    values = tuple(sorted(there)) if key.values is None else tuple(value for value in key.values if value in there)  # type: ignore[type-var]
    return key if values == key.values else replace(key, values=values)


def _among_listed(key: Key, selection: Selection) -> Key:
    """Return a key that WHERE keeps to constants with these alone, if its values are private or it has `other`."""
    named = listed_by(selection, key.expression) if key.private or key.other is not None else None
    if named is None:
        return key
    if key.values is None:
        return replace(key, values=named.listed)
    left = tuple(value for value in key.values if value in named.listed)
    return replace(key, values=left, other=key.other if len(left) < len(named.listed) else None) if left else key


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Keys, and the public rows and conditions that connect them."""

    keys: tuple[Key, ...]
    tables: tuple[JoinedRows, ...]
    lists: tuple[ListedValues, ...]
    conditions: tuple[Expression, ...]


class _Finder:
    """Finds what is known of keys together."""

    def __init__(self, view: PublicView, facts: PublicFacts, keys: Sequence[Key]) -> None:
        self._facts = facts
        values = {key: over(key.expression, view.values) for key in keys if key.other is None}
        variables = {v.name for table in view.tables for v in table.variables}
        as_they_are = {value.name for value in values.values() if isinstance(value, ColumnReference)}
        self._lists: dict[str, ListedValues] = {}
        asked = [*values.values(), *view.conditions, *(part for table in view.tables for part in table.on)]
        wanted = _columns_of_all(asked)
        for name, (column, relation) in view.free.items():
            if name in wanted:
                variable = ColumnReference(name=name, type=column.type)
                # A column may have values that are not listed. Where it is a key itself, their rows are in no cell.
                domain = values_of(column, relation, facts) if name in as_they_are else None
                if domain is not None and domain.other is None:
                    self._lists[name] = ListedValues(variable=variable, values=domain.listed)
                elif domain is None and (between := all_values(variable, asked)) is not None:
                    self._lists[name] = between
        self._public = frozenset(variables) | frozenset(self._lists)
        self._values = {key: value for key, value in values.items() if columns_of(value) and self._is_public(value)}
        self._tables = _in_order([self._of_public(table) for table in view.tables])
        self._conditions = tuple(
            dict.fromkeys(part for whole in view.conditions for part in weakened(whole, self._is_public))
        )

    def _is_public(self, expression: Expression) -> bool:
        return columns_of(expression) <= self._public

    def _of_public(self, table: JoinedRows) -> JoinedRows:
        on = tuple(part for part in table.on if self._is_public(part))
        return table if on == table.on else replace(table, on=on, kind="maybe")

    def values(self, part: _Part) -> Rows | None:
        """Return the combinations of a part's keys; None if nobody can tell."""
        shown = tuple(self._values[key] for key in part.keys)
        wanted = Combinations(tables=part.tables, lists=part.lists, conditions=part.conditions, shown=shown)
        found = self._facts.combinations(wanted, MOST_COMBINED)
        if found is None:
            return None
        domains = [None if key.values is None else frozenset(key.values) for key in part.keys]
        found = tuple(row for row in found if all(d is None or v in d for v, d in zip(row, domains, strict=True)))
        unlisted = [place for place, key in enumerate(part.keys) if key.values is None]
        return None if any(len({row[place] for row in found}) > MAX_VALUES for place in unlisted) else found

    def parts(self) -> Iterator[_Part]:
        """Yield keys with all that is connected with them, unless what is known of them already is all there is."""
        left = list(self._values)
        while left:
            part = self._connected(columns_of(self._values[left[0]]))
            left = [key for key in left if key not in part.keys]
            if self._says_more(part) and self._is_small(part):
                yield part

    def _connected(self, names: frozenset[str]) -> _Part:
        """Return all that variables are connected with."""
        groups = [
            *(frozenset(v.name for v in table.variables).union(*map(columns_of, table.on)) for table in self._tables),
            *map(columns_of, self._conditions),
            *map(columns_of, self._values.values()),
        ]
        while True:
            grown = names.union(*(group for group in groups if group & names))
            if grown == names:
                break
            names = grown
        return _Part(
            keys=tuple(key for key, value in self._values.items() if columns_of(value) & names),
            tables=tuple(table for table in self._tables if {v.name for v in table.variables} & names),
            lists=tuple(values for name, values in self._lists.items() if name in names),
            conditions=tuple(part for part in self._conditions if columns_of(part) & names),
        )

    @staticmethod
    def _says_more(part: _Part) -> bool:
        """Tell whether a part may say more of its keys than each of them says of itself."""
        restricted = any(table.rows.where is not None for table in part.tables)
        plain = (
            len(part.keys) == 1 and isinstance(part.keys[0].expression, ColumnReference) and not part.keys[0].private
        )
        return bool(part.conditions) or restricted or not plain

    def _is_small(self, part: _Part) -> bool:
        """Tell whether so few rows stand beside each other that looking at all of them takes no time to speak of."""
        looked_at = (*part.conditions, *(self._values[key] for key in part.keys))
        looked_at += tuple(table.rows.where for table in part.tables if table.rows.where is not None)
        searched = any(getattr(node, "function", "") in SEARCHES for one in looked_at for node in walk(one))
        pairs, seen = 1, set[str]()
        for values in part.lists:
            pairs *= len(values) + 1
            seen.add(values.variable.name)
        for table in part.tables:
            named = {v.name: c.name for v, c in zip(table.variables, table.rows.columns, strict=True)}
            compared = set[str]()
            for condition in (*part.conditions, *(table.on if table.kind == "left" else ())):
                for one, other in _compared(condition):
                    if one in named and other <= seen:
                        compared.add(named[one])
            pairs *= max(1, self._facts.multiplicity(table.rows.table, sorted(compared)))
            seen |= set(named)
        alone = len(part.tables) == 1 and not part.lists  # which is read through for its values anyway
        return pairs <= MOST_SEARCHED if searched else pairs <= MOST_PAIRED or alone


def _in_order(tables: Sequence[JoinedRows]) -> tuple[JoinedRows, ...]:
    """Put tables after those that they are compared with: inner joins first, which take all rows.

    A LEFT JOIN finds the same rows after joins that do not look at what it finds. Where two are compared with each
    other in a circle, one of them is not compared: then it may match any row, or none.
    """
    ordered = [table for table in tables if table.kind == "inner"]
    left = [table for table in tables if table.kind != "inner"]
    names = {v.name for table in tables for v in table.variables}
    while left:
        known = {v.name for table in ordered for v in table.variables}
        ready = [t for t in left if (_columns_of_all(t.on) & names) <= known | {v.name for v in t.variables}]
        if not ready:
            ready = [replace(left[0], kind="maybe", on=())]
            left = left[1:]
        ordered += ready
        left = [table for table in left if table not in ready]
    return tuple(ordered)


def _columns_of_all(expressions: Sequence[Expression]) -> frozenset[str]:
    """Return the names of all variables in expressions."""
    return frozenset[str]().union(*map(columns_of, expressions))


def _compared(condition: Expression) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the variables that an equality compares with something, each with the variables in that."""
    if getattr(condition, "function", None) == "equal":
        left, right = condition.children
        for one, other in ((left, right), (right, left)):
            if isinstance(one, ColumnReference):
                yield one.name, columns_of(other)
