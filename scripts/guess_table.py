"""Write the table of `docs/start/choose-epsilon.md`: how often a guess about a person is right, by the budget.

    python scripts/guess_table.py --write

The numbers are those of the guarantee's own page (`lapwing.guarantee.meaning`), so they are rounded up.
"""

import math
import re
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Final

from lapwing.catalog.model import Budget
from lapwing.guarantee.meaning import guess_up, odds_factor_up
from lapwing.privacy import loss_for

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "start" / "choose-epsilon.md"
EPSILONS: Final = ("0.1", "0.5", "1", "2", "3", "5", "10")
DELTA: Final = Fraction(1, 10**6)
HEADER: Final = """\
| ε | guesses right, `gdp` ledger, δ = 1e-6 | guesses right, `pure` ledger | odds change by at most, `pure` |
|---:|---:|---:|---:|
"""
_TABLE: Final = re.compile(re.escape(HEADER) + r"(?:\|.*\n)+")


def rows() -> Iterator[str]:
    """Yield a line for each epsilon: guesses right out of 100 in two kinds of ledger, and the factor of odds."""
    for epsilon in map(Fraction, EPSILONS):
        right = (_right("gdp", epsilon, DELTA), _right("pure", epsilon, Fraction(0)))
        yield f"| {float(epsilon):g} | {right[0]} | {right[1]} | ×{_three_digits_up(odds_factor_up(epsilon))} |\n"


def written(page: str) -> str:
    """Return the page with the table as it is now."""
    new, count = _TABLE.subn(lambda _: HEADER + "".join(rows()), page)
    if count != 1:
        raise ValueError(f"{PAGE.name} has {count} tables with the header of this script, and must have one.")
    return new


def _right(measure: str, epsilon: Fraction, delta: Fraction) -> str:
    budget = Budget(epsilon=epsilon, delta=delta, delta_keys=Fraction(0), measure=measure, neighbouring="add_remove")
    right = 100 * guess_up(budget, loss_for(measure, epsilon, delta))
    return f"{math.ceil(10 * right) / 10:g}"


def _three_digits_up(factor: float) -> str:
    step = 10.0 ** (math.floor(math.log10(factor)) - 2)
    return f"{math.ceil(factor / step) * step:,.{max(0, -math.floor(math.log10(step)))}f}"


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    if "--write" in sys.argv:
        PAGE.write_text(written(text), encoding="utf-8")
    else:
        print(HEADER + "".join(rows()), end="")
