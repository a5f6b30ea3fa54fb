"""`lapwing requests`: ask for access or a larger limit at a service, and as a curator decide."""

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from lapwing.cli import figures, options
from lapwing.cli.characters import to_json, visible
from lapwing.cli.console import Fitted, new_table, print_text, show, text
from lapwing.cli.service.grant import share_of_budget
from lapwing.documents.short_ids import SHORTEST, short_id
from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.client.administration import RemoteRequests
    from lapwing.documents.access_request_document import AccessRequestDocument

app = typer.Typer(
    help="Ask for access or a larger limit, and decide requests.",
    epilog=options.examples(
        "lapwing requests list", "lapwing requests ask visits --reason 'For the report on wards.' --share 20%"
    ),
    rich_markup_mode=None,
)
Id = Annotated[str, typer.Argument(metavar="ID", help="The id of a request, as `list` shows it.", show_default=False)]
WHAT = {"access": "access", "budget": "a larger limit"}


@app.callback()
def requests() -> None:
    """Ask for access or a larger limit at a server, and decide requests (for the curator)."""


@app.command("list", epilog=options.examples("lapwing requests list"), short_help="List requests.")
def show_requests(
    form: options.ReportFormat = options.ReportFormatName.table,
    server: options.Server = None,
) -> None:
    """List your own requests, and those for the data sets that you look after. Open ones come first."""
    every = _opened(server).all()
    if form is options.ReportFormatName.json:
        print_text(to_json({"requests": every}))
        return
    table = new_table("id", "person", "data set", "for", "wanted", "state", "sent", "reason", "decision")
    ids = [one["id"] for one in every]
    for one in every:
        share = "" if one["share"] is None else figures.share(float(Fraction(one["share"])))
        id_, sent = short_id(one["id"], ids), one["created"][:10]
        row = (
            id_,
            one["person"],
            one["dataset"],
            WHAT[one["kind"]],
            share,
            one["state"],
            sent,
            one["reason"],
            _decision(one),
        )
        table.add_row(*map(text, row))
    show(Fitted(table))


def _decision(one: "AccessRequestDocument") -> str:
    """Say who decided a request and when, the limit that was given, and the reason."""
    said = [] if one["decided"] is None or one["state"] == "withdrawn" else [one["decided"][:10]]
    said += [f"by {one['decided_by']}"] if said and one["decided_by"] else []
    if "given" in one:
        share = one["given"]["share"]
        said.append("no limit" if share is None else f"up to {figures.share(float(Fraction(share)))}")
    said += [one["answer"]] if one["answer"] else []
    return "; ".join(said)


@app.command(
    epilog=options.examples("lapwing requests ask visits --reason 'For the report on wards.'"),
    short_help="Ask for access or a larger limit.",
)
def ask(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="The data set.", show_default=False)],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why you ask; curators read it.")],
    share: Annotated[
        Fraction | None, options.amount(share_of_budget, "The limit that you want: a part of the budget, like 20%.")
    ] = None,
    server: options.Server = None,
) -> None:
    """Ask for access to a listed data set, or for a larger limit at one that you query."""
    made = _opened(server).ask(dataset, reason, share)
    print_text(
        f"{made['id'][:SHORTEST]}: you asked for {WHAT[made['kind']]} on {visible(dataset)}. A curator decides.\n"
    )


@app.command(
    epilog=options.examples(
        "lapwing requests approve 3f9a2c41",
        "lapwing requests approve 3f9a2c41 --share 10% --reason 'More after the report.'",
    ),
    short_help="Approve a request.",
)
def approve(
    id_: Id,
    share: Annotated[
        Fraction | None, options.amount(share_of_budget, "A limit to give instead of the one in the request, like 10%.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a limit that a curator set after the request.")
    ] = False,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why; the person reads it.")] = None,
    server: options.Server = None,
) -> None:
    """Approve a request. Its person may then query the data set, up to the limit."""
    done = _opened(server).approve(id_, share, replace=replace, reason=reason)
    print_text(f"{visible(done['person'])} may query {visible(done['dataset'])}.\n")


@app.command(
    epilog=options.examples("lapwing requests decline 3f9a2c41 --reason 'The study has ended.'"),
    short_help="Decline a request.",
)
def decline(
    id_: Id,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; the person reads it.")],
    server: options.Server = None,
) -> None:
    """Decline a request, with a reason."""
    done = _opened(server).decline(id_, reason)
    print_text(f"Declined the request of {visible(done['person'])}.\n")


@app.command(epilog=options.examples("lapwing requests withdraw 3f9a2c41"), short_help="Withdraw your own request.")
def withdraw(id_: Id, server: options.Server = None) -> None:
    """Withdraw an open request of yours."""
    _opened(server).withdraw(id_)
    print_text("Withdrew your request.\n")


def _opened(server: str | None) -> "RemoteRequests":
    if server is None:
        raise InvalidParameter("Requests are at a server. Give its address by --server or LAPWING_SERVER.")
    from lapwing.client.administration import RemoteRequests
    from lapwing.client.transport import ServerConnection

    return RemoteRequests(ServerConnection(server, options.token_for_server()))
