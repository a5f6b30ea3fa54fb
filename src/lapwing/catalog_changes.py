"""Another catalog for a data set that has a ledger: what may change in it, and what each change means.

The ledger stays, whatever the catalog says: spending belongs to the people in the data.

Guarantee:
    If all that was released by the old catalog keeps to the ledger's cap, then so does all that is released by the old
    and the new one together, towards the same people. Proof. Neighbours are two histories of the data that differ in
    one privacy unit, whose rows are added to, or removed from, every version of every protected table (under
    `replace_one`: replaced). A charge of loss ℓ says that its release is ℓ-private for all such neighbours, and the
    ledger's filter adds up losses of mechanisms that are chosen one after another in any way that depends on releases;
    by which catalog a mechanism was made is a part of that choice. So the sum holds if every mechanism, by either
    catalog, is private for *the same* neighbours. These follow from four things, and whatever changes one of them is
    refused here:

1. which rows are one unit's: `privacy_unit`, `unit_day`, `unit`, links, and the types by which the values are compared
   that name units and lead along links ('01' and '1' are one person as integers and two as texts);
2. `neighbouring`;
3. which files are protected: a file that was protected does not become public, under any name;
4. the rows that a unit has at all, whatever is asked. This is the data's: a new version of them is accepted by the
   ledger, which keeps its spending.

Everything else parametrises mechanisms: bounds, values, steps, columns, `max_rows_per_unit`, views, references, other
tables of the same units. The sensitivity of each question is computed anew from the catalog that it is asked by, so
with another bound it is another mechanism, private for the same neighbours at the price that it is charged. ∎

The ledger's filter itself stays as well: measure, `delta_keys`, and the budget, which grows by an entry of its own
alone (`ledger.raising`); and so do disjoint parts once they are declared (`ledger.parts`), as what was saved for one
part rests on nobody's changing parts. The ledger compares all of that again when it is opened by the new catalog: what
is here says it before, to a person.

Outside of it, as with every catalog: that what is written was not learned from the data. A bound that the curator read
off a check of the data is a release without noise.
"""

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Final, final

from lapwing.catalog import spelling
from lapwing.catalog.model import Catalog, PublicTable, Table
from lapwing.catalog.patterns import files_of
from lapwing.catalog.source_address import is_address
from lapwing.catalog.toml import dumps
from lapwing.engines import digests, open_engine, open_public_tables
from lapwing.errors import CatalogMismatch
from lapwing.ledger.opening import open_ledger
from lapwing.ledger.owners import others_than, owners_of, require_same_owners
from lapwing.ledger.parts import Parts, require_same_parts
from lapwing.ledger.registration import require_same
from lapwing.release.account import registration
from lapwing.session import Session, access_of

Place = tuple[str, ...]
_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_FIXED: Final[Mapping[Place, str]] = {
    ("dataset", "name"): "its address, its grants and its history go by this name",
    ("dataset", "engine"): "another engine would choose other rows of a person who has too many",
    ("dataset", "cluster"): "only the operator of the service decides where queries run",
    ("dataset", "ledger"): "another ledger would not know what these people have lost already",
    ("budget", "epsilon"): "a budget only becomes larger, by an entry of the ledger; use `Raise or close`",
    ("budget", "delta"): "a budget only becomes larger, by an entry of the ledger; use `Raise or close`",
    ("budget", "delta_keys"): "earlier charges for private keys count against it",
    ("budget", "measure"): "the ledger adds up its entries in this measure",
    ("budget", "neighbouring"): "earlier charges protect these neighbours, and no others",
    ("graphs",): "a graph's edges have their own bounds, and may have their own ledger; stop the service first",
}
_WHOSE: Final = "it says whose rows these are, and earlier charges would have protected others"
_SAME_UNITS: Final = "the values of this type say whose a row is; with another type, one person may become two"
_PUBLIC_NOW: Final = "a table protected under this ledger cannot become public, because its charges would be void"
_PROTECTED_NOW: Final = "it was public until now, and no budget can undo that; register it as its own data set"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One entry of a catalog that another one has otherwise.

    Args:
        place: Like `tables.visits.columns.age.upper`.
        was: As TOML writes them, None for none.
        now: As TOML writes them, None for none.
        refusal: Why it cannot be under the ledger, None if it can.
    """

    place: str
    was: str | None
    now: str | None
    refusal: str | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """What a change means for those who ask, or for the curator.

    Args:
        kind: `repeats` (answers bought before are not found for the same question any more), `gone`, `accept` (new data
            have to be accepted first), `monitor` (one that cannot go on), `public`, `parts` or `deadline`.
        about: A table or a monitor.
        said: In words.
    """

    kind: str
    about: str
    said: str


def changes(before: Catalog, after: Catalog) -> tuple[Change, ...]:
    """Return what one catalog says otherwise than another, in the order of places; comments and order mean nothing."""
    was, now = dict(_entries((), _document(before))), dict(_entries((), _document(after)))
    refused = dict(_refusals(before, after))
    places = sorted({*(place for place in {*was, *now} if was.get(place) != now.get(place)), *refused})
    return tuple(
        Change(
            place=".".join(map(spelling.key, place)),
            was=was.get(place),
            now=now.get(place),
            refusal=refused.get(place) or _fixed(place),
        )
        for place in places
    )


def require_changeable(before: Catalog, after: Catalog) -> None:
    """Refuse a catalog by which other neighbours would be protected than by the one before.

    Raises:
        CatalogMismatch: Naming every place.
    """
    refused = [change for change in changes(before, after) if change.refusal is not None]
    if refused:
        told = "; ".join(f"{one.place}: {one.refusal}" for one in refused)
        raise CatalogMismatch(f"This cannot be changed under a ledger. {told}. Nothing was changed.")


def require_same_neighbours(earlier: Catalog, after: Catalog) -> None:
    """Refuse a catalog by which other neighbours would be protected than by one that was in force at any time.

    Raises:
        CatalogMismatch: Naming every place.
    """
    told = "; ".join(f"{'.'.join(map(spelling.key, place))}: {reason}" for place, reason in _refusals(earlier, after))
    if told:
        raise CatalogMismatch(
            f"An earlier catalog of this data set said otherwise, and its charges count. {told}. Nothing was changed."
        )


def consequences(before: Catalog, after: Catalog, monitored: Mapping[str, str] = _NONE) -> tuple[Consequence, ...]:
    """Return what it means that one catalog takes the place of another.

    Args:
        monitored: The table that each monitor is about (`lapwing.monitors.monitor.monitored_tables`).
    """
    found: list[Consequence] = []
    old, new = _protected(before), _protected(after)
    for name, table in old.items():
        if name not in new:
            said = f"Nobody can query {name} any more. Its charges stay. You can still open its results."
            found.append(Consequence(kind="gone", about=name, said=said))
        elif table.digest != new[name].digest:
            said = (
                f"Lapwing treats all queries of {name} as new from now on. You can still open earlier results. If you "
                "run one of those queries again, Lapwing charges it again."
            )
            found.append(Consequence(kind="repeats", about=name, said=said))
    for name, table in new.items():
        if name not in old or old[name].source != table.source:
            said = f"You have to accept the data of {name} before Lapwing answers a query; spending stays."
            found.append(Consequence(kind="accept", about=name, said=said))
        if name in old and old[name].rows_at_most != table.rows_at_most:
            said = f"The time at which Lapwing sends results about {name} depends on rows_at_most, and changes."
            found.append(Consequence(kind="deadline", about=name, said=said))
    for monitor, name in monitored.items():
        if name in old and (name not in new or old[name].digest != new[name].digest):
            said = (
                f"The monitor {monitor} was created for the earlier {name}. It releases nothing more, and cannot be "
                f"opened, until you restore the table."
            )
            found.append(Consequence(kind="monitor", about=monitor, said=said))
    divided = Parts.of_catalog(after)
    if divided is not None and Parts.of_catalog(before) is None:
        said = f"Lapwing writes the parts of {divided.table} into the ledger, for ever."
        found.append(Consequence(kind="parts", about=divided.table, said=said))
    opened = {table.name: table for table in before.public_tables}
    for public in after.public_tables:
        if opened.get(public.name) != public:
            said = f"Everything in {public.name} counts as public. Nobody in it is protected."
            found.append(Consequence(kind="public", about=public.name, said=said))
    return tuple(found)


def priced_by(session: Session, catalog: Catalog) -> Session:
    """Return a session that prices questions by another catalog, on the same ledger: for `explain` alone.

    It holds public tables of its own: close these (`public_tables`), and never the session.
    """
    access = access_of(session)
    public = open_public_tables(catalog)
    return Session(
        catalog, access.engine, access.ledger, access.entropy, access.principal, public, access.limits,
        timing=access.timing,
    )  # fmt: skip


def require_by_ledger(session: Session, catalog: Catalog) -> None:
    """Refuse a catalog that the ledger of a session would not be opened by; nothing is written.

    Raises:
        CatalogMismatch: If the catalog contradicts the ledger.
    """
    state, name = session._state(), catalog.ledger
    require_same(registration(catalog), state.registration, name, state.earlier)
    require_same_owners(owners_of(catalog), state.owners, name)
    parts = Parts.of_catalog(catalog)
    if parts is not None and state.division is not None:
        require_same_parts(parts, state.division.parts)


def opened_by(session: Session, catalog: Catalog, *, read: bool = True) -> tuple[Session, tuple[str, ...]]:
    """Open another catalog of a session's data set, on the ledger that it holds, once all is as it has to be.

    Args:
        read: Whether the data are read first, as they would be to be accepted, so that nothing is served by a catalog
            that they do not fit; not if somebody has done that.

    Returns:
        The session, and the tables whose data are not those of the current version and have to be accepted.

    Raises:
        CatalogMismatch: If the catalog contradicts the ledger.
        CatalogError: If the catalog says what cannot be meant.
        DataFault: If the data cannot be read. Nothing is changed then.
    """
    require_changeable(session.catalog, catalog)
    require_by_ledger(session, catalog)
    access, state = access_of(session), session._state()
    engine, public = open_engine(catalog)
    try:
        found = digests(catalog, engine) if read else {}
        parts, owners = Parts.of_catalog(catalog), owners_of(catalog)
        # As at a start: the ledger compares all of it in one transaction, and writes down parts that are new.
        open_ledger(catalog.ledger, catalog.folder, registration(catalog), parts=parts, owners=owners).close()
    except BaseException:
        engine.close()
        public.close()
        raise
    new = Session(catalog, engine, access.ledger, access.entropy, access.principal, public)
    return new, tuple(name for name, digest in found.items() if state.digests.get(name) != digest)


def let_go(session: Session) -> None:
    """Close what a session has beside its ledger, after another one has taken its place on that."""
    access = access_of(session)
    access.engine.close()
    access.public.close()


def with_budget_of(catalog: Catalog, session: Session) -> Catalog:
    """Return a catalog with the budget that is in force, which may have been raised since the catalog was written."""
    session._state()
    return replace(catalog, budget=session.catalog.budget)


# ---- What is compared ------------------------------------------------------------------------------------------------


def _document(catalog: Catalog) -> dict[str, object]:
    """Return a catalog as it is written when all of it is written by one hand: defaults and spelling are the same."""
    return tomllib.loads(dumps(catalog), parse_float=Decimal)


def _entries(path: Place, content: object) -> Iterator[tuple[Place, str]]:
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _entries((*path, key), value)
    else:
        yield path, _written(content)


def _written(content: object) -> str:
    if isinstance(content, list):
        return f"[{', '.join(map(_written, content))}]"
    if isinstance(content, dict):  # a value with its label
        return f"{{ {', '.join(f'{key} = {_written(value)}' for key, value in content.items())} }}"
    if isinstance(content, bool):
        return str(content).lower()
    return spelling.text(content) if isinstance(content, str) else str(content)


def _fixed(place: Place) -> str | None:
    return next((reason for fixed, reason in _FIXED.items() if place[: len(fixed)] == fixed), None)


def _refusals(before: Catalog, after: Catalog) -> Iterator[tuple[Place, str]]:
    """Yield the places by which other units would be protected, or none any more, with the reason."""
    old, new = _protected(before), _protected(after)
    for name in others_than(owners_of(after), owners_of(before)):
        yield ("tables", name, "privacy_unit"), _WHOSE
    for name in old.keys() & new.keys():
        was, now = old[name], new[name]
        if was.unit != now.unit:
            yield ("tables", name, "unit"), _WHOSE
        for column in _naming(was, before) & _naming(now, after):
            if _type(was, column) != _type(now, column):
                yield ("tables", name, "columns", column, "type"), _SAME_UNITS
    parts, known = Parts.of_catalog(after), Parts.of_catalog(before)
    if parts is not None and known is not None and parts.table == known.table and parts != known:
        yield ("tables", parts.table, "part"), "charges depend on who is in which part; declare the parts as they were"
    held, shown = _files(before, before.tables), _files(before, before.public_tables)
    for table in after.public_tables:
        if table.name in old or _files(after, [table]) & held:
            yield ("tables", table.name, "public"), _PUBLIC_NOW
    for protected in after.tables:
        if any(table.name == protected.name for table in before.public_tables) or _files(after, [protected]) & shown:
            yield ("tables", protected.name, "public"), _PROTECTED_NOW


def _protected(catalog: Catalog) -> dict[str, Table]:
    return {table.name: table for table in catalog.tables}


def _naming(table: Table, catalog: Catalog) -> set[str]:
    """Return the columns of a table whose values say whose its rows are, or those of others that are linked to it."""
    names = {here for here, _ in table.link.on} if table.link is not None else set()
    if table.link is None and not table.unit_is_row:
        names.add(table.unit_column)
    for other in catalog.tables:
        if other.link is not None and other.link.parent.name == table.name:
            names |= {there for _, there in other.link.on}
    return names


def _type(table: Table, name: str) -> str:
    column = table.column(name)
    return "string" if column is None else column.type  # as `Table.unit_type` says


def _files(catalog: Catalog, tables: Sequence[Table | PublicTable]) -> set[object]:
    """Return what tells the files of tables from others, by whatever names; of sources, their addresses."""
    found: set[object] = set()
    for table in tables:
        if is_address(table.source):
            found.add(table.source)
            continue
        for file in files_of(catalog.source_path(table)):
            try:
                status = os.stat(file)
            except OSError:
                continue
            found.add((status.st_dev, status.st_ino))
    return found
