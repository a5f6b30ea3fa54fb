"""The exponential choice: hats that dominate, proposals at every boundary, decisions, and laws that draws fit."""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations
from typing import NamedTuple

import numpy as np
import pytest

from lapwing.errors import EntropyFault
from lapwing.exact import choice
from lapwing.exact.arrays import IntArray
from lapwing.exact.choice import _Wheel, exponential_choice, exponential_choices
from tests.exact.test_integers import Short
from tests.support.effort import one_in, only
from tests.support.exact.fit import LEAST_P_VALUE, p_value
from tests.support.exact.independent import exact, number
from tests.support.fixed_entropy import RecordedEntropy, StreamEntropy

CHUNK = choice._CHUNK


class Case(NamedTuple):
    distances: IntArray
    scale: Fraction
    multiplicities: IntArray | None = None


def far(*distances: int) -> IntArray:
    return np.array(distances, dtype=object)


CASES = {
    "small": Case(np.array([0, 1, 2, 5, 40, 60, 1000]), Fraction(3, 2)),
    "one": Case(np.array([7]), Fraction(1)),
    "equal": Case(np.full(20, 10**12), Fraction(1, 1 << 30)),
    "digits": Case(np.array([0, 999, 5000, 123_456, 44_000]), Fraction(1000)),
    "wide scale": Case(np.array([0, 1 << 40, (1 << 62) + 12345, 17]), Fraction(1 << 61, 3)),
    "big": Case(far(2**90, 2**90 + 2**81, 2**100, 2**90 + 5), Fraction(1 << 80)),
    "tiny scale": Case(np.array([3, 4, 3, 5]), Fraction(1, 1 << 30)),
    "multiplicities": Case(np.array([0, 1, 2, 40, 3]), Fraction(2), np.array([0, 3, 1, 1 << 40, 0])),
    "heavy and far": Case(far(5, 300, 0), Fraction(1), far(1, 2**433, 0)),
    "heavy": Case(np.array([0, 1, 350, 355]), Fraction(1), far(1, 2, 2**511, 2**511 + 3)),
}


def weights_of(case: Case) -> list:  # type: ignore[type-arg]
    many = [1] * case.distances.size if case.multiplicities is None else case.multiplicities.tolist()
    base = min(d for d, m in zip(case.distances.tolist(), many, strict=True) if m)
    return [
        m * exact.exp(-exact.mpf(d - base) / number(case.scale))
        for d, m in zip(case.distances.tolist(), many, strict=True)
    ]


def certify(wheel: _Wheel, case: Case) -> None:
    """W_i ≥ 2^x·w_i, W_i = 0 only for what cannot be drawn, sums are sums, and few proposals are rejected."""
    hats = np.concatenate([wheel._weights(chunk) for chunk in range(len(wheel.totals))]).tolist()
    wanted = weights_of(case)
    with exact.workprec(2000):
        for hat, weight in zip(hats, wanted, strict=True):
            assert hat >= weight * exact.mpf(2) ** wheel.exponent
            assert (hat == 0) == (weight == 0)
    assert wheel.totals == [sum(hats[i : i + CHUNK]) for i in range(0, len(hats), CHUNK)]
    assert sum(wheel.totals) < 1 << 62
    accepted = exact.fsum(wanted) * exact.mpf(2) ** wheel.exponent / sum(hats)
    assert 1 - accepted < exact.mpf(2) ** -30


def wheel_of(case: Case) -> _Wheel:
    return _Wheel.of(case.distances, case.scale, case.multiplicities)


@pytest.mark.parametrize("name", one_in(3, CASES))
def test_hats_dominate(name: str) -> None:
    certify(wheel_of(CASES[name]), CASES[name])


@pytest.mark.parametrize("name", ["small", "digits", "big", "multiplicities"])
def test_twin_smaller_hats_are_caught(name: str) -> None:
    """The same tables without what makes up for the rounding, and a little less."""
    wheel = wheel_of(CASES[name])
    (place, table), *low = wheel.hats.tables
    wheel.hats = wheel.hats._replace(tables=((place, table * (1 - 2.0**-39)), *low))
    with pytest.raises(AssertionError):
        certify(wheel, CASES[name])


def boundaries(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first and the last place of every candidate propose it, and W_i is returned with it."""
    wheel = wheel_of(case)
    hats = np.concatenate([wheel._weights(chunk) for chunk in range(len(wheel.totals))]).tolist()
    end = 0
    places: list[tuple[int, int]] = []
    for i, hat in enumerate(hats):
        if hat and (i < 10 or i % CHUNK in (0, 1, CHUNK - 1) or i == len(hats) - 1):
            places += [(end, i), (end + hat - 1, i)]
        end += hat
    for place, i in places:
        monkeypatch.setattr(choice, "uniform_integers", lambda bound, size, entropy, place=place: np.array([place]))
        assert wheel._propose(RecordedEntropy(b"")) == (i, hats[i])


MANY = Case(np.arange(3 * CHUNK + 5)[::-1] // 7, Fraction(5))


@pytest.mark.parametrize("name", CASES)
def test_proposals_at_every_boundary(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    boundaries(CASES[name], monkeypatch)


def test_proposals_across_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    boundaries(MANY, monkeypatch)


def test_twin_the_other_side_of_a_boundary_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    search = np.searchsorted
    monkeypatch.setattr(np, "searchsorted", lambda a, v, side: search(a, v, side="left"))
    with pytest.raises(AssertionError):
        boundaries(CASES["small"], monkeypatch)


def test_chunks_that_are_far_are_summed_without_being_looked_at() -> None:
    wheel = wheel_of(MANY)
    assert wheel.least[0] is not None
    assert wheel.least[0] - wheel.base > wheel.hats.reach
    looked_at = list(wheel.totals)
    wheel.present = np.ones(MANY.distances.size, dtype=np.bool_)
    wheel._form()
    assert wheel.totals == looked_at == [int(wheel._weights(chunk).sum()) for chunk in range(4)]
    assert wheel.totals[0] == CHUNK


def words(u: int) -> bytes:
    """192 bits of U in the order in which they are read."""
    return b"".join((u >> start & (2**64 - 1)).to_bytes(8, "little") for start in (128, 64, 0))


def check_decisions(name: str) -> None:
    """Inflate each hat by some factor: what is accepted is U < 2^x·w_i/W_i, to the last of 192 bits."""
    wheel, weights = wheel_of(CASES[name]), weights_of(CASES[name])
    for i, weight in enumerate(weights):
        hat = int(exact.ceil(weight * exact.mpf(2) ** wheel.exponent)) * 3 // 2 + 1
        with exact.workprec(1000):
            boundary = int(exact.floor(weight * exact.mpf(2) ** (wheel.exponent + 192) / hat))
        for u, wanted in ((boundary - 2, True), (boundary + 2, False)):
            if u >= 0:
                assert wheel._accepts(i, hat, RecordedEntropy(words(u))) is wanted


@pytest.mark.parametrize("name", CASES)
def test_decisions_are_exact(name: str) -> None:
    check_decisions(name)


def test_twin_a_decision_by_floating_point_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def rounded(self: _Wheel, index: int, hat: int, entropy: RecordedEntropy) -> bool:
        u = int.from_bytes(entropy.read(8), "little") / 2**64
        return bool(u < np.exp(-(int(self.distances[index]) - self.base) / float(self.scale)) * 2**self.exponent / hat)

    monkeypatch.setattr(_Wheel, "_accepts", rounded)
    with pytest.raises(AssertionError):
        check_decisions("small")


FEW = 1000
"""How many draws tell. What accepts everything draws shares q for p, Σ (q − p)²/p = 0.33, and so moves Pearson's sum by
330, with deviation 40; of four outcomes it passes while it is below 41."""
MORE = pytest.param(5 * FEW, marks=pytest.mark.long)


def check_fit(case: Case, draw: Callable[[StreamEntropy], int], label: str, draws: int) -> None:
    weights = weights_of(case)
    law = [float(weight / exact.fsum(weights)) for weight in weights]
    entropy = StreamEntropy(label)
    counts = Counter(draw(entropy) for _ in range(draws))
    common = [i for i, p in enumerate(law) if p * draws >= 10]
    seen, expected = [counts[i] for i in common], [law[i] for i in common]
    seen[0] += draws - sum(seen)
    expected[0] += 1 - sum(expected)
    assert {i for i, p in enumerate(law) if p == 0}.isdisjoint(counts)
    if len(common) > 1:
        assert p_value(np.array(seen), np.array(expected)) > LEAST_P_VALUE


def drawing(case: Case) -> Callable[[StreamEntropy], int]:
    return lambda entropy: exponential_choice(case.distances, case.scale, entropy, multiplicities=case.multiplicities)


@pytest.mark.parametrize("draws", only([0], [FEW, MORE]))
@pytest.mark.parametrize("name", only([0], CASES))
def test_draws_fit(name: str, draws: int) -> None:
    check_fit(CASES[name], drawing(CASES[name]), name, draws)


INFLATED = Case(np.array([0, 1, 2, 3]), Fraction(2))


def inflate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hats that are too large by factors from 1 to 4: many proposals are rejected, and the law is the same."""
    honest = _Wheel._weights
    monkeypatch.setattr(_Wheel, "_weights", lambda self, chunk: honest(self, chunk) * np.array([1, 4, 2, 3]))


@pytest.mark.parametrize("draws", [FEW, pytest.param(10 * FEW, marks=pytest.mark.long)])
def test_any_hats_give_the_law(monkeypatch: pytest.MonkeyPatch, draws: int) -> None:
    inflate(monkeypatch)
    check_fit(INFLATED, drawing(INFLATED), "inflated", draws)


def test_twin_accepting_everything_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    inflate(monkeypatch)
    monkeypatch.setattr(_Wheel, "_accepts", lambda self, index, hat, entropy: True)
    with pytest.raises(AssertionError):
        check_fit(INFLATED, drawing(INFLATED), "inflated", FEW)


@pytest.mark.long
def test_chunks_fit() -> None:
    """Candidates spread over several chunks, by the remainder of their index."""
    case = Case(np.tile(np.array([0, 3, 50, 4]), CHUNK), Fraction(4))
    residues = Case(np.array([0, 3, 50, 4]), Fraction(4))
    check_fit(residues, lambda e: exponential_choice(case.distances, case.scale, e) % 4, "chunks", FEW)


def check_order(
    draw: Callable[[StreamEntropy], tuple[int, ...]], distances: list[int], scale: Fraction, draws: int = FEW
) -> None:
    """The order is that of peeling: each next one by its share among those left."""
    count, entropy = len(draw(StreamEntropy("length"))), StreamEntropy("order")
    weights = [float(np.exp(-d / float(scale))) for d in distances]
    law = {}
    for order in permutations(range(len(distances)), count):
        share, left = 1.0, sum(weights)
        for i in order:
            share, left = share * weights[i] / left, left - weights[i]
        law[order] = share
    counts = Counter(draw(entropy) for _ in range(draws))
    assert counts.keys() <= law.keys()
    assert p_value(np.array([counts[order] for order in law]), np.array(list(law.values()))) > LEAST_P_VALUE


@pytest.mark.parametrize("draws", [FEW, pytest.param(6 * FEW, marks=pytest.mark.long)])
def test_choices_are_peeled(draws: int) -> None:
    distances, two = [0, 1, 2, 3], Fraction(2)
    check_order(lambda e: tuple(exponential_choices(np.array(distances), two, 2, e).tolist()), distances, two, draws)


@pytest.mark.long
def test_twin_choices_by_index_are_caught() -> None:
    with pytest.raises(AssertionError):
        check_order(
            lambda e: tuple(sorted(exponential_choices(np.array([0, 1, 2, 3]), Fraction(2), 2, e).tolist())),
            [0, 1, 2, 3],
            Fraction(2),
        )


@pytest.mark.parametrize("scale", [Fraction(1, 1 << 30), Fraction(1, 10)])
def test_choices_far_apart_come_in_order(scale: Fraction) -> None:
    """Each one takes all the weight there is, so hats are formed anew again and again."""
    rng = np.random.default_rng(5)
    scores = rng.permutation(40_000)
    chosen = exponential_choices(scores * 100, scale, 50, StreamEntropy("far"))
    assert scores[chosen].tolist() == list(range(50))


def test_all_are_chosen_in_the_end() -> None:
    distances = far(0, 2**70, 5, 5, 2**70 + 1)
    assert sorted(exponential_choices(distances, Fraction(3), 5, StreamEntropy("all")).tolist()) == list(range(5))


def test_what_was_removed_weighs_nothing() -> None:
    wheel = wheel_of(MANY)
    for index in (0, 5, CHUNK, MANY.distances.size - 1, MANY.distances.size - 2):
        wheel.remove(index)
        assert wheel._weights(index // CHUNK)[index % CHUNK] == 0
        assert wheel.totals == [int(wheel._weights(chunk).sum()) for chunk in range(4)]
    wheel._form()
    assert wheel.totals == [int(wheel._weights(chunk).sum()) for chunk in range(4)]


def test_known_answers() -> None:
    """Recorded from this code: a change of how bits become choices must be meant."""
    entropy = StreamEntropy("known")
    distances = np.arange(1000)
    assert [exponential_choice(distances, Fraction(100), entropy) for _ in range(4)] == KNOWN["one"]
    assert exponential_choices(distances, Fraction(100), 5, entropy).tolist() == KNOWN["five"]


def test_bad_arguments() -> None:
    dry, one = RecordedEntropy(b""), Fraction(1)
    with pytest.raises(ValueError, match="scale"):
        exponential_choice(np.array([1]), Fraction(0), dry)
    with pytest.raises(ValueError, match="candidates"):
        exponential_choice(np.empty(0, dtype=np.int64), one, dry)
    for distances in (np.array([1.5]), np.array([[1]]), np.array([-1, 2])):
        with pytest.raises(ValueError, match="distances"):
            exponential_choice(distances, one, dry)
    for bad in (np.array([0, 0]), np.array([-1, 1]), np.array([1]), np.array([1.0, 1.0]), far(1, 2**512)):
        with pytest.raises(ValueError, match="multiplicities"):
            exponential_choice(np.array([1, 2]), one, dry, multiplicities=bad)
    for count in (0, 3):
        with pytest.raises(ValueError, match="count"):
            exponential_choices(np.array([1, 2]), one, count, dry)


def test_short_reads_are_faults() -> None:
    with pytest.raises(EntropyFault):
        exponential_choice(np.array([0, 1]), Fraction(1), Short())


KNOWN: dict[str, list[int]] = {"one": [99, 318, 115, 62], "five": [33, 86, 115, 60, 66]}
