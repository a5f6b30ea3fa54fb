"""CSV as people have it: read where it can mean one thing, and else refused with the line and the reason."""

from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.catalog.public_draft import public_draft
from lapwing.catalog.text_files import TextFormat, has_mixed_line_ends, with_one_line_end
from lapwing.errors import DataFault
from tests.support.effort import only

READ: dict[str, tuple[bytes, list[str]]] = {
    "line ends of Windows": (b"id,a\r\n1,x\r\n2,y\r\n", ["x", "y"]),
    "line ends of both": (b"id,a\r\n1,x\n2,y\r\n3,z\n", ["x", "y", "z"]),
    "line ends of both, begun otherwise": (b"id,a\n1,x\r\n2,y\n", ["x", "y"]),
    "a line end of its own in the first line": (b"id,a\r\n1,x\n2,y\n", ["x", "y"]),
    "line ends of an old Mac": (b"id,a\r1,x\r2,y\r", ["x", "y"]),
    "two returns": (b"id,a\r\r\n1,x\r\r\n2,y\r\r\n", ["x", "y"]),
    "a return in quotes": (b'id,a\n1,"x\ry"\n2,y\n', ["x\ry", "y"]),
    "line ends of both in quotes": (b'id,a\r\n1,"x\ny"\n2,"p\r\nq"\r\n', ["p\r\nq", "x\ny"]),
    "empty fields too many": (b"id,a\n1,x,,\n2,y\n", ["x", "y"]),
    "empty lines": (b"id,a\n1,x\n\n2,y\n\n", ["x", "y"]),
    "no name for the first column, as of pandas": (b",id,a\n0,1,x\n1,2,y\n", ["x", "y"]),
    "no name for the first column, as of R": (b'"","id","a"\n"1",1,"x"\n"2",2,"y"\n', ["x", "y"]),
    "no name for the last column": (b"id,a,\n1,x,\n2,y,\n", ["x", "y"]),
    "no names for two columns": (b",id,,a\n0,1,5,x\n1,2,6,y\n", ["x", "y"]),
}
REFUSED: dict[str, tuple[bytes, str]] = {
    "a field less": (b"id,a\n1,x\n2\n", "x.csv: line 3 has 1 fields, and the first line 2"),
    "a field more": (b"id,a\n1,x\n2,y,z\n", "x.csv: line 3 has 3 fields, and the first line 2: is a name missing"),
    "row names of write.table": (b'"id","a"\n"1",1,"x"\n', "line 2 has 3 fields, and the first line 2: is a name"),
    "a return in a field": (b"id,a\n1,x\ry\n2,y\n", "x.csv: line 3 has 1 fields"),
    "a quote that is not closed": (b'id,a\n1,x\n2,"y\n3,z\n', "a quote is not closed"),
    "another encoding": (b"id,a\n1,x\n2,\xff\n", "a character is not in utf-8"),
}
PROTECTED: dict[str, Any] = {"privacy_unit": "row", "epsilon": 10_000, "types": {"id": "integer"}}
VALUES = ["x", "y", "z", "x\ny", "p\r\nq", "x\ry", "é"]


@pytest.mark.parametrize("name", only([0], READ))
def test_what_can_mean_one_thing_is_read(name: str, tmp_path: Path) -> None:
    content, values = READ[name]
    (tmp_path / "x.csv").write_bytes(content)
    with lw.protect(tmp_path / "x.csv", **PROTECTED, domains={"a": VALUES}) as session:
        rows = session.sql("SELECT a, COUNT(*) AS n FROM x GROUP BY a", epsilon=9000).rows()
    assert sorted(str(row["a"]) for row in rows if row["n"] == 1) == values
    assert sum(int(str(row["n"])) for row in rows) == len(values)


@pytest.mark.long
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_is_refused_with_line_and_reason(name: str, tmp_path: Path) -> None:
    content, reason = REFUSED[name]
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(DataFault) as caught:
        lw.protect(tmp_path / "x.csv", **PROTECTED)
    assert reason in str(caught.value)
    assert not list(tmp_path.glob("*.toml"))


@pytest.mark.long
def test_tabs_and_other_encodings_keep_their_meaning(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_bytes("id\ta\r\n1\té\n2\ty\r\n".encode())
    (tmp_path / "y.csv").write_bytes("id;a\r\n1;é\n2;y\r\n".encode("utf-16"))
    for file, encoding in (("x.tsv", None), ("y.csv", "utf-16")):
        with lw.protect(tmp_path / file, **PROTECTED, encoding=encoding, domains={"a": ["é", "y"]}) as session:
            rows = session.sql(f"SELECT a, COUNT(*) AS n FROM {file[0]} GROUP BY a", epsilon=9000).rows()
        assert [row["n"] for row in rows] == [1, 1]


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_line_ends_do_not_depend_on_how_a_text_is_cut(size: int) -> None:
    text = 'a\r\n"b\r\nc\rd"\re\n\r\n"f""\r"\r'
    chunks = [text[place : place + size] for place in range(0, len(text), size)]
    assert "".join(with_one_line_end(chunks, '"')) == 'a\n"b\r\nc\rd"\ne\n\n"f""\r"\n'


@pytest.mark.parametrize(
    ("content", "mixed"),
    [
        (b"a\nb\n", False),
        (b"a\r\nb\r\n", False),
        (b"a\rb\r", False),
        (b"a\r\nb\n", True),
        (b"a\rb\n", True),
        (b"", False),
    ],
)
def test_mixed_line_ends_are_seen(content: bytes, mixed: bool, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(content)
    assert has_mixed_line_ends(tmp_path / "x.csv", TextFormat()) == mixed


def test_codes_with_leading_zeros_stay_texts_in_a_public_table(tmp_path: Path) -> None:
    (tmp_path / "zips.csv").write_text("zip,people,share\n01234,5,0.5\n99999,0,0\n")
    table = public_draft(tmp_path / "zips.csv", tmp_path)
    assert [(column.name, column.type) for column in table.columns] == [
        ("zip", "string"), ("people", "integer"), ("share", "float")
    ]  # fmt: skip
