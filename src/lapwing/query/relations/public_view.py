"""What public facts alone say of the rows of a selection, whatever the protected tables hold.

A `PublicView` describes rows over *variables* from public facts: the rows of the public tables that are joined, the
values that columns of protected tables may have, and conditions among them. Its rows include those of the selection:
for every row of the selection, on any data, there is a row of the view in which each variable has the value of what it
stands for, and in which all conditions are true. So what no row of the view has, no row of the selection has.

Proof, by induction over the nodes. The columns of a protected table become variables that may be anything, which says
nothing. A row that a join to a public table makes has the columns of some public row, which equals it in what ON
compares, or in a LEFT JOIN of none: NULLs. A comparison of ON is true of the two, and so of the least or greatest value
that the row may have there. Of a semi-join there is such a public row, which is not shown. A pair of rows of two
protected tables is a row of either, and equal in what ON compares. What chooses or computes rows one by one hands their
columns on (`Definition`, `exact`). Every other column becomes a new variable. And a row that WHERE keeps makes the
condition true. ∎

Where an inner join compares a column with a public one, both have one value, so that the public variable stands for
both. What remains of a condition when the variables that may be anything are taken out follows from it (`weakened`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, cast
from typing import Literal as Choice

from lapwing.query.expressions.ends import ends_of
from lapwing.query.expressions.expression import ColumnReference, Expression, Literal, Operation, columns_of
from lapwing.query.expressions.types import BOOLEAN, Fixed, Plain, Type
from lapwing.query.relations.node import Relation
from lapwing.query.relations.public_rows import JoinedRows, PublicRows
from lapwing.query.relations.relation import FilteredRows, ProtectedRows

if TYPE_CHECKING:
    from lapwing.query.relations.public_join import PublicJoin
    from lapwing.query.relations.shared_join import SharedJoin
    from lapwing.query.relations.unit_join import UnitJoin

Values = Mapping[str, Expression]
"""What the columns of a relation are, by name, over variables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicView:
    """Public facts about the rows of a selection.

    Args:
        tables: Public rows, in the order in which they are joined.
        free: The variables that are columns of relations, each with the column and the relation.
        conditions: What is true in every row.
        values: The selection's columns.
        clamped: Variables that are whole numbers within their bounds, each as what was read, clamped.
    """

    tables: tuple[JoinedRows, ...]
    free: Mapping[str, tuple[ColumnReference, Relation]]
    conditions: tuple[Expression, ...]
    values: Values
    clamped: Values


def public_view(selection: FilteredRows, kept: Mapping[str, PublicRows]) -> PublicView:
    """Read what is public of the rows of a selection.

    Args:
        kept: By the first of their columns, the rows that a join to public rows keeps whatever ON says: that they match
            nobody is to show.
    """
    reader = _RelationReader(kept=kept)
    values = reader.selection(selection)
    return PublicView(
        tables=tuple(replace(t, on=tuple(over(part, reader.same) for part in t.on)) for t in reader.tables),
        free={name: place for name, place in reader.free.items() if name not in reader.same},
        conditions=tuple(over(condition, reader.same) for condition in reader.conditions),
        values={name: over(value, reader.same) for name, value in values.items()},
        clamped={name: over(v, reader.same) for name, v in reader.clamped.items() if name not in reader.same},
    )


def over(expression: Expression, values: Values) -> Expression:
    """Return an expression with other expressions in the place of columns."""
    if isinstance(expression, ColumnReference):
        return values.get(expression.name, expression)
    if not isinstance(expression, Operation):
        return expression
    return replace(expression, arguments=tuple(over(argument, values) for argument in expression.arguments))


def weakened(condition: Expression, is_public: Callable[[Expression], bool]) -> tuple[Expression, ...]:
    """Return conditions of public variables alone that are true wherever a condition is: none if nothing follows."""
    if isinstance(condition, Operation) and condition.function == "and":
        return tuple(part for argument in condition.arguments for part in weakened(argument, is_public))
    if is_public(condition):
        return (condition,)
    if isinstance(condition, Operation) and condition.function == "not":
        return _weakened_not(condition.arguments[0], is_public)
    if not isinstance(condition, Operation) or condition.function != "or":
        return ()
    branches = [weakened(argument, is_public) for argument in condition.arguments]
    return (_any(list(map(_all, branches))),) if all(branches) else ()


def _weakened_not(condition: Expression, is_public: Callable[[Expression], bool]) -> tuple[Expression, ...]:
    """Weaken a condition that is to be false: of AND some part is false then, and of OR every part."""
    opposite = {"and": "or", "or": "and"}.get(condition.function) if isinstance(condition, Operation) else None
    if opposite is None:
        return ()
    parts = tuple(Operation(function="not", arguments=(part,), type=BOOLEAN) for part in condition.children)
    return weakened(Operation(function=opposite, arguments=parts, type=BOOLEAN), is_public)


def _all(parts: Sequence[Expression]) -> Expression:
    return parts[0] if len(parts) == 1 else Operation(function="and", arguments=tuple(parts), type=BOOLEAN)


def _any(parts: Sequence[Expression]) -> Expression:
    return Operation(function="or", arguments=tuple(parts), type=BOOLEAN)


@dataclass(slots=True)
class _RelationReader:
    """Reads relations from the bottom up; `same` are the variables for which others stand."""

    kept: Mapping[str, PublicRows]
    tables: list[JoinedRows] = field(default_factory=list)
    free: dict[str, tuple[ColumnReference, Relation]] = field(default_factory=dict)
    conditions: list[Expression] = field(default_factory=list)
    same: dict[str, Expression] = field(default_factory=dict)
    clamped: dict[str, Expression] = field(default_factory=dict)
    variables: int = 0

    def selection(self, selection: FilteredRows) -> Values:
        values = self._relation(selection.relation)
        if selection.where is not None:
            self.conditions.append(over(selection.where, values))
        return values

    def _relation(self, node: Relation) -> Values:
        values = self._columns(node)
        for column in node.columns:
            own = values.get(column.cleaned.name) if column.whole and column.cleaned is not None else None
            if isinstance(own, ColumnReference) and own.name in self.free and self.free[own.name][1] is node:
                read = values[column.name]
                missing = Operation(function="is_null", arguments=(read,), type=BOOLEAN)
                parts = (missing, Literal(value=None, type=own.type), _kept_within(read, own.type))
                self.clamped[own.name] = Operation(function="case", arguments=parts, type=own.type)
        return values

    def _columns(self, node: Relation) -> Values:
        if isinstance(node, ProtectedRows):
            return {column.name: self._anything(column, node) for column in node.columns}
        # Here: most questions are about the rows of one table, and these take a fiftieth of a start.
        from lapwing.query.relations.public_join import PublicJoin
        from lapwing.query.relations.set_operations import Union
        from lapwing.query.relations.shared_join import SharedJoin
        from lapwing.query.relations.unit_join import UnitJoin

        match node:
            case PublicJoin():
                return self._joined(node)
            case UnitJoin(kind="inner" | "semi") | SharedJoin():
                return self._met(node)
            case Union():
                return {column.name: self._anything(column, node) for column in node.columns}
        below = self.selection(node.sources[0])
        return {column.name: self._handed_on(column, node, below) for column in node.columns}

    def _handed_on(self, column: ColumnReference, node: Relation, below: Values) -> Expression:
        """Return what a column is of the row that its own row was made from; else anything."""
        match node.definitions(column):
            case (one,) if one.exact and not one.unmatched and one.relation is node.sources[0].relation:
                return over(one.value, below)
        return self._anything(column, node)

    def _joined(self, node: "PublicJoin") -> Values:
        values = self.selection(node.source)
        if node.kind in ("anti", "not_in"):
            return values
        variables = tuple(self._variable(column.type) for column in node.other.columns)
        theirs = {column.name: variable for column, variable in zip(node.other.columns, variables, strict=True)}
        pairs = [(over(left, values), over(right, theirs)) for left, right in node.on]
        added = {column.name: variable for column, variable in zip(node.added, variables, strict=False)}
        further = () if node.condition is None else (over(node.condition, {**values, **added}),)
        kind: Choice["inner", "left"] = "left" if node.kind == "left" else "inner"
        on = (*(_equal(*pair) for pair in pairs), *further) if kind == "left" else ()
        kept = self.kept.get(node.added[0].name) if node.added else None
        rows = node.other if kept is None else kept
        self.tables.append(JoinedRows(rows=rows, variables=variables, kind=kind, on=on))
        if kind == "inner" and kept is None:
            self._equate(pairs)
            names = frozenset(variable.name for variable in variables)
            self.conditions += [*further, *(part for one in further for part in _at_ends(one, names))]
        return {**values, **added}

    def _met(self, node: "UnitJoin | SharedJoin") -> Values:
        values, others = self.selection(node.source), self.selection(node.other)
        self._equate([(over(left, values), over(right, others)) for left, right in node.on])
        shown = {column.name: over(value, others) for column, value in zip(node.added, node.shown, strict=True)}
        both = {**values, **shown}
        if node.condition is not None:
            self.conditions.append(over(node.condition, both))
        return {column.name: both[column.name] for column in node.columns}

    def _equate(self, pairs: Sequence[tuple[Expression, Expression]]) -> None:
        """Say that two expressions are equal, and not NULL; one may stand for the other then, if it is a variable."""
        for left, right in pairs:
            left, right = over(left, self.same), over(right, self.same)
            if not self._stands_for(left, right):
                self._stands_for(right, left)
            self.conditions.append(_equal(left, right))

    def _stands_for(self, one: Expression, other: Expression) -> bool:
        """Let a variable stand for one that may be anything, if both are such; tell whether it does."""
        if not isinstance(one, ColumnReference) or not isinstance(other, ColumnReference) or one == other:
            return False
        value = _in_bounds(other, one.type) if one.name in self.free else None
        if value is None:
            return False
        self.same = {name: over(known, {one.name: value}) for name, known in self.same.items()}
        self.same[one.name] = value
        return True

    def _anything(self, column: ColumnReference, relation: Relation) -> ColumnReference:
        variable = self._variable(column.type)
        self.free[variable.name] = (column, relation)
        return variable

    def _variable(self, kind: Type) -> ColumnReference:
        self.variables += 1
        return ColumnReference(name=f"v{self.variables}", type=kind)


def _at_ends(condition: Expression, public: frozenset[str]) -> Iterator[Expression]:
    """Yield what comparisons of a value with a public one say of the public one: v <= p says so of v's least value."""
    if not isinstance(condition, Operation):
        return
    if condition.function == "and":
        for part in condition.arguments:
            yield from _at_ends(part, public)
    if condition.function in _TURNED:
        left, right = condition.arguments
        for function, one, other in ((condition.function, left, right), (_TURNED[condition.function], right, left)):
            least, greatest = ends_of(one.type)
            end = least if function in ("less", "less_equal") else greatest
            if end is not None and columns_of(one) and not columns_of(one) & public and columns_of(other) <= public:
                yield Operation(function=function, arguments=(end, other), type=BOOLEAN)


_TURNED: Final = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}


def _equal(left: Expression, right: Expression) -> Expression:
    return Operation(function="equal", arguments=(left, right), type=BOOLEAN)


def _in_bounds(variable: ColumnReference, kind: Type) -> Expression | None:
    """Return a variable as a value of another type, if equal values of both are stored alike.

    What is computed from values between bounds stays within bounds that follow from those, and has no value beyond
    them. So a variable that may lie outside is clamped: it is equal to itself then, if it is equal to a value inside.
    """
    match variable.type, kind:
        case Plain(name=name, low=low, high=high), Plain(name=other):
            unbounded = kind.low is None and kind.high is None
            return variable if name == other and (unbounded or (low, high) == (kind.low, kind.high)) else None
        case Fixed(step=step, low=low, high=high), Fixed(step=other_step, low=least, high=greatest):
            if step != other_step:
                return None
            if (
                least is None
                or greatest is None
                or (low is not None and high is not None and least <= low <= high <= greatest)
            ):
                return variable
            return _kept_within(variable, kind)
    return None


def _kept_within(value: Expression, kind: Type) -> Expression:
    """Clamp a number that is not NULL to the bounds of a type with the same step."""
    low, high, step = cast(Fixed, kind).low, cast(Fixed, kind).high, cast(Fixed, kind).step
    ends = [Literal(value=end * step, type=Fixed(step=step, low=end, high=end)) for end in (low or 0, high or 0)]
    above = Operation(function="greatest", arguments=(value, ends[0]), type=kind)
    return Operation(function="least", arguments=(above, ends[1]), type=kind)
