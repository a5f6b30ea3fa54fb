"""The table of forged reports: nothing moves beyond its bound, and chosen draws are noticed where there are any."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "poisoning.py"
PEOPLE, FORGED = 4000, 200
TELLING = {"optimised unary", "symmetric unary", "hashing", "sketch", "hadamard", "rappor-once", "prefixes"}
"""Whose public draws show a careless forger among so few; two questions need more people."""
pytestmark = pytest.mark.long


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("poisoning", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wrong(poisoning: Any) -> set[str]:
    """The mechanisms that are moved beyond their bound, or whose check misses a careless forger."""
    found, generator = set(), np.random.default_rng(60)
    for case in (*poisoning.lists(), *poisoning.texts(), *poisoning.means()):
        pool = case.supporting(case.honest(np.zeros(4 * PEOPLE, dtype=np.int64)))
        careful, careless = poisoning.outcomes(case, PEOPLE, FORGED, pool, generator)
        beyond = max(careful.moved, careless.moved) > careless.bound + 1e-9
        if beyond or (case.name in TELLING and not careless.noticed):
            found.add(case.name)
    return found


def test_forgers_stay_within_the_bound_and_careless_ones_are_noticed() -> None:
    assert wrong(loaded()) == set()


def test_a_check_that_always_passes_is_noticed() -> None:
    """The planted bug: draws that are even whatever they are."""
    poisoning = loaded()
    vars(poisoning)["check_draws"] = lambda draws: []
    assert wrong(poisoning) == TELLING


def test_liars_of_secure_sums_are_dropped_or_move_by_one() -> None:
    poisoning = loaded()
    careful, careless = poisoning.secure(1000, 10, np.random.default_rng(1))
    assert (careful.moved, careful.noticed) == (0.01, False)
    assert (careless.moved, careless.noticed) == (0, True)
