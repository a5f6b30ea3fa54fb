"""A table or column that is called like a word of SQL is asked by its name in double quotes, which is suggested so."""

import random
import re
from pathlib import Path

import pytest
from sqlglot.dialects.duckdb import DuckDB

from lapwing.catalog.suggestions import WORDS_OF_SQL, name_in_sql
from lapwing.catalog.toml import loads
from lapwing.errors import LapwingError, QueryRefused
from lapwing.query.bind.bind import bind
from tests.support.effort import SEED, is_long, one_in

CATALOG = """
[dataset]
name = "d"
ledger = "sqlite:x.db"
[budget]
epsilon = 3
[tables."{0}"]
source = "x.parquet"
privacy_unit = "row"
[tables."{0}".columns]
zzz = {{ type = "integer", lower = 0, upper = 9 }}
[tables.ttt]
source = "y.parquet"
privacy_unit = "zzz"
max_rows_per_unit = 1
[tables.ttt.columns]
"{0}" = {{ type = "integer", lower = 0, upper = 9 }}
"""
QUESTIONS = (
    "SELECT COUNT(*) AS n FROM {0}",
    "SELECT zzz, COUNT(*) AS n FROM {0} GROUP BY zzz",
    "SELECT COUNT(*) AS n FROM {0} WHERE zzz > 3",
    "SELECT {0}, COUNT(*) AS n FROM ttt GROUP BY {0}",
    "SELECT SUM({0}) AS s FROM ttt WHERE {0} > 3",
    "SELECT AVG({0}) AS s, COUNT({0}) AS m FROM ttt WHERE {0} IN (1, 2)",
)
KNOWN = sorted(
    {word.casefold() for phrase in DuckDB.Tokenizer.KEYWORDS for word in re.findall(r"[A-Za-z_]\w*", phrase)}
    | {name.casefold() for name in DuckDB.Parser.FUNCTIONS}
)
TRIED = (
    KNOWN
    if is_long()
    else [*("force", "grant", "order", "group", "count", "user"), *random.Random(SEED).sample(KNOWN, 12)]
)


def plans(word: str, written: str) -> list[str]:
    """Return the plans of questions in which a name is written somehow, or how they fail."""
    catalog = loads(CATALOG.format(word), file="any.toml", folder=Path())
    found = []
    for question in QUESTIONS:
        try:
            found.append(str(bind(question.format(written), catalog).question))
        except LapwingError as error:
            found.append(error.code)
    return found


@pytest.mark.parametrize("word", one_in(2, TRIED))
def test_a_name_is_suggested_as_it_is_understood(word: str) -> None:
    quoted = plans(word, f'"{word}"')
    assert QueryRefused.code not in quoted
    assert plans(word, name_in_sql(word)) == quoted


def test_a_word_that_is_no_name_is_quoted() -> None:
    assert [name_in_sql(name) for name in ("force", "Order", "visits", "Plan of care", 'a"b')] == [
        '"force"', '"Order"', "visits", '"Plan of care"', '"a""b"'
    ]  # fmt: skip
    assert set(WORDS_OF_SQL) >= {"force", "grant", "order", "group", "select", "table"}
    with pytest.raises(QueryRefused) as refused:
        bind("SELECT COUNT(*) AS n FROM force", loads(CATALOG.format("force"), file="any.toml", folder=Path()))
    assert '"force"' in str(refused.value)
