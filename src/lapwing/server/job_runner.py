"""Questions that nobody waits for: queued, asked in their turn, and cancelled on request.

Theory of operation. A question is written down (`server.jobs`) and put into the queue that all questions share. When
its turn comes, who asked must still be let in; then it is asked as any other, with a `Switch` that stops it where
Ctrl-C would stop it: before the charge, while the engine runs, or before the answer is recorded. What is stopped after
the charge stays charged, is noted in the ledger as an interrupt, which is no fault, and nobody gets its answer.

Another process of the same service may be told to cancel what runs here. So a thread looks once a second what is to
stop, as long as there is anything, and says with it that this process is there. It also says again what could not be
written down when it happened, as the store could not be reached: else a question would be under way for ever.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, final

from lapwing.errors import (
    Fault,
    Interrupted,
    LapwingError,
    NotAuthorised,
    NotFound,
    QueryRefused,
    TooManyRequests,
    was_charged,
)
from lapwing.machine import waiting
from lapwing.machine.switches import Switch
from lapwing.server.datasets import Datasets, ServedDataset
from lapwing.server.deadline.pace import Pace, TooBusy
from lapwing.server.deadline.process import Wanted
from lapwing.server.execution import REPEATED, Ask, QuestionExecutor, RepeatedProblem, outcome_of
from lapwing.server.jobs import Job, JobStore, Status, done, lost
from lapwing.server.log import log
from lapwing.server.people import RIGHTS_OF, Caller, People
from lapwing.server.problems import Problem, internal, place_of, problem_of

BEAT: Final = 1.0
"""Seconds between two looks at what is to stop."""


@dataclass(frozen=True, slots=True)
class _Live:
    """A question of this process that has not ended. Args: waits: the one thing that it waits for while it runs."""

    person: str
    switch: Switch = field(default_factory=Switch)
    turn: Future[Future[None]] = field(default_factory=Future)
    waits: list[waiting.WaitsFor | None] = field(default_factory=lambda: [None])

    def hear(self, what: waiting.WaitsFor | None) -> None:
        """Note what is waited for, of which no row decides: how workers are lost after the charge could tell of one."""
        self.waits[0] = what if what == "workers" else None


@final
class JobRunner:
    """The queued questions of this process."""

    def __init__(self, jobs: JobStore, executor: QuestionExecutor, people: People, datasets: Datasets) -> None:
        self._jobs, self._executor, self._people, self._datasets = jobs, executor, people, datasets
        self._live: dict[str, _Live] = {}
        self._unsaid: dict[str, Callable[[], None]] = {}
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._beating: threading.Thread | None = None

    def submit(self, ask: Ask) -> Job:
        """Let a question wait for its turn, and return at once; one of a known key is returned as it stands.

        Raises:
            KeyConflict: If the key was used for another request.
            TooManyRequests: If too many questions wait.
        """
        dataset = ask.served.name
        job, new = self._jobs.add(ask.person, dataset, ask.body.model_dump(mode="json"), ask.key)
        if not new:
            return job
        live, ask = _Live(ask.person), self._of_job(ask, job.id)
        with self._lock:
            self._live[job.id] = live
        try:
            turn = self._executor.queued(ask)
            here = turn is None
            if turn is None:
                turn = self._executor.queue.put(ask.person, partial(self._run, job.id, ask, live))
        except (TooManyRequests, QueryRefused, Fault):
            self._leave(job.id)
            self._jobs.forget(job.id)
            raise
        live.turn.set_result(turn)
        turn.add_done_callback(partial(self._dropped if here else self._came_back, job.id, dataset))
        self._beat()
        return job

    def cancel(self, id_: str, *, by: str) -> Job:
        """End a question that waits, uncharged; tell one that runs to stop."""
        job = self._jobs.cancel(id_, by=by)
        self._stop(id_)
        return job

    def ahead(self, job: Job) -> int | None:
        """Return how many of the same person's questions wait before one that waits here; None if it does not."""
        with self._lock:
            live = self._live.get(job.id)
        if job.status != "waiting" or live is None or not live.turn.done():
            return None
        return self._executor.ahead(live.person, live.turn.result())

    def waits_for(self, job: Job) -> waiting.WaitsFor | None:
        """Return what a question waits for that runs here; None if nothing is known of it."""
        with self._lock:
            live = self._live.get(job.id)
        return live.waits[0] if live is not None and job.status == "running" else None

    def close(self) -> None:
        """Stop looking; call it once the queue is closed."""
        self._ending.set()
        if self._beating is not None:
            self._beating.join()

    # ---- A question's turn ----

    def run_at(self, id_: str, wanted: Wanted, pace: Pace) -> bool | None:
        """Ask a queued question in this thread and at a pace; return whether it was charged, None if nobody knows.

        It runs to its end though it be cancelled meanwhile, as a moment at which it stopped would tell how far it was.

        Raises:
            TooBusy: If it is to wait again.
        """
        try:
            if not self._jobs.begin(id_):
                return False
            served = self._datasets.visible(wanted.caller, wanted.dataset)
            ask = Ask(caller=wanted.caller, served=served, body=wanted.body, key=wanted.key, pace=pace)
            return self._ask(id_, self._of_job(ask, id_))
        except TooBusy:
            raise
        except LapwingError as error:
            return self._end(id_, "failed", problem_of(error), charged=False)

    def _of_job(self, ask: Ask, id_: str) -> Ask:
        """Return what is asked as the queued question that it is, which takes the answer."""
        return replace(ask, job=id_, claim=lambda *kept: done(id_, *kept))

    def _run(self, id_: str, ask: Ask, live: _Live) -> None:
        try:
            if self._jobs.begin(id_):
                with live.switch.heard(), waiting.heard(live.hear):
                    self._ask(id_, ask)
        except Fault as fault:  # of the store: its turn came, and that could not be written down
            self._end(id_, "failed", problem_of(fault), charged=False)
        finally:
            self._leave(id_)

    def _ask(self, id_: str, ask: Ask) -> bool | None:
        """Ask, and write down what came of it; return whether it was charged, None if nobody knows."""
        try:
            self._require_still(ask.caller, ask.served)
            (record,) = self._executor.answered(ask)
            if not self._jobs.settle(id_, record.id):  # known before, by its key: free
                raise Interrupted(charged=False)
            self._executor.count(ask.served.name, outcome_of([record]))
            return not record.document["stored"]
        except (NotAuthorised, NotFound) as refused:
            self._executor.count(ask.served.name, refused.code)
            return self._end(id_, "failed", problem_of(refused), charged=False)
        except RepeatedProblem as repeated:
            self._executor.count(ask.served.name, REPEATED)
            return self._end(id_, "failed", repeated.document, charged=True)
        except TooBusy:
            self._jobs.step_back(id_)
            raise
        except Interrupted as stopped:
            self._executor.count(ask.served.name, stopped.code)
            return self._end(id_, "cancelled", problem_of(stopped), charged=stopped.charged)
        except LapwingError as error:
            self._executor.count(ask.served.name, error.code)
            return self._end(id_, "failed", problem_of(error), charged=was_charged(error))
        except BaseException as error:
            log("bug", kind=type(error).__name__, place=place_of(error))
            return self._end(id_, "failed", internal(), charged=None)

    def _require_still(self, caller: Caller, served: ServedDataset) -> None:
        """Refuse what its asker may no longer ask: since it was let in, much may have changed.

        Raises:
            NotAuthorised: If who asks may not do this.
            NotFound: If there is no such object for who asks.
        """
        person = self._people.named(caller.name)
        now = replace(caller, role=person.role, everywhere=None, datasets=tuple(person.datasets.items()))
        now = now.at(served.name)
        gone = self._people.is_revoked(caller.token) or not self._people.is_let_in(caller.name)
        if gone or "ask" not in RIGHTS_OF[now.role]:
            raise NotAuthorised("The person who sent this query may no longer run queries. Nothing was charged.")
        self._datasets.visible(now, served.name)

    def _dropped(self, id_: str, _dataset: str, turn: Future[None]) -> None:
        """Say of a question that the queue dropped that it is lost, unless it was cancelled."""
        if turn.cancelled():
            self._end(id_, "failed", problem_of(lost("waiting")), charged=False)
            self._leave(id_)

    def _came_back(self, id_: str, dataset: str, turn: Future[None]) -> None:
        """Forget a question that was asked elsewhere; say what became of it if nobody there could."""
        self._dropped(id_, dataset, turn)
        error = None if turn.cancelled() else turn.exception()
        if isinstance(error, LapwingError):
            self._executor.count(dataset, error.code)
            self._end(id_, "failed", problem_of(error), charged=was_charged(error))
        self._leave(id_)

    def _end(self, id_: str, status: Status, problem: Problem, *, charged: bool | None) -> bool | None:
        """Say that a question ended without an answer: now, or as soon as the store can be reached.

        Returns:
            Whether it was charged.
        """
        say = partial(self._jobs.ended, id_, status, problem, charged=charged)
        try:
            say()
        except Fault:
            with self._lock:
                self._unsaid[id_] = say
        return charged

    def _leave(self, id_: str) -> None:
        with self._lock:
            self._live.pop(id_, None)

    # ---- Being told to stop ----

    def _stop(self, id_: str) -> None:
        with self._lock:
            live = self._live.get(id_)
        if live is None:
            return
        live.switch.press()
        if live.turn.done():
            live.turn.result().cancel()  # if it waits

    def _beat(self) -> None:
        """Begin to look what is to stop, if nobody does."""
        with self._lock:
            if self._beating is None:
                self._beating = threading.Thread(target=self._look, name="queue", daemon=True)
                self._beating.start()

    def _look(self) -> None:
        while not self._ending.wait(BEAT):
            with self._lock:
                here, unsaid = list(self._live), dict(self._unsaid)
            self._say(unsaid)
            if here:
                self._stop_those_to_stop(here)

    def _say(self, unsaid: Mapping[str, Callable[[], None]]) -> None:
        """Write down what could not be written down when it happened."""
        for id_, say in unsaid.items():
            try:
                say()
            except Fault as fault:
                log("fault", code=fault.code)
                return
            with self._lock:
                self._unsaid.pop(id_, None)

    def _stop_those_to_stop(self, here: Sequence[str]) -> None:
        try:
            going = self._jobs.beat()
        except Fault as fault:
            log("fault", code=fault.code)
            return
        for id_ in here:
            if id_ not in going:
                self._stop(id_)
