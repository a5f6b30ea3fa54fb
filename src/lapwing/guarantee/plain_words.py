"""The guarantee in plain words, to be read aloud to a person in the data: one figure, and what it is about.

Somebody tosses a coin to choose between two data sets. Somebody else sees every result of the chosen one, knows all
other rows, and guesses which it is. `guess_up` bounds how often that guess is right. δ is part of this number, so that
nothing has to be added to it.

Neighbours differ in one unit of one kind. A person may be several units, in three ways. Tables may not protect the same
units. In a table, each row may be a unit. The person may have several values of the column of units. So the words say
what the number is about: what is stored under one number or name, one of several kinds, or one row. They name no
column, because people in the data do not know its name.

The first number is about whether the unit is in the data, unless neighbours replace a unit. The contents of
its rows are two steps away. They are for `contents_guess`, in the exact statement.
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from lapwing.budget import BudgetView
from lapwing.catalog.model import Budget, Catalog, Table
from lapwing.catalog.protection import name_of
from lapwing.guarantee.meaning import guess_up
from lapwing.languages import Figure, JoinedTexts, Phrase, say
from lapwing.privacy.additive import Loss

NEARLY_ALWAYS: Final = Fraction(99, 100)
"""Guesses that are right more often than this are called right nearly every time."""


def in_plain_words(catalog: Catalog, view: BudgetView, budget: Budget) -> Iterator[Phrase | JoinedTexts]:
    """Say what is promised to one person, in paragraphs that can be read aloud, without a symbol."""
    yield JoinedTexts(_learned(catalog, budget, view), " ")
    yield JoinedTexts(_meant(catalog, view), " ")


def contents_guess(budget: Budget, total: Loss) -> Phrase:
    """Say how often a guess is right which of two contents a unit has, where the first number is about its presence."""
    right = guess_up(budget, total, steps=2)
    if right > NEARLY_ALWAYS:
        return say(
            "If both seem equally likely, a guess between them may be right nearly always.",
            code="contents_guess_unlimited",
        )
    return say(
        "If both seem equally likely, a guess between them is right at most {count} times out of 100.",
        count=_times(right),
        code="contents_guess",
    )


def _learned(catalog: Catalog, budget: Budget, view: BudgetView) -> Iterator[Phrase]:
    """Say how often a guess about the person is right."""
    yield _wondered(catalog)
    yield say(
        "Suppose that they know everything else in the data, and that both answers seem equally likely to them.",
        code="assumptions",
    )
    yield say("Without the results, their guess is right 50 times out of 100.", code="guess_without_results")
    right = guess_up(budget, view.total)
    if right > NEARLY_ALWAYS:
        yield say(
            "With all results that this data set can ever give, it may be right nearly always.", code="guess_unlimited"
        )
        yield say("So large a budget hardly protects you.", code="hardly_protects")
        return
    yield say(
        "With all results that this data set can ever give, it is right at most {count} times out of 100.",
        count=_times(right),
        code="guess_with_results",
    )


def _times(right: Fraction) -> Figure:
    return Figure(math.ceil(100 * right))


def _wondered(catalog: Catalog) -> Phrase:
    """Say what somebody may try to find out about the person; of several kinds of units about one of them."""
    presence = catalog.budget.neighbouring == "add_remove"
    if _is_row(catalog):
        if presence:
            return say(
                "Someone may try to find out whether a row about you is in the data.", code="row_presence_sought"
            )
        return say("Someone may try to find out which of two contents a row about you has.", code="row_contents_sought")
    kinds = _kinds(catalog)
    if len(kinds) > 1:
        each = JoinedTexts((_of_several(name_of(tables[0]), tables) for tables in kinds), say(" and "))
        if presence:
            return say(
                "Someone may try to find out whether one of these is in the data: {each}.",
                each=each,
                code="presence_of_one_sought",
            )
        return say(
            "Someone may try to find out which of two contents one of these has: {each}.",
            each=each,
            code="contents_of_one_sought",
        )
    if presence:
        return say("Someone may try to find out whether you are in the data.", code="presence_sought")
    return say("Someone may try to find out which of two things the data say about you.", code="contents_sought")


def _is_row(catalog: Catalog) -> bool:
    return all(name_of(table) is None for table in catalog.tables)


def _kinds(catalog: Catalog) -> list[list[Table]]:
    """Return the tables of each kind of units."""
    kinds: dict[str, list[Table]] = {}
    for table in catalog.tables:
        kinds.setdefault(table.units, []).append(table)
    return list(kinds.values())


def _of_several(name: str | None, tables: Sequence[Table]) -> Phrase:
    """Name the rows of one kind of units among several."""
    where = JoinedTexts((table.name for table in tables), say(" and "))
    if name is None:
        return say("each row about you in {tables} separately", tables=where)
    return say("everything that {tables} has about you under one number or name", tables=where)


def _meant(catalog: Catalog, view: BudgetView) -> Iterator[Phrase]:
    """Say what the number is about, what protects it, and what it leaves open."""
    yield say("Every number that leaves the data has a random change, and that protects you.", code="noise_protects")
    if _is_row(catalog):
        yield say("It protects each row about you separately.", code="rows_protected")
    elif len(_kinds(catalog)) > 1:
        yield say(
            "If more than one of these is about you, a guess about all of them together may be right more often.",
            code="several_units",
        )
    else:
        yield say("It protects everything that is stored about you under one number or name.", code="unit_protected")
    yield say("Anyone can learn what is true of many people, whether you are in the data or not.", code="common_facts")
    if view.raised is not None and view.raised.delta:
        yield say(
            "The figure holds if the curator did not raise the budget because of results.", code="figure_conditional"
        )
    yield say("The exact statement is below.", code="exact_statement_below")
