"""`lapwing monitor`: numbers that are released again and again while events come in, for one price."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, final

import typer

from lapwing.cli.console import Fitted, labelled, new_table, note, print_text, show, text
from lapwing.cli.options import (
    DEFAULT_CATALOG,
    CatalogFile,
    TableFormat,
    above_zero,
    amount,
    between,
    examples,
    grouped,
    reader,
)
from lapwing.errors import InvalidParameter
from lapwing.privacy.figures import level as level_text

if TYPE_CHECKING:
    from rich.table import Table

    from lapwing.answer import Answer
    from lapwing.monitors import Monitor, Tick

FIRST: Final = examples(
    'lapwing monitor create density "SELECT cell, COUNT(*) AS people FROM moves GROUP BY cell',
    "  EVERY '15 minutes' FOR '1 day' PRESENT WITHIN '1 hour'\" --time at --epsilon 1",
    "lapwing monitor run density",
)
CONFIDENCE: Final = Fraction(95, 100)

app = typer.Typer(
    help="Release numbers repeatedly while events come in. Each release is a tick.", epilog=FIRST, rich_markup_mode=None
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the monitor.", show_default=False)]
Level = Annotated[
    Fraction | None,
    amount(between("--confidence"), "The confidence of the intervals; default 0.95.", show_default=False),
]


class LateOption(StrEnum):
    """What becomes of an event that comes after its tick was released."""

    next = "next"
    drop = "drop"


@app.callback()
def monitor() -> None:
    """Release numbers repeatedly while events come in, for one cost that you pay at the beginning."""


def _any(option: str) -> Callable[[str], Fraction]:
    return reader(option, "a finite number", lambda _: True)


def _optional(about: str, *names: str, metavar: str = "TEXT") -> Any:
    return typer.Option(*names, metavar=metavar, help=about, show_default=False)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EventOptions:
    """How much of each person's events counts, and by which column they are ordered."""

    time: Annotated[str | None, _optional("The column that says when an event happened.", metavar="COLUMN")] = None
    most: Annotated[
        int | None,
        _optional(
            "The most events (or stays) of one person that count in all; default: the table's row limit.",
            metavar="COUNT",
        ),
    ] = None
    per_tick: Annotated[
        int | None, _optional("The most events of one person that count at one tick.", metavar="COUNT")
    ] = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOptions:
    """When ticks are, and for how long."""

    every: Annotated[str | None, _optional("The period, like '15 minutes', if the query has no EVERY.")] = None
    horizon: Annotated[str | None, _optional("How long, like '1 day'.", "--for")] = None
    repeat: Annotated[int, typer.Option(metavar="COUNT", help="The number of horizons, each of which starts anew.")] = 1
    doubling: Annotated[
        bool,
        typer.Option("--doubling", help="Horizons without end: each is twice as long, and you pay when it begins."),
    ] = False
    lifetime: Annotated[bool, typer.Option("--lifetime", help="--most is for all horizons together, for one cost.")] = (
        False
    )
    starting: Annotated[str | None, _optional("The start, in UTC; default: the next full period.")] = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountingOptions:
    """What a tick counts, and when it is released."""

    over: Annotated[str | None, _optional("Count only the last hours or days, not everything since the start.")] = None
    present: Annotated[bool, typer.Option("--present", help="Count people where they are.")] = False
    within: Annotated[
        str | None, _optional("With --present: the time without events after which a person counts as gone.")
    ] = None
    lateness: Annotated[str | None, _optional("The delay of a tick after its end.")] = None
    late: Annotated[LateOption, typer.Option(help="How to count an event that comes even later.")] = LateOption.next


@app.command(epilog=FIRST, short_help="Create a monitor, and pay for all its ticks.")
@grouped
def create(
    name: Name,
    question: Annotated[
        str | None,
        typer.Argument(
            metavar="SQL",
            help="SQL over one table, with EVERY … FOR …; default: [monitors.NAME] of the catalog.",
            show_default=False,
        ),
    ] = None,
    *,
    epsilon: Annotated[
        Fraction | None,
        amount(above_zero("--epsilon"), "The cost of all ticks together, in epsilon (ε).", show_default=False),
    ] = None,
    events: EventOptions,
    schedule: ScheduleOptions,
    counting: CountingOptions,
    source: Annotated[
        str | None,
        _optional("The address of a growing table, or service; default: the table's source.", "--from"),
    ] = None,
    people: Annotated[
        Path | None,
        _optional("With persons and days: a catalog whose ledger charges each person for all days.", metavar="FILE"),
    ] = None,
    catalog: CatalogFile = DEFAULT_CATALOG,
) -> None:
    """Create a monitor, and charge the cost of all its ticks (for the curator). Then run it, to release ticks."""
    from lapwing.monitors import create_monitor

    with create_monitor(
        catalog,
        name,
        question,
        epsilon=epsilon,
        time=events.time,
        most=events.most,
        per_tick=events.per_tick,
        every=schedule.every,
        horizon=schedule.horizon,
        repeat=schedule.repeat,
        doubling=schedule.doubling,
        lifetime=schedule.lifetime,
        starting=schedule.starting,
        over=counting.over,
        present=counting.present,
        within=counting.within,
        lateness=counting.lateness,
        late=counting.late.value,
        source=source,
        people=people,
    ) as made:
        show(_facts(made))


@app.command("list", epilog=examples("lapwing monitor list"), short_help="List monitors and their state.")
def list_(catalog: CatalogFile = DEFAULT_CATALOG) -> None:
    """List the monitors of a data set and their state."""
    from lapwing.errors import LapwingError
    from lapwing.monitors import list_monitors, open_monitor

    table = new_table("monitor", "state", "query")
    for name in list_monitors(catalog):
        try:
            with open_monitor(catalog, name) as found:
                table.add_row(text(name), text(found.state()), text(found.definition.text))
        except LapwingError as error:
            table.add_row(text(name), text(str(error)), text(""))
    show(Fitted(table))


@app.command("show", epilog=examples("lapwing monitor show density"), short_help="Show the newest tick; free.")
def show_(
    name: Name,
    tick: Annotated[int | None, _optional("The number of the tick; default: the newest.", metavar="NUMBER")] = None,
    confidence: Level = None,
    simultaneous: Annotated[
        bool, typer.Option("--simultaneous", help="Intervals that hold together, at all ticks of the horizon.")
    ] = False,
    consistent: Annotated[
        bool, typer.Option("--consistent", help="Counts that are not negative, with the same total.")
    ] = False,
    form: Annotated[TableFormat, typer.Option("--format", help="How to write it.")] = TableFormat.table,
    catalog: CatalogFile = DEFAULT_CATALOG,
) -> None:
    """Show a monitor and the numbers of one tick. Free."""
    from lapwing.monitors import open_monitor

    with open_monitor(catalog, name) as found:
        newest = found.released if tick is None else tick
        if tick is not None and not 1 <= tick <= found.released:
            raise InvalidParameter(f"--tick is {tick}; {found.released:,} ticks were released, from 1 on.")
        shown = next(found.ticks(newest - 1)) if newest else None
        if form is TableFormat.table:
            show(_facts(found))
        if shown is not None:
            level = confidence or CONFIDENCE
            level = shown.each(level) if simultaneous else level
            _print(shown, shown.consistent() if consistent else shown.answer, level, form)


@app.command(
    epilog=examples("lapwing monitor run density"), short_help="Run a monitor: release each tick when it is due."
)
def run(
    name: Name,
    replay: Annotated[bool, typer.Option("--replay", help="Treat all ticks as due now, for past events.")] = False,
    commit: Annotated[int, typer.Option(metavar="COUNT", help="The number of due ticks to store together.")] = 1,
    catalog: CatalogFile = DEFAULT_CATALOG,
) -> None:
    """Read events as they come and release each tick when it is due, until the horizon is reached (for the curator).

    Ctrl-C ends it. When you run it again, it first releases the ticks that were missed, in order.
    """
    from lapwing.monitors import open_monitor

    with open_monitor(catalog, name) as found:
        if not replay:
            note("running", f"{found.definition.text}; tick {found.released + 1:,} is next")
        try:
            for tick in found.run(replay=replay, commit=commit, waiting=lambda why: note("waiting", why)):
                if not replay:
                    behind = found.schedule.due_at(_now()) - tick.number
                    said = f"; behind by {behind:,} ticks" if behind > 0 else ""
                    print_text(f"tick {tick.number:,} at {tick.time:%Y-%m-%d %H:%M:%S} UTC is released{said}\n")
                    _deliver(found)
        except KeyboardInterrupt:  # how it is told to end
            note("ended", f"after tick {found.released:,}; nothing is lost, and nothing is released twice")
            return
        _deliver(found)
        note("ended", found.state())


def _deliver(found: "Monitor") -> None:
    for alarm, fault in found.deliver():
        note("alert", f"{alarm}{f'; it was not delivered: {fault}' if fault else ''}")


@app.command(epilog=examples("lapwing monitor watch density"), short_help="Watch ticks as they are released; free.")
def watch(
    name: Name,
    confidence: Level = None,
    poll: Annotated[
        Fraction | None, amount(above_zero("--poll"), "Seconds between two updates; default 1.", show_default=False)
    ] = None,
    catalog: CatalogFile = DEFAULT_CATALOG,
) -> None:
    """Show a chart of the newest tick, and draw it again at each release. Ctrl-C ends it. Free."""
    from lapwing.cli.live_chart import LiveChart
    from lapwing.monitors import open_monitor

    with open_monitor(catalog, name) as found, LiveChart(found, confidence or CONFIDENCE) as chart:
        try:
            for tick in found.follow(poll=float(poll or 1)):
                chart.show(tick)
        except KeyboardInterrupt:
            return


@app.command(
    epilog=examples("lapwing monitor alert density crowd --column people --above 5000 --ticks 3"),
    short_help="Alert when a number passes a threshold.",
)
def alert(
    name: Name,
    alert_name: Annotated[str, typer.Argument(metavar="ALERT", help="The name of the alert.", show_default=False)],
    column: Annotated[str | None, _optional("The column of noisy numbers.", metavar="COLUMN")] = None,
    above: Annotated[Fraction | None, amount(_any("--above"), "Alert above this value.", show_default=False)] = None,
    below: Annotated[Fraction | None, amount(_any("--below"), "Alert below this value.", show_default=False)] = None,
    ticks: Annotated[int, typer.Option(metavar="COUNT", help="Alert only after COUNT ticks in a row.")] = 1,
    surely: Annotated[bool, typer.Option("--surely", help="Alert only if the whole interval passes.")] = False,
    webhook: Annotated[
        str | None, _optional("The address that receives the alert, as JSON.", metavar="ADDRESS")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the alert.")] = False,
    catalog: CatalogFile = DEFAULT_CATALOG,
) -> None:
    """Let `lapwing monitor run` send an alert when a released number passes a threshold. Free."""
    from lapwing.monitors import Alert, open_monitor

    with open_monitor(catalog, name) as found:
        if remove:
            note("removed" if found.remove_alert(alert_name) else "none", alert_name)
            return
        threshold = above if below is None else below
        if column is None or threshold is None or (above is not None and below is not None):
            raise InvalidParameter("An alert needs --column, and either --above or --below.")
        made = Alert(
            name=alert_name,
            column=column,
            threshold=threshold,
            above=below is None,
            ticks=ticks,
            surely=surely,
            webhook=webhook,
        )
        found.add_alert(made)
        note("alert", f"{alert_name}: {made}")


@app.command(epilog=examples("lapwing monitor alarms density"), short_help="Show when alerts began and ended; free.")
def alarms(name: Name, catalog: CatalogFile = DEFAULT_CATALOG) -> None:
    """Show when alerts began and ended, over all ticks that were released. Free."""
    from lapwing.monitors import open_monitor

    with open_monitor(catalog, name) as found:
        for alarm in found.alarms():
            print_text(f"{alarm}\n")


@app.command(epilog=examples("lapwing monitor stop density"), short_help="Stop a monitor for ever.")
def stop(name: Name, catalog: CatalogFile = DEFAULT_CATALOG) -> None:
    """Stop a monitor for ever (for the curator). Its cost stays charged, and its ticks stay readable."""
    from lapwing.monitors import open_monitor

    with open_monitor(catalog, name) as found:
        found.stop()
        note("stopped", f"after tick {found.released:,}")


@app.command(
    epilog=examples("lapwing monitor export density -o density.parquet"), short_help="Write all ticks to a file; free."
)
def export(
    name: Name,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help=".parquet, .arrow or .csv.", show_default=False)
    ],
    confidence: Level = None,
    catalog: CatalogFile = DEFAULT_CATALOG,
) -> None:
    """Write all ticks that were released as one table, with the ends of the intervals. Free."""
    from lapwing.monitors import open_monitor
    from lapwing.monitors.exporting import export_ticks, require_form

    require_form(output)
    with open_monitor(catalog, name) as found:
        number = export_ticks(found, output, confidence or CONFIDENCE)
    note("written", f"{number:,} ticks to {output}")


def _now() -> int:
    from lapwing.monitors.monitor import system_clock

    return system_clock()


def _facts(found: "Monitor") -> "Table":
    """Return what is public about a monitor, for people."""
    from lapwing.monitors.describing import described

    return labelled(*described(found))


def _print(tick: "Tick", answer: "Answer", level: Fraction, form: TableFormat) -> None:
    from lapwing.cli.answer_formats import as_csv, as_json, as_table

    if form is TableFormat.csv:
        print_text(as_csv(answer, level))
    elif form is TableFormat.json:
        print_text(as_json(answer, level))
    else:
        show(
            text(""),
            text(f"tick {tick.number:,} at {tick.time:%Y-%m-%d %H:%M:%S} UTC", "bold"),
            as_table(answer, level),
        )
        note("intervals", f"at {level_text(level)} each; paid for, so reading is free")
