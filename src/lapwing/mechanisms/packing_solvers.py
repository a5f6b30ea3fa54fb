"""Solve packing programs, and prove the values in integers, whatever a solver in floating point or 32 bits did.

Two units a row. The program over a graph, max Σ w_e with Σ_{e ∋ u} w_e ≤ b_u and 0 ≤ w_e ≤ ψ_e, has twice its value in
its double cover: two copies u⁺ and u⁻ of every unit, b_u from the source to u⁺ and from u⁻ to the sink, and for every
row {u, v} two arcs, u⁺ → v⁻ and v⁺ → u⁻, of capacity ψ. Proof. Weights w give a flow with w on both arcs of a row, of
the value 2·Σ w. A flow f gives w = (f(u⁺v⁻) + f(v⁺u⁻))/2 ≤ ψ, and what a unit bears is half of what goes out of u⁺ and
half of what comes into u⁻, which is at most b_u; their sum is half the flow's value. ∎ Where the units fall into two
sides, and every row has one of either, one half of the cover is the program itself, and its flow has the value once.

That a flow is a greatest one is checked, and not believed: it keeps within the capacities, nothing is lost or made
between source and sink, and no path is left on which more could go. By the theorem of Ford and Fulkerson it is then
greatest, and its value is an integer that is summed up in 64 bits. A flow that is none is thrown away, and as long as
there is a path, more is sent along it: each time by a whole number, so that it ends.

Three units a row or more. A solver returns weights w and prices y ≥ 0 of the units. Rounded to a grid they prove:
  from below  weights that keep all limits: they are rounded down, and where a unit bears too much, its rows are lowered
              by what is too much, one after the other; lowering one row makes no other unit bear more.
  from above  Σ b_u y_u + Σ ψ_k max(0, 1 − Σ_{u ∈ k} y_u), for any prices y ≥ 0: weak duality, as for allowed weights
              Σ w_k ≤ Σ_k w_k (Σ_{u ∈ k} y_u + max(0, 1 − Σ_{u ∈ k} y_u)) ≤ Σ_u b_u y_u + Σ_k ψ_k max(0, …).
Both are computed in integers. What is returned is `exact_programs.rounded` of the value: two ends that agree on it are
enough. As long as they do not, the solver is asked for a correction, in a scale in which what it overlooked is large
(iterative refinement: Gleixner, Steffy and Wolter 2016); and if that brings the ends no nearer, the simplex method in
fractions computes the value. So whatever a solver in floating point does costs time at most, and changes no value.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from lapwing.mechanisms.exact_programs import ExactProgram, rounded

Integers = NDArray[np.int64]
Parts = NDArray[np.object_]
"""Integers of any size: parts of one."""

_FRACTION: Final = 720_720 << 10
"""The parts of one into which weights and prices are rounded first: the best ones are often simple fractions."""
_FINER: Final = 1 << 20
"""By how much finer the parts of each correction are."""
_SCALE: Final = 1 << 16
"""To what a solver in floating point gets limits scaled down, so that its tolerances mean the same everywhere."""
_TOLERANCE: Final = 1e-9
_FARTHEST: Final = 2.0**30
SECONDS: Final = 600.0
"""The longest that a solver in floating point may take; without a proposal the value is computed in fractions."""


def paired_value(units: Integers, weights: Integers, room: Integers) -> int:
    """Return twice the value of a program in which every row has two different units.

    Args:
        units: Two columns, each pair once.
        weights: At most 2³⁰.
        room: At most 2³⁰.
    """
    count = len(room)
    first, second = units.T
    aside = np.zeros(count, dtype=bool)
    aside[second] = True
    nodes = np.arange(count)
    if not aside[first].any():
        left, right = nodes[~aside], nodes[aside]
        tails = np.concatenate([np.full(len(left), count), first, right])
        heads = np.concatenate([left, second, np.full(len(right), count + 1)])
        return 2 * greatest_flow(tails, heads, np.concatenate([room[left], weights, room[right]]), count)[0]
    tails = np.concatenate([np.full(count, 2 * count), first, second, nodes + count])
    heads = np.concatenate([nodes, second + count, first + count, np.full(count, 2 * count + 1)])
    return greatest_flow(tails, heads, np.concatenate([room, weights, weights, room]), 2 * count)[0]


def greatest_flow(tails: Integers, heads: Integers, capacities: Integers, source: int) -> tuple[int, Integers]:
    """Return the value of a greatest flow from `source` to the node after it, and on which nodes more would come.

    Args:
        capacities: At most 2³⁰, each pair of nodes once.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    sink, shape = source + 1, (source + 2, source + 2)
    graph = csr_array((capacities.astype(np.int32), (tails, heads)), shape=shape)
    flow = maximum_flow(graph, source, sink).flow.astype(np.int64)
    whole = graph.astype(np.int64)
    sums = flow.sum(axis=1)
    sums[[source, sink]] = 0
    opposed = not (flow + flow.T).count_nonzero()  # one way is the opposite of the other way
    if sums.any() or not opposed or ((whole - flow).data < 0).any():
        flow = 0 * flow
    while True:
        spare = whole - flow
        spare.eliminate_zeros()
        reached, before = breadth_first_order(spare, source)
        if sink not in reached:
            return int(flow.sum(axis=1)[source]), reached
        path = [sink]
        while path[-1] != source:
            path.append(int(before[path[-1]]))
        ends, starts = path[:-1], path[1:]
        more = min(int(spare[start, end]) for start, end in zip(starts, ends, strict=True))
        sent = csr_array((np.full(len(ends), more), (starts, ends)), shape=shape)
        flow = flow + sent - sent.T


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class _Program:
    """A program of rows that units share, as `shared_value` takes it. Private data."""

    units: Integers
    weights: Integers
    room: Integers


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class _Proof:
    """Allowed weights and prices of a program, in so many parts of one: they say between what its value lies."""

    weights: Parts
    prices: Parts
    parts: int
    low: Fraction
    high: Fraction


def shared_value(units: Integers, weights: Integers, room: Integers, settled: int, step: int) -> int:
    """Return the best value of a program and an integer, `settled`, rounded to a step as `rounded` does.

    Args:
        units: A row a set, -1 where it has fewer.
        weights: At most 2³⁰.
        room: At most 2³⁰.
    """
    program = _Program(units=units, weights=weights, room=room)
    for proof in _proofs(program):
        low, high = rounded(settled + proof.low, step), rounded(settled + proof.high, step)
        if low == high:
            return low
    return rounded(settled + _exact(program), step)


def _proofs(program: _Program) -> Iterator[_Proof]:
    """Yield proofs as long as each halves what the one before left open."""
    nothing = np.zeros(len(program.weights), dtype=object)
    proof = _proof(program, nothing, np.zeros(len(program.room), dtype=object), 1)
    before = 2 * (proof.high + 1)
    while 0 < 2 * (proof.high - proof.low) <= before:
        before = proof.high - proof.low
        found = _corrected(program, proof)
        if found is None:
            return
        proof = found
        yield proof


def _corrected(program: _Program, proof: _Proof) -> _Proof | None:
    """Return a finer proof, None if a solver in floating point has none.

    With weights w and prices y, it is asked for δ and η with w + δ/K and y + η/K in mind, K as large as the ends are
    near. What is left of limits and bounds is multiplied by K, and so is what each row is worth at the prices y; slacks
    are written out, as they are worth −y. At first w = y = 0 and K = 1: the program itself.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack

    units, weights, room, first = program.units, program.weights, program.room, proof.parts == 1
    parts = _FRACTION if first else proof.parts * _FINER
    zoom = 1.0 if first else min(_FARTHEST, float(proof.high / (proof.high - proof.low)))
    rows, places = np.nonzero(units >= 0)
    limits = csr_array((np.ones(len(rows)), (units[rows, places], rows)), shape=(len(room), len(weights)))
    scale = max(1.0, float(room.max()) / _SCALE) if first else 1.0
    left = room * proof.parts - _borne(program, proof.weights)
    low = np.concatenate([-proof.weights, -left]).astype(np.float64) * (zoom / proof.parts) / scale
    high = (weights * proof.parts - proof.weights).astype(np.float64) * (zoom / proof.parts) / scale
    worth = np.concatenate([proof.parts - _paid(program, proof.prices), -proof.prices]).astype(np.float64)
    result = linprog(
        -worth * (zoom / proof.parts),
        A_eq=hstack([limits, eye_array(len(room))]),
        b_eq=room / scale if first else np.zeros(len(room)),
        bounds=np.stack(
            [np.where(first, 0.0, low), np.concatenate([high, np.full(len(room), np.inf)])],
            axis=1,
        ),
        method="highs-ipm",
        options={
            "primal_feasibility_tolerance": _TOLERANCE,
            "dual_feasibility_tolerance": _TOLERANCE,
            "time_limit": SECONDS,
        },
    )
    if result.status != 0 or not (np.isfinite(result.x).all() and np.isfinite(result.eqlin.marginals).all()):
        return None
    finer = parts // proof.parts
    return _proof(
        program,
        proof.weights * finer + _as_parts(result.x[: len(weights)] * scale * (parts / zoom)),
        proof.prices * finer + _as_parts(-result.eqlin.marginals * (parts / zoom)),
        parts,
    )


def _as_parts(values: NDArray[np.float64]) -> Parts:
    """Return the nearest integers."""
    return np.array([int(value) for value in np.rint(values).tolist()], dtype=object)


def _proof(program: _Program, weights: Parts, prices: Parts, parts: int) -> _Proof:
    """Make weights and prices allowed, and return what they prove."""
    allowed = _lowered(program, np.clip(weights, 0, program.weights.astype(object) * parts), parts)
    prices = np.clip(prices, 0, parts)
    unpaid = np.maximum(0, parts - _paid(program, prices))
    high = int((program.room.astype(object) * prices).sum()) + int((program.weights.astype(object) * unpaid).sum())
    return _Proof(
        weights=allowed, prices=prices, parts=parts, low=Fraction(int(allowed.sum()), parts), high=Fraction(high, parts)
    )


def _borne(program: _Program, weights: Parts) -> Parts:
    """Return what each unit bears."""
    borne: Parts = np.zeros(len(program.room), dtype=object)
    for column in program.units.T:
        there = column >= 0
        np.add.at(borne, column[there], weights[there])
    return borne


def _paid(program: _Program, prices: Parts) -> Parts:
    """Return the prices of each row's units together."""
    paid: Parts = np.where(program.units >= 0, prices[program.units], 0).sum(axis=1)
    return paid


def _lowered(program: _Program, weights: Parts, parts: int) -> Parts:
    """Return weights that keep all limits: those of a unit that bears too much are lowered, one after the other."""
    weights = weights.copy()
    over = _borne(program, weights) - program.room.astype(object) * parts
    for unit, rows in _rows_of(program.units, over > 0):
        for row in rows:
            if over[unit] <= 0:
                break
            lowered = min(weights[row], over[unit])
            weights[row] -= lowered
            for other in program.units[row][program.units[row] >= 0]:
                over[other] -= lowered
    return weights


def _rows_of(units: Integers, chosen: NDArray[np.bool_]) -> Iterator[tuple[int, Integers]]:
    """Yield each chosen unit and its rows, in one pass over all rows."""
    rows, places = np.nonzero((units >= 0) & chosen[units])
    members = units[rows, places]
    order = np.argsort(members, kind="stable")
    distinct, starts = np.unique(members[order], return_index=True)
    yield from zip(distinct.tolist(), np.split(rows[order], starts[1:]), strict=True) if len(distinct) else ()


def _exact(program: _Program) -> Fraction:
    """Return the value of a program by the simplex method in fractions, part by part."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    rows, places = np.nonzero(program.units >= 0)
    joined = csr_array(
        (np.ones(len(rows)), (program.units[rows, places], len(program.room) + rows)),
        shape=(len(program.room) + len(program.weights),) * 2,
    )
    _, labels = connected_components(joined, directed=False)
    owners, value = labels[: len(program.room)], Fraction(0)
    for _, own in _rows_of(labels[len(program.room) :, None], np.ones(len(labels), dtype=np.bool_)):
        number = {int(unit): place for place, unit in enumerate(np.flatnonzero(owners == labels[len(owners) + own[0]]))}
        part = ExactProgram(program.room[list(number)].tolist())
        for row in own:
            part.add({number[int(u)]: 1 for u in program.units[row] if u >= 0}, 1, int(program.weights[row]))
        part.solve()
        value += part.value
    return value
