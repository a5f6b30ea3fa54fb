"""CSV and TSV files that are compressed: read like those that are not, and refused where they are cut off."""

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

import lapwing as lw
from lapwing.catalog.source_names import DATA, ending, is_text, stem
from lapwing.catalog.text_files import format_of, header, size
from lapwing.cli import main
from tests.support.effort import only

ROWS = [f"{n % 400},{'ab'[n % 2]},{n % 7}" for n in range(1000)]
ENDINGS = [".csv.gz", ".csv.zst", ".tsv.gz", ".tsv.zst", ".CSV.GZ"]


def write(path: Path) -> bytes:
    text = "\n".join(["person,plan,cost", *ROWS, ""]).encode()
    text = text.replace(b",", format_of(path).delimiter.encode())
    if path.name.casefold().endswith(".gz"):
        path.write_bytes(gzip.compress(text))
    else:
        with pa.CompressedOutputStream(str(path), "zstd") as stream:
            stream.write(text)
    return text


def protected(path: Path) -> lw.Session:
    return lw.protect(
        path,
        privacy_unit="person",
        epsilon=1_000_000,
        max_rows_per_unit=3,
        types={"person": "integer", "cost": "integer"},
        bounds={"cost": (0, 6)},
        domains={"plan": ["a", "b"]},
    )


@pytest.mark.parametrize("kind", only([0], ENDINGS))
def test_it_is_read_like_any_other(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"visits{kind}"
    content = write(path)
    assert (header(path, format_of(path)), size(path)) == (["person", "plan", "cost"], len(content))
    with protected(path) as session:
        rows = session.sql(
            "SELECT plan, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY plan", epsilon=200_000
        ).rows()
    sums = [sum(int(row[-1]) for row in ROWS if f",{plan}," in row) for plan in "ab"]
    assert [(row["plan"], row["n"], row["s"]) for row in rows] == [("a", 500, sums[0]), ("b", 500, sums[1])]
    assert (tmp_path / "visits.lapwing.toml").is_file()


@pytest.mark.parametrize("kind", [".csv.gz", ".csv.zst"])
@pytest.mark.parametrize("lost", [1, 9, 40])
def test_what_is_cut_off_is_no_data(tmp_path: Path, kind: str, lost: int) -> None:
    path = tmp_path / f"visits{kind}"
    write(path)
    path.write_bytes(path.read_bytes()[:-lost])
    with pytest.raises(lw.DataFault, match=r"cannot be read (to its end|as csv)"):
        protected(path)


def test_what_is_not_compressed_is_no_data(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv.gz"
    path.write_text("\n".join(["person,plan,cost", *ROWS]))
    with pytest.raises(lw.DataFault, match=r"visits\.csv\.gz cannot be read as csv\.gz"):
        protected(path)


def test_names() -> None:
    assert [ending(Path(f"x{kind}")) for kind in DATA] == list(DATA)
    assert [ending(Path(name)) for name in ("x.gz", "x.csv.bz2", "x.parquet.gz", "x", "x.csv.txt")] == [""] * 5
    assert (stem(Path("a.b.csv.gz")), stem(Path("a.CSV")), stem(Path("a.parquet"))) == ("a.b", "a", "a")
    assert is_text(Path("x.tsv.zst"))
    assert not is_text(Path("x.parquet"))


@pytest.mark.long
def test_init_writes_a_catalog_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("visits.csv.gz"))
    described = ["--types", "person=integer,cost=integer", "--bounds", "cost=0:6", "--values", "plan=a,b"]
    usual = ["--privacy-unit", "person", "--epsilon", "3", "--delta", "1e-6", "--max-rows", "3"]
    assert main(["init", "visits.csv.gz", *usual, *described]) == 0
    assert 'source = "visits.csv.gz"' in Path("lapwing.toml").read_text(encoding="utf-8")
    assert main(["data", "check"]) == 0
    assert main(["query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "1"]) == 0
    assert capsys.readouterr().out
