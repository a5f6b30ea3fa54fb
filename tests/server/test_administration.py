"""The people of a service by command: at a server and in the store beside it, the same commands come to the same."""

import json
import os
import pwd
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import pytest
from argon2 import PasswordHasher

from lapwing.cli.service import places
from lapwing.client.administration import RemoteAccess
from lapwing.client.transport import ServerConnection
from lapwing.errors import InvalidParameter
from lapwing.server import credentials, dataset_routes
from lapwing.server import people as people_module
from lapwing.server.access import DatasetAccess
from lapwing.server.audit_log import note
from lapwing.server.people import Caller, People
from lapwing.server.policies import Policies
from lapwing.server.store_places import open_store
from tests.support.cli.command import Outcome, Run
from tests.support.processes import ended
from tests.support.release import small
from tests.support.server.world import World, service_in, serving

PASSWORD: Final = "a heron eats two eels"
PLACES: Final = ("server", "store")
Do = Callable[..., Outcome]


@pytest.fixture(scope="module", autouse=True)
def quick_passwords() -> Iterator[None]:
    """Let a hash of a password take no time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(credentials, "HASHER", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
        yield


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, Path]]:
    """A service that all tests of this file change, each by people of its own, and where its files are."""
    folder = tmp_path_factory.mktemp("administered")
    with serving(service_in(folder)) as world:
        yield world, catalog_in(folder / "open", "open")


def catalog_in(folder: Path, name: str) -> Path:
    """Write the catalog of the small data in a folder, for a command."""
    text = small.CATALOG.format(budget=small.GDP, unit="person", table="max_rows_per_unit = 2", plan="", age="")
    path = folder / "lapwing.toml"
    path.write_text(text.replace('name = "small"', f'name = "{name}"'))
    return path


@pytest.fixture
def world(place: tuple[World, Path]) -> World:
    return place[0]


@pytest.fixture(params=PLACES)
def do(request: pytest.FixtureRequest, place: tuple[World, Path], run: Run, monkeypatch: pytest.MonkeyPatch) -> Do:
    """Run a command as a curator, at the server or in its store."""
    world, catalog = place
    for name in ("LAPWING_SERVER", "LAPWING_PASSWORD", "LAPWING_NEW_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LAPWING_TOKEN", world.tokens["carol"])

    def doing(*command: str) -> Outcome:
        about = command[0] in ("grant", "policy")
        if request.param == "server":
            return run(*command, "--server", world.address, *(("--dataset", "open") if about else ()))
        return run(*command, "--people", world.service.store.name, *(("--catalog", str(catalog)) if about else ()))

    return doing


def local_actor() -> str:
    return f"{pwd.getpwuid(os.geteuid()).pw_name} (command line)"


@pytest.fixture
def actor(request: pytest.FixtureRequest) -> str:
    return "carol" if request.node.callspec.params["do"] == "server" else local_actor()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name of nobody yet."""
    letters = "".join(word[0] for word in request.node.originalname.split("_"))
    return f"{letters}.{request.node.callspec.params['do']}"


def lines(world: World, subject: str) -> list[dict[str, Any]]:
    """Return the lines of the audit log about somebody."""
    log = [json.loads(line) for line in world.ask("GET", "/v1/audit", "audrey").content.splitlines()]
    return [line for line in log if line["subject"] == subject]


def may_come_in(world: World, token: str) -> bool:
    world.tokens["tried"] = token
    return world.ask("GET", "/v1/me", "tried").status == 200


def token_of(do: Do, name: str, *more: str) -> str:
    made = do("token", "create", name, *more)
    assert (made.status, made.out.count("\n")) == (0, 1)
    return made.out.strip()


# ---- People ----


def test_somebody_from_the_first_day_to_the_last(do: Do, world: World, name: str, actor: str) -> None:
    added = do("people", "add", name, "--team", f"{name}.team")
    assert (added.status, added.out) == (0, f"{name} is an analyst, in the team {name}.team.\n")
    assert f"lapwing grant {name}" in added.err.replace("\n         ", " ")
    assert do("people", "role", name, "auditor").out == f"{name} is now an auditor, in the team {name}.team.\n"
    assert do("people", "team", name, "--leave").out == f"{name} is now an auditor.\n"
    token = token_of(do, name)
    assert may_come_in(world, token)
    assert do("people", "disable", name).status == 0
    assert not may_come_in(world, token)
    (known,) = (
        one for one in json.loads(do("people", "list", "--format", "json").out)["people"] if one["name"] == name
    )
    assert (known["role"], known["team"], known["active"]) == ("auditor", None, False)
    (row,) = (line for line in do("people", "list").out.splitlines() if line.startswith(name))
    assert row.split()[1:] == ["auditor", known["created"][:10], "disabled"]
    assert do("people", "enable", name).status == 0
    assert not may_come_in(world, token)
    acts = [(line["actor"], line["act"]) for line in lines(world, name)]
    changed = (actor, "person changed")
    assert acts == [(actor, "person added"), changed, changed, (actor, "token made"), changed, changed]


def test_a_disabled_person_whose_tokens_work_would_be_found(
    do: Do, world: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: tokens are looked up without a look at their owner, and stay when somebody is disabled."""
    do("people", "add", name)
    token = token_of(do, name)
    look = type(world.service.store).look

    def careless(self: Any, statement: str, values: Any = ()) -> list[Any]:
        forgetful = statement.replace("revoked = 0 AND", "").replace("people.active = 1 AND", "")
        return look(self, forgetful, values)

    do("people", "disable", name)
    assert not may_come_in(world, token)
    monkeypatch.setattr(type(world.service.store), "look", careless)
    assert may_come_in(world, token)


def test_what_cannot_be_is_said(do: Do, world: World, name: str) -> None:
    do("people", "add", name)
    before = len(lines(world, name))
    for command, said in (
        (("people", "add", name.upper()), "already"),
        (("people", "add", "a b"), "name of a person"),
        (("people", "role", name[:-1], "auditor"), f"Did you mean '{name}'"),
        (("people", "role", name, "boss"), "'boss' is not one of 'curator', 'analyst', 'auditor'"),
        (("people", "team", name), "or --leave"),
        (("people", "disable", "carol"), "no curator"),
        (("token", "create", name, "--scope", "admin"), "scopes read, ask"),
        (("token", "create", name, "--days", "400"), "366"),
        (("token", "create", name, "--label", "x" * 101), "at most 100"),
        (("token", "revoke", "12345678", name), "There is no token"),
        (("people", "role", "\udcff", "auditor"), "not UTF-8 text"),
        (("grant", "\udcff"), "not UTF-8 text"),
        (("grant", name, "--share", "1.5"), "from 0 to 1"),
        (("grant", name[:-1]), f"Did you mean '{name}'"),
        (("grant", name, "--withdraw"), "no such grant"),
        (("grant", name, "--share", "0.5", "--withdraw"), "leave out --share"),
        (("grant", "--share", "0.5"), "Name the person"),
        (("policy", "set"), "Give a setting to change"),
        (("policy", "team", "nurses"), "--no-share"),
    ):
        refused = do(*command)
        assert (refused.status, refused.out) == (2, ""), command
        assert said in refused.err, command
        assert "Value error" not in refused.err
    assert len(lines(world, name)) == before


def test_a_password_comes_from_the_environment_and_ends_tokens(
    do: Do, world: World, name: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    do("people", "add", name)
    token = token_of(do, name)
    monkeypatch.setenv("LAPWING_NEW_PASSWORD", "short")
    refused = do("people", "password", name)
    assert (refused.status, "must have from 12" in refused.err) == (2, True)
    assert may_come_in(world, token)
    monkeypatch.setenv("LAPWING_NEW_PASSWORD", PASSWORD)
    assert do("people", "password", name).status == 0
    assert not may_come_in(world, token)
    monkeypatch.setenv("LAPWING_PASSWORD", PASSWORD)
    login = run("login", name, "--server", world.address)
    assert (login.status, may_come_in(world, login.out.strip())) == (0, True)
    assert PASSWORD not in login.err + str(lines(world, name))


# ---- Tokens ----


def test_tokens_are_made_listed_and_ended(do: Do, world: World, name: str, tmp_path: Path) -> None:
    do("people", "add", name, "--role", "curator")
    made = do("token", "create", name, "--label", "night\x1b[2J", "--days", "2", "--scope", "read", "--scope", "audit")
    usual = token_of(do, name)
    file = tmp_path / "token"
    assert do("token", "create", name, "--output", str(file)).out == ""
    assert (may_come_in(world, file.read_text().strip()), stat.S_IMODE(file.stat().st_mode)) == (True, 0o600)
    world.tokens["usual"], world.tokens["made"] = usual, made.out.strip()
    assert world.ask("GET", "/v1/me", "usual").document["rights"] == ["read", "ask", "audit"]
    assert world.ask("GET", "/v1/me", "made").document["rights"] == ["read", "audit"]
    listed = json.loads(do("token", "list", name, "--format", "json").out)["tokens"]
    assert [(one["scopes"], one["revoked"]) for one in listed] == [
        (["read", "ask", "audit"], False),
        (["read", "ask", "audit"], False),
        (["read", "audit"], False),
    ]
    page = do("token", "list", name).out
    assert "night\\x1b[2J" in page
    assert "\x1b" not in page
    short = listed[2]["id"][:8]
    assert short in made.err
    assert short in page
    assert made.out.strip() not in made.err + page
    assert do("token", "revoke", short, name).out == f"The token {short} of {name} is revoked.\n"
    assert (may_come_in(world, made.out.strip()), may_come_in(world, usual)) == (False, True)
    do("people", "disable", name)


# ---- Who may ask ----


def test_grants_and_policies(do: Do, world: World, name: str, actor: str) -> None:
    do("people", "add", name)
    granted = do("grant", name, "--share", "1/5", "--trusted-with-time")
    assert granted.out == f"{name} may query open for at most 20 % of its budget, and is trusted with time.\n"
    assert do("policy", "team", f"{name}.team", "--share", "1/3").status == 0
    page = do("grant").out
    assert [line.split() for line in page.splitlines() if line.startswith(name)] == [
        [name, "20", "%", "yes"],
        [f"{name}.team", "33.3", "%"],
    ]
    known = json.loads(do("grant", "--format", "json").out)
    assert (known["people"][name], known["teams"][f"{name}.team"]) == ("0.2", "1/3")
    assert do("grant", name).out == f"{name} may query open.\n"
    assert name not in json.loads(do("grant", "--format", "json").out)["trusted_with_time"]
    assert do("grant", name, "--withdraw").status == 0
    assert do("policy", "team", f"{name}.team", "--no-share").status == 0
    acts = [(line["actor"], line["act"], line["details"].get("share")) for line in lines(world, name)[1:]]
    assert acts == [(actor, "grant made", "0.2"), (actor, "grant made", None), (actor, "grant withdrawn", None)]


def test_a_policy_is_changed_in_what_is_given(do: Do) -> None:
    def held() -> Any:
        return json.loads(do("policy", "show", "--format", "json").out)

    assert do("policy", "set", "--most-epsilon", "0.5", "--least-share", "1/1000").status == 0
    assert "a query may cost at most epsilon 0.5" in do("policy", "set", "--division", "share").out
    assert {"division": "share", "most_epsilon": "0.5", "least_share": "0.001"}.items() <= held().items()
    assert do("policy", "set", "--no-most-epsilon", "--least-share", "0").status == 0
    assert (held()["most_epsilon"], held()["least_share"]) == (None, "0")


def test_a_default_cost_is_set_listed_and_removed(do: Do) -> None:
    name = "alice"
    assert "up to 5 % of the budget a day" in do("policy", "default-cost", name, "--epsilon", "0.1").out
    assert "up to 2 %" in do("policy", "default-cost", name, "--epsilon", "0.1", "--daily-share", "1/50").out
    assert "epsilon 0.1 a query" in do("policy", "default-cost").out
    assert do("policy", "default-cost", name, "--none").status == 0
    assert "none" in do("policy", "default-cost").out
    assert do("policy", "default-cost", name).status == 2


def test_the_stop_switch_holds_for_a_service_that_runs(do: Do, world: World, actor: str) -> None:
    question = {"sql": "SELECT COUNT(*) AS n FROM visits WHERE age = 2", "epsilon": len(actor) / 100}  # not bought yet
    assert do("policy", "stop").status == 0
    try:
        assert world.query("alice", question).document["code"] == "data_stopped"
        assert "charges nothing" in do("policy", "show").out
    finally:
        assert do("policy", "resume").status == 0
    assert world.query("alice", question).status == 200


@pytest.mark.parametrize("where", PLACES)
def test_a_share_beyond_the_budget_is_refused_below_the_options_too(
    place: tuple[World, Path], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _ = place
    (served,) = (one for one in world.service.datasets.everything() if one.name == "open")
    access: places.AccessAdministration = (
        RemoteAccess(ServerConnection(world.address, world.tokens["carol"]), "open")
        if where == "server"
        else DatasetAccess(served, Policies(world.service.store), world.service.default_costs, by="carol")
    )
    with pytest.raises(InvalidParameter, match="from 0 to 1"):
        access.grant("alice", Fraction(3, 2), trusted_with_time=False)
    assert access.grants()["people"]["alice"] is None


# ---- Who may do it ----


COMMANDS: Final = (
    ("people", "list"),
    ("people", "add", "mallory", "--role", "curator"),
    ("people", "role", "alice", "curator"),
    ("people", "disable", "bob"),
    ("token", "create", "carol"),
    ("token", "list", "carol"),
    ("grant", "alice", "--share", "1"),
    ("policy", "set", "--division", "split"),
    ("policy", "default-cost", "alice", "--epsilon", "0.1"),
    ("policy", "stop"),
    ("audit-log", "list"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_an_analysts_token_does_none_of_it(
    world: World, run: Run, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("LAPWING_TOKEN", world.tokens["alice"])
    refused = run(*command, "--server", world.address)
    assert (refused.status, refused.out) == (5, "")
    assert "takes the right" in refused.err


def test_an_analysts_token_that_does_would_be_found(world: World, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: every token has every right."""
    monkeypatch.setenv("LAPWING_TOKEN", world.tokens["alice"])
    monkeypatch.setattr(Caller, "may", lambda *_: True)
    assert run("people", "list", "--server", world.address).status == 0


def test_without_a_token_nothing_is_sent(world: World, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAPWING_TOKEN", raising=False)
    refused = run("people", "list", "--server", world.address)
    assert (refused.status, "LAPWING_TOKEN" in refused.err) == (2, True)


def test_one_looks_after_ones_own(world: World, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world.service.people.add("dora", "analyst", PASSWORD, by="carol")
    monkeypatch.setenv("LAPWING_SERVER", world.address)
    monkeypatch.setenv("LAPWING_PASSWORD", PASSWORD)
    file = tmp_path / "token"
    written = run("login", "dora", "--hours", "1", "--scope", "read", "--output", str(file))
    assert (written.status, written.out, stat.S_IMODE(file.stat().st_mode)) == (0, "", 0o600)
    monkeypatch.setenv("LAPWING_TOKEN", file.read_text().strip())
    (token,) = json.loads(run("token", "list", "--format", "json").out)["tokens"]
    assert token["scopes"] == ["read"]
    assert run("token", "revoke", token["id"]).status == 0
    assert run("token", "list").status == 5
    monkeypatch.setenv("LAPWING_TOKEN", run("login", "dora").out.strip())
    monkeypatch.setenv("LAPWING_NEW_PASSWORD", "another heron eats")
    assert run("people", "password").status == 0
    assert run("login", "dora").status == 5
    monkeypatch.setenv("LAPWING_PASSWORD", "another heron eats")
    assert run("login", "dora").status == 0


def test_nobody_is_logged_in_at_a_store(world: World, run: Run) -> None:
    for command in (("token", "list"), ("token", "revoke", "12345678"), ("people", "password")):
        refused = run(*command, "--people", world.service.store.name)
        assert (refused.status, "ame a person" in refused.err) == (2, True), command


def test_passwords_are_asked_for_on_a_terminal_twice(world: World, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LAPWING_PASSWORD", "LAPWING_NEW_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LAPWING_SERVER", world.address)
    monkeypatch.setenv("LAPWING_TOKEN", world.tokens["carol"])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    given = iter(["qwerty123456", PASSWORD, "something else", PASSWORD, PASSWORD, PASSWORD])
    monkeypatch.setattr("getpass.getpass", lambda prompt: next(given))
    added = run("people", "add", "erna", "--password")
    assert (added.status, added.out) == (0, "erna is an analyst.\n")
    assert ("easy to guess" in added.err, added.err.count("differ")) == (True, 1)
    assert run("login", "erna").status == 0
    assert next(given, None) is None


def test_a_terminal_that_ends_gives_no_password(world: World, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(_prompt: str) -> str:
        raise EOFError

    monkeypatch.delenv("LAPWING_PASSWORD", raising=False)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("getpass.getpass", ended)
    refused = run("login", "erna", "--server", world.address)
    assert (refused.status, refused.err) == (2, "\nlapwing: No password was given. Nothing was changed.\n")


def test_what_is_done_at_a_server_takes_no_extra() -> None:
    code = (
        "import sys\nimport lapwing.cli.service.login, lapwing.cli.service.people, lapwing.client.administration\n"
        "import lapwing.server.password_prompt\n"
        "print([name for name in ('fastapi', 'argon2', 'duckdb', 'sqlglot', 'pyarrow') if name in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_passwords_come_from_a_pipe(world: World, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    world.service.people.add("fred", "analyst", PASSWORD, by="carol")
    monkeypatch.delenv("LAPWING_PASSWORD", raising=False)
    piped = tmp_path / "password"
    for content, status in ((f"{PASSWORD}\n", 0), ("", 2), ("not this one\n", 5)):
        piped.write_text(content)
        with piped.open() as stream:
            monkeypatch.setattr("sys.stdin", stream)
            assert run("login", "fred", "--server", world.address).status == status


# ---- Which store, which server ----


def test_a_store_is_there_before_it_is_looked_after(run: Run, tmp_path: Path) -> None:
    none = run("people", "list", "--people", str(tmp_path / "none.db"))
    assert (none.status, "`lapwing serve` creates it" in none.err) == (2, True)
    assert not (tmp_path / "none.db").exists()
    open_store(tmp_path / "fresh.db").close()
    fresh = run("people", "add", "mallory", "--role", "curator", "--people", str(tmp_path / "fresh.db"))
    assert (fresh.status, "no curator yet" in fresh.err) == (2, True)


def test_a_store_and_a_server_are_two_places(world: World, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPWING_TOKEN", world.tokens["carol"])
    both = run("people", "list", "--server", world.address, "--people", world.service.store.name)
    assert (both.status, "--people" in both.err) == (2, True)
    several = run("grant", "--server", world.address)
    assert (several.status, "open, closed" in several.err or "closed, open" in several.err) == (2, True)
    missing = run("login", "alice")
    assert (missing.status, "--server" in missing.err) == (2, True)


def test_root_leaves_nothing_beside_the_store_of_somebody_else(
    world: World, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = tmp_path / "theirs.db"
    store.write_bytes(b"")
    if os.geteuid() == 0:
        os.chown(store, 65534, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    refused = run("people", "list", "--people", str(store))
    assert (refused.status, "`sudo -u" in refused.err, list(tmp_path.iterdir())) == (2, True, [store])


@pytest.mark.parametrize("people", [pytest.param("postgres", marks=pytest.mark.long)], indirect=True)
def test_in_a_database(people: str, run: Run, tmp_path: Path) -> None:
    opened = open_store(people)
    known = People(opened)
    known.add("carol", "curator", None, by="carol")
    small.write(tmp_path, [small.row(1)])
    catalog = catalog_in(tmp_path, "small")
    there = ("--people", people, "--catalog", str(catalog))
    assert run("people", "add", "alice", *there).status == 0
    assert known.caller(run("token", "create", "alice", *there).out.strip()).name == "alice"
    assert run("grant", "alice", "--share", "0.5", *there).status == 0
    assert "small" in run("grant", *there).out
    opened.close()


def test_beside_a_service_its_extra_is_needed(world: World) -> None:
    code = (
        "import sys\nsys.modules['argon2'] = None\nfrom lapwing.cli import main\n"
        f"sys.exit(main(['people', 'list', '--people', {world.service.store.name!r}]))"
    )
    status, out, err = ended(code)
    assert (status, out, "pip install 'lapwing-dp[server]'" in err) == (2, "", True)


# ---- Data and ledgers of a server ----


@pytest.mark.long
def test_a_curator_looks_after_the_data_of_a_server(
    world: World, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy.jsonl"
    steps = (
        (("data", "accept"), "Nothing was changed"),
        (("data", "faults"), "No query has failed"),
        (("data", "resume"), "Nothing was changed"),
        (("ledger", "export", str(copy)), ""),
        (("budget", "raise", "--epsilon", "200", "--yes"), "epsilon 200"),
        (("data", "close", "--yes"), "is closed"),
    )
    monkeypatch.setattr(dataset_routes, "write_budget", lambda *_: None)  # this catalog is in no file
    there = ("--server", world.address, "--dataset", "closed")
    for who, status in (("alice", (2, 5)), ("carol", (0,))):
        monkeypatch.setenv("LAPWING_TOKEN", world.tokens[who])
        for command, said in steps:
            done = run(*command, *there)
            assert done.status in status, (command, done.err)
            assert status != (0,) or said in done.out
    assert world.session("closed").budget().closed
    assert world.session("closed").budget().epsilon == 200
    assert run("ledger", "verify", "--file", str(copy)).status == 0
    refused = run("data", "accept", "--unreadable", "null", *there)
    assert (refused.status, "this machine" in refused.err) == (2, True)


@pytest.mark.long
def test_an_auditor_audits_a_data_set_of_a_server(world: World, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    there = ("--server", world.address, "--dataset", "closed")
    monkeypatch.setenv("LAPWING_TOKEN", world.tokens["audrey"])
    outcome = run("audit", *there)
    assert (outcome.status, "ledger chain: passed" in outcome.out) == (0, True)
    assert "audit log: passed" in outcome.out
    monkeypatch.setenv("LAPWING_TOKEN", world.tokens["alice"])
    assert run("audit", *there).status in (2, 5)


# ---- The audit log ----


def test_the_audit_log_is_listed_and_exported(do: Do, world: World, name: str, run: Run, tmp_path: Path) -> None:
    do("people", "add", name, "--team", "nurses")
    last = do("audit-log", "list", "--last", "1").out.splitlines()
    assert (len(last), name in last[-1], last[-1].endswith("role analyst, team nurses")) == (3, True, True)
    exported = json.loads(do("audit-log", "list", "--format", "json").out)["lines"]
    file = tmp_path / "audit.jsonl"
    assert do("audit-log", "export", str(file)).status == 0
    assert [json.loads(line) for line in file.read_text().splitlines()] == exported
    assert exported == [json.loads(line) for line in world.ask("GET", "/v1/audit", "audrey").content.splitlines()]
    assert run("audit-log", "verify", "--file", str(file)).status == 0
    again = do("audit-log", "export", str(file))
    assert (again.status, "name a new file" in again.err) == (2, True)
    assert do("audit-log", "export").out == file.read_text()


def test_a_local_command_that_leaves_no_line_is_found(
    place: tuple[World, Path], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: nothing is noted of what the command line does."""
    world, _ = place

    def forgetful(connection: Any, actor: str, *rest: Any, **details: Any) -> None:
        if "(command line)" not in actor:
            note(connection, actor, *rest, **details)

    monkeypatch.setattr(people_module, "note", forgetful)
    assert run("people", "add", "gustav", "--people", world.service.store.name).status == 0
    assert lines(world, "gustav") == []
    monkeypatch.setattr(people_module, "note", note)
    assert run("people", "role", "gustav", "auditor", "--people", world.service.store.name).status == 0
    (line,) = lines(world, "gustav")
    assert line["actor"] == local_actor()


def test_nobody_can_be_called_as_the_command_line_is(world: World) -> None:
    with pytest.raises(InvalidParameter):
        world.service.people.add(places.ACTOR.format("root"), "curator", None, by="carol")


def test_an_invite_is_made_for_a_new_name_and_again(do: Do, world: World, name: str, actor: str) -> None:
    first = do("people", "invite", name, "--team", "porters")
    second = do("people", "invite", name, "--days", "1")
    assert (first.status, second.status) == (0, 0)
    assert "/console/invite" in f"{first.out}{first.err}"  # where the person opens it
    sent = [made.out.strip().rpartition("#")[2] for made in (first, second)]
    assert f"{world.address}/console/invite#" in first.out or actor != "carol"
    used = [world.ask("POST", "/v1/invites/accept", None, {"token": one, "password": PASSWORD}) for one in sent]
    assert [reply.status for reply in used] == [401, 201]  # the second took the place of the first
    assert world.service.people.named(name).team == "porters"
    assert [(line["actor"], line["act"]) for line in lines(world, name)][:3] == [
        (actor, "person added"),
        (actor, "invite made"),
        (actor, "invite made"),
    ]
    assert do("people", "invite", name).status == 2  # who has a password needs none
    assert do("people", "invite", name, "--role", "auditor").status == 2


def test_an_invite_at_a_server_grants_a_data_set(do: Do, world: World, name: str, actor: str) -> None:
    made = do("people", "invite", name, "--dataset", "open", "--share", "1/5")
    grants = world.ask("GET", "/v1/datasets/open/grants", "carol").document["people"]
    if actor == "carol":
        assert made.status == 0
        assert grants[name] == "0.2"
    else:
        assert made.status == 2
        assert name not in [person.name for person in world.service.people.all()]
