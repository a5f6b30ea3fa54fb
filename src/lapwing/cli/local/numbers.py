"""`lapwing local estimate` for the mean of a number, and for several attributes."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import lapwing as lw
from lapwing.cli.charts import write_chart
from lapwing.cli.console import note, text
from lapwing.cli.formats import new_table
from lapwing.cli.local.pages import moving
from lapwing.cli.local.wanted import Wanted, Whom
from lapwing.cli.local.written import as_arrow, show_as
from lapwing.plots import bars_with_intervals, below_each_other

if TYPE_CHECKING:
    from lapwing.local import Collected, FrequencyEstimate, MeanEstimate, MeanRandomizer, OneAttribute

NAMES: Final = ("duchi", "piecewise", "hybrid")
RECORD: Final = "one-attribute"
COLUMNS: Final = ("question", "value", "reports", "estimate", "standard_error", "low", "high", "consistent")

Row = dict[str, Any]


def estimate_number(collected: "Collected[MeanRandomizer]", wanted: Wanted) -> None:
    """Show the mean of a number, say for whom its interval is, and what forged reports can do."""
    found = lw.local.estimate_mean(collected.mechanism, collected.reports)
    _show(collected, {collected.task.question: found}, wanted.confidence, wanted.whom, wanted)
    whose = "those who sent a report" if wanted.whom is Whom.respondents else "the population they are a sample of"
    note("for", f"{whose}; the interval holds with {100 * wanted.confidence:g} %.")
    number = found.mechanism.number
    note("bounds", f"numbers below {number.lower} or above {number.upper} count as these.")
    if wanted.forged:
        down, up = found.forged(wanted.forged)
        note("forged", f"{moving(wanted.forged)} the mean by -{down:.3g} to +{up:.3g} at most.")


def estimate_attributes(collected: "Collected[OneAttribute]", wanted: Wanted) -> None:
    """Show shares or mean of every question; each has the reports of those who told it, drawn from all respondents."""
    found = lw.local.estimate_record(collected.task, collected.reports)
    wrong = (1 - wanted.confidence) / (max(len(found), 1) if wanted.together else 1)
    _show(collected, found, 1 - wrong, Whom.population, wanted)
    held = f"each interval holds with {100 * wanted.confidence:g} %{', all at once' if wanted.together else ''}"
    note("for", f"all respondents, and the population they are a random sample of; {held}.")
    for question in collected.mechanism.questions:
        if question not in found:
            note("none", f"no report tells {question!r}.")
    if wanted.forged:
        for question, each in found.items():
            _note_forged(question, each, min(wanted.forged, each.reports))


def _note_forged(question: str, found: "FrequencyEstimate | MeanEstimate", forged: int) -> None:
    down, up = found.forged(forged)
    worst = [float(side if isinstance(side, float) else side.max()) for side in (down, up)]
    note("forged", f"of {question!r}, {moving(forged)} it by -{worst[0]:.3g} to +{worst[1]:.3g} at most.")


def _show(
    collected: "Collected[Any]",
    found: "Mapping[str, FrequencyEstimate | MeanEstimate]",
    confidence: float,
    whom: Whom,
    wanted: Wanted,
) -> None:
    rows = [
        row
        for question, each in found.items()
        for row in _rows(question, each, confidence, whom=whom, together=wanted.together)
    ]
    show_as(
        wanted.format,
        table=lambda: _table(rows),
        csv=lambda: _csv(rows),
        document=lambda: {**wanted.document(collected, whom), "estimates": rows},
        arrow=lambda: as_arrow(rows),
    )
    if wanted.plot is not None:
        title, drawn = collected.task.question, [_bars(question, rows) for question in found]
        write_chart(drawn[0] if len(drawn) == 1 else below_each_other(title, *drawn), wanted.plot)


def _rows(
    question: str, found: "FrequencyEstimate | MeanEstimate", confidence: float, *, whom: Whom, together: bool
) -> list[Row]:
    """Return a record a value, or one of the mean, with the same columns."""
    if isinstance(found, lw.local.MeanEstimate):
        (row,) = found.rows(confidence, whom=whom.value)
        return [{"question": question, "value": "mean", "estimate": row.pop("mean"), **row}]
    shares = found.rows(confidence, whom=whom.value, together=together)
    return [
        {
            "question": question,
            "value": row["value"],
            "reports": found.reports,
            "estimate": row["share"],
            **{name: row[name] for name in ("standard_error", "low", "high", "consistent")},
        }
        for row in shares
    ]


def _bars(question: str, rows: Sequence[Row]) -> Any:
    own = [row for row in rows if row["question"] == question]
    return bars_with_intervals(own, keys=["value"], value="estimate", low="low", high="high", title=question)


def _table(rows: Sequence[Row]) -> Any:
    names = ("reports", "estimate", "from", "to", "consistent")
    table = new_table("question", "value", *names, numbers=names)
    for row in rows:
        shown = [f"{row[name]:.4f}" for name in ("estimate", "low", "high", "consistent")]
        table.add_row(*map(text, (row["question"], row["value"], f"{row['reports']:,}", *shown)))
    return table


def _csv(rows: Sequence[Row]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
