"""The exact law of what every coalition sees, enumerated over a small field: simulated, private, and planted bugs.

The shares are made by the shipped code, with every outcome of its randomness in turn; the noise is one of few values
with a rational law, so that all probabilities are exact.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import Entropy
from lapwing.secure.field import joined, split
from lapwing.secure.noisy_totals import noisy_total, totals_of
from tests.support.effort import only

FIELD = 5
NOISE = {0: Fraction(1, 2), 1: Fraction(1, 6), 2: Fraction(1, 12), 3: Fraction(1, 12), 4: Fraction(1, 6)}
"""A law modulo 5; of two neighbouring numbers one is 3 times as likely at most, and of any two 6 times."""
RATIO = 3
Law = Mapping[object, Fraction]
Split = Callable[[Sequence[Sequence[int]], int, Entropy], list[tuple[tuple[int, ...], ...]]]


@dataclass
class Recorded:
    """Gives bytes that were chosen before."""

    data: bytes

    def read(self, size: int) -> bytes:
        part, self.data = self.data[:size], self.data[size:]
        return part


@dataclass(frozen=True)
class Fixed:
    """Adds noise that was chosen before."""

    noise: int

    def release(self, values: IntArray, entropy: Entropy) -> IntArray:
        return np.asarray(values + self.noise)


def split_each(answers: Sequence[Sequence[int]], servers: int, entropy: Entropy) -> list[tuple[tuple[int, ...], ...]]:
    """Split as clients do: each with randomness of their own."""
    return [split(answer, servers, entropy, FIELD) for answer in answers]


def split_alike(answers: Sequence[Sequence[int]], servers: int, entropy: Entropy) -> list[tuple[tuple[int, ...], ...]]:
    """Plant a bug: all clients use the same randomness."""
    drawn = entropy.read(servers - 1)
    return [split(answer, servers, Recorded(drawn), FIELD) for answer in answers]


def releases(
    answers: Sequence[int],
    servers: int,
    adding: Sequence[int],
    splitting: Split = split_each,
    closed: Mapping[int, Sequence[int]] | None = None,
) -> Iterator[tuple[Fraction, list[tuple[tuple[int, ...], ...]], list[int]]]:
    """Yield every outcome: its probability, all parts, and what each server releases.

    Args: adding: the servers that add noise; closed: the clients whose parts a server adds up, if not all.
    """
    draws = (servers - 1) * (1 if splitting is split_alike else len(answers))
    for coins in product(range(FIELD), repeat=draws):
        parts = splitting([[answer] for answer in answers], servers, Recorded(bytes(coins)))
        for noise in product(NOISE, repeat=len(adding)):
            added = dict(zip(adding, noise, strict=True))
            chance = Fraction(1, FIELD**draws)
            for each in noise:
                chance *= NOISE[each]
            totals: list[int] = []
            for server in range(servers):
                members = range(len(answers)) if closed is None else closed[server]
                cells = b"".join(parts[client][server][0].to_bytes(8, "little") for client in members)
                totals += noisy_total(totals_of(cells, 1, FIELD), Fixed(added.get(server, 0)), Recorded(b""), FIELD)
            yield chance, parts, totals


def view(
    answers: Sequence[int],
    servers: int,
    coalition: Sequence[int],
    adding: Sequence[int] | None = None,
    splitting: Split = split_each,
    closed: Mapping[int, Sequence[int]] | None = None,
) -> Law:
    """Return the law of what a coalition of servers sees: the parts that they hold, and all releases."""
    law: dict[object, Fraction] = defaultdict(Fraction)
    adds = range(servers) if adding is None else adding
    for chance, parts, totals in releases(answers, servers, adds, splitting, closed):
        # What the coalition's own servers add is known to them: without it their view is the same, up to a renaming.
        seen = tuple(part[server][0] for part in parts for server in coalition)
        law[seen, tuple(totals)] += chance
    return law


def simulated(total: int, clients: int, servers: int, honest: int) -> Law:
    """Return the law of a view that is drawn from one noisy total alone, where one server is honest."""
    law: dict[object, Fraction] = defaultdict(Fraction)
    others = [server for server in range(servers) if server != honest]
    for noise, chance in NOISE.items():
        noisy = (total + noise) % FIELD
        for coins in product(range(FIELD), repeat=clients * len(others)):
            held = [coins[at : at + len(others)] for at in range(0, len(coins), len(others))]
            sums = {server: sum(each[i] for each in held) % FIELD for i, server in enumerate(others)}
            released = [
                sums[server] if server != honest else (noisy - sum(sums.values())) % FIELD for server in range(servers)
            ]
            law[coins, tuple(released)] += chance * Fraction(1, FIELD ** len(coins))
    return law


def worst(first: Law, second: Law) -> Fraction | None:
    """Return the largest ratio of the probabilities of an outcome; None if one is impossible for one of the two."""
    if first.keys() != second.keys():
        return None
    return max(max(first[seen] / second[seen], second[seen] / first[seen]) for seen in first)


@pytest.mark.parametrize(("servers", "clients"), only([0], [(2, 1), (2, 2), (3, 1), (3, 2)], many=True))
def test_all_but_one_server_see_what_is_drawn_from_a_noisy_total(servers: int, clients: int) -> None:
    for honest in range(servers):
        coalition = [server for server in range(servers) if server != honest]
        answers = [1] * clients
        assert view(answers, servers, coalition, adding=[honest]) == simulated(clients, clients, servers, honest)


@pytest.mark.parametrize("servers", only([0], [2, 3]))
def test_no_coalition_but_all_is_surer_than_the_promise(servers: int) -> None:
    for size in range(servers):
        for coalition in combinations(range(servers), size):
            others = [1] if servers == 2 or size == 2 else []  # with a second client there are 78,125 outcomes
            one = {
                answer: view([answer, *others], servers, coalition, adding=_honest(servers, coalition))
                for answer in (0, 1)
            }
            ratio = worst(one[0], one[1])
            assert ratio is not None
            assert ratio <= RATIO
            if size == servers - 1:
                assert ratio == RATIO  # the promise is used up, and no more


def _honest(servers: int, coalition: Sequence[int]) -> list[int]:
    return [server for server in range(servers) if server not in coalition]


def test_all_servers_together_see_everything() -> None:
    assert worst(view([0, 1], 2, (0, 1), adding=[]), view([1, 1], 2, (0, 1), adding=[])) is None


@pytest.mark.parametrize("closed", only([0], [{0: [0, 1], 1: [0]}, {0: [0], 1: [0, 1]}, {0: [1], 1: [0, 1]}]))
def test_sets_that_differ_give_the_organiser_nothing(closed: Mapping[int, Sequence[int]]) -> None:
    """An organiser who names a different set to each server, and one server, are within the promise."""
    for coalition in ((), (0,), (1,)):
        laws = [view([other, 1], 2, coalition, adding=_honest(2, coalition), closed=closed) for other in (0, 1)]
        ratio = worst(laws[0], laws[1])
        assert ratio is not None
        assert ratio <= RATIO


@pytest.mark.long
def test_more_honest_servers_make_it_less_sure() -> None:
    ratios = [
        worst(view([0], 3, c, adding=_honest(3, c)), view([1], 3, c, adding=_honest(3, c))) for c in ((0, 1), (0,), ())
    ]
    assert ratios[0] == RATIO
    assert None not in ratios
    assert ratios[2] < ratios[1] < ratios[0]  # type: ignore[operator]


def test_randomness_that_is_used_twice_is_noticed() -> None:
    """The planted bug: the parts of two clients tell how their answers differ."""
    one, other = (view([answer, 1], 2, (1,), adding=[0], splitting=split_alike) for answer in (0, 1))
    assert worst(one, other) is None


def test_noise_by_one_server_only_is_noticed() -> None:
    """The planted bug: the server that adds all of the noise sees through it."""
    one, other = (view([answer, 1], 2, (0,), adding=[]) for answer in (0, 1))
    assert worst(one, other) is None


def test_parts_add_up() -> None:
    for answer, coins in product(range(FIELD), product(range(FIELD), repeat=2)):
        parts = split([answer], 3, Recorded(bytes(coins)), FIELD)
        assert joined(parts, FIELD) == [answer if answer <= FIELD // 2 else answer - FIELD]
