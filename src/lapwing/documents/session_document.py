"""What may be asked about in a session: its tables and views, as a document and as descriptions."""

from collections.abc import Mapping
from typing import Any

from lapwing.catalog import spelling
from lapwing.catalog.model import Catalog
from lapwing.documents.dataset_document import DatasetDocument, dataset_document
from lapwing.errors import QueryRefused
from lapwing.query.expressions.conversion import nullable
from lapwing.query.expressions.days import date_at, moment_at
from lapwing.query.expressions.expression import ColumnReference, Expression
from lapwing.query.expressions.rows import TableReference
from lapwing.query.expressions.types import Fixed, Plain
from lapwing.query.from_clause.scope import Scope, bind_from
from lapwing.query.relations.identity import origin
from lapwing.query.relations.node import Relation
from lapwing.query.relations.public_rows import PublicFacts
from lapwing.query.text.parse import parse
from lapwing.tables import Tables, quoted, tables_of


def session_document(name: str, catalog: Catalog, facts: PublicFacts) -> DatasetDocument:
    """Return what is public about a data set, with what a question may begin with.

    That is the columns of every table and view, and which of them is the unit; of a view, what follows for them too.
    """
    views = [view.name for view in catalog.views]
    tables = [table.name for table in catalog.tables] + [table.name for table in catalog.public_tables]
    found = [_begun(name, catalog, facts, described=name in views) for name in tables + views]
    document: DatasetDocument = {
        **dataset_document(name, catalog),
        "relations": [relation for relation in found if relation],
    }
    if catalog.graphs:
        from lapwing.graphs.statistics import described  # here: few catalogs have graphs

        document["graphs"] = [described(graph) for graph in catalog.graphs]
    return document


def tables_of_catalog(catalog: Catalog, facts: PublicFacts) -> Tables:
    """Return the tables and views of a catalog."""
    return tables_of(session_document(catalog.name, catalog, facts))


def _begun(name: str, catalog: Catalog, facts: PublicFacts, *, described: bool) -> dict[str, Any]:
    """Return a table or view as a question begins with it; nothing of a view that cannot be answered."""
    for public in catalog.public_tables:
        if public.name == name:
            return {"name": name, "columns": [column.name for column in public.columns], "unit": None}
    try:
        source, relation_of = _source_of(name, catalog, facts)
    except QueryRefused:
        return {}
    hidden = [] if source.unit is None or source.unit in source.columns else [source.unit]
    relation: dict[str, Any] = {"name": name, "columns": [*hidden, *source.columns], "unit": source.unit}
    if not described:
        return relation
    types = {
        name: {**_facts(column), **_texts(column, relation_of, catalog)} for name, column in source.columns.items()
    }
    return {**relation, "types": types}


def _texts(column: Expression, relation: Relation, catalog: Catalog) -> Mapping[str, Any]:
    """Return what the data dictionary says of the declared column that a view hands on, if it is one."""
    declared = origin(column, relation)
    return {} if declared is None else catalog.dictionary.column(declared.table.name, declared.column).document


def _source_of(name: str, catalog: Catalog, facts: PublicFacts) -> tuple[TableReference, Relation]:
    """Return the columns of a table or view, as a question that begins with it sees them, and the relation beneath.

    Raises:
        QueryRefused: If it is a view that cannot be answered.
    """
    text = f"SELECT COUNT(*) FROM {quoted(name)}"
    input_, _ = bind_from(parse(text).select, Scope(text=text, catalog=catalog, facts=facts))
    (source,) = input_.sources
    return source, input_.selection.relation


def _facts(column: Expression) -> Mapping[str, Any]:
    """Return what is public about a computed column, as a catalog says it of a declared one."""
    kind = column.type
    facts: dict[str, Any] = {} if nullable(column) else {"nullable": "false"}
    if isinstance(column, ColumnReference) and column.listed:
        facts["values"] = list(column.listed)
    if isinstance(kind, Plain):
        facts["type"] = {"text": "string"}.get(kind.name, kind.name)
        if kind.low is not None and kind.high is not None:
            at = date_at if kind.name == "date" else moment_at
            facts |= {"lower": spelling.value(at(kind.low)), "upper": spelling.value(at(kind.high))}
        return facts
    facts["type"] = "float"
    if isinstance(kind, Fixed):
        facts["type"] = "integer" if kind.step.denominator == 1 else "decimal"
        facts |= {} if kind.step == 1 else {"step": spelling.value(kind.step)}
    low, high = kind.interval()
    if low is not None and high is not None:
        ends = (spelling.value(end) if isinstance(kind, Fixed) else f"{float(end):.10g}" for end in (low, high))
        facts |= zip(("lower", "upper"), ends, strict=True)
    return facts
