"""A wallet: slots bought before the first answer, used in any order, beside a Gaussian account for all else.

Theory of operation. A slot is the right to ask one question of a mechanism whose dominating pair is fixed when it is
bought: the kind of noise, its scale, the sensitivity. Which question it is put to, and when, may depend on every answer
so far. Beside the slots runs a `gdp` account, which charges questions of any scale. What all of it may reveal is one
privacy loss distribution, that of the account's budget and of *all* slots, used or not. It is known from the start and
does not change.

Guarantee:
    `guarantee()`, towards one privacy unit, for everything that is answered through the wallet, if

- the slots and the budget were not chosen in the light of answers from these data;
- each question put to a slot is dominated by the slot's pair (`Slot` has what may be put to which);
- one data version, one neighbouring relation.

Proof: docs/theory/wallet.md. In short: draw one Y_j from P_j or Q_j for each slot beforehand, and a Brownian motion for
the account. Each answer is a function of its own Y_j, of what has been answered, and of coins (Blackwell 1951). So the
transcript is a post-processing of independent draws, whatever the order.

A change of terms on the way would break it: the new Y_j would be chosen by the old. So would a total of used slots
only, as whether to use a slot is a choice made in the light of answers. `tests/privacy/test_wallet.py` has strategies
that gain from either.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import final

from lapwing.errors import InvalidParameter
from lapwing.privacy import filters
from lapwing.privacy.amounts import Number
from lapwing.privacy.certified_curve import Interval
from lapwing.privacy.combined_pairs import MixturePair, SubsampledPair
from lapwing.privacy.discrete_pairs import DiscreteGaussianPair, DiscreteLaplacePair
from lapwing.privacy.filters import Account
from lapwing.privacy.loss_distribution import LossDistribution, compose
from lapwing.privacy.measures import GaussianDP
from lapwing.privacy.pairs import (
    ApproximatePair,
    BoundedRangePair,
    GaussianPair,
    LaplacePair,
    Pair,
    RandomizedResponsePair,
    whole,
)

_SINGLE = (
    ApproximatePair,
    BoundedRangePair,
    DiscreteGaussianPair,
    DiscreteLaplacePair,
    GaussianPair,
    LaplacePair,
    RandomizedResponsePair,
)
"""The pairs that dominate a mechanism of their parameters whatever it is asked; docs/theory/wallet.md has the list."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """The right to some questions to one mechanism, in which everything but the question is fixed.

    Each use puts one question to the slot. The slot's pair must dominate the mechanism of the question:

    - `GaussianPair`: Gaussian noise, rounded or not, at an ℓ² distance over σ of at most μ; any μ-GDP mechanism;
    - `LaplacePair`: Laplace noise on real numbers at an ℓ¹ distance over the scale of at most ε, in one or many;
    - `DiscreteLaplacePair`: discrete Laplace noise of that scale at an ℓ¹ distance of at most `sensitivity`;
    - `DiscreteGaussianPair`: discrete Gaussian noise of that variance on one number, moving by at most `sensitivity`;
    - `RandomizedResponsePair`: with two choices any ε-DP mechanism; with more, randomized response among as many;
    - `ApproximatePair`: any (ε, δ)-DP mechanism;
    - `BoundedRangePair`: any mechanism of bounded range η, such as the exponential mechanism;
    - `SubsampledPair`, `MixturePair`: what their parts dominate, run on a fresh secret sample, or drawn by public
      chances.

    Args:
        name: Different from the names of other slots.
        pair: Of one of these classes.
        count: How many times, ≥ 1.
    """

    name: str
    pair: Pair
    count: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidParameter("A slot's name is empty or no text; give one, such as 'medians'.")
        whole(self.count, "the count", 1)
        _check_dominates(self.pair)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WalletGranted:
    """A question that may be asked: the wallet after it."""

    wallet: "Wallet"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WalletRefused:
    """A question that may not be asked, and why; the wallet is as before."""

    reason: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Wallet:
    """Slots, how often each was used, and a Gaussian account; made by `opened`.

    Args:
        data_version: The name of the data that the wallet is for.
        slots: With different names.
        used: How often each slot was.
        account: Of measure gdp.
    """

    data_version: str
    slots: tuple[Slot, ...]
    used: tuple[int, ...]
    account: Account[GaussianDP]

    def __post_init__(self) -> None:
        if not isinstance(self.data_version, str) or not self.data_version:
            raise InvalidParameter("A wallet is for one version of the data; name it by a text, such as its digest.")
        if not isinstance(self.account.budget, GaussianDP) or not isinstance(self.account.spent, GaussianDP):
            raise InvalidParameter("The account beside the slots must be of measure gdp; no other composes with them.")
        names = [slot.name for slot in self.slots]
        if len(set(names)) < len(names):
            raise InvalidParameter("Two slots have the same name; give each its own, or one slot a higher count.")
        if len(self.used) != len(self.slots) or not all(
            isinstance(used, int) and 0 <= used <= slot.count for used, slot in zip(self.used, self.slots, strict=True)
        ):
            raise InvalidParameter("A slot was used a number of times from 0 to its count; open a wallet by `opened`.")

    @classmethod
    def opened(cls, slots: Iterable[Slot], *, data_version: str, budget: GaussianDP | None = None) -> "Wallet":
        """Return an unused wallet; without a budget it has slots only."""
        bought = tuple(slots)
        account = Account.opened(GaussianDP(0) if budget is None else budget)
        return cls(data_version=data_version, slots=bought, used=(0,) * len(bought), account=account)

    @property
    def untouched(self) -> bool:
        """Whether nothing was answered yet."""
        return not any(self.used) and self.account.spent == self.account.budget.nothing()

    def bought(self, *slots: Slot) -> "Wallet":
        """Return the wallet with more slots.

        Raises:
            InvalidParameter: Once something was answered: which slots there are may not depend on answers.
        """
        if not self.untouched:
            raise InvalidParameter(
                "This wallet has answered a query already, and its guarantee covers no slots chosen after results. "
                "Ask through its gdp account, or open a wallet with all slots next time."
            )
        return replace(self, slots=(*self.slots, *slots), used=(*self.used, *(0 for _ in slots)))

    def left(self, name: str) -> int:
        """Return how often a slot can still be used."""
        place = self._place(name)
        return self.slots[place].count - self.used[place]

    def use(self, name: str, *, data_version: str) -> WalletGranted | WalletRefused:
        """Take one question from a slot.

        Raises:
            InvalidParameter: If there is no such slot.
        """
        place = self._place(name)
        if refusal := self._other_data(data_version):
            return refusal
        if not self.left(name):
            return WalletRefused(reason=f"All {self.slots[place].count} queries of slot {name!r} are used.")
        used = (*self.used[:place], self.used[place] + 1, *self.used[place + 1 :])
        return WalletGranted(wallet=replace(self, used=used))

    def charge(self, loss: GaussianDP, *, data_version: str) -> WalletGranted | WalletRefused:
        """Charge a question of any scale to the account.

        Raises:
            InvalidParameter: If the loss is in another measure.
        """
        if refusal := self._other_data(data_version):
            return refusal
        decision = filters.charge(self.account, loss)
        if isinstance(decision, filters.Refused):
            return WalletRefused(reason=f"The account lacks {decision.shortfall} for this query.")
        return WalletGranted(wallet=replace(self, account=decision.account))

    def guarantee(self) -> LossDistribution:
        """Return the loss of the whole wallet, used or not; it is the same at every moment."""
        parts: list[tuple[Pair, int]] = [(slot.pair, slot.count) for slot in self.slots]
        if self.account.budget.amount:
            parts.append((GaussianPair(self.account.budget.amount), 1))
        return compose(parts)

    def to_epsilon(self, delta: Number) -> Interval:
        """Return bounds on the ε for which the wallet is (ε, delta)-DP; the upper one is its promise."""
        return self.guarantee().to_epsilon(delta)

    def to_delta(self, epsilon: Number) -> Interval:
        """Return bounds on the δ for which the wallet is (epsilon, δ)-DP; the upper one is its promise."""
        return self.guarantee().to_delta(epsilon)

    def _place(self, name: str) -> int:
        for place, slot in enumerate(self.slots):
            if slot.name == name:
                return place
        names = ", ".join(repr(slot.name) for slot in self.slots) or "none"
        raise InvalidParameter(f"There is no slot {name!r:.60}; the wallet has {names}.")

    def _other_data(self, data_version: str) -> WalletRefused | None:
        if data_version == self.data_version:
            return None
        return WalletRefused(
            reason=f"The wallet is for data version {self.data_version!r}, and this query for {data_version!r:.60}; "
            "open a wallet for those data, whose loss adds."
        )


def _check_dominates(pair: Pair) -> None:
    """Refuse a pair if no proof says what it dominates."""
    if isinstance(pair, SubsampledPair):
        _check_dominates(pair.pair)
    elif isinstance(pair, MixturePair):
        for _, part in pair.parts:
            _check_dominates(part)
    elif not isinstance(pair, _SINGLE):
        allowed = ", ".join(sorted(kind.__name__ for kind in (*_SINGLE, MixturePair, SubsampledPair)))
        raise InvalidParameter(
            f"The pair of a slot is a {type(pair).__name__}, and no proof says what it dominates in every use; "
            f"it must be one of {allowed}."
        )
