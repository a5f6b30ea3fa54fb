"""Numbers that people type for a command line with a decimal comma, and the catalog that a folder of data hides."""

from pathlib import Path

import pytest

from lapwing.cli.column_options import bounds_of
from lapwing.cli.options import quantity
from lapwing.cli.serve import unserved
from lapwing.errors import InvalidParameter


def test_bounds_may_have_a_decimal_comma() -> None:
    assert bounds_of(["cost=0:2000,5", "share=-0,5:0.5"]) == {"cost": ("0", "2000.5"), "share": ("-0.5", "0.5")}
    assert bounds_of(["at=08:00:17:30"]) == {"at": ("08:00", "17:30")}


@pytest.mark.parametrize("text", ["0:2,000", "1,234:5000"])
def test_a_bound_whose_comma_may_divide_thousands_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter):
        bounds_of([f"cost={text}"])


def test_a_quantity_may_have_a_decimal_comma_and_keeps_its_range() -> None:
    days = quantity("--days", "0.001", 30)
    assert [days("1,5"), days("30"), days("0.001")] == [1.5, 30.0, 0.001]
    for text in ("30,1", "0", "-1", "nan", "inf", "many", "1,500"):
        with pytest.raises(InvalidParameter):
            days(text)
    assert quantity("--rate", "0")("0") == 0


def test_a_catalog_that_a_folder_of_data_hides_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPWING_CATALOG", str(tmp_path / "lapwing.toml"))
    assert unserved([tmp_path]) is None
    (tmp_path / "lapwing.toml").touch()
    assert unserved(None) is None
    assert unserved([tmp_path]) == tmp_path / "lapwing.toml"
