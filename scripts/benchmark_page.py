"""Draw the history of the benchmarks, and write its table into the page: docs/benchmarks.svg and docs/benchmarks.md.

python scripts/benchmark_page.py            check that the page shows what the history holds
python scripts/benchmark_page.py --write    write both
"""

import json
import sys
from pathlib import Path
from typing import Any, Final

from lapwing.lab.drawing import LOG, chart, data, layer, nominal, numeric

ROOT: Final = Path(__file__).resolve().parents[1]
HISTORY: Final = ROOT / "benchmarks" / "history"
PAGE: Final = ROOT / "docs" / "benchmarks.md"
CHART: Final = PAGE.with_suffix(".svg")
MARGIN: Final = {"left": 60, "right": 25, "top": 10, "bottom": 10}
"""Around the chart: a browser's letters are wider than those that its place was reckoned with."""
BEGIN, END = "<!-- history: written by scripts/benchmark_page.py -->", "<!-- end of the history -->"


def runs(folder: Path = HISTORY) -> dict[str, list[dict[str, Any]]]:
    """Return the runs of each benchmark, the first one first; those with other options are apart."""
    history: dict[str, list[dict[str, Any]]] = {}
    for file in sorted(folder.glob("*.jsonl")):
        for run in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
            history.setdefault(" ".join([file.stem, *run.get("options", ())]), []).append(run)
    return history


def table(history: dict[str, list[dict[str, Any]]]) -> str:
    """Return a row for each ratio: its newest value and its range; and below, where the newest ones ran."""
    lines = ["| benchmark | ratio | newest | least | largest | runs |", "|---|---|---:|---:|---:|---:|"]
    for benchmark, all_runs in history.items():
        for name, value in all_runs[-1]["ratios"].items():
            values = [run["ratios"][name] for run in all_runs if name in run["ratios"]]
            shown = [f"{number:.3g}" for number in (value, min(values), max(values))]
            lines.append(f"| `{benchmark}` | {name} | {' | '.join(shown)} | {len(values)} |")
    newest = [f"- `{benchmark}`: {_where(all_runs[-1])}" for benchmark, all_runs in history.items()]
    return "\n".join([*lines, "", "The newest runs:", "", *newest])


def _where(run: dict[str, Any]) -> str:
    machine = run["machine"]
    commit = f"commit {run['commit']}{' with changes in `src`' if run['changed'] else ''}"
    busy = f"{machine['cores']} cores ({machine['processor']}), load {machine['load']}"
    return f"{run['time']} UTC, {commit}; {busy}; Python {machine['python']}"


def draw(history: dict[str, list[dict[str, Any]]]) -> None:
    """Draw each ratio as a point a run, on one logarithmic axis."""
    rows = [
        {
            "ratio": name.replace(": numbers a second / ", " / ").replace(", scale", ""),
            "value": value,
            "benchmark": benchmark,
            "run": number,
        }
        for benchmark, all_runs in history.items()
        for number, run in enumerate(all_runs, 1)
        for name, value in run["ratios"].items()
    ]
    x = numeric("value", "ratio, one point a run", scale=LOG)
    y = nominal("ratio", sort=None, title=None, axis={"labelLimit": 360})
    rule = {"mark": {"type": "rule", "strokeDash": [4, 3]}, "encoding": {"x": {"datum": 1}}}
    points = layer(
        {"type": "point", "filled": True, "size": 60, "opacity": 0.6}, x=x, y=y, color=nominal("benchmark", title=None)
    )
    chart("Ratios of one run each", width=420, padding=MARGIN, layer=[points, rule], **data(rows)).save(CHART)


def page(text: str, history: dict[str, list[dict[str, Any]]]) -> str:
    """Return the page with the table of a history in its place."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(history)}\n{END}{after}"


def main() -> None:
    """Check or write the page."""
    text, history = PAGE.read_text(encoding="utf-8"), runs()
    wanted = page(text, history)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(wanted, encoding="utf-8")
        draw(history)
    elif text != wanted:
        sys.exit("docs/benchmarks.md does not show the history: run scripts/benchmark_page.py --write")


if __name__ == "__main__":
    main()
