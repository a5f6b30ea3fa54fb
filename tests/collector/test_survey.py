"""The page for respondents, in Debian's Chromium against a real collector: what is said, what is sent, and when."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from lapwing.collector import collector as collectors
from lapwing.collector.collector import Collector
from lapwing.languages import language
from tests.collector.tasks import CLOSED, COIN, IN_TIME, MINUTES, RECORD, WAYS, body, reports
from tests.languages.test_catalogues import MADE_UP, made_up
from tests.local.test_module import needs_chromium
from tests.support.browser.accessibility import findings
from tests.support.browser.chromium import Browser, Page, shared
from tests.support.browser.collectors import collecting
from tests.support.effort import one_in, only

pytestmark = needs_chromium
READY = "document.querySelector('h1') && !document.querySelector('[aria-busy]')"
TASKS = (COIN, WAYS, MINUTES, RECORD, CLOSED)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with shared() as found:
        yield found


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, Collector]]]:
    folder = tmp_path_factory.mktemp("survey")
    made = {task.id: Collector(folder, task) for task in TASKS}
    with patch.object(collectors, "today_in_utc", lambda: IN_TIME):
        made[CLOSED.id].bring(body(reports(CLOSED, "aaaabbbccd" * 100))).result()
    with collecting(made) as address:
        yield f"{address}/local", made
    for collector in made.values():
        collector.close()


def count(served: tuple[str, dict[str, Collector]], task: Any) -> int:
    found = served[1][task.id].status["reports"]
    assert isinstance(found, int)
    return found


def opened(browser: Browser, served: tuple[str, dict[str, Collector]], task: Any, page: Page | None = None) -> Page:
    page = page or browser.page()
    page.go(f"{served[0]}/{task.id}/")
    page.wait(READY)
    return page


def check_clean(page: Page, address: str) -> None:
    """No error, nothing that the policy stopped, no cookie, and no request to anybody else."""
    assert page.events("Runtime.exceptionThrown") == []
    assert [e for e in page.events("Log.entryAdded") if "ERR_INTERNET" not in json.dumps(e)] == []
    urls = [event["request"]["url"] for event in page.events("Network.requestWillBeSent")]
    assert urls
    assert all(url.startswith(address) or url.endswith("/favicon.ico") for url in urls)
    assert page.run("return document.cookie") == ""


@pytest.mark.long
def test_fill_look_and_send(browser: Browser, served: Any) -> None:
    """By the keyboard alone; nothing leaves before what leaves was shown and let go."""
    page, before = opened(browser, served, COIN), count(served, COIN)
    for _ in range(40):
        if page.run("return document.activeElement.matches('input[type=radio]')"):
            break
        page.press("Tab", 9)
    page.press("ArrowDown", 40)
    assert page.run("return document.querySelector('input:checked').value") == "yes"
    page.press("Enter", 13, "\r")
    page.wait("document.querySelector('#send')")
    assert page.run("return document.activeElement.tagName") == "H2"  # where a screen reader goes on
    line = json.loads(page.run("return document.querySelector('pre').textContent"))
    said = page.run("return document.querySelector('.leaves').textContent")
    assert said == f"“{COIN.values[line['r']]}”"
    assert count(served, COIN) == before
    page.wait("document.body.innerText.includes('ε = 1 so far')")
    page.press("Tab", 9)
    page.press("Tab", 9)
    assert page.run("return document.activeElement.id") == "send"
    page.press("Enter", 13, "\r")
    page.wait("document.body.innerText.includes('Sent and stored')")
    assert count(served, COIN) == before + 1
    check_clean(page, served[0])


def answer(page: Page, script: str) -> None:
    page.run(script + "; document.querySelector('#toss').click()")
    page.wait("document.querySelector('#send')")


YES = "document.querySelector('input[value=yes]').click()"


@pytest.mark.long
def test_offline_it_waits_and_is_sent_once(browser: Browser, served: Any) -> None:
    page, before = opened(browser, served, COIN), count(served, COIN)
    answer(page, YES)
    page.offline(True)
    page.run("document.querySelector('#send').click()")
    page.wait("document.body.innerText.includes('There is no connection')")
    assert count(served, COIN) == before
    page.offline(False)
    page.wait("document.body.innerText.includes('Sent and stored')")
    assert count(served, COIN) == before + 1


def test_what_was_acknowledged_to_nobody_is_sent_again_and_counts_once(browser: Browser, served: Any) -> None:
    """The collector took it, but the answer was lost: the page is left, opened again, and sends the same report."""
    page, before = opened(browser, served, COIN), count(served, COIN)
    answer(page, YES)
    line = page.run("return document.querySelector('pre').textContent")
    assert served[1][COIN.id].bring(line.encode()).result().taken == 1
    opened(browser, served, COIN, page)
    page.wait("document.querySelector('#send')")
    assert page.run("return document.querySelector('pre').textContent") == line
    assert "Report not sent yet" in page.run("return document.body.innerText")
    page.run("document.querySelector('#send').click()")
    page.wait("document.body.innerText.includes('Sent and stored')")
    assert count(served, COIN) == before + 1
    opened(browser, served, COIN, page)
    page.wait("document.querySelector('#toss')")


def test_a_budget_that_is_used_up(browser: Browser, served: Any) -> None:
    page, before = opened(browser, served, COIN), count(served, COIN)
    page.wait("document.querySelector('#limit')")
    page.run("document.querySelector('#limit').value = '1.5'; document.querySelector('#limit').form.requestSubmit()")
    page.wait("document.body.innerText.includes('Your limit is 1.5')")
    answer(page, YES)
    page.run("document.querySelector('#send').click()")
    page.wait("document.body.innerText.includes('Sent and stored')")
    opened(browser, served, COIN, page)
    page.wait("document.querySelector('#toss')")
    page.run(YES + "; document.querySelector('#toss').click()")
    page.wait("document.querySelector('[role=alert]').textContent.includes('above its limit of 1.5')")
    assert count(served, COIN) == before + 1
    assert not page.run("return document.querySelector('#send')")


@pytest.mark.long
def test_a_number_and_several_questions(browser: Browser, served: Any) -> None:
    for task, script in (
        (MINUTES, "document.querySelector('input[type=text]').value = '35.5'"),
        (
            RECORD,
            "document.querySelector('input[value=bus]').click();"
            "document.querySelector('input[type=text]').value = '20'",
        ),
    ):
        page, before = opened(browser, served, task), count(served, task)
        page.wait("document.querySelector('#toss')")
        page.run("document.querySelector('#toss').click()")
        page.wait("document.querySelector('[role=alert]').textContent == 'Please answer first.'")
        if task is MINUTES:  # a decimal comma is a point, and what may be two numbers is none
            page.run(script.replace("35.5", "1,000") + "; document.querySelector('#toss').click()")
            page.wait("document.querySelector('[role=alert]').textContent.includes('can mean two numbers')")
            script = script.replace("35.5", "35,5")
        answer(page, script)
        page.run("document.querySelector('#send').click()")
        page.wait("document.body.innerText.includes('Sent and stored')")
        assert count(served, task) == before + 1
        check_clean(page, served[0])


def test_a_closed_question_shows_its_result(browser: Browser, served: Any) -> None:
    page = opened(browser, served, CLOSED)
    page.wait("document.querySelector('svg')")
    text = page.run("return document.body.innerText")
    assert "This question is closed" in text
    assert "From 1,000 noisy reports" in text
    assert page.run("return document.querySelectorAll('svg').length") == 5
    rows = page.run("return [...document.querySelectorAll('tbody tr')].map((row) => row.innerText.split('\\t'))")
    expected = served[1][CLOSED.id].estimate()
    assert [row[1] for row in rows] == [f"{100 * row['share']:.1f}%" for row in expected]
    assert not page.run("return document.querySelector('#toss, input, form')")
    check_clean(page, served[0])


def test_numbers_and_dates_are_those_of_the_reader(browser: Browser, served: Any) -> None:
    page = browser.page()
    page.ask("Emulation.setUserAgentOverride", {"userAgent": "reader", "acceptLanguage": "de-DE"})
    opened(browser, served, CLOSED, page)
    page.wait("document.querySelector('svg')")
    rows = page.run("return [...document.querySelectorAll('tbody tr')].map((row) => row.innerText.split('\\t'))")
    expected = served[1][CLOSED.id].estimate()
    assert [row[1] for row in rows] == [f"{100 * row['share']:.1f}\u00a0%".replace(".", ",") for row in expected]
    text = page.run("return document.body.innerText")
    assert "From 1.000 noisy reports" in text
    opens = CLOSED.opens
    assert re.search(rf"Open from {opens.day}\. \w+ {opens.year} to", text), text


@pytest.mark.long
def test_a_page_in_another_language(browser: Browser, served: Any, tmp_path: Path) -> None:
    """A made-up language, at each step: every text of the page is from its catalogue."""
    made_up(tmp_path)
    with patch.object(language, "FOLDER", tmp_path):
        for task in (COIN, CLOSED):
            page = browser.page()
            page.ask("Emulation.setUserAgentOverride", {"userAgent": "reader", "acceptLanguage": MADE_UP})
            opened(browser, served, task, page)
            page.wait("document.querySelector('section')")
            assert page.run("return document.documentElement.lang") == MADE_UP
            assert plain_texts(page, task) == []
            assert f"⟦{task.document['unit']}⟧" in page.run("return document.body.innerText")
            if task is COIN:
                page.wait("document.querySelector('#limit')")
                answer(page, YES)
                assert plain_texts(page, task) == []
            check_clean(page, served[0])


def plain_texts(page: Page, task: Any) -> list[str]:
    """Return the texts of a page that are not from the catalogue; values and the exact report may be."""
    texts = page.run(
        "return [...document.querySelectorAll('main *')].filter((one) => !one.closest('pre, h1, script, noscript'))"
        ".flatMap((one) => [...one.childNodes].filter((node) => node.nodeType == 3).map((node) => node.data.trim()))"
    )
    words = [text for text in texts if re.search("[a-z]{2}", text) and not text.startswith("⟦")]
    return [text for text in words if text.split(":")[0].strip("“”") not in (*task.values, task.question)]


# Hostile


def hostile(browser: Browser, tmp_path: Path, document: dict[str, Any]) -> tuple[Page, Collector]:
    """A page of a collector that serves another document than the task it has."""
    collector, number = Collector(tmp_path, COIN), COIN.id
    page = browser.page()
    with collecting({number: collector}) as address, patch.object(type(COIN), "document", document):
        page.go(f"{address}/local/{number}/")
        page.wait(READY)
        page.wait("document.querySelector('#toss, [role=alert]')")
    return page, collector


def test_a_task_that_lies_is_refused_before_anything_is_asked(browser: Browser, tmp_path: Path) -> None:
    page, collector = hostile(browser, tmp_path, {**COIN.document, "epsilon": "0.1"})
    text = page.run("return document.body.innerText")
    assert "Your device refused this question" in text
    assert "states epsilon 0.1, but its thresholds have epsilon 1" in text
    assert not page.run("return document.querySelector('input, button, form')")
    collector.close()


def test_a_question_cannot_bring_a_script(browser: Browser, tmp_path: Path) -> None:
    evil = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
    page, collector = hostile(browser, tmp_path, {**COIN.document, "question": evil, "values": [evil[:40], "b"]})
    assert page.run("return document.querySelector('h1').textContent") == evil
    assert page.run("return document.title") == evil
    assert page.run("return document.querySelectorAll('img').length") == 0
    collector.close()


RAN = "return window.ran ? 'done' : 'stopped'"


def test_the_policy_stops_what_is_not_ours(browser: Browser, served: Any) -> None:
    """Markup, handlers, evaluated texts and requests to others; so the page's own code runs alone."""
    page = opened(browser, served, WAYS)
    for script in (
        "document.body.innerHTML = '<p>x</p>'; return 'done'",
        "const s = document.createElement('script'); s.text = 'window.ran = 1'; document.body.append(s);" + RAN,
        "await fetch('https://example.org/'); return 'done'",
        "document.body.setAttribute('onclick', 'window.ran = 1'); document.body.click();" + RAN,
    ):
        assert page.run(f"try {{ {script} }} catch (error) {{ return 'stopped' }}") == "stopped", script


# For everybody


@pytest.mark.long
@pytest.mark.parametrize("width", one_in(3, [320, 768, 1280]))
@pytest.mark.parametrize("dark", one_in(2, [False, True]), ids=["light", "dark"])
def test_it_fits_and_can_be_read(browser: Browser, served: Any, width: int, dark: bool) -> None:
    """No sideways scrolling, contrast of 4.5 or more, every field has a label, every section a heading."""
    for task in (COIN, RECORD, CLOSED):
        page = browser.page()
        page.size(width, 800, dark=dark)
        opened(browser, served, task, page)
        page.wait("document.querySelector('section')")
        assert page.run("return document.documentElement.scrollWidth <= innerWidth")
        assert page.run("return document.documentElement.lang") == "en"
        assert page.run("return document.querySelectorAll('h1').length") == 1
        assert page.run("return [...document.querySelectorAll('input, select')].every((one) => one.labels.length)")
        assert page.run("return [...document.querySelectorAll('fieldset')].every((one) => one.querySelector('legend'))")
        assert page.run(CONTRAST) >= 4.5


STEPS = {
    "question": (COIN, "document.querySelector('#toss')", ""),
    "report": (COIN, "document.querySelector('#send')", "document.querySelector('#toss').click()"),
    "several questions": (RECORD, "document.querySelector('#toss')", ""),
    "an error": (
        MINUTES,
        "document.querySelector('[role=alert]').textContent",
        "document.querySelector('#toss').click()",
    ),
    "result": (CLOSED, "document.querySelector('svg')", ""),
}


SETTLED = """
window.seen === document.body.innerHTML || (
    (window.seen = document.body.innerHTML), (window.since = performance.now())
),
performance.now() - window.since > 300
"""
"""Nothing was written into the page for a while: what an answer costs is told after it was drawn."""


@pytest.mark.parametrize("step", only([0, 4], STEPS))
@pytest.mark.parametrize("dark", one_in(2, [False, True]), ids=["light", "dark"])
def test_axe_finds_nothing(browser: Browser, served: Any, step: str, dark: bool) -> None:
    """All rules of axe-core, at each step of the page, with all that can be folded open."""
    task, ready, script = STEPS[step]
    page = browser.page()
    page.size(320, 800, dark=dark)
    opened(browser, served, task, page)
    if script:
        page.wait("document.querySelector('#toss')")
        page.run(("document.querySelector('input[value=yes]').click();" if task is COIN else "") + script)
    page.wait(ready)
    page.wait(SETTLED)
    page.run("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    found = findings(page)
    assert found["violations"] == []
    assert found["unsure"] == []
    assert found["passes"] > 20


@pytest.mark.parametrize(
    "bug",
    only(
        [0],
        [
            "document.documentElement.lang = ''",
            "document.querySelector('h1').style.color = '#999'",
            "document.querySelector('legend').remove(); document.querySelector('input').labels[0].replaceWith("
            "document.querySelector('input'))",
            "document.querySelector('#toss').textContent = ''",
            "document.querySelector('main').role = 'nothing'",
        ],
    ),
)
def test_what_keeps_people_out_is_caught(browser: Browser, served: Any, bug: str) -> None:
    page = opened(browser, served, COIN)
    page.wait("document.querySelector('#toss')")
    page.run(bug)
    assert findings(page)["violations"] != []


CONTRAST = """
    const linear = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const colour = (text) => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    const ground = (one) => { for (; one; one = one.parentElement) {
        const found = colour(getComputedStyle(one).backgroundColor);
        if (found.length == 3 || found[3] > 0) return found; } };
    const own = (one) => [...one.childNodes].some((node) => node.nodeType == 3 && node.data.trim());
    const all = [...document.querySelectorAll('main *')].filter((one) => own(one) && one.checkVisibility());
    return Math.min(...all.map((one) => {
        const pair = [light(colour(getComputedStyle(one).color)), light(ground(one))].sort((a, b) => b - a);
        return (pair[0] + 0.05) / (pair[1] + 0.05); }));
"""


@pytest.mark.long
def test_a_page_that_is_hard_to_read_is_caught(browser: Browser, served: Any) -> None:
    page = opened(browser, served, CLOSED)
    page.wait("document.querySelector('section')")
    page.run("document.querySelector('h1').style.color = '#999'")
    assert page.run(CONTRAST) < 4.5
