"""Which combinations of keys can have rows at all: the others are no cells of the answer.

A cell may be left out if it is empty for every content of the protected tables, and only then: so whether it is there
is a function of the question, the catalog and the public tables. The combinations that stay are those of the public
view of the rows (`public_view`), which says why no row has another one. They follow from the public tables that are
joined, each with its conditions and with what it is compared with; from what WHERE says of columns with public values;
and from what is known of functions of one column.

Guarantee:
    Fewer cells change nothing that a unit can do to the others, so that every bound on sensitivity stays valid.

Keys that nothing public connects are combined with each other in every way. What is too much to find out stays too:
that costs cells, and says nothing wrong.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, prod
from typing import Final, cast

from lapwing.query.aggregates.group_by import Sets
from lapwing.query.expressions.as_read import settled_key
from lapwing.query.expressions.expression import (
    ColumnReference,
    Constant,
    Expression,
    Literal,
    Operation,
    columns_of,
    walk,
)
from lapwing.query.expressions.types import BOOLEAN, Fixed
from lapwing.query.measures.measures import Key
from lapwing.query.plan.combined_keys import CombinedKeys
from lapwing.query.plan.plan import Question
from lapwing.query.relations.bounded_values import MOST_VALUES, all_values
from lapwing.query.relations.domains import listed_by, values_of
from lapwing.query.relations.images import MAX_VALUES
from lapwing.query.relations.public_rows import Combinations, JoinedRows, ListedValues, PublicFacts, PublicRows
from lapwing.query.relations.public_view import PublicView, over, public_view, weakened
from lapwing.query.relations.relation import FilteredRows

Rows = tuple[tuple[Constant, ...], ...]
Earlier = tuple[Sets, tuple[CombinedKeys, ...]]

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
COMPARED: Final = frozenset(
    {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "member", "is_null", "distinct"}
)
"""Comparisons, by their names in plans."""
MOST_BESIDE_OTHERS: Final = 10_000
MOST_COMBINED: Final = 1_000_000
"""Combinations, each of which is a cell of the answer."""


def possible_keys(
    sets: Sets,
    selection: FilteredRows,
    kept: Mapping[str, PublicRows],
    facts: PublicFacts,
    *,
    by_day: bool = False,
) -> tuple[Sets, tuple[CombinedKeys, ...], Earlier | None]:
    """Return the keys of every grouping set with the values that they can have, and what they can have together.

    Args:
        kept: Public rows that are in the answer whether or not they match anybody (`from_clause.scope.Input`).
        by_day: Look at timestamps as earlier versions did: by days.

    Returns:
        Also the cells of earlier versions, if they had more and no private keys.
    """
    view = public_view(selection, kept)
    # Set by set: a row without a listed value of a key is in no cell of it, and may be in those of sets without it.
    known: list[list[tuple[tuple[Key, ...], Rows]]] = []
    finer = False
    for grouped in sets:
        keys_in_order = sorted(grouped, key=str)  # however they are written: it is the same question
        finder = _Finder(view, facts, keys_in_order, by_day)
        finer |= finder.finer
        pairs = [(part.keys, finder.values(part)) for part in finder.parts()]
        known.append([(keys, rows) for keys, rows in pairs if rows is not None])
    if all(any(not rows for _, rows in found) for found in known):  # no set has a cell
        none = {key: replace(key, values=(), other=None) for grouped in sets for key in grouped}
        return tuple(tuple(none[key] for key in grouped) for grouped in sets), (), None
    keys = dict.fromkeys(key for grouped in sets for key in grouped)
    there = [(frozenset(grouped), _values_in(found)) for grouped, found in zip(sets, known, strict=True)]
    new = {key: _settled(_among_listed(_narrowed(key, there), selection)) for key in keys}
    combined = [
        CombinedKeys.of(tuple(new[key] for key in together), rows, place)
        for place, found in enumerate(known)
        for together, rows in found
        if len(rows) < prod(len(new[key].domain) for key in together)
    ]
    now = tuple(tuple(new[key] for key in grouped) for grouped in sets), tuple(combined)
    if not finer:
        return (*now, None)
    then, combined_then, _ = possible_keys(sets, selection, kept, facts, by_day=True)
    private = any(key.private for grouped in then for key in grouped)
    return (*now, None if private or (then, combined_then) == now else (then, combined_then))


def asked_before(question: Question, earlier: Earlier) -> Question:
    """Return a question with the cells that it had in earlier versions."""
    sets, combined = earlier
    keys = dict.fromkeys(key for grouped in sets for key in grouped)
    return replace(
        question,
        keys=tuple(sorted(keys, key=str)),
        sets=tuple(tuple(sorted(grouped, key=str)) for grouped in sets) if len(sets) > 1 else (),
        combined=combined,
    )


def _values_in(found: Sequence[tuple[tuple[Key, ...], Rows]]) -> dict[Key, set[Constant]]:
    """Return the values that keys can have in one set, by what is known of them."""
    values: dict[Key, set[Constant]] = {}
    for keys, rows in found:
        for place, key in enumerate(keys):
            if key not in values:
                values[key] = {row[place] for row in rows}
    return values


def _narrowed(key: Key, sets: Sequence[tuple[Set[Key], Mapping[Key, set[Constant]]]]) -> Key:
    """Return a key with only those of its values that it can have in some set."""
    there = set[Constant]()
    for grouped, found in sets:
        if key in grouped:
            if key not in found:  # nothing more is known of it there
                return key
            there |= found[key]
    if not there:  # its sets have no cells then
        return key
    values = tuple(sorted(there)) if key.values is None else tuple(value for value in key.values if value in there)  # type: ignore[type-var]
    return key if values == key.values else replace(key, values=values)


def _settled(key: Key) -> Key:
    """Return a key of a whole number within its bounds, where that groups the same rows."""
    settled = key.expression if key.values is None else settled_key(key.expression, key.values)
    return key if settled is key.expression else replace(key, expression=settled)


def _among_listed(key: Key, selection: FilteredRows) -> Key:
    """Return a key that WHERE keeps to constants with these alone, if its values are private or it has `other`."""
    named = listed_by(selection, key.expression) if key.private or key.other is not None else None
    if named is None:
        return key
    if key.values is None:
        return replace(key, values=named.listed)
    left = tuple(value for value in key.values if value in named.listed)
    return replace(key, values=left, other=key.other if len(left) < len(named.listed) else None) if left else key


@dataclass(frozen=True, slots=True, kw_only=True)
class _ConnectedKeys:
    """Keys, and the public rows and conditions that connect them."""

    keys: tuple[Key, ...]
    tables: tuple[JoinedRows, ...]
    lists: tuple[ListedValues, ...]
    conditions: tuple[Expression, ...]


class _Finder:
    """Finds what is known of keys together."""

    def __init__(self, view: PublicView, facts: PublicFacts, keys: Sequence[Key], by_day: bool) -> None:
        self._facts, self.finer = facts, False
        view, of_read = _of_read(view, [over(key.expression, view.values) for key in keys])
        values = {key: over(key.expression, view.values) for key in keys if key.other is None}
        variables = {v.name for table in view.tables for v in table.variables}
        as_they_are = {value.name for value in values.values() if isinstance(value, ColumnReference)}
        self._lists: dict[str, ListedValues] = {}
        asked = [*values.values(), *view.conditions, *(part for table in view.tables for part in table.on)]
        wanted = _columns_of_all(asked)
        required = [part for condition in view.conditions for part in _conjuncts(condition)]
        for name, (column, relation) in view.free.items():
            if name in wanted:
                variable = ColumnReference(name=name, type=column.type)
                # A column may have values that are not listed. Where it is a key itself, their rows are in no cell.
                listed_by_bounds = column.cleaned if column.whole and column.cleaned is not None else column
                domain = values_of(listed_by_bounds, relation, facts) if name in as_they_are else None
                if domain is not None and domain.other is None:
                    self._lists[name] = ListedValues(variable=variable, values=domain.listed)
                elif name in of_read:
                    self._lists[name] = of_read[name]
                elif domain is None and (between := all_values(variable, asked, required, by_day=by_day)) is not None:
                    self._lists[name] = between
                    self.finer |= all_values(variable, asked, required, by_day=True) is None
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

    def values(self, part: _ConnectedKeys) -> Rows | None:
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

    def parts(self) -> Iterator[_ConnectedKeys]:
        """Yield keys with all that is connected with them, unless what is known of them already is all there is."""
        left = list(self._values)
        while left:
            part = self._connected(columns_of(self._values[left[0]]))
            left = [key for key in left if key not in part.keys]
            if self._says_more(part):
                known = part if self._is_small(part) else self._of_tables(part)
                if known is not None:
                    yield known

    def _of_tables(self, part: _ConnectedKeys) -> _ConnectedKeys | None:
        """Return what public rows alone say of keys that have no values otherwise; None if there are none, or many."""
        names = {variable.name for table in part.tables for variable in table.variables}
        known = replace(
            part,
            keys=tuple(key for key in part.keys if columns_of(self._values[key]) <= names),
            tables=tuple(t if _columns_of_all(t.on) <= names else replace(t, on=(), kind="maybe") for t in part.tables),
            lists=(),
            conditions=tuple(condition for condition in part.conditions if columns_of(condition) <= names),
        )
        return known if any(key.values is None for key in known.keys) and self._is_small(known) else None

    def _connected(self, names: frozenset[str]) -> _ConnectedKeys:
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
        return _ConnectedKeys(
            keys=tuple(key for key, value in self._values.items() if columns_of(value) & names),
            tables=tuple(table for table in self._tables if {v.name for v in table.variables} & names),
            lists=tuple(values for name, values in self._lists.items() if name in names),
            conditions=tuple(part for part in self._conditions if columns_of(part) & names),
        )

    @staticmethod
    def _says_more(part: _ConnectedKeys) -> bool:
        """Tell whether a part may say more of its keys than each of them says of itself."""
        restricted = any(table.rows.where is not None for table in part.tables)
        plain = (
            len(part.keys) == 1 and isinstance(part.keys[0].expression, ColumnReference) and not part.keys[0].private
        )
        return bool(part.conditions) or restricted or not plain

    def _is_small(self, part: _ConnectedKeys) -> bool:
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


def _of_read(view: PublicView, shown: Sequence[Expression]) -> tuple[PublicView, Mapping[str, ListedValues]]:
    """Return a view in which a whole number within its bounds is a function of what was read, if that is looked at.

    Returns:
        Also values that stand for all that may be read: those within the bounds, and any that an expression compares it
        with, each with its neighbours. All others meet a comparison as the nearest of these does. What conditions say
        of it otherwise is left out. Keys that are computed of it otherwise have the values that these give: a note says
        that numbers beyond the bounds may be in no group. What decides between values of a key must compare it, too.
    """
    conditions = [part for condition in view.conditions for part in _conjuncts(condition)]
    on = [part for table in view.tables for part in table.on]
    values, lists = dict[str, Expression](), dict[str, ListedValues]()
    for name, value in view.clamped.items():
        (read,) = columns_of(value)
        if read not in _columns_of_all([*shown, *conditions, *on]):
            continue
        values[name] = value
        if read in view.free and all(_tells(part, read) for one in (*shown, *on) for part in _truths(one)):
            compared = [part for part in conditions if _is_compared(part, read)]
            constants = {c for part in (*shown, *on, *compared) for c in _constants(part, read)}
            listed_values = _standing_for_all(view.free[read][0], constants)
            if listed_values is not None:
                lists[read], conditions = replace(listed_values, variable=_variable(view, read)), compared
    tables = (replace(table, on=tuple(over(part, values) for part in table.on)) for table in view.tables)
    new = replace(
        view,
        tables=tuple(tables),
        conditions=tuple(over(condition, values) for condition in conditions),
        values={name: over(value, values) for name, value in view.values.items()},
    )
    return (new if values else view), lists


def _variable(view: PublicView, name: str) -> ColumnReference:
    return ColumnReference(name=name, type=view.free[name][0].type)


def _standing_for_all(column: ColumnReference, constants: Set[Fraction]) -> ListedValues | None:
    """Return the values from one below a number's bounds to one above, and constants with their neighbours."""
    bounds = cast(Fixed, (column.cleaned or column).type)
    low, high = (bounds.low or 0) - 1, (bounds.high or 0) + 1
    further = {k for c in constants for k in range(floor(c) - 1, floor(c) + 3) if not low <= k <= high}
    if high - low > (MOST_BESIDE_OTHERS if further else MOST_VALUES):
        return None
    if not further:
        return ListedValues(variable=column, between=(low, high))
    return ListedValues(variable=column, values=tuple(map(Fraction, sorted({*range(low, high + 1), *further}))))


def _truths(node: Expression) -> Iterator[Expression]:
    """Yield what decides between values of an expression: conditions, and NULLIF."""
    nullif = isinstance(node, Operation) and node.function == "null_if"
    if nullif or node.type == BOOLEAN:
        yield node
    if nullif or node.type != BOOLEAN:
        for part in node.children:
            yield from _truths(part)


def _tells(node: Expression, name: str) -> bool:
    """Tell whether what decides only compares a variable with constants, if it looks at it."""
    if isinstance(node, Operation) and node.function == "null_if":
        return name not in columns_of(node) or (_is_direct(node, name) and isinstance(node.arguments[1], Literal))
    return _is_compared(node, name)


def _constants(node: Expression, name: str) -> Iterator[Fraction]:
    """Yield the constants with which a variable is compared."""
    for part in walk(node):
        if isinstance(part, Operation) and part.function in (*COMPARED, "null_if") and _is_direct(part, name):
            yield from (c.value for c in part.arguments if isinstance(c, Literal) and isinstance(c.value, Fraction))


def _is_direct(node: Operation, name: str) -> bool:
    return any(isinstance(part, ColumnReference) and part.name == name for part in node.arguments)


def _conjuncts(condition: Expression) -> tuple[Expression, ...]:
    is_and = isinstance(condition, Operation) and condition.function == "and"
    return tuple(part for child in condition.children for part in _conjuncts(child)) if is_and else (condition,)


def _is_compared(node: Expression, name: str) -> bool:
    """Tell whether a condition only compares a variable with constants, if it looks at it."""
    if not isinstance(node, Operation):
        return not isinstance(node, ColumnReference) or node.name != name
    if not _is_direct(node, name):
        return all(_is_compared(part, name) for part in node.arguments)
    constants = [part.value for part in node.arguments if isinstance(part, Literal)]
    numbers = all(isinstance(value, Fraction) for value in constants)
    return numbers and node.function in COMPARED and len(constants) + 1 == len(node.arguments)


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
