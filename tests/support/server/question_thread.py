"""A question process that is a thread of this one, for a service that answers at deadlines."""

import threading
import time
from collections.abc import Callable

from lapwing.errors import EngineFault
from lapwing.server.deadline.cost import Speed
from lapwing.server.deadline.pace import TOO_BUSY, TooBusy
from lapwing.server.deadline.process import Heard, Order, OrderOutcome, ProcessorShare
from lapwing.server.execution import Ask
from lapwing.server.service import Service


class QuestionThread:
    """Answers what is sent to it, or does what a test says."""

    share = ProcessorShare(None, 1)
    speed = Speed(question=0.001, nanosecond=1e-9, row=1e-9, number=1e-9)
    is_up = True
    service: Service
    told: Callable[[Heard], None]
    died: Callable[[], None]

    def __init__(self) -> None:
        self.reactions: list[Callable[[Order], OrderOutcome | None]] = []

    def is_indexed(self, _dataset: str) -> bool:
        return True

    def start(self, told: Callable[[Heard], None], died: Callable[[], None]) -> None:
        self.told, self.died = told, died

    def send(self, sent: object) -> bool:
        if isinstance(sent, Order):
            threading.Thread(target=self._react, args=(sent,), daemon=True).start()
        return True

    def close(self) -> None:
        pass

    def _react(self, order: Order) -> None:
        outcome = (self.reactions.pop(0) if self.reactions else self.answer)(order)
        if outcome is not None:
            self.told(outcome)

    def answer(self, order: Order) -> OrderOutcome:
        wanted = order.wanted
        served = self.service.datasets.visible(wanted.caller, wanted.dataset)
        ask = Ask(caller=wanted.caller, served=served, body=wanted.body, key=wanted.key)
        records = self.service.executor.answered(ask)
        return OrderOutcome(number=order.number, records=records, counted=None if wanted.job is None else "charged")

    def too_busy(self, order: Order) -> OrderOutcome:
        return OrderOutcome(number=order.number, error=TooBusy(TOO_BUSY), at_once=True)

    def be_late(self, order: Order) -> OrderOutcome:
        time.sleep(0.4)
        return self.answer(order)

    def fail(self, order: Order) -> OrderOutcome:
        return OrderOutcome(number=order.number, error=EngineFault("it failed"), engine="stopped")

    def die(self, _order: Order) -> None:
        self.died()
