"""Deadlines in a browser: a real service that pads, and a bar towards the moment at which an answer leaves."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.server.people import People
from lapwing.server.store_places import open_store
from tests.support.browser.chromium import find_chromium, running
from tests.support.browser.person import Person
from tests.support.server.browsing import PASSWORD
from tests.support.server.crew import CATALOG, crew, prepared

pytestmark = [
    pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (apt install chromium)"),
    pytest.mark.long,
]
SAID = """
    const shown = document.querySelector("#preview").cloneNode(true);
    for (const element of shown.querySelectorAll("details, input")) element.remove();
    return shown.textContent;
"""
"""What the page says before the query runs, but for the simulated picture, which has noise of its own."""
WATCHED = """
    const bar = document.querySelector("[data-buy] progress");
    setInterval(() => sessionStorage.setItem("bar", bar.value), 10);
"""


@contextmanager
def padded(folder: Path, rows: int | None) -> Iterator[str]:
    """Run a service that pads, with all rows, or with the first so many; yield its address."""
    folder.mkdir()
    prepared(folder, epsilon=10**6, least=Fraction(0))
    if rows is not None:
        table = pq.read_table(folder / "visits.parquet")
        pq.write_table(table.slice(0, rows), folder / "visits.parquet")
    catalog = folder / CATALOG
    catalog.write_text(re.sub("(max_rows_per_unit = .*)", r"\1\nrows_at_most = 20000", catalog.read_text(), count=1))
    with lw.connect(catalog) as session:
        session.accept_data()
    store = open_store(str(folder / "lapwing.people.db"))
    People(store).change("bob", password=PASSWORD, by="carol")
    store.close()
    with crew(folder, number=1, padding=True) as service:
        yield f"http://127.0.0.1:{service.port}"


def test_the_bar_goes_to_a_deadline_that_says_nothing_of_the_data(tmp_path: Path) -> None:
    shown = []
    with running(find_chromium() or "") as browser:
        for name, rows in (("many", None), ("few", 1)):
            with padded(tmp_path / name, rows) as address:
                bob = Person(browser.page(), address)
                bob.signs_in("bob", PASSWORD)
                bob.presses("Query")
                bob.writes("SELECT COUNT(*) AS n FROM visits WHERE cost < 77")
                bob.reads("s after the query starts")
                told = bob.page.run(SAID)
                deadline = float(bob.page.run("return document.querySelector('[data-buy]').dataset.deadline"))
                assert deadline == bob.page.run("return document.querySelector('[data-buy] progress').max")
                bob.page.run(WATCHED)
                begun = time.monotonic()
                bob.presses("Run query · ε = 0.1")
                bob.reads("Charged ε = 0.1")
                assert time.monotonic() - begun >= deadline
                assert 0.5 * deadline <= float(bob.page.run("return sessionStorage.bar")) <= deadline
                shown.append((deadline, re.sub(r"\s+", " ", told)))
                assert bob.elsewhere == []
    assert shown[0] == shown[1]
