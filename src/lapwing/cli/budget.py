"""`lapwing budget`: what may be lost, is lost and is left, and what it went for."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import RenderableType
from rich.text import Text

import lapwing as lw
from lapwing.cli import budget_plan, figures, options, raise_budget, spend
from lapwing.cli.characters import to_json
from lapwing.cli.console import Fitted, labelled, new_table, note, print_text, show, text
from lapwing.ledger.charged_queries import charged_queries, refining
from lapwing.ledger.events import EVENTS_ALLOWED
from lapwing.ledger.faults import FAULTS_ALLOWED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from lapwing.budget import BudgetView
    from lapwing.client import RemoteSession
    from lapwing.ledger.charged_queries import ChargedQuery
    from lapwing.ledger.reading import HistoryRow
    from lapwing.privacy import PartsAccount
    from lapwing.privacy.odometers import Reading

EXAMPLE: Final = """\b
Examples:
  lapwing budget
  lapwing budget --last 100
  lapwing budget --format json"""
app = typer.Typer(
    help="Show the budget: what is spent, what is left, and the charges.", epilog=EXAMPLE, rich_markup_mode=None
)
app.command("plan", epilog=budget_plan.EXAMPLE, short_help="Divide a budget among queries of a year, for free.")(
    budget_plan.command
)
app.command("raise", epilog=raise_budget.EXAMPLE, short_help="Raise the budget (for the curator).")(
    raise_budget.command
)
app.command("spend", epilog=spend.EXAMPLE, short_help="Charge a release outside Lapwing (for the curator).")(
    spend.command
)

LATE: Final = (
    f"a delay can reveal something about the data, so {EVENTS_ALLOWED} late results and failures stop queries "
    "of everybody who is not trusted with time"
)
MOST_PARTS: Final = 20
LAST: Final = 20
"""Charges that are shown unless somebody says how many."""
MOST_JSON: Final = 1_000
EARLIER: Final = "--last N, or `lapwing ledger export` for all"
WHY: Final = {"fault": ": failed", "death": ": lost", "interrupt": ": interrupted", "stop": ": stopped"}


@app.callback(invoke_without_command=True)
def command(
    context: typer.Context,
    form: options.ReportFormat = options.ReportFormatName.table,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
    server: options.Server = None,
    dataset: options.Dataset = None,
    last: Annotated[
        int | None, typer.Option("--last", metavar="N", min=0, help=f"Show the last N charges; {LAST} unless given.")
    ] = None,
    verbose: options.Verbose = False,
) -> None:
    """Show the budget: granted, spent, left, the newest charges, and how many more like the last would fit.

    JSON has the last 1,000 charges unless you say otherwise. `lapwing ledger export` writes all of them.
    """
    if context.invoked_subcommand is not None:
        return
    with options.open_session(catalog, server, dataset) as session:
        most = last if last is not None else MOST_JSON if form is options.ReportFormatName.json else LAST
        view, name = read(session, most), options.name_of(session)
        besides = (
            [graph.beside_people for graph in session.catalog.graphs]
            if isinstance(session, lw.Session)
            else [graph["beside_people"] for graph in session.schema.get("graphs", ())]
        )
    if form is options.ReportFormatName.json:
        from lapwing.documents.budget_document import budget_document  # here, so that `lapwing --help` loads no engine

        print_text(to_json(budget_document(view, most)))
    else:
        show(*as_page(view, name, view.delta - view.delta_keys, most, verbose=verbose))
    for beside in filter(None, besides):
        note("note", f"{beside}.")


def read(session: "lw.Session | RemoteSession", most: int) -> "BudgetView":
    """Return a budget with so many of the newest charges, and one more if there is one."""
    return replace(session.budget(history=False), history=session.history(most=-most - 1))


def as_page(
    view: "BudgetView", name: str, delta: "Fraction", most: int = LAST, more: str = EARLIER, *, verbose: bool = False
) -> list[RenderableType]:
    """Return the budget for people, with so many charges; `delta` is what the epsilon of a single one is read at."""
    page: list[RenderableType] = [labelled(*_facts(view, name, verbose))]
    if view.by_part is not None:
        page += [Text(), _parts(view, view.by_part)]
    if view.history:
        page += [Text(), history_of(view, delta, most, more)] if most else []
    return page


def guarantee(view: "BudgetView") -> str:
    """Return the guarantee of the cap in (epsilon, delta)."""
    epsilon = figures.epsilon(view.epsilon)
    return f"epsilon {epsilon}, delta {figures.delta(view.delta)}" if view.delta else f"epsilon {epsilon}"


def _facts(view: "BudgetView", name: str, verbose: bool) -> list[tuple[str, str]]:
    ended = view.closed or view.stopped_by_curator or any(not each.share for each in view.allowances)
    more = [("more", _more(view))] if view.history and not ended else []
    return [
        ("data", f"{name}, version {view.version}"),
        ("total", f"{guarantee(view)} for all queries ever, in any order"),
        *_raised(view),
        ("spent", figures.gauge(view.share_spent)),
        *_left_for_all(view),
        *_so_far(view),
        *(_in_the_ledger(view) if verbose else ()),
        *_policy(view),
        *_keys(view),
        *_faults(view),
        *more,
        *([("history", "your own queries")] if view.own_history and view.history else []),
    ]


def _raised(view: "BudgetView") -> list[tuple[str, str]]:
    """Return what holds of a budget that was raised, and whether the data set is closed."""
    facts = []
    if view.raised is not None:
        was = ", then ".join(
            figures.epsilon(epsilon) + (f", delta {figures.delta(delta)}" if delta else "")
            for epsilon, delta in view.earlier
        )
        sure = f"epsilon {figures.size(view.raised.epsilon)}, delta {figures.delta(view.raised.delta)}"
        facts.append(("raised", f"it was epsilon {was}; the total holds if the raise did not depend on results"))
        facts.append(("", f"if it did, or in doubt, publish {sure}"))
    if view.closed:
        facts.append(("closed", "Lapwing charges nothing any more; earlier results stay free"))
    return facts


def _policy(view: "BudgetView") -> list[tuple[str, str]]:
    """Return what a service lets its caller do of what remains."""
    facts = [("yours", figures.allowance(allowance, view.total)) for allowance in view.allowances]
    if view.most is not None:
        part = figures.share(float(view.most.amount / view.total.amount))
        facts.append(("one query", f"it may cost at most {part} of the budget"))
    if view.stopped_by_curator:
        facts.append(("stopped", "by the curator: no new queries; earlier results stay free"))
    return facts


def _left_for_all(view: "BudgetView") -> list[tuple[str, str]]:
    """Return what is left for a query about all parts of the data, if they have parts."""
    left = figures.share(float(view.remaining.amount / view.total.amount))
    return [("left", f"{left} of the budget for a query about all parts")] if view.parts else []


def _so_far(view: "BudgetView") -> list[tuple[str, str]]:
    """Return what is spent as the epsilon that holds if one stops now; the total holds whenever one stops, too."""
    if not view.spent.amount and not view.delta_keys_spent:
        return []
    lost = [("", "with the highest possible cost of entries that were lost before a restore")] if view.lost else []
    add_up = [] if view.whenever == view.as_if_cap else [("", "shares of the budget add up; epsilon (ε) does not")]
    return [("so far", view.so_far), *add_up, *lost]


def _in_the_ledger(view: "BudgetView") -> list[tuple[str, str]]:
    """Return what is spent in the unit of the ledger; no epsilon without the words that say when it holds."""
    amounts = f"{figures.loss(view.spent)} spent, {figures.left(view.remaining)} left of {figures.loss(view.total)}"
    cap = view.as_if_cap
    if cap == view.whenever or not view.spent.amount:
        return [("ledger", amounts)]
    return [("ledger", amounts), ("", f"epsilon {figures.epsilon(cap.epsilon)}{_with(cap)}, {cap.holds}")]


def _with(reading: "Reading") -> str:
    return f", delta {figures.delta(reading.delta)}" if reading.delta else ""


def _keys(view: "BudgetView") -> list[tuple[str, str]]:
    """Return what private keys took of the delta kept for them, if any is."""
    if not view.delta_keys:
        return []
    spent = figures.delta(view.delta_keys_spent) if view.delta_keys_spent else "nothing"
    return [
        ("groups", f"{spent} spent of delta {figures.delta(view.delta_keys)}, which is reserved for finding groups")
    ]


def _faults(view: "BudgetView") -> list[tuple[str, str]]:
    """Return how many questions failed, and whether that stops the data set; and how many answers were late."""
    late = [] if not view.late or view.own_history else [("late", _late(view.late)), ("", LATE)]
    if not view.faults:
        return late
    effect = "no new query until the curator runs" if view.stopped else "the curator may look:"
    command = "`lapwing data resume`" if view.stopped else "`lapwing data faults`"
    return [("faults", f"{view.faults} of {FAULTS_ALLOWED} that stop the data set; {effect} {command}"), *late]


def _late(count: int) -> str:
    results = "1 result" if count == 1 else f"{count:,} results"
    return f"{results} left later than planned, for any reason: `lapwing data faults`"


def _parts(view: "BudgetView", by_part: "PartsAccount") -> RenderableType:
    """Return what each part has spent and has left, as shares of the budget, the dearest first if they are many."""
    spent, left = by_part.spent_by_part(), by_part.rooms()
    shown = (
        list(spent) if len(spent) <= MOST_PARTS else sorted(spent, key=lambda part: -spent[part].amount)[:MOST_PARTS]
    )
    table = new_table("part", "spent", "left", numbers=["spent", "left"])
    for part in shown:
        shares = (figures.share(float(one.amount / view.total.amount)) for one in (spent[part], left[part]))
        table.add_row(text(part), *shares)
    if len(spent) > len(shown):
        table.add_row(text(f"{len(spent) - len(shown):,} more, each with a lower or the same cost"))
    return Fitted(table)


def _more(view: "BudgetView") -> str:
    last = charged_queries(view.history)[-1]
    count = view.fits(last.loss, last.last.parts, last.delta)
    questions = {0: "no further query", 1: "1 more query"}.get(count, f"{count:,} more queries")
    return f"{questions} at the cost of the last would fit; earlier results stay free"


def history_of(view: "BudgetView", delta: "Fraction", most: int, more: str = EARLIER) -> RenderableType:
    """Return the newest charges as a table; `delta` is the one at which the cost of each is read as an epsilon.

    Args:
        more: How to see earlier ones.
    """
    keys = ["delta for groups"] if any(row.delta for row in view.history) else []
    table = new_table(
        "time (UTC)",
        "who",
        "epsilon of query",
        "of the budget",
        *keys,
        "query",
        numbers=["epsilon of query", "of the budget", *keys],
    )
    if len(view.history) > most:
        blank = [""] * (3 + len(keys))
        table.add_row("…", *blank, text(f"Earlier queries: {more}."))
    finer = refining(view.history)
    for query in charged_queries(view.history[-most:]):
        when, who = query.last.time[:16].replace("T", " "), query.last.principal
        table.add_row(
            text(when),
            text(who),
            *_cost(view, query, delta, keys),
            text(_question(query.last, finer)),
        )
        for what, row in query.parts:
            table.add_row("", "", *_cost(view, row, delta, keys), text(f"  of this: {what}"))
    return Fitted(table)


def _cost(
    view: "BudgetView", charged: "HistoryRow | ChargedQuery", delta: "Fraction", keys: "Sequence[str]"
) -> list[str]:
    """Return what was charged: by itself, as a share of the budget, and of delta if there is a column for it."""
    return [
        figures.epsilon(charged.loss.to_epsilon(delta=delta)),
        figures.share(float(charged.loss.amount / view.total.amount)),
        *([figures.delta(charged.delta)] if keys else []),
    ]


def _question(row: "HistoryRow", finer: frozenset[int]) -> str:
    parts = "" if row.parts is None else f" ({figures.names(row.parts)})"
    reason = WHY[row.unanswered] if row.unanswered is not None else ""
    parts += " (after an earlier result of this query)" if row.sequence in finer else ""
    return f"{row.asked}{parts}" if row.answered else f"{row.asked}{parts} (paid, not answered{reason})"
