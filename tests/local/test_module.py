"""The browser's module: the bytes, laws and refusals of the Python client, in Node and in Debian's Chromium."""

import gzip
import json
import os
import random
import re
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from lapwing.local import (
    BinaryResponse,
    DyadicTree,
    KaryResponse,
    Memoised,
    SubsetSelection,
    client,
    new_task,
    randomizer_of,
)
from lapwing.local.client import device as devices
from lapwing.local.client.answers import plain
from lapwing.local.client.rules import epsilon_up
from tests.local.test_client import GOOD, VECTORS, tasks_of_vectors
from tests.support.browser.chromium import Page, find_chromium, shared
from tests.support.browser.places import MODULE, NODE, in_node, served
from tests.support.effort import one_in, only
from tests.support.fixed_entropy import RecordedEntropy, StreamEntropy

RUNS = Path(__file__).parent / "module" / "runs.mjs"
MOST = 12 << 10
OPEN: dict[str, Any] = {"opens": date(2027, 1, 4), "closes": date(2027, 12, 31)}

needs_node = pytest.mark.skipif(NODE is None, reason="Node is not installed (Debian: apt install nodejs)")
needs_chromium = pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (apt install chromium)")


def node(job: str, given: object, module: Path = MODULE) -> Any:
    return in_node(RUNS, {"job": job, "given": given}, module)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page at an address where the module and the tests' own script are."""
    folder = tmp_path_factory.mktemp("module")
    (folder / "lapwing-local.mjs").write_bytes(MODULE.read_bytes())
    (folder / "runs.mjs").write_bytes(RUNS.read_bytes())
    (folder / "index.html").write_text("<!doctype html><title>Module</title>")
    with shared() as browser, served(folder) as address:
        page = browser.page()
        page.go(f"{address}/index.html")
        yield page


def chromium(page: Page, job: str, given: object) -> Any:
    request = json.dumps({"job": job, "given": given})
    return page.run(
        f"const m = await import('./lapwing-local.mjs'), r = await import('./runs.mjs'); return r.run(m, {request});"
    )


# Bytes


def vectors() -> list[dict[str, Any]]:
    return [vector for file in VECTORS for vector in json.loads(file.read_text(encoding="utf-8"))["reports"]]


def check_vectors(answers: list[dict[str, Any]]) -> None:
    expected = vectors()
    assert len(answers) == len(expected) > 100
    for vector, answer in zip(expected, answers, strict=True):
        assert answer == {
            "digest": vector["digest"],
            "line": vector["report"],
            "kept": vector.get("kept", {}),
            "used": len(vector["random"]) // 2,
        }


@pytest.mark.long
@needs_node
def test_every_vector_in_node() -> None:
    check_vectors(node("reports", vectors()))


@needs_chromium
def test_every_vector_in_chromium(page: Page) -> None:
    check_vectors(chromium(page, "reports", vectors()))


def any_answer(document: dict[str, Any], draw: random.Random) -> Any:
    if "attributes" in document:
        return {each["question"]: any_answer(each, draw) for each in document["attributes"]}
    if "values" in document:
        return draw.choice(document["values"])
    if "number" in document:
        return f"{draw.choice(['', '-'])}{draw.randrange(200)}.{draw.randrange(10**6):06d}"
    return "".join(draw.choices("aé字z0 ", k=draw.randint(1, document["text"]["most_bytes"] // 3)))


def compare_with_python(rounds: int, seed: object) -> None:
    """Some reports to each task of the vectors, one after another, with what is kept, from the same random bytes."""
    draw, given, expected = random.Random(str(seed)), [], []
    for number in range(rounds):
        for document in tasks_of_vectors().values():
            task = client.task_of(document)
            memory: client.Memory = {}
            stream = StreamEntropy(f"{seed} {number} {task.digest}")
            for period in range(1, 4):
                bytes_ = stream.read(9_000)
                answer = any_answer(document, draw)
                given.append(
                    {"task": document, "answer": answer, "memory": memory, "period": period, "random": bytes_.hex()}
                )
                entropy = RecordedEntropy(bytes_)
                line, memory = client.report_with_memory(task, answer, entropy.read, memory, period)
                expected.append(
                    {
                        "digest": task.digest,
                        "line": line.decode() if line else None,
                        "kept": dict(memory),
                        "used": len(bytes_) - entropy.unread,
                    }
                )
    assert node("reports", given) == expected


@needs_node
def test_it_says_what_python_says() -> None:
    compare_with_python(2, "module")


@needs_node
@pytest.mark.long
def test_it_says_what_python_says_at_length() -> None:
    for number in range(20):
        compare_with_python(20, f"{os.environ.get('LAPWING_SEED', '')} {number}")


@pytest.mark.long
@needs_node
def test_logarithms_are_those_of_python() -> None:
    draw = random.Random("logarithms")
    ratios = [(2, 1), (1, 1), (3, 1), (2**64, 1), (2**64 - 1, 2**64 - 2), (3**5000, 2**5000)]
    for size in (8, 64, 128, 3000):
        for _ in range(50):
            low = draw.getrandbits(size) + 1
            ratios.append((low + draw.getrandbits(draw.choice((size, size // 2, 1))), low))
    expected = [str(epsilon_up(Fraction(*ratio))) for ratio in ratios]
    answers = node("epsilons", [[str(top), str(bottom)] for top, bottom in ratios])
    assert [Decimal(one) for one in answers] == [Decimal(one) for one in expected]


# Laws


TASKS = {
    "binary": (new_task("?", ["no", "yes"], BinaryResponse.from_coins(Fraction(1, 2), Fraction(1, 3)), **OPEN), "yes"),
    "k-ary": (new_task("?", list("abcde"), KaryResponse.for_epsilon(1, 5), **OPEN), "c"),
    "subset": (new_task("?", list("abcde"), SubsetSelection.for_epsilon(1, 5, 2), **OPEN), "c"),
}


def check_law(counts: dict[str, int], name: str, draws: int) -> None:
    """Every report's count is within 5 standard deviations of its exact law."""
    task, answer = TASKS[name]
    matrix = randomizer_of(task).transition_matrix()
    row = matrix.rows[task.values.index(answer)]
    assert sum(counts.values()) == draws
    for said, chance in zip(matrix.reports, row, strict=True):
        key = json.dumps(list(said) if isinstance(said, tuple) else said, separators=(",", ":"))
        p = float(chance)
        assert abs(counts.get(key, 0) - draws * p) < 5 * sqrt(draws * p * (1 - p)), (name, said)


def weaker(document: dict[str, Any]) -> dict[str, Any]:
    """The same mechanism with a threshold that is a tenth smaller, and the ε of that."""
    mechanism = dict(document["mechanism"])
    key = next(key for key in mechanism if key.startswith("threshold"))
    mechanism[key] = str(int(mechanism[key]) * 9 // 10)
    changed = {**document, "mechanism": mechanism}
    stated = re.compile(r"thresholds have epsilon ([0-9.]+);")
    with pytest.raises(client.TaskRefused, match=stated) as lie:
        client.task_of(changed)
    found = stated.search(str(lie.value))
    assert found is not None
    return {**changed, "epsilon": found[1]}


def law_of(name: str, draws: int, where: Any, document: dict[str, Any] | None = None) -> dict[str, int]:
    task, answer = TASKS[name]
    found: dict[str, int] = where("law", {"task": document or task.document, "answer": answer, "draws": draws})
    return found


@needs_node
@pytest.mark.parametrize("name", only([2], TASKS))
def test_reports_have_their_law(name: str) -> None:
    check_law(law_of(name, 20_000, node), name, 20_000)
    with pytest.raises(AssertionError):
        check_law(law_of(name, 20_000, node, weaker(TASKS[name][0].document)), name, 20_000)


@pytest.mark.long
@needs_node
@needs_chromium
@pytest.mark.parametrize("name", TASKS)
def test_a_million_reports_have_their_law(name: str, page: Page) -> None:
    check_law(law_of(name, 10**6, node), name, 10**6)
    check_law(law_of(name, 10**6, lambda job, given: chromium(page, job, given)), name, 10**6)


# Refusals


def hostile_tasks() -> list[Any]:
    """What Python refuses: a wrong ε in the last digit, a part that is missing, wrong or too much."""
    found: list[Any] = [None, 3, [], "", "{", "[" * 5000, {}]
    for document in tasks_of_vectors().values():
        task = client.task_of(document)
        for name, epsilon in task.epsilons:
            found += [{**document, name: format(epsilon + change * Decimal("1e-12"), "f")} for change in (-1, 1)]
            found.append({key: value for key, value in document.items() if key != name})
        for name in {"epsilon_unchanged", "epsilon_all", "more"} - set(document):
            found.append({**document, name: document["epsilon"]})
        for name in document:
            nothing: list[Any] = [None, -1, "", [], {}, True, "\u202e", "e\u0301"]
            found += [{**document, name: wrong} for wrong in nothing]
        for key, _ in task.parameters:
            odd: list[Any] = [str(2**64 + 1), "-1", "007", 1.5, None, [1], ["5"]]
            found += [{**document, "mechanism": {**document["mechanism"], key: wrong}} for wrong in odd]
        found += [{**document, kind: ["a", "b"]} for kind in ("values", "number", "text", "attributes")]
    found += [{**GOOD, "opens": day} for day in ("2027-02-31", "2027-2-3", "2027-12-31T00:00", "2028-01-01")]
    found += [{**GOOD, "values": ["a", "a", "b"]}, {**GOOD, "mechanism": {"name": "__proto__"}}]
    return found


def refused_by_python(task: object) -> bool:
    try:
        client.read_task(task) if isinstance(task, str) else client.task_of(task)
    except client.TaskRefused:
        return True
    return False


@needs_node
def test_hostile_tasks_are_refused() -> None:
    tasks = [task for task in hostile_tasks() if refused_by_python(task)]
    assert len(tasks) > 800
    for task, answer in zip(tasks, node("tasks", tasks), strict=True):
        assert isinstance(answer, dict) and answer["kind"] == "task", (task, answer)  # noqa: PT018


@pytest.mark.long
@needs_node
def test_a_module_that_trusts_the_task_is_caught(tmp_path: Path) -> None:
    planted = tmp_path / "planted.mjs"
    source = MODULE.read_text(encoding="utf-8")
    assert source.count("need(document[name] === found") == 1
    planted.write_text(source.replace("need(document[name] === found", "need(true"), encoding="utf-8")
    lies = [{**document, "epsilon": "0.1"} for document in tasks_of_vectors().values()]
    assert all(isinstance(answer, dict) for answer in node("tasks", lies))
    assert not any(isinstance(answer, dict) for answer in node("tasks", lies, planted))


@pytest.mark.long
@needs_node
def test_answers_that_are_none_are_refused() -> None:
    given = []
    for document in tasks_of_vectors().values():
        wrong: list[Any] = ["\ud800", "", None, 3, ["a"], {}]
        if "number" in document:
            wrong += ["1e3", "Infinity", "1.1234567", "٣"]
        given += [{"task": document, "answer": answer, "random": "00" * 4000} for answer in wrong]
    for one, answer in zip(given, node("reports", given), strict=True):
        assert answer.get("kind") == "answer", (one["task"]["mechanism"], one["answer"], answer)


@needs_node
def test_too_few_bytes_send_nothing() -> None:
    document = TASKS["binary"][0].document
    for size in (0, 15, 16, 23):
        (answer,) = node("reports", [{"task": document, "answer": "yes", "random": "00" * size}])
        assert answer["kind"] == "randomness"


# The device


KEPT = new_task("Which, always?", ["a", "b", "c"], Memoised.for_epsilons(Fraction(1, 2), 2, 3), **OPEN)
FRESH = new_task("Which?", ["a", "b", "c"], KaryResponse.for_epsilon(Fraction(3, 10), 3), **OPEN)
TREE = new_task("At home?", ["no", "yes"], DyadicTree.for_epsilon(1, 8, 2, days=7), **OPEN)


def sent_by_python(path: str, task: client.Task, answer: str, today: date, data: bytes) -> Any:
    try:
        line = devices.report_from_device(path, task, answer, RecordedEntropy(data).read, today)
    except devices.LimitReached:
        return "limit"
    except client.AnswerRefused:
        return "answer"
    found = devices.read_device(path)
    whole = found.epsilon()
    return {
        "line": line.decode() if line else None,
        "device": json.loads(Path(path).read_text(encoding="ascii")),
        "revealed": None if whole is None else plain(whole),
        "unchanged": plain(found.epsilon_unchanged()),
    }


@pytest.mark.long
@needs_node
@pytest.mark.parametrize("limit", one_in(6, [None, "1.5", "4", "0.3"]))
def test_its_ledger_is_that_of_python(limit: str | None, tmp_path: Path) -> None:
    """The same answers on the same days, some of them before the last one, leave the same document behind."""
    path, draw = str(tmp_path / "device.json"), random.Random(f"ledger {limit}")
    devices.set_limit(path, None if limit is None else Decimal(limit), date(2027, 1, 4))
    steps: list[dict[str, Any]] = []
    expected = []
    for number in range(24):
        task = draw.choice([KEPT, FRESH, TREE])
        today = date(2027, 1, 4) + timedelta(days=draw.randrange(-1, 56))
        answer, data = draw.choice([*task.values, "none"]), StreamEntropy(f"step {number}").read(400)
        steps.append({"task": task.document, "answer": answer, "today": today.isoformat(), "random": data.hex()})
        expected.append(sent_by_python(path, task, answer, today, data))
    found = node("device", {"began": "2027-01-04", "limit": limit, "steps": steps})
    assert [one.get("kind", one) for one in found] == expected
    assert ("limit" in expected) == (limit is not None)


DEVICE = """
    const m = await import("./lapwing-local.mjs");
    const task = m.readTask(TASK);
"""


def on_device(page: Page, task: client.Task, script: str) -> Any:
    return page.run(DEVICE.replace("TASK", json.dumps(task.document)) + script)


@needs_chromium
def test_a_device_counts_before_anything_leaves(page: Page) -> None:
    """In two connections at once, as of two tabs, reports add up; those over the limit are refused."""
    found = on_device(
        page,
        FRESH,
        """
        const one = await m.openDevice("counts"), two = await m.openDevice("counts");
        await one.setLimit("3");
        const each = await Promise.allSettled(Array.from({length: 15}, (_, i) =>
            (i % 2 ? one : two).answer(task, "b", "/nowhere", "2027-03-01")));
        const waiting = await one.waiting(), document = await two.document(), revealed = await two.revealed();
        one.close(), two.close();
        return {kinds: each.map((e) => e.status == "rejected" ? e.reason.kind : "sent"), waiting, document, revealed};
    """,
    )
    assert found["kinds"].count("sent") == 10  # ten of 0.3 are 3, exactly
    assert found["kinds"].count("limit") == 5
    assert found["revealed"] == "3"
    assert found["document"]["reported"][0]["days"] == {"2027-03-01": 10}
    assert len({one["id"] for one in found["waiting"]}) == 10


@needs_chromium
def test_kept_answers_stay_when_the_page_is_left(page: Page) -> None:
    script = """
        const device = await m.openDevice("kept");
        await device.answer(task, "b", "/nowhere", "2027-03-01");
        const {reported: [{memory}]} = await device.document();
        device.close();
        return memory;
    """
    first = on_device(page, KEPT, script)
    page.ask("Page.reload")
    page.wait("document.readyState == 'complete'")
    assert on_device(page, KEPT, script) == first
    assert list(first) == ["1"]


@needs_chromium
def test_tasks_are_texts_in_the_database_and_those_of_earlier_versions_are_read(page: Page) -> None:
    """An earlier version kept a task as an object. Both say the same to whoever reads the document."""
    before, after, stored = on_device(
        page,
        FRESH,
        """
        const device = await m.openDevice("texts"), taken = () => new Promise((done) => {
            const open = indexedDB.open("texts");
            open.onsuccess = () => {
                const read = open.result.transaction("device").objectStore("device").get("all");
                read.onsuccess = () => (open.result.close(), done(read.result)) } });
        await device.answer(task, "b", "/nowhere", "2027-03-01");
        const before = await device.document(), db = await new Promise((done) => {
            const open = indexedDB.open("texts"); open.onsuccess = () => done(open.result) });
        await new Promise((done) => {
            db.transaction("device", "readwrite").objectStore("device").put(before, "all").onsuccess = done });
        db.close();
        await device.answer(task, "b", "/nowhere", "2027-03-01");
        const after = await device.document(), stored = await taken();
        device.close();
        return [before, after, stored];
    """,
    )
    assert before["reported"][0]["task"] == after["reported"][0]["task"] == FRESH.document
    assert after["reported"][0]["days"] == {"2027-03-01": 2}
    assert json.loads(stored["reported"][0]["task"]) == FRESH.document


@needs_chromium
def test_a_damaged_device_is_not_begun_anew(page: Page) -> None:
    kind = on_device(
        page,
        FRESH,
        """
        const device = await m.openDevice("damaged");
        await device.answer(task, "b", "/nowhere", "2027-03-01");
        device.close();
        const db = await new Promise((done) => {
            const open = indexedDB.open("damaged"); open.onsuccess = () => done(open.result) });
        await new Promise((done) => {
            const store = db.transaction("device", "readwrite").objectStore("device");
            store.put({format: 1, began: "2027-03-01", limit: null, reported: [{}]}, "all").onsuccess = done });
        db.close();
        const again = await m.openDevice("damaged");
        try { await again.answer(task, "b", "/nowhere", "2027-03-01"); return "sent" }
        catch (error) { return error.kind } finally { again.close() }
    """,
    )
    assert kind == "device"


# What it is


def test_it_is_small_and_needs_nothing() -> None:
    source = MODULE.read_text(encoding="utf-8")
    assert len(gzip.compress(source.encode(), 9)) <= MOST
    assert not re.search(
        r"^\s*import\b|\bimport\(|\brequire\(|Math\.random|\beval\b|Function\(|innerHTML", source, re.M
    )
    code = re.sub(r"^ *//.*$", "", source, flags=re.M)
    assert re.findall(r"crypto\W+\w+", code) == ["crypto.getRandomValues"]
    assert set(re.findall(r"https?://[^\s\"']+", source)) == set()


@pytest.mark.long
def test_the_folder_is_ready_for_npm() -> None:
    package = json.loads((MODULE.parent / "package.json").read_text(encoding="utf-8"))
    assert package["type"] == "module"
    assert package["exports"] == {".": "./lapwing-local.mjs"}
    assert not package.get("dependencies")
    assert {MODULE.name, "README.md"} <= set(package["files"])
    for file in package["files"]:
        assert (MODULE.parent / file).is_file()
