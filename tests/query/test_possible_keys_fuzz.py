"""Random questions about joins, subqueries and public tables: no cell that has rows is ever left out."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import pytest

from lapwing.catalog.toml import load
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.errors import DataFault, QueryRefused
from lapwing.query.aggregates import possible_keys
from lapwing.query.bind.bind import bind
from lapwing.query.plan.plan import Plan
from tests.query import test_possible_keys as worked
from tests.support.effort import is_long, numbers

contents, facts, folder = worked.contents, worked.facts, worked.folder  # fixtures
Columns = list[tuple[str, str]]
"""Names of columns, each with what it holds: a number, a text, a day or a moment."""

TABLE = {
    "plan": "text", "age": "number", "part": "number", "day": "day", "pay": "number", "town": "text", "state": "text",
    "seen": "moment",
}  # fmt: skip
SHOWN = ", ".join(["person", *TABLE])
OVER = [
    (
        "SELECT person, plan, part, MAX(age) AS age, COUNT(*) AS pay FROM sales GROUP BY person, plan, part",
        "plan part age pay",
    ),
    ("SELECT DISTINCT person, plan, part, age FROM sales", "plan part age"),
    (
        "SELECT person, plan, part, age, ROW_NUMBER() OVER (PARTITION BY person ORDER BY pay) AS pay FROM sales",
        "plan part age pay",
    ),
    (
        "SELECT person, plan, part, age FROM sales WHERE age > 3 UNION ALL SELECT person, plan, part, pay FROM sales "
        "WHERE plan = 'b'",
        "plan part age",
    ),
]
"""Subqueries, with what they show."""
MEMBERSHIPS = [
    "s.part IN (SELECT id FROM parts WHERE category IN ('x', 'z'))",
    "s.part NOT IN (SELECT number FROM makers)",
    "EXISTS (SELECT 1 FROM makers AS e WHERE e.number = s.age)",
    "NOT EXISTS (SELECT 1 FROM parts AS e WHERE e.id = s.part AND e.weight = 5)",
]
KEYS = {
    "number": [
        "{}",
        "{}",
        "FLOOR({} / 3)",
        "{} % 4",
        "{} > 4",
        "COALESCE({}, 1)",
        "CASE WHEN {} > 3 THEN 'h' ELSE 'l' END",
        "-{}",
    ],
    "text": [
        "{}",
        "{}",
        "{}",
        "UPPER({})",
        "COALESCE({}, 'none')",
        "{} || 'x'",
        "{} = 'x'",
        "CASE WHEN {} = 'x' THEN 'x' ELSE 'b' END",
    ],
    "day": ["MONTH({})", "DATE_TRUNC('month', {})", "{} > DATE '2024-01-15'", "DAYOFWEEK({})"],
    "moment": ["MONTH({})", "DATE_TRUNC('month', {})", "CAST({} AS DATE)", "HOUR({})"],
}
CONDITIONS = {
    "number": [
        "{} = 3", "{} > 5", "{} BETWEEN 2 AND 6", "{} IN (1, 7)", "{} IS NULL", "{} IS NOT NULL", "{} + 1 <> 4",
        "{} NOT IN (1, 2)", "{} IS DISTINCT FROM 3",
    ],
    "text": [
        "{} = 'a'", "{} = 'x'", "{} < 'c'", "{} IN ('a', 'x')", "{} IS NULL", "{} LIKE '%a%'", "{} <> 'a'",
        "COALESCE({}, 'a') = 'a'", "CASE WHEN {} = 'a' THEN TRUE END",
    ],
    "day": ["{} >= DATE '2024-01-20'", "{} < '2023-12-05'", "MONTH({}) = 2", "{} IS NULL"],
    "moment": [
        "{} >= '2024-01-20 06:00:00'", "{} < '2023-12-05'", "MONTH({}) = 2", "HOUR({}) = 6",
        "{} BETWEEN '2024-01-02 06:00:00' AND '2024-01-04 00:00:00'",
    ],
}  # fmt: skip


class Maker:
    """Makes one question from a seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._columns: Columns = [(f"s.{name}", kind) for name, kind in TABLE.items()]

    def question(self) -> str:
        chance = self._chance
        begun = " ".join(
            [self._begun(), *(self._joined(f"t{place}") for place in range(chance.choice([0, 1, 1, 2, 3])))]
        )
        conditions = [self._condition(0)] if chance.random() < 0.8 else []
        conditions += [chance.choice(MEMBERSHIPS)] if chance.random() < 0.15 else []
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        keys = list(dict.fromkeys(self._key() for _ in range(chance.choice([1, 1, 2, 2, 3]))))
        shown = ", ".join(f"{key} AS k{place}" for place, key in enumerate(keys))
        return f"SELECT {shown}, COUNT(*) FROM {begun}{where} GROUP BY {self._grouped(keys)}"

    def _grouped(self, keys: Sequence[str]) -> str:
        style = self._chance.random()
        if style < 0.12:
            return f"ROLLUP ({', '.join(keys)})"
        return f"GROUPING SETS ({', '.join(f'({key})' for key in keys)})" if style < 0.2 else ", ".join(keys)

    def _begun(self) -> str:
        chance = self._chance
        match chance.choice(["table", "table", "filtered", "subquery", "subquery", "pairs", "left pairs"]):
            case "filtered":
                bare, self._columns = self._columns, [(name[2:], kind) for name, kind in self._columns]
                inner, self._columns = self._condition(0), bare
                return f"(SELECT {SHOWN} FROM sales WHERE {inner}) AS s"
            case "subquery":
                text, names = chance.choice(OVER)
                self._columns = [(f"s.{name}", TABLE[name]) for name in names.split()]
                return f"({text}) AS s"
            case "pairs":
                same = chance.choice(["plan", "part", "age"])
                self._columns += [("u.plan", "text"), ("u.age", "number"), ("u.part", "number")]
                return f"sales AS s JOIN sales AS u ON s.person = u.person AND s.{same} = u.{same}"
            case "left pairs":
                self._columns += [("u.plan", "text"), ("u.age", "number")]
                return "sales AS s LEFT JOIN sales AS u ON s.person = u.person AND u.age > 8 AND s.plan = u.plan"
        return "sales AS s"

    def _joined(self, name: str) -> str:
        chance = self._chance
        ours, join = (
            chance.choice([c for c, kind in self._columns if kind == "number"]),
            chance.choice(["JOIN", "LEFT JOIN"]),
        )
        if chance.random() < 0.35:
            self._columns += [(f"{name}.country", "text"), (f"{name}.number", "number")]
            return f"{join} makers AS {name} ON {ours} = {name}.number"
        further = [
            "",
            "",
            "",
            f" AND {name}.weight > 5",
            f" AND {name}.category <> 'x'",
            f" AND {name}.category = s.plan",
        ]
        self._columns.append((f"{name}.category", "text"))
        self._columns += [(f"{name}.{column}", "number") for column in ("maker", "weight", "id")]
        theirs = chance.choice(["id", "maker", "weight"])
        return f"{join} parts AS {name} ON {ours} = {name}.{theirs}{chance.choice(further)}"

    def _key(self) -> str:
        column, kind = self._chance.choice(self._columns)
        return self._chance.choice(KEYS[kind]).format(column)

    def _condition(self, depth: int) -> str:
        shape = self._chance.random()
        if depth > 2 or shape < 0.45:
            column, kind = self._chance.choice(self._columns)
            others = [other for other, of in self._columns if of == kind == "number"]
            if others and self._chance.random() < 0.2:
                return f"{column} {self._chance.choice('=<')} {self._chance.choice(others)}"
            return self._chance.choice(CONDITIONS[kind]).format(column)
        if shape > 0.88:
            return f"NOT ({self._condition(depth + 1)})"
        word = "AND" if shape < 0.65 else "OR"
        return f"({self._condition(depth + 1)} {word} {self._condition(depth + 1)})"


def every_cell(text: str, folder: Path, facts: PublicData) -> Plan:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(possible_keys, "possible_keys", worked.every_cell)
        return bind(text, load(folder / "lapwing.toml"), facts)


def wrong(seeds: Sequence[int], folder: Path, facts: PublicData, plain: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """Yield the questions of which a cell with rows is left out, or which have no one meaning."""
    for seed in seeds:
        text = Maker(seed).question()
        try:
            wide = every_cell(text, folder, facts)
        except QueryRefused:
            continue
        found = worked.with_rows(text, wide, plain)
        try:
            plan, _ = worked.plans(text, folder, facts)
        except QueryRefused as refused:
            if "No row can" in refused.reason and any(value is not None for row in found for value in row):
                yield f"{seed}: refused, and has rows: {text}"
            continue
        if not plan.question.private_keys and found - worked.in_order(plan):
            yield f"{seed}: {found - worked.in_order(plan)} left out of {text}"
        if worked.plans(text, folder, facts)[0] != plan:
            yield f"{seed}: another plan: {text}"


@pytest.mark.parametrize("block", numbers(1, 60))
def test_no_cell_with_rows_is_left_out(
    block: int, folder: Path, facts: PublicData, contents: duckdb.DuckDBPyConnection
) -> None:
    assert list(wrong(range(40 * block, 40 * block + (40 if is_long() else 5)), folder, facts, contents)) == []


def test_joins_in_another_order_would_be_noticed(
    folder: Path, facts: PublicData, contents: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted bug: a LEFT JOIN before what it is compared with, which the first seed shows."""
    monkeypatch.setattr(possible_keys, "_in_order", tuple)
    with pytest.raises(DataFault, match="cannot be read to its end"):
        list(wrong(range(105, 400), folder, facts, contents))


def test_what_is_weakened_too_little_would_be_noticed(
    folder: Path, facts: PublicData, contents: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(possible_keys, "weakened", worked.without_branches)
    assert next(wrong(range(182, 400), folder, facts, contents), None)
