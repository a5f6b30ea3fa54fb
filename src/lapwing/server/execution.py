"""A question to a data set, from the request to the kept answer: charged once, whatever is sent twice.

Theory of operation
-------------------
Questions run in threads of their own, people in turn (`server.fair_queue`), so that a slow one holds up nothing else,
and who asks much holds up nobody else. A request that ends while its question waits, because its caller has gone or it
waited too long, takes the question along; one that runs goes on. For somebody who is not trusted with time, what was
bought before is looked for in such a thread, and what is to be charged goes to a process that asks at deadlines
(`server.deadline`).

The same question, by whomever, waits for a lock: the second finds the answer of the first in the ledger, and pays
nothing.

A request with an idempotency key takes the lock of its key, and then

1. finds nothing: the key is written down as begun, and the question is asked. An answer is kept together with the key,
   in one transaction. If nothing was charged the key is forgotten; if the price is paid and there is no answer, that is
   written down, and is what a second request is told.
2. finds an answer, or that it failed: this is what came of the key, and nothing is asked. So it is if the answer has
   been dropped, as the operator keeps answers for some days only: then the caller is told that.
3. finds that it began, and no more. Whoever began it is dead, as nobody has the lock. If the ledger has the answer, it
   is served for nothing, by a session that can be charged nothing. If not, nobody knows whether it was charged, and it
   is not asked again: the caller is told to look at the history, and to use a new key.

So no key is charged twice, whatever dies when. The lock of a key is held among all processes and hosts that share the
store (`ServiceStore.lock`), and is let go of by whoever dies. Should it be lost while its owner lives, as when a
connection to the database breaks, another finds a key that began, and asks nothing; so nothing but patience rests on
it. That two processes ask the same question at the same moment is the ledger's business.
"""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from lapwing import errors
from lapwing.answer import Answer
from lapwing.answer.population_shown import PopulationShown
from lapwing.documents.answer_document import (
    answer_document,
    arrow_stream,
    consistent_document,
    result_document,
)
from lapwing.ledger.allowances import Remaining
from lapwing.privacy.amounts import probability
from lapwing.server.answer_store import AnswerRecord, AnswerStore, IdempotencyRecord, NewAnswer
from lapwing.server.bodies import BatchBody, PricedBody, QueryBody, body_of, number, requests_of
from lapwing.server.datasets import ServedDataset
from lapwing.server.deadline.admission import Admission
from lapwing.server.deadline.cost import Cost, cost_of
from lapwing.server.deadline.handed_plan import HandedPlan, hand_over
from lapwing.server.deadline.pace import NotStored, Pace, StoredOnly, TooBusy
from lapwing.server.deadline.process import Wanted
from lapwing.server.deadline.rehearsal import Rehearsals
from lapwing.server.fair_queue import Queue
from lapwing.server.log import log
from lapwing.server.people import Caller
from lapwing.server.policies import Policies
from lapwing.server.problems import Problem, problem_of
from lapwing.server.recent_answers import Name, RecentAnswers, seal_of
from lapwing.server.rounds import Rounds
from lapwing.server.store import StoreConnection
from lapwing.session import Session

if TYPE_CHECKING:
    pass

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationSample:
    """That intervals are wanted for the population; sampling: how many were drawn from it, as `interval` takes it."""

    sampling: int | str | None


REPEATED: Final = "repeated"
"""The outcome of a request that is told again what an earlier one of its key came to."""
LEFT: Final = "left"
"""The outcome of a question whose asker had gone before they were told."""
Gone = Callable[[], Coroutine[Any, Any, None]]
"""Ends when the caller has gone."""
Claim = Callable[[StoreConnection, str], bool]
"""Takes an answer, by its id, in the transaction that keeps it; tells whether it is still wanted."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A question, or several at one price, as somebody asks it of a data set.

    Args:
        key: The idempotency key that it was sent with.
        job: The id of the queued question that it is; None for one that somebody waits for.
        claim: Takes the answer.
        pace: At which it is asked, of somebody who is not trusted with time.
    """

    caller: Caller
    served: ServedDataset
    body: QueryBody | BatchBody
    key: str | None = None
    job: str | None = None
    claim: Claim | None = None
    pace: Pace | None = None

    @property
    def person(self) -> str:
        """The name of who asks."""
        return self.caller.name

    @property
    def digest(self) -> str:
        """What a key stands for: the same key with another digest is a conflict."""
        request = self.body.model_dump(mode="json")
        if request.get("assuming_count", 0) is None:  # as bodies were before there was one: their keys are kept
            del request["assuming_count"]
        return sha256(json.dumps([self.served.name, request], sort_keys=True).encode()).hexdigest()

    def waits(self) -> None:
        """Hear that somebody else's answer to the same question is waited for."""
        if self.pace is not None:
            self.pace.waits()


@final
class NamedLocks:
    """Locks by name, each of which is there only while somebody wants it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[object, tuple[threading.Lock, int]] = {}

    @contextmanager
    def hold(self, name: object, waits: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Hold the lock of a name.

        Args:
            waits: Is called if somebody else holds it.
        """
        with self._lock:
            turn, waiting = self._held.get(name, (threading.Lock(), 0))
            self._held[name] = turn, waiting + 1
        try:
            if not turn.acquire(blocking=False):
                waits()
                turn.acquire()
            try:
                yield
            finally:
                turn.release()
        finally:
            with self._lock:
                turn, waiting = self._held.pop(name)
                if waiting > 1:
                    self._held[name] = turn, waiting - 1


@final
class _Left(errors.ServiceFault):
    """Nobody is told what came of a question, as whoever asked has closed the connection."""


@final
class RepeatedProblem(errors.LapwingError):
    """A problem that an earlier request of the same key was told."""

    def __init__(self, document: Problem) -> None:
        self.document = document
        self.charged = document.get("charged")
        super().__init__(document["detail"])


@final
class QuestionExecutor:
    """Asks questions on behalf of callers.

    Args:
        count: Hears of each question's data set and of what its asker was told, once: `charged` or `stored`, the code
            of an error, `REPEATED`, or `LEFT` if they had gone; of a queued question, what came of it.
        threads: How many questions run at once.
        patience: Seconds until a request stops waiting for its answer.
        admission: To where questions are asked of people who are not trusted with time; None if nobody's answers are
            held until a deadline.
        parallel: Requests with a question that one person may have under way, 0 for no limit.
    """

    def __init__(
        self,
        answers: AnswerStore,
        policies: Policies,
        count: Callable[[str, str], None],
        *,
        threads: int,
        patience: float,
        admission: Admission | None = None,
        parallel: int = 0,
        rehearsals: Rehearsals | None = None,
    ) -> None:
        self._answers, self._policies, self.count = answers, policies, count
        self._admission, self._rehearsals = admission, rehearsals
        self.queue = Queue(threads)
        self._patience = patience
        self._locks = NamedLocks()
        self._recent = RecentAnswers()
        self._parallel = parallel
        self._of_person: Counter[str] = Counter()  # requests under way; of the one thread that speaks HTTP

    async def ask(self, ask: Ask, gone: Gone) -> tuple[AnswerRecord, ...]:
        """Answer a question, or several at one price, or what an earlier request of this key came to.

        Raises:
            LapwingError: What `Session.sql` raises.
            KeyConflict: If the key was used for another request.
            ServiceFault: If it takes too long.
            TooManyRequests: If too many questions wait.
        """
        outcome = "internal"  # as a bug is told
        try:
            with self._one_more(ask.person):
                records = await self._ask(ask, gone)
            outcome = outcome_of(records)
            return records
        except (_Left, asyncio.CancelledError):
            outcome = LEFT
            raise
        except RepeatedProblem:
            outcome = REPEATED
            raise
        except errors.LapwingError as error:
            outcome = error.code
            raise
        finally:
            self.count(ask.served.name, outcome)

    async def _ask(self, ask: Ask, gone: Gone) -> tuple[AnswerRecord, ...]:
        admission = self._admission
        if admission is None:
            return await self._run(ask.caller, lambda: self.answered(ask), gone)
        found = await self._run(ask.caller, lambda: self._at_once(admission, ask), gone)
        if not isinstance(found, Wanted):
            return found
        if found.cost.deadline > self._patience:
            raise errors.QueryRefused(
                f"Lapwing would send the result after {found.cost.deadline:,g} seconds, and this service lets a "
                f"request wait for at most {self._patience:g}",
                cause=errors.RefusalCause.TAKES_TOO_LONG,
                remedy="Run the query in the background, and look for its result later.",
            )
        return await self._wait(admission.put(found), gone)

    @contextmanager
    def _one_more(self, person: str) -> Iterator[None]:
        """Hold one of the places of somebody's requests.

        Raises:
            TooManyRequests: If there is none.
        """
        if self._parallel and self._of_person[person] >= self._parallel:
            raise errors.TooManyRequests(
                f"{self._parallel} of your queries are running, which is the limit of this service. Nothing was "
                f"charged. Try again when one of them has ended."
            )
        self._of_person[person] += 1
        try:
            yield
        finally:
            self._of_person[person] -= 1
            if not self._of_person[person]:
                del self._of_person[person]

    @property
    def holds_answers(self) -> bool:
        """Whether people who are not trusted with time are answered at deadlines."""
        return self._admission is not None

    @property
    def rounds(self) -> tuple[Rounds, ...]:
        """The threads that look after something again and again."""
        return () if self._admission is None else (self._admission.rounds,)

    def is_up(self) -> bool:
        """Tell whether whoever asks at deadlines is there, or nobody is needed for that."""
        return self._admission is None or self._admission.process.is_up

    def queued(self, ask: Ask) -> Future[Any] | None:
        """Let a question that nobody waits for be admitted; None for one whose asker is trusted with time.

        Raises:
            TooManyRequests: If there are too many requests.
            QueryRefused: If nothing bounds the time that it takes.
        """
        admission = self._admission
        if admission is None or ask.served.trusts_with_time(ask.caller, self._policies):
            return None
        return admission.put(self._wanted(admission, ask))

    def deadline_of(self, caller: Caller, served: ServedDataset, body: PricedBody) -> float | None:
        """Return after how many seconds an answer would leave; None where none is held until a deadline.

        It follows from the question and public facts, as what is admitted does.
        """
        admission = self._admission
        if admission is None or served.trusts_with_time(caller, self._policies):
            return None
        query = QueryBody.model_validate(body.model_dump())
        try:
            return self._cost(admission, Ask(caller=caller, served=served, body=query), preview=True)[0].deadline
        except errors.QueryRefused:  # nothing bounds it: then it is refused when it is asked, and says so
            return None

    async def reopen(
        self,
        caller: Caller,
        served: ServedDataset,
        record: AnswerRecord,
        confidence: Fraction,
        gone: Gone,
        drawn: PopulationSample | None = None,
    ) -> AnswerRecord:
        """Return a kept answer at another confidence, for nothing; drawn: with intervals for the population.

        Raises:
            DataChanged: If it can no longer be computed.
        """
        return await self._run(caller, lambda: _reopened(served, record, confidence, drawn), gone)

    async def made_consistent(
        self, caller: Caller, served: ServedDataset, record: AnswerRecord, gone: Gone
    ) -> AnswerRecord:
        """Return the rows of a kept answer with numbers that can be true together, for nothing.

        Raises:
            DataChanged: If they can no longer be computed.
        """
        return await self._run(caller, lambda: _made_consistent(served, record), gone)

    async def carry_out(self, caller: Caller, work: Callable[[], T], gone: Gone) -> T:
        """Do something else for somebody in their turn, in a thread.

        Raises:
            LapwingError: What it raises.
            ServiceFault: If it takes too long.
            TooManyRequests: If too many questions wait.
        """
        return await self._run(caller, work, gone)

    def depth(self) -> tuple[int, int]:
        """Return how many questions wait, and how many are under way: what was admitted is, until it leaves."""
        waiting, running = self.queue.lines.depth()
        if self._admission is not None:
            also, admitted = self._admission.lines.depth()
            return waiting + also, running + admitted
        return waiting, running

    def ahead(self, person: str, turn: Future[Any]) -> int:
        """Return how many of somebody's questions wait before one of theirs."""
        lines = self.queue.lines.ahead(person, turn)
        return lines if self._admission is None else lines + self._admission.lines.ahead(person, turn)

    def start(self) -> None:
        """Begin; return when questions can be asked.

        Raises:
            ServiceFault: If the server or the way to it fails.
        """
        if self._rehearsals is not None:
            self._rehearsals.rounds.start()
        if self._admission is not None:
            log(
                "calibrating",
                detail="a process measures this machine and reads the data, and then the service listens. This takes "
                "some seconds, and on a busy machine some minutes",
            )
            self._admission.start()
            log("calibrated")
        if self._rehearsals is not None:
            self._rehearsals.wait()

    def close(self) -> None:
        """Wait for the questions that are under way; those that wait are dropped, uncharged."""
        self.queue.close()
        if self._rehearsals is not None:
            self._rehearsals.close()
        if self._admission is not None:
            self._admission.close()

    # ---- at a deadline -----------------------------------------------------------------------------------------------

    def _at_once(self, admission: Admission, ask: Ask) -> tuple[AnswerRecord, ...] | Wanted:
        """Return what may be told at once: to those who are trusted with time all, else what was bought before.

        Otherwise return the question with what it may cost.
        """
        if ask.served.trusts_with_time(ask.caller, self._policies):
            return self.answered(ask)
        try:
            if ask.key is not None and not self._answers.knows(ask.person, ask.key):
                ask.body.bought(ask.served.for_caller(ask.caller, self._policies, StoredOnly()))  # or it began in vain
            return self.answered(replace(ask, pace=StoredOnly()))
        except NotStored:
            return self._wanted(admission, ask)

    def _wanted(self, admission: Admission, ask: Ask) -> Wanted:
        cost, plan = self._cost(admission, ask)
        return Wanted(
            caller=ask.caller, dataset=ask.served.name, body=ask.body, key=ask.key, job=ask.job, cost=cost, plan=plan
        )

    def _cost(self, admission: Admission, ask: Ask, *, preview: bool = False) -> tuple[Cost, HandedPlan | None]:
        """Return what a question may cost, and the plan that is handed over for it."""
        served, rehearsed = ask.served, 0.0
        plans = ask.body.plans(served.for_caller(ask.caller, self._policies, StoredOnly()))
        if self._rehearsals is not None:
            rehearsed = self._rehearsals.seconds(ask.person, served, plans, remembered=preview)
        process = admission.process
        indexed, share = process.is_indexed(served.name), process.share.number
        plan = hand_over(served.session, ask.person, ask.body)
        handed = plan is not None
        cost = cost_of(plans, process.speed, indexed=indexed, share=share, rehearsed=rehearsed, handed=handed)
        return admission.cost_now(served.name, cost), plan

    # ---- in a thread -------------------------------------------------------------------------------------------------

    async def _run(self, caller: Caller, work: Callable[[], T], gone: Gone) -> T:
        return await self._wait(self.queue.put(caller.name, work), gone)

    async def _wait(self, future: Future[T], gone: Gone) -> T:
        loop, leaving = asyncio.get_running_loop(), asyncio.ensure_future(gone())
        ended = loop.create_future()

        def end(*_: object) -> None:
            if not ended.done():
                ended.set_result(None)

        def tell(_: Future[T]) -> None:
            with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                loop.call_soon_threadsafe(end)

        future.add_done_callback(tell)
        leaving.add_done_callback(end)
        patience = loop.call_later(self._patience, end)
        try:
            await ended
            if future.done() and not future.cancelled():
                return future.result()
        finally:
            patience.cancel()
            leaving.cancel()
            future.cancel()  # drops what waits, and nothing else
        if future.cancelled():
            dropped_unasked = (_Left if leaving.done() else errors.ServiceFault)(
                "The query waited for its turn until the request ended, or the service did. Nothing was charged. Run "
                "it again, or run it in the background."
            )
            dropped_unasked.charged = False
            raise dropped_unasked
        kind = _Left if leaving.done() else errors.ServiceFault
        raise kind(
            f"The result took longer than {self._patience:g} seconds. The query goes on, and Lapwing stores its "
            "result: run it again, which is free then."
        )

    def answered(self, ask: Ask) -> tuple[AnswerRecord, ...]:
        """Answer in this thread.

        Raises:
            NotStored: If the pace charges nothing.
            LapwingError: As `ask`.
            Interrupted: If it was stopped, or nobody claims the answer any more.
        """
        recent, seal, key, session = None, None, ask.key, ask.served.session
        trusted = ask.pace is None and ask.served.trusts_with_time(ask.caller, self._policies)
        name = _name_of(ask, trusted=trusted)
        if name is not None and (recent := self._recent.find(name)) is not None:
            seal = seal_of(session, recent.tables)
            if recent.stands(session, seal) and self._answers.is_kept(recent.record):
                return (recent.record,)
        digest = "" if key is None else ask.digest
        with nullcontext() if key is None else self._key_locked(ask.person, key, ask.waits):
            earlier = None if key is None else self._answers.begin(ask.person, key, digest)
            if earlier is not None:
                return self._repeated(earlier, ask, digest)
            try:
                left: list[Remaining] = []
                session = ask.served.for_caller(
                    ask.caller, self._policies, ask.pace, trusted=trusted, decided=left.append
                )
                records = self._bought(session, ask, name, seal)
                return tuple(replace(record, remaining=left[-1]) for record in records) if left else records
            except (NotStored, TooBusy):  # it is asked again, when it is charged or its turn comes again
                if key is not None:
                    self._answers.forget(ask.person, key)
                raise
            except errors.LapwingError as error:
                charged = errors.was_charged(error)
                if key is not None and charged is False:
                    self._answers.forget(ask.person, key)
                if key is not None and charged is True:
                    self._answers.failed(ask.person, key, problem_of(error))
                raise

    @contextmanager
    def _key_locked(self, person: str, key: str, waits: Callable[[], None]) -> Iterator[None]:
        """Hold the lock of a key: among the threads of this process, and then among all processes."""
        with self._locks.hold((person, key), waits), self._answers.lock(person, key):
            yield

    def _repeated(self, earlier: IdempotencyRecord, ask: Ask, digest: str) -> tuple[AnswerRecord, ...]:
        """Return what came of a key."""
        if earlier.digest != digest:
            raise errors.KeyConflict(
                "This Idempotency-Key was sent with another request. Nothing was charged. Send a new key."
            )
        if earlier.problem is not None:
            raise RepeatedProblem(earlier.problem)
        records = () if earlier.answer is None else self._answers.bought_with(earlier.answer)
        if any(record.dropped for record in records):  # paid for: neither asked nor charged again
            raise dropped()
        if records:
            return tuple(replace(record, repeated=True) for record in records)
        try:
            return self._bought(ask.served.for_nothing(ask.person), replace(ask, claim=None, pace=None))
        except (errors.AllowanceExhausted, errors.BudgetExhausted, errors.DataChanged):
            raise errors.KeyConflict(
                "A request with this Idempotency-Key began, and the service ended before it. Nobody knows whether it "
                "was charged, so Lapwing does not run it again. Check your history, and send a new key to run it."
            ) from None

    def _bought(
        self, session: Session, ask: Ask, name: Name | None = None, seal: str | None = None
    ) -> tuple[AnswerRecord, ...]:
        body, claim = ask.body, ask.claim
        confidence = probability(number(body.confidence, "confidence"), "confidence")
        question = body.model_dump(mode="json", exclude={"confidence"})
        asked = sha256(json.dumps([ask.served.name, question], sort_keys=True).encode()).hexdigest()
        with self._locks.hold(asked, ask.waits):
            try:
                answers = body.bought(session)
            except KeyboardInterrupt:  # after a charge, what is raised says so
                raise errors.Interrupted(charged=False) from None
        requests, catalog = requests_of(body), session.catalog
        recent = None if name is None else self._recent.find(name)
        same = recent is not None and recent.says_what(answers[0], catalog) and self._answers.is_kept(recent.record)
        if name is not None and recent is not None and same:
            self._recent.note(name, answers[0], catalog, recent.record, seal)
            return (recent.record,)
        new = [
            NewAnswer(
                request=request,
                document=result_document(answer, confidence),
                arrow=arrow_stream(answer.to_arrow(confidence)),
            )
            for request, answer in zip(requests, answers, strict=True)
        ]
        shown = None if recent is None or not self._answers.is_kept(recent.record) else recent.shown_again(new[0])
        if shown is not None:
            return (shown,)

        def claimed(connection: StoreConnection, id_: str) -> None:
            if claim is not None and not claim(connection, id_):
                raise errors.Interrupted(charged=any(answer.cost.amount for answer in answers))

        also = None if claim is None else claimed  # a result that nobody claims is kept by one statement
        records = self._answers.keep(new, person=ask.person, dataset=ask.served.name, key=ask.key, also=also)
        if name is not None:
            self._recent.note(name, answers[0], catalog, records[0], seal)
        return records


def _name_of(ask: Ask, *, trusted: bool) -> Name | None:
    """Name a request by all that its free answer follows from, beside what changes; None if it is none of one.

    What was admitted leaves at its moment, whether it turns out to be free or not: so it is none of them.

    Args:
        trusted: Whether the asker is trusted with time, and no pace is kept.
    """
    if ask.key is not None or ask.claim is not None:
        return None
    if not isinstance(ask.body, QueryBody) or not (ask.pace is None or isinstance(ask.pace, StoredOnly)):
        return None
    return ask.person, ask.served.name, trusted, ask.body.model_dump_json()


def outcome_of(records: Sequence[AnswerRecord]) -> str:
    """Return by what a question counts that was answered."""
    if all(record.repeated for record in records):
        return REPEATED
    return "stored" if all(record.document["stored"] for record in records) else "charged"


def dropped() -> errors.AnswerDropped:
    """Return the error of an answer that is not kept any more."""
    return errors.AnswerDropped(
        "The result was dropped, because this service stores results only for a time that its operator has set. "
        "Nothing was charged. Run the query again, with a new key: while data and catalog are the same, that is free."
    )


def _again(served: ServedDataset, record: AnswerRecord) -> Answer:
    """Return a kept answer anew, from the ledger, for nothing.

    Raises:
        DataChanged: If it is not there for these data and this catalog.
    """
    body, place = body_of(record.request)
    try:
        return body.bought(served.for_nothing(record.person))[place]
    except errors.LapwingError:
        raise errors.DataChanged(
            f"Data or catalog have changed since this result, so it stays at its confidence of "
            f"{record.document['confidence']:g}. Open it without another confidence."
        ) from None


def _reopened(
    served: ServedDataset, record: AnswerRecord, confidence: Fraction, drawn: PopulationSample | None
) -> AnswerRecord:
    answer = _again(served, record)
    bought = {name: record.document[name] for name in ("cost", "stored", "facts") if name in record.document}
    document = {**result_document(answer, confidence), **bought}
    if drawn is None:
        return replace(record, document=document, arrow=arrow_stream(answer.to_arrow(confidence)))
    shown = PopulationShown(answer, drawn.sampling)
    document |= {**answer_document(shown, confidence), **bought, "of": "population"}
    return replace(record, document=document, arrow=arrow_stream(shown.to_arrow(confidence)))


def _made_consistent(served: ServedDataset, record: AnswerRecord) -> AnswerRecord:
    answer = _again(served, record)
    view = answer.consistent()
    document = {**consistent_document(view), "types": answer.types}
    return replace(record, document=document, arrow=arrow_stream(view.to_arrow()))
