"""Random questions in which different units meet: see `fuzzing` for what becomes of them.

The tables are those of `linked_stalls`, whose neighbours lack a customer or an owner; what is checked is in
`linked_shares`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from lapwing.engines.duckdb import cleaned
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.errors import QueryRefused
from tests.support.effort import one_in
from tests.support.query import linked_meetings, linked_shares, linked_stalls
from tests.support.query.corpus import corpus as chosen
from tests.support.query.corpus import kept
from tests.support.query.fuzzing import CASES, SHARED, Case, Place, Values, ask_some, drawn, first_found, generous
from tests.support.query.linked_bugs import MEETING

CHUNKS = 4
PARTS = 42
"""Into so many parts the corpus is cut, of which the short run asks the first."""
MEETINGS = max(560, CASES // 20)
NEVER = 1 << 62
KINDS = {
    "by unit": ("by unit", "add_remove"),
    "by key": ("by key", "add_remove"),
    "by key, replaced": ("by key", "replace_one"),
}


def grown(seed: int, kind: str) -> tuple[str, Values]:
    return linked_meetings.grown(seed, KINDS[kind][0])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("fuzz")
    catalogs = {
        kind: generous(linked_stalls.catalog(folder, linked=linked, neighbouring=neighbouring))
        for kind, (linked, neighbouring) in KINDS.items()
    }
    facts = PublicData(catalogs["by unit"])
    # Units are not looked at one by one: of an owner's neighbours no customer is gone.
    yield Place(catalogs=catalogs, facts=facts, ground=linked_stalls.GROUND, grow=grown, worlds={}, unit_by_unit=NEVER)
    facts.close()


@pytest.fixture(scope="module")
def worlds(place: Place) -> Place:
    return place.elsewhere(0)


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_questions(chunk: int, place: Place, tmp_path: Path) -> None:
    ask_some(drawn(range(1 + chunk, MEETINGS, CHUNKS), place), place.elsewhere(chunk), tmp_path)


WORDS = [
    *(" JOIN ", "INNER JOIN", "LEFT JOIN codes", " ON ", " IN (SELECT", " EXISTS (", "WITH cte0", "LEFT JOIN", "UNION"),
    *("DISTINCT", "OVER (", "GROUP BY owner", " <> ", "COUNT(*", "COUNT_IF(", "SUM(", "FILTER", "HAVING", "per_row =>"),
    *(
        "per_group => (0, 1)",
        "per_group => AUTO",
        "per_group => RACE",
        "customers AS",
        "orders AS",
        "items AS",
        "calls AS",
        "stalls",
    ),
]


@pytest.fixture(scope="module")
def corpus(place: Place) -> list[Case]:
    return chosen("meetings", place, WORDS, range(1, 560))


@pytest.mark.parametrize("part", one_in(PARTS, range(PARTS)))
def test_questions_of_the_corpus(part: int, corpus: list[Case], worlds: Place, tmp_path: Path) -> None:
    ask_some(corpus[part::PARTS], worlds, tmp_path)


@pytest.mark.long
def test_more_questions_of_the_corpus(worlds: Place, tmp_path: Path) -> None:
    ask_some(kept("meetings_more"), worlds, tmp_path)


def shared(cases: Iterable[Case], place: Place) -> Counter[str]:
    """Count the questions that are answered of rows of several units, and the words in them."""
    counts: Counter[str] = Counter()
    for case in cases:
        try:
            units = case.bound(place).question.units_of_row
        except QueryRefused:
            continue
        if units > 1:
            counts.update([SHARED, f"{units} units", *(word for word in WORDS if word in case.text)])
    return counts


UNITS = ("2 units", "3 units", "4 units")


@pytest.mark.long
def test_every_construct_is_in_the_corpus(corpus: list[Case], place: Place) -> None:
    """Otherwise it would pass by being refused."""
    counts = shared(corpus, place)
    assert min(counts[word] for word in (*WORDS, *UNITS)) > 0, counts


@pytest.mark.long
def test_every_construct_is_answered(place: Place) -> None:
    """Otherwise the fuzzer would pass by being refused."""
    counts = shared((Case.of(seed, place) for seed in range(1, 560)), place)
    assert counts[SHARED] >= 300, counts
    assert min(counts[word] for word in (*WORDS, *UNITS)) > 0, counts


# ---- planted bugs ----------------------------------------------------------------------------------------------------

# A question that shows each, from which on the test looks for one: another does when questions grow otherwise.
SHOWN = {
    "orphans that are kept": 10,
    "rows without a partner that are kept": 17,
    "a level that is one too high": 13,
    "sums that are not truncated": 13,
    "units of the right side that are lost": 20,
    "units of the left side that are lost": 14,
    "groups that are not added up": 228,
}


@pytest.mark.parametrize("bug", one_in(4, MEETING))
def test_planted_bugs_are_found(bug: str, place: Place, worlds: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*MEETING[bug])
    first, here = SHOWN[bug], worlds
    if MEETING[bug][0] is cleaned:  # what is stored of worlds was cleaned before
        here = place.elsewhere(0, place.kind_of(first))
    assert first_found(here, first) is not None


# Those that let a unit move a measure too far are seen by that alone.
MOVED = {
    "a level that is one too high": 42,
    "sums that are not truncated": 14,
    "units of the right side that are lost": 42,
    "units of the left side that are lost": 14,
    "groups that are not added up": 228,
}


@pytest.mark.parametrize("bug", one_in(2, MOVED))
def test_what_moves_too_far_is_seen_by_that(bug: str, worlds: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for check in ("strayed", "untrue"):
        monkeypatch.setattr(linked_shares, check, lambda *_: [])
    monkeypatch.setattr(*MEETING[bug])
    assert first_found(worlds, MOVED[bug]) is not None
