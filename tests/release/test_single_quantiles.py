"""One quantile of a column: chosen by itself where that errs less, kept, and served again for nothing."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.answer.notes import RANK_ERROR, code_of
from lapwing.mechanisms import RoundedGaussian, quantiles_of_counts
from lapwing.mechanisms.quantile_of_counts import QuantileOfCounts
from lapwing.mechanisms.quantiles_of_counts import QuantilesOfCounts
from lapwing.query.bind.bind import bind
from lapwing.query.derivation import chosen_quantiles
from lapwing.query.derivation.noisy_trees import rank_error, ranks_of
from lapwing.query.derivation.ranked_values import OrderStatistic
from lapwing.query.pricing import choices
from lapwing.query.pricing.calibrate import calibrate
from lapwing.query.pricing.quote import Quote
from tests.support.effort import one_in

MEDIAN = "SELECT plan, MEDIAN(cost) AS m FROM visits GROUP BY plan ORDER BY plan"
A_TREE = "DP_INTERVAL_LOW(MEDIAN(cost)) AS low"
PEOPLE = 1_500
Open = Callable[..., lw.Session]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    generator = np.random.default_rng(3)
    cost = np.minimum(generator.exponential(300, 2 * PEOPLE).round(), 5000)
    plan = generator.choice(["a", "b"], 2 * PEOPLE)
    table = pa.table({"person": np.arange(2 * PEOPLE) // 2, "plan": plan, "cost": cost})
    pq.write_table(table, tmp_path / "visits.parquet")

    def protect(measure: str = "gdp") -> lw.Session:
        return lw.protect(
            tmp_path / "visits.parquet",
            privacy_unit="person",
            epsilon=20,
            delta=0 if measure == "pure" else 1e-6,
            measure=measure,
            max_rows_per_unit=2,
            bounds={"cost": (0, 5000)},
            domains={"plan": ["a", "b", "c"]},
        )

    return protect


def bought(session: lw.Session, text: str, epsilon: float = 1) -> Quote:
    return calibrate(bind(text, session.catalog), session.catalog.budget, epsilon=epsilon)


def number(cell: object) -> float:
    assert isinstance(cell, float)
    return cell


@pytest.mark.parametrize("measure", one_in(3, ["pure", "gdp", "zcdp"]))
def test_one_quantile_is_chosen_by_itself_at_no_higher_price(opened: Open, measure: str) -> None:
    with opened(measure) as session:
        priced = bought(session, MEDIAN)
        (term,) = priced.terms
        assert isinstance(term.mechanism, QuantilesOfCounts)
        assert (term.mechanism.quantiles, bool(term.mechanism.count_noise)) == ((Fraction(1, 2),), True)
        assert term.candidate.sensitivity.l1 == 2
        assert term.candidate.reason == "at most 2 rows each"
        assert term.loss(measure) <= priced.loss
        (alone,) = bought(session, "SELECT MEDIAN(cost) AS m FROM visits").terms
        assert isinstance(alone.mechanism, QuantileOfCounts)  # of one cell no number of rows is bought
        assert alone.mechanism.scale < term.mechanism.scale < Fraction(4, 3) * alone.mechanism.scale
        tree = bought(session, MEDIAN.replace("MEDIAN(cost) AS m", f"MEDIAN(cost) AS m, {A_TREE}"))
        assert not isinstance(tree.terms[0].mechanism, QuantilesOfCounts)
        assert term.half_width(Fraction(95, 100)) < tree.terms[0].half_width(Fraction(95, 100))


@pytest.mark.parametrize(
    "text",
    one_in(
        3,
        [
            "SELECT MIN(cost), MAX(cost) FROM visits",
            "SELECT MEDIAN(cost), QUANTILE_DISC(cost, 0) FROM visits",
            "SELECT plan, MEDIAN(cost) FROM visits GROUP BY plan HAVING DP_INTERVAL_HIGH(QUANTILE_CONT(cost, 0.1)) > 3",
            "SELECT QUANTILE_DISC(cost, 0.1234567) FROM visits",
            "SELECT DP_INTERVAL_LOW(MEDIAN(cost)) FROM visits",
        ],
    ),
)
def test_other_questions_buy_a_tree(opened: Open, text: str) -> None:
    with opened() as session:
        chosen = QuantileOfCounts | QuantilesOfCounts
        assert not any(isinstance(term.mechanism, chosen) for term in bought(session, text).terms)


@pytest.mark.parametrize(
    "text",
    one_in(
        2,
        [
            "SELECT plan, MEDIAN(cost), MAX(cost) FROM visits GROUP BY plan HAVING QUANTILE_CONT(cost, 0.1) > 3",
            "SELECT MIN(cost), MEDIAN(cost) FROM visits",  # with MAX(cost), a tree errs less by one in a hundred
            "SELECT QUANTILE_CONT(cost, 0.75) - QUANTILE_CONT(cost, 0.25) AS iqr FROM visits",
        ],
    ),
)
def test_several_quantiles_are_chosen_at_no_higher_price(opened: Open, text: str) -> None:
    with opened() as session:
        priced = bought(session, text)
        (term,) = priced.terms
        assert isinstance(term.mechanism, QuantilesOfCounts)
        assert term.loss("gdp") <= priced.loss
        assert bool(term.mechanism.count_noise) == ("GROUP BY" in text)


@pytest.mark.long
def test_explain_says_before_what_an_answer_says_of_ranks(opened: Open) -> None:
    with opened("pure") as session:
        for text in (MEDIAN, MEDIAN.replace("AS m", "AS m, QUANTILE_CONT(cost, 0.75) AS q, MIN(cost) AS least")):
            answer, preview = session.sql(text, epsilon=4), session.explain(text, epsilon=4)
            assert [row["m"] is None for row in answer.rows()][:2] == [False, False]
            codes = [code_of(note) for note in preview.notes]
            assert codes == [code_of(note) for note in answer.notes]
            assert codes.count("rank_error") == text.count(" AS ")


def test_a_note_on_ranks_names_the_number_and_not_an_end_of_its_interval(opened: Open) -> None:
    with opened("pure") as session:
        ends = "DP_INTERVAL_LOW(MEDIAN(cost)) AS low, MEDIAN(cost) AS middle, DP_INTERVAL_HIGH(MEDIAN(cost)) AS high"
        notes = session.explain(f"SELECT {ends} FROM visits", epsilon=4).notes
        assert [note.partition(":")[0] for note in notes if code_of(note) == RANK_ERROR] == ["middle"]


def test_a_group_of_too_few_rows_shows_no_value(opened: Open) -> None:
    """Namely of fewer, by their noisy number, than its rank may be off by."""
    with opened("pure") as session:
        (read,) = [o.value for o in bind(MEDIAN, session.catalog).outputs if isinstance(o.value, OrderStatistic)]
        (term,) = bought(session, MEDIAN).terms
    off = rank_error(read.distribution, term.mechanism, Fraction(95, 100), read.share)
    assert off > 1
    released = np.array([[700, off + 5], [700, off], [700, off - 1], [700, -40]])
    values = ranks_of(read.distribution, term.mechanism, released).values(read).values()
    assert [value is None for value in values] == [False, False, True, True]


def test_twin_groups_without_rows_that_show_values_are_caught(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chosen_quantiles, "some", lambda mask: None)
    with pytest.raises(AssertionError):
        test_a_group_of_too_few_rows_shows_no_value(opened)


@pytest.mark.long
def test_the_same_quantile_in_several_places_is_chosen_once(opened: Open) -> None:
    with opened() as session:
        text = "SELECT MEDIAN(cost) * 2 AS m, COUNT(*) AS n FROM visits HAVING QUANTILE_DISC(cost, 0.5) > 3"
        answer = session.sql(text, epsilon=4)
        assert any(isinstance(law, QuantileOfCounts) for law in answer.mechanisms.values())
        assert len(answer.mechanisms) == 2
        assert 380 < number(answer.rows()[0]["m"]) < 460


def test_it_is_shown_with_the_error_of_its_rank_and_without_an_interval(opened: Open) -> None:
    with opened() as session:
        preview = session.explain(MEDIAN, epsilon=1)
        assert preview.measures[0].mechanism == "exponential mechanism for quantiles"
        answer = session.sql(MEDIAN, epsilon=1)
        rows = answer.rows()
        assert [row["plan"] for row in rows] == ["a", "b", "c"]
        assert all(170 < number(row["m"]) < 250 for row in rows[:2])
        assert np.isnan(np.array(answer.interval()["m"], dtype=float)).all()
        (said,) = [note for note in answer.notes if code_of(note) == RANK_ERROR]
        assert "DP_INTERVAL_LOW" in said
        assert "m_low" in answer.to_arrow(0.95).column_names
        assert answer.describe()[1].measures[0].half_width == preview.measures[0].half_width


@pytest.mark.long
def test_it_is_served_again_to_who_asks_for_no_more(opened: Open) -> None:
    with opened() as session:
        first = session.sql(MEDIAN, epsilon=2)
        for text, epsilon in [(MEDIAN, 2), (MEDIAN, 1), (MEDIAN.replace("m FROM", "m, MEDIAN(cost) + 1 FROM"), 2)]:
            again = session.sql(text, epsilon=epsilon)
            assert again.stored
            assert [row["m"] for row in again.rows()] == [row["m"] for row in first.rows()]
        assert session.sql(MEDIAN, epsilon=3).cost == session.price(3)
        other = session.sql(MEDIAN.replace("MEDIAN(cost)", "QUANTILE_DISC(cost, 0.9)"), epsilon=2)
        assert not other.stored
        both = session.sql(MEDIAN.replace("AS m", "AS m, MAX(cost) AS x"), epsilon=2)
        assert not both.stored
        assert session.sql(MEDIAN, epsilon=2).stored


def test_twin_another_quantile_read_off_a_stored_one_is_caught(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantiles_of_counts, "as_good", lambda *_: True)
    with pytest.raises(AssertionError):
        test_it_is_served_again_to_who_asks_for_no_more(opened)


def test_what_was_bought_as_a_tree_stays_free(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as before, opened() as session:
        before.setattr(choices, "with_choices", lambda priced, *_: priced)
        tree = session.sql(MEDIAN, epsilon=2)
        assert isinstance(next(iter(tree.mechanisms.values())), RoundedGaussian)
    with opened() as session:
        again = session.sql(MEDIAN, epsilon=2)
        assert again.stored
        assert again.rows() == tree.rows()
        assert not session.sql(MEDIAN, epsilon=2.5).stored


def test_a_median_by_groups_that_was_bought_without_numbers_of_rows_stays_free(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As earlier versions sold it: all of the price for the choice."""
    half = Fraction(1, 2)
    with monkeypatch.context() as before, opened() as session:
        before.setattr(
            choices,
            "in_ways",
            lambda loss, rows, _shares, points, **_: [
                QuantileOfCounts.for_loss(loss, rows, quantile=half, points=points)
            ],
        )
        first = session.sql(MEDIAN, epsilon=2)
        assert isinstance(next(iter(first.mechanisms.values())), QuantileOfCounts)
    with opened() as session:
        again = session.sql(MEDIAN, epsilon=2)
        assert again.stored
        assert again.rows() == first.rows()
        assert not session.sql(MEDIAN, epsilon=3).stored


@pytest.mark.parametrize(("share", "truth"), one_in(2, [(0, 1000), (1, 2000)], many=True))
def test_the_outermost_rows_are_not_chosen_by_their_rank(tmp_path: Path, share: int, truth: int) -> None:
    table = pa.table({"person": np.arange(1001), "cost": 1000 + np.arange(1001)})
    pq.write_table(table, tmp_path / "visits.parquet")
    with lw.protect(
        tmp_path / "visits.parquet", privacy_unit="person", epsilon=10_000, delta=1e-6, max_rows_per_unit=1,
        bounds={"cost": (0, 5000)},
    ) as session:  # fmt: skip
        answer = session.sql(f"SELECT QUANTILE_DISC(cost, {share}) AS q FROM visits", epsilon=1_000)
        assert abs(number(float(str(answer[0]["q"]))) - truth) <= 20  # where a choice is anywhere outside of the rows
        middle = bought(session, "SELECT QUANTILE_DISC(cost, 0.5) AS q FROM visits").terms[0]
        assert isinstance(middle.mechanism, QuantileOfCounts)
        outermost = bought(session, f"SELECT QUANTILE_DISC(cost, {share}) AS q FROM visits").terms[0]
        assert not isinstance(outermost.mechanism, QuantileOfCounts)
