"""`lapwing local device`: what this device has revealed so far, and reports that are added to it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.table import Table

import lapwing as lw
from lapwing.cli.charts import HELP, require_chart, write_chart
from lapwing.cli.console import new_table, note, text
from lapwing.cli.local.output import show_as, written_as
from lapwing.cli.options import UsualFormat, above_zero, amount, between
from lapwing.errors import BudgetExhausted, InvalidParameter, QueryRefused, RefusalCause
from lapwing.exact.entropy import SYSTEM
from lapwing.local.client.answers import plain
from lapwing.plots import Plot, steps_over_days
from lapwing.privacy.amount_texts import short

if TYPE_CHECKING:
    from lapwing.local.client import Answer, Task
    from lapwing.local.client.device import Device, Reported, Summed

EXAMPLE: Final = """\b
Examples:
  lapwing local device device.json --plot revealed.html
  lapwing local device device.json --limit 3"""
ALWAYS, UNCHANGED = "for any answers", "only if no remembered answer ever changed"
POINTS: Final = 200
COLUMNS: Final = (
    "question", "task", "mechanism", "reports", "first", "last", "epsilon_of_one", "epsilon_unchanged", "epsilon",
    "delta",
)  # fmt: skip
SUMMED: Final = "secure sum"
_PLACES: Final = Decimal("0.001")


def device(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The device's file.")],
    limit: Annotated[Fraction | None, amount(above_zero("--limit"), "Refuse reports beyond this epsilon.")] = None,
    delta_limit: Annotated[
        Fraction | None, amount(between("--delta-limit"), "Refuse secure sums beyond this delta in all.")
    ] = None,
    no_limit: Annotated[bool, typer.Option("--no-limit", help="Remove the limits.")] = False,
    form: UsualFormat = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help=HELP)] = None,
) -> None:
    """Show what this device has revealed so far, task by task and in all, and set its own limits.

    The file is private, because mechanisms store parts of your answers in it. Without the file, the device counts from
    zero, although everybody still has what it revealed before.
    """
    if no_limit and (limit, delta_limit) != (None, None):
        raise InvalidParameter("Give limits or --no-limit, not both.")
    require_chart(plot)
    with _refusals():
        from lapwing.local.client import device as devices  # here, as it is for POSIX systems only

        if limit is not None or no_limit:
            # A limit that 12 decimals do not hold is rounded down.
            cap = None if limit is None else Decimal(limit.numerator * 10**12 // limit.denominator).scaleb(-12)
            devices.set_limit(str(file), cap, date.today())
        if delta_limit is not None or no_limit:  # the same with 24
            cap = None if delta_limit is None else -devices.delta_up(-delta_limit)
            devices.set_delta_limit(str(file), cap, date.today())
        revealed = devices.read_device(str(file))
    show_as(
        written_as(form),
        table=lambda: _table(revealed),
        rows=_records(revealed),
        columns=COLUMNS,
        document=lambda: _document(revealed),
    )
    delta = revealed.delta()
    note("in all", f"{_said(revealed.epsilon(), delta)} since {revealed.began}, {ALWAYS}.")
    if revealed.epsilon() != revealed.epsilon_unchanged():
        note("less", f"{_said(revealed.epsilon_unchanged(), delta)} {UNCHANGED}.")
    limits = [f"epsilon {plain(revealed.limit)}"] if revealed.limit is not None else []
    if (most := revealed.most_delta) is not None and (delta or revealed.delta_limit is not None):
        limits.append(f"delta {short(Fraction(most))}")
    if limits:
        note("limit", f"{', '.join(limits)}: a report beyond {'them' if limits[1:] else 'it'} is refused.")
    if plot is not None:
        write_chart(revealed_over_days(revealed), plot)


def report(task: "Task", answer: "Answer", file: Path | None, today: date) -> bytes | None:
    """Return the report of an answer, recorded in the device's file if there is one; None if none is due."""
    if file is None:
        if task.asked.remembers:
            raise InvalidParameter(f"The mechanism {task.mechanism} remembers: give --device FILE. Nothing was sent.")
        return _answered(lambda: lw.local.client.report(task, answer, SYSTEM.read))
    from lapwing.local.client import device as devices  # here, as it is for POSIX systems only

    with _refusals():
        new = not file.exists() or not devices.read_device(str(file)).days()
        line = _answered(lambda: devices.report_from_device(str(file), task, answer, SYSTEM.read, today))
        revealed = devices.read_device(str(file))
    if new:
        since = "today" if revealed.began == today else str(revealed.began)
        note("new", f"{file} counts from {since}: what this device revealed before, it does not know of.")
    note("device", f"{_said(revealed.epsilon(), revealed.delta())} in all so far, {ALWAYS}.")
    return line


def revealed_over_days(revealed: "Device") -> Plot:
    """Return how much the device had revealed by each day; of many days some, and the last."""
    days = revealed.days()
    drawn = [*days[:-1][:: len(days) // POINTS + 1], *days[-1:]]
    points = [
        {"day": day.isoformat(), "epsilon": float(epsilon), "holds": holds}
        for holds, total in ((ALWAYS, revealed.epsilon), (UNCHANGED, revealed.epsilon_unchanged))
        for day in drawn
        if (epsilon := total(day)) is not None
    ]
    limit = None if revealed.limit is None else float(revealed.limit)
    delta = revealed.delta()
    title = "Privacy loss of this device" + (f", with delta {short(Fraction(delta))} in all" if delta else "")
    return steps_over_days(points, day="day", value="epsilon", series="holds", title=title, limit=limit)


def _answered(made: Callable[[], bytes | None]) -> bytes | None:
    try:
        return made()
    except lw.local.client.AnswerRefused as refused:
        raise InvalidParameter(str(refused)) from None


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise Lapwing's errors for the client's, which knows only the standard library."""
    from lapwing.local.client import device as devices

    try:
        yield
    except devices.LimitReached as refused:
        raise BudgetExhausted(str(refused)) from None
    except devices.DeviceRefused as refused:
        raise QueryRefused(str(refused).rstrip("."), cause=RefusalCause.REPORT_REFUSED) from None


def _records(revealed: "Device") -> list[dict[str, Any]]:
    return [
        *(_record(each) for each in revealed.reported.values()),
        *(_summed(digest, each) for digest, each in revealed.summed.items()),
    ]


def _record(each: "Reported") -> dict[str, Any]:
    count, days = each.until(), sorted(each.days)
    epsilon = each.epsilon(count)
    return {
        "question": each.task.question,
        "task": each.task.id,
        "mechanism": each.task.mechanism,
        "reports": count,
        "first": days[0].isoformat() if days else None,
        "last": days[-1].isoformat() if days else None,
        "epsilon_of_one": plain(each.task.epsilon),
        "epsilon_unchanged": plain(each.epsilon_unchanged(count)),
        "epsilon": None if epsilon is None else plain(epsilon),
        "delta": "0",
    }


def _summed(digest: str, each: "Summed") -> dict[str, Any]:
    day, epsilon = each.day.isoformat(), plain(each.epsilon)
    return {
        "question": each.question,
        "task": digest[:32],
        "mechanism": SUMMED,
        "reports": 1,
        "first": day,
        "last": day,
        "epsilon_of_one": epsilon,
        "epsilon_unchanged": epsilon,
        "epsilon": epsilon,
        "delta": plain(each.delta),
    }


def _table(revealed: "Device") -> Table:
    numbers = ("reports", "one", "unchanged", "in all", *(["delta"] if revealed.delta() else []))
    table = new_table("question", "mechanism", "reports", "last", *numbers[1:], numbers=numbers)
    for row in _records(revealed):
        texts = (row[name] for name in ("epsilon_of_one", "epsilon_unchanged", "epsilon"))
        losses = (None if loss is None else Decimal(loss) for loss in texts)
        cells = [row["question"], row["mechanism"], f"{row['reports']:,}", row["last"] or ""]
        cells += ["no bound" if loss is None else _up(loss) for loss in losses]
        cells += [short(Fraction(row["delta"]))] if revealed.delta() else []
        table.add_row(*map(text, cells))
    return table


def _document(revealed: "Device") -> dict[str, Any]:
    total = revealed.epsilon()
    return {
        "began": revealed.began.isoformat(),
        "limit": None if revealed.limit is None else plain(revealed.limit),
        "delta_limit": None if revealed.most_delta is None else plain(revealed.most_delta),
        "epsilon": None if total is None else plain(total),
        "epsilon_unchanged": plain(revealed.epsilon_unchanged()),
        "delta": plain(revealed.delta()),
        "reported": _records(revealed),
    }


def _said(epsilon: Decimal | None, delta: Decimal) -> str:
    loss = "epsilon without a bound" if epsilon is None else f"epsilon {_up(epsilon)}"
    return f"{loss}, delta {short(Fraction(delta))}" if delta else loss


def _up(epsilon: Decimal) -> str:
    """Return three decimal places, rounded up."""
    return plain(epsilon.quantize(_PLACES, rounding=ROUND_CEILING))
