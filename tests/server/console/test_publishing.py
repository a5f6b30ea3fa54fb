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
    assert f'<iframe src="{address}" title="Visits &lt;b&gt;by plan&lt;/b&gt;"' in made.text
    nobody = Visitor(place)
    page = nobody.go("/published/" + address.rpartition("/")[2])
    assert (page.status, page.cookies, nobody.cookies) == (200, (), {})
    assert "Visits <b>by plan</b>" in page.text
    listed = alice.go("/console/data/open/published")
    assert address.rpartition("/")[2] not in listed.content.decode()  # it was shown once
    (file,) = [link for link in listed.page.links if link.endswith("/file.html")]
    assert alice.go(file).content == page.content
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
