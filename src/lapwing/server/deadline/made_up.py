"""A service of its own over made-up rows: what questions take is measured on it, and never on what a real one took.

Its people, policies, ledger and answers are files in a folder that goes with it, and its questions are asked of
`QuestionExecutor.answered`, as those of the question process are. So what is measured is all that a question takes
there: planning, ledger, engine, noise, document, and what is kept.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Final, final

from lapwing.catalog.model import Catalog
from lapwing.opening import open_session
from lapwing.query.plan.plan import Plan
from lapwing.server.access import DatasetAccess
from lapwing.server.bodies import QueryBody
from lapwing.server.deadline.handed_plan import hand_over, take_over
from lapwing.server.execution import Ask
from lapwing.server.people import RIGHTS_OF, Caller
from lapwing.server.service import Service, ServiceSettings
from lapwing.session import Session

NAME: Final = "speed"
FRONT: Final = "front"
"""The name for which plans are made that are handed over."""
EPSILON: Final = 1


@final
class MadeUpService:
    """A service of one data set, and somebody who may ask it."""

    def __init__(self, service: Service) -> None:
        self._service = service
        (self._served,) = service.datasets.everything()
        service.people.add(NAME, "analyst", None, by=NAME)
        access = DatasetAccess(self._served, service.policies, service.default_costs, NAME)
        access.set_policy("share", None, Fraction(0))
        access.grant(NAME, None, trusted_with_time=True)
        self._caller = Caller(name=NAME, role="analyst", rights=RIGHTS_OF["analyst"], token="")

    @property
    def session(self) -> Session:
        """The session of the data set, on behalf of nobody."""
        return self._served.session

    def plans(self, text: str, delta: float | None = None) -> tuple[Plan, ...]:
        """Return what would be done for a question."""
        session = self._served.for_caller(self._caller, self._service.policies)
        return QueryBody(sql=text, epsilon=EPSILON, delta=delta).plans(session)

    def ask(self, text: str, delta: float | None = None) -> None:
        """Ask a question, which is charged and kept unless it was asked before."""
        self.planned(text, delta)()

    def planned(self, text: str, delta: float | None = None) -> Callable[[], None]:
        """Plan a question as a front does; return what then asks it as the question process does, once."""
        body = QueryBody(sql=text, epsilon=EPSILON, delta=delta)
        session = self.session
        body.plans(session.acting_for(FRONT))  # for somebody else, so that it is not remembered for who asks
        plan = hand_over(session, FRONT, body)

        def ask() -> None:
            if plan is not None:
                take_over(plan, session, self._caller.name, body)
            self._service.executor.answered(Ask(caller=self._caller, served=self._served, body=body))

        return ask

    def seconds(self, text: str, delta: float | None = None) -> float:
        """Return the seconds of a processor that a question takes, with all that belongs to it."""
        ask = self.planned(text, delta)
        begun = time.process_time()
        ask()
        return time.process_time() - begun


@contextmanager
def made_up_service(catalog: Catalog) -> Iterator[MadeUpService]:
    """Serve a catalog, with people and answers in its folder, for as long as the block takes."""
    session = open_session(catalog)
    service = Service(catalog.folder / "people.db", [session], ServiceSettings())
    try:
        yield MadeUpService(service)
    finally:
        service.close()
