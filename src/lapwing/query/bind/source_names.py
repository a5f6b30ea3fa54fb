"""What a SELECT over several answers may name: the columns of each, in the order in which FROM joins them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Final

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.derivation.derive import compute
from lapwing.query.derivation.node import Derived
from lapwing.query.derivation.source_values import SourceValue
from lapwing.query.expressions.expression import Literal
from lapwing.query.expressions.rows import RowScope, TableReference, is_column, same_name
from lapwing.query.expressions.types import NULL
from lapwing.query.from_clause.common_tables import checked_name
from lapwing.query.from_clause.select_list import replaced, starred
from lapwing.query.plan.plan import Plan
from lapwing.query.text.trees import nodes_of

MOST_SOURCES: Final = 32
Place = tuple[int, str]
"""A column: the number of its source, and its name there."""


class SourceNames:
    """The columns of the sources of an answer, by the names that a question may use.

    They grow as sources are added, and become optional as joins leave out rows of them: a reader of the text does the
    same from left to right.
    """

    def __init__(self, rows: RowScope) -> None:
        self._rows = rows
        self.plans: list[Plan] = []
        self.columns: list[dict[str, SourceValue]] = []
        self._names: list[str | None] = []
        self._hidden: list[bool] = []
        self._merged: dict[str, list[Place]] = {}

    def add(
        self, plan: Plan, name: str | None, columns: Sequence[str], node: exp.Expression, *, hidden: bool = False
    ) -> int:
        """Add a source, and return its number.

        Args:
            name: None if it has none.
            columns: What its columns are called, if they are renamed.
            hidden: Whether the question cannot name them.
        """
        rows, names = self._rows, columns or tuple(output.name for output in plan.outputs)
        if len(names) != len(plan.outputs) or len({each.casefold() for each in names}) < len(names):
            reason = f"The result of a subquery has {len(plan.outputs)} columns"
            raise rows.refusal(node, RefusalCause.COLUMN_LIST_MISMATCH, reason, "Name each of them, all different.")
        if name is not None and name.casefold() in self._shown():
            raise rows.refusal(
                node, RefusalCause.DUPLICATE_NAME, f"FROM names '{name}' twice", "Give each a name of its own: … AS b."
            )
        if len(self.plans) == MOST_SOURCES:
            raise rows.refusal(
                node,
                RefusalCause.TOO_MANY_TABLES,
                f"FROM names more than {MOST_SOURCES} results",
                "Join fewer at a time.",
            )
        place = len(self.plans)
        values = (SourceValue(source=place, value=output.value) for output in plan.outputs)
        self.plans.append(plan)
        self.columns.append(dict(zip(names, values, strict=True)))
        self._names.append(name)
        self._hidden.append(hidden)
        return place

    def make_optional(self, places: Sequence[int]) -> None:
        """Note that rows of the answer may have no row of some sources."""
        for place in places:
            columns = self.columns[place]
            self.columns[place] = {name: replace(value, optional=True) for name, value in columns.items()}

    def use(self, column: exp.Expression, place: int) -> tuple[Derived, SourceValue]:
        """Return the two columns that USING names, and let its name be that of both from now on."""
        rows, name = self._rows, checked_name(column, self._rows)
        before = self._merged.get(name.casefold()) or [
            (i, own) for i in range(place) for own in self.columns[i] if own.casefold() == name.casefold()
        ]
        here = [(place, own) for own in self.columns[place] if own.casefold() == name.casefold()]
        if not here or not before or (len(before) > 1 and name.casefold() not in self._merged):
            raise rows.refusal(
                column, RefusalCause.AMBIGUOUS_COLUMN, f"USING needs '{name}' once on both sides", "Write ON a.x = b.y."
            )
        values: list[Derived] = [self.columns[i][own] for i, own in before]
        left = values[0] if len(values) == 1 else compute("coalesce", *values)
        right = self.columns[place][here[0][1]]
        with rows.pointing(column):
            compute("=", left, right)
        self._merged[name.casefold()] = [*before, *here]
        return left, right

    def aliases(self) -> dict[str, Derived]:
        """Return every column by the name that `written` gives it."""
        return {
            _alone((place, name)): value
            for place, columns in enumerate(self.columns)
            for name, value in columns.items()
        }  # fmt: skip

    # ---- what a name means ------------------------------------------------------------------------------------------

    def place(self, column: exp.Expression) -> Place | None:
        """Return the source and the column that a name means; None if no source has it.

        Raises:
            QueryRefused: If several have it, or FROM does not have what it is qualified with.
        """
        rows, qualifier = self._rows, column.args.get("table")
        if not is_column(column):
            return None
        rows.only(column, "this", "table")
        rows.only(column.this, "this", "quoted")
        if "\0" in column.name:  # written here
            return int(column.name.split("\0", 1)[0]), column.name.split("\0", 1)[1]
        places = list(range(len(self.plans)))
        if qualifier is not None:
            rows.only(qualifier, "this", "quoted")
            places = [i for i in places if (own := self._names[i]) is not None and same_name(qualifier, own)]
            if not places:
                reason = f"There is no '{qualifier.name}' in FROM"
                raise rows.refusal(column, RefusalCause.UNKNOWN_TABLE, reason, f"FROM has {', '.join(self._shown())}.")
        found = [(i, own) for i in places for own in self._nameable(i) if same_name(column.this, own)]
        if not found and qualifier is not None:
            reason = f"'{qualifier.name}' has no column '{column.name}'"
            raise rows.refusal(
                column, RefusalCause.UNKNOWN_COLUMN, reason, f"It has {', '.join(self.columns[places[0]])}."
            )
        if len(found) > 1 and self._merged.get(column.name.casefold()) != found:
            own = self._names[found[0][0]] or "a"
            remedy = f"Write {own}.{column.name}, with a name for every subquery."
            raise rows.refusal(
                column, RefusalCause.AMBIGUOUS_COLUMN, f"'{column.name}' is a column of several of them", remedy
            )
        return found[0] if found else None

    def _shown(self) -> list[str]:
        return [name.casefold() for name in self._names if name is not None]

    def _nameable(self, place: int) -> list[str]:
        return [] if self._hidden[place] else list(self.columns[place])

    # ---- the text, so that it can be bound like that of one SELECT --------------------------------------------------

    def rename(self, node: exp.Expression) -> None:
        """Write names in a node that nobody else can write in the place of those of columns."""
        aliases: list[str] = []
        if isinstance(node, exp.Select):
            aliases = [item.alias for item in node.expressions if type(item) is exp.Alias]
            self._require_columns(node, aliases)
            named = [_aliased(item, name) for item, name in _names_of(node.expressions)]
            node.set("expressions", named)
            aliases = [item.alias for item in named if type(item) is exp.Alias]
        for column in nodes_of(node, exp.Column):
            ordered = isinstance(column.parent, exp.Ordered) and column.args.get("table") is None
            if ordered and any(same_name(column.this, alias) for alias in aliases):
                continue
            place = self.place(column)
            if place is not None:
                column.replace(self._reference(column, place))

    def _require_columns(self, node: exp.Expression, aliases: Sequence[str]) -> None:
        """Refuse names that no source has, and that are not of the answer's own columns."""
        nothing = Literal(value=None, type=NULL)
        shown = [(own or "", dict.fromkeys(self._nameable(i), nothing)) for i, own in enumerate(self._names)]
        sources = tuple(TableReference(name=own, columns=columns) for own, columns in shown if columns)
        for column in nodes_of(node, exp.Column):
            known = not is_column(column) or any(same_name(column.this, alias) for alias in aliases)
            if not known and self.place(column) is None:
                RowScope(text=self._rows.text, sources=sources).column(column)

    def _reference(self, column: exp.Expression, place: Place) -> exp.Expression:
        """Return a column; of one that USING names, the first that has a value."""
        merged = self._merged.get(column.name.casefold(), []) if column.args.get("table") is None else []
        if any(self.columns[i][own].optional for i, own in merged):
            first, *others = map(written, merged)
            return exp.Coalesce(this=first, expressions=others)
        return written(place)

    def write_stars(self, select: exp.Select) -> None:
        """Write the columns of the sources in the place of *; those that USING names stand there once."""
        items: list[exp.Expression] = []
        taken = {item.alias.casefold() for item in select.expressions if type(item) is exp.Alias}
        for item in select.expressions:
            star = item.this if isinstance(item, exp.Column) else item
            if not isinstance(star, exp.Star):
                items.append(item)
                continue
            qualifier = item.args.get("table") if isinstance(item, exp.Column) else None
            places = list(self._starred(qualifier))
            names = starred(star, [name for _, name in places], self._rows)
            kept, others = {name.casefold() for name in names}, replaced(star, names, self._rows)
            for place, name in ((place, name) for place, name in places if name.casefold() in kept):
                merged = qualifier is None and name.casefold() in self._merged
                column = exp.Column(this=exp.Identifier(this=name, quoted=True)) if merged else written((place, name))
                column = others[name].copy() if name in others else column
                free = next(free for free in _candidates(name) if free.casefold() not in taken)
                taken.add(free.casefold())
                items.append(_aliased(column, free))
        select.set("expressions", items)

    def _starred(self, qualifier: exp.Expression | None) -> Iterator[Place]:
        for place, own in enumerate(self._names):
            if self._hidden[place]:
                continue
            if qualifier is not None and (own is None or not same_name(qualifier, own)):
                continue
            for name in self.columns[place]:
                merged = self._merged.get(name.casefold()) if qualifier is None else None
                if merged is None or merged[0][0] == place:
                    yield place, name


def written(place: Place) -> exp.Expression:
    """Return a node that names a column of a source as nobody can write it."""
    return exp.Column(this=exp.Identifier(this=_alone(place), quoted=True))


def in_words_of_the_text(message: str) -> str:
    """Return a message with the names of columns as the question has them."""
    return re.sub("[0-9]+\0", "", message)


def _alone(place: Place) -> str:
    return f"{place[0]}\0{place[1].casefold()}"


def _aliased(node: exp.Expression, name: str | None) -> exp.Expression:
    return node if name is None else exp.Alias(this=node, alias=exp.Identifier(this=name, quoted=True))


def _names_of(items: Sequence[exp.Expression]) -> Iterator[tuple[exp.Expression, str | None]]:
    """Yield items of a SELECT list, and the names that plain columns keep: those of the columns, if they are free."""
    taken = {item.alias.casefold() for item in items if type(item) is exp.Alias}
    for item in items:
        free = (
            next(free for free in _candidates(item.name) if free.casefold() not in taken) if is_column(item) else None
        )
        taken.add((free or "").casefold())
        yield item, free


def _candidates(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{number}" for number in count(2))
