"""The page about deployment: what it shows is what systemd, nginx and Caddy take, and its backups can be restored."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from lapwing.datasets import rand_hie_catalog, rand_hie_data
from tests.server.test_serving import served, token
from tests.support.docs.pages import DOCS, blocks
from tests.support.server.world import World

PAGE: Final = DOCS / "deploy.md"
QUESTION: Final = {"sql": "SELECT COUNT(*) AS n FROM rand_hie", "epsilon": 0.1}


def block(language: str, containing: str = "") -> str:
    """Return the one block of a language that has a text in it."""
    (found,) = (part.text for part in blocks(PAGE) if part.language == language and containing in part.text)
    return found


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="the unit is checked by systemd itself")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "lapwing.service"
    unit.write_text(block("ini").replace("/opt/lapwing/bin/lapwing", sys.executable))
    good = run(tmp_path, "systemd-analyze", "verify", "--man=no", str(unit))
    assert (good.returncode, good.stderr) == (0, "")
    unit.write_text(unit.read_text().replace("ProtectHome=", "ProtectHouse="))  # planted
    assert "ProtectHouse" in run(tmp_path, "systemd-analyze", "verify", "--man=no", str(unit)).stderr


@pytest.mark.skipif(not (shutil.which("nginx") and shutil.which("openssl")), reason="nginx reads its own part")
def test_nginx_takes_its_part(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = (
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        str(key),
        "-out",
        str(certificate),
        "-subj",
        "/CN=dp.example.org",
    )
    assert run(tmp_path, "openssl", "req", "-x509", *made).returncode == 0
    part = re.sub(r"(ssl_certificate) .*;", rf"\1 {certificate};", block("nginx"))
    part = re.sub(r"(ssl_certificate_key) .*;", rf"\1 {key};", part)
    file = tmp_path / "nginx.conf"
    file.write_text(f"pid {tmp_path}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\n access_log off;\n{part}\n}}\n")
    checked = run(tmp_path, "nginx", "-t", "-c", str(file), "-p", str(tmp_path))
    assert checked.returncode == 0, checked.stderr


@pytest.mark.skipif(shutil.which("caddy") is None, reason="Caddy reads its own part")
def test_caddy_takes_its_part(tmp_path: Path) -> None:
    (tmp_path / "Caddyfile").write_text(block("text", "reverse_proxy"))
    checked = run(tmp_path, "caddy", "validate", "--config", "Caddyfile", "--adapter", "caddyfile")
    assert checked.returncode == 0, checked.stderr


def of_the_page(folder: Path, containing: str) -> subprocess.CompletedProcess[str]:
    """Run the commands of a block in a folder, but for those that are about users and paths."""
    lines = [line for line in block("sh", containing).splitlines() if not line.startswith(("cd ", "runuser", "export"))]
    start = f'set -e; lapwing() {{ "{sys.executable}" -m lapwing "$@"; }}; python3() {{ "{sys.executable}" "$@"; }}'
    return run(
        folder, "bash", "-c", "\n".join([start, *lines]).replace("mv visits.lapwing.db ", "mv -f visits.lapwing.db ")
    )


@pytest.mark.skipif(shutil.which("bash") is None, reason="the page is for bash")
@pytest.mark.long
def test_what_is_backed_up_while_it_runs_can_be_restored(tmp_path: Path) -> None:
    shutil.copy(rand_hie_data(), tmp_path / "rand_hie.parquet")
    catalog = rand_hie_catalog().read_text(encoding="utf-8").replace("rand_hie.lapwing.db", "visits.lapwing.db")
    (tmp_path / "visits.lapwing.toml").write_text(catalog, encoding="utf-8")
    with served(tmp_path, "visits.lapwing.toml") as (_, port):
        world = World(service=None, address=f"http://127.0.0.1:{port}")  # type: ignore[arg-type]  # another process
        world.tokens["curator"] = token(port)
        first = world.query("curator", QUESTION, "rand_hie").document
        saved = of_the_page(tmp_path, "VACUUM INTO")
        assert saved.returncode == 0, saved.stderr
    for file in (tmp_path / "backup").iterdir():
        assert file.stat().st_mode & 0o077 == 0 or file.suffix == ".toml"
    for name in ("visits.lapwing.db", "lapwing.people.db"):
        (tmp_path / f"{name}-wal").touch()  # both are there after `kill -9`
        (tmp_path / f"{name}-shm").touch()
    restored = of_the_page(tmp_path, "ledger restore")
    assert restored.returncode == 0, restored.stderr
    assert of_the_page(tmp_path, "install -m 0600 backup/lapwing.people.db").returncode == 0
    assert (tmp_path / "lapwing.people.db").stat().st_mode & 0o777 == 0o600
    with served(tmp_path, "visits.lapwing.toml") as (_, port):
        again = World(service=None, address=f"http://127.0.0.1:{port}", tokens=world.tokens)  # type: ignore[arg-type]
        reply = again.query("curator", QUESTION, "rand_hie").document
        assert (reply["stored"], reply["rows"]) == (True, first["rows"])


def test_the_first_password_is_random(tmp_path: Path) -> None:
    line = next(line for line in block("sh", "first-start.env").split("\n") if "printf" in line)
    command = line.removesuffix("\\")
    passwords = {run(tmp_path, "bash", "-c", command).stdout for _ in range(3)}
    assert len(passwords) == 3
    assert all(re.fullmatch(r"LAPWING_CURATOR=carol\nLAPWING_CURATOR_PASSWORD=\S{24}\n", one) for one in passwords)
    assert os.environ.get("LAPWING_CURATOR_PASSWORD") is None
