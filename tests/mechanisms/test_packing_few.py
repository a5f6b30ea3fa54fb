"""A packing of which some rows are tried first: the value is that of all rows, whichever they are."""

from collections.abc import Callable

import numpy as np
import pytest

from lapwing.mechanisms import packing
from lapwing.mechanisms.packing import SharedRows
from tests.support.effort import one_in

Few = Callable[..., packing.Integers]


def everything(owners: packing.Integers, *_: object) -> packing.Integers:
    return np.arange(len(owners))


def meetings(seed: int, *, kinds: int = 2, one_kind: bool = False) -> SharedRows:
    """Return rows of many buyers and few shops, and of as many towns if there are three kinds."""
    random = np.random.default_rng(seed)
    count = 3_000
    sizes, first = [400, 20, 20][:kinds], 0
    places = []
    for size in sizes:
        places.append(random.integers(0, size, count) + first)
        first += 0 if one_kind else size
    return SharedRows.of(places, random.integers(1, 10, count), first or sizes[0])


@pytest.mark.parametrize("kinds", one_in(3, [2, 3]))
@pytest.mark.parametrize("one_kind", [False, True])
def test_some_rows_give_the_value_of_all(kinds: int, one_kind: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = meetings(1, kinds=kinds, one_kind=one_kind)
    levels = [1, 2, 5, 9, 20, 50, 100, 300, 900, 10_000]
    found, sizes = {}, []
    packed = SharedRows._packed

    def counted(self: SharedRows, chosen: packing.Integers, *rest: int) -> int:
        sizes.append(len(chosen))
        return packed(self, chosen, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(SharedRows, "_packed", counted)
    for level in levels:
        found[level] = rows.value(level)
    assert min(sizes) < len(rows.weights) / 2  # some were tried
    monkeypatch.setattr(packing, "_few", everything)
    within = {level: packing.slack(level, kinds) for level in levels}
    assert all(abs(rows.value(level) - value) <= within[level] for level, value in found.items())


def test_rows_that_are_too_few_are_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = meetings(2)
    true = rows.value(50)
    monkeypatch.setattr(packing, "_few", lambda owners, *_: np.arange(len(owners) // 100))
    assert rows.value(50) == true


def test_a_bound_that_does_not_hold_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that a part of the rows reaches and all of them exceed: then the value is too low."""
    rows = meetings(3)
    true = rows.value(50)
    part = len(rows.weights) // 100
    reached = SharedRows._packed(rows, np.arange(part), np.minimum(rows.weights, 50), 50, 1)
    monkeypatch.setattr(packing, "_few", lambda *_: np.arange(part))
    monkeypatch.setattr(packing, "_most", lambda *_: (reached, 0))
    assert rows.value(50) == reached < true
