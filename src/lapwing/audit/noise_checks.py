"""The checks of the noise: its laws, and bets against the promised losses."""

import json
import math
import time
from collections.abc import Collection, Iterator
from functools import partial
from typing import Any, Final

from lapwing.audit import sampler_laws
from lapwing.audit.betting import PrivacyPromise, Wealth, promises, smallest_violation
from lapwing.audit.exact_laws import distribution_of
from lapwing.audit.findings import AuditCheck, AuditFinding, Severity
from lapwing.audit.sampler_cases import SLOW, choice_cases, noise_case, noises_of, small_noises
from lapwing.audit.subject import Subject, bodies
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian

DRAWS: Final = 1 << 21
QUICK_DRAWS: Final = 1 << 17
"""How many numbers are drawn of each noise, twice."""
TURNS: Final = 4
"""How often each bet has its turn."""
STORED: Final = {law.name: law for law in (DiscreteLaplace, RoundedGaussian)}
_REMEDY: Final = (
    "Answer no query with this installation: its noise hides less than it promises. Install Lapwing anew from its "
    "signed files, on a machine that you trust, and report this finding."
)


def laws_check(subject: Subject, seen: Collection[Any], *, quick: bool) -> AuditCheck:
    """Compare what is drawn with exact laws."""
    draws, kind = QUICK_DRAWS if quick else DRAWS, subject.catalog.budget.measure
    noises = [*small_noises(kind), *noises_of([*seen, *stored_noises(subject)])]
    cases = [case for noise in noises if (case := noise_case(noise)) is not None]
    cases += choice_cases(kind)
    found = [
        _finding("noise_law", case.name, f"The draws do not follow the law: {what}.")
        for case in cases
        for what in sampler_laws.differences(case, draws if case.independent else SLOW * (1 if quick else 16))
    ]
    part = max(sampler_laws.smallest_found(partial(distribution_of, noise), 2 * draws) for noise in noises)
    return AuditCheck(
        name="laws of the noise",
        tried=len(cases),
        what_was_tried=f"laws, {draws:,} draws of each noise twice, by χ² and by the distance of Kolmogorov and "
        f"Smirnov, and pairs of draws: {', '.join(case.name for case in cases)}",
        power=f"a scale that is {part:.1%} too small, with a probability of 99 %, or noise that is used a second time. "
        "A false alarm in any of 10,000 audits has a probability of one in a million at most",
        not_tried="Mechanisms of graphs, monitors, learning and the local model. The quality of the operating system's "
        "randomness.",
        findings=tuple(found),
    )


def bets_check(subject: Subject, seconds: float, rounds: float = math.inf) -> AuditCheck:
    """Bet against the promised losses in turn, for some seconds or rounds, each until its alarm."""
    until, playing = time.monotonic() + seconds, [Wealth.of(one) for one in promises(subject.catalog.budget.measure)]
    while True:
        for wealth in playing:
            turn = time.monotonic() + seconds / len(playing) / TURNS
            while not wealth.alarms and wealth.rounds < rounds:
                wealth.play()
                if time.monotonic() >= turn:
                    break
        done = all(wealth.alarms or wealth.rounds >= rounds for wealth in playing)
        if time.monotonic() >= until or done:
            break
    return AuditCheck(
        name="bets against the promised losses",
        tried=sum(wealth.rounds for wealth in playing),
        what_was_tried=f"rounds of bets through the samplers, for {len(playing)} promises",
        power="; ".join(_power(wealth.promise, wealth.rounds) for wealth in playing),
        not_tried="Violations that show in less than one of many draws, such as a δ of one in a million.",
        findings=tuple(_broken(playing)),
    )


def stored_noises(subject: Subject) -> Iterator[Any]:
    """Yield the noises of the answers in the ledger."""
    for record in bodies(subject.entries, "answer"):
        try:
            named = json.loads(record["payload"])["mechanisms"]
            yield from (STORED[name].from_record(parameters) for name, *parameters in named if name in STORED)
        except (KeyError, TypeError, ValueError):
            continue  # an answer that cannot be read is a finding of another check


def _power(promise: PrivacyPromise, rounds: int) -> str:
    part = smallest_violation(promise, rounds)
    return f"{promise.name}: a scale that is {part:.1%} too small, in {rounds:,} rounds"


def _broken(playing: list[Wealth]) -> Iterator[AuditFinding]:
    for wealth in playing:
        if wealth.alarms:
            yield _finding(
                "noise_promise",
                wealth.promise.name,
                f"A bet against the promise won more than 10^{wealth.most / 2.302585:.0f} times its stake in "
                f"{wealth.rounds:,} rounds. If the promise held, that would have a probability of at most 10^-12.",
            )


def _finding(code: str, about: str, what: str) -> AuditFinding:
    return AuditFinding(code=code, severity=Severity.violated, about=about, what=what, remedy=_REMEDY)
