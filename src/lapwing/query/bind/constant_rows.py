"""Rows of constants: generate_series, VALUES, UNION ALL of constants, and WITH RECURSIVE over them, written as VALUES.

    WITH RECURSIVE m AS (SELECT DATE '2024-01-01' AS d UNION ALL SELECT d + INTERVAL '1 month' FROM m WHERE …)

They read no table. The formulas for released numbers compute their values. VALUES stand in the query where it names
them, so nothing new is bound. The list and its length are facts of the text.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from fractions import Fraction
from typing import Final

from sqlglot import exp

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.aggregates.formulas import FORMULAS
from lapwing.query.bind.constant_lists import written
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.derived import NoisyCells
from lapwing.query.derivation.node import Derived
from lapwing.query.expressions import days
from lapwing.query.expressions.expression import Constant
from lapwing.query.expressions.rows import RowScope
from lapwing.query.from_clause.listed_values import has_only
from lapwing.query.text.literals import literal
from lapwing.query.text.parse import Parsed
from lapwing.query.text.trees import copied, depth_first, has, nodes_of

MOST_ROWS: Final = 1_000
"""Rows of constants in one list at most."""
MOST_COMPUTED: Final = 2 * MOST_ROWS
"""Values that a query computes for all of its lists together."""
MOST_BITS: Final = 256
"""Of the numerator and of the denominator of a number."""
MOST_CHARACTERS: Final = 1_000
Row = tuple[ConstantValue, ...]
_ONE_CELL: Final = NoisyCells(size=1, measures={}, keys={}, margins=lambda _value: {})
_SERIES: Final = (exp.GenerateSeries, exp.GenerateDateArray, exp.GenerateTimestampArray)


@dataclass(frozen=True, slots=True)
class Constants:
    """Rows of constants, and the names of their columns."""

    names: tuple[str, ...]
    rows: tuple[Row, ...]

    def written(self, name: str) -> exp.Expression | None:
        """Return them as VALUES under a name; None if there are none or too many."""
        if not 0 < len(self.rows) <= MOST_ROWS:
            return None
        lists = zip(*map(_of_one_type, zip(*self.rows, strict=True)), strict=True)
        rows = [exp.Tuple(expressions=list(map(_literal, row))) for row in lists]
        columns = [exp.to_identifier(column, quoted=True) for column in self.names]
        alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True), columns=columns)
        return exp.Values(expressions=rows, alias=alias)


def _literal(value: Constant) -> exp.Expression:
    return exp.Null() if value is None else literal(value)


def with_constant_rows(parsed: Parsed, rows: RowScope) -> Parsed:
    """Return a query with VALUES in the place of rows of constants."""
    if not _may_have_some(parsed.select):
        return parsed
    select, reader = copied(parsed.select), _ConstantReader(rows)
    clause = select.args.get("with_")
    for table in [] if clause is None else list(clause.expressions):
        reader.define(table, recursive=bool(clause is not None and clause.args.get("recursive")))
    changed = False
    for membership in nodes_of(select, exp.In):
        listed = reader.member(membership)
        if listed is not None:
            membership.replace(listed)
            changed = True
    for node in depth_first(select, exp.Table, exp.Unnest, exp.Subquery):
        other = reader.in_from(node) if isinstance(node.parent, exp.From | exp.Join) else None
        if other is not None:
            starts = [part.meta["start"] for part in nodes_of(node) if "start" in part.meta]
            other.meta.update({"start": min(starts)} if starts else {})  # where refusals point
            node.replace(other)
            changed = True
    if not changed or clause is None:
        return replace(parsed, select=select) if changed else parsed
    kept = [table for table in clause.expressions if table.alias.casefold() not in reader.named]
    select.set("with_", exp.With(expressions=kept) if kept else None)
    return replace(parsed, select=select)


def _may_have_some(select: exp.Select) -> bool:
    """Tell whether a query may have rows of constants beside VALUES: most have none."""
    recursive = any(clause.args.get("recursive") for clause in nodes_of(select, exp.With))
    series = has(select, *_SERIES, exp.Values)
    return recursive or series or any(part.args.get("from_") is None for part in nodes_of(select, exp.Select))


@dataclass(slots=True)
class _ConstantReader:
    scope: RowScope
    named: dict[str, Constants] = field(default_factory=dict)
    computed: int = 0
    made: int = 0
    has_series: bool = False

    def define(self, table: exp.Expression, *, recursive: bool) -> None:
        """Read a common table expression, if it is rows of constants."""
        alias = table.args["alias"]
        name = str(table.alias).casefold()
        found = self._tried(lambda: self._recursive(table, name) if recursive else self._rows(table.this, self.named))
        if found is None or name in self.named:
            return
        columns = tuple(column.name for column in alias.args.get("columns") or ())
        if not columns or len(columns) == len(found.names):
            self.named[name] = Constants(columns or found.names, found.rows)

    def in_from(self, node: exp.Expression) -> exp.Expression | None:
        """Return VALUES for what stands in FROM; None if it is anything else, or VALUES as binding knows them."""
        alias = node.args.get("alias")
        if alias is not None and not has_only(alias, "this", "columns"):
            return None
        found = self._tried(lambda: self._item(node, self.named))
        if found is None:
            return None
        columns = () if alias is None else tuple(column.name for column in alias.args.get("columns") or ())
        if columns and len(columns) != len(found.names):
            return None
        if len(found.rows) > MOST_ROWS and self.has_series:  # a list that is written out may be known as it stands
            raise _too_long(node, self.scope)
        name = str(node.alias) or (node.name if isinstance(node, exp.Table) and node.name else found.names[0])
        return Constants(columns or found.names, found.rows).written(name)

    def member(self, node: exp.In) -> exp.Expression | None:
        """Return x IN (SELECT … FROM (VALUES …)) as x IN (1, 2); None if the subquery is no list of constants.

        Both say the same in SQL, also of NULL. Where no value is left, IN is false, even of NULL. IN (VALUES …) has no
        SELECT.
        """
        query = node.args.get("query")
        if query is None:
            listed = (
                node.expressions[0] if len(node.expressions) == 1 and has_only(node, "this", "expressions") else None
            )
            values = listed if isinstance(listed, exp.Values) else None
            return None if values is None else self._as_list(node, self._tried(lambda: self._item(values, self.named)))
        while isinstance(query, exp.Subquery) and has_only(query, "this"):
            query = query.this
        distinct = query.args.get("distinct") if isinstance(query, exp.Select) else None
        if not has_only(node, "this", "query") or (distinct is not None and not has_only(distinct)):
            return None
        query = copied(query)
        query.set("distinct", None)
        return self._as_list(node, self._tried(lambda: self._rows(query, self.named)))

    def _as_list(self, node: exp.In, found: Constants | None) -> exp.Expression | None:
        if found is None or len(found.names) != 1 or len(found.rows) > MOST_ROWS:
            return None
        values = dict.fromkeys(_of_one_type([value for (value,) in found.rows]))
        known = [literal(value) for value in values if value is not None]
        return written(node, known, has_null=None in values)

    def _tried(self, read: Callable[[], Constants | None]) -> Constants | None:
        try:
            return read()
        except _NotConstants:
            return None

    def _recursive(self, table: exp.Expression, name: str) -> Constants | None:
        union = table.this
        plain = (
            isinstance(union, exp.Union) and not union.args.get("distinct") and has_only(union, "this", "expression")
        )
        if not plain or not any(other.name.casefold() == name for other in nodes_of(union.expression, exp.Table)):
            return self._rows(union, self.named)
        first = self._rows(union.this, self.named)
        columns = tuple(column.name for column in table.args["alias"].args.get("columns") or ())
        if first is None or (columns and len(columns) != len(first.names)):
            return None
        names = columns or first.names
        every, last = list(first.rows), first.rows
        while last:
            found = self._rows(union.expression, {**self.named, name: Constants(names, last)})
            if found is None or len(found.names) != len(names):
                return None
            last = found.rows
            every += last
        return Constants(names, tuple(every))

    def _rows(self, query: exp.Expression, named: Mapping[str, Constants]) -> Constants | None:
        while isinstance(query, exp.Subquery) and has_only(query, "this"):
            query = query.this
        if isinstance(query, exp.Union):
            return self._united(query, named)
        if not isinstance(query, exp.Select) or not has_only(query, "expressions", "from_", "where"):
            return None
        clause, where = query.args.get("from_"), query.args.get("where")
        items = [item.this if type(item) is exp.Alias else item for item in query.expressions]
        series = [node for item in items for node in item.find_all(*_SERIES)]
        if clause is not None and not series:
            source = self._item(clause.this, named)
        elif clause is None and len(series) <= 1:
            source = Constants(("series",), self._series(series[0])) if series else Constants((), ((),))
        else:
            return None
        return None if source is None else self._chosen(query, items, series, source, where)

    def _chosen(
        self,
        query: exp.Expression,
        items: Sequence[exp.Expression],
        series: Sequence[exp.Expression],
        source: Constants,
        where: exp.Expression | None,
    ) -> Constants | None:
        names = list[str]()
        for place, (node, item) in enumerate(zip(query.expressions, items, strict=True)):
            if isinstance(item, exp.Star) and has_only(item):
                names += source.names
            else:
                names.append(str(node.alias_or_name) or f"column{place + 1}")
        rows = []
        for row in source.rows:
            values = dict(zip((name.casefold() for name in source.names), row, strict=True))
            if where is not None and self._value(where.this, values, series).value is not True:
                continue
            self._make(1)
            shown = list[ConstantValue]()
            for item in items:
                shown += row if isinstance(item, exp.Star) else [self._value(item, values, series)]
            rows.append(tuple(shown))
        return Constants(tuple(names), tuple(rows)) if len({n.casefold() for n in names}) == len(names) else None

    def _united(self, union: exp.Expression, named: Mapping[str, Constants]) -> Constants | None:
        if not has_only(union, "this", "expression", "distinct"):
            return None
        sides = [self._rows(side, named) for side in (union.this, union.expression)]
        if sides[0] is None or sides[1] is None or len(sides[0].names) != len(sides[1].names):
            return None
        rows = (*sides[0].rows, *sides[1].rows)
        self._make(len(rows))
        return Constants(sides[0].names, tuple(dict.fromkeys(rows)) if union.args.get("distinct") else rows)

    def _item(self, node: exp.Expression, named: Mapping[str, Constants]) -> Constants | None:
        if isinstance(node, exp.Subquery):
            return self._rows(node.this, named) if has_only(node, "this", "alias") else None
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            return named.get(node.name.casefold()) if has_only(node, "this", "alias") else None
        if isinstance(node, exp.Values) and has_only(node, "expressions", "alias"):
            alias = node.args.get("alias")
            columns = tuple(column.name for column in (alias.args.get("columns") or ())) if alias is not None else ()
            rows = tuple(tuple(self._value(v, {}, ()) for v in row.expressions) for row in node.expressions)
            width = len(rows[0]) if rows else 0
            names = columns or tuple(f"col{place}" for place in range(width))
            return Constants(names, rows) if all(len(row) == len(names) for row in rows) else None
        series = node.this if isinstance(node, exp.Table) else node.expressions[0] if node.expressions else None
        if not isinstance(series, _SERIES) or not has_only(node, "this", "expressions", "alias"):
            return None
        alias = node.args.get("alias")
        columns = () if alias is None else tuple(column.name for column in alias.args.get("columns") or ())
        called = columns[0] if len(columns) == 1 else alias.name if alias is not None and alias.name else ""
        default = "range" if series.args.get("is_end_exclusive") else "generate_series"
        return Constants((called or default,), self._series(series))

    def _make(self, rows: int) -> None:
        """Count the rows that are made on the way, and stop where there are too many."""
        self.made += rows
        if self.made > 10 * MOST_ROWS:
            raise _NotConstants

    # ---- values -----------------------------------------------------------------------------------------------------

    def _series(self, node: exp.Expression) -> tuple[Row, ...]:
        """Return start, start + step and so on, up to the end."""
        if not has_only(node, "start", "end", "step", "is_end_exclusive"):
            raise _NotConstants
        self.has_series = True
        start, end = (self._value(node.args[part], {}, ()) for part in ("start", "end"))
        step = node.args.get("step") or exp.Literal.number(1)
        if isinstance(step, exp.Cast | exp.Literal) and not isinstance(step.unnest(), exp.Interval):
            inner = step.this if isinstance(step, exp.Cast) else step
            step = exp.Interval(this=copied(inner)) if isinstance(inner, exp.Literal) and inner.is_string else step
        following = exp.Add(this=exp.column("value"), expression=copied(step))
        last, beyond = _comparable(end), bool(node.args.get("is_end_exclusive"))
        rows, value, here = list[Row](), start, _comparable(start)
        step_size = _comparable(self._value(following, {"value": start}, ())) - here
        if not step_size:  # it would never end
            raise _NotConstants
        if (last - here) / step_size > 2 * MOST_ROWS:
            raise _too_long(node, self.scope)
        way = 1 if step_size > 0 else -1  # a series may go down
        while way * (last - here) > 0 or (here == last and not beyond):
            rows.append((value,))
            value = self._value(following, {"value": value}, ())
            before, here = here, _comparable(value)
            if way * (here - before) <= 0:
                raise _NotConstants
        return tuple(rows)

    def _value(
        self, node: exp.Expression, values: Mapping[str, ConstantValue], series: Sequence[exp.Expression]
    ) -> ConstantValue:
        """Compute an expression of constants and of the columns of a row of constants."""
        self.computed += 1
        if self.computed > MOST_COMPUTED:
            raise _NotConstants

        def bind(part: exp.Expression) -> Derived:
            if isinstance(part, exp.Paren | exp.Explode) and has_only(part, "this"):
                return bind(part.this)
            if isinstance(part, exp.Column) and isinstance(part.this, exp.Identifier):
                found = values.get(part.name.casefold())
                if found is not None:
                    return found
            if any(part is one for one in series):
                return values["series"]
            rule = FORMULAS.get(type(part))
            if rule is None:
                raise _NotConstants
            return rule(part, self.scope, bind)

        derived = bind(node)
        if isinstance(derived, ConstantValue):
            return _require_small(derived)
        (value,) = derived.column(_ONE_CELL).values()
        return _require_small(ConstantValue(value=value, shape=derived.shape))


class _NotConstants(Exception):
    """Raised by this module for what is no list of constants, or too long a one; whoever binds it refuses it."""


def _too_long(node: exp.Expression, rows: RowScope) -> QueryRefused:
    reason = f"A list of constants has more than {MOST_ROWS:,} rows"
    remedy = "Make it shorter, or compare without a list: x BETWEEN 1 AND 5000."
    return rows.refusal(node, RefusalCause.RESULT_TOO_LARGE, reason, remedy)


def _require_small(value: ConstantValue) -> ConstantValue:
    """Return a value that is no longer than constants of a text are: one may be made of another a thousand times."""
    inner = value.value
    if isinstance(inner, Fraction) and max(inner.numerator.bit_length(), inner.denominator.bit_length()) > MOST_BITS:
        raise _NotConstants
    if isinstance(inner, str) and len(inner) > MOST_CHARACTERS:
        raise _NotConstants
    return value


def _comparable(value: ConstantValue) -> Fraction:
    """Return a number, or the microseconds of a time."""
    if isinstance(value.value, date):
        return Fraction(days.count(value.value) * (1 if isinstance(value.value, datetime) else days.DAY))
    if not isinstance(value.value, Fraction):
        raise _NotConstants
    return value.value


def _of_one_type(values: Sequence[ConstantValue]) -> list[Constant]:
    """Return the values of a column: a date beside timestamps is its midnight, as a date plus an interval is one."""
    mixed = {value.shape for value in values if value.value is not None} == {"date", "timestamp"}
    return [
        datetime(value.value.year, value.value.month, value.value.day)
        if mixed and value.shape == "date" and isinstance(value.value, date)
        else value.value
        for value in values
    ]
