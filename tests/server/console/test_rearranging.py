"""Answers put together anew, and compared: what is shown follows from released rows, and intervals hold."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lapwing.answer.charts.answer_chart import adds_up, chart_of
from lapwing.answer.notes import CHOSEN_KEYS
from lapwing.server.console.difference import subtracted
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.rearranged import rows
from lapwing.server.console.rearranged.rows import Arrangement, NumberNoise, half_width, rearranged
from tests.server.console.test_asking import SQL, priced
from tests.server.console.test_charts import document
from tests.support.server.browsing import Visitor

SCALE = 7.0


def noisy(law: str = "rounded Gaussian", *, parts: int = 1, **more: Any) -> dict[str, Any]:
    """Return an answer by two keys, with facts."""
    shown = document(
        {"plan": ("text", ["a", "a", "b", "b"]), "sex": ("text", ["f", "m", "f", "m"])}, [10, 20, None, -40], 14
    )
    measure = {"measure": "n", "mechanism": law, "scale": SCALE, "half_width": 14.0, "price_share": 1.0}
    facts = {"name": "n", "measures": [measure] * parts, "half_width": 14.0, "price_share": 1.0, "notes": []}
    return {**shown, "facts": [facts], "notes": [], "confidence": 0.95, **more}


def test_rows_are_added_up_over_a_key() -> None:
    shown = rearranged(noisy(), Arrangement(kept=("plan",)), "SELECT 1")
    assert shown["rows"] == [{"plan": "a", "n": 30}, {"plan": "b", "n": -40}]
    (low, other), (high, _) = shown["intervals"]["n"]["low"], shown["intervals"]["n"]["high"]
    noise = [NumberNoise("rounded Gaussian", SCALE, 10)]  # the greatest common divisor of what was released
    assert high - 30 == 30 - low == pytest.approx(half_width(noise, 2))
    assert other == -40 - half_width(noise, 1)  # type: ignore[operator]
    whole = rearranged(noisy(), Arrangement(kept=()), "SELECT 1")
    assert whole["rows"] == [{"n": -10}]
    largest = rearranged(noisy(), Arrangement(kept=("sex",), how="largest"), "SELECT 1")
    assert largest["rows"] == [{"sex": "f", "n": 10}, {"sex": "m", "n": 20}]
    assert largest["intervals"] == {}


def test_rows_are_chosen_and_ordered() -> None:
    kept = ("plan", "sex")
    some = rearranged(noisy(), Arrangement(kept=kept, key="sex", holds="M"), "")
    assert [row["n"] for row in some["rows"]] == [20, -40]
    assert some["intervals"]["n"]["low"] == [6, -54]
    above = rearranged(noisy(), Arrangement(kept=kept, column="n", above=10), "")
    assert [row["n"] for row in above["rows"]] == [10, 20]
    below = rearranged(noisy(), Arrangement(kept=("plan",), column="n", above=0, below=30), "")
    assert below["rows"] == [{"plan": "a", "n": 30}]


@pytest.mark.parametrize(
    ("shown", "sql"),
    [
        (noisy(), "SELECT plan, COUNT(*) AS n FROM t GROUP BY plan HAVING COUNT(*) > 5"),
        (noisy(), "select * from t limit 5"),
        (noisy(), "SELECT n FROM (SELECT COUNT(*) AS n FROM t)"),
        (noisy("another law of Gaussians"), "SELECT 1"),
        (noisy(notes=["rare groups are left out"], note_codes=[CHOSEN_KEYS]), "SELECT 1"),
    ],
)
def test_a_sum_has_no_interval_where_none_can_be_promised(shown: dict[str, Any], sql: str) -> None:
    told = rearranged(shown, Arrangement(kept=("plan",)), sql)
    assert [row["n"] for row in told["rows"]] == [30, -40]
    assert told["intervals"] == {}


@pytest.mark.parametrize("law", ["merged Gaussians", "reconstructed Gaussian"])
def test_sums_of_numbers_that_share_noise_have_an_interval(law: str) -> None:
    told = rearranged(noisy(law), Arrangement(kept=("plan",)), "SELECT 1")
    assert told["intervals"]["n"] == {"low": [30 - 2 * (14 + 10), -40 - 14], "high": [30 + 2 * (14 + 10), -40 + 14]}


def test_that_interval_holds_if_all_noise_is_shared() -> None:
    """The twin is the interval for independent noise."""
    generator, cells, slack = np.random.default_rng(5), 9, 0.5
    shared = generator.normal(0, SCALE, (20_000, 1)).repeat(cells, axis=1)
    released = np.rint(shared + generator.uniform(-slack, slack, shared.shape))
    half = math.floor(1.96 * SCALE + slack + 0.5)
    off = np.abs(released.sum(axis=1))
    assert np.mean(off <= rows._of_shared(half, 1, cells)) >= 0.95
    apart = half_width([NumberNoise("rounded Gaussian", SCALE, 1)], cells)
    assert apart is not None
    assert np.mean(off <= apart) < 0.6


def test_what_does_not_add_up_is_left_out() -> None:
    told = rearranged(noisy(parts=2), Arrangement(kept=("plan",)), "SELECT 1")
    assert (told["columns"], told["left_out"]) == (["plan"], ["n"])
    assert adds_up(noisy(parts=2), "n") is False
    assert adds_up(noisy("quantile"), "n") is False
    assert adds_up(document({}, []), "n") is None


def rounded(generator: np.random.Generator, size: tuple[int, int]) -> Any:
    return np.round(generator.normal(0, SCALE, size))


def laplace(generator: np.random.Generator, size: tuple[int, int]) -> Any:
    p = 1 - math.exp(-1 / SCALE)
    return generator.geometric(p, size) - generator.geometric(p, size)


@pytest.mark.parametrize(
    ("law", "draw"),
    [("rounded Gaussian", rounded), ("discrete Gaussian", rounded), ("discrete Laplace", laplace)],
)
@pytest.mark.parametrize("count", [1, 10, *(pytest.param(count, marks=pytest.mark.long) for count in (2, 200))])
def test_intervals_of_sums_hold(law: str, draw: Callable[..., Any], count: int) -> None:
    """Of 20,000 sums at most 5 % are outside, but for chance; of a third of the width more are."""
    sums = draw(np.random.default_rng(27), (20_000, count)).sum(axis=1)
    width = half_width([NumberNoise(law, SCALE, 1.0)], count)
    assert width is not None
    most = 0.05 + 4 * math.sqrt(0.05 * 0.95 / 20_000)
    assert (np.abs(sums) > width).mean() <= most
    assert (np.abs(sums) > width / 3).mean() > most
    assert half_width([NumberNoise("exponential", SCALE, 1.0)], count) is None


@pytest.mark.parametrize(("law", "draw"), [("rounded Gaussian", rounded), ("discrete Laplace", laplace)])
def test_intervals_of_sums_of_numbers_measured_together_hold(law: str, draw: Callable[..., Any]) -> None:
    """Each is (A + 3·B)/2, rounded up where it is no whole number, as a count from two noisy numbers may be."""
    generator, count = np.random.default_rng(28), 10
    sums = np.ceil((draw(generator, (20_000, count)) + 3 * draw(generator, (20_000, count))) / 2).sum(axis=1)
    noises = [NumberNoise(law, SCALE / 2, 0.5), NumberNoise(law, SCALE * 1.5, 1.5)]
    width = half_width(noises, count, 0.5)
    assert width is not None
    most = 0.05 + 4 * math.sqrt(0.05 * 0.95 / 20_000)
    assert (np.abs(sums) > width).mean() <= most
    assert (np.abs(sums) > width / 3).mean() > most
    assert width == half_width(noises, count) + count / 2  # type: ignore[operator]
    assert half_width([*noises, NumberNoise("discrete Gaussian", SCALE, 1.0)], count) is None


def test_a_common_step_divides_all() -> None:
    assert rows._common([Fraction(0), Fraction(3, 2), Fraction(2)]) == Fraction(1, 2)
    assert rows._common([]) == 0


def test_a_difference_reaches_as_far_as_both_intervals() -> None:
    one, other = noisy(), noisy()
    other["rows"] = [{"plan": "a", "sex": "f", "n": 13}, {"plan": "c", "sex": "f", "n": 1}]
    other["intervals"] = {"n": {"low": [3, 0], "high": [23, 2]}}
    shown = subtracted(one, other)
    assert shown["rows"] == [{"plan": "a", "sex": "f", "n": 3}]
    assert shown["intervals"]["n"] == {"low": [3 - 24], "high": [23 - -4]}
    with pytest.raises(ApiRefusal):
        subtracted(one, {**other, "keys": ["plan"]})


@pytest.mark.parametrize(("parts", "kind"), [(1, "histogram"), (2, "line")])
def test_steps_of_what_adds_up_are_a_histogram(parts: int, kind: str) -> None:
    shown = document({"age": ("integer", [n * 10 for n in range(8)])}, list(range(8)))
    chart = chart_of({**shown, "facts": noisy(parts=parts)["facts"]})
    assert chart is not None
    assert chart.kind == kind
    uneven = chart_of({**document({"age": ("integer", [n * n for n in range(8)])}, [5] * 8), "facts": noisy()["facts"]})
    assert uneven is not None
    assert uneven.kind == "line"


def test_means_are_points_that_need_not_begin_at_nothing() -> None:
    shown = {**document({"plan": ("text", ["a", "b"])}, [100, 104], 2), "facts": noisy(parts=2)["facts"]}
    chart = chart_of(shown)
    assert chart is not None
    assert chart.kind == "points"
    first, second = chart.marks
    assert first.low is not None
    assert first.low < first.x < second.x
    assert second.x - first.x > 200  # 0 is far off the axis


@pytest.mark.long
def test_rearranging_and_comparing_cost_nothing(alice: Visitor) -> None:
    by_two = SQL.replace("plan", "plan, size")
    answer = alice.submit(priced(alice, by_two, label="two"), "/ask/answer").path.partition("?")[0]
    other = alice.submit(priced(alice, by_two.replace("GROUP", "WHERE age > 20 GROUP")), "/ask/answer").path
    released = alice.world.ask("GET", f"/v1{answer.removeprefix('/console')}", "alice").document["rows"]
    total = sum(row["n"] for row in released if row["plan"] == "a")
    form = alice.go(f"{answer}/rearranged")
    assert {"k0", "k1", "how", "chosen"} <= form.form("/rearranged").fields.keys()
    shown = alice.go(f"{answer}/rearranged?chosen=1&k0=1&sort=n&order=falling&first=5")
    assert f"a {total}" in shown.text.replace(f"a{total}", f"a {total}")
    assert alice.go(f"{answer}/rearranged?chosen=1&above=x&first=y&k5=1&column=none&sort=none").status == 200
    page = alice.go(f"{answer}/difference?other={other.partition('?')[0].rpartition('/')[2]}")
    assert "The ± covers 95 %" in page.text
    assert "The numbers contain noise." in page.text
    (back,) = [link for link in page.page.links if "difference?other=" in link]
    turned = alice.go(back)
    assert [link for link in turned.page.links if "difference?other=" in link] == [page.path]
    offered = [link for link in alice.go(f"{answer}/difference").page.links if "difference?other=" in link]
    assert offered == [f"{answer}/difference?other={other.partition('?')[0].rpartition('/')[2]}"]
    assert alice.world.charges() == 2


def test_only_results_that_can_be_compared_are_offered(alice: Visitor) -> None:
    def bought(sql: str) -> str:
        return alice.submit(priced(alice, sql), "/ask/answer").path.partition("?")[0]

    first, alike = bought(SQL), bought(SQL.replace("GROUP", "WHERE age > 1 GROUP"))
    bought(SQL.replace("COUNT(*) AS n", "SUM(cost) AS total"))
    bought("SELECT size, COUNT(*) AS n FROM visits GROUP BY size")
    links = alice.go(f"{first}/difference").page.links
    assert [link for link in links if "other=" in link] == [f"{first}/difference?other={alike.rpartition('/')[2]}"]
    assert f"{first}/difference" in alice.go(first).page.links
    alone = bought("SELECT town, plan, COUNT(*) AS n FROM visits WHERE town = 'x' GROUP BY town, plan")
    links = alice.go(f"{alone}/difference").page.links
    assert not [link for link in links if "other=" in link]
    assert [link for link in links if "/ask?sql=SELECT+town" in link]  # the way to a second result
