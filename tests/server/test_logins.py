"""Failed logins are written down, strangers fill no disk by them, and common passwords are refused."""

import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from lapwing.errors import InvalidParameter
from lapwing.server import failed_logins, passwords
from lapwing.server.failed_logins import AT_ONCE, PAUSE, FailedLogins
from lapwing.server.passwords import require_good
from tests.server.test_logs import logged
from tests.support.server.world import World, on_both

GOOD: Final = "a heron eats two eels"


def audit(world: World) -> list[dict[str, Any]]:
    log = [json.loads(line) for line in world.ask("GET", "/v1/audit", "audrey").content.splitlines()]
    return [line for line in log if line["act"] == "login failed"]


@on_both
def test_a_failed_login_is_in_the_log_and_in_the_audit_log(world: World) -> None:
    world.service.people.change("alice", password=GOOD, by="carol")
    secret = world.service.people.login("alice", GOOD, None, "", 60)[0]
    world.tokens["alice"] = secret
    with logged() as lines:
        for name in ("alice", "mallory", "Alice", "a heron eats two eels"):
            assert world.ask("POST", "/v1/login", body={"name": name, "password": "not the password"}).status == 401
        wrong = {"password": "not the password", "new_password": "another heron eats"}
        assert world.ask("POST", "/v1/me/password", "alice", wrong).status == 403
        assert world.ask("POST", "/v1/login", body={"name": "alice", "password": GOOD}).status == 200
    unknown = "(a name of nobody, 21 characters long)"  # which is alice's password in the wrong field
    shown = ["alice", "mallory", "Alice", unknown, "alice"]
    told = [json.loads(line) for line in lines]
    failed = [(line["person"], line["address"]) for line in told if line["event"] == "login failed"]
    assert failed == [(name, "127.0.0.1") for name in shown]
    noted = [(line["actor"], line["subject"], line["details"]) for line in audit(world)]
    assert noted == [
        *(("(nobody)", name, {"address": "127.0.0.1"}) for name in shown[:-1]),
        ("alice", "alice", {"address": "127.0.0.1"}),
    ]
    assert "lapwing_failed_logins_total 5" in world.ask("GET", "/metrics", "audrey").content.decode()
    assert GOOD not in "".join([*lines, *map(str, noted)])


def flood(world: World, seconds: float) -> list[dict[str, Any]]:
    """Let strangers guess ten times a second, and now and then alice's; return the lines of the audit log."""
    clock = [0.0]
    failures = FailedLogins(world.service.store, world.service.metrics, clock=lambda: clock[0])
    for turn in range(int(10 * seconds)):
        clock[0] += 0.1
        name = "alice" if turn % 10 == 3 else f"n{turn}"
        failures.note(name, "192.0.2.7" if turn % 10 == 3 else f"198.51.100.{turn % 200}")
    return audit(world)


@pytest.mark.long
def test_strangers_cannot_fill_the_audit_log_and_are_counted_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = flood(world, 2 * PAUSE)
    assert AT_ONCE <= len(lines) <= AT_ONCE + 2
    aimed = [line["details"] for line in lines if "more" in line["details"]]
    assert aimed[0]["most"][0][:2] == ["192.0.2.7", "alice"]
    assert all(len(json.dumps(line)) < 1_000 for line in lines)
    assert len(lines) + sum(one["more"] for one in aimed) <= 20 * PAUSE
    assert len(lines) + sum(one["more"] for one in aimed) > 9 * PAUSE  # all until the last line that was written
    monkeypatch.setattr(failed_logins, "PAUSE", 0.01)  # planted: there is always room
    assert len(flood(world, 30)) > 300


def test_what_is_remembered_of_a_flood_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_logins, "MOST_KINDS", 10)
    monkeypatch.setattr(failed_logins, "log", lambda *_, **__: None)
    failures = FailedLogins(world.service.store, world.service.metrics, clock=lambda: 0.0)
    for turn in range(AT_ONCE + 100):
        failures.note(f"n{turn}", "192.0.2.7")
    assert len(failures._untold) == 11
    assert sum(failures._untold.values()) == 100


# ---- Passwords ----

COMMON: Final = (
    "123456789012", "314159265358", "Password1234", "P@ssw0rd2026!", "qwerty123456", "abcd12345678", "1qaz2wsx3edc",
    "1q2w3e4r5t6y", "aaaaaaaaaaaa", "abcabcabcabc", "passwordpassword", "monkeymonkey1", "administrator",
    "Welcome12345", "iloveyou1234", "Lapwing2026!", "Summer2026!!", "pass word 1234", "12345678password",
    "letmein!letmein!", "alice1234567", "ALICE.alice.1", "x" * 1000, "0987654321qwertyuiop",
)  # fmt: skip
UNCOMMON: Final = (
    GOOD, "correct horse battery", "xK9#mQ2$vL7x", "my dog rover 7", "alice likes 12 cats", "27182818284590452353",
    "password of my aunt", "Ω≈ç√∫˜µ≤≥÷åß", "another password",
)  # fmt: skip


@pytest.mark.parametrize("password", COMMON, ids=lambda password: password[:20])
def test_a_common_password_is_refused(password: str) -> None:
    with pytest.raises(InvalidParameter, match="easy to guess") as refused:
        require_good(password, "alice")
    assert password not in str(refused.value)


@pytest.mark.parametrize("password", UNCOMMON)
def test_another_one_is_not(password: str) -> None:
    require_good(password, "alice")


def test_words_that_are_left_out_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: no list of words."""
    monkeypatch.setattr(passwords, "WORDS", frozenset())
    require_good("Password1234", "alice")


CHOICES: Final[tuple[Callable[[World, str], tuple[str, str, str, object]], ...]] = (
    lambda _, password: ("POST", "/v1/people", "carol", {"name": "dora", "role": "analyst", "password": password}),
    lambda _, password: ("PATCH", "/v1/people/alice", "carol", {"password": password}),
    lambda _, password: ("POST", "/v1/me/password", "alice", {"password": GOOD, "new_password": password}),
)


def test_common_passwords_are_refused_wherever_one_is_chosen(world: World) -> None:
    world.service.people.change("alice", password=GOOD, by="carol")
    world.tokens["alice"] = world.service.people.login("alice", GOOD, None, "", 60)[0]
    for choice in CHOICES:
        reply = world.ask(*choice(world, "Password1234"))
        assert (reply.status, reply.document["code"]) == (422, "invalid_parameter")
        assert "easy to guess" in reply.document["detail"]
