"""The proofs of `proofs/`, compiled and checked by Coq in a folder beside them."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
PROOFS: Final = ROOT / "proofs"
ORDER: Final = ("Tables", "Relations", "Sensitivity", "SetCounts", "Ledger")
"""The files, each after those that it rests on."""

needs_coq: Final = pytest.mark.skipif(
    shutil.which("coqc") is None, reason="Coq is not installed; `make test-long` installs it where it may"
)
_STATED: Final = re.compile(r"^\s*(?:Theorem|Lemma|Corollary)\s+(\w+)", re.MULTILINE)


def source(name: str) -> str:
    """Return the text of a file of proofs."""
    return (PROOFS / f"{name}.v").read_text(encoding="utf-8")


def stated(text: str) -> list[str]:
    """Return the names of what a text proves, but for what only stands inside a section."""
    return _STATED.findall(text)


def run(program: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program of Coq on the files of a folder."""
    command = [program, "-Q", str(folder), "Lapwing", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def compiled(name: str, text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Compile a text as a file of a folder, in which all that it rests on is compiled."""
    (folder / f"{name}.v").write_text(text, encoding="utf-8")
    return run("coqc", folder, f"{name}.v")


def compile_all(folder: Path) -> None:
    """Compile all files of proofs into a folder."""
    for name in ORDER:
        made = compiled(name, source(name), folder)
        assert made.returncode == 0, made.stderr
