"""What may be asked about in a session: its tables and views, as a document and as descriptions."""

from typing import TYPE_CHECKING

from lapwing.builder.opened import names_of
from lapwing.builder.relations import Named
from lapwing.documents.dataset_document import DatasetDocument, dataset_document
from lapwing.errors import QueryRefused
from lapwing.tables import Tables, tables_of

if TYPE_CHECKING:
    from lapwing.session import Session


def session_document(name: str, session: "Session") -> DatasetDocument:
    """Return what is public about the data set of a session, with what a question may begin with.

    That is the columns of every table and view, and which of them is the unit.
    """
    begun = [_begun(session, name) for name in names_of(session.catalog)]
    relations = [{"name": one.name, "columns": one.names, "unit": one.unit} for one in begun if one is not None]
    return {**dataset_document(name, session.catalog), "relations": relations}


def _begun(session: "Session", name: str) -> Named | None:
    """Return a table or view as a question begins with it; None for a view that cannot be answered."""
    try:
        relation = session.table(name).relation
    except QueryRefused:
        return None
    return relation if isinstance(relation, Named) else None


def tables_of_session(session: "Session") -> Tables:
    """Return the tables and views of a session's catalog."""
    return tables_of(session_document(session.catalog.name, session))
