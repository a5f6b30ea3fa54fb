"""The pages about the service: what they show is run, and every request and code has its place."""

import os
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from shutil import which
from typing import get_args

import pytest

from lapwing.datasets import rand_hie_data
from lapwing.documents.people_document import Right
from lapwing.privacy import loss_for
from lapwing.server import problems
from lapwing.server.people import RIGHTS_OF
from tests.server.test_serving import PASSWORD, served
from tests.support.docs.pages import DOCS, blocks
from tests.support.server.world import World

SERVE = DOCS / "how-to" / "serve.md"
HTTP = (DOCS / "reference" / "http.md").read_text(encoding="utf-8")
START = "lapwing serve "


def script(port: int) -> str:
    """Return all blocks of the page but the first as one script for bash, which ends at the first failure.

    The page's Python is fenced as `py`, as it takes a service, which `tests.docs` does not start.
    """
    start, *others = [block for block in blocks(SERVE) if block.language in ("sh", "py")]
    assert start.text.startswith(START)
    lines = ["set -eu", f'lapwing() {{ "{sys.executable}" -m lapwing "$@"; }}']
    lines.append('curl() { command curl --fail-with-body "$@"; }')
    for block in others:
        python = f"\"{sys.executable}\" - <<'END'\n{block.text}END"
        lines.append(python if block.language == "py" else block.text)
    return "\n".join(lines).replace("127.0.0.1:8000", f"127.0.0.1:{port}")


@pytest.mark.skipif(not (which("bash") and which("curl")), reason="the page is for bash and curl")
@pytest.mark.long
def test_the_page_about_serving_works(tmp_path: Path) -> None:
    (tmp_path / "rand_hie.parquet").write_bytes(rand_hie_data().read_bytes())
    first = next(block.text for block in blocks(SERVE) if block.language == "sh")
    arguments = first.removeprefix(START).replace("\\\n", " ").split()
    with served(tmp_path, *arguments) as (_, port):
        environment = {**os.environ, "COLUMNS": "88", "LAPWING_PASSWORD": PASSWORD}
        ran = subprocess.run(
            ["bash", "-c", script(port)], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"yours .* of the budget is left for the team nurses", ran.stdout)
    assert re.search(r"curator +resumed +rand_hie", ran.stdout)
    assert "True" in ran.stdout.split("\n")


def test_the_page_about_serving_needs_curl_for_one_request_at_most() -> None:
    shown = "".join(block.text for block in blocks(SERVE) if block.language == "sh")
    assert shown.count("curl ") == 1
    assert "sed " not in shown


@pytest.mark.long
def test_every_request_is_described(shared: World) -> None:
    described = shared.ask("GET", "/openapi.json").document
    for path, methods in described["paths"].items():
        for method in methods:
            assert f"`{method.upper()} {path}`" in HTTP, f"{method} {path}"


@pytest.mark.parametrize("right", get_args(Right))
def test_rights_are_those_of_the_roles(right: Right) -> None:
    (row,) = re.findall(rf"^\| `{right}` \| .* \| (.*) \|$", HTTP, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", row)) == {role for role, rights in RIGHTS_OF.items() if right in rights} or (
        row == "all" and all(right in rights for rights in RIGHTS_OF.values())
    )


def test_every_code_has_its_status() -> None:
    for kind, status in problems.STATUS.items():
        row = rf"^\| {status} \| .*`{kind.code}`"
        assert re.search(row, HTTP, re.MULTILINE), kind.code


def test_what_a_hundred_analysts_hold_together() -> None:
    page = SERVE.read_text(encoding="utf-8").replace("\n", " ")
    epsilon = (100 * loss_for("gdp", Fraction(1), Fraction(1, 10**6))).to_epsilon(delta=1e-6)
    assert f"a hundred analysts with ε = 1 each, at δ = 1e-6, hold what one with ε = {epsilon:.1f} would" in page
