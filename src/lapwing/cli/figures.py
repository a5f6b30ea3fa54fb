"""Figures of reports: errors, shares, losses, budgets.

An error, or a loss, is never made to look smaller than it is, and what is left never larger.
"""

import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from lapwing.figures import rounded_up
from lapwing.privacy.amount_texts import computed, short

if TYPE_CHECKING:
    from lapwing.budget import AllowanceView
    from lapwing.privacy.measures import Loss

AMOUNTS: Final = {"pure": "ε", "gdp": "μ²", "zcdp": "ρ"}
"""What adds up in each kind of ledger."""


def size(value: float) -> str:
    """Return an error or a scale, rounded up to three digits or to a whole number.

    >>> size(93.0), size(636615.06), size(0.27311)
    ('93', '636,616', '0.274')
    """
    if not math.isfinite(value):
        return "∞"
    places = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    text = f"{rounded_up(value, places):,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def share(part: float) -> str:
    """Return a share in percent.

    >>> share(0.0367), share(0.0018), share(0.0), share(1.0)
    ('3.7 %', '0.18 %', '0 %', '100 %')
    """
    percent = 100 * part
    if percent == 0:
        return "0 %"
    if percent < 0.01:
        return "< 0.01 %"
    digits = 2 if percent < 1 else 1
    return f"{percent:.{digits}f}".rstrip("0").rstrip(".") + " %" if percent < 1000 else f"{percent:,.0f} %"


def loss(value: "Loss") -> str:
    """Return a loss by the amount that adds up in its ledger, rounded up.

    >>> from lapwing.privacy.measures import PureDP
    >>> loss(PureDP(0.5)), loss(PureDP(0.12341)), left(PureDP(0.12349))
    ('ε 0.5', 'ε 0.1235', 'ε 0.1234')
    """
    return f"{AMOUNTS[value.kind]} {short(value.amount)}"


def left(value: "Loss") -> str:
    """Return what is left to lose, by the amount that adds up in its ledger, rounded down."""
    return f"{AMOUNTS[value.kind]} {short(value.amount, down=True)}"


def names(parts: Sequence[str], most: int = 5) -> str:
    """Return the names of parts of the data, not all of them if they are many.

    >>> names(["north"]), names(["1", "2", "3"], most=2)
    ('part north', 'parts 1, 2 and 1 more')
    """
    more = f" and {len(parts) - most:,} more" if len(parts) > most else ""
    return f"{'part' if len(parts) == 1 else 'parts'} {', '.join(parts[:most])}{more}"


def epsilon(value: float | Fraction) -> str:
    """Return an epsilon to three digits or to a whole number, rounded up.

    >>> epsilon(1.0000000000000002), epsilon(0.3001), epsilon(Fraction("0.9999999")), epsilon(4321.1)
    ('1', '0.301', '0.9999999', '4,322')
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "∞"
    exact = computed(value, 3 if value < 999 else 15) if isinstance(value, float) else value
    return short(exact, 3) if exact <= 999 else f"{math.ceil(exact):,}"


def delta(value: Fraction, *, down: bool = False) -> str:
    """Return a delta to six digits, rounded up; or down, of what is left: 1e-6, not 1e-06."""
    mantissa, _, exponent = short(value, 6, down=down).partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def gauge(spent: float, width: int = 40) -> str:
    """Return a bar of what is spent and what is left, with both in percent."""
    full, empty = ("█", "░") if _can_write("█░") else ("#", ".")
    filled = min(width, math.ceil(spent * width)) if spent else 0
    return f"{full * filled}{empty * (width - filled)}  {share(spent)} spent, {share(max(0.0, 1 - spent))} left"


def _can_write(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def allowance(view: "AllowanceView", total: "Loss") -> str:
    """Return what is left of a share of the budget."""
    left = share(float(view.remaining.amount / total.amount))
    keys = f", and delta {delta(view.delta_remaining, down=True)} for private keys" if view.delta_remaining else ""
    return f"{left} is left of the {share(float(view.share))} that {view.holder} may use{keys}"
