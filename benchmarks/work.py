"""What one unit makes the engine do, measured, beside what `lapwing.query.plan.work` says of it.

Each question below is meant to be dear: joins of copies, frames of windows, patterns, padded texts, private keys,
grouping sets. It is run over two files that differ in nothing but a flag, which is true for all units in one and for
none in the other; the question looks at rows with the flag alone. The difference of processor time, divided by the
units, is what a unit costs. It should stay below the model's number: a ratio above 1 says that the model is too low.
What is printed last are the highest ratios; random patterns and expressions are tried until the time is over.

    python benchmarks/work.py [SECONDS]
"""

import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import duckdb

from lapwing.catalog.toml import load
from lapwing.engines.duckdb.engine import DuckDB
from lapwing.errors import QueryRefused
from lapwing.query.bind.bind import bind
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.plan.work import work_of

CATALOG = """
[dataset]
name = "work"
ledger = "sqlite:work.lapwing.db"
[budget]
epsilon = 1000
delta = 1e-5
delta_keys = 5e-6
[tables.t]
source = "t.parquet"
privacy_unit = "uid"
max_rows_per_unit = {rows}
[tables.t.columns]
flag = {{ type = "boolean" }}
r = {{ type = "integer", lower = 0, upper = 1000 }}
z = {{ type = "integer", lower = 0, upper = 9 }}
x = {{ type = "integer", lower = 0, upper = 1000 }}
f = {{ type = "float", lower = -1, upper = 1 }}
d = {{ type = "date", lower = 2000-01-01, upper = 2030-01-01 }}
ts = {{ type = "timestamp" }}
plan = {{ type = "string", values = ["a", "b", "c"] }}
ab = {{ type = "string" }}
aa = {{ type = "string" }}
u = {{ type = "string" }}
name = {{ type = "string" }}
"""
# Of 256 bytes each: random letters, one letter, one letter of two bytes. No text is there twice.
ROWS = """
COPY (
    SELECT u AS uid, {flag} AS flag, r, 0 AS z, hash(u, r) % 1000 AS x, (hash(r, u) % 2001) / 1000.0 - 1 AS f,
        DATE '2001-01-01' + CAST(hash(u, r) % 9000 AS INTEGER) AS d,
        TIMESTAMP '2001-01-01' + to_microseconds(CAST(hash(u, r) % 700000000000000 AS BIGINT)) AS ts,
        ['a', 'b', 'c'][1 + CAST(hash(u, r) % 3 AS INTEGER)] AS plan,
        translate({digits}, '0123456789abcdef', 'abababababababab') AS ab,
        printf('%06d', u * {rows} + r) || repeat('a', 250) AS aa,
        printf('%06d', u * {rows} + r) || repeat('ä', 125) AS u,
        left(md5(u || ' ' || r), 12) AS name
    FROM range({units}) units(u), range({rows}) rows(r) ORDER BY hash(u, r)
) TO '{path}'
"""
SECONDS = 0.3
"""What a question is to take in all, by the model: so many units are asked about."""
SIZES = (16, 128, 1024, 8192)


class Data:
    """A file of units that have a flag, or have none of it, with an index."""

    def __init__(self, units: int, rows: int, flag: str) -> None:
        folder = Path(tempfile.mkdtemp(dir=SCRATCH.name))
        digits = " || ".join(f"md5(u || ' ' || r || ' {place}')" for place in range(8))
        duckdb.sql(ROWS.format(units=units, rows=rows, flag=flag, digits=digits, path=folder / "t.parquet"))
        (folder / "lapwing.toml").write_text(CATALOG.format(rows=rows))
        self.catalog = load(folder / "lapwing.toml")
        self.engine = DuckDB(self.catalog, threads=1, indexing=False)
        (table,) = self.catalog.tables
        self.digests = {table.name: self.engine.digest(table)}
        self.engine.build_index(table)

    def seconds(self, questions: list[Question]) -> float:
        """Return the least processor time of several runs."""
        times = []
        for _ in range(3):
            start = time.process_time()
            for question in questions:
                self.engine.run(question, self.digests)
            times.append(time.process_time() - start)
            if times[-1] > 3:
                break
        return min(times)


SCRATCH = tempfile.TemporaryDirectory()


@lru_cache
def data(units: int, rows: int) -> tuple[Data, Data]:
    """Return data in which all units qualify, and in which none does."""
    return Data(units, rows, "true"), Data(units, rows, "false")


@lru_cache
def empty(rows: int) -> Data:
    """Return data to bind questions with."""
    return Data(1, rows, "false")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Measured:
    """What a unit costs, in nanoseconds, beside what the model says."""

    ratio: float
    rows: int
    cost: float
    modelled: float
    multiple: float
    refused: bool
    text: str

    def __str__(self) -> str:
        refused = "refused" if self.refused else "answered"
        return (
            f"{self.ratio:7.3f}  measured {self.cost:14,.0f} ns, model {self.modelled:16,.0f} ns, "
            f"{self.multiple:12,.1f} times reading, {refused:8}  {self.rows:3} rows  {self.text[:150]}"
        )


def measured(text: str, rows: int) -> Measured:
    """Measure a question, over so many units that it takes about `SECONDS` by the model."""
    plan: Plan = bind(text, empty(rows).catalog)
    found = work_of(plan)
    units = max((size for size in SIZES if size * found.most / 1e9 <= SECONDS), default=SIZES[0])
    while units * rows > 70_000:
        units //= 8
    questions = [*(search.question for search in plan.searches), plan.question]
    qualified, none = (one.seconds(questions) for one in data(units, rows))
    cost = max(0.0, qualified - none) / units * 1e9
    return Measured(
        ratio=cost / found.most,
        rows=rows,
        cost=cost,
        modelled=found.most,
        multiple=found.ratio,
        refused=found.excessive,
        text=text,
    )


# ---- questions -------------------------------------------------------------------------------------------------------

V = "WITH v AS (SELECT * FROM t WHERE flag) "
MANY = "".join(map(chr, range(0x100, 0x132))) + "ä0123456789"
PADDED = "LPAD(ab, 1000, 'ab')"
CONDITIONS = (
    "x > 2000", "x + x * x > -5", "x / (x + 1) > 99999", "MOD(x, 7) > 8", "SQRT(x) > 1000", "LN(x + 1) > 1000",
    "POWER(x, 0.5) > 10000", "SIN(f) > 2", "ROUND(f, 3) > 2", "EXTRACT(WEEK FROM ts) > 300",
    "DATE_TRUNC('month', ts) > TIMESTAMP '2090-01-01'", "DATE_DIFF('month', ts, TIMESTAMP '2020-01-01') > 30000",
    "ts + INTERVAL 3 MONTH > TIMESTAMP '2090-01-01'", "STRFTIME(ts, '%A %B %j %Y-%m-%d %H:%M:%S') = 'x'",
    "TRY_CAST(aa AS DOUBLE) > 1000", "TRY_CAST(u AS DATE) > DATE '2080-01-01'",
    "TRY_CAST(aa AS TIMESTAMP) > TIMESTAMP '2080-01-01'",
    "MAKE_DATE(2000 + MOD(x, 20), 1 + MOD(x, 12), MOD(x, 31)) > DATE '2080-01-01'", "CAST(ts AS VARCHAR) = 'q'",
    "UPPER(ab) = 'q'", "LOWER(u) = 'q'", "REVERSE(u) = 'q'", "TRIM(u, 'abcdefghij0123456789ä') = 'q'",
    f"TRIM(u, '{MANY}') = 'q'", "SUBSTRING(u, -100, 20) = 'q'",
    "RIGHT(u, 100) = 'q'", "LPAD(u, 1000, 'ab') = 'q'", "RPAD(u, 1000, 'ä') = 'q'",
    "REPLACE(aa, 'a', 'bbb') = 'q'", "SPLIT_PART(aa, 'a', 200) = 'q'", "SPLIT_PART(ab, 'ab', -3) = 'q'",
    "CONCAT_WS('-', ab, aa, u, ab, aa, u) = 'q'", "LENGTH(u) > 900",
    "STRPOS(aa, CONCAT(SUBSTRING(aa, 8, 128), 'b')) > 900", "CONTAINS(aa, CONCAT(SUBSTRING(aa, 8, 6), 'b'))",
    "aa LIKE '%a%a%a%a%a%a%a%a%b'", "aa LIKE '%a_______________________________________________b%'",
    "aa LIKE '%a_a_a_a_a_a_a_a_a_a_a%a_a_a_a_a_a_a_a_ab%'", "u ILIKE '%ä%ä%ä%ä%ä%b'",
    f"{PADDED} LIKE '%{'_' * 700}c'", f"{PADDED} ILIKE '%a{'_' * 300}c%'",
    "CASE WHEN x > 3 THEN x + 1 WHEN x > 2 THEN 3 ELSE 4 END > 9999", "COALESCE(NULLIF(x, 3), 5) > 2000",
    "NULLIF(NULLIF(NULLIF(NULLIF(UPPER(ab), 'a'), 'b'), 'c'), 'd') = 'q'",
    "REVERSE(REVERSE(REVERSE(REVERSE(UPPER(u || ab || aa))))) = 'q'",
    "REPLACE(REPLACE(ab, 'a', 'bb'), 'b', 'aaaa') = 'q'",
)  # fmt: skip


def constant(number: int, size: int) -> str:
    """Return a constant: a number, or a text with so many letters."""
    return f"'{number}{'w' * size}'" if size else str(number)


LISTED = (("x", 0), ("x + r", 0), ("ab", 1), ("UPPER(ab || aa)", 200), ("name", 6))
LISTS = tuple(
    f"{value} IN ({', '.join(constant(n, size) for n in range(count))})"
    for count in (2, 4, 5, 40, 300)
    for value, size in LISTED
)
"""Of five constants and more the engine makes a join."""
PATTERNS = (
    "[ab]", "a+", "z*", "a*b|a", ".*b|a", "a{80}b|a", ".{80}b|a", "a.{6}c", "a.{9}c", "a.{12}c", ".*a.{16}c", "a.{80}c",
    "(.{1,40}){20}c", "(.{1,90}a){10}c", "(.{1,10}){1,90}c", "(.{1,99}){1,10}x", "(a.{8}|b.{8}|ab)*c",
    "(a|b)*(a+b+)(.*)", "((a?){9}(b?){9}){9}((.*)).....", "(a?){90}(b?){90}c", "c.{16}a|a", "(a|b|ab|ba)*c",
    "(a*)*(b*)*c", r"\b[ab]+\b", "^[ab]{40}(a|b)*c$", "[^a]|a{1,90}b", "(a|aa|aaa|aaaa)*b",
)  # fmt: skip
WINDOWS = (
    "ROW_NUMBER() {}", "RANK() {}", "NTILE(3) {}", "CUME_DIST() {}", "LAG(ab) {}", "LEAD(x, 3) {}", "SUM(x) {}",
    "COUNT(*) {}", "COUNT(DISTINCT x) {}", "COUNT(DISTINCT ab) {}", "MIN(ab) {}", "AVG(x) {}",
    "BOOL_OR(x > 3) {}",
)  # fmt: skip
FRAMED = (
    "SUM(x) {}", "COUNT(DISTINCT x) {}", "COUNT(DISTINCT ab) {}", "MAX(ab) {}", "AVG(x) {}", "FIRST_VALUE(ab) {}",
    "NTH_VALUE(ab, 2) {}", "LAST_VALUE(ab IGNORE NULLS) {}", "BOOL_AND(x > 3) {}",
)  # fmt: skip
FRAMES = (
    "ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING", "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 1000 PRECEDING AND 1 PRECEDING", "RANGE BETWEEN 100 PRECEDING AND 300 FOLLOWING",
)  # fmt: skip


def named() -> Iterator[tuple[str, int]]:
    """Yield the questions that were thought of, with rows a unit."""
    for condition in (*CONDITIONS, *LISTS, " OR ".join(one for one in LISTS if one.startswith("ab "))):
        yield f"{V}SELECT COUNT(*) FROM v WHERE {condition}", 8
    for pattern in PATTERNS:
        for call in (
            "REGEXP_MATCHES(ab, '{}')", "REGEXP_REPLACE(ab, '{}', 'c', 'g') = 'q'",
            "REGEXP_REPLACE(aa, '{}', 'c', 'g') = 'q'", "REGEXP_EXTRACT(ab, '{}') = 'q'",
        ):  # fmt: skip
            yield f"{V}SELECT COUNT(*) FROM v WHERE {call.format(pattern)}", 8
        if "(" in pattern:
            yield f"{V}SELECT COUNT(*) FROM v WHERE REGEXP_EXTRACT({PADDED}, '{pattern}', 1) = 'q'", 8
        yield f"{V}SELECT COUNT(*) FROM v WHERE REGEXP_MATCHES({PADDED}, '{pattern}')", 1
    for rows in (1, 8, 64, 400):
        yield from of_rows(rows)


def of_rows(rows: int) -> Iterator[tuple[str, int]]:
    for measures in (
        "COUNT(*)", "COUNT(DISTINCT uid)", "COUNT(DISTINCT ab)", "COUNT(DISTINCT x)", "SUM(x)", "SUM(x * x + x)",
        "AVG(f)", "MEDIAN(x)", "QUANTILE_CONT(f, 0.1), QUANTILE_CONT(x, 0.3)", "VAR_POP(x)",
        "SUM(x, contribution_bounds_per_group => (0, 50))",
    ):  # fmt: skip
        yield f"{V}SELECT {measures} FROM v", rows
        yield f"{V}SELECT plan, {measures} FROM v GROUP BY plan", rows
    yield f"{V}SELECT plan, x, COUNT(*) FROM v GROUP BY CUBE (plan, x)", rows
    yield (
        f"{V}SELECT plan, x, r, MEDIAN(x) FROM v GROUP BY CUBE (plan, z, EXTRACT(MONTH FROM d))".replace(
            "plan, x, r,", "plan, z,"
        ),
        rows,
    )
    for keys in ("name", "ab", "name, ab", "name, plan", "UPPER(ab)"):
        yield f"{V}SELECT {keys}, COUNT(DISTINCT uid) FROM v GROUP BY {keys}", rows
        yield f"{V}SELECT {keys}, COUNT(*) FROM v GROUP BY {keys}", rows
    for copies in range(2, 7):
        if rows**copies <= 10**6 and rows * copies < 800:
            more = [f"JOIN v a{i} ON a0.uid = a{i}.uid" for i in range(1, copies)]
            yield f"{V}SELECT COUNT(*) FROM v a0 {' '.join(more)}", rows
            alike = [f"{one} AND a0.z = a{i + 1}.z" for i, one in enumerate(more)]
            yield f"{V}SELECT COUNT(*) FROM v a0 {' '.join(alike)}", rows
            yield f"{V}SELECT SUM(a0.x + a1.x) FROM v a0 {' '.join(more)} WHERE a0.x + a1.x > 2500", rows
            yield f"{V}SELECT COUNT(*) FROM v a0 {' '.join(more)} WHERE a0.ab || a1.aa LIKE '%c%'", rows
            chain = [f"JOIN v a{i} ON a{i - 1}.uid = a{i}.uid AND a{i - 1}.x = a{i}.x" for i in range(1, copies)]
            yield f"{V}SELECT COUNT(*) FROM v a0 {' '.join(chain)}", rows
    yield f"{V}SELECT COUNT(*) FROM v a LEFT JOIN v b ON a.uid = b.uid AND a.x < b.x", rows
    yield f"{V}SELECT COUNT(*) FROM v a JOIN v b ON a.uid = b.uid AND a.ab = b.ab", rows
    yield f"{V}SELECT COUNT(*) FROM v a WHERE EXISTS (SELECT 1 FROM v b WHERE a.uid = b.uid AND a.z = b.z)", rows
    yield (
        f"{V}SELECT COUNT(*) FROM (SELECT uid, ab FROM v UNION SELECT uid, aa FROM v UNION SELECT uid, u FROM v)",
        rows,
    )
    yield f"{V}SELECT COUNT(*) FROM (SELECT x FROM v UNION ALL SELECT r FROM v UNION ALL SELECT z FROM v)", rows
    if rows <= 64:
        of_pairs = "v a JOIN v b ON a.uid = b.uid"
        over = "OVER (PARTITION BY uid ORDER BY b.x ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
        for call in ("COUNT(DISTINCT a.ab)", "MAX(a.ab || b.aa)", "LAST_VALUE(b.ab IGNORE NULLS)", "AVG(a.x * b.x)"):
            yield f"{V}SELECT COUNT(w) FROM (SELECT {call} {over} AS w FROM {of_pairs})", rows
        yield f"{V}SELECT a.name, b.plan, COUNT(DISTINCT a.ab || b.aa) FROM {of_pairs} GROUP BY a.name, b.plan", rows
        yield f"{V}SELECT COUNT(*) FROM {of_pairs} WHERE REGEXP_MATCHES(a.ab || b.ab, '(a.{{6}}|b)*c')", rows
        yield f"{V}SELECT COUNT(*) FROM {of_pairs} AND a.ab || b.ab LIKE '%a____________________c%'", rows
    yield f"{V}SELECT COUNT(*) FROM (SELECT DISTINCT uid, ab, aa, u FROM v)", rows
    yield f"{V}SELECT SUM(n) FROM (SELECT uid, COUNT(DISTINCT ab) AS n FROM v GROUP BY uid)", rows
    yield f"{V}SELECT COUNT(m) FROM (SELECT uid, ab, MAX(aa) AS m, MIN(u) AS k FROM v GROUP BY uid, ab)", rows
    for window in WINDOWS:
        for order in ("uid ORDER BY x", "uid ORDER BY ab"):
            called = window.format(f"OVER (PARTITION BY {order})")
            yield f"{V}SELECT COUNT(w) FROM (SELECT {called} AS w FROM v)", rows
    for window in FRAMED:
        for frame in FRAMES:
            called = window.format(f"OVER (PARTITION BY uid ORDER BY x {frame})")
            yield f"{V}SELECT COUNT(w) FROM (SELECT {called} AS w FROM v)", rows
    for copies in (3, 5):  # each meets one row of the one before: an engine that reorders them meets all
        sides = [f"JOIN g g{i} ON g0.uid = g{i}.uid AND g{i - 1}.n = g{i}.x" for i in range(1, copies)]
        of_unit = "g AS (SELECT uid, x, SUM(r) AS n FROM v GROUP BY uid, x) "
        yield f"{V.strip()}, {of_unit}SELECT COUNT(*) FROM g g0 {' '.join(sides)}", rows
    many = ", ".join(f"SUM(x + {i}) OVER (PARTITION BY uid ORDER BY {'xrfd'[i % 4]}) AS w{i}" for i in range(8))
    yield f"{V}SELECT COUNT(*) FROM (SELECT {many} FROM v) WHERE {' + '.join(f'w{i}' for i in range(8))} < 0", rows
    yield f"{V}SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 1) COUNT(*) FROM v", rows
    yield (
        f"{V}SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1) plan, COUNT(*) FROM v GROUP BY plan",
        rows,
    )


# ---- random ones -----------------------------------------------------------------------------------------------------


def pattern(chance: random.Random, depth: int = 0) -> str:
    """Draw a pattern."""
    kind = chance.random()
    if depth > 3 or kind < 0.35:
        atom = chance.choice(["a", "b", ".", "[ab]", "[^b]", "c", r"\w", "ab", "ba"])
    elif kind < 0.6:
        atom = f"({pattern(chance, depth + 1)}|{pattern(chance, depth + 1)})"
    else:
        atom = f"({pattern(chance, depth + 1)}{pattern(chance, depth + 1)})"
    return atom + chance.choice(["", "", "", "*", "+", "?", "*?", "{2,7}", "{9}", "{1,40}", "{20}"])


TEXTS = (
    "UPPER({})", "REVERSE({})", "TRIM({}, 'ab')", "{} || {}", "REPLACE({}, 'a', 'bb')", "REPLACE({}, 'ab', '')",
    "SUBSTRING({}, 5)", "LPAD({}, 600, 'xyz')", "RPAD({}, 900, 'ab')", "SPLIT_PART({}, 'b', 3)", "LEFT({}, 70)",
    "CASE WHEN {} > {} THEN {} ELSE {} END", "NULLIF({}, {})", "COALESCE({}, {})", "LOWER({})",
    "CONCAT_WS('a', {}, {})",
)  # fmt: skip


def text_of(chance: random.Random, depth: int) -> str:
    if depth == 0 or chance.random() < 0.2:
        return chance.choice(["ab", "aa", "u", "name"])
    while "{" in (form := chance.choice(TEXTS)):
        return form.format(*(text_of(chance, depth - 1) for _ in range(form.count("{}"))))
    return "ab"


def drawn(chance: random.Random) -> tuple[str, int]:
    """Draw a question."""
    if chance.random() < 0.6:
        call = chance.choice(
            ["REGEXP_MATCHES({}, '{}')", "REGEXP_REPLACE({}, '{}', 'a', 'g') = 'q'", "REGEXP_EXTRACT({}, '{}') = 'q'",
             "REGEXP_FULL_MATCH({}, '{}')", "REGEXP_EXTRACT({}, '({})', 1) = 'q'"]
        )  # fmt: skip
        condition = call.format(chance.choice(["ab", "aa", "u", PADDED]), pattern(chance))
    else:
        condition = f"{text_of(chance, 4)} = 'q'"
    return f"{V}SELECT COUNT(*) FROM v WHERE {condition}", chance.choice([1, 8])


def main() -> None:
    limit = float(sys.argv[1]) if len(sys.argv) > 1 else 600.0
    start, found, chance = time.monotonic(), list[Measured](), random.Random(7)
    for text, rows in named():
        if len(sys.argv) > 2 and sys.argv[2] not in text:
            continue
        try:
            found.append(measured(text, rows))
        except QueryRefused as refused:
            print(f"refused: {refused}  {text[:120]}")
            continue
        print(found[-1], flush=True)
    print(f"{len(found)} questions that were thought of; now random ones")
    while time.monotonic() - start < limit:
        try:
            found.append(measured(*drawn(chance)))
        except QueryRefused:
            continue
    print(f"{len(found)} questions. The highest ratios of measured to modelled:")
    for one in sorted(found, reverse=True)[:40]:
        print(one)


if __name__ == "__main__":
    main()
