"""Every local mechanism, with few values: law tests run over all rows."""

from fractions import Fraction
from typing import Any

from lapwing.local import BinaryResponse, KaryResponse, LocalHashing, SubsetSelection, UnaryEncoding

EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(3))

AT_EPSILON: tuple[tuple[str, Any], ...] = (
    ("binary", BinaryResponse.for_epsilon),
    *((f"k-ary of {k}", lambda e, k=k: KaryResponse.for_epsilon(e, k)) for k in (2, 3, 8)),
    *((f"subset of {k}", lambda e, k=k: SubsetSelection.for_epsilon(e, k)) for k in (2, 5, 8)),
    ("subset of 5, size 3", lambda e: SubsetSelection.for_epsilon(e, 5, 3)),
    *((f"optimised unary of {k}", lambda e, k=k: UnaryEncoding.optimised(e, k)) for k in (2, 5)),
    *((f"symmetric unary of {k}", lambda e, k=k: UnaryEncoding.symmetric(e, k)) for k in (2, 5)),
    *((f"hashing of {k}", lambda e, k=k: LocalHashing.for_epsilon(e, k)) for k in (2, 8)),
    ("hashing of 5, range 2", lambda e: LocalHashing.for_epsilon(e, 5, 2)),
)
COINS: tuple[tuple[str, Any], ...] = (
    ("two fair coins", BinaryResponse.from_coins(Fraction(1, 2), Fraction(1, 2))),
    ("coins that rarely say yes", BinaryResponse.from_coins(Fraction(1, 2), Fraction(1, 10))),
    ("coins that often say yes", BinaryResponse.from_coins(Fraction(2, 3), Fraction(9, 10))),
    ("truth with 0.9", BinaryResponse.from_truth(0.9)),
)
MECHANISM_CASES = (*((f"{name} at {e}", make(e)) for name, make in AT_EPSILON for e in EPSILONS), *COINS)


def supports(mechanism: Any, report: Any) -> list[int]:
    """Return which values one report, as the transition matrix names it, supports."""
    if mechanism.name == "unary":
        report = sum(bit << i for i, bit in enumerate(report)).to_bytes(1, "little")
    counts: list[int] = mechanism.support_counts(mechanism.gather([report])).tolist()
    return counts
