"""The query builder: choices become SQL, and SQL becomes the same choices, whatever columns and values are called."""

import random
import re
from fractions import Fraction
from typing import Final

import pytest
import sqlglot
from sqlglot import exp

from lapwing.server.console.ask.accuracy import typical_results
from lapwing.server.console.ask.builder import built
from lapwing.server.console.ask.choices import (
    COMPARISONS,
    EMPTY,
    MEASURES,
    PERIODS,
    Choices,
    GroupingColumn,
    Measure,
    RowCondition,
    complete,
    names_of,
    sql_of,
)
from lapwing.server.console.ask.question import QuestionForm
from lapwing.server.console.ask.reading import choices_of
from lapwing.server.console.data.columns import TableText, tables_of
from tests.support.server.browsing import Shown, Visitor
from tests.support.server.world import World

HOSTILE: Final = (
    "plan", "select", "From", "a b", 'q"uo"te', "it's", "x; DROP TABLE t --", "/* c */", "é", "a{}b", "%s", "n",
    "sum_n", "<script>alert(1)</script>", "\u202egnp", "group",
    "2nd", "order by", "people", "TRUE", "date", "'", '""', "\\",
)  # fmt: skip
VALUES: Final = ("a", "b", "it's", '"', "--", "/*", ";", "{}", "\u0645", "<b>", " ", "\\", "NULL", "'; --")

STEPS: Final = (*PERIODS, "", "10", "0.5", "0", "x")
COMPARED: Final = (*COMPARISONS, *EMPTY)


def table(seed: int) -> TableText:
    """Return a table of columns of every type, with names that try to be SQL."""
    generator = random.Random(seed)
    names = generator.sample(HOSTILE, 9)
    columns = {
        names[0]: {"type": "string", "values": generator.sample(VALUES, 4)},
        names[1]: {"type": "integer", "lower": "-5", "upper": "99", "step": "1"},
        names[2]: {"type": "float", "lower": "0", "upper": "8", "step": "0.5"},
        names[3]: {"type": "boolean"},
        names[4]: {"type": "date", "lower": "2026-01-01", "upper": "2026-12-31"},
        names[5]: {"type": "timestamp", "lower": "2026-01-01T00:00:00", "upper": "2026-12-31T00:00:00"},
        names[6]: {"type": "string"},
        names[7]: {"type": "integer", "values": ["1", "2", "-3"]},
    }
    document = {
        "budget": {"delta_keys": "0", "neighbouring": "add_remove"},
        "views": {},
        "relations": [{"name": generator.choice(HOSTILE), "unit": names[8], "columns": [names[8], *columns]}],
        "tables": [
            {
                "protected": True, "columns": columns, "privacy_unit": names[8], "link": None,
                "protects": "each person", "max_rows_per_unit": 1, "bound": "at most 1 row",
                "rows_at_most": None, "people": None,
                "references": {}, "part": None,
            }
        ],
    }  # fmt: skip
    document["tables"][0]["name"] = document["relations"][0]["name"]  # type: ignore[index]
    (found,) = tables_of(document)
    return found


def some(generator: random.Random, of: TableText) -> Choices:
    """Return choices, of which some are not complete and some cannot be."""
    names = [column.name for column in of.columns]

    def name() -> str:
        return generator.choice(["", "", *HOSTILE])

    def value() -> str:
        return generator.choice([*VALUES, "3", "-2.5", "true", "2026-03-01", "2026-03-01 10:00", "", "1e5"])

    return Choices(
        table=of.name,
        measures=tuple(
            Measure(what=generator.choice(list(MEASURES)), column=generator.choice(names), value=value(), name=name())
            for _ in range(generator.randrange(4))
        ),
        keys=tuple(
            GroupingColumn(column=generator.choice(names), step=generator.choice(STEPS), name=name())
            for _ in range(generator.randrange(4))
        ),
        conditions=tuple(
            RowCondition(column=generator.choice(names), comparison=generator.choice(COMPARED), value=value())
            for _ in range(generator.randrange(5))
        ),
        sort=generator.choice(["", "k0", "k1", "m0", "m1", "k7", "x"]),
        falling=generator.random() < 0.5,
        top=generator.choice(["", "5", "0", "x", "100"]),
    )  # fmt: skip


def test_what_is_written_is_read_back() -> None:
    for seed in range(300):
        of, generator = table(seed), random.Random(seed)
        for _ in range(3):
            choices = some(generator, of)
            chosen = complete(choices, of)
            sql = sql_of(choices, of)
            read = choices_of(sql, [of])
            assert read == chosen, sql
            assert sql_of(read, of) == sql
            assert choices_of(" " + sql.replace("\n", "\n\t") + " ;\n", [of]) == chosen


def test_no_name_or_value_becomes_sql() -> None:
    """What is written is one query of the table, with its columns and texts that are values."""
    for seed in range(150):
        of, generator = table(seed), random.Random(-seed)
        choices = some(generator, of)
        (tree,) = [statement for statement in sqlglot.parse(sql_of(choices, of), read="duckdb") if statement]
        columns, names = {column.name for column in of.columns}, set(names_of(complete(choices, of), of))
        assert [found.name for found in tree.find_all(exp.Table)] == [of.name]
        assert {found.name for found in tree.find_all(exp.Column)} <= columns | names
        texts = {found.this for found in tree.find_all(exp.Literal) if found.is_string}
        said = {one.value for one in choices.conditions} | {one.value for one in choices.measures}
        assert texts <= said | set(PERIODS) | {period.upper() for period in PERIODS}


@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        ("SELECT COUNT(*) AS n FROM visits", True),
        ("select plan, count(*) as visits from VISITS group by 1 order by 2 desc", True),
        ("SELECT plan, COUNT(*) FROM visits GROUP BY ALL;", True),
        ('SELECT "plan", AVG(cost) AS cost FROM visits WHERE size <> 5 GROUP BY plan ORDER BY cost LIMIT 3', True),
        ("SELECT FLOOR(age / 10) * 10 AS a, COUNT(*) AS n FROM visits GROUP BY a", True),
        ("SELECT COUNT(*) AS n FROM visits WHERE plan = 'a' OR plan = 'b'", False),
        ("SELECT COUNT(*) AS n FROM visits -- by hand", False),
        ("SELECT COUNT(*) AS n /* by hand */ FROM visits", False),
        ("SELECT COUNT(*) + 1 AS n FROM visits", False),
        ("SELECT COUNT(*) AS n FROM visits v", False),
        ("SELECT COUNT(*) AS n FROM visits, visits", False),
        ("SELECT COUNT(*) AS n FROM visits HAVING n > 3", False),
        ("SELECT COUNT(*) AS n FROM visits; SELECT 1", False),
        ("SELECT COUNT(*) AS n FROM visits LIMIT 3 OFFSET 2", False),
        ("SELECT COUNT(*) AS n, plan FROM visits GROUP BY plan", False),
        ("SELECT plan, COUNT(*) AS n FROM visits", False),
        ("SELECT COUNT(*) AS n FROM visits GROUP BY plan", False),
        ("SELECT plan FROM visits GROUP BY plan", False),
        ("SELECT FLOOR(age / 10) * 5 AS a, COUNT(*) AS n FROM visits GROUP BY 1", False),
        ("SELECT SUM(plan) AS n FROM visits", False),
        ("SELECT COUNT(*) AS n FROM other", False),
        ("SELECT 'plan', COUNT(*) AS n FROM visits GROUP BY 1", False),
        ("SELECT COUNT(*) AS n FROM visits WHERE age > 1e5", False),
        ("SELECT COUNT(*) AS n FROM visits WHERE plan = E'a'", False),
        ("SELECT COUNT(*) AS n FROM", False),
        ("((((", False),
        ("", False),
        ("SELECT " + "COUNT(*) AS n, " * 5000, False),
    ],
)
def test_sql_is_read_whole_or_not_at_all(settled: World, sql: str, reads: bool) -> None:
    document = settled.ask("GET", "/v1/datasets/open", "alice").document
    tables = tables_of(document)
    choices = choices_of(sql, tables)
    assert (choices is not None) == reads
    if choices is not None:
        body = {"epsilon": 1}
        said, again = (
            settled.ask("POST", "/v1/datasets/open/explain", "alice", {**body, "sql": text}).document
            for text in (sql, sql_of(choices, tables[0]))
        )
        said, again = ({name: value for name, value in one.items() if name != "columns"} for one in (said, again))
        assert [said["price"], said["cells"]] == [again["price"], again["cells"]]


# ---- the page ----


def fields_of(page: Shown) -> dict[str, str]:
    return page.form("/ask").fields


def test_choices_become_sql_and_a_price_without_scripts(alice: Visitor) -> None:
    page = alice.go("/console/data/open/ask?tab=build")
    assert fields_of(page)["m0"] == "rows"
    assert fields_of(page)["k0"] == "plan"
    ranges = alice.submit(page, "/ask", k1="age", m0="average", m0_column="cost", write="1")
    assert fields_of(ranges)["sql"].startswith("SELECT plan, age, AVG(cost) AS average_cost\n")
    where = alice.submit(ranges, "/ask", w0="plan", write="1", k1="")
    assert "Not in the query yet." in where.text
    shown = alice.submit(where, "/ask", w0_value="a", sort="m0", order="rising", top="1", write="1")
    lines = ("SELECT plan, AVG(cost) AS average_cost", "FROM visits", "WHERE plan = 'a'", "GROUP BY plan")
    assert fields_of(shown)["sql"] == "\n".join((*lines, "ORDER BY average_cost", "LIMIT 1"))
    assert "Cost: ε = 0.1" in shown.text
    assert alice.submit(shown, "/ask/answer").status == 200
    assert alice.world.charges() == 1


def test_sql_that_the_builder_cannot_show_is_left_alone(alice: Visitor) -> None:
    sql = "SELECT COUNT(*) + 1 AS n FROM visits -- mine"
    page = alice.submit(alice.go("/console/data/open/ask"), "/ask", sql=sql, tab="build")
    assert "The builder cannot show this query. Your SQL is unchanged" in page.text
    assert fields_of(page)["sql"] == sql
    fresh = alice.submit(page, "/ask", write="1")
    assert fields_of(fresh)["sql"] == "SELECT plan, COUNT(*) AS n\nFROM visits\nGROUP BY plan"


def test_lists_show_titles_and_labels_and_ask_names_and_codes(settled: World) -> None:
    document = settled.ask("GET", "/v1/datasets/open", "alice").document
    table = document["tables"][0]
    table["title"], table["columns"]["plan"]["title"] = "Visits of a year", "Health plan"
    table["columns"]["plan"]["labels"] = {"a": "public\u202e"}
    fields = {"write": "1", "table": "visits", "m0": "share", "m0_column": "plan", "m0_was": "plan", "m0_value": "a"}
    builder, sql = built({**fields, "k0": "plan", "w0": "plan"}, "", tables_of(document))
    assert sql == "SELECT plan, AVG(CASE WHEN plan = 'a' THEN 1 ELSE 0 END) AS share_plan\nFROM visits\nGROUP BY plan"
    column = ("plan", "\u2068Health plan\u2069 (plan)")
    assert builder["tables"][0] == ("visits", "\u2068Visits of a year\u2069 (visits)")
    assert all(column in builder[where] for where in ("by", "where"))
    assert column in builder["measures"][0]["columns"]
    shown = [("a", "\u2068public\u202e\u2069 (a)"), ("b", "b")]
    assert builder["measures"][0]["values"] == builder["conditions"][0]["values"] == shown


# ---- levels of accuracy ----


def at_level(alice: Visitor, sql: str, **typed: str) -> Shown:
    return alice.submit(alice.go("/console/data/open/ask"), "/ask", sql=sql, by="usable", **typed)


def test_a_level_is_a_share_of_a_typical_result(alice: Visitor) -> None:
    sql = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"
    assert "±50, about 10 % of 500" in at_level(alice, sql).text
    priced = at_level(alice, sql, typical="200")
    assert "±20, about 10 % of 200" in priced.text
    bought = priced.form("/ask/answer").fields
    assert (bought["by"], bought["error"]) == ("error", "20")
    assert priced.form("/ask").fields["by"] == "usable"
    alice.submit(priced, "/ask/answer")
    assert alice.world.charges() == 1
    assert "can mean two numbers" in at_level(alice, sql, typical="1,000").text


def test_a_level_of_several_measures_is_that_of_the_first(alice: Visitor) -> None:
    sql = "SELECT COUNT(*) AS n, SUM(cost) AS s FROM visits"
    priced = at_level(alice, sql, typical="200")
    bought = priced.form("/ask/answer").fields
    assert bought["by"] == "epsilon"
    body = {"sql": sql, "epsilon": bought["epsilon"], "assuming_count": 500}
    preview = alice.world.ask("POST", "/v1/datasets/open/explain", "alice", body).document
    assert 19 <= preview["columns"][0]["half_width"] <= 20
    assert "about 10 % of 200" in priced.text


def test_a_typical_result_follows_from_bounds_and_rows(settled: World) -> None:
    tables = tables_of(settled.ask("GET", "/v1/datasets/open", "alice").document)

    def typical(sql: str, **fields: str) -> dict[str, Fraction]:
        return typical_results(QuestionForm.read({"sql": sql, **fields}), tables, ["n"])

    assert typical("SELECT COUNT(*) AS n FROM visits") == {"n": 500}
    assert typical("SELECT SUM(cost) AS n FROM visits", assuming="10") == {"n": 40}
    assert typical("SELECT AVG(cost) AS n FROM visits", assuming="10") == {"n": 4}
    assert typical("SELECT AVG(cost) AS n FROM visits", typical="2.5") == {"n": Fraction(5, 2)}
    assert typical("SELECT COUNT(*) + 1 AS n FROM visits", assuming="70") == {"n": 70}
    assert typical("SELECT COUNT(DISTINCT plan) AS n FROM visits") == {"n": 2}
    assert typical("SELECT COUNT(DISTINCT age) AS n FROM visits WHERE plan = 'a'", assuming="3") == {"n": 3}


@pytest.mark.parametrize(
    ("sql", "typical", "share"),
    [
        ("SELECT AVG(CASE WHEN plan = 'a' THEN 1 ELSE 0 END) AS x FROM visits", "", "% of 0.5"),
        ("SELECT COUNT(DISTINCT plan) AS x FROM visits", "20", "% of 20"),
        ("SELECT plan, MEDIAN(cost) AS x FROM visits GROUP BY plan", "", "% of 4"),
    ],
)
def test_levels_hold_for_shares_medians_and_different_values(
    alice: Visitor, sql: str, typical: str, share: str
) -> None:
    priced = at_level(alice, sql, typical=typical)
    (part,) = re.findall(r"about ([0-9.]+) " + re.escape(share), priced.text)
    assert 9 <= float(part) <= 10
    assert "Simulated, no data read." in priced.text
    bought = priced.form("/ask/answer").fields
    preview = alice.world.ask(
        "POST", "/v1/datasets/open/explain", "alice",
        {"sql": sql, bought["by"]: bought[bought["by"]], "assuming_count": 500},
    ).document  # fmt: skip
    if "MEDIAN" in sql:  # 500 rows spread evenly over 8: a rank is 8/500
        (ranks,) = preview["measures"]
        assert 0.36 <= ranks["half_width"] * 8 / 500 <= 0.4
    else:
        assert preview["columns"][0]["half_width"] <= {"": 0.05, "20": 2}[typical]


def test_a_median_that_can_be_any_value_says_so(alice: Visitor) -> None:
    typed = {"sql": "SELECT MEDIAN(cost) AS x FROM visits", "by": "epsilon", "epsilon": "0.001"}
    assert "can be any value; rank ±" in alice.submit(alice.go("/console/data/open/ask"), "/ask", **typed).text


# ---- the simulated picture ----


def test_a_picture_is_made_up_and_new_each_time(alice: Visitor) -> None:
    sql = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"
    pictures = [at_level(alice, sql, typical="1000").text.partition("Simulated, no data read.")[2] for _ in range(3)]
    assert all(" is 1,000 before noise" in picture for picture in pictures)
    assert len(set(pictures)) > 1
    assert "Simulated" in at_level(alice, "SELECT plan, AVG(cost) AS n FROM visits GROUP BY plan").text
    assert "Simulated" not in at_level(alice, "SELECT plan FROM visits GROUP BY plan").text
    assert alice.world.charges() == 0


@pytest.mark.parametrize("mechanism", ["rounded Gaussian", "discrete Laplace"])
def test_simulated_noise_follows_the_scale(settled: World, mechanism: str) -> None:
    def spread(scale: float) -> float:
        body = {"mechanism": mechanism, "scale": scale, "values": [500] * 100}
        values: list[int] = settled.ask("POST", "/v1/simulate", "alice", body).document["values"]
        return sum(abs(value - 500) for value in values) / 100

    assert spread(0.01) == 0
    assert 4_000 < spread(10_000) < 20_000  # mean 7,979 or 10,000, with a standard error of at most 1,000


@pytest.mark.parametrize(
    "change", [{"scale": 0}, {"scale": -1}, {"mechanism": "none"}, {"values": []}, {"values": [0] * 101}, {"sql": "x"}]
)
def test_simulations_that_cannot_be_are_refused(settled: World, change: dict[str, object]) -> None:
    body = {"mechanism": "rounded Gaussian", "scale": 5, "values": [1], **change}
    assert settled.ask("POST", "/v1/simulate", "alice", body).status == 422
