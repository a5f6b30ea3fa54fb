"""*faults* finds a scholarship where a fault is an answer, and nothing where a failing row counts as told wrongly."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lapwing import lab
from lapwing.engines import FAILED
from lapwing.errors import EngineFault
from lapwing.lab import Settings, faults
from lapwing.lab.students import LARGEST_SCHOLARSHIP
from lapwing.learn import predictions


def test_a_fault_tells_all_and_lapwing_has_none() -> None:
    found = faults.run(Settings(short=True))
    assert found.holds
    naive, ours = found.rows
    assert (naive["right, observed"], ours["faults"]) == (1, 0)
    assert float(ours["right, at most"] or 0) < 0.004


def test_the_bound_is_that_of_the_price() -> None:
    assert faults.SCORE.most(0.0) == pytest.approx(1 / 256)
    assert faults.SCORE.most(0.1) == pytest.approx(np.exp(0.8) / 256)
    assert faults.SCORE.most(20.0) == 1


def test_halving_ends_at_each_amount() -> None:
    for amount in range(faults.AMOUNTS):
        paid = faults.LEAST + (amount + 1) * faults.STEP
        assert faults.bisected(lambda above, paid=paid: paid > above) == amount  # type: ignore[misc]
        assert paid <= LARGEST_SCHOLARSHIP


def test_a_model_that_is_asked_of_all_at_once_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: an exception for one row is a fault of the whole score."""

    def at_once(isolated: Any, units: Any, what: Any, names: Any) -> Any:
        told = isolated.ask(predictions.columns_of(units, what, names), units.target.size)
        if np.isnan(told).all():
            raise EngineFault(FAILED)
        return told

    monkeypatch.setattr(predictions, "_unit_by_unit", at_once)
    # The largest amount is above each threshold: with a drawn one a third of the attacks would meet no fault.
    monkeypatch.setattr(faults, "uniform_integers", lambda *_: np.array([faults.AMOUNTS - 1]))
    found = faults.run(Settings(short=True, against="lapwing", epsilon=Fraction(1, 1000)))
    wrong = [check.what for check in found.checks if not check.holds]
    assert wrong[:1] == ["faults, score, Lapwing"]


def test_it_is_on_the_shelf() -> None:
    assert lab.experiments()["faults"].attack
