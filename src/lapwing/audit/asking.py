"""Ask a query of two neighbouring made worlds, through the path of every query, and keep everything that it shows."""

import json
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Final, final
from zlib import decompress

import numpy as np

from lapwing.answer import Answer
from lapwing.audit.made_data import made_catalog
from lapwing.audit.neighbours import neighbours
from lapwing.audit.watching import Call, Watch, fresh_secret
from lapwing.catalog.model import Catalog
from lapwing.errors import EngineFault, LapwingError
from lapwing.machine.scratch import temporary_folder
from lapwing.opening import open_session
from lapwing.query.pricing.calibrate import calibrate
from lapwing.query.pricing.joint_price import calibrate_together
from lapwing.query.pricing.quote import Quote
from lapwing.query.text.parameters import Parameters
from lapwing.release.shared_vectors import shared_vectors
from lapwing.release.stored import Purchase
from lapwing.release.workloads import workloads_of
from lapwing.session import Session

HISTORY: Final = "of the history"
"""The form of a query that was asked before."""
PREFIX: Final = "lapwing-audit-"
EPSILON: Final = Fraction(1, 100)
"""The price of a made query: so small that choices seldom differ between neighbours who draw the same bits."""
DELTA: Final = Fraction(1, 10**12)
"""The most that a query with private keys takes of the budget's delta for keys."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MadeQuery:
    """A query to ask, and where it comes from: a form of the generator, or the history.

    Args:
        more: Further queries, all at one price with the first.
    """

    text: str
    form: str
    parameters: Parameters = ()
    more: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """Its texts, for people."""
        return "; ".join((self.text, *self.more))


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Seen:
    """All that one world shows of a query, and what its mechanisms were given.

    Args:
        refusal: The class of an error and its cause; None for an answer.
        charges: The entries of the ledger: plan, measure, amount, delta and parts.
        calls: The uses of randomness.
        crashed: Whether it is an error that no query may end with, such as a fault of the engine.
        public_facts: The notes of the answer.
        entries: The numbers of the ledger's entries that paid for it.
        quotes: The bought measures with their declared sensitivities.
        again: The fault of a second asking; None if it was free and gave the same rows.
    """

    refusal: str | None
    charges: tuple[tuple[str, str, Fraction, Fraction, Any], ...]
    calls: tuple[Call, ...]
    crashed: bool = False
    public_facts: tuple[str, ...] = ()
    entries: tuple[int, ...] = ()
    quotes: tuple[Quote, ...] = ()
    again: str | None = None

    @property
    def charged(self) -> Fraction:
        """The amount of all charges."""
        return sum((amount for _, _, amount, _, _ in self.charges), Fraction(0))


@final
@dataclass(slots=True)
class World:
    """One of two neighbours: a session on made rows, whose randomness is watched."""

    session: Session
    watch: Watch
    catalog: Catalog
    asked: int = 0
    sequence: int = 0
    payloads: dict[int, Any] = field(default_factory=dict)

    def ask(self, query: MadeQuery) -> Seen:
        """Ask a query, and once more, and return what shows."""
        self.asked += 1
        self.watch.begin(self.asked)
        wanted: dict[str, Any] = {
            "epsilon": EPSILON,
            "delta": min(DELTA, self.catalog.budget.delta_keys / 1000) or None,
        }
        try:
            answers = self._answers(query, wanted)
            refusal, crashed = None, False
        except Exception as error:  # whatever an analyst would see is compared, and a crash shows, too
            answers, refusal, crashed = (
                (),
                _named(error),
                not isinstance(error, LapwingError) or isinstance(error, EngineFault),
            )
        calls, charges = self.watch.taken(), self._charges()
        if refusal is not None:
            return Seen(refusal=refusal, charges=charges, calls=calls, crashed=crashed)
        return Seen(
            refusal=None,
            charges=charges,
            calls=calls,
            public_facts=tuple(str(note) for answer in answers for note in answer.notes),
            entries=tuple(dict.fromkeys(entry for answer in answers for entry in answer.entries)),
            quotes=_quotes(answers, self.catalog, wanted),
            again=self._again(query, answers, wanted),
        )

    def _answers(self, query: MadeQuery, wanted: Mapping[str, Any]) -> tuple[Answer, ...]:
        if query.more:
            return self.session.batch([(query.text, query.parameters), *query.more], **wanted)
        return (self.session.sql(query.text, query.parameters, **wanted),)

    def _again(self, query: MadeQuery, answers: Sequence[Answer], wanted: Mapping[str, Any]) -> str | None:
        """Ask again: what is stored must be all that the answer is made of, and must cost nothing."""
        try:
            again = self._answers(query, wanted)
        except Exception as error:  # as above
            return f"ended with {_named(error)} when it was asked again"
        if self._charges():
            return "was charged a second time"
        if self.watch.taken():
            return "drew noise a second time"
        same = [repr(one.rows()) for one in again] == [repr(one.rows()) for one in answers]
        return None if same else "showed other rows than its stored answer has"

    def _charges(self) -> tuple[tuple[str, str, Fraction, Fraction, Any], ...]:
        rows = self.session.history(after=self.sequence)
        self.sequence = max([self.sequence, *(row.sequence for row in rows)])
        return tuple((row.question, row.loss.kind, row.loss.amount, row.delta, row.parts) for row in rows)

    def read_payloads(self) -> None:
        """Read the released numbers of all answers from the ledger of made data."""
        for entry in self.session.ledger_entries():
            if entry.kind == "answer":
                contents = entry.contents()
                self.payloads[int(entry.subject)] = json.loads(contents["payload"])

    def released(self, sequence: int) -> tuple[list[list[int]], Any]:
        """Return the released numbers of an answer, measure by measure, and its private keys."""
        payload = self.payloads.get(sequence, {})
        return [_unpacked(values) for values in payload.get("values", ())], payload.get("keys")


@contextmanager
def worlds(catalog: Catalog, number: int) -> Iterator[tuple[World, World, str]]:
    """Open two neighbouring made worlds whose mechanisms get the same bits, and say how they differ."""
    secret, moment = fresh_secret(), datetime.now(UTC)
    with ExitStack() as opened:
        pair, difference = [], ""
        for side in ("one", "other"):
            folder = opened.enter_context(temporary_folder(PREFIX))
            made = made_catalog(catalog, folder)
            apart = neighbours(made, number)
            (apart.one if side == "one" else apart.other).write(made)
            watch, difference = Watch(secret), apart.difference
            session = opened.enter_context(open_session(made, entropy=watch, clock=lambda: moment))
            pair.append(World(session=session, watch=watch, catalog=made))
        yield pair[0], pair[1], difference


def _named(error: Exception) -> str:
    """Name an error by its class and cause; what it says of the text is public, and the same on both worlds."""
    cause = getattr(error, "cause", None)
    return f"{type(error).__name__}{'' if cause is None else f' ({cause})'}"


def _quotes(answers: Sequence[Answer], catalog: Catalog, wanted: Mapping[str, Any]) -> tuple[Quote, ...]:
    """Return the quotes of answers, priced anew from public facts: of what is measured, its searches and sources."""
    if len(answers) == 1:
        return tuple(_flat(calibrate(answers[0].plan, catalog.budget, **wanted)))
    together = calibrate_together([answer.plan for answer in answers], catalog.budget, **wanted)
    every = dict.fromkeys(quote for one in together for quote in _flat(one))
    buying = [Purchase(key=str(place), bought=quote) for place, quote in enumerate(every)]
    vectors = shared_vectors(buying, _in_tables(buying, catalog), catalog.budget)
    shared = {place for vector in vectors for place in vector.places}
    alone = [one.bought for place, one in enumerate(buying) if place not in shared]
    return (*alone, *(vector.measured for vector in vectors))


def _in_tables(buying: Sequence[Purchase], catalog: Catalog) -> set[int]:
    """Return the places of queries with a number in a table that is measured with others."""
    workloads = workloads_of(buying, catalog.budget.neighbouring)
    return {place for workload in workloads for place, _ in workload.members}


def _flat(quote: Quote) -> Iterator[Quote]:
    for inner in (*quote.searches, *quote.sources):
        yield from _flat(inner)
    yield quote.vector.bought if quote.vector is not None and quote.vector.is_bought else quote


def _unpacked(values: Any) -> list[int]:
    if isinstance(values, list):
        return [int(value) for value in values]
    if "zlib" in values:
        return [int(one) for one in np.frombuffer(decompress(b64decode(values["zlib"])), dtype="<i8")]
    return [int(value) for value in values["integers"]]
