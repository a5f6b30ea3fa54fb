"""Images without a daemon: what a Dockerfile says is carried out in folders that debootstrap fills.

Theory of operation. A stage is the root of a system in a folder. FROM copies the base, which debootstrap makes of the
suite that the base's tag names; RUN runs in the stage, with a process tree and mounts of its own that end with it; COPY
copies, from the context or from a stage; ENV, USER, WORKDIR, ENTRYPOINT and CMD are kept for what is run later. Any
other instruction is refused, as is whatever the few that are known here do not expect: nothing is passed over.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn, final

import pytest

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MACHINE: Final = ("http_proxy", "https_proxy", "no_proxy", "PIP_INDEX_URL", "PIP_PROXY", "PIP_DEFAULT_TIMEOUT")
"""What of this machine's environment says how registries are reached; an image is built with the same."""
NAMESPACES: Final = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "/bin/sh", "-c")
"""Run a script whose mounts, and whose processes, are gone when it ends."""
_CERTIFICATES: Final = "/machine-certificates.pem"


@final
@dataclass(kw_only=True)
class Stage:
    """A system in a folder, and what was said of how programs are run in it."""

    root: Path
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    arguments: dict[str, str] = field(default_factory=dict)
    user: str = "0:0"
    folder: str = "/"
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)

    def build(self, line: str) -> None:
        """Carry out a RUN.

        Raises: AssertionError with what it printed, if it fails.
        """
        root = shlex.quote(str(self.root))
        settings = environment_of(self.environment | self.arguments | _registries(self.root))
        script = f"mount -t proc proc {root}/proc && exec chroot {root} {settings} /bin/sh -c {shlex.quote(line)}"
        ended = subprocess.run(
            [*NAMESPACES, script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert ended.returncode == 0, f"RUN {line}\n{ended.stdout[-6000:]}"

    def confined(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        writable: Sequence[str],
        mounts: Mapping[Path, str],
    ) -> list[str]:
        """Return a command that runs the image as the compose file has it.

        It is the image's user, without any capability; the system is read-only but for /tmp and `writable`.

        Args: mounts: folders of this machine by where they appear, read-only unless that is in `writable`.
        """
        user, _, group = self.user.partition(":")
        root = shlex.quote(str(self.root))
        bind = [f"mount --bind {root} {root}"]
        bind += [f"mount --bind {shlex.quote(str(here))} {root}{there}" for here, there in mounts.items()]
        kept = {there for there in mounts.values() if there not in writable}
        bind += [f"mount -o remount,bind,ro {root}{there}" for there in sorted(kept)]
        bind += [f"mount --bind {root}{there} {root}{there}" for there in writable if there not in mounts.values()]
        bind += [
            f"mount -o remount,bind,ro {root}",
            f"mount -t tmpfs tmpfs {root}/tmp",
            f"mount -t proc proc {root}/proc",
        ]
        drop = f"setpriv --reuid={user} --regid={group} --clear-groups --no-new-privs --bounding-set=-all"
        enter = shlex.quote(f'cd {shlex.quote(self.folder)} && exec {drop} "$@"')
        settings = environment_of(self.environment | dict(environment))
        script = "\n".join(["set -e", *bind, f'exec chroot {root} {settings} /bin/sh -c {enter} sh "$@"'])
        return [*NAMESPACES, script, "sh", *arguments]


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Yield the instructions of a Dockerfile, with lines that go on joined."""
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\\n\s*", "", lines).splitlines():
        if line.strip():
            name, _, rest = line.strip().partition(" ")
            yield name, rest.strip()


def built(dockerfile: Path, context: Path, base: Path, folder: Path) -> Stage:
    """Return the last stage of a Dockerfile, built in a folder on the system whose root is `base`."""
    named: dict[str, Stage] = {}
    stage: Stage | None = None
    arguments: dict[str, str] = {}
    for name, rest in instructions(dockerfile.read_text(encoding="utf-8")):
        if name == "ARG" and stage is None:
            key, _, value = rest.partition("=")
            arguments[key] = value
        elif name == "FROM":
            found = re.fullmatch(r"\$\{(\w+)\}(?: AS (\w+))?", rest)
            assert found is not None, rest
            assert found[1] in arguments, rest
            stage = Stage(root=folder / f"stage{len(list(folder.iterdir()))}")
            copy(base, stage.root)
            named[found[2] or "last"] = stage
        else:
            assert stage is not None, f"{name} before FROM"
            _carry_out(stage, name, rest, context, named)
    assert stage is not None
    return stage


def suite_of(dockerfile: Path) -> str:
    """Return the suite of Debian that a Dockerfile builds on."""
    base = next(rest for name, rest in instructions(dockerfile.read_text(encoding="utf-8")) if name == "ARG")
    found = re.fullmatch(r"BASE=debian:([a-z]+)-slim", base)
    assert found is not None, base
    return found[1]


def bootstrapped(suite: str, root: Path) -> None:
    """Fill a folder with the least system of a suite, from the mirror that apt here uses; or skip the test."""
    if os.geteuid() != 0:
        _missing("only root may make a system in a folder")
    if shutil.which("debootstrap") is None:
        _missing("debootstrap is not installed: `apt install debootstrap`")
    mirror = _mirror()
    try:
        urllib.request.urlopen(f"{mirror}/dists/{suite}/Release", timeout=60).close()
    except OSError as error:
        _missing(f"{suite} cannot be fetched by apt's configuration: {error}")
    command = ["debootstrap", "--variant=minbase", suite, str(root), mirror]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if "noexec or nodev" in ended.stdout:
        _missing(ended.stdout.splitlines()[-1])
    assert ended.returncode == 0, ended.stdout[-4000:]
    settings = subprocess.run(["apt-config", "dump", "Acquire"], check=True, capture_output=True, text=True).stdout
    kept = re.findall(r"^Acquire::(?:http|https|Check)\b.*$|^Acquire::Check-.*$", settings, re.MULTILINE)
    (root / "etc/apt/apt.conf.d/90machine").write_text("\n".join(kept) + "\n")


def environment_of(settings: Mapping[str, str]) -> str:
    """Return the beginning of a command that gives it these settings, and nothing of this machine's."""
    return shlex.join(["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in settings.items())])


def copy(source: Path, target: Path) -> None:
    """Copy a file or a folder as it is, owners and modes included."""
    subprocess.run(["cp", "--archive", "--reflink=auto", str(source), str(target)], check=True)


def _carry_out(stage: Stage, name: str, rest: str, context: Path, named: Mapping[str, Stage]) -> None:
    if name == "RUN":
        stage.build(rest)
    elif name == "COPY":
        found = re.fullmatch(r"(?:--from=(\w+) )?(\S+) (\S+)", rest)
        assert found is not None, rest
        source = (named[found[1]].root if found[1] else context) / found[2].strip("/")
        target = stage.root / found[3].strip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_file():
            target.mkdir(parents=True, exist_ok=True)
        copy(source, target)
    elif name == "ARG":
        key, _, value = rest.partition("=")
        stage.arguments[key] = value
    elif name == "ENV":
        key, _, value = rest.partition("=")
        assert " " not in value
        stage.environment[key] = value.replace("$PATH", stage.environment["PATH"])
    elif name == "USER":
        assert re.fullmatch(r"[0-9]+:[0-9]+", rest)
        stage.user = rest
    elif name == "WORKDIR":
        stage.folder = rest
        (stage.root / rest.strip("/")).mkdir(parents=True, exist_ok=True)
    elif name in ("ENTRYPOINT", "CMD"):
        words = json.loads(rest)
        stage.entrypoint, stage.command = (words, []) if name == "ENTRYPOINT" else (stage.entrypoint, words)
    else:
        assert name == "EXPOSE", f"{name} is not known here"


def _registries(root: Path) -> dict[str, str]:
    """Return how registries are reached from here, as an environment for a root; certificates are copied into it."""
    environment = {name: os.environ[name] for name in MACHINE if name in os.environ}
    if "PIP_CERT" in os.environ:
        shutil.copy(os.environ["PIP_CERT"], root / _CERTIFICATES.strip("/"))
        environment["PIP_CERT"] = _CERTIFICATES
    return environment


def _mirror() -> str:  # noqa: RET503 - what follows the loop never returns
    """Return the address of Debian's packages that apt of this machine uses."""
    if shutil.which("apt-get") is None:
        _missing("there is no apt-get")
    columns = "$(ORIGIN) $(RELEASE) $(COMPONENT) $(REPO_URI)"
    command = ["apt-get", "indextargets", "--format", columns, "Created-By: Packages"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    for origin, release, component, address in (line.split() for line in listed if line.count(" ") == 3):
        if (origin, component) == ("Debian", "main") and "-" not in release:
            return address.rstrip("/")
    _missing("apt's configuration names no mirror of Debian; after `apt-get update` it may")


def _missing(why: str) -> NoReturn:
    """Skip the test, with the reason."""
    pytest.skip(f"no image is built: {why}")
