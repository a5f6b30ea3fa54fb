"""The distribution is `lapwing-dp`: no line installs the stranger's `lapwing`, which is named where it is installed."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

import lapwing
from lapwing.installation import DISTRIBUTION, foreign
from tests.support.docs.pages import ROOT

PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGE: Final = Path(lapwing.__file__).parent
THEIRS: Final = "class EventBus: ...\n"
_TAKEN: Final = re.compile(
    r"\blapwing\\?\["  # an extra of it
    r"|\b(?:pip3?|pipx|uv|uv pip|uv tool) (?:install|add|download)\b[^`\n#&|]*[ '\"]lapwing(?=[\s'\"`=<>~!@;.,)]|$)"
    r"|\b(?:uvx|pipx run) lapwing(?![-\w])",
    re.MULTILINE,
)
"""What asks an index for the distribution `lapwing`."""


def lines_with_the_old_name(text: str) -> list[str]:
    return [found[0] for found in _TAKEN.finditer(text)]


def committed() -> Iterable[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True,
    ).stdout  # fmt: skip
    binary = {".parquet", ".png", ".woff2", ".db", ".gz", ".ico", ".arrow"}
    for name in filter(None, listed.split("\0")):
        if (path := ROOT / name).is_file() and path.suffix not in binary and path != Path(__file__):
            yield path


@pytest.mark.parametrize(
    "planted",
    [
        "pip install 'lapwing[server]'",
        'pip install "lapwing[spark]"',
        r"match=r'pip install lapwing\[ibis\]'",
        "/opt/lapwing/bin/pip install --upgrade lapwing\n",
        "python -m pip install -U lapwing==0.1.0",
        "uv add lapwing",
        "`pip install lapwing`",
        "uvx lapwing query",
    ],
)
def test_an_install_line_with_the_old_name_is_found(planted: str) -> None:
    """The planted bugs; and beside each the right one."""
    assert lines_with_the_old_name(planted)
    assert not lines_with_the_old_name(re.sub(r"\blapwing(?=[^/]*$)", "lapwing-dp", planted))


def test_no_line_installs_what_is_not_ours() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this folder is no clone")
    wrong = {
        str(path.relative_to(ROOT)): found
        for path in committed()
        if (found := lines_with_the_old_name(path.read_text(encoding="utf-8", errors="replace")))
    }
    assert wrong == {}


def test_the_names_and_the_versions_agree() -> None:
    assert (PROJECT["name"], DISTRIBUTION) == ("lapwing-dp", "lapwing-dp")
    assert PROJECT["version"] == lapwing.__version__
    series = ".".join(lapwing.__version__.split(".")[:2])
    assert f"Lapwing {series} does not" in (ROOT / "docs/limitations.md").read_text(encoding="utf-8")
    assert f"## [{series}." in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    page = (ROOT / "docs/how-to/install.md").read_text(encoding="utf-8")
    assert set(re.findall(r"lapwing_dp-([\w.]+)-py3", page)) == {lapwing.__version__}


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder like site-packages, with Lapwing in it."""
    shutil.copytree(PACKAGE, tmp_path / "lapwing", ignore=shutil.ignore_patterns("__pycache__", "datasets", "static"))
    (tmp_path / "lapwing_dp-0.2.0.dev0.dist-info").mkdir()
    return tmp_path


def python(folder: Path, code: str, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [sys.executable, *options, "-c", code], cwd=folder,
        env=environment | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True,
    )  # fmt: skip


WATCHED: Final = """
import json, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    {}
print(json.dumps([warning.category.__name__ for warning in caught]))
"""


def warned(folder: Path, statement: str) -> list[str]:
    ended = python(folder, WATCHED.format(statement))
    assert ended.returncode == 0, ended.stderr
    found: list[str] = json.loads(ended.stdout)
    return found


def test_a_stranger_beside_lapwing_is_named_at_the_first_import(installed: Path) -> None:
    """Lapwing came last, so its files are whole; the planted bug is to uninstall the other."""
    assert warned(installed, "import lapwing") == []
    (installed / "lapwing-1.1.0.dist-info").mkdir()
    assert warned(installed, "import lapwing, lapwing.errors, lapwing") == ["ForeignDistribution"]
    shown = python(installed, "import lapwing").stderr
    assert "lapwing-1.1.0" in shown
    assert "pip uninstall lapwing lapwing-dp" in shown


@pytest.mark.long
def test_a_stranger_that_came_last_stops_the_command(installed: Path) -> None:
    """It wrote its own `__init__.py` over ours. What of Lapwing runs then still names it."""
    (installed / "lapwing-1.1.0.dist-info").mkdir()
    (installed / "lapwing/__init__.py").write_text(THEIRS)
    assert warned(installed, "import lapwing") == []  # no code of Lapwing ran
    assert warned(installed, "import lapwing.errors") == ["ForeignDistribution"]
    ended = python(installed, "from lapwing.cli import run; run()", "-W", "ignore")
    assert (ended.returncode, "lapwing-1.1.0 overwrote" in ended.stderr) == (1, True)
    assert "Traceback" not in ended.stderr


@pytest.mark.long
def test_a_stranger_that_was_removed_took_a_file_along(installed: Path) -> None:
    (installed / "lapwing/__init__.py").unlink()
    ended = python(installed, "from lapwing.cli import run; run()", "-S")  # this clone is not behind it
    assert (ended.returncode, "removed files of Lapwing" in ended.stderr) == (1, True)
    assert "Traceback" not in ended.stderr


def test_only_the_metadata_of_that_name_are_meant(tmp_path: Path) -> None:
    for name in ("lapwing_dp-0.2.0.dev0.dist-info", "lapwing", "lapwing_local-1.dist-info", "lapwings-2.egg-info"):
        (tmp_path / name).mkdir()
    (tmp_path / "lapwing-notes.txt").touch()
    assert foreign(str(tmp_path)) == []
    for name in ("lapwing-1.1.0.dist-info", "Lapwing-0.3-py3.11.egg-info", "lapwing.egg-info"):
        (tmp_path / name).mkdir()
    assert foreign(str(tmp_path)) == ["Lapwing-0.3-py3.11", "lapwing", "lapwing-1.1.0"]
    assert foreign(str(tmp_path / "nothing")) == []


def test_to_look_is_cheap() -> None:
    """One listing of a folder, and no module that Python had not loaded, above all not `importlib.metadata`."""
    before = "import sys, typing, warnings, importlib; before = set(sys.modules)"
    ended = python(PACKAGE.parent, f"{before}; import lapwing; print(*sys.modules.keys() - before)")
    assert set(ended.stdout.split()) == {"lapwing", "lapwing.installation"}
