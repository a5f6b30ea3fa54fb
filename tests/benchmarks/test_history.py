"""The history of the benchmarks: its lines have what the page needs, and the page shows what they hold."""

import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.docs.pages import ROOT

BENCHMARKS = ROOT / "benchmarks"


def runs() -> Any:
    """Return the module that keeps runs, which is not part of the package."""
    return SimpleNamespace(**runpy.run_path(str(BENCHMARKS / "_runs.py")))


def page() -> Any:
    """Return the script that writes the page."""
    return SimpleNamespace(**runpy.run_path(str(ROOT / "scripts" / "benchmark_page.py")))


def lines() -> list[dict[str, Any]]:
    files = sorted((BENCHMARKS / "history").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def test_each_line_says_when_what_and_where() -> None:
    assert lines()
    for line in lines():
        assert {"time", "commit", "changed", "machine", "ratios"} == line.keys() - {"options"}
        assert {"processor", "cores", "load", "system", "python"} == line["machine"].keys()
        assert line["ratios"]
        assert all(ratio > 0 for ratio in line["ratios"].values())
        assert all(" / " in name for name in line["ratios"])


def test_the_page_shows_the_history() -> None:
    script, text = page(), (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert script.page(text, script.runs()) == text
    history = script.runs()
    history["noise"][-1]["ratios"]["planted / NumPy's"] = 9.0
    assert script.page(text, history) != text, "the twin: a ratio that the page lacks"


def test_runs_with_other_options_are_apart(tmp_path: Path) -> None:
    made: list[dict[str, Any]] = [{"ratios": {"a / b": 1.0}}, {"options": ["--quick"], "ratios": {"a / b": 9.0}}]
    (tmp_path / "made.jsonl").write_text("".join(json.dumps(line) + "\n" for line in made))
    assert page().runs(tmp_path) == {"made": made[:1], "made --quick": made[1:]}


def test_nothing_is_kept_unless_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = runs()
    monkeypatch.setitem(module.keep.__globals__, "HISTORY", tmp_path / "history")
    monkeypatch.setitem(module.keep.__globals__, "_git", lambda *_arguments: "")
    monkeypatch.delenv(module.ASKED, raising=False)
    module.keep("made", {"ours / theirs": 2.0})
    assert not (tmp_path / "history").exists()
    monkeypatch.setenv(module.ASKED, "1")
    module.keep("made", {"ours / theirs": 2.00004})
    module.keep("made", {"ours / theirs": 4.0})
    kept = [json.loads(line) for line in (tmp_path / "history" / "made.jsonl").read_text().splitlines()]
    assert [line["ratios"] for line in kept] == [{"ours / theirs": 2.0}, {"ours / theirs": 4.0}]
    assert kept[0]["machine"]["python"] == sys.version.split()[0]
