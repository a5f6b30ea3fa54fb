"""Numbers that were asked for, from those that were measured in their place (`query.measured_vectors`)."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from lapwing.answer import Note
from lapwing.answer.notes import MEASURED_TOGETHER, PUBLIC_NUMBER
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.query.expressions.expression import Expression, Operation, written_in
from lapwing.query.measures.centred import both_counts, nulls
from lapwing.query.measures.measures import Count, Measure, Sum
from lapwing.query.plan.measure_names import measure_names
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.pricing.quote import Quote
from lapwing.release.release import release_all
from lapwing.release.request import Access, Release


def released_as_asked(batch: Sequence[Quote], access: Access, *, then: Sequence[Quote] = ()) -> tuple[Release, ...]:
    """Answer priced questions as `release_all` does, and compute their numbers where others were measured.

    Guarantee:
        As `release_all`.

    Raises:
        LapwingError: As `release_all`.
        LapwingError: What is computed is post-processing.
    """
    return tuple(map(_as_asked, batch, release_all(batch, access, then=then)))


def notes_on_vector(plan: Plan, priced: Quote) -> tuple[str, ...]:
    """Say which numbers are measured, where others follow from them."""
    if priced.vector is None or not priced.vector.is_bought:
        return ()
    question = priced.vector.bought.question
    names = measure_names(replace(plan, question=question, outputs=()))
    named = [_named(measure, names[measure]) for measure in question.measures]
    together = Note(f"all columns are computed from the same noisy numbers: {'; '.join(named)}", MEASURED_TOGETHER)
    public = [measure_names(plan)[measure] for measure in priced.vector.public]
    said = f"public, and free: {', '.join(public)}. The catalog has the number of people"
    return (*([together] if len(named) > 1 else []), *([Note(said, PUBLIC_NUMBER)] if public else []))


def _named(measure: Measure, name: str) -> str:
    """Name a measured number by what it is of; a sum of 0 and 1, or of 1 and 2, is of counts."""
    if (asked := _asked_for_null(measure)) is not None:
        columns = " and ".join(sorted(written_in(asked)))
        whole = measure == both_counts(asked)[0]
        return f"count of rows plus count of {columns}" if whole else f"count of rows where {columns} is NULL"
    if not isinstance(measure, Sum) or not measure.origin:
        return name
    middle = measure.origin * measure.step
    if (measure.type.low, measure.type.high, middle) == (0, 2, Fraction(1, 2)):
        return f"count of {' and '.join(sorted(written_in(measure.argument)))} less half of the rows"
    return f"{name}, {'less' if middle > 0 else 'plus'} {float(abs(middle)):,.10g} each"


def _asked_for_null(measure: Measure) -> Expression | None:
    """Return the expression of which a measured number counts the NULLs, or the rows beside them, too."""
    if not (isinstance(measure, Count | Sum) and isinstance(measure.argument, Operation)):
        return None
    asked = measure.argument.children[0].children[:1]
    return asked[0] if asked and measure in (nulls(asked[0]), *both_counts(asked[0])) else None


def _as_asked(priced: Quote, answer: Release) -> Release:
    if priced.vector is None or answer.question == priced.question:
        return answer
    mechanisms = laws_as_asked(priced, answer.question, answer.mechanisms)
    return replace(answer, question=priced.question, mechanisms=mechanisms, values=priced.vector.values(answer.values))


def laws_as_asked(priced: Quote, measured: Question, laws: tuple[NoiseLaw, ...]) -> tuple[NoiseLaw, ...]:
    """Return what the numbers of a question err by, given the errors of the numbers that were measured for it."""
    vector = priced.vector
    if vector is None or measured == priced.question:
        return laws
    if vector.is_bought and laws == tuple([term.mechanism for term in vector.bought.terms]):
        return tuple([term.mechanism for term in priced.terms])  # as they were priced by
    return vector.laws(laws)
