"""A query without SQL in Chromium: fields that write SQL, SQL that fills fields, and a result that was bought."""

import json
from collections.abc import Iterator

import pytest

from tests.server.console.test_in_a_browser import complaints, sign_in, typed
from tests.support.browser.chromium import Page, find_chromium, shared
from tests.support.server.world import World

pytestmark = [
    pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (apt install chromium)"),
    pytest.mark.long,
]


@pytest.fixture
def page() -> Iterator[Page]:
    with shared() as browser:
        yield browser.page()


def chosen(page: Page, field: str, value: str) -> None:
    """Choose in a list, once it is there."""
    page.wait(f"document.getElementById({json.dumps(field)})")
    page.run(
        f"const field = document.getElementById({json.dumps(field)}); field.focus(); field.value = {json.dumps(value)};"
        "field.dispatchEvent(new Event('input', { bubbles: true }));"
    )


def says(page: Page, sql: str) -> None:
    """Wait until the editor, and what the form sends, say a query."""
    page.wait(f"document.getElementById('sql').value == {json.dumps(sql)}")
    page.wait(f"document.querySelector('.cm-content').innerText.trim() == {json.dumps(sql)}")


def test_a_query_is_built_read_back_and_bought(place: World, page: Page) -> None:
    sign_in(page, place, "alice")
    page.go(f"{place.address}/console/data/open/ask")
    page.run("[...document.querySelectorAll('.modes button')].find((one) => one.textContent == 'Build').click()")
    page.wait("document.getElementById('builder') && document.querySelector('#preview [data-verdict=fits]')")
    says(page, "SELECT plan, COUNT(*) AS n\nFROM visits\nGROUP BY plan")

    chosen(page, "m1", "average")
    chosen(page, "m1_column", "cost")
    says(page, "SELECT plan, COUNT(*) AS n, AVG(cost) AS average_cost\nFROM visits\nGROUP BY plan")
    assert page.run("return document.activeElement.id") == "m1_column"
    chosen(page, "w0", "plan")
    chosen(page, "w0_value", "b")
    page.wait("document.getElementById('sql').value.includes(\"WHERE plan = 'b'\")")
    chosen(page, "m1", "")
    sql = "SELECT plan, COUNT(*) AS n\nFROM visits\nWHERE plan = 'b'\nGROUP BY plan"
    says(page, sql)

    typed(page, "sql", sql.replace("'b'", "'a'") + " LIMIT 1")
    page.wait("document.getElementById('w0_value').value == 'a' && document.getElementById('top').value == '1'")
    typed(page, "sql", sql.replace("COUNT(*)", "1 + COUNT(*)"))
    page.wait("document.querySelector('#builder .notice')")
    says(page, sql.replace("COUNT(*)", "1 + COUNT(*)"))
    typed(page, "sql", sql)
    page.wait("document.getElementById('w0_value')?.value == 'b'")

    page.wait("document.querySelector('[data-buy] input[name=sql]')?.value.includes(\"'b'\")")
    page.wait("!document.querySelector('[data-buy] button').disabled")
    page.run("document.querySelector('[data-buy] button').click()")
    page.wait("location.pathname.startsWith('/console/answers/') && document.readyState == 'complete'")
    assert place.charges() == 1
    assert complaints(page) == []


def test_the_button_is_above_the_fold_and_soon_reached(place: World, page: Page) -> None:
    sign_in(page, place, "alice")
    page.size(1440, 900)
    for tab in ("sql", "build"):
        page.go(f"{place.address}/console/data/open/ask?tab={tab}")
        page.wait("document.querySelector('.cm-editor') && document.querySelector('#preview [data-buy]')")
        assert page.run(
            "return document.querySelector('[data-buy] button').getBoundingClientRect().bottom < innerHeight"
        )
        page.run("document.querySelector('.cm-content').focus()")
        reached = "return Boolean(document.activeElement.closest('[data-buy]'))"
        steps = 0
        while not page.run(reached) and steps < 9:
            page.press("Tab", 9)
            steps += 1
        assert steps <= 7
