"""Pages on which nothing is yet: each says what its reader can do next, by a link or a form of the page."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from lapwing.server.service import Service
from tests.support.server.browsing import PASSWORD, Shown, visitor
from tests.support.server.world import QUICK, World, serving

DATA = "/console/data/open"


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A service with a curator, and nothing else."""
    folder = tmp_path_factory.mktemp("empty")
    service = Service(folder / "people.db", [], replace(QUICK, folders=(folder,)))
    service.people.add("carol", "curator", PASSWORD, by="carol")
    with serving(service) as running:
        yield running


def next_steps(shown: Shown) -> set[str]:
    """Return where the notices and muted texts of the page itself lead."""
    assert shown.status == 200
    main = shown.content.decode().partition("<main")[2].partition("</main>")[0]
    return {link for link in shown.page.links if f'href="{link}"' in main}


def test_a_new_curator_is_led_on(empty: World) -> None:
    carol = visitor(empty, "carol")
    assert "/console/register" in next_steps(carol.go("/console"))
    assert "#add" in next_steps(carol.go("/console/people"))
    assert "#add" in next_steps(carol.go("/console/accounts"))
    assert "#make" in next_steps(carol.go("/console/teams"))
    assert "page Access" not in carol.go("/console/requests").text  # she has no data set to list


def test_an_analyst_without_access_is_led_on(empty: World) -> None:
    empty.service.people.add("dora", "analyst", PASSWORD, by="carol")
    assert "Ask a curator for access." in visitor(empty, "dora").go("/console").text


@pytest.mark.parametrize(
    ("page", "step"),
    [
        ("history", f"{DATA}/ask"),
        ("charges", f"{DATA}/ask"),
        ("saved", f"{DATA}/ask"),
        ("budget", f"{DATA}/ask"),
        ("dashboards", "#make"),
    ],
)
def test_pages_of_a_data_set_lead_on(settled: World, page: str, step: str) -> None:
    assert step in next_steps(visitor(settled, "alice").go(f"{DATA}/{page}"))
    # An auditor asks nothing, so no page leads there.
    assert step not in next_steps(visitor(settled, "audrey").go(f"{DATA}/{page}"))


def test_a_curator_without_monitors_is_led_on(settled: World) -> None:
    assert "lapwing monitor create" in visitor(settled, "carol").go(f"{DATA}/dashboards").text
    assert "lapwing monitor create" not in visitor(settled, "alice").go(f"{DATA}/dashboards").text
    assert "page Access" in visitor(settled, "carol").go("/console/requests").text
