"""`lapwing demo density`: a small city, and real planes; what is shown is released, and the truth is marked."""

import re
import xml.etree.ElementTree as ElementTree
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from lapwing.cli.demo import density, departures
from lapwing.cli.demo.city import CELLS, COLUMNS, DAY, made_city, truly_present
from lapwing.cli.demo.heat_map import colour, film_strip, terminal_map
from lapwing.monitors import open_monitor


@pytest.mark.long
def test_a_day_goes_by(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(departures, "flights_file", lambda: None)
    monkeypatch.setattr(density, "READABLE", 30)
    density.play(tmp_path, people=3_000)
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 100
    assert "(computed from the truth, for teaching only" in shown
    for time in density.SHOWN:
        assert f"\n{time}   people in each cell" in shown
    share = re.search(r"inside the ± in ([0-9.]+) % of 4,800 counts", shown)
    assert share is not None
    assert 85 < float(share[1]) < 100
    assert len(ElementTree.parse(tmp_path / "density.svg").getroot().findall(".//{*}text")) >= 24
    with open_monitor(tmp_path / "lapwing.toml", "density") as monitor:
        assert monitor.released == 96


@pytest.mark.long
def test_planes_leave(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    departures.play(tmp_path / "flights")
    shown = capsys.readouterr().out
    share = re.search(r"inside the ± in ([0-9.]+) % of 26,280 counts", shown)
    assert share is not None
    assert 93 < float(share[1]) < 97
    assert "below their own ±" in shown


def test_people_are_where_they_went_last() -> None:
    moves = made_city(people=500)
    assert (np.diff(moves.second) >= 0).all()
    assert np.bincount(moves.person).max() <= density_limit()
    for hour in (1, 8, 20):
        truth = truly_present(moves, DAY.replace(hour=hour))
        assert truth.sum() == 500
        before = moves.second < hour * 3600
        last = {int(p): int(c) for p, c in zip(moves.person[before], moves.cell[before], strict=True)}
        assert truth.tolist() == [sum(cell == place for cell in last.values()) for place in range(len(CELLS))]
    assert datetime(2026, 3, 2) == DAY


def density_limit() -> int:
    found = re.search(r"max_rows_per_unit = (\d+)", density.CATALOG)
    assert found is not None
    return int(found[1])


def test_maps_are_drawn() -> None:
    drawn = terminal_map([0, 50, 100, -20], 2, 100).plain
    assert drawn == "   0 ▒  0 \n█  1    0 \n"
    assert colour(-1) == colour(0) != colour(1) == colour(2)
    picture = film_strip([("01:00", [0.0] * len(CELLS)), ("02:00", [9.0] * len(CELLS))], COLUMNS, 9, "a & b", "c < d")
    assert ElementTree.fromstring(picture) is not None
    assert picture.count("<rect") == 1 + 2 * len(CELLS) + 60
