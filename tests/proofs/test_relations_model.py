"""Lapwing's planner and engine say of random queries what the model in `proofs/Relations.v` says of them.

A pipeline is grown twice, as SQL and as a term of the model. The planner states how many rows one unit has, and the
engine counts and sums; Coq computes the same of the term, by `rows_per_unit` and `rows`.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines.duckdb.cleaned import Location
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.query.bind.bind import bind
from tests.support.effort import SEED
from tests.support.proofs import compiled, needs_coq
from tests.support.query import composed

pytestmark = [needs_coq, pytest.mark.long]

PIPELINES, WORLDS, MOST_ROWS = 240, 4, 4
CODES: Final = [(0, 7), (1, 2), (1, 3), (2, 5), (None, 9)]
Row = tuple[int, int | None, int | None]  # person, a, b
Figures = tuple[int, int, int]
"""Rows of one unit at most, all rows, and the sum of the first column."""

CATALOG: Final = f"""
[dataset]
name = "small"
ledger = "sqlite:small.db"
[budget]
epsilon = 1
delta = 1e-6
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = {MOST_ROWS}
[tables.visits.columns]
a = {{ type = "integer", lower = 0, upper = 3 }}
b = {{ type = "integer", lower = -2, upper = 2 }}
[tables.codes]
source = "codes.parquet"
public = true
[tables.codes.columns]
k = {{ type = "integer" }}
w = {{ type = "integer" }}
"""

HEAD: Final = """From Coq Require Import List ZArith.
From Lapwing Require Import Tables Relations Sensitivity.
Import ListNotations.
Open Scope Z_scope.
Definition col (i : nat) (v : values) : value := nth i v None.
Definition plus (a b : value) : value := match a, b with Some x, Some y => Some (x + y) | _, _ => None end.
Definition at_least (i : nat) (k : Z) (v : values) : bool := match col i v with Some x => k <=? x | None => false end.
Definition count (l : list values) : value := Some (Z.of_nat (length l)).
Definition by_values (_ : Z) (_ : values) : values := [].
Definition figures (r : relation) (d : database) :=
  (Z.of_nat (rows_per_unit r), Z.of_nat (length (rows r d)),
   sums (fun _ => Some 0%nat) (fun v => match col 0 v with Some x => x | None => 0 end) (rows r d) 0).
"""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Rows with a person and two columns, as SQL and as a term; `rows` of one unit at most.

    Args:
        apart: whether no two rows of a unit have the same first column.
    """

    sql: str
    term: str
    rows: int
    apart: bool = False


VISITS: Final = Pipeline("SELECT person, a AS x, b AS y FROM visits", f"Kept 0 {MOST_ROWS} by_values", MOST_ROWS)
Grow = Callable[[random.Random, int], Pipeline]


def filtered(chance: random.Random, depth: int) -> Pipeline:
    source, column, least = grown(chance, depth), chance.randrange(2), chance.randint(-1, 2)
    sql = f"SELECT person, x, y FROM ({source.sql}) AS s WHERE {'xy'[column]} >= {least}"
    return replace(source, sql=sql, term=f"Filter (at_least {column} ({least})) ({source.term})")


def projected(chance: random.Random, depth: int) -> Pipeline:
    source = grown(chance, depth)
    sql = f"SELECT person, y AS x, x + y AS y FROM ({source.sql}) AS s"
    return Pipeline(sql, f"Project (fun v => [col 1 v; plus (col 0 v) (col 1 v)]) ({source.term})", source.rows)


def distinct(chance: random.Random, depth: int) -> Pipeline:
    source = grown(chance, depth)
    sql = f"SELECT DISTINCT person, x, y FROM ({source.sql}) AS s"
    return replace(source, sql=sql, term=f"Distinct (fun v => [col 0 v; col 1 v]) ({source.term})")


def grouped(chance: random.Random, depth: int) -> Pipeline:
    source = grown(chance, depth)
    sql = f"SELECT person, x, COUNT(*) AS y FROM ({source.sql}) AS s GROUP BY person, x"
    term = f"OneForEachGroup (fun v => [col 0 v]) (fun l => [count l]) ({source.term})"
    return Pipeline(sql, term, source.rows, apart=True)


def one_row(chance: random.Random, depth: int) -> Pipeline:
    source = grown(chance, depth)
    sql = f"SELECT person, COUNT(*) AS x, COUNT(*) + 1 AS y FROM ({source.sql}) AS s GROUP BY person"
    return Pipeline(sql, f"OneForEachUnit (fun l => [count l; plus (count l) (Some 1)]) ({source.term})", 1, apart=True)


def united(chance: random.Random, depth: int) -> Pipeline:
    one, other = grown(chance, depth), grown(chance, depth)
    sql = f"SELECT person, x, y FROM ({one.sql}) AS s UNION ALL SELECT person, x, y FROM ({other.sql}) AS t"
    return Pipeline(sql, f"UnionAll ({one.term}) ({other.term})", one.rows + other.rows)


def public(chance: random.Random, depth: int) -> Pipeline:
    source, kind = grown(chance, depth), chance.choice(["Inner", "Left"])
    word = "JOIN" if kind == "Inner" else "LEFT JOIN"
    sql = f"SELECT s.person AS person, s.x AS x, c.w AS y FROM ({source.sql}) AS s {word} codes AS c ON s.x = c.k"
    on = "(fun v => [col 0 v]) (fun w => [col 0 w]) (fun _ _ => true)"
    term = f"PublicJoin {kind} {on} codes [None; None] ({source.term})"
    return Pipeline(sql, f"Project (fun v => [col 0 v; col 3 v]) ({term})", source.rows * 2)


def listed(chance: random.Random, depth: int) -> Pipeline:
    source, kind = grown(chance, depth), chance.choice(["Semi", "Anti"])
    word = "SEMI" if kind == "Semi" else "ANTI"
    sql = f"SELECT s.person AS person, s.x AS x, s.y AS y FROM ({source.sql}) AS s {word} JOIN codes AS c ON s.x = c.k"
    term = f"PublicJoin {kind} (fun v => [col 0 v]) (fun w => [col 0 w]) (fun _ _ => true) codes [] ({source.term})"
    return replace(source, sql=sql, term=term)


def joined(chance: random.Random, depth: int) -> Pipeline:
    one, other, kind = grown(chance, depth - 1), grown(chance, depth - 1), chance.choice(["Inner", "Left"])
    word = "JOIN" if kind == "Inner" else "LEFT JOIN"
    sql = (
        f"SELECT s.person AS person, s.x AS x, t.y AS y FROM ({one.sql}) AS s {word} ({other.sql}) AS t "
        "ON s.person = t.person AND s.x = t.x"
    )
    matches, matched = (1 if side.apart or side.rows == 1 else side.rows for side in (other, one))
    both = other.rows * matched if kind == "Inner" else max(one.rows, other.rows * matched + one.rows - 1)
    rows = min(one.rows * max(1, min(matches, other.rows)), both)
    on = "(fun v w => equals [col 0 v] [col 0 w])"
    term = f"UnitJoin {kind} {on} {matches} {matched} [None; None] ({one.term}) ({other.term})"
    return Pipeline(sql, f"Project (fun v => [col 0 v; col 3 v]) ({term})", rows)


def present(chance: random.Random, depth: int) -> Pipeline:
    one, other, kind = grown(chance, depth - 1), grown(chance, depth - 1), chance.choice(["Semi", "Anti"])
    sql = (
        f"SELECT s.person AS person, s.x AS x, s.y AS y FROM ({one.sql}) AS s {kind.upper()} JOIN ({other.sql}) AS t "
        "ON s.person = t.person AND s.x = t.x"
    )
    on = "(fun v w => equals [col 0 v] [col 0 w])"
    term = f"UnitJoin {kind} {on} {other.rows} {one.rows} [] ({one.term}) ({other.term})"
    return replace(one, sql=sql, term=term)


def first(chance: random.Random, depth: int) -> Pipeline:
    source, most = grown(chance, depth), chance.randint(1, 3)
    order = "PARTITION BY person ORDER BY x NULLS FIRST, y NULLS FIRST"
    sql = f"SELECT person, x, y FROM ({source.sql}) AS s QUALIFY ROW_NUMBER() OVER ({order}) <= {most}"
    return replace(source, sql=sql, term=f"FirstRows {most} by_values ({source.term})", rows=min(most, source.rows))


def windowed(chance: random.Random, depth: int) -> Pipeline:
    source = grown(chance, depth)
    sql = f"SELECT person, x, COUNT(*) OVER (PARTITION BY person) AS y FROM ({source.sql}) AS s"
    term = f"Project (fun v => [col 0 v; col 2 v]) (Window (fun l _ => [count l]) ({source.term}))"
    return Pipeline(sql, term, source.rows, source.apart)


STEPS: Final[list[Grow]] = [
    filtered, projected, distinct, grouped, one_row, united, public, listed, joined, present, first, windowed,
]  # fmt: skip


def grown(chance: random.Random, depth: int) -> Pipeline:
    return VISITS if depth <= 0 else chance.choice(STEPS)(chance, depth - 1)


def rows_of(chance: random.Random) -> list[Row]:
    """Return rows of some units, none of whom has more than the catalog keeps."""

    def value(low: int, high: int) -> int | None:
        return None if chance.random() < 0.2 else chance.randint(low, high)

    sizes = [chance.randint(0, MOST_ROWS) for _ in range(4)]
    return [(person, value(0, 3), value(-2, 2)) for person, size in enumerate(sizes) for _ in range(size)]


def number(value: int | None) -> str:
    return "None" if value is None else f"Some ({value})"


def table_of(rows: Sequence[Row]) -> str:
    return "[" + "; ".join(f"({person}, [{number(a)}; {number(b)}])" for person, a, b in rows) + "]"


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = tmp_path_factory.mktemp("small")
    pq.write_table(
        pa.table({"k": pa.array([k for k, _ in CODES], pa.int64()), "w": pa.array([w for _, w in CODES], pa.int64())}),
        folder / "codes.parquet",
    )
    return loads(CATALOG, file="small", folder=folder)


@pytest.fixture(scope="module")
def facts(described: Catalog) -> Iterator[PublicData]:
    facts = PublicData(described)
    yield facts
    facts.close()


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = composed.connect()
    connection.execute("CREATE TABLE visits (person BIGINT, a BIGINT, b BIGINT)")
    yield connection
    connection.close()


def by_lapwing(
    sql: str, rows: Sequence[Row], described: Catalog, facts: PublicData, connection: duckdb.DuckDBPyConnection
) -> Figures:
    """Return what the planner states, and what the engine counts."""
    question = bind(f"SELECT COUNT(*), SUM(x) FROM ({sql}) AS q", described, facts).question
    connection.execute("DELETE FROM visits")
    if rows:
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?)", rows)
    source = Location(relation="visits", types=dict.fromkeys(("person", "a", "b"), "BIGINT"))
    found = composed.cells(connection, question, source, facts)
    numbers = found.get((), (0,) * len(question.measures))
    return (question.selection.rows_per_unit, *(int(n or 0) for n in numbers))  # type: ignore[return-value]


def by_model(
    cases: Sequence[tuple[str, int]], worlds: Sequence[Sequence[Row]], folder: Path, name: str
) -> list[Figures]:
    """Return what the model says of terms, each in a world."""
    codes = "[" + "; ".join(f"[{number(k)}; {number(w)}]" for k, w in CODES) + "]"
    tables = [f"Definition world_{i} : database := fun _ => {table_of(rows)}." for i, rows in enumerate(worlds)]
    asked = [f"Eval vm_compute in figures ({term}) world_{world}." for term, world in cases]
    lines = [HEAD, f"Definition codes : list values := {codes}.", *tables, *asked]
    made = compiled(name, "\n".join(lines), folder)
    assert made.returncode == 0, made.stderr
    found = re.findall(r"= \((-?\d+), (-?\d+), (-?\d+)\)", made.stdout)
    return [(int(rows), int(count), int(total)) for rows, count, total in found]


def test_the_planner_and_the_engine_agree_with_the_model(
    checked: Path, described: Catalog, facts: PublicData, connection: duckdb.DuckDBPyConnection
) -> None:
    chance = random.Random(SEED)
    worlds = [rows_of(chance) for _ in range(WORLDS)]
    # Each step on the table itself, and then whatever grows.
    pipelines = [step(chance, 0) for step in STEPS] + [grown(chance, chance.randint(1, 3)) for _ in range(PIPELINES)]
    worlds_of = [place % WORLDS for place in range(len(pipelines))]
    cases = [(pipeline.term, world) for pipeline, world in zip(pipelines, worlds_of, strict=True)]
    found = by_model(cases, worlds, checked, "Pipelines")
    assert len(found) == len(pipelines)
    wrong = []
    for pipeline, world, model in zip(pipelines, worlds_of, found, strict=True):
        ours = by_lapwing(pipeline.sql, worlds[world], described, facts, connection)
        if ours != model:
            wrong.append((pipeline.sql, worlds[world], ours, model))
    assert wrong == []
    assert sum(count > 0 for _, count, _ in found) > len(found) // 2


def test_a_row_too_many_is_found(
    checked: Path, described: Catalog, facts: PublicData, connection: duckdb.DuckDBPyConnection
) -> None:
    """The planted bug: the engine reads a table with one row more, and the model one that keeps more rows of a unit."""
    rows: list[Row] = [(1, 1, 1), (2, 2, None)]
    (exact,) = by_model([(VISITS.term, 0)], [rows], checked, "Exact")
    (other,) = by_model([(f"Kept 0 {MOST_ROWS + 1} by_values", 0)], [rows], checked, "Other")
    assert by_lapwing(VISITS.sql, rows, described, facts, connection) == exact == (MOST_ROWS, 2, 3)
    assert by_lapwing(VISITS.sql, [*rows, (2, 0, 0)], described, facts, connection) != exact
    assert other != exact
