"""Every refusal names the file, the table, the column and the key, and says what to do."""

from pathlib import Path

import pytest

from lapwing.catalog.toml import load
from lapwing.errors import CatalogError
from tests.support.catalog.examples import TEXT, catalog, changed
from tests.support.effort import one_in


def read_cases() -> dict[str, tuple[str, str, str]]:
    """Return name → (what stands there, what is written instead, how the message begins after the file's name)."""
    content = (Path(__file__).parent / "refusals.txt").read_text(encoding="utf-8")
    cases = {}
    for block in content.split("\n== ")[1:]:
        name, *lines = block.rstrip("\n").split("\n")
        old, new, message = ("\n".join(line[2:] for line in lines if line[:1] == mark) for mark in "-+!")
        cases[name] = (old, new, message)
    return cases


CASES = read_cases() | {
    "endless integer": ("= 10", f"= 1{'0' * 5000}", "not TOML: a number has too many digits"),
    "nested": ("epsilon = 3.0", f"epsilon = {'[' * 100_000}", "not a catalog: nested too deeply"),
}


@pytest.mark.parametrize("name", one_in(2, CASES))
def test_refusal_names_the_place(name: str) -> None:
    old, new, message = CASES[name]
    with pytest.raises(CatalogError) as caught:
        catalog(changed(old, new))
    assert str(caught.value).startswith(f"lapwing.toml: {message}")


def test_all_cases_are_read() -> None:
    assert len(CASES) > 80


def test_no_table() -> None:
    with pytest.raises(CatalogError, match=r"^lapwing\.toml: tables: missing; describe at least one table"):
        catalog(TEXT[: TEXT.index("[tables.visits]")])


@pytest.mark.long
def test_too_many_columns() -> None:
    columns = "\n".join(f'c{number} = {{ type = "string" }}' for number in range(10_001))
    with pytest.raises(CatalogError, match=r"tables\.visits\.columns: 10001 columns; at most 10000"):
        catalog(TEXT[: TEXT.index("plan =")] + columns)


def test_a_missing_file(tmp_path: Path) -> None:
    for path in (tmp_path / "lapwing.toml", tmp_path):
        with pytest.raises(CatalogError, match=rf"^{path.name}: there is no such file; write one with `lapwing init`"):
            load(path)


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "lapwing.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(CatalogError, match=r"^lapwing\.toml: not UTF-8 text"):
        load(path)
