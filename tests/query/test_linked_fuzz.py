"""Random questions across linked tables: see `fuzzing` for what becomes of them, and `shop` for the tables."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lapwing.engines.duckdb import bounded_values, cleaned
from lapwing.engines.duckdb.public_data import PublicData
from tests.support.effort import one_in
from tests.support.query import linked_questions, shop
from tests.support.query.corpus import corpus as chosen
from tests.support.query.corpus import kept
from tests.support.query.fuzzing import LINKED, Case, Place, Values, answered, ask_some, drawn, first_found, generous
from tests.support.query.linked_bugs import BUGS

CHUNKS = 6
PARTS = 40
"""Into so many parts the corpus is cut, of which the short run asks the first."""
KINDS = {
    "by unit": ("by unit", "add_remove"),
    "by key": ("by key", "add_remove"),
    "by key, replaced": ("by key", "replace_one"),
}


def grown(seed: int, kind: str) -> tuple[str, Values]:
    return linked_questions.grown(seed, KINDS[kind][0])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("fuzz")
    catalogs = {
        kind: generous(shop.catalog(folder, linked=linked, neighbouring=neighbouring))
        for kind, (linked, neighbouring) in KINDS.items()
    }
    facts = PublicData(catalogs["by unit"])
    yield Place(catalogs=catalogs, facts=facts, ground=shop.GROUND, grow=grown, worlds={}, unit_by_unit=1)
    facts.close()


@pytest.fixture(scope="module")
def worlds(place: Place) -> Place:
    return place.elsewhere(0)


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_questions(chunk: int, place: Place, tmp_path: Path) -> None:
    ask_some(drawn(range(chunk, LINKED, CHUNKS), place), place.elsewhere(chunk), tmp_path)


WORDS = [
    *("JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN", "USING (", " ON ", " IN (SELECT", "NOT IN (SELECT"),
    *(" EXISTS (", "NOT EXISTS (", "codes AS", "FROM codes", "WITH cte0", "GROUP BY iok", "GROUP BY ock"),
    *(
        "FULL JOIN",
        "RIGHT JOIN",
        ") OR ",
        " OR EXISTS (",
        "OR NOT EXISTS (",
        "last_key",
        "DISTINCT",
        "UNION ALL",
        " UNION S",
        "INTERSECT",
        "EXCEPT",
        "OVER (",
        "QUALIFY",
    ),
    *("SUM(", "AVG(", "COUNT(DISTINCT", "MEDIAN", "QUANTILE", "PERCENTILE", "MIN(", "VAR_POP", "CORR", "FILTER"),
    *("ROLLUP", "CUBE", "GROUPING SETS", "_groups_contrib", "max_rows_contrib", "per_group => (", "per_group => AUTO"),
    *("per_row =>", "private keys", "HAVING", "customers AS", "orders AS", "items AS", "calls AS", "iday"),
]


@pytest.fixture(scope="module")
def corpus(place: Place) -> list[Case]:
    return chosen("linked", place, WORDS, range(1500))


@pytest.mark.parametrize("part", one_in(PARTS, range(PARTS)))
def test_questions_of_the_corpus(part: int, corpus: list[Case], worlds: Place, tmp_path: Path) -> None:
    ask_some(corpus[part::PARTS], worlds, tmp_path)


@pytest.mark.long
def test_more_questions_of_the_corpus(worlds: Place, tmp_path: Path) -> None:
    ask_some(kept("linked_more"), worlds, tmp_path)


@pytest.mark.long
def test_every_construct_is_in_the_corpus(corpus: list[Case], place: Place) -> None:
    """Otherwise it would pass by being refused."""
    found = answered(WORDS, corpus, place)
    assert min(found[word] for word in WORDS) > 0, found


@pytest.mark.long
def test_every_construct_is_answered(place: Place) -> None:
    """Otherwise the fuzzer would pass by being refused."""
    found = answered(WORDS, (Case.of(seed, place) for seed in range(900)), place)
    assert min(found[word] for word in WORDS) > 0, found


# ---- planted bugs ----------------------------------------------------------------------------------------------------

# A question that shows each, from which on the test looks for one: another does when questions grow otherwise.
SHOWN = {
    "rows of the wrong unit": 17,
    "orphans that are kept": 140,
    "joins with other units": 15,
    "semi-joins with other units": 33,
    "a fan-out that is not bounded": 29,
    "keys believed to be unique": 12,
    "rows that match nothing told apart": 918,
    "numbers that are not clamped": 375,
    "units' sums that are not clamped": 17,
}


@pytest.mark.parametrize("bug", one_in(5, BUGS))
def test_planted_bugs_are_found(bug: str, place: Place, worlds: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*BUGS[bug])
    first, here = SHOWN[bug], worlds
    if BUGS[bug][0] in (bounded_values, cleaned):  # what is stored of worlds was cleaned before
        here = place.elsewhere(0, place.kind_of(first))
    assert first_found(here, first) is not None
