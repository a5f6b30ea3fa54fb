"""An account over disjoint parts of the data: a question is charged to the parts that it reads.

Each unit is in one part only, its other rows do not exist, and which part that is does not depend on other units (such
as a region for each person; the engine enforces it). Names of parts are public, and so is which of them a question
reads. Then what all questions reveal about one unit is less than their sum:

- add_remove: the unit is in one part, and questions that do not read it have the same law with and without the unit. So
  the total is that of the dearest part.
- replace_one: the unit may go from one part to another, so the total is that of the two dearest together: of all the
  questions that read the one or the other, each counted once. Losses are those of replace_one on the whole data.

Proof. Fix two neighbours. The parts in which they differ, one or at most two, are thereby fixed, before any answer.
A question that reads none of them has one law on both, so its loss towards this pair is nothing, and the others' is as
stated. Along every path the losses towards this pair add up to no more than the total here, which is kept within the
budget; so a filter of the budget's size, which is valid for charges chosen in any way (`filters`), would have granted
all of it on this pair. This holds for every pair. ∎

The data must not change on the way: a unit that is in one part on Monday and in another on Tuesday has lost to both. So
an account is for one data version, and `for_version` charges what was spent so far to all parts of the next: towards a
pair of histories that is at most the total before plus the total after.

Not for losses with a δ: what is larger among (ε, δ) is not said, and where data change their parallel composition fails
(Henzinger, Safavi and Vadhan 2024, arXiv 2411.03299).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, Self, final

from lapwing.errors import InvalidParameter
from lapwing.privacy.filters import Refused
from lapwing.privacy.measures import GaussianDP, Loss, PureDP, ZeroConcentratedDP

Neighbouring = Literal["add_remove", "replace_one"]

Reads = frozenset[str]
"""The parts that a question reads."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """A charge that fits: the account after it."""

    account: "PartsAccount"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PartsAccount:
    """A budget and what was charged to which parts; made by `opened`.

    Args: budget: of measure pure, gdp or zcdp, for the whole data; neighbouring: the relation that all losses are for;
        data_version: what names the data; parts: all parts, by name; charged: (parts read, amount), no parts twice.
    """

    budget: Loss
    neighbouring: Neighbouring
    data_version: str
    parts: Reads
    charged: tuple[tuple[Reads, Fraction], ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.budget, PureDP | GaussianDP | ZeroConcentratedDP):
            raise InvalidParameter(
                f"The budget is a {type(self.budget).__name__}; parts are accounted for in PureDP, GaussianDP or "
                "ZeroConcentratedDP, of which it is known which loss is the larger."
            )
        if self.neighbouring not in ("add_remove", "replace_one"):
            raise InvalidParameter(f"neighbouring is {self.neighbouring!r:.60}; it must be add_remove or replace_one.")
        if not isinstance(self.data_version, str) or not self.data_version:
            raise InvalidParameter("An account over parts is for one version of the data; name it by a text.")
        if not self.parts or not all(isinstance(part, str) and part for part in self.parts):
            raise InvalidParameter("The parts are none, or one has no name; name each by a text.")
        if len({reads for reads, _ in self.charged}) < len(self.charged) or not all(
            reads and reads <= self.parts for reads, _ in self.charged
        ):
            raise InvalidParameter("Something was charged to parts that do not exist; open an account by `opened`.")
        if not self.total <= self.budget:
            raise InvalidParameter(f"The account has spent {self.total} of {self.budget}; it must not be overspent.")

    @classmethod
    def opened(
        cls, budget: Loss, parts: Iterable[str], *, data_version: str, neighbouring: Neighbouring = "add_remove"
    ) -> Self:
        """Return an account of which nothing is spent."""
        names = _names(parts)
        return cls(budget=budget, neighbouring=neighbouring, data_version=data_version, parts=names)

    @property
    def total(self) -> Loss:
        """The loss towards one unit, whichever it is: what the budget caps."""
        return self.budget.from_amount(_dearest(dict(self.charged), self.neighbouring))

    @property
    def remaining(self) -> Loss:
        """The largest loss that still fits, whatever it reads."""
        return self.budget.beyond(self.total)

    def spent(self, part: str) -> Loss:
        """Return the loss of the questions that read one part."""
        (name,) = self._known([part])
        return self.budget.from_amount(self._touching(frozenset((name,))))

    def charge(self, loss: Loss, reads: Iterable[str], *, data_version: str) -> Granted | Refused[Loss]:
        """Charge a question to the parts that it reads, if the total stays within the budget.

        Args: loss: towards one unit of the whole data, under the account's relation; reads: at least one part.
        Returns: the account after it, or what the budget lacks.
        Raises: InvalidParameter for a loss in another measure, an unknown part or other data.
        """
        if data_version != self.data_version:
            raise InvalidParameter(
                f"The account is for data version {self.data_version!r}, and the question for {data_version!r:.60}; go "
                "on with `for_version`, which charges what is spent to every part."
            )
        read = self._known(reads)
        after = dict(self.charged)
        after[read] = after.get(read, Fraction(0)) + self._amount(loss)
        spent = self.budget.from_amount(_dearest(after, self.neighbouring))
        if not spent <= self.budget:
            return Refused(shortfall=spent.beyond(self.budget))
        return Granted(account=replace(self, charged=tuple(after.items())))

    def for_version(self, data_version: str, parts: Iterable[str] | None = None) -> Self:
        """Return the account for the next version of the data, with everything spent charged to all its parts.

        Args: parts: those of the next version; None for the same.
        """
        names = self.parts if parts is None else _names(parts)
        total = self.total.amount
        charged = ((names, total),) if total else ()
        return replace(self, data_version=data_version, parts=names, charged=charged)

    def _amount(self, loss: Loss) -> Fraction:
        if not isinstance(loss, type(self.budget)):
            what = getattr(loss, "kind", type(loss).__name__)
            raise InvalidParameter(
                f"The account is {self.budget.kind} and the loss is {what}; state it in its measure."
            )
        return loss.rounded_up().amount

    def _known(self, reads: Iterable[str]) -> Reads:
        read = _names(reads)
        if not read or not read <= self.parts:
            unknown = ", ".join(sorted(repr(name) for name in read - self.parts)) or "nothing"
            raise InvalidParameter(f"The question reads {unknown:.200}; it must read one or more parts of the account.")
        return read

    def _touching(self, parts: Reads) -> Fraction:
        return sum((amount for reads, amount in self.charged if reads & parts), Fraction(0))


def _dearest(charged: Mapping[Reads, Fraction], neighbouring: Neighbouring) -> Fraction:
    """Return the largest loss of one part, or of two together.

    Two together lose the sum of both, less what reads both, counted twice. Pairs are tried from the dearest on, until
    no sum can be above the best; what was charged to all that is charged at all is set apart, as it is in each.
    """
    everything: Reads = frozenset().union(*charged)
    common = charged.get(everything, Fraction(0))
    alone = {part: Fraction(0) for part in everything}
    for reads, amount in charged.items():
        if reads != everything:
            for part in reads:
                alone[part] += amount
    ranked = sorted(alone, key=lambda part: -alone[part])
    best = max(alone.values(), default=Fraction(0))
    if neighbouring == "add_remove":
        return common + best
    shared = [(reads, amount) for reads, amount in charged.items() if len(reads) > 1 and reads != everything]
    for place, first in enumerate(ranked):
        for second in ranked[place + 1 :]:
            if alone[first] + alone[second] <= best:
                break
            twice = sum((amount for reads, amount in shared if first in reads and second in reads), Fraction(0))
            best = max(best, alone[first] + alone[second] - twice)
    return common + best


def _names(parts: Iterable[str]) -> Reads:
    if isinstance(parts, str):
        raise InvalidParameter(f"The parts are {parts!r:.60}; give a list of names, if only of one.")
    return frozenset(parts)
