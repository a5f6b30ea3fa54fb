"""What a service that answers at deadlines counts is what its clients were told; its prices know of late answers."""

import http.client
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest

from lapwing.errors import DataStopped, LapwingError
from lapwing.ledger.allowances import Limits
from lapwing.ledger.events import ALLOWED_OF_ONE
from lapwing.server.deadline import departures
from lapwing.server.deadline.admission import Admission
from lapwing.server.deadline.process import QuestionProcess
from tests.server.test_logs import logged
from tests.support.server.question_thread import QuestionThread
from tests.support.server.queueing import question, submitted, until
from tests.support.server.world import QUICK, Reply, World, service_in, serving

TICK = "2026-11-02T12:00:00.000+00:00"


@pytest.fixture
def padded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[World, QuestionThread]]:
    monkeypatch.setattr(departures, "PUNCTUAL", 5.0)  # a busy machine makes no events of its own
    process = QuestionThread()
    process.service = service_in(tmp_path, QUICK, questions=cast(QuestionProcess, process))
    process.service.executor.start()
    with serving(process.service) as world:
        yield world, process


def counted(text: str, metric: str, label: str) -> dict[str, int]:
    found = re.findall(rf'{metric}{{(?:dataset="open",)?{label}="([^"]+)"}} (\d+)', text)
    return {outcome: int(number) for outcome, number in found if number != "0"}


def leave(world: World, body: object) -> None:
    """Ask, and close the connection before there is an answer."""
    with closing(http.client.HTTPConnection(urlsplit(world.address).netloc, timeout=60)) as connection:
        headers = {"Authorization": f"Bearer {world.tokens['alice']}", "Content-Type": "application/json"}
        connection.request("POST", "/v1/datasets/open/query", json.dumps(body), headers)
        until(lambda: world.service.executor.depth() != (0, 0))


def outcome(reply: Reply) -> str:
    if reply.status == 200:
        return "stored" if reply.document["stored"] else "charged"
    return str(reply.document["code"])


def asked(world: World, process: QuestionThread) -> tuple[Counter[str], list[Reply]]:
    """Ask whatever can come of a question, and return what the clients were told, once all of it is counted."""
    process.reactions = [process.answer, process.too_busy, process.answer, process.fail, process.die, process.be_late]
    replies = [world.query("alice", question(number)) for number in (1, 2, 1, 3, 4, 8, 2)]
    keyed = [world.query("alice", question(7), **{"Idempotency-Key": "a key"}) for _ in range(2)]
    assert keyed[0].content == keyed[1].content
    replies.append(keyed[0])
    replies.append(world.query("alice", {"sql": "SELECT nothing FROM visits", "epsilon": 0.1}))
    told = Counter(map(outcome, replies))
    assert told == {"charged": 4, "stored": 2, "engine_fault": 1, "service_fault": 1, "query_refused": 1}
    leave(world, question(5))
    submitted(world, question(6))
    told += Counter(left=1, charged=1, repeated=1)
    until(lambda: sum(outcomes(world).values()) >= told.total())
    return told, replies


def outcomes(world: World) -> dict[str, int]:
    return counted(world.service.metrics.text(), "lapwing_questions_total", "outcome")


@pytest.mark.long
def test_what_is_counted_is_what_clients_were_told(padded: tuple[World, QuestionThread]) -> None:
    world, process = padded
    with logged() as lines:
        told, replies = asked(world, process)
    text = world.ask("GET", "/metrics", "audrey").content.decode()
    assert counted(text, "lapwing_questions_total", "outcome") == dict(told)
    assert counted(text, "lapwing_restarts_total", "process") == {"engine": 1, "questions": 1}
    delayed = sum(reply.document.get("delayed", False) for reply in replies)
    assert 1 <= delayed <= counted(text, "lapwing_delayed_total", "dataset")["open"] <= delayed + 2  # which nobody saw
    known = [json.loads(line) for line in lines]
    (replaced,) = (line for line in known if line["event"] == "engine replaced")
    assert (replaced["dataset"], replaced["reason"]) == ("open", "stopped")
    on = [line for line in known if line["event"] == "answers go on"]
    assert [line["late"] for line in on] == [*range(1, len(on) + 1)]
    assert world.session().budget().late == len(on)
    assert len(on) >= 2  # more where the machine is busy
    assert {line["seconds"] for line in on} <= {*departures.LATER}


@pytest.mark.long
def test_tries_that_are_counted_are_found(
    padded: tuple[World, QuestionThread], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: each try counts, also one that was not charged and comes to its turn again."""
    hand_out = Admission._hand_out

    def counting(self: Admission, admitted: Any) -> None:
        if admitted.outcome is not None and isinstance(admitted.outcome.error, LapwingError):
            self._counted("open", admitted.outcome.error.code)
        hand_out(self, admitted)

    monkeypatch.setattr(Admission, "_hand_out", counting)
    told, _ = asked(*padded)
    assert outcomes(padded[0]) != dict(told)


def priced(world: World, path: str, body: object) -> Any:
    reply = world.ask("POST", f"/v1/datasets/open/{path}", "alice", body)
    assert reply.status == 200, reply.content
    return reply.document


def test_a_price_says_that_late_answers_refuse_the_charge(padded: tuple[World, QuestionThread]) -> None:
    world, _ = padded
    session, one = world.session(), question(7)
    batch = {"questions": [{"sql": one["sql"]}], "epsilon": one["epsilon"]}
    assert priced(world, "explain", one)["refusal"] is None
    for _ in range(ALLOWED_OF_ONE):
        session.note_late(TICK, "alice")
    with pytest.raises(DataStopped) as refused:
        session.acting_for("alice", lambda: Limits(timed=True)).sql(one["sql"], epsilon=one["epsilon"])
    preview = priced(world, "explain", one)
    assert (preview["refusal"], preview["fits"]) == (refused.value.analyst_text, 0)
    assert priced(world, "batch/explain", batch)["refusal"] == refused.value.analyst_text
    trusted = {"share": None, "trusted_with_time": True}
    assert world.ask("PUT", "/v1/datasets/open/grants/alice", "carol", trusted).status == 204
    assert priced(world, "explain", one)["refusal"] is None
    session.resume()
    assert world.ask("PUT", "/v1/datasets/open/grants/alice", "carol", {"share": None}).status == 204
    assert priced(world, "explain", one)["refusal"] is None


@pytest.mark.long
def test_without_deadlines_no_price_speaks_of_late_answers(world: World) -> None:
    for _ in range(ALLOWED_OF_ONE):
        world.session().note_late(TICK, "alice")
    assert priced(world, "explain", question(7))["refusal"] is None
    assert world.query("alice", question(7)).status == 200
