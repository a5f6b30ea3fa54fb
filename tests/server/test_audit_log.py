"""The audit log lacks nothing unnoticed: no line at its end, and no line about what was done elsewhere."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lapwing import server
from lapwing.documents.audit_words import act_in_words, details_in_words
from lapwing.errors import Fault, LedgerFault
from lapwing.ledger.mark import path_of
from lapwing.server.audit_mark import AuditMark, base_of
from lapwing.server.log import open_log
from lapwing.server.people import People
from lapwing.server.store import ServiceStore
from lapwing.server.store_places import open_store
from lapwing.session import Session
from tests.server.test_logs import logged
from tests.support.cli.command import Run
from tests.support.effort import only
from tests.support.server.world import World, on_both


def people_in(store: ServiceStore, number: int) -> None:
    """Write so many lines, and one about the first curator."""
    people = People(store)
    people.add("carol", "curator", None, by="carol")
    for place in range(number):
        people.add(f"n{place}", "analyst", None, by="carol")


def cut(store: ServiceStore, after: int) -> None:
    """Take lines from the end."""
    with store.transaction() as connection:
        connection.execute("DELETE FROM audit WHERE sequence > ?", (after,))


@on_both
def test_lines_that_are_taken_from_the_end_are_noticed(people: str, tmp_path: Path) -> None:
    store = open_store(people)
    people_in(store, 4)
    base = base_of(people, tmp_path)
    mark = AuditMark(store, base)
    mark.look()
    open_log()
    assert (mark.verify().sequence, path_of(base).stat().st_mode & 0o777) == (5, 0o600)
    cut(store, 3)
    with logged() as lines:
        mark.look()
        mark.look()
    assert [(line["event"], line["had"], line["has"]) for line in map(json.loads, lines)] == [
        ("audit log lacks lines", 5, 3)
    ]
    with pytest.raises(Fault, match="lacks lines"):
        mark.verify()
    for place in range(4):  # it grows beyond where it was: what is missing stays missing
        People(store).add(f"m{place}", "analyst", None, by="carol")
    mark.look()
    with pytest.raises(Fault, match="lacks lines"):
        AuditMark(store, base).verify()
    had = mark.accept("root")
    assert had is not None
    assert had.sequence == 5
    assert mark.verify().sequence == 8
    assert mark.accept("root") is None
    with store.reading() as connection:
        row = connection.execute("SELECT actor, act, details FROM audit ORDER BY sequence DESC").fetchone()
    assert (row[0], row[1], json.loads(row[2])) == ("root", "audit log put back", {"had": 5, "hash": had.hash})
    store.close()


def test_a_chain_alone_does_not_notice_it(people: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: no mark."""
    store = open_store(people)
    people_in(store, 4)
    mark = AuditMark(store, base_of(people, tmp_path))
    monkeypatch.setattr(AuditMark, "_advance", lambda *_: None)
    mark.look()
    cut(store, 3)
    assert mark.verify().sequence == 3
    store.close()


def test_a_line_that_was_edited_is_noticed(people: str, tmp_path: Path) -> None:
    store = open_store(people)
    people_in(store, 4)
    with store.transaction() as connection:
        connection.execute("UPDATE audit SET subject = 'somebody' WHERE sequence = 2")
    with pytest.raises(Fault, match="line 2 was changed, or a line before"):
        AuditMark(store, base_of(people, tmp_path)).verify()
    store.close()


def test_the_service_keeps_the_mark(world: World) -> None:
    world.ask("PUT", "/v1/datasets/open/stop", "carol", {"stopped": True})
    log = world.ask("GET", "/v1/audit", "audrey").content.splitlines()
    world.service.audit_mark.look()
    assert world.service.audit_mark.verify().sequence == len(log)


def test_a_mark_that_cannot_be_written_is_logged_once(people: str, tmp_path: Path) -> None:
    store = open_store(people)
    people_in(store, 1)
    mark = AuditMark(store, tmp_path / "nowhere" / "people.db")
    open_log()
    with logged() as lines:
        mark.look()
        mark.look()
    assert [json.loads(line)["event"] for line in lines] == ["audit mark not written"]
    store.close()


ACTS: Any = (
    ("POST", "/v1/datasets/open/accept", None, "accept_data", "acceptance of data begun"),
    ("POST", "/v1/datasets/open/resume", None, "resume", "resume begun"),
    ("PUT", "/v1/datasets/open/closed", {"closed": True}, "close_for_ever", "closing for ever begun"),
    ("PUT", "/v1/datasets/open/cap", {"was": {"epsilon": 100, "delta": 1e-3}, "epsilon": 101, "delta": 1e-3,
     "confirmed": True}, "raise_budget", "budget raise begun"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "body", "does", "act"), only([0], ACTS, many=True), ids=lambda value: str(value)[:30]
)
def test_what_is_done_in_a_ledger_has_a_line_before_it_is_begun(
    world: World, monkeypatch: pytest.MonkeyPatch, method: str, path: str, body: Any, does: str, act: str
) -> None:
    seen: list[str] = []
    doing = getattr(Session, does)

    def looking(self: Session, *arguments: Any, **more: Any) -> Any:
        seen.append(json.loads(world.ask("GET", "/v1/audit", "audrey").content.splitlines()[-1])["act"])
        doing(self, *arguments, **more)
        raise LedgerFault("Killed before the second line.")

    monkeypatch.setattr(Session, does, looking)
    assert world.ask(method, path, "carol", body).status == 503
    assert seen == [act]
    line = json.loads(world.ask("GET", "/v1/audit", "audrey").content.splitlines()[-1])
    assert (line["actor"], line["act"], line["subject"]) == ("carol", act, "open")


# ---- On the command line ----


@pytest.mark.long
def test_on_the_command_line(world: World, tmp_path: Path, run: Run) -> None:
    place = world.service.store.name
    world.service.audit_mark.look()
    verified = run("audit-log", "verify", "--people", place)
    assert verified.status == 0, verified.err
    assert "an unbroken chain up to its mark" in verified.out
    catalog = str(tmp_path / "open" / "lapwing.toml")
    export = tmp_path / "audit.jsonl"
    export.write_bytes(world.ask("GET", "/v1/audit", "audrey").content)
    assert run("audit-log", "verify", "--file", str(export)).status == 0
    export.write_bytes(b"".join(export.read_bytes().splitlines(keepends=True)[1:]))
    assert run("audit-log", "verify", "--file", str(export)).status == 6
    assert run("audit-log", "verify", "--file", catalog).status == 2
    assert run("audit-log", "accept", "--people", place).out.endswith("nothing is missing.\n")
    cut(world.service.store, 3)
    assert "lacks lines" in run("audit-log", "verify", "--people", place).err
    assert "accepted as it is" in run("audit-log", "accept", "--people", place).out
    assert run("audit-log", "verify", "--people", place).status == 0
    assert run("audit-log", "verify", "--people", str(tmp_path / "none.db")).status == 2


def test_each_act_of_the_log_reads_plainly() -> None:
    """Acts are found in the source, so that a new one has to be worded."""
    calls = re.compile(r"""(?:\bnote|_note_begun)\([^"']*?"([a-z ]+)",|act = "([a-z ]+)" if \w+ else "([a-z ]+)\"""")
    source = "\n".join(path.read_text() for path in sorted(Path(server.__file__).parent.rglob("*.py")))
    acts = {act for found in calls.finditer(source) for act in found.groups() if act}
    assert {"answer shared no more", "closing for ever begun", "catalog change begun", "grant made"} <= acts
    house = re.compile(r"\b(begun|made|bound|for ever|no more|answer|question|looked|put)\b")
    assert [shown for act in sorted(acts) if house.search(shown := act_in_words({"act": act, "details": {}}))] == []


def test_details_of_the_log_are_words() -> None:
    request = {"dataset": "visits", "kind": "budget", "share": "1/5"}
    assert details_in_words({"act": "request made", "details": request}) == (
        "data set visits, for a larger limit, limit 20 %"
    )
    assert details_in_words({"act": "catalog changed", "details": {"number": 2}}) == "version 2"
