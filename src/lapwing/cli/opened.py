"""The session that a command asks: on a catalog, or on a server's data set."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

import lapwing as lw
from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.client import RemoteSession
    from lapwing.session import Session

TOKEN: Final = "LAPWING_TOKEN"  # noqa: S105 - the name of a variable

Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        envvar="LAPWING_SERVER",
        metavar="URL",
        help=f"Ask a server instead; its token is read from {TOKEN}.",
        show_default=False,
    ),
]
Dataset = Annotated[
    str | None,
    typer.Option("--dataset", metavar="NAME", help="With --server: which data set.", show_default=False),
]


def opened(catalog: Path, server: str | None, dataset: str | None) -> "Session | RemoteSession":
    """Open the session that is meant."""
    if server is None:
        if dataset is not None:
            raise InvalidParameter("--dataset goes with --server; a catalog has one data set.")
        return lw.connect(catalog)
    token = os.environ.get(TOKEN)
    if not token:
        raise InvalidParameter(f"A server needs a token; put it into the environment variable {TOKEN}.")
    return lw.connect(server, token=token, dataset=dataset)


def name_of(session: "Session | RemoteSession") -> str:
    """Return the name of the data set."""
    return session.catalog.name if isinstance(session, lw.Session) else session.dataset


def neighbouring_of(session: "Session | RemoteSession") -> str:
    """Return the relation that the budget is for."""
    if isinstance(session, lw.Session):
        return session.catalog.budget.neighbouring
    return str(session.schema["budget"]["neighbouring"])
