"""A question to a data set, from the request to the kept answer: charged once, whatever is sent twice.

Theory of operation
-------------------
Questions run in threads of their own, so that a slow one holds up nothing else. The same question, by whomever, waits
for its *turn*: the second finds the answer of the first in the ledger, and pays nothing.

A request with an idempotency key takes the turn of its key, and then

1. finds nothing: the key is written down as begun, and the question is asked. An answer is kept together with the key,
   in one transaction. If nothing was charged the key is forgotten; if the price is paid and there is no answer, that is
   written down, and is what a second request is told.
2. finds an answer, or that it failed: this is what came of the key, and nothing is asked.
3. finds that it began, and no more. Whoever began it is dead, as nobody has the turn. If the ledger has the answer, it
   is served for nothing, by a session that can be charged nothing. If not, nobody knows whether it was charged, and it
   is not asked again: the caller is told to look at the history, and to use a new key.

So no key is charged twice, whatever dies when. The service has one process; what the turns guard between processes is
the ledger's business: there, the same question at the same moment may be charged twice, and never beyond the cap.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from fractions import Fraction
from hashlib import sha256
from typing import Any, Final, TypeVar, final

from lapwing.answer import Answer
from lapwing.documents import answer_document, arrow_stream
from lapwing.errors import (
    AllowanceExhausted,
    BudgetExhausted,
    DataChanged,
    DataFault,
    DataStopped,
    EngineFault,
    EntropyFault,
    InvalidParameter,
    KeyConflict,
    LapwingError,
    QueryRefused,
    ServiceFault,
    TooManyRequests,
)
from lapwing.privacy.amounts import probability
from lapwing.server.answers import Answers, Begun, Kept
from lapwing.server.bodies import Asked, number
from lapwing.server.datasets import Served
from lapwing.server.journal import Metrics
from lapwing.server.policies import Policies
from lapwing.server.problems import problem_of
from lapwing.server.rights import Caller
from lapwing.session import Session

MOST_WAITING: Final = 256
UNCHARGED: Final = (
    InvalidParameter,
    QueryRefused,
    DataChanged,
    DataStopped,
    DataFault,
    BudgetExhausted,
    AllowanceExhausted,
)
"""What is raised only where nothing of the question itself was charged."""
CHARGED: Final = (EngineFault, EntropyFault)
T = TypeVar("T")


@final
class KnownProblem(LapwingError):
    """A problem that an earlier request of the same key was told."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        super().__init__(document["detail"])


@final
class Turns:
    """Locks by name, each of which is there only while somebody wants it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[object, tuple[threading.Lock, int]] = {}

    @contextmanager
    def of(self, name: object) -> Iterator[None]:
        """Hold the lock of a name."""
        with self._lock:
            turn, waiting = self._held.get(name, (threading.Lock(), 0))
            self._held[name] = turn, waiting + 1
        try:
            with turn:
                yield
        finally:
            with self._lock:
                turn, waiting = self._held.pop(name)
                if waiting > 1:
                    self._held[name] = turn, waiting - 1


@final
class Asking:
    """Asks questions on behalf of callers.

    Args: threads: how many questions run at once; patience: seconds until a request stops waiting for its answer.
    """

    def __init__(
        self, answers: Answers, policies: Policies, metrics: Metrics, *, threads: int, patience: float
    ) -> None:
        self._answers, self._policies, self._metrics = answers, policies, metrics
        self._threads = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="question")
        self._patience = patience
        self._turns = Turns()
        self._waiting = 0

    async def ask(self, caller: Caller, served: Served, body: Asked, key: str | None) -> Kept:
        """Answer a question, or what an earlier request of this key came to.

        Raises: what `Session.sql` raises; KeyConflict; ServiceFault if it takes too long; TooManyRequests if too many
            questions wait.
        """
        return await self._run(lambda: self.answered(caller, served, body, key))

    async def reopen(self, served: Served, kept: Kept, confidence: Fraction) -> Kept:
        """Return a kept answer at another confidence, for nothing.

        Raises: DataChanged if it can no longer be computed.
        """
        return await self._run(lambda: self._reopened(served, kept, confidence))

    def close(self) -> None:
        """Wait for the questions that are under way; those that wait are dropped, uncharged."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    async def _run(self, work: Callable[[], T]) -> T:
        if self._waiting >= MOST_WAITING:
            raise TooManyRequests("Too many questions wait for their turn. Nothing was charged. Ask again later.")
        self._waiting += 1
        try:
            future = asyncio.get_running_loop().run_in_executor(self._threads, work)
            return await asyncio.wait_for(future, self._patience)
        except TimeoutError:
            raise ServiceFault(
                f"The answer took longer than {self._patience:g} seconds. If the question had begun, it goes on, and "
                "its answer is kept: ask again, which is free then."
            ) from None
        finally:
            self._waiting -= 1

    def answered(self, caller: Caller, served: Served, body: Asked, key: str | None) -> Kept:
        """Answer in this thread."""
        request = body.model_dump(mode="json")
        digest = sha256(json.dumps([served.name, request], sort_keys=True).encode()).hexdigest()
        with nullcontext() if key is None else self._turns.of((caller.name, key)):
            begun = None if key is None else self._answers.begin(caller.name, key, digest)
            if key is not None and begun is not None:
                return self._known(begun, caller, served, body, key, digest)
            try:
                kept = self._bought(served.for_caller(caller, self._policies), caller, served, body, key)
            except LapwingError as error:
                self._metrics.asked(served.name, error.code)
                if key is not None and isinstance(error, UNCHARGED):
                    self._answers.forget(caller.name, key)
                if key is not None and isinstance(error, CHARGED):
                    self._answers.failed(caller.name, key, problem_of(error))
                raise
            self._metrics.asked(served.name, "stored" if kept.document["stored"] else "charged")
            return kept

    def _known(self, begun: Begun, caller: Caller, served: Served, body: Asked, key: str, digest: str) -> Kept:
        """Return what came of a key."""
        if begun.digest != digest:
            raise KeyConflict(
                "This Idempotency-Key was sent with another request. Nothing was charged. Send a new key."
            )
        if begun.problem is not None:
            raise KnownProblem(begun.problem)
        kept = None if begun.answer is None else self._answers.find(begun.answer)
        if kept is not None:
            return kept
        try:
            return self._bought(served.for_nothing(caller.name), caller, served, body, key)
        except (AllowanceExhausted, DataChanged):
            raise KeyConflict(
                "A request with this Idempotency-Key began, and the service ended before it. Nobody knows whether it "
                "was charged, so it is not asked again. Look at your history, and send a new key to ask."
            ) from None

    def _bought(self, session: Session, caller: Caller, served: Served, body: Asked, key: str | None) -> Kept:
        confidence = probability(number(body.confidence, "confidence"), "confidence")
        question = body.model_dump(mode="json", exclude={"confidence"})
        name = sha256(json.dumps([served.name, question], sort_keys=True).encode()).hexdigest()
        values, prices = body.values(), body.prices()
        with self._turns.of(name):
            answer = session.sql(body.sql, values, **prices)
        return self._answers.keep(
            person=caller.name,
            dataset=served.name,
            request=body.model_dump(mode="json"),
            document=_document(answer, confidence),
            arrow=arrow_stream(answer.to_arrow(confidence)),
            key=key,
        )

    def _reopened(self, served: Served, kept: Kept, confidence: Fraction) -> Kept:
        body = Asked.model_validate(kept.request)
        try:
            answer = served.for_nothing(kept.person).sql(body.sql, body.values(), **body.prices())
        except LapwingError:
            raise DataChanged(
                f"Data or catalog are not those of this answer any more, so it stays at its confidence of "
                f"{kept.document['confidence']:g}. Open it without one."
            ) from None
        document = {**_document(answer, confidence), "cost": kept.document["cost"], "stored": kept.document["stored"]}
        return Kept(
            id=kept.id,
            person=kept.person,
            dataset=kept.dataset,
            created=kept.created,
            request=kept.request,
            document=document,
            arrow=arrow_stream(answer.to_arrow(confidence)),
        )


def _document(answer: Answer, confidence: Fraction) -> dict[str, Any]:
    types = {output.name: output.value.shape for output in answer.plan.outputs}
    return answer_document(answer, confidence) | {"types": types}
