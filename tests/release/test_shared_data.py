"""Joins in which different units meet, through a session: what they cost, what an answer promises, what is said."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.answer.notes import RACE, code_of
from lapwing.engines import truncated_rows as engine_shared
from lapwing.errors import EngineFault
from lapwing.mechanisms import packing
from tests.support.effort import one_in
from tests.support.refusals import refused_as

CATALOG = """\
[dataset]
name = "market"
ledger = "sqlite:market.db"
[budget]
epsilon = {epsilon}
{delta}
measure = "{measure}"
[tables.orders]
source = "orders.parquet"
privacy_unit = "buyer"
max_rows_per_unit = 4
[tables.orders.columns]
shop = {{ type = "integer" }}
paid = {{ type = "integer", lower = 0, upper = 9 }}
kind = {{ type = "string", values = ["a", "b"] }}
[tables.shops]
source = "shops.parquet"
privacy_unit = "owner"
max_rows_per_unit = 9
[tables.shops.columns]
shop = {{ type = "integer" }}
"""
BUYERS, SHOPS = 3_000, 600
SOLD = "SELECT COUNT(*, contribution_bounds_per_group => AUTO) AS n FROM orders o JOIN shops s ON o.shop = s.shop"
LIMITED = SOLD.replace("AUTO", "(0, 40)")
RACED = SOLD.replace("AUTO", "RACE")


@pytest.fixture(params=one_in(3, ["pure", "gdp", "zcdp"]))
def market(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    delta = "" if request.param == "pure" else "delta = 1e-6"
    text = CATALOG.format(epsilon=1_000_000, delta=delta, measure=request.param)
    (tmp_path / "lapwing.toml").write_text(text, encoding="utf-8")
    orders = {
        "buyer": [n // 2 for n in range(2 * BUYERS)],
        "shop": [n % SHOPS for n in range(2 * BUYERS)],
        "paid": [n % 10 for n in range(2 * BUYERS)],
        "kind": ["ab"[n % 2] for n in range(2 * BUYERS)],
    }
    pq.write_table(pa.table(orders), tmp_path / "orders.parquet")
    pq.write_table(
        pa.table({"shop": list(range(SHOPS)), "owner": [n // 3 for n in range(SHOPS)]}), tmp_path / "shops.parquet"
    )
    return tmp_path / "lapwing.toml"


def test_a_race_is_close_to_the_truth_and_not_beyond(market: Path) -> None:
    """Each of 200 owners sells 30 things, so that a level of 64 cuts nothing.

    The answer is a lower end at most 3 half-widths below a noisy sum. With epsilon 10^5 for 11 levels a half-width is
    below 1 at the level of 64, and noise of 20 has a probability below exp(-20·10^5/(11·64)) < 10^-1000 there. At 2^20
    noise of 2,500 has one below exp(-2500·10^5/(11·2^20)) < 10^-9 in a pure ledger; in others noise is narrower. So the
    answer is neither 40 below the truth nor 2,500 above, but for chances below 10^-8 in all.
    """
    with lw.connect(market) as session:
        row: Any = session.sql(RACED, epsilon=100_000).rows()[0]
        assert 2 * BUYERS - 40 <= row["n"] <= 2 * BUYERS + 2_500


def test_it_is_charged_once_and_asked_again_is_free(market: Path) -> None:
    with lw.connect(market) as session:
        before = session.explain(LIMITED, epsilon=1)
        answer = session.sql(LIMITED, epsilon=1)
        assert answer.cost == before.price == session.budget().spent
        assert session.explain(LIMITED, epsilon=1).stored
        assert session.sql(LIMITED, epsilon=1).rows() == answer.rows()
        assert session.budget().spent == answer.cost


@pytest.mark.long
def test_explain_says_whom_it_protects_and_how(market: Path) -> None:
    with lw.connect(market) as session:
        preview = session.explain(RACED, epsilon=1)
        assert preview.unit == "each buyer and each owner"
        assert preview.bound == "at most 4 rows of each buyer in orders; at most 9 rows of each owner in shops"
        assert len(preview.measures) == 11
        assert {measure.sensitivity for measure in preview.measures} == {float(4**n) for n in range(11)}
        assert all("2 people" in measure.reason for measure in preview.measures)
        assert any(note.startswith("n is a race of 11 limits from 1 to 1,048,576, for ") for note in preview.notes)
        assert RACE in map(code_of, preview.notes)
        assert preview.columns[0].half_width is None
        single = session.explain(LIMITED, epsilon=1)
        assert [measure.sensitivity for measure in single.measures] == [40.0]
        assert not any("race" in note for note in single.notes)
        assert session.budget().spent.amount == 0


@pytest.mark.long
def test_groups_with_public_values_are_answered(market: Path) -> None:
    text = LIMITED.replace("SELECT", "SELECT kind,") + " GROUP BY kind"
    with lw.connect(market) as session:
        (measure,) = session.explain(text, epsilon=100).measures
        assert "each of 2 cells" in measure.reason
        rows: Any = session.sql(text, epsilon=1000).rows()
        # Half-widths of 80·ln(1/p)/1000 steps: 20 is exceeded with a probability below exp(-250) in a pure ledger.
        assert [row["kind"] for row in rows] == ["a", "b"]
        assert all(abs(row["n"] - BUYERS) <= 20 for row in rows)


def test_what_is_refused_costs_nothing(market: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with lw.connect(market) as session:
        with refused_as("different_units"):
            session.sql("SELECT COUNT(*) AS n FROM orders o JOIN shops s ON o.shop = s.shop", epsilon=1)
        monkeypatch.setattr(packing, "find_spec", lambda _: None)
        with refused_as("missing_extra", saying=r"lapwing-dp\[joins\]"):
            session.sql(SOLD, epsilon=1)
        assert session.budget().spent.amount == 0


def test_what_cannot_be_proven_fails_after_the_charge(market: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_shared, "MOST_TUPLES", 10)
    with lw.connect(market) as session:
        with pytest.raises(EngineFault) as failed:
            session.sql(LIMITED, epsilon=1)
        assert "10" not in str(failed.value)
        assert session.budget().spent.amount > 0
        assert len(session.faults()) == 1
