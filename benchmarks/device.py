"""Memory, transfer and time of a browser that answers 100 local tasks, one of them with 100,000 values.

    python benchmarks/device.py

Chromium loads the module and the tasks from this machine, and answers each task once by `openDevice().answer`. The
memory is V8's used heap, of the empty page and at the end, before and after a collection of garbage. Bytes are counted
as they are, and as gzip makes them.
"""

import gzip
import json
import os
import sys
import tempfile
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests' browser, which needs no package

from tests.support.browser.chromium import Page, find_chromium, running
from tests.support.browser.places import MODULE, served

from lapwing.local import KaryResponse, LocalHashing, new_task
from lapwing.local.client import Task

TASKS = 100
VALUES = 100_000
OPENS, CLOSES = date(2026, 1, 1), date(2099, 12, 31)
ANSWER = """
    const local = await import("./lapwing-local.mjs");
    const device = await local.openDevice(), times = [];
    for (let number = 0; number < TASKS; number++) {
      const task = local.readTask(await (await fetch(`task${number}.json`)).text());
      const start = performance.now();
      await device.answer(task, task.document.values[1], "http://127.0.0.1:1/");
      times.push(performance.now() - start);
    }
    const waiting = await device.waiting(), document = await device.document();
    const spent = times.slice().sort((a, b) => a - b);
    const many = local.readTask(document.reported[0].task), today = new Date().toISOString().slice(0, 10), turns = [];
    for (let turn = 0; turn < 11; turn++) {
      const start = performance.now();
      local.answerWith(document, many, many.document.values[2], today);
      turns.push(performance.now() - start);
    }
    return {
      median: spent[TASKS >> 1], first: times[0], again: turns.sort((a, b) => a - b)[5],
      reports: waiting.reduce((all, { line }) => all + line.length, 0), document: JSON.stringify(document).length,
    };
"""


def made() -> list[Task]:
    many = [f"value {number}" for number in range(VALUES)]
    return [
        new_task("Which of many?", many, LocalHashing.for_epsilon(1, VALUES), opens=OPENS, closes=CLOSES),
        *(
            new_task(f"Question {number}?", list("abcde"), KaryResponse.for_epsilon(1, 5), opens=OPENS, closes=CLOSES)
            for number in range(1, TASKS)
        ),
    ]


def heap(page: Page) -> float:
    """Return the megabytes that V8 uses after a collection of garbage."""
    page.ask("HeapProfiler.collectGarbage")
    return float(page.ask("Runtime.getHeapUsage")["usedSize"]) / 1e6


def sizes(name: str, texts: list[bytes]) -> None:
    packed = sum(len(gzip.compress(text)) for text in texts)
    print(f"{name:28} {sum(map(len, texts)) / 1e3:8,.1f} kB  {packed / 1e3:8,.1f} kB by gzip")


def main() -> None:
    print(f"{TASKS} tasks, one of {VALUES:,} values; load {os.getloadavg()[0]:.0f} on {os.cpu_count()} processors")
    with tempfile.TemporaryDirectory() as name, running(find_chromium() or "") as browser:
        folder = Path(name)
        (folder / MODULE.name).write_bytes(MODULE.read_bytes())
        (folder / "page.html").write_text("<!doctype html><title>Device</title>")
        texts = [json.dumps(task.document).encode() for task in made()]
        for number, text in enumerate(texts):
            (folder / f"task{number}.json").write_bytes(text)
        with served(folder) as address:
            page = browser.page()
            page.go(f"{address}/page.html")
            before = heap(page)
            found = page.run(ANSWER.replace("TASKS", str(TASKS)))
            peak = float(page.ask("Runtime.getHeapUsage")["usedSize"]) / 1e6
            after = heap(page)
    sizes("module", [MODULE.read_bytes()])
    sizes("task of many values", texts[:1])
    sizes("other tasks", texts[1:])
    print(f"{'reports':28} {found['reports'] / 1e3:8,.1f} kB")
    print(f"{'document of the device':28} {found['document'] / 1e3:8,.1f} kB")
    print(f"heap: {before:.1f} MB before, {peak:.1f} MB at the end, {after:.1f} MB after a collection")
    print(
        f"answer: {found['first']:.1f} ms with many values, {found['median']:.1f} ms median; "
        f"answerWith alone, many values, median of 11: {found['again']:.1f} ms"
    )


if __name__ == "__main__":
    main()
