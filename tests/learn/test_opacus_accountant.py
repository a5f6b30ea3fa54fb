"""The accountant for Opacus: all is paid before the first step, and nothing beyond it is counted.

Opacus is not installed: its dependencies are gigabytes. Its interface is recorded, names and parameters, and the double
calls the accountant in the order in which Opacus' optimizer does.
"""

import inspect
import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.errors import BudgetExhausted, InvalidParameter
from lapwing.learn import OpacusAccountant
from tests.support.effort import one_in
from tests.support.learn.people import people
from tests.support.learn.with_keys import opened
from tests.support.privacy.coarse import coarse

__all__ = ["coarse"]

pytestmark = pytest.mark.usefixtures("coarse")

RECORDED = json.loads((Path(__file__).parents[1] / "fixtures" / "learn" / "opacus_interface.json").read_text())
DELTA = 1e-7


@pytest.fixture
def session(tmp_path: Path) -> Iterator[lw.Session]:
    with opened(tmp_path / "data", people(20), epsilon=4) as session:
        yield session


def accountant(session: lw.Session, **more: Any) -> OpacusAccountant:
    facts: dict[str, Any] = {"noise_multiplier": 6, "sample_rate": 1, "steps": 4, "delta": DELTA}
    return OpacusAccountant(session, **(facts | more))


class Optimizer:
    """Steps as Opacus' optimizer does: noise, then the hook, and weights only if that returns."""

    def __init__(self, noise_multiplier: float, hook: Callable[[Any], None]) -> None:
        self.noise_multiplier = noise_multiplier
        self.accumulated_iterations = 1
        self.hook = hook
        self.updates = 0

    def step(self) -> None:
        self.hook(self)
        self.updates += 1


@pytest.mark.parametrize("name", RECORDED["methods"])
def test_it_has_the_recorded_interface(name: str) -> None:
    said = RECORDED["methods"][name]
    found = inspect.signature(getattr(OpacusAccountant, name))
    own = [] if said.get("classmethod") else [None]
    found.bind(*own) if not {"positional", "keywords"} & said.keys() else None
    if "positional" in said:
        found.bind(*own, *said["positional"])
    if "keywords" in said:
        found.bind(*own, **dict.fromkeys(said["keywords"]))
    if said.get("more"):
        found.bind(*own, *said["positional"], "more", other="more")
    for optional in said.get("optional", ()):
        found.bind(*own, **{optional: None})


def test_state_has_the_recorded_keys(session: lw.Session) -> None:
    made = accountant(session)
    assert all(hasattr(made, name) for name in RECORDED["attributes"])
    assert sorted(made.state_dict()) == RECORDED["state"]
    assert set(RECORDED["optimizer"]) <= vars(Optimizer(1.0, print)).keys()


def test_all_steps_are_charged_before_the_first(session: lw.Session) -> None:
    made = accountant(session)
    assert session.budget().spent == made.charged
    assert session.budget().delta_keys_spent == Fraction(1, 10**7)
    (row,) = session.history()
    assert row.asked == "train with Opacus"
    optimizer = Optimizer(6, made.get_optimizer_hook_fn(sample_rate=1))
    for taken in range(4):
        assert len(made) == taken
        optimizer.step()
    with pytest.raises(BudgetExhausted, match="0 uses are left"):
        optimizer.step()
    assert (optimizer.updates, len(made), made.left) == (4, 4, 0)
    assert made.history == [(6, 1, 4)]
    assert len(session.history()) == 1


def test_epsilon_is_that_of_the_steps_so_far(session: lw.Session) -> None:
    """Without samples, where it has a closed form: σ = 3 twice and σ = 5 once are μ² = 2/9 + 1/25."""
    made = accountant(session, noise_multiplier=3, sample_rate=1)
    assert made.get_epsilon(DELTA) == 0
    made.step(noise_multiplier=3, sample_rate=1)
    made.step(noise_multiplier=3, sample_rate=1)
    made.step(noise_multiplier=5, sample_rate=1)  # less than was paid for, and said so
    wanted = lw.GaussianDP.from_mu_squared(Fraction(2, 9) + Fraction(1, 25)).to_epsilon(delta=DELTA)
    assert wanted * (1 - 1e-9) <= made.get_epsilon(delta=DELTA) <= wanted * 1.01
    assert made.history == [(3, 1, 2), (5, 1, 1)]


WORSE: list[tuple[float, float, int]] = [(1.09, 0.02, 1), (1.1, 0.021, 1), (1.1, 0.02, 2), (1.1, 0.0, 1)]


@pytest.mark.parametrize("bugs", one_in(2, [slice(0, 2), slice(2, 4)]), ids=["noise, sample", "batches, none"])
def test_what_loses_more_than_was_paid_is_refused(session: lw.Session, bugs: slice) -> None:
    """The planted bugs: less noise, a larger sample, one that is accumulated over two batches, and none at all."""
    made = accountant(session, noise_multiplier=1.1, sample_rate=0.02)
    for noise, rate, iterations in WORSE[bugs]:
        optimizer = Optimizer(noise, made.get_optimizer_hook_fn(rate))
        optimizer.accumulated_iterations = iterations
        with pytest.raises(BudgetExhausted, match="was not paid"):
            optimizer.step()
        assert (optimizer.updates, made.left, len(made)) == (0, 4, 0)
    made.step(noise_multiplier=1.1, sample_rate=0.02)
    assert made.left == 3


def test_a_saved_state_gives_nothing_back(session: lw.Session) -> None:
    made = accountant(session)
    saved = made.state_dict()
    for _ in range(3):
        made.step(noise_multiplier=6, sample_rate=1)
    later = made.state_dict({"weights": 1})
    assert saved["history"] == []
    assert later["weights"] == 1
    made.load_state_dict(saved)
    assert (len(made), made.left) == (0, 1)
    made.load_state_dict(later)
    assert (len(made), made.left) == (3, 1)
    states: list[dict[str, Any]] = [{}, {"history": []}, {"history": [], "mechanism": "rdp"}]
    for bad in states:
        with pytest.raises(ValueError, match="not from an OpacusAccountant"):
            made.load_state_dict(bad)
    with pytest.raises(InvalidParameter):
        made.load_state_dict({"history": [(0, 0.1, 1)], "mechanism": "lapwing"})
    assert OpacusAccountant.mechanism() == "lapwing"


def test_what_is_not_affordable_is_not_made(session: lw.Session) -> None:
    with pytest.raises(BudgetExhausted):
        accountant(session, noise_multiplier=1, steps=20)
    with pytest.raises(InvalidParameter):
        accountant(session, noise_multiplier=0)
    with pytest.raises(InvalidParameter):
        accountant(session, sample_rate=0.5, delta=0)
    assert session.budget().spent.amount == 0
