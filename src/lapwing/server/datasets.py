"""The data sets that a service serves, and who may see which."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from lapwing.catalog.facts import Facts, column_facts
from lapwing.catalog.model import Catalog
from lapwing.errors import InvalidParameter
from lapwing.ledger.allowances import Limits
from lapwing.privacy.amounts import written
from lapwing.server.people import missing
from lapwing.server.policies import Policies
from lapwing.server.rights import Caller
from lapwing.session import Session

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A data set with the session that holds it."""

    name: str
    session: Session

    def for_caller(self, caller: Caller, policies: Policies) -> Session:
        """Return a session on behalf of somebody, within what the policy allows at the time of each charge."""

        def limits() -> Limits:
            return policies.limits(self.name, caller.name, self.session.price)

        return self.session.acting_for(caller.name, limits)

    def settle(self) -> None:
        """Wait until every charge that was decided by an earlier policy is written down.

        A charge reads the policy and is written down while it holds the ledger. So once somebody else has held the
        ledger after a policy was changed, every charge that is still to come is decided by the new one.
        """
        self.session.budget()

    def for_nothing(self, person: str) -> Session:
        """Return a session to which nothing can be charged: what was bought before is free."""
        nothing = self.session.price(Fraction(1)).nothing()
        return self.session.acting_for(person, lambda: Limits(most=nothing))


@final
class Datasets:
    """The data sets of a service."""

    def __init__(self, sessions: Sequence[Session], policies: Policies) -> None:
        self._policies = policies
        self._served: dict[str, Served] = {}
        ledgers: set[str] = set()
        for session in sessions:
            name = session.catalog.name
            if not NAME.fullmatch(name):
                raise InvalidParameter(
                    f"The data set {name!r} cannot be served by its name, which is to be a part of addresses: letters, "
                    "digits and _ . -. Change dataset.name in its catalog."
                )
            if name.casefold() in (other.casefold() for other in self._served):
                raise InvalidParameter(f"Two data sets have the name {name}; change dataset.name in one catalog.")
            ledger = str(session.catalog.ledger_path.resolve())
            if ledger in ledgers:
                raise InvalidParameter(
                    f"The data set {name} shares its ledger with another that is served, and shares of the budget are "
                    "given by data set. Put the tables into one catalog."
                )
            ledgers.add(ledger)
            self._served[name] = Served(name=name, session=session)

    def visible(self, caller: Caller, name: str) -> Served:
        """Return a data set that somebody may see.

        Raises: NotFound, the same for one that is hidden and one that is not there.
        """
        found = next((served for served in self.all_visible(caller) if served.name == name), None)
        if found is None:
            raise missing("data set")
        return found

    def all_visible(self, caller: Caller) -> list[Served]:
        """Return all data sets that somebody may see: those with a grant, and to auditors and curators all."""
        everything = caller.role in ("auditor", "curator")
        return [served for name, served in self._served.items() if self._policies.sees(name, caller.name) or everything]

    def close(self) -> None:
        """Close all sessions."""
        for served in self._served.values():
            served.session.close()


def schema_document(name: str, catalog: Catalog) -> dict[str, object]:
    """Return what is public about a data set: tables, columns with bounds and values, views, unit and budget."""
    budget = catalog.budget
    return {
        "name": name,
        "budget": {
            "epsilon": written(budget.epsilon),
            "delta": written(budget.delta),
            "delta_keys": written(budget.delta_keys),
            "measure": budget.measure,
            "neighbouring": budget.neighbouring,
        },
        "tables": [
            {
                "name": table.name,
                "protected": True,
                "privacy_unit": table.root.privacy_unit,
                "max_rows_per_unit": table.max_rows_per_unit,
                "part": table.part,
                "columns": {column.name: column_facts(column) for column in table.columns},
            }
            for table in catalog.tables
        ]
        + [_public_table(table.name, table.facts) for table in catalog.public_tables],
        "views": {view.name: view.sql for view in catalog.views},
    }


def _public_table(name: str, facts: Mapping[str, object] | Facts) -> dict[str, object]:
    return {"name": name, "protected": False, **facts}
