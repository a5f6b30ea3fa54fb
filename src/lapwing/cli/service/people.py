"""`lapwing people`: who may use a service. For the curator."""

from fractions import Fraction
from typing import Annotated

import typer

from lapwing.cli import options
from lapwing.cli.characters import to_json, visible
from lapwing.cli.console import Fitted, new_table, note, print_text, show, text
from lapwing.cli.service import passwords
from lapwing.cli.service.grant import share_of_budget
from lapwing.cli.service.places import PeopleStore, opened_people
from lapwing.documents.people_document import PersonChange, PersonDocument, Role
from lapwing.documents.roles import ROLES_HELP
from lapwing.errors import InvalidParameter

app = typer.Typer(
    help="Add people to a service and set their roles (for the curator).",
    epilog=options.examples("lapwing people add alice --team nurses", "lapwing people list"),
    rich_markup_mode=None,
)


Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of a person.", show_default=False)]


@app.callback()
def people() -> None:
    """Look after who may use a service: at a server, or beside it in its store of people (for the curator)."""


@app.command("list", epilog=options.examples("lapwing people list"), short_help="List everybody.")
def show_people(
    form: options.ReportFormat = options.ReportFormatName.table,
    people: PeopleStore = None,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
) -> None:
    """List everybody, by name."""
    with opened_people(people, catalog, server) as administration:
        everybody = administration.everybody()
    if form is options.ReportFormatName.json:
        print_text(to_json({"people": everybody}))
        return
    table = new_table("name", "role", "team", "since", "second factor", "state")
    for person in everybody:
        since, state = person["created"][:10], "active" if person["active"] else "disabled"
        second = "on" if person.get("second_factor") else ""  # a server that is older has none
        table.add_row(*map(text, (person["name"], person["role"], person["team"] or "", since, second, state)))
    show(Fitted(table))


@app.command(
    epilog=options.examples("lapwing people add alice --team nurses", "lapwing people add audrey --role auditor"),
    short_help="Add somebody.",
)
def add(
    name: Name,
    role: Annotated[Role, typer.Option("--role", help=f"Their role. {ROLES_HELP}")] = "analyst",
    team: Annotated[str | None, typer.Option("--team", metavar="TEAM", help="Their team.", show_default=False)] = None,
    password: Annotated[
        bool, typer.Option("--password", help="Ask for a password for the console. Programs use tokens instead.")
    ] = False,
    people: PeopleStore = None,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
) -> None:
    """Add a person. The name stays theirs for ever, because the ledger has it."""
    with opened_people(people, catalog, server) as administration:
        chosen = passwords.new(name) if password else None
        person = administration.add(name, role, password=chosen, team=team)
    _say(person, "is")
    granted = [f"`lapwing grant {name}` lets {name} query a data set"] if role == "analyst" else []
    token = f"`lapwing token create {name}` creates a token, for this command and for programs"
    console = f"`lapwing people invite {name}` creates an invite, by which {name} sets a password for the console"
    entered = [] if password else [token, console]
    if granted or entered:
        note("next", "; ".join([*granted, *entered]))


@app.command(
    epilog=options.examples("lapwing people invite alice", "lapwing people invite bob --dataset visits --share 1/5"),
    short_help="Create a link by which somebody sets a first password.",
)
def invite(
    name: Name,
    role: Annotated[
        Role | None, typer.Option("--role", help=f"The role of a new person. {ROLES_HELP}", show_default="analyst")
    ] = None,
    team: Annotated[
        str | None, typer.Option("--team", metavar="TEAM", help="The team of a new person.", show_default=False)
    ] = None,
    share: Annotated[
        Fraction | None,
        options.amount(share_of_budget, "With --dataset: the part of the budget that a new person may spend."),
    ] = None,
    days: Annotated[
        float,
        typer.Option(
            "--days",
            metavar="DAYS",
            parser=options.quantity("--days", "0.001", 30),
            help="How many days the link works, at most 30.",
        ),
    ] = 7,
    people: PeopleStore = None,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
    dataset: options.Dataset = None,
) -> None:
    """Make an invite, and add the person if nobody has the name. It works once. Standard output has only the invite.

    With --server, the invite is a link to the console. --dataset lets a new person query that data set. Without
    --server, it is the part of the link after `#`. The person opens /console/invite of the service and enters it.
    """
    with opened_people(people, catalog, server) as administration:
        if name not in (person["name"] for person in administration.everybody()):
            administration.add(name, role or "analyst", password=None, team=team, dataset=dataset, share=share)
        elif (role, team, dataset, share) != (None,) * 4:
            raise InvalidParameter(
                f"{visible(name)} is there already. Leave out --role, --team, --dataset and --share."
            )
        made = administration.invite(name, days)
    print_text(f"{'' if server is None else server.rstrip('/') + '/console/invite#'}{made['token']}\n")
    enter = "" if server is not None else "; the person enters it on the page /console/invite of the service"
    until = f"{made['expires'][:16].replace('T', ' ')} UTC"
    note("next", f"send this to {visible(name)} only{enter}; it works once, until {until}")


@app.command(epilog=options.examples("lapwing people role alice auditor"), short_help="Change the role of a person.")
def role(
    name: Name,
    role: Annotated[Role, typer.Argument(help=f"The new role. {ROLES_HELP}", show_default=False)],
    people: PeopleStore = None,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
) -> None:
    """Change somebody's role. Their tokens lose at once the rights that the new role does not have."""
    with opened_people(people, catalog, server) as administration:
        _say(administration.change(name, {"role": role}), "is now")


@app.command(
    epilog=options.examples("lapwing people team alice nurses", "lapwing people team alice --leave"),
    short_help="Change somebody's team.",
)
def team(
    name: Name,
    team: Annotated[str | None, typer.Argument(metavar="TEAM", help="The new team.", show_default=False)] = None,
    leave: Annotated[bool, typer.Option("--leave", help="Leave the team.")] = False,
    people: PeopleStore = None,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
) -> None:
    """Put somebody into a team, or into none. What they were charged still counts for the teams that they were in."""
    if (team is None) != leave:
        raise InvalidParameter("Give the name of a team, or --leave for none.")
    change: PersonChange = {"leave_team": True} if team is None else {"team": team}
    with opened_people(people, catalog, server) as administration:
        _say(administration.change(name, change), "is now")


@app.command(
    epilog="\n".join([options.examples("lapwing people password alice"), "", passwords.SOURCES]),
    short_help="Set a password; without a name, your own.",
)
def password(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="The name of a person; with --server, yourself unless given.", show_default=False
        ),
    ] = None,
    people: PeopleStore = None,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
) -> None:
    """Set somebody's password, or change your own at a server. This revokes all tokens of the person."""
    with opened_people(people, catalog, server) as administration:
        if name is not None:
            administration.change(name, {"password": passwords.new(name)})
            print_text(f"The password of {visible(name)} is set. All tokens of {visible(name)} are revoked.\n")
            return
        if server is None:
            raise InvalidParameter("Name a person; your own password is changed at a server, by --server.")
        administration.change_own_password(passwords.current("yours"), passwords.new("yourself"))
    print_text("Your password is changed. All of your tokens are revoked; `lapwing login` gives a new one.\n")


@app.command(epilog=options.examples("lapwing people disable alice"), short_help="Disable somebody's account.")
def disable(
    name: Name,
    people: PeopleStore = None,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
) -> None:
    """Disable somebody's account, and revoke all of their tokens. Accounts stay, because the ledger has their names."""
    with opened_people(people, catalog, server) as administration:
        administration.change(name, {"active": False})
    print_text(f"{visible(name)} is disabled, and every token of {visible(name)} is revoked.\n")


@app.command(epilog=options.examples("lapwing people enable alice"), short_help="Enable somebody's account again.")
def enable(
    name: Name,
    people: PeopleStore = None,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
) -> None:
    """Enable a disabled account. Grants and password stay as they were. The person needs new tokens."""
    with opened_people(people, catalog, server) as administration:
        administration.change(name, {"active": True})
    print_text(f"{visible(name)} is enabled. The old tokens stay revoked.\n")


@app.command(
    "remove-second-factor",
    epilog=options.examples("lapwing people remove-second-factor alice"),
    short_help="Switch somebody's second factor off.",
)
def remove_second_factor(
    name: Name,
    people: PeopleStore = None,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
) -> None:
    """Switch off the second factor of somebody who lost app and recovery codes. The password is then enough.

    Check by other means that the request is from them.
    """
    with opened_people(people, catalog, server) as administration:
        administration.remove_second_factor(name)
    print_text(
        f"The second factor of {visible(name)} is off. Ask {visible(name)} to switch on another one in the console.\n"
    )


def _say(person: PersonDocument, verb: str) -> None:
    """Say what somebody is."""
    article = "a" if person["role"] == "curator" else "an"
    team = f", in the team {person['team']}" if person["team"] else ""
    print_text(f"{visible(person['name'])} {verb} {article} {person['role']}{visible(team)}.\n")
