"""What keeps a ledger: the entries, the chain that makes them durable, and who asks.

`ledger.ledger` decides over these; a store (`ledger.sqlite`, `ledger.postgres`) offers them. Each store says in its
chain why what was reported as committed survives a crash, and why a decision always rests on the newest entry.
"""

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal, Protocol

from lapwing.ledger.entries import Entry, Kind

if TYPE_CHECKING:
    from lapwing.ledger.group_commit import Turn
    from lapwing.ledger.transaction import Transaction

Fate = Literal["present", "missing", "dead"]


class Log(Protocol):
    """The entries of a ledger, to be looked up inside a transaction.

    Raises:
        LedgerFault: In every method, if the store cannot be read, or holds what Lapwing did not write.
    """

    def entries(self, *, since: int) -> Iterator[Entry]:
        """Yield the entries from a sequence on, in order."""
        ...

    def entry(self, sequence: int) -> Entry | None:
        """Return one entry, if there is one."""
        ...

    def of_kind(self, kind: Kind, *, since: int = 1) -> Iterator[Entry]:
        """Yield all entries of a kind, from a sequence on, in order."""
        ...

    def answered(self, charges: Collection[int]) -> frozenset[int]:
        """Return those of the charges that have an answer."""
        ...

    def number_of_charges(self) -> int:
        """Return how many charges there are."""
        ...

    def charges(self, subject: str, *, since: int) -> Iterator[Entry]:
        """Yield the charges that are filed under a subject, from a sequence on, in order."""
        ...

    def answered_charges(self, subject: str) -> Iterator[Entry]:
        """Yield the charges that are filed under a subject and have an answer, in order."""
        ...

    def answer(self, charge: int) -> Entry | None:
        """Return the answer of a charge, if there is one."""
        ...

    def require_sound(self) -> None:
        """Check what the chain of hashes does not cover: pages, indexes, tables."""
        ...


class Chain(Protocol):
    """The durable chain of one ledger, for any number of threads and processes."""

    @property
    def name(self) -> str:
        """The name of the ledger, for people; no path and no password."""
        ...

    @property
    def turn(self) -> "Turn":
        """The turn of one thread, which its transactions take, too."""
        ...

    def prepare(self) -> None:
        """Create the mark of a ledger that does not exist yet, or that this host has not seen."""
        ...

    def transaction(self) -> "AbstractContextManager[Transaction]":
        """Hold the ledger alone, at its newest state; what is not committed inside is rolled back."""
        ...

    def closed(self) -> AbstractContextManager[frozenset[str]]:
        """Let go of file or connection, and let no other thread begin before the block has ended.

        Gives who has a charge under way, as far as this object knows: so of its own ones, all.
        """
        ...

    def close(self) -> None:
        """Let go of file or connection. A later operation takes it again."""
        ...


class LedgerReader(Protocol):
    """A way to look at a ledger that holds nobody up, for any number of threads."""

    def log(self) -> AbstractContextManager[Log]:
        """Give the entries as they were at one moment since the call."""
        ...

    def stamp(self) -> object | None:
        """Return what is another whenever files of the store were written to; None if that cannot be told."""
        ...

    def close(self) -> None:
        """Let go of file or connection. A later look takes it again."""
        ...


class Presence(Protocol):
    """Who is asking: a name for one open ledger of one process, by which others can tell whether it still lives.

    A process's number would not do: it is used again, and means nothing in another container. So a name is 128 random
    bits, and each store says how it is held.

    An asker is *present*, or *dead*, or *missing*: out of reach, where that need not be its death. A file's lock never
    goes missing; a connection to a server does. While askers are missing, each counts like the fault that it may turn
    out to be when it is decided whether a charge may still be made, so that no charge follows faults that are merely
    not counted yet (`ledger.faults`).
    """

    @property
    def current(self) -> str | None:
        """The name, if there is one; a child that was forked has none yet."""
        ...

    def name(self) -> str:
        """Return the name, taking one if there is none."""
        ...

    def drop(self, *, unless: Collection[str] = ()) -> None:
        """Let go of the name, unless it is one of these: what is under way by it would be lost."""
        ...

    def fate(self, name: str) -> Fate:
        """Return what became of who asks by this name; asked with the ledger held."""
        ...
