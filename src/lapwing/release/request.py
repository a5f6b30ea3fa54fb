"""What is asked, and what it is answered with."""

from dataclasses import dataclass
from typing import final

from lapwing.catalog.model import Catalog
from lapwing.engines import Engine, PublicTables
from lapwing.exact.entropy import Entropy
from lapwing.ledger.allowances import LimitsNow
from lapwing.ledger.ledger import Ledger
from lapwing.query.plan import Plan
from lapwing.query.quote import Priced
from lapwing.query.text.parameters import Parameters


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A question as it was asked, with its plan and its price."""

    text: str
    parameters: Parameters
    plan: Plan
    priced: Priced


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Access:
    """What questions are answered with, and on whose behalf.

    Args: public: the catalog's public tables; limits: what the asker must keep to beside the budget
        (`ledger.allowances`).
    """

    catalog: Catalog
    public: PublicTables
    engine: Engine
    ledger: Ledger
    entropy: Entropy
    principal: str
    limits: LimitsNow | None = None
