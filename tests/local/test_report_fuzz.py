"""Random lines between honest reports: nothing fails, each is taken or rejected by itself, and the right ones count.

What should come out is worked out again here, by other code. `LAPWING_FUZZ=1000000` tries more lines in the long run.
"""

import json
import os
import random
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from lapwing.local import LocalHashing, SubsetSelection, UnaryEncoding, client, collect, collection
from tests.local.test_client import task_of
from tests.support.effort import only
from tests.support.fixed_entropy import StreamEntropy
from tests.support.local.mechanism_cases import AT_EPSILON

LINES = int(os.environ.get("LAPWING_FUZZ", "10000"))
BATCH = 40
TASKS = [
    *(task_of(make(1)) for _, make in AT_EPSILON),
    task_of(UnaryEncoding.optimised(1, 200)),
    task_of(SubsetSelection.for_epsilon(1, 40)),
    task_of(LocalHashing.for_epsilon(3, 300)),
]
KEYS = ("v", "task", "id", "m", "r")


# What should come out, by other code


def pairs(given: list[tuple[str, Any]]) -> dict[str, Any]:
    if any(times > 1 for times in Counter(key for key, _ in given).values()):
        raise ValueError("twice")
    return dict(given)


def is_below(value: Any, bound: int) -> bool:
    return type(value) is int and 0 <= value < bound


def supported(task: client.Task, said: Any) -> list[int] | None:
    """Return the values that a report supports, or None if no device says such a thing."""
    k, given = len(task.values), dict(task.parameters)
    if task.mechanism in ("binary", "k-ary"):
        return [said] if is_below(said, k) else None
    if task.mechanism == "unary":
        size = (k + 7) // 8
        if type(said) is not str or len(said) != 2 * size or said.strip("0123456789abcdef"):
            return None
        bits = [i for i in range(8 * size) if int(said[2 * (i // 8) : 2 * (i // 8) + 2], 16) >> i % 8 & 1]
        honest = UnaryEncoding(categories=k, **given).weights
        return bits if len(bits) in honest and (not bits or bits[-1] < k) else None
    if type(said) is not list:
        return None
    if task.mechanism == "subset":
        right = len(said) == given["size"] and all(is_below(value, k) for value in said)
        return said if right and said == sorted(set(said)) else None
    prime, faces = 2**31 - 1, given["range"]
    if len(said) != 3 or not all(map(is_below, said, (prime, prime, faces))):
        return None
    return [value for value in range(k) if (said[0] * value + said[1]) % prime % faces == said[2]]


def meant(task: client.Task, line: bytes) -> tuple[str, list[int]] | None:
    """Return the identity and the supported values of a line that is a report."""
    try:
        given = json.loads(line.decode(), object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return None
    if len(line) > 400 + 20 * len(task.values) or type(given) is not dict or set(given) != set(KEYS):
        return None
    if type(given["v"]) is not int or (given["v"], given["task"], given["m"]) != (1, task.id, task.mechanism):
        return None
    identity, values = given["id"], supported(task, given["r"])
    if type(identity) is not str or len(identity) != 32 or identity.strip("0123456789abcdef") or values is None:
        return None
    return identity, values


# Random lines


def anything(draw: random.Random, depth: int = 0) -> Any:
    """Return something that JSON holds."""
    plain: list[Callable[[], Any]] = [
        lambda: draw.choice([None, True, False, 0, 1, -1, 0.0, 1.0, -0.0, "", "0", 1e400, 2**31 - 1, 2**64, 10**300]),
        lambda: draw.randint(-5, 300),
        lambda: "".join(draw.choices("0123456789abcdefAF \u00e9\ud800\x00", k=draw.choice([2, 4, 31, 32, 33, 50]))),
        lambda: list(range(draw.randint(0, 12))),
    ]
    deep: list[Callable[[], Any]] = [
        lambda: [anything(draw, depth + 1) for _ in range(draw.randint(0, 4))],
        lambda: {draw.choice([*KEYS, "x", ""]): anything(draw, depth + 1) for _ in range(draw.randint(0, 5))},
    ]
    return draw.choice(plain + deep if depth < 3 else plain)()


def with_bytes(line: bytes, draw: random.Random) -> bytes:
    """Change, insert, remove, repeat or cut some bytes."""
    changed = bytearray(line)
    for _ in range(draw.randint(1, 3)):
        at, to = sorted(draw.randint(0, len(changed)) for _ in range(2))
        some = draw.choice([bytes([draw.randrange(256)]), b'"', b"0", b",", b"}", b"[", b"\\u0076", b" ", b"\xff"])
        put = draw.choice([changed[:at] + some + changed[at + 1 :], changed[:at] + some + changed[at:],
                           changed[:at] + changed[to:], changed[:to] + changed[at:], changed[:at]])  # fmt: skip
        changed = bytearray(put)
    return bytes(changed).replace(b"\n", b" ")


def with_fields(line: bytes, draw: random.Random) -> bytes:
    """Change, add, drop, repeat or reorder keys, or move numbers a little."""
    given = json.loads(line)
    key = draw.choice(KEYS)
    kind = draw.randrange(8)
    if kind == 0:
        given[key] = anything(draw)
    elif kind == 1:
        given[draw.choice(["x", "V", "task ", ""])] = anything(draw)
    elif kind == 2:
        del given[key]
    elif kind == 3:
        return line[:-1] + b"," + json.dumps({key: given[key]}).encode()[1:]
    elif kind == 4:
        given = dict(draw.sample(list(given.items()), len(given)))
    elif kind == 5 and isinstance(given["r"], list):
        given["r"][draw.randrange(len(given["r"]))] += draw.choice([-1, 1, 1 << 31, 0.0])
    elif kind == 6:
        given["id"] = draw.choice([given["id"].upper(), given["id"][:-1] + "\u0661", given["id"] + "\n"])
    elif isinstance(given["r"], int):
        given["r"] += draw.choice([-1, 1, 0.5, 1 << 64])
    else:
        given["r"] = draw.choice([list(given["r"]), str(given["r"]), [given["r"]], given["r"][::-1]])
    return json.dumps(given, indent=draw.choice([None, None, 0])).replace("\n", " ").encode()


def junk(line: bytes, draw: random.Random) -> bytes:
    """Return what is no report, or nothing."""
    return draw.choice(
        [b"", b"   ", b"\x00", b"[" * 500, b'{"r":' * 60, b"\xef\xbb\xbf" + line, line * 2, b"9" * 900,
         json.dumps(anything(draw)).encode()]
    )  # fmt: skip


def lines_of(task: client.Task, draw: random.Random, number: int) -> list[bytes]:
    """Return honest reports, changed ones, repeated ones and junk."""
    entropy, lines = StreamEntropy(f"fuzz {number}"), list[bytes]()
    for _ in range(BATCH):
        line = client.report(task, draw.choice(task.values), entropy.read)
        kind = draw.randrange(8)
        if kind == 0:
            lines.append(b" " + line + b"\r\n")
        elif kind == 1:
            lines.append(draw.choice(lines or [line]))
        elif kind <= 6:
            lines.append((with_bytes, with_fields, with_fields, junk, junk)[kind - 2](line, draw))
        else:
            lines.append(line)
    return lines


def check_batch(task: client.Task, lines: list[bytes]) -> Counter[str]:
    """What is taken, what is rejected, and what counts are as they should be; return how many of each there were."""
    seen: set[str] = set()
    counts, rejected, skipped = [0] * len(task.values), [], 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            skipped += 1
            continue
        report = meant(task, line)
        if report is None or report[0] in seen:
            rejected.append(number)
            continue
        seen.add(report[0])
        for value in report[1]:
            counts[value] += 1
    found = collect(task, lines)
    assert [each.line for each in found.rejected] == rejected
    assert all(each.reason and len(each.reason) < 200 and each.reason.isprintable() for each in found.rejected)
    assert len(found.reports) == len(seen)
    assert found.mechanism.support_counts(found.reports).tolist() == counts
    return Counter(taken=len(seen), rejected=len(rejected), skipped=skipped)


def fuzz(batches: int) -> Counter[str]:
    total: Counter[str] = Counter()
    for number in range(batches):
        draw = random.Random(number)
        task = TASKS[number % len(TASKS)]
        lines = lines_of(task, draw, number)
        try:
            total += check_batch(task, lines)
        except Exception:
            print(f"batch {number}, a task of {task.mechanism}:", *lines, sep="\n")
            raise
    return total


@pytest.mark.long
@pytest.mark.parametrize("lines", [4_000, pytest.param(LINES, marks=pytest.mark.long)])
def test_random_lines(lines: int) -> None:
    total = fuzz(max(1, lines // BATCH))
    assert min(total["taken"], total["rejected"]) * 10 > BATCH * max(1, lines // BATCH)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("_READER", json.JSONDecoder()),
        ("_object", lambda line: json.loads(line)),
        ("_IDENTITY", re.compile("[0-9a-fA-F]{32}")),
        ("_IDENTITY", re.compile(r"[a-f\d]{32}")),
    ],
)
def test_twin_a_careless_reader_is_found(monkeypatch: pytest.MonkeyPatch, name: str, wrong: Any) -> None:
    """Keys that stand there twice, what is no object, and other spellings of an identity."""
    monkeypatch.setattr(collection, name, wrong)
    with pytest.raises((AssertionError, TypeError, RecursionError, AttributeError)):
        fuzz(400)


@pytest.mark.parametrize("mechanism", only([0], [SubsetSelection, UnaryEncoding, LocalHashing]))
def test_twin_a_mechanism_that_trusts_is_found(monkeypatch: pytest.MonkeyPatch, mechanism: Any) -> None:
    monkeypatch.setattr(mechanism, "read", lambda self, said: said)
    with pytest.raises(Exception):  # noqa: B017, PT011
        fuzz(60)


def test_twin_one_bad_line_spoils_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that stops at the first malformed line."""
    right = collection.parse_report

    def stubborn(*given: Any) -> Any:
        try:
            return right(*given)
        except ValueError as wrong:
            raise KeyError(str(wrong)) from wrong

    monkeypatch.setattr(collection, "parse_report", stubborn)
    with pytest.raises(KeyError):
        fuzz(5)
