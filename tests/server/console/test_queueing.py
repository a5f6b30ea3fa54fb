"""A question in the queue: it waits, is followed to its answer, or is cancelled; and who sees it."""

import pytest

from lapwing.server.execution import QuestionExecutor
from tests.server.console.test_asking import priced
from tests.support.server.browsing import PASSWORD, Shown, Visitor, visitor
from tests.support.server.queueing import held, until
from tests.support.server.world import PEOPLE, World, issued


@pytest.fixture
def alice(one: World) -> Visitor:
    for name in PEOPLE:
        one.service.people.change(name, password=PASSWORD, by="carol")
    one.tokens.update(issued(one.service))
    return visitor(one, "alice")


def queued(alice: Visitor, epsilon: str = "0.5") -> Shown:
    page = priced(alice, epsilon=epsilon)
    shown = alice.post("/console/data/open/ask/answer", {**page.form("/ask/answer").fields, "queue": "1"})
    assert shown.path.startswith(("/console/questions/", "/console/answers/")), shown.text
    return shown


@pytest.mark.long
def test_a_question_is_followed_to_its_answer(alice: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QuestionExecutor, "deadline_of", lambda *_: 0.25)
    price = priced(alice)
    assert "0.25 s after the query starts" in price.text
    assert b'<progress class="gauge" max="0.25" value="0"' in price.content
    with held(monkeypatch) as (came, go_on):
        running, waiting = queued(alice, "0.25"), queued(alice)
        came.acquire()
        shown = alice.go(running.path)
        assert "This query is running" in shown.text
        assert b'<meta http-equiv="refresh" content="2">' in shown.content
        assert "0.25 s after the query starts" in shown.text
        assert b'<progress class="gauge" aria-label="Running">' in shown.content  # how far it is, it does not say
        assert "This query is waiting" in alice.go(waiting.path).text
        go_on.set()
        until(lambda: alice.go(waiting.path).path.startswith("/console/answers/"))
    assert alice.go("/console/questions").text.count("done") == 2
    assert alice.world.charges() == 2


@pytest.mark.long
def test_a_question_that_waits_is_cancelled_uncharged(alice: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    with held(monkeypatch) as (came, go_on):
        running, waiting = queued(alice, "0.25"), queued(alice)
        came.acquire()
        shown = alice.submit(alice.go(waiting.path), "/cancel")
        assert "This query was cancelled. If the query had not started, nothing was charged." in shown.text
        assert b"http-equiv" not in shown.content
        bob, audrey = visitor(alice.world, "bob"), visitor(alice.world, "audrey")
        assert bob.go("/console/questions?everybody=1").status == 403
        assert waiting.path.rpartition("/")[2] not in bob.go("/console/questions").content.decode()
        assert "The queue is empty." in audrey.go("/console/questions").text
        assert "alice" in audrey.go("/console/questions?everybody=1").text
        go_on.set()
        until(lambda: alice.go(running.path).path.startswith("/console/answers/"))
    assert alice.world.charges() == 1
