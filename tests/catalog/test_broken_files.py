"""Files that cannot be read: which of the things that may be wrong it is, and nothing of what they hold."""

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.catalog import file_columns
from lapwing.catalog.file_columns import read_columns

SECRET = "Ada Lovelace"


def parquet(path: Path) -> bytes:
    pq.write_table(pa.table({"name": [SECRET] * 100}), path)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("x.parquet", SECRET.encode(), "its content does not match the ending of its name"),
        ("x.parquet", b"", "it is empty"),
        ("x.parquet", None, "its end is missing"),
        ("x.parquet", b"PAR1" + SECRET.encode() + b"PAR1", "it is damaged or cut off"),
        ("x.csv", b"", "it is empty"),
        ("x.csv", f"name,st\xe4dt\n{SECRET},1\n".encode("latin-1"), "it is not in UTF-8"),
        ("x.csv", SECRET.encode("utf-16"), "it is not in UTF-8"),
        ("x.csv", f'"name\n{SECRET}'.encode(), "its first line is not CSV"),
        ("x.csv.gz", f"name\n{SECRET}".encode(), "its content does not match the ending of its name"),
        ("x.csv.zst", gzip.compress(b"name", mtime=0), "its content does not match the ending of its name"),
        ("x.csv.gz", gzip.compress(SECRET.encode(), mtime=0)[:6], "it is damaged or cut off"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, name: str, content: bytes | None, why: str) -> None:
    path = tmp_path / name
    path.write_bytes(parquet(path)[:-100] if content is None else content)
    with pytest.raises(lw.DataFault) as refused:
        read_columns(path, {})
    assert str(refused.value).startswith(f"{name} cannot be read as {name.removeprefix('x.')}: {why}")
    assert "Ada" not in str(refused.value)


def test_what_one_may_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.csv").write_text("name\n")

    def forbidden(path: Path, _written: object) -> list[str]:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(file_columns, "header", forbidden)
    with pytest.raises(lw.DataFault, match="you may not read it; ask its owner"):
        read_columns(tmp_path / "x.csv", {})
