"""A charge below the loss of what it bought is found, and none is found where there is none."""

import json
import tarfile
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal

import pytest

import lapwing as lw
from lapwing.audit import AuditEffort, Subject, charges, totals
from lapwing.audit.charged_questions import ChargedQuestions, opened
from lapwing.audit.loss_formulas import TOGETHER, LargestMovement, bounded_range, least_amount
from lapwing.audit.subject import body_of
from lapwing.ledger.entries import Charge, Entry
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.generalised import GeneralisedExponential
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.quantile_of_counts import QuantileOfCounts
from lapwing.mechanisms.quantiles_of_counts import QuantilesOfCounts
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.privacy.calibration import loss_for
from lapwing.privacy.measures import PRIVACY_MEASURES
from tests.support.audit import codes, resealed, rewrite

Edit = Callable[[dict[str, Any]], None]
MOVED_IN_A_TREE: Final = LargestMovement(l1=12, l2_squared=36, cells=4)
FIXTURES: Final = Path(__file__).parents[1] / "fixtures"


def found(catalog: Path) -> list[str]:
    return codes(charges.checks(Subject.from_file(catalog), AuditEffort()))


def edited(catalog: Path, sequence: int, edit: Edit) -> None:
    """Change the body of an entry, and seal the ledger anew."""
    subject = Subject.from_file(catalog)

    def changed(entry: Entry) -> Entry:
        if entry.sequence != sequence:
            return entry
        body = body_of(entry) or {}
        edit(body)
        return replace(entry, body=json.dumps(body, sort_keys=True, separators=(",", ":")))

    rewrite(subject, map(changed, subject.entries))


def a_smaller_charge(part: Fraction) -> Edit:
    def edit(body: dict[str, Any]) -> None:
        body["loss"]["amount"] = f"{float(Fraction(body['loss']['amount']) * part):.20f}"

    return edit


def less_noise(body: dict[str, Any]) -> None:
    payload = json.loads(body["payload"])
    payload["mechanisms"] = [[name, str(Fraction(scale) * 9 / 10)] for name, scale in payload["mechanisms"]]
    body["payload"] = json.dumps(payload)


def test_honest_charges_pass(catalog: Path) -> None:
    (check,) = charges.checks(Subject.from_file(catalog), AuditEffort())
    assert (check.findings, check.tried, check.not_tried) == ((), 3, "")
    assert "3 with the sensitivity" in check.what_was_tried


@pytest.mark.parametrize(
    ("sequence", "edit"),
    [
        (3, a_smaller_charge(Fraction(999_999, 1_000_000))),
        (7, a_smaller_charge(Fraction(9, 10))),
        (4, less_noise),
        (6, less_noise),
        (8, less_noise),
    ],
)
def test_a_charge_below_its_loss_is_found(catalog: Path, sequence: int, edit: Edit) -> None:
    edited(catalog, sequence, edit)
    assert found(catalog) == ["charge_below_loss"]


def test_a_charge_is_compared_by_one_step_without_its_text(catalog: Path) -> None:
    edited(catalog, 3, lambda body: body.pop("wording"))
    assert found(catalog) == []
    edited(catalog, 3, a_smaller_charge(Fraction(1, 20)))
    assert found(catalog) == ["charge_below_loss"]


def test_tables_that_are_measured_together_are_paid_by_their_batch(catalog: Path) -> None:
    """One of three charges may be small, if the sum covers the sharpest cell."""
    keys = ("plan", "FLOOR(cost / 100)", "plan, FLOOR(cost / 100)")
    with lw.connect(catalog) as session:
        session.batch([f"SELECT {by}, SUM(cost) AS n FROM visits GROUP BY {by}" for by in keys], epsilon=0.3)
    subject = Subject.from_file(catalog)
    stored = [body_of(entry) or {} for entry in subject.entries if entry.kind == "answer"][-3:]
    assert all(json.loads(body["payload"])["mechanisms"][0][0] == TOGETHER for body in stored)
    charged = [entry.sequence for entry in subject.entries if entry.kind == "charge"][-3:]
    (check,) = charges.checks(subject, AuditEffort())
    assert (check.findings, check.tried, check.not_tried) == ((), 6, "")
    edited(catalog, charged[0], a_smaller_charge(Fraction(1, 2)))
    assert found(catalog) == []
    for sequence in charged:
        edited(catalog, sequence, a_smaller_charge(Fraction(1, 4)))
    assert found(catalog) == ["charge_below_loss"] * 3


@pytest.mark.parametrize("kind", ["pure", "gdp", "zcdp"])
@pytest.mark.parametrize(("scale", "moved"), [("1/3", 1), ("7/2", 1), ("7/2", 3), ("100", 20), ("3", 500)])
def test_formulas_of_noise_agree_with_the_mechanisms(kind: str, scale: str, moved: int) -> None:
    sensitivity = Sensitivity(l1=moved, l2_squared=moved**2)
    movement = LargestMovement(l1=moved, l2_squared=moved**2)
    for mechanism in (DiscreteLaplace(scale=Fraction(scale)), RoundedGaussian(sigma=Fraction(scale))):
        if (kind, mechanism.name) != ("pure", RoundedGaussian.name):
            least = least_amount([mechanism.name, *mechanism.record()], movement, kind)
            stated = mechanism.loss(sensitivity, kind).amount
            assert least is not None
            assert Fraction(97, 100) * stated <= least <= stated


@pytest.mark.parametrize("kind", ["pure", "gdp", "zcdp"])
def test_the_formula_of_bounded_range_agrees(kind: str) -> None:
    for scale in (Fraction(1, 3), Fraction(7), Fraction(1000)):
        stated = GeneralisedExponential(scale=scale, margin=Fraction(1), sensitivities=(1, 2)).loss(kind).amount
        assert Fraction(99, 100) * stated <= bounded_range(2 / scale, kind) <= stated


@pytest.mark.parametrize("kind", ["pure", "gdp", "zcdp"])
@pytest.mark.parametrize("quantile", [Fraction(0), Fraction(1, 2), Fraction(9, 10)])
def test_the_formula_of_a_quantile_agrees(kind: str, quantile: Fraction) -> None:
    mechanism = QuantileOfCounts(quantile=quantile, points=100, scale=Fraction(30))
    stated = mechanism.loss(Sensitivity(l1=3, l2_squared=9), kind).amount
    # The counts of a tree of four levels, in each of which a unit moves three rows.
    least = least_amount([mechanism.name, *mechanism.record()], MOVED_IN_A_TREE, kind)
    assert least is not None
    assert Fraction(99, 100) * stated <= least <= stated


@pytest.mark.parametrize("kind", ["pure", "gdp", "zcdp"])
@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize(
    ("way", "quantiles"),
    [
        ("halves", "1/10 1/4 1/2 3/4 9/10"),
        ("halves", "0 1/3 1"),
        ("halves", "0 1/100 2/100 3/100 1/2 1"),
        ("halves", "9/10"),
        ("apart", "0 1/4 3/4"),
    ],
)
def test_the_formula_of_several_quantiles_agrees(
    way: Literal["halves", "apart"], quantiles: str, kind: str, counted: bool
) -> None:
    shares = tuple(map(Fraction, quantiles.split()))
    moved, loss = Sensitivity(l1=3, l2_squared=9), PRIVACY_MEASURES[kind].from_amount(Fraction(2))
    mechanism = QuantilesOfCounts.for_loss(loss, moved, quantiles=shares, points=64, way=way, counted=counted)
    stated = mechanism.loss(moved, kind).amount
    least = least_amount([mechanism.name, *mechanism.record()], MOVED_IN_A_TREE, kind)
    assert least is not None
    assert Fraction(999, 1000) * stated <= least <= stated
    sharper = replace(mechanism, scale=mechanism.scale * Fraction(9, 10))
    planted = least_amount([sharper.name, *sharper.record()], MOVED_IN_A_TREE, kind)
    assert planted is not None
    assert planted > stated


# ---- totals ----------------------------------------------------------------------------------------------------------


def of_totals(catalog: Path) -> list[str]:
    return codes(totals.checks(Subject.from_file(catalog), AuditEffort()))


def test_honest_totals_pass(catalog: Path) -> None:
    assert of_totals(catalog) == []


def test_a_deleted_charge_is_found(catalog: Path) -> None:
    subject = Subject.from_file(catalog)
    rewrite(subject, (entry for entry in subject.entries if entry.sequence != 5))
    assert "answer_without_charge" in of_totals(catalog)


def test_a_result_without_a_charge_is_found(catalog: Path) -> None:
    subject = Subject.from_file(catalog)
    rewrite(subject, [*subject.entries, replace(subject.entries[-1], subject="2")])
    assert "answer_without_charge" in of_totals(catalog)
    twice = replace(subject, entries=resealed([*subject.entries, subject.entries[-1]]))
    assert "answer_twice" in codes(totals.checks(twice, AuditEffort()))


def test_a_charge_beyond_the_budget_is_found(catalog: Path) -> None:
    edited(catalog, 7, a_smaller_charge(Fraction(1000)))
    assert of_totals(catalog) == ["budget_exceeded", "ledger_refused"]


def test_a_budget_larger_than_its_promise_is_found(catalog: Path) -> None:
    def edit(body: dict[str, Any]) -> None:
        body["budget"]["amount"] = str(1.00001 * float(body["budget"]["amount"]))

    edited(catalog, 1, edit)
    assert of_totals(catalog) == ["budget_too_large"]


@pytest.mark.parametrize("kind", ["gdp", "zcdp"])
@pytest.mark.parametrize("epsilon", ["0.001", "1", "20", "100000"])
@pytest.mark.parametrize("delta", ["0.5", "1e-6", "1e-40"])
def test_budgets_are_converted_exactly(kind: str, epsilon: str, delta: str) -> None:
    budget = loss_for(kind, Fraction(epsilon), Fraction(delta)).amount
    assert totals._implies(kind, budget, Fraction(epsilon), Fraction(delta))
    assert not totals._implies(kind, budget * Fraction(1_000_001, 1_000_000), Fraction(epsilon), Fraction(delta))


# ---- ledgers of earlier versions -------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("archive", ["stored_answers", "stored_numbers"])
def test_ledgers_of_earlier_versions_pass(archive: str, tmp_path: Path) -> None:
    """Their charges name no texts, so the texts are taken from the list beside each ledger."""
    with tarfile.open(FIXTURES / f"{archive}.tar.xz") as tar:
        tar.extractall(tmp_path, filter="data")
    for file in sorted(tmp_path.glob("*/lapwing.toml")):
        subject, comparison = Subject.from_file(file), charges.ChargeComparison()
        assert of_totals(file) == []
        texts = [json.loads(line) for line in file.with_name("questions.jsonl").read_text().splitlines()]
        priced = list(charges._priced(subject.entries, comparison))
        with opened(subject.catalog) as facts:
            questions = ChargedQuestions(subject.catalog, facts)
            for text in texts:
                anyone = Charge.from_record({**(body_of(priced[0].entry) or {}), "question": ""})
                questions.add(text["text"], text.get("values", ()), anyone, priced[0].entry.time)
            for one in priced:
                replaced = subject.catalog.budget.neighbouring == "replace_one"
                question = questions.of(one.charge, one.entry.time)
                charges._compare(one, question, comparison, replaced=replaced)
        assert comparison.findings == []
        assert comparison.exactly >= 0.7 * len(priced)
