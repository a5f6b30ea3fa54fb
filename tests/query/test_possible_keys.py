"""Cells that are left out are empty for every content of the protected tables, and those that stay are not.

Both by brute force: a question's cells beside the keys that plain DuckDB finds, on many contents of a protected table.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.answer.notes import NO_POSSIBLE_ROWS, code_of
from lapwing.catalog.toml import load
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.errors import QueryRefused
from lapwing.query.aggregates import possible_keys
from lapwing.query.aggregates.group_by import Sets
from lapwing.query.bind.bind import bind
from lapwing.query.expressions.expression import ColumnReference, Expression, Operation, columns_of
from lapwing.query.measures.measures import Key
from lapwing.query.plan.composition import plans_asked
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.relations import public_view
from lapwing.query.relations.bounded_values import all_values
from lapwing.query.relations.public_rows import JoinedRows, ListedValues
from lapwing.query.relations.public_view import PublicView
from lapwing.release.cells import cells_of
from lapwing.release.rare_notes import notes_on_unmatched
from lapwing.release.stored import key_of
from tests.support.effort import one_in, only
from tests.support.refusals import refused_as

CATALOG = """
[dataset]
name = "shop"
engine = "duckdb"
ledger = "sqlite:shop.lapwing.db"

[budget]
epsilon = 1000
delta = 1e-6
measure = "gdp"
neighbouring = "add_remove"

[tables.sales]
source = "sales.parquet"
privacy_unit = "person"
max_rows_per_unit = 4

[tables.sales.columns]
part = { type = "integer", lower = 0, upper = 9 }
plan = { type = "string", values = ["a", "b", "c"] }
state = { type = "string", values = ["N", "S"], other = "else" }
town = { type = "string" }
age = { type = "integer", lower = 0, upper = 11 }
day = { type = "date", lower = 2023-11-01, upper = 2024-02-29 }
seen = { type = "timestamp", lower = 2023-11-01T00:00:00Z, upper = 2024-02-29T18:00:00Z }
pay = { type = "integer", lower = 0, upper = 200_000 }

[tables.parts]
source = "parts.parquet"
public = true

[tables.parts.columns]
id = { type = "integer" }
category = { type = "string" }
maker = { type = "integer" }
weight = { type = "integer" }

[tables.makers]
source = "makers.parquet"
public = true

[tables.makers.columns]
number = { type = "integer" }
country = { type = "string" }
"""
PARTS = {
    "id": [1, 2, 3, 4, 5, 6, 7, 12, None],
    "category": ["x", "x", "y", "y", "z", None, "z", "far", "none"],
    "maker": [1, 2, 1, 3, 3, 1, 4, 1, 2],
    "weight": [5, 6, 5, 7, 7, 5, 8, 9, 9],
}
MAKERS = {"number": [1, 2, 3], "country": ["NL", "BE", None]}

TIGHT = [
    "SELECT plan, COUNT(*) FROM sales WHERE plan IN ('a', 'c') GROUP BY plan",
    "SELECT plan, COUNT(*) FROM sales WHERE plan <> 'a' AND age > 3 GROUP BY plan",
    "SELECT plan, COUNT(*) FROM sales WHERE plan = 'a' OR age > 7 GROUP BY plan",
    "SELECT plan, COUNT(*) FROM sales WHERE NOT (plan = 'a' OR town = 'Ulm') GROUP BY plan",
    "SELECT plan, COUNT(*) FROM sales WHERE NOT (plan = 'a' AND town = 'Ulm') GROUP BY plan",
    "SELECT plan, age, COUNT(*) FROM sales WHERE (plan = 'a' AND age < 3) OR (plan = 'b' AND age > 9) GROUP BY 1, 2",
    "SELECT state, COUNT(*) FROM sales WHERE state = 'N' GROUP BY 1",
    "SELECT state, COUNT(*) FROM sales WHERE state IN ('N', 'W') GROUP BY 1",
    "SELECT state, COUNT(*) FROM sales WHERE state <> 'N' OR age = 2 GROUP BY 1",
    "SELECT FLOOR(age / 3) AS g, COUNT(*) FROM sales WHERE age BETWEEN 4 AND 7 GROUP BY 1",
    "SELECT FLOOR(age / 11) AS g, COUNT(*) FROM sales WHERE age > 5 GROUP BY 1",
    "SELECT age - age % 4 AS g, COUNT(*) FROM sales GROUP BY 1",
    "SELECT DATE_TRUNC('month', day) AS m, COUNT(*) FROM sales WHERE day >= '2023-12-15' AND day < '2024-02-01' "
    "GROUP BY 1",
    "SELECT DATE_TRUNC('month', seen) AS m, COUNT(*) FROM sales WHERE seen >= '2023-12-31 12:00:00' AND seen < "
    "'2024-02-01' GROUP BY 1",
    "SELECT EXTRACT(YEAR FROM seen) AS y, MONTH(seen) AS m, COUNT(*) FROM sales WHERE seen > DATE '2023-11-30' "
    "GROUP BY 1, 2",
    "SELECT CAST(seen AS DATE) AS d, COUNT(*) FROM sales WHERE seen BETWEEN '2024-01-02 18:00:00' AND "
    "'2024-01-04 00:00:00' GROUP BY 1",
    "SELECT FLOOR(pay / 50000) AS g, COUNT(*) FROM sales WHERE pay >= 60000 AND NOT pay > 149999 GROUP BY 1",
    "SELECT EXTRACT(YEAR FROM day) AS y, EXTRACT(MONTH FROM day) AS m, COUNT(*) FROM sales GROUP BY 1, 2",
    "SELECT category, maker, COUNT(*) FROM sales JOIN parts ON part = id GROUP BY 1, 2",
    "SELECT category, COUNT(*) FROM sales JOIN parts ON part = id WHERE weight < 6 GROUP BY 1",
    "SELECT country, COUNT(*) FROM sales JOIN parts ON part = id JOIN makers ON maker = number GROUP BY 1",
    "SELECT category, country, COUNT(*) FROM sales JOIN parts ON part = id JOIN makers ON maker = number GROUP BY 1, 2",
    "SELECT category, m.country, COUNT(*) FROM sales JOIN parts ON part = id LEFT JOIN makers AS m ON maker = number "
    "GROUP BY 1, 2",
    "SELECT category, COALESCE(country, '?') AS c, COUNT(*) FROM sales JOIN parts ON part = id "
    "LEFT JOIN makers ON maker = number GROUP BY 1, 2",
    "SELECT COALESCE(category, 'none') AS c, COUNT(*) FROM sales LEFT JOIN parts ON part = id GROUP BY 1",
    "SELECT COALESCE(category, 'none') AS c, COUNT(*) FROM sales LEFT JOIN parts ON part = id AND weight = 5 "
    "GROUP BY 1",
    "SELECT COALESCE(weight, 4) AS w, COUNT(*) FROM sales LEFT JOIN parts ON part = id GROUP BY 1",
    "SELECT part, COUNT(*) FROM sales JOIN parts ON part = id WHERE category = 'x' GROUP BY 1",
    "SELECT part, COUNT(*) FROM sales WHERE part IN (SELECT id FROM parts WHERE category IN ('x', 'z')) GROUP BY 1",
    "SELECT p.category, q.weight, COUNT(*) FROM sales JOIN parts AS p ON part = p.id JOIN parts AS q ON part = q.id "
    "GROUP BY 1, 2",
    "SELECT p.category, q.weight, COUNT(*) FROM sales JOIN parts AS p ON part = p.id JOIN parts AS q ON age = q.id "
    "WHERE p.maker = 1 AND q.maker < 3 GROUP BY 1, 2",
    "SELECT SUBSTRING(category, 1, 1) AS c, COUNT(*) FROM sales JOIN parts ON part = id GROUP BY 1",
    "SELECT plan, category, COUNT(*) FROM sales JOIN parts ON part = id "
    "WHERE (category = 'x' AND town = 'Ulm') OR (category = 'y' AND plan = 'a') GROUP BY 1, 2",
    "SELECT category, weight, COUNT(*) FROM sales JOIN parts ON part = id WHERE maker = 1 "
    "GROUP BY ROLLUP (category, weight)",
    "SELECT plan, UPPER(plan) AS p, COUNT(*) FROM sales WHERE plan = 'a' OR plan < 'a' "
    "GROUP BY GROUPING SETS ((plan, UPPER(plan)), ())",
    "SELECT g, COUNT(*) FROM (SELECT person, MAX(age) AS g FROM sales GROUP BY person) WHERE g > 8 GROUP BY g",
    "SELECT category, COUNT(*) FROM (SELECT person, category FROM sales JOIN parts ON part = id WHERE weight > 6) "
    "GROUP BY category",
    "SELECT category, c, COUNT(*) FROM (SELECT person, category, weight, COUNT(*) AS c FROM sales JOIN parts "
    "ON part = id GROUP BY person, category, weight) WHERE weight = 5 AND c < 3 GROUP BY category, c",
    "SELECT category, COUNT(part) FROM parts LEFT JOIN sales ON part = id AND maker = 1 GROUP BY 1",
    "SELECT category, COUNT(part) FROM parts LEFT JOIN sales ON part = id WHERE maker = 1 GROUP BY 1",
    "SELECT a.plan, b.plan AS other, COUNT(*) FROM sales AS a JOIN sales AS b ON a.person = b.person "
    "AND a.plan = b.plan GROUP BY 1, 2",
]
"""Every cell of these has rows for some content."""
SOUND = [
    "SELECT country, plan, COUNT(*) FROM sales JOIN makers ON part = number WHERE number = 3 "
    "GROUP BY GROUPING SETS ((country), (plan))",
    "SELECT category, country, COUNT(*) FROM sales LEFT JOIN makers ON part = number JOIN parts ON part = id "
    "GROUP BY 1, 2",
    "SELECT UPPER(plan) AS p, COUNT(*) FROM sales WHERE plan < 'B' OR plan = 'a' GROUP BY 1",
    "SELECT plan, UPPER(plan) AS p, COUNT(*) FROM sales WHERE plan < 'B' OR plan = 'a' "
    "GROUP BY GROUPING SETS ((plan), (UPPER(plan)))",
    "SELECT EXTRACT(HOUR FROM seen) AS h, COUNT(*) FROM sales WHERE seen >= '2024-02-29 12:00:00' GROUP BY 1",
    "SELECT DATE_TRUNC('month', seen + INTERVAL 1 HOUR) AS h, COUNT(*) FROM sales WHERE seen > '2024-01-31' GROUP BY 1",
    "SELECT plan, age, COUNT(*) FROM sales WHERE plan < 'a' OR age > 9 GROUP BY GROUPING SETS ((plan), (age))",
    "SELECT category, COUNT(*) FROM sales JOIN parts ON part = id WHERE id NOT IN (SELECT number FROM makers) "
    "GROUP BY 1",
    "SELECT COALESCE(weight, 4) AS w, COUNT(*) FROM sales LEFT JOIN parts ON part = id AND town = category GROUP BY 1",
    "SELECT COALESCE(country, '?') AS c, COUNT(*) FROM sales LEFT JOIN makers ON part = number AND age = number "
    "GROUP BY 1",
    "SELECT category, COALESCE(country, '?') AS c, COUNT(*) FROM sales JOIN parts ON part = id "
    "LEFT JOIN makers ON maker = number AND age = number GROUP BY 1, 2",
    "SELECT category, COALESCE(country, '?') AS c, COUNT(*) FROM sales LEFT JOIN parts ON part = id "
    "LEFT JOIN makers ON maker = number GROUP BY 1, 2",
    "SELECT p.category, q.country, COUNT(*) FROM sales JOIN parts AS p ON part = p.id JOIN makers AS q "
    "ON age = q.number WHERE p.weight > q.number + 4 GROUP BY 1, 2",
    "SELECT plan, COUNT(*) FROM (SELECT person, plan FROM sales WHERE age > 3 UNION ALL SELECT person, plan "
    "FROM sales WHERE plan = 'b') WHERE plan < 'c' GROUP BY plan",
]
"""Of these no cell with rows is left out."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("possible")
    (folder / "lapwing.toml").write_text(CATALOG)
    pq.write_table(pa.table(PARTS), folder / "parts.parquet")
    pq.write_table(pa.table(MAKERS), folder / "makers.parquet")
    pq.write_table(content(random.Random(0)), folder / "sales.parquet")
    return folder


def content(chance: random.Random) -> pa.Table:
    """Rows of a protected table, with NULLs and values that nobody listed."""
    size = 400
    days = [date(2023, 11, 1) + timedelta(days=n) for n in range(121)]
    moments = [datetime(2023, 11, 1) + timedelta(hours=6 * n) for n in range(484)]
    return pa.table(
        {
            "person": [n // 4 for n in range(size)],
            "part": chance.choices([*range(10), 12, None], k=size),
            "plan": chance.choices(["a", "b", "c", "A", "Z", None], k=size),
            "state": chance.choices(["N", "S", "W", "E", None], k=size),
            "town": chance.choices(["Ulm", "Bonn", None], k=size),
            "age": chance.choices([*range(13), None], k=size),
            "day": chance.choices([*days, None], k=size),
            "seen": chance.choices([*moments, None], k=size),
            "pay": chance.choices([*range(0, 200_001, 5_000), None], k=size),
        }
    )


@pytest.fixture(scope="module")
def facts(folder: Path) -> Iterator[PublicData]:
    facts = PublicData(load(folder / "lapwing.toml"))
    yield facts
    facts.close()


@pytest.fixture(scope="module")
def contents() -> Iterator[duckdb.DuckDBPyConnection]:
    """Plain DuckDB over eight contents, one after the other: `sales` is the union of them, each with its own people."""
    connection = duckdb.connect()
    connection.register("parts", pa.table(PARTS))
    connection.register("makers", pa.table(MAKERS))
    tables = [content(random.Random(seed)).append_column("seed", pa.array([seed] * 400)) for seed in range(8)]
    connection.register("every", pa.concat_tables(tables))
    connection.execute("CREATE TABLE sales AS SELECT * REPLACE (seed * 1000 + person AS person) FROM every")
    yield connection
    connection.close()


def every_cell(sets: Sets, *_: object, **_given: object) -> tuple[Sets, tuple[()], None]:
    """Leave nothing out."""
    return sets, (), None


def plans(text: str, folder: Path, facts: PublicData) -> tuple[Plan, Plan]:
    """Return a plan, and the plan with every cell."""
    catalog = load(folder / "lapwing.toml")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(possible_keys, "possible_keys", every_cell)
        wide = bind(text, catalog, facts)
    return bind(text, catalog, facts), wide


def in_order(plan: Plan) -> set[tuple[Any, ...]]:
    """Return the cells of an answer, their values in the order of GROUP BY."""
    names = [str(key) for key in plan.question.keys]
    places = [names.index(str(key)) for key in plan.keys]
    return {tuple(cell[place] for place in places) for cell in cells_of(plan.question)}


def with_rows(text: str, wide: Plan, plain: duckdb.DuckDBPyConnection) -> set[tuple[Any, ...]]:
    """Return the keys that rows have: values that are listed, if any are, and NULL where a grouping set has no key."""
    patterns = {tuple(key in grouped for key in wide.keys) for grouped in wide.question.sets or (wide.keys,)}
    found = set()
    for row in plain.execute(text).fetchall():
        values = [value_of(key, constant(v)) for key, v in zip(wide.keys, row, strict=False)]
        if tuple(value is not None for value in values) in patterns:
            known = zip(wide.keys, values, strict=True)
            if all(value is None or key.private or value in key.domain for key, value in known):
                found.add(tuple(values))
    return found


def value_of(key: Key, value: Any) -> Any:
    return key.other if key.other is not None and value not in (key.values or ()) else value


def constant(value: Any) -> Any:
    return Fraction(value) if isinstance(value, int) and not isinstance(value, bool) else value


def left_out(text: str, folder: Path, facts: PublicData, plain: duckdb.DuckDBPyConnection) -> set[tuple[Any, ...]]:
    """Return the keys with rows that are no cells."""
    plan, wide = plans(text, folder, facts)
    return with_rows(text, wide, plain) - in_order(plan)


@pytest.mark.parametrize("text", one_in(8, [*TIGHT, *SOUND]))
def test_no_cell_that_can_have_rows_is_left_out(
    text: str, folder: Path, facts: PublicData, contents: duckdb.DuckDBPyConnection
) -> None:
    assert left_out(text, folder, facts, contents) == set()


@pytest.mark.parametrize("text", only([0], TIGHT))
def test_no_cell_is_kept_that_can_have_none(
    text: str, folder: Path, facts: PublicData, contents: duckdb.DuckDBPyConnection
) -> None:
    plan, wide = plans(text, folder, facts)
    kept = {row for row in in_order(plan) if not (text in OUTER and row[0] in ("none", "far"))}
    assert kept <= with_rows(text, wide, contents)
    assert plan.question.cells is not None
    assert plan.question.cells == len(cells_of(plan.question)) == plan.question.combinations


OUTER = [text for text in TIGHT if "FROM parts LEFT JOIN" in text]
"""These are written to show public rows that match nobody."""


@pytest.mark.parametrize("text", one_in(8, [text for text in TIGHT if " WHERE " in text or "JOIN" in text]))
def test_fewer_cells_are_left(text: str, folder: Path, facts: PublicData) -> None:
    plan, wide = plans(text, folder, facts)
    assert in_order(plan) <= in_order(wide) or wide.question.private_keys
    assert prod(len(key.domain) for key in plan.keys) <= prod(len(key.domain) or 100 for key in wide.keys)


BEYOND = [
    "SELECT plan, COUNT(*) FROM sales WHERE age = -99 OR plan = 'a' GROUP BY plan",
    "SELECT plan, COUNT(*) FROM sales WHERE age > 11 GROUP BY plan",
    "SELECT plan, part, COUNT(*) FROM sales WHERE (age < 0 AND plan = 'b') OR (part = 3 AND age > 8) GROUP BY 1, 2",
    "SELECT age, plan, COUNT(*) FROM sales WHERE age <> -99 GROUP BY GROUPING SETS ((age), (plan))",
    "SELECT age, COUNT(*) FROM sales WHERE age IN (0, 11, 200) GROUP BY age",
    "SELECT FLOOR(age / 3) AS g, COUNT(*) FROM sales WHERE age BETWEEN 0 AND 7 GROUP BY 1",
    "SELECT g, COUNT(*) FROM (SELECT person, MIN(age) AS g FROM sales GROUP BY person) WHERE g < 3 GROUP BY g",
    "SELECT category, COUNT(*) FROM sales JOIN parts ON age = id WHERE age > 4 GROUP BY 1",
    "SELECT CASE WHEN age = -99 THEN 'missing' WHEN age > 150 THEN 'old' ELSE 'other' END AS g, COUNT(*) FROM sales "
    "GROUP BY 1",
    "SELECT CASE WHEN age + 1 = -98 THEN 'missing' ELSE 'there' END AS g, COUNT(*) FROM sales GROUP BY 1",
    "SELECT age < 0 AS g, COUNT(*) FROM sales WHERE age <> 3 GROUP BY 1",
    "SELECT COALESCE(NULLIF(age, -99), 11) AS g, COUNT(*) FROM sales WHERE age < 0 OR age = 5 GROUP BY 1",
    "SELECT plan, COUNT(*) FROM (SELECT person, plan, age FROM sales UNION ALL SELECT person, plan, part FROM sales) "
    "WHERE age = 200 OR plan = 'c' GROUP BY plan",
]
"""Questions about numbers beyond their bounds, which are in no listed group, and meet conditions on what was read."""


@pytest.fixture(scope="module")
def beyond(contents: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    connection = contents.cursor()
    connection.register("parts", pa.table(PARTS))
    ages = "CASE person % 5 WHEN 0 THEN -99 WHEN 1 THEN 200 WHEN 2 THEN 12 ELSE age END"
    connection.execute(f"CREATE TEMP TABLE sales AS SELECT * REPLACE ({ages} AS age) FROM memory.sales")
    yield connection
    connection.close()


@pytest.mark.parametrize("text", one_in(2, BEYOND))
def test_no_cell_that_numbers_beyond_the_bounds_fill_is_left_out(
    text: str, folder: Path, facts: PublicData, beyond: duckdb.DuckDBPyConnection
) -> None:
    assert left_out(text, folder, facts, beyond) == set()


def test_twin_a_view_in_which_all_numbers_are_within_bounds_is_noticed(
    folder: Path, facts: PublicData, beyond: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_variable(view: PublicView, _shown: object) -> tuple[PublicView, dict[str, ListedValues]]:
        own = {next(iter(columns_of(v))): ColumnReference(name=n, type=v.type) for n, v in view.clamped.items()}
        return replace(view, conditions=tuple(public_view.over(part, own) for part in view.conditions)), {}

    monkeypatch.setattr(possible_keys, "_of_read", one_variable)

    def wrong(text: str) -> bool:
        try:
            return left_out(text, folder, facts, beyond) != set()
        except QueryRefused:
            return True

    assert any(map(wrong, BEYOND))


# ---- bugs that are planted -------------------------------------------------------------------------------------------


def without_branches(condition: Expression, is_public: Callable[[Expression], bool]) -> tuple[Expression, ...]:
    """Weaken OR as though a branch that is not public could not be true."""
    if isinstance(condition, Operation) and condition.function == "or":
        return tuple(part for argument in condition.arguments for part in WEAKENED(argument, is_public))[:1]
    return WEAKENED(condition, is_public)


WEAKENED = public_view.weakened


def always_found(self: Any, table: JoinedRows) -> JoinedRows:
    """Take the row of a LEFT JOIN for one that is always there."""
    return JoinedRows(rows=table.rows, variables=table.variables)


def all_sets_at_once(sets: Sets, *more: Any) -> Any:
    """Leave out of every set what the keys of the others leave out."""
    together = tuple(dict.fromkeys(key for grouped in sets for key in grouped))
    ((narrowed,), combined, _) = ACTUAL((together,), *more)
    new = dict(zip(map(str, together), narrowed, strict=True))
    return tuple(tuple(new[str(key)] for key in grouped) for grouped in sets), () if len(sets) > 1 else combined, None


ACTUAL = possible_keys.possible_keys


def all_but_the_last(**given: Any) -> ListedValues:
    """Take a number's bounds for one step narrower than they are, beside the step beyond them."""
    if "between" in given:
        first, last = given["between"]
        given["between"] = (first, last - 2)
    return ListedValues(**given)


def days_alone(variable: ColumnReference, asked: Sequence[Expression], *_: Any, **_given: Any) -> ListedValues | None:
    """Forget the moments that a timestamp is compared with."""
    listed = all_values(variable, asked)
    days = () if listed is None else tuple(v for v in listed.values if isinstance(v, datetime) and not v.hour)
    return listed if listed is None or not days else ListedValues(variable=variable, values=days)


@pytest.mark.parametrize(
    ("place", "name", "bug"),
    only(
        [0],
        [
            (possible_keys, "weakened", without_branches),
            (possible_keys._Finder, "_of_public", always_found),
            (possible_keys, "possible_keys", all_sets_at_once),
            (possible_keys, "public_view", lambda selection, _kept: public_view.public_view(selection, {})),
            (possible_keys, "ListedValues", all_but_the_last),
            (possible_keys, "all_values", days_alone),
        ],
        many=True,
    ),
)
def test_a_planted_bug_is_found(
    place: Any,
    name: str,
    bug: Any,
    folder: Path,
    facts: PublicData,
    contents: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(place, name, bug)

    def is_found(text: str) -> bool:
        try:
            return bool(left_out(text, folder, facts, contents))
        except lw.LapwingError:
            return False

    assert any(map(is_found, [*TIGHT, *SOUND]))


def test_twin_an_empty_result_to_which_rows_belong_is_found(
    folder: Path, facts: PublicData, contents: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: no combination of keys is ever possible, so that a result with rows is shown as empty, and free."""
    text = "SELECT plan, COUNT(*) FROM sales WHERE plan < 'c' GROUP BY plan"
    assert not left_out(text, folder, facts, contents)
    monkeypatch.setattr(PublicData, "combinations", lambda *_: ())
    assert not plans_asked(plans(text, folder, facts)[0])
    assert left_out(text, folder, facts, contents)


def test_no_text_is_searched_often_before_a_price_is_known(folder: Path, facts: PublicData) -> None:
    text = "SELECT FLOOR(pay / 50000) AS g, COUNT(*) FROM sales WHERE {} GROUP BY 1"
    searched = "REGEXP_MATCHES(CAST(pay AS VARCHAR), '^1') AND LENGTH(LPAD(CAST(pay AS VARCHAR), 200, 'ab')) > 3"
    plan, wide = plans(text.format(searched), folder, facts)
    assert plan.question.cells == wide.question.cells == 5
    plan, _ = plans(text.format("pay % 100 = 7 AND pay < 60000"), folder, facts)
    assert plan.question.cells == 2


# ---- what is said ----------------------------------------------------------------------------------------------------


EMPTY = [
    "SELECT plan, COUNT(*) AS n FROM sales WHERE plan > 'c' GROUP BY plan",
    "SELECT plan, COUNT(*) AS n, AVG(pay) AS a FROM sales WHERE plan = 'zz' GROUP BY plan HAVING n > 3 LIMIT 3",
    "SELECT DISTINCT plan FROM sales WHERE plan > 'c'",
    "SELECT day, COUNT(*) AS n FROM sales WHERE day BETWEEN DATE '1999-01-01' AND DATE '1999-12-31' GROUP BY day",
    "SELECT DATE_TRUNC('month', seen) AS m, COUNT(*) AS n FROM sales WHERE seen >= '2031-01-01' GROUP BY 1",
    "SELECT plan, town, COUNT(*) AS n FROM sales WHERE plan IN ('x', 'y') GROUP BY plan, town",
    "SELECT plan, category, COUNT(*) FROM sales JOIN parts ON part = id WHERE category = 'no' GROUP BY plan, category",
    "SELECT plan, n * 2 AS m FROM (SELECT plan, COUNT(*) AS n FROM sales WHERE plan > 'c' GROUP BY plan) WHERE n > 7",
    "SELECT plan, n FROM (SELECT plan, COUNT(*) AS n FROM sales WHERE plan > 'c' GROUP BY plan) UNION ALL "
    "SELECT plan, COUNT(*) FROM sales WHERE plan = 'zz' GROUP BY plan",
]


@pytest.mark.long
def test_keys_that_nothing_can_have_make_an_empty_result_and_cost_nothing(folder: Path) -> None:
    with lw.connect(folder / "lapwing.toml") as session:
        for text in EMPTY:
            for epsilon in (None, 1):
                empty = session.sql(text, epsilon=epsilon)
                assert (len(empty), empty.cost) == (0, empty.cost.nothing())
                assert list(map(code_of, empty.notes)) == [NO_POSSIBLE_ROWS]
                assert list(map(code_of, session.explain(text).notes)) == [NO_POSSIBLE_ROWS]
        for inner in ("= (SELECT AVG(n) FROM ({}))", "IN (SELECT n FROM ({}))"):
            text = f"SELECT COUNT(*) FROM sales WHERE pay {inner.format(EMPTY[0])}"
            with pytest.raises(QueryRefused):
                session.sql(text, epsilon=1)
        with refused_as("no_possible_keys", saying="plan"):
            session.sql(f"SELECT COUNT(*) FROM sales WHERE plan IN (SELECT plan FROM ({EMPTY[0]}))", epsilon=1)
        assert not session.history()
        answer = session.sql("SELECT plan, COUNT(*) AS n FROM sales WHERE plan = 'b' GROUP BY plan", epsilon=1)
        assert [row["plan"] for row in answer] == ["b"]
        again = session.sql("SELECT plan, COUNT(*) AS n FROM sales WHERE plan = 'b' GROUP BY plan", epsilon=1)
        assert again.stored
        assert again.rows() == answer.rows()


@pytest.mark.long
def test_combined_keys_are_answered_stored_and_made_consistent(folder: Path) -> None:
    text = (
        "SELECT category, weight, COUNT(*) AS n FROM sales JOIN parts ON part = id WHERE maker < 3 "
        "GROUP BY ROLLUP (category, weight)"
    )
    with lw.connect(folder / "lapwing.toml") as session:
        answer = session.sql(text, epsilon=1)
        assert len(answer) == len(answer.consistent()) == 4 + 3 + 1
        assert session.explain(text, epsilon=1).cells == 8
    with lw.connect(folder / "lapwing.toml") as session:
        again = session.sql(text, epsilon=1)
        assert again.stored
        assert again.rows() == answer.rows()


def written_in_two_orders(folder: Path, facts: PublicData) -> list[Question]:
    described = load(folder / "lapwing.toml")
    orders = ("age, age > 5", "age > 5, age")
    texts = [f"SELECT {keys}, COUNT(*) AS n FROM sales WHERE age > 3 GROUP BY 1, 2" for keys in orders]
    return [bind(text, described, facts).question for text in texts]


def test_keys_that_go_together_are_the_same_in_any_order(folder: Path, facts: PublicData) -> None:
    one, other = written_in_two_orders(folder, facts)
    assert one.combined
    assert one == other
    assert key_of(one) == key_of(other)


def test_twin_keys_in_the_order_of_the_text_are_caught(
    folder: Path, facts: PublicData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(possible_keys, "sorted", lambda values, key=None: list(values), raising=False)
    one, other = written_in_two_orders(folder, facts)
    assert one != other


@pytest.mark.parametrize(
    ("text", "lacking"),
    [
        (
            "SELECT category, COUNT(*) FROM sales LEFT JOIN parts ON part = id GROUP BY 1",
            "parts matches have no category",
        ),
        ("SELECT UPPER(category) AS c, plan, COUNT(*) FROM sales LEFT JOIN parts ON part = id GROUP BY 1, 2", "no c,"),
        ("SELECT COALESCE(category, 'none') AS c, COUNT(*) FROM sales LEFT JOIN parts ON part = id GROUP BY 1", ""),
        ("SELECT category, COUNT(*) FROM sales LEFT JOIN parts ON part = id WHERE category < 'z' GROUP BY 1", ""),
        ("SELECT category, COUNT(*) FROM sales JOIN parts ON part = id GROUP BY 1", ""),
        ("SELECT plan, COUNT(*) FROM sales LEFT JOIN parts ON part = id GROUP BY 1", ""),
    ],
)
def test_who_is_in_no_cell_is_said(text: str, lacking: str, folder: Path, facts: PublicData) -> None:
    said = "; ".join(notes_on_unmatched(bind(text, load(folder / "lapwing.toml"), facts)))
    assert lacking in said
    assert bool(said) == bool(lacking)
