"""The notice of a result: its cost, the errors of its numbers, and the rest of the budget."""

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, Final

from lapwing.answer.presentation import cost_in_words
from lapwing.catalog.model import Budget
from lapwing.ledger.allowances import Remaining
from lapwing.privacy.measures import from_record
from lapwing.server.answer_store import AnswerRecord

NO_ROWS: Final = "free: LIMIT 0 shows no rows"
DELAYED: Final = "delayed: the result left later than it should"


def notice_of(record: AnswerRecord, budget: Budget, more: list[str]) -> str:
    """Return the notice of a result.

    Args:
        budget: The budget of the data set.
        more: Further sentences about the charge.
    """
    document: Any = record.document
    delta = Fraction(budget.delta) - Fraction(budget.delta_keys)
    said = [cost_in_words(SimpleNamespace(cost=from_record(document["cost"]), stored=document["stored"]), delta)]
    for fact in document.get("facts", ()):
        if fact["half_width"] is not None:
            said.append(f"{fact['name']} ±{fact['half_width']:,.6g} (95 %)")
    said += [DELAYED] if document.get("delayed") else []
    return "; ".join([*said, *more])


def what_is_left(left: Remaining) -> list[str]:
    """Say which part of the budget is left after a charge, and which part the caller may still use, rounded down."""
    said = [f"{_percent(left.budget / left.cap)} of the budget is left"]
    return said if left.own is None else [*said, f"you may use {_percent(left.own / left.cap)}"]


def _percent(part: Fraction) -> str:
    return f"{max(math.floor(1000 * part), 0) / 10:g} %"
