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
    carol.reads("Preview of changes")
    text = file.read_text()

    carol.presses("Edit as text (open.toml)")
    carol.writes(text.replace("upper = 8,", "upper = ,"))
    carol.reads("Lapwing cannot read this catalog")
    page.wait("document.querySelector('.cm-lintRange-error, .cm-lintPoint-error')")
    carol.writes(text.replace('privacy_unit = "person"', 'privacy_unit = "code"'))
    carol.reads("The ledger does not allow this change")
    carol.sees_nothing_of("Save catalog")
    carol.writes(text.replace("upper = 8,", "upper = 4,"))
    carol.reads("tables.visits.columns.cost.upper")
    carol.reads("Errors before and after")
    assert file.read_text() == text

    carol.presses("Check the data")
    carol.reads("private: only for you")
    carol.presses("Save catalog")
    carol.reads("The ledger did not change")
    assert "upper = 4," in file.read_text()
    carol.presses("Versions")
    carol.reads("from the start")
    carol.presses("Review current data")
    carol.reads("There is nothing to accept")
    carol.presses("1")
    carol.presses("Restore this catalog")
    carol.presses("Save catalog")
    carol.reads("The ledger did not change")
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
    carol.presses("Create team")
    carol.reads("Add members")
    carol.types("Person or service account", "alice")
    carol.presses("Add member")
    carol.reads("Team changed.")
    carol.types("Limit, like 20 % of the budget (empty: none)", "25 %")
    carol.presses("Set share")
    carol.reads("25 %")
    carol.presses("Teams")
    carol.presses("Service accounts")
    carol.types("Name", "nightly")
    carol.presses("Add account")
    carol.reads("grant access on the page Access")
    carol.types("Label", "cron")
    carol.presses("Create token")
    carol.reads("New token (shown only once)")
    carol.presses("Service accounts")
    carol.presses("People")
    carol.reads("Add a person")
    carol.sees_nothing_of("nightly")
    carol.presses("alice")
    carol.presses("Add role")
    carol.reads("Remove role")
    assert complaints(page) == []
