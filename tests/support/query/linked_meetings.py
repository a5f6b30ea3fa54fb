"""Random questions in which rows of different units meet: of a table with itself, of customers and of owners of stalls.

What meets is anything that `linked_questions` grows of rows of one unit. It meets on values, which may be keys as well;
that units differ may be asked too. Every aggregate limits what a unit adds, mostly to so little that rows are cut.
About one question in six does something with shared rows that must be refused, or is wrong.
"""

import random
import re
from dataclasses import dataclass
from typing import Final

from tests.support.query.linked_questions import Item, Joiner
from tests.support.query.linked_sides import TABLES, Side, bare, together
from tests.support.query.linked_stalls import SIDE
from tests.support.query.questions import BOOLEAN, DATE, NUMBER, TEXT, Grower, Rows

LIMITS: Final = ("(0, 1)", "RACE", "(0, 2)", "(0, 3)", "(0, 5)", "(0, 9)", "(0, 20)", "(0, 1000000)", "AUTO")
ALIKE: Final = (
    frozenset({"age", "tag", "place"}),
    frozenset({"plan", "topic", "unit"}),
    frozenset({"kind"}),
    frozenset({"day", "iday"}),
    frozenset({"member", "open"}),
    frozenset({"ck", "who", "ock", "caller", "owner", "fee", "ok", "iok"}),
)
"""Columns of different tables that have values in common."""
PUBLIC: Final = ("plan", "kind", "unit")
"""Columns with public values, in one table or another."""


@dataclass
class Meeter:
    """Grows joins of sides whose rows are of different units."""

    joiner: Joiner

    @property
    def grower(self) -> Grower:
        return self.joiner.grower

    def pick(self, *choices: str) -> str:
        return self.joiner.pick(*choices)

    def seldom(self, share: float) -> bool:
        return self.joiner.seldom(share)

    # ---- meetings ----------------------------------------------------------------------------------------------------

    def side(self, depth: int) -> Side:
        """Return rows of customers, or of owners."""
        if self.seldom(0.3):
            return SIDE if self.seldom(0.6) else self.chosen(SIDE)
        return self.joiner.side(depth)

    def chosen(self, side: Side) -> Side:
        """Return a subquery over stalls."""
        items, columns = self.grower.items(self.rows(side))
        owner = self.grower.name()
        group = " GROUP BY owner" if self.seldom(0.3) else ""
        if group:
            items, columns = [f"MAX({self.pick('place', 'fee')}) AS top", "COUNT(*) AS n"], {"top": NUMBER, "n": NUMBER}
        where = f" WHERE {self.joiner.condition(side.columns)}" if self.seldom(0.3) else ""
        sql = f"(SELECT {', '.join([f'owner AS {owner}', *items])} FROM stalls{where}{group})"
        return Side(sql, columns, {"owner": (owner,)})

    def rows(self, side: Side) -> Rows:
        return Rows(side.sql, side.columns, None)

    def on(self, ours: Side, theirs: Side) -> list[str]:
        """Return an equality of values, and perhaps more that is asked of the pair."""
        pairs = self.equality(ours, theirs)
        if pairs and self.seldom(0.1):
            pairs += self.equality(ours, theirs)
        if self.seldom(0.15):
            kind = self.pick(NUMBER, TEXT, DATE)
            both = [self.grower.column(side.columns, kind) for side in (ours, theirs)]
            pairs += [] if None in both else [f"{both[0]} {self.pick('<', '>=', '<>')} {both[1]}"]
        for role in ("unit", "owner"):
            if role in ours.keys and role in theirs.keys and self.seldom(0.5):
                pairs.append(f"{ours.keys[role][0]} {self.pick('<>', '<>', '<>', '<')} {theirs.keys[role][0]}")
        if self.seldom(0.08):
            pairs.append(self.joiner.condition(theirs.columns))
        return self.joiner.chance.sample(pairs, len(pairs))

    def equality(self, ours: Side, theirs: Side) -> list[str]:
        """Return an equality, of what many rows have in common, near enough always."""
        if self.seldom(0.03):
            return []
        if self.seldom(0.7):
            for alike in self.joiner.chance.sample(ALIKE, len(ALIKE)):
                left, right = (self.known(side, alike) for side in (ours, theirs))
                if left is not None and right is not None:
                    return [f"{left} = {right}"]
        for kind in self.joiner.chance.sample([NUMBER, NUMBER, NUMBER, TEXT, DATE, BOOLEAN], 6):
            left, right = (self.comparable(side, kind) for side in (ours, theirs))
            if left is not None and right is not None:
                return [self.coarse(left, right, kind) if self.seldom(0.7) else f"{right} = {left}"]
        return []

    def coarse(self, left: str, right: str, kind: str) -> str:
        """Compare what few values have in common."""
        forms = ["({}) IS NULL", "({}) IS NOT NULL", *{NUMBER: ["SIGN({})", "({}) > 5"] * 3}.get(kind, [])]
        form = self.pick(*forms)
        return f"({form.format(left)}) = ({form.format(right)})"

    def known(self, side: Side, names: frozenset[str]) -> str | None:
        """Return a column, or key, of a table that has one of these names."""
        keys = [column for columns in side.keys.values() for column in columns]
        found = [column for column in (*side.columns, *keys) if bare(column) in names]
        return self.joiner.chance.choice(found) if found else None

    def comparable(self, side: Side, kind: str) -> str | None:
        """Return a value of a side: a column, a key at times, or an expression."""
        keys = [column for role, columns in side.keys.items() for column in columns[:1]]
        if kind == NUMBER and keys and self.seldom(0.3):
            return self.joiner.chance.choice(keys)
        column = self.grower.column(side.columns, kind)
        grown = self.grower.value(side.columns, kind, 1) if self.seldom(0.3) else ""
        return grown if any(name in grown for name in side.columns) else column

    def meeting(self, depth: int, size: int) -> tuple[str, list[str], Side]:
        """Return a FROM clause, conditions that WHERE has to have, and all that can be named in it."""
        items: list[Item] = [(self.grower.name(), self.side(depth)) for _ in range(size)]
        if self.seldom(0.12) and depth:
            items[0] = (self.grower.name(), self.nested(depth - 1))
        named = [side.called(alias) for alias, side in items]
        asked = [self.on(self.joiner.chance.choice(named[:place]), named[place]) for place in range(1, size)]
        tables = [f"{side.sql} AS {alias}" for alias, side in items]
        whole = together(named)
        if self.seldom(0.4):
            conditions = [part for parts in asked for part in parts]
            listed = self.joiner.chance.sample(tables, len(tables))
            return ", ".join(listed), self.joiner.chance.sample(conditions, len(conditions)), whole
        clause = tables[0]
        for table, parts in zip(tables[1:], asked, strict=True):
            wrong = self.seldom(0.03)
            kind = self.pick("LEFT JOIN", "SEMI JOIN", "ANTI JOIN") if wrong else self.pick("JOIN", "INNER JOIN")
            clause += f" {kind} {table}" + (f" ON {' AND '.join(parts)}" if parts else "")
        if self.seldom(0.25):
            clause, whole = self.joiner.with_codes(clause, whole)
        return clause, [], whole

    def nested(self, depth: int) -> Side:
        """Return a subquery in which units meet; at times one that looks at several shared rows at once."""
        clause, conditions, whole = self.meeting(depth, 2)
        items, columns = self.grower.items(self.rows(whole))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        shown = ", ".join(items)
        sql = f"SELECT {shown} FROM {clause}{where}"
        first = next(iter(columns))
        key = next((column for role in whole.keys for column in whole.keys[role][:1]), "1")
        if self.seldom(0.3):
            sql = self.pick(
                f"SELECT DISTINCT {shown} FROM {clause}{where}",
                f"SELECT DISTINCT {key} AS whose, {shown} FROM {clause}{where}",
                f"SELECT {key} AS whose, COUNT(*) AS {first} FROM {clause}{where} GROUP BY {key}",
                f"SELECT {shown}, ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY 1) AS r FROM {clause}{where}",
                f"SELECT {shown} FROM {clause}{where} QUALIFY ROW_NUMBER() OVER (PARTITION BY {key}) = 1",
                f"{sql} UNION ALL {sql}",
                f"{sql} LIMIT 2",
            )
        return Side(f"({sql})", columns, {})

    # ---- aggregates --------------------------------------------------------------------------------------------------

    def limit(self) -> str:
        return f"contribution_bounds_per_group => {self.pick(*LIMITS)}"

    def positive(self, columns: dict[str, str]) -> str:
        """Return a number that is not negative, near enough always."""
        known = [name for name in columns if name.rsplit(".")[-1] in ("pay", "fee", "age", "minutes")]
        if known and self.seldom(0.6):
            return self.joiner.chance.choice(known)
        x = self.grower.value(columns, NUMBER)
        least, most = self.pick("0", "0", "1"), self.pick("3", "9", "60")
        return x if self.seldom(0.1) else f"LEAST(GREATEST({x}, {least}), {most})"

    def measure(self, columns: dict[str, str]) -> str:
        x = self.grower.value(columns, self.pick(NUMBER, TEXT, BOOLEAN))
        if self.seldom(0.06):
            return self.pick(
                "COUNT(*)",
                f"AVG({self.positive(columns)}, {self.limit()})",
                f"COUNT(DISTINCT {x})",
                f"COUNT(DISTINCT {x}, {self.limit()})",
                f"MEDIAN({self.positive(columns)})",
                f"SUM({self.positive(columns)}, contribution_bounds_per_row => AUTO)",
                f"COUNT(*, {self.limit()}) OVER ()",
                "COUNT(*, contribution_bounds_per_group => (1, 2))",
                "COUNT(*, contribution_bounds_per_group => RACE)",
            )
        grown = self.pick(
            f"COUNT(*, {self.limit()})",
            f"COUNT({x}, {self.limit()})",
            f"SUM({self.positive(columns)}, {self.limit()})",
            f"SUM({self.positive(columns)}, {self.limit()})",
            f"COUNT_IF({self.grower.value(columns, BOOLEAN)}, {self.limit()})",
            f"SUM({self.positive(columns)}, contribution_bounds_per_row => (0, 5), {self.limit()})",
        )
        return f"{grown} FILTER (WHERE {self.grower.value(columns, BOOLEAN)})" if self.seldom(0.12) else grown

    def grouping(self, columns: dict[str, str]) -> str:
        public = [name for name in columns if name.rsplit(".")[-1] in PUBLIC]
        keys = [
            self.joiner.chance.choice([*public, *public, self.grower.value(columns, BOOLEAN, 1)])
            for _ in range(self.joiner.chance.choice([0, 0, 1, 1, 2]))
        ]
        if self.seldom(0.04):
            keys.append(self.grower.value(columns, self.pick(NUMBER, TEXT), 1))
        if not keys:
            return ""
        return f" GROUP BY ROLLUP ({', '.join(keys)})" if self.seldom(0.03) else f" GROUP BY {', '.join(keys)}"

    def question(self) -> str:
        """Return a whole question."""
        depth, size = self.joiner.chance.choice([0, 0, 0, 0, 1, 2]), self.joiner.chance.choice([2, 2, 2, 2, 2, 3, 3, 4])
        clause, conditions, whole = self.meeting(depth, size)
        if self.seldom(0.1):
            conditions = [*conditions, self.joiner.membership(whole, 1)]
        if self.seldom(0.1):
            conditions = [*conditions, self.joiner.condition(whole.columns)]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        group = self.grouping(whole.columns)
        measures = [self.measure(whole.columns) for _ in range(self.joiner.chance.choice([1, 1, 2, 3]))]
        options = "WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 2) " if self.seldom(0.02) else ""
        named = [f"{name} AS {sql}" for name, sql in self.joiner.named.items()]
        before = f"WITH {', '.join(named)} " if named else ""
        having = f" HAVING {measures[0]} > 1" if self.seldom(0.08) else ""
        return f"{before}SELECT {options}{', '.join(measures)} FROM {clause}{where}{group}{having}"


def grown(seed: int, linked: str) -> tuple[str, dict[str, int | str]]:
    """Return a question and the values of its parameters."""
    grower = Grower(random.Random(f"meeting {seed}"))
    joiner = Joiner(grower=grower, tables=TABLES[linked])
    text = Meeter(joiner=joiner).question()
    used = set(re.findall(r"\$(\w+)", text))
    return text, {name: value for name, value in grower.values.items() if name in used}
