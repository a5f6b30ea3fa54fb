"""A charge for what is released outside of questions: by a mechanism of the library, or by another program.

Guarantee:
    The loss is written into the ledger, durably, before `spend` returns; whatever is released afterwards at no more
    than that loss, about the same people and for the same neighbours, is inside the promise of the data set, as the
    ledger's filter holds for any releases that are charged first. That what is released loses no more is up to whoever
    spends: nothing here sees it.
"""

import json
from fractions import Fraction
from hashlib import sha256
from typing import Final

from lapwing.catalog.model import Catalog
from lapwing.errors import BudgetExhausted, InvalidParameter
from lapwing.exact.entropy import read_exactly
from lapwing.ledger.allowances import LimitsNow
from lapwing.ledger.entries import Charge
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.state import LedgerState
from lapwing.ledger.waiting import UnderWay
from lapwing.ledger.wording import require_label
from lapwing.privacy.amount_texts import short
from lapwing.privacy.filters import Refused
from lapwing.privacy.measures import GaussianDP, Loss, PureDP, ZeroConcentratedDP
from lapwing.release.request import Access

ZERO: Final = Fraction(0)
_KEPT: Final = json.dumps({"format": "spent"})
"""Stands in the ledger where the answer to a question does: nothing of it is under way any more."""


def spend(loss: Loss, why: str, access: Access, *, delta: Fraction = ZERO) -> Loss:
    """Charge a loss, and return what was charged: in the ledger's measure, rounded up to its grid.

    Args:
        loss: Pure, Gaussian or zero-concentrated, of what one privacy unit may change.
        why: One line, for the history.
        delta: The probability with which the loss does not hold, taken of the budget's `delta_keys`.

    Raises:
        InvalidParameter: If a value is not allowed.
        BudgetExhausted: If the budget does not bear the loss.
        DataStopped: If the data set is stopped.
        DataChanged: If the data are another version. Nothing is charged then.
    """
    require_label(why)
    return charge_outside(
        loss,
        why,
        # of its own: what was spent answers no question
        key=sha256(b"SPENT " + read_exactly(access.entropy, 16)).hexdigest(),
        question=f"SPENT FOR {why}",
        kept=_KEPT,
        catalog=access.catalog,
        ledger=access.ledger,
        principal=access.principal,
        limits=access.limits,
        delta=delta,
    )


def charge_outside(
    loss: Loss,
    why: str,
    *,
    key: str,
    question: str,
    kept: str,
    catalog: Catalog,
    ledger: Ledger,
    principal: str,
    limits: LimitsNow | None = None,
    delta: Fraction = ZERO,
) -> Loss:
    """Charge a loss under a key, and return what was charged; as `spend`.

    Args:
        question: What the history calls it.
        kept: What stands in the ledger where the answer to a question does.
    """
    if not isinstance(loss, PureDP | GaussianDP | ZeroConcentratedDP):
        raise InvalidParameter(
            f"A loss of {type(loss).__name__} cannot be charged; give lw.PureDP(epsilon), lw.GaussianDP(mu) or "
            "lw.ZeroConcentratedDP(rho). Nothing was charged."
        )
    if not loss.amount:
        raise InvalidParameter("A loss of 0 needs no charge. Nothing was charged.")
    state = ledger.seen()
    charged = loss.to_kind(catalog.budget.measure).rounded_up()
    charge = _charge(charged, why, key, question, catalog, principal, state, delta)
    outcome = ledger.charge_all([charge], limits)
    if not isinstance(outcome, tuple):
        if delta > (rest := state.delta_room(None)):
            raise BudgetExhausted(
                f"'{why}' takes a delta of {short(delta)}, and {short(rest, down=True)} is left of delta_keys. Nothing "
                "charged."
            )
        raise _exhausted(why, charged, outcome, state)
    # Before the caller has the loss in hand, and so before any data are read: charge and record are durable by then.
    ledger.record_answer(outcome[0].sequence, kept)
    return charged


def charge_once(loss: Loss, why: str, key: str, access: Access, state: LedgerState) -> int | UnderWay:
    """Charge a loss for what is then recorded as the answer to a key, and return the charge's sequence.

    Args:
        state: In which no answer to the key was there; if one is under way for somebody else, that is returned.

    Raises:
        LapwingError: As `spend`.
    """
    charge = _charge(loss.rounded_up(), why, key, f"SPENT FOR {why}", access.catalog, access.principal, state)
    outcome = access.ledger.charge_all([charge], access.limits, state.sequence)
    if isinstance(outcome, UnderWay):
        return outcome
    if not isinstance(outcome, tuple):
        raise _exhausted(why, charge.loss, outcome, state)
    return outcome[0].sequence


def _charge(
    loss: Loss,
    why: str,
    key: str,
    question: str,
    catalog: Catalog,
    principal: str,
    state: LedgerState,
    delta: Fraction = ZERO,
) -> Charge:
    return Charge(
        key=key,
        question=question,
        loss=loss,
        catalog_digest=catalog.digest,
        principal=principal,
        delta=delta,
        version=state.version,
        wording={"text": why},
    )


def _exhausted(why: str, charged: Loss, outcome: Refused | UnderWay, state: LedgerState) -> BudgetExhausted:
    left = outcome.shortfall if isinstance(outcome, Refused) else charged
    share = (100 * amount / state.account.budget.amount for amount in (charged.amount, state.room(None).amount))
    price, room = map(short, share)
    return BudgetExhausted(
        f"'{why}' costs {price} % of the budget, of which {room} % is left: {left} too much. Nothing was charged."
    )
