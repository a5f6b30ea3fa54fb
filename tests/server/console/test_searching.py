"""Lists in the console: a part at a time, and the items that have all words of a search, without scripts."""

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from lapwing.server.console import history, people, saved, searching
from tests.support.server.browsing import Shown, Visitor, visitor
from tests.support.server.world import World

SAVED = "/v1/datasets/open/saved"
QUERIES = [f"SELECT COUNT(*) AS n FROM visits WHERE age > {age}" for age in range(7)]


@pytest.fixture(scope="module")
def filled(settled: World) -> World:
    """Seven results, saved queries, dashboards and people more."""
    for number, sql in enumerate(QUERIES):
        title = f"{'Ward' if number % 2 else 'Station'} {number}"
        assert settled.query("alice", {"sql": sql, "epsilon": 0.5, "label": title}).status == 200
        assert settled.ask("POST", SAVED, "alice", {"title": title, "question": {"sql": sql}}).status == 201
        assert settled.ask("POST", SAVED, "alice", {"title": f"Board {title}", "tiles": []}).status == 201
        settled.service.people.add(f"nurse{number}", "analyst", None, by="carol")
    return settled


@pytest.fixture(scope="module")
def who(filled: World) -> dict[str, Visitor]:
    return {name: visitor(filled, name) for name in ("alice", "carol", "audrey")}


@pytest.fixture
def parts_of_three() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "ANSWERS", 3)
        patch.setattr(saved, "MOST", 3)
        patch.setattr(people, "LISTED", 3)
        yield


def rows(shown: Shown, beginning: str) -> list[str]:
    """Return where the rows of a list lead."""
    assert shown.status == 200, shown.text[:300]
    return [link for link in shown.page.links if link.startswith(beginning) and "after" not in link]


def parts(who: Visitor, path: str, beginning: str) -> list[list[str]]:
    """Return the rows of each part of a list, as somebody sees them who follows the button to the next."""
    found = []
    while path:
        shown = who.go(path)
        found.append(rows(shown, beginning))
        following = [link for link in shown.page.links if "?after=" in link]
        path = following[0] if following else ""
    return found


LISTS = {
    "/console/data/open/history": "/console/answers/",
    "/console/data/open/saved": "/console/data/open/ask?sql=",
    "/console/people": "/console/people/",
}


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.usefixtures("parts_of_three")
def test_parts_of_a_list_are_the_list(who: dict[str, Visitor], path: str) -> None:
    found = parts(who["carol" if "people" in path else "alice"], path, LISTS[path])
    assert len(found) > 2
    assert all(len(part) == 3 for part in found[:-1])
    every = [one for part in found for one in part]
    assert len(every) == len(set(every)) >= 7


@pytest.mark.parametrize(
    ("path", "beginning", "name", "words", "expected"),
    [
        ("/console/data/open/history", "/console/answers/", "alice", "ward", 3),
        ("/console/data/open/history", "/console/answers/", "alice", "AGE > 5", 1),
        ("/console/data/open/saved", "/console/data/open/ask?sql=", "alice", "station", 4),
        ("/console/data/open/dashboards", "/console/dashboards/", "alice", "board 3", 1),
        ("/console/people", "/console/people/", "carol", "nurse", 7),
        ("/console/people", "/console/people/", "carol", "curator", 1),
        ("/console", "/console/data/open/ask", "alice", "OPEN", 1),
        ("/console", "/console/data/open/ask", "alice", "nowhere", 0),
    ],
)
def test_a_search_finds_what_has_all_words(
    who: dict[str, Visitor], path: str, beginning: str, name: str, words: str, expected: int
) -> None:
    shown = who[name].go(f"{path}?q={quote(words)}")
    assert len(set(rows(shown, beginning))) == expected
    assert shown.form(path).fields["q"] == words


@pytest.mark.parametrize(
    "path", ["/console/data/open/charges", "/console/teams", "/console/accounts", "/console/questions"]
)
def test_a_search_without_results_says_so(who: dict[str, Visitor], path: str) -> None:
    shown = who["carol"].go(f"{path}?q=nothing+like+it")
    assert shown.status == 200
    assert "“nothing like it”" in shown.text


@pytest.mark.usefixtures("parts_of_three")
def test_a_search_goes_on_in_the_next_part(who: dict[str, Visitor]) -> None:
    shown = who["alice"].go("/console/data/open/history?q=station")
    (following,) = [link for link in shown.page.links if "?after=" in link]
    first, second = (rows(one, "/console/answers/") for one in (shown, who["alice"].go(following)))
    assert (len(first), len(second), len({*first, *second})) == (3, 1, 4)


def test_a_search_finds_nothing_of_others(who: dict[str, Visitor]) -> None:
    """Planted nowhere: the service lists for the caller. Audrey may see the data set, and not what alice saved."""
    for path in ("/console/data/open/saved", "/console/data/open/history"):
        assert "Ward" not in who["audrey"].go(f"{path}?q=ward").text.replace("“ward”", "")


def test_the_audit_log_is_searched_by_words(who: dict[str, Visitor]) -> None:
    shown = who["audrey"].go("/console/audit?about=Person+ADDED+nurse3").text
    assert "nurse3" in shown
    assert "nurse4" not in shown


@pytest.fixture
def short_steps() -> Iterator[None]:
    """Look through two items for a page, and no more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "BATCH", 2)
        patch.setattr(searching, "MOST_BATCHES", 1)
        yield


@pytest.mark.usefixtures("short_steps")
def test_a_long_list_is_looked_through_in_steps(who: dict[str, Visitor]) -> None:
    """The button leads to what was not looked through yet."""
    found = parts(who["carol"], "/console/people?q=nurse", "/console/people/nurse")
    assert len(found) > 3
    assert len({one for part in found for one in part}) == 7
