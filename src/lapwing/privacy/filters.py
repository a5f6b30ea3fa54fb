"""Whether a charge still fits a budget: a pure decision; the ledger makes it durable.

A filter answers before each charge, which the analyst may choose in the light of everything seen so far, whether the
sum of the losses stays within the budget. All three measures have a filter that costs nothing over composition fixed
in advance, because their losses add up for any mechanisms, chosen in any way:

- pure: ε adds along every path, as P(path) ≤ e^Σε P′(path) holds factor by factor (Rogers, Roth, Ullman and Vadhan
  2016).
- gdp: μ² adds under full adaptivity (Smith and Thakurta 2022, arXiv 2210.17520).
- zcdp: ρ adds under full adaptivity (Feldman and Zrnic 2021; Whitehouse, Ramdas, Rogers and Wu 2023).

The guarantee is the budget, not what happens to be spent when one stops looking: stopping when the answers suit is
itself a choice that depends on the data.

Amounts are exact rationals and a charge is rounded up to GRID: ten charges of 0.1 fill a budget of 1 exactly, and
1 + 10⁻¹⁷ is more than 1.
"""

from dataclasses import dataclass, replace
from typing import final

from lapwing.errors import InvalidParameter
from lapwing.privacy.measures import Loss


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A budget and what is spent of it, in one measure; never overspent."""

    budget: Loss
    spent: Loss

    def __post_init__(self) -> None:
        if self.spent > self.budget:
            raise InvalidParameter(f"The account has spent {self.spent} of {self.budget}; it must not be overspent.")

    @classmethod
    def opened(cls, budget: Loss) -> "Account":
        """Return an account of which nothing is spent."""
        return cls(budget=budget, spent=budget.from_amount(0))

    @property
    def remaining(self) -> Loss:
        """The largest loss that still fits."""
        return self.budget.from_amount(self.budget.amount - self.spent.amount)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """A charge that fits: the account after it."""

    account: Account


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A charge that does not fit: what the account lacks for it."""

    shortfall: Loss


def charge(account: Account, loss: Loss) -> Granted | Refused:
    """Add a loss to what is spent if the sum stays within the budget.

    Raises: InvalidParameter if the loss is of another measure than the account.
    """
    spent = account.spent + loss.rounded_up()
    if spent > account.budget:
        return Refused(shortfall=spent.from_amount(spent.amount - account.budget.amount))
    return Granted(account=replace(account, spent=spent))


def fits(account: Account, loss: Loss) -> int:
    """Return how many more charges of this loss the account would grant.

    Raises: InvalidParameter if the loss is zero (any number fits) or of another measure than the account.
    """
    cost = loss.rounded_up()
    if cost <= cost.from_amount(0):
        raise InvalidParameter(f"The loss is {loss}; any number of charges of nothing fits: give a loss above 0.")
    if cost > account.remaining:
        return 0
    return int(account.remaining.amount // cost.amount)
