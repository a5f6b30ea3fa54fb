"""*trust*: what a count of ten thousand people errs by, for each choice of whom to trust.

Derivation. All roads release a count of n yes and no with the same (ε, δ) for each person. A trusted curator adds one
discrete Laplace noise of scale 1/ε: the standard deviation is s = √(2q)/(1 − q), q = e^(−ε). Each of m servers that
hold parts adds that noise, as it may be the only honest one: √m·s. Three servers that draw one noise together, which
none of them knows, add s, for trust in two of them. A respondent who is told to lie with probability
l = 1/(1 + e^ε₀) leaves √(n·l(1 − l))/(1 − 2l) in the estimated count, whatever the true answers are. With local noise
ε₀ = ε; if reports are shuffled, ε₀ is what makes all of them (ε, δ)-DP together (`local.shuffling`). Combined, answers
that are told with ε₀ = 4ε are added up with the servers' joint noise: ε towards all but two of them, 4ε towards
everybody. The noise is stretched with the count by 1/(1 − 2l), and its variance adds up with that of the lies.
"""

from fractions import Fraction
from math import log, sqrt
from typing import Final

import numpy as np

from lapwing.exact.entropy import SYSTEM, read_exactly
from lapwing.lab.agreement import CONFIDENCE, RISK, Check, exactly, mean
from lapwing.lab.drawing import LOG, chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings
from lapwing.local import BinaryResponse, local_epsilon
from lapwing.mechanisms import DiscreteLaplace
from lapwing.plots import Plot
from lapwing.secure.field import joined, split
from lapwing.secure.joint_noise import Messages, digits_for, joint_noise
from lapwing.secure.key_stream import KeyStream
from lapwing.secure.noisy_totals import noisy_total, totals_of

PEOPLE: Final = 10_000
SERVERS: Final = 3
DELTA: Final = Fraction(1, 10**6)
ENOUGH: Final = 2_000
"""Errors among all counts, for their mean to have the normal law."""
SHARE: Final = Fraction(3, 10)
"""Of those who would say yes."""
FLOOR: Final = 4
"""How many ε the local noise leaves where it stands behind the servers' own."""


def run(settings: Settings) -> Finding:
    """Count the yes of ten thousand people on every road."""
    epsilon = settings.at(Fraction(1))
    repeats = settings.times(1_000, 200)
    noise = DiscreteLaplace(scale=1 / epsilon)
    people, delta = settings.n or PEOPLE, settings.delta or DELTA
    truth = np.arange(people) < int(people * SHARE)
    shuffled = local_epsilon(epsilon, delta, people, mechanism=BinaryResponse.for_epsilon)
    cheap = 10 * repeats  # draws of few numbers; the others ask ten thousand people each time
    one, servers = noise.standard_deviation, sqrt(SERVERS) * noise.standard_deviation
    local, mixed, floor = (_deviation(each, people) for each in (epsilon, shuffled, FLOOR * epsilon))
    behind = sqrt(floor**2 + (one / _kept(FLOOR * epsilon)) ** 2)
    total = int(truth.sum())
    roads = [
        _road("curator", "the curator, with all answers", one, noise.release(np.full(cheap, total)), total),
        _road("joint", "two of three servers", one, _joint(noise, total, repeats), total),
        _road("secure", "one of three servers", servers, _secure(noise, total, cheap), total),
        _road("shuffled", "the shuffler, and that others are honest", mixed, _asked(shuffled, truth, repeats), total),
        _road(
            "combined",
            f"two of three servers; nobody for {FLOOR} ε",
            behind,
            _asked(FLOOR * epsilon, truth, repeats, _joint(noise, 0, repeats)),
            total,
        ),
        _road("local", "nobody", local, _asked(epsilon, truth, repeats), total),
    ]
    usual = epsilon == 1 and people == PEOPLE and delta == DELTA
    known = [] if not usual else [
        exactly("local error at ε = 1", 95.95, local, 0.005),
        exactly("error with one joint noise at ε = 1", 1.36, one, 0.005),
        exactly("error with three servers at ε = 1", 2.35, servers, 0.005),
        exactly("local over three servers at ε = 1", 41, local / servers, 0.5),
        exactly("local over one noise at ε = 1", 71, local / one, 0.5),
    ]  # fmt: skip
    return Finding.of(
        roads,
        *known,
        plot=_plot([row for row, _ in roads]),
        conclusion=(
            f"If nobody is trusted, the same promise costs {local / one:.0f} times the error of a trusted curator. "
            f"With a shuffler it costs {mixed / one:.1f} times (and a delta of {float(delta):g}). It costs "
            f"{servers / one:.2f} times if any one of three servers is honest, and nothing more if two of them are."
        ),
        sample=f"{people:,} people, {repeats:,} times (totals {cheap:,} times); {CONFIDENCE}",
    )


def _road(road: str, trusted: str, predicted: float, counts: np.ndarray, total: int) -> Part:
    """Compare the errors of counts with their standard deviation.

    At a large ε hardly any count is wrong, and the normal law of their mean does not hold. Then an error is bounded by
    what none of all counts exceeds. With a variance v below 1 an error of m or more has a chance of v^m at most: of
    one discrete Laplace noise it is 2q^m/(1 + q), of three at most (m + 1)(m + 2)/2·(v/3)^m, and of lies (nl)^m/m!.
    """
    errors = counts.astype(float) - total
    row: Row = {
        "road": road,
        "trusted": trusted,
        "error, predicted": predicted,
        "error, observed": float(np.sqrt((errors**2).mean())),
    }
    # E[x⁴] of discrete Laplace noise is (6 + 1/variance)·variance², and that of all the others is less.
    spread = sqrt(5 + 1 / predicted**2) * predicted**2
    variance, level = predicted**2, log(counts.size / RISK)
    rare = variance < 1 and variance * counts.size < ENOUGH
    most = 1 + level / max(1 / level, -log(variance)) if rare else None
    checks: list[Check] = [
        mean(f"count, {road}", total, float(counts.mean()), predicted, counts.size, largest=most),
        mean(
            f"squared error, {road}",
            predicted**2,
            float((errors**2).mean()),
            spread,
            counts.size,
            largest=None if most is None else most**2,
        ),
    ]
    return row, checks


def _secure(noise: DiscreteLaplace, total: int, repeats: int) -> np.ndarray:
    """Return noisy counts as servers release them: the parts of a total have the law of sums of everybody's parts."""
    counts = []
    for _ in range(repeats):
        sums = [part[0].to_bytes(8, "little") for part in split([total], SERVERS)]
        counts += joined([noisy_total(totals_of(each, 1), noise) for each in sums])
    return np.array(counts)


def _joint(noise: DiscreteLaplace, total: int, repeats: int) -> np.ndarray:
    """Return noisy counts as three servers release them that draw one noise together, all in this process."""
    digits, shared = digits_for(noise.scale), [read_exactly(SYSTEM, 32) for _ in range(SERVERS)]
    servers = [
        joint_noise(digits, repeats, place, KeyStream(shared[place]), KeyStream(shared[(place + 1) % SERVERS]))
        for place in range(SERVERS)
    ]
    messages = [next(server) for server in servers]
    for _ in digits.message_bytes(repeats)[1:]:
        messages = [server.send(messages[(place + 1) % SERVERS]) for place, server in enumerate(servers)]
    parts = [_ended(server, messages[(place + 1) % SERVERS]) for place, server in enumerate(servers)]
    return np.array(joined([*parts, [total] * repeats]))


def _ended(server: Messages, message: bytes) -> list[int]:
    try:
        server.send(message)
    except StopIteration as ended:
        parts: list[int] = ended.value
        return parts
    raise RuntimeError("A round is left.")


def _asked(epsilon: Fraction, truth: np.ndarray, repeats: int, noise: np.ndarray | int = 0) -> np.ndarray:
    """Return estimated counts from reports, or from their noisy sums."""
    mechanism = BinaryResponse.for_epsilon(epsilon)
    yes, no = (float(rate) for rate in (mechanism.rates(1).p, mechanism.rates(1).q))
    answers = truth.astype(np.int64)
    said = np.array([int(mechanism.randomize(answers).sum()) for _ in range(repeats)])
    return np.asarray((said + noise - truth.size * no) / (yes - no))


def _deviation(epsilon: Fraction, people: int) -> float:
    lying = 1 / (1 + np.exp(float(epsilon)))
    return float(sqrt(people * lying * (1 - lying)) / _kept(epsilon))


def _kept(epsilon: Fraction) -> float:
    """Return 1 − 2l: what lies leave of a difference between two counts."""
    return float(1 - 2 / (1 + np.exp(float(epsilon))))


def _plot(rows: list[Row]) -> Plot:
    predicted, observed = (
        numeric(f"error, {when}", "standard deviation, people", scale=LOG) for when in ("predicted", "observed")
    )
    return chart(
        "The error of a count of 10,000: predicted (tick) and observed (point)",
        **data(rows),
        encoding={"y": nominal("road", sort=None, title=None)},
        layer=[
            layer({"type": "tick", "thickness": 3, "color": "black"}, x=predicted),
            layer({"type": "point", "filled": True}, x=observed),
        ],
    )


EXPERIMENT: Final = Experiment(
    name="trust",
    title="What does it cost to trust nobody, or only one of three?",
    run=run,
    sizes={"n": range(1_000, 100_001), "repetitions": range(100, 5_001)},
    takes_delta=True,
)
