"""Which keys of a release are levels of a hierarchy, and which value of one lies in which value of another.

Places. `PublicPlaces.of` reads the public table and refuses it unless each value of the finest level stands there
once, with a value of every level. A row of protected data that meets a row of this table has its values of all levels.
A row that meets none has no value of any level. Or it has the hierarchy's value for missing ones at each level. These
lie in each other, and no row of the table has one of them. So a finer value determines the coarser one, and a row has
all levels or none: that is what `NestedKeys` asks for.

Dates. Levels are parts of one date: a year, the beginnings of quarter and month, the day. Each is a function of the
date, and NULL only if the date is. The public values of a level cover all dates between the same bounds. So a row has
all levels or none here, too.

Guarantee:
    A function of the release, the catalog and public tables. No protected row is read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Self, final

from lapwing.errors import InvalidParameter
from lapwing.query.expressions.expression import Constant, Expression, Literal, Operation
from lapwing.query.plan.plan import Plan
from lapwing.query.relations.public_join import PublicJoin
from lapwing.query.relations.relation import FilteredRows
from lapwing.release.nested_keys import NestedKeys
from lapwing.tabulation.hierarchy import Hierarchy

if TYPE_CHECKING:
    from lapwing.session import Session

MOST_NAMED: Final = 3


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublicPlaces:
    """The rows of a public table: the values of all levels for each value of the finest one."""

    hierarchy: Hierarchy
    rows: tuple[tuple[Constant, ...], ...]

    @classmethod
    def of(cls, hierarchy: Hierarchy, session: "Session") -> Self:
        """Read a public table, and require that it is a hierarchy.

        Raises:
            InvalidParameter: If a value has no parent, or two, or two rows, or if the catalog lists values that the
                table lacks.
            QueryRefused: If the table or a column does not exist, which `require_public_tables` says more plainly.
        """
        levels = ", ".join(hierarchy.levels)
        answer = session.sql(f"SELECT {levels} FROM {hierarchy.table}")
        rows = tuple(tuple(map(_constant, row.values())) for row in answer.rows())
        finest, unit = [row[-1] for row in rows], hierarchy.levels[-1]
        if without := [row for row in rows if None in row]:
            where = hierarchy.levels[without[0].index(None)]
            raise _wrong(hierarchy, f"{_some(row[-1] for row in without)} has no {where}", "complete the table")
        _parents(hierarchy, rows)  # which refuses two parents of one
        if twice := [value for value, many in _counts(finest).items() if many > 1]:
            raise _wrong(hierarchy, f"{_some(twice)} of {unit} stands in two rows", "give each one row")
        declared = _declared(hierarchy, session)
        if missing := [value for value in declared if value not in set(finest)]:
            what = f"the catalog lists {_some(missing)}, which the table lacks"
            raise _wrong(hierarchy, what, "add them, or correct the codes")
        if instead := tuple(map(_constant, hierarchy.missing_values)):
            for level, column, value in zip(hierarchy.levels, zip(*rows, strict=True), instead, strict=True):
                if value in column:
                    raise _wrong(hierarchy, f"missing is {value}, which is a {level} of the table", "give another name")
            rows = (*rows, instead)
        return cls(hierarchy=hierarchy, rows=rows)

    def nested(self, levels: tuple[Expression, ...]) -> NestedKeys:
        """Return the levels as nested keys."""
        return NestedKeys(levels=levels, parents=_parents(self.hierarchy, self.rows))


def _parents(hierarchy: Hierarchy, rows: Sequence[tuple[Constant, ...]]) -> tuple[dict[Constant, Constant], ...]:
    """Return the parent of each value, level by level; two parents of one are refused."""
    every = []
    for at, (above, below) in enumerate(pairwise(hierarchy.levels)):
        parents: dict[Constant, Constant] = {}
        for row in rows:
            if parents.setdefault(row[at + 1], row[at]) != row[at]:
                both = f"{parents[row[at + 1]]} and {row[at]}"
                what = f"{row[at + 1]} of {below} lies in two of {above}: {both}"
                raise _wrong(hierarchy, what, "give it one, or another name")
        every.append(parents)
    return tuple(every)


def _declared(hierarchy: Hierarchy, session: "Session") -> list[Constant]:
    """Return the values that the catalog lists for the column of a protected table."""
    name = hierarchy.column or hierarchy.levels[-1]
    columns = [column for table in session.catalog.tables for column in table.columns if column.name == name]
    return [_constant(value) for column in columns for value in column.values or ()]


def _counts(values: Sequence[Constant]) -> dict[Constant, int]:
    counts: dict[Constant, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return counts


def _constant(value: object) -> Constant:
    """Return a value as plans hold it."""
    return Fraction(value) if isinstance(value, int) and not isinstance(value, bool) else value  # type: ignore[return-value]


def _wrong(hierarchy: Hierarchy, what: str, remedy: str) -> InvalidParameter:
    return InvalidParameter(f"The hierarchy {hierarchy.name!r}: {what}. Please {remedy}. Nothing was charged.")


def _some(values: "Iterator[Constant] | Sequence[Constant]") -> str:
    every = [str(value) for value in values]
    more = f" and {len(every) - MOST_NAMED:,} more" if len(every) > MOST_NAMED else ""
    return ", ".join(every[:MOST_NAMED]) + more


def require_public_tables(hierarchies: Sequence[Hierarchy], session: "Session") -> None:
    """Require the public table of each hierarchy, with a column for each level, and the column that it is joined to.

    Raises:
        InvalidParameter: If it does not.
    """
    tables = {table.name: {column.name: column for column in table.columns} for table in session.catalog.public_tables}
    for hierarchy in (one for one in hierarchies if one.table is not None):
        if hierarchy.table not in tables:
            what = f"the catalog has no public table {hierarchy.table!r}"
            raise _wrong(hierarchy, what, f"add [tables.{hierarchy.table}] with public = true to the catalog")
        if missing := [level for level in hierarchy.levels if level not in tables[hierarchy.table]]:
            what = f"the public table {hierarchy.table!r} has no column {_some(missing)}"
            raise _wrong(hierarchy, what, "declare it in the catalog, or correct the levels")
        own, finest = hierarchy.column or hierarchy.levels[-1], tables[hierarchy.table][hierarchy.levels[-1]]
        columns = [column for table in session.catalog.tables for column in table.columns]
        joined = [column for column in columns if column.name.casefold() == own.casefold()]
        if not joined:
            what = f"no protected table has a column {own!r}"
            raise _wrong(hierarchy, what, "end the levels with the column of your data, or give its name as column")
        if all(column.numeric != finest.numeric for column in joined):
            kinds = f"{own!r} is {joined[0].type} in your data, and the level {finest.name!r} is {finest.type}"
            raise _wrong(hierarchy, kinds, "end the levels with one that has the values of your data")


def nestings_of(hierarchies: Sequence[Hierarchy], plans: Sequence[Plan], session: "Session") -> tuple[NestedKeys, ...]:
    """Return the nested keys among the plans of a release.

    Raises:
        InvalidParameter: As `PublicPlaces.of`.
    """
    found: list[NestedKeys] = []
    for hierarchy in hierarchies:
        if hierarchy.table is None:
            found += _of_dates(hierarchy, plans, session)
        else:
            places = PublicPlaces.of(hierarchy, session)
            found += map(
                places.nested, dict.fromkeys(levels for plan in plans for levels in _joined(hierarchy, plan, plans))
            )
    return tuple(found)


def _named(level: Expression, hierarchy: Hierarchy, plans: Sequence[Plan]) -> Expression:
    """Return a level as the keys of tables have it: with a value for missing ones, if the hierarchy has one."""
    if not hierarchy.missing_values:
        return level
    keys = (key.expression for plan in plans for key in plan.question.keys)
    return next((one for one in keys if isinstance(one, Operation) and _is_coalesced(one, level)), level)


def _is_coalesced(expression: Operation, level: Expression) -> bool:
    """Tell whether an expression is a level, or a constant where that is NULL."""
    arguments = expression.arguments
    plain = len(arguments) == 2 and arguments[0] == level and isinstance(arguments[1], Literal)
    return plain and expression.function == "coalesce"


def _joined(hierarchy: Hierarchy, plan: Plan, plans: Sequence[Plan]) -> Iterator[tuple[Expression, ...]]:
    """Yield the levels in each join of a plan to the public table."""
    selection: FilteredRows = plan.question.selection
    while isinstance(join := selection.relation, PublicJoin):
        named = {other.name.casefold(): added for other, added in zip(join.other.columns, join.added, strict=False)}
        levels = [named.get(level.casefold()) for level in hierarchy.levels]
        if join.other.table.name == hierarchy.table and None not in levels:
            found = [level for level in levels if level is not None]
            yield tuple(_named(level, hierarchy, plans) for level in found)
        selection = join.source


def _of_dates(hierarchy: Hierarchy, plans: Sequence[Plan], session: "Session") -> Iterator[NestedKeys]:
    """Yield the parts of a date as nested keys, for each table that has it."""
    tables = {plan.question.table.name: plan.question.table for plan in plans}
    for table in (name for name, one in tables.items() if hierarchy.column in [column.name for column in one.columns]):
        levels = [_expression(hierarchy.date_expression(level), table, session) for level in hierarchy.levels]
        keys = {key for plan in plans for key in plan.question.keys if key.expression in levels}
        parents: list[dict[Constant, Constant]] = []
        for expression, (above, below) in reversed([*zip(levels[1:], pairwise(hierarchy.levels), strict=True)]):
            values = {value for key in keys if key.expression == expression for value in key.domain}
            values.update(parents[0].values() if parents else ())  # a table by days alone needs their months, too
            parents.insert(0, {value: _part(above, below, value) for value in values})
        yield NestedKeys(levels=tuple(levels), parents=tuple(parents))


def _expression(text: str, table: str, session: "Session") -> Expression:
    plan = session._bind(session.moment(), f"SELECT {text} AS level, COUNT(*) AS n FROM {table} GROUP BY ALL", ())
    return plan.question.keys[0].expression


def _part(above: str, below: str, value: Constant) -> Constant:
    """Return the value of a coarser level, of the beginning of a finer one."""
    if not isinstance(value, date):
        raise TypeError(f"the values of {below} are dates")
    if above == "year":
        return Fraction(value.year)
    return value.replace(day=1) if above == "month" else value.replace(month=1 + 3 * ((value.month - 1) // 3), day=1)
