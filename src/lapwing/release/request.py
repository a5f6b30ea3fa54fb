"""What is asked, what it is answered with, and what is released."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, final

from lapwing.catalog.model import Catalog
from lapwing.engines import Engine, PublicTables
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import Entropy
from lapwing.ledger.allowances import LimitsNow
from lapwing.ledger.ledger import Ledger
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.mechanisms.partitions import KeySelection
from lapwing.privacy.measures import Loss
from lapwing.query.expressions.expression import Constant
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.pricing.quote import Quote
from lapwing.query.text.parameters import Parameters
from lapwing.release.nested_keys import NestedKeys
from lapwing.release.payload import ChosenMeasure


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A question as it was asked, with its plan, its price, and what the asker calls it."""

    text: str
    parameters: Parameters
    plan: Plan
    priced: Quote
    label: str | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What an asker may see of how long anything takes.

    Args:
        trusted: They may see all; else one unit must not add much to it (`release.bounded_work`).
        through: Makes the engine that runs the questions.
        hold: Returns at the moment from which the answers may be known to be there.
        waits: Is told that somebody else's answer to the same question is waited for.
        pays: Whether anything may be charged. If nothing may, `through` makes an engine that ends before any charge.
    """

    trusted: bool = True
    through: Callable[[Engine], Engine] | None = None
    hold: Callable[[], None] | None = None
    waits: Callable[[], None] | None = None
    pays: bool = True


OPEN: Final = Timing()
Wordings = Callable[[Question], Mapping[str, object] | None]
"""What was typed for a question, as a record of `ledger.wording`."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Access:
    """What questions are answered with, and on whose behalf.

    Args:
        public: The catalog's public tables.
        limits: What the asker must keep to beside the budget (`ledger.allowances`).
        timing: What the asker may see of time.
        wording: What was typed for a question.
        nestings: Keys of questions that are bought together, where some are known to lie inside others.
    """

    catalog: Catalog
    public: PublicTables
    engine: Engine
    ledger: Ledger
    entropy: Entropy
    principal: str
    limits: LimitsNow | None = None
    timing: Timing = OPEN
    wording: Wordings | None = None
    nestings: tuple[NestedKeys, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Noisy integers, one a measure and cell, with the mechanisms that made them.

    `values[i][j]` belongs to measure i and to cell j, whose keys are `keys[k][j]` for each key k of the question: all
    cells of the public domain in the order of `cells_of`, of the private keys those that were selected. `sequence` is
    the ledger's entry that paid for them; `cost` is what this asking was charged, zero if the answer was stored. It
    is `refined` if a stored answer counts in it, so that only the difference was charged. A question that chooses among
    its measures has no numbers, only the `choice`.
    """

    question: Question
    mechanisms: tuple[NoiseLaw, ...]
    selection: KeySelection | None
    keys: tuple[tuple[Constant, ...], ...]
    values: tuple[IntArray, ...]
    sequence: int
    cost: Loss
    stored: bool = False
    refined: bool = False
    choice: ChosenMeasure | None = None
