"""The audit log: who did what to people, rights, policies and data, each line sealed over the one before.

It says who was given what and when; never a password, a token or an answer. A line is written in the transaction that
does what it says. What is done in a ledger, or to files, is in no transaction of the store: of that, a line is written
before it is begun, and another when it is done, so that nothing is done of which there is no line.

Like the ledger it is not signed: a gap or an edit shows, and an end that is missing (`audit_mark`); another log written
from the start does not.
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

from lapwing.documents.people_document import StopDocument
from lapwing.server.store import ServiceStore, StoreConnection, now

GENESIS: Final = "0" * 64
SECONDS: Final = len("2026-11-30T12:00:00")
"""The length of a time to the second, as which the store has times and the ledger their start."""
STOPS: Final = ("stopped", "resumed", "faults looked at", "closed for ever")
"""Acts that decide whether a data set takes queries."""
_COLUMNS: Final = "sequence, time, actor, act, subject, details, previous, hash"


def note(connection: StoreConnection, actor: str, act: str, subject: str, **details: object) -> int:
    """Append a line, in the transaction that does what it says; return its number."""
    last, previous = newest(connection)
    line = (last + 1, now(), actor, act, subject, json.dumps(details, sort_keys=True), previous)
    connection.execute(f"INSERT INTO audit ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*line, sealed(*line)))
    return last + 1


def newest(connection: StoreConnection) -> tuple[int, str]:
    """Return the number and the hash of the newest line; 0 before the first."""
    last = connection.execute("SELECT sequence, hash FROM audit ORDER BY sequence DESC LIMIT 1").fetchone()
    return (last[0], last[1]) if last else (0, GENESIS)


def hash_of(connection: StoreConnection, sequence: int) -> str | None:
    """Return the hash of a line, None if it is not there."""
    row = connection.execute("SELECT hash FROM audit WHERE sequence = ?", (sequence,)).fetchone()
    return None if row is None else str(row[0])


def sealed(*fields: object) -> str:
    """Return the hash of a line's other fields, in the order of the columns."""
    return sha256(json.dumps(fields).encode()).hexdigest()


def lines(connection: StoreConnection, after: int = 0, most: int | None = None) -> Iterator[dict[str, object]]:
    """Yield the lines after one, in order; all of them, or so many."""
    names, limit = _COLUMNS.split(", "), "" if most is None else f" LIMIT {most:d}"
    for row in connection.execute(
        f"SELECT {_COLUMNS} FROM audit WHERE sequence > ? ORDER BY sequence{limit}", (after,)
    ):
        line = dict(zip(names, row, strict=True))
        yield line | {"details": json.loads(line["details"])}


def registered_by(store: ServiceStore, dataset: str, time: str) -> str | None:
    """Return the curator whose registration of a data set was under way at a time in UTC, None if there was none."""
    begun: tuple[str, str] | None = None
    statement = "SELECT time, actor, act FROM audit WHERE subject = ? AND act IN (?, ?) ORDER BY sequence"
    for moment, actor, act in store.look(statement, (dataset, "registration begun", "data set registered")):
        if act == "registration begun":
            begun = moment[:SECONDS], actor
        elif begun is not None and begun[0] <= time[:SECONDS] <= moment[:SECONDS]:
            return begun[1]
    return None


def reasons_of_raises(store: ServiceStore, dataset: str) -> dict[tuple[str, str], str]:
    """Return why the budget of a data set was raised, by the ε and δ that it had then.

    A budget only grows, so each pair is of one raise. A refused raise has a line that it was begun. The line of
    the raise that was done comes later, and counts.
    """
    statement = "SELECT details FROM audit WHERE subject = ? AND act IN (?, ?) ORDER BY sequence"
    found = (json.loads(row[0]) for row in store.look(statement, (dataset, "budget raise begun", "budget raised")))
    return {(one["epsilon"], one["delta"]): one["reason"] for one in found if "reason" in one}


def stop_reason(store: ServiceStore, dataset: str) -> str | None:
    """Return the reason that was given when a data set was last stopped, None if nobody gave one."""
    statement = "SELECT details FROM audit WHERE subject = ? AND act = ? ORDER BY sequence DESC LIMIT 1"
    for (details,) in store.look(statement, (dataset, "stopped")):
        reason: str | None = json.loads(details).get("reason")
        return reason
    return None


def stops(store: ServiceStore, dataset: str) -> list[StopDocument]:
    """Return when a data set was stopped, resumed, closed, or its failures were reviewed, the newest first."""
    acts = ", ".join("?" * len(STOPS))
    statement = f"SELECT sequence, time, actor, act, details FROM audit WHERE subject = ? AND act IN ({acts})"
    return [
        StopDocument(sequence=sequence, time=time, person=actor, act=act, reason=json.loads(details).get("reason"))
        for sequence, time, actor, act, details in store.look(f"{statement} ORDER BY sequence DESC", (dataset, *STOPS))
    ]


def first_broken(log: Iterator[Mapping[str, Any]]) -> int | None:
    """Return the place of the first line that cannot follow the one before, None if all can."""
    previous = GENESIS
    for place, line in enumerate(log, start=1):
        details = json.dumps(line["details"], sort_keys=True)
        fields = [line[name] for name in ("sequence", "time", "actor", "act", "subject")]
        if line["previous"] != previous or line["sequence"] != place:
            return place
        if sealed(*fields, details, previous) != line["hash"]:
            return place
        previous = line["hash"]
    return None
