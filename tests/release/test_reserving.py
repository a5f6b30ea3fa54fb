"""A list that is bought before its first use: charged whole, durable, counted, and kept from being overdrawn."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.errors import InvalidParameter
from lapwing.privacy import listed
from lapwing.privacy.listing import Listed
from lapwing.privacy.measures import PureDP
from tests.support.effort import one_in, only
from tests.support.privacy.coarse import FEW, coarse

__all__ = ["coarse"]

pytestmark = pytest.mark.usefixtures("coarse")
TRAINING = [listed("gaussian", 1000, sigma=1.1, rate=0.01)]
FAILURE = Fraction(1, 10**7)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"person": [1, 1, 2], "age": [3, 4, 5]}), tmp_path / "visits.parquet")
    return tmp_path / "visits.parquet"


CATALOG = """
[dataset]
name = "visits"
ledger = "sqlite:visits.lapwing.db"

[budget]
epsilon = {epsilon}
delta = {delta}
delta_keys = {keys}
measure = "{measure}"

[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = 2

[tables.visits.columns]
person = {{ type = "integer" }}
age = {{ type = "integer", lower = 0, upper = 120 }}
"""


def opened(file: Path, measure: str = "gdp", epsilon: float = 5) -> lw.Session:
    delta, keys = (0, 0) if measure == "pure" else (1e-6, 5e-7)
    catalog = file.with_name("lapwing.toml")
    catalog.write_text(CATALOG.format(epsilon=epsilon, delta=delta, keys=keys, measure=measure))
    return lw.connect(catalog)


@pytest.fixture
def session(file: Path) -> Iterator[lw.Session]:
    with opened(file) as session:
        yield session


def test_training_is_charged_before_its_first_step(file: Path, session: lw.Session) -> None:
    slots = session.reserve(TRAINING, "train a model", delta=FAILURE)
    assert (slots.left, slots.delta) == ((1000,), FAILURE)
    budget = session.budget()
    assert budget.spent == slots.charged
    assert 0.3 < float(slots.charged.amount) ** 0.5 < 0.5  # without the sample a μ of 28.7
    (row,) = session.history()
    assert row.asked == "train a model"
    slots.use(999)
    slots.use()
    assert slots.left == (0,)
    with pytest.raises(lw.BudgetExhausted, match="0 uses are left, not 1"):
        slots.use()
    session.close()
    with opened(file) as again:
        assert again.budget().spent == slots.charged
        assert again.faults() == ()


KILLED = """
import os, signal, sys
import lapwing as lw
from lapwing.privacy import dominating_gaussian, listed

dominating_gaussian.CELLS = {cells}
session = lw.connect(sys.argv[1])
session.reserve([listed("gaussian", 1000, sigma=1.1, rate=0.01)], "train a model", delta=1e-7)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_killed_has_paid(file: Path, session: lw.Session) -> None:
    """What it reserved is spent, though nobody can use it any more: a crash wastes budget and reveals nothing."""
    charged = session.reserve(TRAINING, "in a process that lives", delta=FAILURE).charged
    catalog = str(file.with_name("lapwing.toml"))
    ended = subprocess.run(
        [sys.executable, "-c", KILLED.format(cells=FEW), catalog], capture_output=True, text=True, check=False
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert session.budget().spent == 2 * charged
    assert [row.asked for row in session.history()] == ["in a process that lives", "train a model"]
    assert session.faults() == ()


@pytest.mark.long
def test_batches_of_a_fixed_size_are_for_units_that_are_replaced(file: Path) -> None:
    steps = [listed("gaussian", 20, sigma=4, size=10, population=1000)]
    with opened(file) as session, pytest.raises(InvalidParameter, match="make the list one for replace_one"):
        session.reserve(steps, "train a model", delta=FAILURE)
    catalog = file.with_name("lapwing.toml")
    text = catalog.read_text(encoding="utf-8").replace(
        'measure = "gdp"', 'measure = "gdp"\nneighbouring = "replace_one"'
    )
    catalog.write_text(text.replace("visits.lapwing.db", "replaced.lapwing.db"), encoding="utf-8")
    with lw.connect(catalog) as session:
        slots = session.reserve(steps, "train a model", delta=FAILURE)
        assert 0 < float(slots.charged.amount) ** 0.5 < 20**0.5 / 4  # what it is without the subset


def test_what_is_charged_is_above_the_list_and_adds_up(session: lw.Session) -> None:
    first = session.reserve(TRAINING, "one", delta=FAILURE)
    second = session.reserve(TRAINING, "two", delta=FAILURE)
    session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.1)
    assert session.budget().spent.amount > first.charged.amount + second.charged.amount
    stated = lw.privacy.distribution_of(TRAINING).to_epsilon(1e-6).lower
    assert first.charged.to_epsilon(delta=Fraction(9, 10**7)) >= stated


@pytest.mark.long
def test_both_parts_of_the_budget_bound_it(session: lw.Session) -> None:
    with pytest.raises(lw.BudgetExhausted, match="delta"):
        session.reserve(TRAINING, "too rare", delta=6e-7)
    assert session.budget().spent.amount == 0
    for _ in range(2):
        session.reserve([listed("gaussian", sigma=50, rate=0.5)], "small", delta=FAILURE * 5 / 2)
    before = session.budget().spent
    with pytest.raises(lw.BudgetExhausted, match="takes a delta of 1e-7, and 0 is left of delta_keys"):
        session.reserve([listed("gaussian", sigma=50, rate=0.5)], "one more", delta=FAILURE)
    assert session.budget().spent == before
    with pytest.raises(lw.BudgetExhausted, match="% of the budget"):
        session.reserve([listed("laplace", 100, epsilon=1)], "far too much")


@pytest.mark.parametrize(
    ("measure", "least"), only([0], [("pure", "0.3"), ("gdp", "0.01"), ("zcdp", "0.005")], many=True)
)
def test_without_a_delta_losses_add_up_in_the_measure_of_the_ledger(file: Path, measure: str, least: str) -> None:
    with opened(file, measure) as session:
        slots = session.reserve([listed("laplace", 2, epsilon=0.1), listed("pure", epsilon=0.1)], "three")
        alone = PureDP(Fraction(1, 10)).to_kind(measure).amount
        assert Fraction(least) <= slots.charged.amount <= 3 * alone + Fraction(1, 10**9)
        slots.use(place=1)
        assert slots.left == (2, 0)


@pytest.mark.parametrize(
    ("parts", "delta", "message"),
    one_in(
        2,
        [
            ([], 0, "Nothing is listed"),
            (TRAINING, 0, "no smaller gdp loss"),
            (TRAINING, -1, "delta"),
            ([listed("approx", epsilon=1, delta=1e-8)], 0, "delta of its own"),
            ([listed("randomized-response", epsilon=1)], 0, "replace_one"),
        ],
        many=True,
    ),
)
def test_what_has_no_loss_is_refused(session: lw.Session, parts: list[Listed], delta: float, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        session.reserve(parts, "nothing", delta=delta)
    assert session.history() == ()


def test_a_delta_is_for_a_gdp_ledger(file: Path) -> None:
    with opened(file, "zcdp") as session, pytest.raises(InvalidParameter, match="Only a gdp ledger"):
        session.reserve(TRAINING, "nothing", delta=FAILURE)


@pytest.mark.parametrize(("times", "place"), one_in(2, [(0, 0), (True, 0), (1, 1), (1, -1), (1.0, 0)], many=True))
def test_uses_that_are_none(session: lw.Session, times: int, place: int) -> None:
    slots = session.reserve([listed("laplace", 2, epsilon=0.1)], "two")
    with pytest.raises(InvalidParameter):
        slots.use(times, place=place)
    assert slots.left == (2,)
