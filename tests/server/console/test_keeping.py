"""What one keeps: saved questions, answers that a team shares, dashboards, several questions at one price."""

import json
from collections.abc import Iterator

import pytest

from lapwing.monitors import Monitor, create_monitor
from lapwing.server.console import dashboards
from lapwing.server.console.dashboards import tiles
from lapwing.server.console.forms import FIELD
from tests.server.console.test_asking import SQL, priced
from tests.server.test_monitors import QUESTION
from tests.support.server.browsing import Shown, Visitor, bars_in, visitor
from tests.support.server.world import World, on_both


def nurses(place: World) -> tuple[Visitor, Visitor]:
    """Put two analysts who may ask `open` into one team."""
    view = place.session().budget()
    place.service.policies.grant("open", "bob", None, view.spending, view.total, view.delta_keys, by="carol")
    for name in ("alice", "bob"):
        place.service.people.change(name, team="nurses", by="carol")
    return visitor(place, "alice"), visitor(place, "bob")


@pytest.fixture(scope="module")
def team(settled: World) -> tuple[Visitor, Visitor]:
    """Two such, for tests that buy what no other does."""
    return nurses(settled)


@pytest.fixture(scope="module")
def alice(team: tuple[Visitor, Visitor]) -> Visitor:
    return team[0]


@pytest.fixture(scope="module")
def monitor(settled: World) -> Iterator[Monitor]:
    catalog = settled.session().catalog
    question = QUESTION.replace("plan, ", "").replace("GROUP BY plan ", "")
    with create_monitor(catalog, "m", question, epsilon=1, time="seen", most=3, source="service") as made:
        yield made


def bought(alice: Visitor, **typed: str) -> str:
    """Buy an answer; one that is there already is opened for nothing."""
    return alice.submit(priced(alice, **typed), "/ask/answer").path.partition("?")[0]


@on_both
def test_a_question_is_saved_and_shared(place: World) -> None:
    alice, bob = nurses(place)
    saved = alice.submit(priced(alice), "/saved", title="by plan")
    assert "Saved “by plan”." in saved.text
    assert "by plan" not in bob.go("/console/data/open/saved").text
    shared = alice.post(saved.form("/change").action, {FIELD: alice.secret(), "what": "share"})
    assert "shared with nurses" in shared.text
    (action,) = {form.action for form in shared.page.forms if form.action.endswith("/change")}
    opened = bob.go(action.removesuffix("/change"))  # an address that is passed on
    assert opened.form("/ask").fields["sql"] == SQL
    assert opened.form("/ask").fields["epsilon"] == "0.5"
    assert alice.world.charges() == 0
    gone = alice.post(action, {FIELD: alice.secret(), "what": "remove"})
    assert "Removed “by plan”." in gone.text
    assert bob.go(action.removesuffix("/change")).status == 404


@pytest.mark.long
def test_who_has_no_team_is_told(settled: World) -> None:
    carol = visitor(settled, "carol")
    told = carol.submit(priced(carol), "/saved", title="mine", shared="1")
    assert told.status == 422
    assert "You are in no team" in told.text


def test_only_who_has_a_team_is_offered_to_share(place: World) -> None:
    def offers(name: str) -> list[bool]:
        person = visitor(place, name)
        at_query = "share with my team" in priced(person).text
        saved = person.submit(priced(person), "/saved", title="by plan")
        return [at_query, "Share with my team" in saved.text]

    assert offers("carol") == [False, False]
    assert place.ask("GET", "/v1/me", "carol").document["team"] is None
    place.service.people.change("alice", team="nurses", by="carol")
    assert offers("alice") == [True, True]
    assert place.ask("GET", "/v1/me", "alice").document["team"] == "nurses"


@pytest.mark.long
def test_an_answer_is_passed_on_within_a_team(team: tuple[Visitor, Visitor]) -> None:
    alice, bob = team
    charges = alice.world.charges()
    path = bought(alice, sql="SELECT COUNT(*) AS n FROM visits WHERE age = 1", label="for all of us")
    assert bob.go(path).status == 404
    assert "can open this page by its address" in alice.submit(alice.go(path), "/share", what="share").text
    seen = bob.go(path)
    assert "Bought by alice." in seen.text
    assert [form for form in seen.page.forms if form.action.endswith("/share")] == []
    assert "for all of us" in bob.go("/console/data/open/saved").text
    alice.submit(alice.go(path), "/share", what="keep")
    assert bob.go(path).status == 404
    assert alice.world.charges() == charges + 1


@pytest.mark.long
def test_a_dashboard_is_made_looked_at_and_taken_apart(team: tuple[Visitor, Visitor], monitor: Monitor) -> None:
    alice, bob = team
    for _, tick in zip(range(3), monitor.run(replay=True), strict=False):
        assert tick.rows()
    path, other = bought(alice), bought(alice, sql="SELECT COUNT(*) AS n, AVG(cost) AS cost FROM visits", label="all")
    charges = alice.world.charges()
    board = alice.submit(alice.go(path), "/dashboards/add")
    assert bars_in(board) == 2
    here = board.path.partition("?")[0]
    (form,) = [form for form in board.page.forms if "answer" in form.fields]
    choices = board.content.decode().partition('id="answer"')[2].partition("</select>")[0]
    assert other.rpartition("/")[2] in choices
    assert path.rpartition("/")[2] not in choices  # as it is there already
    alice.post(form.action, {**form.fields, "answer": other.rpartition("/")[2]})
    (form,) = [form for form in alice.go(here).page.forms if "monitor" in form.fields]
    board = alice.post(form.action, {**form.fields, "monitor": "m"})
    assert board.path.partition("?")[0] == here
    assert board.content.count(b'class="dot"') >= 3  # of the monitor, over time
    assert board.text.count("±") >= 4
    assert " of 6 ticks" in board.text
    moved = change(alice, here, place="1", what="forward")
    assert moved.content.index(other.encode()) < moved.content.index(path.encode())
    assert bob.go(here).status == 404
    assert "shared with nurses" in change(alice, here, what="share").text
    seen = bob.go(here)
    assert bars_in(seen) == 2  # its answers are shared with it
    assert "Remove" not in seen.text
    assert change(bob, here, what="name", name="Ours").status in (403, 404)
    assert len(change(alice, here, place="0", what="take").page.text) < len(board.page.text)
    assert "Ward" in change(alice, here, what="name", name="Ward").text
    assert "Ward" in alice.go("/console/data/open/dashboards").text
    removed = alice.post(f"/console/saved/{here.rpartition('/')[2]}/change", {FIELD: alice.secret(), "what": "remove"})
    assert "Removed “Ward”." in removed.text
    assert alice.go(path).status == 200
    assert alice.world.charges() == charges


def change(who: Visitor, here: str, **fields: str) -> Shown:
    return who.post(f"{here}/change", {FIELD: who.secret(), **fields})


def test_what_is_gone_from_a_dashboard_says_so(alice: Visitor) -> None:
    path = "/v1/datasets/open/saved"
    gone = [{"monitor": "none"}, {"answer": "0" * 32, "title": "Old"}]
    made = alice.world.ask("POST", path, "alice", {"title": "Ward", "tiles": gone}).document
    shown = alice.go(f"/console/dashboards/{made['id']}")
    assert shown.status == 200
    assert "no such monitor" in shown.text
    assert "no such answer" in shown.text


def test_a_stream_sends_what_a_monitor_released(
    alice: Visitor, monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dashboards, "SECONDS", 1.0)
    monkeypatch.setattr(dashboards, "POLL", 0.1)
    next(monitor.run(replay=True))
    made = alice.world.ask("POST", "/v1/datasets/open/saved", "alice", {"title": "W", "tiles": [{"monitor": "m"}]})
    here, charges = f"/console/dashboards/{made.document['id']}", alice.world.charges()
    sent = alice.go(f"{here}/events")
    assert sent.headers["content-type"].startswith("text/event-stream")
    (event,) = [block for block in sent.content.decode().split("\n\n") if block.startswith("event: tile")]
    told = json.loads(event.partition("data: ")[2])
    assert told["place"] == 0
    assert " of 6 ticks" in told["html"]
    assert alice.world.charges() == charges
    monkeypatch.setattr(dashboards, "STREAMS", 0)
    assert alice.go(f"{here}/events").status == 429


@pytest.mark.long
def test_several_questions_are_bought_at_one_price(alice: Visitor) -> None:
    form, charges = alice.go("/console/data/open/batch"), alice.world.charges()
    sql = SQL.replace("COUNT(*)", "SUM(cost)")
    text = f"{sql}; -- and; so on\nSELECT COUNT(*) AS \"a;b\" FROM visits WHERE plan = 'a;b';"
    price = alice.submit(form, "/batch", sql=text, epsilon="0.5", label="both")
    assert "Cost: ε = 0.5 for 2 queries" in price.text
    assert alice.world.charges() == charges
    answers = alice.submit(price, "/batch/answers")
    again = alice.submit(price, "/batch/answers")  # the same form once more, as a double click sends it
    assert answers.path == again.path
    links = [link for link in answers.page.links if link.startswith("/console/answers/")]
    assert len(links) == 2
    assert bars_in(answers) == 2  # of the first; the second is a figure
    assert alice.world.charges() == charges + 2
    shown = alice.go(links[1])
    assert "a;b" in shown.text
    assert "All these results were bought before" in alice.submit(form, "/batch", sql=text, epsilon="0.5").text
    wrong = alice.submit(form, "/batch", sql=f"{sql}; SELECT COUNT(plam) AS n FROM visits", epsilon="0.5")
    assert "Query 2 of 2: There is no column 'plam'" in wrong.text
    (better,) = [one for one in wrong.page.forms if "COUNT(plan)" in one.fields.get("sql", "")]
    assert "Cost: ε = 0.5 for 2 queries" in alice.post(better.action, better.fields).text
    assert "too expensive" in alice.submit(form, "/batch", sql=SQL, epsilon="1000000").text
    assert alice.world.charges() == charges + 2


@pytest.mark.long
def test_a_dashboard_that_asks_again_is_found(alice: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a tile that buys what it shows, in place of opening what was bought."""
    path = bought(alice)
    here = alice.submit(alice.go(path), "/dashboards/add").path
    before = alice.world.charges()
    alice.go(here)
    assert alice.world.charges() == before
    tile_of = tiles.tile_of

    async def asking(visit, dataset, place, tile, *wanted):  # type: ignore[no-untyped-def]
        body = {"sql": "SELECT SUM(cost) AS s FROM visits", "epsilon": 0.25}
        await visit.api.send("POST", "datasets", dataset, "query", body=body)
        return await tile_of(visit, dataset, place, tile, *wanted)

    monkeypatch.setattr(dashboards, "tile_of", asking)
    alice.go(here)
    assert alice.world.charges() == before + 1
