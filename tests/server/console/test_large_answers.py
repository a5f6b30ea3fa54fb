"""An answer of a hundred thousand rows: pages that a browser scrolls at once, each row on one of them."""

import re
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.server.console.answer import ROWS
from lapwing.server.service import Service
from tests.server.console.test_in_a_browser import sign_in
from tests.support.browser.chromium import find_chromium, running
from tests.support.effort import is_long
from tests.support.server.browsing import PASSWORD, visitor
from tests.support.server.world import PEOPLE, QUICK, World, serving

pytestmark = pytest.mark.long
SIDE: Final = 320
MOST_NODES: Final = 8_000
SCROLLED: Final = """
    const times = []; let last = performance.now(), at = 0;
    await new Promise((done) => {
        const step = (now) => {
            times.push(now - last); last = now; at += 300; scrollTo(0, at);
            at < document.documentElement.scrollHeight ? requestAnimationFrame(step) : done();
        };
        requestAnimationFrame(step);
    });
    times.sort((a, b) => a - b);
    return { nodes: document.querySelectorAll("*").length, rows: document.querySelectorAll("tbody tr").length,
             middle: times[times.length >> 1], at: scrollY };
"""


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, dict[str, Any]]]:
    """A service with an answer of 102,400 rows."""
    folder, rows = tmp_path_factory.mktemp("grid"), list(range(1_000))
    table = pa.table({"person": rows, "a": [n % SIDE for n in rows], "b": [7 * n % SIDE for n in rows]})
    pq.write_table(table, folder / "grid.parquet")
    values = {key: list(range(SIDE)) for key in "ab"}
    session = lw.protect(
        folder / "grid.parquet", privacy_unit="person", epsilon=10, delta=1e-6, max_rows_per_unit=1, domains=values
    )
    service = Service(folder / "people.db", [session], QUICK)
    for name, role in PEOPLE.items():
        service.people.add(name, role, PASSWORD, by="carol")
    with serving(service) as world:
        body = {"sql": "SELECT a, b, COUNT(*) AS n FROM grid GROUP BY a, b", "epsilon": 1}
        yield world, world.query("carol", body, "grid").document


def test_every_row_is_on_one_page(grid: tuple[World, dict[str, Any]]) -> None:
    world, answer = grid
    carol, path = visitor(world, "carol"), f"/console/answers/{answer['id']}"
    pages = -(-len(answer["rows"]) // ROWS)
    assert (len(answer["rows"]), pages) == (SIDE**2, 512)
    for page in (1, 2, 300, pages):
        shown = carol.go(f"{path}?page={page}").content.decode()
        body = shown.partition("<tbody>")[2]
        cells = [re.findall(r"<bdi>([^<]*)</bdi>", row)[:2] for row in body.split("<tr>")[1:]]
        expected = answer["rows"][(page - 1) * ROWS : page * ROWS]
        assert [cell for cell in cells if cell] == [[str(row["a"]), str(row["b"])] for row in expected]


@pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (apt install chromium)")
def test_it_scrolls(grid: tuple[World, dict[str, Any]]) -> None:
    world, answer = grid
    with running(find_chromium() or "") as browser:
        page = browser.page()
        sign_in(page, world, "carol")
        page.size(1440, 900)
        page.go(f"{world.address}/console/answers/{answer['id']}")
        told = page.run(SCROLLED)
    assert told["rows"] == ROWS
    assert told["nodes"] <= MOST_NODES
    assert told["at"] > 5_000
    assert told["middle"] < 100 or not is_long()  # milliseconds a frame; 17 on an idle machine
