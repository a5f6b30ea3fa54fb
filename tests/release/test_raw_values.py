"""Answers without noise to speak of are those of plain DuckDB on the raw file, or a note of theirs says why not.

Random catalogs and questions; data with NULL, NaN, infinities, −0.0, values at, beyond and between bounds and steps,
unlisted keys and long texts. What catalogs leave out by declaration is computed from them (`tests.support.raw_values`).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.engines.duckdb import bounded_values
from lapwing.query.aggregates import group_by
from tests.support.effort import SEED, one_in
from tests.support.raw_values import Asked, Grammar, compare, world
from tests.support.reviewed_rows import Reviewed


@pytest.mark.long
@pytest.mark.parametrize(
    ("seed", "count"),
    [
        (1, 25),
        pytest.param(1, 50, marks=pytest.mark.long),
        pytest.param(5, 260, marks=pytest.mark.long),
        pytest.param(54013, 120, marks=pytest.mark.long),  # NaN, and no infinity, in a float column
        *(pytest.param(1000 * SEED + 10 + i, 1000, marks=pytest.mark.long) for i in range(20)),
    ],
)
def test_answers_are_those_of_the_raw_file_or_a_note_says_why(seed: int, count: int, tmp_path: Path) -> None:
    place = world(tmp_path / "raw", seed)
    found = compare(place, Grammar(place, seed).questions(), count)
    assert found.different == []
    assert found.answered >= count
    assert found.noted < count / 20, "a note is a reason, and no excuse"
    assert found.refused < count / 5


# ---- small inputs that were wrong ------------------------------------------------------------------------------------

FIXED = (
    "f >= 18", "f = 18", "f < 18", "f BETWEEN 18 AND 24", "FLOOR(f / 10) * 10 = 20", "f IN (17, 18)", "f <> -99",
    "i <> -99", "i = -99", "NULLIF(i, -99) IS NULL", "i <= 9", "i >= 0", "k = 18", "d = 0.29", "f = 0", "g > 1e6",
    "CASE WHEN i = -99 THEN 1 END = 1", "f IS NULL", "f <= g", "i < k",
)  # fmt: skip


def fixed() -> Iterator[Asked]:
    for condition in FIXED:
        text = f"SELECT COUNT(*) AS m0 FROM t WHERE {condition}"
        yield Asked(ours=text, theirs=text, keys=0)
    for key in ("i", "FLOOR(g / 10)", "CEIL(g)"):
        text = f"SELECT {key} AS grp, COUNT(*) AS m0 FROM t GROUP BY grp"
        yield Asked(ours=text, theirs=text, keys=1)


def different(folder: Path, asked: Sequence[Asked] = tuple(fixed())) -> list[str]:
    place = world(folder / "raw", 7)
    return [text for text, *_ in compare(place, asked, len(asked)).different]


def test_small_inputs_are_right(tmp_path: Path) -> None:
    assert different(tmp_path) == []


@pytest.mark.long
def test_what_reviews_got_wrong_is_right(tmp_path: Path) -> None:
    assert Reviewed(tmp_path, 2000).wrong() == []


own = bounded_values.as_read


def rounded(column: Any, physical: str, kind: Any) -> str:
    """Round before a condition looks at a value: the planted bug of every float column with bounds."""
    if column.type == "integer":
        return own(column, physical, kind)
    return f"(floor(({own(column, physical, kind)}) / {float(column.step)} + 0.5) * {float(column.step)})"


def clamped(column: Any, physical: str, kind: Any) -> str:
    """Clamp before a condition looks at a value."""
    value = own(column, physical, kind)
    low, high = (int(end) if column.type == "integer" else float(end) for end in (column.lower, column.upper))
    return f"CASE WHEN ({value}) IS NOT NULL THEN LEAST(GREATEST({value}, {low}), {high}) END"


@pytest.mark.long
@pytest.mark.parametrize("bug", one_in(2, [rounded, clamped]))
def test_twin_a_value_that_was_moved_before_a_condition_is_noticed(
    bug: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_values, "as_read", bug)
    assert len(different(tmp_path)) > 2
    assert bug is clamped or len(Reviewed(tmp_path, 2000).wrong()) > 2


def test_twin_a_value_beyond_the_listed_keys_that_is_counted_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_by, "key_of", lambda value, _values: value)
    assert different(tmp_path, [asked for asked in fixed() if asked.keys])


def test_the_grammar_asks_of_everything(tmp_path: Path) -> None:
    place = world(tmp_path / "raw", 3)
    texts = " ".join(question.ours for question in islice(Grammar(place, 3).questions(), 400))
    words = (
        "NULLIF",
        "FLOOR",
        "CEIL",
        "BETWEEN",
        " IN (",
        "GROUP BY",
        "DISTINCT",
        "UNION ALL",
        "EXISTS",
        "MAX(",
        "FILTER",
    )
    assert [word for word in words if word not in texts] == []


# ---- files as people have them: the figures are of plain Python ------------------------------------------------------


def asked(folder: Path, columns: dict[str, Any], bounds: dict[str, Any], texts: Sequence[str]) -> list[list[Any]]:
    """Return the rows of answers without noise to speak of; of one number, as a float."""
    units = range(len(next(iter(columns.values()))))
    pq.write_table(pa.table({"person": units, **columns}), folder / "t.parquet")
    with lw.protect(
        folder / "t.parquet", privacy_unit="person", max_rows_per_unit=1, epsilon=10**9, bounds=bounds
    ) as s:
        found: Any = [s.sql(text, epsilon=10**6).rows() for text in texts]
        return [[tuple(map(float, row.values())) for row in rows] for rows in found]


@pytest.mark.long
def test_ages_that_became_floats_for_a_gap(tmp_path: Path) -> None:
    """Whole numbers with a gap are doubles for pandas, and no step between their bounds is a whole number."""
    ages = [float(i * 7 % 91) for i in range(4_000)]
    whole = [None if i == 7 else age for i, age in enumerate(ages)]
    known = [age for age in whole if age is not None]
    conditions: dict[str, Callable[[float], bool]] = {
        "age >= 18": lambda age: age >= 18,
        "age = 18": lambda age: age == 18,
        "age < 18": lambda age: age < 18,
        "age BETWEEN 18 AND 24": lambda age: 18 <= age <= 24,
        "FLOOR(age / 10) * 10 = 20": lambda age: age // 10 == 2,
        "age IN (17, 18)": lambda age: age in (17, 18),
        "age <= 65": lambda age: age <= 65,
        "age > 65": lambda age: age > 65,
        "CASE WHEN age < 65 THEN 1 END = 1": lambda age: age < 65,
    }
    texts = [f"SELECT COUNT(*) AS n FROM t WHERE {condition}" for condition in conditions]
    found = asked(tmp_path, {"age": pa.array(whole, pa.float64())}, {"age": (0, 120)}, texts)
    assert found == [[(sum(map(holds, known)),)] for holds in conditions.values()]


@pytest.mark.long
def test_a_histogram_of_a_float(tmp_path: Path) -> None:
    """Many values lie on the edges of bins; a step of 120/2²⁰ would move them into the bin below."""
    x = [float([40, 52, 64, 76, 88, 100, 112, 124, 136, 148, 159.5][i % 11]) for i in range(2_200)]
    y = [float("nan") if i % 4 == 0 else i % 50 + 0.0 for i in range(2_200)]
    texts = [
        "SELECT WIDTH_BUCKET(x, 40, 160, 10) AS b, COUNT(*) AS n FROM t GROUP BY b",
        "SELECT FLOOR(x / 20) AS b, COUNT(*) AS n FROM t GROUP BY b",
        "SELECT COUNT(y) AS n, AVG(y) AS m FROM t",
    ]
    buckets, twenties, means = asked(tmp_path, {"x": x, "y": y}, {"x": (40, 160), "y": (0, 50)}, texts)
    assert {b: n for b, n in buckets if n} == Counter(int((value - 40) // 12) + 1 for value in x)
    assert {b: n for b, n in twenties if n} == Counter(value // 20 for value in x)
    present = [value for value in y if value == value]
    assert means[0][0] == len(present)
    assert means[0][1] == pytest.approx(sum(present) / len(present), rel=1e-6)


@pytest.mark.long
def test_a_code_beyond_the_bounds(tmp_path: Path) -> None:
    """-99 is no answer, and 0 to 60 are the answers."""
    x, y = [-99 if i % 5 == 0 else i % 60 for i in range(2_000)], [i % 3 for i in range(2_000)]
    real = [value for value in x if value != -99]
    texts = [
        "SELECT AVG(x) AS m FROM t WHERE x <> -99",
        "SELECT AVG(NULLIF(x, -99)) AS m FROM t",
        "SELECT SUM(FLOOR(NULLIF(f, -99))) AS s FROM t",
        "SELECT COUNT(NULLIF(x, -99)) AS n FROM t",
        "SELECT COUNT(NULLIF(x, x)) AS n FROM t",
        "SELECT COUNT(*) AS n FROM t WHERE x = -99",
        "SELECT COUNT(*) AS n FROM t WHERE CAST(x AS VARCHAR) LIKE '-%'",
        "SELECT y, COUNT(*) AS n FROM t WHERE x = -99 GROUP BY y",
        "SELECT COUNT(100 / x) AS n FROM t WHERE x < 0",
    ]
    found = asked(
        tmp_path,
        {"x": x, "f": list(map(float, x)), "y": y},
        {"x": (0, 60), "f": (0, 60), "y": (0, 2)},
        texts,
    )
    mean = sum(real) / len(real)
    assert [found[0][0][0], found[1][0][0]] == pytest.approx([mean, mean], rel=1e-6)
    assert [rows[0][0] for rows in found[2:7]] == [sum(real), len(real), 0, 400, 400]
    assert dict(found[7]) == Counter(b for a, b in zip(x, y, strict=True) if a == -99)
    assert found[8] == [(400,)]
