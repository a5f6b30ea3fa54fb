"""A larger budget for a ledger that has one: what may be raised, and what is true then.

The guarantee of a ledger is its cap. The curator may make the cap larger, by an entry of its own that names the old and
the new figures; nothing makes it smaller, and neither the measure, nor the neighbours, nor the privacy unit, nor
`delta_keys` can change. What is spent stays spent, and charges go on against the new cap.

Guarantee:
    Let c be the cap in force when one stops looking. On every path of questions and answers, the charges add up to at
    most c. Proof. Each charge passed the filter of the cap in force at its time, and caps only grow. ∎

What follows from this depends on who chose to raise, and why.

1. *The raise did not depend on answers*, or there is a figure c̄, fixed before the first answer, beyond which the cap
   would not have been raised whatever the answers were. Then everything is a run of a filter of cap c (or c̄), which is
   valid for questions chosen in any way, and a raise is one of these choices. So c̄ is the guarantee, as if it had been
   the cap from the start; c itself is, if the raise to it was settled in advance.
2. *The raise was made in the light of answers*, with no such figure. In a `pure` ledger nothing changes: the likelihood
   ratio of any two neighbours is at most e^c on every path, so ε = c holds for whatever was released. In `gdp` and
   `zcdp` ledgers the (ε, δ) of c is *not* proven: whoever raises only where the answers look a certain way, chooses
   among totals after the fact. What holds is wider, and `privacy.raises` has the figure and the proof.

So the page of the guarantee, and whoever raises, are shown both. Neither covers a curator who raises because of what
the data themselves show: that is a release of its own, without noise.

A lower cap would be such a choice too, and a misleading one: "stop now, and call what is spent the promise" is the very
cheat that `as_if_cap` is labelled against. What was promised at first stays the promise; to spend less than it, close
the data set, or give shares of it. So lowering is refused.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from lapwing.errors import CatalogMismatch, InvalidParameter
from lapwing.ledger.registration import Registration
from lapwing.privacy import measures
from lapwing.privacy.amounts import read, written
from lapwing.privacy.calibration import loss_for


def raised_to(was: Registration, epsilon: Fraction, delta: Fraction) -> Registration:
    """Return a registration with another budget in the same measure.

    Raises:
        InvalidParameter: For what no budget can be.
        CatalogMismatch: If the measure has no use for delta.
    """
    kind = was.budget.kind
    if not (epsilon > 0 and was.delta_keys <= delta < 1):
        raise InvalidParameter(
            f"A budget of {shown(epsilon, delta)} is not valid. Epsilon must be above 0. Delta must be below 1 and at "
            f"least the {written(was.delta_keys)} that is reserved for private keys."
        )
    if kind == "pure" and delta != was.delta:
        raise CatalogMismatch(f"A pure ledger uses no delta; it stays {written(was.delta)}. Nothing was changed.")
    return replace(was, epsilon=epsilon, delta=delta, budget=loss_for(kind, epsilon, delta - was.delta_keys))


def record_of(was: Registration, now: Registration, principal: str) -> dict[str, object]:
    """Return the body of the entry that raises one registration to another."""
    return {"was": _figures(was), "now": _figures(now), "principal": principal}


def raised_by(was: Registration, record: Mapping[str, Any]) -> Registration:
    """Return a registration after the entry that `record_of` wrote.

    Raises:
        InvalidParameter: If the entry raises another registration than this one, or is no raise.
    """
    if record["was"] != _figures(was):
        raise InvalidParameter("The entry raises another budget than the one in force.")
    figures = record["now"]
    now = replace(
        was,
        budget=measures.from_record(figures["budget"]),
        epsilon=read(figures["epsilon"], "epsilon"),
        delta=read(figures["delta"], "delta"),
    )
    require_raise(was, now)
    return now


def require_raise(was: Registration, now: Registration) -> None:
    """Refuse what is no larger budget, or changes more than the budget.

    Raises:
        CatalogMismatch: If anything but epsilon and delta would change.
        InvalidParameter: If one of them would become smaller, or both stay.
    """
    for name in ("privacy_unit", "neighbouring", "delta_keys"):
        if getattr(was, name) != getattr(now, name):
            raise CatalogMismatch(f"Raising a budget leaves {name} as it is. Nothing was changed.")
    if was.budget.kind != now.budget.kind:
        raise CatalogMismatch(f"Raising a budget leaves its measure, {was.budget.kind}. Nothing was changed.")
    for name, before, after in (("epsilon", was.epsilon, now.epsilon), ("delta", was.delta, now.delta)):
        if after < before:
            raise InvalidParameter(
                f"{name} is {written(before)} and would become {written(after)}. A budget never becomes smaller, "
                f"because earlier queries relied on it. To spend less, close the data set, or give shares of it."
            )
    if (was.epsilon, was.delta) == (now.epsilon, now.delta) or not was.budget <= now.budget:
        raise InvalidParameter(f"The budget is already {shown(was.epsilon, was.delta)}; give a larger one.")


def require_expected(was: Registration, epsilon: Fraction, delta: Fraction, ledger: str) -> None:
    """Refuse to raise another budget than the one that is meant.

    Raises:
        CatalogMismatch: If the catalog contradicts the ledger.
    """
    if (was.epsilon, was.delta) != (epsilon, delta):
        raise CatalogMismatch(
            f"The budget of {ledger} is {shown(was.epsilon, was.delta)}, not {shown(epsilon, delta)} as expected, "
            f"because somebody raised it in the meantime. Nothing was changed. Check the budget again."
        )


def shown(epsilon: Fraction, delta: Fraction) -> str:
    """Return a promise for people."""
    return f"epsilon {written(epsilon)}, delta {written(delta)}"


def _figures(registration: Registration) -> dict[str, object]:
    return {
        "epsilon": written(registration.epsilon),
        "delta": written(registration.delta),
        "budget": registration.budget.to_record(),
    }
