from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from lapwing.exact import geometric as module
from lapwing.exact.entropy import SystemEntropy
from lapwing.exact.geometric import Geometric, geometric
from tests.support.effort import one_in
from tests.support.exact.fit import AT_SIZES, LEAST_P_VALUE, binned, edges_of, geometric_cumulative, p_value
from tests.support.exact.independent import exact, number
from tests.support.fixed_entropy import RecordedEntropy, StreamEntropy

SCALES = [
    Fraction(3, 10),
    Fraction(1),
    Fraction(40),  # the greatest with a single table
    Fraction(401, 10),  # the first with a block
    Fraction(1000, 3),
    Fraction(10**12, 7),
    Fraction(1 << 50),
]


def fit(scale: Fraction, claimed: Fraction, draws: int) -> float:
    drawn = geometric(scale, draws, StreamEntropy(f"geometric {scale}"))
    assert drawn.dtype == np.int64
    assert drawn.min() == 0 or scale > 1 << 20
    edges = [
        edge for edge in edges_of(claimed, reach=10 if claimed > 1 else 4, draws=draws) if edge >= int(claimed) // 100
    ]
    return p_value(*binned(drawn.astype(np.int64), edges, geometric_cumulative(claimed)))


@AT_SIZES
@pytest.mark.parametrize("scale", one_in(4, SCALES), ids=str)
def test_draws_fit(scale: Fraction, draws: int) -> None:
    assert fit(scale, scale, draws) > LEAST_P_VALUE


@AT_SIZES
@pytest.mark.parametrize("scale", one_in(6, SCALES), ids=str)
def test_twin_nine_tenths_of_the_scale_do_not_fit(scale: Fraction, draws: int) -> None:
    assert fit(scale * Fraction(9, 10), scale, draws) < LEAST_P_VALUE


@pytest.mark.parametrize("scale", [Fraction(41), Fraction(1000, 3), Fraction(50_000)], ids=str)
def test_the_blocks_multiply_to_the_law(scale: Fraction) -> None:
    """P(H) · Π P(C_j), from the very laws that the sampler's tables have, is P(m) at every place."""
    head, (_, blocks) = module._tables(scale)
    rate = 1 / number(scale)
    for top, *low in product([0, 1, 5], *[[0, 1, (1 << width) - 1] for _, width in blocks]):
        share, m = exact.mpf(1), 0
        for (table, width), digit in zip([(head, 0), *blocks], [top, *low], strict=True):
            upper, lower = table.law.cumulative(digit, 256), table.law.cumulative(digit - 1, 256)
            share *= exact.mpf(upper.lower - lower.upper) / 2**256
            m = m << width | digit
        assert abs(share / (-exact.expm1(-rate) * exact.exp(-m * rate)) - 1) < 1e-60


@pytest.mark.long
def test_every_block_is_there() -> None:
    for scale in SCALES + [Fraction(1 << power) for power in (51, 63, 64, 80, 200)]:
        top, (bits, blocks) = module._tables.__wrapped__(scale)
        assert bits == sum(width for _, width in blocks)
        assert top.law == Geometric(rate=(1 << bits) / scale)
        assert Fraction(bits > 0, 40) <= top.law.rate < Fraction(1, 20) or bits == 0


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        (Fraction(1), [0, 0, 1, 0, 1, 2]),
        (Fraction(5, 2), [1, 0, 3, 0, 4, 6]),
        (Fraction(1000), [701, 305, 1382, 139, 1666, 2438]),
        (Fraction(1 << 40), [753665429444, 361983577793, 1519128981169, 184213090963, 1823914866349, 2687539134092]),
        (
            Fraction(1 << 80),
            [
                828645790832426686401987,
                398006068475734409403227,
                1670307868319405436342203,
                202507936676664033621365,
                2005435912299686346296399,
                2955000699947573863773626,
            ],
        ),
    ],
    ids=str,
)
def test_known_answers(scale: Fraction, expected: list[int]) -> None:
    """Recorded from this code: a change of how bits become numbers must be meant."""
    assert geometric(scale, 6, StreamEntropy("known")).tolist() == expected


def test_almost_nothing_at_a_tiny_scale() -> None:
    assert not geometric(Fraction(1, 1 << 30), 1_000_000, SystemEntropy()).any()


@pytest.mark.parametrize("power", [51, 64, 80])
def test_beyond_int64_results_are_python_integers(power: int) -> None:
    draws = geometric(Fraction(1 << power), 20_000, StreamEntropy("wide"))
    assert draws.dtype == object
    assert {type(x) for x in draws.tolist()} == {int}
    sixteenths = np.array([(16 * x) >> power for x in draws.tolist()])
    assert p_value(*binned(sixteenths, [3, 7, 15, 31, 63], geometric_cumulative(Fraction(16)))) > LEAST_P_VALUE
    assert p_value(np.bincount([x & 15 for x in draws.tolist()]), np.full(16, 1 / 16)) > LEAST_P_VALUE


@pytest.mark.parametrize("scale", [Fraction(10), Fraction(1 << 40), Fraction(1 << 70)], ids=str)
def test_one_number_is_what_an_array_of_one_would_be(scale: Fraction) -> None:
    for label in ("a", "b", "c"):
        one = geometric(scale, 1, StreamEntropy(label))
        top, low = module._tables(scale)
        stream = StreamEntropy(label)
        many = module.extend(top.draw(1, stream), low, stream, wide=scale > 1 << 50)
        assert (one.tolist(), one.dtype) == (many.tolist(), many.dtype)


def test_a_number_beyond_int64_is_not_wrapped() -> None:
    far = RecordedEntropy(b"\xff" * 2000, then=StreamEntropy("far"))
    draws = geometric(Fraction(1 << 50), 1, far)
    assert draws.dtype == object
    assert abs(draws[0] / 2**50 - 0.693147 * 16000) < 30


@pytest.mark.parametrize("size", [0, 1, 2048, 2049, 65_537])
def test_sizes(size: int) -> None:
    draws = geometric(Fraction(100), size, SystemEntropy())
    assert draws.shape == (size,)
    assert draws.dtype == np.int64


@pytest.mark.parametrize(("scale", "size"), [(Fraction(0), 1), (Fraction(-1), 1), (Fraction(1), -1)])
def test_refuses_what_has_no_meaning(scale: Fraction, size: int) -> None:
    with pytest.raises(ValueError, match="above 0"):
        geometric(scale, size, RecordedEntropy(b""))
