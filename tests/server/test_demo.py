"""`lapwing serve --demo`: two accounts, of which the passwords are printed once, and a folder that goes with it."""

import json
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import lapwing as lw
from lapwing.cli.serve_demo import CATALOG, DemoOptions, introduce
from lapwing.errors import InvalidParameter, ServiceFault
from lapwing.server.people import Caller
from lapwing.server.service import Service
from tests.support.cli.command import Run
from tests.support.server.world import QUICK


def test_the_accounts_may_what_they_are_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with DemoOptions(demo=True, keep=tmp_path / "kept").folder() as folder:
        service = Service(None, [lw.connect(folder / CATALOG)], QUICK)
        try:
            introduce(service, "http://127.0.0.1:8000")
            address, *lines = capsys.readouterr().out.splitlines()
            assert address == "http://127.0.0.1:8000/console"
            passwords = dict(line.split() for line in lines)
            roles = {name: service.people.require_password(name, password) for name, password in passwords.items()}
            assert roles == {"curator": "curator", "analyst": "analyst"}
            assert len(set(passwords.values())) == 2
            rights = service.people.named("analyst").rights
            analyst = Caller(name="analyst", role="analyst", rights=rights, token="t")
            assert [one.name for one in service.datasets.all_visible(analyst)] == ["rand_hie"]
            assert service.published.rule("rand_hie").allowed
            stored = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
            assert not [one for one in passwords.values() if one.encode() in stored]
        finally:
            service.close()
    assert (tmp_path / "kept" / CATALOG).is_file()


def test_the_folder_is_removed_unless_it_is_kept(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    try:
        with DemoOptions(demo=True).folder() as folder:
            assert folder.stat().st_mode & 0o777 == 0o700
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not folder.exists()
    with DemoOptions(demo=True, keep=tmp_path / "kept").folder():
        pass
    with pytest.raises(InvalidParameter), DemoOptions(demo=True, keep=tmp_path / "kept").folder():
        pass  # it has files: an earlier demo, perhaps with results


@pytest.mark.parametrize("started", [False, True])
def test_a_demo_that_did_not_start_leaves_its_folder_to_the_next(tmp_path: Path, started: bool) -> None:
    with pytest.raises(ServiceFault), DemoOptions(demo=True, keep=tmp_path).folder(lambda: started):
        raise ServiceFault("not ready")
    assert (tmp_path / CATALOG).exists() == started


@pytest.mark.parametrize(
    "beside",
    [
        ("--host", "0.0.0.0"),
        ("--workers", "2"),
        ("--public-url", "https://dp.example.org"),
        ("--people", "other.db"),
        ("--data", "."),
        ("--behind-proxy", "--public-url", "https://dp.example.org"),
        ("visits.toml",),
    ],
)
def test_a_demo_is_for_this_machine_alone(run: Run, beside: tuple[str, ...]) -> None:
    refused = run("serve", "--demo", *beside)
    assert (refused.status, refused.out) == (2, "")
    assert "--demo" in refused.err
    assert run("serve", "--keep", "x").status == 2


@pytest.mark.long
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_of_a_demo(tmp_path: Path, end: signal.Signals) -> None:
    command = [sys.executable, "-m", "lapwing", "serve", "--demo", "--port", "0", "--postgres", "0"]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        passwords = [running.stdout.readline().split()[-1] for _ in range(3)][1:]
        lines = (json.loads(line) for line in running.stderr)
        heard = [next(line for line in lines if line["event"].startswith("listening")) for _ in range(2)]
        log = [json.dumps(heard)]
        assert [line.get("host") for line in heard if line["event"] == "listening"] == ["127.0.0.1"]
        wire = next(line["port"] for line in heard if line["event"] != "listening")
        with socket.create_connection(("127.0.0.1", wire), 60) as client:  # it answers this machine, and wants a token
            client.sendall(struct.pack("!ii", 8, 80877103))  # SSLRequest
            assert client.recv(1) == b"N"
        assert [path.name for path in tmp_path.glob("lapwing-demo-*")] != []
        running.send_signal(end)
        log += running.stderr.readlines()
        running.wait(timeout=60)
    assert not [one for one in passwords if one in "".join(log)]
    assert list(tmp_path.glob("lapwing-demo-*")) == []
