"""Hypothesis strategies: tables full of awkward values, their neighbours, and questions of every supported shape."""

from datetime import date
from decimal import Decimal
from math import inf, nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import load
from tests.support.replay import Row

CATALOG = """
[dataset]
name = "visits"
engine = "duckdb"
ledger = "sqlite:ledger.db"

[budget]
epsilon = {epsilon}
delta = {delta}
measure = "{measure}"
neighbouring = "{neighbouring}"

[tables.visits]
source = "visits.parquet"
privacy_unit = "{unit}"
{rows}
{people}

[tables.visits.columns]
plan = {{ type = "string", values = ["a", "b", "it's"]{other} }}
member = {{ type = "boolean" }}
age = {{ type = "integer", lower = 0, upper = 110{age} }}
cost = {{ type = "float", lower = -10, upper = 100 }}
score = {{ type = "integer" }}
note = {{ type = "string" }}
day = {{ type = "date", values = [2026-01-01, 2026-01-02] }}
pay = {{ type = "decimal", lower = 0, upper = 50, step = 0.01 }}

[tables.codes]
source = "codes.parquet"
public = true

[tables.codes.columns]
plan = {{ type = "string" }}
factor = {{ type = "integer" }}

[tables.floors]
source = "floors.parquet"
public = true

[tables.floors.columns]
plan = {{ type = "string" }}
floor = {{ type = "integer" }}
"""

PERSONS = [1, 2, 3, 4]


def catalog_in(
    folder: Path,
    *,
    measure: str = "gdp",
    neighbouring: str = "add_remove",
    unit: str = "person",
    rows_per_unit: int = 2,
    other: bool = False,
    people: int | None = None,
) -> Catalog:
    """Write a catalog into a folder and load it; where it says how many people there are, none lacks an age."""
    path = folder / "lapwing.toml"
    codes = {"plan": ["a", "a", "b", None], "factor": [0, 30, 30, 110]}
    pq.write_table(pa.table(codes), folder / "codes.parquet")
    floors = {"plan": ["a", "b", "it's", "z"], "floor": [1, 2, 2, 9]}
    pq.write_table(pa.table(floors), folder / "floors.parquet")
    path.write_text(
        CATALOG.format(
            epsilon="1000",
            delta="0" if measure == "pure" else "1e-6",
            measure=measure,
            neighbouring=neighbouring,
            unit=unit,
            rows="" if unit == "row" else f"max_rows_per_unit = {rows_per_unit}",
            people=f"people = {people}" if people else "",
            age=", nullable = false" if people else "",
            other=', other = "rest"' if other else "",
        )
    )
    return load(path)


def rows(person: st.SearchStrategy[int | None]) -> st.SearchStrategy[Row]:
    """One row, its values chosen from the ordinary and the awkward."""
    return st.fixed_dictionaries(
        {
            "person": person,
            "plan": st.sampled_from(["a", "b", "it's", "c", "", None]),
            "member": st.sampled_from([True, False, None]),
            "age": st.sampled_from([0, 1, 30, 110, 111, -1, 2**31 - 1, -(2**31), None]),
            "cost": st.sampled_from(
                [0.0, -0.0, 5e-324, 1.005, 99.99, 100.0, -10.0, 1e308, -1e308, inf, -inf, nan, None]
            ),
            "score": st.sampled_from([0, 7, -3, 2**63 - 1, -(2**63), None]),
            "note": st.sampled_from(["", "x", "ab%", "a_b", "Ünï", "12", "nan", "1e999", None]),
            "day": st.sampled_from([date(2026, 1, 1), date(2026, 1, 2), date(1, 1, 1), date(9999, 12, 31), None]),
            "pay": st.sampled_from(
                [
                    Decimal("0.00"),
                    Decimal("49.995").quantize(Decimal("0.01")),
                    Decimal("-5.00"),
                    Decimal("9999999999.99"),
                    None,
                ]
            ),
        }
    )


tables = st.lists(rows(st.sampled_from([*PERSONS, None])), max_size=14)
newcomers = st.lists(rows(st.just(PERSONS[0])), min_size=1, max_size=5)


# ---- questions -------------------------------------------------------------------------------------------------------

numbers: st.SearchStrategy[str] = st.deferred(
    lambda: st.one_of(
        st.sampled_from(["age", "cost", "pay", "1", "0.5", "-2", "100"]),
        st.builds("({} {} {})".format, numbers, st.sampled_from("+-*/"), numbers),
        st.builds("ABS({})".format, numbers),
        st.builds("-{}".format, numbers),
        st.builds("ROUND({}, {})".format, numbers, st.sampled_from(["0", "1"])),
        st.builds("FLOOR({})".format, numbers),
        st.builds("CEIL({})".format, numbers),
        st.builds("COALESCE({}, {})".format, numbers, numbers),
        st.builds("LEAST(GREATEST({}, -5), 60)".format, st.one_of(numbers, st.just("score"))),
        st.builds("CASE WHEN {} THEN {} ELSE {} END".format, conditions, numbers, numbers),
        st.builds("CASE plan WHEN 'a' THEN {} END".format, numbers),
        st.builds("CAST({} AS INTEGER)".format, st.sampled_from(["member", "cost", "age"])),
        st.just("LEAST(GREATEST(TRY_CAST(note AS DOUBLE), 0), 20)"),
        st.builds("({} {} {})".format, numbers, st.sampled_from(["%", "//"]), st.sampled_from(["7", "age", "pay"])),
        st.builds("{}({})".format, st.sampled_from(["SIGN", "TRUNC", "SQRT", "LN"]), numbers),
        st.builds("NULLIF({}, {})".format, numbers, numbers),
        st.builds("IF({}, {}, {})".format, conditions, numbers, numbers),
        st.builds("WIDTH_BUCKET({}, 0, 50, 4)".format, numbers),
        st.sampled_from(
            [
                "MONTH(day)",
                "DATE_DIFF('week', day, DATE '2026-03-31')",
                "YEAR(DATE_TRUNC('year', day))",
                "DAY(LAST_DAY(day + INTERVAL 1 MONTH))",
                "LEAST(LENGTH(CONCAT(note, plan)), 5)",
                "STRPOS(LEFT(note, 3), 'b')",
            ]
        ),
    )
)
conditions: st.SearchStrategy[str] = st.deferred(
    lambda: st.one_of(
        st.sampled_from(
            [
                "member",
                "plan = 'a'",
                "plan <> 'it''s'",
                "note LIKE 'a%'",
                "note IS NOT NULL",
                "day >= '2026-01-02'",
                "score > 0.5",
                "age IN (0, 30, 110)",
                "plan NOT IN ('a', 'c')",
                "cost BETWEEN 0 AND 99.99",
                "member IS NOT TRUE",
                "note < 'b'",
                "note NOT LIKE '%_b%'",
                "age NOT BETWEEN 1 AND pay",
                "age IS DISTINCT FROM score",
                "UPPER(note) || plan = 'AB%a'",
                "note ILIKE 'AB!%' ESCAPE '!'",
                "REGEXP_MATCHES(note, '^[a-z]+.?b')",
                "STRFTIME(day, '%Y-%m') = '2026-01'",
                "TRY_CAST(note AS INTEGER) > 7",
                "XOR(member, plan = 'a')",
            ]
        ),
        st.builds("{} {} {}".format, numbers, st.sampled_from(["<", "<=", "=", "<>", ">", ">="]), numbers),
        st.builds("({} AND {})".format, conditions, conditions),
        st.builds("({} OR {})".format, conditions, conditions),
        st.builds("NOT ({})".format, conditions),
        st.builds("({}) IS NULL".format, numbers),
    )
)
unbounded = st.sampled_from(["score", "age - 2 * score", "TRY_CAST(note AS DOUBLE)", "cost / age", "pay"])
aggregates = st.one_of(
    st.just("COUNT(*)"),
    st.just("COUNT(DISTINCT person)"),
    st.just("COUNT(person)"),
    st.builds("COUNT({})".format, st.one_of(numbers, st.sampled_from(["note", "day", "score"]))),
    st.builds("SUM({})".format, numbers),
    st.builds("SUM(DISTINCT {})".format, numbers),
    st.builds("AVG({})".format, numbers),
    st.builds("{}({}, contribution_bounds_per_row => AUTO)".format, st.sampled_from(["SUM", "AVG"]), unbounded),
)
derived = st.one_of(
    aggregates,
    st.builds("{} / {}".format, aggregates, aggregates),
    st.builds("ROUND({} + 2 * {}, 1)".format, aggregates, aggregates),
    st.builds("COALESCE({}, 0)".format, aggregates),
    st.builds("CASE WHEN {} > 1 THEN {} END".format, aggregates, aggregates),
)


PUBLIC = "(SELECT visits.*, factor FROM visits LEFT JOIN codes ON visits.plan = codes.plan)"
COLUMNS = "plan, member, age, cost, score, note, day, pay"
SOURCES = [
    *["visits"] * 6,
    PUBLIC,
    "(SELECT * FROM visits WHERE age < 100)",
    "(SELECT DISTINCT * FROM visits)",
    f"(SELECT person, {COLUMNS} FROM visits UNION ALL SELECT person, {COLUMNS} FROM visits WHERE member)",
    f"(SELECT person, {COLUMNS}, COUNT(*) AS n FROM visits GROUP BY ALL HAVING n > 1)",
    "(SELECT * FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY person ORDER BY cost DESC) = 1)",
    "(SELECT *, SUM(age) OVER (PARTITION BY person ORDER BY pay) AS k FROM visits)",
    "(SELECT * FROM visits WHERE plan NOT IN (SELECT plan FROM codes WHERE factor > 20))",
    "(SELECT * FROM visits JOIN codes USING (plan))",
    "(SELECT DISTINCT person, id, plan, member, FIRST_VALUE(age) OVER (PARTITION BY person, id ORDER BY age) AS age, "
    "cost, score, note, day, pay FROM (SELECT *, GEN_RANDOM_UUID() AS id FROM visits))",
    "(SELECT visits.*, factor FROM codes JOIN visits ON visits.age >= codes.factor AND visits.age < codes.factor + 31)",
    "(SELECT visits.*, floor FROM visits LEFT JOIN floors ON cost > floor AND (cost <= 2 * floor OR member))",
]


@st.composite
def rankings(draw: Any) -> str:
    """The groups in which a number is largest or least, alone."""
    keys = ", ".join(draw(st.lists(st.sampled_from(["plan", "member"]), unique=True, min_size=1)))
    number = draw(
        st.sampled_from(
            [
                *(
                    "COUNT(*)",
                    "COUNT(score)",
                    "COUNT(DISTINCT person)",
                    "COUNT(DISTINCT score)",
                    "SUM(DISTINCT age - 40)",
                    "SUM(age)",
                ),
                *("SUM(age - 40)", "SUM(age, contribution_bounds_per_group => (10, 50))"),
            ]
        )
    )
    where = f" WHERE {draw(conditions)}" if draw(st.booleans()) else ""
    limited = draw(st.sampled_from(["", "WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1) "]))
    end = f"ORDER BY {number} {draw(st.sampled_from(['ASC', 'DESC']))} LIMIT {draw(st.integers(1, 3))}"
    return f"SELECT {limited}{keys} FROM visits{where} GROUP BY {keys} {end}"


@st.composite
def thresholds(draw: Any) -> str:
    """The first of several numbers that passes a threshold."""
    numbers = ["COUNT(*)", "COUNT_IF(member)", "COUNT(DISTINCT person)", "COUNT(score)", "SUM(age)", "SUM(age - 40)"]
    chosen = draw(st.lists(st.sampled_from(numbers), unique=True, min_size=3))
    compared = [f"{number} {draw(st.sampled_from(['<', '>=']))} {draw(st.integers(-5, 60))}" for number in chosen]
    return f"SELECT ABOVE_THRESHOLD({', '.join(compared)}) AS first FROM visits"


@st.composite
def means(draw: Any) -> str:
    """Means over everybody, of a number that nobody lacks, and such as only look like them."""
    whole = ["age", "COALESCE(pay, 7)", "CASE WHEN member THEN 1 ELSE 0 END", "member = (note = 'x') OR age > 30"]
    number = draw(st.sampled_from([*whole, "CASE WHEN age > 30 THEN 1 ELSE 0 END", "pay", "age - 40"]))
    where = draw(st.sampled_from(["", "", "", " WHERE member", " WHERE age < 30 OR plan = 'a'"]))
    only = draw(st.sampled_from(["", "", "", " FILTER (WHERE note IS NOT NULL)"]))
    beside = draw(st.sampled_from(["", "", ", COUNT(*) AS n", ", SUM(age) AS s", ", VAR_POP(age) AS v"]))
    keys = draw(st.sampled_from(["", "", "", "", "member"]))
    grouped = f" GROUP BY {keys}" if keys else ""
    return f"SELECT {keys}{', ' if keys else ''}AVG({number}){only} AS m{beside} FROM visits{where}{grouped}"


@st.composite
def questions(draw: Any, sources: list[str] | None = None) -> str:
    """A whole question: every clause that is answered, in every combination."""
    source = draw(st.sampled_from(sources or SOURCES))
    keys = draw(st.lists(st.sampled_from(["plan", "member", "day"]), unique=True, max_size=2))
    outputs = [f"{draw(derived)} AS c{i}" for i in range(draw(st.integers(1, 3)))]
    where = f" WHERE {draw(conditions)}" if draw(st.booleans()) else ""
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    having = f" HAVING {draw(aggregates)} > {draw(st.integers(-3, 3))}" if draw(st.integers(0, 3)) == 0 else ""
    order = f" ORDER BY c0 {draw(st.sampled_from(['ASC', 'DESC', 'DESC NULLS FIRST']))}" if draw(st.booleans()) else ""
    limit = f" LIMIT {draw(st.integers(0, 4))}" if draw(st.integers(0, 3)) == 0 else ""
    return f"SELECT {', '.join([*keys, *outputs])} FROM {source}{where}{group}{having}{order}{limit}"
