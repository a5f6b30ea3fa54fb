"""A parameter is one value in one place, whatever it holds, and it is in no error."""

import re
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import IntEnum, StrEnum
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from lapwing.errors import InvalidParameter, QueryRefused
from lapwing.query.text import parameters as module
from lapwing.query.text.parse import parse
from lapwing.query.text.positions import position_of
from tests.support.effort import examples

SECRET = "s3cr3t"
NASTY = [
    "'", "''", '"', "\\", "\\'; DROP TABLE visits; --", "' OR '1'='1", "--", "/*", "*/ ;", "$$", "$1", "$a", "?", ":a",
    "{0}", "%s", "%", "\n\r\t", "\x01\x7f", "\u2019", "e\u0301", "\U0001f600", "\u202eevil", "\ufeff", "\U000f0000",
    "x" * 5000,
]  # fmt: skip


def nodes(text: str, parameters: Any) -> list[exp.Expr]:
    """Return the constants that parameters became, in the order of the text."""
    found = [node for node in parse(text, parameters).select.walk(bfs=False) if "parameter" in node.meta]
    outer = [node for node in found if node.parent is None or "parameter" not in node.parent.meta]
    return sorted(outer, key=lambda node: int(node.meta["start"]))


def constant(value: object) -> exp.Expr:
    (node,) = nodes("SELECT COUNT(*) FROM visits WHERE x = ?", [value])
    return node


def literal(text: str, *, is_string: bool = False) -> exp.Expr:
    return exp.Literal(this=text, is_string=is_string)


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Stamp(datetime):
    """A moment that may know more than a datetime, as those of data frames do."""


# ---- values ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7, "7"),
        (-7, "-7"),
        (Level.HIGH, "3"),
        (np.int64(-5), "-5"),
        (0.1, "0.1"),
        (-0.0, "0"),
        (1e22, "1" + "0" * 22),
        (1e-18, "0." + "0" * 17 + "1"),
        (np.float64(2.5), "2.5"),
        (Decimal("1.500"), "1.5"),
        (Decimal("-1E+3"), "-1000"),
        (Fraction(-1, 8), "-0.125"),
        (10**30, "1" + "0" * 30),
    ],
)
def test_numbers_are_exact(value: object, text: str) -> None:
    assert constant(value) == literal(text)


@pytest.mark.parametrize("value", [*NASTY, "", Colour.RED, np.str_("a"), " 1 ", "1", "NULL"])
def test_texts_arrive_intact(value: str) -> None:
    node = constant(value)
    assert (type(node), node.this, node.args["is_string"]) == (exp.Literal, str.__str__(value), True)
    assert type(node.this) is str


def test_other_values_have_their_type() -> None:
    assert constant(None) == exp.Null()
    assert constant(True) == exp.Boolean(this=True)
    assert constant(False) == exp.Boolean(this=False)
    for value, kind, text in [
        (date(1, 2, 3), exp.DType.DATE, "0001-02-03"),
        (datetime(2026, 1, 2), exp.DType.TIMESTAMP, "2026-01-02 00:00:00"),
        (datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), exp.DType.TIMESTAMP, "2026-01-02 03:04:05.000006"),
        (datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=5))), exp.DType.TIMESTAMP, "2026-01-01 19:00:00"),
        (datetime(2026, 1, 2, fold=1), exp.DType.TIMESTAMP, "2026-01-02 00:00:00"),
    ]:
        node = constant(value)
        assert isinstance(node, exp.Cast)
        assert (node.to.this, node.this) == (kind, literal(text, is_string=True))


class Nowhere(tzinfo):
    """A zone that knows of no offset; such a moment is naive to Python."""

    def utcoffset(self, _moment: datetime | None) -> None:
        return None

    dst = utcoffset

    def tzname(self, _moment: datetime | None) -> None:
        return None


def test_a_zone_without_offset_is_none() -> None:
    node = constant(datetime(2026, 1, 2, tzinfo=Nowhere()))
    assert node.this == literal("2026-01-02 00:00:00", is_string=True)


@pytest.mark.parametrize(
    "value",
    [
        float("nan"), float("inf"), -float("inf"), Decimal("NaN"), Decimal("sNaN"), Decimal("-Infinity"),
        10**30 + 1, -(10**4000), 1e300, 1e-19, Decimal("1e999999999"), Decimal("1e-999999999"),
        Decimal("1." + "1" * 500),
        Fraction(1, 3), Fraction(1, 2**60), 1j, b"bytes", bytearray(b"x"), [1], (1,), {"a": 1}, {1}, object(), print,
        time(1), timedelta(1), np.bool_(True), np.float32(0.5), np.array(1), np.datetime64("2026-01-01"),
        Stamp(2026, 1, 1), SECRET + "\0", SECRET + "\ud800", SECRET * 20_000, "ü" * 40_000,
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=5))),
    ],
)  # fmt: skip
def test_what_is_no_constant_is_refused(value: object) -> None:
    for text, given_ in (("SELECT ? FROM visits", [value]), ("SELECT $age FROM visits", {"age": value})):
        with pytest.raises(InvalidParameter) as refused:
            parse(text, given_)
        assert str(refused.value).startswith(("Parameter 1 ", "Parameter 'age' "))
        assert SECRET not in str(refused.value)
        assert len(str(refused.value)) < 200


def test_texts_count_as_often_as_they_are_used() -> None:
    used = "SELECT 1 FROM t WHERE x IN ({})"
    assert parse(used.format("$a, $a"), {"a": "x" * 30_000})
    with pytest.raises(InvalidParameter, match="longer than 65,536 bytes"):
        parse(used.format("$a, $a, $a"), {"a": "x" * 30_000})


# ---- places ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("SELECT 1 FROM t WHERE x IN (?,?,?) AND y>? LIMIT ?", [1, 2, 3, 4, 5]),
        ("SELECT 1 FROM t WHERE x IN ($a,$b,$c) AND y>$d LIMIT $e", dict(zip("abcde", [1, 2, 3, 4, 5], strict=True))),
        ("SELECT 1 FROM t WHERE x IN (:a,:b, :c) AND y>:d LIMIT :e", dict(zip("abcde", [1, 2, 3, 4, 5], strict=True))),
        ("SELECT 1 FROM t WHERE x IN ($a,:b,$c) AND y>$d LIMIT :e", dict(zip("abcde", [1, 2, 3, 4, 5], strict=True))),
        (
            "WITH v AS (SELECT 1 FROM t WHERE x IN (?, ?)) SELECT CASE ? WHEN ? THEN 1 END FROM v OFFSET ?",
            [1, 2, 3, 4, 5],
        ),
        ("SELECT 1 FROM t WHERE x LIKE ? AND y BETWEEN ? AND -? AND ROUND(z, ?) = COALESCE(?, x)", [1, 2, 3, 4, 5]),
        ("EXPLAIN PRIVACY SELECT ?, ?+?, ?-?", [1, 2, 3, 4, 5]),
    ],
)
def test_every_value_comes_to_its_place(text: str, parameters: Any) -> None:
    found = nodes(text, parameters)
    assert [node.name for node in found] == list("12345")
    numbers = iter("12345")
    written = re.sub(r"\?|[$:][a-e]", lambda _found: next(numbers), text)
    assert parse(text, parameters).select == parse(written).select
    for node in found:
        start = node.meta["start"]
        assert text[start] in "?$:"
        assert position_of(cast(exp.Expression, node), text) == (1, start + 1)
        if isinstance(parameters, dict):
            assert node.meta["parameter"] == "$" + "abcde"[int(node.name) - 1] == "$" + text[start + 1]


def test_a_value_in_the_wrong_place_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the test above would see it."""
    right = module._exchange
    monkeypatch.setattr(
        module,
        "_exchange",
        lambda pairs: right([(pair[0], other[1]) for pair, other in zip(pairs, [*pairs[1:], *pairs[:1]], strict=True)]),
    )
    with pytest.raises(AssertionError):
        test_every_value_comes_to_its_place("SELECT ?, ?+?, ?-? FROM t", [1, 2, 3, 4, 5])


def test_a_name_may_be_used_often_and_be_any_word() -> None:
    found = nodes("SELECT $a+$a+:a,$select, :limit,$größe FROM t", {"a": 1, "select": 2, "limit": 3, "größe": 4})
    assert [node.name for node in found] == ["1", "1", "1", "2", "3", "4"]


def test_the_tree_of_a_written_constant_is_that_of_a_parameter() -> None:
    text = "SELECT SUM(x) FROM t WHERE a IN ({}, {}) AND b > {} AND c = {} OR {} LIMIT {}"
    written = text.format("'it''s'", "1.5", "CAST('2026-01-01' AS DATE)", "NULL", "TRUE", "3")
    parameters = ["it's", 1.5, date(2026, 1, 1), None, True, 3]
    assert parse(text.format(*"??????"), parameters).select == parse(written).select


def test_a_cast_may_follow() -> None:
    assert (
        parse("SELECT ?::DATE, $$".replace("$$", "1"), ["2026-01-01"]).select
        == parse("SELECT '2026-01-01'::DATE, 1").select
    )


@pytest.mark.parametrize(
    "text", ['SELECT \'a ? $b :c\', "?", "$b" FROM t -- ? $a', "SELECT a$b, b:c, d: 1 /* :a */ FROM t"]
)
def test_what_only_resembles_a_parameter_is_left_alone(text: str) -> None:
    names = {str(node.this) for node in parse(text).select.find_all(exp.Identifier, exp.Literal)}
    assert names & {"a ? $b :c", "a$b"}
    assert not any(character >= "\U000f0000" for name in names for character in name)


def test_a_text_may_hold_every_character_that_stands_for_a_dollar() -> None:
    few = "".join(map(chr, range(0xF0000, 0xF1000)))
    (node,) = nodes(f"SELECT 1 FROM t WHERE x = '{few}$y' AND y = $a", {"a": 7})
    assert node.name == "7"
    assert module.marked("$a" + few)[0][1:] == "a" + few


# ---- refused --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "parameters", "column", "reason"),
    [
        ("SELECT ? FROM t", [], 8, "? number 1 has no value"),
        ("SELECT ?, ? FROM t", [1], 11, "? number 2 has no value"),
        ("SELECT $a, $b FROM t", {"a": 1}, 12, "$b has no value"),
        ("SELECT $A FROM t", {"a": 1}, 8, "$A has no value"),
        ("SELECT $a FROM t", {}, 8, "$a has no value"),
        ("SELECT ?, $a FROM t", [1], 11, "several kinds"),
        ("SELECT :a, ? FROM t", [1], 12, "several kinds"),
        ("SELECT ? FROM t", {"a": 1}, 8, "does not go with"),
        ("SELECT :a FROM t", [1], 8, "does not go with"),
        ("SELECT $2 FROM t", [1], 8, "$2 has no value"),
        ("SELECT $1, ? FROM t", [1], 12, "several kinds"),
        ("SELECT $a, $1 FROM t", {"a": 1}, 12, "several kinds"),
        ("SELECT $1 FROM t", {"a": 1}, 8, "does not go with"),
        ("SELECT $0 FROM t", [1], 8, "'$0' is not a parameter"),
        ("SELECT $01 FROM t", [1], 8, "'$01' is not a parameter"),
        ("SELECT $123456 FROM t", [1], 8, "'$123456' is not a parameter"),
        ("SELECT $1a FROM t", [1], 8, "'$1a' is not a parameter"),
        ("SELECT ?1 FROM t", [1], 8, "by number"),
        ("SELECT :1 FROM t", [1], 8, "by number"),
        ("SELECT $ FROM t", [1], 8, "'$' is not a parameter"),
        ("SELECT $ a FROM t", {"a": 1}, 8, "'$' is not a parameter"),
        ("SELECT $a$b FROM t", {"a": 1}, 8, "'$a$b' is not a parameter"),
        ("SELECT $x$text$x$ FROM t", {}, 8, "is not a parameter"),
        ("SELECT 1 FROM ?", ["t"], 15, "stands for a name"),
        ("SELECT 1 FROM x.?", ["t"], 17, "stands for a name"),
        ("SELECT x.? FROM t", ["a"], 10, "stands for a name"),
        ("SELECT ?.x FROM t", ["a"], 8, "stands for a name"),
        ("SELECT 1 AS ? FROM t", ["a"], 13, "stands for a name"),
        ("SELECT 1 FROM t AS ?", ["a"], 20, "stands for a name"),
        ("SELECT DATE ? FROM t", ["2026-01-01"], 13, "stands for a name"),
        ("SELECT 1 FROM t JOIN u USING (?)", ["a"], 31, "stands for a name"),
        ("SELECT 1 FROM t GROUP BY ?", [1], 26, "stands for a key"),
        ("SELECT 1 FROM t GROUP BY (x, (?))", [1], 31, "stands for a key"),
        ("SELECT 1 FROM t GROUP BY ROLLUP (?)", [1], 34, "stands for a key"),
        ("SELECT 1 FROM t ORDER BY x, ? DESC", [1], 29, "stands for a key"),
        ("SELECT DISTINCT ON (?) 1 FROM t", [1], 21, "stands for a key"),
        ("SELECT CAST(x AS ?) FROM t", ["DATE"], 19, "not understood"),
        ("SELECT ?(x) FROM t", ["SUM"], 8, "stands for a name"),
        ("SELECT x ? y FROM t", [1], 12, "not understood"),
    ],
)
def test_what_is_no_place_for_a_value_is_refused(text: str, parameters: Any, column: int, reason: str) -> None:
    with pytest.raises(QueryRefused) as refused:
        parse(text, parameters)
    assert reason in refused.value.reason
    assert refused.value.position == (1, column)
    assert refused.value.remedy


@pytest.mark.parametrize(
    ("text", "parameters", "reason"),
    [
        ("SELECT 1 FROM t", [1], "The values are 1 and the ? in the query 0"),
        ("SELECT ? FROM t", [1, SECRET], "The values are 2 and the ? in the query 1"),
        ("SELECT $a FROM t", {"a": 1, "b": SECRET}, "Parameter 'b' is not in the query"),
        ("SELECT 1 FROM t", {"b'; --": SECRET}, "A parameter of another name"),
        ("SELECT $a FROM t", {1: SECRET}, "of the type int"),
        ("SELECT ? FROM t", SECRET, "of the type str"),
        ("SELECT ? FROM t", SECRET.encode(), "of the type bytes"),
        ("SELECT ? FROM t", 5, "of the type int"),
        ("SELECT ? FROM t", None, "of the type NoneType"),
        ("SELECT ? FROM t", {SECRET}, "of the type set"),
        ("SELECT ? FROM t", (value for value in [1]), "of the type generator"),
    ],
)
def test_values_that_no_parameter_takes_are_refused(text: str, parameters: Any, reason: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        parse(text, parameters)
    assert reason in str(refused.value)
    assert SECRET not in str(refused.value)


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.dates(), st.datetimes(timezones=st.timezones()),
    st.decimals(), st.fractions(), st.binary(), st.sampled_from(NASTY),
)  # fmt: skip


@examples(40, 1_000)
@given(values=st.lists(VALUES, min_size=1, max_size=4))
def test_any_value_is_one_constant_or_refused_without_showing_it(values: list[object]) -> None:
    text = f"SELECT COUNT(*) FROM t WHERE x IN ({','.join('?' * len(values))})"
    try:
        found = nodes(text, values)
    except InvalidParameter as refused:
        shown = str(refused)
    else:
        shown = ""
    if shown:
        assert all(not isinstance(value, str) or len(value) < 4 or value not in shown for value in values)
        return
    assert len(found) == len(values)
    for node, value in zip(found, values, strict=True):
        if isinstance(value, int | float | Decimal | Fraction) and not isinstance(value, bool):
            assert Fraction(node.name) == Fraction(str(value))
        if isinstance(value, str):
            assert node.name == value
