"""The path of a query, tried on made-up rows."""

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from lapwing.audit.asking import HISTORY, MadeQuery
from lapwing.audit.findings import AuditCheck, AuditFinding, Severity
from lapwing.audit.made_data import left_out
from lapwing.audit.made_queries import made_queries
from lapwing.audit.movements import TriedQueries, Violation, compare_worlds
from lapwing.audit.noise_checks import bets_check, laws_check
from lapwing.audit.subject import AuditEffort, Subject
from lapwing.catalog.model import Catalog
from lapwing.errors import LapwingError

QUICK_WORLDS: Final = 2
"""The pairs of worlds of a quick audit. Their queries follow from the catalog, its history and these numbers."""
QUICK_SECONDS: Final = 35.0
"""The time after which a quick audit leaves out the rest of these queries, and says so."""
QUICK_ROUNDS: Final = 1 << 19
"""The rounds of bets on each noise in a quick audit."""
QUICK_BETS: Final = 10.0
DEFAULT_MINUTES: Final = 4.0
SHARE: Final = 0.5
"""The part of the time that goes to movements. The rest goes to bets."""
IN_A_WORLD: Final = 30
"""The most queries of the history, and the number of made ones, that each pair of worlds is asked."""
MOST_FINDINGS: Final = 50
_REMEDY: Final = (
    "Answer no query with this version of Lapwing. Install another one from its signed files, and report this query."
)


def checks(subject: Subject, effort: AuditEffort) -> Iterator[AuditCheck]:
    """Yield the checks of the path: no row of the protected data is read, and nothing is charged."""
    tally, seconds = TriedQueries(), seconds_of(effort)
    if effort.quick:
        yield _movements(subject, QUICK_SECONDS, tally, QUICK_WORLDS)
    else:
        yield _movements(subject, seconds * SHARE, tally)
    yield laws_check(subject, tally.noises, quick=effort.quick)
    if effort.quick:
        yield bets_check(subject, QUICK_BETS, QUICK_ROUNDS)
    else:
        yield bets_check(subject, seconds * (1 - SHARE))


def seconds_of(effort: AuditEffort) -> float:
    """Return how long the tests may take that can go on for any time."""
    return 60 * (DEFAULT_MINUTES if effort.minutes is None else effort.minutes)


def quick_queries(catalog: Catalog, history: Sequence[MadeQuery]) -> list[list[MadeQuery]]:
    """Return the queries of a quick audit, world by world: as many on every machine."""
    return [_queries(catalog, history, world) for world in range(QUICK_WORLDS)]


def _queries(catalog: Catalog, history: Sequence[MadeQuery], world: int) -> list[MadeQuery]:
    return [*_part(history, world), *islice(made_queries(catalog, world), IN_A_WORLD)]


def _movements(subject: Subject, seconds: float, tally: TriedQueries, worlds: int | None = None) -> AuditCheck:
    """Ask the history and made queries of neighbouring made worlds: of so many of them, and for so long at most."""
    until, found = time.monotonic() + seconds, list[Violation]()
    history = [MadeQuery(text=text, parameters=parameters, form=HISTORY) for text, parameters in subject.questions]
    not_tried, stopped = list(left_out(subject.catalog)), list[AuditFinding]()
    world = 0
    try:
        while not world or (time.monotonic() < until and world != worlds and not found):  # one violation is enough
            queries = _queries(subject.catalog, history, world)
            found += compare_worlds(subject.catalog, world, queries, lambda: time.monotonic() < until, tally)
            world += 1
    except LapwingError as error:  # such as a public table whose file is missing
        stopped.append(_stopped(error))
    if worlds is not None:
        planned = sum(map(len, quick_queries(subject.catalog, history)))
        asked = tally.queries.total() + tally.refused.total() + tally.unsettled
        not_tried += [f"{planned - asked:,} of the {planned:,} queries of a quick audit"] if asked < planned else []
    return AuditCheck(
        name="movements between neighbours",
        tried=tally.queries.total(),
        what_was_tried=_tried(tally),
        power=_power(tally),
        not_tried="; ".join((*not_tried, "graphs, monitors, learning and synthetic data")) + ".",
        findings=(*map(_finding, _distinct(found)), *stopped, *_unanswered(tally)),
    )


def _part(history: Sequence[MadeQuery], world: int) -> Sequence[MadeQuery]:
    """Return the part of the history that a world asks: the newest first, and in turn."""
    if not history:
        return ()
    first = world * IN_A_WORLD % len(history)
    turned = [*history[::-1][first:], *history[::-1][:first]]
    return turned[:IN_A_WORLD]


def _tried(tally: TriedQueries) -> str:
    forms = ", ".join(f"{number:,} {form}" for form, number in sorted(tally.queries.items()))
    mechanisms = ", ".join(f"{number:,} {name}" for name, number in sorted(tally.mechanisms.items()))
    return (
        f"queries answered on {tally.worlds:,} pairs of made worlds ({forms}), and {tally.refused.total():,} refused "
        f"on both; mechanisms compared: {mechanisms}; {tally.unsettled:,} asked again with other bits"
    )


def _power(tally: TriedQueries) -> str:
    return (
        "a price below the loss of a movement by any amount, and control flow that depends on a unit, for these "
        f"queries and rows. Of {tally.declared:,} numbers {tally.attained:,} moved by all of their declared "
        "sensitivity, so that one step less would have been found"
    )


def _stopped(error: LapwingError) -> AuditFinding:
    return AuditFinding(
        code="path_not_tried",
        severity=Severity.warning,
        about="made data",
        what=f"The made data do not open, so that this check ended early: {error}",
        remedy="Repair this, and audit again.",
    )


def _unanswered(tally: TriedQueries) -> Iterator[AuditFinding]:
    """Yield that no query was answered, so that nothing was tested."""
    if not tally.queries and tally.refused:
        reason, times = tally.reasons.most_common(1)[0]
        yield AuditFinding(
            code="path_unanswered",
            severity=Severity.violated,
            about="made queries",
            what=f"On made rows, no query was answered; {times:,} ended with {reason}.",
            remedy=_REMEDY,
        )


def _distinct(found: Sequence[Violation]) -> list[Violation]:
    return list({(one.code, one.query): one for one in found}.values())[:MOST_FINDINGS]


def _finding(violation: Violation) -> AuditFinding:
    return AuditFinding(
        code=violation.code,
        severity=Severity.violated,
        about=f"query {violation.query}",
        what=f"On made rows, with {violation.difference}, the query {violation.what}."
        if violation.code == "path_control_flow"
        else f"On made rows, with {violation.difference}: {violation.what}.",
        remedy=_REMEDY,
    )
