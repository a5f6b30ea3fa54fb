"""What is spent, as an (ε, δ): each figure with the words that say when it holds, and never below the odometer's."""

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest

import lapwing as lw
from lapwing.cli.figures import size
from lapwing.privacy.odometers import AS_IF_CAP, WHENEVER, Odometer, Reading
from tests.support.cli.command import BY_PLAN, INIT, Run
from tests.support.effort import one_in, only

COUNT = "SELECT COUNT(*) AS n FROM visits"
DELTA = Fraction(1, 10**6)
PRICES = ("0.1", "0.5", "1.5", "2")
PURE_INIT = (*INIT[:6], *INIT[8:])


def spend(run: Run, measure: str, prices: tuple[str, ...] = PRICES) -> None:
    catalog = PURE_INIT if measure == "pure" else (*INIT, "--measure", measure)
    assert run(*catalog, "--force").status == 0
    for price in prices:
        assert run("query", COUNT, "--epsilon", price).status == 0


def read() -> lw.BudgetView:
    with lw.connect() as session:
        return session.budget()


def check_holds_whenever(view: lw.BudgetView, reading: Reading) -> None:
    """By the definition of an odometer, apart from its code: the least cap that holds the total, at its share of δ."""
    caps = [view.total.from_amount(view.total.amount / Fraction(3, 2) ** step) for step in range(11, -1, -1)]
    cap = next(cap for cap in caps if view.spent <= cap)
    assert reading.epsilon >= cap.to_epsilon(delta=DELTA / 12)
    assert reading.holds == WHENEVER


@pytest.mark.parametrize("measure", only([0], ["gdp", "zcdp"]))
@pytest.mark.parametrize("asked", only([0], range(1, len(PRICES) + 1)))
def test_the_odometer_is_the_one_of_the_library_and_wider(folder: Path, run: Run, measure: str, asked: int) -> None:
    spend(run, measure, PRICES[:asked])
    view = read()
    assert view.whenever == Odometer.up_to(view.total, DELTA).reading(view.spent)
    check_holds_whenever(view, view.whenever)
    assert view.as_if_cap.holds == AS_IF_CAP
    assert view.as_if_cap.epsilon == view.spent_epsilon == view.spent.to_epsilon(delta=DELTA)
    assert view.whenever.epsilon > view.as_if_cap.epsilon
    assert view.whenever.delta == view.as_if_cap.delta == DELTA


def test_twin_the_figure_of_a_cap_is_no_odometer(folder: Path, run: Run) -> None:
    spend(run, "gdp", ("0.5",))
    view = read()
    for mislabelled in (
        Reading(epsilon=view.as_if_cap.epsilon, delta=DELTA, holds=WHENEVER),
        Reading(epsilon=view.whenever.epsilon, delta=DELTA, holds=AS_IF_CAP),
    ):
        with pytest.raises(AssertionError):
            check_holds_whenever(view, mislabelled)


@pytest.mark.parametrize("measure", one_in(2, ["gdp", "zcdp"]))
def test_spent_and_remaining_do_not_add_up_in_epsilon(folder: Path, run: Run, measure: str) -> None:
    spend(run, measure, ("1",))
    view = read()
    assert view.spent + view.remaining == view.total
    assert view.spent_epsilon + view.remaining.to_epsilon(delta=DELTA) > float(view.epsilon) * 1.2


@pytest.mark.parametrize("measure", one_in(2, ["gdp", "zcdp"]))
def test_keys_take_their_part_of_delta(folder: Path, run: Run, measure: str) -> None:
    run(*INIT, "--measure", measure, "--delta-keys", "4e-7")
    run("query", COUNT, "--epsilon", "1")
    view, left = read(), Fraction(6, 10**7)
    assert view.whenever == Odometer.up_to(view.total, left).reading(view.spent)
    assert (view.delta, view.whenever.delta, view.as_if_cap.delta) == (DELTA, left, left)
    assert json.loads(run("budget", "--format", "json").out)["spent_delta"] == "0.0000006"


@pytest.mark.long
def test_a_pure_sum_holds_whenever(folder: Path, run: Run) -> None:
    spend(run, "pure", ("0.5", "1"))
    view = read()
    assert view.as_if_cap == view.whenever == Reading(epsilon=1.5, delta=Fraction(0), holds=WHENEVER)
    said = " ".join(run("budget").out.split())
    assert f"so far {WHENEVER}, all results together count as at most epsilon 1.5" in said
    assert AS_IF_CAP not in said
    document = json.loads(run("budget", "--format", "json").out)
    assert document["spent_epsilon"] == document["spent_epsilon_whenever"] == 1.5
    assert document["spent_epsilon_means"] == WHENEVER
    assert document["spent_delta"] == "0"


@pytest.mark.parametrize("measure", one_in(3, ["pure", "gdp", "zcdp"]))
def test_nothing_is_nothing_at_any_moment(folder: Path, run: Run, measure: str) -> None:
    spend(run, measure, ())
    view = read()
    assert (view.whenever.epsilon, view.whenever.holds, view.spent_epsilon) == (0, WHENEVER, 0)
    assert re.search(r"^spent .* 0 % spent, 100 % left$", run("budget").out, re.MULTILINE)
    assert WHENEVER not in run("budget").out


@pytest.mark.long
@pytest.mark.parametrize("measure", one_in(2, ["gdp", "zcdp"]))
def test_both_figures_are_said_with_their_meaning(folder: Path, run: Run, measure: str) -> None:
    spend(run, measure, ("0.5",))
    view, said = read(), " ".join(run("budget", "--verbose").out.split())
    assert (
        f"{WHENEVER}, all results together count as at most epsilon {size(view.whenever.epsilon)}, delta 1e-6" in said
    )
    assert f", {AS_IF_CAP}" in said
    assert said.index("total") < said.index("epsilon 3, delta 1e-6 for all queries ever") < said.index("spent")
    document = json.loads(run("budget", "--format", "json").out)
    assert (document["spent_epsilon"], document["spent_epsilon_means"]) == (view.spent_epsilon, AS_IF_CAP)
    assert document["spent_epsilon_whenever"] == view.whenever.epsilon
    assert document["spent_epsilon_whenever_means"].startswith(WHENEVER)


@pytest.mark.long
def test_the_cap_stands_in_the_place_of_a_reading_above_it(folder: Path, run: Run) -> None:
    spend(run, "gdp", ("3",))
    view, said = read(), " ".join(run("budget").out.split())
    assert view.whenever.epsilon > 3
    assert "all results together count as at most epsilon 3, delta 1e-6" in said
    assert size(view.whenever.epsilon) not in said


def check_labelled(page: str) -> None:
    """Every line on what is spent that names an epsilon names when it holds."""
    lines = page.split("time (UTC)")[0].split("\n")
    for line in lines:
        if "epsilon " in line and not line.startswith("total") and "does not" not in line:
            assert AS_IF_CAP in line or WHENEVER in line, line


@pytest.mark.long
@pytest.mark.parametrize("measure", only([1], ["pure", "gdp", "zcdp"]))
def test_no_epsilon_stands_alone(folder: Path, run: Run, measure: str) -> None:
    for prices in ((), ("0.5",), ("0.5", "1.5")):
        spend(run, measure, prices)
        check_labelled(run("budget", "--verbose").out)


def test_twin_a_bare_epsilon_is_noticed() -> None:
    with pytest.raises(AssertionError):
        check_labelled("total  epsilon 3\nspent  epsilon 1.2\ntime (UTC)")


@pytest.mark.long
@pytest.mark.parametrize("measure", one_in(3, ["pure", "gdp", "zcdp"]))
def test_explain_says_whose_epsilon_it_is_and_how_many_fit(folder: Path, run: Run, measure: str) -> None:
    """As many as fit do fit: one more is refused."""
    spend(run, measure, ("0.8",))
    document = json.loads(run("explain", BY_PLAN, "--epsilon", "0.9", "--format", "json").out)
    assert document["epsilon_means"] == "the cost of this query by itself"
    said = run("explain", BY_PLAN, "--epsilon", "0.9").out
    price = next(line for line in said.split("\n") if line.startswith("cost"))
    assert price.endswith("epsilon 0.9 for this query")
    left = next(line for line in said.split("\n") if line.startswith("budget"))
    fits = "1 such query fits" if document["fits"] == 1 else f"{document['fits']:,} such queries fit"
    assert left.endswith(f"{fits} in what is left for you")
    assert said.count("epsilon") == 1
    for number in range(document["fits"]):
        question = f"SELECT plan, COUNT(*) AS n, AVG(cost) AS c{number} FROM visits WHERE cost > {number} GROUP BY plan"
        assert run("query", question, "--epsilon", "0.9").status == 0
    assert run("query", f"{COUNT} WHERE cost > 0.5", "--epsilon", "0.9").status == 4


@pytest.mark.long
def test_the_history_is_in_the_words_of_who_asked(folder: Path, run: Run) -> None:
    assert run(*INIT, "--force").status == 0
    text = "SELECT COUNT(*) AS n\nFROM visits WHERE cost > ?"
    assert run("query", text, "--value", "1.5", "--epsilon", "0.1", "--label", "Annual report, table 2").status == 0
    (charge,) = json.loads(run("budget", "--format", "json").out)["history"]
    assert (charge["text"], charge["parameters"], charge["label"]) == (text, ["1.5"], "Annual report, table 2")
    said = " ".join(run("budget").out.split())
    assert said.endswith("Annual report, table 2: SELECT COUNT(*) AS n FROM visits WHERE cost > ? with ?1 = '1.5'")
    refused = run("query", text, "--value", "1.5", "--epsilon", "0.1", "--label", "")
    assert (refused.status, "write one line" in refused.err) == (2, True)


def test_a_query_with_bounds_to_be_found_is_one_with_its_parts(
    visits: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    text = "SELECT SUM(cost, contribution_bounds_per_row => AUTO) AS n FROM visits"
    assert run("query", text, "--epsilon", "0.5").status == 0, visits
    assert run("query", COUNT, "--epsilon", "0.25").status == 0
    document = json.loads(run("budget", "--format", "json").out)
    assert [row["first"] for row in document["history"]] == [True, False, False]
    page = run("budget").out
    assert page.count("AUTO") == 1
    lines = [line for line in page.splitlines() if "AUTO" in line or "of this: " in line]
    whole, *parts = (next(float(word) for word in re.findall(r" (0\.\d+) ", line)) for line in lines)
    assert (whole, len(parts)) == (0.5, 2)
    assert all(part < whole for part in parts)
    assert [line.split("of this: ")[1].strip() for line in lines[1:]] == ["found first", "the result"]


@pytest.mark.long
def test_the_last_charges_are_shown(folder: Path, run: Run) -> None:
    spend(run, "gdp", ("0.1", "0.2", "0.3"))
    shown = run("budget", "--last", "2").out
    assert ("0.1 " in shown.split("time (UTC)")[1], "Earlier queries" in shown) == (False, True)
    assert "Earlier queries" not in run("budget").out
    documents = [
        json.loads(run("budget", "--format", "json", *more).out) for more in ((), ("--last", "2"), ("--last", "0"))
    ]
    assert [len(one["history"]) for one in documents] == [3, 2, 0]
    assert documents[1]["history"] == documents[0]["history"][1:]
    assert {one["more_like_the_last"] for one in documents} == {documents[0]["more_like_the_last"]}


def test_a_more_exact_result_says_what_was_paid_before(visits: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert "in all" not in run("query", COUNT, "--epsilon", "0.25").err, visits
    run("query", BY_PLAN, "--epsilon", "0.25")
    cost = run("query", COUNT, "--epsilon", "0.5").err.splitlines()[0]
    whole, before = map(float, re.findall(r"epsilon ([\d.]+) .* in all: ([\d.]+) was", cost)[0])
    assert (before, 0.5 <= whole < 0.52) == (0.25, True)
    lines = run("budget").out.split("time (UTC)")[1].splitlines()[2:]
    assert [line.endswith("(after an earlier result of this query)") for line in lines] == [False, False, True]
