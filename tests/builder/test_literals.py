"""A value stays one value and a name one name, whatever they hold: the printer against the parser and parameters."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot import exp

import lapwing as lw
from lapwing.builder.literals import constant, printed, quoted
from lapwing.errors import InvalidParameter
from lapwing.query.text.parse import parse

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
NASTY = st.sampled_from(
    ["'", '"', "''", '""', "\\", "--", "/*", "*/", ";", "$", "$$", "?", ":x", "\n", "\r", "`", "{{", "%"]
)
TEXTS = st.lists(st.one_of(NASTY, st.text(CHARACTERS, max_size=3)), max_size=6).map("".join)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.decimals(-(10**6), 10**6, places=9),
    st.floats(-1e9, 1e9, allow_nan=False).filter(lambda x: 10**18 % Fraction(repr(x)).denominator == 0),
    st.fractions(-(10**30), 10**30, max_denominator=1).map(lambda x: x / 2**10),
    TEXTS,
    st.dates(),
    st.datetimes(),
)


def tree(text: str, parameters: object = ()) -> exp.Expression:
    """Return the syntax of the constant in a question, without parentheses and positions."""
    select = parse(text, parameters).select  # type: ignore[arg-type]
    node: exp.Expression = select.args["where"].this.expression
    return node


def value_of(node: exp.Expression) -> str:
    """Return a constant in one spelling; a sign may be a node of its own or part of the number."""
    if isinstance(node, exp.Neg):
        return f"-{node.this.this}"
    if isinstance(node, exp.Cast):
        return f"{'DATE' if node.to.this == exp.DType.DATE else 'TIMESTAMP'} {node.this.this}"
    return str(node.this) if isinstance(node, exp.Literal) and not node.is_string else repr(node)


@given(VALUES)
@example("it's")
@example("'; DROP TABLE visits; --")
@example("\\'")
@example("\\")
@example(Decimal("-0.000000000000000001"))
@example(-0.0)
@example(1e-7)
@example(datetime(1, 1, 1))
def test_a_value_is_what_a_parameter_is(value: object) -> None:
    written = tree(f"SELECT 1 FROM t WHERE x = {printed(constant(value))}")
    given_beside = tree("SELECT 1 FROM t WHERE x = ?", [value])
    assert value_of(written) == value_of(given_beside)


@given(TEXTS.filter(bool))
@example('a"b')
@example('"')
@example('x" FROM secrets --')
@example("select")
@example("p12")
def test_a_name_is_itself(name: str) -> None:
    select = parse(f"SELECT t.{quoted(name)} AS {quoted(name)} FROM {quoted(name)} AS t").select
    (item,) = select.expressions
    assert item.alias == name
    assert item.this.name == name
    assert item.this.this.args["quoted"]
    assert select.args["from_"].this.name == name
    assert not select.args.get("where")


@pytest.mark.parametrize(
    "value",
    [nan, inf, -inf, Decimal("NaN"), Decimal("1e31"), Decimal("1e-19"), 10**31, Fraction(1, 3), 1e-19,
     Decimal("1e-500"), "a\0b", "\ud800", "x" * 70_000, b"x", [1], object(), 1j,
     datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
def test_what_is_no_constant_is_refused(value: object) -> None:
    with pytest.raises(InvalidParameter) as refused:
        constant(value)
    assert "xxx" not in str(refused.value)
    with pytest.raises(InvalidParameter):
        parse("SELECT 1 FROM t WHERE x = ?", [value])


def test_kinds_of_numbers() -> None:
    assert printed(constant(np.int64(3))) == "3"
    assert printed(constant(np.float64(0.1))) == "0.1"
    assert printed(constant(True)) == "TRUE"
    assert printed(constant(0.1 + 0.2)) == "0.30000000000000004"
    assert (
        printed(constant(datetime(2026, 1, 1, 3, tzinfo=timezone(timedelta(hours=2)))))
        == "TIMESTAMP '2026-01-01 01:00:00'"
    )
    assert printed(constant(datetime(2026, 1, 1, tzinfo=UTC))) == "TIMESTAMP '2026-01-01 00:00:00'"
    assert printed(constant(date(987, 1, 1))) == "DATE '0987-01-01'"


class Sly(str):
    """A text that says something else when it is written."""

    def replace(self, *_args: object) -> "Sly":
        return self

    def __str__(self) -> str:
        return "1 OR 1 = 1"

    def __format__(self, _spec: str) -> str:
        return "1 OR 1 = 1"


def test_a_subclass_of_str_changes_nothing() -> None:
    assert printed(constant(Sly("a'b"))) == "'a''b'"
    assert repr(lw.col[Sly('a"b')]) == '"a""b"'


class SlyNumber(int):
    def __str__(self) -> str:
        return "1 OR 1 = 1"

    __repr__ = __format__ = __str__  # type: ignore[assignment]


def test_a_subclass_of_int_changes_nothing() -> None:
    assert printed(constant(SlyNumber(7))) == "7"
    assert repr(lw.col.a.left(SlyNumber(2))) == 'LEFT("a", 2)'
