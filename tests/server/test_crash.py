"""`kill -9` of the service while eight callers ask: what was told stays so, and no key is charged twice.

When the process is killed does not matter: what is checked holds whenever that is.
"""

import http.client
import json
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from tests.server.test_serving import served, token
from tests.support.cli.command import write_visits

THREADS = 8


def sent(port: int, secret: str, path: str, body: object, key: str) -> tuple[int, bytes]:
    """Send one request and return its status and content."""
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json", "Idempotency-Key": key}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("POST", path, json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, response.read()


def question(number: int) -> dict[str, Any]:
    return {"sql": f"SELECT COUNT(*) AS n FROM visits WHERE cost < {number}", "epsilon": 0.01}


def asked_until_killed(folder: Path, first: int, enough: int) -> Mapping[int, bytes | None]:
    """Ask with eight threads, kill the service after some answers, and return what was told to each question sent."""
    told: dict[int, bytes | None] = {}
    answered = threading.Semaphore(0)
    with served(folder, "visits.lapwing.toml", "--rate", "0") as (process, port):
        secret = token(port)

        def asking(thread: int) -> None:
            for number in range(first + thread, first + 500, THREADS):
                told[number] = None
                try:
                    status, content = sent(port, secret, "/v1/datasets/visits/query", question(number), f"key {number}")
                except (OSError, http.client.HTTPException):
                    return
                assert status == 200, content
                told[number] = content
                answered.release()

        threads = [threading.Thread(target=asking, args=(thread,)) for thread in range(THREADS)]
        for thread in threads:
            thread.start()
        for _ in range(enough):
            assert answered.acquire(timeout=60)
        process.kill()
        for thread in threads:
            thread.join()
    return told


LONG = pytest.mark.long


@pytest.mark.long
@pytest.mark.parametrize("enough", [12, pytest.param(1, marks=LONG), pytest.param(25, marks=LONG)])
def test_a_killed_service_charges_no_key_twice(tmp_path: Path, enough: int) -> None:
    write_visits(tmp_path)
    unit, bounds = {"privacy_unit": "person_id", "max_rows_per_unit": 3}, {"cost": (0, 500)}
    lw.protect(tmp_path / "visits.parquet", epsilon=3, delta=1e-6, bounds=bounds, **unit).close()  # type: ignore[arg-type]
    told = asked_until_killed(tmp_path, 1, enough)
    with served(tmp_path, "visits.lapwing.toml", "--rate", "0") as (_, port):
        secret = token(port)
        for number, content in told.items():
            status, again = sent(port, secret, "/v1/datasets/visits/query", question(number), f"key {number}")
            if content is not None:
                assert (status, again) == (200, content)
            else:
                assert status == 200 or json.loads(again)["code"] == "key_conflict"
    with lw.connect(tmp_path / "visits.lapwing.toml") as session:
        charged = Counter(row.question for row in session.budget().history)
        session._ledger.verify()
    assert max(charged.values()) == 1
    assert len(charged) <= len(told)
