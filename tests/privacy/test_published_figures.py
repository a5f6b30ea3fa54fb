"""The figures that others state of training: 1,344 divergences, and 168 ε, of TensorFlow Privacy and autodp.

Provenance: `tests/fixtures/privacy/make_renyi_figures.py`, which names the versions.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.privacy import sampled_divergence
from lapwing.privacy.renyi import DEFAULT_ORDERS, RenyiDP
from tests.support.effort import some

FOLDER = Path(__file__).parents[1] / "fixtures" / "privacy"
USUAL = [Fraction(part, 4) for part in (5, 6, 7, 8, 9, 10, 12, 14, 16, 18)] + [
    Fraction(order) for order in (*range(5, 64), 128, 256, 512)
]

Row = dict[str, str]
ROUNDING = 1e-6
CANCELLED, BETWEEN = 3e-15, 3e-13
"""What they lose by subtracting 1 from a moment near 1 in floats, at whole orders and at orders between. At σ = 0.6,
the rate 10⁻⁴ and the order 1.25 quadrature to 40 digits gives 9.36898299e-8, as here; TensorFlow Privacy has
9.36896428e-8."""


def rows_of(name: str) -> dict[tuple[str, str], list[Row]]:
    """The rows of a file, by rate and σ."""
    grouped: dict[tuple[str, str], list[Row]] = defaultdict(list)
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            grouped[row["rate"], row["sigma"]].append(row)
    return grouped


def near(own: float, figure: str, order: str) -> bool:
    return abs(own - float(figure)) <= ROUNDING * own + (BETWEEN if "." in order else CANCELLED)


def check_divergences(rates: Iterable[str]) -> int:
    """Return how many figures there are."""
    count = 0
    for (rate, sigma), rows in rows_of("renyi_figures.csv").items():
        if rate not in rates:
            continue
        curve = RenyiDP.gaussian(
            sigma=Fraction(sigma), rate=Fraction(rate), orders=[Fraction(row["order"]) for row in rows]
        )
        for row in rows:
            own = float(curve.at(Fraction(row["order"])))
            assert near(own, row["tensorflow_privacy"], row["order"]), row
            assert not row["autodp"] or near(own, row["autodp"], row["order"]), row
            count += 1
    return count


@pytest.mark.long
def test_divergences() -> None:
    rates = some(2, ["0.0001", "0.001", "256/60000", "0.01", "0.05", "0.1", "1"])
    assert check_divergences(rates) == 192 * len(rates)


@pytest.mark.parametrize("change", [lambda rate: rate * Fraction(999, 1000), lambda rate: 1 - rate])
def test_twin_another_rate(monkeypatch: pytest.MonkeyPatch, change: "object") -> None:
    honest = sampled_divergence._gaussian
    monkeypatch.setattr(sampled_divergence, "_gaussian", lambda m, rate, *of: honest(m, change(rate), *of))  # type: ignore[operator]
    with pytest.raises(AssertionError):
        check_divergences(["0.01"])


@pytest.mark.long
@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.long)])
def test_epsilons_of_training(every: int) -> None:
    """Over the same orders the same ε; over the usual ones here, which are more, at most a little above it."""
    count = 0
    for (rate, sigma), rows in [*rows_of("epsilon_figures.csv").items()][::every]:
        step = RenyiDP.gaussian(sigma=Fraction(sigma), rate=Fraction(rate), orders=USUAL)
        for row in rows:
            own = (int(row["steps"]) * step).to_epsilon(delta=Fraction(row["delta"]))
            assert own == pytest.approx(float(row["tensorflow_privacy"]), rel=1e-6, abs=1e-8)
            count += 1
    assert count == 168 // every
    assert set(USUAL) <= set(DEFAULT_ORDERS)
