"""*tracing* finds nearly every member by exact means, and hardly any by Lapwing's."""

from contextlib import AbstractContextManager
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lapwing import lab
from lapwing.lab import Settings, tracing
from lapwing.lab.course import protected_students
from lapwing.lab.tracing import ALPHA, MEMBERS, OURS, Population
from lapwing.session import Session


@pytest.mark.long
def test_exact_means_give_members_away_and_lapwings_do_not() -> None:
    found = tracing.run(Settings(short=True))
    assert found.holds
    rows = [{name: cell or 0.0 for name, cell in row.items()} for row in found.rows]
    naive = [float(row["observed"]) for row in rows if row["target"] == "exact means"]
    ours = [float(row["observed"]) for row in rows if row["target"] == OURS]
    assert min(naive) > 0.98
    assert max(ours) < 0.26
    assert all(float(row["accused"]) < 0.14 for row in rows if row["target"] != "Lapwing")


def test_homers_statistic_is_the_inner_product_less_what_is_the_same_for_all() -> None:
    population = Population.drawn()
    people = population.people(60)
    y = people[:MEMBERS].mean(axis=0)
    for person, homer in zip(people, population.homer(y, people), strict=True):
        raw = sum(abs(x - p) - abs(x - mean) for x, p, mean in zip(person, population.p, y, strict=True))
        shared = sum((mean - p) * (2 * p - 1) for p, mean in zip(population.p, y, strict=True))
        assert homer == pytest.approx((raw - shared) / 2)
    assert np.allclose(population.homer(y, people), population.statistic(y, people))


def test_outsiders_are_accused_as_seldom_as_is_promised() -> None:
    population = Population.drawn()
    y = population.people(MEMBERS).mean(axis=0)
    accused = (population.statistic(y, population.people(4_000)) > population.threshold(y)).mean()
    assert accused <= ALPHA


@pytest.mark.long
def test_another_epsilon_holds_and_one_target_is_enough() -> None:
    assert tracing.run(Settings(epsilon=Fraction(1, 2), short=True, against="lapwing")).holds
    found = tracing.run(Settings(short=True, against="naive"))
    assert found.holds
    assert {row["target"] for row in found.rows} == {"exact means"}


def test_exact_means_in_lapwings_place_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_counts", lambda members, epsilon: members.sum(axis=0))
    monkeypatch.setattr(tracing, "_means", lambda members, epsilon: members.mean(axis=0))
    found = tracing.run(Settings(short=True, against="lapwing"))
    wrong = {check.what for check in found.checks if not check.holds}
    (guesses,) = (check for check in found.checks if check.what == "guesses right, Lapwing")
    assert guesses.observed > 0.9 > guesses.predicted
    assert "noise within its scale, Lapwing" in wrong
    assert f"bound of members found, {OURS}, Homer" in wrong
    assert f"bound of members found, {OURS}, inner product" in wrong


@pytest.mark.long
@pytest.mark.parametrize("attributes", [200, pytest.param(tracing.ATTRIBUTES, marks=pytest.mark.long)])
def test_too_little_noise_is_noticed(monkeypatch: pytest.MonkeyPatch, attributes: int) -> None:
    """Of 600 noises 86 % are within the scale, and not 63 %: 7 standard deviations beyond the 76 % that hold."""

    def generous(epsilon: Fraction, table: pa.Table, **named: Any) -> AbstractContextManager[Session]:
        return protected_students(2 * epsilon, table, **named)

    counts = tracing._counts
    monkeypatch.setattr(tracing, "ATTRIBUTES", attributes)
    monkeypatch.setattr(tracing, "_counts", lambda members, epsilon: counts(members, 2 * epsilon))
    monkeypatch.setattr(tracing, "protected_students", generous)
    found = tracing.run(Settings(against="lapwing"))
    assert [check.what for check in found.checks if not check.holds] == ["noise within its scale, Lapwing"]


def test_it_is_on_the_shelf() -> None:
    assert lab.experiments()["tracing"].attack
