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
from lapwing.server.people import People
from lapwing.server.policies import Policies
from lapwing.server.store import Store
from lapwing.session import Session


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Limits of a service.

    Args: most_bytes: of a request; request_seconds: until it has arrived; answer_seconds: until a request stops waiting
        for its answer; threads: questions at once; rate: requests a second of one person, strangers: of an address
            without a valid token, logins among them; 0 for no limit.
    """

    most_bytes: int = 1 << 20
    request_seconds: float = 10.0
    answer_seconds: float = 120.0
    threads: int = 4
    rate: float = 50.0
    strangers: float = 1.0


@final
class Service:
    """All that the routes need."""

    def __init__(self, people_file: Path, sessions: Sequence[Session], settings: Settings) -> None:
        self.settings = settings
        self.store = Store(people_file)
        self.people = People(self.store)
        self.policies = Policies(self.store)
        self.answers = Answers(self.store)
        self.metrics = Metrics()
        self.callers = Callers(self.people, settings.rate, settings.strangers)
        self.datasets = Datasets(sessions, self.policies)
        self.asking = Asking(
            self.answers,
            self.policies,
            self.metrics,
            threads=settings.threads,
            patience=settings.answer_seconds,
        )

    def close(self) -> None:
        """Wait for what is under way, and close everything."""
        self.asking.close()
        self.datasets.close()
        self.store.close()
