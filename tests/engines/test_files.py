"""Files as they come: CSV and TSV by RFC 4180, names in any case and order, paths of any spelling."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lapwing.engines import DuckDB
from lapwing.engines.duckdb import source_reading
from lapwing.errors import DataFault
from tests.support.effort import one_in, only, some
from tests.support.engines.tables import ask, catalog, parquet

COLUMNS = {
    "x": '{ type = "integer", lower = 0, upper = 100 }',
    "note": '{ type = "string", max_length = 20000 }',
}
QUESTION = "SELECT COUNT(*) AS n, COUNT(x) AS x, SUM(x) AS s, COUNT(note) AS notes FROM t"


def cells(folder: Path, content: bytes, *, source: str = "t.csv", question: str = QUESTION) -> dict[str, int]:
    """Return the exact answer to a question about a file of this content."""
    (folder / source).write_bytes(content)
    found = catalog(folder, COLUMNS, source=source)
    engine = DuckDB(found, threads=2)
    try:
        (values,) = ask(engine, found, question).values()
    finally:
        engine.close()
    return dict(zip(("notes", "x", "n", "s"), values, strict=True))


READ = {
    "plain": (b"x,note\n1,a\n2,b\n", 2, 2, 3, 2),
    "no last line end": (b"x,note\n1,a\n2,b", 2, 2, 3, 2),
    "CRLF": (b"x,note\r\n1,a\r\n2,b\r\n", 2, 2, 3, 2),
    "byte order mark": (b"\xef\xbb\xbfx,note\n1,a\n", 1, 1, 1, 1),
    "other order": (b"note,x\na,1\n", 1, 1, 1, 1),
    "more columns": (b"y,note,z,x\n9,a,9,1\n", 1, 1, 1, 1),
    "names in another case": (b"X,NOTE\n1,a\n", 1, 1, 1, 1),
    "quoted names": (b'"x","note"\n1,a\n', 1, 1, 1, 1),
    "quotes": (b'x,note\n"1","a ""quoted"", b"\n', 1, 1, 1, 1),
    "line ends in quotes": (b'x,note\n1,"a\nb"\n2,"c\r\nd"\n', 2, 2, 3, 2),
    "quote inside a field": (b'x,note\n1,a"b\n', 1, 1, 1, 1),
    "empty fields are NULL": (b'x,note\n,\n"",""\n1,a\n', 3, 1, 1, 1),
    "what is no number is NULL": (b"x,note\nfoo,a\n,b\n 2 ,c\n1e999,d\nnan,e\n", 5, 2, 102, 5),
    "blanks": (b"x,note\n 1 , a \n", 1, 1, 1, 1),
    "no rows": (b"x,note\n", 0, 0, 0, 0),
    "only a header": (b"x,note", 0, 0, 0, 0),
    "comments are data": (b"x,note\n#1,a\n", 1, 0, 0, 1),
    "mixed line ends": (b"x,note\r\n1,a\n2,b\r\n", 2, 2, 3, 2),
    "a column without a name": (b"x,note,\n1,a,2\n", 1, 1, 1, 1),
    "NUL": (b"x,note\n1,a\x00b\n", 1, 1, 1, 1),
    "Unicode": ("x,note\n1,Ünï\U0001f600\n".encode(), 1, 1, 1, 1),
}


@pytest.mark.parametrize("name", only([0], READ))
def test_a_csv_file_is_read(name: str, tmp_path: Path) -> None:
    content, rows, numbers, total, notes = READ[name]
    assert cells(tmp_path, content) == {"n": rows, "notes": notes, "x": numbers, "s": total}


def test_a_tsv_file_is_read(tmp_path: Path) -> None:
    assert cells(tmp_path, b'x\tnote\n1\t"a\tb"\n2\tc,d\n', source="t.tsv") == {"n": 2, "notes": 2, "x": 2, "s": 3}


BROKEN = {
    "a field too many": b"x,note\n1,a\n2,b,c\n",
    "a field too few": b"x,note\n1,a\n2\n",
    "an open quote": b'x,note\n1,"a\n2,b\n3,c\n',
    "text after a quote": b'x,note\n1,"a"b\n2,c\n',
    "bytes that are not UTF-8": b"x,note\n1,\xff\xfe\n",
    "such bytes further on": b"x,note\n" + b"1,a\n" * 5000 + b"1,\xff\xfe\n",
    "a header that is not UTF-8": b"x,n\xffte\n1,a\n",
    "a line of three megabytes": b"x,note\n1," + b"a" * 3_000_000 + b"\n",
    "nothing": b"",
    "an empty line": b"\n",
    "zeros": b"\0" * 100,
}


@pytest.mark.parametrize("name", one_in(3, BROKEN))
def test_a_csv_file_that_is_broken_is_refused_before_anybody_asks(name: str, tmp_path: Path) -> None:
    """Were a line skipped, it could take its neighbours along; were it left to a question, the question would tell."""
    with pytest.raises(DataFault) as fault:
        cells(tmp_path, BROKEN[name])
    assert str(fault.value).startswith(("The file t.csv of table t", "t.csv has"))
    assert "a\n" not in str(fault.value)


LINES = [
    '1,"',
    '1,"a',
    '1,a"',
    '1,"a"b',
    '"1,a',
    '"1",a"',
    '1,"a""',
    '1,""a"',
    "1,a,b",
    "1",
    '"',
    '""',
    '","',
    '1,"a\x00',
    "1,a\r2,b",
    '1,"a\r',
    '1,a"\r2,b',
    '1,"a"\r2,b\r',
    "1,\\",
    '1,"a\\"',
]


def swallowed(folder: Path, *, everywhere: bool = False) -> Iterator[str]:
    """Yield the lines which, put among five of others, make a file that is read without all of the five.

    They are put before, among and after the others: in turn, or each in all places.
    """
    places = (0, 2, 5)
    for number, line in some(2, enumerate(LINES)):
        for place in places if everywhere else [places[number % 3]]:
            lines = ["2,ok"] * 5
            lines.insert(place, line)
            content = "x,note\n" + "".join(f"{line}\n" for line in lines)
            try:
                count = cells(folder, content.encode(), question=f"{QUESTION} WHERE note = 'ok'")["n"]
            except DataFault:
                continue
            if count != 5:
                yield line


@pytest.mark.parametrize("everywhere", [False, pytest.param(True, marks=pytest.mark.long)])
def test_one_line_cannot_swallow_others(tmp_path: Path, everywhere: bool) -> None:
    """What one person writes must not make other people's rows come and go."""
    assert list(swallowed(tmp_path, everywhere=everywhere)) == []


def test_a_reader_that_minds_no_quotes_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    relation = source_reading.relation
    tolerant = "parallel = false, ignore_errors = true"
    monkeypatch.setattr(source_reading, "relation", lambda *a: relation(*a).replace("parallel = false", tolerant))
    monkeypatch.setattr(source_reading, "rows_of", lambda file, table: pytest.approx(0, abs=1e9))
    assert any(swallowed(tmp_path))


@pytest.mark.long
@pytest.mark.parametrize("rows", [900, pytest.param(3000, marks=pytest.mark.long)])
def test_a_large_csv_file_with_line_ends_in_quotes(tmp_path: Path, rows: int) -> None:
    """Readers that split a file in the middle take the inside of a quoted field for rows."""
    field = "9,9\n" * 3000
    content = "x,note\n" + "".join(f'1,"{field}"\n' for _ in range(rows))
    assert cells(tmp_path, content.encode()) == {"n": rows, "notes": rows, "x": rows, "s": rows}


# ---- Parquet ---------------------------------------------------------------------------------------------------------


def test_names_fold_case_and_order_is_free(tmp_path: Path) -> None:
    parquet(tmp_path, {"NOTE": ["a"], "extra": [1], "X": [7]})
    found = catalog(tmp_path, COLUMNS)
    engine = DuckDB(found)
    assert ask(engine, found, 'SELECT SUM(x) AS s, SUM("x") AS t, SUM(X) AS u FROM T') == {(): (7,)}
    engine.close()


def test_names_that_differ_by_case_alone_are_refused(tmp_path: Path) -> None:
    """Which of them is meant cannot be told, and one may be the unit."""
    parquet(tmp_path, {"x": [1], "X": [2], "note": ["a"]})
    engine = DuckDB(catalog(tmp_path, COLUMNS))
    with pytest.raises(DataFault, match="several columns called x that differ only in case"):
        engine.digest(catalog(tmp_path, COLUMNS).tables[0])
    engine.close()


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    parquet(tmp_path, {"x": [1]})
    engine = DuckDB(catalog(tmp_path, COLUMNS))
    with pytest.raises(DataFault, match=r"t\.parquet has no column note; it has x"):
        engine.digest(catalog(tmp_path, COLUMNS).tables[0])
    engine.close()


@pytest.mark.long
def test_a_folder_s_name_is_not_a_column(tmp_path: Path) -> None:
    """Hive partitioning takes x=5 in a path for a column x, in the place of the file's own."""
    folder = tmp_path / "x=5"
    folder.mkdir()
    parquet(folder, {"x": [7], "note": ["a"]})
    found = catalog(folder, COLUMNS)
    engine = DuckDB(found)
    assert ask(engine, found, "SELECT SUM(x) AS s FROM t") == {(): (7,)}
    engine.close()
    assert cells(folder, b"x,note\n7,a\n")["s"] == 7


@pytest.mark.parametrize("name", one_in(3, ["t[1].parquet", "t*.parquet", "t?.parquet"]))
def test_a_path_that_is_a_pattern_is_refused(name: str, tmp_path: Path) -> None:
    """The engine would read t1.parquet for t[1].parquet."""
    parquet(tmp_path, {"x": [1], "note": ["a"]}, name)
    parquet(tmp_path, {"x": [2], "note": ["b"]}, "t1.parquet")
    found = catalog(tmp_path, COLUMNS, source=name)
    engine = DuckDB(found)
    with pytest.raises(DataFault, match="which the engine reads as a pattern; rename it"):
        engine.digest(found.tables[0])
    engine.close()


@pytest.mark.parametrize(
    "folder", one_in(6, ["with space", "quote's", "semi;colon", "per%cent", "{a,b}", "~", "ü", "a=b"])
)
def test_other_paths_are_read(folder: str, tmp_path: Path) -> None:
    (tmp_path / folder).mkdir()
    parquet(tmp_path / folder, {"x": [3], "note": ["a"]})
    found = catalog(tmp_path / folder, COLUMNS)
    engine = DuckDB(found)
    assert ask(engine, found, "SELECT SUM(x) AS s FROM t") == {(): (3,)}
    engine.close()


def test_a_table_without_columns_can_be_counted(tmp_path: Path) -> None:
    parquet(tmp_path, {"person": [1, 1, 2, None]})
    by_row, by_person = catalog(tmp_path, {}), catalog(tmp_path, {}, unit="person", rows=1)
    for found, rows in ((by_row, 4), (by_person, 2)):
        engine = DuckDB(found)
        assert ask(engine, found, "SELECT COUNT(*) AS n FROM t") == {(): (rows,)}
        engine.close()
