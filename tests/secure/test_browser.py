"""The browser's module for secure sums: the parts of the Python client, sealed so that its servers open them."""

import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import lapwing
import lapwing.secure
from lapwing import secure
from lapwing.errors import InvalidParameter
from lapwing.privacy.amounts import written
from lapwing.secure.asked import Asked
from lapwing.secure.device import records_of
from lapwing.secure.numbers import number_between
from lapwing.secure.organising import Totals
from lapwing.secure.relay import Relay
from lapwing.secure.sealing import Opener, envelope_of, sealed_bytes
from lapwing.secure.task import Task, joint_delta
from lapwing.secure.values import Values
from lapwing.secure.vectors import Vector
from lapwing.secure.wire import ID_BYTES
from lapwing.secure.words import Words
from tests.collector.tasks import COIN
from tests.local.test_module import needs_chromium, needs_node
from tests.secure.conftest import NAMES, write_task
from tests.secure.test_relay import relaying, wait_until
from tests.secure.test_road import free_ports, serving
from tests.secure.test_views import Recorded
from tests.support.browser.accessibility import findings
from tests.support.browser.chromium import Browser, shared
from tests.support.browser.places import MODULE as LOCAL
from tests.support.browser.places import in_node, served
from tests.support.effort import one_in, only
from tests.test_one_address import answering

MODULE = Path(lapwing.secure.__file__).parent / "browser" / "lapwing-secure.mjs"
RUNS = Path(__file__).parent / "module" / "runs.mjs"
VALUES = Values(("walk", "bus", "bike"))
NUMBER = number_between("-2.5:120", 1000)
THIRDS = number_between("1/3:7", 9)
SUM = Vector(("a", "b", "c"), Fraction(24), 96, "l1", 96)
LENGTH = Vector(("a", "b", "c"), Fraction(1), 100, "l2", 10_000)
MANY = Values(tuple(f"v{place}" for place in range(300)))
LEVEL = {"alphabet": "_abc", "length": 3, "followed": [""], "more": 2}
WRONG_LEVELS: list[dict[str, object]] = [
    {"alphabet": "aab"}, {"alphabet": "a"}, {"length": 1}, {"length": 65}, {"more": 0}, {"more": 4}, {"followed": []},
    {"followed": ["x"]}, {"followed": ["a", "a"]}, {"followed": ["a", "ab"]}, {"followed": ["abcc"]}, {"more": "2"},
]  # fmt: skip
WORDS = ["", "a", "bba", "abc", "abcd", "x", "a_", "cc"]
LEVELS: dict[Asked, list[str]] = {
    Words("_abc", 3, ("",), 2): WORDS,
    Words("_abc", 3, ("bb", "a_", "ab"), 1): WORDS,
}
ANSWERS: dict[Asked, list[str]] = {
    VALUES: ["walk", "bike"],
    MANY: ["v0", "v17", "v299"],
    NUMBER: ["-3", "12", "0.06125", "1000", " 7.5 ", "119.99"],
    THIRDS: ["1/3", "5", "6.9", "0"],
    SUM: ["8, 7.5, 1", "24,24,24", "0,0,0.1", "1/3, 2/3, 99"],
    LENGTH: ["1,1,1", "0.5, 0.5, 0", "0,0,0"],
}


def node(job: str, given: object) -> Any:
    return in_node(RUNS, {"job": job, "given": given}, MODULE)


@pytest.fixture(scope="module")
def each(tmp_path_factory: pytest.TempPathFactory) -> list[Task]:
    """A task of every kind, plain and checked, all of the same servers."""
    folder = tmp_path_factory.mktemp("servers")
    first = write_task(folder, VALUES)[0]
    made = []
    for asked in ANSWERS:
        for checked in (False, True):
            made.append(replace(first, asked=asked, checked=checked))
    made += [replace(first, asked=asked, checked=True, grid=True) for asked in LEVELS]
    made += [replace(first, checked=True, grid=True), replace(first, asked=MANY, checked=True, grid=True)]
    return made


@needs_node
def test_parts_are_those_of_python_byte_for_byte(each: list[Task]) -> None:
    """From the same random bytes, words beyond the modulus among them."""
    given, expected = [], []
    for task in each:
        for number, answer in enumerate({**ANSWERS, **LEVELS}[task.asked]):
            stream = bytearray(hashlib.shake_256(f"{task.digest} {number}".encode()).digest(40_000))
            stream[ID_BYTES : ID_BYTES + 8] = b"\xff" * 8  # dropped
            entropy = Recorded(bytes(stream))
            expected.append([record.hex() for record in records_of(task, answer, entropy).values()])
            given.append({"task": task.to_text(), "answer": answer, "random": stream.hex()})
    found = node("records", given)
    assert [one.get("records", one) for one in found] == expected
    assert [one["digest"] for one in found] == [task.digest for task in each for _ in {**ANSWERS, **LEVELS}[task.asked]]


@pytest.mark.long
@needs_node
def test_answers_that_are_none_are_refused_alike(each: list[Task]) -> None:
    for task in each[::2]:
        wrongs = ["", "x", "1e3", "0x1", "nan", "1,2", "--1", "1/0", "1.5.5"]
        for wrong, found in zip(wrongs, node("cells", {"task": task.to_text(), "answers": wrongs}), strict=True):
            try:
                expected: object = [str(cell) for cell in (task.asked if task.grid else task).encode(wrong)]
            except InvalidParameter:
                assert found["kind"] == "answer"
                assert "Nothing was sent" in found["text"]
            else:
                assert found == expected, wrong


@needs_node
def test_tasks_that_lie_are_refused(each: list[Task]) -> None:
    lies: list[Any] = [None, 5, "x", [], {}]
    for task in each[::2]:
        document = task.document
        noise: Any = document["noise"]
        lies += [
            {**document, "epsilon": "2"}, {**document, "noise": {**noise, "scale": "1/2"}}, {**document, "more": 1},
            {**document, "noise": {**noise, "mechanism": "none"}}, {**document, "delta": "0.000001"},
            {**document, "servers": document["servers"][:1]}, {**document, "checked": "yes"},  # type: ignore[index]
            {**document, "format": "lapwing secure task 2"}, {key: document[key] for key in document if key != "noise"},
        ]  # fmt: skip
    lies.append({**each[0].document, "values": ["a", "a"]})
    assert each[-4].document["words"] == LEVEL
    grid = each[-2].document
    lies += [
        {**grid, "grid": 1}, {**grid, "joint": True}, {key: grid[key] for key in grid if key != "checked"},
        {**grid, "least_clients": 5_000_000}, {**each[4].document, "checked": True, "grid": True},
        {**each[0].document, "values": list(map(str, range(10_001)))},
        {key: value for key, value in each[-4].document.items() if key != "grid"},
        *({**each[-4].document, "words": {**LEVEL, **wrong}} for wrong in WRONG_LEVELS),
        {**grid, "epsilon": "1/65536", "noise": {"mechanism": "discrete Laplace", "scale": "131072"}},
    ]  # fmt: skip
    for lie, found in zip(lies, node("tasks", [json.dumps(lie) for lie in lies]), strict=True):
        assert isinstance(found, dict), lie
        assert found["kind"] == "task", (lie, found)
    recorded = (Path(__file__).parents[1] / "fixtures" / "secure" / "task.json").read_text("utf-8")
    (found,) = node("tasks", [recorded])
    assert "no key for sealed parts" in found["text"]


@pytest.mark.long
@needs_node
@pytest.mark.parametrize("epsilon", only([1], ["0.1", "1", "8"]))
@pytest.mark.parametrize("delta", one_in(3, ["0.01", "0.000001", "0.000000000001"]))
def test_gaussian_noise_is_checked(each: list[Task], epsilon: str, delta: str) -> None:
    """Of every kind of answer; noise that is a ten-thousandth too small is refused."""
    good, wrong = [], []
    for task in each[::2]:
        made = replace(task, epsilon=Fraction(epsilon), delta=Fraction(delta))
        noise: Any = made.document["noise"]
        less = written(Fraction(noise["scale"]) * Fraction(9999, 10_000))
        good.append(made.to_text())
        wrong.append(json.dumps({**made.document, "noise": {**noise, "scale": less}}))
    assert all(isinstance(digest, str) for digest in node("tasks", good))
    assert [found.get("kind") for found in node("tasks", wrong)] == ["task"] * len(wrong)


@pytest.mark.long
@needs_node
def test_the_delta_of_a_joint_noise_is_checked(each: list[Task]) -> None:
    good = [replace(task, joint=True, delta=joint_delta(task.asked)) for task in each if not task.grid]
    assert node("tasks", [task.to_text() for task in good]) == [task.digest for task in good]
    wrong: list[Any] = [{**task.document, "delta": written(task.delta / 2)} for task in good]
    wrong += [{**task.document, "joint": 1} for task in good]
    wrong += [{**each[0].document, "joint": True}, {**good[0].document, "servers": good[0].document["servers"][:2]}]  # type: ignore[index]
    for lie, found in zip(wrong, node("tasks", [json.dumps(lie) for lie in wrong]), strict=True):
        assert found["kind"] == "task", lie


# RFC 9180, A.3.1: DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM in base mode; its first message has aad, so the
# vector here is what follows from its keys and its info for a message without: Python's HPKE opens it below.
SECRET = "f3ce7fdae57e1a310d87f1ebbde6f328be0a99cdbcadf4d6589cf29de4b8ffd2"
OWN = "4995788ef4b9d6132b249ce59a77281493eb39af373d236a1fe415cb0c2d7beb"


@needs_node
def test_what_it_seals_is_hpke() -> None:
    """With the keys of the standard's vectors the encapsulated key is theirs, and another implementation opens it."""
    from cryptography.hazmat.primitives import hpke, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, own = (ec.derive_private_key(int(secret, 16), ec.SECP256R1()) for secret in (SECRET, OWN))
    points = [
        each.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint).hex()
        for each in (key, own)
    ]
    assert points[0].startswith("04fe8c19ce0905191ebc298a9245792531f26f0cece2460639e8bc39cb7f706a82")
    assert points[1].startswith("04a92719c6195d5085104f469a8b9814d5838ff72b60501e2c4466e5e67b325ac9")
    info, plain = b"Ode on a Grecian Urn", b"Beauty is truth, truth beauty"
    given = {"theirs": points[0], "own": {"point": points[1], "secret": OWN}, "info": info.hex(), "plain": plain.hex()}
    sealed = bytes.fromhex(node("seal", given))
    assert sealed[:65].hex() == points[1]
    suite = hpke.Suite(hpke.KEM.P256, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_128_GCM)
    assert suite.decrypt(sealed, key, info=info) == plain


@needs_node
def test_the_folder_is_ready_for_npm() -> None:
    package = json.loads((MODULE.parent / "package.json").read_text())
    assert package["version"] == re.sub(r"\.dev(?=\d+$)", "-dev.", lapwing.__version__)  # as npm writes it
    for name in [package["exports"]["."].removeprefix("./"), *package["files"]]:
        assert (MODULE.parent / name).is_file()
    source = MODULE.read_text()
    assert len(gzip.compress(source.encode(), 9)) <= 12 << 10
    assert "import " not in source.replace("importKey", "")
    for name in ("Math.random", "innerHTML", "eval(", "localStorage"):
        assert name not in source


@pytest.mark.long
@needs_node
def test_servers_open_what_it_seals(tmp_path: Path) -> None:
    task = write_task(tmp_path)[0]
    size = sealed_bytes(task)
    answers = ["walk"] * 3 + ["bus"]
    cells = []
    for envelope in map(bytes.fromhex, node("envelopes", {"task": task.to_text(), "answers": answers})):
        client = envelope[:ID_BYTES]
        opened = [
            Opener(tmp_path / name, task, name).opened(client, envelope[ID_BYTES + i * size :][:size])
            for i, name in enumerate(NAMES)
        ]
        assert None not in opened
        cells.append(
            secure.joined([[int.from_bytes(part[at : at + 8], "little") for at in (0, 8)] for part in opened if part])
        )
    assert cells == [[1, 0]] * 3 + [[0, 1]]


# In Chromium, against a real relay and real servers


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with shared() as found:
        yield found


START = """
    const { openDevice, readTask } = await import(`${location.pathname}lapwing-secure.mjs`);
    const task = await readTask(await (await fetch("task")).text()), url = new URL("answers", location.href).href;
    const device = await openDevice();
    const told = async (act) => { try { return await act() } catch (error) { return error.kind ?? String(error) } };
"""


@pytest.mark.long
@needs_chromium
@pytest.mark.parametrize("checked", only([1], [False, True]), ids=["plain", "checked"])
def test_from_a_browser_to_a_total(tmp_path: Path, browser: Browser, checked: bool) -> None:
    """Answered once, kept while there is no connection, sent again, counted once; a limit is held."""
    task, key = write_task(tmp_path, ports=free_ports(), least=2, checked=checked)
    with ExitStack() as stack:
        for name in NAMES:
            stack.enter_context(serving(tmp_path, task, name))
        relay = Relay(tmp_path / "relay", task)
        stack.callback(relay.close)
        address = stack.enter_context(relaying(relay))
        page = browser.page()
        page.go(f"{address}/secure/{task.digest}/")
        assert (
            page.run(START + "await device.setLimit('0.5'); return told(() => device.answer(task, 'walk', url))")
            == "limit"
        )
        assert page.run(START + "return [await device.revealed(), await device.waiting()]") == [0, []]
        assert (
            page.run(START + "await device.setLimit('1'); return told(() => device.answer(task, 'fly', url))")
            == "answer"
        )
        page.run(START + "await device.answer(task, 'walk', 'http://127.0.0.1:1/answers')")
        assert page.run(START + "return (await device.send())[0].status") == 0
        assert page.run(START + "return [await device.revealed(), (await device.waiting()).length]") == [1, 1]
        assert page.run(START + "return told(() => device.answer(task, 'bus', url))") == "limit"
        # Another person, in a profile of their own, sends at once; and a retry of the same bytes counts once.
        sent = (
            START.replace("openDevice()", "openDevice('another')")
            + """
            await device.answer(task, 'bus', url);
            const first = (await device.send())[0].status;
            return [first, await device.send(), await device.waiting()]"""
        )
        assert page.run(sent) == [200, [], []]
        people = [secure.records_of(task, "walk") for _ in range(5)]
        relay.take(b"".join(envelope_of(task, person) for person in people))
        wait_until(lambda: not any(relay.progress().values()))
        found = secure.close(task, key)
        assert (found.clients, found.dropped) == (6, 0 if checked else None)
        assert page.events("Runtime.exceptionThrown") == []


BOTH = """
    const local = await import("./lapwing-local.mjs"), sums = await import("./lapwing-secure.mjs");
    const coin = local.readTask(COIN), task = await sums.readTask(TASK), nowhere = "http://127.0.0.1:1/answers";
    const reports = await local.openDevice(), answers = await sums.openDevice();
    const told = async (act) => { try { await act(); return "sent" } catch (error) { return error.kind ?? String(error) } };
    const found = [];
    await reports.setLimit("2.2");
    found.push(await told(() => answers.answer(task, "walk", nowhere)), await told(() => reports.answer(coin, "yes", nowhere)));
    found.push(await reports.revealed(), await answers.revealed());
    found.push(await told(() => reports.answer(coin, "yes", nowhere)), await told(async () => answers.answer(await sums.readTask(OTHER), "bus", nowhere)));
    await answers.setLimit("9");
    found.push(await told(() => answers.answer(task, "walk", nowhere)), (await answers.send())[0].status, await reports.revealed());
    return found;
"""  # noqa: E501


@needs_chromium
@pytest.mark.parametrize("planted", [False, True], ids=["shipped", "planted"])
def test_one_limit_for_both_modules_of_a_site(tmp_path: Path, browser: Browser, planted: bool) -> None:
    """What leaves by one module counts in the other; the planted bug: local reports do not count sums."""
    task = write_task(tmp_path)[0]
    site = tmp_path / "site"
    site.mkdir()
    source = LOCAL.read_text(encoding="utf-8")
    counted = "const sumsOf = (device) => device.summed ?? [];"
    assert counted in source
    (site / LOCAL.name).write_text(source.replace(counted, "const sumsOf = () => [];") if planted else source, "utf-8")
    (site / MODULE.name).write_bytes(MODULE.read_bytes())
    (site / "page.html").write_text("<!doctype html><title>Both</title>")
    given = {"COIN": COIN.document, "TASK": task.to_text(), "OTHER": replace(task, question="Another?").to_text()}
    script = BOTH
    for name, value in given.items():
        script = script.replace(f"({name})", f"({json.dumps(value)})")
    both = float(COIN.epsilon) + 1
    with served(site) as address:
        page = browser.page()
        page.go(f"{address}/page.html")
        found = page.run(script)
    good = ["sent", "sent", written(Fraction(COIN.epsilon) + 1), both, "limit", "limit", "limit", 0]
    assert (found == [*good, good[2]]) is not planted


@needs_chromium
def test_the_page_asks_says_who_could_see_and_sends(tmp_path: Path, browser: Browser) -> None:
    """By its form; with what axe-core says of it, at 320 pixels, in light and dark; answered once."""
    task, _ = write_task(tmp_path, ports=free_ports(), least=2)
    relay = Relay(tmp_path / "relay", task)
    with relaying(relay) as address:
        where = f"{address}/secure/{task.digest}/"
        for dark in (False, True):
            page = browser.page()
            page.size(320, 800, dark=dark)
            page.go(where)
            page.wait("document.querySelector('#send')")
            page.run("document.querySelectorAll('details').forEach((one) => { one.open = true })")
            found = findings(page)
            assert (found["violations"], found["unsure"]) == ([], [])
            assert page.run("return document.documentElement.scrollWidth <= innerWidth")
        text = page.run("return document.body.innerText")
        assert "all of north, south and west would have to combine their parts" in text
        assert "at most 73.2 % sure of one. This is the meaning of ε = 1" in text  # 1/(1 + e^-1), rounded up
        page.run("document.querySelector('#send').click()")
        page.wait("document.querySelector('[role=alert]').textContent == 'Please answer first.'")
        assert relay.progress()["north"] == 0
        page.offline(True)
        page.run("document.querySelector('input[value=bus]').click(); document.querySelector('#send').click()")
        page.wait("document.body.innerText.includes('There is no connection')")
        page.offline(False)
        page.wait("document.body.innerText.includes('Sent: a sealed part')")
        assert relay.progress() == {"north": 1, "south": 1, "west": 1}
        page.go(where)
        page.wait("document.body.innerText.includes('has answered this question')")
        assert [event for event in page.events("Log.entryAdded") if "ERR_INTERNET" not in json.dumps(event)] == []
        assert page.run("return document.cookie") == ""
    relay.close()


def close_level(folder: Path, browser: Browser, level: tuple[Task, str], crowd: list[str], words: list[str]) -> Totals:
    """Answer a level of words on its page, each person in a profile of their own and a crowd by relay, and close it."""
    task, key = level
    with ExitStack() as stack:
        for name in NAMES:
            stack.enter_context(serving(folder, task, name))
        relay = Relay(folder / f"relay-{task.digest[:8]}", task)
        stack.callback(relay.close)
        address = stack.enter_context(relaying(relay))
        for word in words:
            page = browser.page()
            page.size(320, 800)
            page.go(f"{address}/secure/{task.digest}/")
            page.wait("document.querySelector('#answer')")
            checked = findings(page)
            assert (checked["violations"], checked["unsure"]) == ([], [])
            assert page.run("return document.documentElement.scrollWidth <= innerWidth")
            assert "A word of at most 3 letters, of abc." in page.run("return document.body.innerText")
            page.run(f"document.querySelector('#answer').value = '{word}'; document.querySelector('#send').click()")
            page.wait("document.body.innerText.includes('Sent: a sealed part')")
            assert page.events("Runtime.exceptionThrown") == []
        relay.take(b"".join(envelope_of(task, secure.records_of(task, word)) for word in crowd))
        wait_until(lambda: not any(relay.progress().values()))
        return secure.close(task, key)


@pytest.mark.long
@needs_chromium
def test_words_are_found_level_by_level_on_the_page(tmp_path: Path, browser: Browser) -> None:
    """Two levels: people type the same word at each, axe finds nothing, and the servers count it to its last letter.

    At ε = 1/2 each server's noise has the scale 4. All three add up to 100 or more with a probability below 10⁻⁸.
    """
    servers = write_task(tmp_path, ports=free_ports())[0].servers
    level = secure.new_task(
        question="Which word?", asked=Words("_abc", 3, ("",), 1), epsilon=Fraction(1, 2), delta=Fraction(0),
        least_clients=3, certificates=[server.certificate for server in servers], checked=True, grid=True,
    )  # fmt: skip
    crowd, words, sure = ["cab"] * 250 + ["b"] * 250, ["cab", "zebra"], 1 - Fraction(1, 10**8)
    expected = ({"c", "b"}, {"cab", "b__"})
    for number, labels in enumerate(expected, 1):
        found = close_level(tmp_path, browser, level, crowd, words)
        assert (found.clients, found.dropped) == (502, 0)
        assert {each.label for each in secure.frequent(found, sure)} == labels
        if number < len(expected):
            level = secure.next_task(found, confidence=sure)


@pytest.mark.long
@needs_chromium
def test_a_task_that_lies_is_refused_on_the_page(tmp_path: Path, browser: Browser) -> None:
    task, _ = write_task(tmp_path, ports=free_ports(), least=2)
    relay = Relay(tmp_path / "relay", task)
    lie = json.dumps({**task.document, "epsilon": "0.1"})
    with patch.object(Task, "to_text", lambda self: lie), relaying(relay) as address:
        page = browser.page()
        page.go(f"{address}/secure/{task.digest}/")
        page.wait("document.body.innerText.includes('Your device refused this question')")
        assert not page.run("return document.querySelector('input, button, form')")
    relay.close()


SENDING = """
    const local = await import("./lapwing-local.mjs"), sums = await import("./lapwing-secure.mjs"), found = [];
    const coin = local.readTask(COIN), task = await sums.readTask(TASK);
    for (const [number, url] of URLS.entries()) {
        const reports = await local.openDevice("reports" + number), answers = await sums.openDevice("answers" + number);
        await reports.answer(coin, "yes", url), await answers.answer(task, "walk", url);
        const statuses = [(await reports.send())[0].status, (await answers.send())[0].status];
        found.push([...statuses, (await reports.waiting()).length, (await answers.waiting()).length]);
    }
    return found;
"""


@needs_chromium
@pytest.mark.parametrize("planted", only([0], [False, True]), ids=["shipped", "follows"])
def test_what_is_sent_stays_at_its_address_until_that_has_taken_it(
    tmp_path: Path, browser: Browser, planted: bool
) -> None:
    """Neither a redirect is followed, nor is a page of a network to sign in to taken for a receipt or a refusal."""
    task, site = write_task(tmp_path)[0], tmp_path / "site"
    site.mkdir()
    for module in (LOCAL, MODULE):
        source = module.read_text(encoding="utf-8")
        assert 'redirect: "error"' in source
        (site / module.name).write_text(source.replace('redirect: "error"', "") if planted else source, "utf-8")
    (site / "page.html").write_text("<!doctype html><title>Both</title>")
    to_all = {"access-control-allow-origin": "*", "access-control-allow-headers": "*"}
    taken = b'{"taken": 1, "repeated": 0, "rejected": 0, "reasons": [], "new": 1}'
    refusal, sign_in = b'{"code": "query_refused", "detail": "closed", "status": 409}', b"<html>Sign in</html>"
    with ExitStack() as stack:
        elsewhere, heard = stack.enter_context(answering(200, to_all, taken))
        replies: list[tuple[int, dict[str, str], bytes]] = [
            (307, {"location": elsewhere}, b""), (302, {"location": elsewhere}, b""), (200, {}, sign_in),
            (403, {}, sign_in), (200, {}, b"null"), (409, {}, refusal), (200, {}, taken),
        ]  # fmt: skip
        urls = [stack.enter_context(answering(code, to_all | more, body))[0] for code, more, body in replies]
        script = SENDING.replace("URLS", json.dumps(urls))
        script = script.replace("(COIN)", f"({json.dumps(COIN.document)})")
        script = script.replace("(TASK)", f"({json.dumps(task.to_text())})")
        page = browser.page()
        page.go(f"{stack.enter_context(served(site))}/page.html")
        found = page.run(script)
    kept = [0, 0, 1, 1]
    good = [kept, kept, kept, [0, 403, 1, 1], kept, [409, 409, 0, 1], [200, 200, 0, 0]]
    assert (found == good, heard == []) == (not planted, not planted)


@needs_chromium
def test_the_page_asks_whether_a_large_delta_is_accepted(tmp_path: Path, browser: Browser) -> None:
    """Nothing is kept or sent before the box is ticked; then the page says what was spent of both coordinates."""
    task, _ = write_task(tmp_path, ports=free_ports(), least=2)
    task = replace(task, delta=Fraction(1, 1000), least_clients=100)
    relay = Relay(tmp_path / "relay", task)
    with relaying(relay) as address:
        page = browser.page()
        page.go(f"{address}/secure/{task.digest}/")
        page.wait("document.querySelector('#accept')")
        assert "I accept the chance δ = 0.001 that ε fails." in page.run("return document.body.innerText")
        assert not page.run("return document.querySelector('#accept').checked")
        page.run("document.querySelector('input[value=bus]').click(); document.querySelector('#send').click()")
        page.wait("document.querySelector('[role=alert]').textContent.includes('accept δ')")
        text = page.run("return document.body.innerText")
        assert "This answer costs ε = 1 and δ = 0.001" in text
        assert "This device has spent ε = 0 so far" in text
        assert relay.progress()["north"] == 0
        page.run("document.querySelector('#accept').click(); document.querySelector('#send').click()")
        page.wait("document.body.innerText.includes('Sent: a sealed part')")
        page.wait("document.body.innerText.includes('This device has spent ε = 1 and δ = 0.001 so far')")
        assert relay.progress()["north"] == 1
    relay.close()
