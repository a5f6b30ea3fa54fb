"""Show monitors with their state, and advice for this reader.

All of it is in the documents of the service: ticks that were released, the schedule and the clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from lapwing.server.console.visits import PageRequest
from lapwing.server.dismissed_monitors import ENDED

WORDS: Final[Mapping[str, tuple[str, str, str, str]]] = {
    "over": (
        "finished",
        "",
        "It has released all of its ticks, and will release no more.",
        "Make a new one with lapwing monitor create to go on. It has its own cost.",
    ),
    "stopped": ("stopped", "bad", "A curator stopped it for ever.", "Make a new one with lapwing monitor create."),
    "waiting": ("waiting", "warn", "It waits for its source.", "Look at the source and at lapwing monitor run."),
    "behind": ("behind", "warn", "It has not released all ticks that are due.", "Start lapwing monitor run."),
    "not_started": ("not started", "", "Its first tick is not due yet.", ""),
    "ahead": ("live", "good", "", ""),
    "on_time": ("live", "good", "", ""),
}
"""Of each status: its name and tone, what happened, and what a curator can do."""
TROUBLED: Final = ("stopped", "waiting", "behind")
SHOWN: Final = ("monitor", "question")
"""Facts that a page shows elsewhere."""
ASK: Final = "Ask a curator about it."


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorShown:
    """A monitor with the state that pages show; `text` has the reason and the advice."""

    name: str
    code: str
    state: str
    tone: str
    text: str
    question: str
    progress: str
    facts: tuple[tuple[str, str], ...]
    dismissed: bool = False

    @property
    def ended(self) -> bool:
        """Whether it releases nothing more, so that a curator may dismiss it."""
        return self.code in ENDED


def monitor_shown(document: Mapping[str, Any], *, curates: bool) -> MonitorShown:
    """Return a monitor of the service as pages show it."""
    state, tone, what, advice = WORDS[document["status"]]
    advice = advice if curates else ASK if document["status"] in (*ENDED, *TROUBLED) else ""
    earlier = "Its results stay free." if document["status"] in ENDED else ""
    released, ticks = f"{document['released']:,}", f"{document['ticks']:,}"
    return MonitorShown(
        name=document["name"],
        code=document["status"],
        state=state,
        tone=tone,
        text=" ".join(part for part in (what, earlier, advice) if part),
        question=document["question"],
        progress=f"{released} of {ticks} ticks",
        facts=tuple((fact["about"], fact["fact"]) for fact in document["facts"] if fact["about"] not in SHOWN),
        dismissed=document.get("dismissed", False),
    )


async def monitors_of(visit: PageRequest, dataset: str) -> list[MonitorShown]:
    """Return the monitors of a data set that nobody dismissed."""
    return [one for one in await all_monitors_of(visit, dataset) if not one.dismissed]


async def all_monitors_of(visit: PageRequest, dataset: str) -> list[MonitorShown]:
    """Return the monitors of a data set, dismissed ones too."""
    curates = visit.caller.at(dataset).may("admin")
    return [monitor_shown(one, curates=curates) for one in await visit.api.get("datasets", dataset, "monitors")]
