"""Options, named arguments and EXPLAIN PRIVACY are read, checked and cut out; what stays keeps its place."""

import contextlib
import logging
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError

from lapwing.errors import InvalidParameter, QueryRefused
from lapwing.query.text import dialect, privacy_options
from lapwing.query.text.parse import Parsed, parse
from lapwing.query.text.plain import plain
from lapwing.query.text.privacy_options import Name, PrivacyOptions
from tests.support.effort import examples
from tests.support.refusals import refused_as

CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({}) COUNT(*) AS n FROM visits"


def refusal(text: str, parameters: Any = ()) -> QueryRefused:
    with pytest.raises(QueryRefused) as refused:
        parse(text, parameters)
    return refused.value


def column_of(text: str, part: str) -> tuple[int, int]:
    """Return where a part of a one-line text begins, the last time that it occurs."""
    return (1, text.rindex(part) + 1)


# ---- statements -----------------------------------------------------------------------------------------------------


def test_a_plain_question_says_nothing() -> None:
    parsed = parse("SELECT COUNT(*) FROM visits")
    assert (parsed.options, parsed.arguments, parsed.explain) == (PrivacyOptions(), {}, False)
    assert plain(parsed) is parsed.select


def test_a_question_may_begin_with_its_parts() -> None:
    select = parse("WITH v AS (SELECT age FROM visits) SELECT COUNT(*) FROM v").select
    assert isinstance(select.args["with_"], exp.With)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("WITH v AS (SELECT 1) INSERT INTO t SELECT * FROM v", "INSERT is not a query"),
        ("WITH v AS (SELECT 1) SELECT 1 FROM v EXCEPT SELECT 2 FROM v", "A set operation is not a query"),
        ("WITH v AS (DROP TABLE visits) SELECT 1 FROM v", "'v' is not a SELECT (line 1, column 6)"),
        ("WITH v AS (7) SELECT 1 FROM v", "'v' is not a SELECT"),
        ("WITH v AS (SELECT 1)", "not understood"),
        ("WITH", "not understood"),
    ],
)
def test_what_follows_the_parts_is_one_select(text: str, reason: str) -> None:
    assert reason in str(refusal(text))


def test_a_text_that_the_parser_stumbles_over_is_not_understood() -> None:
    text = "SELECT COUNT(*) AS n FROM visits ORDER BY 1 |> LIMIT 2"
    with pytest.raises((AttributeError, TypeError)):
        DuckDB().parse(text)
    assert "The query is not understood" in str(refusal(text))


@pytest.mark.parametrize(
    "text",
    [
        "EXPLAIN PRIVACY SELECT COUNT(*) FROM visits",
        "-- why\nexplain /* it */ Privacy\n\tSELECT COUNT(*) FROM visits;",
        "EXPLAIN PRIVACY WITH v AS (SELECT 1 AS x) SELECT COUNT(*) FROM v",
    ],
)
def test_explain_privacy(text: str) -> None:
    assert parse(text).explain


@pytest.mark.parametrize("text", ["EXPLAIN", "EXPLAIN;", "EXPLAIN SELECT 1", "EXPLAIN ANALYZE SELECT 1"])
def test_another_explain_is_refused_with_the_remedy(text: str) -> None:
    refused = refusal(text)
    assert refused.position == (1, 1)
    assert "EXPLAIN PRIVACY SELECT" in refused.remedy


def test_positions_after_explain_are_those_of_the_text() -> None:
    assert refusal("-- one\nEXPLAIN\nPRIVACY SELECT COUNT(* FROM visits").position == (3, 24)
    assert refusal("EXPLAIN PRIVACY SELECT [1]").position == (1, 24)


@pytest.mark.long
def test_what_is_explained_is_measured_too() -> None:
    assert "nested more than 20" in str(refusal("EXPLAIN PRIVACY SELECT " + "(" * 5000))
    assert "more than 10,000 words" in str(refusal("EXPLAIN PRIVACY SELECT " + "1," * 6000 + "1"))


@pytest.mark.parametrize(
    "text",
    [
        "WITH v AS (EXPLAIN SELECT 1) SELECT COUNT(*) FROM v",
        "WITH v AS (DROP s3cr3t) SELECT COUNT(*) FROM v",
        "WITH v AS (SELECT 1) CALL s3cr3t(1)",
    ],
)
def test_no_log_quotes_a_question(text: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        with contextlib.suppress(QueryRefused):
            parse(text)
        assert caplog.records == []
        with contextlib.suppress(ParseError):
            DuckDB().parse(text)
    assert caplog.records  # so that the parser's warnings would be seen


# ---- options --------------------------------------------------------------------------------------------------------


def test_options_are_read_exactly() -> None:
    text = CLAUSE.format(
        'epsilon = .1, Delta=1e-6, MAX_GROUPS_CONTRIBUTED = 2, privacy_unit_column = v."Who", '
        "group_selection_strategy = public_groups, min_privacy_units_per_group = 1e1, group_selection_epsilon = +0.05"
    )
    read = parse(text).options
    assert read.written
    assert (read.epsilon, read.delta, read.group_selection_epsilon) == (
        Fraction(1, 10),
        Fraction(1, 10**6),
        Fraction(1, 20),
    )
    assert (read.max_groups_contributed, read.max_rows_contributed, read.min_privacy_units_per_group) == (2, None, 10)
    assert read.privacy_unit_column == (Name(text="v", quoted=False), Name(text="Who", quoted=True))
    assert read.group_selection_strategy == "PUBLIC_GROUPS"
    assert read.positions["delta"] == column_of(text, "Delta")
    assert set(read.positions) == {*privacy_options._OPTIONS} - {"max_rows_contributed"}


@pytest.mark.parametrize("text", [CLAUSE.format(""), "SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) AS n FROM visits"])
def test_the_clause_may_be_empty(text: str) -> None:
    parsed = parse(text)
    assert parsed.options == PrivacyOptions(written=True)
    assert parsed.select == parse("SELECT COUNT(*) AS n FROM visits").select


def test_a_column_or_table_may_have_the_name_of_a_clause() -> None:
    assert not parse("SELECT options, COUNT(*) FROM visits GROUP BY options").options.written
    assert not parse("WITH differential_privacy AS (SELECT 1) SELECT 1 FROM differential_privacy").options.written
    assert parse(CLAUSE.format("privacy_unit_column = date")).options.privacy_unit_column is not None


@pytest.mark.parametrize(
    ("inside", "at", "reason"),
    [
        ("kappa = 1", "kappa", "There is no option 'kappa'"),
        ("epsilon = 1, EPSILON = 1", "EPSILON", "given twice"),
        ("epsilon", "epsilon", "does not begin a pair"),
        ("epsilon =", "epsilon", "takes a number"),
        ("= 1", "= 1", "does not begin a pair"),
        ("epsilon => 1", "epsilon", "does not begin a pair"),
        ("'epsilon' = 1", "'epsilon'", "does not begin a pair"),
        ("epsilon = 1,", ",", "A comma"),
        (",", ",", "A comma"),
        ("epsilon = '1'", "'1'", "takes a number above 0"),
        ("epsilon = 0", "0)", "takes a number above 0"),
        ("epsilon = 0.0e5", "0.0e5", "takes a number above 0"),
        ("epsilon = -1", "-1", "takes a number above 0"),
        ("epsilon = - -1", "- -1", "takes a number above 0"),
        ("epsilon = nan", "nan", "takes a number above 0"),
        ("epsilon = 1e31", "1e31", "takes a number above 0"),
        ("epsilon = 1e999999999", "1e99", "takes a number above 0"),
        ("epsilon = 1e-400", "1e-400", "takes a number above 0"),
        ("epsilon = 1 2", "1 2", "takes a number above 0"),
        ("epsilon = (1)", "(1)", "takes a number above 0"),
        ("epsilon = ?", "?", "takes a number above 0"),
        ("epsilon = 0x1", "0x1", "is not a number"),
        ("group_selection_epsilon = 0", "0)", "takes a number above 0"),
        ("delta = 1", "1)", "from 0 to below 1"),
        ("delta = -1e-6", "-1e-6", "from 0 to below 1"),
        ("max_rows_contributed = 0", "0)", "a whole number from 1"),
        ("max_rows_contributed = 1.5", "1.5", "a whole number from 1"),
        ("max_groups_contributed = 1000000001", "1000", "a whole number from 1"),
        ("min_privacy_units_per_group = TRUE", "TRUE", "a whole number from 1"),
        ("privacy_unit_column = 'person'", "'person'", "the name of a column"),
        ("privacy_unit_column = a.b.c", "a.b", "the name of a column"),
        ("privacy_unit_column = 7", "7", "the name of a column"),
        ("privacy_unit_column = a b", "a b", "the name of a column"),
        ("group_selection_strategy = 'PUBLIC_GROUPS'", "'PUBLIC", "LAPLACE_THRESHOLD or PUBLIC_GROUPS"),
        ("group_selection_strategy = GAUSSIAN", "GAUSSIAN", "LAPLACE_THRESHOLD or PUBLIC_GROUPS"),
    ],
)
def test_an_option_that_is_not_understood_is_refused_at_its_place(inside: str, at: str, reason: str) -> None:
    text = CLAUSE.format(inside)
    refused = refusal(text, [1] if "?" in inside else ())
    assert reason in refused.reason
    assert refused.position == (1, text.rindex(at, 0, text.index(" COUNT")) + 1)
    assert refused.remedy


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("SELECT COUNT(*) FROM visits WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1)", "WITH"),
        ("SELECT COUNT(*) FROM visits OPTIONS(epsilon = 1)", "OPTIONS"),
        ("SELECT OPTIONS(epsilon = 1) COUNT(*) FROM visits", "OPTIONS"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY WITH DIFFERENTIAL_PRIVACY 1 FROM visits", "WITH"),
        (
            f"{CLAUSE.format('epsilon = 1')} UNION ALL {CLAUSE.format('epsilon = 2')}",
            "WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 2",
        ),
        ("SELECT WITH ANONYMIZATION COUNT(*) FROM visits", "WITH"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1 FROM visits", "(epsilon"),
    ],
)
def test_a_clause_in_the_wrong_place_is_refused(text: str, at: str) -> None:
    assert refusal(text).position == column_of(text, at)


def test_the_clause_belongs_to_the_select_after_the_parts() -> None:
    parsed = parse("WITH v AS (SELECT 1 AS x) SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) COUNT(*) FROM v")
    assert parsed.options.epsilon == 1


def test_positions_after_the_clause_are_those_of_the_text() -> None:
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY\n  OPTIONS (epsilon = 1)\n  SUM(x, epsilon => 1) AS s,\n COUNT(* FROM visits"
    )
    assert refusal(text).position == (4, 10)
    select = parse(text.replace("(*", "(*)")).select
    places = {node.meta["start"] for node in select.expressions[0].find_all(exp.Identifier)}
    assert places == {text.index("x,"), text.index("s,")}


@pytest.mark.parametrize("text", ["SELECT WITH DIFFERENTIAL_PRIVACY , COUNT(*) FROM t", CLAUSE.format("") + " ,"])
def test_a_clause_hides_no_comma(text: str) -> None:
    assert "A comma" in str(refusal(text))


# ---- named arguments ------------------------------------------------------------------------------------------------


def aggregate_arguments(text: str) -> dict[str, Any]:
    """Return the named arguments of each aggregate by what the tree says there is, and that all have found theirs."""
    parsed = parse(text)
    found = {}
    for node in parsed.select.find_all(exp.AggFunc):
        named = parsed.arguments.get(node.meta.get("start", -1))
        if named is not None:
            found[type(node).__name__] = named
    assert len(found) == len(parsed.arguments)
    return found


def test_named_arguments_are_found_by_the_offset_of_the_name() -> None:
    text = (
        "SELECT COUNT(*, contribution_bounds_per_group => (0, 5)), COUNT(*), ABS(SUM(x)),\n"
        " Sum(x, Contribution_Bounds_Per_Group => (-1.5, +.5), epsilon => 0.1) FILTER (WHERE y) AS s FROM visits"
    )
    parsed = parse(text)
    assert set(parsed.arguments) == {text.index("COUNT"), text.index("Sum")}
    counted, summed = parsed.arguments[text.index("COUNT")], parsed.arguments[text.index("Sum")]
    assert counted.contribution_bounds_per_group == (Fraction(0), Fraction(5))
    assert summed.contribution_bounds_per_group == (Fraction(-3, 2), Fraction(1, 2))
    assert summed.epsilon == Fraction(1, 10)
    assert (summed.position, summed.positions["epsilon"]) == ((2, 2), (2, 55))
    assert set(aggregate_arguments(text)) == {"Count", "Sum"}


FUNCTIONS = {
    "COUNT(DISTINCT x, {})": "Count",
    "COUNT_IF(x > 0, {})": "CountIf",
    "AVG(x, {})": "Avg",
    "VAR_POP(x, {})": "VariancePop",
    "STDDEV(x, {})": "Stddev",
    "CORR(x, y, {})": "Corr",
    "MEDIAN(x, {})": "Median",
    "MIN(ABS(x), {})": "Min",
    "MAX(CAST(x AS DOUBLE), {})": "Max",
    "QUANTILE(x, 0.5, {})": "Quantile",
    "QUANTILE_CONT(x, 0.5, {})": "PercentileCont",
    "QUANTILE_DISC(x, 0.5, {}) FILTER (WHERE y)": "PercentileDisc",
    "APPROX_QUANTILE(x, 0.5, {})": "ApproxQuantile",
    "PERCENTILE_CONT(0.5, {}) WITHIN GROUP (ORDER BY x)": "PercentileCont",
    "APPROX_COUNT_DISTINCT(x, {})": "ApproxDistinct",
    "ARG_MAX(x, y, {})": "ArgMax",
    "CAST(ABS(MAX(x, {})) AS INTEGER) + MIN(z)": "Max",
    "STRING_AGG(x, ',', {})": "GroupConcat",
}


@pytest.mark.parametrize("call", FUNCTIONS)
def test_every_aggregate_finds_its_arguments(call: str) -> None:
    text = (
        f"SELECT MIN(a), {call.format('contribution_bounds_per_row => (0, 1)')}, MAX(b), QUANTILE(c, 0.1) FROM visits"
    )
    found = aggregate_arguments(text)
    assert list(found) == [FUNCTIONS[call]]
    assert found[FUNCTIONS[call]].contribution_bounds_per_row == (0, 1)
    without = text.replace(", contribution_bounds_per_row => (0, 1)", "")
    assert parse(text).select == parse(without).select


def test_null_says_nothing_and_a_report_format_changes_nothing() -> None:
    options = "epsilon = 1, delta = NULL, max_rows_contributed = NULL"
    arguments = "report_format => 'JSON', contribution_bounds_per_row => NULL, epsilon => 2"
    said = parse(f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({options}) SUM(x, {arguments}) FROM visits")
    assert said.options.epsilon == 1
    assert said.options.delta is None
    assert said.options.max_rows_contributed is None
    (named,) = said.arguments.values()
    assert named.epsilon == 2
    assert named.contribution_bounds_per_row is None
    with refused_as("unknown_option", saying="'epsilom'"):
        parse("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilom = NULL) COUNT(*) FROM visits")


def test_many_aggregates_find_their_own() -> None:
    calls = [f"{name}(x{i}, epsilon => {i})" for i, name in enumerate(["MAX", "SUM", "MIN", "MAX"] * 5, start=1)]
    parsed = parse(f"SELECT {', '.join(calls)} FROM visits")
    for node in parsed.select.expressions:
        assert parsed.arguments[node.meta["start"]].epsilon == int(node.this.name[1:])


def test_arguments_of_another_aggregate_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the tests above would see it."""
    monkeypatch.setattr(dialect, "_innermost", lambda calls, _node: max(calls, key=lambda call: -call.name.start))
    with pytest.raises(AssertionError):
        test_many_aggregates_find_their_own()


@pytest.mark.parametrize(
    ("item", "at", "reason"),
    [
        ("epsilon => 1", "epsilon", "outside a function"),
        ("(epsilon => 1)", "epsilon", "outside a function"),
        ("x IN (epsilon => 1)", "epsilon", "outside a function"),
        ("COUNT(*) FILTER (epsilon => 1)", "epsilon", "outside a function"),
        ("ABS(x, epsilon => 1)", "ABS", "ABS takes no named arguments"),
        ("SUM(epsilon => 1, x)", "x)", "after a named one"),
        ("SUM(x, report_format => 'XML')", "'XML", "takes JSON or PROTO"),
        ("SUM(x, report => NULL)", "report", "There is no named argument 'report'"),
        ("SUM(x, x => 1)", "x =>", "There is no named argument 'x'"),
        ("SUM(x, 'epsilon' => 1)", "'eps", "does not begin a pair"),
        ("SUM(x, epsilon => 1, Epsilon => 2)", "Epsilon", "given twice"),
        ("SUM(x, epsilon =>)", "epsilon", "takes a number"),
        ("SUM(x, epsilon => 0)", "0)", "takes a number"),
        ("SUM(x, epsilon => -1)", "-1", "takes a number"),
        ("SUM(x, epsilon => y)", "y", "takes a number"),
        ("SUM(x, epsilon => 1 ORDER BY y)", "1 ORDER", "takes a number"),
        ("SUM(x, contribution_bounds_per_group => 5)", "5", "two numbers"),
        ("SUM(x, contribution_bounds_per_group => (5))", "(5", "two numbers"),
        ("SUM(x, contribution_bounds_per_group => (5, 1))", "(5", "two numbers"),
        ("SUM(x, contribution_bounds_per_group => (1, 2, 3))", "(1", "two numbers"),
        ("SUM(x, contribution_bounds_per_group => (0, 1e31))", "(0", "two numbers"),
        ("SUM(x, contribution_bounds_per_row => (0, 1e-19))", "(0", "two numbers"),
        ("SUM(x, contribution_bounds_per_row => (NULL, 1))", "(NULL", "two numbers"),
        ("SUM(x, contribution_bounds_per_row => (?, 1))", "(?", "two numbers"),
        ("SUM(x, contribution_bounds_per_row => (0, 1)", "(x", "not closed"),
    ],
)
def test_a_named_argument_that_is_not_understood_is_refused_at_its_place(item: str, at: str, reason: str) -> None:
    text = f"SELECT {item}" if " FROM " in item else f"SELECT {item} FROM visits"
    refused = refusal(text, [1] if "?" in item else ())
    assert reason in refused.reason
    assert refused.position == (1, text.index(item) + item.rindex(at) + 1)
    assert refused.remedy


def test_what_is_not_wired_is_refused() -> None:
    for text in (CLAUSE.format("epsilon = 1"), "SELECT SUM(x, epsilon => 1) FROM t", "EXPLAIN PRIVACY SELECT 1 FROM t"):
        with refused_as("misplaced_option"):
            plain(parse(text))


# ---- soup -----------------------------------------------------------------------------------------------------------

WORDS = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ( ) , = => epsilon delta max_rows_contributed max_groups_contributed "
    "privacy_unit_column group_selection_strategy PUBLIC_GROUPS contribution_bounds_per_group "
    "contribution_bounds_per_row 1 0.5 - + . 1e-6 'a' \"b\" x y COUNT SUM MAX QUANTILE ( ( ) ) * FROM visits WHERE AND "
    "GROUP BY ORDER LIMIT EXPLAIN PRIVACY ? ? :a $a $b $ $1 ?:: :: DATE CASE WHEN THEN END IN FILTER OVER UNION AS ; "
    "$$x$$ -- /* */ ü \U000f0000 BEGIN [ { CAST INTERVAL : @ ? ?? LIKE IS NULL NOT BETWEEN DISTINCT USING JOIN"
)
FRAMES = [
    "{}",
    "SELECT {} FROM visits",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({}) COUNT(*) FROM visits",
    "SELECT SUM(x, {}) FROM visits",
    "EXPLAIN PRIVACY SELECT COUNT(*) FROM visits WHERE {}",
    "WITH v AS ({}) SELECT COUNT(*) FROM v",
]
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.dates(), st.datetimes(),
    st.decimals(), st.fractions(), st.binary(max_size=2), st.lists(st.integers(), max_size=1),
)  # fmt: skip


@examples(25, 1_500)
@given(
    frame=st.sampled_from(FRAMES),
    words=st.lists(st.sampled_from(WORDS.split()), max_size=14),
    space=st.sampled_from([" ", "", "\n"]),
    parameters=st.one_of(
        st.lists(VALUES, max_size=3), st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES), st.just("a")
    ),
)
def test_any_words_with_any_values_are_parsed_or_refused(
    frame: str, words: list[str], space: str, parameters: Any
) -> None:
    text = frame.format(space.join(words))
    try:
        parsed = parse(text, parameters)
    except (QueryRefused, InvalidParameter):
        return
    assert isinstance(parsed, Parsed)
    assert not list(parsed.select.find_all(exp.Placeholder))
    aggregates = {node.meta.get("start") for node in parsed.select.find_all(exp.AggFunc, exp.Anonymous)}
    assert set(parsed.arguments) <= aggregates


def test_types_in_types_are_refused_before_the_parser_reads_them_again_and_again() -> None:
    """The parser reads what is in brackets behind a type twice: 18 levels took eleven seconds."""

    def nested(levels: int, times: int = 1) -> str:
        return f"SELECT COUNT(*) FROM visits WHERE 0 IN ({', '.join(['int(' * levels + '1' + ')' * levels] * times)})"

    parse(nested(6))
    parse("SELECT " + ", ".join(["SUM(CAST(age AS DECIMAL(10, 2)))"] * 100) + " FROM visits")
    for text in (nested(11), nested(18), nested(8, 20), nested(18).replace("int", "date")):
        with refused_as("query_too_long"):
            parse(text)


def test_hundreds_of_sets_are_refused_before_the_parser_sees_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def sets(number: int) -> str:
        return f"WITH c AS ({' UNION ALL '.join(['SELECT 1 AS x'] * number)}) SELECT COUNT(*) AS n FROM visits"

    parse(sets(100))
    monkeypatch.setattr("lapwing.query.text.parse._tree", lambda *_: pytest.fail("it was parsed"))
    with pytest.raises(QueryRefused):
        parse(sets(500))
