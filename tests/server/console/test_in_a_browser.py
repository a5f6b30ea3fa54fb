"""An analyst's first question in Chromium: the price while one types, one key to the button, and the answer."""

import json
from collections.abc import Iterator
from contextlib import suppress

import pytest

from lapwing.catalog.codebook_texts import with_unit_title
from tests.support.browser.chromium import Page, find_chromium, shared
from tests.support.server.browsing import PASSWORD
from tests.support.server.world import World

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (apt install chromium)")
SQL = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"


@pytest.fixture
def page() -> Iterator[Page]:
    with shared() as browser:
        yield browser.page()


def typed(page: Page, into: str, text: str) -> None:
    """Type into a field, as a hand does: once more where the editor had not heard of the selection yet."""
    field = "document.querySelector('.cm-content')" if into == "sql" else f"document.getElementById({json.dumps(into)})"
    there = f"document.getElementById({json.dumps(into)}).value === {json.dumps(text)}"
    for seconds in (2, 5, 20):
        page.run(f"{field}.focus(); document.execCommand('selectAll')")
        page.ask("Input.insertText", {"text": text})
        with suppress(AssertionError):
            return page.wait(there, seconds)
    raise AssertionError(f"not typed into {into}: {text}")


def sign_in(page: Page, world: World, name: str) -> None:
    page.go(f"{world.address}/console")
    typed(page, "name", name)
    typed(page, "password", PASSWORD)
    page.press("Enter", 13, "\r")
    page.wait("location.pathname == '/console' && document.readyState == 'complete'")


def complaints(page: Page) -> list[str]:
    """Return what the browser was not allowed to do, and scripts that failed."""
    logged = [event["entry"]["text"] for event in page.events("Log.entryAdded")]
    return logged + [str(event["exceptionDetails"]) for event in page.events("Runtime.exceptionThrown")]


def test_a_first_question_in_a_browser(place: World, page: Page) -> None:
    sign_in(page, place, "alice")
    page.go(f"{place.address}/console/data/open/ask")
    page.wait("document.querySelector('#preview [data-verdict=fits]')")  # of the example, without a click

    typed(page, "sql", SQL.replace("plan", "plam"))
    page.wait("document.querySelector('#preview mark')?.textContent == 'plam'")
    page.wait("document.querySelector('.cm-lintRange-error')?.textContent == 'plam'")
    typed(page, "sql", "SELECT COUNT(*) AS n FROM visits WHERE co")
    page.wait("document.querySelector('.cm-tooltip-autocomplete')?.textContent.includes('cost')")
    page.press("Escape", 27)
    typed(page, "sql", SQL)
    typed(page, "epsilon", "0.5")
    page.wait("document.querySelector('#preview h2')?.textContent.includes('ε = 0.5')")
    assert page.run("return document.getElementById('error').value") == "20"
    typed(page, "error", "10")
    page.wait("document.querySelector('#preview td.number')?.textContent.startsWith('±10,')")
    assert page.run("return document.getElementById('by-error').checked")
    assert float(page.run("return document.getElementById('epsilon').value")) > 0.5
    assert place.charges() == 0

    typed(page, "sql", SQL)
    modifiers = {"key": "Enter", "windowsVirtualKeyCode": 13, "modifiers": 2}
    page.ask("Input.dispatchKeyEvent", {"type": "keyDown", **modifiers})
    page.ask("Input.dispatchKeyEvent", {"type": "keyUp", **modifiers})
    page.wait("document.activeElement.closest('[data-buy]')")
    page.press("Enter", 13, "\r")
    page.wait("location.pathname.startsWith('/console/answers/') && document.readyState == 'complete'")
    assert place.charges() == 1
    assert page.run("return document.querySelectorAll('.in-wide .bar-1').length") == 2
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")
    assert complaints(page) == []


def test_a_preview_never_outlives_what_was_typed(place: World, page: Page) -> None:
    """A field that is refused, by the preview or on the way to another page, takes the earlier cost away."""
    shown = "document.querySelector('#preview [data-verdict=fits]')"
    sign_in(page, place, "alice")
    page.go(f"{place.address}/console/data/open/ask")
    page.wait(shown)
    typed(page, "epsilon", "much")
    page.wait("document.querySelector('#preview').ariaBusy")
    page.wait("document.getElementById('epsilon').ariaInvalid")
    assert not page.run(f"return Boolean({shown})")
    typed(page, "epsilon", "0.5")
    page.wait(f"{shown} && !document.querySelector('#preview').ariaBusy")
    page.run("document.getElementById('ask').dataset.preview = '/console/nowhere'")
    typed(page, "epsilon", "0.6")
    page.wait("document.querySelector('#preview').textContent.includes('could not show the cost')")
    page.go(f"{place.address}/console/data/open/batch?sql=SELECT%20COUNT(*)%20AS%20n%20FROM%20visits&epsilon=1")
    assert page.run("return Boolean(document.querySelector('[data-verdict]'))")
    typed(page, "epsilon", "much")
    page.press("Enter", 13, "\r")
    page.wait("document.querySelector('#epsilon[aria-invalid]')")
    assert not page.run("return Boolean(document.querySelector('[data-verdict]'))")


def test_a_budget_is_explained_while_it_is_typed(place: World, page: Page) -> None:
    sign_in(page, place, "carol")
    page.go(f"{place.address}/console/data/open/cap")
    typed(page, "epsilon", "150")
    page.wait("document.querySelector('[data-guess]').textContent.includes('right nearly always')")
    assert page.run("return document.querySelector('[data-guess]').textContent").endswith("is revealed.")
    typed(page, "epsilon", "1")
    page.wait("document.querySelector('[data-guess]').textContent === ''")
    assert complaints(page) == []


@pytest.mark.long
def test_the_list_of_names_goes_with_a_whole_word_and_with_the_focus(place: World, page: Page) -> None:
    """Else it would lie over the button, and take the next Enter."""
    shown = "document.querySelector('.cm-tooltip-autocomplete')"
    sign_in(page, place, "alice")
    page.go(f"{place.address}/console/data/open/ask")
    typed(page, "sql", "SELECT plan, COUNT(*) AS n FROM visits GROUP BY pla")
    page.wait(f"{shown}?.textContent.includes('plan')")
    page.ask("Input.insertText", {"text": "n"})
    page.wait(f"{shown} === null")
    assert page.run("return document.getElementById('sql').value").endswith("GROUP BY plan")
    typed(page, "sql", "SELECT plan, COUNT(*) AS n FROM visits GROUP BY pla")
    page.wait(f"{shown}?.textContent.includes('plan')")
    page.run("document.getElementById('epsilon').focus()")
    page.wait(f"{shown} === null")
    assert complaints(page) == []


@pytest.mark.long
def test_a_page_that_is_framed_elsewhere_shows_nothing(place: World, page: Page) -> None:
    """Of another site, which has the cookie sent along in no case; here the frame itself is refused."""
    sign_in(page, place, "alice")
    page.run(
        f"const frame = document.createElement('iframe'); frame.src = '{place.address}/console/account';"
        "document.body.append(frame); await new Promise((done) => setTimeout(done, 300));"
    )
    told = " ".join(complaints(page))
    assert "frame" in told.lower()


def test_a_long_word_for_the_protected_fits_on_a_phone(place: World, page: Page) -> None:
    catalog = place.session().catalog
    word = "household that answered all questions of the survey"
    object.__setattr__(catalog, "dictionary", with_unit_title(catalog, word).dictionary)
    sign_in(page, place, "alice")
    page.size(360, 900)
    page.go(f"{place.address}/console/data/open/ask")
    page.wait("document.querySelector('#preview [data-verdict=fits]')")
    assert word in page.run("return document.getElementById('preview').innerText")
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")
    page.run("document.querySelector('#preview dl.facts').style.gridTemplateColumns = 'max-content 1fr'")  # the twin
    assert page.run("return document.documentElement.scrollWidth > innerWidth")
