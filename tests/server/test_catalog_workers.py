"""A catalog that one process of a service puts into force, and that all others ask by from then on."""

import http.client
import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lapwing.catalog.toml import load
from tests.support.server.crew import CATALOG, crew, prepared

SUM = "SELECT SUM(cost) AS total FROM visits WHERE cost < {}"


def sent(port: int, token: str, method: str, path: str, body: object = None) -> Any:
    """Send a request on a connection of its own, to whichever worker takes it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        answered = response.read()
        assert response.status == 200, answered
        return json.loads(answered)
    finally:
        connection.close()


def width(port: int, token: str, number: int) -> float:
    body = {"sql": SUM.format(number), "epsilon": 100}
    (low,), (high,) = (
        sent(port, token, "POST", "/v1/datasets/visits/query", body)["intervals"]["total"][end]
        for end in ("low", "high")
    )
    return float(high) - float(low)


@pytest.mark.long
@pytest.mark.parametrize("padding", [True, False])
def test_every_worker_and_every_question_process_asks_by_it(tmp_path: Path, padding: bool) -> None:
    tokens = prepared(tmp_path, epsilon=10**6, least=Fraction(0))
    file = tmp_path / CATALOG
    file.write_text(re.sub("(max_rows_per_unit = .*)", r"\1\nrows_at_most = 20_000", file.read_text(), count=1))
    with crew(tmp_path, number=2, padding=padding) as running:
        port = running.port
        running.wait_for("worker started", 2)
        before = [width(port, tokens["bob"], 400 + number) for number in range(6)]
        known = sent(port, tokens["carol"], "GET", "/v1/datasets/visits/catalog")
        other = known["catalog"].replace("upper = 500", "upper = 50")
        made = sent(
            port, tokens["carol"], "PUT", "/v1/datasets/visits/catalog", {"catalog": other, "was": known["state"]}
        )
        assert (made["number"], made["unaccepted"]) == (2, [])
        bounds = {
            sent(port, tokens["bob"], "GET", "/v1/datasets/visits")["tables"][0]["columns"]["cost"]["upper"]
            for _ in range(12)
        }
        assert bounds == {"50"}
        after = [width(port, tokens["bob"], 410 + number) for number in range(6)]
        assert max(after) < min(before) / 5
        spent = sent(port, tokens["carol"], "GET", "/v1/datasets/visits/budget")["spent"]
        assert Fraction(spent["amount"]) == 12 * 100
    assert "upper = 50" in file.read_text()
    assert load(file).digest
    assert running.told("catalog taken up") != []
