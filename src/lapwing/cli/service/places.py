"""Where commands of the service work: at a server, for a curator with a token; or in the store of people itself.

Both do the same. The routes of the service and the second way call the same functions (`server.people`,
`server.access`). These write the same lines into the audit log. A service that runs looks at its store at every
request, so what is done beside it holds at once. Who can read and write the store is trusted: the log calls them by
their name on this machine and `(command line)`, which no person of the service can be called.
"""

import os
import pwd
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Protocol

import typer

import lapwing as lw
from lapwing.cli import options
from lapwing.documents.people_document import (
    DefaultCostDocument,
    Division,
    Grants,
    InviteDocument,
    IssuedToken,
    PersonChange,
    PersonDocument,
    PolicyDocument,
    Right,
    Role,
    TokenDocument,
)
from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.server.store import ServiceStore

PeopleStore = Annotated[
    str | None,
    typer.Option(
        "--people",
        metavar="FILE | ADDRESS",
        help="The store of people, as for `lapwing serve`. Default: next to the catalog's ledger.",
        show_default=False,
    ),
]
ACTOR: Final = "{} (command line)"


class PeopleAdministration(Protocol):
    """What is done with people and their tokens; the two last also for oneself, where one is logged in."""

    def everybody(self) -> list[PersonDocument]:
        """Return everybody, by name."""

    def add(
        self,
        name: str,
        role: Role,
        *,
        password: str | None,
        team: str | None,
        dataset: str | None = None,
        share: Fraction | None = None,
    ) -> PersonDocument:
        """Add somebody, with a grant if there is a data set."""

    def invite(self, name: str, days: float) -> InviteDocument:
        """Make an invite for somebody without a password."""

    def change(self, name: str, changes: PersonChange) -> PersonDocument:
        """Change something about somebody."""

    def remove_second_factor(self, name: str) -> None:
        """Switch somebody's second factor off."""

    def change_own_password(self, password: str, new: str) -> None:
        """Change one's own password."""

    def make_token(self, person: str, *, label: str, scopes: Collection[Right] | None, days: float) -> IssuedToken:
        """Make a token for somebody."""

    def tokens(self, person: str | None) -> list[TokenDocument]:
        """Return somebody's tokens, or one's own, the newest first."""

    def revoke(self, token: str, person: str | None) -> None:
        """End a token of somebody, or of one's own."""

    def audit_lines(self) -> list[str]:
        """Return the lines of the audit log, each a JSON document."""


class AccessAdministration(Protocol):
    """What is said of one data set: who may ask, shares, the policy."""

    @property
    def dataset(self) -> str:
        """The name of the data set."""

    def grants(self) -> Grants:
        """Return who may ask, and the shares of people and teams."""

    def grant(self, person: str, share: Fraction | None, *, trusted_with_time: bool) -> None:
        """Let somebody ask, with a share of the budget or without one of their own."""

    def withdraw(self, person: str) -> None:
        """Let somebody ask no more."""

    def give_team(self, team: str, share: Fraction | None) -> None:
        """Give a team a share of the budget, or with None take it away."""

    def policy(self) -> PolicyDocument:
        """Return how the budget is shared out."""

    def set_policy(
        self, division: Division, most_epsilon: Fraction | None, least_share: Fraction | None
    ) -> PolicyDocument:
        """Say how the budget is shared out, and the most and the least that one question costs."""

    def default_costs(self) -> dict[str, DefaultCostDocument]:
        """Return what queries cost that name no cost, by person."""

    def set_default_cost(
        self, person: str, epsilon: Fraction | None, daily_share: Fraction | None
    ) -> DefaultCostDocument:
        """Set what a query of somebody costs that names no cost, or with None let it be refused."""

    def stop(self, *, stopped: bool, reason: str | None = None) -> PolicyDocument:
        """Stop the data set, or let it go on."""


@contextmanager
def opened_people(people: str | None, catalog: Path, server: str | None) -> Iterator[PeopleAdministration]:
    """Open the people of a server, or of a store."""
    with _text_alone(), _people(people, catalog, server) as administration:
        yield administration


@contextmanager
def opened_access(
    people: str | None, catalog: Path, server: str | None, dataset: str | None
) -> Iterator[AccessAdministration]:
    """Open what is said of a data set: of a server, or of the one that a catalog describes, in a store."""
    with _text_alone(), _access(people, catalog, server, dataset) as administration:
        yield administration


@contextmanager
def _people(people: str | None, catalog: Path, server: str | None) -> Iterator[PeopleAdministration]:
    if server is not None:
        from lapwing.client.administration import RemoteDirectory  # here, so that `lapwing --help` loads no engine
        from lapwing.client.transport import ServerConnection

        _require_no_store(people)
        yield RemoteDirectory(ServerConnection(server, options.token_for_server()))
        return
    with opened_store(people, catalog) as (store, _):
        with _extra_needed():
            from lapwing.server.directory import Directory

        _require_begun(store)
        yield Directory(store, by=_actor())


@contextmanager
def _access(
    people: str | None, catalog: Path, server: str | None, dataset: str | None
) -> Iterator[AccessAdministration]:
    if server is not None:
        from lapwing.client.administration import RemoteAccess  # here, so that `lapwing --help` loads no engine
        from lapwing.client.transport import ServerConnection

        _require_no_store(people)
        yield RemoteAccess(ServerConnection(server, options.token_for_server()), dataset)
        return
    if dataset is not None:
        raise InvalidParameter("--dataset goes with --server; a catalog has one data set.")
    with opened_store(people, catalog) as (store, _), lw.connect(catalog) as session:
        with _extra_needed():
            from lapwing.server.access import DatasetAccess
            from lapwing.server.datasets import ServedDataset
            from lapwing.server.default_costs import DefaultCosts
            from lapwing.server.policies import Policies

        _require_begun(store)
        served = ServedDataset(name=session.catalog.name, session=session)
        yield DatasetAccess(served, Policies(store), DefaultCosts(store), by=_actor())


@contextmanager
def opened_store(people: str | None, catalog: Path) -> Iterator[tuple["ServiceStore", Path]]:
    """Open the store of a service, which must be there; with the path beside which the mark of its audit log lies."""
    from lapwing.catalog.ledger import POSTGRES  # here, so that `lapwing --help` loads no engine
    from lapwing.catalog.toml import load
    from lapwing.server.audit_mark import base_of
    from lapwing.server.store_places import open_store, people_of

    in_database = people is not None and people.startswith(POSTGRES)
    described = load(catalog) if people is None or in_database else None
    place = people if people is not None else people_of(described) if described is not None else ""
    if not place.startswith(POSTGRES) and not Path(place).is_file():
        raise InvalidParameter(
            f"There is no store of people {place} yet; the first start of `lapwing serve` creates it. Name it by "
            f"--people, "
            "or a server by --server."
        )
    if not place.startswith(POSTGRES):
        _require_same_user(Path(place))
    store = open_store(place)
    try:
        yield store, base_of(place, Path() if described is None else described.folder)
    finally:
        store.close()


@contextmanager
def _extra_needed() -> Iterator[None]:
    """Say which extra is missing, if an import fails."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise InvalidParameter(
            f"The people of a service need {missing.name}, which is not installed. Run `pip install "
            "'lapwing-dp[server]'`, or name a server by --server."
        ) from None


@contextmanager
def _text_alone() -> Iterator[None]:
    """Refuse bytes of the command line that are no text."""
    try:
        yield
    except UnicodeEncodeError:
        raise InvalidParameter("The input is not UTF-8 text. Type it again.") from None


def _require_same_user(path: Path) -> None:
    """Refuse root at a store of somebody else: locks and marks that root makes, the service could not open."""
    owner = path.stat().st_uid
    if os.geteuid() == 0 and owner != 0:
        raise InvalidParameter(
            f"{path.name} belongs to the user {owner}, and root would leave files next to it that the service cannot "
            f"open. Run this as that user: `sudo -u '#{owner}' lapwing …`."
        )


def _require_no_store(people: str | None) -> None:
    if people is not None:
        raise InvalidParameter("--people is a store on this machine; give it without --server and LAPWING_SERVER.")


def _require_begun(store: "ServiceStore") -> None:
    """Refuse a store that no service has begun, so that a wrong address is noticed."""
    from lapwing.server.people import People

    if not People(store).has_curator():
        raise InvalidParameter(f"{store.name} has no curator yet; the first start of `lapwing serve` creates one.")


def _actor() -> str:
    """Return who the operating system says this is, whatever the environment says."""
    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        name = str(os.geteuid())
    return ACTOR.format(name)
