"""Answers are kept for as long as the operator says, and requests for access for a year after they were decided.

A thread drops what is older, some at a time. An answer counts as dropped from the moment at which it is too old
(`answer_store`), so nobody depends on when this thread comes round. It only removes what nobody can open any more,
soon after the start and then every hour.
"""

from typing import Final, final

from lapwing.errors import Fault
from lapwing.server.access_requests import AccessRequests
from lapwing.server.answer_store import AnswerStore
from lapwing.server.holdout_store import HoldoutStore
from lapwing.server.jobs import JobStore
from lapwing.server.log import log
from lapwing.server.release_store import ReleaseStore
from lapwing.server.rounds import Rounds

PAUSE: Final = 3600.0
"""Seconds between two looks."""
BREATH: Final = 0.2
"""Seconds between two transactions, in which others write."""


@final
class Retention:
    """A thread that removes answers, ended questions, releases, and decided requests that are kept no longer.

    Several processes of a service may have one each. Answers may be without a limit (`AnswerStore`).
    """

    def __init__(
        self,
        answers: AnswerStore,
        jobs: JobStore,
        holdouts: HoldoutStore,
        releases: ReleaseStore,
        requests: AccessRequests,
    ) -> None:
        self._answers, self._jobs, self._holdouts, self._requests = answers, jobs, holdouts, requests
        self._releases = releases
        self.rounds = Rounds("retention", BREATH, self._round)

    def start(self) -> None:
        """Begin to look."""
        self.rounds.start()

    def look(self) -> None:
        """Remove all that is too old, and log how many answers these were."""
        self._requests.drop_old()
        if not self._answers.kept_since:
            return
        answers = 0
        while dropped := self._answers.drop_old():
            answers += dropped
            if self.rounds.end_within(BREATH):
                break
        while self._jobs.drop_old(self._answers.kept_since) and not self.rounds.end_within(BREATH):
            pass
        for kept in (self._holdouts, self._releases):
            while kept.drop_old() and not self.rounds.end_within(BREATH):
                pass
        if answers:
            log("answers dropped", answers=answers)

    def _round(self) -> float:
        try:
            self.look()
        except Fault as fault:
            log("fault", code=fault.code)
        return PAUSE
