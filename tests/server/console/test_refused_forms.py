"""Refused forms: the error stands at its field, the field has the focus, and what was typed is still there."""

from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Final

import pytest

from lapwing.server.console.refused_forms import with_error
from tests.support.server.browsing import PASSWORD, Shown, Visitor, visitor
from tests.support.server.world import World

SECRET: Final = "a typed password that nobody else has"
HOSTILE: Final = "\"'><script>alert(1)</script>"
DATA: Final = "/console/data/open"
# The page, where its form goes, what is typed, and the field at fault.
REFUSED: Final[Mapping[str, tuple[str, str, dict[str, str], str]]] = {
    "a name that is taken": ("/console/people", "/console/people", {"name": "alice", "team": "new"}, "name"),
    "a name with a space": ("/console/people", "/console/people", {"name": "a b", "password": SECRET}, "name"),
    "a short password": ("/console/people", "/console/people", {"name": "zoe", "password": "short"}, "password"),
    "a bad team": ("/console/people", "/console/people", {"name": "zoe", "team": "a b"}, "team"),
    "another password": ("/console/people/bob", "/console/people/bob", {"password": "short"}, "password"),
    "a token for no day": ("/console/people/bob", "/bob/token", {"label": "x", "days": "0", "read": "on"}, "days"),
    "a token with rights": ("/console/people/bob", "/bob/token", {"label": "x", "days": "3", "admin": "on"}, "read"),
    "an account's days": ("/console/accounts", "/console/accounts", {"name": "n1", "days": "900"}, "days"),
    "an account's owner": ("/console/accounts", "/console/accounts", {"name": "n1", "owner": "nobody"}, "owner"),
    "a team's name": ("/console/teams", "/console/teams", {"name": "-"}, "name"),
    "a grant to nobody": (f"{DATA}/access", "/access/grant", {"name": "nobody", "share": "20 %"}, "name"),
    "a share": (f"{DATA}/access", "/access/grant", {"name": "bob", "share": "120 %"}, "share"),
    "a share with two commas": (f"{DATA}/access", "/access/grant", {"name": "bob", "share": "1,234"}, "share"),
    "a least share": (f"{DATA}/access", "/access/policy", {"least_share": "x %"}, "least_share"),
    "a most epsilon": (f"{DATA}/access", "/access/policy", {"most_epsilon": "much"}, "most_epsilon"),
    "a default cost": (f"{DATA}/access", "/access/default-cost", {"name": "bob", "epsilon": "much"}, "epsilon"),
    "one's default cost": (f"{DATA}/budget", "/budget/default-cost", {"daily_share": "150%"}, "daily_share"),
    "a budget": (f"{DATA}/cap", "/cap", {"epsilon": "much"}, "epsilon"),
    "the name to close": (f"{DATA}/cap", "/cap/close", {"name": "other"}, "name"),
    "one's password": (
        "/console/account", "/account/password",
        {"password": SECRET, "new_password": SECRET, "again": SECRET}, "password",
    ),
    "a new password": (
        "/console/account", "/account/password",
        {"password": PASSWORD, "new_password": "x", "again": "x"}, "new_password",
    ),
    "the password again": (
        "/console/account", "/account/password", {"password": PASSWORD, "new_password": SECRET, "again": "x"}, "again",
    ),
    "a second factor": ("/console/account/second-factor", "/second-factor", {"password": SECRET}, "password"),
    "a dashboard's name": (f"{DATA}/dashboards", "/dashboards/add", {"name": "x" * 300}, "name"),
}  # fmt: skip


class Faults(HTMLParser):
    """Gathers the fields at fault, with the form in which they are, and the texts at them."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: list[dict[str, str]] = []
        self.texts: dict[str, str] = {}
        self._action, self._in = "", ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attributes}
        if tag == "form":
            self._action = named.get("action", "")
        if named.get("class") == "fault":
            self._in = named["id"]
            self.texts[self._in] = ""
        if "aria-invalid" in named:
            self.fields.append({**named, "action": self._action})

    def handle_data(self, data: str) -> None:
        if self._in:
            self.texts[self._in] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "span":
            self._in = ""


def faults(shown: Shown) -> Faults:
    found = Faults()
    found.feed(shown.content.decode())
    return found


@pytest.fixture(scope="module")
def carol(settled: World) -> Visitor:
    return visitor(settled, "carol")


@pytest.mark.parametrize("name", REFUSED)
def test_an_error_stands_at_its_field(carol: Visitor, name: str) -> None:
    path, action, typed, field = REFUSED[name]
    shown = carol.submit(carol.go(path), action, **typed)
    assert 400 <= shown.status < 500
    found = faults(shown)
    (marked,) = found.fields
    assert (marked["name"], marked["action"].endswith(action)) == (field, True)
    assert "autofocus" in marked
    (described, *_) = marked["aria-describedby"].split()
    assert found.texts[described].strip()
    assert shown.content.count(b'role="alert"') == 1
    assert SECRET.encode() not in shown.content
    assert PASSWORD.encode() not in shown.content
    form = shown.form(action)
    kept = {key: value for key, value in typed.items() if "password" not in key and key != "again"}
    assert kept.items() <= form.fields.items()
    assert all(form.fields.get(key, "") == "" for key in typed if "password" in key)


def test_a_wrong_password_of_a_sign_in_stands_at_the_password(settled: World) -> None:
    shown = Visitor(settled).sign_in("alice", SECRET)
    (marked,) = faults(shown).fields
    assert (shown.status, marked["name"]) == (401, "password")
    assert SECRET.encode() not in shown.content
    assert shown.form("/console/sign-in").fields["name"] == "alice"


def test_texts_in_errors_and_fields_stay_texts(carol: Visitor) -> None:
    shown = carol.submit(carol.go("/console/people"), "/console/people", name=HOSTILE, team=HOSTILE)
    assert b"<script>alert" not in shown.content
    assert shown.form("/console/people").fields["name"] == HOSTILE
    page = '<form method="post" action="/a"><input name="x"></form>'
    marked = with_error(page, "/a", "x", HOSTILE, {"x": HOSTILE}) or ""
    assert "<script" not in marked
    assert with_error(page, "/b", "x", "no", {}) is None
    assert with_error(page, "/a", "y", "no", {}) is None


def test_a_code_of_a_second_factor_is_not_written() -> None:
    """It may be a recovery code, which is good until somebody uses it; a wrong password beside it refuses the form."""
    page = '<form method="post" action="/a"><input name="x"><input name="code" autocomplete="one-time-code"></form>'
    marked = with_error(page, "/a", "x", "Wrong.", {"x": "typed", "code": SECRET}) or ""
    assert 'value="typed"' in marked
    assert SECRET not in marked


def test_a_page_is_copied_as_it_is() -> None:
    """But for the form that was refused: its select, its choices and its text area have what was typed."""
    page = (
        '<!doctype html>\n<p title="&quot;">a &amp; &#247; b</p><svg><path d="M0 0"/></svg>'
        '<form action="/a" method="get"><input name="x"></form><form method="post" action="/a"><select name="s">'
        '<option value="1" selected>one</option><option value="2">two</option></select>'
        '<textarea name="t" rows="2">\nold &lt;</textarea><input type="radio" name="r" value="1" checked>'
        '<input type="radio" name="r" value="2"><input type="password" name="p"><input name="x"></form><p>end</p>'
    )
    marked = with_error(page, "/a", "t", "Wrong.", {"s": "2", "t": "new <b>", "r": "2", "p": SECRET, "x": "1"}) or ""
    before, after = page.split('<form method="post"')
    assert marked.startswith(before)
    assert marked.endswith("</form><p>end</p>")
    assert '<option value="1">one</option><option value="2" selected="">two</option>' in marked
    assert ">\nnew &lt;b&gt;</textarea><span" in marked
    assert '<input type="radio" name="r" value="1"><input type="radio" name="r" value="2" checked="">' in marked
    assert '<input name="x" value="1">' in marked
    assert SECRET not in marked
    assert "old" in after
    assert "old" not in marked


TWO_FORMS: Final = (
    '<form method="post" action="/a"><input type="hidden" name="s" value="1"><input name="x"><button>a</button></form>'
    '<form method="post" action="/a"><input type="hidden" name="s" value="1"><input name="x"><input name="y"></form>'
    '<form method="post" action="/a"><input type="hidden" name="s" value="1"><input type="hidden" name="of" value="b">'
    '<input name="x"><button name="what" value="end">b</button></form>'
    '<form method="post" action="/a"><input type="hidden" name="s" value="1"><input type="hidden" name="of" value="c">'
    '<input name="x"></form>'
)


@pytest.mark.parametrize(
    ("sent", "place"),
    [
        ({"x": "typed"}, 0),
        ({"x": "typed", "y": ""}, 1),
        ({"x": "typed", "of": "b"}, 2),
        ({"x": "typed", "of": "b", "what": "end"}, 2),
        ({"x": "typed", "of": "c"}, 3),
        ({"x": "typed", "s": "2"}, 0),
    ],
)
def test_of_several_forms_with_one_action_the_one_that_was_sent_has_the_error(sent: dict[str, str], place: int) -> None:
    marked = with_error(TWO_FORMS, "/a", "x", "Wrong.", {"s": "1", **sent}) or ""
    forms = marked.split("</form>")
    assert [number for number, form in enumerate(forms) if "typed" in form] == [place]
    assert [number for number, form in enumerate(forms) if "Wrong." in form] == [place]
