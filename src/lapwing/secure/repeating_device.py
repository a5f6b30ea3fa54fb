"""A device that answers a task every day: it stores the days, and the parts that servers do not have yet.

Theory of operation. The task's ε is for all answers of a client together. A client answers once a day at most, and on
`most_days` days at most. The device enforces both, because servers cannot tell who answers: each day has a fresh id.
The first answer puts the whole ε into the device's ledger, and later answers cost nothing more. The file is written
before anything is sent, so a crash counts a day on which nothing left. Days follow the device's clock, in UTC. If the
file is lost, or an older copy replaces it, the device may answer on more days, and lose more in proportion
(`docs/theory/secure.md`).
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path

from lapwing.errors import Fault, QueryRefused, RefusalCause
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local.client.device import Summed
from lapwing.privacy.amounts import written
from lapwing.secure.device import affordable, held_ledger, records_of, with_limits
from lapwing.secure.repetition import TaskDays
from lapwing.secure.task import Task

Waiting = dict[int, dict[str, bytes]]
"""Each day on which the device answered, with the records that some server does not have, by its name."""


def answer_today(
    path: Path,
    task: Task,
    answer: str,
    *,
    today: date | None = None,
    limit: Fraction | None = None,
    delta_limit: Fraction | None = None,
    entropy: Entropy = SYSTEM,
) -> Mapping[str, bytes]:
    """Return the records of today's answer, by server, once the device's file has them.

    Guarantee:
        All answers that leave the device lose the task's ε together. This file must be the device's only one, and no
        older copy may replace it.

    Args:
        task: Of all days.
        today: By UTC; the clock's unless given.
        limit: As of `answer_on_device`.
        delta_limit: As of `answer_on_device`.

    Raises:
        QueryRefused: If today is no day of the task, or has an answer already. Also if the device used all its days,
            or a limit would be exceeded. Nothing is sent then.
        InvalidParameter: If that may not be answered.
        Fault: If the file cannot be used.
    """
    series = task.on(None)
    repeats = _repeats(series)
    day = repeats.day_of(today or datetime.now(UTC).date())
    if day is None:
        raise QueryRefused(
            f"The task is open from {repeats.first} to {repeats.last}",
            cause=RefusalCause.REPORT_REFUSED,
            remedy="Nothing was sent.",
        )
    with held_ledger(path) as (ledger, write):
        ledger = with_limits(ledger, limit, delta_limit)
        before = ledger.summed.get(series.digest)
        days = _days(before)
        _require_free(repeats, days, day)
        records = records_of(series.on(day), answer, entropy)
        days[day] = dict(records)
        if before is None:
            epsilon, delta = affordable(ledger, series)
            began = repeats.date_of(day)
            before = Summed(question=task.question, epsilon=epsilon, delta=delta, day=began)
        write(replace(ledger, summed={**ledger.summed, series.digest: replace(before, kept=_kept(series, days))}))
    return records


def waiting_days(path: Path, task: Task) -> Waiting:
    """Return the days whose records some server does not have yet."""
    with held_ledger(path) as (ledger, _):
        return {day: waiting for day, waiting in _days(ledger.summed.get(task.on(None).digest)).items() if waiting}


def answered_days(path: Path, task: Task) -> list[int]:
    """Return the days on which the device answered."""
    with held_ledger(path) as (ledger, _):
        return sorted(_days(ledger.summed.get(task.on(None).digest)))


def acknowledged_day(path: Path, task: Task, day: int, server: str) -> None:
    """Forget the record of a day that a server has."""
    series = task.on(None)
    with held_ledger(path) as (ledger, write):
        summed = ledger.summed[series.digest]
        days = _days(summed)
        days[day].pop(server, None)
        write(replace(ledger, summed={**ledger.summed, series.digest: replace(summed, kept=_kept(series, days))}))


def _require_free(repeats: TaskDays, days: Waiting, day: int) -> None:
    """Refuse a second answer of a day, and one on more days than the task allows."""
    if day in days:
        raise QueryRefused(
            "This device answered the task today",
            cause=RefusalCause.ALREADY_REPORTED,
            remedy="Nothing was sent. `lapwing secure send --again` sends what a server did not get.",
        )
    if len(days) >= repeats.most_days:
        raise QueryRefused(
            f"This device answered on {len(days)} days, and the task takes answers of {repeats.most_days} days",
            cause=RefusalCause.ALREADY_REPORTED,
            remedy="Nothing was sent, and nothing more is due.",
        )


def _repeats(task: Task) -> TaskDays:
    if task.repeats is None:
        raise QueryRefused(
            "The task does not repeat", cause=RefusalCause.REPORT_REFUSED, remedy="Use `answer_on_device`."
        )
    return task.repeats


def _kept(task: Task, days: Waiting) -> dict[str, object]:
    """Return what the file has of the task: what one answer has (`device`), and the days."""
    each = {str(day): {name: record.hex() for name, record in waiting.items()} for day, waiting in days.items()}
    return {"delta": written(task.delta), "waiting": {}, "days": each}


def _days(summed: Summed | None) -> Waiting:
    """Read what `_kept` makes; nothing was answered if there is nothing."""
    if summed is None:
        return {}
    try:
        days = summed.kept["days"]
        if not isinstance(days, dict) or not days:
            raise ValueError
        return {
            int(day): {name: bytes.fromhex(record) for name, record in waiting.items()} for day, waiting in days.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Fault(
            "The device's file is damaged, so Lapwing does not know on which days it answered. Nothing was sent."
        ) from None
