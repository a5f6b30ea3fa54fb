"""Figures of reports in the terminal, in the words of `lapwing.privacy.figures`: losses, budgets, bars."""

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lapwing.privacy.figures import AMOUNTS as AMOUNTS
from lapwing.privacy.figures import FREE as FREE
from lapwing.privacy.figures import NOTHING_PROTECTED as NOTHING_PROTECTED
from lapwing.privacy.figures import amount
from lapwing.privacy.figures import delta as delta
from lapwing.privacy.figures import delta_in_words as delta_in_words
from lapwing.privacy.figures import epsilon as epsilon
from lapwing.privacy.figures import margin as margin
from lapwing.privacy.figures import share as share
from lapwing.privacy.figures import size as size

if TYPE_CHECKING:
    from lapwing.budget import AllowanceView
    from lapwing.privacy.measures import Loss


def loss(value: "Loss") -> str:
    """Return a loss by the amount that adds up in its ledger, rounded up.

    >>> from lapwing.privacy.measures import PureDP
    >>> loss(PureDP(0.5)), loss(PureDP(0.12341)), left(PureDP(0.12349))
    ('ε 0.5', 'ε 0.1235', 'ε 0.1234')
    """
    return amount(value.kind, value.amount)


def left(value: "Loss") -> str:
    """Return what is left to lose, by the amount that adds up in its ledger, rounded down."""
    return amount(value.kind, value.amount, down=True)


def names(parts: Sequence[str], most: int = 5) -> str:
    """Return the names of parts of the data, not all of them if they are many.

    >>> names(["north"]), names(["1", "2", "3"], most=2)
    ('part north', 'parts 1, 2 and 1 more')
    """
    more = f" and {len(parts) - most:,} more" if len(parts) > most else ""
    return f"{'part' if len(parts) == 1 else 'parts'} {', '.join(parts[:most])}{more}"


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
    return view.in_words(total)
