"""One task's collector: it takes reports, each once, and has their estimate at any time.

Theory of operation. Whoever brings reports hands over the bytes and waits. One thread takes all that wait, reads them
line by line, leaves out what is no report of the task or came before, and commits the rest once, durably; then it
adds them up, and all who waited are told. So many who bring one report each share a commit, and nothing is told to be
taken before it is on the disk.

Estimates count reports in whole batches of at least so many, in the order of their commits. What a batch says is known
at once, and never what one report adds to it: that is what shuffling asks for, from whoever trusts the collector.
After a restart, all reports are added up again, once, in the same batches.

Once the task is closed, what makes whole batches is released and identities are forgotten; when the days are over that
the task states, all reports are deleted, and what they added up to is kept. The thread that writes looks for both
every minute, and the start does.
"""

import json
import queue
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Final, final

from lapwing.collector.identities import IdentitySet
from lapwing.collector.report_store import DeletedReports, Row, open_store
from lapwing.collector.tally import tally_of
from lapwing.errors import Fault, InvalidParameter, LapwingError, QueryRefused, RefusalCause
from lapwing.local import client
from lapwing.local.collection import Expected, parse_report
from lapwing.local.mechanism import Mechanism
from lapwing.local.registry import mechanism_of
from lapwing.local.shuffling.amplification import amplified_epsilon
from lapwing.privacy.amount_texts import short

MOST_LINES: Final = 10_000
"""Of one request."""
MOST_REPORTS: Final = 50_000_000
"""Of one task."""
MOST_AT_ONCE: Final = 1 << 24
"""Bytes that are committed together."""
SHOWN: Final = 100
"""Rejected lines of a request that are named; the rest is counted."""
IN_A_FILE: Final = 100_000
SHUFFLED: Final = ("binary", "k-ary", "subset", "unary", "hashing")
"""Mechanisms whose own law bounds what shuffling promises; others are bounded by their epsilon."""
REPEATED: Final = "the id was seen before"
LOOK: Final = 60.0
"""Seconds between two looks whether a task is closed, and whether its reports are to be deleted."""
KEPT_CONFIDENCE: Final = 0.95
"""Of the intervals that are kept when reports are deleted."""
CLOSED: Final = "The task takes no reports today"


def today_in_utc() -> date:
    """Return the day, which is all of the time that a collector keeps."""
    return datetime.now(UTC).date()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Shuffling:
    """What shuffled reports promise to who trusts the collector: δ, and how many reports of a batch may be forged."""

    delta: Fraction
    forged: int = 0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What became of the lines of one request: taken, or known before, or rejected, each with its number and reason."""

    taken: int
    repeated: int
    rejected: int
    reasons: tuple[tuple[int, str], ...]

    @property
    def document(self) -> dict[str, object]:
        """The receipt, as JSON holds it."""
        reasons = [{"line": line, "reason": reason} for line, reason in self.reasons]
        return {"taken": self.taken, "repeated": self.repeated, "rejected": self.rejected, "reasons": reasons}


@final
@dataclass(slots=True)
class _Brought:
    """What one request brought, while it is read."""

    body: bytes
    answer: "Future[Receipt]"
    taken: int = 0
    repeated: int = 0
    wrong: list[tuple[int, str]] = field(default_factory=list)


@final
class Collector:
    """The collector of one task, for any number of threads.

    Args:
        folder: Where its file of reports is, and the released ones.
        batch: The collector counts and releases reports in groups of at least this many.
        shuffling: States what that promises.
        database: The address of one in PostgreSQL, where reports are in place of the folder.
        candidates: Of a task for texts: those whose shares are estimated.

    Raises:
        InvalidParameter: If a batch is of no report, or the mechanism says nothing, or has no use for candidates.
        Fault: As `ReportStore`.
    """

    def __init__(
        self,
        folder: Path,
        task: client.Task,
        *,
        batch: int = 1,
        shuffling: Shuffling | None = None,
        database: str | None = None,
        candidates: Sequence[str] | None = None,
    ) -> None:
        if not 1 <= batch <= 10**6:
            raise InvalidParameter(f"A batch has from 1 to 1,000,000 reports, not {batch}.")
        self.task, self.batch = task, batch
        self.mechanism = mechanism_of(task.asked)
        self.shuffled = None if shuffling is None else _promise(self.mechanism, task, batch, shuffling)
        self._tally = tally_of(task.asked, self.mechanism, candidates)
        self._inbox = open_store(folder, database, task, batch)
        self._identities = IdentitySet()
        self._pending: list[object] = []
        self._reports = self._counted = self._counted_to = self._known_to = 0
        self._file, self._in_files = self._inbox.released()
        self._unreleased = 0
        self._in_doubt = self._forgotten = False
        self._kept = self._inbox.kept()
        self._state = threading.Lock()
        self._catch_up()
        self._queue: queue.SimpleQueue[_Brought | None] = queue.SimpleQueue()
        self._expected = Expected.of(task)
        self._look_after()
        self._writer = threading.Thread(target=self._write, name=f"collector {task.id}", daemon=True)
        self._writer.start()

    # What others ask.

    def bring(self, body: bytes) -> "Future[Receipt]":
        """Take the reports in the lines of a body; the receipt comes when they are on the disk.

        Raises:
            QueryRefused: If the task is not open today.
            InvalidParameter: For too many lines.
        """
        self.require_open()
        if body.count(b"\n") + (not body.endswith(b"\n")) > MOST_LINES:
            raise InvalidParameter(f"A request has at most {MOST_LINES:,} reports; send several.")
        answer: Future[Receipt] = Future()
        self._queue.put(_Brought(body, answer))
        return answer

    def require_open(self) -> None:
        """Raise QueryRefused unless reports are taken today."""
        opens, closes = self.task.opens, self.task.closes
        if not opens <= today_in_utc() <= closes:
            raise QueryRefused(
                f"{CLOSED}: it is open from {opens} to {closes}",
                cause=RefusalCause.TASK_CLOSED,
                remedy="Nothing was taken.",
            )

    @property
    def closed(self) -> bool:
        """Whether the task takes no reports any more."""
        return today_in_utc() > self.task.closes

    @property
    def status(self) -> dict[str, object]:
        """Public facts: how many reports there are, counted in batches, and how many were rejected, by reason."""
        with self._state:
            return {
                "task": self.task.id,
                "digest": self.task.digest,
                "opens": self.task.opens.isoformat(),
                "closes": self.task.closes.isoformat(),
                "closed": self.closed,
                "batch": self.batch,
                "reports": self._counted if self._kept is None else self._kept.reports,
                "deleted": None if self._kept is None else self._kept.day.isoformat(),
                "rejected": dict(self._rejected),
                "shuffled": self.shuffled,
            }

    def estimate(self, confidence: float = 0.95) -> list[Row]:
        """Return the estimates with intervals for the population, of whole batches; none before the first.

        Raises:
            QueryRefused: For a mechanism for texts without candidates. Once reports are deleted, for intervals other
                than the stored ones.
        """
        if self._tally is None:
            raise QueryRefused(
                f"Reports of the mechanism {self.task.mechanism} need a list of words to look for",
                cause=RefusalCause.NEEDS_CANDIDATES,
                remedy="Collect with --candidates words.txt, or estimate from the released files: lapwing local "
                "estimate TASK FILE… --candidates words.txt.",
            )
        with self._state:
            kept, rows = self._kept, self._tally.estimate()
        if kept is None:
            return rows(confidence)
        if confidence != KEPT_CONFIDENCE:
            raise QueryRefused(
                f"The reports were deleted on {kept.day}, and the collector stores only intervals of 95 %",
                cause=RefusalCause.REPORTS_DELETED,
                remedy="Ask without a confidence.",
            )
        return kept.rows

    def release(self) -> list[str]:
        """Release what is in whole batches and was not yet; return where that is: files, or rows of a table.

        Once the task is closed, identities are forgotten. Reports that make no whole batch stay where they are.
        """
        with self._state:
            places = self._release(1)
            if self.closed:
                self._inbox.forget_identities()
        return places

    def close(self) -> None:
        """Finish what was brought, and close the file."""
        self._queue.put(None)
        self._writer.join()
        self._inbox.close()

    # The thread that writes.

    def _write(self) -> None:
        going = True
        while going:
            try:
                first = self._queue.get(timeout=LOOK)
            except queue.Empty:
                with suppress(LapwingError), self._state:  # what fails is tried again in a minute
                    self._look_after()
                continue
            if first is None:
                return
            group, size = [first], len(first.body)
            while size < MOST_AT_ONCE:
                try:
                    more = self._queue.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    going = False
                    break
                group.append(more)
                size += len(more.body)
            self._take(group)

    def _take(self, group: list[_Brought]) -> None:
        try:
            with self._state:
                self._commit(group)
        except Exception as error:
            fault = error if isinstance(error, LapwingError) else Fault("The collector failed; nothing was taken.")
            for brought in group:
                brought.answer.set_exception(fault)
            return
        for brought in group:
            rejected = len(brought.wrong)
            receipt = Receipt(
                taken=brought.taken, repeated=brought.repeated, rejected=rejected, reasons=tuple(brought.wrong[:SHOWN])
            )
            brought.answer.set_result(receipt)

    def _commit(self, group: list[_Brought]) -> None:
        """Keep what is new in a group. Nothing is remembered of it before that is durable."""
        self.require_open()  # it may have closed since
        if self._in_doubt:  # nobody knows whether what was written last is there
            self._catch_up()
        new: dict[bytes, object] = {}
        reasons: Counter[str] = Counter()
        for brought in group:
            for identity, said in self._read(brought, reasons):
                if identity in new:
                    brought.repeated += 1
                else:
                    new[identity] = said
                    brought.taken += 1
        if self._reports + len(new) > MOST_REPORTS:
            raise QueryRefused(
                f"The task has {self._reports:,} reports and no room for more",
                cause=RefusalCause.TASK_FULL,
                remedy="Nothing was taken.",
            )
        if repeated := sum(brought.repeated for brought in group):
            reasons[REPEATED] += repeated
        identities, said_by_all = list(new), list(new.values())
        if not identities and not reasons:
            return
        self._in_doubt = True
        number = self._inbox.append(today_in_utc(), identities, said_by_all, reasons)
        self._in_doubt = False
        self._rejected.update(reasons)
        if identities:
            self._count(number, identities, said_by_all)
            self._release(IN_A_FILE)

    def _read(self, brought: _Brought, reasons: Counter[str]) -> list[tuple[bytes, object]]:
        """Return the reports of a body that were not kept before; what is wrong with the others is noted."""
        good: list[tuple[bytes, object]] = []
        for number, line in enumerate(brought.body.split(b"\n"), 1):
            if not line or line.isspace():
                continue
            try:
                identity, said = parse_report(line, self._expected)
                self.mechanism.read(said)
            except ValueError as wrong:
                reason = str(wrong)
                brought.wrong.append((number, reason))
                reasons[reason] += 1
            else:
                good.append((bytes.fromhex(identity), said))
        known = self._identities.known([identity for identity, _ in good])
        brought.repeated = sum(known)
        return [one for one, before in zip(good, known, strict=True) if not before]

    def _catch_up(self) -> None:
        """Count all that is there and was not counted yet."""
        for commit in self._inbox.taken(self._known_to):
            self._count(commit.number, commit.identities, commit.said)
        self._rejected = Counter(self._inbox.rejected())
        self._in_doubt = False

    def _count(self, number: int, identities: list[bytes], said: list[object]) -> None:
        """Add up a commit, once a batch is whole."""
        self._identities.add(identities)
        self._known_to, self._reports = number, self._reports + len(said)
        self._pending += said
        self._unreleased += len(said) if number > self._in_files else 0
        if len(self._pending) >= self.batch:
            if self._tally is not None:
                self._tally.add(self.mechanism.gather([self.mechanism.read(one) for one in self._pending]))
            self._counted += len(self._pending)
            self._counted_to, self._pending = number, []

    def _release(self, least: int) -> list[str]:
        """Release whole batches that were not yet, if they are so many reports or more."""
        if self._counted_to <= self._in_files or self._unreleased < least:
            return []
        said: list[str] = []
        until = self.task.opens
        for commit in self._inbox.taken(self._in_files, self._counted_to):
            said += [json.dumps(one, separators=(",", ":")) for one in commit.said]
            until = commit.day
        place = self._inbox.release(self._file + 1, self._counted_to, said, until)
        self._file, self._in_files = self._file + 1, self._counted_to
        self._unreleased -= len(said)
        return [place]

    def _look_after(self) -> None:
        """Do what is due: forget identities once the task is closed, and delete reports when their days are over."""
        today = today_in_utc()
        if self._kept is None and self.closed and not self._forgotten:
            self._release(1)
            self._inbox.forget_identities()
            self._forgotten = True
        if self._kept is None and today > self.task.closes + timedelta(days=self.task.retention_days):
            rows = [] if self._tally is None else self._tally.estimate(fresh=True)(KEPT_CONFIDENCE)
            kept = DeletedReports(day=today, reports=self._counted, rows=rows)
            self._inbox.delete(kept)
            self._kept, self._identities, self._pending = kept, IdentitySet(), []


def _promise(mechanism: Mechanism, task: client.Task, batch: int, shuffling: Shuffling) -> dict[str, object]:
    """Return ε of a batch of shuffled reports, and whom that takes trust in.

    The number of people in the theorem is that of honest reports of one randomizer: a batch's, but for the forged ones.
    """
    if task.asked.remembers:
        raise InvalidParameter("Shuffling has a promise only for mechanisms whose reports are independent.")
    law = mechanism if task.mechanism in SHUFFLED else task.epsilon
    found = amplified_epsilon(law, batch, shuffling.delta, forged=shuffling.forged)  # type: ignore[arg-type]
    return {
        "epsilon": str(Decimal(found.upper).quantize(Decimal("1e-6"), rounding=ROUND_CEILING)),
        "delta": short(shuffling.delta, 6),
        "batch": batch,
        "forged": shuffling.forged,
        "trust": "that the collector releases whole batches in random order, without identities, and that at least "
        f"{batch - shuffling.forged:,} reports of a batch are from honest devices",
    }
