"""`lapwing graph`: statistics of graphs, with an edge or a node with all its edges protected."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.text import Text

from lapwing.answer.charts.chart_options import ChartOptions
from lapwing.cli import figures, options
from lapwing.cli.answer_formats import Format
from lapwing.cli.asking import USUAL_CONFIDENCE, format_of, price_of, write
from lapwing.cli.charts import make_chart
from lapwing.cli.console import Fitted, labelled, new_table, note, on_terminal, print_text, show, text
from lapwing.cli.result_page import require_page
from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.graphs import GraphAnswer, GraphSession

EXAMPLE: Final = options.examples(
    "lapwing graph list",
    "lapwing graph explain edge_count --epsilon 0.5",
    "lapwing graph ask mixing_matrix --by town --epsilon 0.5 --graph friends",
)
app = typer.Typer(help="Query graphs: who knows whom.", epilog=EXAMPLE, rich_markup_mode=None)

Name = Annotated[
    str | None,
    typer.Option("--graph", metavar="NAME", help="The graph; needed if there are several.", show_default=False),
]
Asked = Annotated[str, typer.Argument(metavar="STATISTIC", help="One of `lapwing graph list`.", show_default=False)]
Price = Annotated[
    Fraction,
    options.amount(options.above_zero("--epsilon"), "The cost of the statistic, in epsilon (ε).", show_default=False),
]
Delta = Annotated[
    Fraction | None,
    options.amount(
        options.above_zero("--delta"),
        "Part of the delta set aside (delta_keys). It buys a bound and mostly a narrower ± for triangles and wedges.",
        show_default=False,
    ),
]
Confidence = Annotated[
    Fraction | None,
    options.amount(options.between("--confidence"), "The confidence of the intervals; default 0.95.", "--confidence"),
]


Form = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="Default: a table on a terminal, CSV in a pipe, and for a file as its name ends.",
        show_default=False,
    ),
]
Output = Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file instead.")]
ARGUMENTS: Final = {
    "by": (str, "COLUMN", "The groups of a mixing_matrix, or of most_connected."),
    "by_other": (str, "COLUMN", "The groups of the second table of nodes, if there are two."),
    "level": (int, "N", "The most that each node adds; by default, Lapwing chooses it."),
    "leaves": (int, "N", "The number of leaves, for stars."),
    "up_to": (int, "N", "The largest degree with a cell of its own in a histogram."),
    "direction": (str, "in|out", "Which degrees to use, in a directed graph."),
    "at": (str, "SHARES", 'The shares for degree_quantiles, like "0.5, 0.9".'),
    "count": (int, "N", "The number of groups, for most_connected."),
}
"""What statistics take, by name: the type, what stands for it in the help, and what it is."""


def takes_arguments(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each argument of a statistic; it gets what was said as one mapping."""

    @wraps(command)
    def called(**given: object) -> None:
        said = {name: given.pop(name) for name in ARGUMENTS}
        command(said=said, **given)

    more = {
        name: Annotated[kind | None, typer.Option(metavar=stands, help=about, show_default=False)]
        for name, (kind, stands, about) in ARGUMENTS.items()
    }
    own = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in signature(command).parameters.values()]
    kept = [one for one in own if one.name != "said"]
    added = [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind) for name, kind in more.items()]
    called.__signature__ = Signature([*kept, *added])  # type: ignore[attr-defined]  # which typer reads
    called.__annotations__ = {one.name: one.annotation for one in [*kept, *added]}
    return called


@app.callback()
def graph() -> None:
    """Query statistics of graphs (edges, degrees, triangles), with an edge or a whole node protected."""


@app.command("list", epilog=options.examples("lapwing graph list"), short_help="List the graphs and their statistics.")
def show_list(catalog: options.CatalogFile = options.DEFAULT_CATALOG) -> None:
    """List the graphs of a catalog, what each protects, and its statistics. Reads no data."""
    from lapwing.catalog.toml import load  # here, so that `lapwing --help` loads no engine
    from lapwing.graphs.statistics import statistics_of

    described = load(catalog)
    for graph in described.graphs:
        show(labelled(("graph", graph.name), ("hides", graph.unit)), Text())
        rows = new_table("statistic", "what it is", "takes")
        for statistic in statistics_of(graph):
            rows.add_row(text(statistic.name), text(statistic.summary), text(", ".join(statistic.arguments)))
        show(Fitted(rows), Text())
    if not described.graphs:
        note("note", "the catalog describes no graph; add a section like [graphs.friends].")


@app.command(epilog=EXAMPLE, short_help="Pay for a statistic and show it.")
@takes_arguments
def ask(
    statistic: Asked,
    epsilon: Price,
    said: Mapping[str, object],
    delta: Delta = None,
    name: Name = None,
    confidence: Confidence = None,
    form: Form = None,
    output: Output = None,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
) -> None:
    """Run a statistic, charge its cost, and write the noisy result. Running it again is free."""
    from lapwing.graphs import connect  # here, so that `lapwing --help` loads no engine

    form = form or (format_of(output) if output is not None else Format.table if on_terminal() else Format.csv)
    if output is not None and (output.is_dir() or not output.absolute().parent.is_dir()):
        raise InvalidParameter(f"{output} cannot be written; choose a file in a folder that exists.")
    with connect(catalog, name) as session:
        answer = session.ask(statistic, epsilon=epsilon, delta=delta, **said)
        write(answer, form, confidence or USUAL_CONFIDENCE, output)
        _say(answer, session)


@app.command(epilog=EXAMPLE, short_help="Show the cost and the promised error. Free.")
@takes_arguments
def explain(
    statistic: Asked,
    epsilon: Price,
    said: Mapping[str, object],
    delta: Delta = None,
    name: Name = None,
    catalog: options.CatalogFile = options.DEFAULT_CATALOG,
) -> None:
    """Show what a statistic would cost and promise. Costs nothing, reads no row."""
    from lapwing.graphs import connect  # here, as above

    with connect(catalog, name) as session:
        preview = session.explain(statistic, epsilon=epsilon, delta=delta, **said)
        total = session.budget().total
    facts = [
        ("query", preview.question),
        ("hides", preview.protects),
        (
            "cost",
            f"{figures.loss(preview.loss)} of {figures.loss(total)}; the budget pays for {preview.fits:,} like it",
        ),
        *([("delta", figures.delta(preview.delta))] if preview.delta else []),
        *(("beside", f"{figures.loss(loss)} of the budget of {other}") for other, loss in preview.beside.items()),
    ]
    numbers = new_table("noisy number", "level", "mechanism", "sensitivity", "± at 95 %", "reason")
    for number in preview.numbers:
        half = "as the graph needs" if number.half_width is None else f"±{number.half_width:,}"
        shown = (
            "" if number.level is None else f"{number.level:,}",
            number.mechanism,
            f"{number.sensitivity:,}",
            half,
            number.because,
        )
        numbers.add_row(text(number.name), *map(text, shown))
    show(labelled(*facts), Text(), Fitted(numbers), Text(), labelled(*(("note", f"{line}.") for line in preview.notes)))


@app.command(epilog=options.examples("lapwing graph budget"), short_help="Show the budget of a graph: spent and left.")
def budget(name: Name = None, catalog: options.CatalogFile = options.DEFAULT_CATALOG) -> None:
    """Show the budget of a graph's promise: of its edges, or of the people who are its nodes."""
    from lapwing.cli.budget import as_page
    from lapwing.graphs import connect  # here, as above

    with connect(catalog, name) as session:
        view = session.budget()
        show(*as_page(view, f"{session.graph.name}, {session.protects}", view.delta - view.delta_keys))
        for line in session.notes:
            note("note", f"{line}.")


@app.command(epilog=options.examples("lapwing graph accept"), short_help="Accept changed data (for the curator).")
def accept(name: Name = None, catalog: options.CatalogFile = options.DEFAULT_CATALOG) -> None:
    """Make the data of a graph as they are now the current version; spending stays."""
    from lapwing.graphs import connect  # here, as above

    with connect(catalog, name) as session:
        print_text(f"Version {session.accept_data()} of the data of {session.graph.name} is the current one.\n")


def answer_sql(
    question: str,
    epsilon: Fraction | None,
    delta: Fraction | None,
    catalog: Path,
    form: Format,
    output: Path | None,
    confidence: Fraction | None,
    label: str | None,
    plot: Path | None,
    options: ChartOptions,
) -> bool:
    """Answer a question about a graph of a catalog, by function or by join; tell whether it is one."""
    from lapwing.catalog.toml import load  # here, as above
    from lapwing.graphs import connect
    from lapwing.graphs.sql import question_of

    graphs = load(catalog).graphs
    found = question_of(question, graphs) if graphs else None
    if found is None:
        return False
    if form is Format.html:
        require_page(graph=True)
    if epsilon is None:
        raise InvalidParameter("A statistic of a graph has a cost: give --epsilon.")
    with connect(catalog, found.graph) as session:
        answer = session.sql(question, epsilon=epsilon, delta=delta, label=label)
        write(answer, form, confidence or USUAL_CONFIDENCE, output)
        if plot is not None:
            make_chart(answer, plot, confidence or USUAL_CONFIDENCE, options=options)
        _say(answer, session)
    return True


def _say(answer: "GraphAnswer", session: "GraphSession") -> None:
    view = session.budget()
    left = f"{figures.share(1 - view.share_spent)} of the budget left"
    delta = answer.outcome.priced.delta if answer.cost.amount else Fraction(0)
    took = f", delta {figures.delta(delta)} for a bound" if delta else ""
    note("cost", f"{price_of(answer, view)}{took}; {left}")
    for line in (*answer.notes, *session.notes):
        note("note", f"{line}.")
