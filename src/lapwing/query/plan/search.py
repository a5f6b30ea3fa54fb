"""A question of its own that finds the bounds which another leaves open."""

from dataclasses import dataclass

from lapwing.query.expressions.magnitudes import Magnitudes
from lapwing.query.measures.distribution import Distribution
from lapwing.query.measures.measures import Count, Sum
from lapwing.query.plan.plan import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A question of its own whose answer gives bounds for another: how many rows there are of each class of a value.

    For rows that several units share there are no classes: the question then chooses among the candidates.

    Args:
        magnitudes: the candidates, one for each class.
        name: what is bounded, for people.
        total: the measure, if what a unit adds to a group in all is bounded; the rows counted are units in groups then.
    """

    question: Question
    magnitudes: Magnitudes
    name: str
    total: Count | Sum | None = None

    @property
    def measure(self) -> Distribution:
        """What the question measures."""
        return self.question.distributions[0]

    @property
    def bounded(self) -> Distribution | Count | Sum:
        """The key of the search among those of its plan: what is measured, or the total that is bounded."""
        return self.measure if self.total is None else self.total
