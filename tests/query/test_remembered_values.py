"""Values that are remembered of public facts are those of the query that asks, and not of one before it."""

import pytest

from tests.support.query.differing.comparing import EQUAL, Question, judged
from tests.support.query.differing.worlds import opened, world_of

KEYS = "SELECT age * {} AS k, COUNT(*) AS a0 FROM visits WHERE age > 87 GROUP BY 1"
LARGEST = "SELECT COUNT(*) AS a0 FROM visits WHERE age > (SELECT MAX(rate * {}) FROM places)"


@pytest.mark.parametrize("text", [KEYS, LARGEST])
def test_values_in_other_steps_are_other_values(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The engine counts in steps, so that both have the same SQL."""
    with opened(world_of(0), tmp_path_factory.mktemp("remembered")) as pair:
        for factor in ("1.0", "0.1", "10.0"):
            assert judged(Question(text=text.format(factor)), pair).state == EQUAL
