"""The plan of a question, handed to the process that asks it.

The front plans a question to know its cost. It hands the plan over, so that the other process need not make it again.

Guarantee:
    A plan changes nothing but the time that it takes to make it. Plan and price are functions of the question's text,
    its parameters, the wanted price, the catalog with its budget, and the build of Lapwing. With public tables they are
    functions of more. Then none is remembered (`query.plan.plan.PlanCache`), and none is handed over. Its plan names
    the moment that a query sees as the time. A plan of another moment is not taken.

    The other process names the question by its request, and by nothing that came with the plan. It compares catalogs at
    that moment, field by field, and builds. If one differs, it does not take the plan. It remembers the plan for that
    catalog, like its own plans. A catalog or a budget that changes later is another one. Then it plans again.

    A plan is no right. Each charge checks what it did before: whether the person sees the data set, limits and budget.
    It also checks the version of the data, and how much work one unit can add.

Parts of the catalog in a plan are written as references, so that a long list of values is not written each time.
"""

import io
import pickle
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final, final

from lapwing.catalog.model import Catalog, Column, Table
from lapwing.machine.build import build_id
from lapwing.server.bodies import BatchBody, QueryBody
from lapwing.session import Session, planned_once

KEPT: Final = 64
"""Catalogs whose parts are known at a time."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HandedPlan:
    """A plan with its price, and the fingerprint of its catalog."""

    catalog: str
    written: bytes


def hand_over(session: Session, person: str, body: QueryBody | BatchBody) -> HandedPlan | None:
    """Return the plan that this process remembers of somebody's question; None if it remembers none."""
    if not isinstance(body, QueryBody):
        return None
    catalog = session.catalog
    try:
        planned = _planned(session, catalog, person, body, _no_plan)
    except LookupError:
        return None
    parts, written = _parts_of(catalog), io.BytesIO()
    try:
        _Pickler(written, parts).dump(planned)
    except (pickle.PicklingError, TypeError, AttributeError):  # it is made again, as if there were none
        return None
    return HandedPlan(catalog=parts.fingerprint, written=written.getvalue())


def take_over(handed: HandedPlan, session: Session, person: str, body: QueryBody | BatchBody) -> bool:
    """Keep a plan for the question that is about to be asked; False if it was made by another catalog."""
    catalog = session.catalog
    parts = _parts_of(catalog)
    if handed.catalog != parts.fingerprint or not isinstance(body, QueryBody):
        return False
    try:
        _planned(session, catalog, person, body, lambda: _read(handed, parts, session))
    except LookupError:
        return False
    return True


def _read(handed: HandedPlan, parts: "_Parts", session: Session) -> Any:
    """Return a plan and its price; not those of another day, whose looks at the clock saw that one."""
    plan, priced = _Unpickler(io.BytesIO(handed.written), parts).load()
    if plan.moment not in (None, session.moment()):
        raise LookupError
    return plan, priced


def _planned(session: Session, catalog: Catalog, person: str, body: QueryBody, make: Any) -> Any:
    """Return the plan that `Session.sql` would find for a request, or what is made now."""
    wanted = body.prices()
    asked = (body.values(), wanted["epsilon"], wanted["error"], wanted["delta"], body.assuming_count, session.moment())
    return planned_once(session, make, catalog, person, body.sql, *asked)


def _no_plan() -> Any:
    raise LookupError


# ---- catalogs --------------------------------------------------------------------------------------------------------


@final
class _Parts:
    """What plans share with a catalog, in an order that follows from what it says."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        said = repr((build_id(), replace(catalog, file=None)))  # all fields, the budget's too, but where it was read
        self.fingerprint = sha256(said.encode()).hexdigest()
        tables = [one for table in catalog.tables for one in table.lineage]
        columns = [column for table in tables for column in table.columns]
        lists = [column.values for column in columns if _is_of_texts(column.values)]
        self.objects: list[Any] = [*tables, *columns, *lists]
        self.places = {id(one): place for place, one in enumerate(self.objects)}
        self.of_lists = {values: self.objects.index(values) for values in lists}

    def place_of(self, found: Any) -> int | None:
        """Return the place of what a plan shares with the catalog; keys have copies of lists of values."""
        if type(found) is tuple:
            return self.of_lists.get(found) if _is_of_texts(found) else None
        return self.places.get(id(found)) if type(found) in (Table, Column) else None


def _is_of_texts(values: object) -> bool:
    """Tell whether a tuple has texts alone: equal ones are the same, which 1 and True are not."""
    return isinstance(values, tuple) and bool(values) and all(type(value) is str for value in values)


_lock: Final = threading.Lock()
_known: Final[OrderedDict[int, _Parts]] = OrderedDict()  # by identity: it holds the catalogs for as long


def _parts_of(catalog: Catalog) -> _Parts:
    with _lock:
        parts = _known.get(id(catalog))
        if parts is None:
            parts = _known[id(catalog)] = _Parts(catalog)
        _known.move_to_end(id(catalog))
        while len(_known) > KEPT:
            _known.popitem(last=False)
        return parts


@final
class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, parts: _Parts) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._parts = parts

    def persistent_id(self, found: Any) -> int | None:
        return self._parts.place_of(found)


@final
class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, parts: _Parts) -> None:
        super().__init__(file)
        self._objects = parts.objects

    def persistent_load(self, place: int) -> Any:
        return self._objects[place]
