"""A finding as tables for people, CSV and JSON for programs."""

import csv
import io
from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING

from rich.console import RenderableType

from lapwing.cli.console import Fitted, new_table, text

if TYPE_CHECKING:
    from lapwing.lab import Check, Finding


def as_tables(finding: "Finding") -> tuple[RenderableType, ...]:
    """Return the table of a finding, its checks, and what it shows."""
    names = list(finding.rows[0])
    numbers = [name for name in names if any(isinstance(row[name], int | float) for row in finding.rows)]
    table = new_table(*names, numbers=numbers)
    for row in finding.rows:
        table.add_row(*(text(written(row[name])) for name in names))
    checks = new_table("checked", "predicted", "observed", "", numbers=("predicted", "observed"))
    for check in finding.checks:
        holds = "holds" if check.holds else "DOES NOT HOLD"
        checks.add_row(*map(text, (check.what, predicted(check), written(check.observed), holds)))
    said = (text(""), text(finding.conclusion), text(f"({finding.sample})", "dim"), text(""))
    return Fitted(table), text(""), Fitted(checks), *said


def predicted(check: "Check") -> str:
    """Return what was predicted, or the bound of it."""
    sign = {"equal": "", "at most": "≤ ", "at least": "≥ "}[check.kind]
    return sign + written(check.predicted)


def written(cell: str | int | float | None) -> str:
    """Return a cell for people: numbers with four figures that tell."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:,.0f}" if isfinite(cell) and abs(cell) >= 10_000 else f"{cell:.4g}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def as_csv(found: "Mapping[str, Finding]") -> str:
    """Return the checks of findings, a line each: what everything has in common."""
    lines = io.StringIO()
    writer = csv.writer(lines)
    writer.writerow(("experiment", "checked", "kind", "predicted", "observed", "low", "high", "holds"))
    for name, finding in found.items():
        for check in finding.checks:
            ends = (value if isfinite(value) else "" for value in (check.low, check.high))
            writer.writerow(
                (name, check.what, check.kind, check.predicted, check.observed, *ends, str(check.holds).lower())
            )
    return lines.getvalue()


def as_document(name: str, finding: "Finding") -> dict[str, object]:
    """Return a finding for programs, with its chart as a Vega-Lite specification."""
    return {
        "experiment": name,
        "holds": finding.holds,
        "rows": [dict(row) for row in finding.rows],
        "checks": [_check(check) for check in finding.checks],
        "conclusion": finding.conclusion,
        "sample": finding.sample,
        "plot": finding.plot.to_dict(),
    }


def _check(check: "Check") -> dict[str, object]:
    return {
        "what": check.what,
        "kind": check.kind,
        "predicted": check.predicted,
        "observed": check.observed,
        "low": check.low if isfinite(check.low) else None,
        "high": check.high if isfinite(check.high) else None,
        "holds": check.holds,
    }
