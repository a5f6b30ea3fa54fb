"""Letter case on Spark: of every character what DuckDB makes of it, and never more than one character."""

import sys
from typing import Literal

import duckdb
import pyarrow as pa
import pytest

from lapwing.engines.spark.cluster import Cluster
from lapwing.engines.spark.letter_case import cased

Case = Literal["upper", "lower"]
EVERY = [chr(number) for number in range(1, sys.maxunicode + 1) if not 0xD800 <= number <= 0xDFFF]
TEXTS = ["".join(EVERY[first : first + 500]) for first in range(0, len(EVERY), 500)]


def apart(function: Case, printed: str, cluster: Cluster) -> list[tuple[str, str]]:
    """Return what Spark and DuckDB make of a character where they differ."""
    view = cluster.load(pa.table({"s": TEXTS, "place": range(len(TEXTS))}))
    ours = cluster.rows(f"SELECT {printed} FROM {view} ORDER BY place")
    cluster.forget(view)
    with duckdb.connect() as connection:
        connection.register("texts", pa.table({"s": TEXTS, "place": range(len(TEXTS))}))
        theirs = connection.execute(f"SELECT {function}(s) FROM texts ORDER BY place").fetchall()
    pairs = [
        (one, other)
        for (own,), (their,) in zip(ours, theirs, strict=True)
        for one, other in zip(own, their, strict=True)
    ]
    assert len(pairs) == len(EVERY)
    return [(one, other) for one, other in pairs if one != other]


@pytest.mark.long
@pytest.mark.parametrize("function", ["upper", "lower"])
def test_every_character_has_the_letter_case_of_duckdb(function: Case, cluster: Cluster) -> None:
    assert apart(function, cased(function, "s"), cluster) == []


@pytest.mark.long
def test_letter_case_of_java_is_found(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match=r"shorter|longer"):  # as ŉ becomes two characters
        apart("upper", "upper(s)", cluster)
