"""Codebooks, in CSV, JSON and TOML: what they say of columns, and how they are refused."""

from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.catalog.codebook import read_codebook
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
