"""An audit with a copy of the package finds each planted kind of bug, and nothing in an honest copy."""

from pathlib import Path

import pytest

from tests.support.planted_bugs import BUGS, PlantedBug, audited, installation, planted, seconds_until

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installation(tmp_path_factory.mktemp("audited"))


def test_an_honest_copy_passes(catalog: Path, tmp_path: Path) -> None:
    honest = PlantedBug(kind="none", edits=(), codes=frozenset())
    status, report = audited(catalog, planted(honest, tmp_path), "--quick")
    violated = [one for check in report["checks"] for one in check["findings"] if one["severity"] == "violated"]
    assert (status, violated) == (0, [])


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.kind)
def test_a_planted_bug_is_found(catalog: Path, tmp_path: Path, bug: PlantedBug) -> None:
    status, report = audited(catalog, planted(bug, tmp_path), "--minutes", "4")
    assert status == 1
    assert seconds_until(report, bug.codes) is not None
