"""How often two answers fall into the same bucket of a hash function with a prime field."""

from fractions import Fraction


def meeting(buckets: int, prime: int) -> Fraction:
    """Return with which probability two different answers fall into the same of so many buckets, exactly.

    Their residues mod the prime are independent and uniform, and bucket j has n_j of them: Σ (n_j/prime)².
    """
    each, more = divmod(prime, buckets)
    return Fraction(more * (each + 1) ** 2 + (buckets - more) * each**2, prime**2)
