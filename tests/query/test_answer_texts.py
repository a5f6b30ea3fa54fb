"""Texts over the answer: parts, lengths and casts are what DuckDB makes of the same values."""

from collections.abc import Callable
from datetime import date
from fractions import Fraction
from itertools import product
from math import floor
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from lapwing.query.derivation import answer_functions
from lapwing.query.derivation.columns import constant
from lapwing.query.derivation.columns_of_values import of_values

TEXTS = ["", "a", "it's", "naïve", "日本語テキスト", None]
PLACES = [-9, -2, -1, 0, 1, 2, 5, 99]


def column(function: str, values: list[Any], shape: Any, *numbers: int) -> list[Any]:
    parts = [of_values(values, shape), *(constant(Fraction(number)) for number in numbers)]
    return answer_functions.FUNCTIONS[function].column(parts, "text").values()


def differences() -> list[str]:
    """Return the calls that DuckDB answers otherwise."""
    calls: list[tuple[str, str, tuple[int, ...]]] = [("length", "LENGTH(t)", ())]
    calls += [("substring", f"SUBSTRING(t, {start})", (start,)) for start in PLACES]
    counts = [number for number in PLACES if number >= 0]
    calls += [("substring", f"SUBSTRING(t, {s}, {n})", (s, n)) for s, n in product(PLACES, counts)]
    calls += [(side, f"{side.upper()}(t, {n})", (n,)) for side, n in product(("left", "right"), counts)]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE texts (place INTEGER, t VARCHAR)")
        connection.executemany("INSERT INTO texts VALUES (?, ?)", [list(row) for row in enumerate(TEXTS)])
        listed = ", ".join(sql for _, sql, _ in calls)
        rows = connection.execute(f"SELECT {listed} FROM texts ORDER BY place").fetchall()
    expected = zip(*rows, strict=True)
    return [
        sql
        for (function, sql, numbers), values in zip(calls, expected, strict=True)
        if column(function, TEXTS, "text", *numbers) != list(values)
    ]


def test_parts_of_texts_are_those_of_duckdb() -> None:
    assert not differences()


CHARACTERS = [chr(code) for code in range(1, 0x3000) if not 0xD800 <= code < 0xE000]


def cased_otherwise(upper: Callable[[str], str] | None = None) -> set[str]:
    """Return the characters whose capital or small letter is another one in DuckDB."""
    with duckdb.connect() as connection:
        connection.register("texts", pa.table({"t": CHARACTERS}))
        rows = connection.execute("SELECT t, UPPER(t), LOWER(t) FROM texts").fetchall()
    texts, *expected = (list(values) for values in zip(*rows, strict=True))
    ours = [[*map(upper, texts)] if upper else column("upper", texts, "text"), column("lower", texts, "text")]
    pairs = [pair for each in zip(ours, expected, strict=True) for pair in zip(texts, *each, strict=True)]
    return {text for text, mine, theirs in pairs if mine != theirs}


def test_capitals_are_those_of_duckdb() -> None:
    assert not cased_otherwise()
    assert column("lower", ["ΑΣ"], "text") == ["ασ"], "one letter for one, wherever it stands"
    assert "ß" in cased_otherwise(str.upper), "planted: SS"


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("_part", lambda text, start, length=None: text[int(start) :][: None if length is None else int(length)]),
        ("_last", lambda text, number: text[-int(number) :]),
    ],
)
def test_a_part_that_begins_elsewhere_is_found(
    name: str, wrong: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: places count from 0; the last 0 characters are all."""
    function = {"_part": "substring", "_last": "right"}[name]
    planted = answer_functions.Function(column=answer_functions._each(wrong))
    monkeypatch.setattr(answer_functions, "FUNCTIONS", {**answer_functions.FUNCTIONS, function: planted})
    assert differences()


def test_casts_write_the_one_text_that_a_value_has() -> None:
    values: list[tuple[Any, Any, str]] = [
        (Fraction(-12), "integer", "-12"),
        (Fraction(10**30), "integer", "1" + "0" * 30),
        (True, "boolean", "true"),
        (date(476, 9, 4), "date", "0476-09-04"),
        ("it's", "text", "it's"),
    ]
    for value, shape, text in values:
        assert column("written", [value, None], shape) == [text, None]


def decimal_texts(as_needed: int = -1) -> list[str]:
    """Return what DuckDB writes otherwise: ROUND(x, n) of a DOUBLE, and a DECIMAL with n digits."""
    numbers, wrong = ["0", "2.5", "-0.125", "7", "-1234.56", "99.995", "0.01", "1e9", "100"], []
    with duckdb.connect() as connection:
        for number, digits in product(numbers, (0, 1, 2, 4)):
            value, power = Fraction(number), 10**digits
            rounded = Fraction(floor(abs(value) * power + Fraction(1, 2)), power) * (-1 if value < 0 else 1)
            casts = {digits: f"{number}::DECIMAL(30, 5)::DECIMAL(30, {digits})"}
            casts |= {as_needed: f"ROUND({number}::DECIMAL(30, 5)::DOUBLE, {digits})"}
            for shown, sql in casts.items():
                ((text,),) = connection.execute(f"SELECT CAST({sql} AS VARCHAR)").fetchall()
                ours = column("written_decimal", [rounded], "decimal", shown)
                if [text] != ours and (float(text), ours) != (0, ["0.0"]):  # DuckDB has -0.0
                    wrong.append(sql)
    return wrong


def test_decimals_have_the_digits_that_duckdb_writes() -> None:
    assert not decimal_texts()
    assert decimal_texts(as_needed=2), "planted: two digits where there is one"
