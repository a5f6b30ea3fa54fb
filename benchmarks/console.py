"""How quick the console is: what a first view loads, what a page costs the service, and when the editor can be used.

    python benchmarks/console.py [REPEATS]

A service with one small table, and a browser (Chromium, as Debian has it) that has never been there.

- *first view*: what comes over the wire until a page is loaded, for the list of data sets and for the page on which one
  asks; with what browsers send (`Accept-Encoding: gzip`). Bound: 200 kB.
- *server time*: processor time of service and client for a page, the median, and how many requests of a program cost
  as much. Bound: 150 ms.
- *interactive*: from the beginning of the navigation to the moment at which one can type into the editor, and the price
  of the example is shown. Bound: 1 s, on an idle machine.
- *large answer*: a page of an answer with 102,400 rows: its processor time, its elements, and the longest frame while
  it is scrolled from end to end.
"""

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import lapwing as lw
from lapwing.server.service import Service, ServiceSettings

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests' browser, which needs no package
from tests.server.console.test_in_a_browser import sign_in
from tests.support.browser.chromium import Page, find_chromium, running
from tests.support.server.browsing import PASSWORD, Visitor, visitor
from tests.support.server.world import PEOPLE, World, serving

REPEATS = 15
SIDE = 320
PAGES = {"data sets": "/console", "tables": "/console/data/grid", "ask": "/console/data/grid/ask",
         "history": "/console/data/grid/history", "budget": "/console/data/grid/budget"}  # fmt: skip


def service(folder: Path) -> Service:
    """Make a service of one table, in which a curator has a password."""
    rows = list(range(1_000))
    table = pa.table({"person": rows, "a": [n % SIDE for n in rows], "b": [7 * n % SIDE for n in rows]})
    pq.write_table(table, folder / "grid.parquet")
    domains = {key: list(range(SIDE)) for key in "ab"}
    session = lw.protect(
        folder / "grid.parquet", privacy_unit="person", epsilon=100, delta=1e-6, max_rows_per_unit=1, domains=domains
    )
    made = Service(folder / "people.db", [session], ServiceSettings(rate=0, strangers=0))
    for name, role in PEOPLE.items():
        made.people.add(name, role, PASSWORD, by="carol")
    return made


def loaded(page: Page, address: str) -> float:
    """Return the kilobytes that a page brings along."""
    before = len(page.events("Network.loadingFinished"))
    page.go(address)
    return float(sum(one["encodedDataLength"] for one in page.events("Network.loadingFinished")[before:])) / 1_000


def processor(work: Any, repeats: int) -> float:
    """Return the median of the processor time of this process, in milliseconds: service and client are both in it."""
    work()
    times = []
    for _ in range(repeats):
        begun = time.process_time()
        work()
        times.append(1_000 * (time.process_time() - begun))
    return statistics.median(times)


FRAMES = """
    const times = []; let last = performance.now(), at = 0;
    await new Promise((done) => {
        const step = (now) => {
            times.push(now - last); last = now; at += 400; scrollTo(0, at);
            at < document.documentElement.scrollHeight ? requestAnimationFrame(step) : done();
        };
        requestAnimationFrame(step);
    });
    times.sort((a, b) => a - b);
    return { nodes: document.querySelectorAll("*").length, middle: times[times.length >> 1], longest: times.at(-1) };
"""
TYPED = """
    const begun = performance.timeOrigin;
    while (!(window.lapwingEditor && document.querySelector("#preview [data-verdict]")))
        await new Promise((done) => setTimeout(done, 5));
    return performance.timeOrigin + performance.now() - begun;
"""


def main(repeats: int) -> None:
    """Measure and print."""
    with (
        tempfile.TemporaryDirectory() as name,
        serving(service(Path(name))) as world,
        running(find_chromium() or "") as chromium,
    ):
        carol, page = visitor(world, "carol"), chromium.page()
        first_view(world, page, chromium.page())
        server_time(world, carol, repeats)
        interactive(world, page, repeats)
        large_answer(world, carol, page, repeats)


def first_view(world: World, *pages: Page) -> None:
    """Print the bytes of a first view; each page is of a browser that keeps nothing yet."""
    for page, (name, path) in zip(pages, (("data sets", "/console"), ("ask", "/console/data/grid/ask")), strict=True):
        sign_in(page, world, "carol")
        page.ask("Network.clearBrowserCache")
        print(f"first view, {name}: {loaded(page, world.address + path):.0f} kB (at most 200)")


def server_time(world: World, carol: Visitor, repeats: int) -> None:
    """Print what pages cost, beside one request of a program."""
    floor = processor(lambda: world.ask("GET", "/v1/datasets/grid/budget", "carol"), repeats)
    for name, path in PAGES.items():
        spent = processor(lambda path=path: carol.go(path), repeats)
        print(f"server time, {name}: {spent:.1f} ms ({spent / floor:.1f} times a request of a program; at most 150 ms)")


def interactive(world: World, page: Page, repeats: int) -> None:
    """Print when the editor can be typed into, and the price of the example is there."""
    times = []
    for _ in range(repeats):
        page.go(f"{world.address}/console")
        page.ask("Page.navigate", {"url": f"{world.address}/console/data/grid/ask"})
        page.wait("location.pathname.endsWith('/ask') && document.readyState != 'loading'")
        times.append(page.run(TYPED))
    print(f"editor interactive, with the price of the example: {statistics.median(times):.0f} ms (at most 1,000)")


def large_answer(world: World, carol: Visitor, page: Page, repeats: int) -> None:
    """Print what a page of a large answer costs, and how it scrolls."""
    body = {"sql": "SELECT a, b, COUNT(*) AS n FROM grid GROUP BY a, b", "epsilon": 1}
    answer = world.ask("POST", "/v1/datasets/grid/query", "carol", body).document
    path = f"/console/answers/{answer['id']}"
    spent = processor(lambda: carol.go(f"{path}?page=2"), max(3, repeats // 5))
    page.size(1440, 900)
    page.go(world.address + path)
    told = page.run(FRAMES)
    print(f"large answer, {len(answer['rows']):,} rows: {spent:.0f} ms a page, {json.dumps(told)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else REPEATS)
