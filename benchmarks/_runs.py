"""Keep the ratios of a benchmark's run: one line of `history/NAME.jsonl` each, when the runner was asked to.

    make bench-history            run those that take seconds, and draw docs/benchmarks.svg anew
    LAPWING_BENCH_HISTORY=1 python benchmarks/serving.py --quick    keep this run

A ratio compares two things that were measured in turn in one run on one machine, so it can be compared with that of
another day. Seconds cannot, and are not kept. Which machine it was, how busy, which commit and which options, stands
beside. Nothing is written unless LAPWING_BENCH_HISTORY is set, so that a look at a benchmark leaves no trace.
"""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

HISTORY: Final = Path(__file__).parent / "history"
ASKED: Final = "LAPWING_BENCH_HISTORY"


def keep(benchmark: str, ratios: Mapping[str, float]) -> None:
    """Append a run to the history of a benchmark, if that is wanted.

    Args: ratios: by what they compare, as "ours / theirs"; above 0.
    """
    if not os.environ.get(ASKED):
        return
    line = {
        "time": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        "commit": _git("rev-parse", "--short=10", "HEAD"),
        "changed": bool(_git("status", "--porcelain", "--untracked-files=no", "--", "src")),
        "options": sys.argv[1:],
        "machine": machine(),
        "ratios": {name: float(f"{ratio:.4g}") for name, ratio in ratios.items()},
    }
    HISTORY.mkdir(exist_ok=True)
    with (HISTORY / f"{benchmark}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def machine() -> dict[str, object]:
    """Say what a run ran on, and how busy that was: the mean number of processes that wanted a processor lately."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())


def _git(*arguments: str) -> str:
    asked = ["git", "-C", str(HISTORY.parent), *arguments]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
