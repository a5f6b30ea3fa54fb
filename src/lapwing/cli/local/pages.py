"""Shares from local reports as a table for people, and as CSV for programs."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from lapwing.cli.console import text
from lapwing.cli.formats import new_table

if TYPE_CHECKING:
    from lapwing.local import FrequencyEstimate, Likeliest

Row = Mapping[str, str | int | float | bool]


def shares_table(found: "FrequencyEstimate", rows: Sequence[Row], likely: "Likeliest | None") -> Table:
    """Return the share of each value with its interval; a share that noise alone may make has a question mark."""
    more = ("likeliest",) if likely is not None else ()
    names = ("share", "from", "to", "consistent", *more)
    table = new_table("value", *names, "", numbers=names)
    for index, row in enumerate(rows):
        shown = [f"{row[name]:.4f}" for name in ("share", "low", "high", "consistent")]
        shown += [f"{likely.shares[index]:.4f}"] if likely is not None else []
        table.add_row(*map(text, (found.values[index], *shown, "" if row["seen"] else "?")))
    return table


def as_csv(rows: Sequence[Row], likely: "Likeliest | None") -> str:
    """Return the shares as CSV with a header."""
    out = io.StringIO()
    whole = with_likeliest(rows, likely)
    writer = csv.DictWriter(out, fieldnames=list(whole[0]), lineterminator="\n")
    writer.writeheader()
    for row in whole:
        writer.writerow({name: str(cell).lower() if isinstance(cell, bool) else cell for name, cell in row.items()})
    return out.getvalue()


def moving(forged: int) -> str:
    """Return the beginning of a sentence about so many forged reports."""
    return "1 forged report moves" if forged == 1 else f"{forged:,} forged reports move"


def with_likeliest(rows: Sequence[Row], likely: "Likeliest | None") -> list[dict[str, str | int | float | bool]]:
    """Return the shares, each with the likeliest one if that was found."""
    shares = [{"likeliest": float(share)} for share in likely.shares] if likely is not None else [{}] * len(rows)
    return [{**row, **share} for row, share in zip(rows, shares, strict=True)]
