"""What a collector asks of the place that keeps one task's reports, and which places there are: a file, a database."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Protocol, final

from lapwing.catalog.ledger import POSTGRES
from lapwing.errors import InvalidParameter
from lapwing.local import client

Row = dict[str, Any]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCommit:
    """One commit: its number, its day, the identities of its reports, and what they say."""

    number: int
    day: date
    identities: list[bytes]
    said: list[object]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedReports:
    """What stays when reports are deleted: the day, how many they were, and what they added up to."""

    day: date
    reports: int
    rows: list[Row]


class ReportStore(Protocol):
    """The reports of one task, for one thread of one process at a time.

    Raises:
        Fault: From everything, if the place cannot be used. Of what was being written then nobody knows whether it is
            there; `taken` tells.
    """

    def append(
        self, day: date, identities: Sequence[bytes], said: Sequence[object], rejected: Mapping[str, int]
    ) -> int:
        """Keep reports, and count what was rejected, durably, all or nothing; return the commit's number."""

    def taken(self, after: int = 0, until: int | None = None) -> Iterator[ReportCommit]:
        """Yield the commits after one, up to and with another, in order."""

    def rejected(self) -> dict[str, int]:
        """Return how many reports were rejected, by reason."""

    def released(self) -> tuple[int, int]:
        """Return the number of the last release, and of the last commit in it; 0 if there is none."""

    def release(self, number: int, last: int, said: Sequence[str], until: date) -> str:
        """Make reports known in random order, without identities, durably; return where they are then.

        Args:
            number: Of the release.
            last: Of the commits that are in it.
            until: The last day of any of them.
        """

    def forget_identities(self) -> None:
        """Drop the identities of all reports: once a task is closed, no report can come again."""

    def delete(self, kept: DeletedReports) -> None:
        """Delete all reports, released ones too, and keep what they added up to."""

    def kept(self) -> DeletedReports | None:
        """Return what was kept of deleted reports; None while they are not deleted."""

    def close(self) -> None:
        """Let go of the place."""


def open_store(folder: Path, database: str | None, task: client.Task, batch: int) -> ReportStore:
    """Open the place of a task's reports, which is made if there is none.

    Args:
        folder: Where its file is, unless they are in a database.

    Raises:
        InvalidParameter: If a value is not allowed.
        Fault: If something outside fails.
    """
    if database is None:
        from lapwing.collector.inbox import ReportInbox

        folder.mkdir(parents=True, exist_ok=True)
        return ReportInbox(folder, task, batch)
    if not database.startswith(POSTGRES):
        raise InvalidParameter(
            "The address of a database begins with postgres://, as in postgres://user@host/database."
        )
    try:
        from lapwing.collector.postgres_inbox import PostgresInbox  # here: it needs the extra `postgres`
    except ModuleNotFoundError as missing:
        raise InvalidParameter(
            f"PostgreSQL needs {missing.name}, which is not installed. Run `pip install 'lapwing-dp[postgres]'`."
        ) from None
    return PostgresInbox(database, task.digest, batch)
