"""What reports of one attribute of a record each say about every attribute."""

from typing import Any

from lapwing.errors import InvalidParameter
from lapwing.local import client
from lapwing.local.lists.estimates import FrequencyEstimate, estimate
from lapwing.local.numbers.estimates import MeanEstimate, estimate_mean
from lapwing.local.tasks import mean_randomizer_of, randomizer_of


def estimate_record(task: client.Task, reports: tuple[Any, ...]) -> dict[str, FrequencyEstimate | MeanEstimate]:
    """Return the estimate of each question, from the reports that told it; a question that none told is left out.

    Who told an attribute was drawn at random from all respondents. So for all of them, as for a population that they
    are a random sample of, take `whom="population"`: for the respondents themselves its intervals are too wide rather
    than too narrow.

    Args: reports: as `collect_for` returns them, for each question its own.
    Raises: InvalidParameter for a task that does not ask for several attributes.
    """
    if not isinstance(task.asked, client.Attributes) or len(reports) != len(task.asked.each):
        raise InvalidParameter("These are no reports of a task that asks for several attributes.")
    found: dict[str, FrequencyEstimate | MeanEstimate] = {}
    for (question, asked), told in zip(task.asked.each, reports, strict=True):
        if len(told):
            found[question] = _estimate(asked, told)
    if not found:
        raise InvalidParameter("There are no reports to estimate from.")
    return found


def _estimate(asked: client.Asked, reports: Any) -> FrequencyEstimate | MeanEstimate:
    if isinstance(asked.answers, client.Values):
        return estimate(randomizer_of(asked), reports, asked.answers.texts)
    return estimate_mean(mean_randomizer_of(asked), reports)
