"""Drafts in Chromium: what was typed comes back, by Back, on a new page and after a reload, and goes at sign-out."""

from collections.abc import Iterator
from typing import Final

import pytest

from tests.server.console.test_in_a_browser import complaints
from tests.server.console.test_journeys import at, by_everybody
from tests.support.browser.chromium import Browser, find_chromium, running
from tests.support.browser.person import Person
from tests.support.server.browsing import PASSWORD
from tests.support.server.world import World

pytestmark = [
    pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (apt install chromium)"),
    pytest.mark.long,
]
ASK: Final = "/console/data/open/ask"
TYPED: Final = "SELECT COUNT(*) AS typed FROM visits"
UNRUN: Final = "SELECT COUNT(*) AS unrun FROM visits WHERE cost > 1"
OTHER: Final = "SELECT SUM(cost) AS other FROM visits"
STORED: Final = "Object.keys(localStorage).filter((key) => key.startsWith('lapwing-draft ')).length"

RAN: Final = (
    "Object.keys(localStorage).filter((key) => key.startsWith('lapwing-draft '))"
    ".flatMap((key) => JSON.parse(localStorage.getItem(key))).map(({ ran }) => ran)"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running(find_chromium() or "") as running_browser:
        yield running_browser


def shows(person: Person, sql: str) -> None:
    person.page.wait(f"document.querySelector('.cm-content')?.textContent === {sql!r}")


def goes_back(person: Person) -> None:
    person.page.run("window.left = true; setTimeout(() => history.back())")
    person.page.wait("!window.left && document.readyState == 'complete'")


def test_what_was_typed_comes_back(browser: Browser, place: World) -> None:
    alice = at(browser, place, "alice")
    alice.opens(ASK)
    alice.writes(TYPED)
    alice.types("Cost (epsilon)", "0.3")
    alice.reads("Cost: ε = 0.3")
    alice.opens("/console/data/open")
    goes_back(alice)
    shows(alice, TYPED)
    alice.reads("Cost: ε = 0.3")
    alice.presses("Run query · ε = 0.3")
    alice.reads("Charged ε = 0.3")
    goes_back(alice)
    shows(alice, TYPED)
    alice.reads("was bought before")
    alice.sees_nothing_of("draft of")
    assert alice.page.run(f"return {RAN}") == [True]
    alice.opens("/console/data/open")
    alice.opens(ASK)  # a query that ran is in the history, and is no draft any more
    alice.page.wait("document.querySelector('.cm-content')?.textContent.includes('GROUP BY')")
    assert alice.page.run("return document.getElementById('drafts') === null")
    alice.writes(UNRUN)
    alice.reads("Cost: ε = ")
    alice.opens(f"{ASK}?sql=SELECT%201")  # of a link, which does not take the place of a draft
    shows(alice, "SELECT 1")
    alice.reads("Your drafts in this browser")
    alice.writes(OTHER)
    alice.opens(ASK)
    shows(alice, OTHER)
    alice.reads("This is your draft of")
    by_everybody(alice)
    alice.presses("Earlier drafts")
    alice.presses(UNRUN)
    shows(alice, UNRUN)
    alice.opens(ASK)
    alice.presses("Discard draft")
    alice.reads("Your drafts in this browser")
    alice.page.wait("document.querySelector('.cm-content')?.textContent.includes('GROUP BY')")
    assert place.charges() == 1
    assert complaints(alice.page) == []


def test_a_page_that_answered_a_form_keeps_a_draft(browser: Browser, place: World) -> None:
    alice = at(browser, place, "alice")
    alice.opens(ASK)
    alice.writes("SELECT COUNT(plam) AS n FROM visits")
    alice.presses("Apply fix")
    shows(alice, "SELECT COUNT(plan) AS n FROM visits")
    alice.opens("/console/data/open")
    alice.presses("Query")
    shows(alice, "SELECT COUNT(plan) AS n FROM visits")
    alice.reads("This is your draft of")


def test_drafts_go_with_their_person(browser: Browser, place: World) -> None:
    alice = at(browser, place, "alice")
    alice.opens(ASK)
    alice.writes(TYPED)
    alice.reads("Cost: ε = 0.1")
    assert alice.page.run(f"return {STORED}") == 1
    alice.page.ask("Network.clearBrowserCookies")  # a session that has ended by itself
    alice.opens(ASK)
    alice.types("Name", "alice")
    alice.types("Password", PASSWORD)
    alice.presses("Sign in")
    shows(alice, TYPED)
    alice.presses("Sign out")
    alice.reads("You are signed out.")
    assert alice.page.run(f"return {STORED}") == 0
    alice.signs_in("alice", PASSWORD)
    alice.reads("Data sets")
    alice.opens(ASK)
    alice.writes(TYPED)
    alice.page.ask("Network.clearBrowserCookies")
    alice.signs_in("carol", PASSWORD)  # somebody else at the same browser
    alice.reads("Data sets")
    assert alice.page.run(f"return {STORED}") == 0


def test_a_draft_that_cannot_run_is_saved_and_replaced(browser: Browser, place: World) -> None:
    alice = at(browser, place, "alice")
    alice.opens(ASK)
    alice.writes("SELECT COUNT(* FROM visits")
    alice.presses("Save as a draft")
    alice.types("Name", "not yet")
    alice.presses("Save draft")
    alice.reads("Saved “not yet”.")
    alice.presses("not yet")
    shows(alice, "SELECT COUNT(* FROM visits")
    alice.writes(TYPED)
    alice.presses("Save query")
    alice.page.wait("document.querySelector('details[open] form #title')")
    alice.page.run("document.querySelector('details[open] form').requestSubmit()")
    alice.reads("Replaced your query “not yet”.")
    alice.reads(TYPED)
    alice.presses("Undo")
    alice.reads("“not yet” is as it was.")
    alice.reads("SELECT COUNT(* FROM visits")
