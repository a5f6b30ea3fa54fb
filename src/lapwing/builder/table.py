"""Table expressions: what a question is about, step by step, each a new value.

Nothing is read and nothing is paid before `answer`; `explain` and `to_sql` are free.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Generic, Literal, Protocol, TypeVar, final

from lapwing.builder import literals
from lapwing.builder.functions import Groupings, count
from lapwing.builder.literals import column_name, printed, quoted, type_name
from lapwing.builder.nodes import ColumnNode, ConstantNode, Node, aggregates, columns_of, windows
from lapwing.builder.opened import names_of, opened, unknown
from lapwing.builder.relations import (
    Aggregated,
    Distinct,
    Group,
    Item,
    Joined,
    JoinWord,
    Limited,
    Ordered,
    Relation,
    Shown,
    United,
    Where,
    is_answer,
    unit_of,
)
from lapwing.builder.values import Named, Operand, Order, Value, named, ordered, several
from lapwing.builder.values import value as as_value
from lapwing.builder.writing import written
from lapwing.catalog.model import Catalog
from lapwing.errors import InvalidParameter, QueryRefused
from lapwing.preview import Preview
from lapwing.privacy.measures import Number
from lapwing.query.relations.public_rows import PublicFacts
from lapwing.query.text.parameters import Parameters
from lapwing.query.text.privacy_options import STRATEGIES

How = Literal["inner", "left", "semi", "anti"]
Pair = str | tuple[Named, Named]
Given = TypeVar("Given")
Given_co = TypeVar("Given_co", covariant=True)
"""What is answered: an answer of this process, or of a server."""


class Asker(Protocol[Given_co]):
    """What questions are put to: a session, here or of a server."""

    def sql(
        self,
        text: str,
        parameters: Parameters = (),
        *,
        epsilon: Number | None = None,
        error: Number | None = None,
        delta: Number | None = None,
        label: str | None = None,
    ) -> Given_co:
        """Answer a question."""
        ...

    def explain(
        self,
        text: str,
        parameters: Parameters = (),
        *,
        epsilon: Number | None = None,
        error: Number | None = None,
        delta: Number | None = None,
        assuming_count: int | None = None,
    ) -> Preview:
        """Say what a question would cost."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Table(Generic[Given]):
    """Rows of a table, or an answer, before they are asked for. Every verb returns another.

    Args: relation: what was done so far; asker: what answers; taken: the names of tables, which no subquery may have.
    """

    relation: Relation
    asker: Asker[Given] = field(repr=False)
    taken: tuple[str, ...]

    def __repr__(self) -> str:
        return self.to_sql()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.relation.names

    def __getitem__(self, name: str) -> Value:
        _known(name, self.columns)
        return Value(ColumnNode(name))

    def _then(self, relation: Relation) -> "Table[Given]":
        return replace(self, relation=relation)

    # ---- asking -----------------------------------------------------------------------------------------------------

    def to_sql(self) -> str:
        """Return the question as SQL."""
        return written(self.relation, self.taken)

    def answer(
        self,
        *,
        epsilon: Number | None = None,
        error: Number | None = None,
        delta: Number | None = None,
        label: str | None = None,
    ) -> Given:
        """Answer the question and charge it, as `Session.sql` does."""
        return self.asker.sql(self.to_sql(), epsilon=epsilon, error=error, delta=delta, label=label)

    def explain(
        self,
        *,
        epsilon: Number | None = None,
        error: Number | None = None,
        delta: Number | None = None,
        assuming_count: int | None = None,
    ) -> Preview:
        """Return price and promised errors, for free, as `Session.explain` does."""
        return self.asker.explain(
            self.to_sql(), epsilon=epsilon, error=error, delta=delta, assuming_count=assuming_count
        )

    # ---- rows -------------------------------------------------------------------------------------------------------

    def filter(self, *conditions: Value | bool) -> "Table[Given]":
        """Keep the rows for which all conditions are true; of an answer, rows of released numbers."""
        relation = self.relation
        for condition in conditions:
            if isinstance(condition, bool) or not isinstance(condition, Value):
                raise InvalidParameter(f"filter takes conditions such as lw.col.age > 30, not {type_name(condition)}.")
            relation = Where(source=relation, condition=self._of_row(condition.node, "filter"))
        return self._then(relation)

    def mutate(self, *values: Value, **named_values: Operand) -> "Table[Given]":
        """Add columns, or put others in the place of those of the same name; a text is a constant."""
        added = self._items(values, named_values, "mutate")
        names = {item.name for item in added}
        kept = tuple(_column(name) for name in self.columns if name not in names)
        return self._then(Shown(source=self.relation, items=(*kept, *added)))

    def select(self, *values: Named, **named_values: Operand) -> "Table[Given]":
        """Keep these columns, and no others; new="old" gives another name."""
        given = [one for value in values for one in several(value)]
        columns = {name: named(one) if isinstance(one, str) else one for name, one in named_values.items()}
        items = self._items(given, columns, "select")
        if not items:
            raise InvalidParameter("select takes at least one column.")
        return self._then(Shown(source=self.relation, items=items))

    def drop(self, *names: str) -> "Table[Given]":
        """Leave columns out."""
        for name in names:
            _known(name, self.columns)
        kept = tuple(_column(name) for name in self.columns if name not in names)
        if not kept:
            raise InvalidParameter("drop leaves no column.")
        return self._then(Shown(source=self.relation, items=kept))

    def rename(self, mapping: Mapping[str, str] | None = None, /, **names: str) -> "Table[Given]":
        """Give columns other names: new="old"."""
        given = {**(mapping or {}), **names}
        for old in given.values():
            _known(old, self.columns)
        new = {old: column_name(name) for name, old in given.items()}
        items = tuple(Item(new.get(name, name), ColumnNode(name)) for name in self.columns)
        _no_two(items)
        return self._then(Shown(source=self.relation, items=items))

    def distinct(self) -> "Table[Given]":
        """Leave out rows that equal another: of one unit, so that the privacy unit must be among the columns."""
        return self._then(Distinct(source=self.relation))

    def order_by(self, *terms: Named | Order) -> "Table[Given]":
        """Order the rows of an answer."""
        given = [ordered(term) for one in terms for term in several(one)]
        if not given:
            raise InvalidParameter("order_by takes at least one column.")
        found = tuple((self._key(term.value.node, "order_by"), term.suffix) for term in given)
        return self._then(Ordered(source=self.relation, terms=found))

    def limit(self, n: int | None, *, offset: int = 0) -> "Table[Given]":
        """Keep the first rows of an answer, after some."""
        number = None if n is None else literals.whole(n, "The limit")
        return self._then(Limited(source=self.relation, count=number, offset=literals.whole(offset, "The offset")))

    def head(self, n: int = 5) -> "Table[Given]":
        """Keep the first rows of an answer."""
        return self.limit(n)

    # ---- groups -----------------------------------------------------------------------------------------------------

    def group_by(self, *keys: "Named | Groupings", **named_keys: Value) -> "Grouped[Given]":
        """Group rows, for aggregates: outermost by public or private keys, before that by the privacy unit."""
        groups: list[Group] = []
        items: list[Item] = []
        for key in (one for given in keys for one in several(given)):
            if isinstance(key, Groupings):
                groups.append(Group(word=key.word, sets=tuple(tuple(map(self._grouping, s)) for s in key.sets)))
                items += [item for item in dict.fromkeys(map(self._key_item, key.keys)) if item not in items]
            else:
                item = self._key_item(named(key))
                groups.append(Group(word="", sets=((item.node,),)))
                items.append(item)
        for name, value in named_keys.items():
            item = Item(column_name(name), self._grouping(named(value)))
            groups.append(Group(word="", sets=((item.node,),)))
            items.append(item)
        _no_two(items)
        return Grouped(table=self, groups=tuple(groups), keys=tuple(items))

    def aggregate(
        self, *measures: Value, by: "Named | Groupings | Iterable[Named]" = (), **named_measures: Value
    ) -> "Table[Given]":
        """Aggregate all rows, or each group of them."""
        return self.group_by(*several(by)).aggregate(*measures, **named_measures)  # type: ignore[arg-type]

    agg = aggregate

    def count(self) -> "Table[Given]":
        """Count the rows, as the column `count`."""
        return self.aggregate(count=count())

    # ---- tables -----------------------------------------------------------------------------------------------------

    def join(
        self, other: "Table[Given]", on: Pair | Iterable[Pair], how: How = "inner", *, rname: str = "{name}_right"
    ) -> "Table[Given]":
        """Join another table where columns are equal.

        Args: on: names that both tables have, or pairs of what is equal, this table's first; rname: what columns of
            the other are called whose name this one has. The privacy unit is kept once, under this table's name for it.
        """
        if not isinstance(other, Table):
            raise InvalidParameter(f"join takes a table of the same session, not {type_name(other)}.")
        if other.asker is not self.asker:
            raise InvalidParameter("The tables are of two sessions. Take both from one.")
        if how not in _JOINS:
            raise InvalidParameter(f"how is {str(how)[:40]!r}; allowed: {', '.join(_JOINS)}.")
        pairs = [on] if isinstance(on, str) or _is_pair(on) else list(on)
        if not pairs:
            raise InvalidParameter("A join takes at least one column that is equal in both tables.")
        equal = [(one, one) if isinstance(one, str) else _pair(one) for one in pairs]
        using = tuple(one for one in pairs if isinstance(one, str))
        using = using if len(using) == len(pairs) else ()
        found = tuple(
            (self._of_row(named(left).node, "join"), other._of_row(named(right).node, "join")) for left, right in equal
        )
        alone = how in ("semi", "anti")
        shared = {left for left, right in equal if isinstance(left, str) and left == right}
        if unit_of(self.relation) is not None:
            shared.add(unit_of(other.relation) or "")  # whose rows these are is said once
        right = () if alone else tuple((n, _renamed(n, self.columns, rname)) for n in other.columns if n not in shared)
        joined = Joined(
            word=_JOINS[how],
            source=self.relation,
            other=other.relation,
            on=found,
            using=using,
            left=tuple((name, name) for name in self.columns),
            right=right,
        )
        _no_two(Item(name, ColumnNode(name)) for name in joined.names)
        return self._then(joined)

    def left_join(
        self, other: "Table[Given]", on: Pair | Iterable[Pair], *, rname: str = "{name}_right"
    ) -> "Table[Given]":
        """Join another table; rows without a match stay, with NULLs."""
        return self.join(other, on, "left", rname=rname)

    def semi_join(self, other: "Table[Given]", on: Pair | Iterable[Pair]) -> "Table[Given]":
        """Keep the rows that match a row of another table."""
        return self.join(other, on, "semi")

    def anti_join(self, other: "Table[Given]", on: Pair | Iterable[Pair]) -> "Table[Given]":
        """Keep the rows that match no row of another table."""
        return self.join(other, on, "anti")

    def union(self, *others: "Table[Given]", distinct: bool = False) -> "Table[Given]":
        """Put the rows of tables with the same columns together."""
        for other in others:
            if not isinstance(other, Table) or other.asker is not self.asker:
                raise InvalidParameter("union takes tables of the same session.")
            if set(other.columns) != set(self.columns):
                raise InvalidParameter(
                    f"union takes tables with the same columns: {', '.join(self.columns)}; one has "
                    f"{', '.join(other.columns)}."
                )
        if not others:
            return self
        return self._then(United(parts=(self.relation, *(other.relation for other in others)), distinct=bool(distinct)))

    # ---- privacy ----------------------------------------------------------------------------------------------------

    def options(self, **options: Number | str) -> "Table[Given]":
        """Say of the whole question what `SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (…)` says in SQL."""
        if not is_answer(self.relation):
            raise InvalidParameter("options follows agg: it says something of the aggregation of the whole question.")
        said = tuple((name, _option(name, given)) for name, given in options.items())
        return self._then(_with_options(self.relation, said))

    # ---- checks -----------------------------------------------------------------------------------------------------

    def _of_row(self, node: Node, verb: str) -> Node:
        """Return an expression whose columns are there, and that aggregates nothing."""
        for name in columns_of(node):
            _known(name, self.columns)
        if aggregates(node):
            remedy = "Write agg first and filter what comes out, or …over(group_by=…) to look among the rows of a unit."
            raise InvalidParameter(f"{verb} takes expressions over one row, not aggregates. {remedy}")
        if windows(node) and is_answer(self.relation):
            raise QueryRefused("Windows over the answer are not answered", remedy="Use order_by and limit.")
        return node

    def _key(self, node: Node, verb: str) -> Node:
        if isinstance(node, ConstantNode):
            raise QueryRefused(f"{verb} takes columns, not constants", remedy="Leave it out.")
        return self._of_row(node, verb)

    def _grouping(self, value: Value) -> Node:
        return self._key(value.node, "group_by")

    def _key_item(self, value: Value) -> Item:
        return Item(_label(value, "A key"), self._grouping(value))

    def _items(self, values: Iterable[object], named_values: Mapping[str, Operand], verb: str) -> tuple[Item, ...]:
        found = [named(value) for value in values]
        items = [Item(_label(value, "A column"), self._of_row(value.node, verb)) for value in found]
        for name, value in named_values.items():
            items.append(Item(column_name(name), self._of_row(as_value(value).node, verb)))
        _no_two(items)
        return tuple(items)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grouped(Generic[Given]):
    """Groups of rows, before they are aggregated."""

    table: Table[Given]
    groups: tuple[Group, ...]
    keys: tuple[Item, ...]

    def aggregate(self, *measures: Value, **named_measures: Value) -> Table[Given]:
        """Return one row a group: its keys, and the aggregates by their names."""
        table = self.table
        given = [(_label(value, "An aggregate"), value) for value in map(_measure, measures)]
        given += [(column_name(name), _measure(value)) for name, value in named_measures.items()]
        for _, value in given:
            for name in columns_of(value.node):
                _known(name, table.columns)
        items = tuple(Item(name, value.node) for name, value in given)
        _no_two((*self.keys, *items))
        if not items and not self.keys:
            raise InvalidParameter("agg takes at least one aggregate, such as n=lw.count().")
        return table._then(Aggregated(source=table.relation, groups=self.groups, keys=self.keys, measures=items))

    agg = aggregate

    def count(self) -> Table[Given]:
        """Count the rows of each group, as the column `count`."""
        return self.aggregate(count=count())


_JOINS: Final[Mapping[str, JoinWord]] = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "semi": "SEMI JOIN",
    "anti": "ANTI JOIN",
}


def table(asker: Asker[Given], name: str, catalog: Catalog, facts: PublicFacts) -> Table[Given]:
    """Begin a question with a table or view of the catalog.

    Raises: QueryRefused if there is none of this name.
    """
    return Table(relation=opened(name, catalog, facts), asker=asker, taken=names_of(catalog))


def _with_options(relation: Relation, said: tuple[tuple[str, str], ...]) -> Relation:
    """Say something of the last aggregation of an answer."""
    match relation:
        case Aggregated():
            return replace(relation, options=(*relation.options, *said))
        case Where() | Shown() | Ordered() | Limited() | Distinct():
            return replace(relation, source=_with_options(relation.source, said))
        case _:
            return relation


def _known(name: object, names: tuple[str, ...]) -> None:
    if not isinstance(name, str):
        raise InvalidParameter(f"The name of a column is a str, not {type_name(name)}.")
    if name not in names:
        raise unknown("column", name, names)


def _column(name: str) -> Item:
    return Item(name, ColumnNode(name))


def _label(value: Value, what: str) -> str:
    if value.label is not None:
        return value.label
    if isinstance(value.node, ColumnNode):
        return value.node.name
    raise InvalidParameter(f"{what} that is computed needs a name: write name={value!r}, or ….name('name').")


def _no_two(items: Iterable[Item]) -> None:
    """Refuse names that a question could not tell apart."""
    seen: set[str] = set()
    for item in items:
        if item.name.casefold() in seen:
            raise QueryRefused(f"Two columns are called '{item.name[:80]}'", remedy="Rename one.")
        seen.add(item.name.casefold())


def _measure(value: object) -> Value:
    if not isinstance(value, Value):
        raise InvalidParameter(f"agg takes aggregates such as lw.count(), not {type_name(value)}.")
    if not aggregates(value.node):
        raise InvalidParameter(f"{value!r} is no aggregate. Write one, such as lw.mean(…), or put it into group_by.")
    return value


def _is_pair(on: object) -> bool:
    return isinstance(on, tuple) and len(on) == 2 and not all(isinstance(one, str | tuple) for one in on)


def _pair(given: object) -> tuple[Named, Named]:
    if isinstance(given, tuple) and len(given) == 2:
        return given
    raise InvalidParameter('A join takes names of columns, or pairs: [("plan", "code")].')


def _renamed(name: str, taken: tuple[str, ...], pattern: str) -> str:
    if name.casefold() not in {other.casefold() for other in taken}:
        return name
    if "{name}" not in pattern:
        raise InvalidParameter('rname lacks {name}: write for example "{name}_right".')
    return column_name(pattern.replace("{name}", name))


def _option(name: str, given: object) -> str:
    """Write the value of an option, having looked at its name."""
    if name == "privacy_unit_column":
        return quoted(column_name(given))
    if name == "group_selection_strategy":
        return literals.word(given, {word: word for word in STRATEGIES}, name)
    if name not in _NUMBERS:
        allowed = (*_NUMBERS, "privacy_unit_column", "group_selection_strategy")
        raise InvalidParameter(f"There is no option '{name[:40]}'. Allowed: {', '.join(allowed)}.")
    return printed(literals.number(given))


_NUMBERS: Final = (
    "epsilon",
    "delta",
    "max_groups_contributed",
    "max_rows_contributed",
    "min_privacy_units_per_group",
    "group_selection_epsilon",
)
