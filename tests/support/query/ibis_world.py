"""The golden questions' tables as Ibis tables, and what a question means, without an answer."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields

import pytest

from lapwing.catalog.model import Catalog
from lapwing.documents.session_document import tables_of_catalog
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.errors import QueryRefused
from lapwing.query.bind.bind import bind
from lapwing.query.plan.plan import Plan
from lapwing.query.relations.public_rows import PublicFacts
from lapwing.tables import Tables
from lapwing.tables.ibis_questions import Question, text_of
from tests.support.query.clean import catalog_in


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


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Return the golden questions' tables; a fixture to import."""
    catalog = catalog_in(tmp_path_factory.mktemp("ibis"))
    with closing(PublicData(catalog)) as facts:
        yield World(catalog, facts)


def same(first: Plan, second: Plan) -> Sequence[str]:
    """Return what differs between two plans."""
    found = [field.name for field in fields(Plan) if getattr(first, field.name) != getattr(second, field.name)]
    return found + ["text"] * (str(first.question) != str(second.question))
