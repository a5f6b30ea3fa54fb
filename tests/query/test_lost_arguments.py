"""No argument is left out without a word: each stands in the tree, or the question is refused where it stands."""

import pytest
from sqlglot.dialects.duckdb import DuckDB

from lapwing.errors import QueryRefused
from lapwing.query.aggregates import outputs
from lapwing.query.expressions import calls
from lapwing.query.text import parse as parsing
from lapwing.query.text.parse import parse
from tests.support.refusals import refused_as

KEPT = (
    "DATE_DIFF('d', a, b)",
    "DATE_TRUNC('days', a)",
    "TIMESTAMP_TRUNC(a, DAY)",
    "STRFTIME(a, '%Y')",
    "DATE_ADD(a, INTERVAL '3 days')",
    "a + INTERVAL (n) DAY",
    "EXTRACT('year' FROM a)",
    "SUBSTRING(a FROM 2 FOR 3)",
    "POSITION('a' IN b)",
    "COALESCE(a, NULL, TRUE)",
    "CAST(a AS DECIMAL(10, 2))",
    "a LIKE ANY ('a%', 'b%')",
    "NTILE(4) OVER (w)",
    "LAG(a, 1, 0 IGNORE NULLS) OVER (ORDER BY b)",
    "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY a DESC)",
    "TO_CHAR(a, 'YYYY-MM')",
    "LPAD('x', 3, ?)",
)
# What is left out, as the refusal points at it.
LEFT_OUT = {
    "LPAD('x', 3, 'a', 'b')": "'b'",
    "LPAD('x', 3, 'a', NULL)": "NULL",
    "LPAD('x', 3, 'a', PI())": "PI",
    "LPAD('x', 3, 'a', UPPER(b))": "b)",
    "RPAD('x', 3, 'a', (b))": "b)",
    "DATE_DIFF('day', a, b, c)": "c)",
    "DATE_DIFF('day', a, b, 'day')": "'day')",
    "DATE_TRUNC('month', a, b)": "b)",
    "STRFTIME(a, '%Y', 'x')": "'x'",
    "QUANTILE_CONT(a, 0.5, 1)": "1)",
    "REGEXP_REPLACE(a, 'b', 'c', 'g', 'i')": "'i'",
}


def _question(expression: str) -> str:
    return f"SELECT COUNT(*) AS n, {expression} AS x FROM t WINDOW w AS (PARTITION BY c)"


@pytest.mark.parametrize("expression", KEPT)
def test_what_is_kept_is_parsed(expression: str) -> None:
    assert parse(_question(expression), ["a"] if "?" in expression else []).select


@pytest.mark.parametrize("expression", LEFT_OUT)
def test_what_would_be_left_out_is_refused_where_it_stands(expression: str) -> None:
    question = _question(expression)
    with refused_as("wrong_argument_count") as refused:
        parse(question)
    place = question.index(expression) + expression.rindex(LEFT_OUT[expression])
    assert refused.value.position == (1, place + 1)
    assert str(refused.value).startswith(expression.split("(", 1)[0])


@pytest.mark.parametrize("expression", LEFT_OUT)
def test_without_the_check_the_parser_forgets_them(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "require_all_arguments", lambda *_: None)
    assert parse(_question(expression)).select


# ---- functions that no question may use ------------------------------------------------------------------------------

# With the function that the refusal names.
NOT_ANSWERED = {
    "CONVERT(KIND, a)": "CONVERT",
    "DATE_DIFF('day', CONVERT(KIND, a), b)": "CONVERT",
    "TRY_CONVERT(KIND, a)": "TRY_CONVERT",
    "ARG_MAX(a, b, c, d)": "ARG_MAX",
    "MAP(a, b, c)": "MAP",
}


@pytest.mark.parametrize("expression", NOT_ANSWERED)
def test_a_function_that_is_not_answered_is_named_instead_of_its_arguments(expression: str) -> None:
    question = _question(expression)
    with refused_as("function_not_supported", saying=f"function {NOT_ANSWERED[expression]} ") as refused:
        parse(question)
    assert refused.value.position == (1, question.index(NOT_ANSWERED[expression] + "(") + 1)


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.long)])
def test_every_function_with_an_argument_too_many_is_one_that_is_answered(every: int) -> None:
    """As no other would be helped by fewer arguments; and the parser stumbles over none."""
    answered = {kind.__name__ for kind in (*calls.HANDLERS, *outputs.HANDLERS)}
    names = sorted(DuckDB.Parser.FUNCTIONS.keys() | DuckDB.Parser.FUNCTION_PARSERS.keys())[::every]
    for name in names:
        kinds, too_many = set[str](), False
        for given in range(1, 8):
            arguments = ", ".join(("a", "'$.b'", "c", "d", "'e'", "f", "g")[:given])
            try:
                where = parse(f"SELECT COUNT(*) AS n FROM t WHERE {name}({arguments})").select.args["where"]
                kinds.add(type(where.this).__name__)
            except QueryRefused as refused:
                too_many |= refused.cause.value == "wrong_argument_count"
        assert not too_many or kinds & answered, name
