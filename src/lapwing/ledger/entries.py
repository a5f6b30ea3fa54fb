"""The lines of the ledger: entries in a hash chain, each sealed over all of its fields and the entry before.

`ledger.transitions` (charges and answers) and `ledger.curating` (the others) say what an entry means, and which one may
follow; all are pure. An entry is one of eleven kinds. `open` registers the data set and its budget, and is always the
first. `parts` says into which disjoint parts its units fall, once, if they do. `data` accepts a new version of the
data. `charge` pays for one question, about all parts or some. `answer` keeps what a charge bought. `unanswered` says
why charges bought nothing, `late` that answers are late (`ledger.events`), and `resume` is the curator's word that both
were looked at (`ledger.faults`). `raise` makes the budget larger (`ledger.raising`), `close` ends all charging, and
`restored` says that the entries before it come from a copy (`ledger.restoring`).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import Any, Final, Literal, Self, final, get_args

from lapwing.errors import LedgerFault
from lapwing.exact.entropy import SystemEntropy, read_exactly
from lapwing.privacy import measures
from lapwing.privacy.amounts import grid_up, read, written
from lapwing.privacy.filters import Account
from lapwing.privacy.measures import Loss

Kind = Literal[
    "open", "parts", "data", "charge", "answer", "unanswered", "late", "resume", "raise", "close", "restored"
]
GENESIS: Final = "0" * 64  # stands for the hash of what comes before the first entry
RESTORE: Final = "`lapwing ledger restore COPY` puts back the newest copy. Keep the .mark file as it is."
ASKER: Final = re.compile(r"[0-9a-f]{32}")
"""The form of an asker's name (`ledger.store.Presence`)."""
_DOMAIN: Final = "lapwing ledger entry 1"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the ledger, sealed by its hash.

    `subject` is what a store looks entries up by: the digest of a charge's key, the sequence of the charge that is
    answered, or of the first that is not, else empty. `body` is canonical JSON (sorted keys, no spaces, ASCII). `time`
    is UTC in ISO 8601 and informs people only: order is by `sequence`, so a clock that runs backwards changes nothing.
    """

    sequence: int
    time: str
    kind: Kind
    subject: str
    body: str
    previous: str
    hash: str

    @classmethod
    def seal(
        cls, *, sequence: int, time: str, kind: Kind, subject: str, body: Mapping[str, object], previous: str
    ) -> Self:
        """Return the entry with its hash computed."""
        text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        digest = digest_of(str(sequence), time, kind, subject, text, previous)
        return cls(sequence=sequence, time=time, kind=kind, subject=subject, body=text, previous=previous, hash=digest)

    def contents(self) -> Any:
        """Return the body as a value, after checking that it is the one that was sealed.

        Raises:
            LedgerFault: If any field is not what the hash was made of.
        """
        parts = (self.time, self.kind, self.subject, self.body, self.previous)
        if not all(isinstance(part, str) for part in parts):
            raise broken(self.sequence, "has a field of the wrong type")
        if digest_of(str(self.sequence), *parts) != self.hash:
            raise broken(self.sequence, "does not match its own seal")
        if self.kind not in get_args(Kind):
            raise broken(self.sequence, "is of an unknown kind")
        return json.loads(self.body)

    def charge(self) -> "Charge":
        """Return the charge that an entry of this kind makes, after the checks of `contents`."""
        return Charge.from_record(self.contents())


def digest_of(*parts: str) -> str:
    """Return SHA-256 over the texts, each preceded by its length, so that no two lists hash the same bytes."""
    hasher = sha256()
    for part in (_DOMAIN, *parts):
        encoded = part.encode("utf-8", "surrogatepass")
        hasher.update(len(encoded).to_bytes(8, "big"))
        hasher.update(encoded)
    return hasher.hexdigest()


def subject_of(key: str) -> str:
    """Return the digest that charges for this key are filed under: short, and plain text for any key."""
    return digest_of(key)


def broken(sequence: int, how: str) -> LedgerFault:
    """Return the fault of an entry that cannot be what Lapwing wrote."""
    return LedgerFault(
        f"Entry {sequence} of the ledger {how}: the file was damaged or edited. Lapwing answers no query from it. "
        f"{RESTORE}"
    )


# Charges: the entries that pay for questions.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A question and its price, to be charged or already charged.

    `key` names the question up to what cannot change its answer; `version` is the version of the data that the asker
    has in hand; `delta` is what it takes of the part of the budget's delta that is kept for private keys. `parts` are
    the parts of the data that it is charged to, if it reads no others; None for all. `asker` is who waits for the
    answer (`ledger.store.Presence`), if known. `wording` is what was typed (`ledger.wording`), for people to read.
    """

    key: str
    question: str
    loss: Loss
    catalog_digest: str
    principal: str
    version: int
    delta: Fraction = Fraction(0)
    parts: tuple[str, ...] | None = None
    asker: str | None = None
    wording: Mapping[str, Any] | None = None

    def to_record(self) -> dict[str, object]:
        """Return the charge as JSON, the loss as it is charged (rounded up to the grid), in exact text.

        A charge without delta has none in the record, as before there were charges with one, one to all parts does not
        name them, and one of nobody known names nobody.
        """
        more: dict[str, object] = {"delta": written(grid_up(self.delta))} if self.delta else {}
        more |= {"parts": list(self.parts)} if self.parts is not None else {}
        more |= {"asker": self.asker} if self.asker is not None else {}
        more |= {"wording": self.wording} if self.wording is not None else {}
        return {
            "key": self.key,
            "question": self.question,
            "loss": self.loss.rounded_up().to_record(),
            "catalog": self.catalog_digest,
            "principal": self.principal,
            "version": self.version,
        } | more

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Read what `to_record` wrote."""
        return cls(
            key=record["key"],
            question=record["question"],
            loss=measures.from_record(record["loss"]),
            catalog_digest=record["catalog"],
            principal=record["principal"],
            version=record["version"],
            delta=read(record["delta"], "delta") if "delta" in record else Fraction(0),
            parts=_names(record["parts"]) if "parts" in record else None,
            asker=_asker(record["asker"]) if "asker" in record else None,
            wording=record.get("wording"),
        )


def _names(record: object) -> tuple[str, ...]:
    if not isinstance(record, list) or not all(isinstance(name, str) for name in record):
        raise TypeError("not a list of names")
    return tuple(record)


def _asker(record: object) -> str:
    if not isinstance(record, str) or not ASKER.fullmatch(record):  # it becomes a part of a path
        raise TypeError("not the name of an asker")
    return record


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """A loss that is durably charged; `sequence` names the charge, `account` is what it left."""

    sequence: int
    account: Account


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    """An answer that was bought before; `sequence` names its charge."""

    sequence: int
    loss: Loss
    payload: str


def new_asker() -> str:
    """Return the name of an asker that nobody had before."""
    return read_exactly(SystemEntropy(), 16).hex()
