"""A promise has two coordinates: a device limits δ beside ε, in Python and in browsers, and says both."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import pytest

from lapwing import secure
from lapwing.errors import InvalidParameter
from lapwing.local.client import device as devices
from lapwing.secure import task as tasks
from lapwing.secure.device import answer_on_device
from lapwing.secure.task import Task
from tests.local.test_module import RUNS as LOCAL_RUNS
from tests.local.test_module import needs_chromium, needs_node
from tests.secure.conftest import write_task
from tests.secure.test_browser import MODULE, browser, node
from tests.support.browser.chromium import Browser
from tests.support.browser.places import MODULE as LOCAL
from tests.support.browser.places import in_node, served
from tests.support.cli.command import Run, run
from tests.support.effort import one_in, only
from tests.support.refusals import refused_as

__all__ = ["browser", "run"]
EXPOSING: Final[dict[str, Any]] = {"epsilon": Fraction(1, 10**6), "delta": Fraction("0.9999999"), "least_clients": 2}
"""Noise of deviation 0.02: the promise holds, and says nothing."""


def with_delta(task: Task, delta: str, **more: Any) -> Task:
    return replace(task, delta=Fraction(delta), least_clients=100, **more)


def test_a_promise_that_says_nothing_is_refused_by_clients_and_opens_still(tmp_path: Path, task: Task) -> None:
    exposing = Task.from_text(replace(task, **EXPOSING).to_text())
    for accepted in (None, Fraction("0.99999999")):
        with refused_as("delta_too_large"):
            answer_on_device(tmp_path / "device.json", exposing, "walk", limit=Fraction(1, 100), accept_delta=accepted)
    assert not (tmp_path / "device.json").exists()
    with pytest.raises(InvalidParameter, match="above 1/2"):
        secure.new_task(question="?", asked=task.asked, certificates=[s.certificate for s in task.servers], **EXPOSING)
    at_the_edge = replace(task, delta=Fraction(1, 2), least_clients=2)
    assert answer_on_device(tmp_path / "device.json", at_the_edge, "walk", accept_delta=Fraction(1, 2))


def small(path: Path, task: Task) -> None:
    """Two tasks that no device accepts unasked: δ is large, and it adds up."""
    with refused_as("delta_too_large", saying="1e-5"):
        answer_on_device(path, with_delta(task, "0.000011"), "walk", limit=Fraction(9))
    answer_on_device(path, with_delta(task, "0.000006"), "walk", limit=Fraction(9))
    with refused_as("report_refused", saying=r"0\.000012 .* 0\.00001\."):
        answer_on_device(path, with_delta(task, "0.000006", question="And back?"), "walk")


def test_delta_is_capped_and_adds_up(tmp_path: Path, task: Task) -> None:
    path = tmp_path / "device.json"
    small(path, task)
    answer_on_device(
        path, with_delta(task, "0.001"), "walk", accept_delta=Fraction("0.001"), delta_limit=Fraction("0.002")
    )
    found = secure.read_device(path)
    assert (found.delta, found.delta_limit) == (Fraction("0.001006"), Fraction("0.002"))
    assert devices.read_device(str(path)).delta() == Decimal("0.001006")
    with refused_as("report_refused", saying=r"0\.002"):
        answer_on_device(path, with_delta(task, "0.001", question="?"), "walk", accept_delta=Fraction(1, 2))
    answer_on_device(path, replace(task, question="Without?"), "walk")  # no δ, so nothing of it is exceeded
    answer_on_device(tmp_path / "other.json", with_delta(task, "0.000006"), "walk")
    answer_on_device(tmp_path / "other.json", with_delta(task, "0.000007"), "walk")  # no limit, so none of the sum


def test_planted_faults_are_noticed(tmp_path: Path, task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twins: δ is dropped from the sum; the cap is off."""
    monkeypatch.setattr(devices.Device, "delta", lambda *_: Decimal(0))
    with pytest.raises(pytest.fail.Exception):
        small(tmp_path / "dropped.json", task)
    monkeypatch.undo()
    monkeypatch.setattr(tasks, "MOST_DELTA", Fraction(1))
    with pytest.raises(AssertionError):  # it is refused later, by the limit
        small(tmp_path / "off.json", task)


def old(task: Task, delta: str) -> dict[str, Any]:
    """A device's document as earlier versions wrote it: δ is in what the client of sums keeps."""
    summed = {"question": "?", "epsilon": "1", "day": "2026-11-01", "kept": {"delta": delta, "waiting": {}}}
    return {
        "format": 1, "began": "2026-11-01", "limit": "9", "reported": [], "summed": [{"task": task.digest, **summed}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("delta", "read"),
    only([2], [("0", "0"), ("0.001", "0.001"), ("1/3", "0." + "3" * 23 + "4"), ("0.9999999", "0.9999999")], many=True),
)
def test_files_of_earlier_versions_open_with_their_delta(
    tmp_path: Path, task: Task, delta: str, read: str, run: Run
) -> None:
    document = old(task, delta)
    path = tmp_path / "device.json"
    path.write_text(json.dumps(document))
    path.chmod(0o600)
    assert devices.read_device(str(path)).delta() == Decimal(read)
    assert devices.read_device(str(path)).most_delta == devices.MOST_DELTA
    shown = run("local", "device", str(path))
    assert (", delta " in shown.err) is (delta != "0")
    devices.set_delta_limit(str(path), Decimal("0.5"), datetime.now(UTC).date())
    written = json.loads(path.read_text())
    assert (written["delta_limit"], written["summed"][0]["delta"]) == ("0.5", read)
    if needs_node.args[0]:
        return
    for each in (document, written):
        assert in_node(LOCAL_RUNS, {"job": "delta", "given": each}, LOCAL) == read


@pytest.mark.parametrize(
    "planted", one_in(3, [{"delta": "2"}, {"delta": 0}, {"delta": "x"}, {"kept": {}}, {"kept": {"delta": 1}}])
)
def test_a_sum_without_a_delta_is_no_sum(tmp_path: Path, task: Task, planted: dict[str, Any]) -> None:
    document = old(task, "0")
    document["summed"][0] |= planted
    path = tmp_path / "device.json"
    path.write_text(json.dumps(document))
    path.chmod(0o600)
    with pytest.raises(devices.DeviceRefused):
        devices.read_device(str(path))
    if not needs_node.args[0]:
        assert in_node(LOCAL_RUNS, {"job": "delta", "given": document}, LOCAL)["kind"] == "device"


def test_commands_say_and_limit_delta(tmp_path: Path, task: Task, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "task.json").write_text(with_delta(task, "0.001").to_text())
    servers = [f"--server={name}/server.crt" for name in ("north", "south", "west")]
    ask = ("secure", "init", "--question", "?", "--value", "a", "--value", "b", "--epsilon", "0.000001", *servers)
    refused = run(*ask, "--delta", "0.9999999", "--least-clients", "2")
    assert (refused.status, "above 1/2" in refused.err, (tmp_path / "task.key").exists()) == (2, True, False)
    assert "clients refuse the task unless" in run(*ask, "--delta", "0.001", "--output", "large.json").err

    refused = run("secure", "send", "task.json", stdin=b"walk\n")
    assert (refused.status, "--accept-delta" in refused.err, (tmp_path / "device.json").exists()) == (3, True, False)
    answer_on_device(tmp_path / "device.json", with_delta(task, "0.001"), "walk", accept_delta=Fraction("0.001"))
    shown = run("local", "device", "device.json", "--format", "table")
    assert "epsilon 1, delta 0.001 since" in shown.err
    assert "0.001" in shown.out
    limited = run("local", "device", "device.json", "--delta-limit", "0.0015", "--format", "json")
    document = json.loads(limited.out)
    assert (document["delta"], document["delta_limit"], document["reported"][0]["delta"]) == (
        "0.001",
        "0.0015",
        "0.001",
    )
    assert "delta 0.0015" in limited.err
    assert run("local", "device", "device.json", "--limit", "3", "--no-limit").status == 2
    assert (
        json.loads(run("local", "device", "device.json", "--no-limit", "--format", "json").out)["delta_limit"] is None
    )


@needs_node
def test_the_module_refuses_what_python_refuses(task: Task) -> None:
    good, exposing = replace(task, delta=Fraction(1, 2), least_clients=2), replace(task, **EXPOSING)
    found = node("tasks", [good.to_text(), exposing.to_text()])
    assert (found[0], found[1]["kind"]) == (good.digest, "task")
    assert "above one over its least number" in found[1]["text"]


BROWSER: Final = """
    const local = await import("./lapwing-local.mjs"), sums = await import("./lapwing-secure.mjs");
    const device = await sums.openDevice(), reports = await local.openDevice(), nowhere = "http://127.0.0.1:1/answers";
    const told = async (text, how) => { try { await device.answer(await sums.readTask(text), "walk", nowhere, how); return "sent" } catch (error) { return error.kind ?? String(error) } };
    await device.setLimit("9");
    const found = [await told(LARGE), await told(FIRST), await told(SECOND), await told(LARGE, { acceptDelta: "0.001" })];
    await reports.setLimit("9", "0.002");
    found.push(await told(SECOND), await told(LARGE, { acceptDelta: "0.0009" }), await told(LARGE, { acceptDelta: "0.001" }));
    return [...found, await device.revealedDelta(), await reports.revealedDelta(), await device.limits(), await reports.document()];
"""  # noqa: E501


@needs_chromium
@pytest.mark.parametrize(
    "planted",
    one_in(
        2, [None, ("all + chance(delta ?? kept.delta)", "all"), ("below(fraction(acceptDelta), task.delta)", "false")]
    ),
    ids=["shipped", "dropped from the sum", "cap off"],
)
def test_a_browser_limits_delta(tmp_path: Path, browser: Browser, planted: tuple[str, str] | None) -> None:
    """In the document that both modules share, and that Python reads."""
    task = write_task(tmp_path)[0]
    site = tmp_path / "site"
    site.mkdir()
    source = MODULE.read_text(encoding="utf-8")
    assert planted is None or planted[0] in source
    (site / MODULE.name).write_text(source.replace(*planted) if planted else source, "utf-8")
    (site / LOCAL.name).write_bytes(LOCAL.read_bytes())
    (site / "page.html").write_text("<!doctype html><title>Both</title>")
    script = BROWSER
    each = {
        "LARGE": with_delta(task, "0.001"), "FIRST": with_delta(task, "0.000006"),
        "SECOND": with_delta(task, "0.000006", question="And back?"),
    }  # fmt: skip
    for name, one in each.items():
        script = script.replace(f"({name}", f"({json.dumps(one.to_text())}")
    with served(site) as address:
        page = browser.page()
        page.go(f"{address}/page.html")
        *found, mine, theirs, limits, document = page.run(script)
    good = ["limit", "sent", "limit", "limit", "sent", "limit", "sent"]
    assert (found == good) is (planted is None)
    if planted is None:
        assert (mine, theirs, limits) == ("0.001012", "0.001012", {"epsilon": "9", "delta": "0.002"})
        path = tmp_path / "device.json"
        path.write_text(json.dumps(document))
        path.chmod(0o600)
        assert devices.read_device(str(path)).delta() == Decimal("0.001012")
