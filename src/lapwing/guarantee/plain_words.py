"""The guarantee in plain words, to be read aloud to a person in the data: who is protected, and what others can learn.

Somebody tosses a coin to choose between two data sets. Somebody else sees every result of the chosen one, knows all
other rows, and guesses which it is. `guess_up` bounds how often that guess is right. δ is part of this number, so that
nothing has to be added to it.

Neighbours differ in one unit of one kind. A person may be several units: of tables that do not protect the same units,
or of tables in which each row is a unit. So with several kinds of units each number is about one unit, and never about
all rows of a person.
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

NEARLY_ALWAYS: Final = Fraction(99, 100)
"""Guesses that are right more often than this are called right nearly every time."""


def in_plain_words(catalog: Catalog, view: BudgetView, budget: Budget) -> Iterator[Phrase | JoinedTexts]:
    """Say what is promised to one person, in paragraphs that can be read aloud, without a symbol."""
    yield JoinedTexts(
        (
            say("This is for you if the data have rows about you."),
            say("Every result from the rows of {dataset} has random noise.", dataset=catalog.name),
            say("The noise protects {rows}.", rows=_your_rows(catalog)),
        ),
        " ",
    )
    yield JoinedTexts(_learned(catalog, budget, view), " ")
    yield JoinedTexts(_conditions(view), " ")


def _your_rows(catalog: Catalog) -> Phrase | JoinedTexts:
    """Name the protected rows to the person that they are about: of several kinds of units each with its tables."""
    if _is_row(catalog):
        return say("each row about you separately")
    kinds: dict[str, list[Table]] = {}
    for table in catalog.tables:
        kinds.setdefault(table.units, []).append(table)
    name = name_of(catalog.tables[0])
    if name is not None and len(kinds) == 1:
        return say("all rows with your {name} together", name=name)
    return JoinedTexts((_of_several(name_of(tables[0]), tables) for tables in kinds.values()), say(" and "))


def _is_row(catalog: Catalog) -> bool:
    return all(name_of(table) is None for table in catalog.tables)


def _of_several(name: str | None, tables: Sequence[Table]) -> Phrase:
    """Name the rows of one kind of units among several."""
    where = JoinedTexts((table.name for table in tables), say(" and "))
    if name is None:
        return say("each row about you in {tables} separately", tables=where)
    return say("all rows with your {name} in {tables} together", name=name, tables=where)


def _learned(catalog: Catalog, budget: Budget, view: BudgetView) -> Iterator[Phrase]:
    """Say how often a guess about the person is right: where the rows are present or absent, and what they hold."""
    presence_guess, contents_guess, several = _guesses(catalog)
    yield say("How much can someone learn about you?")
    yield say("Suppose that they know all other rows, and see every result that this data set can ever give.")
    yield say("They guess between two possibilities that seem equally likely to them.")
    yield say("Without the results, they are right 50 times out of 100.")
    contents = guess_up(budget, view.total)
    if catalog.budget.neighbouring == "add_remove":
        presence, contents = contents, guess_up(budget, view.total, steps=2)
        yield from _guessed(presence, presence_guess)
    yield from _guessed(contents, contents_guess)
    if several:
        yield say("If more than one of these is about you, a guess about all of them together may be right more often.")


def _guesses(catalog: Catalog) -> tuple[Phrase, Phrase, bool]:
    """Name the guess whether rows are there, and the guess what they hold; and say if there are several kinds of units.

    In a table in which each row is a unit, a row is one unit.
    """
    if _is_row(catalog):
        return (
            say("a guess whether a row about you is in the data"),
            say("a guess which of two contents a row about you has"),
            False,
        )
    if len({table.units for table in catalog.tables}) > 1:
        return (
            say("a guess whether one of these is in the data"),
            say("a guess which of two contents one of these has"),
            True,
        )
    return (
        say("a guess whether your rows are in the data"),
        say("a guess which of two contents your rows have"),
        False,
    )


def _guessed(right: Fraction, guess: Phrase) -> Iterator[Phrase]:
    if right > NEARLY_ALWAYS:
        yield say("With the results, {guess} may be right nearly always.", guess=guess)
        yield say("So large a budget hardly protects you against this guess.")
        return
    yield say(
        "With the results, {guess} is right at most {count} times out of 100.",
        guess=guess,
        count=Figure(math.ceil(100 * right)),
    )


def _conditions(view: BudgetView) -> Iterator[Phrase]:
    yield say("Anyone can learn what is true of many people, with your rows or without them.")
    if view.raised is not None and view.raised.delta:
        yield say("The numbers hold if the curator did not raise the budget because of results.")
    yield say("The exact statement follows.")
