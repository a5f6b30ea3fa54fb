"""Second factors: the codes of RFC 6238, each once, few guesses, recovery codes; and logging in with them."""

import json
import threading
from base64 import b32encode
from collections.abc import Iterator
from typing import Any, Final

import pytest
from argon2 import PasswordHasher

from lapwing.errors import InvalidParameter, NotAuthorised, SecondFactorNeeded, TooManyRequests
from lapwing.server import credentials, second_factors
from lapwing.server.one_time_codes import STEP, code_at, kept_of, new_recovery_code, new_secret, step_of
from lapwing.server.second_factors import FREE, LONGEST_PAUSE, RECOVERY_CODES, SecondFactors
from tests.support.cli.command import Run
from tests.support.server.world import World, on_both

PASSWORD: Final = "green boats over the slow hill"
# RFC 6238, appendix B, SHA-1: the last six of the eight digits that stand there.
VECTORS: Final = {
    59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924", 2000000000: "279037",
    20000000000: "353130",
}  # fmt: skip
SECRET: Final = b32encode(b"12345678901234567890").decode()


@pytest.mark.parametrize(("seconds", "code"), VECTORS.items())
def test_codes_are_those_of_the_standard(seconds: int, code: str) -> None:
    assert code_at(SECRET, seconds // STEP) == code
    assert step_of(SECRET, code, seconds) == seconds // STEP


def test_a_code_holds_for_a_step_before_and_after() -> None:
    step = 50_000_000
    code = code_at(SECRET, step)
    held = [shift for shift in range(-4, 5) if step_of(SECRET, code, (step + shift) * STEP) is not None]
    assert held == [-1, 0, 1]
    for typed in ("", "12345", "1234567", code + "0", "é" * 6, "\ud800" * 6):
        assert step_of(SECRET, typed, step * STEP) is None


def test_secrets_are_long_and_never_the_same() -> None:
    assert len({new_secret() for _ in range(50)}) == 50
    assert {len(new_secret()) for _ in range(5)} == {32}
    codes = {new_recovery_code() for _ in range(50)}
    assert len(codes) == 50
    assert {len(code) for code in codes} == {19}


class Clock:
    """A clock that stands, a minute at a time further for each new code."""

    def __init__(self) -> None:
        self.now = 2_000_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def factors(world: World, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> SecondFactors:
    """Those of the service, by a clock that stands."""
    known = world.service.people.second_factors
    monkeypatch.setattr(known, "clock", clock)
    return known


def switched_on(factors: SecondFactors, clock: Clock, name: str = "alice") -> tuple[str, list[str]]:
    secret = factors.begin(name)
    codes = factors.confirm(name, code_at(secret, int(clock.now) // STEP))
    clock.now += 2 * STEP
    return secret, codes


def shown(secret: str, clock: Clock) -> str:
    """Return what the app shows now."""
    return code_at(secret, int(clock.now) // STEP)


def wrong(secret: str, clock: Clock) -> str:
    """Return a code that holds at no moment near."""
    held = {code_at(secret, int(clock.now) // STEP + shift) for shift in (-1, 0, 1)}
    return next(code for code in ("000000", "000001", "000002", "000003") if code not in held)


@on_both
def test_nothing_is_asked_for_until_a_code_was_confirmed(factors: SecondFactors, clock: Clock) -> None:
    first = factors.begin("alice")
    factors.require("alice", None)
    assert not factors.of("alice").on
    secret = factors.begin("alice")  # another QR code, in the place of the first
    for other in (wrong(secret, clock), shown(first, clock)):
        with pytest.raises(InvalidParameter, match="The code is wrong"):
            factors.confirm("alice", other)
    codes = factors.confirm("alice", shown(secret, clock))
    assert len(set(codes)) == RECOVERY_CODES
    assert factors.of("alice").on
    with pytest.raises(SecondFactorNeeded):
        factors.require("alice", None)
    factors.require("bob", None)
    with pytest.raises(InvalidParameter, match="already on"):
        factors.begin("alice")


@on_both
def test_a_code_lets_in_once_and_no_older_one_after_it(factors: SecondFactors, clock: Clock) -> None:
    secret, _ = switched_on(factors, clock)
    before, code = code_at(secret, int(clock.now) // STEP - 1), shown(secret, clock)
    factors.require("alice", code[:3] + " " + code[3:])
    for used in (code, before):
        with pytest.raises(NotAuthorised):
            factors.require("alice", used)
    clock.now += STEP
    factors.require("alice", shown(secret, clock))


def let_in_together(factors: SecondFactors, code: str) -> int:
    """Return how many of eight requests at once are let in by one code."""
    let_in, barrier = [], threading.Barrier(8)

    def ask() -> None:
        barrier.wait()
        try:
            factors.require("alice", code)
            let_in.append(1)
        except (NotAuthorised, TooManyRequests):
            pass

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(let_in)


@on_both
def test_of_requests_at_once_one_is_let_in(factors: SecondFactors, clock: Clock) -> None:
    secret, codes = switched_on(factors, clock)
    assert let_in_together(factors, shown(secret, clock)) == 1
    assert let_in_together(factors, codes[0]) == 1


@on_both
def test_guesses_become_slower_and_slower(factors: SecondFactors, clock: Clock) -> None:
    secret, codes = switched_on(factors, clock)
    begun, tried = clock.now, 0
    while clock.now < begun + 86_400:
        try:
            factors.require("alice", wrong(secret, clock))
        except NotAuthorised:
            tried += 1
        except TooManyRequests:
            clock.now += 300
    assert FREE + 20 < tried < FREE + 45  # a chance of 1.5 in 10,000 in a day, for who has the password
    clock.now += LONGEST_PAUSE
    with pytest.raises(NotAuthorised):  # the pause is over, and the next begins
        factors.require("alice", wrong(secret, clock))
    with pytest.raises(TooManyRequests, match="Try the next one in 60 minutes"):
        factors.require("alice", shown(secret, clock))
    factors.require("alice", codes[3].upper())  # the owner is let in by a recovery code, and the pause is over
    clock.now += STEP
    factors.require("alice", shown(secret, clock))


@on_both
def test_recovery_codes_let_in_once_each_and_only_their_hashes_are_kept(
    factors: SecondFactors, clock: Clock, world: World
) -> None:
    _, codes = switched_on(factors, clock)
    rows = world.service.store.look("SELECT hash FROM recovery_codes WHERE person = ?", ("alice",))
    assert {hash_ for (hash_,) in rows} == {kept_of(code) for code in codes}
    factors.require("alice", codes[0])
    with pytest.raises(NotAuthorised):
        factors.require("alice", codes[0])
    assert factors.of("alice").recovery_codes_left == RECOVERY_CODES - 1
    fresh = factors.renew("alice")
    with pytest.raises(NotAuthorised):
        factors.require("alice", codes[1])
    factors.require("alice", fresh[0])
    _, others = switched_on(factors, clock, "bob")
    with pytest.raises(NotAuthorised):
        factors.require("alice", others[0])


@pytest.mark.long
@pytest.mark.parametrize("planted", ["step", "pause", "recovery"])
def test_factors_that_do_not_hold_are_found(
    factors: SecondFactors, clock: Clock, world: World, monkeypatch: pytest.MonkeyPatch, planted: str
) -> None:
    """Planted: the step of a code is not kept; no pause follows wrong codes; recovery codes are not crossed out."""
    tests: dict[str, Any] = {
        "step": lambda: test_a_code_lets_in_once_and_no_older_one_after_it(factors, clock),
        "pause": lambda: test_guesses_become_slower_and_slower(factors, clock),
        "recovery": lambda: test_recovery_codes_let_in_once_each_and_only_their_hashes_are_kept(factors, clock, world),
    }
    words = {
        "step": ("last_step = ?", "last_step = 0 * ?"),
        "recovery": ("SET used = ?", "SET used = NULLIF(1, 1 + 0 * LENGTH(?))"),
    }
    if planted == "pause":
        monkeypatch.setattr(second_factors, "FREE", 60)
    else:
        planting(monkeypatch, world, *words[planted])
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        tests[planted]()


def planting(monkeypatch: pytest.MonkeyPatch, world: World, right: str, wrong: str) -> None:
    """Let the store carry out other words."""
    from contextlib import contextmanager

    store = world.service.store
    transaction = type(store).transaction

    class Changed:
        def __init__(self, connection: Any) -> None:
            self._connection = connection

        def execute(self, statement: str, values: Any = ()) -> Any:
            return self._connection.execute(statement.replace(right, wrong), values)

    @contextmanager
    def changed(self: Any) -> Iterator[Any]:
        with transaction(self) as connection:
            yield Changed(connection)

    monkeypatch.setattr(type(store), "transaction", changed)


@pytest.fixture
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "HASHER", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))


@pytest.fixture
def alice(world: World, factors: SecondFactors, clock: Clock, quick_hashes: None) -> tuple[str, list[str]]:
    world.service.people.change("alice", password=PASSWORD, by="carol")
    world.tokens["alice"] = world.service.people.issue("alice", label="", scopes=None, seconds=60, by="carol")[0]
    return switched_on(factors, clock)


def logged_in(world: World, **more: str) -> tuple[int, str]:
    told = world.ask("POST", "/v1/login", body={"name": "alice", "password": PASSWORD, **more})
    return told.status, told.document.get("code", "")


@pytest.mark.long
def test_a_login_takes_the_code_as_well(world: World, alice: tuple[str, list[str]], clock: Clock) -> None:
    secret, codes = alice
    assert logged_in(world) == (401, "second_factor_needed")
    assert logged_in(world, password="not the password") == (401, "not_authorised")
    assert logged_in(world, password="not the password", code=shown(secret, clock)) == (401, "not_authorised")
    assert logged_in(world, code="000000") == (401, "not_authorised")
    assert logged_in(world, code=shown(secret, clock)) == (200, "")
    assert logged_in(world, code=shown(secret, clock)) == (401, "not_authorised")
    assert logged_in(world, code=codes[0]) == (200, "")
    acts = [json.loads(line)["act"] for line in world.ask("GET", "/v1/audit", "carol").content.splitlines()]
    assert acts.count("login failed") == 4
    assert {"second factor added", "recovery code used"} <= set(acts)
    said = world.ask("GET", "/v1/audit", "carol").content.decode()
    assert not any(hidden in said for hidden in (secret, codes[0], kept_of(codes[0])))


def test_who_has_a_token_alone_changes_no_second_factor(
    world: World, alice: tuple[str, list[str]], clock: Clock
) -> None:
    secret, codes = alice

    def asked(end: str, **body: str) -> int:
        return world.ask("POST", f"/v1/me/second-factor{end}", "alice", body).status

    assert asked("/remove", password="not the password", code=codes[0]) == 403
    assert asked("/remove", password=PASSWORD, code="000000") == 403
    assert asked("/recovery-codes", password=PASSWORD, code=codes[0][:-1]) == 403
    assert asked("", password=PASSWORD) == 422  # it is on
    told = world.ask("GET", "/v1/me/second-factor", "alice").document
    assert (told["on"], told["recovery_codes_left"]) == (True, RECOVERY_CODES)
    assert asked("/remove", password=PASSWORD, code=shown(secret, clock)) == 204
    assert logged_in(world) == (200, "")
    assert asked("", password="not the password") == 403
    begun = world.ask("POST", "/v1/me/second-factor", "alice", {"password": PASSWORD}).document
    assert begun["secret"] in begun["address"]
    assert logged_in(world) == (200, "")


@pytest.mark.long
def test_a_curator_switches_it_off_for_who_has_lost_all(world: World, alice: tuple[str, list[str]]) -> None:
    (known,) = [one for one in world.ask("GET", "/v1/people", "carol").document if one["name"] == "alice"]
    assert known["second_factor"]
    assert world.ask("DELETE", "/v1/people/nobody/second-factor", "carol").status == 404
    assert world.ask("DELETE", "/v1/people/alice/second-factor", "carol").status == 204
    assert world.ask("DELETE", "/v1/people/alice/second-factor", "carol").status == 422
    assert logged_in(world) == (200, "")


@pytest.mark.long
def test_commands_ask_for_the_code_and_switch_it_off(
    world: World, alice: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    _, codes = alice
    monkeypatch.setenv("LAPWING_PASSWORD", PASSWORD)
    monkeypatch.setenv("LAPWING_SERVER", world.address)
    assert run("login", "alice", stdin=b"\n").status == 2  # no code, and no terminal
    monkeypatch.setenv("LAPWING_CODE", codes[0])
    assert run("login", "alice").out.startswith("lapwing_")
    assert run("login", "alice").status == 5
    monkeypatch.setenv("LAPWING_TOKEN", world.tokens["carol"])
    assert "on" in run("people", "list").out
    assert run("people", "remove-second-factor", "alice").status == 0
    assert run("login", "alice").status == 0
