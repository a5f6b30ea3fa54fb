"""The client: alone, exact, and not to be fooled by a task."""

import io
import json
import random
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Hashable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from lapwing.local import (
    BinaryResponse,
    DuchiMean,
    HadamardSketch,
    KaryResponse,
    LocalHashing,
    client,
    grid,
    new_task,
    to_toml,
)
from lapwing.local.client import frequencies, task_text
from lapwing.local.client import task as task_module
from tests.support.calls import within
from tests.support.effort import one_in
from tests.support.fixed_entropy import RecordedEntropy, StreamEntropy
from tests.support.local.laws import law_of
from tests.support.local.mechanism_cases import AT_EPSILON, COINS

VECTORS = sorted((Path(__file__).parents[1] / "fixtures" / "local").glob("vectors*.json"))
SOURCE = Path(client.__file__)
DAYS: dict[str, Any] = {"opens": date(2027, 1, 1), "closes": date(2027, 1, 31)}
FAIR = COINS[0][1]


def task_of(mechanism: Any) -> client.Task:
    return new_task("Which one?", [f"v{i}" for i in range(mechanism.categories)], mechanism, **DAYS)


FAIR_TASK = task_of(FAIR)


# Alone

BLOCKED = """
import sys
class Only:
    def find_spec(self, name, path=None, target=None):
        allowed = {"lapwing", "lapwing.installation", "lapwing.local"}
        top = name.partition(".")[0]
        inside = (name + ".").startswith("lapwing.local.client.")
        if (top != "lapwing" and top not in sys.stdlib_module_names) or (
            top == "lapwing" and name not in allowed and not inside
        ):
            raise ImportError("not standard: " + name)
sys.meta_path.insert(0, Only())
sys.path[:] = [path for path in sys.path if "site-packages" not in path] + [SOURCE]
"""


def alone(code: str) -> str:
    script = BLOCKED.replace("SOURCE", repr(str(SOURCE.parents[3]))) + code
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else done.stderr


def test_it_needs_the_standard_library_only() -> None:
    use = f"""
import os
from lapwing.local import client
task = client.read_task({to_toml(FAIR_TASK)!r})
print(client.report(task, "v1", os.urandom).decode(), sorted(m for m in sys.modules if m.startswith("lapwing")))
"""
    loaded = alone(use)
    assert (
        "'lapwing', 'lapwing.installation', 'lapwing.local', 'lapwing.local.client', 'lapwing.local.client." in loaded
    ), loaded
    assert "not standard" in alone("import lapwing.local.frequencies.binary")
    assert "not standard" in alone("import numpy")


@pytest.mark.long
def test_the_folder_works_by_itself(tmp_path: Path) -> None:
    shutil.copytree(SOURCE.parent, tmp_path / "client", ignore=shutil.ignore_patterns("__pycache__"))
    code = f"import client; print(client.read_task({to_toml(FAIR_TASK)!r}).id)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == FAIR_TASK.id


NEEDED = ("__init__", "answers", "frequencies", "rules", "task", "task_text")


@pytest.mark.long
def test_a_coin_needs_no_sketches(tmp_path: Path) -> None:
    """A device with the files of a coin alone reports; a task of another mechanism is not known there."""
    (tmp_path / "client").mkdir()
    for name in NEEDED:
        shutil.copy(SOURCE.parent / f"{name}.py", tmp_path / "client")
    use = "import os, client; print(client.report(client.read_task(input()), 'v1', os.urandom).decode())"
    run = partial(subprocess.run, [sys.executable, "-c", use], capture_output=True, text=True, cwd=tmp_path)
    done = run(input=json.dumps(FAIR_TASK.document))
    assert json.loads(done.stdout)["task"] == FAIR_TASK.id, done.stderr
    unknown = run(input=json.dumps(task_of_sketch().document))
    assert "client.heavy_hitters" in unknown.stderr


def task_of_sketch() -> client.Task:
    hadamard = HadamardSketch.for_epsilon(1, entropy=StreamEntropy("sketch"))
    return new_task("A word?", client.Text(8), hadamard, opens=date(2027, 1, 1), closes=date(2027, 2, 1))


@pytest.mark.long
def test_each_file_is_read_when_it_is_needed() -> None:
    use = f"""
from lapwing.local import client
client.read_task({to_toml(FAIR_TASK)!r})
print(sorted(m.rpartition(".")[2] for m in sys.modules if m.startswith("lapwing.local.client.")))
client.read_task({to_toml(task_of_sketch())!r})
print("lapwing.local.client.heavy_hitters" in sys.modules, client.PRIME, client.MOST_SHIFT)
"""
    assert alone(use).splitlines() == [str(sorted(NEEDED[1:])), f"True {2**31 - 1} {2**20}"]


# Exact


@pytest.mark.parametrize("threshold", [1, 2**63, 13485650502877570762, 2**64 - 1])
def test_coins_fall_for_exactly_the_words_below(threshold: int) -> None:
    for word in {0, threshold - 1, threshold, min(threshold + 1, 2**64 - 1), 2**64 - 1}:
        assert client.coin(threshold, RecordedEntropy(word.to_bytes(8, "little")).read) == (word < threshold)


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 2**31 - 1, 2**63 + 1])
def test_integers_are_uniform(bound: int) -> None:
    """Words up to the last multiple of the bound count, and others are dropped."""
    limit = 2**64 - 2**64 % bound
    for word in (0, bound - 1, bound, limit - 1):
        if word < limit:
            assert client.below(bound, RecordedEntropy(word.to_bytes(8, "little")).read) == word % bound
    if limit < 2**64:
        dropped = RecordedEntropy(limit.to_bytes(8, "little") + (7).to_bytes(8, "little"))
        assert client.below(bound, dropped.read) == 7 % bound
        assert dropped.unread == 0


def reported(task: client.Task, answer: str) -> bytes:
    return client.report(task, answer, lambda size: bytes(size))


def said(mechanism: Any, report: bytes) -> Hashable:
    value = json.loads(report)["r"]
    if mechanism.name == "unary":
        bits = int.from_bytes(bytes.fromhex(value), "little")
        return tuple(bits >> i & 1 for i in range(mechanism.categories))
    return tuple(value) if isinstance(value, list) else value


FEW = [(name, make(1)) for name, make in AT_EPSILON if "8" not in name and "hashing" not in name]


@pytest.mark.parametrize(
    "mechanism", one_in(3, [row[1] for row in [*FEW, *COINS]]), ids=[row[0] for row in [*FEW, *COINS]]
)
def test_reports_have_exactly_the_law_of_the_matrix(mechanism: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    task, matrix = task_of(mechanism), mechanism.transition_matrix()
    for x, row in enumerate(matrix.rows):
        law = law_of(lambda x=x: said(mechanism, reported(task, f"v{x}")), monkeypatch)  # type: ignore[misc]
        assert law == dict(zip(matrix.reports, row, strict=True))


def test_a_report_of_less_noise_than_the_task_says_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: a device that lies a tenth less often than the task's mechanism."""
    stated = KaryResponse.for_epsilon(1, 3)
    less = replace(stated, threshold=(1 << 64) - ((1 << 64) - stated.threshold) * 9 // 10)
    for mechanism in (stated, less):
        laws = [law_of(partial(reported, task_of(mechanism), f"v{x}"), monkeypatch) for x in range(3)]
        worst = max(one[key] / other[key] for one, other in product(laws, laws) for key in one)
        assert (worst <= stated.ratio) is (mechanism is stated)


def test_hashed_reports_have_exactly_their_law(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (client, frequencies):
        monkeypatch.setattr(module, "PRIME", 5)
    mechanism = LocalHashing.for_epsilon(1, 3, 3)
    task = task_of(mechanism)
    for x in range(3):
        law = law_of(lambda x=x: said(mechanism, reported(task, f"v{x}")), monkeypatch)  # type: ignore[misc]
        for a, b in product(range(5), repeat=2):
            row = mechanism.transition_matrix((a, b)).rows[x]
            assert [law[a, b, face] for face in range(3)] == [chance / 25 for chance in row]


def mechanisms_of(task: dict[str, Any]) -> set[str]:
    return {part["mechanism"]["name"] for part in (task, *task.get("attributes", ()))}


def test_there_are_vectors_of_every_mechanism() -> None:
    seen = set()
    for page in VECTORS:
        for vector in json.loads(page.read_text(encoding="utf-8"))["reports"]:
            seen |= mechanisms_of(vector["task"])
    assert seen >= set(client.RULES)


@pytest.mark.parametrize("page", VECTORS, ids=lambda page: page.stem)
def test_bytes_are_fixed_for_other_languages(page: Path) -> None:
    """Where a mechanism remembers, a vector also has the memory before, the period, and the memory kept."""
    for vector in json.loads(page.read_text(encoding="utf-8"))["reports"]:
        task = client.task_of(vector["task"])
        assert task.digest == vector["digest"]
        entropy = RecordedEntropy(bytes.fromhex(vector["random"]))
        memory, period = vector.get("memory", {}), vector.get("period", 1)
        line, kept = client.report_with_memory(task, vector["answer"], entropy.read, memory, period)
        assert (line.decode() if line else None) == vector["report"]
        assert kept == vector.get("kept", {})
        assert entropy.unread == 0


def tasks_of_vectors() -> dict[str, dict[str, Any]]:
    """One document of each mechanism."""
    vectors = [json.loads(page.read_text(encoding="utf-8"))["reports"] for page in VECTORS]
    return {vector["task"]["mechanism"]["name"]: vector["task"] for page in vectors for vector in page}


EACH_DOCUMENT = pytest.mark.parametrize("document", tasks_of_vectors().values(), ids=tasks_of_vectors())


@EACH_DOCUMENT
def test_every_epsilon_is_computed_again(document: dict[str, Any]) -> None:
    """One that is too small by the last digit, one that is left out, and one that the mechanism has not."""
    task = client.task_of(document)
    for name, epsilon in task.epsilons:
        with pytest.raises(client.TaskRefused, match=f"states {name} .* send nothing"):
            client.task_of({**document, name: str(epsilon - Decimal("1e-12"))})
        with pytest.raises(client.TaskRefused):
            client.task_of({key: value for key, value in document.items() if key != name})
    for name in {client.UNCHANGED, client.ALL} - {name for name, _ in task.epsilons}:
        with pytest.raises(client.TaskRefused, match="state them"):
            client.task_of({**document, name: document["epsilon"]})


@EACH_DOCUMENT
def test_every_parameter_is_checked(document: dict[str, Any]) -> None:
    asked = client.task_of(document).asked
    for name, _ in asked.parameters:
        for wrong in (str(2**64 + 1), "-1", 1.5, None, [1]):
            with pytest.raises(client.TaskRefused):
                client.task_of({**document, "mechanism": {**document["mechanism"], name: wrong}})
        without = {key: value for key, value in document["mechanism"].items() if key != name}
        with pytest.raises(client.TaskRefused):
            client.task_of({**document, "mechanism": without})
    with pytest.raises(client.TaskRefused):
        client.task_of({**document, "mechanism": {**document["mechanism"], "more": "1"}})


@EACH_DOCUMENT
def test_kinds_of_answers_are_not_mixed(document: dict[str, Any]) -> None:
    kinds: dict[str, Any] = {
        "values": ["a", "b"],
        "number": {"lower": "0", "upper": "1", "steps": 5},
        "text": {"most_bytes": 5},
        "attributes": [],
    }
    plain = {key: value for key, value in document.items() if key not in kinds}
    with pytest.raises(client.TaskRefused):
        client.task_of(plain)
    for kind, held in kinds.items():
        if kind not in document:
            with pytest.raises(client.TaskRefused):
                client.task_of({**document, kind: held})


def test_what_remembers_needs_a_memory() -> None:
    """`report` alone would draw anew each time, and lose what was promised for all reports together."""
    remembering = {name for name, rule in client.RULES.items() if rule.remembers}
    assert {"memoised", "tree", "rappor"} <= remembering
    for name, document in tasks_of_vectors().items():
        if name in remembering:
            with pytest.raises(client.AnswerRefused, match="memory"):
                client.report(client.task_of(document), "v0", StreamEntropy(name).read)


def test_texts_are_taken_in_one_form() -> None:
    document = next(task for task in tasks_of_vectors().values() if "text" in task)
    task = client.task_of({**document, "text": {"most_bytes": 4}})
    composed, apart = "\u00e9t", "e\u0301t"
    lines = [client.report_with_memory(task, text, StreamEntropy("text").read, {})[0] for text in (composed, apart)]
    assert lines[0] == lines[1]
    for wrong in ("", "\u00e9\u00e9t", "\ud800", "abcde"):
        with pytest.raises(client.AnswerRefused, match="1 to 4 bytes"):
            client.report_with_memory(task, wrong, StreamEntropy("text").read, {})
    for size in (0, 1001, "many", None, True):
        with pytest.raises(client.TaskRefused):
            client.task_of({**document, "text": {"most_bytes": size}})


def test_a_vector_by_hand() -> None:
    """Two fair coins, answer v0: yes for the words below 2^62; the identity is the first 16 bytes."""
    for word, shown in ((2**62 - 1, 1), (2**62, 0)):
        line = client.report(FAIR_TASK, "v0", RecordedEntropy(bytes(range(16)) + word.to_bytes(8, "little")).read)
        identity = "000102030405060708090a0b0c0d0e0f"
        assert line.decode() == f'{{"v":1,"task":"{FAIR_TASK.id}","id":"{identity}","m":"binary","r":{shown}}}'


def test_too_few_bytes_send_nothing() -> None:
    for size in (0, 15, 16, 23):
        with pytest.raises(client.NoRandomness):
            client.report(FAIR_TASK, "v0", io.BytesIO(bytes(size)).read)


# Tasks


@pytest.mark.parametrize(("name", "make"), AT_EPSILON, ids=[row[0] for row in AT_EPSILON])
def test_tasks_come_back_from_toml_and_json(name: str, make: Any) -> None:
    task = task_of(make(Fraction(7, 10)))
    assert client.read_task(to_toml(task)) == task
    assert client.read_task(json.dumps(task.document)) == task
    assert client.report(task, "v1", StreamEntropy(name).read) == client.report(task, "v1", StreamEntropy(name).read)


def lying(epsilon: str) -> str:
    return json.dumps({**FAIR_TASK.document, "epsilon": epsilon})


def check_that_lies_are_refused() -> None:
    for epsilon in ("1", "1.098612288668", "1.0986122886681", "1.2", "0"):
        with pytest.raises(client.TaskRefused, match="send nothing"):
            client.read_task(lying(epsilon))


def test_a_task_that_lies_is_refused() -> None:
    assert FAIR_TASK.epsilon == Decimal("1.098612288669")  # ln 3 = 1.0986122886681098…
    check_that_lies_are_refused()


def test_a_client_that_trusts_the_task_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client.Task, "__post_init__", task_module._check)
    with pytest.raises(pytest.fail.Exception):
        check_that_lies_are_refused()


def test_thresholds_of_another_epsilon_are_refused() -> None:
    weaker = {"name": "binary", "threshold_yes": str(2**64 - 2**60), "threshold_no": str(2**60)}
    with pytest.raises(client.TaskRefused, match=r"have epsilon 2\.708"):
        client.task_of({**FAIR_TASK.document, "mechanism": weaker})


GOOD: dict[str, Any] = task_of(KaryResponse.for_epsilon(1, 3)).document


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2}, {"version": True}, {"question": ""}, {"question": "a\nb"}, {"question": "a\u202eb"},
        {"question": 3}, {"values": ["a"]}, {"values": ["a", "a", "b"]}, {"values": ["a", "b", 3]}, {"values": "abc"},
        {"values": ["a", "b", "e\u0301"]}, {"epsilon": "nan"}, {"epsilon": -1}, {"epsilon": True}, {"epsilon": None},
        {"epsilon": "1e0"}, {"opens": "2027-02-01"}, {"opens": "yesterday"}, {"opens": "2027-02-31"},
        {"retention_days": -1}, {"retention_days": True}, {"retention_days": "3"}, {"more": 1},
        {"mechanism": {"name": "none"}}, {"mechanism": {"name": "k-ary"}}, {"mechanism": "k-ary"},
        {"mechanism": {"name": "k-ary", "threshold": "0"}}, {"mechanism": {"name": "k-ary", "threshold": str(2**64)}},
        {"mechanism": {"name": "k-ary", "threshold": "007"}}, {"mechanism": {"name": "k-ary", "threshold": 1.5}},
        {"mechanism": {"name": "binary", "threshold_yes": "9", "threshold_no": "5"}},
        {"mechanism": {"name": "subset", "threshold": "9", "size": 3}}, {"mechanism": {"name": ["k-ary"]}},
    ],
)  # fmt: skip
def test_tasks_that_mean_nothing_are_refused(change: dict[str, Any]) -> None:
    client.task_of(GOOD)
    with pytest.raises(client.TaskRefused):
        client.task_of({**GOOD, **change})


@pytest.mark.parametrize(
    "text", ["", "[", "{", '{"a":1,"a":2}', "[" * 100_000, '{"a":' * 100_000, "a = 1\na = 2", "null", "{}", "\x00"]
)
def test_texts_that_are_no_task_are_refused(text: str) -> None:
    with pytest.raises(client.TaskRefused):
        client.read_task(text)


def with_dots(more: str = "", epsilon: str = '"1.098612288669"') -> str:
    """A task in TOML with dots wherever there may be some."""
    return f"""# see https://www.example.org/a.b.c.d
question = "1.2.3.4" # a.b.c
values = [ "a.b.c", 'd.e.f', \'\'\'g.h.\'i.j\'\'\', \"\"\"k.l.\\"m.n\"\"\", "x\\".y.z.\\\\", ""\"u.v.w""\""" ]
version = 1
{more}
epsilon = {epsilon}
unit = "a.b.c"
opens = 2027-01-01
closes = 2027-01-31
retention_days = 1
mechanism.name = "k-ary"
mechanism . "threshold" = "{THRESHOLD_OF_SIX}"
"""


THRESHOLD_OF_SIX = KaryResponse.for_epsilon(1, 6).threshold
SIX = task_of(KaryResponse.for_epsilon(1, 6)).epsilon


def test_dots_within_texts_are_no_parts_of_keys() -> None:
    task = client.read_task(with_dots(epsilon=f'"{SIX}"'))
    assert task.values == ("a.b.c", "d.e.f", "g.h.'i.j", 'k.l."m.n', 'x".y.z.\\', 'u.v.w""')
    assert client.read_task(with_dots(epsilon=str(SIX))) == task


LONG = 1 << 20
GRID = {
    **new_task("How many?", grid(0, 1, 10), DuchiMean.for_epsilon(1, grid(0, 1, 10)), **DAYS).document,
    "number": "HERE",
}


def of_grid(lower: str) -> str:
    return json.dumps(GRID).replace('"HERE"', f'{{"lower": {lower}, "upper": 1, "steps": 10}}')


@pytest.mark.parametrize(
    ("text", "reason"),
    one_in(
        8,
        [
            (with_dots(epsilon="0x" + "f" * LONG), "epsilon must be a decimal"),
            (with_dots(epsilon="0b" + "1" * 129), "epsilon must be a decimal"),
            (with_dots(f"number = {{lower = 0o{'7' * LONG}, upper = 1, steps = 1}}"), "exactly one"),
            (of_grid("0." + "0" * LONG), "lower must be a decimal"),
            (of_grid("0." + "0" * 60), "lower must be a decimal"),
            (of_grid("1e9999999"), "lower must be a decimal"),
            (of_grid("1" * 40), "lower must be a decimal"),
            (with_dots("a." * 40_000 + "b = 1"), "three parts"),
            (with_dots("a . " * 40_000 + "b = 1"), "three parts"),
            (with_dots("'a'.\"b\"." * 20_000 + "b = 1"), "three parts"),
            (with_dots("[" + "a." * 40_000 + "b]"), "three parts"),
            (with_dots("[[" + "a." * 40_000 + "b]]"), "three parts"),
            (with_dots("a = {" + "a." * 40_000 + "b = 1}"), "three parts"),
            (with_dots('a = """b""""\n' + "a." * 40_000 + "b = 1"), "three parts"),
        ],
        many=True,
    ),
)
def test_what_would_take_long_is_refused_at_once(text: str, reason: str) -> None:
    """Each takes a minute and more if it is read all the same; here it takes at most 80,000 calls."""
    with pytest.raises(client.TaskRefused, match=reason):
        within(500_000, lambda: client.read_task(text))


PIECES = (
    *"ab.\"'\\\n# =[]1{},",
    *('"""', "'''", "a.b.c=1\n", 'x="', "x='''", 'x="""', '"\n', '"""""\n', ".b", '\\"', "1.5"),
)


@pytest.mark.long
def test_keys_of_three_parts_are_found_where_toml_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of texts at random: wherever Python's reader comes upon one, it is refused; and no other TOML is."""
    longest = 0
    real = tomllib._parser.parse_key  # type: ignore[attr-defined]

    def parse_key(*given: Any) -> Any:
        nonlocal longest
        found = real(*given)
        longest = max(longest, len(found[1]))
        return found

    monkeypatch.setattr(tomllib._parser, "parse_key", parse_key)  # type: ignore[attr-defined]
    draw, seen = random.Random("keys"), 0
    for _ in range(30_000):
        text, longest, good = "".join(draw.choices(PIECES, k=draw.randint(1, 12))), 0, True
        try:
            tomllib.loads(text)
        except (ValueError, RecursionError):
            good = False
        found = task_text.has_long_keys(text)
        assert found or longest < 3, text
        assert longest >= 3 or not (good and found), text
        seen += longest >= 3
    assert seen > 300


def test_an_answer_that_is_none_is_refused() -> None:
    with pytest.raises(client.AnswerRefused, match="one of v0, v1"):
        client.report(FAIR_TASK, "maybe", StreamEntropy("none").read)


def test_every_part_of_a_task_changes_its_digest() -> None:
    other = new_task("Which one?", ["v0", "v1"], BinaryResponse.for_epsilon(1), **DAYS)
    digests = {FAIR_TASK.digest, other.digest}
    for change in (
        {"question": "Why?"},
        {"values": ["v1", "v0"]},
        {"unit": "x"},
        {"retention_days": 1},
        {"closes": "2027-03-01"},
    ):
        digests.add(client.task_of({**FAIR_TASK.document, **change}).digest)
    assert len(digests) == 7
