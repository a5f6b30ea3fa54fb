"""From priced questions to answers: their numbers, released after the searches for bounds, and what to know of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from lapwing.answer import Answer, Note
from lapwing.answer.notes import MOST_SHOWN, ROWS_OF_UNIT, TOO_WIDE, UNLISTED_KEYS
from lapwing.catalog.model import Column
from lapwing.privacy.measures import Loss
from lapwing.query.expressions.expression import ColumnReference
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.relations.per_unit import FirstGroups, FirstRows
from lapwing.query.relations.relation import reads
from lapwing.release import rare_notes
from lapwing.release.earlier_meanings import notes_on_earlier
from lapwing.release.release import release_all
from lapwing.release.request import Access, Release, Request, Wordings
from lapwing.release.stored import wording_of
from lapwing.release.trial import try_showing
from lapwing.release.usable import require_usable
from lapwing.release.verdicts import MANY, MANY_ROWS, verdicts


def answer_all(requests: Sequence[Request], access: Access) -> tuple[Answer, ...]:
    """Answer questions: all are charged, or none; one that stands there twice, once.

    Guarantee:
        As `release_all`.

    Raises:
        LapwingError: As `release_all`.
        AnswerFault: If the answer could not be shown. Nothing is charged.
    """
    for request in requests:
        try_showing(request.plan, request.priced)
    if any(request.priced.sources or request.priced.searches for request in requests):
        from lapwing.release.composing import answer_composed  # here: few questions are of several

        return answer_composed(requests, access)
    if not access.timing.trusted:
        from lapwing.release.bounded_work import require_bounded_work  # here: what it loads, only a service needs

        require_bounded_work(requests, access)
    # Before anything is paid: whatever could go wrong here costs nothing. Where nothing is, only answers need notes.
    notes = [notes_of(request, access) for request in requests] if access.timing.pays else []
    if not notes or any(isinstance(note, Note) and note.code == TOO_WIDE for said in notes for note in said):
        require_usable(requests, access)
    access = replace(access, wording=wordings_of(requests))
    numbers = released(requests, access)
    return answers_of(requests, notes or [notes_of(one, access) for one in requests], numbers, {}, access)


def wordings_of(requests: Sequence[Request]) -> Wordings:
    """Return what was typed for each question, and for the searches that it takes."""
    if len(requests) == 1:  # without hashing its plan, which takes a part of all that a small question does
        return lambda _: wording_of(requests[0])
    pairs = [
        (priced, request) for request in reversed(requests) for priced in (request.priced, *request.priced.searches)
    ]
    pairs += [
        (request.priced.vector.bought, request) for request in reversed(requests) if request.priced.vector is not None
    ]
    return {priced.question: wording_of(one) for priced, one in pairs}.get


def released(requests: Sequence[Request], access: Access) -> Sequence[Release]:
    """Return the released numbers of each request: of a question that stands there twice, the same."""
    if len(requests) == 1 and requests[0].priced.vector is None:
        return release_all([requests[0].priced], access)
    from lapwing.release.measured import released_as_asked  # here: it takes several numbers

    if len(requests) == 1:  # as above: hashing a question takes a part of all that a small one does
        return released_as_asked([requests[0].priced], access)
    distinct = {request.priced.question: request.priced for request in requests}
    released = dict(zip(distinct, released_as_asked(tuple(distinct.values()), access), strict=True))
    return [released[request.priced.question] for request in requests]


def answers_of(
    requests: Sequence[Request],
    notes: Sequence[Sequence[str]],
    released: Sequence[Release],
    searches: Mapping[Question, Release],
    access: Access,
) -> tuple[Answer, ...]:
    """Return answers, each charged what it was the first to need: it is free a second time."""
    charged, budget = list[Release](), access.catalog.budget

    def taken(numbers: Release) -> Release:
        if any(numbers is other for other in charged):
            return replace(numbers, cost=numbers.cost.nothing(), stored=True)
        charged.append(numbers)
        return numbers

    answers = []
    for request, said, numbers in zip(requests, notes, released, strict=True):
        priced, whole = request.priced, request.priced.together
        parts = [taken(numbers), *(taken(searches[search.question]) for search in priced.searches)]
        cost = sum_of([part.cost for part in parts])
        rare = numbers.selection is not None or numbers.stored or numbers.refined or len(requests) > 1
        # What each measure took of the price is known only if all of it was paid now.
        lost = [term.loss(whole.kind).amount for term in priced.terms] if cost == whole else []
        among = max(whole.amount, sum(lost))  # more where numbers lose less together than one by one
        shares = [amount / among for amount in lost] if cost == whole else None
        answers.append(
            Answer(
                plan=request.plan,
                mechanisms=numbers.mechanisms,
                keys=numbers.keys,
                values=numbers.values,
                cost=cost,
                stored=all(part.stored for part in parts),
                notes=rare_notes.as_released(said, request, numbers) if rare else said,
                shares=shares,
                entries=[part.sequence for part in parts],
                delta=budget.delta - budget.delta_keys,
                dictionary=access.catalog.dictionary,
            )
        )
    return tuple(answers)


def sum_of(losses: Sequence[Loss]) -> Loss:
    """Add up losses of one measure."""
    return losses[0].from_amount(sum((loss.amount for loss in losses), Fraction(0)))


def notes_of(request: Request, access: Access) -> tuple[str, ...]:
    """Say which values are clamped, what is left out of each unit, and what else the question makes worth knowing."""
    plan, priced = request.plan, request.priced
    question, kinds = plan.question, {measure.construct for measure in plan.question.measures}
    relation = question.selection.relation
    tall = question.units_of_row == 1 and question.selection.rows_per_unit >= MANY_ROWS
    much = tall or plan.limit or plan.qualify or question.where or question.table.rows_at_most or kinds - {"counts"}
    return (
        *by_declaration(plan),
        *_bounding(plan),
        *(rare_notes.notes_on_joins(plan) if relation.sources else ()),
        *(rare_notes.notes_on_shared(plan, priced) if question.units_of_row > 1 else ()),
        *(rare_notes.notes_on_races(plan) if plan.price_request.weights else ()),
        *(rare_notes.notes_on_selection(priced) if priced.key_selection is not None else ()),
        *(rare_notes.notes_on_ranks(plan, priced) if question.distributions else ()),
        *(rare_notes.notes_on_choices(priced) if any(term.noisy_alternative for term in priced.terms) else ()),
        *(verdicts(plan, priced) if much or (question.cells or 0) >= MANY or reads(relation) else ()),
        *(notes_on_earlier(request, access) if reads(relation) or access.catalog.public_tables else ()),
        *((rare_notes.note_on_clock(plan.moment),) if plan.moment is not None else ()),
    )


def by_declaration(plan: Plan) -> tuple[str, ...]:
    """Say which columns are clamped, which rows are in no group, and which texts are missing, in any data."""
    read, tables = plan.question.columns, plan.question.tables
    columns = [column for table in tables for column in table.columns if (table.name, column.name) in read]
    clamped = [column for column in columns if column.bounded]
    texts = [column for column in columns if column.type == "string" and column.values is None]
    return (
        *(rare_notes.notes_on_clamping(plan, clamped) if clamped else ()),
        *(_in_no_group(plan, {column.name: column for column in columns}) if plan.question.keys else ()),
        *(rare_notes.notes_on_long_texts(plan, texts) if texts else ()),
    )


def _in_no_group(plan: Plan, columns: Mapping[str, Column]) -> tuple[str, ...]:
    """Say which rows have none of a key's values, unless a condition asks for rows that have."""
    listed, gaps, more = list[str](), list[str](), ""
    for key in [key for key in plan.question.keys if key.other is None]:
        seen = key.expression
        own = columns.get((seen.cleaned or seen).name) if isinstance(seen, ColumnReference) else None
        whole = own and own.numeric and own.bounded and len(own.values or ()) > own.steps
        if own is None or own.values is None or key.values is None or own.type == "boolean" or whole:
            gaps += rare_notes.gaps_of(plan, key, columns)
        elif not (plan.question.where and rare_notes.is_required(key.expression, plan.question.where)):
            shown = [*map(str, key.values[:MOST_SHOWN]), *(["…"] if len(key.values) > MOST_SHOWN else [])]
            listed.append(f"{key.name} has only the groups {', '.join(shown)}")
            more = "; the curator can add a group for them" if own.type == "string" else more
    said = [f"{'; '.join(listed)}: rows with other or missing values are in none{more}"] if listed else []
    said += [f"rows whose {' or '.join(dict.fromkeys(gaps))} are in no group"] if gaps else []
    return tuple(Note(text, UNLISTED_KEYS) for text in said)


def _bounding(plan: Plan) -> tuple[str, ...]:
    """Say what is left out of each unit, and that rows of none are, unless the catalog promises that there are none."""
    relation, (first, *others) = plan.question.selection.relation, plan.question.lineage
    said = rare_notes.bound_of((first, *others)) if others else first.rows_of_unit
    roots = dict.fromkeys(table.root for table in plan.question.lineage if not table.unit_is_row)
    names = dict.fromkeys(table.unit_name for table in roots if table.units_may_miss)
    beside = f", and no rows without {' or '.join(names)}" if names else ""
    notes = [] if plan.question.table.unit_is_row else [Note(f"queries use {said}{beside}", ROWS_OF_UNIT)]
    limits = rare_notes.notes_on_limits(relation) if isinstance(relation, FirstGroups | FirstRows) else ()
    return (*notes, *limits)
