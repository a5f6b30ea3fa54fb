"""A plan of a release in JSON, with the outcome of a run now."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from typing_extensions import TypedDict

from lapwing.release.affordability import NO_LIMITS, Affordability, affordability
from lapwing.release.usable import is_stored
from lapwing.session import access_of
from lapwing.tabulation.advice import UnreliableTable, unreliable_tables
from lapwing.tabulation.declaration import TableRelease
from lapwing.tabulation.planning import ReleasePlan, prepared
from lapwing.tabulation.running import requests_of

if TYPE_CHECKING:
    from lapwing.session import Session

Record = Mapping[str, str]


class PlannedNumberDocument(TypedDict):
    """The planned errors of a number, with the names of `PlannedNumber` in Python."""

    name: str
    half_width: float | None
    standard_error: float | None
    table_by_table: float | None
    relative: float | None
    unreliable_below: float | None


class PlannedTableDocument(TypedDict):
    """A planned table; `share` is its part of the cost."""

    name: str
    query: str
    cells: int | None
    share: float
    numbers: list[PlannedNumberDocument]
    measured_with: list[str]
    wanted: float | None
    is_met: bool | None
    is_noise: bool


class PlanAlternativeDocument(TypedDict):
    """The half-widths by table and number at another cost, or in another kind of ledger."""

    epsilon: float
    delta: float
    measure: str
    half_widths: list[list[float | None]]


class UnreliableTableDocument(TypedDict):
    """A table whose cells of the assumed size would be unreliable, with remedies."""

    table: str
    merged: int
    epsilon: float


class IncompleteKeysDocument(TypedDict):
    """Keys without a cell for every row, the tables by them, and what to write so that these add up exactly."""

    keys: list[str]
    tables: list[str]
    remedy: str


class ReleasePlanDocument(TypedDict):
    """The cost of a release, the errors of its tables, and the outcome of a run now.

    `charge` is the cost for the caller now: nothing for tables that were bought before. `remaining` is the rest of the
    budget for the caller. `refusal` and its code say why Lapwing would refuse a run.
    """

    title: str
    objective: str
    epsilon: float
    delta: float
    delta_keys: float
    measure: str
    unit: str
    cost: Record
    share_of_budget: float
    is_optimal: bool
    tables: list[PlannedTableDocument]
    epsilon_needed: float | None
    other_costs: list[PlanAlternativeDocument]
    other_measures: list[PlanAlternativeDocument]
    incomplete_keys: list[IncompleteKeysDocument]
    unreliable_tables: list[UnreliableTableDocument]
    charge: Record
    remaining: Record
    refusal: str | None
    refusal_code: str | None


def plan_for_caller(session: "Session", release: TableRelease) -> ReleasePlanDocument:
    """Plan a release, with the outcome of a run now; free, and no row is read.

    Raises:
        LapwingError: As `plan_release`.
    """
    ready = prepared(session, release, compares=True)
    planned, access = ready.described, access_of(session)
    new = [one.priced for one in requests_of(release, ready) if not is_stored(one, access)]
    charge = planned.cost.from_amount(sum((quote.loss.amount for quote in new), Fraction(0)))
    delta = sum((quote.delta for quote in new), Fraction(0))
    limits = NO_LIMITS if access.limits is None else access.limits()
    now = affordability(
        new,
        charge,
        None,
        delta=delta,
        state=session._state(),
        catalog=session.catalog,
        principal=access.principal,
        limits=limits,
    )
    return _document(planned, tuple(unreliable_tables(release, planned)), charge.to_record(), now)


def _document(
    planned: ReleasePlan, noisy: Sequence[UnreliableTable], charge: Record, now: Affordability
) -> ReleasePlanDocument:
    document = {
        **{name: one for name, one in plan_document(planned).items() if name != "fits"},
        "unreliable_tables": [asdict(one) for one in noisy],
        "charge": charge,
        "remaining": now.remaining.to_record(),
        "refusal": now.refusal,
        "refusal_code": now.refusal_code,
    }
    return cast(ReleasePlanDocument, document)  # whose names are those of the plan


def plan_document(planned: ReleasePlan) -> dict[str, Any]:
    """Return a plan for JSON, with the names of `ReleasePlan`."""
    document = {**asdict(planned), "cost": planned.cost.to_record(), "delta_keys": float(planned.delta_keys)}
    pairs = zip(document["tables"], planned.tables, strict=True)
    document["tables"] = [{**row, "is_met": table.is_met, "is_noise": table.is_noise} for row, table in pairs]
    return document
