"""Show the totals of a task as a table, or as JSON."""

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Final

from lapwing.cli.console import Fitted, labelled, new_table, print_text, show, text
from lapwing.cli.options import ReportFormatName, amount, between
from lapwing.cli.secure.noise_texts import figure, noise_of
from lapwing.privacy.amounts import written
from lapwing.privacy.figures import level

if TYPE_CHECKING:
    from lapwing.secure.organising import Totals

CONFIDENCE: Final = Fraction(95, 100)
_MOST_ROWS: Final = 100
"""Of a grid's table: the largest estimates, with intervals that all hold together."""
Level = Annotated[
    Fraction | None,
    amount(between("--confidence"), "The confidence of the intervals; default 0.95.", show_default=False),
]


def show_totals(found: "Totals", confidence: Fraction, form: ReportFormatName) -> None:
    """Show the totals of a task: the largest ones of a grid, and else all."""
    from lapwing.secure.estimates import estimates, largest
    from lapwing.secure.part_sums import soundness_error

    if form is ReportFormatName.json:
        print_text(_document(found, confidence))
        return
    many = found.task.asked.width > _MOST_ROWS and found.task.grid
    rows = largest(found, confidence) if many else estimates(found, confidence)
    together = ", all rows together" if many else ""
    table = new_table("", "estimate", f"{level(confidence)} interval{together}", numbers=["estimate"])
    for each in rows[:_MOST_ROWS] if many else rows:
        table.add_row(text(each.label), text(figure(each.value)), text(f"{figure(each.low)} to {figure(each.high)}"))
    tested = []
    if found.dropped is not None:
        error = soundness_error(found.task, found.clients + found.dropped)
        stays = f"one more invalid answer remains with a probability below 10^{math.ceil(math.log10(error))}"
        tested = [("dropped", f"{found.dropped:,}, whose parts add up to no valid answer; {stays}")]
    facts = labelled(
        ("clients", f"{found.clients:,}, counted exactly"),
        *tested,
        *([("shown", f"{min(len(rows), _MOST_ROWS):,} of {len(rows):,} values that are above 0")] if many else []),
        ("noise", noise_of(found.task)),
        ("promise", found.task.promise),
    )
    show(text(found.task.question, "bold"), Fitted(table), text(""), facts)


def _document(found: "Totals", confidence: Fraction) -> str:
    import json

    from lapwing.secure.estimates import estimates

    return (
        json.dumps(
            {
                "question": found.task.question,
                "task": found.task.digest,
                "clients": found.clients,
                "dropped": found.dropped,
                "set": found.clients_digest,
                "epsilon": written(found.task.epsilon),
                "delta": written(found.task.delta),
                "confidence": float(confidence),
                "estimates": [
                    {"label": each.label, "value": float(each.value), "low": float(each.low), "high": float(each.high)}
                    for each in estimates(found, confidence)
                ],
            },
            ensure_ascii=False,
        )
        + "\n"
    )
