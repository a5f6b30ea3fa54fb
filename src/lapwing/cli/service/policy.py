"""`lapwing policy`: how the budget of a data set is shared out among the people of a service. For the curator."""

from fractions import Fraction
from typing import Annotated, Final

import typer

from lapwing.cli import figures, options
from lapwing.cli.characters import to_json, visible
from lapwing.cli.console import labelled, print_text, show
from lapwing.cli.service.grant import share_of_budget, teams_of
from lapwing.cli.service.places import PeopleStore, opened_access
from lapwing.documents.people_document import DefaultCostDocument, Division, PolicyDocument
from lapwing.errors import InvalidParameter
from lapwing.privacy.amounts import read

app = typer.Typer(
    help="Share a budget among people; stop a data set (for the curator).",
    epilog=options.examples("lapwing policy show", "lapwing policy set --most-epsilon 0.5", "lapwing policy stop"),
    rich_markup_mode=None,
)


MEANING: Final = {
    "share": "not reserved, first come, first served; together they may be more than the budget (--division share)",
    "split": "reserved; together they are at most the budget (--division split)",
}


@app.callback()
def policy() -> None:
    """Say how the budget of a data set is shared out: at a server, or beside it in its store of people."""


@app.command("show", epilog=options.examples("lapwing policy show"), short_help="Show the policy.")
def show_policy(
    form: options.ReportFormat = options.ReportFormatName.table,
    people: PeopleStore = None,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
    dataset: options.Dataset = None,
) -> None:
    """Show the policy of a data set, and the limits of teams; `lapwing grant` shows those of people."""
    with opened_access(people, catalog, server, dataset) as access:
        known, grants = access.policy(), access.grants()
    if form is options.ReportFormatName.json:
        print_text(to_json({**known, "teams": grants["teams"]}))
    else:
        show(labelled(("data", access.dataset), *_facts(known)), *teams_of(grants))


@app.command(
    "set",
    epilog=options.examples("lapwing policy set --division split", "lapwing policy set --least-share 1/1000"),
    short_help="Change the policy.",
)
def set_policy(
    division: Annotated[
        Division | None,
        typer.Option(
            "--division",
            help="split: limits are reserved, and fit into the budget together. share: first come, first served.",
            show_default=False,
        ),
    ] = None,
    most_epsilon: Annotated[
        Fraction | None,
        options.amount(options.above_zero("--most-epsilon"), "The most that one query may cost, in epsilon (ε)."),
    ] = None,
    no_most_epsilon: Annotated[
        bool, typer.Option("--no-most-epsilon", help="Let a query cost everything that is left.")
    ] = False,
    least_share: Annotated[
        Fraction | None,
        options.amount(
            options.reader(
                "--least-share", "from 0 to 1, a part of the budget", lambda share: 0 <= share <= 1, percent=True
            ),
            "The lowest cost of a query: a part of the budget, like 0.01 %.",
        ),
    ] = None,
    people: PeopleStore = None,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
    dataset: options.Dataset = None,
) -> None:
    """Change the policy of a data set. Settings that you do not give stay."""
    if division is None and most_epsilon is None and least_share is None and not no_most_epsilon:
        raise InvalidParameter(
            "Give a setting to change: --division, --most-epsilon, --no-most-epsilon or --least-share."
        )
    if most_epsilon is not None and no_most_epsilon:
        raise InvalidParameter("Give only one of --most-epsilon and --no-most-epsilon.")
    with opened_access(people, catalog, server, dataset) as access:
        known = access.policy()
        most = None if known["most_epsilon"] is None or no_most_epsilon else read(known["most_epsilon"], "most_epsilon")
        changed = access.set_policy(
            division or known["division"],
            most if most_epsilon is None else most_epsilon,
            read(known["least_share"], "least_share") if least_share is None else least_share,
        )
    show(labelled(("data", access.dataset), *_facts(changed)))


@app.command(
    epilog=options.examples("lapwing policy team nurses --share 1/2", "lapwing policy team nurses --no-share"),
    short_help="Limit what a team may spend.",
)
def team(
    team: Annotated[str, typer.Argument(metavar="TEAM", help="The team.", show_default=False)],
    share: Annotated[
        Fraction | None, options.amount(share_of_budget, "The part of the budget that the whole team may spend.")
    ] = None,
    no_share: Annotated[bool, typer.Option("--no-share", help="Remove the team's limit.")] = False,
    people: PeopleStore = None,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
    dataset: options.Dataset = None,
) -> None:
    """Limit a team to a part of the budget. Former members count, too; `lapwing grant` lets people query."""
    if (share is None) != no_share:
        raise InvalidParameter("Give --share, or --no-share.")
    with opened_access(people, catalog, server, dataset) as access:
        access.give_team(team, share)
        name = visible(access.dataset)
    part = "as much as there is" if share is None else f"at most {figures.share(float(share))}"
    print_text(f"The team {visible(team)} may spend {part} of the budget of {name}.\n")


@app.command(
    "default-cost",
    epilog=options.examples("lapwing policy default-cost alice --epsilon 0.1", "lapwing policy default-cost"),
    short_help="Set what a query costs that names no cost.",
)
def default_cost(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="The person; without it, the command lists all.", show_default=False),
    ] = None,
    epsilon: Annotated[
        Fraction | None, options.amount(options.above_zero("--epsilon"), "The cost of each such query, in epsilon (ε).")
    ] = None,
    daily_share: Annotated[
        Fraction | None,
        options.amount(share_of_budget, "The part of the budget for all such queries of a day; 1/20 unless given."),
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="Refuse such queries.")] = False,
    people: PeopleStore = None,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
    dataset: options.Dataset = None,
) -> None:
    """Set the cost of a person's queries from PostgreSQL clients, if a query names no cost. Without NAME, show all."""
    if (name is not None) != (none or epsilon is not None) or (none and epsilon is not None):
        raise InvalidParameter("Give a name with --epsilon or with --none. Give neither to list default costs.")
    with opened_access(people, catalog, server, dataset) as access:
        if name is not None:
            changed = access.set_default_cost(name, None if none else epsilon, daily_share)
            known = {name: changed}
        else:
            known = access.default_costs()
    lines = [(visible(person), _cost_in_words(cost)) for person, cost in known.items()]
    show(labelled(("data", access.dataset), *(lines or [("default costs", "none")])))


def _cost_in_words(cost: DefaultCostDocument) -> str:
    if cost["epsilon"] is None:
        return "no default cost: a query that names no cost is refused"
    share, spent = (figures.share(float(read(cost[name], name))) for name in ("daily_share", "spent_today"))
    epsilon = figures.epsilon(read(cost["epsilon"], "epsilon"))
    return f"epsilon {epsilon} a query, up to {share} of the budget a day; {spent} spent today"


@app.command(
    epilog=options.examples("lapwing policy stop"), short_help="Stop a data set: no charges until you resume it."
)
def stop(
    people: PeopleStore = None,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
    dataset: options.Dataset = None,
    reason: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Why. Everybody with access sees it, and the audit log keeps it.")
    ] = None,
) -> None:
    """Stop a data set. From then on Lapwing charges nothing, and earlier results stay free."""
    with opened_access(people, catalog, server, dataset) as access:
        access.stop(stopped=True, reason=reason)
    print_text(f"{visible(access.dataset)} is stopped; Lapwing charges nothing until `lapwing policy resume`.\n")


@app.command(epilog=options.examples("lapwing policy resume"), short_help="Resume a data set that you stopped.")
def resume(
    people: PeopleStore = None,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
    dataset: options.Dataset = None,
) -> None:
    """Resume a data set after `lapwing policy stop`. After a stop by faults, use `lapwing data resume`."""
    with opened_access(people, catalog, server, dataset) as access:
        access.stop(stopped=False)
    print_text(f"{visible(access.dataset)} is open to queries again.\n")


def _facts(policy: PolicyDocument) -> list[tuple[str, str]]:
    division, most = policy["division"], policy["most_epsilon"]
    least = figures.share(float(read(policy["least_share"], "least_share")))
    most_cost = "all that is left"
    if most is not None:
        epsilon = figures.epsilon(read(most, "most_epsilon"))
        most_cost = f"at most epsilon {epsilon}; its delta for finding groups is limited in proportion"
    return [
        ("limits", f"of people and teams: {MEANING[division]}"),
        ("most", f"a query may cost {most_cost}"),
        ("least", f"a query costs at least {least} of the budget"),
        *([("stopped", "Lapwing charges nothing until `lapwing policy resume`")] if policy["stopped"] else []),
    ]
