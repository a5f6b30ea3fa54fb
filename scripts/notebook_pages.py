"""Show a notebook and its outputs on a page of the site: a hook of MkDocs.

A page that has the mark `<!-- notebook NAME.ipynb -->` shows the cells of that file, which is in the page's folder.
`tests/docs/test_notebooks.py` runs each notebook and compares the kinds of its outputs. The file has the outputs of
the last run. If an output has a form in HTML, the page has this form, like a notebook.
"""

import json
import re
from html import escape
from pathlib import Path
from typing import Any, Final

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"
MARK: Final = re.compile(r"<!-- notebook ([\w./-]+\.ipynb) -->")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the text of a page, with a notebook in the place of its mark."""
    folder = DOCS / Path(page.file.src_uri).parent
    return MARK.sub(lambda mark: rendered(folder / mark[1]), markdown)


def rendered(path: Path) -> str:
    """Return the cells of a notebook as text of a page. Its title is the page's, so it has none here."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join(_cell(cell) for cell in cells)


def _cell(cell: dict[str, Any]) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] != "code":
        return re.sub(r"\A# .*\n+", "", source)
    language = "sql" if source.startswith("%%") else "python"
    return "\n\n".join([f"```{language}\n{source}\n```", *(_output(output) for output in cell["outputs"])])


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        return f'<div class="lapwing-output">{"".join(data["text/html"])}</div>'
    text = "".join(data.get("text/plain", output.get("text", ""))).rstrip()
    return f'<div class="lapwing-output"><pre>{escape(text)}</pre></div>'
