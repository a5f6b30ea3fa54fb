"""*graph* finds a friendship in a graph without names, and no more than the price allows in Lapwing's counts."""

from fractions import Fraction

import numpy as np
import pytest

from lapwing import lab
from lapwing.catalog.graph import EDGE
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.lab import Settings, graph
from lapwing.mechanisms import DiscreteLaplace

SHORT = Settings(short=True)


@pytest.mark.long
def test_a_graph_without_names_gives_friends_away_and_counts_do_not() -> None:
    found = graph.run(SHORT)
    assert found.holds
    assert len(found.rows) == 5
    for row in found.rows:
        observed = row["right, observed"]
        assert isinstance(observed, float)
        assert observed < 0.76 if str(row["target"]).startswith("Lapwing") else observed >= 0.8


def test_the_attack_reads_what_is_there() -> None:
    """Without the one edge between the two, the same guess says no: it is no constant."""
    guesses = [(graph.guess(one), one.known) for one in map(graph.planted, map(np.random.default_rng, range(20)))]
    assert {guess for guess, _ in guesses} >= {True, False}
    assert all(guess == known for guess, known in guesses if guess is not None)


@pytest.mark.parametrize(("scale", "apart"), [(1.0, 1), (8.0, 8), (3.0, 7)])
def test_predictions_are_those_of_the_law(scale: float, apart: int) -> None:
    values = np.arange(-400, 401)
    law = np.exp(-np.abs(values) / scale)
    law /= law.sum()
    right = law[2 * values > -apart].sum() + law[2 * values == -apart].sum() / 2
    assert graph.predicted(scale, apart) == pytest.approx(float(right), abs=1e-12)


@pytest.mark.long
def test_another_price_and_one_target() -> None:
    assert graph.run(Settings(epsilon=Fraction(3), short=True, against="lapwing")).holds


@pytest.mark.parametrize("epsilon", [Fraction(1, 10_000), graph.LEAST_FOR_TRIANGLES - Fraction(1, 10_000)])
def test_prices_too_low_for_triangles(epsilon: Fraction) -> None:
    found = graph.run(Settings(epsilon=epsilon, short=True, against="lapwing"))
    assert found.holds
    assert len(found.rows) == 2
    assert "refuses" in found.conclusion
    assert graph.number(EDGE, "triangles", graph.LEAST_FOR_TRIANGLES)


@pytest.mark.long
def test_too_little_noise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    release = DiscreteLaplace.release

    def less(self: DiscreteLaplace, values: np.ndarray, entropy: Entropy = SYSTEM) -> object:
        return release(DiscreteLaplace(scale=self.scale * 8 / 10), values, entropy)

    monkeypatch.setattr(DiscreteLaplace, "release", less)
    assert not graph.run(Settings(short=True, against="lapwing")).holds


def test_it_is_on_the_shelf() -> None:
    assert lab.experiments()["graph"].attack
    assert graph.number(EDGE, "edge_count", Fraction(1)).sensitivity.l1 == 1
