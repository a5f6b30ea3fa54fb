"""What came before differential privacy falls as predicted, and a system that withstands an attack is noticed."""

from collections import Counter
from math import comb
from typing import Any

import numpy as np
import pytest

from lapwing import lab
from lapwing.lab import auditing, k_anonymity, pseudonyms, sticky_noise, unicity
from tests.support.effort import only

EXPERIMENTS: dict[str, dict[str, int]] = {
    "pseudonyms": {},
    "unicity": {},
    "k-anonymity": {"repetitions": 100},
    "auditing": {"repetitions": 200},
}


def failed(found: Any) -> list[str]:
    return [check.what for check in found.checks if not check.holds]


@pytest.mark.parametrize(("name", "sizes"), only([0], EXPERIMENTS.items(), many=True))
def test_they_hold(name: str, sizes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pseudonyms, "NUMBERS", 20_000)
    monkeypatch.setattr(pseudonyms, "SALTS", 65_536)
    assert not failed(lab.run(name, short=True, **sizes))


def test_sticky_noise_holds_and_is_attacked() -> None:
    found = lab.run("sticky-noise", short=True, k=30, repetitions=200)
    assert not failed(found)


def test_a_salt_that_is_long_withstands_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the salt is beyond those that are tried."""
    monkeypatch.setattr(pseudonyms, "NUMBERS", 2_000)
    monkeypatch.setattr(pseudonyms, "SALTS", 0)
    assert failed(lab.run("pseudonyms")) == ["found by the pseudonym, hash with a short salt"]


def test_who_is_alone_is_counted_as_a_counter_does() -> None:
    table = lab.students()
    for known in (("birth_date",), ("gender", "editor"), ("birth_date", "gender", "editor")):
        rows = Counter(zip(*(table[name].to_pylist() for name in known), strict=True))
        assert unicity.alone(table, known) == sum(count == 1 for count in rows.values())


def test_expected_shares_are_those_of_the_binomial_law() -> None:
    chances = [0.5, 0.3, 0.2]
    for people in (2, 10):
        exact = sum(comb(people, 1) * p * (1 - p) ** (people - 1) for p in chances) / people
        assert unicity.expected(chances, people) == pytest.approx(exact)
    places = unicity._places()
    shared = np.outer(places, places).ravel()
    assert unicity.traced(2, 1_000) == pytest.approx(float((shared * (1 - shared) ** 999).sum()), abs=2e-3)


def test_people_who_are_not_where_they_are_said_to_be_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the prediction takes all places for equally likely."""
    law = unicity.traced
    monkeypatch.setattr(unicity, "traced", lambda k, people: law(k, 10 * people))
    assert any("trace" in what for what in failed(lab.run("unicity", short=True)))


@pytest.mark.parametrize("k", [2, 5, 10])
def test_published_tables_are_k_anonymous(k: int) -> None:
    table = lab.students()
    years = np.array([day.year for day in table["birth_date"].to_pylist()])
    facts = [np.unique(table[name].to_pylist(), return_inverse=True)[1] for name in ("gender", "editor")]
    groups = k_anonymity.published(years, facts, k)
    assert min(Counter(groups[groups >= 0].tolist()).values()) >= k
    assert (groups >= 0).mean() > 0.89


def test_groups_of_one_mind_have_the_mean_and_spread_of_all_cases() -> None:
    groups, p = np.array([0, 0, 1, 1, 1]), 0.3
    counts = []
    for bits in np.ndindex(*[2] * 5):
        chance = float(np.prod([p if bit else 1 - p for bit in bits]))
        out = sum(size for size, mine in ((2, bits[:2]), (3, bits[2:])) if len(set(mine)) == 1)
        counts.append((chance, out))
    mean = sum(chance * out for chance, out in counts)
    spread = sum(chance * (out - mean) ** 2 for chance, out in counts) ** 0.5
    assert k_anonymity.of_one_mind(groups, p) == pytest.approx((mean, spread))


@pytest.mark.long
def test_groups_that_are_larger_than_said_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    law = k_anonymity.of_one_mind
    monkeypatch.setattr(k_anonymity, "of_one_mind", lambda groups, p: law(groups, p * 0.8))
    assert failed(lab.run("k-anonymity", repetitions=1_000))


def test_an_auditor_of_sums_sees_what_elimination_sees() -> None:
    pair = [np.array(row, dtype=float) for row in ((1, 1, 0), (0, 1, 1))]
    assert not auditing.determined(pair)
    assert auditing.determined([*pair, np.array([1.0, 0.0, 1.0])])
    assert auditing.determined([np.ones(3), np.array([1.0, 1.0, 0.0])])


def test_an_auditor_that_refuses_at_random_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditing, "determined", lambda questions: len(questions) > 3)
    assert "sums that are answered" in failed(lab.run("auditing", short=True))


@pytest.mark.parametrize("m", [1, 2, 5])
def test_bounded_noise_shows_both_ends_as_often_as_all_cases_say(m: int) -> None:
    cases = list(np.ndindex(*[11] * m)) if m < 5 else None
    if cases is None:  # inclusion and exclusion over the two ends
        exact = sum((-1) ** j * comb(2, j) * ((11 - j) / 11) ** m for j in range(3))
    else:
        exact = sum(max(case) - min(case) == 10 for case in cases) / len(cases)
    assert sticky_noise.bounded_seen(m) == pytest.approx(exact)


@pytest.mark.long
def test_noise_that_does_not_stick_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: noise that should depend on the set of people depends on the words as well."""
    monkeypatch.setattr(sticky_noise, "by_set", sticky_noise.by_words)
    assert any(sticky_noise.SETS in what for what in failed(lab.run("sticky-noise", k=50, repetitions=400)))
