"""Random questions across linked tables: joins along links in any order and spelling, and some that are not allowed.

A question is grown around a join, of which every side is a table or a subquery that still shows by which keys it hangs
together with others: rows chosen, grouped by a key or the unit, numbered, united, or joined before. All that can be
asked of one table is then asked of it (`questions`). About one question in eight says something that must be refused,
or is wrong: rows compared by what is no key, or by nothing at all.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from tests.support.query.linked_sides import TABLES, Keys, Side, bare, together
from tests.support.query.questions import BOOLEAN, CODES, NUMBER, TEXT, Grower, Rows

ANSWERED: Final = (
    *["JOIN"] * 12,
    *["LEFT JOIN"] * 5,
    *("SEMI JOIN", "ANTI JOIN", "INNER JOIN", "LEFT OUTER JOIN", "RIGHT JOIN", "FULL JOIN", "FULL OUTER JOIN"),
)
REFUSED: Final = ("NATURAL JOIN", "CROSS JOIN", "ASOF JOIN")
Item = tuple[str, Side]
"""An alias, and what has it."""


@dataclass
class Joiner:
    """Grows joins; what is grown before may stand as a named subquery, several times."""

    grower: Grower
    tables: tuple[Side, ...]
    named: dict[str, str] = field(default_factory=dict)
    known: list[Side] = field(default_factory=list)

    @property
    def chance(self) -> random.Random:
        return self.grower.chance

    def pick(self, *choices: str) -> str:
        return self.chance.choice(choices)

    def seldom(self, share: float) -> bool:
        return self.chance.random() < share

    def condition(self, columns: dict[str, str]) -> str:
        return self.grower.value(columns, BOOLEAN)

    # ---- sides -------------------------------------------------------------------------------------------------------

    def side(self, depth: int) -> Side:
        """Return a table, or a subquery that shows keys."""
        if self.known and self.seldom(0.3):
            return self.chance.choice(self.known)
        if depth <= 0 or self.seldom(0.4):
            return self.chance.choice(self.tables)
        once = [self.chosen, self.grouped, self.numbered, self.united, self.joined, self.kept]
        grown = self.chance.choice([*once, self.latest, self.latest])(depth - 1)
        if self.seldom(0.25) and grown.sql.startswith("("):
            name = f"cte{len(self.named)}"
            self.named[name] = grown.sql
            grown = replace(grown, sql=name)
            self.known.append(grown)
        return grown

    def renamed(self, keys: Keys, items: list[str]) -> dict[str, tuple[str, ...]]:
        """Show keys, mostly, and mostly under other names; the same ones in different subqueries."""
        shown: dict[str, tuple[str, ...]] = {}
        named: dict[str, str] = {}
        for role, columns in keys.items():
            if self.seldom(0.15):
                continue
            for place, column in enumerate(columns):
                if column not in named:
                    named[column] = f"{role}_key{place}" if self.seldom(0.6) else self.grower.name()
                    items.append(f"{column} AS {named[column]}")
            shown[role] = tuple(named[column] for column in columns)
        return shown

    def shown(self, side: Side) -> tuple[list[str], dict[str, str], Keys]:
        """Return a SELECT list of keys, columns and expressions."""
        items: list[str] = []
        keys = self.renamed(side.keys, items)
        more, columns = self.grower.items(Rows(side.sql, side.columns, side.unit))
        return [*items, *more], columns, keys

    def chosen(self, depth: int) -> Side:
        side = self.side(depth)
        alias = self.grower.name()
        where = f" WHERE {self.condition(side.columns)}" if self.seldom(0.5) else ""
        if self.seldom(0.3):
            return Side(f"(SELECT * FROM {side.sql} AS {alias}{where})", side.columns, side.keys)
        items, columns, keys = self.shown(side)
        distinct = "DISTINCT " if "unit" in keys and self.seldom(0.3) else ""
        return Side(f"(SELECT {distinct}{', '.join(items)} FROM {side.sql} AS {alias}{where})", columns, keys)

    def grouped(self, depth: int) -> Side:
        """Aggregate by a key that says whose rows they are, or by the unit, and perhaps more."""
        side = self.side(depth)
        role = self.pick(*side.keys) if side.keys else ""
        by, columns = list(side.keys.get(role, ())), dict[str, str]()
        items: list[str] = []
        keys = self.renamed({role: tuple(by)}, items) if by else {}
        if self.seldom(0.3):
            value, name = self.grower.value(side.columns, self.pick(NUMBER, TEXT, BOOLEAN)), self.grower.name()
            items.append(f"{value} AS {name}")
            by.append(name)
        for _ in range(self.chance.randint(1, 2)):
            name, (aggregate, kind) = self.grower.name(), self.grower.aggregate(side.columns)
            items.append(f"{aggregate} AS {name}")
            columns[name] = kind
        having = f" HAVING COUNT(*) {self.pick('>', '=')} 1" if self.seldom(0.2) else ""
        grouping = f" GROUP BY {', '.join(by)}" if by else ""
        return Side(
            f"(SELECT {', '.join(items)} FROM {side.sql} AS {self.grower.name()}{grouping}{having})", columns, keys
        )

    def latest(self, depth: int) -> Side:
        """Put the last order of a customer beside all: a LEFT JOIN that most rows do not match."""
        side = self.tables[self.chance.choice([0, 1, 1])] if self.seldom(0.5) else self.side(depth)
        whose = self.pick(*([role for role in ("unit", "customer") if role in side.keys] or [""]))
        which = self.pick(*([role for role in ("order", "customer") if role in side.keys] or [""]))
        if not whose or not which:
            return self.chosen(depth)
        (unit,), (key, *_) = side.keys[whose], side.keys[which]
        function = self.pick("MIN", "MAX")
        last = f"(SELECT {unit} AS last_unit, {function}({key}) AS last_key FROM {side.sql} GROUP BY {unit})"
        ours, theirs = self.grower.name(), self.grower.name()
        own = side.called(ours)
        items, columns, keys = self.shown(own)
        if self.seldom(0.5):
            items.append(f"{theirs}.last_key IS NULL AS other")
            columns["other"] = BOOLEAN
        on = f"{ours}.{unit} = {theirs}.last_unit AND {ours}.{key} = {theirs}.last_key"
        kind = self.pick("LEFT JOIN", "LEFT JOIN", "JOIN")
        return Side(
            f"(SELECT {', '.join(items)} FROM {side.sql} AS {ours} {kind} {last} AS {theirs} ON {on})", columns, keys
        )

    def numbered(self, depth: int) -> Side:
        side = self.side(depth)
        if side.unit is None:
            return self.chosen(depth)
        items, columns, keys = self.shown(side)
        window, kind, clause = self.grower.window(Rows(side.sql, side.columns, side.unit))
        name = self.grower.name()
        qualify = f" QUALIFY {name} <= 1" if kind == NUMBER and self.seldom(0.4) else ""
        shown = ", ".join([*items, f"{window} AS {name}"])
        sql = f"(SELECT {shown} FROM {side.sql} AS {self.grower.name()}{clause}{qualify})"
        return Side(sql, {**columns, name: kind}, keys)

    def united(self, depth: int) -> Side:
        """Unite rows of two sides that have a key in common."""
        one, two = self.side(depth), self.side(depth)
        common = [role for role in one.keys if role in two.keys]
        if not common:
            return self.chosen(depth)
        role, kind = self.pick(*common), self.pick(NUMBER, TEXT)
        names = [f"{role}_key{place}" for place in range(len(one.keys[role]))]
        parts = [
            "SELECT "
            + ", ".join([f"{column} AS {name}" for column, name in zip(side.keys[role], names, strict=True)])
            + f", {self.grower.value(side.columns, kind)} AS both FROM {side.sql} AS {self.grower.name()}"
            for side in (one, two)
        ]
        word = self.pick(" UNION ALL ", " UNION ALL ", " UNION ", " INTERSECT ", " EXCEPT ")
        return Side(f"({word.join(parts)})", {"both": kind}, {role: tuple(names)})

    def kept(self, depth: int) -> Side:
        side = self.side(depth)
        alias = self.grower.name()
        where = self.membership(side.called(alias), depth)
        return Side(f"(SELECT * FROM {side.sql} AS {alias} WHERE {where})", side.columns, side.keys)

    def joined(self, depth: int) -> Side:
        clause, conditions, whole = self.join(depth, self.chance.choice([2, 2, 3]))
        items, columns, keys = self.shown(whole)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return Side(f"(SELECT {', '.join(items)} FROM {clause}{where})", columns, keys)

    # ---- conditions --------------------------------------------------------------------------------------------------

    def equal(self, ours: Side, theirs: Side) -> list[str]:
        """Return what says that rows are of one unit; at times what does not, or nothing at all."""
        if self.seldom(0.03):
            return self.wrong(ours, theirs)
        common = [role for role in ours.keys if role in theirs.keys]
        if not common:
            return self.wrong(ours, theirs) if self.seldom(0.5) else []
        role = self.pick(*common)
        pairs = [
            f"{left} = {right}" if self.seldom(0.5) else f"{right} = {left}"
            for left, right in zip(ours.keys[role], theirs.keys[role], strict=True)
        ]
        kind = self.pick(NUMBER, TEXT)
        both = [self.grower.column(side.columns, kind) for side in (ours, theirs)]
        if None not in both and self.seldom(0.2):
            pairs.append(f"{both[0]} {self.pick('=', '=', '<', '>=')} {both[1]}")
        return self.chance.sample(pairs, len(pairs))

    def wrong(self, ours: Side, theirs: Side) -> list[str]:
        """Return a comparison that does not follow a link, or not all of it."""
        left = [column for columns in ours.keys.values() for column in columns]
        right = [column for columns in theirs.keys.values() for column in columns]
        numbers = [self.grower.column(side.columns, NUMBER) or "1" for side in (ours, theirs)]
        one, two = self.chance.choice([*left, numbers[0]]), self.chance.choice([*right, numbers[1]])
        unknown = f"{one} = {two.rpartition('.')[0] or 'nothing'}.nobody"
        said = self.pick(f"{one} = {two}", f"{one} <> {two}", f"{one} + 0 = {two}", unknown, "TRUE", "")
        return [said] if said else []

    def membership(self, side: Side, depth: int) -> str:
        """Return a condition with a subquery, by itself or beside others."""
        alone = self.alone(side, depth)
        if not self.seldom(0.3):
            return alone
        other = self.alone(side, depth) if self.seldom(0.3) else self.condition(side.columns)
        return f"{self.pick('', '', 'NOT ')}({self.pick(f'{alone} OR {other}', f'{other} OR {alone}')})"

    def alone(self, side: Side, depth: int) -> str:
        """Return a condition with a subquery: IN or EXISTS, of rows of the same units or of public ones."""
        if self.seldom(0.2):
            kind = self.pick(NUMBER, TEXT)
            right = self.pick(*[name for name, other in CODES.items() if other == kind])
            return f"{self.grower.value(side.columns, kind)} {self.pick('', 'NOT ')}IN (SELECT {right} FROM codes)"
        other = self.side(depth)
        alias = self.grower.name()
        theirs = other.called(alias)
        common = [role for role in side.keys if role in theirs.keys and len(side.keys[role]) == 1]
        where = [self.condition(theirs.columns)] if self.seldom(0.6) else []
        if common and self.seldom(0.5):
            role = self.pick(*common)
            denied = self.pick("", "NOT ") if role == "unit" or self.seldom(0.1) else ""
            clause = f" WHERE {where[0]}" if where else ""
            (left,), (right,) = side.keys[role], theirs.keys[role]
            return f"{left} {denied}IN (SELECT {right} FROM {other.sql} AS {alias}{clause})"
        pairs = self.equal(side, theirs)
        if not pairs and not self.seldom(0.1):
            return f"{self.condition(side.columns)}"
        pairs = pairs or ["TRUE"]
        asked = " AND ".join(self.chance.sample([*pairs, *where], len(pairs) + len(where)))
        return f"{self.pick('', 'NOT ')}EXISTS (SELECT {self.pick('1', '*')} FROM {other.sql} AS {alias} WHERE {asked})"

    # ---- joins -------------------------------------------------------------------------------------------------------

    def join(self, depth: int, size: int) -> tuple[str, list[str], Side]:
        """Return a FROM clause, conditions that WHERE has to have, and all that can be named in it."""
        items = [self.item(self.side(depth))]
        while len(items) < size:
            items.append(self.item(self.matching(items, depth)))
        if self.seldom(0.3):
            return self.listed(items)
        clause, conditions, whole = self.explicit(items)
        if self.seldom(0.25):
            clause, whole = self.with_codes(clause, whole)
        return clause, conditions, whole

    def item(self, side: Side) -> Item:
        return self.grower.name(), side

    def matching(self, items: list[Item], depth: int) -> Side:
        """Return a side that has a key in common with one of the others, near enough always."""
        roles = {role for _, side in items for role in side.keys}
        for _ in range(4):
            side = self.side(depth)
            if roles & side.keys.keys():
                return side
        return self.chance.choice([side for side in self.tables if roles & side.keys.keys()] or self.tables)

    def listed(self, items: list[Item]) -> tuple[str, list[str], Side]:
        """List tables in any order, joined by what WHERE says in any order."""
        named = [side.called(alias) for alias, side in items]
        pairs = [
            part
            for place, side in enumerate(named[1:], start=1)
            for part in self.equal(self.partner(named[:place], side), side)
        ]
        listed = [f"{side.sql} AS {alias}" for alias, side in items]
        whole = together(named)
        if self.seldom(0.2):
            alias, kind = self.grower.name(), self.pick(NUMBER, TEXT)
            left = self.grower.column(whole.columns, kind)
            if left is not None:
                listed.append(f"codes AS {alias}")
                pairs.append(f"{left} = {alias}.{self.pick(*[name for name, other in CODES.items() if other == kind])}")
        return ", ".join(self.chance.sample(listed, len(listed))), self.chance.sample(pairs, len(pairs)), whole

    def partner(self, before: list[Side], side: Side) -> Side:
        """Return one of the tables before with which a side has a key in common."""
        return self.chance.choice([one for one in before if one.keys.keys() & side.keys.keys()] or before)

    def explicit(self, items: list[Item]) -> tuple[str, list[str], Side]:
        """Join one side after the other, by ON or USING."""
        (alias, first), *others = items
        clause, named = f"{first.sql} AS {alias}", [first.called(alias)]
        for name, side in others:
            theirs = side.called(name)
            ours = self.partner(named, theirs)
            kind = self.pick(*REFUSED) if self.seldom(0.03) else self.pick(*ANSWERED)
            shared = self.shared(ours, theirs, named)
            if shared:
                clause += f" {kind} {side.sql} AS {name} USING ({', '.join(shared)})"
                gone = {f"{name}.{column}" for column in shared}
                theirs = replace(theirs, keys={r: k for r, k in theirs.keys.items() if not gone & set(k)})
            else:
                pairs = self.equal(ours, theirs)
                clause += f" {kind} {side.sql} AS {name}" + (f" ON {' AND '.join(pairs)}" if pairs else "")
            if kind not in ("SEMI JOIN", "ANTI JOIN"):
                named.append(theirs)
        return clause, [], together(named)

    def shared(self, ours: Side, theirs: Side, before: list[Side]) -> list[str]:
        """Return the columns of a key that has the same names on both sides, and on none before."""
        for role in self.chance.sample(list(ours.keys), len(ours.keys)):
            left, right = ([bare(column) for column in side.keys.get(role, ())] for side in (ours, theirs))
            others = (side for side in before if side is not ours)
            elsewhere = {bare(column) for side in others for key in side.keys.values() for column in key}
            if left == right and (not elsewhere & set(left) or self.seldom(0.1)):
                return left
        return []

    def with_codes(self, clause: str, whole: Side) -> tuple[str, Side]:
        """Join the public table."""
        kind = self.pick(NUMBER, TEXT)
        left = self.grower.column(whole.columns, kind)
        if left is None:
            return clause, whole
        alias = self.grower.name()
        right = self.pick(*[name for name, other in CODES.items() if other == kind])
        columns = {f"{alias}.{name}": other for name, other in CODES.items()}
        clause += f" {self.pick('JOIN', 'LEFT JOIN')} codes AS {alias} ON {left} = {alias}.{right}"
        return clause, replace(whole, columns={**whole.columns, **columns})

    # ---- questions ---------------------------------------------------------------------------------------------------

    def begin(self, _chance: random.Random, *, with_unit: bool) -> Rows:
        """Return what the questions of one table begin with: a side of a join."""
        side = self.side(2)
        if with_unit and side.unit is None:
            side = self.tables[self.chance.choice([0, 3])]
        return Rows(side.sql, side.columns, side.unit)

    def question(self) -> str:
        """Return a whole question."""
        if self.seldom(0.25):
            rows = self.grower.rows(self.chance.choice([0, 1, 1, 2]))
            return self.grower.about(rows, f"{rows.sql} AS t", [], self.subqueries())
        depth, size = self.chance.choice([0, 0, 0, 1, 1, 2]), self.chance.choice([1, 2, 2, 2, 3, 3, 4])
        clause, conditions, whole = self.join(depth, size)
        if self.seldom(0.3):
            conditions = [*conditions, self.membership(whole, 1)]
        columns = dict(whole.columns)
        if self.seldom(0.2):  # keys are numbers and dates as well
            columns |= {key: NUMBER for role, (key, *_) in whole.keys.items() if role != "unit"}
        return self.grower.about(Rows(clause, columns, whole.unit), clause, conditions, self.subqueries())

    def subqueries(self) -> list[str]:
        return [f"{name} AS {sql}" for name, sql in self.named.items()]


def grown(seed: int, linked: str) -> tuple[str, dict[str, int | str]]:
    """Return a question and the values of its parameters."""
    grower = Grower(random.Random(seed))
    joiner = Joiner(grower=grower, tables=TABLES[linked])
    begin: Callable[..., Rows] = joiner.begin
    grower.begin = begin
    text = joiner.question()
    return text, grower.values
