"""What is built, once for all processes that test it: the files of dist/, and an environment with the wheel in it."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.support.docs.pages import ROOT

WHO: Final = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_CONFIG_GLOBAL": "/dev/null"}
COMMITTED: Final = "2026-01-02T03:04:05Z"


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder that the first process that asks for it fills, and the others of the same run share."""
    shared = factory.getbasetemp().parent if "PYTEST_XDIST_WORKER" in os.environ else factory.getbasetemp()
    folder = shared / name
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / f"{name}.made").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            (shared / f"{name}.made").touch()
    return folder


def clone(folder: Path, committed: str = COMMITTED) -> None:
    """Make a clone of the project as it lies here, changes included, with one commit."""
    if not (ROOT / ".git").exists():
        pytest.skip("this folder is no clone, and what is built is what is committed")
    files = run(ROOT, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    for name in filter(None, files):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    who = WHO | {name.replace("AUTHOR", "COMMITTER"): value for name, value in WHO.items() if "AUTHOR" in name}
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "All of it"]):
        run(
            folder,
            "git",
            *command,
            environment=who | dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), committed),
        )


def build(folder: Path, environment: Mapping[str, str] | None = None) -> Path:
    """Build a clone as `make dist` does, with the tools of this environment; return where it is."""
    run(folder, sys.executable, "scripts/distribution.py", environment=environment)
    return folder / "dist"


def environment_with(folder: Path, *arguments: str, moment: str = "") -> Path:
    """Make an environment that has nothing but what pip is told, at the versions of the locks; return its folder.

    Args: moment: SOURCE_DATE_EPOCH of what pip builds.
    """
    pins = folder / "pins.txt"
    lock = (ROOT / "requirements" / "dev.lock").read_text(encoding="utf-8")
    pins.write_text("\n".join(re.findall(r"^[a-z0-9][^\n\\]*", lock, re.MULTILINE)) + "\n")  # without their hashes
    environment = folder / "environment"
    run(folder, sys.executable, "-m", "venv", str(environment))
    constrained = {"PIP_CONSTRAINT": str(pins), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    constrained |= {"SOURCE_DATE_EPOCH": moment} if moment else {}
    run(folder, str(environment / "bin/python"), "-m", "pip", "--quiet", *arguments, environment=constrained)
    return environment


def run(folder: Path, *command: str, environment: Mapping[str, str] | None = None) -> str:
    """Run a command in a folder, and return what it prints.

    Raises: AssertionError with all that it printed, if it fails.
    """
    ended = subprocess.run(command, cwd=folder, env=clean() | dict(environment or {}), capture_output=True, text=True)
    assert ended.returncode == 0, f"{command}\n{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"
    return ended.stdout


def clean() -> dict[str, str]:
    """Return this process's environment without what would lead Python to this clone, or git to this repository."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GIT_", "SOURCE_DATE"))}
