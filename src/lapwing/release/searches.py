"""Bounds that a question leaves to be found: bought before it, read off what was released, and said with the answer.

Guarantee:
    A search is a question of its own, released by `release_all` like any other; what is read off it is post-processing
    (`query.aggregates.approximate_bounds`). The question is asked afterwards, with what was found for its bounds: a
    question chosen in the light of an earlier answer, charged by itself before its rows are read.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from lapwing.answer import Answer, Note
from lapwing.answer.notes import BOUNDS_FOUND, CONSTANT_FOUND
from lapwing.catalog.protection import noun_of
from lapwing.errors import EngineFault, Interrupted, LapwingError, QueryRefused
from lapwing.ledger.ledger import Ledger
from lapwing.privacy.figures import margin, separated, share
from lapwing.query.aggregates.approximate_bounds import ApproximateBounds, bounds_from_counts
from lapwing.query.aggregates.scope import Bounded
from lapwing.query.aggregates.truncation import threshold_from_choice
from lapwing.query.aggregates.unit_totals import bound_from_counts
from lapwing.query.bind.bind import bind
from lapwing.query.bind.constants import Rows
from lapwing.query.derivation.derived import KeyValue
from lapwing.query.derivation.derived import MeasureValue as Shown
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.plan.search import Search
from lapwing.query.pricing.joint_price import calibrate_found, share_of_searches
from lapwing.query.pricing.quote import CONFIDENCE, Quote
from lapwing.release.refusals import MOST_NAMED
from lapwing.release.release import release_all
from lapwing.release.request import Access, Release, Request, Wordings
from lapwing.release.restoring import stored_answer
from lapwing.release.stored import key_of


def searched(batch: Sequence[Quote], access: Access) -> dict[Question, Release]:
    """Return the answers of all searches of a batch: each is bought once, at the highest of its prices."""
    dearest: dict[Question, Quote] = {}
    for search in (search for priced in batch for search in priced.searches):
        other = dearest.get(search.question, search)
        dearest[search.question] = search if other.loss <= search.loss else other
    access = replace(access, wording=None if access.wording is None else _marked(access.wording))
    return dict(zip(dearest, release_all(tuple(dearest.values()), access, then=batch), strict=True))


def _marked(wording: Wordings) -> Wordings:
    """Return what was typed, with a mark that it is charged for what the query needs first."""

    def of(question: Question) -> Mapping[str, object] | None:
        typed = wording(question)
        return None if typed is None else {**typed, "first": True}

    return of


def settled(request: Request, answers: Mapping[Question, Release], access: Access) -> tuple[Request, tuple[str, ...]]:
    """Return a question with the bounds that its searches found, at the price that was said, and notes on them."""
    plan = rebound(request, [request.plan], answers, access)
    priced = calibrate_found(plan, access.catalog.budget, request.priced)
    return replace(request, plan=plan, priced=priced), notes_after(request.plan, answers)


def rebound(
    request: Request,
    asked: Sequence[Plan],
    answers: Mapping[Question, Release],
    access: Access,
    reads: bool = True,
) -> Plan:
    """Bind a question anew, with what was found for the plans that are asked in its place; `reads` as `bind` has it."""
    findings_of = [findings(plan, answers) for plan in asked]
    bounds = {bounded: finding.bounds for results in findings_of for bounded, finding in results.items()}
    known = [(constant, rows_of(constant, answers[constant.question])) for plan in asked for constant in plan.constants]
    able = access.engine.capabilities
    moment = request.plan.moment  # the clock is read once a query: a second look could be at another day
    return bind(request.text, access.catalog, access.public, request.parameters, bounds, able, known, reads, moment)


def notes_after(plan: Plan, answers: Mapping[Question, Release]) -> tuple[str, ...]:
    """Say what was found for a plan before it was asked."""
    results = findings(plan, answers)
    bounds = [Note(_note(search, results[search.bounded]), BOUNDS_FOUND) for search in plan.searches]
    constants = [_note_of_constant(constant, answers[constant.question]) for constant in plan.constants]
    return (*bounds, *(Note(text, CONSTANT_FOUND) for text in constants))


def rows_of(plan: Plan, release: Release) -> Rows:
    """Return what the answer to a plan shows."""
    return [tuple(row.values()) for row in _answer(plan, release)]


def _answer(plan: Plan, release: Release) -> Answer:
    return Answer(plan=plan, mechanisms=release.mechanisms, values=release.values, keys=release.keys, cost=release.cost)


def _note_of_constant(plan: Plan, release: Release) -> str:
    answer, name = _answer(plan, release), plan.outputs[-1].name
    if isinstance(plan.outputs[-1].value, KeyValue):
        values = [row[name] for row in answer.rows()]
        shown = ", ".join("NULL" if value is None else str(value) for value in values[:MOST_NAMED])
        more = f" and {len(answer) - MOST_NAMED:,} more" if len(answer) > MOST_NAMED else ""
        return f"the list of {name} that was asked for first, and stands in the condition, is {shown or 'empty'}{more}"
    if len(answer) != 1 or len(plan.outputs) > 1:
        return f"{name} was asked for first, for each group, and stands in the condition"
    low, high = answer.interval().get(name, (None, None))
    value = answer[0][name]
    if not isinstance(value, int | float | Decimal):
        return f"{name} is {value or 'NULL'}: it was asked for first, and stands in the condition as it is"
    ends = (
        ""
        if low is None or high is None
        else f", between {separated(low[0].item())} and {separated(high[0].item())} with 95 % probability"
    )
    return f"{name} is {separated(value)}{ends}: it was asked for first, and stands in the condition as it is"


def stored_searches(priced: Quote, ledger: Ledger) -> dict[Question, Release]:
    """Return the answers of those searches that were bought before."""
    answers = [stored_answer(search, ledger.answers(key_of(search.question))) for search in priced.searches]
    return {answer.question: answer for answer in answers if answer is not None}


def findings(plan: Plan, answers: Mapping[Question, Release]) -> dict[Bounded, ApproximateBounds]:
    """Return the bounds that a plan's searches found."""
    return {search.bounded: _finding(search, answers[search.question]) for search in plan.searches}


def _finding(search: Search, answer: Release) -> ApproximateBounds:
    if answer.choice is not None:
        return threshold_from_choice(answer.choice.place, answer.choice.mechanism, search)
    (counts,) = answer.values[0].tolist()
    follows = bounds_from_counts if search.total is None else bound_from_counts
    return follows(counts, answer.mechanisms[0], search.magnitudes)


def _note(search: Search, finding: ApproximateBounds) -> str:
    if search.question.choosing:
        return _note_of_level(search, finding)
    return _note_of_values(search, finding) if search.total is None else _note_of_totals(search, finding)


def _note_of_values(search: Search, finding: ApproximateBounds) -> str:
    low, high = map(_plain, finding.bounds)
    if finding.bounds == search.magnitudes.widest:
        return f"{search.name}: Lapwing chose the bounds {low} and {high}, the widest that there are"
    if finding.clear:
        return (
            f"{search.name}: Lapwing chose the bounds {low} and {high}, and values outside count as the nearest. "
            f"With 95 % probability, at most {finding.beyond:,} rows lie between a bound and its double, and as "
            "many in each further doubling"
        )
    return (
        f"{search.name}: the bounds {low} and {high} are a guess, because no size of values has clearly more rows than "
        f"the noise of {finding.beyond // 2:,}. Give a larger epsilon, or write bounds"
    )


def _said_of_most(search: Search, finding: ApproximateBounds) -> str:
    noun = noun_of(search.question.lineage)
    return f"{search.name}: Lapwing chose {_plain(finding.bounds[1])} as the most that one {noun} adds to a group"


def _note_of_totals(search: Search, finding: ApproximateBounds) -> str:
    said = _said_of_most(search, finding)
    if finding.bounds == search.magnitudes.widest:
        return f"{said}, the largest limit that there is"
    if finding.clear:
        return (
            f"{said}, and more counts as that. With 95 % probability, more than that, up to its double, is added at "
            f"most {finding.beyond:,} times, and as often in each further doubling"
        )
    return f"{said}. That is a guess: no size stands out from the noise. Give a larger epsilon, or write a bound"


def _note_of_level(search: Search, finding: ApproximateBounds) -> str:
    said = _said_of_most(search, finding)
    if not finding.clear or search.total is None:
        return f"{said}, the largest limit that Lapwing tries. More is left out"
    lacking = _plain(finding.beyond * search.total.step)
    return (
        f"{said}. More is left out. With 95 % probability, a limit twice as large would keep at most {lacking} more, "
        "in all groups together"
    )


def notes_before(plan: Plan, priced: Quote) -> tuple[str, ...]:
    """Say what is not known until the bounds are found."""
    constants = " and ".join(constant.outputs[-1].name for constant in plan.constants)
    if constants:
        part = sum((one.loss.amount for one in priced.searches), Fraction(0)) / priced.together.amount
        text = (
            f"{constants}: asked for first, for {share(part)} of the cost. The result then stands in the condition. "
            "The errors shown here are for a likely result"
        )
        return (Note(text, CONSTANT_FOUND),)
    if not plan.unsettled:
        return ()
    names = " and ".join(search.name for search in plan.searches)
    ends = ", ".join(" to ".join(map(_plain, search.magnitudes.widest)) for search in plan.searches)
    terms = {term.measure: term for term in priced.terms}
    widest = [
        f"{output.name} {margin(float(terms[output.value.measure].half_width(CONFIDENCE)))}"
        for output in plan.outputs
        if isinstance(output.value, Shown) and output.value.measure in plan.unsettled
    ]
    errors = f". With the widest bounds it would be: {', '.join(widest)}" if widest else ""
    taken = share(share_of_searches(plan))
    first = f"Lapwing finds the bounds of {names} first, for {taken} of the cost, within {ends}"
    noise = f"the noise grows with the bounds that are found, so the ± is not known before{errors}"
    return (Note(first, BOUNDS_FOUND), Note(noise, BOUNDS_FOUND))


def _plain(value: Fraction) -> str:
    return f"{float(value):,.10g}"


@contextmanager
def after_searches(searches: Collection[Release]) -> Iterator[None]:
    """Say of what goes wrong afterwards that the searches were charged, if they were.

    The one message of a question that failed says that its price is paid, and stays as it is.
    """
    try:
        yield
    # The first of the three, as it is a LapwingError too: its one message must not change with what was found.
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
    paid = "The bounds were found and charged, and stay free. Of the result itself:"
    match error:
        case Interrupted():
            return Interrupted(charged=True)
        case QueryRefused():
            return error.reworded(f"{paid} {error.reason}", error.remedy)
        case _:
            return error.after(paid)
