"""Frequent words (heavy hitters), level by level: the prefixes of a level are followed if their noisy counts are large.

Theory of operation. A level is a task of its own, with a grid. Clients answer it with fresh parts, and say nothing but
the first letters of the word. The servers release noisy counts of all prefixes of the level. The next level asks for
more letters behind the prefixes whose noisy counts are large. After the last level, the prefixes are words.

Guarantee:
    Take levels with ε₁, ε₂, … and δ₁, δ₂, … They are together as private as the ledger of an honest server composes
    them: with pure ε, Σ εᵢ for a client who answers all. Which prefixes a level asks for is a function of the numbers
    that the servers released before (`followed_after`, which is given nothing else). So it is post-processing of them.
    Each server charges each level to the ledger of its folder, and the ledger is a filter for tasks that are chosen
    adaptively. A device adds up the levels in its own ledger. Parts are drawn anew for each level, and a part for one
    task is no part for another.

    Take c = `confidence`. With probability c at each level, all noise there is at most h (`estimates.largest`). Then no
    prefix is followed that nobody has, and each prefix of more than 2h clients is followed, if there is room for all.
    So after L levels, words of more than 2h clients are missing with probability L(1 − c) at most.

Source:
    The search by prefixes is Cormode and Muthukrishnan 2005. Poplar (Boneh et al. 2021) does it over secret shares,
    with one message of each client, for exact counts that its servers see.
"""

from fractions import Fraction
from typing import Final

from lapwing.errors import InvalidParameter
from lapwing.privacy.amounts import Number as Amount
from lapwing.secure.estimates import Estimate, largest
from lapwing.secure.organising import Totals, new_task
from lapwing.secure.task import Task
from lapwing.secure.words import OTHER, Words

LEVEL_CELLS: Final = 100_000
"""Of a level, unless it has to be more: with these a client sends 3.9 kB."""
CONFIDENCE: Final = Fraction(95, 100)


def first_level(alphabet: str, length: int) -> Words:
    """Return the first level of the search for words of at most `length` letters."""
    return _level(alphabet, length, ("",))


def frequent(found: Totals, confidence: Amount = CONFIDENCE) -> list[Estimate]:
    """Return the prefixes of a level whose counts are above 0, the most frequent first; of the last level, the words.

    The intervals hold for all prefixes of the level together.

    Raises:
        InvalidParameter: If the totals are not of such a level.
    """
    _words(found)
    return [each for each in largest(found, confidence) if each.label != OTHER]


def followed_after(found: Totals, confidence: Amount = CONFIDENCE, least: int = 0) -> Words:
    """Return the next level, computed from released numbers only.

    Args:
        least: Only prefixes whose noisy counts are at least this are followed.

    Raises:
        InvalidParameter: If there is no level behind, or no prefix is frequent.
    """
    asked = _words(found)
    if asked.depth == asked.length:
        raise InvalidParameter("This was the last level: its prefixes are whole words.")
    prefixes = [each.label for each in frequent(found, confidence) if each.value >= least]
    if not prefixes:
        raise InvalidParameter("No prefix is surely above 0, so there is nothing to follow.")
    room = (LEVEL_CELLS - 1) // len(asked.alphabet)
    return _level(asked.alphabet, asked.length, tuple(prefixes[: max(1, room)]))


def next_task(
    found: Totals, *, epsilon: Fraction | None = None, confidence: Amount = CONFIDENCE, least: int = 0
) -> tuple[Task, str]:
    """Return the task of the next level, at the same servers, and the organiser's key of it.

    Args:
        epsilon: The ε of the new level; None for the same ε.

    Raises:
        InvalidParameter: As `followed_after`.
    """
    task = found.task
    return new_task(
        question=task.question,
        asked=followed_after(found, confidence, least),
        epsilon=task.epsilon if epsilon is None else epsilon,
        delta=task.delta,
        least_clients=task.least_clients,
        certificates=[server.certificate for server in task.servers],
        checked=True,
        grid=True,
    )


def _level(alphabet: str, length: int, followed: tuple[str, ...]) -> Words:
    """Return a level with as many more letters as there is room for, and at least one."""
    more, rest = 1, length - len(followed[0])
    while more < rest and len(followed) * len(alphabet) ** (more + 1) < LEVEL_CELLS:
        more += 1
    return Words(alphabet, length, followed, more)


def _words(found: Totals) -> Words:
    if not isinstance(found.task.asked, Words):
        raise InvalidParameter("The task does not ask for words, so it has no levels.")
    return found.task.asked
