"""What a service is made of: its store, its people and policies, its data sets, and its settings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

from lapwing.errors import DataFault, EngineFault, EntropyFault, Fault, LedgerFault, ServiceFault
from lapwing.server.access_requests import AccessRequests
from lapwing.server.answer_store import AnswerStore
from lapwing.server.audit_mark import AuditMark, base_of
from lapwing.server.authentication import Callers
from lapwing.server.catalog_editing import CatalogEditor
from lapwing.server.catalog_versions import CatalogVersions
from lapwing.server.data_watch import DataWatch
from lapwing.server.datasets import Datasets
from lapwing.server.deadline.admission import Admission
from lapwing.server.deadline.process import QuestionProcess
from lapwing.server.deadline.rehearsal import Rehearsals
from lapwing.server.default_costs import DefaultCosts
from lapwing.server.execution import QuestionExecutor
from lapwing.server.expiring import ExpiringAccounts
from lapwing.server.failed_logins import FailedLogins
from lapwing.server.gauges import Gauges
from lapwing.server.holdout_store import HoldoutStore
from lapwing.server.invites import Invites
from lapwing.server.job_runner import JobRunner
from lapwing.server.jobs import JobStore
from lapwing.server.log import log
from lapwing.server.metrics import Metrics
from lapwing.server.openid.settings import OpenIdSettings
from lapwing.server.people import People
from lapwing.server.policies import Policies
from lapwing.server.preparation import DatasetPreparation
from lapwing.server.published_pages import PublishedPages
from lapwing.server.readiness import Readiness
from lapwing.server.refreshing import SourceRefresher
from lapwing.server.registration import DatasetRegistry, registered_sessions
from lapwing.server.release_store import ReleaseStore
from lapwing.server.retention import Retention
from lapwing.server.rounds import Rounds
from lapwing.server.saved import SavedItems
from lapwing.server.store_places import USUAL, open_store, people_of
from lapwing.server.uploads.limits import UploadLimits
from lapwing.server.uploads.uploads import Uploads
from lapwing.server.webhook import Webhook
from lapwing.session import Session

FAULTS: Final = frozenset(
    fault.code for fault in (Fault, DataFault, EngineFault, EntropyFault, LedgerFault, ServiceFault)
)
"""Outcomes of queries after which it is looked at once whether the service is ready."""
SOON, LATER = 1.0, 15.0
"""Seconds between two looks of the settler: while all is well, and at most."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """Limits of a service.

    Args:
        most_bytes: Of a request.
        request_seconds: Until it has arrived.
        answer_seconds: Until a request stops waiting for its answer.
        threads: Questions at once.
        rate: Requests a second of one person, strangers: of an address without a valid token, logins among them; 0 for
            no limit.
        workers: Processes among which the limit of strangers is divided, so that more of them make no more guesses.
        keep_answers: Days for which answers are kept, None for ever.
        padded: Whether people who are not trusted with time are answered at deadlines (`server.deadline`).
        folders: In which data sets may be registered (`server.registration`).
        refresh: Seconds after which what comes from a source is fetched anew, never if None.
        openid: An identity provider by which people may sign in to the console.
        webhook: Where alarms are sent (`server.webhook`).
        parallel: Queries of one person under way at a time; 0 for no limit.
        tour: A name of this service, if the console shows a tour: browsers remember by it who has seen the tour.
        uploads: Limits of uploads of data.
        hosts: Names of hosts that requests may be for; any if there are none.
    """

    most_bytes: int = 1 << 20
    request_seconds: float = 10.0
    answer_seconds: float = 120.0
    threads: int = 4
    rate: float = 50.0
    strangers: float = 1.0
    workers: int = 1
    keep_answers: int | None = None
    padded: bool = False
    folders: tuple[Path, ...] = ()
    refresh: float | None = None
    openid: OpenIdSettings | None = None
    webhook: str | None = None
    parallel: int = 64
    tour: str | None = None
    uploads: UploadLimits = field(default_factory=UploadLimits)
    hosts: frozenset[str] = frozenset()


@final
class Service:
    """All that the routes need.

    Args:
        people: Where its store is, as `open_store` takes it, the usual place unless given.
        questions: The process that asks those whose answers leave at deadlines.
        count: Hears of each question's data set and outcome, in such a process itself, instead of the metrics.
    """

    def __init__(
        self,
        people: str | Path | None,
        sessions: Sequence[Session],
        settings: ServiceSettings,
        *,
        questions: QuestionProcess | None = None,
        count: Callable[[str, str], None] | None = None,
    ) -> None:
        self.settings = settings
        registered = registered_sessions(settings.folders)  # a missing folder is refused before anything is made
        usual = people_of(sessions[0].catalog) if sessions else settings.folders[0] / USUAL
        self.store = open_store(people or usual)
        folder = sessions[0].catalog.folder if sessions else settings.folders[0]
        self.audit_mark = AuditMark(self.store, base_of(people or usual, folder))
        self.audit_mark.look()
        self.people = People(self.store)
        self.invites = Invites(self.store)
        self.policies = Policies(self.store)
        self.access_requests = AccessRequests(self.store)
        self.default_costs = DefaultCosts(self.store)
        self.answers = AnswerStore(self.store, settings.keep_answers)
        self.holdouts = HoldoutStore(self.store, lambda: self.answers.kept_since)
        self.saved, self.published = SavedItems(self.store), PublishedPages(self.store)
        self.releases = ReleaseStore(self.store, lambda: self.answers.kept_since)
        self.metrics = Metrics(answering=count is None)
        counted = count or self._count
        self.callers = Callers(self.people, settings.rate, settings.strangers, settings.workers)
        self.failed_logins = FailedLogins(self.store, self.metrics, settings.workers)
        self.catalog_versions = CatalogVersions(self.store)
        self.datasets = Datasets(sessions, self.policies, registered, self.catalog_versions)
        self.registry = DatasetRegistry(settings.folders, self.datasets, self.store)
        self.preparation = DatasetPreparation(self.registry, self.store)
        self.uploads = Uploads(self.registry, self.store, settings.uploads, settings.workers)
        self.catalogs = CatalogEditor(
            self.registry, self.datasets, self.catalog_versions, self.store, padded=questions is not None
        )
        admission = (
            None
            if questions is None
            else Admission(
                questions,
                counted,
                lambda name, tick, person: self.datasets.session_of(name).note_late(tick, person),
                lambda name: self.datasets.session_of(name).budget(history=False).late_at,
                self.metrics,
            )
        )
        self.executor = QuestionExecutor(
            self.answers,
            self.policies,
            counted,
            parallel=settings.parallel,
            threads=settings.threads,
            patience=settings.answer_seconds,
            admission=admission,
            rehearsals=None if admission is None else Rehearsals(self.datasets, lambda: admission.is_quiet),
        )
        self.jobs = JobStore(self.store)
        self.job_runner = JobRunner(self.jobs, self.executor, self.people, self.datasets)
        self.settler = LedgerSettler(self.datasets)
        self.refresher = SourceRefresher(self.datasets, settings.refresh)
        self.data_watch = DataWatch(self.datasets)
        self.readiness = Readiness(
            self.store,
            self.datasets,
            self.policies,
            is_up=self.executor.is_up,
            timed=self.executor.holds_answers,
            change=self.data_watch.change,
        )
        self.retention = Retention(self.answers, self.jobs, self.holdouts, self.releases, self.access_requests)
        tasks = [self.settler.rounds, self.audit_mark.rounds, self.refresher.rounds, self.retention.rounds]
        tasks += [self.data_watch.rounds, *self.executor.rounds]
        shown, ending = (self.metrics, self.datasets, self.executor), ExpiringAccounts(self.store)
        self.gauges = Gauges(*shown, readiness=self.readiness, tasks=tasks, accounts=ending)
        self.webhook = Webhook(settings.webhook)
        if count is not None:  # in a process that asks questions nothing else is started
            self.webhook.start()

    def _count(self, dataset: str, outcome: str) -> None:
        """Count what came of a question; after a fault, look at once how its data set stands."""
        self.metrics.count_question(dataset, outcome)
        if outcome in FAULTS and self.readiness.suspect():
            self.gauges.rounds.hurry()

    def start(self) -> None:
        """Begin what a service does by itself, beside what it is asked."""
        self.webhook.start()
        for looking in (self.settler, self.gauges, self.audit_mark, self.data_watch):
            looking.rounds.start()
        self.retention.start()
        self.refresher.start()
        self.uploads.remove_stale()

    def close(self) -> None:
        """Wait for what is under way, and close everything."""
        self.executor.close()
        self.job_runner.close()
        self.refresher.rounds.close()
        self.settler.rounds.close()
        self.data_watch.rounds.close()
        self.gauges.rounds.close()
        self.audit_mark.close()
        self.retention.rounds.close()
        self.webhook.close()
        self.datasets.close()
        self.store.close()


@final
class LedgerSettler:
    """A thread that lets the ledgers of a service write what they could not write when it happened.

    A question may end while its ledger cannot be reached, and a commit may leave open whether a charge was made
    (`ledger.settling`). The next charge of the same process writes that down. But a process may be idle, and meanwhile
    all others who ask the same question wait. So this thread looks every second, which costs no request to the ledger
    unless something is owed; while writing fails it pauses longer and longer, so as not to hinder questions.
    """

    def __init__(self, datasets: Datasets) -> None:
        self._datasets = datasets
        self._owing: set[str] = set()
        self._pause = SOON
        self.rounds = Rounds("settling", SOON, self._round)

    def look(self) -> None:
        """Write what is owed, where that is possible, and log where it begins and ends to be impossible."""
        for served in self._datasets.everything():
            settled = served.session.settle()
            if settled == (served.name in self._owing):
                log("ledger settled" if settled else "ledger not settled", dataset=served.name)
                self._owing ^= {served.name}

    def _round(self) -> float:
        self.look()
        self._pause = min(2 * self._pause, LATER) if self._owing else SOON
        return self._pause
