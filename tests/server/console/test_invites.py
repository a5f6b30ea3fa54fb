"""People come in by a link: a curator adds them with a grant, and they choose a password."""

import re

import pytest

from lapwing.server.console.forms import form_of
from lapwing.server.console.sign_in import SignInPages
from tests.support.server.browsing import PASSWORD, Shown, Visitor, visitor
from tests.support.server.world import World

LINK = re.compile(r"http://127\.0\.0\.1:\d+(/console/invite)#(lapwing_[\w-]+)")
ADDED = {"name": "emil", "dataset": "open", "share": "20 %", "team": "nurses", "invite": "on"}


def invited(place: World, **more: str) -> tuple[Visitor, str]:
    """Let carol add emil with a grant and an invite; return her, and the token of the link."""
    carol = visitor(place, "carol")
    shown = carol.submit(carol.go("/console/people"), "/console/people", **{**ADDED, **more})
    assert shown.status == 200
    (link,) = LINK.findall(shown.text)
    return carol, link[1]


def test_one_form_adds_grants_and_invites(place: World) -> None:
    carol, token = invited(place)
    assert place.ask("GET", "/v1/datasets/open/grants", "carol").document["people"]["emil"] == "0.2"
    page = carol.go("/console/people/emil")
    assert token not in page.content.decode()  # it was shown once
    assert "The invite link works until" in page.text
    emil = Visitor(place)
    first = emil.go("/console/invite")
    assert first.headers["cache-control"] == "no-store"
    assert first.headers["referrer-policy"] == "same-origin"
    second = emil.submit(first, "/console/invite", token=token)
    assert "Your name in this service is emil" in second.text
    inside = emil.submit(second, "/console/invite", password=PASSWORD, again=PASSWORD)
    assert inside.path == "/console"
    assert "open" in inside.text
    assert Visitor(place).sign_in("emil").path == "/console"
    twice = Visitor(place)
    refused = twice.submit(twice.go("/console/invite"), "/console/invite", token=token)
    assert refused.status == 401
    assert "This invite is not valid" in refused.text
    assert "Invite" not in carol.go("/console/people/emil").page.text


def test_what_was_typed_wrong_can_be_mended(place: World) -> None:
    _, token = invited(place)
    emil = Visitor(place)
    second = emil.submit(emil.go("/console/invite"), "/console/invite", token=f" {token} ")

    def told(password: str, again: str) -> Shown:
        return emil.submit(second, "/console/invite", password=password, again=again)

    different, weak = told(PASSWORD, f"{PASSWORD}!"), told("aaaaaaaaaaaa", "aaaaaaaaaaaa")
    assert (different.status, weak.status) == (422, 422)
    assert "differ" in different.text
    assert PASSWORD not in different.content.decode()
    assert emil.submit(weak, "/console/invite", password=PASSWORD, again=PASSWORD).path == "/console"


def foreign(place: World, token: str) -> int:
    """Send the form of an invite with the secret of another browser."""
    victim, other = Visitor(place), Visitor(place)
    victim.go("/console/invite")
    form = other.go("/console/invite").form("/console/invite").fields
    sent = {**form, "token": token, "password": PASSWORD, "again": PASSWORD}
    return victim.post("/console/invite", sent, follow=False).status


def test_a_form_of_another_browser_is_refused(place: World) -> None:
    _, token = invited(place)
    assert foreign(place, token) == 403
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SignInPages, "own_form", lambda _self, request: form_of(request))
        assert foreign(place, token) == 303  # planted: nobody looks


def test_a_withdrawn_invite_works_no_more(place: World) -> None:
    carol, token = invited(place)
    page = carol.go("/console/people/emil")
    form = page.form("/emil/invite")
    assert "withdrawn" in carol.post("/console/people/emil/withdraw-invite", form.fields).text
    emil = Visitor(place)
    assert emil.submit(emil.go("/console/invite"), "/console/invite", token=token).status == 401


def test_a_refused_grant_adds_nobody_and_stands_at_its_field(place: World) -> None:
    carol = visitor(place, "carol")
    refused = carol.submit(carol.go("/console/people"), "/console/people", **{**ADDED, "share": "150%"})
    assert refused.status == 422
    assert 'aria-invalid="true"' in refused.content.decode()
    assert "emil" not in [person.name for person in place.service.people.all()]


@pytest.mark.parametrize("token", ["", "x" * 300, "<b>'\"&#x202e;", "lapwing_" + "é" * 43, "\ud7ff\U0001f600"])
def test_hostile_tokens_are_answered_alike(place: World, token: str) -> None:
    stranger = Visitor(place)
    told = stranger.submit(stranger.go("/console/invite"), "/console/invite", token=token)
    assert told.status == 401
    assert "<b>" not in told.content.decode()
