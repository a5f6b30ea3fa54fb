"""Bad input is refused, quickly and without a trace: no crash, no charge, no log, no touch of the data."""

import logging
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.answer import notes
from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import load
from lapwing.engines.duckdb import expressions as printers
from lapwing.engines.duckdb import queries as render
from lapwing.engines.duckdb.cleaned import Location
from lapwing.errors import LapwingError, QueryRefused
from lapwing.opening import open_session
from lapwing.query.bind.bind import bind
from lapwing.query.text.clock import MAY_TELL_TIME
from lapwing.session import Session
from tests.support.answer.one_cell import evaluate
from tests.support.calls import within
from tests.support.effort import one_in, only
from tests.support.query import clean, golden, rendering
from tests.support.refusals import refused_as

DEEP = 10_000
# Many conditions make 12 million calls and every other question fewer than 5; what grows without end makes billions.
MOST_CALLS = 30_000_000
# Of those that are answered, none makes more than 180,000.
FEW_CALLS = 2_000_000
ABOUT = "SELECT COUNT(*) FROM visits WHERE {}"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load(clean.FIXTURES / "catalog.toml")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with open_session(clean.catalog_in(tmp_path_factory.mktemp("refusals"))) as session:
        yield session


def refusal(text: str, catalog: Catalog) -> QueryRefused:
    """Return the refusal of a question, which takes little work."""
    with pytest.raises(QueryRefused) as refused:
        within(MOST_CALLS, lambda: bind(text, catalog))
    return refused.value


# ---- size and depth --------------------------------------------------------------------------------------------------

HUGE = {
    "ten megabytes": (ABOUT.format("note = '" + "x" * 10_000_000 + "'"), "query_too_long"),
    "ten megabytes of brackets": ("(" * 10_000_000, "query_too_long"),
    "many bytes in few characters": (ABOUT.format("note = '" + "ü" * 40_000 + "'"), "query_too_long"),
    "many TOP": ("SELECT TOP 1 " * 3_000, "query_too_long"),
    "many CONVERT": ("SELECT " + "CONVERT(INT, " * 2_000, "query_too_long"),
    "many words": (ABOUT.format("age IN (" + "1," * 6_000 + "1)"), "query_too_long"),
}
DEEPER = {
    "parentheses": ABOUT.format("(" * DEEP + "member" + ")" * DEEP),
    "open parentheses": ABOUT.format("(" * DEEP),
    "brackets": ABOUT.format("[" * DEEP + "]" * DEEP),
    "braces": ABOUT.format("{" * DEEP),
    "CASE": ABOUT.format("CASE WHEN " * 3000 + "member" + " THEN TRUE END" * 3000),
    "NOT": ABOUT.format("NOT " * DEEP + "member"),
    "minus": ABOUT.format("- " * DEEP + "age > 0"),
    "plus": ABOUT.format("+ " * DEEP + "age > 0"),
    "tilde": ABOUT.format("~ " * DEEP + "age > 0"),
    "mixed prefixes": ABOUT.format("NOT - + ~ " * 2000 + "age > 0"),
    "functions": ABOUT.format("ABS(" * 4000 + "age" + ")" * 4000 + " > 0"),
    "subqueries": ABOUT.format("age > (SELECT " * 2000 + "1" + ")" * 2000),
    "tables": "SELECT COUNT(*) FROM " + "(SELECT * FROM " * 2000 + "visits" + ")" * 2000,
    "AND": ABOUT.format(" AND ".join(["member"] * 4000)),
    "OR": ABOUT.format(" OR ".join(["member"] * 4000)),
    "+": ABOUT.format("+".join(["age"] * 4000) + " > 0"),
    "*": ABOUT.format("*".join(["age"] * 4000) + " > 0"),
    "comparisons": ABOUT.format(" = ".join(["age"] * 4000)),
    "casts": ABOUT.format("age" + "::DOUBLE" * 3000 + " > 0"),
    "IS": ABOUT.format("member" + " IS TRUE" * 3000),
    "arrows": ABOUT.format("x -> " * 4000 + "x"),
    "points": ABOUT.format("a" + ".a" * 4000),
    "indices": ABOUT.format("age" + "[1]" * 3000),
    "CASE around an aggregate": "SELECT " + "CASE WHEN TRUE THEN " * 2000 + "COUNT(*)" + " END" * 2000 + " FROM visits",
    "unions": "SELECT COUNT(*) FROM visits" + " UNION SELECT COUNT(*) FROM visits" * 1000,
    "joins": "SELECT COUNT(*) FROM visits" + " JOIN visits ON TRUE" * 2000,
    "intervals": ABOUT.format("INTERVAL " * 9000),
    "EXISTS": ABOUT.format("EXISTS " * 9000),
    "DISTINCT": "SELECT " + "DISTINCT " * 9000 + "1 FROM visits",
    "SELECT": "SELECT " * 9000,
    "at signs": ABOUT.format("@ " * 9000 + "age"),
    "exclamation marks": ABOUT.format("! " * 9000 + "age"),
    "question marks": ABOUT.format("? " * 9000),
    "PRIOR": ABOUT.format("PRIOR " * 9000 + "age"),
    "strings": ABOUT.format("'a' " * 9000),
    "statements": "SELECT COUNT(*) FROM visits;" * 1000,
}


@pytest.mark.parametrize("name", HUGE)
def test_a_huge_question_is_refused(name: str, catalog: Catalog) -> None:
    text, code = HUGE[name]
    assert refusal(text, catalog).cause.value == code


@pytest.mark.parametrize("name", one_in(8, DEEPER))
def test_a_deep_question_is_refused(name: str, catalog: Catalog) -> None:
    assert str(refusal(DEEPER[name], catalog))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (ABOUT.format("(" * 21 + "member" + ")" * 21), "query_too_long (line 1, column 55)"),
        (ABOUT.format("NOT " * 21 + "member"), "query_too_long (line 1, column 115)"),
        (ABOUT.format(("(" + "NOT " * 19) * 19 + "member" + ")" * 19), "query_too_long"),
        (ABOUT.format(" AND ".join(["member"] * 151)), "query_too_long"),
        ("SELECT " + ", ".join(f"COUNT(*) AS c{i}" for i in range(201)) + " FROM visits", "too_many_columns"),
    ],
)
def test_the_limits_are_where_they_are_said_to_be(text: str, code: str, catalog: Catalog) -> None:
    assert golden.code_of(refusal(text, catalog)) == code


WITHIN = {
    "parentheses": ABOUT.format("(" * 20 + "member" + ")" * 20),
    "functions": ABOUT.format("ABS(" * 20 + "age" + ")" * 20 + " > 0"),
    "denied": ABOUT.format("(NOT " * 20 + "member" + ")" * 20),
    "NOT": ABOUT.format("NOT " * 20 + "member"),
    "CASE": ABOUT.format("CASE WHEN " * 20 + "member" + " THEN TRUE END" * 20),
    "ceilings": ABOUT.format("CEIL(0.5 * " * 20 + "age" + ")" * 20 + " > 0"),
    "AND": ABOUT.format(" AND ".join(["member"] * 140)),
    "steps": ABOUT.format("age" + "".join(f" + {10 ** -(i % 15):.15f} * cost" for i in range(130)) + " > 0"),
    "quotients": ABOUT.format("cost" + " / 1.5" * 130 + " > 0"),
    "IS": ABOUT.format("member" + " IS TRUE" * 140),
    "IN": ABOUT.format("age IN (" + ", ".join(map(str, range(4000))) + ")"),
    "sums": "SELECT " + " + ".join(["COUNT(*)"] * 130) + " AS n FROM visits",
}


def with_frames(depth: int, action: Callable[[], object]) -> object:
    return action() if depth == 0 else with_frames(depth - 1, action)


@pytest.mark.parametrize("name", only((5,), WITHIN))
def test_what_is_just_within_the_limits_is_answered(name: str, catalog: Catalog) -> None:
    """Also by a caller who is many calls deep: nothing may fail once it is paid."""
    source = Location(
        relation="t", types={column.name: "VARCHAR" for column in catalog.tables[0].columns} | {"person": "BIGINT"}
    )

    def answered() -> object:
        plan = bind(WITHIN[name], catalog)
        measures = {measure: Fraction(3) for measure in plan.question.measures}
        values = [evaluate(output.value, measures, {}) for output in plan.outputs]
        return (
            str(plan.question),
            hash(plan.question),
            rendering.render(plan.question, {catalog.tables[0].name: source}),
            values,
        )

    assert with_frames(150, answered)


def nested(outer: str, inner: str, times: int) -> str:
    text = inner
    for _ in range(times):
        text = outer.format(text)
    return text


@pytest.mark.parametrize(
    ("outer", "inner", "times"),
    [
        ("CASE WHEN {} BETWEEN 0 AND 1 THEN 1 END", "age", 19),
        ("CASE {} WHEN 1 THEN 2 WHEN 2 THEN 3 WHEN 3 THEN 4 END", "age", 19),
        ("CAST({} > 0 AS INTEGER)", "age", 19),
        ("COALESCE({} IS TRUE, member)", "member", 19),
        ("CASE WHEN {} IN (1, 2) THEN 1 END", "age", 19),
        ("CEIL({} / 2)", "age", 19),
        ("ROUND({}, 1) + 1", "age", 19),
    ],
)
@pytest.mark.parametrize("aggregate", [False, True])
def test_no_nesting_makes_the_sql_grow_without_end(
    outer: str, inner: str, times: int, aggregate: bool, catalog: Catalog
) -> None:
    """Every argument is printed once; what would be printed again in each branch is refused."""
    expression = nested(outer, "COUNT(*)" if aggregate else inner, times)
    text = f"SELECT {expression} AS x FROM visits" if aggregate else ABOUT.format(f"({expression}) IS NULL")
    try:
        question = within(FEW_CALLS, lambda: bind(text, catalog)).question
    except QueryRefused:
        question = None
    if question is not None and question.where is not None:
        assert len(printers.expression(question.where)) < 100 * len(text)
        assert len(str(question)) < 100 * len(text)


# ---- subqueries ------------------------------------------------------------------------------------------------------


def chain(first: str, wrap: str, times: int, asked: str = "COUNT(*)") -> str:
    """Return a question about subqueries of which each is over the one before."""
    named = [f"c0 AS ({first})", *(f"c{i} AS ({wrap.format(f'c{i - 1}')})" for i in range(1, times))]
    return f"WITH {', '.join(named)} SELECT {asked} FROM c{times - 1}"


TWICE = "SELECT person, age FROM {0} UNION ALL SELECT person, age FROM {0}"
LONG = "+".join(["age"] * 140)
GROWING = {
    "a sum of itself, nested": nested("(SELECT a + a AS a FROM {})", "(SELECT age AS a FROM visits)", 18),
    "a sum of itself, named": chain("SELECT age AS a FROM visits", "SELECT a + a AS a FROM {}", 60),
    "a choice of itself": chain("SELECT note AS a FROM visits", "SELECT COALESCE(a, a, a) AS a FROM {}", 60),
    "a depth of functions": chain("SELECT note AS a FROM visits", "SELECT UPPER(a) AS a FROM {}", 400),
    "many conditions": chain("SELECT age FROM visits", "SELECT age + 1 AS age FROM {} WHERE age > 3", 400),
    "a union with itself": chain("SELECT person, age FROM visits", TWICE, 40),
    "a depth of relations": chain("SELECT person, age FROM visits", "SELECT DISTINCT person, age FROM {}", 100),
    "a union of many": f"SELECT COUNT(*) FROM ({' UNION ALL '.join(['SELECT age FROM visits'] * 140)})",
    "many columns": f"SELECT COUNT(*) FROM (SELECT {', '.join(f'age AS a{i}' for i in range(450))} FROM visits)",
    "columns of many columns": chain(
        f"SELECT person, {LONG} AS a FROM visits",
        f"SELECT DISTINCT person, {', '.join(f'a + {i} AS a{i}' for i in range(60))} FROM {{}}",
        2,
    ),
    "a window of many": f"SELECT COUNT(*) FROM (SELECT SUM(a + a) OVER (PARTITION BY person ORDER BY "
    f"{', '.join(['a'] * 60)}) AS s FROM (SELECT person, {LONG} AS a FROM visits))",
    "aggregates of many": f"SELECT {', '.join(f'SUM(a + {i})' for i in range(190))}, "
    f"SUM(a) FROM (SELECT b + b + b AS a FROM (SELECT {LONG} AS b FROM visits))",
}


@pytest.mark.parametrize("name", only((0, 8), GROWING))
def test_what_grows_in_subqueries_is_refused(name: str, catalog: Catalog) -> None:
    assert str(refusal(GROWING[name], catalog))


NESTED = {
    "relations": chain("SELECT person, age AS a FROM visits", "SELECT DISTINCT person, a FROM {}", 20),
    "functions": chain("SELECT note AS a FROM visits", "SELECT UPPER(a) AS a FROM {}", 178, "COUNT_IF(a = 'A')"),
    "denials": chain("SELECT member AS a FROM visits", "SELECT NOT a AS a FROM {}", 400, "COUNT_IF(a)"),
    "different conditions": chain("SELECT age FROM visits", "SELECT age + 1 AS age FROM {} WHERE age > 3", 60),
    "conditions": chain("SELECT * FROM visits", "SELECT * FROM {} WHERE age > 3", 180),
    "both": chain(
        f"SELECT person, {' AND '.join(['member'] * 140)} AS a FROM visits",
        "SELECT person, BOOL_AND(a) AS a FROM {} GROUP BY person",
        19,
        "COUNT_IF(a)",
    ),
    "parts": f"SELECT COUNT(*) FROM ({' UNION ALL '.join(['SELECT age FROM visits'] * 45)})",
}


@pytest.mark.parametrize("name", only([0], NESTED))
def test_subqueries_just_within_the_limits_are_answered(name: str, catalog: Catalog) -> None:
    def answered() -> object:
        question = bind(NESTED[name], catalog).question
        return str(question), hash(question), question == bind(NESTED[name], catalog).question, render.answer(question)

    assert with_frames(150, answered)


def test_a_subquery_is_bound_once_however_deep_it_is_nested(catalog: Catalog) -> None:
    text = f"SELECT COUNT(*) FROM {nested('(SELECT * FROM {})', 'visits', 19)}"
    within(FEW_CALLS, lambda: bind(text, catalog))


def test_twin_work_that_doubles_with_each_level_is_found() -> None:
    def doubling(level: int) -> int:
        return 1 if level == 0 else doubling(level - 1) + doubling(level - 1)

    assert within(FEW_CALLS, lambda: doubling(10)) == 1024
    with pytest.raises(AssertionError, match="calls"):
        within(FEW_CALLS, lambda: doubling(60))


# ---- characters ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["\0", "SELECT COUNT(*) FROM visits\0", ABOUT.format("note = '\ud800'"), "\udcff"])
def test_what_is_not_text_is_refused(text: str, catalog: Catalog) -> None:
    assert refusal(text, catalog).cause.value == "invalid_character"


@pytest.mark.parametrize("text", [None, 7, b"SELECT COUNT(*) FROM visits", ["SELECT"]])
def test_what_is_not_a_string_is_refused(text: object, catalog: Catalog) -> None:
    with refused_as("not_a_query"):
        bind(text, catalog)  # type: ignore[arg-type]  # that is the point


def test_positions_count_lines_and_characters(catalog: Catalog) -> None:
    text = "SELECT COUNT(*)\nFROM visits -- ünï\n  WHERE ünï = 1"
    assert refusal(text, catalog).position == (3, 9)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT /* a */ COUNT(*) -- b\n AS n FROM /* c */ visits WHERE age /* d */ > 3 -- e",
        "SELECT /*+ a_hint(visits) */ COUNT(*) AS n FROM visits WHERE age > 3",
        "-- first\nSELECT COUNT(*) AS n\n\n\tFROM visits\r\nWHERE age > 3;;",
        "select count(*) as n from VISITS where AGE > 3.0",
    ],
)
def test_comments_blanks_and_case_change_nothing(text: str, catalog: Catalog) -> None:
    assert bind(text, catalog) == bind("SELECT COUNT(*) AS n FROM visits WHERE age > 3", catalog)


def test_a_comment_that_the_parser_obeys_changes_nothing_unseen(catalog: Catalog) -> None:
    """To this parser it makes a call of a known function one of an unknown function."""
    refused = refusal("SELECT SUM(age) /* sqlglot.anonymous */ AS s FROM visits", catalog)
    assert refused.cause.value == "function_not_supported"


# ---- soup ------------------------------------------------------------------------------------------------------------

WORDS = (
    "SELECT FROM WHERE GROUP BY ORDER HAVING LIMIT OFFSET CASE WHEN THEN ELSE END NOT AND OR IN BETWEEN IS "
    "NULL LIKE ILIKE ESCAPE ( ) [ ] { } , ; . * + - / % || :: : -> ->> => = <> < > <= >= != == ~ ! @ # $ ? ^ & "
    "| 'a' \"b\" 1 1.5 1e5 age visits plan COUNT SUM AVG DISTINCT ALL AS CAST TRY_CAST INTERVAL DATE TIMESTAMP "
    "UNION EXCEPT WITH RECURSIVE JOIN LATERAL USING WINDOW OVER PARTITION ROWS RANGE UNBOUNDED QUALIFY "
    "TABLESAMPLE PIVOT UNPIVOT VALUES EXISTS ANY ARRAY STRUCT FILTER WITHIN GROUPING SETS ROLLUP CUBE EXCLUDE "
    "REPLACE COLUMNS INSERT CREATE DROP ATTACH COPY PRAGMA SET CALL EXPLAIN /* */ -- $$x$$ :a $1 COLLATE AT "
    "TIME ZONE EXTRACT FETCH FIRST PERCENT TIES IGNORE NULLS MATCH_RECOGNIZE SEMI ASOF INTEGER VARCHAR DECIMAL "
    "lambda x'ff' e'a' 0x10 INTO TRIM LEADING OVERLAY DEFAULT member cost TRUE FALSE ROUND ABS COALESCE LEAST "
    "person "
)


def soup(chance: random.Random) -> str:
    words = WORDS.split()
    drawn = " ".join(chance.choice(words) for _ in range(chance.randint(1, 16)))
    return chance.choice(
        ["{}", "SELECT {} FROM visits", "SELECT COUNT(*) FROM visits WHERE {}", "SELECT SUM({}) FROM visits"]
    ).format(drawn)


@pytest.mark.parametrize("texts", [600, pytest.param(4_000, marks=pytest.mark.long)])
def test_any_words_are_answered_or_refused(catalog: Catalog, texts: int) -> None:
    chance = random.Random(5)
    answered = 0
    for _ in range(texts):
        text = soup(chance)
        try:
            question = bind(text, catalog).question
        except QueryRefused:
            continue
        answered += 1
        assert str(question)
    assert answered > 0


# ---- nothing is left behind ------------------------------------------------------------------------------------------

REFUSED = [entry for file in golden.files(refused=True) for entry in golden.read(file)]


@pytest.mark.parametrize("every", [60, pytest.param(1, marks=pytest.mark.long)])
def test_refusals_leave_ledger_and_data_alone(session: Session, caplog: pytest.LogCaptureFixture, every: int) -> None:
    folder: Path = session.catalog.folder
    before = session._ledger.state()
    files = {path: path.read_bytes() for path in folder.iterdir() if path.suffix in {".parquet", ".csv", ".toml"}}
    # A session has a clock, and answers some of those that look at it.
    texts = [entry.question for entry in REFUSED if not MAY_TELL_TIME.search(entry.question)][::every]
    texts += [text for text, _ in HUGE.values()] + list(DEEPER.values())[:: 5 if every == 1 else 10]
    with caplog.at_level(logging.DEBUG):
        for text in texts:
            with pytest.raises(QueryRefused):
                session.sql(text, epsilon=0.1)
            with pytest.raises(QueryRefused):
                session.explain(text, epsilon=0.1)
    assert session._ledger.state() == before
    assert session._ledger.history() == ()
    assert {path: path.read_bytes() for path in files} == files
    assert caplog.records == []


def test_a_wrong_price_leaves_the_ledger_alone(session: Session) -> None:
    before = session._ledger.state()
    prices: list[object] = [0, -1, float("nan"), float("inf"), "1", True, None, 10**400, 1e-400]
    for price in prices:
        with pytest.raises(LapwingError):
            session.sql("SELECT COUNT(*) FROM visits", epsilon=price)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(LapwingError):
        session.sql("SELECT COUNT(*) FROM visits", epsilon=1, error=1)
    with pytest.raises(LapwingError):
        session.sql("SELECT AVG(age) FROM visits", error=1)
    assert session._ledger.state() == before


def test_a_question_that_is_answered_does_change_the_ledger(session: Session) -> None:
    """So that the tests above would see it."""
    before = session._ledger.state()
    session.sql("SELECT COUNT(*) FROM visits WHERE note = 'last'", epsilon=0.1)
    assert session._ledger.state() != before


@pytest.mark.parametrize("value", ["SUM(age)", "AVG(age)", "MEDIAN(age)", "MIN(age)", "STDDEV(age)"])
def test_what_a_filter_leaves_no_value_of_is_refused(value: str, catalog: Catalog) -> None:
    with pytest.raises(QueryRefused):
        bind(f"SELECT {value} FILTER (WHERE age IS NULL) AS x FROM visits", catalog)


# ---- notes -----------------------------------------------------------------------------------------------------------

ANSWERED = [entry for file in golden.files(refused=False) for entry in golden.read(file)]
CODES = {value for name, value in vars(notes).items() if name.isupper() and isinstance(value, str)}


@pytest.mark.parametrize("every", [24, pytest.param(1, marks=pytest.mark.long)])
def test_every_note_of_a_price_has_a_code(session: Session, every: int) -> None:
    seen = set()
    for entry in ANSWERED[::every]:
        preview = session.explain(entry.question, epsilon=1)
        assert {notes.code_of(note) for note in preview.notes} <= CODES, entry.question
        seen |= {notes.code_of(note) for note in preview.notes}
    assert len(seen) >= (5 if every > 1 else 15)
