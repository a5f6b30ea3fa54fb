"""Requests of people for access to a data set or for a larger limit, and the data sets that they may know of.

Theory of operation
-------------------
A data set that a person may not see does not exist for them. A curator may list it. Then everybody who is signed in
sees its name, title, description and contact, and no more: no table, no column, no budget. All of these are texts that
the curator wrote. So a listing shows nothing of the data.

A request changes no right. Only an approval does. It makes a grant by the same function as the curator's own form, and
ends the request in the same transaction. So of two curators who decide at the same time, one is refused.

A request and a grant have the number of the line in the audit log that tells of them. If the grant has the later line,
a curator granted something after the request was made. An approval replaces that only if its curator says so.

People write the reasons, and curators the answers to them. They are in the table `access_requests` only, for `KEPT`
seconds after the decision; `retention` drops them. The audit log, the log, the webhook and the metrics have names,
shares and counts.
"""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

from lapwing.documents.access_request_document import RequestKind, RequestState
from lapwing.errors import InvalidParameter
from lapwing.privacy.amounts import read, written
from lapwing.privacy.figures import share as share_text
from lapwing.server import credentials
from lapwing.server.audit_log import note
from lapwing.server.faulty_field import at_field
from lapwing.server.people import DAY, missing
from lapwing.server.reasons import checked_text
from lapwing.server.store import ServiceStore, StoreConnection

MOST_OPEN: Final = 5
"""Open requests of one person."""
MOST_DAILY: Final = 10
"""Requests of one person in 24 hours, those that were withdrawn among them."""
KEPT: Final = 366.0 * DAY
NO_LIMIT: Final = "none"
"""The word for no limit, in the column of given limits."""
_OPEN: Final = "SELECT dataset FROM access_requests WHERE person = ? AND state = 'open'"
_COLUMNS: Final = "id, person, dataset, kind, share, reason, created, state, decided, decided_by, answer, given"
_READ: Final = (
    f"SELECT {', '.join(f'asked.{name}' for name in _COLUMNS.split(', '))}, grants.person, grants.share,"
    " COALESCE(grants.line, 0) > COALESCE(asked.line, 0) FROM access_requests AS asked"
    " LEFT JOIN grants ON grants.dataset = asked.dataset AND grants.person = asked.person"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRequest:
    """A request; times are in seconds since 1970.

    Args:
        share: The limit that the person wants, a share of the budget, written exactly; None for no limit.
        answer: The reason of the curator who decided it: always of a refusal, of an approval if one was given.
        given: The limit that a curator approved, as `share`, or `NO_LIMIT`; None if no approval wrote it down.
        has_grant: Whether the person has a grant now.
        limit: Of this grant, as `share`.
        overtaken: Whether this grant was made after the request.
    """

    id: str
    person: str
    dataset: str
    kind: RequestKind
    share: str | None
    reason: str
    created: float
    state: RequestState
    decided: float | None
    decided_by: str | None
    answer: str | None
    given: str | None = None
    has_grant: bool = False
    limit: str | None = None
    overtaken: bool = False


@final
class AccessRequests:
    """All requests of a service, and the listed data sets.

    Args:
        clock: Returns the seconds since 1970.
    """

    def __init__(self, store: ServiceStore, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock = store, clock

    # ---- Listed data sets ----

    def listed(self) -> frozenset[str]:
        """Return the names of the listed data sets."""
        return frozenset(name for (name,) in self._store.look("SELECT dataset FROM listed_datasets"))

    def is_listed(self, dataset: str) -> bool:
        """Tell whether people without access see that a data set exists."""
        return bool(self._store.look("SELECT 1 FROM listed_datasets WHERE dataset = ?", (dataset,)))

    def set_listed(self, dataset: str, *, listed: bool, by: str) -> None:
        """Show people without access that a data set exists, or hide it from them."""
        with self._store.transaction() as connection:
            connection.execute("DELETE FROM listed_datasets WHERE dataset = ?", (dataset,))
            if listed:
                connection.execute("INSERT INTO listed_datasets (dataset) VALUES (?)", (dataset,))
            note(connection, by, "listed" if listed else "unlisted", dataset)

    # ---- Requests ----

    def drop_old(self) -> None:
        """Drop requests, and the reasons in them, that were decided long ago."""
        with self._store.transaction() as connection:
            old = self._clock() - KEPT
            connection.execute("DELETE FROM access_requests WHERE state <> 'open' AND decided < ?", (old,))

    def make(self, person: str, dataset: str, kind: RequestKind, share: Fraction | None, reason: str) -> AccessRequest:
        """Make a request.

        Raises:
            InvalidParameter: If the share or the reason is not allowed, or the person makes too many requests.
        """
        if share is not None and not 0 < share <= 1:
            raise at_field("share", InvalidParameter("A limit is more than 0 and at most 1, the whole budget."))
        reason = checked_text(reason, "reason")
        id_, now = credentials.new_name(), self._clock()
        part = None if share is None else written(share)
        with self._store.transaction() as connection:
            _require_room(connection, person, dataset, now)
            connection.execute(
                "INSERT INTO access_requests (id, person, dataset, kind, share, reason, created)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (id_, person, dataset, kind, part, reason, now),
            )
            line = note(connection, person, "request made", person, dataset=dataset, kind=kind, share=part, request=id_)
            connection.execute("UPDATE access_requests SET line = ? WHERE id = ?", (line, id_))
            return _request(connection, id_)

    def of(self, person: str, curated: Collection[str]) -> list[AccessRequest]:
        """Return one's own requests and those for the data sets that one looks after: open ones, then the newest."""
        places = ", ".join("?" for _ in curated)
        rows = self._store.look(
            f"{_READ} WHERE asked.person = ? OR asked.dataset IN ({places or 'NULL'})"
            " ORDER BY CASE WHEN state = 'open' THEN 0 ELSE 1 END, created DESC, id",
            (person, *curated),
        )
        return [_read(row) for row in rows]

    def open_count(self) -> int:
        """Return how many requests are open."""
        return int(self._store.look("SELECT COUNT(*) FROM access_requests WHERE state = 'open'")[0][0])

    def approve(
        self,
        id_: str,
        dataset: str,
        *,
        by: str,
        share: Callable[[AccessRequest], Fraction | None],
        granting: Callable[[AccessRequest], Callable[[StoreConnection], None]],
        replace: bool,
        answer: str | None = None,
    ) -> AccessRequest:
        """Approve an open request.

        Args:
            share: Returns the limit that the request gets.
            granting: Returns what makes the grant, in the transaction of the decision.
            replace: Whether it may replace a grant that was made after the request.
            answer: A reason for its person.

        Raises:
            NotFound: If the data set has no such open request.
            InvalidParameter: If it would replace a grant, and may not, or the reason is not allowed.
        """
        answer = None if answer is None else checked_text(answer, "reason")
        asked = self.open_one(id_, dataset)
        make, limit = granting(asked), share(asked)
        given = NO_LIMIT if limit is None else written(limit)
        with self._store.transaction() as connection:
            decided = self._decide(connection, id_, dataset, "approved", by, answer, given=given)
            if decided.overtaken and not replace:
                raise at_field("replace", InvalidParameter(_overtaken(decided)))
            make(connection)
            note(connection, by, "request approved", decided.person, dataset=dataset, request=id_)
        return decided

    def decline(self, id_: str, dataset: str, answer: str, *, by: str) -> AccessRequest:
        """Decline an open request, with a reason for its person.

        Raises:
            NotFound: If the data set has no such open request.
            InvalidParameter: If the reason is not allowed.
        """
        answer = checked_text(answer, "reason")
        with self._store.transaction() as connection:
            decided = self._decide(connection, id_, dataset, "declined", by, answer)
            note(connection, by, "request declined", decided.person, dataset=dataset, request=id_)
        return decided

    def withdraw(self, id_: str, dataset: str, person: str) -> None:
        """Withdraw an open request of one's own.

        Raises:
            NotFound: If the person has no such open request.
        """
        with self._store.transaction() as connection:
            self._decide(connection, id_, dataset, "withdrawn", person, of=person)
            note(connection, person, "request withdrawn", person, dataset=dataset, request=id_)

    def open_one(self, id_: str, dataset: str) -> AccessRequest:
        """Return an open request for a data set.

        Raises:
            NotFound: If there is none.
        """
        rows = self._store.look(f"{_READ} WHERE id = ? AND asked.dataset = ? AND state = 'open'", (id_, dataset))
        if not rows:
            raise missing("open request")
        return _read(rows[0])

    def _decide(
        self,
        connection: StoreConnection,
        id_: str,
        dataset: str,
        state: RequestState,
        by: str,
        answer: str | None = None,
        of: str | None = None,
        given: str | None = None,
    ) -> AccessRequest:
        """End an open request; of one person only, if `of` names them."""
        whose = "" if of is None else " AND person = ?"
        changed = connection.execute(
            "UPDATE access_requests SET state = ?, decided = ?, decided_by = ?, answer = ?, given = ?"
            f" WHERE id = ? AND dataset = ? AND state = 'open'{whose}",
            (state, self._clock(), by, answer, given, id_, dataset, *(() if of is None else (of,))),
        )
        if changed.rowcount != 1:
            raise missing("open request")
        return _request(connection, id_)


def _require_room(connection: StoreConnection, person: str, dataset: str, now: float) -> None:
    """Refuse a further request of a person who has made too many."""
    opened = [name for (name,) in connection.execute(_OPEN, (person,))]
    if dataset in opened:
        raise at_field(
            "dataset", InvalidParameter("You have an open request for this data set. Withdraw it before you ask again.")
        )
    if len(opened) >= MOST_OPEN:
        raise InvalidParameter(f"You have {MOST_OPEN} open requests. Wait for a curator, or withdraw one.")
    recent = connection.execute(
        "SELECT COUNT(*) FROM access_requests WHERE person = ? AND created > ?", (person, now - DAY)
    )
    if recent.fetchone()[0] >= MOST_DAILY:
        raise InvalidParameter(f"You made {MOST_DAILY} requests in the last 24 hours. Ask again tomorrow.")


def _request(connection: StoreConnection, id_: str) -> AccessRequest:
    return _read(connection.execute(f"{_READ} WHERE id = ?", (id_,)).fetchone())


def _read(row: Sequence[Any]) -> AccessRequest:
    *known, granted, limit, overtaken = row
    fields = dict(zip(_COLUMNS.split(", "), known, strict=True))
    has_grant = granted is not None
    return AccessRequest(**fields, has_grant=has_grant, limit=limit, overtaken=has_grant and bool(overtaken))


def _overtaken(one: AccessRequest) -> str:
    limit = "no limit" if one.limit is None else f"a limit of {share_text(read(one.limit, 'share'))}"
    return (
        f"A curator gave {one.person} {limit} after this request was made. Approve it only if the request is to "
        "replace that."
    )
