"""Bounds that a question leaves to be found: bought before it, read off what was released, and said with the answer.

Guarantee: a search is a question of its own, released by `release_all` like any other; what is read off it is
post-processing (`query.aggregates.searches`). The question is asked afterwards, with what was found for its bounds: a
question chosen in the light of an earlier answer, charged by itself before its rows are read.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Final, Protocol

from lapwing.errors import EngineFault, Interrupted, LapwingError, QueryRefused
from lapwing.ledger.ledger import Ledger
from lapwing.preview import ColumnPreview, MeasurePreview, measure_previews
from lapwing.query.aggregates.levels import found_level
from lapwing.query.aggregates.searches import Bounded, Found, found_in, margin_of
from lapwing.query.aggregates.totals import found_in_totals
from lapwing.query.calibrate import CONFIDENCE, Choosing, Priced, share_of_searches
from lapwing.query.derivation.derived import Released as Shown
from lapwing.query.derivation.derived import measures_of
from lapwing.query.expressions.magnitudes import Bounds
from lapwing.query.plan import Plan, Question, Search
from lapwing.release.released import Released
from lapwing.release.stored import stored_answer

Findings = Mapping[Bounded, Found]
NO_FINDINGS: Final[Findings] = MappingProxyType({})


class Release(Protocol):
    """Answers priced questions, if those that are asked afterwards will fit too."""

    def __call__(self, batch: Sequence[Priced], *, then: Sequence[Priced] = ()) -> tuple[Released, ...]:
        """Return the answers, in order."""
        ...


def searched(batch: Sequence[Priced], release: Release) -> dict[Question, Released]:
    """Return the answers of all searches of a batch: each is bought once, at the highest of its prices."""
    wanted: dict[Question, Priced] = {}
    for search in (search for priced in batch for search in priced.searches):
        known = wanted.get(search.question, search)
        wanted[search.question] = search if known.loss <= search.loss else known
    return dict(zip(wanted, release(tuple(wanted.values()), then=batch), strict=True)) if wanted else {}


def stored_searches(priced: Priced, ledger: Ledger) -> dict[Question, Released]:
    """Return the answers of those searches that were bought before."""
    answers = {search.question: stored_answer(search, ledger) for search in priced.searches}
    return {question: answer for question, answer in answers.items() if answer is not None}


def findings(plan: Plan, answers: Mapping[Question, Released]) -> dict[Bounded, Found]:
    """Return the bounds that a plan's searches found."""
    found: dict[Bounded, Found] = {}
    for search in plan.searches:
        found[search.bounded] = _finding(search, answers[search.question])
    return found


def _finding(search: Search, answer: Released) -> Found:
    if answer.choice is not None:
        return found_level(answer.choice.place, answer.choice.mechanism, search)
    (counts,) = answer.values[0].tolist()
    follows = found_in if search.total is None else found_in_totals
    return follows(counts, answer.mechanisms[0], search.magnitudes)


def bounds_of(found: Findings) -> dict[Bounded, Bounds]:
    """Return the bounds alone."""
    return {measure: finding.bounds for measure, finding in found.items()}


def notes_of_found(plan: Plan, found: Findings) -> tuple[str, ...]:
    """Say which bounds were found, and what they may leave out."""
    return tuple(_note(search, found[search.bounded]) for search in plan.searches)


def _note(search: Search, finding: Found) -> str:
    if search.question.choosing:
        return _note_of_level(search, finding)
    return _note_of_values(search, finding) if search.total is None else _note_of_totals(search, finding)


def _note_of_values(search: Search, finding: Found) -> str:
    low, high = map(_plain, finding.bounds)
    if finding.bounds == search.magnitudes.widest:
        return f"{search.name}: bounds of {low} and {high} were found, the widest that there are"
    if finding.clear:
        return (
            f"{search.name}: bounds of {low} and {high} were found, and values outside count as the nearest; "
            f"with 95 % probability at most {finding.beyond:,} rows lie between a bound and its double, and as "
            "many in each further doubling"
        )
    return (
        f"{search.name}: no magnitude has clearly more rows than the noise of {finding.beyond // 2:,}, so that "
        f"the bounds of {low} and {high} are a guess; give a larger epsilon, or write bounds"
    )


def _note_of_totals(search: Search, finding: Found) -> str:
    most = _plain(finding.bounds[1])
    found = f"{search.name}: {most} was found for the most that a unit adds to a group"
    if finding.bounds == search.magnitudes.widest:
        return f"{found}, the most that there is"
    if finding.clear:
        return (
            f"{found}, and more counts as that; with 95 % probability at most {finding.beyond:,} times a unit adds "
            "between that and its double, and as often in each further doubling"
        )
    return f"{found}, which is a guess: no magnitude stands out from the noise; give a larger epsilon, or write a bound"


def _note_of_level(search: Search, finding: Found) -> str:
    most = _plain(finding.bounds[1])
    found = f"{search.name}: {most} was found for the most that a unit adds to a group"
    if not finding.clear or search.total is None:
        return f"{found}, the most that is tried"
    lacking = _plain(finding.beyond * search.total.step)
    return (
        f"{found}, and what goes beyond it is cut off; with 95 % probability that is at most {lacking} more, in all "
        "groups together, than twice the bound would cut off"
    )


def notes_before(plan: Plan, priced: Priced) -> tuple[str, ...]:
    """Say what is not known until the bounds are found."""
    if not plan.unsettled:
        return ()
    names = " and ".join(search.name for search in plan.searches)
    ends = ", ".join(" to ".join(map(_plain, search.magnitudes.widest)) for search in plan.searches)
    terms = {term.measure: term for term in priced.terms}
    widest = [
        f"{output.name} ±{float(terms[output.value.measure].half_width(CONFIDENCE)):,.6g}"
        for output in plan.outputs
        if isinstance(output.value, Shown) and output.value.measure in plan.unsettled
    ]
    errors = f": at the widest, {', '.join(widest)}" if widest else ""
    share = _plain(100 * share_of_searches(plan))
    return (
        f"the bounds of {names} are found first, for {share} % of the price, inside {ends}",
        f"noise is in proportion to the bounds that are found, which nobody knows before{errors}",
    )


def _plain(value: Fraction) -> str:
    return f"{float(value):,.10g}"


def previews_of(priced: Priced, searches: Sequence[Search]) -> tuple[MeasurePreview, ...]:
    """Describe the noise of the searches of a question: how far the number of rows of a class may be off."""
    described, by_question = [], {search.question: search for search in searches}
    for bought in priced.searches:
        search = by_question[bought.question]
        if bought.choosing is not None:
            described.append(_preview_of_choice(search, bought.choosing))
            continue
        (preview,) = measure_previews(bought, {search.measure: f"bounds of {search.name}"})
        margin = margin_of(bought.terms[0].mechanism, search.magnitudes)
        described.append(replace(preview, half_width=float(margin)))
    return tuple(described)


def _preview_of_choice(search: Search, choosing: Choosing) -> MeasurePreview:
    """Describe the choice of a level: how many times what a unit adds at a level the sum there may lack."""
    mechanism = choosing.mechanism
    return MeasurePreview(
        measure=f"bounds of {search.name}",
        sensitivity=1.0,
        reason=f"of {len(mechanism.sensitivities)} levels each is compared on the scale of what a unit adds there",
        mechanism=mechanism.name,
        scale=float(mechanism.scale),
        half_width=float(mechanism.largest_defect(CONFIDENCE)),
    )


def at_widest(plan: Plan, priced: Priced, measures: Sequence[MeasurePreview]) -> tuple[MeasurePreview, ...]:
    """Say of the sums whose bounds are to be found that they are described with the widest."""
    return tuple(
        replace(preview, reason=f"{preview.reason}, at the widest bounds")
        if term.measure in plan.unsettled
        else preview
        for term, preview in zip(priced.terms, measures, strict=True)
    )


def unpromised(plan: Plan, columns: Sequence[ColumnPreview]) -> tuple[ColumnPreview, ...]:
    """Return the columns of an answer without an error where that depends on bounds that are to be found."""
    unknown = {output.name for output in plan.outputs if plan.unsettled & set(measures_of(output.value))}
    return tuple(replace(column, half_width=None) if column.name in unknown else column for column in columns)


@contextmanager
def after_searches(searches: Collection[Released]) -> Iterator[None]:
    """Say of what goes wrong afterwards that the searches were charged, if they were.

    The one message of a question that failed says that its price is paid, and stays as it is.
    """
    try:
        yield
    except EngineFault:
        raise
    except KeyboardInterrupt:
        raise Interrupted(charged=not all(search.stored for search in searches)) from None
    except LapwingError as error:
        if all(search.stored for search in searches):
            raise
        told = _after_searches(error)
        told.searches_charged = True
        raise told from None


def _after_searches(error: LapwingError) -> LapwingError:
    paid = "The bounds were found and charged, and stay free. Of the answer itself: "
    match error:
        case Interrupted():
            return Interrupted(charged=True)
        case QueryRefused():
            return QueryRefused(f"{paid}{error.reason}", remedy=error.remedy, position=error.position)
        case _:
            return type(error)(f"{paid}{error}")
