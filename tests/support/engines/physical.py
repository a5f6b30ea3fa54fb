"""Files of every physical type that a column may have, full of awkward values."""

import csv
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import inf, nan
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

WHOLE = {
    "int8": (pa.int8(), 8, True),
    "int16": (pa.int16(), 16, True),
    "int32": (pa.int32(), 32, True),
    "int64": (pa.int64(), 64, True),
    "uint8": (pa.uint8(), 8, False),
    "uint16": (pa.uint16(), 16, False),
    "uint32": (pa.uint32(), 32, False),
    "uint64": (pa.uint64(), 64, False),
}
DOUBLES = [0.0, -0.0, 5e-324, -5e-324, 0.5, 1.5, 2.5, -0.5, -1.5, 1e16, 1e19, 1e38, 1e308, -1e308, inf, -inf, nan, None]
DATES = [date(1, 1, 1), date(1900, 2, 28), date(1970, 1, 1), date(2026, 3, 31), date(9999, 12, 31), None]
TIMES = [
    datetime(1, 1, 1),
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(2026, 3, 31, 12),
    datetime(9999, 12, 31, 23, 59, 59, 999999),
    None,
]
TEXTS = [
    *(
        "",
        " ",
        "x",
        "nan",
        "NaN",
        "-nan",
        "inf",
        "-inf",
        "Infinity",
        "1e999",
        "-1e999",
        "1e-999",
        "-0.0",
        "0x10",
        "1_000",
    ),
    *(
        "１２",
        "12",
        " 12 ",
        "+12",
        "1.5",
        "2.5",
        "-2.5",
        ".5",
        "5.",
        "1e3",
        "9" * 400,
        "-" + "9" * 400,
        "0." + "0" * 400,
    ),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "1" + "0" * 38, "1" + "0" * 39),
    *("2026-03-31", "2026-13-01", "0000-00-00", "0000-01-01", "infinity", "-infinity", "epoch", "10000-01-01"),
    *("-1-01-01", "5881580-07-10", "5881580-07-11", "294247-01-10 04:00:54.775806", "294247-01-10 04:00:54.775808"),
    *("290309-12-21 (BC) 19:59:05.224193", "2026-03-31 25:00:00", "2026-03-31T12:00:00Z", "2026-03-31 12:00:00+15:59"),
    *("2026-03-31 12:00:00.1234567891", "12:00:00", "2026-03-31 12:00:00 Europe/Berlin", "now", "today"),
    *("true", "T", "yes", "1", "0", "2", "off", "FALSE", "'", '"', "\\", "\x00", "\U0001f600", "\u202e", "x" * 100_000),
    None,
]
DECIMALS = {
    "decimal4_1": (4, 1),
    "decimal9_2": (9, 2),
    "decimal18_3": (18, 3),
    "decimal38_0": (38, 0),
    "decimal38_37": (38, 37),
}


def columns() -> Iterator[tuple[str, pa.Array]]:
    """Return an array of each physical type that PyArrow writes."""
    for name, (kind, bits, signed) in WHOLE.items():
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        yield name, pa.array([low, high, 0, 1, 2, 5, min(high, 110), None], kind)
    yield "double", pa.array(DOUBLES, pa.float64())
    yield "float", pa.array([x if x is None or abs(x) < 1e38 or abs(x) == inf else 3e38 for x in DOUBLES], pa.float32())
    yield "half", pa.array(np.array([0.0, -0.5, 1.5, 65504.0, inf, -inf, nan], dtype=np.float16))
    for name, (digits, scale) in DECIMALS.items():
        most = Decimal(f"{'9' * (digits - scale) or '0'}.{'9' * scale}")
        halves = [] if scale == 0 else [Decimal("0.5"), Decimal("-0.5"), Decimal("1.5")]
        yield name, pa.array([most, most.copy_negate(), Decimal(0), *halves, None], pa.decimal128(digits, scale))
    yield "text", pa.array(TEXTS, pa.string())
    yield "long_text", pa.array(TEXTS, pa.large_string())
    yield "dictionary", pa.array(TEXTS, pa.string()).dictionary_encode()
    yield "boolean", pa.array([True, False, None])
    yield "date32", pa.array(DATES, pa.date32())
    yield (
        "date32_wide",
        pa.array([-(2**31) + 1, 2**31 - 2, 106_751_991, 106_751_992, None], pa.int32()).cast(pa.date32()),
    )
    for unit in ("ms", "us"):
        yield f"timestamp_{unit}", pa.array(TIMES, pa.timestamp(unit), safe=False)
        yield f"timestamp_{unit}_zoned", pa.array(TIMES, pa.timestamp(unit, "UTC"), safe=False)
    wide = pa.array([2**63 - 1, -(2**63) + 1, 2**62, 0, None], pa.int64())
    yield "timestamp_us_wide", wide.cast(pa.timestamp("us"))
    yield "timestamp_us_wide_zoned", wide.cast(pa.timestamp("us", "UTC"))
    yield "timestamp_ns", wide.cast(pa.timestamp("ns"))
    yield "time32", pa.array([0, 86_399_999, None], pa.int32()).cast(pa.time32("ms"))
    yield "time64", pa.array([0, 86_399_999_999, None], pa.int64()).cast(pa.time64("us"))
    yield "duration", pa.array([timedelta(days=1), None], pa.duration("us"))
    yield "binary", pa.array([b"", b"\x00\xff", b"12", b"\\x00", b"abc", None], pa.binary())
    yield "fixed_binary", pa.array([b"\x00\xff12", b"abcd", None], pa.binary(4))
    yield "list", pa.array([[1, 2], [], None], pa.list_(pa.int32()))
    yield "list_of_texts", pa.array([["a", None], [], None], pa.list_(pa.string()))
    yield "struct", pa.array([{"a": 1}, {"a": None}, None], pa.struct([("a", pa.int64())]))
    yield "map", pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int32()))
    yield "null", pa.nulls(3)


ENGINE_TYPES = {
    "uuid": "UUID",
    "json": "JSON",
    "huge": "HUGEINT",
    "unsigned_huge": "UHUGEINT",
    "interval": "INTERVAL",
    "bits": "BIT",
    "timestamp_s": "TIMESTAMP_S",
    "time_zoned": "TIMETZ",
}
ENGINE_VALUES = {
    "uuid": ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
    "json": ['{"a": 1}', "1", '"x"', "null"],
    "huge": [str(-(2**127)), str(2**127 - 1), "0"],
    "unsigned_huge": [str(2**128 - 1), "0"],
    "interval": ["1 day", "300000 years"],
    "bits": ["101", "0"],
    "timestamp_s": ["2026-03-31 12:00:00", "0001-01-01"],
    "time_zoned": ["12:00:00+15:00"],
}


def write_all(folder: Path) -> list[str]:
    """Write a Parquet file of each type, and a CSV file; each has a column x. Return the files' names."""
    names = []
    for name, array in columns():
        pq.write_table(pa.table({"x": array}), folder / f"{name}.parquet", coerce_timestamps=None)
        names.append(f"{name}.parquet")
    pq.write_table(
        pa.table({"x": pa.array([t for t in TIMES if t is None or 1700 < t.year < 2200], pa.timestamp("ns"))}),
        folder / "int96.parquet",
        use_deprecated_int96_timestamps=True,
    )
    names.append("int96.parquet")
    with duckdb.connect() as connection:
        for name, kind in ENGINE_TYPES.items():
            values: list[Any] = [*ENGINE_VALUES[name], None]
            query = f"SELECT unnest(?::VARCHAR[])::{kind} AS x"
            path = str(folder / f"{name}.parquet").replace("'", "''")
            connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)", [values])
            names.append(f"{name}.parquet")
    with (folder / "sheet.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["x", "y"])
        writer.writerows([[text, "1"] for text in TEXTS if text is not None])
    return [*names, "sheet.csv"]
