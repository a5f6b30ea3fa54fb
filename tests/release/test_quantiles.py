"""Quantiles as an analyst gets them: from a file, through the ledger, to values with intervals."""

import re
from collections.abc import Iterator
from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import lapwing as lw
from lapwing.answer import Answer
from lapwing.answer.notes import RANK_ERROR, code_of
from lapwing.catalog.toml import load
from lapwing.engines import DuckDB
from lapwing.engines.duckdb import leaves
from lapwing.mechanisms import DiscreteLaplace, RoundedGaussian
from lapwing.opening import open_session
from lapwing.privacy.measures import GaussianDP
from lapwing.query.bind.bind import bind
from lapwing.query.measures.distribution import Distribution
from lapwing.query.pricing.calibrate import calibrate
from lapwing.query.pricing.quote import Quote
from lapwing.release import payload, restoring
from lapwing.release.cells import cells_of, columns_of, exact_values
from lapwing.release.release import add_noise
from tests.support.effort import one_in, only
from tests.support.engines.tables import digests
from tests.support.fixed_entropy import StreamEntropy

ROWS = 12_000
PLANS = ["a", "b", "c"]
A_TREE = "DP_INTERVAL_LOW(MEDIAN(cost)) AS low"
"""With the end of an interval a question buys counts, and chooses nothing."""
QUARTILES = "QUANTILE_CONT(cost, 0.25) AS q1, MEDIAN(cost) AS q2, QUANTILE_CONT(cost, 0.75) AS q3"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of people with three rows each, a third of them without a cost, and its catalog."""
    path = tmp_path_factory.mktemp("quantiles")
    generator = np.random.default_rng(11)
    cost = np.round(np.minimum(generator.exponential(300, ROWS), 5000), 2)
    table = pa.table(
        {
            "person": np.arange(ROWS) // 3,
            "plan": generator.choice(["a", "b", "unlisted"], ROWS),
            "town": generator.choice(["Ulm", "Bonn", "Rom"], ROWS),
            "age": generator.integers(0, 111, ROWS),
            "cost": [None if number % 3 == 0 else float(value) for number, value in enumerate(cost)],
        }
    )
    pq.write_table(table, path / "visits.parquet")
    return path


def protected(folder: Path, *, delta_keys: str = "0", **changes: Any) -> lw.Session:
    """Protect the table anew; its noise comes from a fixed stream."""
    facts: dict[str, Any] = {
        "privacy_unit": "person",
        "epsilon": 8,
        "delta": 1e-5,
        "max_rows_per_unit": 3,
        "bounds": {"cost": (0, 5000), "age": (0, 110)},
        "domains": {"plan": PLANS},
    }
    for file in folder.glob("visits.lapwing*"):
        file.unlink()
    lw.protect(folder / "visits.parquet", **(facts | changes)).close()
    for file in folder.glob("visits.lapwing.db*"):
        file.unlink()
    path = folder / "visits.lapwing.toml"
    path.write_text(re.sub("delta_keys = .*", f"delta_keys = {delta_keys}", path.read_text()))
    return open_session(load(path), entropy=StreamEntropy("quantiles"))


@pytest.fixture
def session(folder: Path) -> Iterator[lw.Session]:
    with protected(folder) as found:
        yield found


def plain(folder: Path, question: str) -> list[dict[str, Any]]:
    with duckdb.connect() as connection:
        rows = connection.execute(question.replace("FROM visits", f"FROM '{folder}/visits.parquet'"))
        names = [str(column[0]) for column in rows.description or []]
        return [dict(zip(names, row, strict=True)) for row in rows.fetchall()]


def silent(session: lw.Session, text: str) -> Answer:
    """Return the answer without noise."""
    plan = bind(text, session.catalog)
    engine = DuckDB(session.catalog)
    exact = engine.run(plan.question, digests(engine, plan.question))
    engine.close()
    values = exact_values(plan.question, exact.cells, cells_of(plan.question), exact.leaves)
    silence = [RoundedGaussian(sigma=Fraction(1, 2**30)) for _ in values]
    keys = columns_of(cells_of(plan.question), len(plan.question.keys))
    return Answer(plan=plan, mechanisms=silence, keys=keys, values=values, cost=GaussianDP.from_amount(0))


AGES = """SELECT plan, MEDIAN(age) AS m, QUANTILE_DISC(age, 0.3) AS d, QUANTILE_CONT(age, 0.9) AS c, COUNT(*) AS n,
    MEDIAN(age) FILTER (WHERE cost > 100) AS dear, PERCENTILE_CONT(0.1) WITHIN GROUP (ORDER BY age) AS p,
    QUANTILE_DISC(age * 2 - 5, 0.7) AS e FROM visits WHERE plan <> 'unlisted' GROUP BY plan ORDER BY plan"""


def test_without_noise_answers_are_those_of_sql(session: lw.Session, folder: Path) -> None:
    ours = [row for row in silent(session, AGES).rows() if row["plan"] != "c"]
    theirs = plain(folder, AGES)
    assert len(ours) == len(theirs) == 2
    for one, other in zip(ours, theirs, strict=True):
        for name, value in other.items():
            assert one[name] == value or abs(float(one[name]) - float(value)) < 1e-4  # type: ignore[arg-type]


@pytest.mark.long
def test_wide_leaves_are_right_to_within_their_width(session: lw.Session, folder: Path) -> None:
    text = f"SELECT {QUARTILES} FROM visits"
    (ours,), (theirs,) = silent(session, text).rows(), plain(folder, text)
    (measure,) = bind(text, session.catalog).question.distributions
    assert measure.width > 1
    for name, value in theirs.items():
        assert abs(float(ours[name]) - value) <= float(measure.width * measure.type.step)  # type: ignore[arg-type]


@pytest.mark.long
def test_passes_add_up(session: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "SELECT plan, MEDIAN(age) AS m, QUANTILE(cost, 0.9) AS q, COUNT(*) AS n FROM visits GROUP BY plan"
    once = silent(session, text).rows()
    monkeypatch.setattr("lapwing.engines.duckdb.engine.passes_for", lambda *_: 3)
    assert silent(session, text).rows() == once
    read = leaves._unpacked
    monkeypatch.setattr(leaves, "_unpacked", lambda values: read(values[: len(values) // 2]))
    assert silent(session, text).rows() != once


def test_a_person_moves_the_nodes_by_its_rows_in_every_level(folder: Path, tmp_path: Path) -> None:
    """Through the engine, with more rows than count: as far as is claimed, and no further."""
    whole = pq.read_table(folder / "visits.parquet")
    extra = {"person": [ROWS] * 9, "plan": ["a"] * 9, "town": ["Ulm"] * 9, "age": [200] * 9, "cost": [6e9] * 9}
    pq.write_table(pa.concat_tables([whole, pa.table(extra, schema=whole.schema)]), tmp_path / "visits.parquet")
    found = []
    for place in (folder, tmp_path):
        with protected(place) as session:
            plan = bind("SELECT plan, MIN(age), MAX(cost) FROM visits GROUP BY plan", session.catalog)
            engine = DuckDB(session.catalog)
            exact = engine.run(plan.question, digests(engine, plan.question))
            engine.close()
            found.append(exact_values(plan.question, exact.cells, cells_of(plan.question), exact.leaves))
            terms = calibrate(plan, session.catalog.budget, epsilon=1).terms
    for term, without, with_it in zip(terms, *found, strict=True):
        moved = np.abs(with_it - without)
        assert moved.sum() == term.candidate.sensitivity.l1
        assert (moved**2).sum() == term.candidate.sensitivity.l2_squared


# ---- released --------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_trees_serve_all_quantiles_and_choices_some(session: lw.Session) -> None:
    one, many = (
        "SELECT MEDIAN(cost) AS q2, MAX(cost) AS hi FROM visits",
        f"SELECT {QUARTILES}, MIN(cost) AS lo, MAX(cost) AS hi FROM visits",
    )
    chosen = session.sql(many, epsilon=2)
    assert session.sql(one, epsilon=0.5).stored
    assert session.sql("SELECT MEDIAN(cost) AS q2 FROM visits", epsilon=0.2).stored
    assert not session.sql("SELECT QUANTILE_CONT(cost, 0.3) AS q FROM visits", epsilon=0.01).stored
    tree = session.sql(f"SELECT MEDIAN(cost) AS q2, {A_TREE} FROM visits", epsilon=3)
    served = session.sql(f"{many.replace(' FROM', f', {A_TREE} FROM')}", epsilon=3)
    assert tree.cost.amount > 0
    assert served.stored
    assert tree.rows()[0]["q2"] == served.rows()[0]["q2"]
    again = session.sql(f"SELECT MEDIAN(cost) AS q2, {A_TREE} FROM visits", epsilon=3.5)  # trees are not merged
    assert again.cost == session.price(3.5)
    for (row,) in (chosen.rows(), served.rows()):
        values = [row[name] for name in ("lo", "q1", "q2", "q3", "hi")]
        assert values == sorted(values)  # type: ignore[type-var]


@pytest.mark.long
def test_intervals_hold_values_and_the_truth(session: lw.Session, folder: Path) -> None:
    text = f"SELECT plan, {QUARTILES} FROM visits GROUP BY plan ORDER BY plan"
    answer = session.sql(text.replace(" FROM", f", {A_TREE} FROM"), epsilon=2)
    theirs = plain(folder, text)
    for name, (low, high) in answer.interval(1 - 1e-9).items():
        for place, row in enumerate(answer.rows()):
            if row[name] is not None:
                assert low[place] <= row[name] <= high[place]
        assert all(low[place] <= theirs[place][name] <= high[place] for place in range(2))
    assert answer.rows()[2]["plan"] == "c"
    low, high = answer.interval()["q2"]
    assert high[2] - low[2] > high[0] - low[0]  # of a cell without rows little is known


@pytest.mark.long
def test_the_width_of_a_difference_allows_for_both_quantiles(session: lw.Session) -> None:
    tree = A_TREE.replace("cost", "age")
    text = f"SELECT QUANTILE_CONT(age, 0.75) - QUANTILE_CONT(age, 0.25) AS iqr, {tree} FROM visits"
    quartiles = f"SELECT QUANTILE_CONT(age, 0.75) AS q3, QUANTILE_CONT(age, 0.25) AS q1, {tree} FROM visits"
    answer = session.sql(text, epsilon=1)
    both = session.sql(quartiles, epsilon=1)
    assert both.stored
    parts = both.interval(Fraction(39, 40))  # half of the chance each
    low, high = answer.interval(Fraction(19, 20))["iqr"]
    assert (low[0], high[0]) == (parts["q3"][0][0] - parts["q1"][1][0], parts["q3"][1][0] - parts["q1"][0][0])


@pytest.mark.long
def test_quantiles_go_on_into_formulas_conditions_and_ends(session: lw.Session) -> None:
    text = """SELECT plan, ROUND(MEDIAN(age), 1) AS m, CASE WHEN MEDIAN(age) > 20 THEN 'old' ELSE 'young' END AS t,
        MAX(age) - MIN(age) AS span FROM visits WHERE plan <> 'x' GROUP BY plan
        HAVING MEDIAN(age) > 10 AND plan <> 'c' ORDER BY QUANTILE(age, 0.9) DESC LIMIT 2"""
    answer = session.sql(text, epsilon=4)
    assert {row["plan"] for row in answer.rows()} == {"a", "b"}
    assert all(row["t"] == "old" and 40 < row["m"] < 70 and row["span"] > 60 for row in answer.rows())  # type: ignore[operator]
    assert answer.consistent().rows() == answer.rows()
    table = answer.to_arrow(0.95)
    assert {"m_low", "span_high"} <= set(table.column_names)


@pytest.mark.long
def test_explain_and_describe_say_how_far_ranks_are_off(session: lw.Session) -> None:
    text = f"SELECT plan, MEDIAN(cost) AS q2, MIN(cost) AS lo, {A_TREE} FROM visits GROUP BY plan"
    preview = session.explain(text, epsilon=1)
    (measure,) = preview.measures
    assert measure.measure == "ranks of q2"
    assert "levels of a tree of counts" in measure.reason
    assert [column.half_width for column in preview.columns] == [None] * 4
    assert [code_of(note) for note in preview.notes].count(RANK_ERROR) == 2  # an end of an interval has none
    answer = session.sql(text, epsilon=1)
    assert set(answer.notes) == set(preview.notes)
    q2 = answer.describe()[1]
    assert q2.measures[0].half_width == measure.half_width


def test_a_stored_answer_is_read_as_it_was_written(session: lw.Session) -> None:
    text = f"SELECT plan, {QUARTILES}, COUNT(*) AS n FROM visits GROUP BY plan"
    first = session.sql(text, epsilon=1)
    again = session.sql(text, epsilon=1)
    assert again.stored
    assert again.rows() == first.rows()


@pytest.mark.parametrize("huge", only([0], [0, 2**70]))
def test_vectors_are_written_and_read(session: lw.Session, huge: int) -> None:
    question = bind("SELECT MEDIAN(age), COUNT(*) FROM visits", session.catalog).question
    vectors = np.arange(2 * 148).reshape(2, 148).astype(object if huge else np.int64) + huge
    values = tuple(np.array([3, 4]) if str(m).startswith("COUNT") else vectors for m in question.measures)
    noises = tuple(RoundedGaussian(sigma=Fraction(2)) for _ in values)
    text = payload.written(question, payload.AnswerContent(mechanisms=noises, values=values))
    for wrote, read in zip(values, restoring.read(question, text).values, strict=True):
        assert read.dtype == wrote.dtype
        assert (read == wrote).all()


@pytest.mark.long
def test_private_keys_have_quantiles(folder: Path) -> None:
    with protected(folder, delta_keys="1e-6") as session:
        answer = session.sql("SELECT town, MEDIAN(age) AS m FROM visits GROUP BY town", epsilon=4, delta=1e-7)
        assert {row["town"] for row in answer.rows()} == {"Ulm", "Bonn", "Rom"}
        assert all(45 < row["m"] < 65 for row in answer.rows())  # type: ignore[operator]
        assert session.sql("SELECT town, MEDIAN(age) AS m FROM visits GROUP BY town", epsilon=4, delta=1e-7).stored


# ---- the noise of every node -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", one_in(3, ["gdp", "pure", "zcdp"]))
def test_every_node_of_every_cell_gets_noise_of_its_own(folder: Path, measure: str) -> None:
    with protected(folder, measure=measure, delta=0 if measure == "pure" else 1e-5) as session:
        plan = bind("SELECT plan, MAX(cost) AS m FROM visits GROUP BY plan", session.catalog)
        priced = calibrate(plan, session.catalog.budget, epsilon=1)
        check_noise(session, priced, Fraction(1))
        with pytest.raises(AssertionError):
            check_noise(session, priced, Fraction(9, 10))


def check_noise(session: lw.Session, priced: Quote, part: Fraction) -> None:
    """The noise of the nodes, of which there are many, has the law that the price allows, `part` of it in a twin."""
    engine = DuckDB(session.catalog)
    question = priced.question
    exact = engine.run(question, digests(engine, question))
    engine.close()
    (sums,) = exact_values(question, exact.cells, cells_of(question), exact.leaves)
    (noisy,) = add_noise(priced.terms, (sums,), StreamEntropy("nodes"))
    (term,) = priced.terms
    assert isinstance(term.measure, Distribution)
    assert noisy.shape == (3, sum(term.measure.sizes))
    draws = (noisy - sums).reshape(-1).astype(float)
    laplace = isinstance(term.mechanism, DiscreteLaplace)
    kind = priced.loss.kind
    wanted = (DiscreteLaplace if laplace else RoundedGaussian).for_loss(priced.loss, term.candidate.sensitivity)
    assert term.mechanism == wanted
    assert term.mechanism.loss(term.candidate.sensitivity, kind) <= priced.loss
    deviation = float(part) * wanted.standard_deviation
    fourth = 6 if laplace else 3  # of a standardised draw
    statistic = (np.mean(draws**2) / deviation**2 - 1) / sqrt((fourth - 1) / len(draws))
    assert stats.norm.sf(abs(statistic)) > 1e-8
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 6 / sqrt(len(draws))
