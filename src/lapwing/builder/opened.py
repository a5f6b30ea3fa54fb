"""What a table expression begins with: a table or view of the catalog, and the names of its columns."""

from lapwing.builder.literals import quoted, type_name
from lapwing.builder.relations import Named
from lapwing.catalog.model import Catalog
from lapwing.errors import InvalidParameter, QueryRefused
from lapwing.query.expressions.rows import TableReference
from lapwing.query.from_clause.scope import Scope, bind_from
from lapwing.query.relations.public_rows import PublicFacts
from lapwing.query.text.parse import parse
from lapwing.suggestions import meant, shown


def names_of(catalog: Catalog) -> tuple[str, ...]:
    """Return the names of what a question may begin with."""
    tables = [table.name for table in catalog.tables]
    public = [table.name for table in catalog.public_tables]
    return (*tables, *public, *(view.name for view in catalog.views))


def opened(name: str, catalog: Catalog, facts: PublicFacts) -> Named:
    """Return a table or view of the catalog.

    Raises: QueryRefused if there is none of this name.
    """
    if not isinstance(name, str):
        raise InvalidParameter(f"The name of a table is a str, not {type_name(name)}.")
    if name not in names_of(catalog):
        raise unknown("table", name, names_of(catalog))
    for public in catalog.public_tables:
        if public.name == name:
            return Named(name=name, names=tuple(column.name for column in public.columns))
    source = source_of(name, catalog, facts)
    hidden = () if source.unit is None or source.unit in source.columns else (source.unit,)
    return Named(name=name, names=(*hidden, *source.columns), unit=source.unit)


def source_of(name: str, catalog: Catalog, facts: PublicFacts) -> TableReference:
    """Return the columns of a table or view, as a question that begins with it sees them.

    Raises: QueryRefused if it is a view that cannot be answered.
    """
    text = f"SELECT COUNT(*) FROM {quoted(name)}"
    bound, _ = bind_from(parse(text).select, Scope(text=text, catalog=catalog, facts=facts))
    (source,) = bound.sources
    return source


def unknown(what: str, name: str, known: tuple[str, ...]) -> QueryRefused:
    """Return the refusal of a name that nothing has, with those that resemble it."""
    return QueryRefused(f"There is no {what} '{shown(name)}'", remedy=meant(f"{what.capitalize()}s", name, known))
