"""Disjoint parts: totals against all pairs of neighbours, exact strategies against the cap, and twins."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.errors import InvalidParameter
from lapwing.privacy.filters import Refused
from lapwing.privacy.measures import ApproxDP, GaussianDP, Loss, PureDP, ZeroConcentratedDP
from lapwing.privacy.parts import NEIGHBOURS_DIFFER, Neighbouring, PartsAccount, PartsGranted
from tests.support import mechanism_cases
from tests.support.effort import one_in

NOW = "data of Monday"
NAMES = ("north", "south", "east", "west")
RELATIONS: tuple[Neighbouring, ...] = ("add_remove", "replace_one")

Charges = list[tuple[frozenset[str], Fraction]]
Charge = Callable[[PartsAccount, Loss, Iterable[str]], PartsGranted | Refused[Loss]]


def charge(account: PartsAccount, loss: Loss, reads: Iterable[str]) -> PartsGranted | Refused[Loss]:
    return account.charge(loss, reads, data_version=NOW)


def opened(budget: Loss, neighbouring: Neighbouring) -> PartsAccount:
    return PartsAccount.opened(budget, NAMES, data_version=NOW, neighbouring=neighbouring)


def worst(charges: Charges, neighbouring: Neighbouring) -> Fraction:
    """The largest sum of charges that read a part in which neighbours differ, over all neighbours."""
    differing = [{name} for name in NAMES]
    if neighbouring == "replace_one":
        differing += [set(pair) for pair in combinations(NAMES, 2)]
    return max(sum((amount for reads, amount in charges if reads & parts), Fraction(0)) for parts in differing)


def as_charged(reads: frozenset[str], neighbouring: Neighbouring) -> frozenset[str]:
    """Under replace_one, what reads several parts is charged to all."""
    return frozenset(NAMES) if neighbouring == "replace_one" and len(reads) > 1 else reads


def check_totals(decide: Charge, charges: Charges, neighbouring: Neighbouring, budget: Fraction) -> None:
    """What is granted is what keeps every pair of neighbours within the budget."""
    account, granted, read = opened(PureDP(budget), neighbouring), Charges(), Charges()
    for reads, amount in charges:
        room = account.room(reads)
        decision = decide(account, PureDP(amount), reads)
        charged = as_charged(reads, neighbouring)
        after = worst([*granted, (charged, amount)], neighbouring)
        assert isinstance(decision, PartsGranted) == (after <= budget) == (PureDP(amount) <= room)
        if isinstance(decision, PartsGranted):
            account, granted, read = decision.account, [*granted, (charged, amount)], [*read, (reads, amount)]
            assert account.total == PureDP(after)
            assert worst(read, neighbouring) <= after
            assert account.remaining == account.room() == PureDP(budget - after)
        else:
            assert decision.shortfall == PureDP(after - budget)
    for name in NAMES:
        assert account.spent(name).amount == sum(amount for reads, amount in granted if name in reads)
    assert account.spent_by_part() == {name: account.spent(name) for name in NAMES}
    assert account.rooms() == {name: account.room([name]) for name in NAMES}


SOME = st.frozensets(st.sampled_from(NAMES), min_size=1)
AMOUNTS = st.integers(0, 1000).map(lambda n: Fraction(n, 1000))


@given(st.lists(st.tuples(SOME, AMOUNTS), max_size=14), st.sampled_from(RELATIONS))
def test_totals_are_those_of_the_worst_neighbours(charges: Charges, neighbouring: Neighbouring) -> None:
    check_totals(charge, charges, neighbouring, Fraction(2))


def parts(*names: str) -> frozenset[str]:
    return frozenset(names)


TYPICAL: Charges = [
    (parts("north"), Fraction(6, 10)),
    (parts("south"), Fraction(5, 10)),
    (parts("north", "south"), Fraction(4, 10)),
    (parts(*NAMES), Fraction(2, 10)),
    (parts("east"), Fraction(9, 10)),
    (parts("east", "west"), Fraction(3, 10)),
    (parts("west"), Fraction(1, 10)),
    (parts("north"), Fraction(1)),
    (parts("south"), Fraction(1, 2)),
]


@pytest.mark.parametrize("neighbouring", RELATIONS)
def test_typical_charges(neighbouring: Neighbouring) -> None:
    for budget in (Fraction(1), Fraction(3, 2), Fraction(2), Fraction(5, 2)):
        check_totals(charge, TYPICAL, neighbouring, budget)


def charge_one_part(account: PartsAccount, loss: Loss, reads: Iterable[str]) -> PartsGranted | Refused[Loss]:
    """Charge only the first part that is read."""
    return charge(account, loss, sorted(reads)[:1])


def charge_every_part(account: PartsAccount, loss: Loss, reads: Iterable[str]) -> PartsGranted | Refused[Loss]:
    """Charge the whole: valid, and what parts are there to save."""
    return charge(account, loss, NAMES)


def charge_for_the_other_relation(
    account: PartsAccount, loss: Loss, reads: Iterable[str]
) -> PartsGranted | Refused[Loss]:
    (other,) = set(RELATIONS) - {account.neighbouring}
    decision = charge(related(account, other), loss, reads)
    if isinstance(decision, Refused):
        return decision
    return PartsGranted(account=related(decision.account, account.neighbouring))


def related(account: PartsAccount, neighbouring: Neighbouring) -> PartsAccount:
    """Return the account as one for another relation."""
    sums = replace(account.sums, differ=NEIGHBOURS_DIFFER[neighbouring])
    return replace(account, neighbouring=neighbouring, sums=sums)


@pytest.mark.parametrize("neighbouring", RELATIONS)
@pytest.mark.parametrize("twin", [charge_one_part, charge_every_part, charge_for_the_other_relation])
def test_twins_are_caught(twin: Charge, neighbouring: Neighbouring) -> None:
    with pytest.raises((AssertionError, InvalidParameter)):
        check_totals(twin, TYPICAL, neighbouring, Fraction(2))


Decide = Callable[[PartsAccount, Loss, frozenset[str]], PartsGranted | Refused[Loss]]


def most_told(decide: Decide, neighbouring: Neighbouring, differing: frozenset[str], epsilon: float) -> float:
    """The largest δ at ε over all strategies with randomized responses at ½ and 1, on neighbours that differ there."""

    @cache
    def value(account: PartsAccount, loss: float) -> float:
        most = -math.expm1(min(0.0, epsilon - loss))
        for reads in (parts("north"), parts("south"), parts("north", "south")):
            for size in (Fraction(1, 2), Fraction(1)):
                decision = decide(account, PureDP(size), reads)
                if isinstance(decision, PartsGranted):
                    step = float(size) if reads & differing else 0.0
                    up = 1 / (1 + math.exp(-step))
                    after = decision.account
                    most = max(most, up * value(after, loss + step) + (1 - up) * value(after, loss - step))
        return most

    start = PartsAccount.opened(PureDP(2), ("north", "south"), data_version=NOW, neighbouring=neighbouring)
    return value(start, 0.0)


def check_strategies(decide: Decide, neighbouring: Neighbouring) -> None:
    pairs = [parts("north"), parts("south")]
    if neighbouring == "replace_one":
        pairs.append(parts("north", "south"))
    for differing in pairs:
        assert most_told(decide, neighbouring, differing, 2.0) == 0
        assert most_told(decide, neighbouring, differing, 1.9) > 0


@pytest.mark.parametrize("neighbouring", one_in(2, RELATIONS))
def test_no_strategy_learns_more_than_the_budget(neighbouring: Neighbouring) -> None:
    check_strategies(charge, neighbouring)


def test_twin_of_one_part_where_a_unit_may_move_is_caught() -> None:
    with pytest.raises((AssertionError, InvalidParameter)):
        check_strategies(charge_each_alone, "replace_one")


def charge_each_alone(account: PartsAccount, loss: Loss, reads: frozenset[str]) -> PartsGranted | Refused[Loss]:
    """Keep each part within the budget, which is enough only if a unit stays in its part."""
    return charge(related(account, "add_remove"), loss, reads)


@pytest.mark.parametrize("measure", mechanism_cases.MEASURES, ids=lambda measure: measure.kind)
def test_each_measure_adds_its_amounts(measure: type[PureDP]) -> None:
    account = opened(measure.from_amount(1), "replace_one")
    for name, amount in (("north", Fraction(1, 3)), ("south", Fraction(1, 2)), ("east", Fraction(1, 4))):
        decision = charge(account, measure.from_amount(amount), [name])
        assert isinstance(decision, PartsGranted)
        account = decision.account
    third = measure.from_amount(Fraction(1, 3)).rounded_up()
    assert account.total == third + measure.from_amount(Fraction(1, 2))
    assert isinstance(charge(account, measure.from_amount(Fraction(1, 4)), ["south"]), Refused)


def test_parts_save() -> None:
    """Four parts at the whole budget each; under replace_one at half of it."""
    for neighbouring, each in zip(RELATIONS, (PureDP(1), PureDP(Fraction(1, 2))), strict=True):
        account = opened(PureDP(1), neighbouring)
        for name in NAMES:
            decision = charge(account, each, [name])
            assert isinstance(decision, PartsGranted)
            account = decision.account
        assert account.total == PureDP(1)
        assert isinstance(charge(account, PureDP(Fraction(1, 10**20)), ["west"]), Refused)


def test_a_new_version_is_charged_everywhere() -> None:
    decision = charge(opened(PureDP(1), "add_remove"), PureDP(Fraction(6, 10)), ["north"])
    assert isinstance(decision, PartsGranted)
    later = decision.account.for_version("data of Tuesday")
    assert later.spent("south") == later.total == PureDP(Fraction(6, 10))
    assert isinstance(later.charge(PureDP(Fraction(1, 2)), ["south"], data_version="data of Tuesday"), Refused)
    with pytest.raises(InvalidParameter, match="for_version"):
        charge(later, PureDP(Fraction(1, 10)), ["south"])
    fewer = decision.account.for_version("data of Tuesday", ["centre"])
    assert fewer.spent("centre") == PureDP(Fraction(6, 10))
    with pytest.raises(InvalidParameter, match="north"):
        fewer.spent("north")
    assert opened(PureDP(1), "add_remove").for_version("data of Tuesday").total == PureDP(0)


def test_many_parts() -> None:
    names = [f"part {n}" for n in range(400)]
    account = PartsAccount.opened(GaussianDP(9), names, data_version=NOW, neighbouring="replace_one")
    for reads in ([names[7]], names, names[:200], [names[301]], names[100:300]):
        decision = charge(account, GaussianDP(1), reads)
        assert isinstance(decision, PartsGranted)
        account = decision.account
    assert account.total == GaussianDP.from_amount(5), "three read several, and count for all"
    assert account.spent("part 7") == account.spent("part 301") == GaussianDP.from_amount(4)
    assert account.room(["part 7"]) == account.budget.beyond(account.total)
    assert account.room(["part 8"]) == account.budget.beyond(GaussianDP.from_amount(4))


def test_an_account_does_not_grow_with_its_charges() -> None:
    account = opened(PureDP(1000), "add_remove")
    for number in range(500):
        decision = charge(
            account, PureDP(Fraction(1, 1000)), [NAMES[place] for place in range(4) if number >> place & 1] or NAMES
        )
        assert isinstance(decision, PartsGranted)
        account = decision.account
    assert len(account.sums.alone) == len(NAMES)


def test_what_is_refused() -> None:
    account = opened(PureDP(1), "add_remove")
    for loss in (GaussianDP(1), ApproxDP(1, 0), 1):
        with pytest.raises(InvalidParameter, match="its measure"):
            charge(account, loss, ["north"])  # type: ignore[arg-type]
    for reads in ([], ["centre"], "north"):
        with pytest.raises(InvalidParameter):
            charge(account, PureDP(1), reads)
    with pytest.raises(InvalidParameter, match="ApproxDP"):
        PartsAccount.opened(ApproxDP(1, 1e-6), NAMES, data_version=NOW)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="replace_one"):
        PartsAccount.opened(PureDP(1), NAMES, data_version=NOW, neighbouring="both")  # type: ignore[arg-type]
    for names in ([], [1]):
        with pytest.raises(InvalidParameter, match="name each"):
            PartsAccount.opened(PureDP(1), names, data_version=NOW)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="one version"):
        PartsAccount.opened(PureDP(1), NAMES, data_version="")
    with pytest.raises(InvalidParameter, match="overspent"):
        replace(account, sums=replace(account.sums, alone=(("north", Fraction(2)),)))
    with pytest.raises(InvalidParameter, match="do not exist"):
        replace(account, sums=replace(account.sums, alone=(("centre", Fraction(1)),)))
    with pytest.raises(InvalidParameter, match="another relation"):
        replace(account, neighbouring="replace_one")
    assert account.total.nothing() == PureDP(0)
    assert ZeroConcentratedDP(0) == opened(ZeroConcentratedDP(1), "replace_one").total
