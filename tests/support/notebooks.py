"""Runs the cells of a notebook in an IPython of its own, and tells what each showed.

IPython's shell changes hooks of the whole process, so it runs in another one. Run as a program, this module reads the
cells from standard input and writes what they showed to standard output.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Shown:
    """What a cell showed: the kind and message of its error, what it wrote, and what it displayed by type of medium."""

    error: str | None
    stdout: str
    displays: list[dict[str, str]] = field(default_factory=list)
    result: dict[str, str] | None = None


def run(cells: Sequence[str], folder: Path) -> list[Shown]:
    """Run cells one after another in a folder; one that fails does not stop those after it."""
    fixed = {"PYTHONPATH": str(ROOT), "IPYTHONDIR": str(folder / ".ipython"), "NO_COLOR": "1", "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.notebooks"],
        input=json.dumps(list(cells)),
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **fixed},
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Shown(**shown) for shown in json.loads(done.stdout)]


def _main() -> None:
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=config)
    results: list[dict[str, str]] = []
    for silenced in ("start_displayhook", "write_output_prompt", "finish_displayhook"):
        setattr(shell.displayhook, silenced, lambda: None)
    setattr(shell.displayhook, "write_format_data", lambda data, *_: results.append(dict(data)))  # noqa: B010
    found: list[dict[str, object]] = []
    for cell in json.load(sys.stdin):
        results.clear()
        with capture_output() as captured:
            result = shell.run_cell(cell, store_history=True)  # type: ignore[no-untyped-call]
        error = result.error_before_exec or result.error_in_exec
        displays = [dict(output.data) for output in captured.outputs]
        said = None if error is None else f"{type(error).__name__}: {error}"
        found.append({"error": said, "stdout": captured.stdout, "displays": displays})
        found[-1]["result"] = results[-1] if results else None
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    _main()
