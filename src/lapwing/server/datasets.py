"""The data sets that a service serves, and who may see which."""

import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, final

from lapwing import catalog_changes
from lapwing.catalog.ledger import place_of
from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.errors import InvalidParameter, LapwingError
from lapwing.ledger.allowances import Limits, Remaining
from lapwing.release.request import Timing
from lapwing.server.catalog_versions import CatalogVersions
from lapwing.server.deadline.pace import Pace
from lapwing.server.log import log
from lapwing.server.people import Caller, missing
from lapwing.server.policies import Policies
from lapwing.session import Session

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
RETIRED: Final = 3600.0
"""Seconds after which nobody asks any more by a catalog that another one has taken the place of."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ServedDataset:
    """A data set with the session that holds it.

    Args:
        number: Of the catalog (`server.catalog_versions`), 0 if it was never changed while it was served.
    """

    name: str
    session: Session
    number: int = 0

    @property
    def ledger(self) -> str:
        """A name of the ledger: data sets with the same ledger have the same name."""
        return ledger_of(self.session.catalog)

    def trusts_with_time(self, caller: Caller, policies: Policies) -> bool:
        """Tell whether somebody may see how long an answer takes."""
        return caller.at(self.name).role == "curator" or policies.trusts_with_time(self.name, caller.name)

    def for_caller(
        self,
        caller: Caller,
        policies: Policies,
        pace: Pace | None = None,
        *,
        timed: bool = False,
        trusted: bool | None = None,
        decided: Callable[[Remaining], None] | None = None,
    ) -> Session:
        """Return a session on behalf of somebody, within what the policy allows at the time of each charge.

        Args:
            pace: At which somebody is asked for who is not trusted with time, where that is kept to.
            timed: Whether it would be kept to where something is charged, so that a price knows of charges that late
                answers refuse.
            trusted: The result of `trusts_with_time`, if the caller has it.
            decided: As `Limits` has it.
        """

        def limits() -> Limits:
            return replace(policies.limits(self.name, caller.name, self.session.price), decided=decided)

        if pace is not None:
            return self.session.acting_for(caller.name, pace.limited(limits), timing=pace.timing(self.session.catalog))
        trusted = self.trusts_with_time(caller, policies) if trusted is None else trusted

        def previewed() -> Limits:
            return replace(limits(), timed=True)

        kept_to = previewed if timed and not trusted else limits
        return self.session.acting_for(caller.name, kept_to, timing=Timing(trusted=trusted))

    def settle(self) -> None:
        """Wait until every charge that was decided by an earlier policy is written down.

        A charge reads the policy and is written down while it holds the ledger. So once somebody else has held the
        ledger after a policy was changed, every charge that is still to come is decided by the new one.
        """
        self.session.await_charges()

    def for_nothing(self, person: str) -> Session:
        """Return a session to which nothing can be charged: what was bought before is free."""
        nothing = self.session.price(Fraction(1)).nothing()
        return self.session.acting_for(person, lambda: Limits(most=nothing))


NewSessions = Callable[[Sequence[Catalog]], Iterable[Session]]
"""Opens the registered data sets that are not among those served."""


def no_new_sessions(_served: Sequence[Catalog]) -> tuple[Session, ...]:
    """Register nothing while the service runs."""
    return ()


@final
class Datasets:
    """The data sets of a service.

    Args:
        new_sessions: Finds data sets that another process registered in the meantime.
        versions: By which it is seen that another process changed a catalog.
    """

    def __init__(
        self,
        sessions: Sequence[Session],
        policies: Policies,
        new_sessions: NewSessions = no_new_sessions,
        versions: CatalogVersions | None = None,
    ) -> None:
        self._policies, self._new_sessions, self._versions = policies, new_sessions, versions
        self._served: dict[str, ServedDataset] = {}
        self._failed: dict[str, int] = {}
        self._retired: list[tuple[float, Session]] = []
        self.changing = threading.RLock()
        """Held while a data set is added, from its registration until it is served, and while its catalog changes."""
        for session in sessions:
            self.add(session)
        self.look()

    def add(self, session: Session) -> ServedDataset:
        """Serve one more data set, from now on.

        Raises:
            InvalidParameter: If its name or its ledger is taken, or no part of an address.
        """
        with self.changing:
            name = session.catalog.name
            require_servable(name)
            self.require_new(session.catalog)
            served = ServedDataset(name=name, session=session, number=self._number_of(session.catalog))
            self._served = {**self._served, name: served}  # a new one: others are reading the old one
            return served

    def current(self, served: ServedDataset) -> ServedDataset:
        """Return a data set as it is served now."""
        with self.changing:
            self._take_up(self._served[served.name])
            return self._served[served.name]

    def replace(self, served: ServedDataset, session: Session, number: int) -> None:
        """Serve a data set by another catalog, from now on; what is under way is answered by the one before."""
        with self.changing:
            self._served = {**self._served, served.name: replace(served, session=session, number=number)}
            self._retired.append((time.monotonic() + RETIRED, served.session))

    def require_new(self, catalog: Catalog) -> None:
        """Refuse a data set whose name or ledger is that of one that is served.

        Raises:
            InvalidParameter: If a value is not allowed.
        """
        for served in self.everything():
            if served.name.casefold() == catalog.name.casefold():
                raise InvalidParameter(
                    f"Two data sets have the name {catalog.name}; change dataset.name in one catalog."
                )
            if served.ledger == ledger_of(catalog):
                raise InvalidParameter(
                    f"The data set {catalog.name} shares its ledger with another data set of the service, but budget "
                    f"shares are for one data set. Put the tables into one catalog."
                )

    def everything(self) -> tuple[ServedDataset, ...]:
        """Return all data sets that this process serves."""
        return tuple(self._served.values())

    def visible(self, caller: Caller, name: str) -> ServedDataset:
        """Return a data set that somebody may see; it may have to be opened first.

        Raises:
            NotFound: The same for one that is hidden and one that is not there.
        """
        served = self.known(caller, name)
        if served is None:
            self.look()  # whether it is hidden or not there, so that both take the same time
            served = self.known(caller, name)
        if served is None:
            raise missing("data set")
        return served

    def known(self, caller: Caller, name: str) -> ServedDataset | None:
        """Return a data set that somebody may see and that is served already; wait for none that is being opened."""
        served = self._served.get(name)
        if served is None or not self.sees(caller, name) or self._is_behind(served):
            return None
        return served

    def all_visible(self, caller: Caller) -> list[ServedDataset]:
        """Return all data sets that somebody may see: those with a grant, and of auditors and curators all."""
        self.look()
        return [served for served in self.everything() if self.sees(caller, served.name)]

    def session_of(self, name: str) -> Session:
        """Return the session of a data set that is served."""
        return self._served[name].session

    def close(self) -> None:
        """Close all sessions."""
        for _, session in self._retired:
            catalog_changes.let_go(session)
        for served in self.everything():
            served.session.close()

    def sees(self, caller: Caller, name: str) -> bool:
        """Tell whether somebody may know that a data set is there."""
        return caller.at(name).role in ("auditor", "curator") or self._policies.sees(name, caller.name)

    def look(self) -> None:
        """Serve what another process has registered or changed; the log names what could not be opened."""
        with self.changing:
            for served in self.everything():
                self._take_up(served)
            while self._retired and self._retired[0][0] < time.monotonic():
                catalog_changes.let_go(self._retired.pop(0)[1])
            for session in self._new_sessions([served.session.catalog for served in self.everything()]):
                try:
                    self.add(session)
                except LapwingError as error:
                    session.close()
                    log("not served", dataset=session.catalog.name, code=error.code)

    def _is_behind(self, served: ServedDataset) -> bool:
        """Tell whether another process has changed the catalog, and it was not tried yet to take that up."""
        if self._versions is None:
            return False
        newest = self._versions.newest_number(served.name)
        return newest > served.number and self._failed.get(served.name) != newest

    def _take_up(self, served: ServedDataset) -> None:
        """Serve a data set by the catalog that another process of the service has put into force, if one has.

        Where it cannot be opened, the one before is served: that is sound as it was, and the log says so.
        """
        newest = self._versions.newest(served.name) if self._versions is not None and self._is_behind(served) else None
        if newest is None:
            return
        before = served.session.catalog
        try:
            catalog = loads(newest.content, file=f"catalog {newest.number}", folder=before.folder)
            catalog = catalog_changes.with_budget_of(replace(catalog, file=before.file), served.session)
            session, _ = catalog_changes.opened_by(served.session, catalog, read=False)
        except LapwingError as error:
            self._failed[served.name] = newest.number
            log("catalog not taken up", dataset=served.name, number=newest.number, code=error.code)
            return
        self.replace(served, session, newest.number)
        log("catalog taken up", dataset=served.name, number=newest.number)

    def _number_of(self, catalog: Catalog) -> int:
        """Return the number of the catalog that a session was just opened by: a start takes what is in the file.

        If another process changed it after the file was read, it is the number of the one before.
        """
        newest = self._versions.newest(catalog.name) if self._versions is not None else None
        if newest is None or catalog.file is None:
            return 0 if newest is None else newest.number
        try:
            if catalog.file.read_bytes() != newest.content.encode():
                return newest.number  # the operator's own
            now = loads(newest.content, file=catalog.file.name, folder=catalog.folder)
        except (OSError, LapwingError):
            return newest.number
        return newest.number if replace(now, budget=catalog.budget) == catalog else newest.number - 1


def require_servable(name: str) -> None:
    """Refuse a name that cannot be a part of addresses.

    Raises:
        InvalidParameter: If a value is not allowed.
    """
    if not NAME.fullmatch(name):
        raise InvalidParameter(
            f"The name {name!r} of a data set cannot be part of an address. Use letters, digits and _ . - for "
            f"dataset.name in its catalog."
        )


def ledger_of(catalog: Catalog) -> str:
    """Return a name of the ledger: catalogs with the same ledger have the same name."""
    place = place_of(catalog.ledger)
    if place.store != "sqlite":
        return f"{place.address} {place.ledger}"
    return str(catalog.ledger_path.resolve())
