"""Questions of a batch about the same rows, measured as one vector at the price that they have one by one."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapwing.exact.entropy import SYSTEM
from lapwing.mechanisms import RoundedGaussian
from lapwing.mechanisms.reconstructed_gaussian import ReconstructedGaussian
from lapwing.release import shared_vectors
from lapwing.release.refinement import as_accurate
from lapwing.release.shared_vectors import SharedVector
from lapwing.session import Session
from tests.release.test_measured_vectors import CROWD, UNITS, lost, moved
from tests.support.effort import only
from tests.support.release.small import GDP, PURE, ZCDP, catalog, exact, opened, priced, shown

COUNT, SUM, MEAN = (f"SELECT {what} FROM visits" for what in ("COUNT(*) AS n", "SUM(cost) AS s", "AVG(cost) AS a"))
REPLACED = '\nneighbouring = "replace_one"'


def watched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[SharedVector], Sequence[Any]]]:
    """Return what is measured together in each batch, with what was bought."""
    found: list[tuple[list[SharedVector], Sequence[Any]]] = []
    right = shared_vectors.shared_vectors

    def watching(buying: Any, *more: Any) -> Any:
        found.append((right(buying, *more), buying))
        return found[-1][0]

    monkeypatch.setattr(shared_vectors, "shared_vectors", watching)
    return found


def asked(session: Session, texts: Sequence[str], monkeypatch: pytest.MonkeyPatch, **price: Any) -> Any:
    """Ask a batch; return its answers, what was measured together, and what was bought."""
    with monkeypatch.context() as patch:
        found = watched(patch)
        answers = session.batch(texts, **(price or {"epsilon": Fraction(1, 10)}))
    ((vectors, buying),) = found or [([], ())]
    return answers, vectors, buying


@pytest.mark.parametrize("budget", only([0], [GDP, ZCDP, GDP + REPLACED]))
def test_no_number_errs_by_more_at_the_same_price(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: str) -> None:
    texts = [COUNT, SUM, MEAN]
    with opened(tmp_path, CROWD, budget=budget, most=1) as session:
        answers, (vector,), buying = asked(session, texts, monkeypatch)
        assert vector.places == (0, 1, 2)
        for answer, purchase in zip(answers, buying, strict=True):
            assert answer.cost == purchase.bought.loss
            pairs = zip(answer.mechanisms.values(), purchase.bought.terms, strict=True)
            assert all(law.standard_deviation <= term.mechanism.standard_deviation for law, term in pairs)
        summed = answers[1].mechanisms[buying[1].bought.question.measures[0]]
        assert summed.standard_deviation < 0.85 * buying[1].bought.terms[0].mechanism.standard_deviation
        assert session.budget().spent.amount == sum(answer.cost.amount for answer in answers)
        spent = session.budget().spent
        assert "as one workload" in answers[1].notes[-1]
        again = session.batch(texts, epsilon=Fraction(1, 10))
        assert [shown(answer) for answer in again] == [shown(answer) for answer in answers]
        for text, answer in zip(texts, answers, strict=True):  # by itself, too
            alone = session.sql(text, epsilon=Fraction(1, 50))
            assert alone.stored
            assert shown(alone) == shown(answer)
        assert session.budget().spent == spent
        if "replace_one" not in budget:
            sharper = session.sql(SUM, epsilon=Fraction(1, 5))
            assert not sharper.stored
            assert sharper.cost < session.price(Fraction(1, 5))


def test_what_several_ask_for_is_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A count of rows that stands in two questions has the noise of both prices."""
    other = "SELECT COUNT(*) AS n, SUM(age - 1) AS t FROM visits"
    with opened(tmp_path, CROWD, budget=GDP, most=1) as session:
        (first, second), (vector,), buying = asked(session, [COUNT, other], monkeypatch)
        assert shown(first)[0]["n"] == shown(second)[0]["n"]
        counts = [law for answer in (first, second) for m, law in answer.mechanisms.items() if str(m) == "COUNT(*)"]
        own = buying[0].bought.terms[0].mechanism
        assert {law.sigma for law in counts} == {counts[0].sigma}
        assert counts[0].sigma == pytest.approx(own.sigma / np.sqrt(2), rel=1e-3)
        assert vector.measured.question.measures == vector.priced.question.measures


FORMS = [
    ([COUNT, SUM, MEAN], ""),
    ([COUNT, SUM, MEAN, "SELECT COUNT(cost) AS m FROM visits"], " GROUP BY plan"),
    (
        [
            "SELECT SUM(size) AS s FROM visits",
            *(f"SELECT COUNT(*) FILTER (WHERE code > {n}) FROM visits" for n in (3, 5)),
        ],
        "",
    ),
    ([COUNT, "SELECT AVG(age) AS a, SUM(age) AS s FROM visits", MEAN], " GROUP BY ROLLUP (plan)"),
]


@pytest.mark.parametrize(("texts", "rest"), only([0], FORMS, many=True))
@pytest.mark.parametrize("budget", only([0], [GDP, GDP + REPLACED]))
def test_a_unit_moves_what_is_measured_within_what_is_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: list[str], rest: str, budget: str
) -> None:
    with opened(tmp_path, CROWD, budget=budget) as session:
        texts = [f"{text}{rest}" for text in texts]
        answers, vectors, _ = asked(session, texts, monkeypatch, epsilon=1)
        if "replace_one" in budget and not vectors:  # of counts with conditions, each has as little noise by itself
            return
        vector = vectors[0]
        charged = sum(answers[place].cost.amount for place in vector.places)
    terms = vector.measured.terms
    neighbours = list(moved(tmp_path, vector.measured, GDP, UNITS))
    if "replace_one" in budget:
        neighbours = [
            [[a - b for a, b in zip(*pair, strict=True)] for pair in zip(one, other, strict=True)]
            for one in neighbours
            for other in neighbours
        ]
    losses = [lost(each, [term.mechanism for term in terms]) for each in neighbours]
    assert max(losses) <= charged
    # The twin: as if one of the questions had not paid.
    less = [replace(term.mechanism, sigma=term.mechanism.sigma * Fraction(3, 5)) for term in terms]
    assert max(lost(each, less) for each in neighbours) > charged


def test_without_noise_it_is_the_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RoundedGaussian, "release", lambda _law, values, _entropy: values)
    texts = [f"{text} GROUP BY plan".replace("SELECT", "SELECT plan,") for text in (COUNT, SUM, MEAN)]
    with opened(tmp_path, CROWD, budget=GDP, most=1) as session:
        answers, (vector,), _ = asked(session, texts, monkeypatch)
        assert vector.priced.vector is not None
        for place, plan in enumerate("ab"):
            costs = [each["cost"] for each in CROWD if each["plan"] == plan]
            told = [shown(answer)[place] for answer in answers]
            assert told[0]["n"] == len(costs)
            assert float(told[1]["s"]) == sum(costs)
            assert told[2]["a"] == pytest.approx(sum(costs) / len(costs))


def test_the_law_that_is_kept_is_that_of_the_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path, CROWD, budget=GDP, most=1) as session:
        _, (vector,), _ = asked(session, [COUNT, SUM, MEAN], monkeypatch, epsilon=1)
    many, question = 20_000, vector.measured.question
    (truth,) = exact(question, catalog(tmp_path, budget=GDP, most=1), CROWD).cells.values()
    drawn = vector.values([np.full(many, value) for value in truth], SYSTEM)
    (wanted,) = exact(vector.priced.question, catalog(tmp_path, budget=GDP, most=1), CROWD).cells.values()
    for measure, true in zip(vector.priced.question.measures, wanted, strict=True):
        law, off = vector.laws[measure], drawn[measure].astype(np.float64) - true
        assert isinstance(law, RoundedGaussian | ReconstructedGaussian)
        assert off.std() == pytest.approx(law.standard_deviation, rel=0.04)
        assert (np.abs(off) <= law.half_width(0.95)).mean() > 0.942


def test_numbers_of_one_question_have_no_noise_in_common(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stored number says nothing of that, and intervals of what is computed from two would be wrong."""
    sums = [f"SUM(COALESCE({column}, 0)) AS {column}" for column in ("cost", "size")]
    with opened(tmp_path, CROWD, budget=GDP, most=1) as session:
        _, (vector,), _ = asked(session, [COUNT, *(f"SELECT {one} FROM visits" for one in sums)], monkeypatch)
    assert vector.priced.vector is not None
    cheap: dict[str, Any] = {"epsilon": Fraction(1, 1000)}
    described = catalog(tmp_path, budget=GDP, most=1)
    alone = [priced(f"SELECT {one} FROM visits", described, **cheap) for one in sums]
    assert all(vector.serves(one) for one in alone)
    both = priced(f"SELECT {', '.join(sums)} FROM visits", described, **cheap)
    both = both if both.vector is None else both.vector.before
    assert all(as_accurate(vector.laws[term.measure], term.mechanism) for term in both.terms)
    assert not vector.serves(both)


@pytest.mark.parametrize(
    ("budget", "texts"),
    only(
        [0],
        [
            (PURE, [COUNT, SUM]),
            (GDP, [COUNT, f"{SUM} WHERE code > 3"]),
            (GDP, [COUNT, "SELECT plan, SUM(cost) AS s FROM visits GROUP BY plan"]),
            (GDP, ["SELECT SUM(cost - 4) AS s FROM visits", "SELECT SUM(age - 1) AS t FROM visits"]),
            (GDP, [COUNT, "SELECT COUNT(DISTINCT person) AS u FROM visits"]),
        ],
        many=True,
    ),
)
def test_what_gains_nothing_is_asked_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: str, texts: list[str]
) -> None:
    with opened(tmp_path, CROWD, budget=budget, most=1) as session:
        answers, vectors, buying = asked(session, texts, monkeypatch)
        assert not vectors
        for answer, purchase in zip(answers, buying, strict=True):
            assert list(answer.mechanisms.values()) == [term.mechanism for term in purchase.bought.terms]
