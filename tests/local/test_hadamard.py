"""The Walsh-Hadamard transform, and signs that agree in half of the rows."""

import numpy as np
import pytest
from scipy.linalg import hadamard

from lapwing.local import HadamardSketch
from lapwing.local.heavy_hitters.hash_functions import meeting
from lapwing.local.heavy_hitters.sketches import walsh_hadamard


@pytest.mark.parametrize("order", [1, 2, 3, 7])
def test_the_transform_is_that_of_the_matrix(order: int) -> None:
    numbers = np.random.default_rng(order).integers(-1000, 1000, (5, 1 << order)).astype(np.int32)
    true = numbers @ hadamard(1 << order)
    assert (walsh_hadamard(numbers) == true).all()
    assert (walsh_hadamard(numbers[:, ::-1]) != true).any()


@pytest.mark.parametrize("order", [1, 3, 5])
def test_signs_of_different_buckets_agree_in_half_of_the_rows(order: int) -> None:
    signs = [[(row & bucket).bit_count() % 2 for row in range(1 << order)] for bucket in range(1 << order)]
    assert (1 - 2 * np.array(signs) == hadamard(1 << order)).all()
    for one in range(1 << order):
        for other in range(one):
            assert 2 * sum(a == b for a, b in zip(signs[one], signs[other], strict=True)) == 1 << order


def test_rates_count_both_ways_to_support() -> None:
    mechanism = HadamardSketch.for_epsilon(1)
    p, q = mechanism.rates(0)
    c = meeting(mechanism.buckets)
    assert q == c * p + (1 - c) / 2
    assert p > q > (1 - c) / 2 + c / 2
