"""`lapwing grant`: who may ask about a data set of a service. For the curator."""

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.text import Text

from lapwing.cli import figures, options
from lapwing.cli.characters import to_json, visible
from lapwing.cli.console import Fitted, new_table, print_text, show, text
from lapwing.cli.service.places import PeopleStore, opened_access
from lapwing.errors import InvalidParameter
from lapwing.privacy.amounts import read

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lapwing.documents.people_document import Grants

EXAMPLE: Final = options.examples("lapwing grant", "lapwing grant alice --share 1/5", "lapwing grant alice --withdraw")
share_of_budget: Final = options.reader(
    "--share", "from 0 to 1, a part of the budget", lambda share: 0 <= share <= 1, percent=True
)


def command(
    person: Annotated[
        str | None,
        typer.Argument(
            metavar="PERSON", help="The person who may query; without it, the command lists all.", show_default=False
        ),
    ] = None,
    share: Annotated[
        Fraction | None,
        options.amount(
            share_of_budget,
            "The part of the budget that they may spend, like 1/5 or 20%; without it, they have no limit of their own.",
        ),
    ] = None,
    trusted_with_time: Annotated[
        bool,
        typer.Option(
            "--trusted-with-time", help="They may see how long a query takes, which can reveal single people."
        ),
    ] = False,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Let them run no more queries.")] = False,
    form: options.ReportFormat = options.ReportFormatName.table,
    people: PeopleStore = None,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
    dataset: options.Dataset = None,
) -> None:
    """Let people query a data set, and set how much of its budget they may spend (for the curator).

    A new grant replaces the whole grant that the person had before.
    """
    if person is None and (share is not None or trusted_with_time or withdraw):
        raise InvalidParameter("Name the person, as in `lapwing grant alice`.")
    if withdraw and (share is not None or trusted_with_time):
        raise InvalidParameter("--withdraw ends the grant: leave out --share and --trusted-with-time.")
    with opened_access(people, catalog, server, dataset) as access:
        name = visible(access.dataset)
        if person is None:
            _list(access.grants(), name, form)
        elif withdraw:
            access.withdraw(person)
            print_text(f"{visible(person)} may no longer query {name}. Earlier charges stay.\n")
        else:
            access.grant(person, share, trusted_with_time=trusted_with_time)
            part = "" if share is None else f" for at most {figures.share(float(share))} of its budget"
            trust = ", and is trusted with time" if trusted_with_time else ""
            print_text(f"{visible(person)} may query {name}{part}{trust}.\n")


def _list(grants: "Grants", dataset: str, form: options.ReportFormatName) -> None:
    if form is options.ReportFormatName.json:
        print_text(to_json(grants))
        return
    table = new_table("person", "limit", "trusted with time", numbers=["limit"])
    for person, share in grants["people"].items():
        trusted = "yes" if person in grants["trusted_with_time"] else ""
        table.add_row(text(person), text(_part(share)), text(trusted))
    page: list[RenderableType] = [text(f"People who may query {dataset}, besides curators:"), Text(), Fitted(table)]
    if not grants["people"]:
        page = [text(f"Only curators may query {dataset}. To let a person query it, run `lapwing grant PERSON`.")]
    show(*page, *teams_of(grants))


def _part(share: str | None) -> str:
    return "no limit" if share is None else figures.share(float(read(share, "share")))


def teams_of(grants: "Grants") -> "list[RenderableType]":
    """Return the shares of teams as a table, if there are any."""
    if not grants["teams"]:
        return []
    table = new_table("team", "limit", numbers=["limit"])
    for team, share in grants["teams"].items():
        table.add_row(text(team), text(_part(share)))
    return [Text(), Fitted(table)]
