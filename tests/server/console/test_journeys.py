"""Whole ways through the console in Chromium, as people go them: by what is on the pages, and nothing from elsewhere.

What each page says in each case is tested one by one, without a browser, in the files beside this one.
"""

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lapwing.engines import DuckDB
from lapwing.errors import charge_in_words
from lapwing.server.one_time_codes import STEP, code_at
from tests.server.console.conftest import with_passwords
from tests.server.console.test_in_a_browser import complaints
from tests.support.browser.accessibility import findings
from tests.support.browser.chromium import Browser, find_chromium, running
from tests.support.browser.person import Person
from tests.support.server.browsing import PASSWORD
from tests.support.server.queueing import until
from tests.support.server.world import QUICK, World, on_both, service_in, serving

pytestmark = [
    pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (apt install chromium)"),
    pytest.mark.long,
]
SQL = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"
CODE = re.compile(r"(?:[a-z2-7]{4}-){3}[a-z2-7]{4}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running(find_chromium() or "") as running_browser:
        yield running_browser


def by_everybody(person: Person) -> None:
    """See that everybody can use the page that is shown, by day and by night."""
    for dark in (False, True):
        person.page.size(360, 900, dark=dark)
        assert findings(person.page)["violations"] == []
        assert person.page.run("return document.documentElement.scrollWidth <= innerWidth")
    person.page.size(1280, 900)


def at(browser: Browser, world: World, name: str) -> Person:
    person = Person(browser.page(), world.address)
    person.signs_in(name, PASSWORD)
    person.reads("Data sets")
    return person


def signs_out(person: Person) -> None:
    """Sign out, and wait for it: the next page would end a request that is under way, and keep the session."""
    person.presses("Sign out")
    person.reads("You are signed out.")


def asks(person: Person, sql: str, epsilon: str) -> None:
    person.writes(sql)
    person.types("Cost (epsilon)", epsilon)


@on_both
def test_from_the_first_question_to_the_last(browser: Browser, place: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A share, an answer, nothing left for another; three faults that stop the data set; it goes on; it is over."""
    carol, alice = at(browser, place, "carol"), Person(browser.page(), place.address)
    carol.opens("/console/data/open/access")
    carol.types("Name", "alice")
    carol.types("Limit, like 20 % of the budget (optional)", "1 %")
    carol.presses("Save grant")
    carol.reads("Access granted.")

    alice.signs_in("alice", PASSWORD)
    alice.presses("Query")
    asks(alice, SQL, "1")
    alice.presses("Run query · ε = 1")
    alice.reads("Charged ε = 1")
    assert place.charges() == 1
    alice.presses("Edit query")
    asks(alice, SQL.replace("COUNT(*)", "SUM(cost)"), "50")
    alice.reads("too expensive")
    alice.sees_nothing_of("Run query")
    alice.presses("History")
    alice.reads(SQL)
    assert place.charges() == 1

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the disk of row 7 is full")

    with monkeypatch.context() as patch:
        patch.setattr(DuckDB, "run", broken)
        for age in (1, 2, 3):
            alice.opens("/console/data/open/ask")
            asks(alice, f"SELECT COUNT(*) AS n FROM visits WHERE age < {age}", "0.2")
            alice.presses("Run query · ε = 0.2")
            alice.reads(charge_in_words(None))
            alice.sees_nothing_of("row 7")
    alice.opens("/console")
    alice.reads("stopped after failures")
    carol.opens("/console/data/open/access")
    carol.reads("Three failures stop the data set.")
    carol.presses("Mark as reviewed")
    carol.reads("Failures marked as reviewed. Nothing was refunded.")
    alice.opens("/console/data/open/ask")
    asks(alice, "SELECT COUNT(*) AS n FROM visits", "0.2")
    alice.presses("Run query · ε = 0.2")
    alice.reads("Charged ε = 0.2")
    assert place.charges() == 5

    carol.presses("Withdraw")
    carol.reads("Withdrew the access of “alice”.")
    alice.opens("/console/data/open/ask")
    alice.reads("There is no such data set, or you may not see it.")
    carol.presses("People")
    carol.presses("alice")
    carol.presses("Disable account")
    carol.reads("Enable account")  # not "disabled", which the page says before the button is pressed, too
    alice.opens("/console/account")
    alice.reads("Use your name and password")
    assert (carol.elsewhere, alice.elsewhere) == ([], [])
    assert [text for text in complaints(alice.page) if "status of" not in text] == []


@on_both
def test_a_second_factor_and_its_recovery_codes(
    browser: Browser, place: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [time.time()]
    monkeypatch.setattr(place.service.people.second_factors, "clock", lambda: now[0])

    def shown() -> str:
        """Return what the app shows, half a minute later."""
        now[0] += STEP
        return code_at(secret, int(now[0]) // STEP)

    alice = at(browser, place, "alice")
    alice.presses("alice analyst")
    alice.presses("Turn on second factor")
    alice.types("Your password", PASSWORD)
    alice.presses("Set up second factor")
    alice.reads("Scan this code with your authenticator app")
    secret = alice.page.run("return document.querySelector('.secret').innerText").replace(" ", "").strip()
    assert alice.page.run("return document.querySelector('.qr').getBoundingClientRect().width") >= 200
    by_everybody(alice)
    alice.types("Six-digit code", "000000")
    alice.presses("Turn on second factor")
    alice.reads("The code is wrong")
    alice.types("Six-digit code", shown())
    alice.presses("Turn on second factor")
    alice.reads("Recovery codes (shown only once)")
    codes = CODE.findall(alice.page.run("return document.querySelector('.once pre').innerText"))
    assert len(codes) == 10
    by_everybody(alice)
    alice.presses("I have saved the codes")
    signs_out(alice)

    for code in (shown(), codes[0]):
        alice.signs_in("alice", PASSWORD)
        alice.reads("Enter the current code")
        alice.opens("/console")  # the password alone lets nobody in
        alice.reads("Use your name and password")
        alice.signs_in("alice", PASSWORD)
        alice.types("Code", "12345")
        alice.presses("Sign in")
        alice.reads("The code is wrong")
        by_everybody(alice)
        alice.types("Code", code)
        alice.presses("Sign in")
        alice.reads("Data sets")
        signs_out(alice)
    alice.signs_in("alice", PASSWORD)
    alice.types("Code", codes[0])  # once more
    alice.presses("Sign in")
    alice.reads("The code is wrong")
    carol = at(browser, place, "carol")
    carol.opens("/console/people/alice")
    carol.presses("Turn off second factor")
    carol.reads("Second factor turned off.")
    alice.signs_in("alice", PASSWORD)
    alice.reads("Data sets")
    assert alice.elsewhere == []


def test_without_scripts_one_asks_and_reads(browser: Browser, place: World) -> None:
    """In a browser that runs none: the price by a button, the answer by another, each page the whole of it."""
    alice = at(browser, place, "alice")
    alice.page.ask("Emulation.setScriptExecutionDisabled", {"value": True})

    def come(path: str) -> None:
        until(lambda: alice.page.run("return location.pathname + document.readyState").startswith(path))
        until(lambda: alice.page.run("return document.readyState") == "complete")

    alice.page.ask("Page.navigate", {"url": f"{place.address}/console/data/open/ask"})
    come("/console/data/open/ask")
    assert alice.page.run("return document.querySelector('.cm-editor')") is None
    alice.page.run("document.getElementById('sql').select()")
    alice.page.ask("Input.insertText", {"text": SQL})
    alice.page.run("document.getElementById('epsilon').select()")
    alice.page.ask("Input.insertText", {"text": "0.5"})
    alice.presses("Show cost")
    until(lambda: "Cost: ε = 0.5" in alice.page.run("return document.body?.innerText ?? ''"))
    assert place.charges() == 0
    alice.presses("Run query · ε = 0.5")
    come("/console/answers/")
    assert "Charged ε = 0.5" in alice.page.run("return document.body.innerText")
    assert alice.page.run("return document.querySelectorAll('.in-wide .bar-1').length") == 2
    assert place.charges() == 1


def test_a_curator_registers_checks_and_asks_first(browser: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "trips.csv").write_text("person,plan,cost\n1,a,700\n1,b,9\n97753136,a,-4\n")
    with serving(service_in(tmp_path / "service", replace(QUICK, folders=(folder,)))) as bare:
        place = with_passwords(bare)
        carol = at(browser, place, "carol")
        carol.presses("Register a data set")
        carol.presses("trips.csv")
        carol.chooses("Column that identifies a unit", "person")
        carol.types("Maximum rows per unit", "1")
        carol.types("Minimum of cost", "0")
        carol.types("Maximum of cost", "500")
        carol.types("Values of plan", "a, b")
        carol.types("Name of the data set", "trips")
        carol.presses("Next: review and check")
        carol.presses("Check the data")
        carol.reads("private: only for you")
        carol.reads("97,753,136")
        by_everybody(carol)
        carol.presses("Register data set")
        carol.reads("Registered. Only curators can query it")
        carol.sees_nothing_of("97,753,136")
        carol.presses("Query")
        asks(carol, "SELECT plan, COUNT(*) AS n FROM trips GROUP BY plan", "0.5")
        carol.presses("Run query · ε = 0.5")
        carol.reads("Charged ε = 0.5")
        assert carol.elsewhere == []


def test_by_the_keyboard_alone(browser: Browser, place: World) -> None:
    """From the sign-in to a file of the answer, without a mouse; what has the focus shows it."""
    alice = Person(browser.page(), place.address)
    alice.page.ask("Emulation.setFocusEmulationEnabled", {"enabled": True})  # as the tab that is in front
    alice.opens("/console/sign-in")
    alice.page.ask("Input.insertText", {"text": "alice"})  # the name has the focus already
    alice.tabs_to("Password", 1)
    alice.page.ask("Input.insertText", {"text": PASSWORD})
    alice.strikes("Enter", 13)
    alice.reads("Data sets")
    alice.strikes("?", 191)
    alice.reads("show these shortcuts")
    alice.strikes("Enter", 13)
    alice.strikes("g")
    alice.strikes("a")
    alice.reads("SQL query")
    alice.page.wait("document.readyState == 'complete' && document.querySelector('#preview [data-verdict=fits]')")
    alice.tabs_to("Skip to the content", 1)
    alice.strikes("Enter", 13)
    alice.page.wait("document.activeElement.id == 'main'")
    alice.tabs_to("SQL query", 5)
    alice.strikes("a", held=2)
    alice.page.ask("Input.insertText", {"text": "SELECT plam, COUNT(*) AS n FROM visits GROUP BY plam"})
    alice.strikes("Escape", 27)
    alice.strikes("Enter", 13, held=2)
    alice.page.wait("document.activeElement?.textContent == 'Apply fix'")
    alice.strikes("Enter", 13)
    alice.page.wait("document.activeElement?.closest('.cm-editor')?.textContent.includes('GROUP BY plan')")
    alice.strikes("Enter", 13, held=2)
    alice.page.wait("document.activeElement?.textContent.startsWith('Run')")
    alice.strikes("Enter", 13)
    alice.reads("Charged ε = 0.1")
    assert place.charges() == 1
    alice.tabs_to("CSV", 40)
    alice.strikes("g")
    alice.strikes("b")
    alice.reads("A forecast of when the budget ends appears here after 3 days with charges.")
