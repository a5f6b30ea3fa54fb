"""Every notebook of the documentation runs from top to bottom, and shows what it is for.

Noise differs from run to run, so outputs are compared by their kinds only: whether a cell fails, writes, displays, has
a result. `LAPWING_WRITE_NOTEBOOKS=1 pytest tests/docs/test_notebooks.py` keeps the outputs of this run in the files.
"""

import json
import os
from pathlib import Path
from typing import Any

import notebook_pages
import pytest

from tests.support.docs.pages import DOCS
from tests.support.notebooks import Shown, run

NOTEBOOKS = sorted(DOCS.rglob("*.ipynb"))


def source_of(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def fails(cell: dict[str, Any]) -> bool:
    """Tell whether a cell is there to show an error."""
    return "raises-exception" in cell["metadata"].get("tags", [])


def outputs_of(shown: Shown, count: int) -> list[dict[str, Any]]:
    """Return what a cell showed as a notebook keeps it."""
    outputs: list[dict[str, Any]] = []
    for data in shown.displays:
        outputs.append({"output_type": "display_data", "metadata": {}, "data": lines(data)})
    if shown.stdout:
        outputs.append({"output_type": "stream", "name": "stdout", "text": shown.stdout.splitlines(keepends=True)})
    if shown.result is not None:
        result = {"execution_count": count, "metadata": {}, "data": lines(shown.result)}
        outputs.append({"output_type": "execute_result", **result})
    if shown.error is not None:
        text = shown.error.splitlines(keepends=True)
        outputs.append({"output_type": "stream", "name": "stderr", "text": text})
    return outputs


def lines(data: dict[str, str]) -> dict[str, list[str]]:
    return {kind: text.splitlines(keepends=True) for kind, text in data.items()}


def kinds(outputs: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    return [(output["output_type"], *sorted(output.get("data", {}))) for output in outputs]


def test_notebooks_are_found() -> None:
    assert NOTEBOOKS


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: str(path.relative_to(DOCS)))
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["metadata"]["kernelspec"]["name"]) == (4, "python3")
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    shown = run([source_of(cell) for cell in cells], tmp_path)
    for cell, one in zip(cells, shown, strict=True):
        assert (one.error is not None) == fails(cell), f"{source_of(cell)}\n{one.error}"
    if os.environ.get("LAPWING_WRITE_NOTEBOOKS"):
        for count, (cell, one) in enumerate(zip(cells, shown, strict=True), start=1):
            cell.update(execution_count=count, outputs=outputs_of(one, count))
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for count, (cell, one) in enumerate(zip(cells, shown, strict=True), start=1):
        assert kinds(cell["outputs"]) == kinds(outputs_of(one, count)), source_of(cell)
    assert str(tmp_path) not in path.read_text(encoding="utf-8")


@pytest.mark.long
def test_a_cell_that_fails_is_noticed(tmp_path: Path) -> None:
    shown = run(["1 / 0", "1 +", "2"], tmp_path)
    assert [one.error is not None for one in shown] == [True, True, False]
    assert shown[2].result == {"text/plain": "2"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: str(path.relative_to(DOCS)))
def test_a_page_shows_all_cells_and_outputs(path: Path) -> None:
    page = path.with_suffix(".md").read_text(encoding="utf-8")
    assert notebook_pages.MARK.findall(page) == [path.name]
    shown = notebook_pages.rendered(path)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(f"\n{source_of(cell)}\n```" in shown for cell in code)
    outputs = [output for cell in code for output in cell["outputs"]]
    assert shown.count('<div class="lapwing-output">') == len(outputs) > 5
    tables = ["".join(output["data"]["text/html"]) for output in outputs if "text/html" in output.get("data", {})]
    assert len(tables) > 3
    assert all(table in shown for table in tables)


def test_an_output_is_shown_as_text_not_as_html(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "source": ["1"], "outputs": [{"output_type": "stream", "text": ["<b>\n"]}]}
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": ["# Title\n", "\n", "Text"]}, cell]}))
    assert notebook_pages.rendered(path).startswith("Text\n\n```python\n1\n```")
    assert notebook_pages.rendered(path).endswith("<pre>&lt;b&gt;</pre></div>")
