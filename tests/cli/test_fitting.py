"""A table for people never cuts a number, however narrow the terminal is."""

import csv
import io
import re

import pytest
from rich.console import Console, RenderableType

from lapwing.cli.console import Fitted, new_table

NAMES = ("account_type", "20190101", "customers", "turnover_in_dollars", "mean_turnover", "visits")
ROWS = (
    ("current account", "20200131", "1,234,567 ±27,153", "9,876,543,210 ±27,153,000", "1,234.56 ±0.78", "–"),
    ("savings", "20200229", "234,567 ±27,153", "-876,543,210 ±27,153,000", "234.56 ±0.78", "12,345 ±6"),
)
WIDTHS = (24, 40, 60, 80, 100, 140)


def page(part: RenderableType, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False)
    with console.capture() as captured:
        console.print(part)
    return captured.get()


def numbers(text: str) -> list[str]:
    return sorted(re.findall(r"[±-]?\d[\d,.]*", text))


def plain_table() -> Fitted:
    table = new_table(*NAMES, numbers=NAMES[2:])
    for row in ROWS:
        table.add_row(*row)
    return Fitted(table)


def expected() -> list[str]:
    out = io.StringIO()
    csv.writer(out).writerows([[cell] for row in ROWS for cell in row])
    return numbers(out.getvalue())


@pytest.mark.parametrize("width", WIDTHS)
def test_every_number_is_whole_at_every_width(width: int) -> None:
    shown = page(plain_table(), width)
    assert max(map(len, shown.splitlines())) <= width
    found = numbers(shown)
    for number in set(expected()):
        assert found.count(number) >= expected().count(number), (number, shown)
    for name in ("account_type", "turnover_in_dollars"):
        assert name in shown


@pytest.mark.parametrize("width", [40, 60])
def test_the_bare_table_is_caught(width: int) -> None:
    found = numbers(page(plain_table().table, width))
    assert any(found.count(number) < expected().count(number) for number in expected())


def test_prose_is_narrowed_before_the_table_becomes_records() -> None:
    table = new_table("number", "± at 95 %", "because", numbers=["± at 95 %"])
    table.add_row("sum of cost", "±27,153,000", "one unit has at most five rows of at most 5,000 each")
    narrow, records = page(Fitted(table), 40), page(Fitted(table), 24)
    assert "±27,153,000" in narrow
    assert "because: " not in narrow
    assert "±27,153,000" in records
    assert "because: " in records
