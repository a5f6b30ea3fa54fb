"""Columns that say how they are read, values as people store them, and an independent reading of each in Python."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from lapwing.catalog.model import Column
from lapwing.catalog.toml import loads

CATALOG: Final = """
[dataset]
name = "any"
ledger = "sqlite:any.db"
[budget]
epsilon = 1
[tables.t]
source = "t.parquet"
privacy_unit = "row"
[tables.t.columns]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A column as a catalog has it, values as they are stored, and what it is told for the reading here.

    Args: kind: the declared type. marks: decimal mark, thousands mark, currency.
    """

    entry: str
    stored: pa.Array
    kind: str
    missing: Sequence[object] = ()
    recode: dict[str, Any] | None = None
    written: str | None = None
    marks: tuple[str, str, str] = (".", "", "")
    ends: tuple[Any, Any] | None = None
    step: Fraction | None = None

    @property
    def column(self) -> Column:
        catalog = loads(f"{CATALOG}x = {{ {self.entry} }}\n", file="any.toml", folder=Path())
        return catalog.tables[0].columns[0]

    def expected(self) -> list[object]:
        """Return what questions see of each value."""
        return [None if value is None else self._bounded(self._read(value)) for value in self.stored.to_pylist()]

    def _read(self, value: Any) -> Any:
        text = value if isinstance(value, str) else str(value)
        compared = text if self.kind == "string" else text.strip(" ")
        words = isinstance(value, str) and self.kind not in ("integer", "decimal", "float")
        number = None if words else self._number(value)
        for code in self.missing:
            if (isinstance(code, str) and compared == code) or (not isinstance(code, str) and number == code):
                return None
        for code, target in (self.recode or {}).items():
            if compared == code or (number is not None and number == self._number(code)):
                return target
        match self.kind:
            case "string":
                return value if isinstance(value, str) else None
            case "boolean":
                return {"true": True, "t": True, "yes": True, "y": True, "1": True}.get(compared.lower()) or (
                    False if compared.lower() in ("false", "f", "no", "n", "0") else None
                )
            case "date" | "timestamp":
                return self._moment(value, compared)
        return number

    def _number(self, value: Any) -> Fraction | None:
        if not isinstance(value, str):
            return Fraction(value) if isinstance(value, int | float | Decimal) else None
        decimal, thousands, currency = self.marks
        text = value.replace("\u00a0", " ").replace("\u202f", " ").replace("−", "-").strip(" ")
        if currency:
            text = text.removeprefix(currency).removesuffix(currency).replace(f"-{currency}", "-").strip(" ")
        whole, mark, fraction = text.partition(decimal)
        if thousands and thousands in whole:
            first, *groups = whole.removeprefix("-").split(thousands)
            if not 1 <= len(first) <= 3 or any(len(group) != 3 for group in groups):
                return None
            whole = whole.replace(thousands, "")
        text = f"{whole}.{fraction}" if mark else whole
        if not set(text) <= set("0123456789+-.eE") or "__" in text:
            return None
        try:
            return Fraction(Decimal(text))
        except InvalidOperation:
            return None

    def _moment(self, value: Any, text: str) -> Any:
        formats = [self.written] if self.written else ["%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ"]
        for written in formats:
            try:
                moment = datetime.strptime(text, written)
            except ValueError:
                continue
            return moment.date() if self.kind == "date" else moment
        return None

    def _bounded(self, value: Any) -> object:
        if value is None:
            return None
        if self.kind in ("integer", "decimal", "float"):
            if self.ends is None:
                whole = Decimal(str(float(value))).to_integral_value(ROUND_HALF_UP)
                return int(whole) if self.kind == "integer" else float(value)
            step = self.step or Fraction(1)
            low, high = (Fraction(str(end)) for end in self.ends)
            return floor(min(max(Fraction(value), low), high) / step + Fraction(1, 2))
        if self.ends is not None and isinstance(value, date):
            return min(max(value, self.ends[0]), self.ends[1])
        return value


TEXTS: Final = [
    "17", " 42 ", "-99", "999", "NA", ".", "", "abc", "1.5", "-3.25", "130", "+7", "1e2", "-99.0", "0017", "−4",
    "1 2", None,
]  # fmt: skip
MONEY: Final = [
    "1.234,50 €", "€ 12", "-3,5", "-€4", "€-4", "1234567,89", "1.23,4", "12.345.678", "12.34", "x", "", "1 234,5", "€",
    "5,", ",5",
    "−12,25", "\u00a07\u00a0€", "99.999", "NA", None,
]  # fmt: skip
SPACED: Final = ["1 234.5", "12 345 678", "1\u00a0234", "1\u202f234.25", "12 34", "1234", " 5", None]
DATES: Final = [
    "01/05/2024", "1/5/2024", "02/30/2024", "12/31/1999", "13/01/2024", "2024-01-05", " 07/04/2021 ", "NA", "",
    "02/29/2023",
    "02/29/2024", "00/10/2020", "01/01/9999", None,
]  # fmt: skip
TIMES: Final = [
    "05.01.2024 23:59:59", "5.1.2024 0:00:00", "31.04.2024 10:00:00", "05.01.2024", "05.01.2024 24:00:00", "NA", None,
]  # fmt: skip
HALVES: Final = [
    "Mar 5, 2021 12:00 AM", "Mar 5, 2021 12:30 pm", "dec 31, 1999 01:05 PM", "Foo 1, 2020 01:00 AM",
    "Mar 5, 2021 13:00 PM", None,
]  # fmt: skip

CASES: Final = {
    "codes in text": Case(
        entry='type = "integer", lower = 0, upper = 110, missing = [-99, 999, "NA", "."]',
        stored=pa.array(TEXTS),
        kind="integer",
        missing=[-99, 999, "NA", "."],
        ends=(0, 110),
    ),
    "codes in integers": Case(
        entry='type = "integer", lower = 0, upper = 1000, missing = [-99, "999", "NA"]',
        stored=pa.array([-99, 999, 17, 2000, -98, None], pa.int32()),
        kind="integer",
        missing=[-99, 999],
        ends=(0, 1000),
    ),
    "codes beyond a small type": Case(
        entry='type = "integer", lower = 0, upper = 100, missing = [-9999, 9223372036854775807, 99]',
        stored=pa.array([99, 17, -128, 127, None], pa.int8()),
        kind="integer",
        missing=[99],
        ends=(0, 100),
    ),
    "codes without bounds": Case(
        entry='type = "integer", missing = [-99]',
        stored=pa.array([-99, 99, 0, None], pa.int64()),
        kind="integer",
        missing=[-99],
    ),
    "codes in text without bounds": Case(
        entry='type = "integer", missing = [-99, "NA"]',
        stored=pa.array(["-99", "99", " -99.0", "NA", "x", "2.5", None]),
        kind="integer",
        missing=[-99, "NA"],
    ),
    "codes in doubles": Case(
        entry='type = "decimal", step = 0.5, lower = -100, upper = 100, missing = [-99.9]',
        stored=pa.array([-99.9, -99.5, 1e300, 0.25, None], pa.float64()),
        kind="decimal",
        missing=[-99.9],
        ends=(-100, 100),
        step=Fraction(1, 2),
    ),
    "codes in short floats": Case(
        entry='type = "float", lower = -100, upper = 100, step = 0.5, missing = [-99.9]',
        stored=pa.array([-99.9, -99.5, 3.0, None], pa.float32()),
        kind="float",
        ends=(-100, 100),
        step=Fraction(1, 2),
        missing=[pa.scalar(-99.9, pa.float32()).as_py()],
    ),
    "codes in decimals": Case(
        entry='type = "decimal", step = 0.01, lower = 0, upper = 50, missing = [9.99]',
        stored=pa.array([Decimal("9.99"), Decimal("9.98"), Decimal("60.00"), None], pa.decimal128(9, 2)),
        kind="decimal",
        missing=[Fraction("9.99")],
        ends=(0, 50),
        step=Fraction(1, 100),
    ),
    "money": Case(
        entry='type = "decimal", step = 0.01, lower = -10, upper = 5000000, decimal_mark = ",", thousands_mark = ".", '
        'currency = "€", missing = ["NA"]',
        stored=pa.array(MONEY),
        kind="decimal",
        marks=(",", ".", "€"),
        ends=(-10, 5_000_000),
        step=Fraction(1, 100),
    ),
    "thousands by spaces": Case(
        entry='type = "decimal", step = 0.25, lower = 0, upper = 1e9, thousands_mark = " "',
        stored=pa.array(SPACED),
        kind="decimal",
        marks=(".", " ", ""),
        ends=(0, 10**9),
        step=Fraction(1, 4),
    ),
    "labels of codes": Case(
        entry='type = "string", values = ["male", "female"], recode = { "1" = "male", "2" = "female" }, missing = [9]',
        stored=pa.array(["1", "2", "9", "male", "3", " 1", None]),
        kind="string",
        recode={"1": "male", "2": "female"},
        missing=["9"],
    ),
    "labels of integers": Case(
        entry='type = "string", recode = { "1" = "male", "2" = "female" }, missing = [9, "10"]',
        stored=pa.array([1, 2, 9, 10, None], pa.int64()),
        kind="string",
        recode={"1": "male", "2": "female"},
        missing=[9, 10],
    ),
    "yes and no": Case(
        entry='type = "boolean", recode = { "Ja" = true, "Nein" = false }, missing = ["?"]',
        stored=pa.array(["Ja", "Nein", "?", "true", "0", " Ja", "vielleicht", None]),
        kind="boolean",
        recode={"Ja": True, "Nein": False},
        missing=["?"],
    ),
    "numbers for words": Case(
        entry='type = "integer", lower = 0, upper = 20, recode = { "none" = 0, "10 or more" = 10, "77" = 12 }',
        stored=pa.array(["none", "10 or more", "77", "77.0", "3", "many", None]),
        kind="integer",
        ends=(0, 20),
        recode={"none": 0, "10 or more": 10, "77": 12},
    ),
    "dates": Case(
        entry='type = "date", format = "%m/%d/%Y", missing = ["NA"]',
        stored=pa.array(DATES),
        kind="date",
        written="%m/%d/%Y",
        missing=["NA"],
    ),
    "dates with bounds": Case(
        entry='type = "date", format = "%m/%d/%Y", lower = 2000-01-01, upper = 2024-01-31',
        stored=pa.array(DATES),
        kind="date",
        written="%m/%d/%Y",
        ends=(date(2000, 1, 1), date(2024, 1, 31)),
    ),
    "dates in integers": Case(
        entry='type = "date", format = "%Y%m%d", missing = [-1]',
        stored=pa.array([20240105, 20240230, -1, 99999999, None]),
        kind="date",
        written="%Y%m%d",
    ),
    "dates with codes": Case(
        entry='type = "date", missing = [1900-01-01, "0000-00-00"]',
        kind="date",
        stored=pa.array(["2024-01-05", "0000-00-00", "2024-02-30", "2024-03-01 10:00:00", "x", None]),
    ),
    "times": Case(
        entry='type = "timestamp", format = "%d.%m.%Y %H:%M:%S"',
        stored=pa.array(TIMES),
        kind="timestamp",
        written="%d.%m.%Y %H:%M:%S",
    ),
    "halves of a day": Case(
        entry='type = "timestamp", format = "%b %d, %Y %I:%M %p"',
        stored=pa.array(HALVES),
        kind="timestamp",
        written="%b %d, %Y %I:%M %p",
    ),
    "short years": Case(
        entry='type = "date", format = "%d-%b-%y"',
        stored=pa.array(["05-Jan-69", "05-Jan-68", "31-DEC-99", "5-may-24", None]),
        kind="date",
        written="%d-%b-%y",
    ),
}


def awkward_texts(number: int) -> list[str]:
    """Return texts made of what dates and numbers are made of, long ones among them."""
    chance = random.Random(f"texts {number}")
    pieces = [*"0123456789+-−.,:/ €$eE'%\\\u00a0\u202f\n\t", "NA", "Jan", "AM", "2024", "00", "12", "😀", "ſ", "K"]
    texts = ["".join(chance.choices(pieces, k=chance.randrange(1, 14))) for _ in range(number)]
    return [*texts, "1" * 100_000, ".123" * 50_000, " " * 100_000, "-" * 1000]


def plain(value: object) -> object:
    """Return a value as an engine gave it, without a zone."""
    return value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) and value.tzinfo else value
