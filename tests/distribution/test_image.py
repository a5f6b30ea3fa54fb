"""The image and its compose file: built by their own lines on a bare system, run and confined as they say."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import psycopg
import pytest
import yaml  # type: ignore[import-untyped]  # it comes with a tool of the documentation

from lapwing.datasets import rand_hie_catalog, rand_hie_data
from tests.support import postgres as servers
from tests.support.distribution import images
from tests.support.distribution.built import build, clone
from tests.support.distribution.images import Stage, instructions
from tests.support.docs.pages import ROOT

DEPLOY: Final = ROOT / "deploy"
DOCKERFILE: Final = DEPLOY / "Dockerfile"
COMPOSE: Final = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
SERVICE: Final = COMPOSE["services"]["lapwing"]
PASSWORD: Final = "a better horse battery"
QUESTION: Final = {"sql": "SELECT plan, COUNT(*) AS n FROM rand_hie GROUP BY plan", "epsilon": 0.5}
STATE: Final = "/var/lib/lapwing"
GIVEN: Final = {"LAPWING_URL": "https://dp.example.org"}
"""What whoever starts it must say."""


def interpolated(text: str) -> str:
    """Return a text of the compose file with the values that its variables have."""

    def value(found: re.Match[str]) -> str:
        return GIVEN[found[1]] if found[2] == "?" else GIVEN.get(found[1], found[3])

    return re.sub(r"\$\{([A-Z_]+):([-?])([^}]*)\}", value, text)


def entrypoint(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the entrypoint, with a program in place of `lapwing` that says what it was given."""
    program = folder / "lapwing"
    program.write_text('#!/bin/sh\necho "$@"; umask; env | grep -E "PASSWORD" | sort\n')
    program.chmod(0o755)
    return subprocess.run(
        [str(DEPLOY / "entrypoint.sh"), "serve", "a b"],
        env=environment | {"PATH": f"{folder}:{os.environ['PATH']}"}, capture_output=True, text=True,
    )  # fmt: skip


def test_passwords_come_from_files_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "database").write_text("it's $HOME `id` \\n\n")
    (tmp_path / "empty").write_text("")
    files = {"PGPASSWORD_FILE": tmp_path / "database", "LAPWING_CURATOR_PASSWORD_FILE": tmp_path / "empty"}
    ended = entrypoint(tmp_path, **{name: str(file) for name, file in files.items()})
    assert (ended.stdout, ended.stderr) == ("serve a b\n0077\nPGPASSWORD=it's $HOME `id` \\n\n", "")
    assert entrypoint(tmp_path, PGPASSWORD="of the environment").stdout.endswith("\nPGPASSWORD=of the environment\n")


def test_a_password_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    ended = entrypoint(tmp_path, PGPASSWORD_FILE=str(tmp_path / "nothing"))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"PGPASSWORD_FILE is {tmp_path / 'nothing'}, which user {os.geteuid()} cannot read" in ended.stderr


def test_every_line_of_the_dockerfile_is_one_that_the_test_carries_out() -> None:
    lines = list(instructions(DOCKERFILE.read_text(encoding="utf-8")))
    assert [name for name, _ in lines] == [
        *("ARG", "FROM", "ARG", "RUN", "COPY", "COPY", "RUN", "RUN", "FROM", "RUN", "COPY", "COPY"),
        *("ENV", "USER", "WORKDIR", "EXPOSE", "ENTRYPOINT", "CMD"),
    ]
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    copied = {rest.split()[0].strip("/") for name, rest in lines if name == "COPY" and not rest.startswith("--from")}
    assert {line.removeprefix("!") for line in ignored if line.startswith("!")} == copied


def test_the_compose_file_leaves_no_door_open() -> None:
    """The service is not root, writes its state alone, and no password stands in the file; the database is inside."""
    assert (SERVICE["read_only"], SERVICE["cap_drop"]) == (True, ["ALL"])
    assert SERVICE["mem_limit"] == SERVICE["memswap_limit"]
    assert [volume for volume in SERVICE["volumes"] if not volume.endswith(":ro")] == [f"./state:{STATE}"]
    for service in COMPOSE["services"].values():
        assert "no-new-privileges:true" in service["security_opt"]
        assert service["ulimits"]["core"] == 0
        for name, value in service["environment"].items():
            assert "PASSWORD" not in name or name.endswith("_FILE")
            assert not value.startswith("/") or value.removeprefix("/run/secrets/") in service["secrets"]
    database = COMPOSE["services"]["database"]
    assert "ports" not in database
    assert database["networks"] == ["inside"]
    assert COMPOSE["networks"]["inside"] == {"internal": True}


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


@contextmanager
def database() -> Iterator[int]:
    """Run PostgreSQL where a compose file's `database` is reached: by TCP; give the port."""
    port = free_port()
    with servers.server(listen_addresses="127.0.0.1", port=str(port)):
        address = f"postgres://{servers.OWNER}@127.0.0.1:{port}/postgres"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("CREATE DATABASE lapwing")
        yield port


def lay_out(folder: Path, database_port: int) -> dict[Path, str]:
    """Lay out what must lie beside the compose file; return where the container sees it."""
    for name in ("state", "data", "secrets"):
        (folder / name).mkdir()
    shutil.copy(rand_hie_data(), folder / "data" / "rand_hie.parquet")
    catalog = rand_hie_catalog().read_text(encoding="utf-8")
    ledger = f"postgres://lapwing@database:{database_port}/lapwing?ledger=visits"
    for old, new in (("sqlite:rand_hie.lapwing.db", ledger), ('"rand_hie.parquet"', '"/srv/lapwing/rand_hie.parquet"')):
        assert old in catalog
        catalog = catalog.replace(old, new)
    (folder / "state" / "visits.lapwing.toml").write_text(catalog, encoding="utf-8")
    for name, text in (("curator_password", PASSWORD), ("database_password", "not asked for here")):
        (folder / "secrets" / name).write_text(text + "\n")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=dp.example.org"),
            *("-keyout", "tls_key", "-out", "tls_certificate"),
        ],
        cwd=folder / "secrets", check=True, capture_output=True,
    )  # fmt: skip
    assert {file.name for file in (folder / "secrets").iterdir()} == set(SERVICE["secrets"])
    for path in [folder / "state", folder / "secrets", *(folder / "state").iterdir(), *(folder / "secrets").iterdir()]:
        os.chown(path, 10001, 10001)
        path.chmod(0o700 if path.is_dir() else 0o600)
    return {folder / "state": STATE, folder / "data": "/srv/lapwing", folder / "secrets": "/run/secrets"}


@contextmanager
def running(
    stage: Stage, arguments: Sequence[str], mounts: dict[Path, str]
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run the image with arguments, as the compose file confines it; give the process, and its number inside."""
    environment = {name: interpolated(value) for name, value in SERVICE["environment"].items()}
    command = stage.confined([*stage.entrypoint, *arguments], environment, [STATE], mounts)
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        (child,) = children(process.pid)
        yield process, child
    finally:
        process.kill()  # and with it, all that runs inside
        process.communicate()


def children(process: int) -> list[int]:
    """Return the children of a process, as soon as it has one."""
    while not (found := Path(f"/proc/{process}/task/{process}/children").read_text().split()):
        pass
    return [int(one) for one in found]


def asked(port: int, method: str, path: str, body: object = None, token: str = "") -> Any:
    """Send one request over TLS."""
    unchecked = ssl._create_unverified_context()
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    with closing(http.client.HTTPSConnection("127.0.0.1", port, timeout=120, context=unchecked)) as connection:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        reply = connection.getresponse()
        text = reply.read()
        assert reply.status < 300, text
    return json.loads(text)


def check_that_it_serves(stage: Stage, folder: Path) -> None:
    """Start it by the compose file's own command; a question is answered, and its charge is in PostgreSQL."""
    with (stage.root / "etc/hosts").open("a") as hosts:
        hosts.write("127.0.0.1 localhost database\n")
    port = free_port()
    (stage.root / "run/secrets").mkdir()
    arguments = [interpolated(word).replace("--port=8443", f"--port={port}") for word in SERVICE["command"]]
    assert f"--port={port}" in arguments
    with database() as database_port:
        mounts = lay_out(folder, database_port)
        with running(stage, arguments, mounts) as (process, inside):
            lines = []
            for line in process.stdout or ():
                lines.append(line)
                if '"listening"' in line:
                    break
            else:
                pytest.fail("".join(lines))
            probe = SERVICE["healthcheck"]["test"]
            assert probe[0] == "CMD"
            command = stage.confined([word.replace("8443", str(port)) for word in probe[1:]], {}, [], {})
            for right in (True, False):  # and the planted fault: nobody listens there
                told = [word if right else word.replace(str(port), "1") for word in command]
                assert (subprocess.run(told, capture_output=True).returncode == 0) is right
            token = asked(port, "POST", "/v1/login", {"name": "curator", "password": PASSWORD})["token"]
            answer = asked(port, "POST", "/v1/datasets/rand_hie/query", QUESTION, token)
            assert len(answer["rows"]) == 6
            os.kill(inside, signal.SIGTERM)  # as `docker compose stop` does
            rest, _ = process.communicate(timeout=60)
            assert '"ended"' in rest
        with psycopg.connect(f"postgres://lapwing@127.0.0.1:{database_port}/lapwing") as connection:
            (count,) = connection.execute("SELECT count(*) FROM lapwing.entries").fetchone() or (0,)
            assert count >= 3
    assert {file.name for file in (folder / "state").iterdir()} >= {"visits.lapwing.toml", "visits.postgres.mark"}


def check_what_it_may_not(stage: Stage) -> None:
    """It is not root, gains nothing, and writes neither the program nor the data."""
    tries = "id -u; touch /opt/lapwing/x /srv/lapwing/x /etc/x; touch /tmp/x && echo tmp; grep ^Cap /proc/self/status"
    command = stage.confined(["/bin/sh", "-c", tries], {}, [STATE], {})
    ended = subprocess.run(command, capture_output=True, text=True)
    user, tmp, *capabilities = ended.stdout.splitlines()
    assert (user, tmp) == ("10001", "tmp")
    assert len(capabilities) == 5
    assert {line.split()[1] for line in capabilities} == {"0" * 16}
    assert ended.stderr.count("Read-only file system") + ended.stderr.count("Permission denied") == 3


def check_that_compose_reads_it(base: Path, folder: Path) -> None:
    """Docker Compose of the same Debian reads the file; it says what is missing, and what is misspelt."""
    system = Stage(root=folder)
    images.copy(base, folder)
    system.build("apt-get update -qq && apt-get install -qq --yes --no-install-recommends docker-compose")
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")

    def judged(text: str, given: str) -> str:
        (folder / "compose.yaml").write_text(text, encoding="utf-8")
        command = ["chroot", str(folder), "/bin/sh", "-c", f"{given} docker-compose -f /compose.yaml config --quiet"]
        return subprocess.run(command, capture_output=True, text=True).stderr

    assert judged(text, "LAPWING_URL=https://dp.example.org") == ""
    assert "the address at which callers find the service" in judged(text, "")
    assert "read_olny" in judged(text.replace("read_only", "read_olny"), "LAPWING_URL=x")  # planted


@pytest.mark.long
@pytest.mark.skipif(shutil.which("openssl") is None, reason="certificates are made by openssl")
def test_the_image_is_built_and_serves_as_the_compose_file_says(tmp_path: Path) -> None:
    with TemporaryDirectory(
        ignore_cleanup_errors=True
    ) as name:  # of gigabytes: nothing to be kept with the run's other files
        folder = Path(name)
        base = folder / "base"
        images.bootstrapped(images.suite_of(DOCKERFILE), base)
        clone(context := tmp_path / "context")
        build(context)
        (folder / "stages").mkdir()
        stage = images.built(DOCKERFILE, context, base, folder / "stages")
        assert stage.user == "10001:10001"
        command = stage.confined([*stage.entrypoint, "demo", "--folder", "/tmp/demo"], {}, [STATE], {})
        shown = subprocess.run(command, capture_output=True, text=True)
        assert shown.returncode == 0, shown.stderr
        assert "How many people had each insurance plan?" in shown.stdout
        check_what_it_may_not(stage)
        (folder / "beside").mkdir(mode=0o755)
        folder.chmod(0o755)
        check_that_it_serves(stage, folder / "beside")
        check_that_compose_reads_it(base, folder / "compose")
