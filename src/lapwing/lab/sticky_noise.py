"""*sticky-noise*: noise that is bounded, that stays the same for the same question, or that depends on who is counted.

Derivation. Is Bob counted: x = 1, or 0? Each system answers x + noise, and the attacker says 1 if what they make of the
answers is above ½.

- *Bounded* noise, whole numbers from −5 to 5, all as likely, drawn afresh. The middle of the largest and the smallest
  answer is x as soon as both ends were drawn: after m answers with 1 − 2(10/11)^m + (9/11)^m. Bounded noise always ends
  so.
- *Sticky by words*: noise is seeded by the text of the question, so that a repeat brings the same (caching is the
  same). m other wordings have m independent noises. Of normal noise of deviation 2 their mean is right with
  Φ(√m/(2·2)).
- *Sticky by who is counted*: noise is seeded by the set of people, and so is that of each wording: now m wordings help
  no more than one, Φ(1/4). But Bob can be asked for with others: for m sets S of people, which the attacker chooses,
  the difference of S with Bob and S without him is x + two noises, and the mean is right with Φ(√m/(2·2·√2)). Where the
  noise is a layer for each condition, as in Diffix, differences that keep all other conditions cancel its layers, and
  attacks need fewer questions still (Gadotti et al. 2019).

A seed keeps an answer from being averaged. What protects Bob is that there is an end to questions about him, of
whatever words and sets: a budget.
"""

import hashlib
from math import sqrt
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lapwing.lab.agreement import CONFIDENCE, share
from lapwing.lab.chance import generator
from lapwing.lab.drawing import LOG, chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.plots import Plot

REACH: Final = 5
DEVIATION: Final = 2.0
SIZES: Final = (1, 10, 50)
LARGEST: Final = 200
BOUNDED, WORDS, SETS, DIFFERENCES = "bounded", "sticky by words", "sticky by set", "sticky by set, differences"

Floats = NDArray[np.float64]


def run(settings: Settings) -> Finding:
    """Attack each kind of noise with more and more questions."""
    tries = settings.times(2_000, 300)
    most = settings.k or LARGEST
    sizes = sorted({*(size for size in SIZES if size < most), most})
    parts: list[Part] = []
    for m in sizes:
        parts += [_bounded(m, tries), *_sticky(m, tries)]
    rows = [row for row, _ in parts]
    last = {str(row["noise"]): 100 * float(row["right, observed"] or 0) for row in rows[-4:]}
    return Finding.of(
        parts,
        plot=_plot(rows),
        conclusion=(
            f"After {most} questions, bounded noise is seen through in {last[BOUNDED]:.1f} % of cases. Noise that "
            f"sticks to the words gives {last[WORDS]:.1f} %. Noise that sticks to the set gives {last[SETS]:.1f} % if "
            f"only the words change, and {last[DIFFERENCES]:.1f} % if the sets do. A seed stops only repeats."
        ),
        sample=f"{tries:,} attackers of each noise and number of questions; {CONFIDENCE}",
    )


def bounded_seen(m: int) -> float:
    """Return how often both ends of bounded noise come within m answers."""
    ends = 2 * REACH + 1
    return 1 - 2 * ((ends - 1) / ends) ** m + ((ends - 2) / ends) ** m


def right(m: int, deviation: float) -> float:
    """Return how often the mean of m answers with normal noise is on the right side of ½."""
    return NormalDist().cdf(sqrt(m) / (2 * deviation))


def _bounded(m: int, tries: int) -> Part:
    answers = 1 + generator().integers(-REACH, REACH + 1, (tries, m))
    low, high = answers.min(axis=1), answers.max(axis=1)
    hits = int((high - low == 2 * REACH).sum())
    predicted = bounded_seen(m)
    return _row(BOUNDED, m, predicted, hits / tries), [
        share(f"seen through, {BOUNDED}, {m} answers", predicted, hits, tries)
    ]


def seeded(key: bytes, said: str) -> float:
    """Return normal noise of deviation 2 that depends on a secret key and on what is said, and on nothing else."""
    digest = hashlib.blake2b(said.encode(), key=key, digest_size=16).digest()
    return DEVIATION * NormalDist().inv_cdf((int.from_bytes(digest[:8], "little") + 0.5) / 2**64)


def by_words(key: bytes, wording: int, people: frozenset[str]) -> float:
    """Answer a wording of a count: noise sticks to the text."""
    return len(people) + seeded(key, f"wording {wording} of {sorted(people)}")


def by_set(key: bytes, wording: int, people: frozenset[str]) -> float:
    """Answer a count: noise sticks to who is counted, whatever the text is."""
    return len(people) + seeded(key, f"{sorted(people)}")


def _sticky(m: int, tries: int) -> list[Part]:
    """Ask other wordings of "Bob", and pairs of sets that differ by him."""
    bob = frozenset({"Bob"})
    means: dict[str, list[float]] = {WORDS: [], SETS: [], DIFFERENCES: []}
    for number in range(tries):
        key = generator().bytes(16)
        means[WORDS].append(sum(by_words(key, wording, bob) for wording in range(m)) / m)
        means[SETS].append(sum(by_set(key, wording, bob) for wording in range(m)) / m)
        sets = [frozenset({f"{number} {each}"}) for each in range(m)]
        means[DIFFERENCES].append(sum(by_set(key, 0, each | bob) - by_set(key, 0, each) for each in sets) / m)
    predicted = {WORDS: right(m, DEVIATION), SETS: right(1, DEVIATION), DIFFERENCES: right(m, sqrt(2) * DEVIATION)}
    parts: list[Part] = []
    for noise, several in means.items():
        hits = sum(one > 0.5 for one in several)
        check = share(f"guesses right, {noise}, {m} questions", predicted[noise], hits, tries)
        parts.append((_row(noise, m, predicted[noise], hits / tries), [check]))
    return parts


_row = columns("noise", "questions", "right, predicted", "right, observed")


def _plot(rows: list[Row]) -> Plot:
    x = numeric("questions", scale=LOG)
    noise = nominal("noise", sort=[BOUNDED, WORDS, SETS, DIFFERENCES], legend={"labelLimit": 260})
    layers = [
        layer("line", x=x, y=numeric("right, predicted", "share of attackers who are right"), color=noise),
        layer({"type": "point", "filled": True}, x=x, y=numeric("right, observed"), color=noise),
    ]
    return chart(
        "Noise that is bounded or sticky: predicted (line), observed (points)", width=380, **data(rows), layer=layers
    )


EXPERIMENT: Final = Experiment(
    name="sticky-noise",
    title="Does it help if noise is bounded, or stays the same?",
    run=run,
    sizes={"k": range(2, 2_001), "repetitions": range(100, 20_001)},
)
