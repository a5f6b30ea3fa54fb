"""Whether a charge still fits a budget: a pure decision; the ledger makes it durable.

A filter answers before each charge, which the analyst may choose in the light of everything seen so far, whether the
sum of the losses stays within the budget. One decision serves all measures, because in each of these the losses add up
for any mechanisms, chosen in any way, at no cost over composition fixed in advance:

- pure: ε adds along every path, as P(path) ≤ e^Σε P′(path) holds factor by factor (Rogers, Roth, Ullman and Vadhan
  2016).
- gdp: μ² adds under full adaptivity (Smith and Thakurta 2022, arXiv 2210.17520).
- zcdp: ρ adds under full adaptivity (Feldman and Zrnic 2021; Whitehouse, Ramdas, Rogers and Wu 2023).
- approx, approx_gdp, approx_zcdp: the exact parts add as above and the δ add, each within its own cap. For draw V
  uniformly from [0, 1) before all, and let an answer be of the second kind (`approximate`) as soon as 1 − Π(1 − δᵢ)
  exceeds V: given the past, that has probability δᵢ. As 1 − Π(1 − δᵢ) ≤ Σδᵢ ≤ δ_B on every path, V ≥ δ_B means that
  none ever is, V does not depend on the data, and given it the exact parts' filter holds (Rogers et al. 2016 for ε,
  Whitehouse et al. 2023 for ρ; the argument with V is ours).
- renyi: at each order declared in advance ε(α) adds under full adaptivity (Feldman and Zrnic 2021), and every order is
  kept within its cap. "Some order is within its cap" would be another decision, which is not made here.

The guarantee is the budget, not what happens to be spent when one stops looking: stopping when the answers suit is
itself a choice that depends on the data (`odometers` has figures that allow for it).

Amounts are exact rationals and a charge is rounded up to GRID: ten charges of 0.1 fill a budget of 1 exactly, and
1 + 10⁻¹⁷ is more than 1.
"""

from dataclasses import dataclass, replace
from typing import Generic, final

from lapwing.errors import InvalidParameter
from lapwing.privacy.composable import L, M, check_adds_up


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Account(Generic[L]):
    """A budget and what is spent of it, in one measure; never overspent."""

    budget: L
    spent: L

    def __post_init__(self) -> None:
        if not self.spent <= self.budget:
            raise InvalidParameter(f"The account has spent {self.spent} of {self.budget}; it must not be overspent.")

    @classmethod
    def opened(cls, budget: M) -> "Account[M]":
        """Return an account of which nothing is spent.

        Raises:
            InvalidParameter: For what does not add up, such as a privacy loss distribution.
        """
        check_adds_up(type(budget), type(budget))
        return Account(budget=budget, spent=budget.nothing())

    @property
    def remaining(self) -> L:
        """The largest loss that still fits."""
        return self.budget.beyond(self.spent)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Granted(Generic[L]):
    """A charge that fits: the account after it."""

    account: Account[L]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Refused(Generic[L]):
    """A charge that does not fit: what the account lacks for it."""

    shortfall: L


def charge(account: Account[M], loss: M) -> Granted[M] | Refused[M]:
    """Add a loss to what is spent if the sum stays within the budget.

    Raises:
        InvalidParameter: If the loss is of another measure than the account, a curve without one of its orders, or a
            privacy loss distribution.
    """
    check_adds_up(type(loss), type(account.budget))
    spent = account.spent + loss.rounded_up()
    if not spent <= account.budget:
        return Refused(shortfall=spent.beyond(account.budget))
    return Granted(account=replace(account, spent=spent))


def fits(account: Account[M], loss: M) -> int:
    """Return how many more charges of this loss the account would grant.

    Raises:
        InvalidParameter: If the loss is zero (any number fits) or of another measure than the account.
    """
    check_adds_up(type(loss), type(account.budget))
    times = loss.rounded_up().times_in(account.remaining)
    if times is None:
        raise InvalidParameter(f"The loss is {loss}; any number of charges of nothing fits: give a loss above 0.")
    return times
