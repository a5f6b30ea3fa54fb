"""What is built is what is committed, all of it, and the same bytes whoever builds it, when and where."""

import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from tests.support.distribution.built import build, clone, environment_with, run
from tests.support.docs.pages import ROOT

pytestmark = pytest.mark.long


def sums(folder: Path) -> dict[str, str]:
    return {file.name: sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("first")
    clone(folder)
    build(folder, {"TZ": "UTC", "PYTHONHASHSEED": "1"})
    return folder


def spoil(folder: Path) -> None:
    """Leave in a clone what may lie about in one: other times and modes, and files that nobody committed."""
    for file in (folder / "src").rglob("*.py"):
        file.chmod(0o600)
        os.utime(file, (1_000_000_000, 1_000_000_000))
    (folder / "src/lapwing/notes.txt").write_text("salaries")
    (folder / "src/lapwing/__pycache__").mkdir()
    (folder / "src/lapwing/__pycache__/x.pyc").write_bytes(b"x")
    with (folder / "src/lapwing/noise.py").open("a") as module:
        module.write("# not committed\n")


def test_two_builds_are_one(first: Path, tmp_path: Path) -> None:
    """In another folder, at another time, by somebody with another mask, place on earth, language and order of sets."""
    second = tmp_path / "a folder, elsewhere"
    second.mkdir()
    clone(second)
    spoil(second)
    before = os.umask(0o077)
    try:
        build(second, {"TZ": "Asia/Tokyo", "LC_ALL": "C", "PYTHONHASHSEED": "2"})
    finally:
        os.umask(before)
    assert sums(second / "dist") == sums(first / "dist")
    assert len(sums(first / "dist")) == 4


def changed(folder: Path) -> None:
    with (folder / "src/lapwing/noise.py").open("a") as file:
        file.write("\n")
    run(folder, "git", "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qam", "One line more")


@pytest.mark.parametrize(
    ("plant", "environment"), [(changed, {}), (lambda _: None, {"SOURCE_DATE_EPOCH": "1700000000"})]
)
def test_another_build_is_another(
    first: Path, tmp_path: Path, plant: Callable[[Path], None], environment: dict[str, str]
) -> None:
    """The planted differences: one line, or one moment. All four files tell."""
    clone(tmp_path)
    plant(tmp_path)
    other = sums(build(tmp_path, environment))
    assert set(other) == set(sums(first / "dist"))
    assert not set(other.values()) & set(sums(first / "dist").values())


def test_the_sums_are_checked_by_the_usual_tool(first: Path, tmp_path: Path) -> None:
    run(first / "dist", "sha256sum", "--check", "--strict", "SHA256SUMS")
    assert len((first / "dist/SHA256SUMS").read_text().splitlines()) == 3
    for file in (first / "dist").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    with next(tmp_path.glob("*.whl")).open("ab") as wheel:
        wheel.write(b" ")  # planted
    failed = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path, capture_output=True)
    assert failed.returncode == 1


def test_the_wheel_has_every_file_of_the_package(first: Path) -> None:
    """Templates, steps of schemas, scripts, data and `py.typed` with the code: what is committed, and nothing else."""
    committed = set(run(first, "git", "ls-files", "src/lapwing").split())
    with zipfile.ZipFile(next((first / "dist").glob("*.whl"))) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        about = {name.partition(".dist-info/")[2] for name in wheel.namelist()} - {""}
    assert {f"src/{name}" for name in names} == committed
    assert {"lapwing/py.typed", "lapwing/server/console/static/editor.js", "lapwing/datasets/rand_hie.parquet"} <= names
    assert about == {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}


def test_the_source_has_all_that_the_wheel_is_built_from(first: Path, tmp_path: Path) -> None:
    """By pip, which takes it to a folder of its own and builds with the locked tools there."""
    (source,) = (first / "dist").glob("*.tar.gz")
    with tarfile.open(source) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "requirements/service.lock", "deploy/Dockerfile"} <= names
    assert "scripts/console-editor/editor.mjs" in names, "the source of what is bundled"
    assert not any(name.startswith(("tests/", "demo", ".venv", ".git/")) for name in names)
    moment = run(first, "git", "log", "-1", "--format=%ct").strip()
    wheels = tmp_path / "wheels"
    environment_with(tmp_path, "wheel", "--no-deps", "--wheel-dir", str(wheels), str(source), moment=moment)
    (wheel,) = wheels.iterdir()
    assert sums(wheels)[wheel.name] == sums(first / "dist")[wheel.name]


def test_a_folder_that_is_no_clone_is_not_built(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    for name in ("distribution.py", "bill_of_materials.py"):
        (tmp_path / "scripts" / name).write_bytes((ROOT / "scripts" / name).read_bytes())
    command = [sys.executable, "scripts/distribution.py"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, "this folder is no clone" in ended.stderr) == (1, True)
