"""Charges for graphs and synthetic tables, against the loss of the mechanisms that their ledgers keep."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import lapwing as lw
from lapwing.audit import charges
from lapwing.audit.drawn_mechanisms import drawn_amount
from lapwing.audit.subject import body_of
from lapwing.ledger.entries import Entry
from lapwing.mechanisms.drawn import DrawnMechanism
from lapwing.mechanisms.residual_marginals import ResidualMarginals, RowsOfUnit
from lapwing.privacy.measures import GaussianDP
from lapwing.synthesis import asking, kept_table
from tests.support.graphs import written
from tests.support.learn.people import opened, people
from tests.support.synthesis.joint_model import JointModel

RING = frozenset((min(i, (i + step) % 40), max(i, (i + step) % 40)) for i in range(40) for step in (1, 2))
TIES = """privacy = "edge"
ledger = "sqlite:friends.lapwing.db"
budget = { %s }"""
Edit = Callable[[dict[str, Any]], None]


@pytest.fixture
def _quick() -> Iterator[None]:
    with patch.object(asking, "GraphicalModel", JointModel):
        yield


def synthetic(folder: Path, measure: str) -> None:
    delta = 0 if measure == "pure" else 1e-6
    with opened(folder, people(60), measure=measure, delta=delta, max_rows_per_unit=2) as session:
        session.synthesize(["age", "plan", "ill"], epsilon=4, method="residual", bins=3)
        session.synthesize(["age", "plan", "ill"], epsilon=4, method="aim", bins=3)


def graph(folder: Path, measure: str) -> None:
    whole = "epsilon = 20" if measure == "pure" else f'epsilon = 20, delta = 1e-6, measure = "{measure}"'
    with lw.graphs.connect(written(folder, 40, RING, graph=TIES % whole)) as session:
        session.ask("triangles", epsilon=2)
        session.ask("edge_count", epsilon=1)


def entries(folder: Path) -> list[Entry]:
    file = min(folder.glob("*.lapwing.db"), key=lambda one: one.name)  # "friends" before the ledger of people
    names = "sequence, time, kind, subject, body, previous, hash"
    with closing(sqlite3.connect(file)) as connection:
        rows = connection.execute(f"SELECT {names} FROM entries ORDER BY sequence").fetchall()
    return [Entry(**dict(zip(names.split(", "), row, strict=True))) for row in rows]


def changed(stored: list[Entry], kind: str, edit: Edit) -> list[Entry]:
    def one(entry: Entry) -> Entry:
        body = body_of(entry) or {}
        edit(body)
        return replace(entry, body=json.dumps(body))

    return [one(entry) if entry.kind == kind else entry for entry in stored]


def cheaper(body: dict[str, Any]) -> None:
    body["loss"]["amount"] = f"{float(Fraction(body['loss']['amount'])) * 0.98:.20f}"


def noisier(body: dict[str, Any]) -> None:
    """Plant noise of 0.9 times its scale. The scale is the first parameter of each law but the residuals'."""
    payload = json.loads(body["payload"])
    for one in payload["drawn"]:
        law = one["law"]
        if law[0] != ResidualMarginals.name:
            law[1] = str(Fraction(law[1]) * 9 / 10)
            continue
        law[2] = json.dumps([[axes, str(Fraction(q) * 100 / 81)] for axes, q in json.loads(law[2])])
    body["payload"] = json.dumps(payload)


@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize("make", [synthetic, graph])
@pytest.mark.parametrize(
    "measure", ["pure", pytest.param("gdp", marks=pytest.mark.long), pytest.param("zcdp", marks=pytest.mark.long)]
)
def test_a_charge_below_what_was_drawn_is_found(
    make: Callable[[Path, str], None], measure: str, tmp_path: Path
) -> None:
    make(tmp_path, measure)
    stored = entries(tmp_path)
    honest = charges.of_entries(stored)
    assert (honest.findings, honest.tried, honest.not_tried) == ((), 2, "")
    for kind, edit in (("charge", cheaper), ("answer", noisier)):
        found = charges.of_entries(changed(stored, kind, edit)).findings
        assert [one.code for one in found] == ["charge_below_loss"] * 2


@pytest.mark.usefixtures("_quick")
def test_a_table_that_is_too_large_to_be_kept_has_its_mechanisms(tmp_path: Path) -> None:
    with patch.object(kept_table, "MOST_KEPT", 10):
        synthetic(tmp_path, "pure")
    honest = charges.of_entries(entries(tmp_path))
    assert (honest.findings, honest.tried) == ((), 2)


@pytest.mark.parametrize("unit", [RowsOfUnit(rows=2), RowsOfUnit(rows=3, low=-1, high=4, replaced=True)])
@pytest.mark.parametrize("sizes", [(2, 3), (4, 2, 5)])
def test_the_formula_of_residuals_agrees(unit: RowsOfUnit, sizes: tuple[int, ...]) -> None:
    pairs = [(0,), tuple(range(len(sizes)))]
    mechanism = ResidualMarginals.for_loss(GaussianDP(1), sizes=sizes, marginals=pairs, unit=unit)
    for kind in ("gdp", "zcdp"):
        record = DrawnMechanism.of_residuals(mechanism, unit).to_record()
        stated = mechanism.loss(unit, kind).amount
        least = drawn_amount([record], kind)
        assert least is not None
        assert Fraction(999, 1000) * stated <= least <= stated


def test_a_law_without_a_formula_is_left_out() -> None:
    assert drawn_amount([{"law": ["unknown", "1"], "l1": 1, "l2_squared": 1}], "pure") is None
    assert drawn_amount([{"law": ["ladder"], "l1": 1, "l2_squared": 1}], "pure") is None
    assert drawn_amount(17, "pure") is None
