"""A finding as tables for people, as CSV and JSON for programs, and as a page to hand out."""

import csv
import io
import re
from collections.abc import Iterable, Mapping
from html import escape
from math import isfinite
from typing import TYPE_CHECKING, Final

from rich.console import RenderableType

import lapwing as lw
from lapwing.cli.console import Fitted, new_table, text
from lapwing.plots.files import as_svg
from lapwing.privacy.figures import significant

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
    said = (text(""), *map(text, finding.conclusion.split("\n")), text(f"({finding.sample})", "dim"), text(""))
    return Fitted(table), text(""), Fitted(checks), *said


def as_derivation(name: str) -> tuple[RenderableType, ...]:
    """Return where an experiment's predictions come from: paragraphs, and lists with a line for each point."""
    experiment = lw.lab.experiments()[name]
    paragraphs = experiment.derivation.strip().split("\n\n")[1:]  # the first says what the experiment is called
    joined = (re.sub(r"\n(?!- )\s*", " ", paragraph).removeprefix("Derivation. ") for paragraph in paragraphs)
    parts = [part for paragraph in joined for part in (*map(text, paragraph.split("\n")), text(""))]
    return text(f"{name}: {experiment.title}", "bold"), text(""), *parts, text(f"In full: docs/lab/{name}.md", "dim")


def predicted(check: "Check") -> str:
    """Return what was predicted, or the bound of it."""
    sign = {"equal": "", "at most": "≤ ", "at least": "≥ "}[check.kind]
    return sign + written(check.predicted)


def written(cell: str | int | float | None) -> str:
    """Return a cell for people: numbers with four figures that tell."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:,.0f}" if isfinite(cell) and abs(cell) >= 10_000 else significant(cell, 4)
    return f"{cell:,}" if isinstance(cell, int) else cell


def as_csv(findings: "Mapping[str, Finding]", *, head: bool = True) -> str:
    """Return the checks of findings, a line each: what everything has in common."""
    lines = io.StringIO()
    writer = csv.writer(lines)
    if head:
        writer.writerow(("experiment", "checked", "kind", "predicted", "observed", "low", "high", "holds"))
    for name, finding in findings.items():
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
        "checks": [
            {
                "what": check.what,
                "kind": check.kind,
                "predicted": check.predicted,
                "observed": check.observed,
                "low": check.low if isfinite(check.low) else None,
                "high": check.high if isfinite(check.high) else None,
                "holds": check.holds,
            }
            for check in finding.checks
        ],
        "conclusion": finding.conclusion,
        "sample": finding.sample,
        "plot": finding.plot.to_dict(),
    }


# One page to hand out, which needs no network and no script.

_FIGURE: Final = re.compile(r"[≤≥]? ?-?[0-9.,]+(e[+-]?[0-9]+)?")
STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.9rem; }
th, td { padding: 0.15rem 0.7rem; border-bottom: 1px solid #ddd; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
svg { max-width: 100%; height: auto; }
.surprise { color: #a00; font-weight: bold; }
.sample { color: #666; font-size: 0.9rem; }
section { break-inside: avoid-page; margin-top: 3rem; }
"""


def as_page(findings: "Mapping[str, Finding]") -> str:
    """Return a page with each finding: what it asks, its tables, its chart, what it shows."""
    titles = {name: experiment.title for name, experiment in lw.lab.experiments().items()}
    contents = "".join(f'<li><a href="#{name}">{escape(name)}</a>: {escape(titles[name])}</li>' for name in findings)
    sections = "".join(_section(name, titles[name], finding) for name, finding in findings.items())
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Differential privacy, tried out</title>\n<style>{STYLE}</style>\n"
        "<h1>Differential privacy, tried out</h1>\n"
        "<p>Each figure was predicted by a formula, and then observed on the real engine, or on a naive target where "
        "it says so.</p>\n"
        f"<ul>{contents}</ul>\n{sections}</html>\n"
    )


def _section(name: str, title: str, finding: "Finding") -> str:
    names, said = list(finding.rows[0]), escape(finding.conclusion).replace("\n", "<br>")
    checks = [
        (check.what, predicted(check), check.observed, "holds" if check.holds else "does not hold")
        for check in finding.checks
    ]
    return (
        f'<section id="{name}">\n<h2>{escape(title)}</h2>\n<p>{said}</p>\n'
        f"{as_svg(finding.plot.to_dict())}\n"
        f"{_table(names, ([row[name] for name in names] for row in finding.rows))}"
        f"{_table(('checked', 'predicted', 'observed', ''), checks)}"
        f'<p class="sample">{escape(finding.sample)}</p>\n</section>\n'
    )


def _table(names: Iterable[str], rows: Iterable[Iterable[str | int | float | None]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in rows)
    return f"<table>\n<tr>{head}</tr>\n{body}</table>\n"


def _cell(cell: str | int | float | None) -> str:
    if cell == "does not hold":
        return '<td class="surprise">does not hold</td>'
    kind = ' class="number"' if not isinstance(cell, str) or _FIGURE.fullmatch(cell) else ""
    return f"<td{kind}>{escape(written(cell))}</td>"
