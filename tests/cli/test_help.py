"""Every help text has an example, and help is quick."""

import os
import subprocess
import sys

import pytest
from typer.core import TyperGroup

from lapwing.cli.commands import BESIDES, MEANT, QUERY_FIRST, load
from lapwing.cli.commands import COMMANDS as ALL
from tests.support.cli.command import Run
from tests.support.effort import only

COMMANDS = [
    (),
    ("demo",),
    ("init",),
    ("shell",),
    ("query",),
    ("explain",),
    ("budget",),
    ("budget", "raise"),
    ("guarantee",),
    ("account",),
    ("synthesize",),
    ("holdout",),
    ("lab",),
    ("monitor",),
    *(("monitor", act) for act in ("create", "list", "show", "run", "watch", "stop", "export", "alert", "alarms")),
    ("secure",),
    *(("secure", act) for act in ("join", "init", "serve", "send", "close", "next", "result")),
    ("data",),
    ("data", "accept"),
    ("data", "faults"),
    ("data", "resume"),
    ("data", "close"),
    ("ledger",),
    ("ledger", "verify"),
    ("ledger", "export"),
    ("ledger", "backup"),
    ("ledger", "restore"),
    ("audit",),
    ("login",),
    ("people",),
    *(("people", act) for act in ("list", "add", "role", "team", "password", "disable", "enable")),
    ("token",),
    *(("token", act) for act in ("create", "list", "revoke")),
    ("grant",),
    ("policy",),
    *(("policy", act) for act in ("show", "set", "team", "stop", "resume")),
    ("audit-log",),
    *(("audit-log", act) for act in ("list", "export", "verify", "accept")),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("option", only([0], ["--help", "-h"]))
def test_help_has_an_example(run: Run, command: tuple[str, ...], option: str) -> None:
    outcome = run(*command, option)
    assert (outcome.status, outcome.err) == (0, "")
    assert f"  lapwing {' '.join(command)}".rstrip() in outcome.out
    assert "Example" in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 100


@pytest.mark.long
def test_help_loads_no_engine() -> None:
    code = (
        "import sys\nfrom lapwing.cli import main\nmain(['--help'])\n"
        "sys.exit(str({'duckdb', 'pyarrow', 'numpy', 'sqlglot', 'flint'} & set(sys.modules)).replace('set()', '') or 0)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.long
@pytest.mark.parametrize(
    ("typed", "offered"),
    only([1], [("lapwing quer", "query"), ("lapwing ledger verify --cat", "--catalog")], many=True),
)
def test_tab_completes(typed: str, offered: str) -> None:
    """Commands are imported when they are called, and so are those whose options are completed."""
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1), "_LAPWING_COMPLETE": "complete_bash"}
    code = "from lapwing.cli import main\nmain([])"
    ended = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **words}, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout.split(), ended.stderr) == (0, [offered], "")


def test_a_command_by_another_name_and_one_that_is_missing(run: Run) -> None:
    assert run("history").err.startswith("lapwing: No such command 'history'. Did you mean 'budget'?")
    assert {run("history").status, run("data").status} == {2}


@pytest.mark.parametrize("first", ["visits.csv", "SELECT COUNT(*) AS n FROM visits"])
def test_a_query_or_a_file_for_a_command_leads_to_query(run: Run, first: str) -> None:
    ended = run(first, "SELECT 1")
    assert (ended.status, ended.err) == (2, f"lapwing: No such command {first!r}. {QUERY_FIRST}\n")


def test_other_names_lead_to_commands() -> None:
    for name, meant in MEANT.items():
        command, *words = meant.split()
        assert name not in ALL
        assert all(word in load(command).commands for word in words), name
    assert set(BESIDES) <= set(MEANT)


def test_tokens_are_created_by_the_earlier_name_too(run: Run) -> None:
    assert run("token", "make", "--help").out.splitlines()[2:] == run("token", "create", "--help").out.splitlines()[2:]
    assert run("token", "made", "--help").status == 2


def test_a_group_lists_its_commands(run: Run) -> None:
    assert "Commands: list, export, verify, accept." in run("audit-log", "show").err
    groups = [name for name in ALL if isinstance(load(name), TyperGroup) and name != "budget"]
    for name in groups:
        outcome = run(name)
        listed = [line.split()[0] for line in outcome.err.splitlines() if line.startswith("  ") and line.split()]
        assert (outcome.status, outcome.out) == (2, ""), name
        assert set(load(name).commands) <= set(listed), name
