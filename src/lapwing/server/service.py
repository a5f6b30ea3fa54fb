"""What a service is made of: its file, its people and policies, its data sets, and its settings."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from lapwing.server.answers import Answers
from lapwing.server.asking import Asking
from lapwing.server.callers import Callers
from lapwing.server.datasets import Datasets
from lapwing.server.journal import Metrics
from lapwing.server.opening import USUAL, open_store, people_of
from lapwing.server.pending import PendingQuestions
from lapwing.server.people import People
from lapwing.server.policies import Policies
from lapwing.server.queued import Queued
from lapwing.server.registering import Registering, newcomers
from lapwing.server.settling import Settling
from lapwing.session import Session


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Limits of a service.

    Args: most_bytes: of a request; request_seconds: until it has arrived; answer_seconds: until a request stops waiting
        for its answer; threads: questions at once; rate: requests a second of one person, strangers: of an address
            without a valid token, logins among them; 0 for no limit. workers: processes among which the limit of
            strangers is divided, so that more of them make no more guesses. folders: in which data sets may be
            registered (`server.registering`).
    """

    most_bytes: int = 1 << 20
    request_seconds: float = 10.0
    answer_seconds: float = 120.0
    threads: int = 4
    rate: float = 50.0
    strangers: float = 1.0
    workers: int = 1
    folders: tuple[Path, ...] = ()


@final
class Service:
    """All that the routes need.

    Args: people: where its store is (`server.opening`), the usual place unless given; counts: a folder in which the
        processes of a service keep what they counted, if there are several.
    """

    def __init__(
        self, people: str | Path | None, sessions: Sequence[Session], settings: Settings, counts: Path | None = None
    ) -> None:
        self.settings = settings
        registered = newcomers(settings.folders)  # folders that are not there are said before anything is made
        usual = people_of(sessions[0].catalog) if sessions else settings.folders[0] / USUAL
        self.store = open_store(people or usual)
        self.people = People(self.store)
        self.policies = Policies(self.store)
        self.answers = Answers(self.store)
        self.metrics = Metrics(counts)
        self.callers = Callers(self.people, settings.rate, settings.strangers, settings.workers)
        self.datasets = Datasets(sessions, self.policies, registered)
        self.registering = Registering(settings.folders, self.datasets, self.store)
        self.asking = Asking(
            self.answers,
            self.policies,
            self.metrics,
            threads=settings.threads,
            patience=settings.answer_seconds,
        )
        self.pending = PendingQuestions(self.store)
        self.queued = Queued(self.pending, self.asking, self.people, self.datasets)
        self.settling = Settling(self.datasets)

    def close(self) -> None:
        """Wait for what is under way, and close everything."""
        self.asking.close()
        self.queued.close()
        self.settling.close()
        self.datasets.close()
        self.store.close()
