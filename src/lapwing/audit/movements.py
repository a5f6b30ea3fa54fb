"""Exact movements: what enters the mechanisms on two neighbouring made worlds, beside what was declared and charged.

A query may differ on neighbours only in what enters its mechanisms, and that by no more than was paid for.

Claim. For the queries and worlds that were tried, if no violation is reported, four things hold.

*Control flow.* Both worlds refuse alike, are charged alike, and say the same notes. They use the same mechanisms with
the same parameters on vectors of the same length, in the same order. The number of private keys may differ.

*Movement.* The values that enter a mechanism moved by no more than its declared sensitivity, in both norms.

*Loss.* At the noise that was drawn, the movements lose in all no more than the ledger was charged.

*Release.* Every stored number is what its mechanism makes of the value that entered and of the bits that it read. Asked
again, the answer is made of what the ledger stored, draws nothing and costs nothing.

So the answer is post-processing of mechanisms whose inputs move within their bounds. That the mechanisms draw what they
declare is the other half, which `sampler_laws` and `betting` look at.

A choice may come out differently on the neighbour by chance, and what follows from it too (`watching`). So what differs
in control flow is asked again in fresh worlds with other bits, and counts if it differs every time. At ε = 0.01 noise
moves a decision of a correct mechanism with a probability of about 0.01; four times in a row, 1e-8.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, final

import numpy as np

from lapwing.audit.asking import MadeQuery, Seen, World, worlds
from lapwing.audit.movement_losses import ADDITIVE, SELECTIONS, Movement, is_too_far, loss_of, moved, numbers_of
from lapwing.audit.watching import Call
from lapwing.catalog.model import Catalog
from lapwing.mechanisms.first_of_thresholds import FirstOfThresholds
from lapwing.mechanisms.residual_marginals import ResidualMarginals

CONTROL: Final = "path_control_flow"
MOVEMENT: Final = "path_movement"
LOSS: Final = "path_loss"
RELEASE: Final = "path_release"
NO_NOISE: Final = "path_no_noise"
AGAIN: Final = "path_repeated"
TRIES: Final = 4
"""So often must control flow differ, with other bits each time."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A difference between neighbours that must not be."""

    code: str
    query: str
    difference: str
    what: str


@final
@dataclass(slots=True)
class TriedQueries:
    """The numbers of things that were tried, for the report.

    Args:
        queries: How many were answered on both worlds, by form.
        refused: How many were refused on both, by form.
        mechanisms: How often each mechanism was compared.
        declared: How many numbers were compared with their declared sensitivity.
        attained: How many of these moved by all of it.
        unsettled: How many were asked again with other bits.
        noises: The mechanisms that added noise.
        reasons: Why queries were refused.
        worlds: How many pairs of worlds were compared.
    """

    queries: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    mechanisms: Counter[str] = field(default_factory=Counter)
    declared: int = 0
    attained: int = 0
    unsettled: int = 0
    noises: set[Any] = field(default_factory=set)
    worlds: int = 0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPair:
    """The answers of two neighbours to a query."""

    query: MadeQuery
    one: Seen
    other: Seen


def compare_worlds(
    catalog: Catalog, number: int, queries: Iterable[MadeQuery], goes_on: Callable[[], bool], tally: TriedQueries
) -> list[Violation]:
    """Ask queries of two neighbouring worlds while there is time, and return the violations."""
    found, apart = _asked(catalog, number, queries, goes_on, tally)
    tally.worlds += 1
    tally.unsettled += len(apart)
    for _ in range(TRIES - 1):
        if not apart:
            break
        more, apart = _asked(catalog, number, apart, lambda: True, TriedQueries())
        found += more
    return found + _still_apart(apart, catalog, number)


def _still_apart(apart: Sequence[MadeQuery], catalog: Catalog, number: int) -> list[Violation]:
    if not apart:
        return []
    with worlds(catalog, number) as (one, other, difference):
        pairs = _pairs(apart, one, other, lambda: True)
        differences = [(pair, flow_differs(pair) or keys_differ(pair, one, other)) for pair in pairs]
    return [
        Violation(code=CONTROL, query=pair.query.shown, difference=difference, what=what)
        for pair, what in differences
        if what is not None
    ]


def _pairs(queries: Iterable[MadeQuery], one: World, other: World, goes_on: Callable[[], bool]) -> list[SeenPair]:
    """Ask queries of both worlds while there is time, and read what the ledgers stored."""
    pairs: list[SeenPair] = []
    for query in queries:
        if not goes_on():
            break
        pairs.append(SeenPair(query=query, one=one.ask(query), other=other.ask(query)))
    for world in (one, other):
        world.read_payloads()
    return pairs


def _asked(
    catalog: Catalog, number: int, queries: Iterable[MadeQuery], goes_on: Callable[[], bool], tally: TriedQueries
) -> tuple[list[Violation], list[MadeQuery]]:
    """Return the violations, and the queries whose control flow differed."""
    found, apart = list[Violation](), list[MadeQuery]()
    with worlds(catalog, number) as (one, other, difference):
        for pair in _pairs(queries, one, other, goes_on):
            if flow_differs(pair) or keys_differ(pair, one, other):
                apart.append(pair.query)
                continue
            found += [
                Violation(code=code, query=pair.query.shown, difference=difference, what=what)
                for code, what in faults(pair, one, other, catalog.budget.measure, tally)
            ]
    return found, apart


def keys_differ(pair: SeenPair, one: World, other: World) -> str | None:
    """Say that other private keys were released; None if they are the same.

    Noise lets through a key that one unit holds with a probability of about δ, and moves other keys with one of about
    ε. So keys differ now and then, and not every time.
    """
    for mine, theirs in zip(pair.one.entries, pair.other.entries, strict=False):
        if one.released(mine)[1] != other.released(theirs)[1]:
            return "released other private keys"
    return None


def flow_differs(pair: SeenPair) -> str | None:
    """Say what tells two worlds apart beside the values that mechanisms were given; None if nothing does."""
    one, other = pair.one, pair.other
    if one.refusal != other.refusal:
        return f"ended with {one.refusal or 'an answer'} here and {other.refusal or 'an answer'} there"
    if one.charges != other.charges:
        return "was charged differently"
    if one.public_facts != other.public_facts:
        return "says different notes"
    if [_shape(call) for call, _ in aligned(pair)] != [_shape(call) for _, call in aligned(pair)] or _lengths(pair):
        names = [", ".join(call.name for call in seen.calls) or "none" for seen in (one, other)]
        return f"used other mechanisms, or with other parameters or lengths: {names[0]} here, {names[1]} there"
    return None


def aligned(pair: SeenPair) -> list[tuple[Call, Call]]:
    """Return the calls of both worlds in pairs.

    A selection of private keys draws nothing where nobody holds a key, and shows nothing then: it is left out of both.
    """
    mine, theirs = (list(seen.calls) for seen in (pair.one, pair.other))
    if sum(map(_selects, mine)) != sum(map(_selects, theirs)):
        mine, theirs = ([call for call in calls if not _selects(call)] for calls in (mine, theirs))
    return list(zip(mine, theirs, strict=False))


def _selects(call: Call) -> bool:
    return isinstance(call.mechanism, SELECTIONS)


def _lengths(pair: SeenPair) -> bool:
    """Tell whether the worlds used different numbers of mechanisms beside selections of private keys."""
    mine, theirs = (sum(not _selects(call) for call in seen.calls) for seen in (pair.one, pair.other))
    return mine != theirs


def _shape(call: Call) -> tuple[str, str, int]:
    private = _selects(call)
    return call.method, repr(call.mechanism), -1 if private or call.mechanism is None else len(numbers_of(call))


def faults(pair: SeenPair, one: World, other: World, kind: str, tally: TriedQueries) -> list[tuple[str, str]]:
    """Return what is wrong with a query whose control flow is the same on both worlds."""
    form = pair.query.form
    if pair.one.refusal is not None:
        tally.refused[form] += 1
        tally.reasons[pair.one.refusal] += 1
        return [(CONTROL, f"ended with a {pair.one.refusal}, which no query may")] if pair.one.crashed else []
    tally.queries[form] += 1
    tally.mechanisms.update(type(call.mechanism).__name__ for call in pair.one.calls)
    tally.noises.update(call.mechanism for call in pair.one.calls if isinstance(call.mechanism, ADDITIVE))
    found = [(AGAIN, seen.again) for seen in (pair.one, pair.other) if seen.again is not None]
    found += _movements(pair, tally)
    found += _losses(pair, kind)
    return found + _released(pair, one, other)


def _movements(pair: SeenPair, tally: TriedQueries) -> list[tuple[str, str]]:
    """Compare movements with the declared sensitivities, number by number."""
    found: list[tuple[str, str]] = []
    calls = aligned(pair)
    found += [(MOVEMENT, f"{mine.name}: {far}") for mine, theirs in calls if (far := is_too_far(mine, theirs))]
    found += [(NO_NOISE, f"{mine.name} drew noise outside of any mechanism") for mine, _ in calls if not mine.mechanism]
    for quote in pair.one.quotes:
        for term in quote.terms:
            if isinstance(term.mechanism, FirstOfThresholds):  # all of them are released together, and were looked at
                continue
            place = next((at for at, (call, _) in enumerate(calls) if call.mechanism == term.mechanism), None)
            if place is None:
                if _must_draw(pair) and isinstance(term.mechanism, ADDITIVE) and term.mechanism.standard_deviation:
                    found.append((NO_NOISE, f"{term.measure}: {term.mechanism} drew nothing"))
                continue
            mine, theirs = calls.pop(place)
            movement, declared = Movement.of(moved(mine, theirs)), term.candidate.sensitivity
            if not isinstance(term.mechanism, ADDITIVE):
                continue
            tally.declared += 1
            tally.attained += movement.l1 == declared.l1 or movement.l2_squared == declared.l2_squared
            if not movement.within(declared):
                found.append(
                    (MOVEMENT, f"{term.measure} moved by {movement.l1} in L1 and {movement.l2_squared} in squared L2; "
                     f"declared are {declared.l1} and {declared.l2_squared}")
                )  # fmt: skip
    return found


def _must_draw(pair: SeenPair) -> bool:
    """Tell whether every number is bought now with noise of its own, whatever the data are."""
    one = pair.one
    plain = all(quote.key_selection is None and quote.choosing is None for quote in one.quotes)
    in_tables = any(isinstance(call.mechanism, ResidualMarginals) for call in one.calls)
    return (
        plain
        and not in_tables
        and len(one.charges) == 1 + len(pair.query.more)
        and (bool(pair.query.more) or len(one.quotes) == 1)
    )


def _losses(pair: SeenPair, kind: str) -> list[tuple[str, str]]:
    """Compare what the movements lose together with what was charged."""
    lost = sum(
        (loss_of(mine, theirs, kind) for mine, theirs in aligned(pair)),
        Fraction(0),
    )
    charged = pair.one.charged
    if lost <= charged:
        return []
    return [(LOSS, f"the movement loses {float(lost):.6g} in {kind}, and {float(charged):.6g} was charged")]


def _released(pair: SeenPair, one: World, other: World) -> list[tuple[str, str]]:
    """Compare released numbers with what their mechanisms make of the same values and bits."""
    calls = [(mine, theirs) for mine, theirs in aligned(pair) if not _selects(mine)]
    if len(pair.one.entries) != 1 or len(pair.one.charges) != 1 or pair.one.entries != pair.other.entries:
        return []
    mine, my_keys = one.released(pair.one.entries[0])
    theirs, their_keys = other.released(pair.other.entries[0])
    if my_keys != their_keys or len(mine) != len(calls):
        return []
    found = []
    for both, *released in zip(calls, mine, theirs, strict=True):
        for call, numbers in zip(both, released, strict=True):
            if isinstance(call.mechanism, ADDITIVE) and numbers != (made := _flat(call.drawn_again())):
                found.append((RELEASE, f"{call.name} made {made} of its values, and {numbers} was released"))
    return found


def _flat(numbers: Any) -> list[int]:
    return [int(number) for number in np.asarray(numbers, dtype=object).reshape(-1)]
