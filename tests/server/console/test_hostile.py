"""Texts that try to be more than texts: names of columns, listed values, labels, questions, names of people."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.catalog.dictionary import Dictionary, Texts
from lapwing.catalog.toml import write
from lapwing.server.console import templates
from lapwing.server.console.forms import FIELD
from lapwing.server.service import Service
from tests.support.server.browsing import PASSWORD, Shown, Visitor, visitor
from tests.support.server.world import PEOPLE, QUICK, World, serving

SCRIPT: Final = "<script>alert(1)</script>"
QUOTES: Final = "\"'><img src=x onerror=alert(1)>{{ 7*7 }}"
TURNED: Final = "\u202egnp.exe \u0645\u0631\u062d\u0628\u0627"
ARABIC: Final = "\u0645\u0631\u062d\u0628\u0627"
LONG: Final = "x" * 60_000
LABEL: Final = "</bdi><b>label"
NOUN: Final = "<i>patient</i><script>alert(2)</script>"
NAMES: Final = (SCRIPT, QUOTES, TURNED)
COLUMNS: Final = ", ".join('"' + name.replace('"', '""') + '"' for name in NAMES)


FACTOR: Final = "/console/account/second-factor"
ACCESS: Final = "/console/data/visits/access"
CURATED: Final = (
    "/console/people", "/console/people/alice", "/console/audit", "/console/health", ACCESS, "/console/sign-ins",
    "/console/data/visits/cap", "/console/questions?everybody=1", "/console/teams", "/console/accounts",
    "/console/data/visits/catalog", "/console/data/visits/versions",
    "/console/data/visits/failures",
    "/console/data/visits/ledger", "/console/data/visits/charges", "/console/data/visits/budget",
)  # fmt: skip

BUILT: Final = {
    "table": "visits", "table_was": "visits", "write": "1", "m0": "share", "m0_column": QUOTES, "m0_was": QUOTES,
    "m0_value": SCRIPT, "m0_name": SCRIPT, "m0_named": f"share {QUOTES}", "m1": SCRIPT, "m1_column": QUOTES,
    "k0": SCRIPT, "k0_was": SCRIPT, "k0_step": QUOTES, "k0_name": QUOTES, "w0": QUOTES, "w0_was": QUOTES,
    "w0_is": SCRIPT, "w0_value": SCRIPT, "w1": SCRIPT, "w1_was": SCRIPT, "w1_value": QUOTES, "sort": QUOTES,
    "order": SCRIPT, "top": QUOTES,
}  # fmt: skip
"""What somebody may send to the query builder."""
PICKED: Final = {
    "table": "visits", "table_was": "visits", "write": "1", "m0": "rows", "w0": SCRIPT, "w0_was": SCRIPT, "w0_is": "=",
    "w0_value": QUOTES,
}  # fmt: skip
"""A column and a value that have a title and a label."""


class Tags(HTMLParser):
    """Gathers the elements and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag if tag != "script" or any(name == "src" for name, _ in attributes) else "inline script")
        self.tags += [name for name, _ in attributes if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("hostile")
    file = folder / "visits.parquet"
    people = list(range(60))
    columns: dict[str, list[object]] = {name: [NAMES[n % 3] for n in people] for name in NAMES}
    pq.write_table(pa.table({"person": people, **columns}), file)
    session = lw.protect(
        file,
        privacy_unit="person",
        epsilon=100,
        delta=1e-3,
        max_rows_per_unit=1,
        domains={name: list(NAMES) for name in NAMES},
    )
    session = described(session)
    service = Service(folder / "people.db", [session], QUICK)
    for name, role in PEOPLE.items():
        service.people.add(name, role, PASSWORD, by="carol")
    view = session.budget()
    service.policies.grant(session.catalog.name, "alice", None, view.spending, view.total, view.delta_keys, by="carol")
    with serving(service) as world:
        yield world


def described(session: lw.Session) -> lw.Session:
    """Open a data set again by a catalog in which every text of the data dictionary is hostile."""
    said: dict[str, Any] = {"title": SCRIPT, "description": f"{QUOTES}\n{SCRIPT}", "provenance": QUOTES}
    background: dict[str, Any] = {"owner": SCRIPT, "licence": QUOTES, "contact": f"javascript:{SCRIPT}"}
    labels = tuple((name, f"{name} {LABEL}") for name in (SCRIPT, QUOTES))
    texts = Texts(**said, **background)
    entries: dict[tuple[str, ...], Texts] = {("visits",): replace(texts, unit_title=NOUN)}
    entries |= {("visits", name): Texts(**said, unit=SCRIPT, labels=labels) for name in NAMES}
    catalog = replace(session.catalog, dictionary=Dictionary.of(entries, texts))
    session.close()
    file = catalog.folder / "hostile.toml"
    write(catalog, file)
    return lw.connect(file)


@pytest.fixture(scope="module")
def alice(hostile: World) -> Visitor:
    return visitor(hostile, "alice")


def priced(alice: Visitor, sql: str, label: str) -> Shown:
    typed = {"sql": sql, "by": "epsilon", "epsilon": "1", "label": label}
    return alice.submit(alice.go("/console/data/visits/ask"), "/ask", **typed)


def bought(alice: Visitor, sql: str, label: str) -> Shown:
    page = priced(alice, sql, label)
    shown = alice.submit(page, "/ask/answer")
    assert shown.path.startswith("/console/answers/"), shown.text[:500]
    return shown


def pages(alice: Visitor) -> Mapping[str, Shown]:
    """Return every page that has a hostile text to show."""
    one = bought(alice, f"SELECT {COLUMNS.split(', ')[0]}, COUNT(*) AS n FROM visits GROUP BY 1", SCRIPT)
    two = bought(
        alice, f'SELECT {COLUMNS}, COUNT(*) AS {COLUMNS.split(", ")[1][:-1]}n" FROM visits GROUP BY {COLUMNS}', QUOTES
    )
    long = bought(alice, f'SELECT COUNT(*) AS "{LONG}" FROM visits', ARABIC)
    asked = {"sql": f"SELECT {SCRIPT}", "by": "epsilon", "epsilon": SCRIPT, "label": QUOTES}
    form = alice.go("/console/data/visits/ask")
    carol = visitor(alice.world, "carol")
    carol.post("/console/people/alice/token", {FIELD: carol.secret(), "label": SCRIPT, "days": "1"})
    ends = (
        "",
        "/ask",
        "/ask?tab=build",
        "/ask?tab=build&sql=%3Cscript%3E",
        "/history",
        "/charges",
        "/budget",
        "/guarantee",
        "/saved",
        "/dashboards",
        "/batch?sql=%3Cscript%3E",
    )
    paths = [f"/console/data/visits{end}" for end in ends]
    queued = {"sql": f"SELECT {SCRIPT}", "epsilon": "1", "label": QUOTES, "queue": "1"}
    kept = {**form.form("/ask").fields, "sql": f"SELECT {SCRIPT}", "title": QUOTES, "epsilon": "1"}
    saved = alice.post("/console/data/visits/saved", kept)
    answer = one.path.partition("?")[0]
    added = {
        FIELD: alice.secret(),
        "answer": answer.rpartition("/")[2],
        "title": SCRIPT,
        "name": QUOTES,
        "column": SCRIPT,
    }
    board = alice.post("/console/data/visits/dashboards/add", added)
    typed = "chosen=1&k0=1&key=%22%3E%3Cscript%3E&holds=%22%3E%3Cscript%3E&above=%3Cscript%3E&first=%22%3E&sort=%3Cb%3E"
    batch = alice.go("/console/data/visits/batch")
    both = {"sql": f'SELECT {SCRIPT}; SELECT COUNT(*) AS "{SCRIPT}" FROM visits', "epsilon": "1", "label": QUOTES}
    counts = alice.submit(batch, "/batch", **both | {"sql": both["sql"].partition(";")[2]})
    return {
        "saved": saved, "board": board, "rearranged": alice.go(f"{answer}/rearranged?{typed}"),
        "difference": alice.go(f"{answer}/difference?other={answer.rpartition('/')[2]}"),
        "other": alice.go(f"{answer}/difference?other=%22%3E%3Cscript%3E"),
        "batch": alice.submit(batch, "/batch", **both), "bought": alice.submit(counts, "/batch/answers"),
        **{path: alice.go(path) for path in paths},
        "one": one, "two": two, "long": long,
        "refused": alice.submit(form, "/ask", **asked),
        "preview": alice.post("/console/data/visits/ask/preview", {**form.form("/ask").fields, **asked}),
        "built": alice.post("/console/data/visits/ask/build", {**form.form("/ask").fields, **BUILT}),
        "picked": alice.post("/console/data/visits/ask/build", {**form.form("/ask").fields, **PICKED}),
        **{path: carol.go(path) for path in CURATED},
        "token": carol.post("/console/people/alice/token", {FIELD: carol.secret(), "label": SCRIPT, "days": "1"}),
        "grant": carol.post(f"{ACCESS}/grant", {FIELD: carol.secret(), "name": SCRIPT, "share": QUOTES}),
        "add": carol.post("/console/people", {FIELD: carol.secret(), "name": QUOTES, "team": SCRIPT, "role": SCRIPT}),
        "about": carol.go("/console/audit?about=%3Cscript%3Ealert(1)%3C%2Fscript%3E"),
        "from": carol.go("/console/audit?from=%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E"),
        "to": alice.go("/console/data/visits/charges?to=%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E"),
        **{
            f"{path} searched": who.go(f"{path}?q=%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E{{{{7*7}}}}")
            for who, path in (
                *((alice, f"/console/data/visits/{end}") for end in ("history", "charges", "saved", "dashboards")),
                *((carol, f"/console{end}") for end in ("", "/people", "/teams", "/accounts", "/questions")),
            )
        },
        "account": alice.go("/console/account"),
        "wrong factor": alice.post(FACTOR, {FIELD: alice.secret(), "password": SCRIPT}),
        "factor": alice.post(FACTOR, {FIELD: alice.secret(), "password": PASSWORD}),
        "wrong code": alice.post(f"{FACTOR}/confirm", {FIELD: alice.secret(), "code": SCRIPT}),
        "queued": alice.post("/console/data/visits/ask/answer", {**form.form("/ask").fields, **queued}),
        "queue": alice.go("/console/questions"),
        "cap": carol.post("/console/data/visits/cap", {FIELD: carol.secret(), "epsilon": SCRIPT, "delta": QUOTES}),
        "check": carol.post("/console/register/check", {FIELD: carol.secret(), "text": SCRIPT, "folder": QUOTES}),
        "missing": alice.go("/console/data/%3Cscript%3Ealert(1)%3C%2Fscript%3E"),
        "sign in": Visitor(alice.world).sign_in(SCRIPT[:60], SCRIPT),
        "next": Visitor(alice.world).go("/console/sign-in?next=%22%3E%3Cscript%3E"),
        "chart": alice.go(f"{one.path.partition('?')[0]}/file.svg"),
    }  # fmt: skip


def broken(shown: Mapping[str, Shown]) -> list[str]:
    """Return the pages in which a text has become more than a text, or takes more room than it may."""
    found = []
    for name, page in shown.items():
        tags = Tags()
        tags.feed(page.content.decode())
        images = tags.tags.count("img")
        if "inline script" in tags.tags or images > 1 or any(tag.startswith("on") for tag in tags.tags):
            found.append(f"{name}: markup")
        most = 500_000 if name == "long" else 150_000
        if len(page.content) > most:
            found.append(f"{name}: {len(page.content):,} bytes")
    return found


def test_texts_stay_texts(alice: Visitor) -> None:
    shown = pages(alice)
    assert {name: page.status for name, page in shown.items() if page.status not in (200, 401, 403, 404, 422)} == {}
    assert broken(shown) == []
    assert SCRIPT in text_of(shown["one"])
    assert SCRIPT in text_of(shown["/console/data/visits"])
    assert SCRIPT in text_of(shown["refused"])
    assert SCRIPT in text_of(shown["token"])
    for name in ("one", "/console/data/visits", "/console/data/visits/ask", "chart", "rearranged", "picked"):
        assert LABEL in text_of(shown[name]), name
    assert SCRIPT in text_of(shown["built"])
    for name in ("/console/data/visits", "/console/data/visits/guarantee"):
        assert NOUN in text_of(shown[name]), name


def text_of(shown: Shown) -> str:
    tags = Tags()
    tags.feed(shown.content.decode())
    return tags.text


@pytest.mark.long
def test_a_long_name_is_shortened(alice: Visitor) -> None:
    shown = bought(alice, f'SELECT COUNT(*) AS "{LONG}" FROM visits', "")
    assert "… (60,000 characters)" in shown.text
    assert len(shown.content) < 150_000


def test_texts_from_right_to_left_turn_nothing_around_them(alice: Visitor) -> None:
    """Each stands in an element of its own that keeps its direction inside."""
    bought(alice, "SELECT COUNT(*) AS n FROM visits", ARABIC)
    shown = alice.go("/console/data/visits/history").content.decode()
    assert ARABIC in shown
    for part in shown.split(ARABIC)[:-1]:
        before = part[-200:]
        assert before.rfind("<bdi>") > before.rfind("</bdi>") or 'dir="' in before


def test_markup_that_is_not_escaped_is_found(hostile: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: templates that escape nothing."""
    planted = templates.Templates()
    planted._environment.autoescape = False

    def render(_: object, name: str, /, **facts: object) -> str:
        return planted._environment.get_template(name).render(facts)

    monkeypatch.setattr(templates.Templates, "render", render)
    alice = visitor(hostile, "alice")
    assert broken({"refused": priced(alice, f"SELECT {SCRIPT}", ""), "tables": alice.go("/console/data/visits")})
