"""An answer with its intervals for the population in the place of those for the data, to be written in any form."""

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, final

from lapwing.answer.notes import NO_POPULATION_INTERVAL, OF_POPULATION
from lapwing.answer.population import POISSON, Sampling
from lapwing.answer.presentation import EndArray
from lapwing.answer.python_values import Cell, Note
from lapwing.answer.truncated_times import truncated_in
from lapwing.errors import InvalidParameter
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.measures import Loss

if TYPE_CHECKING:
    import pyarrow as pa


class AnswerOfSample(Protocol):
    """An answer, here or at a server, that has intervals for the population."""

    cost: Loss
    stored: bool
    notes: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""

    def rows(self) -> list[dict[str, Cell]]:
        """Return a list of dicts."""

    def interval(
        self, confidence: Fraction, /, *, of: str, sampling: int | str | None
    ) -> Mapping[str, tuple[EndArray, EndArray]]:
        """Return the ends of an interval for each noisy column."""

    def to_arrow(self) -> "pa.Table":
        """Return a table without intervals."""


@final
class PopulationShown:
    """What `AnswerShown` asks of an answer, with intervals for the population.

    Args:
        sampling: As `Answer.interval` takes it.
    """

    def __init__(self, answer: AnswerOfSample, sampling: Sampling) -> None:
        self._answer, self._sampling = answer, sampling
        self.columns, self.cost, self.stored = answer.columns, answer.cost, answer.stored
        self.notes = (*answer.notes, *self._said())
        self.truncated: Mapping[str, str] = truncated_in(answer)

    def rows(self) -> list[dict[str, Cell]]:
        """Return a list of dicts."""
        return self._answer.rows()

    def interval(self, confidence: Fraction, /) -> Mapping[str, tuple[EndArray, EndArray]]:
        """Return the ends of an interval for the population for each noisy column; NaN where none follows."""
        return self._answer.interval(confidence, of="population", sampling=self._sampling)

    def to_arrow(self, confidence: Fraction, /) -> "pa.Table":
        """Return a table with the intervals."""
        from lapwing.answer.arrow import with_ends  # here: Arrow takes longer to load than most questions to answer

        return with_ends(self._answer.to_arrow(), self.interval(confidence))

    def _said(self) -> list[Note]:
        """Say of what the intervals are, and of which columns there are none."""
        found = self.interval(Fraction(95, 100))
        # NaN and NaT are those that differ from themselves.
        without = [name for name, (low, _) in found.items() if len(low) and bool((low != low).all())]
        text = "intervals are for the population, if its people were drawn independently and the query was fixed"
        said = [Note(text, OF_POPULATION)]
        if without:
            more = "" if self._sampling is not None else ". For counts and sums, say how many people were drawn"
            text = f"no interval for the population can be given for {', '.join(without)}{more}"
            said.append(Note(text, NO_POPULATION_INTERVAL))
        return said


def read_sampling(text: str) -> Sampling:
    """Return what a text says of how many were drawn: a whole number, or poisson.

    Raises:
        InvalidParameter: For anything else.
    """
    if text == POISSON:
        return text
    if not (text.isascii() and text.isdigit()) or len(text) > 20:
        raise InvalidParameter(f"sampling is {text!r:.40}; it must be a number of people, or poisson.")
    return whole_number(int(text), "sampling", least=1, most=1 << 40)
