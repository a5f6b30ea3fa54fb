"""What a larger budget would promise, as a JSON document, and read back."""

import math
from collections.abc import Mapping
from typing import Any

from lapwing.guarantee.numbers import Towards
from lapwing.guarantee.raised import FAMILY, Promise, Raise
from lapwing.privacy.amounts import read, written
from lapwing.privacy.measures import from_record
from lapwing.privacy.odometers import Reading


def raise_document(seen: Raise) -> dict[str, Any]:
    """Return a budget before and after it is raised."""
    return {"before": _promise_document(seen.before), "after": _promise_document(seen.after), "done": seen.done}


def raise_of(document: Mapping[str, Any]) -> Raise:
    """Read what `raise_document` wrote."""
    return Raise(before=_promise_of(document["before"]), after=_promise_of(document["after"]), done=document["done"])


def _promise_document(promise: Promise) -> dict[str, Any]:
    """Return what a budget promises; `raised` is what holds whatever it was raised for, the rest if it was settled."""
    family, raised = promise.family, promise.raised
    return {
        "epsilon": written(promise.epsilon),
        "delta": written(promise.delta),
        "total": promise.total.to_record(),
        "odds": promise.odds if math.isfinite(promise.odds) else None,
        "four_together": None
        if family.epsilon is None
        else {"epsilon": family.epsilon, "delta": None if family.delta is None else written(family.delta)},
        "raised": None
        if raised is None
        else {"epsilon": raised.epsilon, "delta": written(raised.delta), "holds": raised.holds},
    }


def _promise_of(document: Mapping[str, Any]) -> Promise:
    odds, four, raised = document["odds"], document["four_together"], document["raised"]
    return Promise(
        epsilon=read(document["epsilon"], "epsilon"),
        delta=read(document["delta"], "delta"),
        total=from_record(document["total"]),
        odds=math.inf if odds is None else odds,
        family=_family_of(four),
        raised=None
        if raised is None
        else Reading(epsilon=raised["epsilon"], delta=read(raised["delta"], "delta"), holds=raised["holds"]),
    )


def _family_of(document: Mapping[str, Any] | None) -> Towards:
    if document is None:
        return Towards(people=FAMILY, epsilon=None, delta=None)
    delta = document["delta"]
    return Towards(people=FAMILY, epsilon=document["epsilon"], delta=None if delta is None else read(delta, "delta"))
