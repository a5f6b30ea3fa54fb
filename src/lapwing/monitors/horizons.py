"""What is done in each horizon of a monitor: the same, with mechanisms for its length."""

import json
from collections.abc import Mapping
from typing import final

from lapwing.monitors.mechanism_records import record_of
from lapwing.monitors.planning import MonitorPlan
from lapwing.monitors.schedule import TickSchedule
from lapwing.monitors.store import MonitorStore


def records_of(plan: MonitorPlan) -> str:
    """Return the mechanisms of a plan as text."""
    return json.dumps([record_of(stream.mechanism) for stream in plan.streams])


@final
class Horizons:
    """The plans of a monitor's horizons; each has the mechanisms with which it began.

    Args:
        first: The plan of the first one.
    """

    def __init__(self, first: MonitorPlan, schedule: TickSchedule, store: MonitorStore) -> None:
        self._schedule, self._store = schedule, store
        self._plans = {1: first}

    def plan(self, horizon: int) -> MonitorPlan:
        """Return the plan of a horizon, or that which it would have if it began now."""
        if not self._schedule.doubling:
            return self._plans[1]
        if horizon in self._plans:
            return self._plans[horizon]
        facts: Mapping[str, str] = self._store.facts()
        known = facts.get(_fact(horizon))
        records = None if known is None else json.loads(known)
        plan = self._plans[1].lasting(self._schedule.length(horizon), records)
        if known is not None:
            self._plans[horizon] = plan
        return plan

    def begin(self, horizon: int) -> MonitorPlan:
        """Return the plan of a horizon that begins, and write it down, in the transaction of its first tick."""
        plan = self.plan(horizon)
        if self._schedule.doubling:
            self._store.set_fact(_fact(horizon), records_of(plan))
        return plan


def _fact(horizon: int) -> str:
    return f"mechanisms {horizon}"
