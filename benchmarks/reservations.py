"""Whether questions stay within what is reserved for them: random ones, of every function and form, on made-up rows.

Each question is asked of a service of its own, with all that belongs to it (planning, ledger, engine, noise, what is
kept), over rows that all qualify, with texts as long as they may be. The processor time that it takes is compared with
what the service would reserve for it, by the speed that the service would measure on this machine. What people who are
not trusted with time may not ask, as a unit could cause too much work, is passed over. A question that takes more is
asked twice again, as other work on the machine counts too: the least of three counts.

Plain questions (`deadline.plain`), whose reservation is the sharpest, are a part of them, or all with `--plain`.

    python benchmarks/reservations.py [--questions N] [--rows N] [--seed N] [--plain]
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb

from lapwing.catalog.toml import load
from lapwing.errors import LapwingError, QueryRefused
from lapwing.query.expressions.expression import Operation, walk
from lapwing.query.plan.composition import plans_asked
from lapwing.query.plan.plan import LONGEST_TEXT, Plan
from lapwing.query.plan.traversal import expressions_of
from lapwing.query.plan.work import work_of
from lapwing.server.deadline.cost import Speed, cost_of
from lapwing.server.deadline.made_up import MadeUpService, made_up_service
from lapwing.server.deadline.speed import Calibration, make_indexes

CATALOG: Final = """
[dataset]
name = "dear"
ledger = "sqlite:dear.db"
[budget]
epsilon = 1000000000
delta = 1e-2
delta_keys = 5e-3
[tables.t]
source = "t.parquet"
privacy_unit = "uid"
max_rows_per_unit = 8
rows_at_most = {rows}
[tables.t.columns]
flag = {{ type = "boolean" }}
sure = {{ type = "integer", lower = 0, upper = 2000000000, nullable = false }}
gap = {{ type = "integer", lower = 0, upper = 2000000000 }}
r = {{ type = "integer", lower = 0, upper = 1000 }}
x = {{ type = "integer", lower = 0, upper = 1000 }}
f = {{ type = "float", lower = -1, upper = 1 }}
m = {{ type = "float", lower = 0, upper = 1000, step = 0.01 }}
d = {{ type = "date", lower = 2000-01-01, upper = 2030-01-01 }}
ts = {{ type = "timestamp" }}
plan = {{ type = "string", values = ["a", "b", "c"] }}
code = {{ type = "string", values = [{codes}] }}
ab = {{ type = "string" }}
aa = {{ type = "string" }}
ua = {{ type = "string" }}
name = {{ type = "string" }}
"""
CODES: Final = 200
SAME: Final = "z" * 80
"""All codes begin so: most of each is read to tell it from another. Half of the rows have one that is not listed."""
ROWS: Final = """
COPY (
    SELECT i // 8 AS uid, CAST(hash(i + 2) % 2000000000 AS BIGINT) AS sure,
        CASE WHEN hash(i + 3) % 2 = 0 THEN CAST(hash(i + 4) % 3000000000 AS BIGINT) - 500000000 END AS gap,
        true AS flag, i % 8 AS r, hash(i) % 1000 AS x, (hash(i + 1) % 2001) / 1000.0 - 1 AS f,
        CAST((hash(i) % 100000) / 100.0 AS DECIMAL(8, 2)) AS m,
        DATE '2001-01-01' + CAST(hash(i) % 9000 AS INTEGER) AS d,
        TIMESTAMP '2001-01-01' + to_microseconds(CAST(hash(i) % 700000000000000 AS BIGINT)) AS ts,
        ['a', 'b', 'c'][1 + CAST(hash(i) % 3 AS INTEGER)] AS plan,
        '{same}' || printf('%07d', CASE WHEN hash(i) % 2 = 0 THEN hash(i + 7) % {codes} ELSE i + {codes} END) AS code,
        translate({digits}, '0123456789abcdef', 'abababababababab') AS ab,
        printf('%07d', i) || repeat('a', 249) AS aa, printf('%07d', i) || repeat('ä', 124) AS ua,
        left(md5('' || i), 12) AS name
    FROM range({rows}) rows(i) ORDER BY hash(i)
) TO '{path}'
"""

# ---- The grammar: N numbers, T texts, D dates, S timestamps, B conditions --------------------------------------------

LEAVES: Final = {
    "N": ("x", "r", "f", "m", "gap", "7", "0.5"), "T": ("ab", "aa", "ua", "name", "plan"), "D": ("d",), "S": ("ts",),
    "B": ("flag", "x > 3"),
}  # fmt: skip
FORMS: Final = {
    "N": (
        "({N} + {N})", "({N} - {N})", "({N} * {N})", "({N} / {N})", "(-{N})", "ABS({N})", "MOD(x, 7)", "(x // 3)",
        "ROUND({N}, 1)", "FLOOR({N})", "CEIL({N})", "TRUNC({N})", "SIGN({N})", "SQRT({N})", "LN({N})", "LOG2({N})",
        "LOG10({N})", "EXP(f)", "POWER({N}, 0.5)", "SIN({N})", "COS({N})", "ATAN({N})", "LEAST({N}, {N}, {N})",
        "GREATEST({N}, {N})", "COALESCE(NULLIF({N}, 3), {N})", "CASE WHEN {B} THEN {N} WHEN {B} THEN {N} ELSE {N} END",
        "CASE x WHEN 1 THEN {N} WHEN 2 THEN {N} WHEN 3 THEN {N} WHEN 4 THEN {N} WHEN 5 THEN 1 WHEN 6 THEN 2 END",
        "LENGTH({T})", "STRPOS({T}, 'ab')", "STRPOS({T}, SUBSTRING({T}, 9, 40))", "EXTRACT(WEEK FROM {S})",
        "EXTRACT(YEAR FROM {D})", "EXTRACT(EPOCH FROM {S})", "DATE_DIFF('month', {D}, DATE '2020-01-01')",
        "DATE_DIFF('week', {D}, DATE '2020-01-01')", "(DATE '2020-01-01' - {D})", "TRY_CAST({T} AS DOUBLE)",
        "TRY_CAST({T} AS BIGINT)", "CAST({B} AS INTEGER)", "CAST({N} AS INTEGER)",
    ),
    "T": (
        "UPPER({T})", "LOWER({T})", "REVERSE({T})", "TRIM({T})", "TRIM({T}, 'ab')", "LTRIM({T}, '0')",
        "RTRIM({T}, 'a')",
        "SUBSTRING({T}, 5)", "SUBSTRING({T}, -100, 40)", "LEFT({T}, 70)", "RIGHT({T}, 100)", "LPAD({T}, 600, 'xyz')",
        "RPAD({T}, 400, 'ab')", "REPLACE({T}, 'a', 'bb')", "REPLACE({T}, 'ab', '')", "SPLIT_PART({T}, 'b', 3)",
        "({T} || {T})", "CONCAT({T}, {T})", "CONCAT_WS('-', {T}, {T}, {T})", "NULLIF({T}, {T})", "COALESCE({T}, {T})",
        "CASE WHEN {B} THEN {T} ELSE {T} END", "CAST({D} AS VARCHAR)", "CAST({S} AS VARCHAR)", "CAST(x AS VARCHAR)",
        "STRFTIME({S}, '%A %B %j %Y-%m-%d %H:%M:%S')", "MONTHNAME({D})", "DAYNAME({D})",
        "REGEXP_REPLACE({T}, '[^0-9]', '')", "REGEXP_REPLACE({T}, 'a.b', 'x', 'g')", "REGEXP_EXTRACT({T}, 'a+b')",
        "REGEXP_EXTRACT({T}, '(a+)(b+)', 1)",
        "CASE plan WHEN 'a' THEN {T} WHEN 'b' THEN {T} WHEN 'c' THEN 'q' WHEN 'd' THEN 'r' WHEN 'e' THEN 's' END",
    ),
    "D": (
        "({D} + INTERVAL 3 MONTH)::DATE", "({D} + 7)", "({D} - x)", "LAST_DAY({D})", "CAST({S} AS DATE)",
        "DATE_TRUNC('month', {D})::DATE", "TRY_CAST({T} AS DATE)", "LEAST({D}, {D})",
        "MAKE_DATE(2000 + MOD(x, 20), 1 + MOD(x, 12), 1 + MOD(x, 28))", "COALESCE({D}, {D})",
    ),
    "S": (
        "({S} + INTERVAL 3 MONTH)", "({S} + INTERVAL 5 DAY)", "({S} - INTERVAL 7 HOUR)", "DATE_TRUNC('hour', {S})",
        "TRY_CAST({T} AS TIMESTAMP)", "CAST({D} AS TIMESTAMP)", "GREATEST({S}, {S})",
    ),
    "B": (
        "{N} > {N}", "{N} <= 5", "{N} = {N}", "{N} <> 3", "{N} BETWEEN 1 AND {N}", "x BETWEEN 3 AND 700",
        "{D} BETWEEN DATE '2003-01-01' AND DATE '2009-01-01'", "1 / f > {N}", "f BETWEEN -0.5 AND 0.5",
        "{N} IS NULL", "{T} IS NOT NULL",
        "{N} IS DISTINCT FROM {N}", "{T} IS NOT DISTINCT FROM {T}", "({B} AND {B})", "({B} OR {B})", "(NOT {B})",
        "x IN ({words:N})", "{N} IN ({words:N})", "{T} IN ({words:T})", "{T} NOT IN ({words:T})", "{D} IN ({words:D})",
        "ab IN ({words:T}) OR aa IN ({words:T}) OR ua IN ({words:T}) OR name IN ({words:T})",
        "{T} = 'q'", "{T} > {T}", "{T} LIKE '%a%b%'", "{T} LIKE 'a_b%'", "{T} NOT LIKE '%a____b%'", "{T} ILIKE '%A%b'",
        "CONTAINS({T}, 'abab')", "STARTS_WITH({T}, 'ab')", "ENDS_WITH({T}, {T})", "REGEXP_MATCHES({T}, '{pattern}')",
        "NOT REGEXP_MATCHES({T}, '{pattern}')", "REGEXP_FULL_MATCH({T}, '{pattern}')",
        "{D} > DATE '2010-01-01'", "{S} < TIMESTAMP '2020-01-01'", "{D} = {D}",
        "uid IN (SELECT uid FROM t WHERE {B})", "uid NOT IN (SELECT uid FROM t WHERE {B})",
        "EXISTS (SELECT 1 FROM t b WHERE b.uid = t.uid AND b.x < 500)",
    ),
}  # fmt: skip
SOURCES: Final = (
    "t WHERE {B}", "t WHERE {B}", "t WHERE {B}", "t WHERE {B} AND {B}", "(SELECT * FROM t WHERE {B}) t WHERE {B}",
    "(SELECT DISTINCT uid, {T} AS ab, {N} AS x FROM t WHERE {B}) t WHERE x > 1",
    "(SELECT uid, {T} AS ab, {N} AS x FROM t UNION SELECT uid, {T}, {N} FROM t) t WHERE x > 1",
    "(SELECT uid, {T} AS ab, {N} AS x FROM t UNION ALL SELECT uid, {T}, {N} FROM t) t WHERE x > 1",
    "(SELECT uid, {T} AS ab, x FROM t EXCEPT SELECT uid, {T}, x FROM t WHERE {B}) t WHERE x > 1",
    "(SELECT uid, {T} AS ab, x FROM t INTERSECT SELECT uid, {T}, x FROM t WHERE {B}) t WHERE x > 1",
    "(SELECT uid, plan AS ab, COUNT(*) AS x FROM t WHERE {B} GROUP BY uid, plan HAVING SUM({N}) IN ({words:N})) t",
    "(SELECT uid, MAX({T}) AS ab, SUM({N}) AS x FROM t GROUP BY uid HAVING COUNT(*) IN ({words:N})) t",
    "(SELECT uid, ab, COUNT(DISTINCT {T}) AS x FROM t GROUP BY uid, ab) t",
    "(SELECT uid, ab, {window} OVER (PARTITION BY uid ORDER BY {N}) AS x FROM t WHERE {B}) t",
    "(SELECT uid, ab, {window} OVER (PARTITION BY uid, plan ORDER BY {T}) AS x FROM t) t",
    "(SELECT uid, ab, {framed} OVER (PARTITION BY uid ORDER BY {N} {frame}) AS x FROM t) t",
    "(SELECT uid, ab, x FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY uid ORDER BY {N}, {T}) = 1) t",
    "(SELECT a.uid, a.ab, b.x FROM t a JOIN t b ON a.uid = b.uid) t",
    "(SELECT a.uid, a.ab, b.x FROM t a JOIN t b ON a.uid = b.uid AND a.x < b.x) t",
    "(SELECT a.uid, a.ab, b.x FROM t a LEFT JOIN t b ON a.uid = b.uid AND a.ab = b.ua) t",
    "(SELECT a.uid, a.ab, c.x FROM t a JOIN t b ON a.uid = b.uid JOIN t c ON a.uid = c.uid AND b.r = c.r) t",
    "(SELECT uid, ab, x FROM t WHERE NOT {B}) t WHERE uid IN (SELECT uid FROM t WHERE {B})",
)  # fmt: skip
MEASURES: Final = (
    "COUNT(*)", "COUNT(*)", "COUNT(x)", "COUNT(DISTINCT uid)", "COUNT(DISTINCT ab)", "COUNT(DISTINCT x)",
    "SUM(x, contribution_bounds_per_row => (0, 100))", "AVG(x, contribution_bounds_per_row => (0, 100))",
    "SUM(x, contribution_bounds_per_group => (0, 50))", "VAR_POP(x, contribution_bounds_per_row => (0, 100))",
    "COUNT(*) AS a, COUNT(x) AS b, COUNT(DISTINCT uid)", "MEDIAN(LEAST(GREATEST(x, 0), 1000))",
    "QUANTILE_CONT(LEAST(GREATEST(x, 0), 100), 0.1)", "SUM(CASE WHEN x > 5 THEN 1 ELSE 0 END)",
    "COUNT(CASE WHEN x IN (1, 2, 3, 5, 8, 13) THEN 1 END)", "SUM(x, contribution_bounds_per_row => AUTO)",
    "SUM(x, contribution_bounds_per_group => AUTO)",
)  # fmt: skip
PRIVATE: Final = ("name", "ab", "UPPER(ab)")
KEYS: Final = ("plan", "code", "plan, flag", "code, plan", "EXTRACT(YEAR FROM d)", "CUBE (plan, flag)", *PRIVATE)
WINDOWS: Final = (
    "ROW_NUMBER()", "RANK()", "DENSE_RANK()", "PERCENT_RANK()", "CUME_DIST()", "NTILE(3)", "LAG(x)", "LEAD(x, 3)",
    "FIRST_VALUE(x)", "LAST_VALUE(x)", "SUM(x)", "COUNT(*)", "COUNT(DISTINCT ab)", "AVG(x)",
)  # fmt: skip
FRAMED: Final = ("SUM(x)", "COUNT(DISTINCT x)", "MIN(x)", "MAX(x)", "AVG(x)", "NTH_VALUE(x, 2)", "COUNT(*)")
FRAMES: Final = (
    "ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING", "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 1000 PRECEDING AND 1 PRECEDING",
)  # fmt: skip
PATTERNS: Final = (
    "[ab]", "a+b", "(a|b)*c", "a.{6}c", "a.{9}c", "^[ab]{40}", ".*b.*a", "(a.{6}|b)*c", "b$", "(a|aa|aaa)*b",
    "[^b]+c", "a.*b.*a.*c", "(ab|ba){3,9}",
)  # fmt: skip


PLAIN: Final = (
    "COUNT(*) AS a", "COUNT(gap) AS b", "SUM(sure) AS c", "AVG(gap) AS d", "SUM(gap) AS e",
    "COUNT(*) FILTER (WHERE gap > 1000000000) AS f", "SUM(sure) FILTER (WHERE sure > 1000000000) AS g",
    "SUM(gap) FILTER (WHERE gap <= 1000000000) AS h",
)  # fmt: skip
"""What plain questions measure."""
ALL_PLAIN, SOME_PLAIN = 1.0, 0.15


def words(chance: random.Random, kind: str) -> str:
    """Return a list of constants: mostly few, now and then many."""
    count = chance.choice([2, 4, 5, 6, 8, 12, 40, 300])
    if kind == "N":
        return ", ".join(str(chance.randrange(1000)) for _ in range(count))
    if kind == "D":
        return ", ".join(f"DATE '{2001 + n % 20}-{1 + n % 12:02}-{1 + n % 28:02}'" for n in range(count))
    size = chance.choice([1, 6, 200])
    return ", ".join(f"'{chance.randrange(10**6)}{'w' * size}'" for _ in range(count))


def filled(chance: random.Random, form: str, depth: int) -> str:
    """Fill in what a form leaves open."""
    while "{" in form:
        before, _, rest = form.partition("{")
        slot, _, after = rest.partition("}")
        match slot:
            case "pattern":
                piece = chance.choice(PATTERNS).replace("{", "\0").replace("}", "\1")
            case "window" | "framed" | "frame":
                piece = chance.choice({"window": WINDOWS, "framed": FRAMED, "frame": FRAMES}[slot])
            case _ if slot.startswith("words:"):
                piece = words(chance, slot[-1])
            case _ if depth <= 0:
                piece = chance.choice(LEAVES[slot])
            case _:
                piece = filled(chance, chance.choice((*FORMS[slot], *LEAVES[slot])), depth - 1)
        form = f"{before}{piece}{after}"
    return form


def plain_condition(chance: random.Random, depth: int) -> str:
    """Return a comparison of a number with a constant, or several."""
    if depth and chance.random() < 0.6:
        parts = [plain_condition(chance, depth - 1) for _ in range(2)]
        return f"{chance.choice(['', 'NOT '])}({chance.choice([' AND ', ' OR ']).join(parts)})"
    if chance.random() < 0.1:
        return f"gap IS {chance.choice(['', 'NOT '])}NULL"
    return f"{chance.choice(['sure', 'gap'])} {chance.choice(['<', '>=', '<>'])} {chance.randrange(2_000_000_000)}"


def drawn(chance: random.Random, number: int, plain: float = SOME_PLAIN) -> str:
    """Draw a question that nobody has asked before."""
    if chance.random() < plain:
        measured = ", ".join(chance.sample(PLAIN, chance.choice([1, 1, 2, 3])))
        where = f" WHERE {plain_condition(chance, 2)}" if chance.random() < 0.8 else ""
        own = f"{' AND' if where else ' WHERE'} sure <> {marked(number, 0)}"
        return f"SELECT {measured} FROM t{where}{own}"
    source = filled(chance, chance.choice(SOURCES), chance.choice([0, 1, 1, 2, 3]))
    joined = " AND " if ") t WHERE" in source or source.startswith("t WHERE") else " WHERE "
    source = f"{source}{joined}ab <> 'k{number}'".replace("\0", "{").replace("\1", "}")
    measures = chance.choice(MEASURES)
    if chance.random() < 0.25 and source.startswith("t "):
        keys = chance.choice(KEYS)
        shown = keys.removeprefix("CUBE (").removesuffix(")") if keys.startswith("CUBE") else keys
        limit = "WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 2) " if chance.random() < 0.3 else ""
        return f"SELECT {limit}{shown}, {measures} AS n FROM {source} GROUP BY {keys}"
    return f"SELECT {measures} AS n FROM {source}"


def marked(number: int, turn: int) -> str:
    """Return a constant that no other question has, nor another turn of this one."""
    return f"{number}777{turn:03}"


def asked_anew(text: str, number: int, turn: int) -> str:
    """Return a question that means the same, and that nobody has asked before."""
    return text.replace(f"'k{number}'", f"'k{number}.{turn}'").replace(marked(number, 0), marked(number, turn))


# ---- Measuring -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Measured:
    """What a question took, as a part of what was reserved."""

    ratio: float
    seconds: float
    reserved: float
    times: int
    text: str

    def __str__(self) -> str:
        return f"{self.ratio:6.2f}  took {self.seconds:8.4f} s of {self.reserved:8.4f} s reserved: {self.text[:600]}"


def written(folder: Path, rows: int) -> Path:
    """Write the rows and their catalog, and return the catalog's path."""
    digits = " || ".join(f"md5(i || ' {place}')" for place in range(8))
    with duckdb.connect() as connection:
        connection.execute(ROWS.format(rows=rows, digits=digits, path=folder / "t.parquet", codes=CODES, same=SAME))
    path = folder / "lapwing.toml"
    codes = ", ".join(f'"{SAME}{number:07}"' for number in range(CODES))
    path.write_text(CATALOG.format(rows=rows, codes=codes))
    return path


def functions_of(plans: Sequence[Plan]) -> set[str]:
    """Return the functions that plans compute."""
    expressions = (one for plan in plans for one in expressions_of(plan.question))
    return {node.function for one in expressions for node in walk(one) if isinstance(node, Operation)}


def measured(service: MadeUpService, text: str, number: int, speed: Speed) -> tuple[Measured, set[str]]:
    """Ask a question, and up to twice again if it takes more than is reserved.

    Raises: QueryRefused if it is not answered to people who are not trusted with time.
    """
    delta = 1e-9 if text.rpartition(" GROUP BY ")[2] in PRIVATE else None
    plans = service.plans(text, delta)
    if not any(plans_asked(plan) for plan in plans):
        raise QueryRefused("No row of the table is looked at")
    if any(work_of(plan).excessive for plan in plans):
        raise QueryRefused("One unit could cause too much work")
    reserved, times = cost_of(plans, speed, indexed=True, handed=len(text) <= LONGEST_TEXT).seconds, list[float]()
    for turn in range(3):
        times.append(service.seconds(asked_anew(text, number, turn), delta))
        if times[-1] <= reserved:
            break
    took = min(times)
    one = Measured(ratio=took / reserved, seconds=took, reserved=reserved, times=len(times), text=text)
    return one, functions_of(plans)


def run(
    questions: int, rows: int, seed: int, speed: Speed, plain: float = SOME_PLAIN
) -> tuple[list[Measured], set[str], int]:
    """Return what questions took, the functions that they had, and how many were refused."""
    found, functions, refused, chance, number = list[Measured](), set[str](), 0, random.Random(seed), 0
    with tempfile.TemporaryDirectory(prefix="lapwing-") as folder:
        catalog = load(written(Path(folder), rows))
        make_indexes(catalog)
        with made_up_service(catalog) as service:
            while len(found) < questions:
                number += 1
                text = drawn(chance, number, plain)
                try:
                    one, has = measured(service, text, number, speed)
                except LapwingError as error:
                    refused += 1
                    if refused > 20 * questions + 100:
                        raise SystemExit(f"hardly anything is answered, as {text}: {error}") from None
                    continue
                found.append(one)
                functions |= has
                if one.ratio > 1:
                    print(one, flush=True)
    return found, functions, refused


def main() -> int:
    """Ask, and print what took most of its reservation."""
    parser = argparse.ArgumentParser(description="Compare what questions take with what is reserved for them.")
    parser.add_argument("--questions", type=int, default=3_000)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--plain", action="store_true", help="plain questions alone")
    arguments = parser.parse_args()
    calibration = Calibration()
    for _ in range(3):
        calibration.run()
    speed = calibration.speed
    calibration.close()
    print(f"{speed}", flush=True)
    begun = time.monotonic()
    found, functions, refused = run(
        arguments.questions, arguments.rows, arguments.seed, speed, ALL_PLAIN if arguments.plain else SOME_PLAIN
    )
    found.sort()
    above = sum(one.ratio > 1 for one in found)
    half = found[len(found) // 2].ratio
    took = time.monotonic() - begun
    print(f"{len(found):,} questions, {len(functions)} functions: {took:.0f} s, {refused:,} refused")
    again = sum(one.times > 1 for one in found)
    print(f"{above} took more than was reserved each time, and {again} the first time.", end=" ")
    print(f"Half took less than {half:.2f} of it. The most:")
    for one in found[-20:]:
        print(one)
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
