"""Random questions about one table: see `fuzzing` for what becomes of them."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapwing.engines import holders
from lapwing.engines.duckdb import clamped_sums, group_limits, held_keys
from lapwing.engines.duckdb import relations as render_relations
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.query.from_clause import public_joins as joins
from lapwing.query.relations.set_operations import Union
from lapwing.query.relations.unit_join import UnitJoin
from lapwing.query.relations.windowed import Windowed
from lapwing.query.sensitivity import stability
from tests.query.test_relations import any_number
from tests.support.effort import one_in
from tests.support.query.corpus import corpus as chosen
from tests.support.query.corpus import kept
from tests.support.query.fuzzing import (
    CASES,
    LINKED,
    MATCHED,
    Case,
    Place,
    Values,
    answered,
    ask_some,
    drawn,
    found_with,
    generous,
)
from tests.support.query.neighbours import catalog
from tests.support.query.questions import Grower
from tests.support.query.worlds import VISITS

CHUNKS = 20
PARTS = 12
"""Into so many parts the corpus is cut, of which the short run asks the first."""
KINDS = (("add_remove", 2), ("replace_one", 3))


def grown(seed: int, _kind: str) -> tuple[str, Values]:
    grower = Grower(random.Random(seed))
    return grower.question(), grower.values


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("fuzz")
    catalogs = {kind: generous(catalog(folder, rows=rows, neighbouring=kind)) for kind, rows in KINDS}
    facts = PublicData(catalogs["add_remove"])
    yield Place(catalogs=catalogs, facts=facts, ground=VISITS, grow=grown, worlds={}, unit_by_unit=3).elsewhere(0)
    facts.close()


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_questions(chunk: int, place: Place, tmp_path: Path) -> None:
    ask_some(drawn(range(chunk, CASES - LINKED - MATCHED, CHUNKS), place), place.elsewhere(chunk), tmp_path)


WORDS = [
    *("DISTINCT", "UNION ALL", " UNION S", "OVER (", "QUALIFY", "GROUP BY person", "LEFT JOIN", "IN (SELECT", "EXISTS"),
    *("FILTER", "WITH visits2", "HAVING", "LAG(", "NOT (", "AVG(", "COUNT(DISTINCT", "VAR_POP", "STDDEV", "CORR"),
    *("COVAR_", "MEDIAN", "MIN(", "QUANTILE", "WITHIN GROUP", "ROLLUP", "CUBE", "GROUPING SETS", "_groups_contrib"),
    *("max_rows_contrib", "per_group => (", "per_group => AUTO", "per_row =>", "epsilon =>", "OPTIONS", "$p", "LIKE"),
    *("REGEXP_", "DATE_DIFF", "LAST_DAY", "EXTRACT", "TRY_CAST", "BETWEEN", "||", "WIDTH_BUCKET", "//", "private keys"),
    *("ROWS BETWEEN", "RANGE BETWEEN", " WINDOW ", "IGNORE NULLS", "NTILE", "FIRST_VALUE", "INTERSECT", "EXCEPT"),
    *(".person = ", ".person AS ", "IN (SELECT person", "TIMESTAMP '", "seen"),
]


@pytest.fixture(scope="module")
def corpus(place: Place) -> list[Case]:
    return chosen("one_table", place, WORDS, range(4000))


@pytest.mark.long
@pytest.mark.parametrize("part", one_in(PARTS, range(PARTS)))
def test_questions_of_the_corpus(part: int, corpus: list[Case], place: Place, tmp_path: Path) -> None:
    ask_some(corpus[part::PARTS], place, tmp_path)


@pytest.mark.long
def test_more_questions_of_the_corpus(place: Place, tmp_path: Path) -> None:
    ask_some(kept("one_table_more"), place, tmp_path)


@pytest.mark.long
def test_every_construct_is_in_the_corpus(corpus: list[Case], place: Place) -> None:
    """Otherwise it would pass by being refused."""
    found = answered(WORDS, corpus, place)
    assert min(found[word] for word in WORDS) > 0, found


@pytest.mark.long
def test_every_construct_is_answered(place: Place) -> None:
    """Otherwise the fuzzer would pass by being refused."""
    found = answered(WORDS, (Case.of(seed, place) for seed in range(0, 1600, 2)), place)
    assert min(found[word] for word in WORDS) > 0, found


# ---- planted bugs ----------------------------------------------------------------------------------------------------

window, per_unit, of_type = render_relations._window, render_relations._per_unit, render_relations._of_type
joined_by_unit = render_relations._joined_by_unit
numbered, counted, tree = group_limits.numbered, holders.counted, stability._tree


def grouped_together(node: Any, unit: str) -> str:
    text = per_unit(node, unit).replace(f"(SELECT {unit}", f"(SELECT MIN({unit}) AS {unit}")
    return text.replace(f"GROUP BY {unit}", "GROUP BY TRUE")


def joined_with_anyone(node: Any, unit: str) -> str:
    return joined_by_unit(node, unit).replace(f"ON ours.{unit} IS NOT DISTINCT FROM theirs.", "ON 0 < theirs.")


def raising(value: str, kind: Any) -> str:
    return of_type(value, kind).replace("TRY_CAST", "CAST") + "::TINYINT"


def one_level_less(measure: Any, *facts: Any) -> Any:
    return tree(replace(measure, width=measure.width * measure.branching), *facts)


def one_too_many(function: str, unit: str, order: str, most: int) -> str:
    return numbered(function, unit, order, most + 1)


def one_key_each(pairs: Any) -> Any:
    found = counted(pairs)
    return found.set_column(found.num_columns - 2, "degree", [[1] * found.num_rows])


# Each with a question that shows it, from which on the test looks for one: another does when questions grow otherwise.
BUGS: dict[str, tuple[int, Any, str, Any]] = {
    "joins that multiply more than they say": (93, joins, "_multiplicity", lambda *_: 1),
    "windows over all units": (39, render_relations, "_window", lambda w, ties, _: window(w, ties, "TRUE")),
    "groups of all units": (44, render_relations, "_per_unit", grouped_together),
    "casts that raise": (27, render_relations, "_of_type", raising),
    "unions that count one part": (
        33,
        Union,
        "rows_within",
        lambda node, _: node.parts[0].source.rows_per_unit,
    ),
    "joins of units that count one side": (
        150,
        UnitJoin,
        "rows_within",
        lambda node, _: node.source.rows_per_unit,
    ),
    "joins with other units": (45, render_relations, "_joined_by_unit", joined_with_anyone),
    "any column taken for a row's number": (
        2340,
        Windowed,
        "rows_within",
        any_number,
    ),
    "units' sums that are not clamped": (57, clamped_sums, "clamp", lambda value, *_: value),
    "a row or group too many": (141, group_limits, "numbered", one_too_many),
    "trees of one level less": (108, stability, "_tree", one_level_less),
    "sets for the price of one": (141, stability, "_together", lambda sets: sets[0]),
    "units that seem to hold one key each": (57, held_keys, "counted", one_key_each),
    "rows that hold keys": (57, holders, "_distinct", np.sort),
}


@pytest.mark.parametrize("bug", one_in(20, BUGS))
def test_planted_bugs_are_found(bug: str, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found_with(BUGS[bug], place, monkeypatch) is not None
