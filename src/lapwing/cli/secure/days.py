"""The days of a task that repeats: which is today, which are over, and what they look like."""

from fractions import Fraction
from typing import TYPE_CHECKING

from lapwing.cli.console import Fitted, labelled, new_table, print_text, show, text
from lapwing.cli.options import ReportFormatName
from lapwing.cli.secure.noise_texts import figure
from lapwing.errors import InvalidParameter
from lapwing.privacy.amounts import written
from lapwing.privacy.figures import level

if TYPE_CHECKING:
    from lapwing.secure.repeating_organiser import Days
    from lapwing.secure.task import Task


def today_of(task: "Task") -> int | None:
    """Return the number of today among the days of a task that repeats.

    Raises:
        InvalidParameter: If today is none of them.
    """
    from datetime import UTC, datetime

    if task.repeats is None:
        return None
    day = task.repeats.day_of(datetime.now(UTC).date())
    if day is None:
        raise InvalidParameter(f"The task is open from {task.repeats.first} to {task.repeats.last}.")
    return day


def closed_days(task: "Task", key: str) -> "Days":
    """Close the days that are over, and return all days that are released.

    Raises:
        InvalidParameter: If none is over.
    """
    from datetime import UTC, datetime

    from lapwing.secure.repeating_organiser import close_day, due_days, released_days

    for day in due_days(task, len(released_days(task).totals), datetime.now(UTC).date()):
        close_day(task, key, day)
    return released_days(task)


def show_days(found: "Days", window: int | None, confidence: Fraction, form: ReportFormatName) -> None:
    """Show the totals of all days that are released, a row for each day and each count."""
    import json

    if form is ReportFormatName.json:
        print_text(json.dumps(_days_document(found, window, confidence), ensure_ascii=False) + "\n")
        return
    table = new_table(
        "day", "", "estimate", f"{level(confidence)} interval", "answers", numbers=["estimate", "answers"]
    )
    for number in range(1, len(found.totals) + 1):
        answers = f"{found.over(number, window).clients:,}"
        for each in found.estimates(number, window, confidence):
            between_ = f"{figure(each.low)} to {figure(each.high)}"
            date = found.repeats.date_of(number).isoformat()
            table.add_row(*map(text, (date, each.label, figure(each.value), between_, answers)))
    what = "of all days so far" if window is None else f"of the last {window} days"
    facts = labelled(
        ("days", f"{len(found.totals)} of {found.repeats.days} released; each row is {what}"),
        ("promise", found.task.promise),
    )
    show(text(found.task.question, "bold"), Fitted(table), text(""), facts)


def _days_document(found: "Days", window: int | None, confidence: Fraction) -> dict[str, object]:
    return {
        "question": found.task.question,
        "task": found.task.digest,
        "epsilon": written(found.task.epsilon),
        "window": window,
        "confidence": float(confidence),
        "days": [
            {
                "day": number,
                "date": found.repeats.date_of(number).isoformat(),
                "answers": found.over(number, window).clients,
                "estimates": [
                    {"label": each.label, "value": float(each.value), "low": float(each.low), "high": float(each.high)}
                    for each in found.estimates(number, window, confidence)
                ],
            }
            for number in range(1, len(found.totals) + 1)
        ],
    }
