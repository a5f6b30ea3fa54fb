"""The golden questions' tables as Ibis tables, and what a question means, without an answer."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from lapwing.catalog.model import Catalog
from lapwing.errors import QueryRefused
from lapwing.ibis_questions import Question, text_of
from lapwing.query.bind import bind
from lapwing.query.plan import Plan
from lapwing.query.relations.public_rows import PublicFacts
from lapwing.session_tables import tables_of_catalog
from lapwing.tables import Tables


@dataclass(frozen=True)
class World:
    """A catalog and what is public; it takes the place of a session."""

    catalog: Catalog
    facts: PublicFacts

    @property
    def tables(self) -> Tables:
        return tables_of_catalog(self.catalog, self.facts)

    def plan(self, question: Question, **options: object) -> Plan:
        return bind(text_of(question, **options), self.catalog, self.facts)

    def refusal(self, question: Question) -> tuple[str, str]:
        """Return reason and remedy; the position is that of the text at hand."""
        try:
            plan = self.plan(question)
        except QueryRefused as refused:
            return refused.reason, refused.remedy
        raise AssertionError(f"it is answered: {plan.question}")


def same(first: Plan, second: Plan) -> Sequence[str]:
    """Return what differs between two plans."""
    found = [field.name for field in fields(Plan) if getattr(first, field.name) != getattr(second, field.name)]
    return found + ["text"] * (str(first.question) != str(second.question))
