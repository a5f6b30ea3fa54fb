"""What a release makes: noisy integers, and what made them."""

from dataclasses import dataclass

from lapwing.exact.samplers import IntArray
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.mechanisms.partitions import KeySelection
from lapwing.privacy.measures import Loss
from lapwing.query.expressions.expression import Constant
from lapwing.query.plan import Question
from lapwing.release.payload import Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """Noisy integers, one a measure and cell, with the mechanisms that made them.

    `values[i][j]` belongs to measure i and to cell j, whose keys are `keys[k][j]` for each key k of the question: all
    cells of the public domain in the order of `cells_of`, of the private keys those that were selected. `sequence` is
    the ledger's entry that paid for them; `cost` is what this asking was charged, zero if the answer was stored. Of a
    question that chooses among its measures there are no numbers, but the `choice`.
    """

    question: Question
    mechanisms: tuple[NoiseLaw, ...]
    selection: KeySelection | None
    keys: tuple[tuple[Constant, ...], ...]
    values: tuple[IntArray, ...]
    sequence: int
    cost: Loss
    stored: bool
    choice: Choice | None = None
