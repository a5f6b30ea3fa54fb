"""Shares of texts from RAPPOR's bits: right on average, as sure as said, and no worse than the published decoder."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import lsq_linear, minimize, nnls
from scipy.stats import false_discovery_control

from lapwing.errors import InvalidParameter
from lapwing.local import LocalHashing, Rappor, RapporEstimate, decode
from lapwing.local.client import rappor as device
from lapwing.local.frequencies.variance import mean_variance
from lapwing.local.rappor import decoding, least_squares, rappor_estimate
from lapwing.local.rappor.bloom_filters import Patterns
from lapwing.local.rappor.decoding import Counts
from tests.support.effort import one_in, only
from tests.support.fixed_entropy import StreamEntropy

ONCE = Rappor.once(2, cohorts=32)


def zipf(count: int) -> Any:
    weights = 1 / np.arange(1, count + 1)
    return weights / weights.sum()


def population(shares: Any, people: int, label: str) -> Any:
    """A random sample, as codes: by the system's own law of uniform numbers, repeatable."""
    seed = int.from_bytes(StreamEntropy(label).read(8), "little")
    return np.random.default_rng(seed).choice(len(shares), people, p=shares)


def asked(mechanism: Rappor, texts: list[str], shares: Any, people: int, label: str) -> Any:
    return mechanism.randomize(texts, population(shares, people, label), StreamEntropy(label))


def test_reports_that_do_not_scatter_show_nothing() -> None:
    """Without an error there is no significance, and no warning of a division."""
    found = replace(decode(ONCE, asked(ONCE, ["a", "b"], [1, 0], 500, "few"), ["a", "b"]), covariance=np.zeros((2, 2)))
    assert [row["seen"] for row in found.rows()] == [False, False]


# Right on average


def exact_fit(mechanism: Rappor, texts: list[str], shares: Any, candidates: list[str]) -> RapporEstimate:
    """Decode what reports say on average, in place of reports: the raw shares are linear in it."""
    present, absent = map(float, mechanism.rates)
    sizes = np.arange(1000, 1000 + mechanism.cohorts)
    patterns = mechanism.patterns(texts)
    bits = (patterns.columns(np.arange(len(texts))) + patterns.density[:, None]) @ shares
    ones = sizes[:, None] * (absent + (present - absent) * bits)
    pairs = np.zeros((*ones.shape, mechanism.bits))
    counts = Counts(reports=sizes, ones=ones, pairs=pairs)
    amounts = bits - patterns.density
    fit = decoding._Fit(mechanism=mechanism, counts=counts, patterns=mechanism.patterns(candidates), amounts=amounts)
    return decoding._measured(fit, candidates, np.arange(len(candidates)), chosen_by=0)


def check_unbiased(hashes: int) -> None:
    texts = [f"text {i}" for i in range(30)]
    shares = zipf(30)
    found = exact_fit(Rappor.once(1, hashes=hashes, cohorts=8), texts, shares, texts)
    assert np.abs(found.raw - shares).max() < 1e-9
    assert np.abs(found.consistent - shares).max() < 1e-9
    assert abs(found.unallocated) < 1e-9


@pytest.mark.parametrize("hashes", [1, 2, 4])
def test_shares_are_right_on_average(hashes: int) -> None:
    check_unbiased(hashes)


def check_patterns() -> None:
    """Columns are the bits that devices set; scores are the columns' products with amounts."""
    mechanism, texts = Rappor.once(1, bits=12, hashes=6, cohorts=5), [f"text {i}" for i in range(40)]
    patterns = mechanism.patterns(texts)
    columns = patterns.columns(np.arange(40))
    set_ = [
        [[device.bloom(text, cohort, 12, 6) >> bit & 1 for text in texts] for bit in range(12)] for cohort in range(5)
    ]
    assert np.abs(columns + patterns.density[:, None] - set_).max() < 1e-12
    amounts = np.random.default_rng(1).normal(size=(5, 12))
    assert np.abs(np.einsum("cjs,cj->s", columns, amounts) - patterns.scores(amounts)).max() < 1e-9


def test_patterns_are_those_of_devices() -> None:
    check_patterns()


def test_hashes_that_meet_and_count_twice_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Patterns.of

    def doubled(*given: Any, bits: int, hashes: int, cohorts: int) -> Patterns:
        each = [made(*given, bits=bits, hashes=h + 1, cohorts=cohorts).places[:, :, h] for h in range(hashes)]
        return Patterns(bits=bits, places=np.minimum(np.stack(each, axis=2), bits - 1))

    monkeypatch.setattr(Patterns, "of", doubled)
    with pytest.raises(AssertionError):
        check_patterns()


@pytest.mark.long
def test_the_density_is_that_of_random_texts() -> None:
    patterns = Rappor.once(1, bits=24, hashes=12, cohorts=50).patterns([f"text {i}" for i in range(2000)])
    mean = (patterns.columns(np.arange(2000)) + patterns.density[:, None]).mean(axis=(0, 2))
    assert np.abs(mean - patterns.density).max() < 7 * 0.5 / 100_000**0.5
    assert len(set(patterns.density.round(9))) == 2  # 24 does not divide 256


@pytest.mark.long
def test_other_texts_are_unallocated() -> None:
    texts, shares = [f"text {i}" for i in range(200)], zipf(200)
    reports = asked(ONCE, texts, shares, 200_000, "unallocated")
    found = decode(ONCE, reports, texts[10:110])
    left = 1 - shares[10:110].sum()
    assert abs(found.unallocated - left) < 5 * found.unallocated_error < 0.5
    assert decode(ONCE, reports, texts).misfit < 1.2 < 2 < found.misfit


# As sure as said


def covered(mechanism: Rappor, texts: list[str], shares: Any, candidates: list[str], people: int, turns: int) -> float:
    hits = []
    truth = dict(zip(texts, shares, strict=True))
    for turn in range(turns):
        names = {text: f"{turn} {text}" for text in {*texts, *candidates}}
        reports = asked(mechanism, [names[text] for text in texts], shares, people, f"covered {turn}")
        found = decode(mechanism, reports, [names[text] for text in candidates])
        low, high = found.interval(0.95)
        own = [truth.get(text.split(" ", 1)[1], 0.0) for text in found.texts]
        hits += [low_ <= true <= high_ for low_, true, high_ in zip(low, own, high, strict=True)]
    return float(np.mean(hits))


FIFTY = [f"text {i}" for i in range(50)]


@pytest.mark.long
@pytest.mark.parametrize("mechanism", only([1], [ONCE, Rappor.full(2, 6, hashes=2, bits=64, cohorts=16)]), ids=repr)
def test_intervals_cover_as_often_as_they_say(mechanism: Rappor) -> None:
    """Of 1,500; chance alone makes ±1.2 %, but the stream is the same every time."""
    assert 0.935 <= covered(mechanism, FIFTY, zipf(50), FIFTY, 10_000, 30) <= 0.965


def check_covered_with_other_texts(turns: int) -> None:
    assert 0.93 <= covered(ONCE, FIFTY, zipf(50), FIFTY[5:], 60_000, turns) <= 0.985


@pytest.mark.long
def test_intervals_cover_though_other_texts_have_a_share() -> None:
    check_covered_with_other_texts(20)


def check_few_reports() -> None:
    """Two reports of three texts: an interval by the normal law would cover in fewer than half of the cases."""
    assert covered(ONCE, FIFTY[:3], np.full(3, 1 / 3), FIFTY[:3], 2, 40) == 1.0


@pytest.mark.long
def test_few_reports_have_no_intervals() -> None:
    check_few_reports()


def test_intervals_of_few_reports_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rappor_estimate, "FEW", 0)
    with pytest.raises(AssertionError):
        check_few_reports()


@pytest.mark.long
def test_from_thirty_reports_on_intervals_cover() -> None:
    """Of 800; a little narrow still."""
    assert rappor_estimate.FEW == 30
    assert 0.91 <= covered(ONCE, FIFTY[:4], zipf(4), FIFTY[:4], 30, 200) <= 0.98


def test_nothing_is_seen_by_few_reports() -> None:
    certain = Rappor.once(8)
    few = [decode(certain, asked(certain, ["a", "b"], [1, 0], n, "few"), ["a", "b"]).rows() for n in (29, 30)]
    assert [[row["seen"] for row in rows] for rows in few] == [[False, False], [True, False]]
    assert {few[0][0][name] for name in ("low", "high", "significance")} == {None}


def test_intervals_that_ignore_the_misfit_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding._Fit, "misfit", lambda self, *rest: 1.0)
    with pytest.raises(AssertionError):
        check_covered_with_other_texts(4)


@pytest.mark.long
def test_intervals_of_chosen_texts_cover() -> None:
    """Half of the cohorts choose among 1,500 candidates, the other half measures those: some 280 intervals."""
    many = [f"text {i}" for i in range(1500)]
    assert 0.92 <= covered(ONCE, FIFTY, zipf(50), many, 40_000, 20) <= 0.98


def chosen_and_measured(mine: bool) -> float:
    """How many standard errors chosen texts are too large on average, measured by the cohorts that chose, or others."""
    many, found = [f"text {i}" for i in range(1500)], []
    for turn in range(8):
        reports = asked(ONCE, FIFTY, zipf(50), 20_000, f"mine {turn}")
        patterns, even = ONCE.patterns(many), reports["cohort"] % 2 == 0
        first = decoding._Fit.of(ONCE, reports[even], patterns)
        second = first if mine else decoding._Fit.of(ONCE, reports[~even], patterns)
        measured = decoding._measured(second, many, first.choose(), chosen_by=0)
        truth = [zipf(50)[int(text[5:])] if int(text[5:]) < 50 else 0.0 for text in measured.texts]
        found += list((measured.raw - truth) / measured.standard_error)
    return float(np.mean(found))


@pytest.mark.long
def test_choosing_and_measuring_by_the_same_reports_would_bend_the_result() -> None:
    """What is chosen for being large by chance is measured too large by the same reports, and not by others."""
    assert chosen_and_measured(mine=True) > 0.5
    assert abs(chosen_and_measured(mine=False)) < 0.4


# Least squares


def problem(seed: int, rows: int, columns: int) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    return random.normal(size=(rows, columns)), random.normal(size=rows) + 0.3


def check_nonnegative(seed: int, **options: int) -> None:
    design, right = problem(seed, 60, 40)
    found = least_squares.nonnegative(design.T @ design, design.T @ right, **options)
    assert np.abs(found - nnls(design, right)[0]).max() < 1e-8


@pytest.mark.parametrize("seed", range(20))
def test_least_squares_are_scipys(seed: int) -> None:
    check_nonnegative(seed)


def test_cutting_off_what_is_negative_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(least_squares, "nonnegative", lambda gram, target: np.maximum(np.linalg.solve(gram, target), 0))
    with pytest.raises(AssertionError):
        check_nonnegative(0)


def test_the_slow_way_out_of_a_circle_ends_as_well() -> None:
    for seed in range(5):
        check_nonnegative(seed, tries_in_a_row=0)


@pytest.mark.parametrize("seed", range(5))
def test_the_lasso_is_where_its_conditions_hold(seed: int) -> None:
    design, right = problem(seed, 60, 40)
    gram, target = design.T @ design, design.T @ right
    penalty = float(target.max()) / 3
    found = least_squares.nonnegative(gram, target - penalty)
    slope = gram @ found - target + penalty
    assert 0 < (found > 0).sum() < 40
    assert np.abs(slope[found > 0]).max() < 1e-9
    assert slope[found == 0].min() > -1e-9
    assert (
        np.abs(found - lsq_linear(*_with_penalty(design, right, penalty), bounds=(0, np.inf), tol=1e-14).x).max() < 1e-4
    )


def _with_penalty(design: Any, right: Any, penalty: float) -> tuple[Any, Any]:
    """The same as least squares alone: with A = LLᵀ, |Lᵀx − L⁻¹(b − λ)|²."""
    factor = np.linalg.cholesky(design.T @ design)
    return factor.T, np.linalg.solve(factor, design.T @ right - penalty)


@pytest.mark.parametrize("seed", range(8))
def test_shares_are_at_most_one_in_all(seed: int) -> None:
    design, right = problem(seed, 40, 12)
    gram, target = design.T @ design, design.T @ (right * 5)
    found = least_squares.shares(gram, target)
    other = minimize(
        lambda x: x @ gram @ x / 2 - target @ x,
        np.full(12, 1 / 24),
        jac=lambda x: gram @ x - target,
        bounds=[(0, None)] * 12,
        constraints={"type": "ineq", "fun": lambda x: 1 - x.sum(), "jac": lambda x: -np.ones(12)},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    assert found.min() >= 0
    assert found.sum() <= 1 + 1e-9
    assert np.abs(found - other.x).max() < 1e-5


def test_the_working_set_ends_where_the_whole_lasso_does(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"text {i}" for i in range(700)]
    reports = asked(ONCE, texts[:60], zipf(60), 30_000, "whole")
    fit = decoding._Fit.of(ONCE, reports, ONCE.patterns(texts))
    penalty = fit.penalty(fit.amounts, 0)
    monkeypatch.setattr(decoding._Fit, "penalty", lambda self, rest, unknowns: penalty)
    gram, target = fit.weighted(fit.patterns.columns(np.arange(700)))
    whole = least_squares.nonnegative(gram + np.eye(700) * 1e-9 * gram[0, 0], target - penalty)
    assert 5 < (whole > 1e-9).sum() < 100
    assert fit.choose().tolist() == np.flatnonzero(whole > 1e-9).tolist()


# Many candidates


@pytest.mark.long
def test_the_common_texts_are_found_among_many() -> None:
    many = [f"page {i}" for i in range(5000)]
    reports = asked(Rappor.once(3), many[:40], zipf(40), 100_000, "many")
    found = decode(Rappor.once(3), reports, many)
    seen = {row["value"] for row in found.rows() if row["seen"]}
    assert {f"page {i}" for i in range(8)} <= seen <= {f"page {i}" for i in range(40)}
    assert (found.candidates, found.reports + found.chosen_by) == (5000, 100_000)
    assert abs(found.reports - found.chosen_by) < 3000
    shares = dict(zip(found.texts, found.raw, strict=True))
    assert all(abs(shares[f"page {i}"] - zipf(40)[i]) < 0.02 for i in range(8))


def test_where_no_candidate_is_used_none_is_seen() -> None:
    reports = asked(ONCE, [f"nobody lists this {i}" for i in range(30)], zipf(30), 20_000, "none")
    for candidates in (FIFTY, [f"text {i}" for i in range(2000)]):
        found = decode(ONCE, reports, candidates)
        assert not any(row["seen"] for row in found.rows())
        assert found.unallocated > 0.5


def test_nothing_chosen_is_an_estimate_too() -> None:
    even = Rappor.once(Fraction(1, 100), cohorts=8)
    many = [f"text {i}" for i in range(300)]
    turns = [decode(even, asked(even, many, np.full(300, 1 / 300), 500, f"even {t}"), many) for t in range(6)]
    empty = [found for found in turns if not found.texts]
    assert empty
    assert (empty[0].rows(), empty[0].unallocated, len(empty[0].significance("benjamini-hochberg"))) == ([], 1.0, 0)


def test_corrections_are_scipys() -> None:
    found = decode(ONCE, asked(ONCE, FIFTY, zipf(50), 50_000, "corrected"), FIFTY)
    single = found.significance("bonferroni")
    plain = np.where(single < 1, single / 50, np.nan)
    later = found.significance("benjamini-hochberg")
    assert np.all(later <= single + 1e-15)
    raw = np.array([_tail(z) for z in found.raw / found.standard_error])
    assert np.allclose(later, false_discovery_control(raw), atol=1e-15)
    assert np.allclose(plain[single < 1], raw[single < 1])
    with pytest.raises(InvalidParameter, match="correction"):
        found.significance("none")  # type: ignore[arg-type]


def _tail(z: float) -> float:
    from scipy.stats import norm

    return float(norm.sf(z))


# Forged reports


def test_a_forged_report_moves_no_share_by_more_than_said() -> None:
    """In place of one report, all others of its cohort are tried: the largest difference of two is `reach`."""
    tiny = Rappor.once(2, bits=4, cohorts=2)
    texts = ["a", "b"]
    reports = tiny.randomize(texts, np.arange(200) % 2, StreamEntropy("forged"))
    honest = decode(tiny, reports, texts)
    moved = np.zeros(2)
    for cohort in (0, 1):
        place = int(np.flatnonzero(reports["cohort"] == cohort)[0])
        tried = []
        for bits in range(16):
            forged = reports.copy()
            forged["bits"][place] = bits
            tried.append(decode(tiny, forged, texts).raw)
        moved = np.maximum(moved, np.max(tried, axis=0) - np.min(tried, axis=0))
    assert np.allclose(moved, honest.reach)
    assert np.allclose(honest.forged(3), 3 * honest.reach)


# Sums


def test_scatter_is_the_sum_over_reports() -> None:
    mechanism = Rappor.once(1, bits=9, hashes=2, cohorts=3)
    reports = mechanism.randomize(["a", "b"], np.arange(500) % 2, StreamEntropy("scatter"))
    means = np.random.default_rng(1).uniform(size=(3, 9))
    bits, sums = mechanism.unpacked(reports), np.zeros((3, 9, 9))
    for cohort, row in zip(reports["cohort"], bits, strict=True):
        sums[cohort] += np.outer(row - means[cohort], row - means[cohort])
    assert np.abs(Counts.of(mechanism, reports).scatter(means) - sums).max() < 1e-9


# Refused


@pytest.mark.parametrize(
    ("candidates", "said"),
    [([], "1 to"), (["a", "a"], "no two the same"), (["a", "b", "c", "d", "e", "f", "g"], "of one cohort")],
)
def test_candidates_that_cannot_be_told_apart_are_refused(candidates: list[str], said: str) -> None:
    tiny = Rappor.once(5, bits=2, cohorts=1)
    reports = tiny.randomize(["a"], np.zeros(5000, dtype=np.int64), StreamEntropy("alike"))
    with pytest.raises(InvalidParameter, match=said):
        decode(tiny, reports, candidates)


def test_texts_with_the_same_bits_are_refused() -> None:
    two = Rappor.once(5, bits=32, cohorts=1)
    same = [text for text in map(str, range(200)) if device.bloom(text, 0, 32, 1) == 1][:2]
    with pytest.raises(InvalidParameter, match="the same in every cohort"):
        decode(two, two.randomize(same, np.zeros(100, dtype=np.int64), StreamEntropy("same")), same)


def test_no_reports_and_other_reports_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="no reports"):
        decode(ONCE, ONCE.gather([]), ["a"])
    with pytest.raises(InvalidParameter, match="records"):
        ONCE.unpacked(Rappor.once(2, bits=64).gather([bytes(10)]))


# Beside others


def published(mechanism: Rappor, reports: Any, candidates: list[str]) -> Any:
    """`Decode` of analysis/R without its resampling: NNLS on the bits' estimates with equal weights."""
    counts = Counts.of(mechanism, reports)
    present, absent = map(float, mechanism.rates)
    bits = (counts.ones / counts.reports[:, None] - absent) / (present - absent)
    patterns = mechanism.patterns(candidates)
    design = (patterns.columns(np.arange(len(candidates))) + patterns.density[:, None]).reshape(-1, len(candidates))
    return nnls(design, bits.reshape(-1))[0]


@pytest.mark.long
@pytest.mark.parametrize("people", one_in(2, [5_000, 50_000]))
def test_the_error_is_no_larger_than_that_of_the_published_decoder(people: int) -> None:
    ours, theirs = [], []
    for turn in range(10):
        texts = [f"{turn} {i}" for i in range(100)]
        reports = asked(ONCE, texts, zipf(100), people, f"beside {turn}")
        ours.append(np.square(decode(ONCE, reports, texts).consistent - zipf(100)).mean())
        theirs.append(np.square(published(ONCE, reports, texts) - zipf(100)).mean())
    assert np.mean(ours) <= 1.02 * np.mean(theirs)


@pytest.mark.long
@pytest.mark.parametrize("hashes", only([1], [1, 2, 4]))
def test_the_error_is_the_stated_one(hashes: int) -> None:
    mechanism, texts = Rappor.once(1, hashes=hashes, cohorts=64), [f"text {i}" for i in range(40)]
    errors = []
    for turn in range(15):
        reports = asked(mechanism, texts, np.full(40, 1 / 40), 5_000, f"stated {hashes} {turn}")
        errors.append(np.square(decode(mechanism, reports, texts).raw - 1 / 40).mean())
    assert abs(5_000 * np.mean(errors) / float(mechanism.share_variance) - 1) < 0.15


@pytest.mark.parametrize(("epsilon", "hashes"), list(product((Fraction(1, 2), 1, 2, 4), (1, 2, 4))))
def test_one_time_rappor_is_dominated_by_hashing(epsilon: Any, hashes: int) -> None:
    """Also with as many values as a list can have; the more hashes, the worse."""
    ours = Rappor.once(epsilon, bits=256, hashes=hashes).share_variance
    assert ours > mean_variance(LocalHashing.for_epsilon(epsilon, 100_000))
    assert hashes == 1 or ours > Rappor.once(epsilon, bits=256, hashes=hashes // 2).share_variance
