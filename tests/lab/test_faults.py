"""*faults* finds a scholarship, and Alice, where a fault is an answer, and nothing where there always is one."""

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
from lapwing.mechanisms.graphs import forest_programs, forests
from lapwing.mechanisms.graphs.simple_graph import SimpleGraph
from tests.support.effort import one_in


@pytest.fixture(autouse=True)
def few_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Bob be with one other, as each of all is asked in a process of their own."""
    monkeypatch.setattr(faults, "OTHERS", 1)


@pytest.mark.long
def test_a_fault_tells_all_and_lapwing_has_none() -> None:
    found = faults.run(Settings(short=True))
    assert found.holds
    assert [(row["asked"], row["target"]) for row in found.rows] == [
        (name, target) for name in ("score", "components") for target in (faults.ONE_ANSWER, "Lapwing")
    ]
    for naive, ours in (found.rows[:2], found.rows[2:]):
        assert (naive["right, observed"], ours["faults"]) == (1, 0)
    most = [float(row["right, at most"] or 0) for row in found.rows]
    assert most[1] < 0.004
    assert 0.5 < most[3] < 0.501


def test_the_bound_is_that_of_the_price() -> None:
    assert faults.SCORE.most(0.0) == pytest.approx(1 / 256)
    assert faults.SCORE.most(0.1) == pytest.approx(np.exp(0.8) / 256)
    assert faults.SCORE.most(20.0) == 1


def test_halving_ends_at_each_amount() -> None:
    for amount in range(faults.AMOUNTS):
        paid = faults.LEAST + (amount + 1) * faults.STEP
        assert faults.bisected(lambda above, paid=paid: paid > above) == amount  # type: ignore[misc]
        assert paid <= LARGEST_SCHOLARSHIP


@pytest.mark.long
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


def test_only_alice_decides_whether_a_forest_is_proven() -> None:
    """And Lapwing has both values, of which the first takes the program that others give up on."""
    sizes = []
    for alice in (True, False):
        ends = np.array(sorted(faults.friendships(alice=alice)), dtype=np.int64)
        graph = SimpleGraph.of(faults.PEOPLE, ends[:, 0], ends[:, 1])
        sizes.append(forests.forest_value(graph, faults.LEVEL))
    assert sizes == [64, 56]
    assert faults.proven_forest(faults.friendships(alice=False)) == 56
    with pytest.raises(ArithmeticError):
        faults.proven_forest(faults.friendships(alice=True))
    assert (faults.PEOPLE - 64, faults.PEOPLE - 1 - 56) == faults.COUNTS


@pytest.mark.long
@pytest.mark.parametrize("alice", one_in(2, [True, False]))
def test_a_limit_of_rounds_is_noticed(monkeypatch: pytest.MonkeyPatch, alice: bool) -> None:
    """The planted bug: an engine that gives up after some rounds. It shows in every attack on Alice, and in no other.

    No coin is thrown: there are as many faults as attacks where she is there, and none where she is not.
    """

    def no_more(_: object) -> None:
        raise ArithmeticError

    monkeypatch.setattr(forest_programs.ForestProgram, "improve", no_more)
    monkeypatch.setattr(faults, "is_there", lambda: alice)
    monkeypatch.setattr(faults, "CASES", (faults.COMPONENTS,))
    found = faults.run(Settings(short=True, against="lapwing", epsilon=Fraction(1, 1000)))
    (row,) = found.rows
    assert row["faults"] == int(alice)
    wrong = [check.what for check in found.checks if not check.holds]
    assert ("faults, components, Lapwing" in wrong) == alice


def test_it_is_on_the_shelf() -> None:
    assert lab.experiments()["faults"].attack
