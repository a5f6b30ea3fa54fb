"""The queries that charges were made for, bound anew from what was typed, to know how far one unit moves them.

A charge has the canonical text of what was measured. The text that was typed is bound with the catalog, and priced at
what was charged. The canonical text of the measured query must be the same. So nothing is guessed: a charge whose text
nobody can make again, such as one under an earlier catalog, has no match.
"""

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from datetime import datetime
from typing import Any, final

from lapwing.catalog.model import Catalog
from lapwing.engines.registry import open_public_tables
from lapwing.errors import LapwingError
from lapwing.ledger.entries import Charge
from lapwing.query.bind.bind import bind
from lapwing.query.plan.composition import plans_asked
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.pricing.quote import at_loss, bounds_of
from lapwing.query.relations.public_rows import PublicFacts


@final
class ChargedQuestions:
    """The queries of a catalog by their canonical texts, as far as they were asked for.

    Args:
        seconds: The time after which no further text is bound.
    """

    def __init__(self, catalog: Catalog, facts: PublicFacts, seconds: float = math.inf) -> None:
        self._catalog, self._facts = catalog, facts
        self._known: dict[str, Question] = {}
        self._tried: set[str] = set()
        self._end = time.monotonic() + seconds

    def of(self, charge: Charge, when: str) -> Question | None:
        """Return what a charge paid for, None if nobody can tell.

        Args:
            when: The time of the charge.
        """
        typed = charge.wording or {}
        if charge.question not in self._known and isinstance(typed.get("text"), str):
            self.add(typed["text"], typed.get("parameters", ()), charge, when)
        return self._known.get(charge.question)

    def add(self, text: str, parameters: Any, charge: Charge, when: str) -> None:
        """Bind a text, and note what it measures at the cost of a charge."""
        name = repr((text, parameters, charge.question, charge.loss, when[:13]))
        if name in self._tried or time.monotonic() > self._end:
            return
        self._tried.add(name)
        given = parameters if isinstance(parameters, Mapping) else tuple(parameters)
        for reads in (True, False):
            try:
                plan = bind(text, self._catalog, self._facts, given, reads=reads, moment=self._moment(when))
            except (LapwingError, ValueError):
                continue
            for measured in (_questions(plan), _vectors(plan, charge, self._catalog)):
                self._known |= {str(question): question for question in measured}
                if charge.question in self._known:
                    return

    def _moment(self, when: str) -> datetime:
        hour = datetime.fromisoformat(when).replace(minute=0, second=0, microsecond=0, tzinfo=None)
        return hour if self._catalog.clock == "hour" else hour.replace(hour=0)


def opened(catalog: Catalog) -> "closing[Any]":
    """Return what the public tables of a catalog hold, to be closed: no protected table is opened for it."""
    return closing(open_public_tables(catalog))


def _questions(plan: Plan) -> Iterator[Question]:
    """Yield what a plan measures by itself, and in the searches before it."""
    for leaf in plans_asked(plan):
        yield leaf.question
        yield from (search.question for search in leaf.searches)


def _vectors(plan: Plan, charge: Charge, catalog: Catalog) -> Iterator[Question]:
    """Yield what is measured in the place of a plan's numbers, at the cost of a charge."""
    for leaf in plans_asked(plan):
        with suppress(LapwingError, ValueError):
            bounds = bounds_of(leaf.question, catalog.budget)
            vector = at_loss(leaf, bounds, charge.loss, catalog.budget, charge.delta).vector
            yield from () if vector is None else (vector.bought.question,)
