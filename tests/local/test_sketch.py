"""Count-mean sketches: exact laws, functions that meet as often as counted, no bias, honest intervals, bad reports."""

import json
from datetime import date
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.errors import InvalidParameter
from lapwing.local import (
    CountMeanSketch,
    HadamardSketch,
    PrefixExtending,
    client,
    collect_for,
    compare_sketches,
    estimate_sketch,
    new_task,
)
from lapwing.local.client import frequencies
from lapwing.local.client import heavy_hitters as device
from lapwing.local.frequencies.variance import for_respondents
from lapwing.local.heavy_hitters import sketches
from lapwing.local.heavy_hitters.hash_functions import Numbered, meeting, places, points_of
from lapwing.local.heavy_hitters.hash_functions import points as points_at
from tests.support.effort import examples, one_in, only, some
from tests.support.exact.fit import LEAST_P_VALUE, p_value
from tests.support.fixed_entropy import StreamEntropy
from tests.support.local.laws import law_of

SEEDS = {"seed_x": 2**60 + 7, "seed_y": 3**37 % 2**61, "seed_shift": 5**26 % 2**61}
WORDS = ("the", "été", "🐦")
BOTH = pytest.mark.parametrize("kind", [CountMeanSketch, HadamardSketch])


def small(kind: Any, epsilon: float = 1, functions: int = 3, buckets: int = 4, **seeds: int) -> Any:
    """A sketch with few functions and buckets."""
    size = {"buckets": buckets} if kind is CountMeanSketch else {"order": buckets.bit_length() - 1}
    threshold = kind.for_epsilon(epsilon).threshold
    return kind(threshold=threshold, functions=functions, **size, **(seeds or SEEDS)).among(WORDS)


def as_report(mechanism: Any, report: Any) -> Any:
    """A report of the transition matrix as `gather` takes it."""
    if mechanism.name == "hadamard":
        return report
    number, bits = report
    return number, sum(bit << i for i, bit in enumerate(bits)).to_bytes(-(-len(bits) // 8), "little")


# Privacy


@BOTH
@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
def test_the_worst_ratio_is_the_stated_one(kind: Any, epsilon: float) -> None:
    mechanism = small(kind, epsilon)
    matrix = mechanism.transition_matrix()
    assert all(sum(row) == 1 and min(row) > 0 for row in matrix.rows)
    assert matrix.worst_ratio() == mechanism.ratio
    assert client.RULES[mechanism.name].ratio(mechanism.parameters, 10) == mechanism.ratio
    assert Fraction(str(epsilon)) * (1 - Fraction(1, 10**9)) <= mechanism.loss().amount
    assert mechanism.loss().amount <= Fraction(str(epsilon)) * (1 + Fraction(1, 2**60))


def test_one_bit_is_not_the_whole_loss() -> None:
    """The published coin has ε/2 a bit: a coin of ε a bit loses twice as much, and the matrix shows it."""
    mechanism = small(CountMeanSketch)
    wrong = CountMeanSketch(**{**mechanism.parameters, "threshold": HadamardSketch.for_epsilon(1).threshold})
    assert wrong.among(WORDS).transition_matrix().worst_ratio() > mechanism.ratio


@BOTH
def test_reports_have_exactly_the_law_of_the_matrix(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = small(kind, functions=2, buckets=4)
    matrix, task = mechanism.transition_matrix(), task_of(mechanism)

    def said(word: str) -> Any:
        return mechanism.read(json.loads(client.report(task, word, lambda size: bytes(size)))["r"])

    laws = [law_of(lambda word=word: said(word), monkeypatch) for word in WORDS]  # type: ignore[misc]
    reports = [as_report(mechanism, report) for report in matrix.reports]
    assert laws == [dict(zip(reports, row, strict=True)) for row in matrix.rows]


def task_of(mechanism: Any, size: int = 10) -> client.Task:
    return new_task("Which word?", client.Text(size), mechanism, opens=date(2027, 1, 1), closes=date(2027, 1, 31))


# Functions


@pytest.fixture
def field(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make the field so small that all functions can be written out."""

    def small_field(prime: int) -> None:
        for module in (client, frequencies, device):
            monkeypatch.setattr(module, "PRIME", prime)

    return small_field


@pytest.mark.parametrize("count", [2, 3, 4])
def test_words_meet_as_often_as_is_counted(field: Any, count: int) -> None:
    field(5)
    plane = [(x, y) for x in range(5) for y in range(5)]
    for one, other in combinations(plane, 2):
        meet = [
            device.bucket((a, c, b), one, count) == device.bucket((a, c, b), other, count)
            for a, c, b in product(range(5), repeat=3)
        ]
        assert Fraction(sum(meet), len(meet)) == meeting(count) != Fraction(1, count)


def test_points_on_a_line_only_do_not_do(field: Any) -> None:
    """Without the shift b two words meet at other rates, and that shows: the check of the last test would fail."""
    field(5)
    functions = [(a, c, 0) for a, c in product(range(5), repeat=2)]
    meet = [device.bucket(f, (0, 0), 2) == device.bucket(f, (1, 2), 2) for f in functions]
    assert Fraction(sum(meet), 25) != meeting(2)


def test_two_numbered_functions_are_independent(field: Any) -> None:
    """Each pair of functions comes from one choice of seeds, if their numbers differ mod the field's size."""
    field(3)
    for numbers in ((0, 1), (0, 2), (1, 2)):
        pairs = {
            tuple(device.numbered(dict(zip(device.SEEDS, seeds, strict=True)), number) for number in numbers)
            for seeds in product(range(9), repeat=3)
        }
        assert len(pairs) == 27**2


def test_the_server_puts_words_where_the_device_does() -> None:
    numbered = Numbered(count=1 << 20, **SEEDS)
    numbers = np.array([0, 1, 2, 1 << 19, (1 << 20) - 1])
    where = places(numbered.at(numbers), points_of(WORDS), 1000)
    for row, number in enumerate(numbers.tolist()):
        function = device.numbered(SEEDS, number)
        assert where[row].tolist() == [device.bucket(function, device.point(device.as_bytes(w)), 1000) for w in WORDS]
    largest = np.array([[client.PRIME - 1] * 3], dtype=np.uint64)
    at = np.array([[client.PRIME - 1] * 2], dtype=np.uint64)
    assert places(largest, at, 1000)[0, 0] == device.bucket((client.PRIME - 1,) * 3, (client.PRIME - 1,) * 2, 1000)
    assert points_at([b"the"]).tolist() == [list(device.point(b"the"))]


def test_forms_of_a_word_are_one() -> None:
    assert device.as_bytes("e\u0301te\u0301") == device.as_bytes("été")
    with pytest.raises(InvalidParameter):
        CountMeanSketch.for_epsilon(1).among(("été", "e\u0301te\u0301"))


# Estimates


def supporting(mechanism: Any) -> Any:
    """P(a report supports v | x), from the matrix, for given functions."""
    matrix = mechanism.transition_matrix()
    shown = [mechanism.support_counts(mechanism.gather([as_report(mechanism, r)])).tolist() for r in matrix.reports]
    return [
        [sum((p * s[v] for p, s in zip(row, shown, strict=True)), Fraction(0)) for v in range(len(WORDS))]
        for row in matrix.rows
    ]


def words_of_different_points() -> tuple[str, ...]:
    found: dict[Any, str] = {}
    for i in range(100):
        found.setdefault(device.point(device.as_bytes(f"w{i}")), f"w{i}")
    return tuple(found.values())[: len(WORDS)]


@pytest.mark.long
@pytest.mark.parametrize("kind", only([0], [CountMeanSketch, HadamardSketch]))
def test_no_bias_and_the_stated_variance_over_all_functions(kind: Any, field: Any) -> None:
    """Every choice of seeds in a field of 3; as if words met nobody, there would be a bias."""
    field(3)
    candidates, k = words_of_different_points(), 2
    seeds = [dict(zip(device.SEEDS, each, strict=True)) for each in product(range(9), repeat=3)]
    made = [small(kind, functions=k, buckets=2, **each).among(candidates) for each in seeds]
    chances = [[row[0] for row in supporting(mechanism)] for mechanism in made]
    (p, q), c, shared = made[0].rates(0), meeting(2), made[0].shared
    for truth in some(4, ((0, 1, 1), (0, 1, 2), (1, 1, 2), (0, 0, 1))):
        n, others = len(truth), sum(word != 0 for word in truth)
        totals = [sum((each[x] for x in truth), Fraction(0)) for each in chances]
        mean = sum(totals, Fraction(0)) / len(totals)
        between = sum((total**2 for total in totals), Fraction(0)) / len(totals) - mean**2
        within = sum((each[x] * (1 - each[x]) for each in chances for x in truth), Fraction(0)) / len(totals)
        share = Fraction(truth.count(0), n)
        assert (mean / n - q) / (p - q) == share
        naive = 1 - p if kind is CountMeanSketch else Fraction(1, 2)
        assert (mean / n - naive) / (p - naive) != share
        variance = (within + between) / n**2 / (p - q) ** 2
        alone = for_respondents(made[0].rates(0), share) / n
        assert alone <= variance <= alone + shared * (1 - share) ** 2
        if len(set(truth) - {0}) == 1:
            assert variance == alone + Fraction(others * (others - 1), n * n) * c / ((1 - c) * k)


@pytest.mark.long
@pytest.mark.parametrize("kind", only([0], [CountMeanSketch, HadamardSketch]))
def test_decoding_is_the_sum_over_reports(kind: Any) -> None:
    mechanism = small(kind, functions=7, buckets=16).among([f"w{i}" for i in range(50)])
    reports = mechanism.randomize(np.arange(700) % 50, StreamEntropy("decode"))
    one_by_one = sum(mechanism.support_counts(reports[i : i + 1]) for i in range(len(reports)))
    naive = np.zeros(50, dtype=np.int64)
    numbered = Numbered(count=7, **SEEDS)
    for report in reports:
        number = int(report["function"]) if kind is CountMeanSketch else int(report[0])
        where = places(numbered.at(np.array([number])), points_of(mechanism.words), 16)[0].tolist()
        for word, bucket in enumerate(where):
            if kind is CountMeanSketch:
                naive[word] += report["bits"][bucket // 8] >> bucket % 8 & 1
            else:
                naive[word] += (int(report[1]) & bucket).bit_count() % 2 == report[2]
    counts = mechanism.support_counts(reports)
    assert counts.tolist() == naive.tolist() == one_by_one.tolist()
    marks = mechanism.likelihoods(reports)
    assert ((marks == marks.max()).sum(axis=0)).tolist() == naive.tolist()


def test_reports_cross_the_edges_of_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = small(CountMeanSketch, functions=5, buckets=16)
    reports = mechanism.randomize(np.arange(300) % 3, StreamEntropy("pieces"))
    whole = mechanism.support_counts(reports)
    monkeypatch.setattr(sketches, "CELLS_AT_ONCE", 100)
    assert mechanism.support_counts(reports).tolist() == whole.tolist()


@pytest.mark.long
@BOTH
def test_simulations_fit(kind: Any) -> None:
    mechanism = small(kind, functions=2, buckets=4)

    def fits(simulated: Any) -> bool:
        matrix, worst = mechanism.transition_matrix(), 1.0
        numbers = {as_report(mechanism, report): i for i, report in enumerate(matrix.reports)}
        for x in range(3):
            drawn = simulated.randomize(np.full(20_000, x), StreamEntropy(f"fit {x}"))
            keys = (
                [(int(r["function"]), r["bits"].tobytes()) for r in drawn]
                if kind is CountMeanSketch
                else [tuple(row) for row in drawn.tolist()]
            )
            seen = np.bincount([numbers[key] for key in keys], minlength=len(numbers))
            worst = min(worst, p_value(seen, np.array(matrix.rows[x], dtype=float)))
        return worst > LEAST_P_VALUE

    assert fits(mechanism)
    assert not fits(small(kind, 1.3, functions=2, buckets=4))


def covered() -> tuple[float, float]:
    """How often intervals of 95 % hold the share, over functions and coins, with few of each; and those of coins."""
    hits: tuple[list[bool], list[bool]] = [], []
    for i in range(200):
        mechanism = HadamardSketch.for_epsilon(8, functions=8, order=3, entropy=StreamEntropy(f"functions {i}")).among(
            WORDS
        )
        reports = mechanism.randomize(np.array([0] * 4000 + [1] * 16_000), StreamEntropy(f"coins {i}"))
        found = estimate_sketch(mechanism, reports, WORDS)
        assert found.shared > 0
        for held, one in zip(hits, (found, estimate_plain(mechanism, reports)), strict=True):
            low, high = one.interval()
            held += [low[0] <= 0.2 <= high[0], low[2] <= 0 <= high[2]]
    return float(np.mean(hits[0])), float(np.mean(hits[1]))


def estimate_plain(mechanism: Any, reports: Any) -> Any:
    from lapwing.local import estimate

    return estimate(mechanism, reports, WORDS)


@pytest.mark.long
def test_intervals_cover_the_draw_of_the_functions() -> None:
    """Without the functions' part they are far off."""
    of_both, of_coins_alone = covered()
    assert of_both > 0.87
    assert of_coins_alone < 0.7


@pytest.mark.long
def test_too_few_functions_cannot_be_made_up_for() -> None:
    mechanism = small(HadamardSketch, functions=2, buckets=2)
    found = estimate_sketch(mechanism, mechanism.randomize(np.zeros(1000, dtype=int)), WORDS)
    with pytest.raises(InvalidParameter, match="functions"):
        found.respondents_for(0.01)
    many = small(HadamardSketch, functions=1 << 14, buckets=1024)
    enough = estimate_sketch(many, many.randomize(np.zeros(1000, dtype=int)), WORDS)
    assert enough.respondents_for(0.01) > 10_000
    assert (enough.noise_band() > 0).all()


# Reports


@BOTH
def test_from_devices_to_shares(kind: Any) -> None:
    """Of 3,000 people half say one word, the rest two others; seven standard errors."""
    mechanism = small(kind, 2, functions=64, buckets=64)
    task, entropy = task_of(mechanism), StreamEntropy("devices")
    lines = [client.report(task, WORDS[(0, 0, 1, 2)[i % 4]], entropy.read) for i in range(3000)]
    collected = collect_for(mechanism, task, [*lines, b"{}", lines[0]])
    assert [bad.line for bad in collected.rejected] == [3001, 3002]
    found = estimate_sketch(mechanism, collected.reports, (*WORDS, "nobody"))
    assert found.values == (*WORDS, "nobody")
    for share, truth, error in zip(found.raw, (0.5, 0.25, 0.25, 0), found.standard_error(), strict=True):
        assert abs(share - truth) <= 7 * error
    assert [row["seen"] for row in found.rows()] == [True, True, True, False]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        *((CountMeanSketch, said) for said in (3, "00", [], [0], [0, "0f", 1], [3, "0f"], [True, "0f"], [0, "0g"])),
        *((CountMeanSketch, said) for said in ([0, "f"], [0, "1f"], [0, "0F"], [0, 15], [-1, "0f"], [None, None])),
        *((HadamardSketch, said) for said in (3, [0, 0], [0, 0, 2], [3, 0, 0], [0, 4, 0], [0, 0, True], [0, 0, 0.0])),
    ],
)
def test_what_no_device_says_is_rejected(kind: Any, said: Any) -> None:
    with pytest.raises(ValueError, match=r"\br\b"):
        small(kind).read(said)


def test_rows_of_too_many_ones_are_rejected() -> None:
    mechanism = CountMeanSketch.for_epsilon(4, entropy=StreamEntropy("ones"))
    with pytest.raises(ValueError, match="1024 bits set"):
        mechanism.read([0, "ff" * 128])
    mechanism.read(device.draw_sketch(mechanism.parameters, 10, "the", StreamEntropy("honest").read))


@pytest.mark.long
@given(said=st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=6))
@examples(40, 3000)
@pytest.mark.parametrize(
    "mechanism",
    one_in(3, [small(CountMeanSketch), small(HadamardSketch), PrefixExtending.for_epsilon(1, 3)]),
    ids=lambda m: m.name,
)
def test_whatever_is_said_is_read_or_rejected(mechanism: Any, said: Any) -> None:
    try:
        value = mechanism.read(said)
    except ValueError:
        return
    assert len(mechanism.gather([value])) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: CountMeanSketch.for_epsilon(1, functions=1 << 20),
        lambda: CountMeanSketch.for_epsilon(1, buckets=1),
        lambda: HadamardSketch.for_epsilon(1, order=0),
        lambda: HadamardSketch.for_epsilon(33),
        lambda: CountMeanSketch(**{**small(CountMeanSketch).parameters, "threshold": 1 << 63}),
        lambda: CountMeanSketch(**{**small(CountMeanSketch).parameters, "seed_x": client.PRIME**2}),
        lambda: small(CountMeanSketch).among([]),
        lambda: small(CountMeanSketch).among(["one", "one"]),
        lambda: small(CountMeanSketch).support_counts(np.zeros(3)),
        lambda: small(HadamardSketch).support_counts(np.zeros((3, 2))),
        lambda: small(HadamardSketch).support_counts(np.array([[0, 0, 2]])),
    ],
)
def test_what_means_nothing_is_refused(make: Any) -> None:
    with pytest.raises(InvalidParameter):
        make()


# Comparison


@pytest.mark.parametrize("categories", [3, 10, 1000, 20_000])
@pytest.mark.parametrize("epsilon", [Fraction(1, 4), 1, 2, 4, 8])
def test_both_sketches_are_dominated(epsilon: Any, categories: int) -> None:
    """By subset selection always; by hashing from ε = 1; by unary encoding for rare words, and where words are many."""
    rows = {row.mechanism: row for row in compare_sketches([epsilon], categories)}
    for worse in (rows["count-mean sketch"], rows["Hadamard sketch"]):
        for name in ("subset selection", *(["hashing"] if epsilon >= 1 else [])):
            assert rows[name].rare < worse.rare
            assert rows[name].mean < worse.mean
        assert rows["optimised unary"].rare < worse.rare
        assert categories < 1000 or rows["optimised unary"].mean < worse.mean
