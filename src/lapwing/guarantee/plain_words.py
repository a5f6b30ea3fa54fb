"""The guarantee in plain words, to be read aloud to a person in the data: who is protected, and what others can learn.

Somebody tosses a coin to choose between two data sets. Somebody else sees every result of the chosen one, knows all
other rows, and guesses which it is. `guess_up` bounds how often that guess is right. δ is part of this number, so that
nothing has to be added to it.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from lapwing.budget import BudgetView
from lapwing.catalog.model import Budget, Catalog
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


def _your_rows(catalog: Catalog) -> JoinedTexts:
    """Name what is protected to the person that it is about."""
    names = dict.fromkeys(name_of(table) for table in catalog.tables)
    return JoinedTexts(
        (
            say("each row about you separately")
            if name is None
            else say("all rows with your {name} together", name=name)
            for name in names
        ),
        say(" and "),
    )


def _learned(catalog: Catalog, budget: Budget, view: BudgetView) -> Iterator[Phrase]:
    """Say how often a guess about the person is right: where the rows are present or absent, and what they hold."""
    by_row = all(name_of(table) is None for table in catalog.tables)
    yield say("How much can someone learn about you?")
    yield say("Suppose that they know all other rows, and see every result that this data set can ever give.")
    yield say("They guess between two possibilities that seem equally likely to them.")
    yield say("Without the results, they are right 50 times out of 100.")
    contents = guess_up(budget, view.total)
    if catalog.budget.neighbouring == "add_remove":
        presence, contents = contents, guess_up(budget, view.total, steps=2)
        yield from _guessed(
            presence,
            say("a guess whether a row about you is in the data")
            if by_row
            else say("a guess whether your rows are in the data"),
        )
    yield from _guessed(
        contents,
        say("a guess which of two contents a row about you has")
        if by_row
        else say("a guess which of two contents your rows have"),
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
