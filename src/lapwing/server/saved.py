"""What people keep to look at again: questions and dashboards, and which answers a team shares.

Theory of operation
-------------------
Nothing here is an answer: a saved question is a text, and a dashboard names answers and monitors. Whoever opens them
asks for these with their own rights, so a name is no key. What is shared is shared with the team that its owner is in
at that moment, and seen by those who are in it when they look: who leaves sees it no more, and who joins does.

An answer that its owner shares may be opened by the team, within the data sets that each may see. It was released when
it was bought, and opening it is free for its owner as for everybody else: no promise to the people in the data rests on
who reads it.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from lapwing.errors import InvalidParameter
from lapwing.server import credentials
from lapwing.server.audit_log import note
from lapwing.server.people import missing
from lapwing.server.store import ServiceStore, StoreConnection, time_text

MOST_SAVED: Final = 500
"""Of one person and one data set."""
UNDO: Final = 3600.0
"""Seconds in which what was removed can be restored."""
MOST_REMOVED: Final = 20
"""Of one person and one data set, that can be restored: the latest."""
MOST_SHARED: Final = 1_000
"""Answers of a team that are listed: the newest."""
_COLUMNS: Final = "id, person, dataset, created, title, content, team"
_TEAM: Final = "SELECT team FROM memberships WHERE person = ? AND current = 1"
_SEEN: Final = f"removed IS NULL AND (person = ? OR team = ({_TEAM}))"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SavedItem:
    """A saved question or a dashboard.

    Args:
        content: As its route took it.
        team: With which it is shared.
    """

    id: str
    person: str
    dataset: str
    created: str
    title: str
    content: Mapping[str, Any]
    team: str | None


@final
class SavedItems:
    """What people of a service have saved, and shared.

    Args:
        clock: Seconds since 1970.
    """

    def __init__(self, store: ServiceStore, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock = store, clock

    def add(self, person: str, dataset: str, title: str, content: Mapping[str, Any], *, shared: bool) -> SavedItem:
        """Keep something.

        Raises:
            InvalidParameter: If somebody keeps too much, or shares without a team.
        """
        id_, created = credentials.new_name(), time_text(self._clock())
        with self._store.transaction() as connection:
            self._drop_removed(connection)
            _require_room(connection, person, dataset)
            team = _team_to_share(connection, person, shared=shared)
            row = (id_, person, dataset, created, title, json.dumps(content), team)
            connection.execute(f"INSERT INTO saved ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        return _item(row)

    def find(self, id_: str, person: str) -> SavedItem:
        """Return something of one's own, or that one's team shares.

        Raises:
            NotFound: If there is no such object for who asks.
        """
        rows = self._store.look(f"SELECT {_COLUMNS} FROM saved WHERE id = ? AND {_SEEN}", (id_, person, person))
        if not rows:
            raise missing("saved question or dashboard")
        return _item(rows[0])

    def of(self, person: str, dataset: str) -> list[SavedItem]:
        """Return what is one's own or shared by one's team, of a data set, by title."""
        rows = self._store.look(
            f"SELECT {_COLUMNS} FROM saved WHERE dataset = ? AND {_SEEN} ORDER BY title, id",
            (dataset, person, person),
        )
        return [_item(row) for row in rows]

    def change(self, id_: str, person: str, title: str, content: Mapping[str, Any], *, shared: bool) -> SavedItem:
        """Put something else in the place of something of one's own.

        Raises:
            NotFound: If there is no such object for who asks.
            InvalidParameter: If a value is not allowed.
        """
        with self._store.transaction() as connection:
            team = _team_to_share(connection, person, shared=shared)
            changed = connection.execute(
                "UPDATE saved SET title = ?, content = ?, team = ? WHERE id = ? AND person = ? AND removed IS NULL",
                (title, json.dumps(content), team, id_, person),
            )
            if changed.rowcount != 1:
                raise missing("saved question or dashboard of yours")
        return self.find(id_, person)

    def remove(self, id_: str, person: str) -> None:
        """Remove something of one's own; for `UNDO` seconds it can be restored.

        Raises:
            NotFound: If there is no such object for who asks.
        """
        with self._store.transaction() as connection:
            self._drop_removed(connection)
            remove = "UPDATE saved SET removed = ? WHERE id = ? AND person = ? AND removed IS NULL"
            if connection.execute(remove, (self._clock(), id_, person)).rowcount != 1:
                raise missing("saved question or dashboard of yours")
            of = "person = ? AND dataset = (SELECT dataset FROM saved WHERE id = ?) AND removed IS NOT NULL"
            newest = f"SELECT id FROM saved WHERE {of} ORDER BY removed DESC, id LIMIT ?"
            values = (person, id_, person, id_, MOST_REMOVED)
            connection.execute(f"DELETE FROM saved WHERE {of} AND id NOT IN ({newest})", values)

    def removed(self, id_: str, person: str) -> SavedItem:
        """Return something of one's own that was removed a moment ago.

        Raises:
            NotFound: If there is no such object for who asks.
        """
        removed = f"SELECT {_COLUMNS} FROM saved WHERE id = ? AND person = ? AND removed >= ?"
        rows = self._store.look(removed, (id_, person, self._clock() - UNDO))
        if not rows:
            raise missing("removed question or dashboard of yours")
        return _item(rows[0])

    def restore(self, item: SavedItem) -> SavedItem:
        """Take a removal back.

        Raises:
            InvalidParameter: If its owner has saved too much meanwhile.
        """
        with self._store.transaction() as connection:
            _require_room(connection, item.person, item.dataset)
            connection.execute("UPDATE saved SET removed = NULL WHERE id = ?", (item.id,))
        return self.find(item.id, item.person)

    def _drop_removed(self, connection: StoreConnection) -> None:
        connection.execute("DELETE FROM saved WHERE removed < ?", (self._clock() - UNDO,))

    # ---- Answers of a team ----

    def share_answer(self, answer: str, owner: str, *, shared: bool) -> str | None:
        """Let the owner's team open an answer, or nobody else any more; return the team.

        Raises:
            InvalidParameter: If its owner is in no team.
        """
        with self._store.transaction() as connection:
            team = _team_to_share(connection, owner, shared=shared)
            known = connection.execute("SELECT team FROM shared_answers WHERE answer = ?", (answer,)).fetchone()
            if (None if known is None else known[0]) == team:
                return team
            connection.execute("DELETE FROM shared_answers WHERE answer = ?", (answer,))
            if team is not None:
                connection.execute("INSERT INTO shared_answers (answer, team) VALUES (?, ?)", (answer, team))
            act = "answer shared" if shared else "answer shared no more"
            note(connection, owner, act, answer, **({} if team is None else {"team": team}))
        return team

    def team_of_answer(self, answer: str) -> str | None:
        """Return the team with which an answer is shared."""
        rows = self._store.look("SELECT team FROM shared_answers WHERE answer = ?", (answer,))
        return rows[0][0] if rows else None

    def answers_of_team(self, person: str, dataset: str, since: str) -> list[dict[str, object]]:
        """Return what somebody's team shares of a data set, the newest first, without the answers themselves.

        Args:
            since: What was bought before is not kept any more.
        """
        rows = self._store.look(
            "SELECT id, created, request, person, shared_answers.team FROM shared_answers"
            " JOIN answers ON answers.id = shared_answers.answer WHERE dataset = ? AND dropped = 0 AND created >= ?"
            f" AND shared_answers.team = ({_TEAM}) ORDER BY created DESC, id LIMIT ?",
            (dataset, since, person, MOST_SHARED),
        )
        names = ("id", "created", "request", "person", "team")
        found = [dict(zip(names, row, strict=True)) for row in rows]
        return [{**one, "request": json.loads(one["request"])} for one in found]

    def may_open(self, answer: str, person: str) -> bool:
        """Tell whether somebody's team shares an answer."""
        shared = f"SELECT 1 FROM shared_answers WHERE answer = ? AND team = ({_TEAM})"
        return bool(self._store.look(shared, (answer, person)))


def _require_room(connection: StoreConnection, person: str, dataset: str) -> None:
    """Refuse to keep more than somebody may.

    Raises:
        InvalidParameter: If there is no room.
    """
    count = "SELECT COUNT(*) FROM saved WHERE person = ? AND dataset = ? AND removed IS NULL"
    if connection.execute(count, (person, dataset)).fetchone()[0] >= MOST_SAVED:
        raise InvalidParameter(
            f"You have {MOST_SAVED} saved queries and dashboards of this data set, the limit; remove some first."
        )


def _team_to_share(connection: StoreConnection, person: str, *, shared: bool) -> str | None:
    """Return the team of somebody who shares something; None if they do not."""
    if not shared:
        return None
    row = connection.execute(_TEAM, (person,)).fetchone()
    if row is None:
        raise InvalidParameter("You are in no team, so there is nobody to share it with. A curator can add you to one.")
    return str(row[0])


def _item(row: tuple[Any, ...]) -> SavedItem:
    fields = dict(zip(_COLUMNS.split(", "), row, strict=True))
    return SavedItem(**{**fields, "content": json.loads(fields["content"])})
