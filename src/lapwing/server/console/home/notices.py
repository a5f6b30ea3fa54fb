"""List notices for curators: data sets, failures, budgets that end soon, monitors, accounts and open requests."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal, final

from lapwing.privacy.figures import clip
from lapwing.server.console.dashboards.monitors import TROUBLED, MonitorShown
from lapwing.server.console.standing import DatasetState
from lapwing.server.console.templates import percent, segment

NEARLY: Final = 0.8
"""The spent share of a budget at which a notice appears."""
SOON: Final = timedelta(days=14)
"""The time before the end of a service account at which a notice appears."""
Tone = Literal["good", "warn", "bad"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A notice about a data set or account, with a link to the page that helps."""

    code: str
    about: str
    text: str
    tone: Tone
    link: str
    action: str


def of_dataset(name: str, budget: Mapping[str, Any], state: DatasetState) -> Iterator[Notice]:
    """Yield the notices of one data set."""
    here = f"/console/data/{segment(name)}"
    if state.code is not None and state.action is not None:
        yield Notice(
            code=state.code,
            about=name,
            text=f"{state.name}.",
            tone=state.tone,
            link=state.action[1],
            action=state.action[0],
        )
    elif state.code in ("unreadable", "unwritable", "engine"):
        yield Notice(
            code=state.code, about=name, text="not available.", tone="bad", link="/console/health", action="Open Health"
        )
    elif state.code == "public_changed":
        yield Notice(code=state.code, about=name, text=f"{state.name}.", tone="bad", link=here, action="Open Tables")
    if budget["faults"] and state.code != "faults":
        text = f"{budget['faults']} charged {'query' if budget['faults'] == 1 else 'queries'} failed."
        yield Notice(code="failures", about=name, text=text, tone="warn", link=f"{here}/access#faults", action="Review")
    if NEARLY <= budget["share_spent"] < 1 and not budget["closed"]:
        text = f"{percent(budget['share_spent'])} of the budget is spent."
        yield Notice(
            code="nearly_spent", about=name, text=text, tone="warn", link=f"{here}/budget", action="Open Budget"
        )


def of_monitors(name: str, monitors: Sequence[MonitorShown]) -> Iterator[Notice]:
    """Yield a notice for each monitor that has ended, or waits for somebody."""
    for one in monitors:
        if one.ended or one.code in TROUBLED:
            yield Notice(
                code=f"monitor_{one.code}",
                about=name,
                text=f"The monitor “{clip(one.name, 60)}” is {one.state}, at {one.progress}.",
                tone="bad" if one.code == "stopped" else "warn",
                link=f"/console/data/{segment(name)}/dashboards#monitors",
                action="Open monitors",
            )


def of_accounts(accounts: Sequence[Mapping[str, Any]], now: datetime) -> Iterator[Notice]:
    """Yield a notice for each active service account that expires soon or has expired."""
    for one in accounts:
        end = datetime.fromisoformat(one["expires"])
        if one["active"] and end - now < SOON:
            ended = end <= now
            what = "expired" if ended else "expires"
            yield Notice(
                code="account_expired" if ended else "account_expires",
                about=one["name"],
                text=f"This service account {what} on {end.date()}.",
                tone="bad" if ended else "warn",
                link=f"/console/accounts/{segment(one['name'])}",
                action="Renew or disable",
            )


def of_requests(requests: Sequence[Mapping[str, Any]], person: str) -> Iterator[Notice]:
    """Yield a notice for each data set with open requests of others."""
    counts = Counter(one["dataset"] for one in requests if one["person"] != person)
    for name, count in sorted(counts.items()):
        yield Notice(
            code="requests",
            about=name,
            text=f"{count} open {'request' if count == 1 else 'requests'} for access or a larger limit.",
            tone="warn",
            link="/console/requests",
            action="Decide",
        )
