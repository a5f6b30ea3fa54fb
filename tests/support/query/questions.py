"""Random questions over every construct that is answered: mostly well-typed, so that they are seldom refused.

A question is grown from the inside: rows with typed columns, made by a table, subquery, union, join, window or GROUP BY
of the unit, and expressions over them; then aggregates of one kind or another, keys or grouping sets, and what the
question says about its own privacy. Whatever chance picks is a function of the seed alone.
"""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

NUMBER, TEXT, BOOLEAN, DATE, MOMENT = "number", "text", "boolean", "date", "moment"


@dataclass
class Rows:
    """Something that may stand in FROM: its SQL, its columns by type, and the unit's name, if it is shown."""

    sql: str
    columns: dict[str, str]
    unit: str | None


VISITS = {
    "plan": TEXT,
    "member": BOOLEAN,
    "age": NUMBER,
    "cost": NUMBER,
    "score": NUMBER,
    "note": TEXT,
    "day": DATE,
    "pay": NUMBER,
    "seen": MOMENT,
}
CODES = {"plan": TEXT, "tier": TEXT, "factor": NUMBER, "rate": NUMBER}


def of_visits(_chance: random.Random, *, with_unit: bool) -> Rows:
    """Return the one table there is, which has a unit."""
    return Rows("visits", dict(VISITS), "person")


@dataclass
class Grower:
    """Grows questions from a source of chance, over rows that something begins with."""

    chance: random.Random
    begin: Callable[..., Rows] = of_visits
    names: "count[int]" = field(default_factory=count)
    values: dict[str, int | str] = field(default_factory=dict)

    def pick(self, *choices: str) -> str:
        return self.chance.choice(choices)

    def name(self) -> str:
        """Return a new name, at times one that plans use themselves."""
        return f"{self.pick('x', 'g', 'w', 'u', 'd', 'unit', 'on', 'key', 'kept')}{next(self.names)}"

    def parameter(self, *values: int | str) -> str:
        """Return a parameter with one of these values."""
        name = f"p{len(self.values)}"
        self.values[name] = self.chance.choice(values)
        return f"${name}"

    # ---- expressions -------------------------------------------------------------------------------------------------

    def column(self, columns: dict[str, str], kind: str) -> str | None:
        found = [name for name, other in columns.items() if other == kind]
        return self.chance.choice(found) if found else None

    def value(self, columns: dict[str, str], kind: str, depth: int = 2) -> str:
        """Return an expression of a type."""
        known = self.column(columns, kind)
        if known is not None and (depth <= 0 or self.chance.random() < 0.5):
            return known
        match kind:
            case "number":
                return self.number(columns, depth - 1)
            case "text":
                return self.text(columns, depth - 1)
            case "boolean":
                return self.condition(columns, depth - 1)
            case "moment":
                return self.moment_in_time(columns, depth - 1)
        return self.date(columns, depth - 1)

    def number(self, columns: dict[str, str], depth: int) -> str:
        if depth < 0:
            return self.pick("0", "1", "0.5", "-2", "30", "110", self.parameter(0, 2, 30))
        if self.chance.random() < 0.2:
            return self.number_of_other(columns, depth)
        a, b = (self.value(columns, NUMBER, depth) for _ in "ab")
        return self.pick(
            f"({a} {self.pick('+', '-', '*', '/')} {b})",
            f"ABS({a})",
            f"ROUND({a}, {self.pick('0', '1')})",
            f"FLOOR({a})",
            f"COALESCE({a}, {b})",
            f"LEAST(GREATEST({a}, -5), 60)",
            f"CASE WHEN {self.value(columns, BOOLEAN, depth)} THEN {a} ELSE {b} END",
            f"CAST({self.value(columns, BOOLEAN, depth)} AS INTEGER)",
            f"({a} {self.pick('%', '//')} {self.pick('7', b)})",
            f"{self.pick('SIGN', 'TRUNC', 'SQRT')}({a})",
            f"NULLIF({a}, {b})",
            f"WIDTH_BUCKET({a}, 0, 50, 4)",
        )

    def number_of_other(self, columns: dict[str, str], depth: int) -> str:
        """Return a number made of texts or dates."""
        t, d, m = (self.value(columns, kind, depth) for kind in (TEXT, DATE, MOMENT))
        return self.pick(
            f"{self.pick('HOUR', 'MINUTE', 'DAYOFYEAR')}({m})",
            f"DATE_DIFF('{self.pick('hour', 'month')}', {m}, TIMESTAMP '2026-03-31 12:00:00')",
            f"LEAST(LENGTH({t}), 5)",
            f"STRPOS(LEFT({t}, 3), 'b')",
            f"LEAST(GREATEST(TRY_CAST({t} AS DOUBLE), -5), 60)",
            f"{self.pick('YEAR', 'MONTH', 'DAYOFWEEK')}({d})",
            f"EXTRACT(DAY FROM {d})",
            f"DATE_DIFF('{self.pick('day', 'week')}', {d}, DATE '2026-03-31')",
        )

    def date(self, columns: dict[str, str], depth: int) -> str:
        if depth < 0:
            return self.pick("DATE '2026-01-02'", "DATE '2025-12-31'")
        d, e = (self.value(columns, DATE, depth) for _ in "de")
        return self.pick(
            f"LAST_DAY({d})",
            f"COALESCE({d}, {e})",
            f"CAST(DATE_TRUNC('month', COALESCE({d}, {e})) AS DATE)",
            f"({d} + {self.pick('1', '-400')})",
            f"MAKE_DATE(2026, 1, {self.pick('1', '2', '31')})",
        )

    def moment_in_time(self, columns: dict[str, str], depth: int) -> str:
        if depth < 0:
            return self.pick("TIMESTAMP '2026-01-02 03:04:05'", "TIMESTAMP '2026-01-01'")
        t, d = self.value(columns, MOMENT, depth), self.value(columns, DATE, depth)
        return self.pick(
            f"COALESCE({t}, {t})",
            f"DATE_TRUNC('{self.pick('hour', 'week')}', {t})",
            f"({t} + INTERVAL {self.pick('1', '90')} {self.pick('DAY', 'MINUTE')})",
            f"CAST({d} AS TIMESTAMP)",
        )

    def text(self, columns: dict[str, str], depth: int) -> str:
        if depth < 0:
            return self.pick("'a'", "'b'", "'it''s'", "''", self.parameter("a", "it's", "--"))
        a, b = (self.value(columns, TEXT, depth) for _ in "ab")
        return self.pick(
            f"COALESCE({a}, {b})",
            f"CASE WHEN {self.value(columns, BOOLEAN, depth)} THEN 'a' ELSE 'q' END",
            f"CASE WHEN {self.value(columns, BOOLEAN, depth)} THEN {a} END",
            f"{self.pick('UPPER', 'LOWER', 'TRIM', 'REVERSE')}({a})",
            f"{self.pick('LEFT', 'RIGHT')}({a}, 1)",
            f"({a} || {b})",
            f"REPLACE({a}, 'a', 'b')",
        )

    def condition(self, columns: dict[str, str], depth: int) -> str:
        if depth < 0:
            return self.pick("TRUE", "FALSE")
        kind = self.pick(NUMBER, NUMBER, TEXT)
        a, b = (self.value(columns, kind, depth) for _ in "ab")
        p, q = (self.value(columns, BOOLEAN, depth) for _ in "pq")
        return self.pick(
            f"{a} {self.pick('<', '<=', '=', '<>', '>', '>=')} {b}",
            f"({a}) IS NOT NULL",
            f"({p} AND {q})",
            f"({p} OR {q})",
            f"NOT ({p})",
            f"({p}) IS NOT TRUE",
            f"{a} IS DISTINCT FROM {b}",
            f"{a} IN (0, 30, 110)" if kind == NUMBER else f"{a} NOT IN ('b', '')",
            f"{a} BETWEEN -1 AND 30" if kind == NUMBER else f"{a} {self.pick('LIKE', 'NOT LIKE', 'ILIKE')} '%a_%'",
            f"({a}) IS NULL" if kind == NUMBER else f"REGEXP_MATCHES({a}, '^[a-z]+.?b')",
        )

    # ---- rows --------------------------------------------------------------------------------------------------------

    def rows(self, depth: int) -> Rows:
        """Return rows of units."""
        if depth <= 0:
            return self.begin(self.chance, with_unit=False)
        return self.chance.choice(
            [
                self.chosen,
                self.per_unit,
                self.distinct,
                self.united,
                self.numbered,
                self.joined,
                self.paired,
                self.kept_by_public,
            ]
        )(depth)

    def source(self, depth: int) -> tuple[str, Rows]:
        inner = self.rows(depth - self.chance.randint(1, 2))
        alias = self.name()
        where = f" WHERE {self.value(inner.columns, BOOLEAN)}" if self.chance.random() < 0.3 else ""
        return f"FROM {inner.sql} AS {alias}{where}", inner

    def items(self, inner: Rows, least: int = 1) -> tuple[list[str], dict[str, str]]:
        items, columns = [], {}
        for _ in range(self.chance.randint(least, 3)):
            kind, name = self.pick(NUMBER, NUMBER, TEXT, BOOLEAN), self.name()
            items.append(f"{self.value(inner.columns, kind)} AS {name}")
            columns[name] = kind
        return items, columns

    def with_unit(self, inner: Rows, items: list[str]) -> str | None:
        """Show the unit, at times under another name."""
        if inner.unit is None:
            return None
        unit = self.name() if self.chance.random() < 0.3 else inner.unit
        items.insert(0, f"{inner.unit} AS {unit}" if unit != inner.unit else unit)
        return unit

    def chosen(self, depth: int) -> Rows:
        clause, inner = self.source(depth)
        if self.chance.random() < 0.3:
            return Rows(f"(SELECT * {clause})", inner.columns, inner.unit)
        items, columns = self.items(inner)
        unit = self.with_unit(inner, items) if self.chance.random() < 0.8 else None
        return Rows(f"(SELECT {', '.join(items)} {clause})", columns, unit)

    def of_units(self, depth: int) -> tuple[str, Rows]:
        clause, inner = self.source(depth)
        if inner.unit is None:
            inner = self.begin(self.chance, with_unit=True)
            clause = f"FROM {inner.sql}"
        return clause, inner

    def distinct(self, depth: int) -> Rows:
        clause, inner = self.of_units(depth)
        items, columns = self.items(inner)
        unit = self.with_unit(inner, items)
        return Rows(f"(SELECT DISTINCT {', '.join(items)} {clause})", columns, unit)

    def per_unit(self, depth: int) -> Rows:
        clause, inner = self.of_units(depth)
        groups, columns = self.items(inner, least=0) if self.chance.random() < 0.5 else ([], {})
        keys = list(columns)
        items = list(groups)
        for _ in range(self.chance.randint(1, 3)):
            name, (aggregate, kind) = self.name(), self.aggregate(inner.columns)
            items.append(f"{aggregate} AS {name}")
            columns[name] = kind
        unit = self.with_unit(inner, items) if self.chance.random() < 0.7 else None
        having = f" HAVING COUNT(*) {self.pick('>', '=', '<')} {self.pick('1', '2')}"
        shown = having if self.chance.random() < 0.3 else ""
        return Rows(
            f"(SELECT {', '.join(items)} {clause} GROUP BY {', '.join([str(inner.unit), *keys])}{shown})", columns, unit
        )

    def aggregate(self, columns: dict[str, str]) -> tuple[str, str]:
        kind = self.pick(NUMBER, TEXT, BOOLEAN)
        argument, condition = self.value(columns, kind), self.value(columns, BOOLEAN)
        number = self.value(columns, NUMBER)
        chosen, result = self.chance.choice(
            [
                ("COUNT(*)", NUMBER),
                (f"COUNT({argument})", NUMBER),
                (f"COUNT(DISTINCT {argument})", NUMBER),
                (f"SUM({number})", NUMBER),
                (f"AVG({number})", NUMBER),
                (f"MIN({argument})", kind),
                (f"MAX({argument})", kind),
                (f"BOOL_AND({condition})", BOOLEAN),
                (f"BOOL_OR({condition})", BOOLEAN),
                (f"COUNT_IF({condition})", NUMBER),
            ]
        )
        if self.chance.random() < 0.2:
            chosen = f"{chosen} FILTER (WHERE {condition})"
        return chosen, result

    def united(self, depth: int) -> Rows:
        parts, kinds = [], [self.pick(NUMBER, TEXT, BOOLEAN) for _ in range(self.chance.randint(1, 2))]
        names = [self.name() for _ in kinds]
        for _ in range(self.chance.randint(2, 3)):
            clause, inner = self.of_units(depth - 1)
            listed = [f"{self.value(inner.columns, kind)} AS {name}" for kind, name in zip(kinds, names, strict=True)]
            parts.append(f"SELECT {inner.unit} AS person, {', '.join(listed)} {clause}")
        word = self.pick(" UNION ALL ", " UNION ALL ", " UNION ", " INTERSECT ", " EXCEPT ")
        return Rows(f"({word.join(parts)})", dict(zip(names, kinds, strict=True)), "person")

    def numbered(self, depth: int) -> Rows:
        clause, inner = self.of_units(depth)
        items, columns = self.items(inner)
        name = self.name()
        window, kind, clause_of_window = self.window(inner)
        items.append(f"{window} AS {name}")
        columns[name] = kind
        unit = self.with_unit(inner, items)
        qualify = (
            f" QUALIFY {name} {self.pick('<=', '=', '<')} 1" if kind == NUMBER and self.chance.random() < 0.4 else ""
        )
        return Rows(f"(SELECT {', '.join(items)} {clause}{clause_of_window}{qualify})", columns, unit)

    def window(self, inner: Rows) -> tuple[str, str, str]:
        """Return a window function, its type, and a WINDOW clause if it needs one."""
        kind = self.pick(NUMBER, TEXT, BOOLEAN)
        argument, number = self.value(inner.columns, kind), self.value(inner.columns, NUMBER)
        partition = f", {self.value(inner.columns, kind, 1)}" if self.chance.random() < 0.3 else ""
        term = self.column(inner.columns, self.pick(NUMBER, TEXT, BOOLEAN))
        order = f" ORDER BY {term} {self.pick('', 'DESC', 'NULLS FIRST')}" if term else ""
        ranked = [
            ("ROW_NUMBER()", NUMBER),
            (f"{self.pick('RANK', 'DENSE_RANK', 'PERCENT_RANK', 'CUME_DIST')}()", NUMBER),
            (f"NTILE({self.pick('1', '2', '3')})", NUMBER),
            (f"LAG({argument})", kind),
            (f"LEAD({number}, 1, {self.pick('0', '1e25', '0.5')})", NUMBER),
            (f"FIRST_VALUE({argument})", kind),
        ]
        summed = [
            (f"COUNT({self.pick('*', argument, f'DISTINCT {argument}')})", NUMBER),
            (f"SUM({number})", NUMBER),
            (f"AVG({number})", NUMBER),
            (f"MIN({argument})", kind),
            (f"MAX({argument})", kind),
            (f"BOOL_OR({self.value(inner.columns, BOOLEAN)})", BOOLEAN),
        ]
        function, result = self.chance.choice([*ranked, *summed] if order else summed)
        frame = ""
        if order and self.chance.random() < 0.4:
            one_row = f"{self.pick('FIRST_VALUE', 'LAST_VALUE')}({argument}{self.pick('', ' IGNORE NULLS')})"
            function, result = self.chance.choice([*summed, *[(one_row, kind)] * 4])
            frame = f" {self.frame(one_row != function)}"
        elif function.startswith(("COUNT(", "SUM(", "AVG(", "MIN(")) and self.chance.random() < 0.3:
            function += f" FILTER (WHERE {self.value(inner.columns, BOOLEAN)})"
        over = f"(PARTITION BY {inner.unit}{partition}{order}{frame})"
        if self.chance.random() < 0.2:
            name = self.name()
            return f"{function} OVER {name}", result, f" WINDOW {name} AS {over}"
        return f"{function} OVER {over}", result, ""

    def frame(self, aggregate: bool) -> str:
        """Return a frame; those in RANGE are for aggregates."""
        start = self.pick("UNBOUNDED PRECEDING", "1 PRECEDING", "CURRENT ROW")
        end = self.pick("CURRENT ROW", "1 FOLLOWING", "UNBOUNDED FOLLOWING")
        unit = self.pick("ROWS", "ROWS", "RANGE") if aggregate else "ROWS"
        return f"{unit} BETWEEN {start} AND {end}"

    def joined(self, depth: int) -> Rows:
        inner = self.rows(depth - 1)
        ours, theirs = self.name(), self.name()
        kind = self.chance.choice([NUMBER, TEXT])
        left = self.column(inner.columns, kind) or ("1" if kind == NUMBER else "'a'")
        right = self.chance.choice([name for name, other in CODES.items() if other == kind])
        left = f"{ours}.{left}" if left in inner.columns else f"COALESCE({ours}.{next(iter(inner.columns))}, NULL)"
        public = self.pick("codes", "(SELECT DISTINCT * FROM codes)", "(SELECT * FROM codes WHERE factor > 3)")
        items, columns = [], {}
        for name, other in inner.columns.items():
            items.append(f"{ours}.{name} AS {name}")
            columns[name] = other
        for name, other in CODES.items():
            shown = self.name()
            items.append(f"{theirs}.{name} AS {shown}")
            columns[shown] = other
        if inner.unit is not None:
            items.insert(0, f"{ours}.{inner.unit} AS {inner.unit}" if inner.unit not in inner.columns else "1 AS one")
        join = self.pick("JOIN", "LEFT JOIN", "RIGHT JOIN")
        sql = f"{inner.sql} AS {ours} {join} {public} AS {theirs} ON {left} = {theirs}.{right}"
        return Rows(f"(SELECT {', '.join(items)} FROM {sql})", columns, inner.unit)

    def paired(self, depth: int) -> Rows:
        """Join rows with others of their unit, or keep those that have some."""
        (_, one), (_, two) = self.of_units(depth - 1), self.of_units(depth - 1)
        ours, theirs = self.name(), self.name()
        if self.chance.random() < 0.3:
            denied, where = self.pick("", "NOT "), self.value(two.columns, BOOLEAN)
            inner = f"SELECT {two.unit} FROM {two.sql} AS {theirs} WHERE {where}"
            return Rows(f"(SELECT * FROM {one.sql} WHERE {one.unit} {denied}IN ({inner}))", one.columns, one.unit)
        items, columns = [], {}
        for alias, side in ((ours, one), (theirs, two)):
            for name, kind in side.columns.items():
                shown = self.name()
                items.append(f"{alias}.{name} AS {shown}")
                columns[shown] = kind
        unit = self.name()
        kind = self.pick(NUMBER, TEXT)
        pair = [self.column(side.columns, kind) for side in (one, two)]
        more = f" AND {ours}.{pair[0]} {self.pick('=', '<', '>=')} {theirs}.{pair[1]}" if None not in pair else ""
        join = self.pick("JOIN", "JOIN", "LEFT JOIN")
        on = f"{ours}.{one.unit} = {theirs}.{two.unit}{self.pick('', more)}"
        listed = ", ".join([f"{ours}.{one.unit} AS {unit}", *items])
        sql = f"(SELECT {listed} FROM {one.sql} AS {ours} {join} {two.sql} AS {theirs} ON {on})"
        return Rows(sql, columns, unit)

    def kept_by_public(self, depth: int) -> Rows:
        inner = self.rows(depth - 1)
        alias = self.name()
        kind = TEXT if self.column(inner.columns, TEXT) else NUMBER
        left = self.value(inner.columns, kind, 1)
        right = self.chance.choice([name for name, other in CODES.items() if other == kind])
        where = self.pick("", " WHERE factor > 3", f" WHERE {right} IS NOT NULL")
        own = self.column(inner.columns, kind)
        denied = self.pick("", "NOT ")
        condition = f"{denied}({left} IN (SELECT {right} FROM codes{where}))"
        if own is not None and self.chance.random() < 0.4:
            condition = f"{denied}EXISTS (SELECT 1 FROM codes AS c WHERE c.{right} = {alias}.{own})"
        return Rows(f"(SELECT * FROM {inner.sql} AS {alias} WHERE {condition})", inner.columns, inner.unit)

    # ---- aggregates --------------------------------------------------------------------------------------------------

    def plain(self, rows: Rows) -> str:
        columns = rows.columns
        kind = self.pick(NUMBER, TEXT, BOOLEAN)
        choices = [
            "COUNT(*)",
            f"COUNT({self.value(columns, kind)})",
            f"COUNT(DISTINCT {self.value(columns, kind)})",
            f"SUM({self.value(columns, NUMBER)})",
            f"AVG({self.value(columns, NUMBER)})",
            f"COUNT_IF({self.value(columns, BOOLEAN)})",
        ]
        if rows.unit is not None:
            choices.append(f"COUNT(DISTINCT {rows.unit})")
        return self.chance.choice(choices)

    def moment(self, rows: Rows) -> str:
        x, y = (self.bounded(rows.columns) for _ in "xy")
        one = f"{self.pick('VAR_POP', 'VAR_SAMP', 'STDDEV_POP', 'STDDEV')}({x})"
        return self.pick(one, one, f"{self.pick('COVAR_POP', 'COVAR_SAMP', 'CORR')}({x}, {y})")

    def order_statistic(self, rows: Rows) -> str:
        x, q = self.bounded(rows.columns), self.pick("0", "0.25", "0.9", "1")
        if self.chance.random() < 0.25:
            x = f"LEAST(GREATEST({self.value(rows.columns, DATE)}, DATE '2025-12-30'), DATE '2026-01-20')"
        return self.pick(
            f"{self.pick('MEDIAN', 'MIN', 'MAX')}({x})",
            f"{self.pick('QUANTILE', 'QUANTILE_CONT', 'PERCENTILE_DISC')}({x}, {q})",
            f"PERCENTILE_CONT({q}) WITHIN GROUP (ORDER BY {x})",
        )

    def clamped(self, rows: Rows) -> str:
        """Return an aggregate that says how much a unit or a row may add."""
        x = self.value(rows.columns, NUMBER)
        bounds = self.pick("(0, 20)", "(-3, 3)", "(1, 2)", "(-20, -10)", "(0, 0.5)", "(0, 0)")
        return self.pick(
            f"SUM({x}, contribution_bounds_per_group => {bounds})",
            f"SUM({x}, contribution_bounds_per_group => {bounds})",
            f"COUNT(*, contribution_bounds_per_group => {self.pick('(0, 1)', '(2, 3)', '(0, 2)')})",
            f"SUM({x}, contribution_bounds_per_row => {bounds})",
            f"AVG({x}, contribution_bounds_per_row => {bounds})",
            f"AVG({x}, contribution_bounds_per_group => {bounds})",
            f"{self.pick('SUM', 'AVG', 'STDDEV')}({x}, contribution_bounds_per_row => AUTO)",
            f"SUM(LEAST(GREATEST({x}, 0), 9), contribution_bounds_per_group => AUTO)",
            "COUNT(*, contribution_bounds_per_group => AUTO)",
            f"COUNT({x}, epsilon => 0.1)",
        )

    def bounded(self, columns: dict[str, str]) -> str:
        """Return a number that has bounds, near enough always."""
        known = [name for name in columns if name.rsplit(".")[-1] in ("age", "cost", "pay")]
        if known and self.chance.random() < 0.6:
            return self.chance.choice(known)
        return f"LEAST(GREATEST({self.value(columns, NUMBER)}, -5), 60)"

    def measures(self, rows: Rows) -> list[str]:
        """Return aggregates that may stand beside each other."""
        kinds = self.chance.choices(
            [(self.plain,), (self.plain, self.moment), (self.plain, self.order_statistic)], [5, 1, 2]
        )
        grown = [self.chance.choice(kinds[0])(rows) for _ in range(self.chance.randint(1, 3))]
        if self.chance.random() < 0.2:
            grown = [self.clamped(rows), *self.chance.choice([[], ["COUNT(*)"], [self.clamped(rows)]])]
        return [
            f"{measure} FILTER (WHERE {self.value(rows.columns, BOOLEAN)})" if self.chance.random() < 0.15 else measure
            for measure in grown
        ]

    # ---- questions ---------------------------------------------------------------------------------------------------

    def question(self) -> str:
        """Return a whole question; `values` then holds those of its parameters."""
        rows = self.rows(self.chance.choice([0, 0, 1, 1, 1, 2, 2, 3]))
        return self.about(rows, f"{rows.sql} AS t")

    def about(self, rows: Rows, clause: str, conditions: Sequence[str] = (), subqueries: Sequence[str] = ()) -> str:
        """Return a question about what stands in a FROM clause, under conditions, after named subqueries."""
        columns = rows.columns
        measures, group = self.measures(rows), self.grouping(columns)
        asked = [*conditions, *([self.value(columns, BOOLEAN)] if self.chance.random() < 0.3 else [])]
        where = f" WHERE {' AND '.join(asked)}" if asked else ""
        having = f" HAVING {measures[0]} > 1" if self.chance.random() < 0.1 else ""
        shown = f"{self.options(rows)}{', '.join(measures)}"
        if self.chance.random() < 0.2 and clause.startswith("(") and clause == f"{rows.sql} AS t":
            subqueries, clause = [*subqueries, f"visits2 AS {rows.sql}"], "visits2"
        before = f"WITH {', '.join(subqueries)} " if subqueries else ""
        text = f"{before}SELECT {shown} FROM {clause}{where}{group}{having}"
        used = set(re.findall(r"\$(\w+)", text))
        self.values = {name: value for name, value in self.values.items() if name in used}
        return text

    def grouping(self, columns: dict[str, str]) -> str:
        """Return GROUP BY with keys, also private ones."""
        several = self.chance.random() < 0.1
        number = self.chance.choice([1, 1, 2, 2]) if several else self.chance.choice([0, 0, 1, 2])
        public = [name for name in columns if name.rsplit(".")[-1] in ("plan", "kind")]
        keys = [
            self.chance.choice([*public, self.value(columns, BOOLEAN, 1)])
            if several
            else self.value(columns, self.pick(BOOLEAN, TEXT, NUMBER), 1)
            for _ in range(number)
        ]
        if not keys:
            return ""
        listed = ", ".join(keys)
        items = ", ".join(f"({key})" for key in keys)
        sets = self.pick(f"ROLLUP ({items})", f"CUBE ({items})", f"GROUPING SETS (({listed}), ({keys[0]}), ())")
        return f" GROUP BY {sets if several else listed}"

    def options(self, rows: Rows) -> str:
        """Return what the question says about its own privacy, mostly nothing."""
        if self.chance.random() < 0.75:
            return ""
        said = [
            self.pick(
                "max_groups_contributed = 1",
                "max_groups_contributed = 2",
                "max_rows_contributed = 1",
                "max_rows_contributed = 2, max_groups_contributed = 1",
            ),
            self.pick("epsilon = 0.5", "epsilon = 2"),
            f"privacy_unit_column = {rows.unit}" if rows.unit is not None else "epsilon = 1",
        ]
        return f"WITH DIFFERENTIAL_PRIVACY OPTIONS ({', '.join(said[: self.chance.randint(1, 2)])}) "
