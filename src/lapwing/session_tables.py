"""What may be asked about in a session: its tables and views, as a document and as descriptions."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lapwing.builder.opened import names_of, opened, source_of
from lapwing.catalog import spelling
from lapwing.catalog.model import Catalog
from lapwing.documents.dataset_document import DatasetDocument, dataset_document
from lapwing.errors import QueryRefused
from lapwing.query.expressions.conversion import nullable
from lapwing.query.expressions.days import date_at, moment_at
from lapwing.query.expressions.expression import ColumnReference, Expression
from lapwing.query.expressions.types import Fixed, Plain
from lapwing.query.relations.public_rows import PublicFacts
from lapwing.tables import Tables, tables_of

if TYPE_CHECKING:
    from lapwing.session import Session


def session_document(name: str, session: "Session") -> DatasetDocument:
    """Return what is public about the data set of a session, with what a question may begin with.

    That is the columns of every table and view, and which of them is the unit; of a view, what follows for them too.
    """
    catalog, facts = session.catalog, session.public_tables
    views = {view.name for view in catalog.views}
    found = [_begun(name, catalog, facts, described=name in views) for name in names_of(catalog)]
    return {**dataset_document(name, catalog), "relations": [relation for relation in found if relation]}


def tables_of_session(session: "Session") -> Tables:
    """Return the tables and views of a session's catalog."""
    return tables_of(session_document(session.catalog.name, session))


def _begun(name: str, catalog: Catalog, facts: PublicFacts, *, described: bool) -> dict[str, Any]:
    """Return a table or view as a question begins with it; nothing of a view that cannot be answered."""
    try:
        begun = opened(name, catalog, facts)
        columns = source_of(name, catalog, facts).columns if described else {}
    except QueryRefused:
        return {}
    relation: dict[str, Any] = {"name": begun.name, "columns": begun.names, "unit": begun.unit}
    return {**relation, "types": {name: _facts(column) for name, column in columns.items()}} if described else relation


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
