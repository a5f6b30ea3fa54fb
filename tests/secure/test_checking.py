"""The test of a batch: what it lets pass, what it finds, what it shows to one server; exactly, over small fields."""

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from lapwing.errors import InvalidParameter
from lapwing.secure.adding import AddingServer, budget_of
from lapwing.secure.checking import liars, running_sums, summands
from lapwing.secure.field import AT_ZERO, MODULUS, on_lines
from lapwing.secure.noisy_totals import noisy_total, totals_of
from lapwing.secure.numbers import Number
from lapwing.secure.organising import new_task
from lapwing.secure.pair_keys import pair_keys_of
from lapwing.secure.task import Task
from lapwing.secure.vectors import Vector
from lapwing.secure.wire import opening_of, set_digest
from tests.secure.conftest import NAMES, write_task
from tests.secure.test_views import FIELD, NOISE, RATIO, Fixed, Law, Recorded, worst


def one_one(points: Sequence[int]) -> int:
    return sum(points) - 1


def nothing(points: Sequence[int]) -> None:
    return None


def z(clients: Sequence[Sequence[Sequence[int]]], challenge: int, *, one_hot: bool, modulus: int = FIELD) -> int:
    """Return z of clients, of each of whom three servers have points."""
    excess = one_one if one_hot else nothing
    each = (
        summands([points[place] for points in clients], place, challenge, excess, modulus=modulus) for place in range(3)
    )
    return sum(map(sum, each)) % modulus


def test_honest_clients_pass_whatever_is_drawn() -> None:
    for slopes, challenge in product(product(range(FIELD), repeat=2), range(FIELD)):
        for answer in ((0, 1), (1, 0)):
            points = on_lines(answer, Recorded(bytes(slopes)), FIELD)
            assert z([points], challenge, one_hot=True) == 0
        for bits in product((0, 1), repeat=2):
            assert z([on_lines(bits, Recorded(bytes(slopes)), FIELD)], challenge, one_hot=False) == 0


@pytest.mark.parametrize("one_hot", [False, True])
def test_whatever_else_a_client_sends_passes_for_few_challenges(one_hot: bool) -> None:
    """All points that three servers can be sent for one cell, over 11 numbers."""
    honest = {on_lines([b], Recorded(bytes([slope])), 11) for b in ([1] if one_hot else [0, 1]) for slope in range(11)}
    for points in product(range(11), repeat=3):
        sent = tuple((point,) for point in points)
        passing = sum(z([sent], challenge, one_hot=one_hot, modulus=11) == 0 for challenge in range(11))
        assert passing == 11 if sent in honest else passing <= 2


def test_a_challenge_that_is_known_in_advance_is_passed() -> None:
    """The planted bug: for each challenge there is a lie that passes it, and hardly any other."""
    for challenge in range(1, 11):
        honest = {on_lines([b], Recorded(bytes([slope])), 11) for b in (0, 1) for slope in range(11)}
        lies = [tuple((point,) for point in points) for points in product(range(11), repeat=3)]
        assert any(sent not in honest and not z([sent], challenge, one_hot=False, modulus=11) for sent in lies)


def view(answers: Sequence[int], *, masked: bool = True) -> Law:
    """Return the law of what the first server sees: its points, and what the others publish of test and release.

    The masks that it shares with the others are known to it; that of the two others is uniform.
    """
    law: dict[object, Fraction] = defaultdict(Fraction)
    challenge = 2
    for slopes in product(range(FIELD), repeat=len(answers)):
        points = [on_lines([b], Recorded(bytes([slope])), FIELD) for b, slope in zip(answers, slopes, strict=True)]
        tested = [
            sum(summands([each[place] for each in points], place, challenge, nothing, modulus=FIELD))
            for place in range(3)
        ]
        for first, second in product(NOISE, repeat=2):
            added: list[int] = []
            for place, noise in ((1, first), (2, second)):
                (sum_of,) = totals_of(b"".join(each[place][0].to_bytes(8, "little") for each in points), 1, FIELD)
                added += noisy_total([AT_ZERO[place] * sum_of], Fixed(noise), Recorded(b""), FIELD)
            for masks in product(range(FIELD), repeat=2) if masked else [(0, 0)]:
                seen = (
                    tuple(each[0][0] for each in points),
                    ((tested[1] + masks[0]) % FIELD, (tested[2] - masks[0]) % FIELD),
                    ((added[0] + masks[1]) % FIELD, (added[1] - masks[1]) % FIELD),
                )
                chance = NOISE[first] * NOISE[second] / FIELD ** len(answers)
                law[seen] += chance / FIELD**2 if masked else chance
    return law


def test_one_server_is_no_surer_than_the_promise() -> None:
    for others in ([], [1]):
        ratio = worst(view([0, *others]), view([1, *others]))
        assert ratio is not None
        assert ratio <= RATIO


def test_summands_without_masks_are_noticed() -> None:
    """The planted bug: what each server contributes alone tells more than the sum."""
    assert worst(view([0], masked=False), view([1], masked=False)) is None


def test_masks_cancel_for_one_label_only(tmp_path: Path) -> None:
    task, _ = write_task(tmp_path, checked=True)
    masks = [pair_keys_of(tmp_path / name, task) for name in NAMES]
    one = [each.masks(b"one", 4) for each in masks]
    assert [sum(each) % MODULUS for each in zip(*one, strict=True)] == [0] * 4
    assert sum(masks[0].masks(b"other", 1) + one[1][:1] + one[2][:1]) % MODULUS
    assert len({number for each in one for number in each}) == 12


@pytest.mark.parametrize("bad", [[], [0], [99], [3, 50, 51], list(range(100))])
def test_halving_finds_the_liars_and_no_others(bad: list[int]) -> None:
    sums = running_sums([int(place in bad) for place in range(100)])
    opened: list[int] = []

    def opening(ranges: Sequence[tuple[int, int]]) -> list[int]:
        opened.append(len(ranges))
        return [sums[high] - sums[low] for low, high in ranges]

    assert liars(100, opening) == bad
    assert len(opened) <= 8
    assert sum(opened) <= 1 + 2 * 7 * len(bad)


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 6, 7, 8, 100])
def test_bits_reach_every_step_and_none_above(steps: int, tmp_path: Path) -> None:
    task, _ = write_task(tmp_path, Number(Fraction(0), Fraction(steps), steps), checked=True)
    weights = task.weights or ()
    assert sum(weights) == steps
    for value in range(steps + 1):
        bits = task.encode(str(value))
        assert set(bits) <= {0, 1}
        assert sum(weight for weight, bit in zip(weights, bits, strict=True) if bit) == value


def test_checked_answers_take_three_servers(tmp_path: Path) -> None:
    task, _ = write_task(tmp_path)
    certificates = [server.certificate for server in task.servers[:2]]
    with pytest.raises(InvalidParameter, match="take three servers"):
        new_task(
            question="?", asked=task.asked, epsilon=Fraction(1), delta=Fraction(0), least_clients=1,
            certificates=certificates, checked=True,
        )  # fmt: skip


def test_a_server_opens_nothing_before_it_is_frozen_or_for_another_challenge(tmp_path: Path) -> None:
    task, _ = write_task(tmp_path, checked=True)
    server = AddingServer(tmp_path / "north", task, budget_of("pure", Fraction(1), Fraction(0)))
    try:
        server.take(bytes(32))
        with pytest.raises(InvalidParameter, match="no challenge before"):
            server.nonce()
        clients = server.freeze()
        nonces = [server.nonce(), bytes(32), bytes(32)]
        assert server.nonce() == nonces[0]
        server.test(opening_of(nonces, [(0, 1)], clients))
        for body in (
            opening_of([bytes(32)] * 3, [(0, 1)], clients),
            opening_of(nonces, [(0, 2)], clients),
            opening_of(nonces, [(1, 1)], clients),
            opening_of(nonces, [(0, 1)], b"\x01" * 16),
            b"x" * 99,
        ):
            with pytest.raises(InvalidParameter):
                server.test(body)
        other = server.test(opening_of([nonces[0], bytes(32), b"\x01" * 32], [(0, 1)], clients))
        assert other != server.test(opening_of(nonces, [(0, 1)], clients))
    finally:
        server.close()


SHORT = Vector(("a", "b"), Fraction(3), 3, "l1", 4)
ROUND = Vector(("a", "b"), Fraction(3), 3, "l2", 8)


@pytest.mark.parametrize("asked", [SHORT, ROUND], ids=["l1", "l2"])
def test_vectors_within_their_bound_pass_and_no_others(asked: Vector, tmp_path: Path) -> None:
    """Every choice of bits, the slack among them: over the field that is used, with challenges that are drawn."""
    task, _ = write_task(tmp_path, asked, checked=True)
    weights, slack = task.weights or (), task.slack
    reached = set()
    for bits in product((0, 1), repeat=task.width):
        points = on_lines(bits)
        shares = [summands([points[place]], place, 12345, task.excess)[0] for place in range(3)]
        cells = tuple(task.combined(bits))
        lacking = sum(weight * bit for weight, bit in zip(slack, bits[2 * len(weights) :], strict=True))
        assert (sum(shares) % MODULUS == 0) == (asked.size(cells) + lacking == asked.bound)
        if sum(shares) % MODULUS == 0:
            reached.add(cells)
    assert reached == {cells for cells in product(range(4), repeat=2) if asked.size(cells) <= asked.bound}


@pytest.mark.parametrize("asked", [SHORT, ROUND], ids=["l1", "l2"])
@pytest.mark.parametrize("checked", [False, True])
def test_answers_are_shrunk_into_the_bound(asked: Vector, checked: bool, tmp_path: Path) -> None:
    task, _ = write_task(tmp_path, asked, checked=checked)
    for first, second in product(("-1", "0", "0.5", "1", "2.9", "3", "99"), repeat=2):
        cells = task.combined(task.encode(f"{first},{second}"))
        assert asked.size(cells) <= asked.bound
        if asked.size([int(min(3, max(0, float(each))) + 0.5) for each in (first, second)]) <= asked.bound:
            assert cells == [int(min(3, max(0, float(each))) + 0.5) for each in (first, second)]


@pytest.mark.parametrize("upper", [1, 2, 3])
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("bound", [1, 2, 3, 4, 8, 30])
def test_no_two_vectors_are_further_apart_than_said(upper: int, norm: str, bound: int) -> None:
    asked = Vector(("a", "b", "c"), Fraction(upper), upper, norm, bound)
    allowed = [cells for cells in product(range(upper + 1), repeat=3) if asked.size(cells) <= bound]
    moves = [[one - other for one, other in zip(*pair, strict=True)] for pair in product(allowed, repeat=2)]
    assert max(sum(map(abs, move)) for move in moves) <= asked.sensitivity.l1
    assert max(sum(each**2 for each in move) for move in moves) <= asked.sensitivity.l2_squared


def test_a_bound_that_is_not_checked_is_passed(tmp_path: Path) -> None:
    """The planted bug: without the bound's own number every vector of bits passes."""
    task, _ = write_task(tmp_path, SHORT, checked=True)
    points = on_lines((1,) * task.width)
    without = [summands([points[place]], place, 12345, nothing)[0] for place in range(3)]
    checked = [summands([points[place]], place, 12345, task.excess)[0] for place in range(3)]
    assert sum(without) % MODULUS == 0
    assert sum(checked) % MODULUS


def test_a_vector_whose_size_could_wrap_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="too fine"):
        Vector(tuple(map(str, range(300))), Fraction(1), 1 << 24, "l2", 1)


@pytest.mark.parametrize("answer", ["", "1", "1,2,3", "1,x", "1;2"])
def test_wrong_vectors_are_refused(answer: str) -> None:
    with pytest.raises(InvalidParameter, match="Nothing was sent"):
        SHORT.encode(answer)


def test_the_digest_of_an_unchecked_task_is_as_before(tmp_path: Path) -> None:
    task, _ = write_task(tmp_path, checked=True)
    assert task.document["checked"] is True
    assert Task.from_text(task.to_text()) == task
    assert set_digest(task.digest, b"") != set_digest("00" * 32, b"")
