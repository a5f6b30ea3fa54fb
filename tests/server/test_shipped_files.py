"""What is shipped for operators: every metric that it names is there, the unit is the page's, backups work."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]

import lapwing as lw
from lapwing.server.store_places import open_store
from tests.server.test_deploy import block
from tests.support.cli.command import write_visits
from tests.support.docs.pages import DOCS
from tests.support.server.world import World

DEPLOY: Final = DOCS.parent / "deploy"
RULES: Final = DEPLOY / "prometheus-rules.yaml"
DASHBOARD: Final = DEPLOY / "grafana-dashboard.json"
METRIC: Final = re.compile(r"\blapwing_[a-z_]+")


def expressions() -> Iterator[str]:
    """Yield what is asked of Prometheus, by the rules and by the dashboard."""
    for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]:
        yield from (rule["expr"] for rule in group["rules"])
    for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
        yield from (target["expr"] for target in panel["targets"])


def described(text: str) -> set[str]:
    """Return the names of the metrics that a reply describes."""
    names = set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))
    return names | {f"{name}_total" for name in names}


def test_every_metric_of_rules_dashboard_and_pages_is_there(world: World) -> None:
    world.query("alice")
    there = described(world.ask("GET", "/metrics", "audrey").content.decode())
    asked = {name for expression in expressions() for name in METRIC.findall(expression)}
    assert len(asked) >= 12
    assert asked <= there
    told = (DOCS / "operate" / "watch.md").read_text(encoding="utf-8")
    assert set(METRIC.findall(told)) <= there
    assert {name for name in there if name.startswith("lapwing_") and name in METRIC.findall(told)} >= asked


def test_a_metric_that_is_not_there_is_found(world: World) -> None:
    there = described(world.ask("GET", "/metrics", "audrey").content.decode())
    assert not {"lapwing_datasets_ready"} <= there  # planted: one letter more


def test_every_label_of_an_expression_is_one_of_its_metric(world: World) -> None:
    world.query("alice")
    text = world.ask("GET", "/metrics", "audrey").content.decode()
    for expression in expressions():
        for name, labels in re.findall(r"(lapwing_[a-z_]+)\{([^}]*)\}", expression):
            (line, *_) = re.findall(rf"^{name}{{.*$", text, re.MULTILINE)
            assert set(re.findall(r"(\w+)[=!]", labels)) <= set(re.findall(r'(\w+)="', line)), name


def test_every_alert_has_a_line_in_the_runbook() -> None:
    page = (DOCS / "operate" / "faults.md").read_text(encoding="utf-8")
    alerts = [
        rule
        for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
        for rule in group["rules"]
        if "alert" in rule
    ]
    assert len(alerts) >= 12
    for rule in alerts:
        assert f"`{rule['alert']}`" in page
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert {"summary", "description"} <= rule["annotations"].keys()


def test_the_unit_is_that_of_the_page() -> None:
    assert (DEPLOY / "lapwing.service").read_text(encoding="utf-8") == block("ini")
    assert "RestartPreventExitStatus=2" in block("ini")
    assert "MemoryDenyWriteExecute=yes" not in block("ini")  # a JVM writes the code that it runs


def test_the_database_of_the_compose_file_is_confined() -> None:
    file: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    for service in file["services"].values():
        assert service["cap_drop"] == ["ALL"]
        assert service["read_only"]
        assert service["mem_limit"] == service["memswap_limit"]
        assert service["pids_limit"] > 0
        assert service["cpu_shares"] > 0
        assert service["logging"]["driver"] == "local"
    assert "POSTGRES_USER" not in file["services"]["database"]["environment"]  # that would be a superuser
    assert "NOSUPERUSER" in (DEPLOY / "database-role.sh").read_text(encoding="utf-8")
    assert file["networks"]["callers"]["driver_opts"]["com.docker.network.bridge.enable_ip_masquerade"] == "false"


# ---- The nightly backup ----------------------------------------------------------------------------------------------


def nightly(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run it with a `lapwing` that is this one."""
    command = folder / "bin" / "lapwing"
    command.parent.mkdir(exist_ok=True)
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m lapwing "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}:/usr/bin:/bin"
    return subprocess.run(
        [str(DEPLOY / "nightly.sh"), "visits.lapwing.toml"],
        cwd=folder,
        env={"PATH": path, "LAPWING_PYTHON": sys.executable, "TMPDIR": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.long
@pytest.mark.skipif(shutil.which("sh") is None, reason="it is a script of sh")
def test_a_night_restores_what_it_copied_and_notices_what_cannot_be(tmp_path: Path) -> None:
    write_visits(tmp_path)
    with lw.protect(
        tmp_path / "visits.parquet", privacy_unit="person_id", max_rows_per_unit=3, epsilon=1, bounds={"cost": (0, 500)}
    ) as session:
        session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.1)
    open_store(str(tmp_path / "lapwing.people.db")).close()
    good = nightly(tmp_path, LAPWING_BACKUPS_KEPT="1")
    assert good.returncode == 0, good.stderr
    (kept,) = (tmp_path / "backup").iterdir()
    assert {file.name for file in kept.iterdir()} == {
        "visits.lapwing.ledger.jsonl", "visits.lapwing.toml", "lapwing.people.db",
    }  # fmt: skip
    ledger = tmp_path / "visits.lapwing.db"
    content = bytearray(ledger.read_bytes())
    place = content.rfind(b"COUNT")
    content[place : place + 5] = b"count"  # planted: somebody edits an entry
    ledger.write_bytes(content)
    for side in ("-wal", "-shm"):
        ledger.with_name(ledger.name + side).unlink(missing_ok=True)
    bad = nightly(tmp_path)
    assert bad.returncode != 0
    assert [*(tmp_path / "backup").iterdir()] == [kept]
