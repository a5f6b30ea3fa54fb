"""Answers that earlier versions gave to the same words: a note says that they are there, and not used.

Conditions and groups saw bounded numbers within bounds and steps once (`query.expressions.as_read`), and joins and
conditions saw floats of public tables so for longer. The ledger has results of these meanings under the plan that
these words had then. So they are bound with each of them again, and looked up under that plan's key.

What the note tells: that the ledger has an answer to the asker's own words about the current data, as they were read
then. Of every question an analyst is told as much, by its being free (`stored`); of these they were told it before.
Who asked, when, and at what price it does not tell, and it follows from words, catalog and ledger alone: no row is
read for it, and of the ledger nothing but what is filed under the key of a plan that the asker may ask.

Binding once more takes as long as half of a small question. So a version of the data says what questions about it meant
when it was accepted (`ledger.curating.MEANING`): where that is what they mean now, no earlier version answered any. Of
what an earlier Lapwing answers or accepts in the same ledger afterwards, nothing is said.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final
from weakref import WeakSet

from lapwing.answer import Note
from lapwing.answer.notes import AS_READ
from lapwing.errors import QueryRefused
from lapwing.ledger.curating import MEANING, PUBLIC_IN_STEPS
from lapwing.ledger.ledger import Ledger
from lapwing.query.bind.bind import bind
from lapwing.query.expressions.expression import ColumnReference, walk
from lapwing.query.plan.composition import plans_asked
from lapwing.query.plan.plan import Plan, PlanCache, Question
from lapwing.query.plan.traversal import expressions_of
from lapwing.query.relations.relation import reads
from lapwing.release.request import Access, Request
from lapwing.release.restoring import restored
from lapwing.release.stored import key_of

_PLANS: Final = PlanCache[Plan | None]()
_ALIKE: Final = WeakSet[Ledger]()
"""Ledgers of which it is known that no earlier version asked of their data: looking each time takes its time, too."""


def notes_on_earlier(request: Request, access: Access) -> tuple[Note, ...]:
    """Say of answers of earlier versions to these words that they saw numbers within bounds and steps."""
    meanings = _earlier_meanings(access)
    earlier = {key for meaning in meanings for key, is_there in _keys(request, access, meaning) if is_there}
    if not earlier or earlier <= {key for key, _ in _keys(request, access, MEANING)}:
        return ()
    question = request.plan.question
    begin = "Joins and conditions use numbers of public tables as they are in the data. An earlier version rounded them"
    if reads(question.selection.relation):
        names = _names_read(question)
        begin = (
            f"WHERE, GROUP BY and DISTINCT use {names} as it is in the data. An earlier version of Lapwing moved it to "
            "its bounds"
        )
    return (Note(f"{begin} first. Its result for these words is not used", AS_READ),)


def _earlier_meanings(access: Access) -> tuple[int, ...]:
    """Return what else questions about the current data may have meant since these were accepted."""
    if access.ledger in _ALIKE:
        return ()
    last = MEANING if access.catalog.public_tables else PUBLIC_IN_STEPS
    meanings = tuple(range(access.ledger.seen().meaning, last))
    if not meanings:
        _ALIKE.add(access.ledger)
    return meanings


def _names_read(question: Question) -> str:
    """Name the columns that a question sees as they were read."""
    nodes = [node for expression in expressions_of(question) for node in walk(expression)]
    read = [
        (n.written, n.cleaned.name)
        for n in nodes
        if isinstance(n, ColumnReference) and n.cleaned is not None and not n.public
    ]
    declared = {column.name for table in question.tables for column in table.columns}
    names = {written or name for written, name in read if written or name in declared}
    return " and ".join(sorted(names)) or "values"


def _keys(request: Request, access: Access, meaning: int) -> Iterator[tuple[str, bool]]:
    """Yield the keys of what these words ask for in one of the meanings, and whether the ledger has answers to it."""
    if meaning <= PUBLIC_IN_STEPS and access.catalog.public_tables:
        from lapwing.release.public_floats_in_steps import InSteps  # here: few data were accepted by earlier versions

        access = replace(access, public=InSteps(access.public))
    plan = _bind_earlier(request, access, meaning)
    if plan is None:
        return
    asked = plans_asked(plan)
    first = [search.question for one in asked for search in one.searches]
    first += [constant.question for one in asked for constant in one.constants]
    found = {}
    for question in dict.fromkeys(first):
        stored = access.ledger.answers(key_of(question))
        yield key_of(question), bool(stored)
        if stored:
            found[question] = restored(question, stored[0], request.priced.loss)
    if len(found) < len(set(first)):  # then what comes after them was never asked
        return
    if first:
        from lapwing.release.searches import rebound  # here: few questions leave anything to be found

        asked = plans_asked(rebound(request, asked, found, access, meaning >= PUBLIC_IN_STEPS))
    keys = [key_of(question) for question in {one.question: None for one in asked} if question not in found]
    for key, answers in zip(keys, access.ledger.look_up(keys)[1], strict=True):
        yield key, bool(answers)


def _bind_earlier(request: Request, access: Access, meaning: int) -> Plan | None:
    """Return the plan of a question in one of the meanings, None if it was refused then."""

    def make() -> Plan | None:
        able, moment = access.engine.capabilities, request.plan.moment
        given = (request.text, access.catalog, access.public, request.parameters)
        try:
            return bind(*given, capabilities=able, reads=meaning >= PUBLIC_IN_STEPS, moment=moment)
        except QueryRefused:
            return None

    return _PLANS.planned(
        make,
        catalog=access.catalog,
        principal=access.principal,
        text=request.text,
        parameters=request.parameters,
        numbers=(meaning, request.plan.moment),
    )
