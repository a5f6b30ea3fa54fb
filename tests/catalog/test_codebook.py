"""Codebooks, in CSV, JSON and TOML: what they say of columns, and how they are refused."""

from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.catalog.codebook import read_codebook
from lapwing.catalog.codebook_texts import ColumnTexts, with_texts
from lapwing.catalog.dictionary import Texts
from lapwing.catalog.draft import draft
from lapwing.catalog.toml import load
from lapwing.errors import CatalogError
from tests.support.effort import one_in

CSV = """column,label,type,min,max,values,missing,format,thousands_mark,currency
id,the person,integer,,,,,,,
age,in years,int,0,110,,-99|999,,,
sex,,,,,1=male|2=female,9=refused,,,
income,,decimal:0.01,0,100000,,NA,,",",$
visited,,date,2020-01-01,2029-12-31,,,%m/%d/%Y,,
"""
JSON = """{"columns": {"id": {"type": "integer"},
"age": {"type": "integer", "lower": 0, "upper": 110, "missing": [-99, 999]},
"sex": {"values": {"1": "male", "2": "female"}, "missing": [9]},
"income": {"type": "decimal", "step": 0.01, "lower": 0, "upper": 100000, "missing": ["NA"], "thousands_mark": ",",
"currency": "$"}, "visited": {"type": "date", "lower": "2020-01-01", "upper": "2029-12-31", "format": "%m/%d/%Y"}}}"""
TOML = """[columns]
id = { type = "integer" }
age = { type = "integer", lower = 0, upper = 110, missing = [-99, 999] }
sex = { values = { "1" = "male", "2" = "female" }, missing = [9] }
income = { type = "decimal:0.01", lower = 0, upper = 100000, missing = ["NA"], thousands_mark = ",", currency = "$" }
visited = { type = "date", lower = 2020-01-01, upper = 2029-12-31, format = "%m/%d/%Y" }
"""
DATA = 'id,age,sex,income,visited\n1,34,1,"$1,200.50",03/04/2024\n2,-99,2,NA,12/31/2023\n3,999,9,$900,01/02/2024\n'
SAYS = """age = { type = "integer", lower = 0, upper = 110, missing = [-99, 999] }
sex = { type = "string", values = ["male", "female"], missing = ["9"], recode = { "1" = "male", "2" = "female" } }
income = { type = "decimal", lower = 0, upper = 100000, step = 0.01, missing = ["NA"], \
thousands_mark = ",", currency = "$" }
visited = { type = "date", lower = 2020-01-01, upper = 2029-12-31, format = "%m/%d/%Y" }"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "content"), one_in(3, [("book.csv", CSV), ("book.json", JSON), ("book.toml", TOML)], many=True)
)
def test_a_codebook_says_what_columns_mean(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "poll.csv").write_text(DATA)
    protected: dict[str, Any] = {"privacy_unit": "id", "max_rows_per_unit": 1, "epsilon": 1_000_000}
    with lw.protect(tmp_path / "poll.csv", codebook=tmp_path / name, **protected) as session:
        rows = session.sql("SELECT sex, COUNT(*) AS n, SUM(age) AS s FROM poll GROUP BY sex", epsilon=500_000).rows()
    said = (tmp_path / "poll.lapwing.toml").read_text(encoding="utf-8")
    assert SAYS.replace('["9"]', "[9]" if name != "book.csv" else '["9"]') in said
    assert [(row["sex"], row["n"], row["s"]) for row in rows] == [("male", 1, 34), ("female", 1, 0)]
    digest = load(tmp_path / "poll.lapwing.toml").digest
    with lw.protect(tmp_path / "poll.csv", **protected):  # what is left out stays
        assert load(tmp_path / "poll.lapwing.toml").digest == digest


@pytest.mark.parametrize(
    ("content", "said"),
    one_in(
        3,
        [
            ("column,typ\na,integer\n", "did you mean type?"),
            ("type,min\ninteger,0\n", "no column called column"),
            ("column,type\na,integer\na,date\n", "entry 2 names a again"),
            ("column,type\na,integer,0,1\n", "entry 1 has 4 fields, and the first line 2"),
            ("column,type\na,money\n", '"money" is unknown'),
            ("column,min\na,1\n", "has one bound"),
            ('column,type\na,"integer\n', "a quote is not closed"),
            ("", "its first line does not name"),
        ],
        many=True,
    ),
)
def test_what_a_codebook_cannot_mean_is_refused(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "book.csv").write_text(content)
    with pytest.raises(CatalogError, match=r"book\.csv: ") as caught:
        read_codebook(tmp_path / "book.csv")
    assert said in str(caught.value)


def test_codes_of_integers_with_labels_stay_integers(tmp_path: Path) -> None:
    (tmp_path / "book.csv").write_text(
        "column,type,values\nsize,integer,1=small|2=large\nsmokes,boolean,J=true|N=false\n"
    )
    book = read_codebook(tmp_path / "book.csv")
    assert book.values == {"size": ["1", "2"]}
    assert book.reading == {"smokes": {"recode": {"J": "true", "N": "false"}}}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "book.csv",
            "variable,label,description,units,type,values,note\n"
            'age,Age at visit,"In full\nyears.",years,integer,,for people\nsex,Sex,,,integer,+1=male|02=female|3=,\n',
        ),
        (
            "book.json",
            '{"columns": {"age": {"label": "Age at visit", "description": "In full\\nyears.", "units": "years", '
            '"note": "for people"}, "sex": {"title": "Sex", "type": "integer", '
            '"values": {"1": "male", "2": "female", "3": ""}}}}',
        ),
    ],
)
def test_a_codebook_explains_columns_and_codes(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    book = read_codebook(tmp_path / name)
    data = tmp_path / "poll.csv"
    data.write_text("id,age,sex\n1,34,1\n2,40,2\n")
    drafted = draft(
        data, privacy_unit="id", epsilon=1, max_rows_per_unit=1, types=book.types, values=book.values
    ).catalog
    said = with_texts(drafted, book.texts).dictionary
    assert said.column("poll", "age") == Texts(title="Age at visit", description="In full years.", unit="years")
    assert said.column("poll", "sex") == Texts(title="Sex", labels=((1, "male"), (2, "female")))
    assert with_texts(drafted, book.texts).digest == drafted.digest


def test_texts_stay_when_a_file_is_protected_again(tmp_path: Path) -> None:
    data, book = tmp_path / "poll.csv", tmp_path / "book.csv"
    data.write_text("id,sex\n1,1\n2,2\n")
    book.write_text("column,label,type,values\nsex,Sex,integer,1=male|2=female\nid,,integer,\n")
    protected: dict[str, Any] = {"privacy_unit": "id", "max_rows_per_unit": 1, "epsilon": 10}
    with lw.protect(data, codebook=book, **protected):
        pass
    beside, place = tmp_path / "poll.lapwing.toml", ("poll", "sex")
    assert load(beside).dictionary.column(*place).labels == ((1, "male"), (2, "female"))
    with lw.protect(data, **protected):
        assert load(beside).dictionary.column(*place).title == "Sex"
    with lw.protect(data, domains={"sex": [2, 3]}, **protected):
        assert load(beside).dictionary.column(*place) == Texts(title="Sex", labels=((2, "female"),))


def test_a_text_that_no_catalog_can_have_is_refused_with_its_column(tmp_path: Path) -> None:
    (tmp_path / "poll.csv").write_text("id,sex\n1,1\n")
    drafted = draft(tmp_path / "poll.csv", privacy_unit="id", epsilon=1, max_rows_per_unit=1).catalog
    with pytest.raises(CatalogError, match=r"columns\.sex\.title"):
        with_texts(drafted, {"sex": ColumnTexts(texts={"title": "x" * 201})})
