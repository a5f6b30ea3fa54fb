"""Values on the wire are those that psycopg, which was written by others, reads and writes."""

import csv
import io
import struct
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Final

import pytest
from psycopg import pq
from psycopg.adapt import PyFormat, Transformer

from lapwing.server.pgwire import values
from lapwing.server.pgwire.messages import BINARY, TEXT
from lapwing.server.pgwire.results import StatementResult, widened
from lapwing.server.pgwire.values import (
    BOOL,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    NUMERIC,
    TEXT_TYPE,
    TIMESTAMP,
    TIMESTAMPTZ,
    BadValue,
    copied,
    read,
    written,
)

RESULTS: Final[list[tuple[Any, int]]] = [
    *((value, BOOL) for value in (True, False)),
    *((value, INT8) for value in (0, 1, -1, 2**63 - 1, -(2**63))),
    *((value, FLOAT8) for value in (0.0, -0.0, 0.1, 1e300, 5e-324, -1.5, 100_000.0, float("inf"), -float("inf"))),
    *(
        (Decimal(text), NUMERIC)
        for text in (
            "0", "0.00", "1", "-1", "0.1", "0.0001", "0.00001", "10000", "9999.9999", "-12345678.000900", "1E+10",
            "123456789012345678901234567890.123456789", "-0.5", "100", "1E-20", "99999999",
        )
    ),
    *((text, TEXT_TYPE) for text in ("", "a", "é€😀", "a\tb\nc\\d\"e'f")),
    *((date.fromisoformat(text), DATE) for text in ("2000-01-01", "1999-12-31", "0001-01-01", "9999-12-31")),
    *(
        (datetime.fromisoformat(text), TIMESTAMP)
        for text in ("2000-01-01T00:00:00", "1969-07-20T20:17:40.5", "9999-12-31T23:59:59.999999", "0001-01-01T00:00")
    ),
]  # fmt: skip


@pytest.mark.parametrize("format_", [TEXT, BINARY])
def test_results_are_read_as_they_were_written(format_: int) -> None:
    transformer = Transformer()
    for value, type_ in RESULTS:
        sent = written(value, type_, format_)
        assert sent is not None
        loaded = transformer.get_loader(type_, pq.Format(format_)).load(sent)
        assert (loaded, type(loaded)) == (value, type(value))
        if isinstance(value, Decimal):  # of as many places as it has
            assert -int(loaded.as_tuple().exponent) == max(0, -int(value.as_tuple().exponent))
        assert written(None, type_, format_) is None
    nan = written(float("nan"), FLOAT8, format_)
    assert nan is not None
    assert str(transformer.get_loader(FLOAT8, pq.Format(format_)).load(nan)) == "nan"


def test_an_integer_that_does_not_fit_is_no_other_number() -> None:
    for format_ in (TEXT, BINARY):
        for value in (2**63, -(2**63) - 1):
            with pytest.raises(BadValue) as refused:
                written(value, INT8, format_)
            assert refused.value.state == "22003"
    assert written("a\0b\ud800", TEXT_TYPE, TEXT) == "a\ufffdb?".encode() == written("a\0b\ud800", TEXT_TYPE, BINARY)


@pytest.mark.parametrize(
    ("numbers", "type_"),
    [
        ([2**63 - 1, -(2**63), None], INT8),
        ([2**63, 0], NUMERIC),
        ([None, -(2**63) - 1], NUMERIC),
        ([2**63, 10**1000], INT8),  # too long to be sent at all
        ([], INT8),
    ],
)
def test_a_column_is_as_wide_as_its_integers(numbers: list[int | None], type_: int) -> None:
    columns = [("k", TEXT_TYPE), ("n", INT8)]
    result = widened(StatementResult(tag="", columns=columns, rows=[("a", number) for number in numbers]))
    assert result.columns == [("k", TEXT_TYPE), ("n", type_)]
    if type_ == NUMERIC:
        sent = [written(number, NUMERIC, BINARY) for number in numbers]
        loader = Transformer().get_loader(NUMERIC, pq.Format.BINARY)
        assert [None if one is None else int(loader.load(one)) for one in sent] == numbers


GIVEN: Final[list[Any]] = [
    True, False, 0, 1, -1, 2**15, 2**31, 2**63 - 1, 10**20, 0.1, -1.5, 1e300,
    *(Decimal(text) for text in ("0", "0.00", "-1.5", "12345.678900", "1E+10", "123456789012345678901234.000001")),
    "", "a", "é'; DROP TABLE visits; --", date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31),
    datetime(2024, 2, 29, 12, 30, 15, 250_000), datetime(1999, 1, 1),
    datetime(2024, 2, 29, 12, tzinfo=UTC), datetime(2024, 2, 29, 12, tzinfo=timezone(timedelta(hours=5, minutes=30))),
]  # fmt: skip


@pytest.mark.parametrize("format_", [TEXT, BINARY])
def test_parameters_are_read_as_psycopg_sends_them(format_: int) -> None:
    transformer = Transformer()
    for value in GIVEN:
        dumper = transformer.get_dumper(value, PyFormat.TEXT if format_ == TEXT else PyFormat.BINARY)
        sent = dumper.dump(value)
        assert sent is not None
        got = read(bytes(sent), dumper.oid, format_, 1)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
            assert got == Decimal(value)  # psycopg sends it as numeric
        else:
            assert (got, type(got)) == (value, type(value))
    assert read(None, INT8, format_, 1) is None


@pytest.mark.parametrize(
    ("data", "type_", "format_", "state"),
    [
        (b"x", INT8, TEXT, "22P02"),
        (b"1.5", INT4, TEXT, "22P02"),
        (b"\xef\xbc\x91", INT8, TEXT, "22P02"),  # a digit, but no ASCII one
        (b"9" * 101, INT8, TEXT, "22P02"),
        (b"1e99999", NUMERIC, TEXT, "22P02"),
        (b"NaN", NUMERIC, TEXT, "22P02"),
        (b"inf", FLOAT8, TEXT, "22P02"),
        (b"maybe", BOOL, TEXT, "22P02"),
        (b"2024-02-30", DATE, TEXT, "22007"),
        (b"yesterday", TIMESTAMP, TEXT, "22007"),
        (b"\xff", TEXT_TYPE, TEXT, "22P02"),
        (b"\xff", TEXT_TYPE, BINARY, "22P03"),
        (b"", INT8, BINARY, "22P03"),
        (b"123", INT4, BINARY, "22P03"),
        (b"\2", BOOL, BINARY, "22P03"),
        (struct.pack(">i", 2**31 - 1), DATE, BINARY, "22P03"),
        (struct.pack(">q", 2**63 - 1), TIMESTAMP, BINARY, "22P03"),
        (struct.pack(">q", -(2**63)), TIMESTAMPTZ, BINARY, "22P03"),
        (b"\0\0\0\0\xc0\0\0\0", NUMERIC, BINARY, "22P03"),
        (b"\0\1\0\0\0\0\0\0\xff\xff", NUMERIC, BINARY, "22P03"),
        (b"\0\2\0\0\0\0\0\0\0\1", NUMERIC, BINARY, "22P03"),
        (b"\0\1\x7f\xff\0\0\0\0\0\1", NUMERIC, BINARY, "22P03"),
        (b"\0", 1001, BINARY, "0A000"),
    ],
)
def test_what_is_no_value_is_refused_and_not_repeated(data: bytes, type_: int, format_: int, state: str) -> None:
    with pytest.raises(BadValue) as refused:
        read(data, type_, format_, 3)
    assert refused.value.state == state
    assert "3" in str(refused.value)


def test_small_types_and_unknown_ones() -> None:
    assert read(struct.pack(">h", -5), INT2, BINARY, 1) == -5
    assert read(struct.pack(">f", 0.5), FLOAT4, BINARY, 1) == 0.5
    assert read(b"0c1e", 2950, TEXT, 1) == "0c1e"
    assert read("é".encode(), 0, TEXT, 1) == "é" == read("é".encode(), 0, BINARY, 1)
    assert read(b" 2024-02-29 12:00:00+02 ", TIMESTAMPTZ, TEXT, 1) == datetime(2024, 2, 29, 10, tzinfo=UTC)
    assert read(b" yes ", BOOL, TEXT, 1) is True


ROWS: Final = [("a\tb", 1, True), (None, -2, None), ("", 3, False), ('x"y,\nz', 4, True), ("\\N", 5, True)]
NAMES, KINDS = ["t", "n", "ok"], [TEXT_TYPE, INT8, BOOL]


def lines(form: str, header: bool = False) -> bytes:
    return b"".join(copied(NAMES, KINDS, iter(ROWS), form=form, header=header))


def test_copied_as_text() -> None:
    assert lines("text", header=True) == (b't\tn\tok\na\\tb\t1\tt\n\\N\t-2\t\\N\n\t3\tf\nx"y,\\nz\t4\tt\n\\\\N\t5\tt\n')


def test_copied_as_csv() -> None:
    got = lines("csv", header=True).decode()
    table = list(csv.reader(io.StringIO(got)))
    assert table[0] == NAMES
    assert [row[0] for row in table[1:]] == ["a\tb", "", "", 'x"y,\nz', "\\N"]
    assert ",-2,\n" in got  # NULL is nothing at all
    assert '"",3,f\n' in got  # and an empty text is one
    alone = b"".join(copied(["t"], [TEXT_TYPE], iter([("",), (None,), ("\\.",)]), form="csv"))
    assert alone == b'""\n\n"\\."\n'


def test_copied_in_binary() -> None:
    data = lines("binary")
    assert data.startswith(b"PGCOPY\n\xff\r\n\0" + bytes(8))
    assert data.endswith(b"\xff\xff")

    def rows(rest: bytes) -> Iterator[list[bytes | None]]:
        while (size := struct.unpack(">h", rest[:2])[0]) >= 0:
            row, rest = [], rest[2:]
            for _ in range(size):
                (length,) = struct.unpack(">i", rest[:4])
                row.append(None if length < 0 else rest[4 : 4 + length])
                rest = rest[4 + max(length, 0) :]
            yield row

    assert list(rows(data[19:])) == [[written(v, t, BINARY) for v, t in zip(row, KINDS, strict=True)] for row in ROWS]


def test_a_result_has_a_type_of_postgresql_for_every_type_of_an_answer() -> None:
    known = {"integer", "decimal", "real", "text", "boolean", "date", "timestamp", "null"}
    assert set(values.TYPES) == known
