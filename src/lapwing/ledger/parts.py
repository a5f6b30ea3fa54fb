"""The parts of a data set in its ledger: what they are, and what was charged to each.

Which part a person is in is a function of the data, the table's part column and its values, in order. So all of this is
fixed in the ledger, in an entry of its own, before anything is charged to some parts only; a catalog that says
otherwise of the same table is refused, as it could move a person from a part that was charged into one that was not.
What was charged before that entry was charged to all parts, and so is every question about another table, or by a
catalog without parts that shares the ledger.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self, cast, final

from lapwing.catalog.digests import column_facts, digest, value_text
from lapwing.catalog.model import Catalog, Table
from lapwing.errors import CatalogMismatch, InvalidParameter
from lapwing.ledger.entries import Charge
from lapwing.ledger.registration import Registration
from lapwing.privacy.amounts import grid_up
from lapwing.privacy.filters import Account, Refused
from lapwing.privacy.measures import Loss
from lapwing.privacy.parts import NEIGHBOURS_DIFFER, Neighbouring, PartsAccount, PartSums


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The disjoint parts of a table, in order of rank.

    Args:
        values: Their names.
        meaning: The digest of all else that a unit's part follows from, but for the data: what the column's values are
            read as, and what a unit is.
    """

    table: str
    column: str
    values: tuple[str, ...]
    meaning: str

    @classmethod
    def of_table(cls, table: Table) -> Self | None:
        """Return the parts that a table declares, if it does."""
        column = table.part_column
        if column is None or column.values is None:
            return None
        unit = next((other.type for other in table.columns if other.name == table.privacy_unit), "string")
        facts = {"column": column_facts(column), "privacy_unit": table.privacy_unit, "unit_type": unit}
        values = tuple(map(value_text, column.values))
        return cls(table=table.name, column=column.name, values=values, meaning=digest(facts))

    @classmethod
    def of_catalog(cls, catalog: Catalog) -> Self | None:
        """Return the parts that a catalog declares; one table at most does."""
        declared = (cls.of_table(table) for table in catalog.tables)
        return next((parts for parts in declared if parts is not None), None)

    def to_record(self) -> dict[str, object]:
        """Return the parts as JSON."""
        return {"table": self.table, "column": self.column, "values": list(self.values), "meaning": self.meaning}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Read what `to_record` wrote."""
        texts = (record["table"], record["column"], record["meaning"], *record["values"])
        if not isinstance(record["values"], list) or not all(isinstance(text, str) for text in texts):
            raise TypeError("not the record of parts")
        table, column, meaning, *values = texts
        return cls(table=table, column=column, values=tuple(values), meaning=meaning)


def require_same_parts(parts: Parts, registered: Parts) -> None:
    """Refuse other parts of the table whose parts are registered.

    Raises:
        CatalogMismatch: Saying what is different.
    """
    if parts == registered or parts.table != registered.table:
        return
    if parts.column != registered.column:
        what = f"by {registered.column} (given: {parts.column})"
    elif parts.values != registered.values:
        what = f"by other values of {parts.column}, or in another order"
    else:
        what = f"by {parts.column} where it, or the privacy unit, was read as something else"
    raise CatalogMismatch(
        f"The parts of {parts.table} were registered {what}, and charges depend on it. People could move to another "
        "part than the charged one. Nothing was changed. Declare the parts as they were, or no parts: then Lapwing "
        "charges every query to all of them."
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """The parts, and what is charged to each: losses, and of `delta_keys` what private keys took.

    Guarantee:
        On every pair of neighbours both sums are at most the totals here (`privacy.parts`), each of which `paid` keeps
        within a cap of its own: together they are one filter of (loss, delta) on that pair (`privacy.filters`).
    """

    parts: Parts
    losses: PartsAccount
    deltas: PartSums

    @classmethod
    def opened(cls, parts: Parts, registration: Registration, spent: Loss, delta: Fraction, version: int) -> Self:
        """Return the division of a ledger; what is spent already is charged to all parts."""
        neighbouring = cast(Neighbouring, registration.neighbouring)
        budget = registration.budget
        losses = PartsAccount.opened(budget, parts.values, data_version=str(version), neighbouring=neighbouring)
        if len(losses.parts) != len(parts.values):
            raise InvalidParameter("Two parts have the same name; list each once.")
        whole = PartSums(differ=NEIGHBOURS_DIFFER[neighbouring], everywhere=spent.amount)
        deltas = PartSums(differ=whole.differ, everywhere=delta)
        return cls(parts=parts, losses=replace(losses, sums=whole), deltas=deltas)

    @property
    def account(self) -> Account:
        """The budget and the total: the dearest part, or under replace_one the two dearest together."""
        return Account(budget=self.losses.budget, spent=self.losses.total)

    def paid(self, charge: Charge, delta_keys: Fraction) -> Self | Refused:
        """Charge the parts that a question reads, or refuse if its loss or its delta does not fit."""
        outcome = self.losses.charge(charge.loss, charge.parts, data_version=str(charge.version))
        if isinstance(outcome, Refused):
            return outcome
        deltas = self.deltas.plus(grid_up(charge.delta), self._reads(charge.parts))
        if deltas.total > delta_keys:
            return Refused(shortfall=charge.loss.nothing())
        return replace(self, losses=outcome.account, deltas=deltas)

    def for_version(self, version: int) -> Self:
        """Return the division for the next version of the data, with both totals charged to every part.

        A person may be in another part now. Proof that this suffices: `privacy.parts`.
        """
        return replace(self, losses=self.losses.for_version(str(version)), deltas=self.deltas.levelled())

    def with_budget(self, budget: Loss) -> Self:
        """Return the division with a larger budget for every part."""
        return replace(self, losses=replace(self.losses, budget=budget))

    def spent_wholly(self, delta_keys: Fraction) -> Self:
        """Return the division with nothing left in any part."""
        differ = self.losses.sums.differ
        losses = replace(self.losses, sums=PartSums(differ=differ, everywhere=self.losses.budget.amount))
        return replace(self, losses=losses, deltas=PartSums(differ=differ, everywhere=delta_keys))

    def room(self, parts: tuple[str, ...] | None) -> Loss:
        """Return the largest loss that still fits for a question that reads these parts; None for all."""
        return self.losses.room(parts)

    def delta_room(self, parts: tuple[str, ...] | None, delta_keys: Fraction) -> Fraction:
        """Return what is left for such a question of the delta that is kept for private keys."""
        return delta_keys - self.deltas.towards(self._reads(parts))

    def delta_by_part(self) -> dict[str, Fraction]:
        """Return what private keys took of delta, for every part."""
        alone = dict(self.deltas.alone)
        return {part: self.deltas.everywhere + alone.get(part, Fraction(0)) for part in self.parts.values}

    def short(self, demands: Mapping[str, tuple[Loss, Fraction]], delta_keys: Fraction) -> tuple[str, ...]:
        """Return the parts that cannot bear the loss and the delta demanded of them."""
        rooms, deltas = self.losses.rooms(), self.deltas.towards_each(self.parts.values)
        return tuple(
            part
            for part, (loss, delta) in demands.items()
            if not loss <= rooms[part] or deltas[part] + delta > delta_keys
        )

    def _reads(self, parts: tuple[str, ...] | None) -> frozenset[str] | None:
        return None if parts is None or set(parts) == set(self.parts.values) else frozenset(parts)
