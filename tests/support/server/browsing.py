"""A browser without scripts: cookies, links and forms, as the console's pages have them."""

import http.client
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urlencode, urlsplit

from lapwing.server.console.forms import FIELD
from tests.support.server.world import World

PASSWORD: Final = "green boats over the slow hill"


@dataclass(slots=True)
class Form:
    """A form of a page: where it goes, and what it sends unless somebody types."""

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)


class Reader(HTMLParser):
    """Reads forms, links, texts, and whatever a strict policy forbids."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.links: list[str] = []
        self.forbidden: list[str] = []
        self.text = ""
        self._area: str | None = None
        self._choice: str | None = None

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attributes}
        self.forbidden += [f"{tag} {name}" for name in named if name == "style" or name.startswith("on")]
        source = named.get("src", "") or (named.get("href", "") if tag in ("link", "image", "use") else "")
        if (tag == "script" and "src" not in named) or tag in ("style", "iframe", "object", "embed", "base", "meta-x"):
            self.forbidden.append(tag)
        if source and not source.startswith("/console/static/"):
            self.forbidden.append(f"{tag} {source}")
        if tag == "form":
            self.forms.append(Form(named.get("action", ""), named.get("method", "get")))
        elif self.forms and "name" in named:
            fields = self.forms[-1].fields
            if tag == "input" and (named.get("type") not in ("radio", "checkbox") or "checked" in named):
                fields[named["name"]] = named.get("value", "on" if named.get("type") == "checkbox" else "")
            if tag == "textarea":
                fields[named["name"]], self._area = "", named["name"]
            if tag == "select":
                self._choice = named["name"]
        if tag == "option" and self._choice and ("selected" in named or self._choice not in self.forms[-1].fields):
            self.forms[-1].fields[self._choice] = named.get("value", "")
        if tag == "a" and "href" in named:
            self.links.append(named["href"])

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._area is not None:
            fields = self.forms[-1].fields
            fields[self._area] = fields[self._area].removeprefix("\n")
            self._area = None
        if tag == "select":
            self._choice = None

    def handle_data(self, data: str) -> None:
        if self._area is not None:
            self.forms[-1].fields[self._area] += data
        self.text += data.replace("\xa0", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a request was answered: `path` is where it ended after redirects."""

    status: int
    path: str
    headers: Mapping[str, str]
    cookies: tuple[str, ...]
    content: bytes

    @property
    def page(self) -> Reader:
        reader = Reader()
        reader.feed(self.content.decode())
        return reader

    @property
    def text(self) -> str:
        return " ".join(self.page.text.split())

    def form(self, action: str) -> Form:
        """Return the form that goes somewhere."""
        (form,) = [form for form in self.page.forms if form.action.endswith(action)][:1]
        return form


@dataclass(slots=True)
class Visitor:
    """Somebody at a browser."""

    world: World
    cookies: dict[str, str] = field(default_factory=dict)

    def go(self, path: str, *, follow: bool = True, **headers: str) -> Shown:
        return self._sent("GET", path, None, headers, follow=follow)

    def post(self, path: str, fields: Mapping[str, str], *, follow: bool = True, **headers: str) -> Shown:
        return self._sent("POST", path, urlencode(fields).encode(), headers, follow=follow)

    def submit(self, page: Shown, action: str, **typed: str) -> Shown:
        """Fill in a form of a page, and send it."""
        form = page.form(action)
        return self.post(form.action, {**form.fields, **typed})

    def sign_in(self, name: str, password: str = PASSWORD, path: str = "/console/sign-in") -> Shown:
        return self.submit(self.go(path), "/console/sign-in", name=name, password=password)

    def secret(self) -> str:
        """Return what forms of this session bear."""
        return self.go("/console").form("/console/sign-out").fields[FIELD]

    def _sent(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str], *, follow: bool
    ) -> Shown:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if content is not None:
            sent.setdefault("Content-Type", "application/x-www-form-urlencoded")
        if self.cookies:
            sent.setdefault("Cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
        connection = http.client.HTTPConnection(urlsplit(self.world.address).netloc, timeout=60)
        try:
            connection.request(method, path, content, sent)
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        cookies = tuple(response.headers.get_all("set-cookie") or ())
        for cookie in cookies:
            name, _, value = cookie.partition(";")[0].partition("=")
            if "Max-Age=0" in cookie:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        where = response.headers.get("location", "")
        if follow and response.status == 303:
            return self._sent("GET", where, None, {}, follow=True)
        return Shown(
            status=response.status,
            path=where if response.status == 303 else path,
            headers={name.lower(): value for name, value in response.headers.items()},
            cookies=cookies,
            content=answer,
        )


def bars_in(page: Shown) -> int:
    """Return how many bars the charts of a page have; each chart is drawn wide and narrow, with the same bars."""
    wide, *narrow = (page.content.count(b'class="in-%s"' % name) for name in (b"wide", b"narrow"))
    assert [wide] == narrow
    bars = page.content.count(b'class="bar-1"')
    assert bars % 2 == 0
    return bars // 2


def visitor(world: World, name: str) -> Visitor:
    """Return somebody who is signed in."""
    known = Visitor(world)
    assert known.sign_in(name).status == 200
    assert known.cookies
    return known
