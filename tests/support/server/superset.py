"""Apache Superset, from an environment that is not ours: a server on this machine, and requests to its REST API.

`LAPWING_SUPERSET_PYTHON` names the Python of that environment. Nothing is installed here. So it can be made:

    python3.11 -m venv superset
    superset/bin/pip install apache-superset==6.1.0 psycopg2-binary 'flask-caching<2.4' cachetools rich

Its own lists leave out the last two, and with a later flask-caching it does not start.
"""

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final
from urllib.parse import quote

from tests.support.browser.chromium import Page
from tests.support.engines.standalone import free_port

VARIABLE: Final = "LAPWING_SUPERSET_PYTHON"
ADMIN: Final = "admin"
CONFIG: Final = """
SECRET_KEY = "of a test, and gone with it"
SQLALCHEMY_DATABASE_URI = "sqlite:///{folder}/superset.db"
WTF_CSRF_ENABLED = TALISMAN_ENABLED = False
"""
PATIENCE: Final = 600
"""Seconds after which a server that does not start has failed."""
_PERSON: Final = f"--username {ADMIN} --password {ADMIN} --firstname A --lastname B --email a@b.test".split()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Superset:
    """A running server, and the token of its administrator."""

    address: str
    token: str

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Return the document of an answer.

        Raises:
            SupersetRefused: For any status but 2xx.
        """
        return _asked(self.address, method, path, body, self.token)

    def connected(self, port: int, token: str, dataset: str) -> int:
        """Add a database, which is a data set of Lapwing at a port of this machine, and return its number."""
        options = quote("-c lapwing.epsilon=0.1")
        query = f"options={options}&application_name=Apache%20Superset"
        given = {"sqlalchemy_uri": f"postgresql+psycopg2://alice:{token}@127.0.0.1:{port}/{dataset}?{query}"}
        self.ask("POST", "/api/v1/database/test_connection/", {**given, "database_name": "Lapwing"})
        shown = {**given, "database_name": "Lapwing", "expose_in_sqllab": True}
        return int(self.ask("POST", "/api/v1/database/", shown)["id"])

    def dataset(self, database: int, table: str) -> int:
        """Add a data set of Superset, which is a table, and return its number."""
        body = {"database": database, "schema": "public", "table_name": table}
        return int(self.ask("POST", "/api/v1/dataset/", body)["id"])

    def data(self, dataset: int, columns: list[object], metrics: list[object], **more: object) -> list[dict[str, Any]]:
        """Return the rows of a chart, asked for anew."""
        query = {"columns": columns, "metrics": metrics, "row_limit": 1000, **more}
        body: dict[str, object] = {"datasource": {"id": dataset, "type": "table"}, "force": True, "queries": [query]}
        rows: list[dict[str, Any]] = self.ask("POST", "/api/v1/chart/data", body)["result"][0]["data"]
        return rows

    def chart(self, dataset: int, column: str, name: str) -> int:
        """Make a bar chart of the rows by a column, and return its number."""
        kind = "echarts_timeseries_bar"
        shown: dict[str, object] = {
            "datasource": f"{dataset}__table",
            "viz_type": kind,
            "x_axis": column,
            "metrics": ["count"],
        }
        shown |= {"groupby": [], "x_axis_sort": "count", "row_limit": 1000, "show_value": True}
        body = {"slice_name": name, "viz_type": kind, "datasource_id": dataset, "datasource_type": "table"}
        return int(self.ask("POST", "/api/v1/chart/", {**body, "params": json.dumps(shown)})["id"])

    def draw(self, page: Page, chart: int) -> None:
        """Show a chart in a browser, and wait until it is drawn."""
        page.go(f"{self.address}/explore/?slice_id={chart}")
        page.wait("document.querySelector('canvas')", PATIENCE)

    def sign_in(self, page: Page) -> None:
        """Sign the administrator in, in a browser."""
        page.go(f"{self.address}/login/")
        form = f"new URLSearchParams({{username: '{ADMIN}', password: '{ADMIN}'}})"
        page.run(f"await fetch('/login/', {{method: 'POST', body: {form}}})")


class SupersetRefused(Exception):
    """A request that Superset refused, with what it said."""


def find_superset() -> Path | None:
    """Return the Python of the environment, or None."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


@contextmanager
def running(python: Path, folder: Path) -> Iterator[Superset]:
    """Make a Superset in an empty folder, and run it. The first takes a minute of a processor."""
    config = folder / "superset_config.py"
    config.write_text(CONFIG.format(folder=folder))
    environment = {**os.environ, "SUPERSET_CONFIG_PATH": str(config), "SUPERSET_HOME": str(folder)}
    environment |= {"FLASK_APP": "superset"}
    program = str(python.with_name("superset"))
    for step in (("db", "upgrade"), ("fab", "create-admin", *_PERSON), ("init",)):
        done = subprocess.run([program, *step], env=environment, cwd=folder, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()[-3_000:]
    port = free_port()
    command = [program, "run", "--host", "127.0.0.1", "--port", str(port), "--with-threads"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)
        try:
            address = f"http://127.0.0.1:{port}"
            _wait(address, server, folder / "log")
            person = {"username": ADMIN, "password": ADMIN, "provider": "db"}
            login = _asked(address, "POST", "/api/v1/security/login", person)
            yield Superset(address=address, token=login["access_token"])
        finally:
            server.terminate()
            server.wait(60)


def _wait(address: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and server.poll() is None:
        try:
            urllib.request.urlopen(f"{address}/health", timeout=10).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError(log.read_text()[-3_000:])


def _asked(address: str, method: str, path: str, body: object, token: str | None = None) -> Any:
    headers: Mapping[str, str] = {} if token is None else {"Authorization": f"Bearer {token}"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        address + path, data, {"Content-Type": "application/json", **headers}, method=method
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as refused:
        raise SupersetRefused(refused.read().decode()) from None
