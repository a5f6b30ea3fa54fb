"""What an auditor does from the screen: who asked what and when, what failed, who may see what, the log as a file."""

import re
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest

from lapwing.server.console import audit
from tests.support.server.browsing import Visitor, visitor
from tests.support.server.world import World

HERE = "/console/data/open"


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
