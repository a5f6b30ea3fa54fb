"""Publish, open and withdraw a page by the forms of the console."""

import re

import pytest

from lapwing.server.console.forms import FIELD
from tests.support.server.browsing import Visitor, visitor
from tests.support.server.world import World


@pytest.fixture
def carol(place: World) -> Visitor:
    return visitor(place, "carol")


def test_a_result_is_published_opened_and_withdrawn(place: World, alice: Visitor, carol: Visitor) -> None:
    answer = place.query("alice").document["id"]
    form = f"/console/answers/{answer}/publish"
    assert "Ask a curator to allow it" in alice.go(form).text
    allowed = carol.submit(carol.go("/console/data/open/published"), "/published", origins="https://news.example.org")
    assert "People can publish results. 1 site may show their pages in a frame." in allowed.text
    made = alice.submit(alice.go(form), "/publish", title="Visits <b>by plan</b>", author="Office")
    address, framed = re.findall(r"https?://\S+/published/lapwing_[\w-]{43}", made.text)
    assert framed == address
    assert f'<iframe src="{address}?frame" title="Visits &lt;b&gt;by plan&lt;/b&gt;"' in made.text
    assert "<h1>Published</h1>" in made.content.decode()
    assert re.findall(r'<a href="[^"]*" aria-current="true">(.*?)</a>', made.content.decode()) == [
        "Data sets",
        "Published",
    ]
    nobody = Visitor(place)
    page = nobody.go("/published/" + address.rpartition("/")[2])
    assert (page.status, page.cookies, nobody.cookies) == (200, (), {})
    assert len(page.content) < 20_000  # with its style, and it loads no file
    assert not re.search(rb"<(?:script|link|img)\b|\bsrc=|url\(", page.content)
    assert "Visits <b>by plan</b>" in page.text
    listed = alice.go("/console/data/open/published")
    assert address.rpartition("/")[2] not in listed.content.decode()  # it was shown once
    (file,) = [link for link in listed.page.links if link.endswith("/file.html")]
    assert alice.go(file).content == page.content
    assert 'filename="visits-b-by-plan-b.html"' in alice.go(file).headers["content-disposition"]
    (look,) = [link for link in listed.page.links if link.endswith("/page")]
    for person in (alice, carol):
        seen = person.go(look)
        assert (seen.status, seen.content) == (200, page.content)
    policy = seen.headers["content-security-policy"]
    rules = ("default-src 'none'", "sandbox", "frame-ancestors 'none'")
    assert [rule for rule in rules if rule not in policy] == []
    assert visitor(place, "bob").go(look).status == 404
    audited = visitor(place, "audrey").go("/console/data/open/published")
    assert "Visits <b>by plan</b>" in audited.text
    assert not [link for link in audited.page.links if link.endswith("/file.html")]
    assert "Withdraw" not in audited.text
    gone = alice.submit(listed, "/withdraw")
    assert "Withdrew the page." in gone.text
    assert nobody.go("/published/" + address.rpartition("/")[2]).status == 404


def test_a_refused_form_keeps_what_was_typed(place: World, alice: Visitor, carol: Visitor) -> None:
    carol.submit(carol.go("/console/data/open/published"), "/published")
    form = f"/console/answers/{place.query('alice').document['id']}/publish"
    refused = alice.submit(alice.go(form), "/publish", title="Visits", name="No Name!")
    assert refused.status == 422
    assert refused.form("/publish").fields["name"] == "No Name!"
    wrong = carol.submit(carol.go("/console/data/open/published"), "/published", origins="http://news.example.org")
    assert (wrong.status, wrong.form("/published").fields["origins"]) == (422, "http://news.example.org")


def test_the_code_of_a_frame_is_shown_before_a_site_is_named(place: World, alice: Visitor, carol: Visitor) -> None:
    carol.submit(carol.go("/console/data/open/published"), "/published")
    made = alice.submit(
        alice.go(f"/console/answers/{place.query('alice').document['id']}/publish"), "/publish", title="V"
    )
    address, framed = re.findall(r"https?://\S+/published/lapwing_[\w-]{43}", made.text)
    assert (framed, "ask a curator to name the site" in made.text) == (address, True)


@pytest.mark.parametrize("secret", ["", "wrong"])
def test_a_form_from_elsewhere_publishes_and_withdraws_nothing(
    place: World, alice: Visitor, carol: Visitor, secret: str
) -> None:
    carol.submit(carol.go("/console/data/open/published"), "/published")
    answer = place.query("alice").document["id"]
    sent = {FIELD: secret, "title": "Visits", "allowed": "no"}
    assert alice.post(f"/console/answers/{answer}/publish", sent).status == 403
    assert carol.post("/console/data/open/published", sent).status == 403
    assert place.service.published.rule("open").allowed
    assert place.service.published.of("open", None) == []


def test_the_frame_of_a_page_with_a_name_can_be_had_later(place: World, alice: Visitor, carol: Visitor) -> None:
    carol.submit(carol.go("/console/data/open/published"), "/published")
    form = alice.go(f"/console/answers/{place.query('alice').document['id']}/publish")
    alice.submit(form, "/publish", title="Visits", name="all-visits")
    alice.submit(form, "/publish", title="Secret")
    (path,) = (link for link in alice.go("/console/data/open/published").page.links if link.endswith("/embed"))
    page = place.ask("GET", path.replace("/console", "/v1").removesuffix("/embed"), "alice").document
    code = f' title="Visits" width="100%" height="{page["frame_height"]}"></iframe>'
    source = r'<iframe src="https?://[^/\s]+/published/all-visits\?frame"'
    assert re.search(source + re.escape(code), alice.go(path).text)
    assert carol.go(path).status == 200
    secret = next(one.id for one in place.service.published.of("open", None) if one.name is None)
    assert alice.go(f"/console/published/{secret}/embed").status == 404


def test_a_result_is_published_with_the_chart_that_a_tile_or_the_address_has(
    place: World, alice: Visitor, carol: Visitor
) -> None:
    carol.submit(carol.go("/console/data/open/published"), "/published")
    answer = place.query("alice").document["id"]
    tile = {"answer": answer, "title": "Wards in lines", "kind": "points", "line": 12.5, "y_title": "Visits"}
    body = {"title": "For the minister", "tiles": [tile]}
    assert place.ask("POST", "/v1/datasets/open/saved", "alice", body).status == 201
    nobody = Visitor(place)

    def published(query: str, **fields: str) -> str:
        made = alice.submit(alice.go(f"/console/answers/{answer}/publish{query}"), "/publish", **fields)
        address = re.findall(r"/published/lapwing_[\w-]{43}", made.text)[0]
        return nobody.go(address).content.decode()

    form = alice.go(f"/console/answers/{answer}/publish")
    assert "as on your dashboard" in form.text
    assert form.form("/publish").fields["title"] == "Wards in lines"
    of_tile, chosen = published(""), published("?kind=bars&title=Chosen", title="Visits")
    assert ("chart points" in of_tile, 'class="reference"' in of_tile, "chart bars" in of_tile) == (True, True, False)
    assert ("chart bars" in chosen, 'class="reference"' in chosen, "Chosen" in chosen) == (True, False, True)


def test_a_published_table_has_the_order_and_the_heads_of_its_tile(
    place: World, alice: Visitor, carol: Visitor
) -> None:
    carol.submit(carol.go("/console/data/open/published"), "/published")
    answer = place.query("alice").document
    numbers = [row["n"] for row in answer["rows"]]
    nobody = Visitor(place)

    def page(order: str) -> str:
        query = f"?arrange={order}&x_title=Plan+of+the+visit&y_title=Visits&line=5&line_title=Target"
        form = alice.go(f"/console/answers/{answer['id']}/publish{query}")
        made = alice.submit(form, "/publish", title="Visits")
        address = re.findall(r"/published/lapwing_[\w-]{43}", made.text)[0]
        return nobody.go(address).content.decode()

    def plans(text: str) -> list[str]:
        return re.findall(r"<tr><td><bdi>(\w+)</bdi>", text)

    def as_drawn(text: str) -> bool:
        """Return whether the rows of the table have the order of the bars above them."""
        wide = text[text.index('class="in-wide"') : text.index('class="in-narrow"')]
        return plans(text) == re.findall(r'text-anchor="end">(\w+)</text>', wide)

    rows = [row["plan"] for row in answer["rows"]]
    rising = [plan for _, plan in sorted(zip(numbers, rows, strict=True), key=lambda one: one[0])]
    smallest, largest = page("smallest"), page("largest")
    assert (plans(smallest), plans(largest), plans(page(""))) == (rising, rising[::-1], rows)
    assert (as_drawn(smallest), as_drawn(largest)) == (True, True)
    planted = smallest[: smallest.index("<tbody>")] + largest[largest.index("<tbody>") :]
    assert not as_drawn(planted)  # the twin: the bars of one order above the rows of the other
    assert re.findall(r'<th scope="col"[^>]*><bdi>([^<]*)</bdi>', smallest) == ["Plan of the visit", "Visits"]
    assert ("Target (5)" in smallest, "2·e^ε and 3·δ" in smallest) == (True, True)
    assert "each person or other unit (column person)" in smallest
