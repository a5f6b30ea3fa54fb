"""Describe the state of a data set: whether it is open to queries, why not, and what this reader can do.

The state follows from the budget and the readiness that the service shows this reader. So it follows from the ledger,
the policy and the digests of the files. It reads no row.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, final

from lapwing.server.console.inside import Api
from lapwing.server.console.templates import segment
from lapwing.server.people import Caller

Tone = Literal["good", "warn", "bad"]
STAYS: Final = "Results that were bought before stay free."
LATE: Final = "Results left too late, too often. Only people who may see query times can run queries now."
WORDS: Final[Mapping[str, tuple[str, Tone, str, str]]] = {
    "closed": ("closed permanently", "bad", "A curator closed this data set permanently.", ""),
    "unreadable": ("not available", "bad", "Lapwing cannot read the ledger now. Try again later.", "operator"),
    "unwritable": ("not available", "bad", "Lapwing cannot write to the ledger now. Try again later.", "operator"),
    "engine": ("not available", "bad", "The process that runs queries is starting again. Wait some seconds.", ""),
    "stopped": ("stopped by the curator", "warn", "A curator stopped this data set.", "access"),
    "faults": ("stopped after failures", "bad", "Three queries failed after Lapwing charged them.", "access"),
    "late": ("stopped after late results", "bad", LATE, "access"),
    "changed": ("data changed", "bad", "The data have changed since the current version.", "versions"),
    "public_changed": ("public table changed", "bad", "The file of a public table is not the one that was read.", ""),
    "spent": ("budget spent", "bad", "The rest of the budget is too small for a query.", "cap"),
    "share_spent": ("your limit is spent", "bad", "The rest of your limit is too small for a query.", ""),
}
"""The name and tone of each state, what happened, and the page where a curator can act."""
ACTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "access": ("Lapwing refuses new queries until you resume them on the page Access.", "Open Access"),
    "versions": ("Lapwing refuses queries on changed tables until you accept the new data.", "Review current data"),
    "cap": ("A larger budget weakens the promise to everyone in the data.", "Raise or close budget"),
}
OF_CURATORS: Final[Mapping[str, str]] = {
    "public_changed": "Put the file back, or restart the service to read the new one. Until then, queries are refused.",
}
OF_ANALYSTS: Final[Mapping[str, str]] = {
    "stopped": "Ask a curator when it opens again.",
    "faults": "A curator has to review them first.",
    "late": "Ask a curator to review them.",
    "changed": "Lapwing refuses queries on changed tables until a curator accepts the new data.",
    "public_changed": "Lapwing refuses queries on this table. Ask a curator about it.",
    "spent": "Only a curator can raise the budget.",
    "share_spent": "A curator can give you a larger limit.",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetState:
    """The state of a data set for one reader.

    Args:
        code: A key of `WORDS`, or None if the data set is open to queries.
        text: The event and the remedy, empty if the data set is open.
        reason: The words of the curator who stopped it.
        action: The text and the address of a link to the page where the reader can act.
    """

    code: str | None
    name: str
    tone: Tone
    text: str = ""
    reason: str = ""
    action: tuple[str, str] | None = None
    faults: int = 0


OPEN: Final = DatasetState(code=None, name="open to queries", tone="good")


async def states(api: Api, caller: Caller, budgets: Mapping[str, Any]) -> dict[str, DatasetState]:
    """Return the state of each data set for a caller.

    Args:
        budgets: Documents of the service, by name of the data set.
    """
    reasons = {one["name"]: one["reason"] for one in await api.get("readiness")}
    return {name: state_of(name, budget, reasons.get(name), caller.at(name)) for name, budget in budgets.items()}


async def state_at(api: Api, caller: Caller, dataset: str, budget: Mapping[str, Any]) -> DatasetState:
    """Return the state of one data set for a caller."""
    return (await states(api, caller, {dataset: budget}))[dataset]


def state_of(dataset: str, budget: Mapping[str, Any], told: str | None, caller: Caller) -> DatasetState:
    """Return the state of a data set.

    Args:
        told: The reason in the readiness of the service. The budget is newer and comes first.
    """
    code = _code(budget, told)
    if code == "share_spent" and not caller.may("ask"):  # auditors have no limit of their own to spend
        code = None
    if code is None:
        return DatasetState(code=None, name=OPEN.name, tone=OPEN.tone, faults=budget["faults"])
    name, tone, what, place = WORDS[code]
    action = None
    if caller.may("admin") and place in ACTIONS:
        advice, link = ACTIONS[place]
        action = link, f"/console/data/{segment(dataset)}/{place}"
    else:
        if code == "share_spent":
            action = "Ask for a larger limit", f"/console/requests?dataset={segment(dataset)}#new"
        advice = (OF_CURATORS if caller.may("admin") else OF_ANALYSTS).get(code) or OF_ANALYSTS.get(code, "")
    text = " ".join(part for part in (what, advice, STAYS) if part)
    reason = (budget.get("stop_reason") or "") if code == "stopped" else ""
    return DatasetState(
        code=code, name=name, tone=tone, text=text, reason=reason, action=action, faults=budget["faults"]
    )


def left_for(budget: Mapping[str, Any]) -> float:
    """Return the share of the whole budget that the caller can still spend, within their share and their team's share.

    >>> one = {"amount": "1"}
    >>> left_for({"total": {"amount": "4"}, "remaining": {"amount": "2"}, "allowances": [{"remaining": one}]})
    0.25
    """
    total = float(budget["total"]["amount"])
    amounts = [float(one["remaining"]["amount"]) for one in (budget, *budget["allowances"])]
    return min(amounts) / total if total else 0.0


def _code(budget: Mapping[str, Any], told: str | None) -> str | None:
    standing = {"closed": budget["closed"], "stopped": budget["stopped_by_curator"], "faults": budget["stopped"]}
    newest = next((code for code, holds in standing.items() if holds), None)
    if newest is not None:
        return newest
    if told in ("unreadable", "unwritable", "engine", "late", "changed", "public_changed"):
        return told
    least = Fraction(budget.get("least", "0")) * Fraction(budget["total"]["amount"])
    if _holds_nothing(budget, least):
        return "spent"
    return "share_spent" if any(_holds_nothing(one, least) for one in budget["allowances"]) else None


def _holds_nothing(limit: Mapping[str, Any], least: Fraction) -> bool:
    """Tell whether no query fits any more: the rest is zero, or less than the minimum cost."""
    left = Fraction(limit["remaining"]["amount"])
    return left <= 0 or left < least
