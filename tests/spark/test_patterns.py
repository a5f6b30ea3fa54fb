"""Patterns of % and _ on Spark: what they mean, and that none of them takes long."""

import random
import re
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.engines.spark.cluster import Cluster
from lapwing.engines.spark.patterns import like, pieces, search
from tests.support.engines.standalone import worked

TEXTS = ["".join(letters) for most in range(6) for letters in product("ab", repeat=most)]
PATTERNS = ["".join(letters) for most in range(6) for letters in product("ab%_", repeat=most) if letters.count("%") > 1]


def matches(pattern: str, text: str) -> bool:
    """Tell whether a text matches a pattern, by trying all there is."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(matches(pattern[1:], text[place:]) for place in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and matches(pattern[1:], text[1:])


def mistaken(expression: Callable[[list[list[str | None]]], str]) -> list[tuple[str, str]]:
    """Return the patterns and texts of which an expression says what is not so."""
    wrong = []
    for pattern in PATTERNS:
        found = re.compile(expression(pieces(pattern, None)).replace(r"\z", r"\Z")).search
        wrong += [(pattern, text) for text in TEXTS if bool(found(text)) is not agreed(pattern, text)]
    return wrong


agreed = cache(matches)


def test_a_search_that_never_goes_back_finds_what_matches() -> None:
    assert mistaken(search) == []


def test_a_search_that_takes_a_later_place_is_found() -> None:
    """The planted bug: a % takes as much as it can, and cannot give it back."""
    assert mistaken(lambda parts: search(parts).replace(".*?", ".*"))


def test_what_a_pattern_holds_means_itself() -> None:
    assert pieces("a%_b", None) == [["a"], [None, "b"]]
    assert pieces("!%a!!!_%", "!") == [["%", "a", "!", "_"], []]
    assert like("s", "50!%", "!") == "(s LIKE CAST(X'35302125' AS STRING) ESCAPE '!')"
    assert search(pieces("%.%(é%", None)) == r"(?s)\A(?>.*?\x{2e})(?>.*?\x{28}\x{e9}).*\z"


# ---- on Spark --------------------------------------------------------------------------------------------------------


def awkward(chance: random.Random, alphabet: str, most: int) -> str:
    return "".join(chance.choices(alphabet, k=chance.randrange(most)))


@pytest.mark.long
def test_spark_takes_patterns_as_they_are_meant(cluster: Cluster) -> None:
    chance = random.Random(3)
    texts = [awkward(chance, "ab\n.\\E😀é", 12) for _ in range(300)]
    asked = list(dict.fromkeys(awkward(chance, "ab%%%_\n.\\E😀é", 9) for _ in range(150)))
    view = cluster.load(pa.table({"s": texts}))
    items = ", ".join(like("s", pattern, None) for pattern in asked)
    for text, *found in cluster.rows(f"SELECT s, {items} FROM {view}"):
        assert found == [matches(pattern, text) for pattern in asked]
    cluster.forget(view)


SLOW = ["%a_%a_%a_%a_%b", "%_a%_a%_a%_a%_b", "_%" * 9 + "b%", "%" + "_" * 900 + "b", "%" + "_a" * 450 + "b%", "%a" * 9]
"""Those of `tests/engines/test_cleaning`, and more."""


def seconds(cluster: Cluster, folder: Path, length: int, asked: list[str]) -> float:
    """Return what patterns take of the processors in texts of one letter, of so many characters."""
    pq.write_table(pa.table({"s": ["a" * length + str(row) for row in range(5)]}), folder / "texts.parquet")
    view = cluster.read([str(folder / "texts.parquet")], "s STRING")
    machine = cluster._session.sparkContext._gateway.proc.pid
    before = worked(machine)
    for pattern in asked:
        assert cluster.rows(f"SELECT COUNT(*) FROM {view} WHERE {like('s', pattern, None)}") == [(0,)]
    return worked(machine) - before


@pytest.mark.long
def test_no_pattern_takes_long(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern that is slow on one person's text alone would tell by the clock; so is Spark's own LIKE."""
    assert seconds(cluster, tmp_path, 50_000, SLOW) < 30
    own = ["%a%a%a%b"]
    ours = seconds(cluster, tmp_path, 300, own)

    def spark_s(value: str, pattern: str, _escape: str | None) -> str:
        return f"{value} LIKE '{pattern}'"

    monkeypatch.setitem(globals(), "like", spark_s)
    assert seconds(cluster, tmp_path, 300, own) > 3 * ours
