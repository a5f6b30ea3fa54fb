"""CSV files as they are: delimiters, quotes, encodings and repeated names, found in the first line or declared."""

import codecs
from pathlib import Path

import pytest

import lapwing as lw
from lapwing.catalog.file_columns import found_text, guessed_types
from lapwing.catalog.text_files import (
    ENCODINGS,
    TextFormat,
    encoding_named,
    first_line_says,
    format_of,
    header,
    seems_encoded,
)
from lapwing.catalog.toml import load, loads
from lapwing.cli import main
from tests.support.effort import only

TOWNS = {"gb18030": ["北京", "上海"], "shift_jis": ["東京", "大阪"], "big5": ["臺北", "高雄"],
         "euc-kr": ["서울", "부산"], "windows-1251": ["Москва", "Тверь"], "windows-1250": ["Łódź", "Brno"]}  # fmt: skip
USUAL = ["Köln", "Genève"]


def write(path: Path, encoding: str, delimiter: str = ",", quote: str = '"', mark: bytes = b"") -> list[str]:
    towns = TOWNS.get(encoding, [*USUAL[:1], f"a{delimiter}{quote}b"])
    lines = [delimiter.join(["id", "town", "größe" if encoding not in TOWNS else "size"])]
    for n in range(300):
        town = towns[n % 2].replace(quote, quote * 2)
        lines.append(delimiter.join([str(n), f"{quote}{town}{quote}", str(n % 7)]))
    path.write_bytes(mark + ("\r\n".join(lines) + "\r\n").encode(ENCODINGS[encoding].removesuffix("-sig")))
    return towns


def counts(path: Path, towns: list[str], encoding: str | None = None, quote: str | None = None) -> list[object]:
    """Protect a file and count its towns, with hardly any noise."""
    session = lw.protect(
        path, privacy_unit="id", epsilon=10**6, max_rows_per_unit=1, types={"id": "integer"},
        domains={"town": towns}, encoding=encoding, quote=quote,
    )  # fmt: skip
    with session:
        return [row["n"] for row in session.sql("SELECT town, COUNT(*) AS n FROM t GROUP BY town", epsilon=10**5)]


@pytest.mark.parametrize("encoding", only([0], ENCODINGS))
def test_every_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    towns = write(tmp_path / "t.csv", encoding)
    assert counts(tmp_path / "t.csv", towns, encoding=encoding) == [150, 150]
    (table,) = load(tmp_path / "t.lapwing.toml").tables
    assert (table.text is None) is (encoding == "utf-8")
    assert counts(tmp_path / "t.csv", towns) == [150, 150], "what was declared once stays"


@pytest.mark.parametrize("delimiter", only([0], [";", "\t", "|"]))
@pytest.mark.parametrize("quote", only([0], ['"', "'"]))
def test_the_first_line_says_the_delimiter(tmp_path: Path, delimiter: str, quote: str) -> None:
    towns = write(tmp_path / "t.csv", "utf-8", delimiter, quote)
    assert counts(tmp_path / "t.csv", towns, quote=None if quote == '"' else quote) == [150, 150]
    (table,) = load(tmp_path / "t.lapwing.toml").tables
    assert table.text == TextFormat(delimiter=delimiter, quote=quote)


def test_a_mark_says_utf_16_in_either_order(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for codec, mark in (("utf-16-le", codecs.BOM_UTF16_LE), ("utf-16-be", codecs.BOM_UTF16_BE)):
        path.write_bytes(mark + "id;größe\n1;2\n".encode(codec))
        assert found_text(path) == TextFormat(delimiter=";", encoding="utf-16")
        assert header(path, TextFormat(delimiter=";", encoding="utf-16")) == ["id", "größe"]


def test_no_row_says_how_a_file_is_written(tmp_path: Path) -> None:
    """One person's text must not decide what the catalog says; only who is at the terminal may be told of it."""
    path = tmp_path / "t.csv"
    path.write_bytes(b"id,note\n1,a;b;c;d|e|f\n2,M\xfcller\n")
    assert found_text(path) is None
    assert first_line_says(path) == format_of(path)
    assert seems_encoded(path) == "windows-1252"


def test_another_encoding_is_other_data(tmp_path: Path) -> None:
    """What is told apart by the digest of a catalog, so that stored answers of one way are none of another."""
    write(tmp_path / "t.csv", "latin-1")
    text = """
[dataset]
name = "t"
engine = "duckdb"
ledger = "sqlite:t.db"
[budget]
epsilon = 1
[tables.t]
source = "t.csv"
privacy_unit = "id"
max_rows_per_unit = 1
[tables.t.columns]
town = { type = "string" }
"""
    said = ['encoding = "latin-1"', 'encoding = "windows-1252"', 'delimiter = ","', 'quote = "\'"', ""]
    catalogs = [
        loads(text.replace("privacy_unit", f"{line}\nprivacy_unit"), file="t.toml", folder=tmp_path) for line in said
    ]
    assert len({catalog.tables[0].digest for catalog in catalogs}) == len(said)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('encoding = "ebcdic"', 'tables.t.encoding: "ebcdic" is unknown; write one of utf-8, utf-16'),
        ('delimiter = ";;"', 'tables.t.delimiter: ";;" is not allowed; write one character'),
        ('delimiter = "a"', "tables.t.delimiter"),
        ("delimiter = '\"'", "tables.t.delimiter"),
        ('quote = "x"', "tables.t.quote"),
        ("quote = 1", "tables.t.quote: 1 is an integer"),
    ],
)
def test_what_no_file_is_like_is_refused(tmp_path: Path, line: str, words: str) -> None:
    text = f"""
[dataset]
name = "t"
engine = "duckdb"
ledger = "sqlite:t.db"
[budget]
epsilon = 1
[tables.t]
source = "t.csv"
{line}
privacy_unit = "id"
max_rows_per_unit = 1
[tables.t.columns]
town = {{ type = "string" }}
"""
    with pytest.raises(lw.CatalogError) as refused:
        loads(text, file="t.toml", folder=tmp_path)
    assert words in str(refused.value)
    with pytest.raises(lw.CatalogError, match="are for CSV files"):
        loads(text.replace("t.csv", "t.parquet").replace(line, 'delimiter = ";"'), file="t.toml", folder=tmp_path)


def test_the_wrong_encoding_is_no_data(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"id,note\n1,M\xfcller\n2,\x81\n")
    for encoding in ("utf-8", "windows-1252"):
        with pytest.raises(lw.DataFault, match="cannot be read to its end"):
            lw.protect(path, privacy_unit="id", epsilon=1, max_rows_per_unit=1, encoding=encoding)
    assert not (tmp_path / "t.lapwing.toml").exists()


def test_a_copy_in_utf_8_is_left_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    towns = write(tmp_path / "t.csv", "latin-1")
    with lw.protect(
        tmp_path / "t.csv",
        privacy_unit="id",
        epsilon=9,
        max_rows_per_unit=1,
        domains={"town": towns},
        encoding="latin-1",
    ) as session:
        assert len(session.sql("SELECT town, COUNT(*) AS n FROM t GROUP BY town", epsilon=1)) == 2
        (folder,) = (tmp_path / "scratch").iterdir()
        assert [file.suffix for file in folder.rglob("*") if file.suffix] == [".csv"]
        assert folder.stat().st_mode & 0o077 == 0
    assert list((tmp_path / "scratch").iterdir()) == []


def test_names_that_repeat_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,x,X,x_2,x\n1,5,6,7,8\n2,5,6,7,8\n")
    assert header(path, format_of(path)) == ["id", "x", "X_3", "x_2", "x_4"]
    assert [*guessed_types(path)] == ["id", "x", "X_3", "x_2", "x_4"]
    with lw.protect(
        path, privacy_unit="id", epsilon=10**6, max_rows_per_unit=1, types={"x_4": "integer", "x": "integer"},
        bounds={"x_4": (0, 10), "x": (0, 10)},
    ) as session:  # fmt: skip
        (row,) = session.sql("SELECT SUM(x) AS a, SUM(x_4) AS b FROM t", epsilon=10**5)
    assert (row["a"], row["b"]) == (10, 16)


@pytest.mark.long
def test_init_writes_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "t.csv", "windows-1252", ";")
    write(tmp_path / "codes.csv", "utf-8", "|")
    begin = ["init", "t.csv", "--privacy-unit", "id", "--max-rows", "1", "--epsilon", "1", "--types", "id=integer"]
    assert main(begin) == 6
    assert "--encoding windows-1252" in capsys.readouterr().err
    assert main([*begin, "--encoding", "windows-1252", "--public", "codes.csv"]) == 0
    catalog = load(tmp_path / "lapwing.toml")
    assert catalog.tables[0].text == TextFormat(delimiter=";", encoding="windows-1252")
    assert catalog.public_tables[0].text == TextFormat(delimiter="|")
    assert [column.name for column in catalog.tables[0].columns] == ["id", "town", "größe"]
    capsys.readouterr()
    assert main(["data", "check"]) == 0
    assert main(["query", "SELECT COUNT(*) AS n FROM t JOIN codes ON t.id = codes.id", "--epsilon", "0.5"]) == 0


@pytest.mark.parametrize(
    ("name", "means"),
    only(
        (0, 3, 5),
        [
            ("cp1252", "windows-1252"),
            ("latin1", "latin-1"),
            ("ISO-8859-1", "latin-1"),
            ("UTF8", "utf-8"),
            ("sjis", "shift_jis"),
            ("klingon", None),
        ],
        many=True,
    ),
)
def test_an_encoding_is_known_by_its_other_names(tmp_path: Path, name: str, means: str | None) -> None:
    assert encoding_named(name) == means
    if means not in (None, "utf-8"):
        towns = write(tmp_path / "t.csv", str(means))
        assert counts(tmp_path / "t.csv", towns, encoding=name) == [150, 150]
        (table,) = load(tmp_path / "t.lapwing.toml").tables
        assert table.text is not None
        assert table.text.encoding == means
