from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from lapwing.exact import laplace
from lapwing.exact.entropy import SystemEntropy
from lapwing.exact.geometric import GeometricBlock
from lapwing.exact.laplace import discrete_laplace
from tests.support.effort import one_in
from tests.support.exact.fit import AT_SIZES, FEW, FRESH, LEAST_P_VALUE, binned, edges_of, laplace_cumulative, p_value
from tests.support.exact.independent import discrete_laplace_probability
from tests.support.fixed_entropy import RecordedEntropy, StreamEntropy

SCALES = [
    Fraction(3, 10),
    Fraction(1),
    Fraction(10),
    Fraction(40),  # the greatest with a single table
    Fraction(401, 10),  # the first with a block
    Fraction(1000, 3),
    Fraction(1 << 20),
    Fraction(10**12, 7),
    Fraction(1 << 40),
    Fraction(1 << 50),
]


def fit(scale: Fraction, claimed: Fraction, draws: int) -> float:
    drawn = discrete_laplace(scale, draws, StreamEntropy(f"laplace {scale}"))
    assert drawn.dtype == np.int64
    edges = edges_of(claimed, reach=10 if claimed > 1 else 4, draws=draws)
    return p_value(*binned(drawn.astype(np.int64), edges, laplace_cumulative(claimed)))


@AT_SIZES
@pytest.mark.parametrize("scale", one_in(8, SCALES), ids=str)
def test_draws_fit(scale: Fraction, draws: int) -> None:
    assert fit(scale, scale, draws) > LEAST_P_VALUE


@AT_SIZES
@pytest.mark.parametrize("scale", [Fraction(10), Fraction(1 << 20)], ids=str)
def test_twin_a_scale_one_percent_off_does_not_fit(scale: Fraction, draws: int) -> None:
    assert fit(scale * Fraction(99, 100), scale, draws) < LEAST_P_VALUE


def test_fresh_randomness_fits() -> None:
    scale = Fraction(333)
    draws = discrete_laplace(scale, FRESH, SystemEntropy()).astype(np.int64)
    assert p_value(*binned(draws, edges_of(scale, reach=7), laplace_cumulative(scale))) > LEAST_P_VALUE


@pytest.mark.parametrize(
    ("scale", "start"), one_in(3, [(1 << 20, 0), (1 << 40, 0), (1 << 40, 8), (1 << 40, 16), (1 << 40, 27)], many=True)
)
def test_the_bits_of_a_large_scale_are_even(scale: int, start: int) -> None:
    """Far below the scale, any 8 neighbouring bits are uniform to within 2^(start + 8) / scale."""
    draws = discrete_laplace(Fraction(scale), FEW // 4, StreamEntropy("bits")).astype(np.int64)
    assert p_value(np.bincount(draws >> start & 255), np.full(256, 1 / 256)) > LEAST_P_VALUE


@pytest.mark.parametrize("scale", [Fraction(41), Fraction(1000, 3), Fraction(2000), Fraction(50_000)], ids=str)
def test_the_blocks_multiply_to_the_law(scale: Fraction) -> None:
    """P(H) · Π P(C_j), from the very laws that the sampler's tables have, is P(X) at every place."""
    head, blocks = laplace._tables(scale)
    bits = 256

    def probability(table: object, outcome: int) -> Fraction:
        law = table.law  # type: ignore[attr-defined]
        upper, lower = law.cumulative(outcome, bits), law.cumulative(outcome - 1, bits)
        return Fraction(upper.lower - lower.upper, 1 << bits)

    for top, *low in product([-3, -1, 0, 1, 5], *[[0, 1, (1 << width) - 1] for _, width in blocks.blocks]):
        share, magnitude = probability(head, top), max(top, ~top)
        for (table, width), digit in zip(blocks.blocks, low, strict=True):
            share *= probability(table, digit)
            magnitude = magnitude << width | digit
        x = magnitude if top >= 0 else ~magnitude
        wanted = discrete_laplace_probability(scale, x)
        assert abs(share.numerator / share.denominator / float(wanted) - 1) < 1e-12
        assert abs(share.numerator * 2**200 // share.denominator - int(wanted * 2**200)) < 2**16


@pytest.mark.long
def test_every_block_is_there() -> None:
    """The widths add up to what brings the scale under the limit of a table, for scales of any size."""
    for scale in SCALES + [Fraction(1 << power) for power in (51, 63, 64, 80, 200)]:
        top, (bits, blocks) = laplace._tables.__wrapped__(scale)
        assert bits == sum(width for _, width in blocks)
        assert scale / (1 << bits) <= 40
        assert bits == 0 or scale / (1 << bits) > 20
        assert top.law == laplace.SignedGeometric(scale=scale, shift=bits)
        for table, width in blocks:
            bits -= width
            assert table.law == GeometricBlock(rate=Fraction(1 << bits) / scale, width=width)
        assert bits == 0


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        (Fraction(1), [0, 0, 1, -1, 1, 2]),
        (Fraction(5, 2), [0, -1, 2, -3, 2, 4]),
        (Fraction(1000), [-30, -594, 710, -1228, 962, 1734]),
        (Fraction(1 << 40), [-32110923717, -671221223106, 763214737073, -1352444195476, 1068000622253, 1897265151628]),
        (
            Fraction(1 << 80),
            [
                -35288221710326290501060,
                -738016455242348864789340,
                839171367334347878731707,
                -1486991620017207531746678,
                1174299411314628788685903,
                2086085267099559144453562,
            ],
        ),
    ],
    ids=str,
)
def test_known_answers(scale: Fraction, expected: list[int]) -> None:
    """Recorded from this code: a change of how bits become numbers must be meant.

    Recorded anew when small draws came to read 64 bits for each number at once.
    """
    assert discrete_laplace(scale, 6, StreamEntropy("known")).tolist() == expected


def test_almost_no_noise_at_a_tiny_scale() -> None:
    assert not discrete_laplace(Fraction(1, 1 << 30), 1_000_000, SystemEntropy()).any()


@pytest.mark.parametrize("power", one_in(4, [51, 60, 64, 80]))
def test_beyond_int64_results_are_python_integers(power: int) -> None:
    scale = Fraction(1 << power)
    draws = discrete_laplace(scale, 20_000, StreamEntropy("wide"))
    assert draws.dtype == object
    assert {type(x) for x in draws.tolist()} == {int}
    ratios = np.array([x / (1 << power) for x in draws.tolist()])
    assert abs(np.mean(np.abs(ratios)) - 1) < 6 / np.sqrt(20_000)
    cells = np.bincount([x & 15 for x in draws.tolist()])
    assert p_value(cells, np.full(16, 1 / 16)) > LEAST_P_VALUE
    assert p_value(*binned(np.floor(ratios * 16).astype(np.int64), [-32, -16, -8, -1, 7, 15, 31], sixteenths)) > 1e-8


def sixteenths(x: int) -> float:
    """P(⌊16 X / scale⌋ ≤ x) where the scale is huge: the continuous Laplace law at (x + 1)/16."""
    y = (x + 1) / 16
    return float(np.exp(y) / 2 if y < 0 else 1 - np.exp(-y) / 2)


def test_a_number_beyond_int64_is_not_wrapped() -> None:
    """A run of zeros of probability 2^-15000 lands below −2^63 at a scale that promises int64; it is kept whole."""
    draws = discrete_laplace(Fraction(1 << 50), 1, RecordedEntropy(bytes(2002), then=StreamEntropy("far")))
    assert draws.dtype == object
    # ln 2 · (8 · 2002 − 16) · 2^50, to within the last bits of U
    assert abs(draws[0] / 2**50 + 0.693147 * 16000) < 30


def test_twin_wrapping_would_show() -> None:
    draws = discrete_laplace(Fraction(1 << 50), 1, RecordedEntropy(bytes(2002), then=StreamEntropy("far")))
    wrapped = (int(draws[0]) + 2**63) % 2**64 - 2**63
    assert abs(wrapped / 2**50 + 0.693147 * 16000) > 30


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 200_000])
def test_sizes(size: int) -> None:
    draws = discrete_laplace(Fraction(100), size, SystemEntropy())
    assert draws.shape == (size,)
    assert draws.dtype == np.int64


@pytest.mark.parametrize(("scale", "size"), [(Fraction(0), 1), (Fraction(-1), 1), (Fraction(1), -1)])
def test_refuses_what_has_no_meaning(scale: Fraction, size: int) -> None:
    with pytest.raises(ValueError, match="above 0"):
        discrete_laplace(scale, size, RecordedEntropy(b""))


def test_a_large_draw_reads_the_same_amount_for_all_that_the_guide_decides() -> None:
    """Two bytes each, whether zero or far from it."""
    top, _ = laplace._tables(Fraction(10))
    farthest = int(np.flatnonzero(top.guide)[0])
    near, far = (RecordedEntropy(word.to_bytes(2, "little") * 5000) for word in (0x8000, farthest))
    assert set(discrete_laplace(Fraction(10), 5000, near).tolist()) == {0}
    (drawn,) = set(discrete_laplace(Fraction(10), 5000, far).tolist())
    assert drawn < -50
    assert near.unread == far.unread == 0


def test_a_small_draw_reads_the_same_amount_whatever_it_draws() -> None:
    for scale, tables in ((Fraction(10), 1), (Fraction(1 << 40), 5)):
        for size in (1, 7):
            source = RecordedEntropy(StreamEntropy("amount").read(8 * size * tables))
            discrete_laplace(scale, size, source)
            assert source.unread == 0
