"""The words of the guarantee: what is promised, to whom, on what it rests, and what it leaves out.

Everything here is a function of the catalog, of the ledger's account and of policy; nothing of it comes from a row. The
seal of the ledger's newest entry is a function of the digest of the data. With all else known, it would let somebody
test a guess at the data. So only people who may see the ledger itself see it.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Final

from lapwing.budget import BudgetView, budget_view
from lapwing.catalog import spelling
from lapwing.catalog.condition import in_words
from lapwing.catalog.dictionary import Dictionary
from lapwing.catalog.graph import Graph
from lapwing.catalog.large_delta import delta_warnings
from lapwing.catalog.model import Budget, Catalog, Column, PublicTable, Table
from lapwing.catalog.protection import name_of, noun_of, units_of
from lapwing.catalog.table import Value
from lapwing.guarantee.described import meaning_of, paragraphs_of
from lapwing.guarantee.meaning import GROUPS, LEVELS, odds_change_up, odds_factor_up, power_up, towards_group
from lapwing.guarantee.page import CodedSentence, Head, Page, PageSection, PromisedFiguresDocument, Row
from lapwing.guarantee.plain_words import contents_guess, in_plain_words
from lapwing.languages import Figure, JoinedTexts, Language, Moment, Phrase, say, say_count
from lapwing.ledger.state import LedgerState
from lapwing.privacy import figures
from lapwing.privacy.additive import Loss
from lapwing.privacy.amount_texts import short
from lapwing.privacy.amounts import written
from lapwing.privacy.odometers import AS_IF_CAP, WHENEVER
from lapwing.privacy.raises import RAISED

MOST_VALUES: Final = 20
WHO_READS: Final = (
    say(
        "On this machine: everybody who can read the files of data and catalog. If a service opens this data set, "
        "its own guarantee page says who can query there.",
        code="readers_of_files",
    ),
)
HOLDS: Final = {
    WHENEVER: say("if you stop for any reason"),
    AS_IF_CAP: say("if this total had been the budget from the start"),
    RAISED: say("no matter why the budget was raised"),
}
"""When a figure holds, as `lapwing.privacy` says it."""
IN_LEDGER: Final[Mapping[str, Callable[[str], Phrase]]] = {
    "pure": lambda amount: say("ε of at most {amount} (amounts of ε add up)", amount=amount),
    "gdp": lambda amount: say(
        "μ² of at most {amount} (a unit of Gaussian differential privacy, whose amounts add up)", amount=amount
    ),
    "zcdp": lambda amount: say(
        "ρ of at most {amount} (a unit of zero-concentrated differential privacy, whose amounts add up)", amount=amount
    ),
}
"""A budget in the unit that adds up in each kind of ledger."""


def page_of(
    catalog: Catalog, state: LedgerState, charges: int, asking: Sequence[str] = (), *, sealed: bool = False
) -> Page:
    """Return the present guarantee of a data set in English; `translated` writes it in another language.

    Args:
        charges: How many there were.
        asking: Who may ask, in sentences.
        sealed: Whether to show the hash of the ledger's newest entry, which is for those alone who may see the ledger
            itself.
    """
    view = budget_view(state, ())
    head = Head(sequence=state.sequence)
    if sealed:
        head = replace(head, ledger=catalog.ledger_path.name, hash=state.hash)
    budget = replace(catalog.budget, epsilon=view.epsilon, delta=view.delta)  # as the ledger has it
    said, about = catalog.dictionary, paragraphs_of(catalog.dictionary.dataset)
    sections = (
        PageSection(
            title=say("In plain words", code="plain_words"), paragraphs=tuple(in_plain_words(catalog, view, budget))
        ),
        _promise(catalog, view),
        _meaning_of(catalog, budget, view.total),
        _groups(catalog, budget, view.total),
        _spent(view, charges),
        *([PageSection(title=say("The data set", code="dataset"), paragraphs=about)] if about else []),
        *(_protected(table, said) for table in catalog.tables),
        *(_public(table, said) for table in catalog.public_tables),
        *map(_graph, catalog.graphs),
        PageSection(title=say("Access", code="access"), paragraphs=tuple(asking) or WHO_READS),
        PageSection(title=say("Limits of the promise", code="limits"), paragraphs=tuple(_left_out(catalog))),
        _record(view, head),
    )
    return Page(
        dataset=catalog.name,
        date=Moment(datetime.now(UTC)),
        sections=tuple(map(_with_codes, sections)),
        figures=PromisedFiguresDocument(
            epsilon=written(view.epsilon),
            delta=written(view.delta),
            delta_keys=written(view.delta_keys),
            measure=view.total.kind,
            amount=written(view.total.amount),
            spent=written(view.spent.amount),
            neighbouring=catalog.budget.neighbouring,
            unit=str(units_of(catalog.tables, catalog.dictionary)),
            version=view.version,
            sequence=state.sequence,
            closed=view.closed,
        ),
    )


def _with_codes(section: PageSection) -> PageSection:
    """Add to a section what its texts are made of, before they are translated."""
    firsts = (row[0] for row in section.table[1:])
    return replace(
        section,
        code=section.title.code if isinstance(section.title, Phrase) else "",
        statements=tuple(tuple(_statements(paragraph)) for paragraph in section.paragraphs),
        row_codes=tuple(first.code if isinstance(first, Phrase) else "" for first in firsts),
    )


def _statements(text: str) -> Iterator[CodedSentence]:
    match text:
        case JoinedTexts():
            for part in text.parts:
                yield from _statements(part)
        case Phrase():
            yield CodedSentence(code=text.code, values={name: str(value) for name, value in text.values.items()})
        case _:
            yield CodedSentence(code="text", values={"text": text})


def translated(page: Page, language: Language) -> Page:
    """Return a page in a reader's language, with numbers and dates as the reader writes them.

    Values of columns stay as the catalog spells them.
    """
    return replace(
        page,
        date=language.text(page.date),
        sections=tuple(_translated(section, language.text) for section in page.sections),
        language=language.tag,
    )


def _translated(section: PageSection, text: Callable[[str], str]) -> PageSection:
    return PageSection(
        title=text(section.title),
        paragraphs=tuple(map(text, section.paragraphs)),
        table=tuple(tuple(map(text, row)) for row in section.table),
    )


def promise(epsilon: Fraction, delta: Fraction) -> Phrase:
    """Return an (ε, δ) in words."""
    return _figures(Figure(figures.epsilon(epsilon)), delta)


def _figures(epsilon: Figure | Phrase, delta: Fraction) -> Phrase:
    if not delta:
        return say("ε = {epsilon}", epsilon=epsilon)
    return say("ε = {epsilon}, δ = {delta}", epsilon=epsilon, delta=Figure(figures.delta(delta)))


def _promise(catalog: Catalog, view: BudgetView) -> PageSection:
    rows: list[Row] = [
        (say("what"), say("value")),
        (say("protected (the privacy unit)", code="privacy_unit"), units_of(catalog.tables, catalog.dictionary)),
        (say("neighbours", code="neighbours"), _neighbours(catalog)),
        (say("promise for all queries of all people", code="promise"), promise(view.epsilon, view.delta)),
        (
            say("the same limit as the ledger counts it", code="limit_in_ledger"),
            IN_LEDGER[view.total.kind](_amount(view.total)),
        ),
    ]
    if view.delta_keys:
        rows.append(
            (
                say("part of δ for finding groups that are not listed", code="delta_keys"),
                Figure(figures.delta(view.delta_keys)),
            )
        )
    text = say(
        "This holds for all queries of {dataset}, by any people, in any order, even if each query is chosen "
        "after all earlier results. It protects {unit}. Neighbours are {neighbours}. "
        "Take any two neighbours, and any set of possible results. The probability of that set under one neighbour is "
        "at most e^ε times its probability under the other, plus δ.",
        dataset=catalog.name,
        unit=units_of(catalog.tables, catalog.dictionary),
        neighbours=_neighbours(catalog),
        code="promise_definition",
    )
    symbols = say(
        "ε (epsilon) limits how much all results together can tell about one {noun}: the smaller, the less.",
        noun=noun_of(catalog.tables, catalog.dictionary),
        code="epsilon_explained",
    )
    parts = () if view.by_part is None else (_in_parts(catalog, view),)
    closed = (
        (say("The data set is closed. Lapwing answers no more queries.", code="dataset_closed"),) if view.closed else ()
    )
    warnings = delta_warnings(view.delta, [table.people for table in catalog.tables])
    shown = (say("Warning: {warning}", warning=warning.sentence, code=warning.code) for warning in warnings)
    return PageSection(
        title=say("The promise", code="promise"),
        paragraphs=(symbols, text, *shown, *parts, *_raised(view), *closed),
        table=tuple(rows),
    )


def _neighbours(catalog: Catalog) -> Phrase:
    noun, one_row = noun_of(catalog.tables, catalog.dictionary), _is_row(catalog)
    if catalog.budget.neighbouring == "add_remove":
        if one_row:
            return say("two data sets of which one has an additional row")
        return say("two data sets of which one has an additional {noun}, with all its rows", noun=noun)
    if one_row:
        return say("two data sets that differ in one row")
    return say("two data sets that differ in the rows of one {noun}", noun=noun)


def _is_row(catalog: Catalog) -> bool:
    return all(name_of(table) is None for table in catalog.tables)


def _raised(view: BudgetView) -> tuple[str, ...]:
    """Say what a raised budget promises, and when."""
    if view.raised is None:
        return ()
    steps = JoinedTexts((promise(*pair) for pair in view.earlier), say(", then "))
    history = say("The budget was raised by the curator: it was {steps}.", steps=steps, code="budget_raised")
    if not view.raised.delta:
        certain = say("The promise above holds for all that was released, before and after.", code="raise_holds")
        return (_sentences(history, certain),)
    condition = say(
        "The promise above, and the figures below, hold if that raise did not depend on results. It may "
        "have been settled in advance, or it could never have gone beyond this figure. If the curator raised the "
        "budget because of results, the proof covers only {promise}, {holds}.",
        promise=_figures(_up(view.raised.epsilon), view.raised.delta),
        holds=HOLDS[view.raised.holds],
        code="raise_conditional",
    )
    return (_sentences(history, condition),)


def _in_parts(catalog: Catalog, view: BudgetView) -> str:
    names = JoinedTexts(map(_named, list(view.parts)[:MOST_VALUES]), say(", "))
    return say(
        "The data are in {count} parts, {names}. Each {noun} is in one of them, and the promise is the same "
        "in each. Lapwing charges a query about some parts to only these parts.",
        noun=noun_of(catalog.tables, catalog.dictionary),
        count=Figure(len(view.parts)),
        names=names,
        code="parts",
    )


def _meaning_of(catalog: Catalog, budget: Budget, total: Loss) -> PageSection:
    """Say what one presence changes.

    `odds_change_up` has the proof. Under add_remove two data sets that differ in what one unit's rows hold are two
    steps apart, by way of the one without it: what holds for them is what holds for two units.
    """
    factor, chance = odds_change_up(budget.epsilon, budget.delta)
    if not chance:
        changed = say(
            "All results together change the odds of that by a factor of at most {times}.",
            times=_factor(factor),
            code="odds_factor",
        )
    else:
        changed = say(
            "All results together change the odds of that by a factor of at most {times}, except with a probability of "
            "less than {chance}. These are 2·e^ε and 3δ. Without δ, the factor would be e^ε, which is {plain}.",
            times=_factor(factor),
            chance=Figure(figures.delta(chance)),
            plain=_factor(odds_factor_up(budget.epsilon)),
            code="odds_factor_with_exception",
        )
    odds = _sentences(
        _wondered(catalog),
        changed,
        say(
            "That is true for any knowledge that they already have. The promise does not hide facts that hold for "
            "everybody, or that follow from other people's rows. The section in plain words counts right guesses, "
            "where both cases were equally likely. Guesses and odds are two readings of one promise, and both hold.",
            code="any_knowledge",
        ),
    )
    rows: list[Row] = [(say("false alarms"), say("found, at most"))]
    for level in LEVELS:
        rows.append((Figure(figures.level(level)), Figure(figures.level(power_up(budget, total, level)))))
    return PageSection(
        title=say("Meaning for one {noun}", noun=noun_of(catalog.tables, catalog.dictionary), code="meaning"),
        paragraphs=(odds, *_tested(catalog, budget, total)),
        table=tuple(rows),
    )


def _wondered(catalog: Catalog) -> Phrase:
    """Say what somebody may try to learn, which the promise is about."""
    noun = noun_of(catalog.tables, catalog.dictionary)
    if catalog.budget.neighbouring == "add_remove":
        return say("Someone may try to learn whether one {noun} is in the data.", noun=noun, code="presence_sought")
    if _is_row(catalog):
        return say("Someone may try to learn which of two contents one row has.", code="row_contents_sought")
    return say("Someone may try to learn which of two sets of rows one {noun} has.", noun=noun, code="contents_sought")


def _tested(catalog: Catalog, budget: Budget, total: Loss) -> tuple[JoinedTexts | Phrase, ...]:
    """Say what the table of false alarms is about."""
    if catalog.budget.neighbouring == "replace_one":
        return (
            say(
                "Suppose that a test on the results says which of the two it is. The left column is its rate of false "
                "alarms. The right column is the highest rate at which any such test can be right:",
                code="test_of_contents",
            ),
        )
    noun = noun_of(catalog.tables, catalog.dictionary)
    test = say(
        "Suppose that a test on the results says whether one {noun} is in the data. The left column is its rate of "
        "false alarms. The right column is the highest rate at which any such test can find one {noun} that is there:",
        noun=noun,
        code="test_of_presence",
    )
    if _is_row(catalog):
        also = say(
            "Someone may also try to learn which of two contents one row has. For that, the figures for a group of two "
            "hold (see below).",
            code="row_contents_also_sought",
        )
    else:
        also = say(
            "Someone may also try to learn which of two sets of rows one {noun} has. For that, the figures for a group "
            "of two hold (see below).",
            noun=noun,
            code="contents_also_sought",
        )
    return _sentences(also, contents_guess(budget, total)), test


def _groups(catalog: Catalog, budget: Budget, total: Loss) -> PageSection:
    text = say(
        "The promise is for one {noun}. It hides facts that a group shares (a household, a ward) less well. For groups "
        "of these sizes, the same results have these figures:",
        noun=noun_of(catalog.tables, catalog.dictionary),
        code="group_promise",
    )
    rows: list[Row] = [(say("size of the group"), "ε", "δ")]
    for people in GROUPS:
        towards = towards_group(budget, total, people)
        if towards.epsilon is None or towards.delta is None:
            rows.append((str(people), say("nothing is promised"), ""))
        else:
            rows.append((str(people), _up(towards.epsilon), Figure(figures.delta(towards.delta))))
    return PageSection(title=say("The promise for groups", code="groups"), paragraphs=(text,), table=tuple(rows))


def _spent(view: BudgetView, charges: int) -> PageSection:
    left = Figure(short(view.remaining.amount, down=True))
    rows: list[Row] = [
        ("", figures.AMOUNTS[view.total.kind], say("share")),
        (say("spent", code="spent"), _amount(view.spent), Figure(figures.share(view.share_spent))),
        (say("left", code="remaining"), left, Figure(figures.share(1 - view.share_spent))),
    ]
    if view.by_part is not None:
        parts, more = list(view.parts.items()), len(view.parts) - MOST_VALUES
        rows += [
            (say("spent of {part}", part=_named(part), code="spent_in_part"), _amount(loss), "")
            for part, loss in parts[:MOST_VALUES]
        ]
        if more > 0:
            rows.append((say_count(more, "and {count} part more", "and {count} parts more", code="more_parts"), "", ""))
    if view.delta_keys:
        part = Figure(figures.share(view.delta_keys_spent / view.delta_keys))
        rows.append(
            (
                say("spent of δ for finding groups", code="delta_keys_spent"),
                Figure(figures.delta(view.delta_keys_spent)),
                part,
            )
        )
    version = str(view.version)
    if charges == 0:
        asked = say(
            "No query was charged, up to version {version} of the data.", version=version, code="no_query_charged"
        )
    else:
        asked = say_count(
            charges,
            "One query was charged, up to version {version} of the data.",
            "{count} queries were charged, up to version {version} of the data.",
            version=version,
            code="queries_charged",
        )
    paragraphs: list[str] = [asked]
    if view.spent.amount or view.delta_keys_spent:
        paragraphs.append(_spent_so_far(view))
    if view.lost:
        paragraphs.append(
            say(
                "That is not the sum of the queries above. Entries of the ledger were lost before it was restored from "
                "a copy. They count as if they had cost the whole budget of that time.",
                code="lost_entries",
            )
        )
    paragraphs.append(
        say("The promise is about the whole budget, because all of it may be spent.", code="whole_budget")
    )
    return PageSection(title=say("Spending", code="spending"), paragraphs=tuple(paragraphs), table=tuple(rows))


def _spent_so_far(view: BudgetView) -> Phrase:
    """Say which promise what is spent makes if one stops now: that of the whole budget holds then, too."""
    cap, whenever = view.as_if_cap, view.whenever
    is_above = whenever.epsilon > view.epsilon and view.raised is None
    most = promise(view.epsilon, view.delta) if is_above else _figures(_up(whenever.epsilon), whenever.delta)
    if whenever == cap:
        return say(
            "If queries stop now, for any reason, all results together have the promise {most}.",
            most=most,
            code="stopping_now",
        )
    return say(
        "If queries stop now, for any reason, all results together have the promise {most}. If the budget had been "
        "just what is spent, from the start, the promise would be {spent}. Shares of the budget add up; ε does not.",
        most=most,
        spent=_figures(_up(cap.epsilon), cap.delta),
        code="stopping_now_compared",
    )


def _protected(table: Table, said: Dictionary) -> PageSection:
    paragraphs: list[str] = [
        *paragraphs_of(said.table(table.name)),
        _sentences(
            _rows_used(table, said),
            say(
                "The columns that queries may use, and their bounds, are public. Queries cannot see any other column.",
                code="columns_public",
            ),
        ),
    ]
    if table.where:
        paragraphs.append(
            say(
                "Queries see only the rows of its source for which {condition}.",
                condition=in_words(table.where),
                code="row_condition",
            )
        )
    if table.link is not None:
        on = JoinedTexts((f"{here} = {there}" for here, there in table.link.on), say(" and "))
        paragraphs.append(
            say(
                "A row is protected together with the row of {parent} with {on}.",
                parent=table.link.parent.name,
                on=on,
                code="row_link",
            )
        )
    if table.part is not None:
        paragraphs.append(
            say(
                "The column {column} gives the part of {unit}. Queries do not see its rows of other parts.",
                column=table.part,
                unit=units_of([table], said),
                code="part_column",
            )
        )
    return PageSection(
        title=say("The table {name}", name=table.name, code="table"),
        paragraphs=tuple(paragraphs),
        table=_columns(table, said),
    )


def _rows_used(table: Table, said: Dictionary) -> Phrase:
    name = name_of(table)
    if name is None and table.link is None:
        return say("Each row is protected separately.", code="rows_protected")
    return say_count(
        table.max_rows_per_unit,
        "Queries use at most {count} row of {unit}. They see none of its other rows.",
        "Queries use at most {count} rows of {unit}. They see none of its other rows.",
        unit=say("each row of {table}", table=table.root.name) if name is None else units_of([table], said),
        code="row_limit",
    )


def _public(table: PublicTable, said: Dictionary) -> PageSection:
    text = say(
        "Nobody in this table is protected. Results, costs and errors may show all of it.", code="nobody_protected"
    )
    title = say("The public table {name}", name=table.name, code="public_table")
    about = paragraphs_of(said.table(table.name))
    return PageSection(title=title, paragraphs=(*about, text), table=_columns(table, said))


def _graph(graph: Graph) -> PageSection:
    beside = graph.beside_people
    protected = say("The promise protects {unit}.", unit=graph.unit, code="graph_unit")
    others = () if beside is None else (say("{sentence}.", sentence=beside, code="people_of_graph"),)
    return PageSection(title=say("The graph {name}", name=graph.name, code="graph"), paragraphs=(protected, *others))


def _columns(table: Table | PublicTable, said: Dictionary) -> tuple[Row, ...]:
    texts = {column.name: said.column(table.name, column.name) for column in table.columns}
    meant = any(meaning_of(one) for one in texts.values())
    heads = (say("column"), say("type"), *([say("meaning")] if meant else []), say("public bounds or values"))
    unlisted = say("all values are public") if isinstance(table, PublicTable) else say("none: values are not public")
    rows = (
        (c.name, c.type, *([meaning_of(said_of)] if meant else []), _range(c, dict(said_of.labels), unlisted))
        for c in table.columns
        for said_of in [texts[c.name]]
    )
    return (heads, *rows)


def _range(column: Column, labels: Mapping[Value, str], unlisted: str) -> str:
    parts: list[str] = []
    if column.bounded:
        lower, upper = _bound(column.lower), _bound(column.upper)
        if column.step is None:
            parts.append(say("{lower} to {upper}", lower=lower, upper=upper))
        else:
            step = Figure(short(column.step))
            parts.append(say("{lower} to {upper}, in steps of {step}", lower=lower, upper=upper, step=step))
    if column.values is not None:
        shown = JoinedTexts((_value(value, labels) for value in column.values[:MOST_VALUES]), say(", "))
        more = len(column.values) - MOST_VALUES
        if more > 0:
            parts.append(
                say_count(more, "listed: {keys} and {count} more", "listed: {keys} and {count} more", keys=shown)
            )
        else:
            parts.append(say("listed: {keys}", keys=shown))
    if column.other is not None:
        parts.append(say("{value} for all others", value=_named(column.other)))
    if not parts:
        parts.append(unlisted)
    if column.max_length is not None:
        parts.append(say_count(column.max_length, "texts of at most {count} byte", "texts of at most {count} bytes"))
    return JoinedTexts(parts, say("; "))


def _bound(content: object) -> str:
    """Return a bound: a number as the language writes it, anything else as the catalog spells it."""
    spelled = spelling.value(content)
    return Figure(spelled) if isinstance(content, int | Fraction) else spelled


def _value(content: Value, labels: Mapping[Value, str]) -> str:
    spelled, label = spelling.value(content), labels.get(content)
    return spelled if label is None else f"{spelled} ({label})"


def _named(text: str) -> str:
    return spelling.text(text)


def _left_out(catalog: Catalog) -> Iterator[str]:
    """Say what the promise rests on, and what it does not promise."""
    yield say(
        "The curator wrote bounds, listed values, row limits, steps and the budget. They must not come from the data, "
        "and nothing can check that. Lapwing trusts the curator about which tables are public.",
        code="trust_in_curator",
    )
    yield say(
        "The time that a result takes can depend on the data. So can a failure for lack of memory, disk or time. "
        "After three such failures Lapwing answers no query until the curator has looked.",
        code="side_channels",
    )
    yield say(
        "New versions of the data share this one budget, because they are about the same people. Everybody can see "
        "that the data changed, and how often.",
        code="versions_share_budget",
    )
    yield say(
        "Lapwing protects {unit} separately. A person with more than one is protected less. Rows of other people "
        "(relatives, contacts) that say something about that person are not hidden with it.",
        unit=units_of(catalog.tables, catalog.dictionary),
        code="several_units",
    )
    if len(catalog.tables) > 1:
        yield say(
            "Where tables protect by different columns, the promise holds for each column separately. A person who is "
            "in both is protected less.",
            code="several_unit_columns",
        )
    if catalog.budget.delta:
        yield say(
            "δ is the probability that anything may happen. It must be far below 1/n, where n counts every {noun}.",
            noun=noun_of(catalog.tables, catalog.dictionary),
            code="delta_explained",
        )
    yield say(
        "This promise does not stop people who can read the files of data, catalog and ledger. Nor does it stop a "
        "curator from making a second ledger for the same data. Then the losses of both add up.",
        code="outside_the_promise",
    )


def _record(view: BudgetView, head: Head) -> PageSection:
    rows: list[Row] = [
        (say("what"), say("value")),
        *([] if head.ledger is None else [(say("ledger", code="ledger"), head.ledger)]),
        (say("entries", code="entries"), Figure(f"{head.sequence:,}")),
        (say("version of the data", code="data_version"), str(view.version)),
    ]
    text = [
        say(
            "Every charge is an entry of the ledger. Each entry has a seal, computed from it and the entry before.",
            code="charges_recorded",
        )
    ]
    if head.hash is None:
        text.append(
            say(
                "The seal of the newest entry is only for auditors. A digest of the data is part of it, so it could "
                "confirm a guess about the data.",
                code="seal_hidden",
            )
        )
    else:
        rows.append((say("seal of the newest entry", code="seal"), head.hash))
        text.append(
            say(
                "This copy shows the seal. It is for auditors: do not publish it. A digest of the data is part of the "
                "seal, so it could confirm a guess about the data. The copy to publish has no seal.",
                code="seal_shown",
            )
        )
    return PageSection(title=say("The record", code="record"), paragraphs=tuple(text), table=tuple(rows))


def _sentences(*sentences: str) -> JoinedTexts:
    return JoinedTexts(sentences, " ")


def _amount(loss: Loss) -> Figure:
    return Figure(short(loss.amount))


def _factor(value: float) -> Figure | Phrase:
    """Return a factor, rounded up: as a power of ten where all its digits would say nothing."""
    if not 1e9 <= value < 1e300:
        return _up(value)
    exponent = math.floor(math.log10(value))
    tenths = math.ceil(10 * Fraction(value) / Fraction(10) ** exponent)
    return Figure(f"{tenths // 10}.{tenths % 10}·10^{exponent}")


def _up(value: float) -> Figure | Phrase:
    return Figure(figures.epsilon(value)) if value < 1e300 else say("more than {limit}", limit="1e300")
