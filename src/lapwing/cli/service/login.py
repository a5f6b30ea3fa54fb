"""`lapwing login`: get a token for a name and a password."""

from typing import Annotated, Final

import typer

from lapwing.cli import options
from lapwing.cli.service import passwords
from lapwing.cli.service.tokens import ScopeOption, TokenFile, hand_over, scopes_of
from lapwing.documents.roles import RIGHTS_HELP
from lapwing.errors import InvalidParameter, SecondFactorNeeded

EXAMPLE: Final = "\n".join(
    [
        options.examples(
            "export LAPWING_TOKEN=$(lapwing login alice --server https://dp.example.org)",
            "lapwing login alice --output ~/.lapwing-token",
        ),
        "",
        passwords.SOURCES,
    ]
)


def command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Your name.", show_default=False)],
    hours: Annotated[
        float,
        typer.Option(
            "--hours",
            metavar="HOURS",
            parser=options.quantity("--hours", "0.01", 8784),
            help="How many hours the token is valid, at most 8784.",
        ),
    ] = 12,
    scope: Annotated[
        list[ScopeOption] | None,
        typer.Option(
            "--scope",
            help="A right of the token; may be repeated. Without it, the token has all rights of your role. "
            + RIGHTS_HELP,
            show_default=False,
        ),
    ] = None,
    output: TokenFile = None,
    server: Annotated[
        str | None,
        typer.Option(
            "--server", envvar="LAPWING_SERVER", metavar="URL", help="The server to log in to.", show_default=False
        ),
    ] = None,
) -> None:
    """Get a token for your name and password, for LAPWING_TOKEN. Standard output has nothing else."""
    if server is None:
        raise InvalidParameter(
            "Give the server to log in to by --server or LAPWING_SERVER. On the machine of the service, "
            "`lapwing token create` creates a token without a password."
        )
    from lapwing.client.administration import login  # here, so that `lapwing --help` loads no engine

    password, scopes = passwords.current(name), scopes_of(scope)
    try:
        issued = login(server, name, password, scopes, hours)
    except SecondFactorNeeded:
        issued = login(server, name, password, scopes, hours, passwords.code(name))
    hand_over(issued, output)
