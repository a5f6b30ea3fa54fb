"""Temporary folders go with their process, however it ends; nothing else goes."""

import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from uuid import uuid4

import pytest

import lapwing
from lapwing.machine import scratch

LIVING = """
import sys
from pathlib import Path
from lapwing.machine import scratch
folder = scratch.fresh(Path(sys.argv[1]), sys.argv[2])
(folder.path / "rows").write_text("private")
print(folder.path, flush=True)
sys.stdin.read()
"""


def living(parent: Path, prefix: str = "lapwing-spill-") -> tuple[subprocess.Popen[str], Path]:
    """Start a process that has a folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", LIVING, str(parent), prefix], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_killed_process_s_folder_is_removed_by_the_next(tmp_path: Path) -> None:
    process, folder = living(tmp_path)
    mine = scratch.fresh(tmp_path, "lapwing-spill-")
    assert (folder / "rows").exists()  # it lives
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert (folder / "rows").exists()  # nobody could remove it
    other = scratch.fresh(tmp_path, "lapwing-spill-")
    assert not folder.exists()
    assert mine.path.exists()
    for own in (mine, other):
        own.remove()
    assert list(tmp_path.iterdir()) == []


def test_it_is_its_owner_s_alone(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        made = [scratch.fresh(tmp_path, "a-"), scratch.fresh_at(tmp_path / "b")]
    finally:
        os.umask(umask)
    for folder in made:
        assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
        folder.remove()


def test_what_is_not_ours_stays(tmp_path: Path) -> None:
    """Folders of another prefix, without a lock, that are being made, or are only links."""
    scratch.fresh(tmp_path, "other-")
    (tmp_path / "lapwing-spill-empty").mkdir()
    made = tmp_path / "lapwing-spill-made"
    made.mkdir()
    (made / f"{scratch.ALIVE}.new").touch()
    target = tmp_path / "target"
    target.mkdir()
    (target / scratch.ALIVE).touch()
    (tmp_path / "lapwing-spill-link").symlink_to(target)
    linked = tmp_path / "lapwing-spill-linked"
    linked.mkdir()
    (linked / scratch.ALIVE).symlink_to(target / scratch.ALIVE)
    (tmp_path / "lapwing-spill-file").touch()
    before = sorted(tmp_path.rglob("*"))
    scratch.clear_stale(tmp_path, "lapwing-spill-")
    assert sorted(tmp_path.rglob("*")) == before


def test_links_inside_are_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("mine")
    stale = tmp_path / "lapwing-spill-stale"
    stale.mkdir()
    (stale / scratch.ALIVE).touch()
    (stale / "rows").symlink_to(tmp_path / "data")
    scratch.clear_stale(tmp_path, "lapwing-spill-")
    assert not stale.exists()
    assert (tmp_path / "data").read_text() == "mine"


def test_a_child_leaves_its_parent_s_alone(tmp_path: Path) -> None:
    folder = scratch.fresh(tmp_path, "lapwing-spill-")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        folder.remove()
    assert folder.path.exists()
    folder.remove()
    folder.remove()
    assert not folder.path.exists()


def test_a_folder_that_is_not_there_has_nothing_stale(tmp_path: Path) -> None:
    scratch.clear_stale(tmp_path / "nowhere", "lapwing-spill-")
    with pytest.raises(FileExistsError):
        scratch.fresh_at(tmp_path)


def test_a_temporary_folder_goes_with_its_use_and_with_its_process() -> None:
    prefix, parent = f"lapwing-tests-{uuid4().hex}-", Path(tempfile.gettempdir())
    with pytest.raises(KeyError), scratch.temporary_folder(prefix) as failed:
        raise KeyError
    assert not failed.exists()
    process, left = living(parent, prefix)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert (left / "rows").exists()
    with scratch.temporary_folder(prefix):
        assert not left.exists()
    assert list(parent.glob(f"{prefix}*")) == []


def test_what_runs_for_long_makes_no_folder_that_a_kill_leaves_behind() -> None:
    """A service whose processes are killed now and then would fill the disk; the lab's runs are short."""
    source = Path(lapwing.__file__).parent
    others = [path for path in source.rglob("*.py") if "lab" not in path.relative_to(source).parts[0]]
    makers = [path.name for path in others if re.search(r"\bTemporaryDirectory\(|\bmkdtemp\(", path.read_text())]
    assert makers == ["scratch.py"]
