"""Regular expressions: what is let through compiles everywhere and means the same; what is wrong is refused."""

import random
import re

import duckdb
import pytest

from lapwing.errors import QueryRefused
from lapwing.query.expressions import patterns
from tests.support.query.evaluator import expression_of

TEXTS = [
    "",
    "a",
    "ab",
    "abc",
    "aab",
    "a-b",
    "12",
    "a1b2",
    "x y",
    "A",
    "Ünï",
    "😀",
    "a\nb",
    "(a)",
    "[",
    "a.b",
    "aaaaaaaaaa",
    "\\",
]
PIECES = [
    *("a", "b", "c", ".", "-", "1", " ", "Ü", "😀", "^", "$", "|", "(", ")", "(?:", "[ab]"),
    *("[^a]", "[a-c1]", r"[\d-]", "["),
    *("]", "*", "+", "?", "*?", "{2}", "{1,3}", "{2,}", "{", "}", r"\d", r"\w", r"\s", r"\b", r"\.", r"\\", "\\"),
    *("(?i)", "(?=a)", r"\D", r"\W", r"\S", r"\B", r"\(", r"\1", r"\x41", r"\n", r"[\w.]", r"[^\s]", "[b-a]"),
    *("[[:alpha:]]", r"\p{L}", r"\Q", "{3,2}"),
]  # fmt: skip


def drawn(chance: random.Random) -> str:
    return "".join(chance.choice(PIECES) for _ in range(chance.randint(0, 6)))


def accepted(text: str) -> patterns.Pattern | None:
    try:
        return patterns.check(text)
    except QueryRefused:
        return None


@pytest.mark.long
@pytest.mark.parametrize("many", [1_000, pytest.param(6_000, marks=pytest.mark.long)])
def test_what_is_let_through_means_the_same_to_two_engines(many: int) -> None:
    chance, connection = random.Random(2), duckdb.connect()
    connection.execute("CREATE TABLE texts AS SELECT unnest(?::VARCHAR[]) AS t", [TEXTS])
    let_through = 0
    for pattern in {drawn(chance) for _ in range(many)}:
        known = accepted(pattern)
        if known is None:
            continue
        let_through += 1
        compiled = re.compile(expression_of(pattern), re.ASCII)
        assert compiled.groups == known.groups
        quoted = "'" + pattern.replace("'", "''") + "'"
        found = connection.execute(
            f"SELECT t, regexp_matches(t, {quoted}, ''), regexp_full_match(t, {quoted}, ''), "
            f"regexp_extract(t, {quoted}, {known.groups}, '') FROM texts"
        ).fetchall()
        for text, matches, fully, _ in found:
            assert matches == (compiled.search(text) is not None), (pattern, text)
            assert fully == (compiled.fullmatch(text) is not None), (pattern, text)
    connection.close()
    assert let_through > many / 10


@pytest.mark.parametrize("many", [700, pytest.param(3_000, marks=pytest.mark.long)])
def test_what_the_engine_refuses_is_refused_before(many: int) -> None:
    """An invalid pattern would raise when the question runs, after it is paid."""
    chance, connection = random.Random(3), duckdb.connect()
    invalid = 0
    for pattern in {drawn(chance) for _ in range(many)}:
        try:
            connection.execute(f"SELECT regexp_matches('a', '{pattern}')").fetchall()
        except duckdb.Error:
            invalid += 1
            assert accepted(pattern) is None, pattern
    connection.close()
    assert invalid > many / 10


@pytest.mark.parametrize(
    "text",
    [
        "a{101}",
        "(a{50}){50}",
        "(((a{10}){10}){10}){10}",
        "a" * 201,
        "(" * 11 + "a" + ")" * 11,
        r"\pL",
        "a**",
        "^*",
        "x{,3}",
    ],
)
def test_what_is_too_large_or_strange_is_refused(text: str) -> None:
    with pytest.raises(QueryRefused):
        patterns.check(text)


def test_the_largest_patterns_compile(recwarn: pytest.WarningsRecorder) -> None:
    connection = duckdb.connect()
    for pattern in ["(?:[a-zäöü]{15}){15}", "(?:a|b|c|d){99}", r"(?:\w+\s*){100}", "[^😀]{100}" * 5]:
        assert accepted(pattern) is not None
        connection.execute(f"SELECT regexp_matches(repeat('ab ', 1000), '{pattern}')").fetchall()
    connection.close()


def test_a_grammar_that_lets_too_much_through_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "SPECIAL", patterns.SPECIAL - {"*"})
    with pytest.raises((AssertionError, re.error, duckdb.Error)):
        test_what_is_let_through_means_the_same_to_two_engines(2_000)
