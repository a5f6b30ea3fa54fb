"""Holdouts that a service keeps: what each promises, how many questions it was asked, and what it answered.

Theory of operation
-------------------
A promise is good for so many answers. So a question is counted before it is asked, in one transaction that refuses what
would be one too many, and given back by the request that counted it if that drew no noise. A process that dies in
between leaves it counted: that wastes a question at most, and promises nothing twice.

A request that is sent twice with one key is answered once, and counted once: what is known of its key was begun by a
request that counted it. Its question goes to the data set under a key that only the
service knows (`sealed_key`): were it the caller's own, a caller could buy many sums under keys of their own, and then
have the one with the oddest noise promised as if it were fresh.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import Any, Final, final

from lapwing.documents.holdout_document import HoldoutAnswerDocument
from lapwing.errors import BudgetExhausted, InvalidParameter
from lapwing.holdout.terms import HoldoutTerms
from lapwing.server import credentials
from lapwing.server.answer_store import MOST_DROPPED
from lapwing.server.listing import no_such_item
from lapwing.server.people import missing
from lapwing.server.store import ServiceStore, time_text

MOST_HOLDOUTS: Final = 1_000
"""Of one person and one data set."""
_COLUMNS: Final = "id, person, dataset, created, secret, terms, asked"
_FRACTIONS: Final = ("part", "gap", "noise_chance", "cap", "confidence")
_DROPPED: Final = "{}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Holdout:
    """A holdout that is kept.

    Args:
        confidence: Of all its intervals at once.
        half_width: As its document has them.
        strategy: As its document has them.
        why: As its document has them.
        asked: The questions that were counted.
    """

    id: str
    person: str
    dataset: str
    created: str
    secret: str
    terms: HoldoutTerms
    confidence: Fraction
    half_width: float
    strategy: str
    why: str
    asked: int

    def sealed_key(self, key: str) -> str:
        """Return the key under which the service itself asks what came with a key."""
        return sha256(f"{self.secret} {key}".encode()).hexdigest()


@final
class HoldoutStore:
    """The holdouts of a service.

    Args:
        kept_since: Answers from before are dropped, as `AnswerStore.kept_since` says.
        clock: Seconds since 1970.
    """

    def __init__(
        self, store: ServiceStore, kept_since: Callable[[], str], clock: Callable[[], float] = time.time
    ) -> None:
        self._store, self._kept_since, self._clock = store, kept_since, clock

    def make(
        self,
        person: str,
        dataset: str,
        terms: HoldoutTerms,
        *,
        confidence: Fraction,
        half_width: float,
        strategy: str,
        why: str,
    ) -> Holdout:
        """Keep a new holdout.

        Raises:
            InvalidParameter: If somebody has too many.
        """
        id_, created = credentials.new_name(), time_text(self._clock())
        numbers = {"people": terms.people, "questions": terms.questions, "version": terms.version}
        exact = {"part": terms.part, "gap": terms.gap, "noise_chance": terms.noise_chance, "cap": terms.cap}
        texts = {name: str(number) for name, number in {**exact, "confidence": confidence}.items()}
        written = {**numbers, **texts, "half_width": half_width, "strategy": strategy, "why": why}
        with self._store.transaction() as connection:
            counted = "SELECT COUNT(*) FROM holdouts WHERE person = ? AND dataset = ?"
            if connection.execute(counted, (person, dataset)).fetchone()[0] >= MOST_HOLDOUTS:
                raise InvalidParameter(
                    f"You have {MOST_HOLDOUTS:,} holdouts of this data set, which is the limit. Use one that you have."
                )
            connection.execute(
                "INSERT INTO holdouts (id, person, dataset, created, secret, terms, questions)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (id_, person, dataset, created, credentials.new_name(), json.dumps(written), terms.questions),
            )
        return self.find(id_)

    def find(self, id_: str) -> Holdout:
        """Return a holdout.

        Raises:
            NotFound: If there is no such object for who asks.
        """
        rows = self._store.look(f"SELECT {_COLUMNS} FROM holdouts WHERE id = ?", (id_,))
        if not rows:
            raise missing("holdout")
        return _holdout(rows[0])

    def of(self, person: str, dataset: str, most: int, after: str | None = None) -> list[Holdout]:
        """Return somebody's holdouts of a data set, the newest first.

        Args:
            most: That are returned.
            after: The id of the one after which they begin.

        Raises:
            InvalidParameter: If there is none of this id.
        """
        older, place = "", tuple[str, ...]()
        with self._store.reading() as connection:
            if after is not None:
                known = "SELECT created FROM holdouts WHERE person = ? AND dataset = ? AND id = ?"
                row = connection.execute(known, (person, dataset, after)).fetchone()
                if row is None:
                    raise no_such_item()
                older, place = " AND (created < ? OR (created = ? AND id > ?))", (row[0], row[0], after)
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM holdouts WHERE person = ? AND dataset = ?{older}"
                " ORDER BY created DESC, id LIMIT ?",
                (person, dataset, *place, most),
            ).fetchall()
        return [_holdout(row) for row in rows]

    # ---- Questions ----

    def count(self, held: Holdout) -> None:
        """Count one more question.

        Raises:
            BudgetExhausted: If no more can be promised; nothing is counted then.
        """
        with self._store.transaction() as connection:
            counted = connection.execute(
                "UPDATE holdouts SET asked = asked + 1 WHERE id = ? AND asked < questions", (held.id,)
            )
            if counted.rowcount == 0:
                raise BudgetExhausted(
                    f"All {held.terms.questions:,} queries of this holdout were used. Nothing was charged."
                )

    def give_back(self, held: Holdout) -> None:
        """Count one question less, as nothing was charged for it."""
        with self._store.transaction() as connection:
            connection.execute("UPDATE holdouts SET asked = asked - 1 WHERE id = ? AND asked > 0", (held.id,))

    def keep(
        self, held: Holdout, key: str, document: HoldoutAnswerDocument, *, counted: bool
    ) -> tuple[HoldoutAnswerDocument, bool]:
        """Keep an answer, with its number, or take the one of this key; tell whether its question is counted by this.

        Of the requests with one key that counted, one does so for the answer, whichever of them or of the others keeps
        it: each other one is to give its count back.

        Args:
            counted: Whether this request counted the question.
        """
        with self._store.transaction() as connection:
            kept = "SELECT document, counted FROM holdout_answers WHERE holdout = ? AND key = ?"
            row = connection.execute(kept, (held.id, key)).fetchone()
            if row is not None:
                known: HoldoutAnswerDocument = json.loads(row[0])
                counts = counted and not row[1]
                if counts:
                    mark = "UPDATE holdout_answers SET counted = 1 WHERE holdout = ? AND key = ?"
                    connection.execute(mark, (held.id, key))
                return known, counts
            last = "SELECT COALESCE(MAX(number), 0) FROM holdout_answers WHERE holdout = ?"
            number = connection.execute(last, (held.id,)).fetchone()[0] + 1
            numbered: HoldoutAnswerDocument = {**document, "question": number}
            connection.execute(
                "INSERT INTO holdout_answers (holdout, number, key, created, document, counted)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (held.id, number, key, document["created"], json.dumps(numbered), int(counted)),
            )
            return numbered, counted

    def answer_of(self, held: Holdout, key: str) -> HoldoutAnswerDocument | None:
        """Return what was answered to a key; None if nothing was, or it is not kept any more."""
        rows = self._store.look(
            "SELECT document FROM holdout_answers WHERE holdout = ? AND key = ? AND document <> ? AND created >= ?",
            (held.id, key, _DROPPED, self._kept_since()),
        )
        return json.loads(rows[0][0]) if rows else None

    def answers(self, held: Holdout, most: int, after: int = 0) -> list[HoldoutAnswerDocument]:
        """Return what was answered and is kept, in order: so many at most, after one of this number."""
        rows = self._store.look(
            "SELECT document FROM holdout_answers WHERE holdout = ? AND number > ? AND document <> ? AND created >= ?"
            " ORDER BY number LIMIT ?",
            (held.id, after, _DROPPED, self._kept_since(), most),
        )
        return [json.loads(document) for (document,) in rows]

    def drop_old(self) -> int:
        """Drop some answers that are kept for longer than they are to be; return how many these were."""
        with self._store.transaction() as connection:
            old = "SELECT holdout, number FROM holdout_answers WHERE created < ? AND document <> ? LIMIT ?"
            rows = connection.execute(old, (self._kept_since(), _DROPPED, MOST_DROPPED)).fetchall()
            for holdout, number in rows:
                connection.execute(
                    "UPDATE holdout_answers SET document = ? WHERE holdout = ? AND number = ?",
                    (_DROPPED, holdout, number),
                )
            return len(rows)


def _holdout(row: tuple[Any, ...]) -> Holdout:
    fields = dict(zip(_COLUMNS.split(", "), row, strict=True))
    written = json.loads(fields.pop("terms"))
    for name in _FRACTIONS:
        written[name] = Fraction(written[name])
    own = {name: written.pop(name) for name in ("confidence", "half_width", "strategy", "why")}
    return Holdout(**fields, **own, terms=HoldoutTerms(**written))
