"""The loss of stored mechanisms, each with its sensitivity.

Results of graph statistics and synthetic tables have such mechanisms. A later mechanism was chosen in the light of the
results of earlier ones, and the losses add up.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from lapwing.audit.loss_formulas import LargestMovement, bounded_range, least_amount


def drawn_amount(records: object, kind: str) -> Fraction | None:
    """Return what stored mechanisms lose together at least, None if the audit has no formula for one of them."""
    try:
        amounts = list(_amounts(records, kind))
    except (ValueError, TypeError, LookupError, ArithmeticError):
        return None
    known = [amount for amount in amounts if amount is not None]
    return sum(known, Fraction(0)) if len(known) == len(amounts) else None


def _amounts(records: Any, kind: str) -> Iterator[Fraction | None]:
    for record in records:
        name, *parameters = map(str, record["law"])
        formula, movement = _FORMULAS.get(name), _movement(record)
        yield least_amount(record["law"], movement, kind) if formula is None else formula(parameters, movement, kind)


def _movement(record: Mapping[str, Any]) -> LargestMovement:
    """Return a movement. With L1 = a and L2² = b it may be in a²/b cells, rounded up, and in no fewer."""
    l1, squared = int(record["l1"]), int(record["l2_squared"])
    return LargestMovement(l1=l1, l2_squared=squared, cells=max(1, -(-(l1**2) // max(1, squared))))


def _choice(parameters: Sequence[str], movement: LargestMovement, kind: str) -> Fraction | None:
    """Return the loss of choosing by scores whose differences move by so much, round after round."""
    scale, *rounds = parameters
    return int(rounds[0] if rounds else "1") * bounded_range(movement.l1 / Fraction(scale), kind)


def _one_by_scale(parameters: Sequence[str], movement: LargestMovement, kind: str) -> Fraction | None:
    """Return the loss of choosing a level: scores are in units of their sensitivities."""
    return _choice(parameters[:1], movement, kind)


def _flip(parameters: Sequence[str], movement: LargestMovement, kind: str) -> Fraction | None:
    """Return ε of permute-and-flip, which has no useful bounded range."""
    return movement.l1 / Fraction(parameters[0]) if kind == "pure" else None


def _ladder(parameters: Sequence[str], movement: LargestMovement, kind: str) -> Fraction | None:
    """Return the loss of choosing a number by its rung, which a change moves by 1 up or down."""
    scale, changes = parameters
    return bounded_range(2 * int(changes) / Fraction(scale), kind)


def _residuals(parameters: Sequence[str], movement: LargestMovement, kind: str) -> Fraction | None:
    """Return the loss of residuals t_A = (⊗(n·I − J)) T_A with noise of the precisions q_A, for K rows of a unit.

    A row adds a column to t_A. Two columns have the inner product Π n(n − 1) if they agree in all attributes, and a
    factor −n for each attribute in which they do not. All rows of a unit may be alike. If a unit replaces another one,
    its rows may differ from the other's in one attribute, in all, or in none but the amount.
    """
    sizes, residuals, (low, high, replaced) = (json.loads(one) for one in parameters)
    rows = movement.l1

    def product(apart: frozenset[int]) -> Fraction:
        factors = [-size if place in apart else size * (size - 1) for place, size in enumerate(sizes)]
        return sum((Fraction(q) * math.prod(factors[i] for i in axes) for axes, q in residuals), Fraction(0))

    same = product(frozenset())
    most = max(low**2, high**2) * same
    if replaced:
        others = [frozenset({place}) for place in range(len(sizes))]
        for found in map(product, [frozenset(), *others, frozenset(range(len(sizes)))]):
            most = max(most, *((u**2 + v**2) * same - 2 * u * v * found for u in (low, high) for v in (low, high)))
    mu_squared = rows**2 * most
    return {"gdp": mu_squared, "zcdp": mu_squared / 2}.get(kind)


_FORMULAS: Final[Mapping[str, Callable[[Sequence[str], LargestMovement, str], Fraction | None]]] = {
    "exponential mechanism": _choice,
    "top k": _choice,
    "generalised exponential": _one_by_scale,
    "permute-and-flip": _flip,
    "ladder": _ladder,
    "residual marginals": _residuals,
}
