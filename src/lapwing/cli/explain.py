"""`lapwing explain`: what a question would cost and how good its answer would be, free of charge."""

from math import isfinite
from typing import TYPE_CHECKING, Final

from rich.console import RenderableType
from rich.text import Text

from lapwing.catalog.protection import NEIGHBOURS
from lapwing.cli import first_contact, options
from lapwing.cli.characters import to_json
from lapwing.cli.console import Fitted, labelled, new_table, print_text, show, text
from lapwing.cli.figures import delta, left, loss, margin, names, share, size
from lapwing.cli.figures import epsilon as epsilon_text
from lapwing.cli.first_contact import FileProtectionOptions, PricedText, open_asked, question_of, split_asked
from lapwing.cli.question import pointing_at, require_at_most_one
from lapwing.cli.streams import COMMAND_LINE, Ways, larger_limit_from
from lapwing.privacy.figures import NOTHING, delta_in_words, separated, such_queries

if TYPE_CHECKING:
    from lapwing.client import RemoteSession
    from lapwing.preview import ColumnPreview, LedgerPreview, Preview, SelectionPreview
    from lapwing.session import Session

EXAMPLE: Final = """\b
Examples:
  lapwing explain "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan" --epsilon 0.5
  lapwing explain "SELECT AVG(cost) AS cost FROM visits" --epsilon 0.5 --assuming-count 2000
  lapwing explain "SELECT COUNT(*) AS n FROM visits" --error 50"""


_TERMS: Final = "sensitivity is the most that {} can change a number, over all groups. Scale is the width of the noise"
_ADDED: Final = (
    "Lapwing charges only the difference to an earlier result of this query. Both together can cost a little more than "
    "one result, because Lapwing rounds their mean once more"
)
_BOUGHT: Final = "the ± is for the cost or error that you asked for. The result that was bought may be more exact"
_ASSUMED = (
    "the ± of an average covers the worst case, which is an average at a bound. The ± of the result may be smaller, "
    "and larger if a group has fewer rows than you assumed"
)


@options.grouped
def command(
    texts: first_contact.Asked,
    *,
    pricing: options.PricingOptions,
    form: options.ReportFormat = options.ReportFormatName.table,
    verbose: options.Verbose = False,
    place: options.TargetOptions,
    protection: FileProtectionOptions,
) -> None:
    """Show the cost, the mechanisms and the promised error of a query. This is free and reads no row."""
    require_at_most_one(pricing.epsilon, pricing.error)
    data, sql = split_asked(texts)
    question = question_of(sql, pricing)
    with open_asked(data, protection, place, question) as session:
        show_preview(session, question, form, verbose=verbose)


def show_preview(
    session: "Session | RemoteSession",
    question: PricedText,
    form: options.ReportFormatName = options.ReportFormatName.table,
    *,
    verbose: bool = False,
) -> None:
    """Write what a question would cost."""
    with pointing_at(question.text):
        preview = session.explain(question.text, question.parameters, **question.price)
    neighbouring = options.neighbouring_of(session)
    if form is options.ReportFormatName.json:
        from lapwing.documents.preview_document import (
            preview_document,  # here, so that `lapwing --help` loads no engine
        )

        print_text(to_json(preview_document(preview, neighbouring)))
    else:
        show(*as_page(preview, neighbouring, verbose=verbose, dataset=getattr(session, "dataset", "")))


def as_page(
    preview: "Preview", neighbouring: str, *, verbose: bool = False, dataset: str = "", ways: Ways = COMMAND_LINE
) -> list[RenderableType]:
    """Return a preview for people; `verbose` says also what adds up in the ledger.

    Args:
        dataset: Its name at a server.
        ways: How to ask for a larger limit there, where the page is read.
    """
    limit = preview.larger_limit
    asking = "" if limit is None else larger_limit_from(dataset, limit, ways)
    columns = new_table("column", "± at 95 %", "computed from", numbers=["± at 95 %"])
    for column in preview.columns:
        columns.add_row(text(column.name), _promise(column), text(", ".join(column.rests_on)))
    return [
        labelled(*_facts(preview, neighbouring, verbose, asking)),
        Text(),
        Fitted(columns),
        Text(),
        _measures(preview),
        Text(),
        labelled(*(("note", f"{line}.") for line in (*preview.notes, *_besides(preview)))),
    ]


def _besides(preview: "Preview") -> list[str]:
    """Return the notes that a preview has only here: what the assumed rows mean, and the words of its tables."""
    assumed = preview.assuming_count is not None and any(column.half_width is not None for column in preview.columns)
    return [
        *([_ADDED] if preview.epsilon_in_all is not None else []),
        *([_BOUGHT] if preview.stored and preview.measures else []),
        *([_ASSUMED] if assumed else []),
        *([_TERMS.format(preview.unit)] if preview.measures else []),
    ]


def _facts(preview: "Preview", neighbouring: str, verbose: bool, asking: str) -> list[tuple[str, str]]:
    noise = ", each with its own noise" if preview.measures else ""
    match preview.cells:
        case None if preview.selection is None:
            cells = f"the number of rows depends on the statistic{noise}"
        case None:
            cells = f"one group for each value that enough of them have{noise}"
        case 1:
            cells = "1 row"
        case count:
            cells = f"{count:,} groups{noise}"
    if preview.selection is None and any(column.selected for column in preview.columns):
        cells = f"some of {preview.cells:,} groups, which are chosen with noise"
    chosen = preview.selection
    wanted = "a bound" if chosen is None else "finding the groups"
    price = _price(preview) + (f", and delta {delta_in_words(preview.delta)} for {wanted}" if preview.delta else "")
    parts = [
        f"{part.part} ({loss(part.spent)} spent, {left(part.remaining)} left)" if verbose else part.part
        for part in preview.parts or ()
    ]
    return [
        ("protects", f"{preview.unit}, {NEIGHBOURS[neighbouring]}"),
        ("uses", preview.bound),
        ("result", cells),
        ("cost", preview.free if preview.stored else price),
        *([] if chosen is None or preview.stored else [("of this", _share_of_choice(chosen))]),
        *([] if preview.parts is None else [("charged to", f"{names(parts)} of the data, no others")]),
        *([("guess", preview.guess)] if preview.guess else []),
        *_budget(preview, asking),
        *([] if preview.elsewhere is None else [("instead", _instead(preview, preview.elsewhere))]),
        *([("ledger", loss(preview.price))] if verbose and not preview.stored else []),
    ]


def _price(preview: "Preview") -> str:
    """Return what a question costs as an epsilon; of a refinement, together with what was paid before it."""
    added = epsilon_text(preview.epsilon)
    if preview.epsilon_before is not None and preview.epsilon_in_all is not None:
        paid, whole = epsilon_text(preview.epsilon_before), epsilon_text(preview.epsilon_in_all)
        return f"epsilon {whole} for this query in all: {paid} was paid before for a less exact result"
    if preview.sharpens:
        return f"epsilon {added} by itself, to make an earlier result more exact"
    return f"epsilon {added} for this query"


def _budget(preview: "Preview", asking: str) -> list[tuple[str, str]]:
    """Return what a question takes of the budget, or why it would be refused; nothing if it is free."""
    if preview.stored:
        return []
    if preview.refusal is not None:
        return [("budget", f"it would be refused: {preview.refusal}"), *([("", asking)] if asking else [])]
    adds = "this adds " if preview.sharpens else ""
    return [("budget", f"{adds}{preview.part_of_budget}")]


def _instead(preview: "Preview", other: "LedgerPreview") -> str:
    """Say what the other kind of ledger would give for the same epsilon, and who can still have it."""
    widths = zip(preview.measures, other.half_widths, strict=True)
    named = [f"{one.measure} {margin(width)}" for one, width in list(widths)[:3]]
    ledger = f"{other.measure} ledger of delta {delta(other.delta)}" if other.delta else f"{other.measure} ledger"
    made = f"if the curator had made a {ledger} (`lapwing init --measure {other.measure}`; not changeable now)"
    return f"{made}: {', '.join(named)}; {such_queries(other.fits)}"


def _promise(column: "ColumnPreview") -> Text:
    return text(column.error, *(["cyan"] if column.half_width is not None else []))


def _measures(preview: "Preview") -> RenderableType:
    if not preview.measures and preview.selection is None:
        return text("")
    numbers = ["sensitivity", "scale", "± at 95 %"]
    table = new_table("noisy number", "mechanism", *numbers, "reason", numbers=numbers)
    for m in preview.measures:
        half = margin(m.half_width) if isfinite(m.half_width) else "as the data need"  # of a ladder
        noise = (f"{separated(m.sensitivity)}", size(m.scale), half)
        table.add_row(text(m.measure), text(m.mechanism), *map(text, noise), text(m.reason))
    if (s := preview.selection) is not None:
        scale = NOTHING if s.scale is None else size(s.scale)
        what = "weight above" if s.price_share else "count from"
        reason = "the larger the group, the likelier" if s.threshold is None else f"{what} {s.threshold:,.5g} is shown"
        figures = (NOTHING if s.scale is None or not s.price_share else "1", scale)
        table.add_row(text(_chosen(s)), text(s.mechanism), *map(text, figures), text(NOTHING), text(reason))
    return Fitted(table)


def _share_of_choice(selection: "SelectionPreview") -> str:
    if not selection.price_share:
        return f"nothing for the {_chosen(selection)}: the noisy count makes it"
    return f"{share(selection.price_share)} for the {_chosen(selection)}"


def _chosen(selection: "SelectionPreview") -> str:
    return f"choice of {', '.join(selection.keys)}"
