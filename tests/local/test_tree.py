"""The dyadic tree: every history of few periods written out, on both sides."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import islice, product
from math import log, sqrt
from typing import Any

import numpy as np
import pytest

from lapwing.errors import InvalidParameter
from lapwing.local import BinaryResponse, DyadicTree, TreeEstimate, client, collect, estimate_over_time, new_task
from lapwing.local.client import MemoryRule
from lapwing.local.client import longitudinal as tree_module
from lapwing.local.client.longitudinal import TREE
from lapwing.local.client.rules import THRESHOLDS
from lapwing.local.collection import collect_for
from lapwing.local.frequencies.variance import for_respondents
from lapwing.local.longitudinal import tree_estimate as estimating
from tests.local.test_client import DAYS
from tests.support.effort import one_in, only
from tests.support.exact.fit import LEAST_P_VALUE, p_value
from tests.support.fixed_entropy import StreamEntropy

WHOLE = client.WHOLE
SMALL = DyadicTree.for_epsilon(Fraction(1, 2), 4, 2)
device: Any = tree_module
Law = dict[tuple[int, tuple[int, ...]], Fraction]


def histories(tree: DyadicTree) -> Iterator[tuple[int, ...]]:
    return product((0, 1), repeat=tree.periods)


@cache
def law_over(tree: DyadicTree, history: tuple[int, ...]) -> Law:
    """The law of the tree, which takes as long as all else here: several tests go over the same histories."""
    return tree.law(history)


def worst(laws: Sequence[Law]) -> Fraction:
    """The worst ratio of what any two histories say."""
    assert all(sum(law.values()) == 1 for law in laws)
    keys = set().union(*laws)
    return max(max(law[key] for law in laws) / min(law[key] for law in laws) for key in keys)


# Privacy


@pytest.mark.parametrize(
    ("periods", "changes"), only(range(4), [(2, 1), (4, 1), (4, 2), (4, 3), (8, 1), (8, 2)], many=True)
)
def test_the_worst_ratio_of_all_histories_is_that_of_one_coin(periods: int, changes: int) -> None:
    tree = DyadicTree.for_epsilon(Fraction(1, 2), periods, changes)
    assert worst([law_over(tree, history) for history in histories(tree)]) == tree.ratio
    assert 0 <= 0.5 - log(tree.ratio) < 1e-12
    assert float(tree.loss().epsilon) == 0.5


@pytest.mark.parametrize(("periods", "changes"), only([0], [(2, 2), (4, 5), (4, 100)], many=True))
def test_it_is_never_more_where_there_are_fewer_blocks_than_slots(periods: int, changes: int) -> None:
    tree = DyadicTree.for_epsilon(3, periods, changes)
    assert worst([tree.law(history) for history in histories(tree)]) < tree.ratio


def client_law(
    tree: DyadicTree, history: Sequence[int], monkeypatch: pytest.MonkeyPatch, rule: MemoryRule[int] = TREE
) -> Law:
    """The law of all that a device sends over a history, over every level, slot and bit."""
    law: Law = defaultdict(Fraction)
    draws: list[Fraction] = []
    forced: list[int] = []

    def below(bound: int, read: Any) -> int:
        draws.append(Fraction(1, bound))
        return forced.pop(0)

    def coin(threshold: int, read: Any) -> bool:
        shown = forced.pop(0)
        draws.append(Fraction(threshold if shown else WHOLE - threshold, WHOLE))
        return bool(shown)

    monkeypatch.setattr(device, "below", below)
    monkeypatch.setattr(device, "coin", coin)
    for level, slot in product(range(tree.levels + 1), range(tree.changes)):
        for bits in product((0, 1), repeat=tree.periods >> level):
            draws.clear()
            forced[:] = [level, slot, *bits]
            said = sent(tree, history, rule=rule)
            assert said == [[level, block, bit] for block, bit in enumerate(bits)]
            assert not forced
            chance = Fraction(1)
            for each in draws:
                chance *= each
            law[level, bits] += chance
    return law


def sent(tree: DyadicTree, history: Sequence[int], label: str = "unused", rule: MemoryRule[int] = TREE) -> list[Any]:
    """What a device sends over a history; memory goes through what a file can hold."""
    read, whole = StreamEntropy(label).read, []
    memory: Any = {}
    for period, true in enumerate(history, 1):
        said, kept = rule.say(dict(tree.parameters), 2, true, read, memory, period)
        memory = json.loads(json.dumps(kept))
        if said is not None:
            assert period % (1 << memory["level"]) == 0
            whole.append(said)
    return whole


def check_device(tree: DyadicTree, monkeypatch: pytest.MonkeyPatch, rule: MemoryRule[int] = TREE) -> None:
    """A device's law is that of the tree, and no two histories differ by more than ε in it."""
    laws = {history: client_law(tree, history, monkeypatch, rule) for history in histories(tree)}
    assert worst(list(laws.values())) <= tree.ratio
    for history, law in laws.items():
        assert law == tree.law(history)


@pytest.mark.parametrize("changes", [1, 2, 3])
def test_devices_have_that_law_for_every_history(changes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    check_device(DyadicTree.for_epsilon(Fraction(1, 2), 4, changes), monkeypatch)


@pytest.mark.long
def test_devices_have_that_law_over_eight_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = DyadicTree.for_epsilon(Fraction(1, 2), 8, 2)
    for history in ([0] * 8, [1] * 8, [0, 1] * 4, [0, 0, 1, 1, 1, 0, 1, 0]):
        assert client_law(tree, history, monkeypatch) == tree.law(history)


def planted(change: Any) -> Any:
    """The device's rule with a bug."""

    def draw(given: Any, count: int, true: int, read: Any, memory: Any, period: int) -> Any:
        return change(given, true, read, dict(memory), period)

    return draw


def all_changes(given: Any, true: int, read: Any, memory: Any, period: int) -> Any:
    """It keeps every change of a block, whatever the slot."""
    if memory and true != memory["answer"]:
        memory["slot"] = min(memory["changes"], given["changes"] - 1)
    return TREE.draw(given, 2, true, read, memory, period)


def one_change_more(given: Any, true: int, read: Any, memory: Any, period: int) -> Any:
    """It draws one of c + 1 slots."""
    return TREE.draw({**given, "changes": given["changes"] + 1}, 2, true, read, memory, period)


def twice(given: Any, true: int, read: Any, memory: Any, period: int) -> Any:
    """It reports the kept change again in every later block."""
    said, after = TREE.draw(given, 2, true, read, memory, period)
    if memory.get("change") and not after["change"]:
        after = {**after, "change": memory["change"]}
        limit = given["threshold"] if memory["change"] > 0 else WHOLE - given["threshold"]
        said = [*said[:2], int(device.coin(limit, read))] if isinstance(said, list) else None
    return said, after


def silent(given: Any, true: int, read: Any, memory: Any, period: int) -> Any:
    """It sends nothing where nothing changed."""
    said, after = TREE.draw(given, 2, true, read, memory, period)
    return (said if after["change"] else None), after


def leaning(given: Any, true: int, read: Any, memory: Any, period: int) -> Any:
    """Its coin for a block without a change favours no."""
    fair = device.coin

    def coin(threshold: int, read: Any) -> bool:
        return bool(fair(WHOLE - given["threshold"] if threshold == WHOLE // 2 else threshold, read))

    device.coin = coin
    try:
        return TREE.draw(given, 2, true, read, memory, period)
    finally:
        device.coin = fair


@pytest.mark.parametrize("bug", one_in(3, [all_changes, one_change_more, twice, silent, leaning]))
def test_planted_bugs_are_caught(bug: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises((AssertionError, IndexError)):
        check_device(SMALL, monkeypatch, replace(TREE, draw=planted(bug)))


def test_a_coin_that_favours_no_change_doubles_the_loss() -> None:
    """By hand: if a block without a change says no with probability p, a change in another place is seen in two."""
    p = Fraction(SMALL.threshold, WHOLE)
    first, second = p * (1 - p), (1 - p) * p
    assert max(p * p / second, first / ((1 - p) * (1 - p))) == SMALL.ratio
    assert p * p / ((1 - p) * (1 - p)) == SMALL.ratio**2


def test_what_is_sent_and_when_does_not_depend_on_answers() -> None:
    """The same random bytes, any history: the same periods, levels and blocks."""
    tree = DyadicTree.for_epsilon(1, 16, 3)
    for label in ("a", "b", "c", "d"):
        told = [sent(tree, history, label) for history in ([0] * 16, [1] * 16, [0, 1] * 8)]
        assert len({tuple((level, block) for level, block, _ in each) for each in told}) == 1


def test_periods_that_were_left_out_count_as_unchanged() -> None:
    given, read = dict(SMALL.parameters), StreamEntropy("gaps").read
    _, memory = TREE.say(given, 2, 1, read, {}, 2)
    assert memory["period"] == 2
    for period in (1, 2, 5):
        with pytest.raises(client.AnswerRefused, match=f"Period {period} of 4 cannot follow period 2"):
            TREE.say(given, 2, 1, read, memory, period)
    kept = {"level": 1, "slot": 0, "period": 2, "answer": 1, "changes": 1, "change": 1}
    said, after = TREE.draw(given, 2, 1, read, kept, 4)
    assert isinstance(said, list)
    assert (said[:2], after["change"]) == ([1, 1], 0)


@pytest.mark.parametrize("damage", [{"level": 3}, {"slot": 2}, {"period": 5}, {"answer": 2}, {"change": "1"}])
def test_a_damaged_memory_sends_nothing(damage: dict[str, Any]) -> None:
    memory = {"level": 0, "slot": 0, "period": 1, "answer": 0, "changes": 0, "change": 0}
    read = StreamEntropy("damage").read
    assert TREE.say(dict(SMALL.parameters), 2, 1, read, memory, 2)[0] is not None
    with pytest.raises(client.AnswerRefused, match="damaged"):
        TREE.say(dict(SMALL.parameters), 2, 1, read, {**memory, **damage}, 2)
    for lost in memory:
        with pytest.raises(client.AnswerRefused, match="damaged"):
            TREE.say(dict(SMALL.parameters), 2, 1, read, {key: memory[key] for key in memory if key != lost}, 2)


# Estimates


def mean_estimates(tree: DyadicTree, law: Law, shown: Any) -> list[Fraction]:
    """The exact mean of one device's contribution to the raw estimate after each period, by its law."""
    ones: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for (level, bits), chance in law.items():
        for block, bit in enumerate(bits):
            ones[level, block] += chance * (2 * bit - 1)
    scale = (tree.levels + 1) * tree.scale
    return [sum((scale * ones[piece] for piece in shown(t)), Fraction(0)) for t in range(1, tree.periods + 1)]


def truncated(history: Sequence[int], changes: int) -> list[int]:
    """The history up to its first so many changes, and constant after."""
    shown, last, seen = [], 0, 0
    for value in history:
        if value != last and seen < changes:
            last, seen = value, seen + 1
        shown.append(last)
    return shown


@pytest.mark.parametrize(("periods", "changes"), only(range(3), [(4, 1), (4, 2), (4, 4), (8, 2)], many=True))
def test_estimates_are_unbiased_in_every_period(periods: int, changes: int) -> None:
    """Of the first so many changes of any history, however many it has."""
    tree = DyadicTree.for_epsilon(Fraction(1, 2), periods, changes)
    for history in histories(tree):
        mean = mean_estimates(tree, law_over(tree, history), estimating.pieces)
        assert mean == truncated(history, changes)


def test_pieces_that_overlap_are_caught() -> None:
    """A prefix made of one block too many."""
    with pytest.raises(AssertionError):
        assert mean_estimates(SMALL, SMALL.law((0, 1, 1, 1)), lambda t: [*estimating.pieces(t), (0, t - 1)]) == [
            0,
            1,
            1,
            1,
        ]


def sample(tree: DyadicTree, people: int) -> np.ndarray[Any, Any]:
    """Histories of people who say yes for a while, at different times."""
    i = np.arange(people)
    start, length = i % tree.periods, 1 + i // tree.periods % (tree.periods // 2)
    t = np.arange(tree.periods)
    return ((t >= start[:, None]) & (t < (start + length)[:, None])).astype(np.int64)


def test_the_error_is_that_of_the_formula() -> None:
    """Exact, of one respondent given a level: the variance of fair coins bounds it, and is near."""
    tree, law = SMALL, SMALL.law((0, 1, 1, 0))
    for t in range(1, 5):
        own = dict(estimating.pieces(t))
        for level, block in own.items():
            mean = sum(3 * chance * (2 * bits[block] - 1) for (height, bits), chance in law.items() if height == level)
            assert 0.9 < 1 - mean**2 <= 1
        weights = TreeEstimate(tree=tree, counts=np.full(7, 100), sums=np.zeros(7, dtype=np.int64))
        assert weights.standard_error(raw=True)[t - 1] == pytest.approx(tree.error(t, 300))
        assert tree.error(t, 300) == pytest.approx(float(tree.scale) * sqrt(len(own) / 100))


def test_errors_as_documented() -> None:
    """The standard error of 64 periods at worst, by number of changes; and of as many fresh reports of a 64th of ε."""
    counts, shown = np.full(127, 100_000 // 7), []
    for changes in (1, 2, 4, 8, 16):
        tree = DyadicTree.for_epsilon(1, 64, changes)
        found = TreeEstimate(tree=tree, counts=counts, sums=np.zeros(127, dtype=np.int64))
        shown.append(round(float(found.standard_error().max()), 3))
    assert shown == [0.021, 0.042, 0.084, 0.168, 0.336]
    fresh = BinaryResponse.for_epsilon(Fraction(1, 64))
    assert round(sqrt(for_respondents(fresh.rates(1), Fraction(1, 2)) / 100_000), 3) == 0.202


@pytest.mark.parametrize(("periods", "changes"), [(2, 1), (16, 2), (64, 2)])
def test_shares_are_the_least_squares_of_all_blocks(periods: int, changes: int) -> None:
    tree = DyadicTree.for_epsilon(1, periods, changes)
    found = estimate_over_time(tree, tree.simulate(sample(tree, 5_000), StreamEntropy("squares")))
    rows, places = [], []
    for level in range(tree.levels + 1):
        for block in range(periods >> level):
            rows.append([t >> level == block for t in range(periods)])
            places.append(level)
    root = np.sqrt(found.counts)
    design = np.array(rows, dtype=float) * root[:, None]
    observed = float(tree.scale) * found.sums / found.counts * root
    fitted = np.linalg.lstsq(design, observed, rcond=None)[0]
    assert found.shares == pytest.approx(np.cumsum(fitted), abs=1e-9)
    covariance = float(tree.scale) ** 2 * np.linalg.inv(design.T @ design)
    upto = np.tri(periods)
    assert found.standard_error() == pytest.approx(np.sqrt(np.diag(upto @ covariance @ upto.T)))
    assert (found.standard_error() <= found.standard_error(raw=True) + 1e-12).all()


def test_forged_devices_move_raw_shares_no_further_than_said() -> None:
    """Ten devices, on the levels and in the blocks that move a share most; where it is of one block they reach it."""
    tree, generator = DyadicTree.for_epsilon(1, 8, 2), np.random.default_rng(5)
    honest = tree.simulate(sample(tree, 400), StreamEntropy("forged"))
    without, reached = estimate_over_time(tree, honest).raw, np.zeros(8, dtype=np.bool_)
    all_top = [np.full(10, tree.levels), *(np.full(10, level) for level in range(tree.levels))]
    mixed = [generator.integers(tree.levels + 1, size=10) for _ in range(20)]
    for levels, bit in product([*all_top, *mixed], (0, 1)):
        reports = [[level, block, bit] for level in levels for block in range(tree.periods >> level)]
        found = estimate_over_time(tree, np.concatenate([honest, np.array(reports)]))
        down, up = found.forged(10)
        moved = found.raw - without
        assert (-down - 1e-9 <= moved).all()
        assert (moved <= up + 1e-9).all()
        assert (found.forged(9)[bit] < (down, up)[bit]).all()
        reached |= np.isclose(moved, up if bit else -down)
    assert reached[[0, 1, 3, 7]].all()  # the periods up to these are one block
    assert np.isinf(found.forged(10_000)[1]).all()
    assert not found.forged(0)[0].any()


def test_a_bound_for_equal_blocks_is_noticed() -> None:
    """The planted bug: the bound of all reports together, as if every block had as many."""
    tree = DyadicTree.for_epsilon(1, 8, 2)
    honest = tree.simulate(sample(tree, 400), StreamEntropy("forged"))
    found = estimate_over_time(tree, np.concatenate([honest, np.tile([tree.levels, 0, 1], (10, 1))]))
    moved = found.raw[-1] - estimate_over_time(tree, honest).raw[-1]
    assert moved <= found.forged(10)[1][-1] + 1e-9
    assert moved > float(tree.scale) * 10 * 2 / (410 - 10)


def blocks_of(tree: DyadicTree) -> list[tuple[int, int]]:
    return [(level, block) for level in range(tree.levels + 1) for block in range(tree.periods >> level)]


@cache
def block_means(tree: DyadicTree, history: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The exact mean of each block's bit as −1 or 1, given its level."""
    each = dict.fromkeys(blocks_of(tree), Fraction(0))
    for (level, bits), chance in law_over(tree, history).items():
        for block, bit in enumerate(bits):
            each[level, block] += (tree.levels + 1) * chance * (2 * bit - 1)
    return np.array([float(mean) for mean in each.values()])


def check_reached(reports_until: int, every: int = 1) -> None:
    """What reports of blocks that end by a period say is unbiased in all periods up to it, of one in so many of all."""
    tree = DyadicTree.for_epsilon(1, 8, 2)
    ended = np.array([(block + 1) << level <= reports_until for level, block in blocks_of(tree)])
    counts = np.where(ended, 1_000 + 100 * np.arange(15), 0)
    for history in islice(histories(tree), 0, None, every):
        means = np.where(ended, block_means(tree, history), 0)
        found = TreeEstimate(tree=tree, counts=counts, sums=counts * means)
        assert (found.reached, len(found.rows())) == (reports_until, reports_until)
        expected = truncated(history, 2)[:reports_until]
        assert found.shares == pytest.approx(expected, abs=1e-9)
        assert found.raw == pytest.approx(expected, abs=1e-9)
        assert np.isfinite(found.standard_error()).all()


@pytest.mark.long
@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("reports_until", one_in(6, range(1, 9)))
def test_the_periods_so_far_are_estimated(reports_until: int, every: int) -> None:
    check_reached(reports_until, every)


def test_blocks_that_reach_too_far_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a tree that takes a block without reports for one of no change."""
    monkeypatch.setattr(estimating, "_reached", lambda tree, counts: tree.periods)
    with pytest.raises((AssertionError, np.linalg.LinAlgError)):
        check_reached(5)


def test_one_block_without_reports_ends_what_is_reached() -> None:
    """The second block of level 1 ends with period 4: three periods are left. The second of level 0 leaves one."""
    counts = np.array([9, 9, 9, 9, 9, 0, 9])
    assert TreeEstimate(tree=SMALL, counts=counts, sums=np.zeros(7, dtype=np.int64)).reached == 3
    counts[1] = 0
    assert TreeEstimate(tree=SMALL, counts=counts, sums=np.zeros(7, dtype=np.int64)).reached == 1


@pytest.mark.long
def test_intervals_cover() -> None:
    """Over 400 samples of 3,000 people: 95 % of 3,200 intervals, at least; and not all of them."""
    tree = DyadicTree.for_epsilon(2, 8, 2)
    entropy, shares = StreamEntropy("cover"), sample(tree, 3_200).mean(axis=0)
    inside = raw = 0
    for run in range(400):
        chosen = np.frombuffer(entropy.read(8 * 3_000), dtype=np.uint64) % 3_200
        found = estimate_over_time(tree, tree.simulate(sample(tree, 3_200)[chosen.astype(np.int64)], entropy))
        low, high = found.interval()
        inside += int(((low <= shares) & (shares <= high)).sum())
        raw += int((np.abs(found.raw - shares) <= 1.96 * found.standard_error(raw=True)).sum())
        if run == 0:
            wide = found.interval(together=True)
            assert (wide[0] < low).all()
            assert (wide[1] > high).all()
    for covered in (inside, raw):
        assert 0.93 < covered / 3_200 < 0.995


def test_simulated_reports_have_the_law() -> None:
    history, people = (0, 1, 1, 0), 40_000
    reports = SMALL.simulate(np.tile(history, (people, 1)), StreamEntropy("simulated"))
    law = SMALL.law(history)
    for level in range(3):
        own = reports[reports[:, 0] == level]
        blocks = 4 >> level
        said = own[:, 2].reshape(-1, blocks)
        assert (own[:, 1].reshape(-1, blocks) == np.arange(blocks)).all()
        assert abs(len(said) - people / 3) < 7 * sqrt(people)
        keys = list(product((0, 1), repeat=blocks))
        seen = np.bincount(said @ (1 << np.arange(blocks)[::-1]), minlength=len(keys))
        assert p_value(seen, np.array([3 * law[level, bits] for bits in keys], dtype=float)) > LEAST_P_VALUE
        other = SMALL.law((1, 1, 0, 0))
        shifted = np.array([3 * other[level, bits] for bits in keys], dtype=float)
        assert (p_value(seen, shifted) < LEAST_P_VALUE) == (level == 0)


@pytest.mark.long
def test_from_devices_to_shares() -> None:
    """Of 3,000 devices of eight periods; seven standard errors."""
    tree = DyadicTree.for_epsilon(3, 8, 2)
    task = new_task("At home?", ["no", "yes"], tree, **DAYS)
    assert [name for name, _ in task.epsilons] == ["epsilon", "epsilon_all"]
    truth, read, lines = sample(tree, 3_000), StreamEntropy("devices").read, []
    for history in truth.tolist():
        memory: client.Memory = {}
        for period, value in enumerate(history, 1):
            line, memory = client.report_with_memory(task, task.values[value], read, memory, period)
            lines += [] if line is None else [line]
    taken = collect_for(tree, task, [*lines, b"{}"])
    assert len(taken.rejected) == 1
    found = estimate_over_time(tree, taken.reports)
    assert (np.abs(found.shares - truth.mean(axis=0)) <= 7 * found.standard_error()).all()
    assert [row["period"] for row in found.rows()] == list(range(1, 9))
    assert all(row["low"] < row["share"] < row["high"] for row in found.rows())
    with pytest.raises(InvalidParameter, match="shares of a list"):
        collect(task, lines)


@pytest.mark.parametrize(
    "said", [None, 3, [], [0, 0], [3, 0, 0], [0, 4, 0], [1, 2, 0], [0, 0, 2], [0, -1, 0], [True, 0, 0]]
)
def test_what_no_device_says_is_refused(said: Any) -> None:
    assert SMALL.read([2, 0, 1]) == (2, 0, 1)
    with pytest.raises(ValueError, match="r"):
        SMALL.read(said)


@pytest.mark.parametrize(
    "make",
    [
        lambda: DyadicTree.for_epsilon(1, 6, 2),
        lambda: DyadicTree.for_epsilon(1, 1, 2),
        lambda: DyadicTree.for_epsilon(1, 2048, 2),
        lambda: DyadicTree.for_epsilon(1, 8, 0),
        lambda: DyadicTree.for_epsilon(1, 8, 2, days=0),
        lambda: DyadicTree(levels=2, changes=2, threshold=WHOLE // 2),
        lambda: DyadicTree.for_epsilon(1, 16, 2).law([0] * 16),
        lambda: SMALL.law([0] * 3),
        lambda: SMALL.simulate(np.zeros((2, 5), dtype=np.int64)),
        lambda: SMALL.simulate(np.full((2, 4), 2)),
        lambda: estimate_over_time(SMALL, np.ones((3, 3), dtype=np.int64)),
        lambda: estimate_over_time(SMALL, np.zeros((3, 2), dtype=np.int64)),
        lambda: SMALL.error(5, 10),
        lambda: new_task("Which?", ["a", "b", "c"], SMALL, **DAYS),
    ],
)
def test_what_means_nothing_is_refused(make: Any) -> None:
    with pytest.raises(InvalidParameter):
        make()


def test_ranges_are_those_of_the_mechanism() -> None:
    assert TREE.ranges(2)["threshold"] == THRESHOLDS
    assert list(TREE.ranges(2)) == list(SMALL.parameters)
