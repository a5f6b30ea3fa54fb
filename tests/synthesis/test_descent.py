"""Distributions between the rounds: as near to the tables as mbi brings them, from wherever they begin."""

from collections.abc import Callable
from unittest.mock import Mock, patch

import numpy as np
import pytest

from lapwing.synthesis import descent
from lapwing.synthesis.descent import Potentials, Told, descend
from lapwing.synthesis.estimation import GraphicalModel, together, total_of
from lapwing.synthesis.marginal_tree import Floats, MarginalTree
from lapwing.synthesis.paid_marginals import NoisyTable
from lapwing.synthesis.reading import Clique

SIZES = (2, 3, 2, 4)
NODES = [(0, 1), (1, 2), (2, 3)]
EDGES = [((0, 1), (1, 2)), ((1, 2), (2, 3))]
ROWS = 5000


def model_of(logs: Potentials) -> MarginalTree:
    return MarginalTree.calibrated(SIZES, NODES, EDGES, logs, ROWS)


def margin(whole: Floats, clique: Clique) -> Floats:
    return np.asarray(whole.sum(axis=tuple(place for place in range(whole.ndim) if place not in clique)))


def people() -> Floats:
    """A table of everything, of which no column is independent of another."""
    rng = np.random.default_rng(7)
    logs = sum(
        rng.normal(0, 0.7, [SIZES[place] if place in pair else 1 for place in range(4)])
        for pair in [(0, 1), (1, 2), (2, 3), (0, 3)]
    )
    return np.asarray(ROWS * np.exp(logs) / np.exp(logs).sum())


def test_it_comes_to_what_tables_agree_about() -> None:
    """Tables along a chain determine the distribution of most entropy: their product over what they share."""
    whole = people()
    told: Told = {clique: (margin(whole, clique), 1.0) for clique in [(0,), *NODES]}
    model, logs = descend(told, {}, model_of)
    one, two, three = (margin(whole, node) for node in NODES)
    chain = np.einsum("ab,b,bc,c,cd->abcd", one, 1 / margin(whole, (1,)), two, 1 / margin(whole, (2,)), three)
    for clique in [*NODES, (0, 3), (0, 2)]:
        assert np.abs(model.marginal(clique) - margin(chain, clique)).sum() < 0.004 * ROWS
    again, _ = descend(told, logs, model_of)
    assert sum(np.abs(again.marginal(node) - model.marginal(node)).sum() for node in NODES) < 0.002 * ROWS


def test_a_table_weighs_by_the_inverse_of_its_variance() -> None:
    """Where two tables contradict each other, their mean by weight is nearest."""
    told: Told = {(0,): (np.array([1000.0, 4000.0]), 50.0), (0, 1): (np.full((2, 3), ROWS / 6), 100.0)}
    model, _ = descend(told, {}, model_of)
    # Of x rows with the first value: (x - 1000)²/50² from each cell of the one, and of the other a third of the square.
    weights = 1 / 50**2, 1 / 100**2 / 3
    best = (weights[0] * 1000 + weights[1] * ROWS / 2) / sum(weights)
    assert model.marginal((0,))[0] == pytest.approx(best, rel=0.02)


@pytest.mark.parametrize("worse", ["uphill", "too far"])
def test_it_never_ends_further_than_it_began(worse: str) -> None:
    """Nor where steps lead away (a planted gradient), or are a thousand times too long."""
    whole = people()
    told: Told = {node: (margin(whole, node), 1.0) for node in NODES}
    start, _ = descend(told, {}, model_of)
    began, _ = descent._apart(model_of({}), told)

    def wrong(model: MarginalTree, tables: Told) -> tuple[float, Potentials]:
        apart, slope = right(model, tables)
        return apart, {clique: table * (-1 if worse == "uphill" else 1000) for clique, table in slope.items()}

    right: Callable[..., tuple[float, Potentials]] = descent._apart
    with patch.object(descent, "_apart", wrong):
        model, _ = descend(told, {}, model_of)
    ended = descent._apart(model, told)[0]
    assert ended <= began
    if worse == "uphill":
        assert ended == pytest.approx(began)
        assert descent._apart(start, told)[0] < 0.01 * began
    else:
        assert ended < 0.2 * began


def test_the_number_of_rows_is_the_best_of_what_tables_say() -> None:
    told: Told = {(0,): (np.array([10.0, 20.0]), 1.0), (1,): (np.array([20.0, 10.0, 12.0]), 2.0)}
    # Variances 2 and 12 of the sums 30 and 42.
    assert total_of(told) == pytest.approx((30 / 2 + 42 / 12) / (1 / 2 + 1 / 12))
    assert total_of({(0,): (np.array([-5.0, 1.0]), 1.0)}) == 1.0


@pytest.mark.long
def test_it_comes_as_near_as_mbi() -> None:
    """With noise, and one table after another, as AIM does it; mbi then ends where it began, or nearer."""
    rng = np.random.default_rng(3)
    sizes, pairs = (5, 8, 3, 6, 2, 9), [(0, 1), (1, 2), (0, 2), (3, 4), (2, 3), (4, 5), (1, 3)]
    cells = np.stack([rng.integers(0, size, 20_000) for size in sizes], axis=1)
    for one, other in pairs:  # dependent, as copies with errors
        copied = rng.random(20_000) < 0.6
        cells[copied, other] = cells[copied, one] % sizes[other]
    tables, model = list[NoisyTable](), GraphicalModel(sizes)
    for clique in [*((place,) for place in range(6)), *pairs]:
        shape = [sizes[place] for place in clique]
        exact = np.bincount(np.ravel_multi_index(tuple(cells[:, place] for place in clique), shape), minlength=1)
        exact = np.resize(np.append(exact, np.zeros(int(np.prod(shape)) - exact.size, int)), shape)
        counts = exact + np.rint(rng.normal(0, 30, shape)).astype(int)
        tables.append(NoisyTable(clique=clique, counts=counts, noise=Mock(standard_deviation=30.0)))
        near = model.approach(tables)
    told = together(tables)
    alone = GraphicalModel(sizes).fit(tables)
    ours, theirs, both = (descent._apart(one, told)[0] for one in (near, alone, model.fit(tables)))
    model.close()
    assert ours < 1.02 * theirs + 1
    assert both < ours + 1
