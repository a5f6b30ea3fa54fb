"""What an auditor does from the screen: who asked what and when, what failed, who may see what, the log as a file."""

import json
import re
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest

from lapwing.engines import DuckDB
from lapwing.server.console import audit
from tests.support.server.browsing import Visitor, visitor
from tests.support.server.queueing import ended, submitted
from tests.support.server.world import World

HERE = "/console/data/open"
SIGN_OUT = "/console/sign-out"


@pytest.fixture(scope="module")
def audrey(settled: World) -> Visitor:
    settled.query("alice")
    return visitor(settled, "audrey")


def day(back: int) -> str:
    return (datetime.now(UTC).date() - timedelta(days=back)).isoformat()


def test_an_auditor_finds_who_asked_what(audrey: Visitor) -> None:
    """The log says where the queries are; History is the charges of everybody."""
    assert "Queries and what they cost are not here" in audrey.go("/console/audit").text
    assert f"{HERE}/charges" in audrey.go("/console").page.links
    tabs = audrey.go(f"{HERE}/budget").page.links
    assert f"{HERE}/charges" in tabs
    assert f"{HERE}/history" not in tabs
    assert "COUNT(*)" in audrey.go(f"{HERE}/charges").text
    assert f"{HERE}/history" in visitor(audrey.world, "alice").go(f"{HERE}/budget").page.links


@pytest.mark.parametrize(("path", "word"), [(f"{HERE}/charges", "COUNT(*)"), ("/console/audit", "person added")])
def test_days_are_chosen(audrey: Visitor, path: str, word: str) -> None:
    """Two days, as midnight may pass meanwhile."""
    assert word in audrey.go(f"{path}?from={day(1)}&to={day(-1)}").text
    assert word not in audrey.go(f"{path}?to={day(2)}").text
    assert word not in audrey.go(f"{path}?from={day(-2)}").text
    shown = audrey.go(f"{path}?from={day(3)}").content.decode()
    assert f'value="{day(3)}"' in shown
    assert audrey.go(f"{path}?from=today").status == 422
    assert re.search(r'href="[^"]*\?from=(\d{4}-\d\d-\d\d)&(?:amp;)?to=\1', shown)


def test_an_analyst_sees_charges_of_a_day_that_are_their_own(settled: World, audrey: Visitor) -> None:
    assert settled.query("carol", {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.5}).status == 200
    alice = visitor(settled, "alice").go(f"{HERE}/charges?from={day(1)}")
    assert "carol" not in alice.text
    assert "carol" in audrey.go(f"{HERE}/charges?from={day(1)}").text


def test_the_log_is_a_file(settled: World, audrey: Visitor) -> None:
    before = settled.charges()
    with patch.object(audit, "BATCH", 3):
        file = audrey.go("/console/audit/file.jsonl")
    assert file.content == settled.ask("GET", "/v1/audit", "audrey").content
    assert file.headers["content-disposition"] == 'attachment; filename="audit-log.jsonl"'
    assert settled.charges() == before


def test_an_auditor_has_no_limit_to_read_of(settled: World, audrey: Visitor) -> None:
    assert settled.ask("GET", "/v1/datasets/open/budget", "audrey").document["allowances"]
    for text in ("Left for you", "Your limits"):
        assert text not in audrey.go(f"{HERE}/budget").text


def test_an_auditor_reads_who_may_query_and_changes_nothing(settled: World, audrey: Visitor) -> None:
    shown = audrey.go(f"{HERE}/access")
    assert shown.status == 200
    assert "alice" in shown.text
    assert [form.action for form in shown.page.forms if form.action.startswith(HERE)] == []
    assert f"{HERE}/access" in shown.page.links
    assert visitor(settled, "alice").go(f"{HERE}/access").status == 403
    assert f"{HERE}/access" not in visitor(settled, "alice").go(f"{HERE}/budget").page.links


def test_the_records_say_who_could_have_altered_them(settled: World, audrey: Visitor) -> None:
    log, ledger = audrey.go("/console/audit"), audrey.go(f"{HERE}/ledger")
    last = settled.ask("GET", "/v1/audit", "audrey").content.splitlines()[-1]
    assert f"<code>{json.loads(last)['hash']}</code>" in log.content.decode()
    assert f"<code>{settled.session()._ledger.state().hash}</code>" in ledger.content.decode()
    for page in (log, ledger):
        assert "Who could have altered this?" in page.text
        assert "data-copy" in page.content.decode()
        assert "Lapwing keeps two records." in page.text


def test_an_auditor_reads_the_share_that_a_charge_had_before_a_raise(place: World) -> None:
    """Of the budget of today, and of the one at the time; an analyst is told that there was a raise."""
    audrey = visitor(place, "audrey")
    place.query("alice")
    alice = visitor(place, "alice")
    assert "before the raise" not in audrey.go(f"{HERE}/charges").text
    was = {"epsilon": 100, "delta": 1e-3}
    body = {"was": was, "epsilon": 150, "delta": 1e-3, "confirmed": True, "reason": "<i>a second study</i>"}
    assert place.ask("PUT", "/v1/datasets/open/cap", "carol", body).status == 200
    place.query("alice", {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.5})
    assert "<i>a second study</i>" in audrey.go(f"{HERE}/versions").text
    assert "reason <i>a second study</i>" in audrey.go("/console/audit").text
    shown = audrey.go(f"{HERE}/charges").text
    assert shown.count("before the raise") == 1
    assert "raised from ε = 100" in shown
    own = alice.go(f"{HERE}/charges").text
    assert ("raised from ε = 100" in own, "before the raise" in own) == (True, False)
    assert "Into a record of processing, write the total: ε = 150" in audrey.go(f"{HERE}/budget").text


def test_an_auditor_is_told_that_raises_of_the_budget_have_a_list_of_their_own(audrey: Visitor) -> None:
    shown = audrey.go(f"{HERE}/versions").text
    assert "Nobody has changed tables, columns or bounds here." in shown
    assert "Nobody has raised the budget." in shown


def test_an_auditor_reads_who_has_which_role(settled: World, audrey: Visitor) -> None:
    """Of all data sets on People, of one on its page Access; a disabled account is marked, and has no rights."""
    people = audrey.go("/console/people")
    assert all(name in people.text for name in ("carol", "audrey", "alice", "curator", "Service accounts"))
    assert [form.action for form in people.page.forms if form.method == "post"] == [SIGN_OUT]
    assert not any(link.startswith("/console/people/") for link in people.page.links)
    settled.service.people.add("gone", "curator", None, by="carol")
    settled.service.people.add("left", "analyst", None, by="carol")
    settled.service.policies.grant("open", "left", None, {}, settled.session().budget().total, by="carol")
    for name in ("gone", "left"):
        settled.service.people.change(name, active=False, by="carol")
    access = settled.ask("GET", "/v1/datasets/open/grants", "audrey").document
    assert {"carol": "curator", "audrey": "auditor"}.items() <= access["roles"].items()
    assert not {"gone", "alice", "left"} & access["roles"].keys()
    assert access["disabled"] == ["left"]
    assert audrey.go(f"{HERE}/access").content.decode().count("disabled</span>") == 1
    assert "account disabled" in audrey.go("/console/audit?about=gone").text


def test_what_was_refused_in_the_queue_is_shown_to_auditors(settled: World, audrey: Visitor) -> None:
    """More than the budget: the queue takes it, and refuses it at its turn."""
    refused = ended(settled, submitted(settled, {"sql": "SELECT SUM(cost) AS much FROM visits", "epsilon": 1e6}))
    assert refused["status"] == "failed"
    shown = audrey.go(f"{HERE}/failures")
    assert "SUM(cost)" in shown.text
    assert refused["problem"]["detail"] in shown.text
    assert f"/console/questions/{refused['id']}" in shown.page.links
    assert f"{HERE}/failures" in audrey.go(f"{HERE}/budget").page.links
    assert "SUM(cost)" not in audrey.go("/console/data/closed/failures").text


def test_what_failed_after_its_charge_is_shown_with_its_reason(settled: World, audrey: Visitor) -> None:
    query = {"sql": "SELECT AVG(cost) AS mean FROM visits", "epsilon": 0.5}
    with patch.object(DuckDB, "run", side_effect=RuntimeError("the disk of row 7 is full")):
        assert settled.query("carol", query, "closed").status >= 500
    shown = audrey.go("/console/data/closed/failures").text
    assert "failed after their charge: 1." in shown
    assert shown.count("AVG(cost)") == 2  # among the failures, and among the charges without a result
    assert "The database or Lapwing failed while it ran the query." in shown
    assert "row 7" not in shown


def test_stops_are_shown_with_who_when_and_why(settled: World, audrey: Visitor) -> None:
    """Also to an auditor of this one data set, who reads no audit log; and of this data set only."""
    access = settled.service.policies
    access.stop("closed", stopped=True, by="carol", reason="The form <i>changed</i>")
    access.stop("closed", stopped=False, by="carol")
    settled.service.people.give_role("bob", "closed", "auditor", by="carol")
    try:
        last, first = settled.ask("GET", "/v1/datasets/closed/stops", "audrey").document[:2]
        assert (last["act"], last["reason"], first["act"]) == ("resumed", None, "stopped")
        for reader in (audrey, visitor(settled, "bob")):
            shown = reader.go("/console/data/closed/failures")
            assert "carolqueries stoppedThe form <i>changed</i>" in shown.text
        assert "The form" not in audrey.go(f"{HERE}/failures").text
    finally:
        settled.service.people.give_role("bob", "closed", None, by="carol")


def test_published_pages_are_shown_to_auditors_by_title(settled: World, audrey: Visitor) -> None:
    answer = settled.query("alice").document["id"]
    settled.ask("PUT", "/v1/datasets/open/publishing", "carol", {"allowed": True})
    body = {"title": "Plans <b>2026</b>", "answers": [answer]}
    page = settled.ask("POST", "/v1/datasets/open/published", "alice", body).document
    shown = audrey.go(f"{HERE}/published")
    assert "Plans <b>2026</b>" in shown.text
    assert "alice" in shown.text
    assert page["address"] not in shown.content.decode()
    assert [form.action for form in shown.page.forms if "/published/" in form.action] == []
    assert audrey.go(f"/console/published/{page['id']}/file.html").status == 404
    assert "Plans <b>2026</b>" in audrey.go("/console/audit?about=page+published").text
    assert "<b>" not in audrey.go("/console/audit?about=page+published").content.decode()
