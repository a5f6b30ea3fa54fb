"""No argument is left out without a word: each stands in the tree, or the question is refused where it stands."""

import pytest

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
