"""Random questions over rows that meet others by comparisons, and of the newer forms: see `fuzzing`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lapwing.engines.duckdb import expressions, printers
from lapwing.engines.duckdb import relations as render_relations
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.query.from_clause import public_joins
from lapwing.query.relations.public_join import PublicJoin
from lapwing.query.relations.set_operations import Union
from tests.support.effort import one_in
from tests.support.query import matched_rows
from tests.support.query.fuzzing import MATCHED, Case, Place, answered, ask_some, drawn, found_with, generous
from tests.support.query.neighbours import catalog
from tests.support.query.worlds import VISITS

CHUNKS = 4
KINDS = (("add_remove", 2), ("replace_one", 3))
FEW = 16
"""Questions of the short run."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("matched")
    catalogs = {kind: generous(catalog(folder, rows=rows, neighbouring=kind)) for kind, rows in KINDS}
    facts, grown = PublicData(catalogs["add_remove"]), matched_rows.grown
    yield Place(catalogs=catalogs, facts=facts, ground=VISITS, grow=grown, worlds={}, unit_by_unit=3).elsewhere(0)
    facts.close()


def test_a_few_questions(place: Place, tmp_path: Path) -> None:
    ask_some((Case.of(number, place) for number in range(FEW)), place, tmp_path, share=0.5)


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_questions(chunk: int, place: Place, tmp_path: Path) -> None:
    ask_some(drawn(range(chunk, MATCHED, CHUNKS), place), place.elsewhere(chunk), tmp_path)


WORDS = [
    *(
        "UNPIVOT",
        "PIVOT (",
        "->>",
        "JSON_VALUE",
        "generate_series",
        "VALUES",
        "LEFT JOIN codes",
        "BETWEEN c.",
        "c.rate",
    ),
    *("QUANTILE_DISC", "QUANTILE_CONT", "MIN(k)", "codes c LEFT JOIN", "FROM codes c JOIN", "LEFT JOIN (VALUES"),
]


@pytest.mark.long
def test_every_form_is_answered(place: Place) -> None:
    """Otherwise the fuzzer would pass by being refused."""
    found = answered(WORDS, (Case.of(seed, place) for seed in range(1200)), place)
    assert min(found[word] for word in WORDS) > 0, found


# ---- planted bugs ----------------------------------------------------------------------------------------------------

joined = render_relations._joined


def pairs_of_any_plan(node: PublicJoin, carried: Any) -> str:
    """Forget the comparisons: every row meets every public row."""
    text = joined(node, carried)
    return text if node.on or node.condition is None else text.split(" ON ")[0] + " ON TRUE)"


# Each with a question that shows it, from which on the test looks for one.
BUGS: dict[str, tuple[int, Any, str, Any]] = {
    "a row meets one other at most": (10, public_joins, "most_met", lambda *_: 1),
    "comparisons that are forgotten": (45, render_relations, "_joined", pairs_of_any_plan),
    "columns that become rows without being counted": (
        3, Union, "rows_within", lambda node, _: node.parts[0].source.rows_per_unit),
    "joins that multiply nothing": (
        10, PublicJoin, "rows_within", lambda node, numbers: node.source.rows_within(numbers)),
    "texts that are no JSON": (
        55, expressions, "PRINTERS",
        {**printers.PRINTERS, "json_field": lambda _node, parts: f"json_extract_string({parts[0]}, {parts[1]})"}),
}  # fmt: skip


@pytest.mark.parametrize("bug", one_in(5, BUGS))
def test_planted_bugs_are_found(bug: str, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found_with(BUGS[bug], place, monkeypatch) is not None
