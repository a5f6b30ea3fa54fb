"""A result on paper: a print has the figures that the screen has."""

import pytest

from lapwing.privacy import figures
from tests.server.console.test_in_a_browser import sign_in
from tests.support.browser.chromium import find_chromium, running
from tests.support.server.world import World

pytestmark = [
    pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (apt install chromium)"),
    pytest.mark.long,
]
SQL = "SELECT town, COUNT(*) AS n FROM visits GROUP BY town"


def test_a_print_has_the_figures_of_the_screen(settled: World) -> None:
    document = settled.query("alice", {"sql": SQL, "epsilon": 1.23456, "delta": 1e-5}).document
    ends = document["intervals"]["n"]
    number = " ".join(figures.noisy(document["rows"][0]["n"], ends["low"][0], ends["high"][0]))
    wanted = (number, "Cost: ε = 1.24, δ = 1e-5 (1 in 100,000).")
    with running(find_chromium() or "") as browser:
        page = browser.page()
        sign_in(page, settled, "alice")
        page.go(f"{settled.address}/console/answers/{document['id']}")
        page.ask("Emulation.setEmulatedMedia", {"media": "print"})
        printed = " ".join(page.run("return document.body.innerText").split())
        assert [one for one in wanted if one not in printed] == []
        assert "Run query" not in printed
        page.run("document.querySelector('main').classList.add('no-print')")  # planted: paper without the result
        left = " ".join(page.run("return document.body.innerText").split())
        assert [one for one in wanted if one not in left] == [*wanted]
