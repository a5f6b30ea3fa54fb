"""Values as rows and columns of a grid: the parts, what servers add up and test, and what one server sees."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapwing.errors import InvalidParameter
from lapwing.exact.entropy import SYSTEM
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.secure import grid as grids
from lapwing.secure.adding import AddingServer, budget_of
from lapwing.secure.asked import Asked
from lapwing.secure.checking import liars, range_label, require_opened
from lapwing.secure.device import records_of
from lapwing.secure.estimates import largest
from lapwing.secure.field import AT_ZERO, joined, numbers_in, on_lines, uniform
from lapwing.secure.grid import (
    GRID_MODULUS,
    GRID_SCALE,
    Grid,
    GridPart,
    grid_parts,
    is_grid_part,
    products,
    stretched,
    weighed,
)
from lapwing.secure.key_stream import KeyStream
from lapwing.secure.numbers import Number
from lapwing.secure.organising import Totals, new_task
from lapwing.secure.servers import Server
from lapwing.secure.task import Task
from lapwing.secure.values import Values
from lapwing.secure.wire import opening_of, record_of
from tests.secure.conftest import NAMES, write_task
from tests.secure.test_views import NOISE, RATIO, Law, Recorded, worst

SMALL = 5
KEY = b"k" * 32


def grid_task(folder: Path, count: int = 7, least: int = 3) -> tuple[Task, str]:
    asked = Values(tuple(map(str, range(count))))
    plain, _ = write_task(folder, Values(("a", "b")), least=least, checked=True)
    return new_task(
        question="Which?", asked=asked, epsilon=Fraction(1), delta=Fraction(0), least_clients=least,
        certificates=[server.certificate for server in plain.servers], checked=True, grid=True,
    )  # fmt: skip


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[Task, list[AddingServer]]]:
    task, _ = grid_task(tmp_path)
    each = [AddingServer(tmp_path / name, task, budget_of("pure", Fraction(1), Fraction(0))) for name in NAMES]
    yield task, each
    for server in each:
        server.close()


def parts_of(grid: Grid, cells: Sequence[int]) -> list[bytes]:
    """Return what each server has of clients with these cells."""
    return [b"".join(each) for each in zip(*(grid_parts(grid.encode(cell), SYSTEM) for cell in cells), strict=True)]


def counted(grid: Grid, parts: Sequence[bytes]) -> list[int]:
    return joined([GridPart(grid, place).totals(parts[place]).tolist() for place in range(3)], GRID_MODULUS)


def failing(grid: Grid, parts: Sequence[bytes], key: bytes = KEY) -> list[bool]:
    """Return which clients fail some test."""
    values = sum(GridPart(grid, place).summands(parts[place], key) for place in range(3))
    return [bool(each.any()) for each in np.asarray(values) % GRID_MODULUS]


@pytest.mark.parametrize("cells", [2, 3, 7, 9, 10])
def test_every_cell_counts_once(cells: int) -> None:
    grid = Grid(cells)
    assert grid.rows * grid.columns >= cells
    counts = [(7 * cell) % 4 for cell in range(cells)]
    answers = [cell for cell in range(cells) for _ in range(counts[cell])]
    parts = parts_of(grid, answers)
    assert counted(grid, parts) == counts
    assert not any(failing(grid, parts))


def test_large_points_are_counted_exactly_in_blocks() -> None:
    """Points that are as large as can be, of more clients than a block has, beside sums of Python's integers."""
    grid, clients = Grid(12), 2**13 + 5
    points = np.full((clients, grid.sent), GRID_MODULUS - 1, dtype=np.uint64)
    points[-1] = range(1, grid.sent + 1)
    part = grids._packed(points.reshape(-1))
    rows, columns = (each.tolist() for each in grid.vectors(points))
    wanted = [
        -3 * sum(row[at // 3] * column[at % 3] for row, column in zip(rows, columns, strict=True)) % GRID_MODULUS
        for at in range(12)
    ]
    assert GridPart(grid, 1).totals(part).tolist() == wanted
    assert is_grid_part(part, 1)
    assert not is_grid_part(b"\xfd\xff\xff" + part[3:], 1)
    # The bounds that the module states.
    assert 2**13 * GRID_MODULUS * 2**grids._LOW_BITS < 2**53
    assert 2**11 * GRID_MODULUS**2 < 2**64
    assert Grid(grids.MOST_CELLS).rows == Grid(grids.MOST_CELLS).columns == 2**10
    assert not any(GRID_MODULUS % divisor == 0 for divisor in range(2, 2**12))


def test_weights_do_not_depend_on_how_many_clients_are_weighed_at_once() -> None:
    """Servers of other versions must draw the same: the numbers' weights, then 8,192 clients' own, then the rest's."""
    grid, clients = Grid(4), 2**13 + 3000
    points = uniform(clients * grid.sent, modulus=GRID_MODULUS)
    stream = KeyStream(KEY)
    drawn = [uniform(count * 3, stream, GRID_MODULUS) for count in (grid.rows + grid.columns + grid.sent, 2**13, 3000)]
    weights, first, rest = (np.array(each, dtype=np.uint64).reshape(-1, 3) for each in drawn)
    held = np.array(points, dtype=np.uint64).reshape(clients, -1)
    wanted = weighed(grid, held, 1, weights, np.vstack((first, rest)))
    assert np.array_equal(GridPart(grid, 1).summands(grids._packed(held.reshape(-1)), KEY), wanted)


def test_a_seed_stands_for_what_uniform_reads() -> None:
    """Words of three bytes, those beyond the modulus dropped."""
    assert stretched(KEY, 1000).tolist() == uniform(1000, KeyStream(KEY), GRID_MODULUS)
    words = b"\xfd\xff\xff" + b"\xff\xff\xff" + b"\x01\x00\x00" + b"\xfc\xff\xff"
    assert uniform(2, Recorded(words), GRID_MODULUS) == [1, GRID_MODULUS - 1]


def test_parts_are_points_of_lines() -> None:
    grid = Grid(12)
    seed, *others = grid_parts(grid.encode(5), Recorded(KEY))
    first = stretched(seed, grid.sent).tolist()
    second, third = (numbers_in(each, 3).tolist() for each in others)
    slopes = [(one - b) % GRID_MODULUS for one, b in zip(first, grid.encode(5), strict=True)]
    words = b"".join(slope.to_bytes(3, "little") for slope in slopes)
    assert on_lines(grid.encode(5), Recorded(words), GRID_MODULUS) == tuple(map(tuple, (first, second, third)))


def lie(numbers: Sequence[int]) -> list[bytes]:
    return list(grid_parts(numbers, SYSTEM))


def off_line(grid: Grid) -> list[bytes]:
    parts = lie(grid.encode(3))
    return [parts[0], parts[1], bytes([parts[2][0] ^ 1]) + parts[2][1:]]


GRID = Grid(7)  # three rows and three columns: two numbers each
LIES = {
    "a weight": lie([2, 0, 1, 0]),
    "minus one": lie([GRID_MODULUS - 1, 0, 1, 0]),
    "two rows": lie([1, 1, 1, 0]),
    "two columns": lie([1, 0, 1, 1]),
    "no line": off_line(GRID),
    "anything": [bytes(32), b"\x01" * 12, b"\x02" * 12],
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_fails_and_honest_answers_pass(name: str) -> None:
    parts = parts_of(GRID, [0, 6, 3])
    for place in range(3):
        parts[place] += LIES[name][place]
    assert failing(GRID, parts) == [False, False, False, True]


@pytest.mark.parametrize("looked_at", [True, False])
def test_a_test_without_the_squares_is_noticed(looked_at: bool) -> None:
    """The planted bug: a lie on lines passes where only curvatures are weighed."""
    weights = np.arange(1, 11, dtype=np.uint64).reshape(-1, 1)
    if not looked_at:
        weights[: GRID.rows + GRID.columns] = 0
    seed, *others = LIES["a weight"]
    sent = [stretched(seed, GRID.sent), *(numbers_in(each, 3) for each in others)]
    own = np.ones((1, 1), dtype=np.uint64)
    opened = sum(weighed(GRID, sent[place].reshape(1, -1), place, weights, own)[0, 0] for place in range(3))
    assert bool(opened % GRID_MODULUS) == looked_at


def test_all_points_of_a_small_field_pass_for_few_weights() -> None:
    """Two cells are one number: all triples of points modulo 5, with all weights of one test."""
    lines = product((0, 1), range(SMALL))
    grid, honest = Grid(2), {tuple((b + place * slope) % SMALL for place in (1, 2, 3)) for b, slope in lines}
    # Weights of b, of 1 − b, of the column's single number, of the curvature; a test for each choice of them.
    weights = np.array(list(product(range(SMALL), repeat=4)), dtype=np.uint64).T
    own = np.ones((1, SMALL**4), dtype=np.uint64)
    for points in product(range(SMALL), repeat=3):
        sent = [np.array([[point]], dtype=np.uint64) for point in points]
        opened = sum(weighed(grid, sent[place], place, weights, own, SMALL) for place in range(3))
        passing = int((np.asarray(opened) % SMALL == 0).sum())
        assert passing == SMALL**4 if points in honest else passing <= SMALL**3


def view(answer: int, place: int, *, masked: bool = True, noise: dict[int, Fraction] = NOISE) -> Law:
    """Return the law of what the server at a place sees of one client with one of two cells.

    Its point, and what the two others publish: the sums of products with noise, under a mask that they share.
    """
    grid, law = Grid(2), defaultdict[object, Fraction](Fraction)
    others = [each for each in range(3) if each != place]
    for slope in range(SMALL):
        points = [(answer_number + (at + 1) * slope) % SMALL for at, answer_number in enumerate([1 - answer] * 3)]
        published = [products(grid, np.array([[points[at]]], dtype=np.uint64), SMALL).tolist() for at in others]
        for drawn in product(noise, repeat=2):
            for mask in range(SMALL) if masked else [0]:
                seen = [points[place]]
                for at, sums, added, sign in zip(others, published, drawn, (1, -1), strict=True):
                    seen.append((AT_ZERO[at] * sums[0] + added + sign * mask) % SMALL)
                chance = noise[drawn[0]] * noise[drawn[1]] / SMALL
                law[tuple(seen)] += chance / SMALL if masked else chance
    return law


@pytest.mark.parametrize("place", range(3))
def test_one_server_is_no_surer_than_the_promise(place: int) -> None:
    """Of one cell, whose count moves by one: the noise here is made for that."""
    ratio = worst(view(0, place), view(1, place))
    assert ratio is not None
    assert ratio <= RATIO


def test_sums_without_masks_are_noticed() -> None:
    """The planted bug: a product of points tells more than the count."""
    ratio = worst(view(0, 0, masked=False), view(1, 0, masked=False))
    assert ratio is None or ratio > RATIO


def test_a_part_that_is_used_again_is_noticed() -> None:
    """The planted bug: with one line through two answers, a server sees whether they differ."""

    def seen(second: int, *, again: bool) -> set[tuple[int, int]]:
        slopes = ((a, a) for a in range(SMALL)) if again else product(range(SMALL), repeat=2)
        return {((0 + 2 * a) % SMALL, (second + 2 * b) % SMALL) for a, b in slopes}

    assert seen(0, again=False) == seen(1, again=False)
    assert not seen(0, again=True) & seen(1, again=True)


def test_fresh_parts_for_every_task(tmp_path: Path) -> None:
    """Nobody's parts for one task say anything of those for another: seed, points and id are drawn anew."""
    task, _ = grid_task(tmp_path, 100)
    first, second = (records_of(task, "3") for _ in range(2))
    for name in NAMES:
        pairs = zip(first[name], second[name], strict=True)
        assert sum(one == other for one, other in pairs) < 20 + len(first[name]) // 10


def test_totals_of_three_servers_without_the_liars(servers: tuple[Task, list[AddingServer]]) -> None:
    task, each = servers
    people = [records_of(task, str(answer % 7)) for answer in range(700)]
    for name in ("a weight", "no line"):
        client = SYSTEM.read(16)
        people.append({server: client + part for server, part in zip(NAMES, LIES[name], strict=True)})
    for name, server in zip(NAMES, each, strict=True):
        server.take(b"".join(records[name] for records in people))
    clients, nonces = each[0].freeze(), [server.freeze() and server.nonce() for server in each]

    def opened(ranges: Sequence[tuple[int, int]]) -> list[int]:
        answers = [server.test(opening_of(nonces, ranges, clients)) for server in each]
        cells = [[int.from_bytes(one[at : at + 8], "little") for at in range(0, len(one), 8)] for one in answers]
        return require_opened(cells, task.tests, task.modulus)

    members = [clients[at : at + 16] for at in range(0, len(clients), 16)]
    bad = liars(len(members), opened)
    assert {members[place] for place in bad} == {records["north"][:16] for records in people[700:]}
    passed = b"".join(member for place, member in enumerate(members) if place not in bad)
    released = [server.release(passed) for server in each]
    totals = joined([one.cells for one in released], task.modulus)
    assert all(abs(total - 100) < 200 for total in totals)  # the noise has a standard deviation of 4.8
    assert totals != [100] * 7
    assert all(server.spent()[0] == server.spent()[1] for server in each)
    assert each[0].release(passed) == released[0]


def test_masks_of_a_grid_are_below_its_modulus(servers: tuple[Task, list[AddingServer]]) -> None:
    task, each = servers
    masks = [server._keys.masks(range_label("00" * 32, 1, (0, 1)), 5, task.modulus) for server in each if server._keys]
    assert [sum(one) % GRID_MODULUS for one in zip(*masks, strict=True)] == [0] * 5
    assert max(map(max, masks)) < GRID_MODULUS


def test_bodies_that_a_server_of_a_grid_refuses(servers: tuple[Task, list[AddingServer]]) -> None:
    task, each = servers
    records = records_of(task, "1")
    assert [len(records[name]) - 16 for name in NAMES] == [32, 12, 12] == [task.part_bytes(at) for at in range(3)]
    for server, body in (
        (each[0], records["south"]),
        (each[1], records["north"]),
        (each[1], records["south"][:-3] + b"\xfd\xff\xff"),
    ):
        with pytest.raises(InvalidParameter):
            server.take(body)


def test_tasks_with_a_grid(tmp_path: Path) -> None:
    task, _ = grid_task(tmp_path, 10_001)
    assert Task.from_text(task.to_text()) == task
    assert task.document["grid"] is True
    certificates = [server.certificate for server in task.servers]
    wrong: list[tuple[Asked, dict[str, Any]]] = [
        (Values(("a", "b")), {"grid": True}),
        (Values(("a", "b")), {"grid": True, "checked": True, "joint": True}),
        (Number(Fraction(0), Fraction(1), 1), {"grid": True, "checked": True}),
        (task.asked, {"checked": True}),
    ]
    for asked, more in wrong:
        with pytest.raises(InvalidParameter):
            new_task(
                question="?", asked=asked, epsilon=Fraction(1), delta=Fraction(0), least_clients=1,
                certificates=certificates, **more,
            )  # fmt: skip
    with pytest.raises(InvalidParameter, match="more noise"):
        new_task(
            question="?", asked=task.asked, epsilon=Fraction(1, GRID_SCALE), delta=Fraction(0), least_clients=1,
            certificates=certificates, checked=True, grid=True,
        )  # fmt: skip


def test_a_client_of_100_000_cells_sends_less_than_5_kilobytes(tmp_path: Path) -> None:
    task, _ = grid_task(tmp_path, 100_000)
    records = records_of(task, "99999")
    assert sum(map(len, records.values())) == 3_866
    assert records["north"][:16] != record_of(bytes(16), [])


def covered(noise_scale: Fraction, repeats: int) -> int:
    """Return in how many drawn releases the intervals that are named hold, and all that somebody answered is named."""
    servers = tuple(
        Server(name=name, address=f"h:{port}", certificate=f"BEGIN CERTIFICATE {name}", close_key="0" * 64)
        for port, name in enumerate(NAMES, 1)
    )
    task = Task(
        question="?", asked=Values(tuple(map(str, range(500)))), epsilon=Fraction(1), delta=Fraction(0),
        least_clients=1, servers=servers, checked=True, grid=True,
    )  # fmt: skip
    counts, held = [100, 200, 300, *[0] * 497], 0
    law = DiscreteLaplace(scale=noise_scale)
    for _ in range(repeats):
        cells = np.array(counts) + sum(law.release(np.zeros(500, dtype=np.int64), SYSTEM) for _ in servers)
        found = Totals(task=task, clients=600, clients_digest="0" * 64, cells=tuple(cells.tolist()))
        named = largest(found, Fraction(1, 2))
        right = all(each.low <= counts[int(each.label)] <= each.high for each in named)
        held += right and {each.label for each in named} >= {"0", "1", "2"}
    return held


def test_intervals_of_the_largest_hold_together() -> None:
    assert covered(Fraction(2), 40) >= 5  # in half of the releases at least, by the promise
    assert covered(Fraction(8), 40) < 5  # the planted bug: more noise than the task states
