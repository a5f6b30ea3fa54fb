"""The method report of a release: one page of HTML for readers of the tables, which prints on A4.

Guarantee:
    The page is a function of the manifest and of the published tables. So it is post-processing, and costs nothing.

It has the style of the guarantee's page (`guarantee.rendering`): no script, and nothing from elsewhere.
"""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from html import escape
from typing import Any, Final

from lapwing.guarantee.meaning import odds_change_up
from lapwing.guarantee.page import PageSection, Row
from lapwing.guarantee.rendering import html_section, standing_alone
from lapwing.privacy.figures import margin, noisy, separated, significant, size
from lapwing.tabulation.incomplete_keys import lacking_in_words
from lapwing.tabulation.period_comparison import CellChange, NumberChanges, changes_between, combined_promise
from lapwing.tabulation.published import Cell, PublishedFigure, PublishedNumber, PublishedRelease

NEIGHBOURS: Final = {
    "add_remove": "whether one of them is in the data at all, with all rows",
    "replace_one": "which of two sets of rows one of them has",
}
TREATMENTS: Final = {
    "mark": "Such cells are marked.",
    "leave out": "Such cells are left out.",
    "coarsen": "Such cells are left out. Columns that end in _coarser have a reliable cell of a coarser table instead.",
}
MOST_BARS: Final = 12
"""Cells of a chart, and changes in a table."""
BAR: Final = 40
"""Height in a chart, in pixels."""
WORSE: Final = 1.2
"""Times the error of released numbers: beyond it the page says why adjusted numbers err more."""
FURTHER: Final = (
    "In these tables adjusted numbers are further from the truth than released numbers: {names}. Noise cannot make an "
    "adjusted cell negative. So small cells come out too large on average, and sums of many small cells even more. Use "
    "the released numbers of these tables."
)
AVOID: Final = (
    "Do not rank cells whose intervals overlap. Noise can have made their order.",
    "Do not take the largest of many cells at its word. The largest tends to be one with lucky noise.",
    "Do not add up cells if a table has their total. Each cell has its own noise. So the ± of a sum of n "
    "cells is about √n times the ± of one cell.",
    "Do not divide by an unreliable figure. The quotient can be any number.",
    "Do not read the ± as the whole error. It covers the noise that was added, and not errors of the data themselves, "
    "such as missing answers.",
    "Do not expect tables to add up to each other exactly, unless this page says that they do.",
)


def method_report(release: PublishedRelease, previous: PublishedRelease | None = None) -> str:
    """Return the page of a release.

    Args:
        previous: The release of the last period, to compare it with.
    """
    manifest, numbers = release.manifest, release.numbers
    sections = [
        html_section(_protected(manifest)),
        html_section(_errors(release)),
        html_section(_reading(release), _chart(numbers)),
        html_section(PageSection(title="Mistakes to avoid", paragraphs=_avoid(numbers))),
    ]
    if adjusted := _adjusted(manifest):
        sections.append(html_section(adjusted))
    if previous is not None:
        sections.append(html_section(_compared(previous, release)))
    sections += [html_section(_noise(manifest)), html_section(_queries(manifest)), html_section(_check(manifest))]
    line = f"Method report. Tables of {manifest['dataset']}, made with Lapwing {manifest['lapwing']}."
    return standing_alone(manifest["title"], line, "".join(sections), "en")


def _protected(manifest: Mapping[str, Any]) -> PageSection:
    epsilon, delta = _promise(manifest)
    factor, chance = odds_change_up(epsilon, delta)
    beyond = f", except with a probability of at most {significant(float(chance), 2)}" if chance else ""
    likely = f"{math.ceil(1000 * factor / (1 + factor)) / 10:g} %" if math.isfinite(factor) else "100 %"
    exact = [table["name"] for table in manifest["tables"] if _is_more_exact(table)]
    which = "The tables that were bought for this release" if exact else "All tables of this release"
    paragraphs = [
        f"Noise protects {manifest['unit']} in the data. It hides {NEIGHBOURS[manifest['neighbouring']]}.",
        f"{which} together are differentially private, with epsilon (ε) {size(float(epsilon))}"
        + (f" and delta (δ) {significant(float(delta), 2)}." if delta else "."),
        "Suppose that someone thinks two cases equally likely, and knows all other rows. After reading these tables, "
        f"they hold one case for at most {likely} likely{beyond}. Noise usually hides much more.",
    ]
    if exact:
        paragraphs.append(
            f"The publisher bought results before, at another cost: {', '.join(exact)}. That cost counts in addition."
        )
    rows = (
        ("Part", "Value"),
        ("epsilon (ε)", str(manifest["epsilon"])),
        ("delta (δ)", significant(float(delta), 4)),
        ("kind of ledger", str(manifest["measure"])),
        (
            "charged",
            f"{significant(float(manifest['cost']['amount']), 6)} in units of that ledger, once for all tables",
        ),
        ("ledger entries", ", ".join(map(str, manifest["ledger_entries"]))),
        ("division among the tables", f"aims at the least {manifest['objective']}"),
    )
    return PageSection(title="What is protected", paragraphs=tuple(paragraphs), table=rows)


def _promise(manifest: Mapping[str, Any]) -> tuple[Fraction, Fraction]:
    """Return (ε, δ) of a release, with the δ of private keys."""
    delta = Fraction(manifest["delta"]) + Fraction(manifest.get("delta_keys", 0))
    return Fraction(manifest["epsilon"]), delta


def _is_more_exact(table: Mapping[str, Any]) -> bool:
    planned = table.get("planned_half_widths", {})
    return any(planned.get(name, width) != width for name, width in table["half_widths"].items())


def _errors(release: PublishedRelease) -> PageSection:
    part = float(Fraction(release.manifest["unreliable"]))
    rows: list[Row] = [("Number", "±", "Typical ± of a cell", "Unreliable cells")]
    for number in release.numbers:
        figures = list(number.figures.values())
        widths = [figure.half_width for figure in figures if figure.half_width is not None]
        parts = [
            figure.half_width / abs(figure.value) if figure.value else math.inf
            for figure in figures
            if figure.half_width is not None and figure.value is not None
        ]
        unreliable = sum(figure.is_unreliable for figure in figures)
        rows.append(
            (
                _named(number.table, number.name),
                _range_of(widths),
                _percent(statistics.median(parts)) if parts else "–",
                f"{unreliable:,} of {len(figures):,}",
            )
        )
    paragraphs = (
        "The ± is half of a 95 % interval: in 95 of 100 cells, the number without noise is at most that far away.",
        "The median over all cells is the typical ±, in percent of the number.",
        f"A cell is unreliable if its ± is more than {_percent(part)} of the published number. "
        + TREATMENTS[release.manifest["unreliable_cells"]],
    )
    return PageSection(title="Errors by table", paragraphs=paragraphs, table=tuple(rows))


def _named(table: str, number: str) -> str:
    return table if table == number else f"{table}: {number}"


def _range_of(widths: Sequence[float]) -> str:
    if not widths:
        return "–"
    least, most = margin(min(widths)), margin(max(widths))
    return least if least == most else f"{least} to {most}"


def _percent(part: float) -> str:
    return f"{significant(100 * part, 2 if part < 0.995 else 3)} %" if part < 10 else "more than 1,000 %"


def _reading(release: PublishedRelease) -> PageSection:
    """Return examples: the first reliable figure of some tables, and the first that is not."""
    paragraphs = []
    for number in _one_of_each_table(release.numbers):
        if found := _first(number, is_unreliable=False):
            keys, figure, value, half = found
            ends = f"{_text(figure.low)} to {_text(figure.high)}"
            paragraphs.append(
                f"In the table “{number.table}”, {number.name} is {value} {half}{_of_cell(number, keys)}. The "
                f"interval goes from {ends}. Of 100 such intervals, about 95 contain the number without noise."
            )
    for number in release.numbers:
        if found := _first(number, is_unreliable=True):
            keys, _, value, half = found
            paragraphs.append(
                f"In the table “{number.table}”, {number.name} is {value} {half}{_of_cell(number, keys)}. This cell "
                "is unreliable. It says little more than that the number is small."
            )
            break
    return PageSection(title="How to read a figure", paragraphs=tuple(paragraphs))


def _of_cell(number: PublishedNumber, keys: tuple[Cell, ...]) -> str:
    return f" for {number.where(keys)}" if keys else ""


def _one_of_each_table(numbers: Sequence[PublishedNumber], most: int = 3) -> list[PublishedNumber]:
    return list({number.table: number for number in reversed(numbers)}.values())[::-1][:most]


def _first(
    number: PublishedNumber, *, is_unreliable: bool
) -> tuple[tuple[Cell, ...], PublishedFigure, str, str] | None:
    for keys, figure in number.figures.items():
        if figure.is_unreliable is is_unreliable and figure.half_width is not None and math.isfinite(figure.half_width):
            return keys, figure, *noisy(figure.value, figure.low or 0.0, figure.high or 0.0)
    return None


def _text(value: float | None) -> str:
    return "–" if value is None else separated(value, 0 if abs(value) >= 100 else None)


def _chart(numbers: Sequence[PublishedNumber]) -> str:
    """Return the intervals of the table with the most cells that a chart has room for, as a drawing without script."""
    shown = [number for number in numbers if 2 <= len(_drawn(number)) <= MOST_BARS]
    if not shown:
        return ""
    number = max(shown, key=lambda one: len(_drawn(one)))
    cells = _drawn(number)
    least = min(0.0, *(low for _, low, _, _ in cells))
    span = max(0.0, *(high for _, _, _, high in cells)) - least or 1.0
    marks = "".join(_mark(place, cell, least, span) for place, cell in enumerate(cells))
    said = escape(f"{number.name} in the table “{number.table}”, with 95 % intervals. The upright lines are at 0.")
    return (
        f'<p>{said}</p><svg role="img" aria-label="{said}" width="100%" '
        f'height="{BAR * len(cells)}" font-size="14">{marks}</svg>'
    )


def _drawn(number: PublishedNumber) -> list[tuple[str, float, float, float]]:
    return [
        (
            f"{number.where(keys)}: {' '.join(noisy(figure.value, figure.low, figure.high))}",
            figure.low,
            figure.value,
            figure.high,
        )
        for keys, figure in number.figures.items()
        if figure.value is not None and figure.low is not None and figure.high is not None
        if math.isfinite(figure.high - figure.low)
    ]


def _mark(place: int, cell: tuple[str, float, float, float], least: float, span: float) -> str:
    """Return one interval of a chart: its words above it, a line, a dot at the number, and an upright line at 0.

    The upright line is as high as the interval only, so that it crosses no words.
    """
    label, *ends = cell
    zero, low, value, high = (f"{100 * (end - least) / span:.2f}%" for end in (0, *ends))
    top, middle = BAR * place + 18, BAR * place + 28
    return (
        f'<text x="6" y="{top}" fill="currentColor">{escape(label)}</text>'
        f'<line x1="{zero}" x2="{zero}" y1="{middle - 5}" y2="{middle + 8}" stroke="currentColor"/>'
        f'<line x1="{low}" x2="{high}" y1="{middle}" y2="{middle}" stroke="currentColor" stroke-width="3" '
        f'opacity="0.5"/>'
        f'<circle cx="{value}" cy="{middle}" r="4" fill="currentColor"/>'
    )


def _avoid(numbers: Sequence[PublishedNumber]) -> tuple[str, ...]:
    below = any(figure.value is not None and figure.value < 0 for one in numbers for figure in one.figures.values())
    more = "Do not take a figure below 0 for an error. Noise can move a small number below 0; read it as close to 0."
    return (*AVOID, more) if below else AVOID


def _adjusted(manifest: Mapping[str, Any]) -> PageSection | None:
    """Return what adjusted numbers are, and the part of them that is near the truth: None without such numbers."""
    rows: list[Row] = [("Column", "Within the ± of the released number", "Error, where released numbers have 100 %")]
    worse: list[str] = []
    for table in manifest["tables"]:
        for name, effect in table.get("adjusted", {}).get("columns", {}).items():
            error = _percent(effect["error_relative_to_released"])
            rows.append((_named(table["name"], name), _percent(effect["average_coverage"]), error))
            worse += [table["name"]] * (effect["error_relative_to_released"] > WORSE)
    if len(rows) == 1:
        return None
    lacking = lacking_in_words(manifest)
    paragraphs = (
        "Released numbers have noise of their own, so tables of them do not add up. The columns in this table have "
        "adjusted numbers. They add up exactly through all tables of the same rows and measure"
        + (", except by keys that some rows may lack." if lacking else "."),
        *lacking,
        "The interval in the files is of the released number, and has a guarantee. An adjusted number has no interval.",
        "The parts below are averages over the cells of a table. No proof gives them: Lapwing simulated them from the "
        "adjusted numbers.",
        *([FURTHER.format(names=", ".join(dict.fromkeys(worse)))] if worse else []),
        *(
            f"Adjusted numbers meet a public total: {one['value']} in {one['table']}"
            + (f", {', '.join(f'{key} {value}' for key, value in one['cell'].items())}" if one["cell"] else "")
            + f". Source: {one['source']}. Licence: {one['licence']}."
            for one in manifest.get("public_totals", ())
        ),
    )
    return PageSection(title="Numbers that add up", paragraphs=paragraphs, table=tuple(rows))


def _compared(before: PublishedRelease, now: PublishedRelease) -> PageSection:
    compared = changes_between(before, now)
    rows: list[Row] = [("Cell", "Before", "Now", "Change")]
    for each in compared:
        rows += [_changed(each, change) for change in each.clear[: max(1, MOST_BARS // max(1, len(compared)))]]
    paragraphs = [
        f"The last release is “{before.manifest['title']}”, with ε {before.manifest['epsilon']}. The ± of a change "
        "knows the noise of both releases.",
        *_both(before, now),
        *map(_counted, compared),
    ]
    if not compared:
        paragraphs.append("No table of it has the same name, number and keys as one of this release.")
    if len(rows) > 1:
        paragraphs.append("Some changes that are larger than their ±, in the order of the tables:")
    return PageSection(
        title="Compared with the last release", paragraphs=tuple(paragraphs), table=tuple(rows) if len(rows) > 1 else ()
    )


def _counted(each: NumberChanges) -> str:
    name = _named(each.number.table, each.number.name)
    if each.is_same:
        return f"{name}: the same result as in the last release, which was bought once."
    chance = (
        f"about {(1 - each.confidence) * len(each.changes):.1f}" if each.confidence == 0.95 else "at most one in ten"
    )
    return (
        f"{name}: {len(each.clear):,} of {len(each.changes):,} cells changed by more than their ±. Without any "
        f"change in the data it would be {chance}."
    )


def _changed(each: NumberChanges, change: CellChange) -> Row:
    value, half = noisy(
        change.now - change.before,
        change.now - change.before - change.half_width,
        change.now - change.before + change.half_width,
    )
    cell = f"{_named(each.number.table, each.number.name)}, {each.number.where(change.keys)}"
    return cell, _text(change.before), _text(change.now), f"{value} {half}"


def _both(before: PublishedRelease, now: PublishedRelease) -> Iterator[str]:
    """Yield what both releases cost somebody who is in the data of both."""
    if (promise := combined_promise(before, now)) is not None:
        yield (
            "The costs of both releases add up for people in the data of both. Together they are ε "
            f"{size(promise.epsilon)}" + (f" at δ {significant(promise.delta, 2)}." if promise.delta else ".")
        )


def _noise(manifest: Mapping[str, Any]) -> PageSection:
    rows: list[Row] = [("Number", "Noise", "Scale", "Part of the cost")]
    for table in manifest["tables"]:
        for noise in table["noise"]:
            scale = significant(noise["scale"], 4)
            name = _named(table["name"], noise["number"])
            rows.append((name, noise["mechanism"], scale, _percent(table["share"])))
    notes = {note: None for table in manifest["tables"] for note in table["notes"]}
    paragraphs = ("Each number got random noise of a known law. The law is public, and the noise is not.", *notes)
    return PageSection(title="Mechanisms and notes", paragraphs=paragraphs, table=tuple(rows))


def _queries(manifest: Mapping[str, Any]) -> PageSection:
    rows = (("Table", "Query"), *((table["name"], table["query"]) for table in manifest["tables"]))
    return PageSection(title="Queries", table=rows)


def _check(manifest: Mapping[str, Any]) -> PageSection:
    files = (file for table in manifest["tables"] for file in table["files"])
    rows = (("File", "SHA-256"), *((file["file"], file["sha256"]) for file in files))
    text = "Compare the files with these hashes, or run: lapwing release verify manifest.json --public-key FILE"
    return PageSection(title="Files", paragraphs=(text,), table=rows)
