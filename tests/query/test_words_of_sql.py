"""A table or column that is called like a word of SQL is asked by its name in double quotes, which is suggested so."""

import random
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot.dialects.duckdb import DuckDB

import lapwing as lw
from lapwing.catalog.quoted_names import with_quoted_name
from lapwing.catalog.suggestions import WORDS_OF_SQL, name_in_sql
from lapwing.catalog.toml import loads
from lapwing.errors import LapwingError, QueryRefused
from lapwing.query.bind.bind import bind
from tests.support.effort import SEED, is_long, one_in
from tests.support.refusals import refused_as

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


MISREAD = """
select = { type = "integer", lower = 0, upper = 9 }
"Rabatt %" = { type = "integer", lower = 0, upper = 9 }
"Plan of care" = { type = "string", values = ["a", "b"] }
"2nd" = { type = "integer", lower = 0, upper = 9 }
"a-b" = { type = "integer", lower = 0, upper = 9 }
"""


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("SELECT select, COUNT(*) AS n FROM ttt GROUP BY select", '"select"'),
        ("SELECT COUNT(*) AS n FROM ttt\nWHERE select > 3", '"select"'),
        ("SELECT\n  AVG(Rabatt %) AS m FROM ttt", '"Rabatt %"'),
        ("SELECT plan of care, COUNT(*) AS n FROM ttt GROUP BY plan of care", '"Plan of care"'),
        ("SELECT SUM(2nd) AS s FROM ttt", '"2nd"'),
        ("SELECT SUM(a-b) AS s FROM ttt", '"a-b"'),
        ('SELECT SUM("a-b") AS s, COUNT(* AS n FROM ttt', None),
        ("SELECT SUM(nothing) AS s FROM ttt", None),
        ("SELECT COUNT(*) AS n FROM", None),
    ],
)
def test_a_refusal_says_how_to_quote_the_name_where_it_points(text: str, quoted: str | None) -> None:
    catalog = loads(CATALOG.format("force") + MISREAD, file="any.toml", folder=Path())
    with pytest.raises(QueryRefused) as refused:
        bind(text, catalog)
    said = with_quoted_name(refused.value, text, catalog)
    assert (said.cause, said.position) == (refused.value.cause, refused.value.position)
    if quoted is None:
        assert said is refused.value
        return
    assert f"double quotes: {quoted}." in str(said)
    name = re.compile(rf"(?<!^){re.escape(quoted[1:-1])}", re.IGNORECASE)
    bind(name.sub(quoted, text), catalog)


def test_a_session_says_so_and_what_it_is(tmp_path: Path) -> None:
    pq.write_table(pa.table({"person": [1, 2], "Rabatt %": [3, 4]}), tmp_path / "sales.parquet")
    with lw.protect(tmp_path / "sales.parquet", privacy_unit="person", max_rows_per_unit=1, epsilon=1) as session:
        assert "sales" in repr(session)
        assert "person" in repr(session)
        with refused_as("syntax_error", saying='"Rabatt %"'):
            session.explain("SELECT COUNT(Rabatt %) AS n FROM sales", epsilon=1)


@pytest.mark.parametrize("select", ['"Case-Nr"', 'COUNT(*) AS n, "Case-Nr"', 'SUM("Case-Nr") AS s'])
def test_the_remedy_for_a_privacy_unit_quotes_its_name_as_the_query_did(select: str) -> None:
    catalog = loads(CATALOG.format("force").replace('"zzz"', '"Case-Nr"'), file="any.toml", folder=Path())
    with pytest.raises(QueryRefused) as refused:
        bind(f"SELECT {select} FROM ttt", catalog)
    assert 'COUNT(DISTINCT "Case-Nr")' in str(refused.value)
    bind('SELECT COUNT(DISTINCT "Case-Nr") AS n FROM ttt', catalog)
