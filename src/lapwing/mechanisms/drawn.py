"""Mechanisms in stored results, so that an audit can recompute a loss.

These records are public. They follow from the question, the price, and earlier releases.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.residual_marginals import ResidualMarginals, RowsOfUnit


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnMechanism:
    """A mechanism with its sensitivity.

    Args:
        law: Its name and its parameters, exactly.
        moved: The sensitivity of its input.
    """

    law: tuple[str, ...]
    moved: Sensitivity

    @classmethod
    def of(cls, name: str, parameters: Sequence[object], moved: Sensitivity) -> Self:
        """Return a mechanism with its parameters as texts."""
        return cls(law=(name, *map(str, parameters)), moved=moved)

    @classmethod
    def of_residuals(cls, mechanism: ResidualMarginals, unit: RowsOfUnit) -> Self:
        """Return tables that are measured together, with the attributes and the precision of each residual."""
        pairs = zip(mechanism.residuals, mechanism.precisions, strict=True)
        residuals = [[sorted(axes), str(precision)] for axes, precision in pairs]
        parameters = (list(mechanism.sizes), residuals, [unit.low, unit.high, int(unit.replaced)])
        return cls.of(mechanism.name, [json.dumps(one) for one in parameters], Sensitivity.from_l1(unit.rows))

    def to_record(self) -> dict[str, object]:
        """Return it as JSON."""
        return {"law": list(self.law), "l1": self.moved.l1, "l2_squared": self.moved.l2_squared}
