"""What `lapwing local estimate` shows of each kind of task: shares, texts, a mean, several questions, periods."""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table

import lapwing as lw
from lapwing.cli.charts import write_chart
from lapwing.cli.console import new_table, note, text
from lapwing.cli.local.estimate_options import EstimateOptions, Whom
from lapwing.cli.local.output import Row, show_as
from lapwing.errors import InvalidParameter
from lapwing.plots import bars_with_intervals, below_each_other

if TYPE_CHECKING:
    from lapwing import local

MOST_LIKELIHOODS: Final = 2_000_000
"""Reports times values up to which the likeliest shares are worth the time."""
MOST_DRAWN: Final = 40
"""Bars of a chart of texts."""
FAINT: Final = "too close to 0 to tell"
MISFIT: Final = 1.5
"""From here on, other texts than the candidates have so large a share that the user should know."""
RECORD_COLUMNS: Final = (
    "question", "value", "reports", "estimate", "standard_error", "low", "high", "consistent", "seen"
)  # fmt: skip
TEXT_COLUMNS: Final = ("value", "share", "standard_error", "low", "high", "consistent", "significance", "seen")


# Shares of a list of values, or of words.


def view_shares(collected: "local.Collected[Any]", options: EstimateOptions) -> None:
    """Show shares, say for whom their intervals are, what noise alone makes, and what forged reports can do."""
    estimate, likely = _shares(collected, options)
    if estimate is None:
        return
    rows = estimate.rows(options.confidence, whom=options.whom.value, together=options.together)
    likeliest = [{"likeliest": float(share)} for share in likely.shares] if likely is not None else [{}] * len(rows)
    whole = [{**row, **share} for row, share in zip(rows, likeliest, strict=True)]
    names = ("share", "low", "high", "consistent", *(("likeliest",) if likely is not None else ()))
    show_as(
        options.format,
        table=lambda: _table_of_shares(whole, names),
        rows=whole,
        document=lambda: {**options.document(collected, options.whom), "estimates": whole},
        arrow=lambda: estimate.to_arrow(options.confidence, whom=options.whom.value, together=options.together),
    )
    population = options.whom is Whom.population
    whose = "the population they are a random sample of" if population else "those who sent a report"
    note("for", f"{whose}; {options.held}.")
    band = float(estimate.noise_band(options.confidence).max())
    note("noise", f"you cannot distinguish a share below {band:.3g} from 0.")
    _note_forged(estimate, options.forged, "a share")
    _draw(options, collected.task.question, {collected.task.question: rows}, "value", "share")


def _shares(
    collected: "local.Collected[Any]", options: EstimateOptions
) -> tuple["local.FrequencyEstimate | None", "local.Likeliest | None"]:
    """Return what reports say about shares, and the likeliest ones; None if no words were found."""
    candidates, mechanism, reports = options.candidates, collected.mechanism, collected.reports
    match collected.task.mechanism:
        case "sketch" | "hadamard":
            if candidates is None:
                raise InvalidParameter(
                    "A sketch names no words by itself; give a file of them: --candidates words.txt."
                )
            return lw.local.estimate_sketch(mechanism, reports, candidates), None
        case "prefixes":
            if candidates is not None:
                raise InvalidParameter("Reports of prefixes need no candidates: leave out --candidates.")
            return _words(collected, options.confidence), None
        case _:
            if candidates is not None:
                raise InvalidParameter("The task lists what may be answered: leave out --candidates.")
            quick = len(reports) * mechanism.categories <= MOST_LIKELIHOODS
            likely = lw.local.likeliest(mechanism, reports) if quick else None
            return lw.local.estimate(mechanism, reports, collected.task.values), likely


def _words(collected: "local.Collected[local.PrefixExtending]", confidence: float) -> "local.FrequencyEstimate | None":
    words = lw.local.find_words(collected.mechanism, collected.reports, confidence=confidence)
    note("found", f"{len(words.words):,} words of {words.tried:,} tried; rarer ones look like noise.")
    whose = "other respondents than found the words" if words.checked else "those who found the words, so too large"
    note("shares", f"among {whose}.")
    return words.estimate


def _table_of_shares(rows: Sequence[Row], names: Sequence[str]) -> Table:
    """Return shares with their intervals; what noise alone may make, and what is not known, has a question mark."""
    headers = [{"low": "from", "high": "to"}.get(name, name) for name in names]
    table = new_table("value", *headers, "", numbers=headers)
    for row in rows:
        cells = ["?" if row[name] is None else f"{row[name]:.4f}" for name in names]
        table.add_row(*map(text, (row["value"], *cells, "" if row["seen"] else "?")))
    return table


# Texts of RAPPOR.


def view_texts(collected: "local.Collected[local.Rappor]", options: EstimateOptions) -> None:
    """Show the share of each candidate, the largest first.

    Raises:
        InvalidParameter: Without candidates.
    """
    if options.candidates is None:
        raise InvalidParameter("Bits tell nothing without texts to look for: give --candidates FILE, one text a line.")
    # As devices take them.
    texts = list(dict.fromkeys(unicodedata.normalize("NFC", candidate) for candidate in options.candidates))
    estimate = lw.local.decode(collected.mechanism, collected.reports, texts)
    rows = sorted(
        estimate.rows(options.confidence, together=options.together), key=lambda row: -float(row["share"] or 0)
    )
    show_as(
        options.format,
        table=lambda: _table_of_shares(rows, ("share", "low", "high", "consistent")),
        rows=rows,
        columns=TEXT_COLUMNS,
        document=lambda: {
            **options.document(collected, Whom.population),
            "reports": estimate.reports,  # those that measured
            "chosen_by": estimate.chosen_by,
            "candidates": estimate.candidates,
            "estimates": rows,
            "unallocated": {"share": estimate.unallocated, "standard_error": estimate.unallocated_error},
            "misfit": estimate.misfit,
        },
        arrow=lambda: estimate.to_arrow(options.confidence, together=options.together),
    )
    _note_texts(estimate, options)
    _draw(options, collected.task.question, {collected.task.question: rows[:MOST_DRAWN]}, "value", "share")


def _note_texts(estimate: "local.RapporEstimate", options: EstimateOptions) -> None:
    """Say what was measured by what, for whom intervals are, and what is left."""
    from lapwing.local.rappor.rappor_estimate import FEW  # here, so that `lapwing --help` loads no engine

    if estimate.chosen_by:
        chose = f"{estimate.chosen_by:,} reports chose {len(estimate.texts):,} of {estimate.candidates:,} candidates"
        note("chosen", f"{chose}, and {estimate.reports:,} others measured them.")
    if estimate.few:
        few = f"{estimate.reports:,} reports are too few for intervals, and to say what is seen"
        note("few", f"{few}; {FEW} are needed.")
        note("left", f"{estimate.unallocated:.3g} for all other texts, without an interval.")
    else:
        note("for", f"the population that respondents are a random sample of; {options.held}.")
        note("left", f"{estimate.unallocated:.3g} ±{1.96 * estimate.unallocated_error:.2g} (95 %) for all other texts.")
    if estimate.misfit > MISFIT:
        note("misfit", f"other texts disturb: errors are {estimate.misfit**0.5:.2g} times noise's; list more texts.")
    if options.forged and estimate.texts:
        most = estimate.forged(options.forged).max()
        note("forged", f"{_moving(options.forged)} a share by {most:.3g} at most.")


# The mean of a number, and several questions.


def view_mean(collected: "local.Collected[local.MeanRandomizer]", options: EstimateOptions) -> None:
    """Show the mean of a number, say for whom its interval is, and what forged reports can do."""
    estimate = lw.local.estimate_mean(collected.mechanism, collected.reports)
    _show_questions(collected, {collected.task.question: estimate}, options.confidence, options.whom, options)
    whose = "those who sent a report" if options.whom is Whom.respondents else "the population they are a sample of"
    note("for", f"{whose}; the interval holds with {100 * options.confidence:g} %.")
    number = estimate.mechanism.number
    note("bounds", f"numbers below {number.lower} or above {number.upper} count as these.")
    _note_forged(estimate, options.forged, "the mean")


def view_attributes(
    collected: "local.Collected[local.OneAttribute | local.AllAttributes]", options: EstimateOptions
) -> None:
    """Show shares or mean of every question, from the reports on it: drawn from all respondents."""
    estimates = {**lw.local.estimate_record(collected.task, collected.reports), **_tables(collected)}
    wrong = (1 - options.confidence) / (max(len(estimates), 1) if options.together else 1)
    _show_questions(collected, estimates, 1 - wrong, Whom.population, options)
    note("for", f"all respondents, and the population they are a random sample of; {options.held}.")
    for question in collected.mechanism.questions:
        if question not in estimates:
            note("none", f"no report tells {question!r}.")
    for question, each in estimates.items():
        if not isinstance(each, lw.local.JointEstimate):
            _note_forged(each, options.forged, f"an estimate of {question!r}")


def _tables(collected: "local.Collected[Any]") -> "dict[str, local.JointEstimate]":
    """Return the table of every two questions for values, if reports tell all of them."""
    from lapwing.local.joint_estimates import joint_counts  # here, so that `lapwing --help` loads no engine

    asked, tables = collected.task.asked, {}
    for counts in joint_counts(asked) if isinstance(asked, lw.local.client.Attributes) else ():
        counts.add(collected.reports)
        tables[" × ".join(counts.questions)] = counts.estimate()
    return tables


def _show_questions(
    collected: "local.Collected[Any]",
    estimates: "Mapping[str, local.FrequencyEstimate | local.MeanEstimate | local.JointEstimate]",
    confidence: float,
    whom: Whom,
    options: EstimateOptions,
) -> None:
    rows = [
        row
        for question, each in estimates.items()
        for row in _rows_of(question, each, confidence, whom=whom, together=options.together)
    ]
    show_as(
        options.format,
        table=lambda: _table_of_questions(rows),
        rows=rows,
        columns=RECORD_COLUMNS,
        document=lambda: {**options.document(collected, whom), "estimates": rows},
    )
    own = {question: [row for row in rows if row["question"] == question] for question in estimates}
    _draw(options, collected.task.question, own, "value", "estimate")


def _rows_of(
    question: str,
    estimate: "local.FrequencyEstimate | local.MeanEstimate | local.JointEstimate",
    confidence: float,
    *,
    whom: Whom,
    together: bool,
) -> list[Row]:
    """Return a record a value, or one of the mean, with the same columns."""
    if isinstance(estimate, lw.local.MeanEstimate):
        (row,) = estimate.rows(confidence, whom=whom.value)
        return [{"question": question, "value": "mean", "estimate": row.pop("mean"), **row, "seen": None}]
    if isinstance(estimate, lw.local.JointEstimate):
        shares = estimate.rows(confidence, together=together)
    else:
        shares = estimate.rows(confidence, whom=whom.value, together=together)
    return [
        {
            "question": question,
            "value": row["value"],
            "reports": estimate.reports,
            "estimate": row["share"],
            **{name: row[name] for name in ("standard_error", "low", "high", "consistent", "seen")},
        }
        for row in shares
    ]


def _table_of_questions(rows: Sequence[Row]) -> Table:
    names = ("reports", "estimate", "from", "to", "consistent")
    table = new_table("question", "value", *names, numbers=names)
    for row in rows:
        cells = ["?" if row[name] is None else f"{row[name]:.4f}" for name in ("estimate", "low", "high", "consistent")]
        table.add_row(*map(text, (row["question"], row["value"], f"{row['reports']:,}", *cells)))
    return table


# A yes or no in every period.


def view_periods(collected: "local.Collected[local.DyadicTree]", options: EstimateOptions) -> None:
    """Show the share of yes in every period that reports reach, for whom intervals are, and which changes count.

    Raises:
        InvalidParameter: While reports reach no period.
    """
    tree, task = collected.mechanism, collected.task
    estimate = lw.local.estimate_over_time(tree, collected.reports)
    rows = [
        {"period": row["period"], "begins": (task.opens + timedelta(days=tree.days * i)).isoformat(), **row}
        for i, row in enumerate(estimate.rows(options.confidence, together=options.together))
    ]
    show_as(
        options.format,
        table=lambda: _table_of_periods(rows),
        rows=rows,
        document=lambda: {**options.document(collected, Whom.population), "estimates": rows},
    )
    if len(rows) < tree.periods:
        note("so far", f"{len(rows)} of {tree.periods} periods: of every later one a block has no reports yet.")
    note("for", f"the population that the respondents are a random sample of; {options.held}.")
    counted = f"the first {tree.changes} of a respondent count"
    note("changes", f"{counted}; whoever changes more often stays as they were then.")
    if options.forged:
        down, up = (float(side.max()) for side in estimate.forged(options.forged))
        devices = "1 forged device moves" if options.forged == 1 else f"{options.forged:,} forged devices move"
        bounded = f"{devices} the raw share of a period by -{down:.3g} to +{up:.3g} at most."
        note("forged", bounded if isfinite(down + up) else "every report of some block may be forged: no bound.")
    _draw(options, task.question, {task.question: rows}, "begins", "share")


def _table_of_periods(rows: Sequence[Row]) -> Table:
    table = new_table("period", "begins", "share", "from", "to", numbers=("period", "share", "from", "to"))
    for row in rows:
        cells = (f"{row[name]:.4f}" for name in ("share", "low", "high"))
        table.add_row(*map(text, (str(row["period"]), row["begins"], *cells)))
    return table


# What all of them share.


def said_of(check: "local.DrawCheck") -> str:
    """Return a sentence about draws that are uneven: what comes too often, and how unlikely that is."""
    most = check.crowded[0]
    expected = f"{most.expected:,.4g} ±{most.deviation:,.2g} are expected"
    which = f"{check.name} {most.first:,}" + (f" to {most.last:,}" if most.last > most.first else "")
    if check.name.startswith("ones"):
        seen = f"the reports have {most.reports:,} {check.name} where {expected}"
    else:
        seen = f"{which} has {most.reports:,} reports where {expected}"
    return f"{seen} (p = {check.p_value:.1g}); forged reports can be the cause"


def _note_forged(estimate: "local.FrequencyEstimate | local.MeanEstimate", forged: int, moved: str) -> None:
    """Say how far so many forged reports move something, if anybody asked."""
    if not forged:
        return
    if forged >= estimate.reports:
        note("forged", f"every report behind {moved} may be forged, so nothing bounds how far it was moved.")
        return
    down, up = (side if isinstance(side, float) else float(side.max()) for side in estimate.forged(forged))
    note("forged", f"{_moving(forged)} {moved} by -{down:.3g} to +{up:.3g} at most.")


def _moving(forged: int) -> str:
    """Return the beginning of a sentence about so many forged reports."""
    return "1 forged report moves" if forged == 1 else f"{forged:,} forged reports move"


def _draw(options: EstimateOptions, title: str, parts: Mapping[str, Sequence[Row]], key: str, value: str) -> None:
    """Write bars with intervals, if a chart is wanted: a panel for each part, by its title.

    Shares that noise alone makes are marked, and those of periods whose interval has 0 in it.
    """
    if options.plot is None:
        return
    panels = []
    for panel, rows in parts.items():
        marked = [{**row, FAINT: row.get("seen", "period" not in row or row["low"] > 0) is False} for row in rows]
        panels.append(
            bars_with_intervals(
                marked,
                keys=[key],
                value=value,
                low="low",
                high="high",
                title=panel,
                faint=FAINT,
                confidence=options.confidence,
            )
        )
    write_chart(panels[0] if len(panels) == 1 else below_each_other(title, *panels), options.plot)


View = tuple[Callable[["local.Collected[Any]", EstimateOptions], None], str, tuple[str, ...]]
SHARES: Final[View] = (view_shares, "shares", ())
VIEWS: Final[Mapping[str, View]] = {
    **dict.fromkeys(("rappor", "rappor-once"), (view_texts, "texts of RAPPOR", ("--whom respondents",))),
    **dict.fromkeys(("duchi", "piecewise", "hybrid"), (view_mean, "a number", ("--together", "--candidates"))),
    "tree": (view_periods, "a yes or no over time", ("--whom respondents", "--candidates")),
    **dict.fromkeys(
        ("one-attribute", "all-attributes"),
        (view_attributes, "several questions", ("--whom respondents", "--candidates")),
    ),
}
"""How the reports of a mechanism are shown, what they are of, and which options that ignores; else `SHARES`."""
