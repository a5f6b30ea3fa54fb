"""The printable guarantee, a raised cap, a closed data set and the ledger's export, over HTTP."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.documents.audit_words import details_in_words
from lapwing.guarantee import rendering
from lapwing.guarantee.page import Head
from lapwing.ledger import exporting
from lapwing.server import responses
from tests.server.test_registering import CATALOG, register
from tests.support.effort import only
from tests.support.server.world import QUESTION, QUICK, Reply, World, data_set, service_in, serving

HTML = {"Accept": "text/html,application/xhtml+xml"}
WAS = {"epsilon": 100, "delta": 1e-3}


def page(world: World, who: str = "alice", **headers: str) -> Reply:
    return world.ask("GET", "/v1/datasets/open/guarantee", who, headers=headers)


def raise_to(world: World, epsilon: object, was: object = WAS, **more: object) -> Reply:
    body = {"was": was, "epsilon": epsilon, "delta": 1e-3, **more}
    return world.ask("PUT", "/v1/datasets/open/cap", "carol", body)


class Checked(HTMLParser):
    """Collects tags, text and attributes, and insists that tags are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def checked(content: str) -> Checked:
    found = Checked()
    found.feed(content)
    found.close()
    assert found.open == []
    return found


def test_the_page_says_the_same_as_text_json_and_html(world: World) -> None:
    world.query("alice")
    document, html = page(world).document, page(world, **HTML)
    assert html.headers["content-type"].startswith("text/html")
    assert html.headers["vary"] == "Accept, Accept-Language"
    assert "default-src 'none'" in html.headers["content-security-policy"]
    found = checked(html.content.decode())
    assert found.tags <= {
        *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "section", "details", "summary"),
        *("table", "thead", "tbody", "tr", "th", "td"),
    }
    assert found.attributes <= {"lang", "charset", "name", "content", "http-equiv", "scope", "class"}
    assert rendering.OWN_STYLE in html.headers["content-security-policy"]
    for section in document["sections"]:
        for text in (section["title"], *section["paragraphs"], *(cell for row in section["rows"] for cell in row)):
            assert text in found.text
    said = json.dumps(document, ensure_ascii=False)
    for fact in (
        "ε = 100",
        "an additional person, with all its rows",
        "2 rows",
        "0 to 8",
        'listed: \\"a\\", \\"b\\"',
        "3δ",
    ):
        assert fact in said
    assert world.charges() == 1


def seals(world: World) -> list[str]:
    """Return who is shown the hash of the ledger's newest entry, or the digest of the data."""
    world.query("alice")
    entries = list(world.session().ledger_entries())
    secret = [entries[-1].hash, *(d for e in entries if e.kind == "data" for d in e.contents()["digests"].values())]
    shown = []
    for who in ("alice", "audrey", "carol"):
        for headers in ({}, HTML):
            content = page(world, who, **headers).content.decode()
            shown += [who] if any(text in content for text in secret) else []
    return sorted(set(shown))


def test_the_seal_is_for_auditors(world: World) -> None:
    """It was made of the digest of the data: with all else known, it would let an analyst test a guess at them."""
    assert seals(world) == ["audrey", "carol"]
    hidden = world.ask("GET", "/v1/datasets/open/guarantee?seal=false", "carol")
    assert world.session()._ledger.state().hash not in hidden.content.decode()


@pytest.mark.long
def test_a_seal_for_everybody_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the newest hash is on everybody's page."""
    monkeypatch.setattr(Head, "__init__", _unveiled(world, Head.__init__))
    assert "alice" in seals(world)


def _unveiled(world: World, made: Any) -> Any:
    def init(self: Any, **facts: Any) -> None:
        made(self, **{**facts, "hash": world.session()._ledger.state().hash})

    return init


def test_who_may_ask_is_named_to_auditors_alone(world: World) -> None:
    assert "alice." in page(world, "audrey").content.decode()
    published = world.ask("GET", "/v1/datasets/open/guarantee?seal=false", "audrey").content.decode()
    assert "gave access to 1 account" in published
    ledger = world.session().catalog.ledger_path.name
    assert not [name for name in ("alice", "carol", ledger) if name in published]
    assert ledger in page(world, "audrey").content.decode()
    world.service.policies.grant("open", "bob", None, {}, world.session().budget().total, by="carol")
    assert "alice" not in page(world, "bob").content.decode()


def test_a_page_is_in_one_language(world: World) -> None:
    """A language without a catalogue has neither its texts nor its numbers: the page is English."""
    german = {"Accept-Language": "de-DE,de;q=0.9,en;q=0.8"}
    for shown in (page(world, **HTML, **german), page(world, **HTML)):
        assert "δ = 0.001" in shown.content.decode()
        assert "δ = 0,001" not in shown.content.decode()
    asked = world.ask("GET", "/v1/datasets/open/guarantee?language=de", "alice").document
    for english in (page(world, **german).document, asked):
        assert (english["language"], "δ = 0.001" in str(english)) == ("en", True)
    far = world.connect("alice", "open").guarantee(language="de")
    assert rendering.as_document(far)["sections"] == asked["sections"]


HOSTILE = "<script>alert(1)</script>\"&'"


@pytest.mark.long
def test_a_client_has_the_page_that_the_service_shows(world: World) -> None:
    for who in ("alice", "carol"):
        far = world.connect(who, "open").guarantee()
        assert rendering.as_document(far)["sections"] == page(world, who).document["sections"]
        assert rendering.page_from(rendering.as_document(far)) == far
        checked(rendering.as_html(far))


def hostile_page(world_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Checked:
    session = data_set(world_folder, "mean")
    try:
        catalog = session.catalog
        column = replace(catalog.tables[0].columns[1], values=(HOSTILE, "b"))
        table = replace(catalog.tables[0], columns=(column, *catalog.tables[0].columns[2:]), name=HOSTILE)
        session.catalog = replace(catalog, name=HOSTILE, tables=(table,))
        shown = session.guarantee((HOSTILE,), sealed=True)
    finally:
        session.close()
    return checked(rendering.as_html(shown))


def test_what_a_catalog_says_is_no_markup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = hostile_page(tmp_path, monkeypatch)
    assert "script" not in found.tags
    assert found.text.count("<script>alert(1)</script>") >= 4


def test_markup_that_is_not_escaped_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: texts are written as they are."""
    monkeypatch.setattr(rendering, "escape", lambda text: text)
    assert "script" in hostile_page(tmp_path, monkeypatch).tags


def test_a_page_that_stands_alone_allows_its_own_style_only(world: World) -> None:
    import base64
    from hashlib import sha256

    content = rendering.as_html(world.session().guarantee())
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', content)
    (style,) = re.findall(r"<style>(.*?)</style>", content, re.DOTALL)
    digest = base64.b64encode(sha256(style.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; ")
    assert f"'sha256-{digest}'" in policy
    assert "@page { size: A4" in style
    assert "http" not in content.replace("http-equiv", "")


# ---- A larger budget -------------------------------------------------------------------------------------------------


def test_a_raise_is_shown_first_and_done_when_it_is_confirmed(world: World) -> None:
    shown = raise_to(world, 120)
    assert (shown.status, shown.document["raised"]) == (200, False)
    assert (shown.document["before"]["epsilon"], shown.document["after"]["epsilon"]) == ("100", "120")
    assert shown.document["after"]["raised"]["epsilon"] > 120
    assert world.session().budget().epsilon == 100
    done = raise_to(world, 120, confirmed=True)
    assert (done.status, done.document["raised"]) == (200, True)
    budget = world.ask("GET", "/v1/datasets/open/budget", "alice").document
    assert budget["guarantee"] == {"epsilon": "120", "delta": "0.001"}
    assert budget["earlier"] == [{"epsilon": "100", "delta": "0.001"}]
    assert world.ask("GET", "/v1/datasets/open", "alice").document["budget"]["epsilon"] == "120"
    assert "it was ε = 100" in json.dumps(page(world).document, ensure_ascii=False)
    assert world.connect("alice").budget().raised is not None
    log = world.ask("GET", "/v1/audit", "carol").content.decode()
    assert '"act": "budget raised"' in log
    assert details_in_words(json.loads(log.splitlines()[-1])) == "delta 0.001, epsilon 100 → 120"
    (told,) = world.ask("GET", "/v1/datasets/open/versions", "audrey").document["raises"]
    assert (told["was"]["epsilon"], told["now"]["epsilon"], told["person"]) == ("100", "120", "carol")
    assert [entry.contents()["principal"] for entry in world.session().ledger_entries() if entry.kind == "raise"] == [
        "carol"
    ]


@pytest.mark.long
def test_the_catalog_s_file_says_it_too(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    from tests.support.cli.command import write_visits

    write_visits(tmp_path / "data", people=20)
    with serving(service_in(tmp_path, replace(QUICK, folders=(tmp_path / "data",)))) as world:
        assert register(world, CATALOG).status == 201
        body = {"was": {"epsilon": 0.3, "delta": 1e-6}, "epsilon": 0.4, "delta": 1e-6, "confirmed": True}
        done = world.ask("PUT", "/v1/datasets/fresh/cap", "carol", body)
        assert done.document["catalog"] == "written"
    with lw.connect(tmp_path / "data" / "fresh.registered.toml") as session:
        assert session.budget().epsilon * 10 == 4


def test_of_two_who_saw_the_same_one_raises(world: World) -> None:
    with ThreadPoolExecutor(2) as pool:
        replies = list(pool.map(lambda epsilon: raise_to(world, epsilon, confirmed=True), (120, 130)))
    assert sorted(reply.status for reply in replies) == [200, 409]
    (refused,) = (reply.document for reply in replies if reply.status == 409)
    assert refused["code"] == "catalog_mismatch"
    assert len(world.session().budget().earlier) == 1


@pytest.mark.parametrize(
    ("body", "status"),
    only(
        [0],
        [
            ({"epsilon": 99}, 422),
            ({"epsilon": "NaN"}, 422),
            ({"epsilon": 120, "was": {"epsilon": 99, "delta": 1e-3}}, 409),
            ({"epsilon": 120, "delta": 1e-4}, 422),
            ({"epsilon": 120, "delta": 1}, 422),
            ({"epsilon": 10**70}, 422),
            ({"epsilon": True}, 422),
        ],
        many=True,
    ),
)
def test_no_other_raise(world: World, body: dict[str, Any], status: int) -> None:
    for confirmed in (False, True):
        reply = world.ask(
            "PUT", "/v1/datasets/open/cap", "carol", {"was": WAS, "delta": 1e-3, "confirmed": confirmed, **body}
        )
        assert reply.status == status, reply.document
    assert world.session().budget().earlier == ()


# ---- The end, and the record -----------------------------------------------------------------------------------------


def charged_after_the_end(world: World) -> list[int]:
    answer = world.query("alice").document["id"]
    assert world.ask("PUT", "/v1/datasets/open/closed", "carol", {"closed": True}).status == 200
    other = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.25}
    statuses = [world.query("alice", other).status, world.query("alice").status]
    return [*statuses, world.ask("GET", f"/v1/answers/{answer}", "alice").status, world.charges()]


def test_a_closed_data_set_sells_nothing_and_keeps_what_was_bought(world: World) -> None:
    assert charged_after_the_end(world) == [409, 200, 200, 1]
    assert world.ask("PUT", "/v1/datasets/open/closed", "carol", {"closed": True}).status == 200
    assert world.ask("PUT", "/v1/datasets/open/closed", "carol", {"closed": False}).status == 422
    assert raise_to(world, 120, confirmed=True).document["code"] == "data_stopped"
    assert world.ask("GET", "/v1/datasets/open/budget", "alice").document["closed"]
    assert "is closed" in page(world).content.decode()
    lines = world.ask("GET", "/v1/audit", "carol").content.decode().splitlines()
    assert sum('"act": "closed for ever"' in line for line in lines) == 1


@pytest.mark.long
def test_an_end_that_is_only_said_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: closing writes nothing into the ledger."""
    monkeypatch.setattr(lw.Session, "close_for_ever", lambda self: True)
    assert charged_after_the_end(world)[0] == 200


def test_an_auditor_verifies_the_ledger_alone(world: World, tmp_path: Path) -> None:
    world.query("alice")
    reply = world.ask("GET", "/v1/datasets/open/ledger", "audrey")
    assert reply.headers["content-type"] == responses.LINES
    (tmp_path / "copy.jsonl").write_bytes(reply.content)
    state = exporting.verified(tmp_path / "copy.jsonl")
    assert state == world.session()._ledger.state()
    assert state.hash in page(world, "audrey").content.decode()


@pytest.mark.long
def test_questions_go_on_after_a_raise(world: World) -> None:
    """Sessions that were made before know the new budget."""
    before = world.service.datasets._served["open"].session.acting_for("alice")
    assert raise_to(world, 150, confirmed=True).status == 200
    assert before.budget().epsilon == 150
    assert before.catalog.budget.epsilon == 150
    assert world.query("alice", {**QUESTION, "epsilon": 120}).status == 200
