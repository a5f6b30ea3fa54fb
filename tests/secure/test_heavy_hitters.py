"""Frequent words, level by level: cells of words, what a level follows, what servers and devices charge."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import exp, inf, tanh
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapwing.errors import BudgetExhausted, InvalidParameter, QueryRefused
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.secure.adding import AddingServer, budget_of
from lapwing.secure.device import answer_on_device, read_device, records_of
from lapwing.secure.field import joined, numbers_in
from lapwing.secure.grid import GRID_MODULUS, POINT_BYTES
from lapwing.secure.heavy_hitters import first_level, followed_after, frequent, next_task
from lapwing.secure.organising import Totals
from lapwing.secure.servers import Server
from lapwing.secure.task import Task
from lapwing.secure.values import Values
from lapwing.secure.wire import ID_BYTES
from lapwing.secure.words import OTHER, Words
from tests.secure.conftest import NAMES, write_task
from tests.support.fixed_entropy import StreamEntropy

CROWD = ["lapwing"] * 400 + ["lark"] * 300 + ["owl"] * 250 + ["rarebird"] + ["Ünknown"] * 40
ALPHABET = "_abcdefghijklmnopqrstuvwxyz"


def words_task(asked: Words, epsilon: Fraction = Fraction(1)) -> Task:
    servers = tuple(
        Server(name=name, address=f"h:{port}", certificate=f"BEGIN CERTIFICATE {name}", close_key="0" * 64)
        for port, name in enumerate(NAMES, 1)
    )
    return Task(
        question="Which bird?", asked=asked, epsilon=epsilon, delta=Fraction(0), least_clients=3, servers=servers,
        checked=True, grid=True,
    )  # fmt: skip


def counted(asked: Words, crowd: Sequence[str]) -> IntArray:
    counts = np.zeros(asked.width, dtype=np.int64)
    np.add.at(counts, [asked.cell(word) for word in crowd], 1)
    return counts


def released(asked: Words, crowd: Sequence[str], share: Fraction = Fraction(1)) -> Totals:
    """Return noisy totals of a crowd; `share` of the noise is there."""
    task = words_task(asked)
    law, cells = DiscreteLaplace(scale=Fraction(2) * share), counted(asked, crowd)
    for _ in NAMES:
        cells = law.release(cells, SYSTEM)
    return Totals(task=task, clients=len(crowd), clients_digest="0" * 64, cells=tuple(cells.tolist()))


def test_every_word_has_one_cell_and_labels_are_in_order() -> None:
    asked = Words("_ab", 3, ("a", "b"), 2)
    assert len(asked.texts) == asked.width == 19
    assert [asked.texts[asked.cell(word)] for word in ("a", "ab", "bbb", "aba", "")] == [
        "a__",
        "ab_",
        "bbb",
        "aba",
        OTHER,
    ]
    for word in ("abab", "x", "a_", "_", "AB"):
        assert asked.texts[asked.cell(word)] == OTHER
    assert sorted({asked.cell(text.rstrip("_")) for text in asked.texts[:-1]})[0] == 0
    task = words_task(asked)
    assert Task.from_text(task.to_text()) == task
    assert Words("_ab", 3, ("",), 3).texts[:3] == ("___", "__a", "__b")


@pytest.mark.parametrize(
    "parts",
    [
        ("aab", 3, ("",), 1), ("a", 3, ("",), 1), ("_ab", 0, ("",), 1), ("_ab", 65, ("",), 1), ("_ab", 3, (), 1),
        ("_ab", 3, ("a", "a"), 1), ("_ab", 3, ("a", "ab"), 1), ("_ab", 3, ("c",), 1), ("_ab", 3, ("ab",), 2),
        ("_ab", 3, ("",), 0), (ALPHABET, 9, ("",), 5),
    ],
)  # fmt: skip
def test_levels_that_are_refused(parts: tuple[str, int, tuple[str, ...], int]) -> None:
    with pytest.raises(InvalidParameter):
        Words(*parts)


def test_words_take_a_grid(tmp_path: Path) -> None:
    task, _ = write_task(tmp_path, Values(("a", "b")), checked=True)
    with pytest.raises(InvalidParameter, match="--grid"):
        replace(task, asked=first_level("_ab", 3))
    found = Totals(task=task, clients=3, clients_digest="0" * 64, cells=(1, 2))
    with pytest.raises(InvalidParameter, match="no levels"):
        frequent(found)


def asked_of(task: Task) -> Words:
    assert isinstance(task.asked, Words)
    return task.asked


def test_frequent_words_are_found_level_by_level() -> None:
    sure, levels = Fraction(999_999, 1_000_000), 0
    asked = first_level(ALPHABET, 8)
    found = released(asked, CROWD)
    while asked.depth < 8:
        assert asked.width <= 100_000
        assert {each.label for each in frequent(found)} >= {f"{word:_<8}"[: asked.depth] for word in CROWD[:950:300]}
        asked, levels = followed_after(found, confidence=sure), levels + 1
        found = released(asked, CROWD)
    assert levels >= 1
    words = {each.label.rstrip("_"): each for each in frequent(found, sure)}
    assert set(words) == {"lapwing", "lark", "owl"}
    for word, each in words.items():
        assert each.low <= CROWD.count(word) <= each.high
    with pytest.raises(InvalidParameter, match="last level"):
        followed_after(found)


def test_nothing_is_followed_where_nothing_is_frequent() -> None:
    with pytest.raises(InvalidParameter, match="nothing to follow"):
        followed_after(released(first_level("_ab", 20), []), confidence=Fraction(999_999, 1_000_000))
    with pytest.raises(InvalidParameter, match="nothing to follow"):
        followed_after(released(first_level("_ab", 20), ["ab"] * 400), least=1000)


def chance_of_following(count: int, follow: Callable[[int, int], bool]) -> float:
    """Return P(the prefix is followed) over one server's noise, for a prefix of so many clients."""
    rate = 0.5  # of noise of scale 2, for ε = 1 at a sensitivity of 2; one count moves by 1 and costs half of it
    noises = [noise for noise in range(-150, 151) if follow(count, count + noise)]
    return sum(tanh(rate / 2) * exp(-rate * abs(noise)) for noise in noises)


def by_release(count: int, noisy: int) -> bool:
    asked = Words("_a", 2, ("",), 1)
    found = Totals(task=words_task(asked), clients=99, clients_digest="0" * 64, cells=(noisy, 0, 0))
    return any(each.label == "_" for each in frequent(found))


def by_raw_count(count: int, noisy: int) -> bool:
    """The planted bug: it looks at the count itself."""
    return by_release(count, count)


def test_a_level_follows_released_numbers_alone() -> None:
    """One client more or less changes the odds that a prefix is followed by e^(ε/2) at most."""
    few = next(count for count in range(100) if by_release(0, count))  # the least number that is followed
    for follow, private in ((by_release, True), (by_raw_count, False)):
        more, fewer = (chance_of_following(count, follow) for count in (few, few - 1))
        ratios = [one / other if other else inf for one, other in ((more, fewer), (1 - fewer, 1 - more))]
        assert (max(ratios) <= exp(0.5) * (1 + 1e-9)) == private


def test_less_noise_than_stated_is_noticed() -> None:
    """The planted bug of a scale × 0.9: the spread of counts of 0 is that of the law, and no less."""
    asked = first_level(ALPHABET, 3)
    for share, right in ((Fraction(1), True), (Fraction(9, 10), False)):
        cells = np.array(released(asked, [], share).cells)
        law = words_task(asked).noise.standard_deviation ** 2 * 3
        # 19,684 cells: the sample variance has a standard deviation of about 1.3 % of it.
        assert (abs(cells.var() / law - 1) < 0.08) == right


def test_each_level_is_charged_by_servers_and_devices(tmp_path: Path) -> None:
    certificates, _ = write_task(tmp_path, Values(("a", "b")), checked=True)
    first = Task(
        question="Which bird?", asked=first_level(ALPHABET[:20], 4), epsilon=Fraction(1), delta=Fraction(0),
        least_clients=3, servers=certificates.servers, checked=True, grid=True,
    )  # fmt: skip
    cells = [0] * asked_of(first).width
    cells[asked_of(first).cell("lark")] = 99
    found = Totals(task=first, clients=99, clients_digest="0" * 64, cells=tuple(cells))
    second = followed_after(found)
    levels = [first, replace(first, asked=second)]
    device, spent = tmp_path / "device.json", []
    for task in levels:
        people = [records_of(task, "lark") for _ in range(40)]
        people.append(dict(answer_on_device(device, task, "lark")))
        with pytest.raises(QueryRefused):
            answer_on_device(device, task, "lark")
        servers = [AddingServer(tmp_path / name, task, budget_of("pure", Fraction(2), Fraction(0))) for name in NAMES]
        for name, server in zip(NAMES, servers, strict=True):
            server.take(b"".join(records[name] for records in people))
        clients = [server.freeze() for server in servers]
        totals = joined([server.release(clients[0]).cells for server in servers], task.modulus)
        assert abs(totals[asked_of(task).cell("lark")] - 41) < 200
        spent.append([server.spent()[0].amount for server in servers])
        for server in servers:
            server.close()
    assert spent == [[1] * 3, [2] * 3]
    assert read_device(device).epsilon == 2
    third = replace(first, question="Again?")
    server = AddingServer(tmp_path / "north", third, budget_of("pure", Fraction(2), Fraction(0)))
    with pytest.raises(BudgetExhausted):
        server.require_affordable()
    server.close()


def drawn_anew(device: Path, task: Task, again: Entropy) -> Mapping[str, bytes]:
    return answer_on_device(device, task, "lark")


def drawn_once(device: Path, task: Task, again: Entropy) -> Mapping[str, bytes]:
    """The planted bug: a device that uses its id and its lines of the level before."""
    return answer_on_device(device, task, "lark", entropy=again)


def linked(one: bytes, other: bytes, place: int) -> bool:
    """Tell whether parts of two levels are of the same seed or the same lines, as the server at a place can see."""
    if place == 0:
        return one == other
    size = min(len(one), len(other))
    points, further = (numbers_in(part[:size], POINT_BYTES).astype(np.int64) for part in (one, other))
    # Points of one line differ by a multiple of what the two answers differ by, which is 0 or 1.
    small = [times % GRID_MODULUS for times in (-place, 0, place)]
    return bool(np.isin((points - further) % GRID_MODULUS, small).mean() > 0.5)


@pytest.mark.parametrize(("drawn", "reused"), [(drawn_anew, False), (drawn_once, True)], ids=["shipped", "planted"])
def test_no_part_is_used_again_at_the_next_level(drawn: Callable[..., Any], tmp_path: Path, *, reused: bool) -> None:
    """A device answers three levels. No server finds the id, the seed, or points of the line of another level."""
    asked, parts = first_level(ALPHABET, 12), []
    for _ in range(3):
        parts.append(drawn(tmp_path / "device.json", words_task(asked), StreamEntropy("reused")))
        asked = followed_after(released(asked, ["lark"] * 400), confidence=Fraction(999_999, 1_000_000))
    for place, name in enumerate(NAMES):
        for one, other in combinations(parts, 2):
            assert (one[name][:ID_BYTES] == other[name][:ID_BYTES]) == reused
            assert linked(one[name][ID_BYTES:], other[name][ID_BYTES:], place) == reused


def test_the_next_task_is_for_the_same_servers(tmp_path: Path) -> None:
    first, _ = write_task(tmp_path, Values(("a", "b")), checked=True)
    task = replace(first, asked=first_level("_ab", 20), grid=True)
    cells = [0] * asked_of(task).width
    cells[asked_of(task).cell("abab")] = 500
    found = Totals(task=task, clients=500, clients_digest="0" * 64, cells=tuple(cells))
    following, key = next_task(found, epsilon=Fraction(1, 2))
    assert len(key) == 64
    assert [server.certificate for server in following.servers] == [server.certificate for server in task.servers]
    assert following.epsilon == Fraction(1, 2)
    assert asked_of(following).followed == (asked_of(task).texts[asked_of(task).cell("abab")],)
    assert following.digest != task.digest
