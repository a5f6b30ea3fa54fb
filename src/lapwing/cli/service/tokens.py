"""`lapwing token`: the tokens by which a service knows people."""

import os
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, final

import typer
from typer.core import TyperGroup

from lapwing.cli import options
from lapwing.cli.characters import to_json, visible
from lapwing.cli.console import Fitted, new_table, note, print_text, show, text
from lapwing.cli.service.places import PeopleStore, opened_people
from lapwing.documents.people_document import IssuedToken, Right, TokenDocument
from lapwing.documents.roles import RIGHTS_HELP
from lapwing.documents.short_ids import SHORTEST, id_meant, short_id
from lapwing.machine.drafts import draft_of, sync_folder


@final
class _WithEarlierName(TyperGroup):
    """The commands about tokens, of which `create` was called `make`."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return TyperGroup.get_command(self, ctx, {"make": "create"}.get(cmd_name, cmd_name))


app = typer.Typer(
    cls=_WithEarlierName,
    help="Create, list and revoke tokens.",
    epilog=options.examples("TOKEN=$(lapwing token create alice --days 30)", "lapwing token list alice"),
    rich_markup_mode=None,
)


class ScopeOption(StrEnum):
    """What a token may be used for."""

    read = "read"
    ask = "ask"
    audit = "audit"
    admin = "admin"


TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write the token to a file that only you can read.", show_default=False
    ),
]
Person = Annotated[
    str | None,
    typer.Argument(
        metavar="PERSON", help="The owner of the tokens; with --server, you unless given.", show_default=False
    ),
]


@app.callback()
def token() -> None:
    """Create, list and revoke tokens: at a server, or beside it in its store of people."""


@app.command(
    epilog=options.examples(
        "TOKEN=$(lapwing token create alice)", "lapwing token create alice --label notebook --days 7 --scope read"
    ),
    short_help="Create a token for somebody (for the curator).",
)
def create(
    person: Annotated[str, typer.Argument(metavar="PERSON", help="The owner of the token.", show_default=False)],
    label: Annotated[
        str,
        typer.Option("--label", metavar="TEXT", help="A name, such as the program that uses it.", show_default=False),
    ] = "",
    days: Annotated[
        float,
        typer.Option(
            "--days",
            metavar="DAYS",
            parser=options.quantity("--days", "0.001", 366),
            help="How many days the token is valid, at most 366.",
        ),
    ] = 30,
    scope: Annotated[
        list[ScopeOption] | None,
        typer.Option(
            "--scope",
            help="A right of the token; may be repeated. Without it: all rights of its owner's role except admin. "
            + RIGHTS_HELP,
            show_default=False,
        ),
    ] = None,
    output: TokenFile = None,
    people: PeopleStore = None,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
) -> None:
    """Create a token for somebody (for the curator). It is shown only once; standard output has nothing else."""
    with opened_people(people, catalog, server) as administration:
        issued = administration.make_token(person, label=label, scopes=scopes_of(scope), days=days)
    hand_over(issued, output)


@app.command("list", epilog=options.examples("lapwing token list alice"), short_help="List somebody's tokens.")
def show_tokens(
    person: Person = None,
    form: options.ReportFormat = options.ReportFormatName.table,
    people: PeopleStore = None,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
) -> None:
    """List somebody's tokens, the newest first. The secrets are not shown, because only their owners have them."""
    with opened_people(people, catalog, server) as administration:
        tokens = administration.tokens(person)
    if form is options.ReportFormatName.json:
        print_text(to_json({"tokens": tokens}))
        return
    table = new_table("id", "label", "may", "made", "until (UTC)", "state")
    ids = [token["id"] for token in tokens]
    for token in tokens:
        id_, scopes = short_id(token["id"], ids), ", ".join(token["scopes"])
        facts = (id_, token["label"], scopes, token["created"][:10], _minute(token))
        table.add_row(*map(text, (*facts, _state(token))))
    show(Fitted(table))


@app.command(epilog=options.examples("lapwing token revoke 3f9a2c41 alice"), short_help="Revoke a token.")
def revoke(
    id: Annotated[
        str,
        typer.Argument(metavar="ID", help="The id of the token, as `lapwing token list` shows it.", show_default=False),
    ],
    person: Person = None,
    people: PeopleStore = None,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
) -> None:
    """Revoke a token for ever."""
    with opened_people(people, catalog, server) as administration:
        tokens = {token["id"]: token for token in administration.tokens(person)}
        token = tokens[id_meant(id, list(tokens), "token", "lapwing token list")]
        administration.revoke(token["id"], person)
    print_text(f"The token {short_id(token['id'], tokens)} of {visible(token['person'])} is revoked.\n")


def scopes_of(options: list[ScopeOption] | None) -> list[Right] | None:
    """Return scopes, None if none were given."""
    return [option.value for option in options] if options else None


def hand_over(issued: IssuedToken, output: Path | None) -> None:
    """Write a token, alone on standard output, or to a file of one's own; and say beside it what it is."""
    if output is None:
        print_text(f"{visible(issued['token'])}\n")
    else:
        with draft_of([f"{issued['token']}\n"], output) as draft:
            os.replace(draft, output)
        sync_folder(output.absolute().parent)
        note("written", f"to {output}; to use it: export LAPWING_TOKEN=$(cat {output})")
    scopes, until = ", ".join(issued["scopes"]), _minute(issued)
    note("token", f"of {issued['person']}, id {issued['id'][:SHORTEST]}, for: {scopes}; until {until} UTC")
    note("", "Lapwing shows it only this once. Store it like a password.")


def _state(token: TokenDocument) -> str:
    if token["revoked"]:
        return "revoked"
    return "valid" if datetime.fromisoformat(token["expires"]) > datetime.now(UTC) else "expired"


def _minute(token: TokenDocument | IssuedToken) -> str:
    return token["expires"][:16].replace("T", " ")
