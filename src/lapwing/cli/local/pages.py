"""Advice and estimates of local differential privacy as tables for people, CSV and JSON for programs."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from lapwing.cli.console import text
from lapwing.cli.formats import new_table

if TYPE_CHECKING:
    from lapwing.local import Advice, Collected, FrequencyEstimate, Likeliest, Randomizer

Row = Mapping[str, str | int | float | bool]


def advice_table(advice: "Advice") -> Table:
    """Return every mechanism with its error and what it takes, the most accurate first."""
    names = ("error of a share", "at worst", "bytes", "steps")
    table = new_table("mechanism", "parameters", *names, numbers=names)
    for option in advice.options:
        given = {name: value for name, value in option.mechanism.parameters.items() if "threshold" not in name}
        cells = (f"{option.error:.3g}", f"{option.worst:.3g}", f"{option.report_bytes:,}", f"{option.operations:,}")
        said = ", ".join(f"{name} {value:,}" for name, value in given.items())
        table.add_row(*map(text, (option.name, said, *cells)))
    return table


def advice_document(advice: "Advice") -> dict[str, object]:
    """Return the same for programs; thresholds of 64 bits are texts."""
    options = [
        {
            "name": option.name,
            "mechanism": option.mechanism.name,
            "parameters": {name: str(value) for name, value in option.mechanism.parameters.items()},
            "error": option.error,
            "worst": option.worst,
            "report_bytes": option.report_bytes,
            "operations": option.operations,
        }
        for option in advice.options
    ]
    return {"epsilon": float(advice.epsilon), "respondents": advice.respondents, "options": options}


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
    whole = _with_likeliest(rows, likely)
    writer = csv.DictWriter(out, fieldnames=list(whole[0]), lineterminator="\n")
    writer.writeheader()
    for row in whole:
        writer.writerow({name: str(cell).lower() if isinstance(cell, bool) else cell for name, cell in row.items()})
    return out.getvalue()


def shares_document(
    collected: "Collected[Randomizer]", rows: Sequence[Row], likely: "Likeliest | None"
) -> dict[str, object]:
    """Return task, shares and rejected lines for programs."""
    return {
        "task": collected.task.document,
        "reports": len(collected.reports),
        "shares": _with_likeliest(rows, likely),
        "rejected": [{"line": line.line, "reason": line.reason} for line in collected.rejected],
    }


def _with_likeliest(rows: Sequence[Row], likely: "Likeliest | None") -> list[dict[str, str | int | float | bool]]:
    shares = [{"likeliest": float(share)} for share in likely.shares] if likely is not None else [{}] * len(rows)
    return [{**row, **share} for row, share in zip(rows, shares, strict=True)]
