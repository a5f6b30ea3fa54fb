"""The golden questions' tables, and a session that only binds: what a question means, without an answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from lapwing.answer import Answer
from lapwing.builder.table import Table, table
from lapwing.catalog.model import Catalog
from lapwing.errors import QueryRefused
from lapwing.query.bind import bind
from lapwing.query.plan import Plan
from lapwing.query.relations.public_rows import PublicFacts


@dataclass(frozen=True)
class World:
    """A catalog and what is public; it takes the place of a session."""

    catalog: Catalog
    facts: PublicFacts

    def table(self, name: str) -> Table[Answer]:
        return table(self, name, self.catalog, self.facts)

    def plan(self, question: str | Table[Answer]) -> Plan:
        text = question if isinstance(question, str) else question.to_sql()
        return bind(text, self.catalog, self.facts)

    def refusal(self, question: str | Table[Answer]) -> tuple[str, str]:
        """Return reason and remedy; the position is that of the text at hand."""
        try:
            plan = self.plan(question)
        except QueryRefused as refused:
            return refused.reason, refused.remedy
        raise AssertionError(f"it is answered: {plan.question}")

    def sql(self, text: str, parameters: object = (), **_options: object) -> NoReturn:
        raise NotImplementedError

    def explain(self, text: str, parameters: object = (), **_options: object) -> NoReturn:
        raise NotImplementedError


def same(first: Plan, second: Plan) -> Sequence[str]:
    """Return what differs between two plans."""
    parts = ("question", "keys", "outputs", "having", "qualify", "order", "limit", "offset", "asked", "explain")
    found = [part for part in parts if getattr(first, part) != getattr(second, part)]
    if str(first.question) != str(second.question):
        found.append("text")
    if (first == second) != (not found):
        found.append("equality")
    return found
