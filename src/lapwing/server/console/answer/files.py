"""Answers as files, and as what opens them elsewhere: Python, a notebook, curl, the command line."""

import json
import shlex
from collections.abc import Callable, Mapping
from hashlib import sha256
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from lapwing.answer.charts.svg import png_of
from lapwing.answer.spreadsheet_csv import csv_of
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.problems import problem
from lapwing.server.responses import ARROW

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_of(table: "pa.Table") -> bytes:
    """Return a table as an Arrow stream."""
    from pyarrow import ipc

    sink = BytesIO()
    with ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue()


def parquet_of(table: "pa.Table") -> bytes:
    """Return a table as Parquet."""
    from pyarrow import parquet

    sink = BytesIO()
    parquet.write_table(table, sink)
    return sink.getvalue()


TABLES: Final[Mapping[str, tuple[str, Callable[["pa.Table"], bytes]]]] = {
    "csv": ("text/csv; charset=utf-8", csv_of),
    "parquet": ("application/vnd.apache.parquet", parquet_of),
    "arrow": (ARROW, arrow_of),
}
"""By the ending of a file: what it is, and how a table becomes it."""


def picture_of(drawn: str) -> bytes:
    """Return a chart in SVG as PNG, twice as fine; it takes the `plots` extra.

    Raises:
        ApiRefusal: What the service refused, as it says it.
    """
    if find_spec("vl_convert") is None:
        raise ApiRefusal(problem("not_found", 404, "This server cannot make PNG files. Download the chart as SVG."))
    return png_of(drawn)


_ENDS: Final = "answer.to_pandas(0.95)  # a table with both ends of the 95 % intervals; it needs pandas"


def notebook_of(address: str, dataset: str, request: Mapping[str, Any]) -> bytes:
    """Return a notebook that asks the same again, which is free, and draws it."""
    python, *_ = (text for name, text in snippets(address, dataset, request) if name == "Python")
    asked, _, _ = python.rpartition("\n")
    title = request.get("label") or "Query"
    told = "Running the same query again is free. Set `LAPWING_TOKEN` to your token. `lapwing login` gives you one."
    cells = [_cell("markdown", f"# {title}\n\n{told}")]
    cells += [_cell("code", text) for text in (asked, "answer", "answer.plot()", _ENDS)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, ensure_ascii=False, indent=1).encode()


def _cell(kind: str, text: str) -> dict[str, Any]:
    name = sha256(text.encode()).hexdigest()[:8]
    cell: dict[str, Any] = {"cell_type": kind, "id": name, "metadata": {}, "source": text.splitlines(keepends=True)}
    return cell if kind == "markdown" else {**cell, "execution_count": None, "outputs": []}


def table_of(stream: bytes) -> "pa.Table":
    """Read an Arrow stream."""
    from pyarrow import ipc

    return ipc.open_stream(stream).read_all()


def snippets(address: str, dataset: str, request: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return texts that ask the same again, which is free, each with its name."""
    names = ("epsilon", "error", "delta", "assuming_count")
    price = {name: request[name] for name in names if request.get(name) is not None}
    body = {"sql": request["sql"], **price}
    written = {name: _literal(amount) if isinstance(amount, str) else amount for name, amount in price.items()}
    priced = "".join(f", {name}={amount}" for name, amount in written.items())
    options = "".join(f" --{name.replace('_', '-')} {shlex.quote(str(amount))}" for name, amount in price.items())
    python = (
        "import os\n\nimport lapwing as lw\n\n"
        f'session = lw.connect({address!r}, token=os.environ["LAPWING_TOKEN"], dataset={dataset!r})\n'
        f"answer = session.sql({request['sql']!r}{priced})\n"
        "print(answer.rows(), answer.interval(0.95))"
    )
    curl = (
        f"curl -s {shlex.quote(f'{address}/v1/datasets/{dataset}/query')} \\\n"
        '  -H "Authorization: Bearer $LAPWING_TOKEN" \\\n'
        "  -H 'Content-Type: application/json' \\\n"
        f"  -d {shlex.quote(json.dumps(body, ensure_ascii=False))}"
    )
    command = (
        f"lapwing query {shlex.quote(request['sql'])}{options} \\\n"
        f"  --server {shlex.quote(address)} --dataset {shlex.quote(dataset)}"
    )
    return [("Python", python), ("curl", curl), ("Command line", command), ("SQL", request["sql"])]


def _literal(amount: str) -> str:
    """Return an amount as Python takes it: a number, or a text of what no decimal is."""
    try:
        number = float(amount)
        return str(int(number)) if number == int(number) else str(number).replace("e-0", "e-")
    except ValueError:
        return repr(amount)
