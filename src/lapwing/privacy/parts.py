"""An account over disjoint parts of the data: a question is charged to the parts that it reads.

Each unit is in one part only, its other rows do not exist, and which part that is does not depend on other units (such
as a region for each person; the engine enforces it). Names of parts are public, and so is which of them a question
reads. Then what all questions reveal about one unit is less than their sum:

- add_remove: the unit is in one part, and questions that do not read it have the same law with and without the unit. So
  the total is that of the dearest part.
- replace_one: the unit may go from one part to another, so the total is that of the two dearest together. A question
  that reads several parts is charged to all of them, whichever it reads: then no question counts twice in the sum of
  two parts. Losses are those of replace_one on the whole data.

Proof. Fix two neighbours. The parts in which they differ, one or at most two, are thereby fixed, before any answer.
A question that reads none of them has one law on both, so its loss towards this pair is nothing, and the others' is as
stated. What was charged to all is in the total once, and what was charged to one of these parts is in it too, as the
total has the dearest part, or the dearest two. So along every path the losses towards this pair add up to no more than
the total here, which is kept within the budget; and a filter of the budget's size, which is valid for charges chosen in
any way (`filters`), would have granted all of it on this pair. This holds for every pair. ∎

The data must not change on the way: a unit that is in one part on Monday and in another on Tuesday has lost to both. So
an account is for one data version, and `for_version` charges what was spent so far to all parts of the next. Proof.
Fix two histories of the data that are neighbours in every version, and let T be the total when a version ends. Towards
this pair the losses up to then add up to at most T, if they did to at most T' when the version before ended: T' is in
what was charged to all, and to it are added the questions of this version that read a part in which the pair differs
now, which T has too, as above. By induction this is so after every version; it does not matter in which parts the unit
was before, nor whether the version was chosen in the light of answers. ∎

An account has the size of its parts, however long the list of charges, and so has the time that a charge takes.

This is not for losses with a δ, which are compared by both numbers at once: of two (ε, δ) neither need be the larger,
and where data change, parallel composition fails for them (Henzinger, Safavi and Vadhan 2024, arXiv 2411.03299). Where
each number has a cap of its own, as in `filters`, each can be summed by itself: the proof holds for either sum.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from heapq import nlargest
from typing import Literal, Self, final

from lapwing.errors import InvalidParameter
from lapwing.privacy.filters import Refused
from lapwing.privacy.measures import GaussianDP, Loss, PureDP, ZeroConcentratedDP

Neighbouring = Literal["add_remove", "replace_one"]

NEIGHBOURS_DIFFER: dict[Neighbouring, int] = {"add_remove": 1, "replace_one": 2}
"""In how many parts two neighbours differ, at most."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PartSums:
    """Amounts charged to parts: `everywhere` to all of them, and what each has `alone` besides, if anything.

    Args:
        differ: In how many parts neighbours differ, at most.
    """

    differ: int
    everywhere: Fraction = Fraction(0)
    alone: tuple[tuple[str, Fraction], ...] = ()

    @property
    def total(self) -> Fraction:
        """The most that any neighbours have lost: what is everywhere, and the dearest part, or the dearest two."""
        return self.everywhere + sum(nlargest(self.differ, (amount for _, amount in self.alone)), Fraction(0))

    def of(self, part: str) -> Fraction:
        """Return what one part has lost."""
        return self.everywhere + dict(self.alone).get(part, Fraction(0))

    def plus(self, amount: Fraction, reads: frozenset[str] | None) -> Self:
        """Return the sums with one more charge, to some parts or, if None, to all."""
        if reads is None or self._as_all(reads):
            return replace(self, everywhere=self.everywhere + amount)
        alone = dict(self.alone)
        for part in sorted(reads) if amount else ():
            alone[part] = alone.get(part, Fraction(0)) + amount
        return replace(self, alone=tuple(alone.items()))

    def towards(self, reads: frozenset[str] | None) -> Fraction:
        """Return the most that neighbours have lost of those that a charge to these parts is added to."""
        if reads is None or self._as_all(reads):
            return self.total
        dearest = max((amount for part, amount in self.alone if part in reads), default=Fraction(0))
        others = nlargest(self.differ - 1, (amount for part, amount in self.alone if part not in reads))
        return self.everywhere + dearest + sum(others, Fraction(0))

    def towards_each(self, parts: Iterable[str]) -> dict[str, Fraction]:
        """Return `towards` for each of some parts by itself."""
        alone, lost = dict(self.alone), {}
        dearest = nlargest(self.differ, alone.values())
        for part in parts:
            own = alone.get(part, Fraction(0))
            others = dearest.copy()
            if own in others:
                others.remove(own)
            lost[part] = self.everywhere + own + sum(others[: self.differ - 1], Fraction(0))
        return lost

    def levelled(self) -> Self:
        """Return the sums with the total charged to all parts."""
        return replace(self, everywhere=self.total, alone=())

    def _as_all(self, reads: frozenset[str]) -> bool:
        return len(reads) > 1 and self.differ > 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PartsGranted:
    """A charge that fits: the account after it."""

    account: "PartsAccount"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PartsAccount:
    """A budget and what was charged to which parts; made by `opened`.

    Args:
        budget: Of measure pure, gdp or zcdp, for the whole data.
        neighbouring: The relation that all losses are for.
        data_version: The name of the data.
        parts: All parts, by name.
        sums: The charges.
    """

    budget: Loss
    neighbouring: Neighbouring
    data_version: str
    parts: tuple[str, ...]
    sums: PartSums

    def __post_init__(self) -> None:
        if not isinstance(self.budget, PureDP | GaussianDP | ZeroConcentratedDP):
            raise InvalidParameter(
                f"The budget is a {type(self.budget).__name__}; parts are accounted for in PureDP, GaussianDP or "
                "ZeroConcentratedDP, of which it is known which loss is the larger."
            )
        _check_neighbouring(self.neighbouring)
        if not isinstance(self.data_version, str) or not self.data_version:
            raise InvalidParameter("An account over parts is for one version of the data; name it by a text.")
        if not self.parts or not all(isinstance(part, str) for part in self.parts):
            raise InvalidParameter("There are no parts, or the name of one is not text; name each part by a text.")
        if self.sums.differ != NEIGHBOURS_DIFFER[self.neighbouring]:
            raise InvalidParameter("The sums are for another relation than the account; open an account by `opened`.")
        charged = [part for part, _ in self.sums.alone]
        if len(set(charged)) < len(charged) or not set(charged) <= set(self.parts):
            raise InvalidParameter("Something was charged to parts that do not exist; open an account by `opened`.")
        if not self.total <= self.budget:
            raise InvalidParameter(f"The account has spent {self.total} of {self.budget}; it must not be overspent.")

    @classmethod
    def opened(
        cls, budget: Loss, parts: Iterable[str], *, data_version: str, neighbouring: Neighbouring = "add_remove"
    ) -> Self:
        """Return an account of which nothing is spent."""
        _check_neighbouring(neighbouring)
        sums = PartSums(differ=NEIGHBOURS_DIFFER[neighbouring])
        return cls(budget=budget, neighbouring=neighbouring, data_version=data_version, parts=_names(parts), sums=sums)

    @property
    def total(self) -> Loss:
        """The loss towards any one unit: the budget limits it."""
        return self.budget.from_amount(self.sums.total)

    @property
    def remaining(self) -> Loss:
        """The largest loss that still fits, for any parts that it reads."""
        return self.budget.beyond(self.total)

    def spent(self, part: str) -> Loss:
        """Return the loss of the questions that were charged to one part."""
        self._known([part])
        return self.budget.from_amount(self.sums.of(part))

    def room(self, reads: Iterable[str] | None = None) -> Loss:
        """Return the largest loss that still fits for a question that reads these parts; None for all."""
        return self.budget.beyond(self.budget.from_amount(self.sums.towards(self._known(reads))))

    def rooms(self) -> dict[str, Loss]:
        """Return `room` for every part by itself."""
        lost = self.sums.towards_each(self.parts)
        return {part: self.budget.beyond(self.budget.from_amount(amount)) for part, amount in lost.items()}

    def spent_by_part(self) -> dict[str, Loss]:
        """Return `spent` for every part."""
        alone = dict(self.sums.alone)
        nothing = Fraction(0)
        return {part: self.budget.from_amount(self.sums.everywhere + alone.get(part, nothing)) for part in self.parts}

    def charge(self, loss: Loss, reads: Iterable[str] | None, *, data_version: str) -> PartsGranted | Refused[Loss]:
        """Charge a question to the parts that it reads, if the total stays within the budget.

        Args:
            loss: Towards one unit of the whole data, under the account's relation.
            reads: At least one part; None for all.

        Returns:
            The account after it, or what the budget lacks.

        Raises:
            InvalidParameter: For a loss in another measure, an unknown part or other data.
        """
        if data_version != self.data_version:
            raise InvalidParameter(
                f"The account is for data version {self.data_version!r}, and the query for {data_version!r:.60}; go "
                "on with `for_version`, which charges what is spent to every part."
            )
        sums = self.sums.plus(self._amount(loss), self._known(reads))
        spent = self.budget.from_amount(sums.total)
        if not spent <= self.budget:
            return Refused(shortfall=spent.beyond(self.budget))
        return PartsGranted(account=replace(self, sums=sums))

    def for_version(self, data_version: str, parts: Iterable[str] | None = None) -> Self:
        """Return the account for the next version of the data, with everything spent charged to all its parts.

        Args:
            parts: Those of the next version; None for the same.
        """
        names = self.parts if parts is None else _names(parts)
        return replace(self, data_version=data_version, parts=names, sums=self.sums.levelled())

    def _amount(self, loss: Loss) -> Fraction:
        if not isinstance(loss, type(self.budget)):
            what = getattr(loss, "kind", type(loss).__name__)
            raise InvalidParameter(
                f"The account is {self.budget.kind} and the loss is {what}; state it in its measure."
            )
        return loss.rounded_up().amount

    def _known(self, reads: Iterable[str] | None) -> frozenset[str] | None:
        """Return the parts that are read, or None if they are all there are."""
        if reads is None:
            return None
        read, all_parts = frozenset(_names(reads)), frozenset(self.parts)
        if not read or not read <= all_parts:
            unknown = ", ".join(sorted(repr(name) for name in read - all_parts)) or "nothing"
            raise InvalidParameter(f"The query reads {unknown:.200}; it must read one or more parts of the account.")
        return None if read == all_parts else read


def _check_neighbouring(neighbouring: str) -> None:
    if neighbouring not in NEIGHBOURS_DIFFER:
        raise InvalidParameter(f"neighbouring is {neighbouring!r:.60}; it must be add_remove or replace_one.")


def _names(parts: Iterable[str]) -> tuple[str, ...]:
    if isinstance(parts, str):
        raise InvalidParameter(f"The parts are {parts!r:.60}; give a list of names, if only of one.")
    return tuple(dict.fromkeys(parts))
