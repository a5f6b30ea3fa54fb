"""A question's SQL run on a plain connection: its layers put together here, without an engine around them."""

from collections.abc import Sequence
from typing import Any

import duckdb

from lapwing.engines.duckdb.cleaned import Location, layer
from lapwing.engines.duckdb.lockdown import DISABLED_OPTIMIZERS
from lapwing.engines.duckdb.public_data import PublicSources
from lapwing.engines.duckdb.queries import _reader, answer
from lapwing.engines.duckdb.relations import public_layer
from lapwing.query.plan.plan import Question
from lapwing.query.relations.node import Relation
from lapwing.query.relations.public_join import PublicJoin

Cells = dict[tuple[Any, ...], tuple[int, ...]]


def connect() -> duckdb.DuckDBPyConnection:
    """Return a connection that plans queries as the engine's does."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(f"SET disabled_optimizers = '{','.join(DISABLED_OPTIMIZERS)}'")
    return connection


def prefix(question: Question, source: Location, public: PublicSources | None = None) -> str:
    """Return the layers beneath a question's answer."""
    tables = dict.fromkeys(joined_tables(question.selection.relation))
    added = [public_layer(public.described(table), public.source(table)) for table in tables] if public else []
    return f"WITH {', '.join([layer(question.table, source, True), *added])}"


def joined_tables(relation: Relation) -> list[Any]:
    """Return the public tables that a relation joins."""
    own = [relation.public.table] if isinstance(relation, PublicJoin) else []
    return [*own, *(table for source in relation.sources for table in joined_tables(source.relation))]


def cells(
    connection: duckdb.DuckDBPyConnection, question: Question, source: Location, public: PublicSources | None = None
) -> Cells:
    """Return the exact integers of the cells that have rows."""
    rows = connection.execute(f"{prefix(question, source, public)} {answer(question)}").fetchall()
    return dict(map(_reader(question.keys), rows))


def vector(found: Cells, question: Question, wanted: Sequence[tuple[Any, ...]]) -> list[tuple[int, ...]]:
    """Lay cells out, one vector a measure."""
    zero = (0,) * len(question.measures)
    rows = [found.get(cell, zero) for cell in wanted]
    return [tuple(row[i] for row in rows) for i in range(len(question.measures))]
