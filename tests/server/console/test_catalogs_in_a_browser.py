"""A curator changes a catalog in Chromium: sees what it does while typing, and puts it into force."""

from collections.abc import Iterator

import pytest

from tests.server.console.test_in_a_browser import complaints
from tests.support.browser.chromium import Page, find_chromium, running
from tests.support.browser.person import Person
from tests.support.server.browsing import PASSWORD
from tests.support.server.world import World

pytestmark = [
    pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (apt install chromium)"),
    pytest.mark.long,
]


@pytest.fixture
def page() -> Iterator[Page]:
    with running(find_chromium() or "") as browser:
        yield browser.page()


def test_a_curator_changes_a_catalog_by_what_is_on_the_screen(place: World, page: Page) -> None:
    file = place.catalog_file()
    place.query("alice")
    carol = Person(page, place.address)
    carol.signs_in("carol", PASSWORD)
    carol.reads("Data sets")
    carol.opens("/console/data/open/catalog")
    carol.reads("Then look at what it changes")
    text = file.read_text()

    carol.writes(text.replace("upper = 8,", "upper = ,"))
    carol.reads("This cannot be read")
    page.wait("document.querySelector('.cm-lintRange-error, .cm-lintPoint-error')")
    carol.writes(text.replace('privacy_unit = "person"', 'privacy_unit = "code"'))
    carol.reads("Not under this ledger")
    carol.sees_nothing_of("Put it into force")
    carol.writes(text.replace("upper = 8,", "upper = 4,"))
    carol.reads("tables.visits.columns.cost.upper")
    carol.reads("What questions would get")
    assert file.read_text() == text

    carol.presses("Check the data")
    carol.reads("private: for you alone")
    carol.presses("Put it into force")
    carol.reads("The ledger stays as it was")
    assert "upper = 4," in file.read_text()
    carol.presses("Versions")
    carol.reads("from the start")
    carol.presses("Look at the data")
    carol.reads("there is nothing to accept")
    carol.presses("1")
    carol.presses("Go back to it")
    carol.presses("Put it into force")
    carol.reads("The ledger stays as it was")
    assert "upper = 8," in file.read_text()
    assert complaints(page) == []
    assert carol.elsewhere == []


def test_teams_and_accounts_by_what_is_on_the_screen(place: World, page: Page) -> None:
    carol = Person(page, place.address)
    carol.signs_in("carol", PASSWORD)
    carol.reads("Data sets")
    carol.presses("People")
    carol.presses("Teams")
    carol.types("Name", "nurses")
    carol.presses("Make it")
    carol.reads("Let somebody be in it")
    carol.types("Person or service account", "alice")
    carol.presses("Let them be in it")
    carol.reads("It holds from now on")
    carol.types("Share; none if empty", "20 %")
    carol.presses("Give it")
    carol.reads("20 %")
    carol.presses("Teams")
    carol.presses("Service accounts")
    carol.types("Name", "nightly")
    carol.presses("Add")
    carol.reads("Grant it a data set")
    carol.types("Label", "cron")
    carol.presses("Make a token")
    carol.reads("The token, shown this once")
    carol.presses("Service accounts")
    carol.presses("People")
    carol.reads("Add somebody")
    carol.sees_nothing_of("nightly")
    carol.presses("alice")
    carol.presses("Give the role")
    carol.reads("Take it away")
    assert complaints(page) == []
