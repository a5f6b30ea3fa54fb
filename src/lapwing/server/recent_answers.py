"""The latest free answers, in memory: the same request again is answered as before, while nothing has changed.

Theory of operation. What a free answer says is a function of the request as it was sent, of who sends it, of the
catalog and the public tables, of the ledger, and of the data, by which it is decided whether they are those of the
ledger's version. So an answer stands for as long as all of these are the same. Then neither plan nor payload is read
again:

- the request, the person, the data set, and whether the person is trusted with time are its name here;
- the catalog is compared as an object, as a session replaces it and never changes it. Where there are public tables,
  whose files a plan compares each time, or graphs, nothing stands;
- of the ledger, the hash of the newest entry is compared, which seals all entries before it: versions of the data, the
  budget, answers that somebody else bought meanwhile. It is read anew each time, with whatever other processes wrote;
- the data are compared with the ledger's version by their digests, as for every answer;
- of the clock, what a request that looks at it saw is compared with what it would see now (`Session.moment`).

The ledger is read *before* the answer is looked for that stands by it. So an entry that comes between the two makes the
next request look again, and none can be overlooked. Rights, rates and whether the answer is still kept are not
remembered: callers look at them each time.

Of an answer that does not stand, its record still saves writing: an answer that rests on the same entries and the same
catalog says the same, so it is not kept once more. No entry pays for an answer over only public rows. It is made each
time. If its document and its stream equal the earlier ones byte for byte, the earlier record is returned. Only a digest
of them is held here, however large they are.

Bounds: `MOST` answers, each with at most `LARGEST` bytes of its stream; the one asked for the longest ago goes first.
What one person asked is remembered for that person alone, so how long a question takes tells nobody what others asked.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Final, final

from lapwing.answer import Answer
from lapwing.catalog.model import Catalog, Table
from lapwing.errors import LapwingError
from lapwing.release.versions import current_digests
from lapwing.server.answer_store import AnswerRecord, NewAnswer
from lapwing.session import Session, access_of

MOST: Final = 1024
LARGEST: Final = 1 << 16
"""Bytes of an answer that is remembered."""
Name = tuple[str, str, bool, str]
"""Person, data set, whether the person is trusted with time, and the request as JSON."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RecentAnswer:
    """A free answer as it was kept, and what it rests on.

    Args:
        seal: Of the ledger in which it was looked for, if known.
        moment: The values of its looks at the clock, if it looked there.
        digest: Of its document and stream, if no entry paid for it. Then its record has neither.
    """

    record: AnswerRecord
    entries: tuple[int, ...]
    catalog: Catalog
    tables: Sequence[Table]
    seal: str | None
    moment: datetime | None
    digest: bytes | None = None

    def says_what(self, answer: Answer, catalog: Catalog) -> bool:
        """Tell whether another answer to the same request says the same, as far as ledger and catalog can tell."""
        same = self.entries == answer.entries and self.catalog is catalog and self.moment == _moment_of(answer)
        return bool(answer.entries) and same

    def shown_again(self, new: NewAnswer) -> AnswerRecord | None:
        """Return the earlier record of an answer that no charge paid for, if both show the same; None if not."""
        if self.digest is None or self.digest != _digest(new):
            return None
        return replace(self.record, document=new.document, arrow=new.arrow)

    def stands(self, session: Session, seal: str | None) -> bool:
        """Tell whether the request would be answered so again; seal: of the ledger now, as `seal_of` says it."""
        if self.moment not in (None, session.moment()):
            return False
        return seal is not None and self.seal == seal and self.catalog is session.catalog


@final
class RecentAnswers:
    """Free answers by the names of their requests. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._recent: OrderedDict[Name, RecentAnswer] = OrderedDict()

    def find(self, name: Name) -> RecentAnswer | None:
        """Return what was answered to this request not long ago."""
        with self._lock:
            recent = self._recent.get(name)
            if recent is not None:
                self._recent.move_to_end(name)
            return recent

    def note(self, name: Name, answer: Answer, catalog: Catalog, record: AnswerRecord, seal: str | None) -> None:
        """Remember a free answer as it was kept; seal: of the ledger before it was looked for, None if not known."""
        free = not catalog.graphs and not answer.entries
        if not free and (not answer.stored or not answer.entries or len(record.arrow) > LARGEST):
            return
        tables = () if catalog.graphs else answer.plan.question.lineage  # answers about graphs have other plans
        recent = RecentAnswer(
            record=replace(record, document={}, arrow=b"") if free else record,
            entries=answer.entries,
            catalog=catalog,
            tables=tables,
            seal=None if free else seal,
            moment=_moment_of(answer),
            digest=_digest(record) if free else None,
        )
        with self._lock:
            self._recent[name] = recent
            self._recent.move_to_end(name)
            while len(self._recent) > MOST:
                self._recent.popitem(last=False)


def _digest(answer: AnswerRecord | NewAnswer) -> bytes:
    return sha256(json.dumps(answer.document, sort_keys=True).encode() + b"\0" + answer.arrow).digest()


def _moment_of(answer: Answer) -> datetime | None:
    """Return what an answer's looks at the clock stood for; plans of graphs have none."""
    return getattr(answer.plan, "moment", None)


def seal_of(session: Session, tables: Sequence[Table]) -> str | None:
    """Return the hash of the newest entry of a ledger, which seals all before it.

    None if the data are not those of the ledger's version, if anything cannot be read, or if an answer may follow from
    more than ledger, catalog and data: then the request is answered, or refused, in the usual way.
    """
    access = access_of(session)
    if access.catalog.public_tables or access.catalog.graphs:
        return None
    try:
        session._require_open()
        state = access.ledger.seen()
        current_digests(tables, access.engine, state)
    except LapwingError:
        return None
    return state.hash
