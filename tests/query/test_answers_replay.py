"""Questions made of several, replayed through sessions: all that an analyst sees of neighbours is the same.

Answers inside others, batches, noisy numbers in conditions, choices, and the other forms of `answer_questions`. A
planted bug is found by a question of every form, or the replay of that form proves nothing.
"""

import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.catalog.model import Catalog
from lapwing.engines.duckdb import cleaned
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.exact.arrays import integer_array
from lapwing.release import release as release_module
from lapwing.release import searches, workloads
from tests.support.effort import examples, is_long, one_in
from tests.support.query.answer_questions import FORMS, PRIVATE, questions
from tests.support.replay import Batch, Question, Row, Seen, compare, run, with_budget
from tests.support.strategies import PERSONS, catalog_in, newcomers, tables

PRICE = {"epsilon": 1}
WITH_KEYS = {"epsilon": 2, "delta": Fraction(1, 10**4)}


def described(folder: Path, measure: str = "gdp", neighbouring: str = "add_remove") -> Catalog:
    place = folder / f"{measure} {neighbouring}"
    place.mkdir(exist_ok=True)
    return with_budget(catalog_in(place, measure=measure, neighbouring=neighbouring), epsilon=Fraction(10_000))


def selecting(folder: Path, measure: str) -> Catalog:
    """Return a catalog whose budget lasts for private keys."""
    return with_budget(described(folder, measure), delta=Fraction(1, 10), delta_keys=Fraction(1, 20))


def neighbour(rows: list[Row], others: list[Row], neighbouring: str, seed: int) -> list[Row]:
    rest = [row for row in rows if row["person"] != PERSONS[0]]
    rest += others if neighbouring == "replace_one" else []
    return random.Random(seed).sample(rest, len(rest))


@examples(1, 250)
@given(
    rows=tables,
    others=newcomers,
    seed=st.integers(0, 10**9),
    measure=st.sampled_from(["gdp", "pure", "zcdp"]),
    neighbouring=st.sampled_from(["add_remove", "replace_one"]),
)
def test_neighbours_look_the_same(
    folders: Path, rows: list[Row], others: list[Row], seed: int, measure: str, neighbouring: str
) -> None:
    catalog = described(folders, measure, neighbouring)
    texts = questions(seed) if is_long() else random.Random(seed).sample(questions(seed), 3)
    assert compare(catalog, rows, neighbour(rows, others, neighbouring, seed), texts, PRICE) == []


@pytest.mark.long
@examples(1, 250)
@given(rows=tables, others=newcomers, seed=st.integers(0, 10**9), measure=st.sampled_from(["gdp", "zcdp"]))
def test_neighbours_look_the_same_where_keys_are_selected(
    folders: Path, rows: list[Row], others: list[Row], seed: int, measure: str
) -> None:
    chance = random.Random(seed)
    texts = [PRIVATE(chance) for _ in range(3)]
    catalog = selecting(folders, measure)
    assert compare(catalog, rows, neighbour(rows, others, "add_remove", seed), texts, WITH_KEYS) == []


# ---- planted bugs ----------------------------------------------------------------------------------------------------


def row(person: int, **values: Any) -> Row:
    plain: Row = {"person": person, "plan": "a", "member": True, "age": 50, "cost": 1.0, "score": 7, "note": "x"}
    return plain | {"day": None, "pay": None} | values


CROWDED = [*(row(1, age=40 + a, plan="ab"[a % 2], note=f"n{a}") for a in range(12)), row(2), row(3, plan="b", age=1)]
"""One person has far more rows than count."""
OTHERS = [row(2), row(3, plan="b", age=1)]


def found(folder: Path, question: Question) -> list[str]:
    return compare(described(folder), CROWDED, OTHERS, question, PRICE)


def asked(name: str) -> Iterator[Question]:
    return (FORMS[name](random.Random(f"{seed} {name}")) for seed in range(12))


@pytest.mark.long
@pytest.mark.parametrize("name", one_in(14, [name for name in FORMS if name != "keys alone"]))
def test_a_bound_that_is_not_applied_is_found(folders: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    question = next(asked(name))
    assert found(folders, question) == []
    monkeypatch.setattr(cleaned, "kept", lambda *_: "SELECT * FROM cleaned")
    assert any(found(folders, other) for other in asked(name))


def errors(seen: Seen) -> list[str]:
    return [str(what[1]) for name, what in seen.shown.items() if name.endswith("error")]


@pytest.mark.long
@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_answered(folders: Path, name: str) -> None:
    """Otherwise it would pass by being refused."""
    texts = list(dict.fromkeys(FORMS[name](random.Random(seed)) for seed in range(60)))
    refused = errors(run(described(folders), CROWDED, texts, PRICE))
    assert len(refused) <= len(texts) / 10, refused


CONSTANT = "SELECT COUNT(*) AS n FROM visits WHERE age > (SELECT AVG(age) FROM visits)"


def test_a_true_number_in_a_condition_is_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(folders, CONSTANT) == []
    exact_values, true = vars(release_module)["exact_values"], []

    def seen(question: Any, *rest: Any) -> Any:
        true.append(exact_values(question, *rest))
        return true[-1]

    monkeypatch.setattr(release_module, "exact_values", seen)
    monkeypatch.setattr(searches, "rows_of", lambda *_: [(float(true[-1][0][0]) / 3,)])
    assert found(folders, CONSTANT)


JOIN = (
    "SELECT COUNT(*) AS n FROM visits AS v JOIN (SELECT plan, AVG(age) AS a FROM visits GROUP BY plan) AS d "
    "USING (plan) WHERE v.age > d.a"
)


def test_a_result_that_is_read_before_it_is_released_is_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the columns of the result are the true ones."""
    assert found(folders, JOIN) == []
    exact_values, true = vars(release_module)["exact_values"], []

    def seen(question: Any, *rest: Any) -> Any:
        true.append(exact_values(question, *rest))
        return true[-1]

    with monkeypatch.context() as planted:
        planted.setattr(release_module, "exact_values", seen)
        planted.setattr(searches, "rows_of", lambda *_: [("a", float(true[-1][0][0]) / 3), ("b", 1.0)])
        assert found(folders, JOIN)


LIST = "SELECT COUNT(*) AS n FROM visits WHERE plan IN (SELECT plan FROM visits GROUP BY plan HAVING COUNT(*) > 2)"


@pytest.mark.long
def test_a_true_list_in_a_condition_is_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(folders, LIST) == []
    exact_values, true = vars(release_module)["exact_values"], []

    def seen(question: Any, *rest: Any) -> Any:
        true.append(exact_values(question, *rest))
        return true[-1]

    monkeypatch.setattr(release_module, "exact_values", seen)
    monkeypatch.setattr(
        searches, "rows_of", lambda *_: [(p,) for p, n in zip("abc", true[-1][0], strict=False) if n > 1]
    )
    assert found(folders, LIST)


JOINED = (
    "SELECT floor, SUM(n) AS n FROM (SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan) JOIN floors USING (plan) "
    "GROUP BY floor"
)


@pytest.mark.long
def test_public_rows_that_are_of_people_are_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(folders, JOINED) == []

    def of_people(self: PublicData, wanted: object, limit: int) -> Any:
        rows = pq.read_table(described(folders).folder / "visits.parquet").to_pylist()
        return tuple((row["plan"], row["age"]) for row in rows)[:4]

    monkeypatch.setattr(PublicData, "combinations", of_people)
    assert found(folders, JOINED)


COMPUTED = "SELECT COUNT(*) AS n FROM visits JOIN (SELECT factor // 31 AS f FROM codes) AS c ON age // 31 = f"


@pytest.mark.long
def test_rows_that_a_computed_column_joins_uncounted_are_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three factors are alike in it, and two of themselves."""
    rows = [row(1, age=5), row(1, age=6), row(2)]
    assert compare(described(folders), rows, rows[2:], COMPUTED, PRICE) == []
    multiplicity = PublicData.multiplicity
    monkeypatch.setattr(PublicData, "multiplicity", lambda self, table, _: multiplicity(self, table, ["factor"]))
    assert compare(described(folders), rows, rows[2:], COMPUTED, PRICE)


@pytest.mark.long
def test_cells_of_a_batch_that_depend_on_rows_are_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by = ("plan", "member", "plan, member")
    batch = Batch(tuple(f"SELECT {keys}, COUNT(*) AS n FROM visits GROUP BY {keys}" for keys in by))
    assert found(folders, batch) == []

    def present(question: Any, cells: Any, *_: Any) -> Any:
        return tuple(integer_array([values[at] for values in cells.values()]) for at in range(len(question.measures)))

    monkeypatch.setattr(workloads, "exact_values", present)
    assert found(folders, batch)


SELECTED = "SELECT note, SUM(age) AS s FROM visits GROUP BY note"


@pytest.mark.long
def test_a_sum_of_selected_keys_without_its_bound_is_found(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = selecting(folders, "gdp")
    many = [*CROWDED, *(row(person, note=f"n{a}") for person in range(4, 200) for a in (0, 1))]
    few = [one for one in many if one["person"] != 1]
    assert compare(catalog, many, few, SELECTED, WITH_KEYS) == []
    monkeypatch.setattr(cleaned, "kept", lambda *_: "SELECT * FROM cleaned")
    many += [row(1, note="n0") for _ in range(9)]
    assert compare(catalog, many, few, SELECTED, WITH_KEYS)
