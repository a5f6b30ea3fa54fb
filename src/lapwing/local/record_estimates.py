"""What reports of one attribute of a record each say about every attribute."""

from typing import Any

from lapwing.errors import InvalidParameter
from lapwing.local import client
from lapwing.local.frequencies.frequency_estimate import FrequencyEstimate, estimate
from lapwing.local.means.mean_estimate import MeanEstimate, estimate_mean
from lapwing.local.registry import mean_randomizer_of, randomizer_of


def estimate_record(task: client.Task, reports: tuple[Any, ...]) -> dict[str, FrequencyEstimate | MeanEstimate]:
    """Return the estimate of each question, from the reports that answer it; a question without reports is left out.

    Who reports on an attribute is drawn at random from all respondents. So for all of them, as for a population that
    they are a random sample of, take `whom="population"`: for the respondents themselves its intervals are too wide
    rather than too narrow.

    Args: reports: as `collect_for` returns them, for each question its own.
    Raises: InvalidParameter for a task that does not ask for several attributes.
    """
    if not isinstance(task.asked, client.Attributes) or len(reports) != len(task.asked.each):
        raise InvalidParameter("These are no reports of a task that asks for several attributes.")
    estimates = {
        question: _estimate(asked, own)
        for (question, asked), own in zip(task.asked.each, reports, strict=True)
        if len(own)
    }
    if not estimates:
        raise InvalidParameter("There are no reports to estimate from.")
    return estimates


def _estimate(asked: client.Asked, reports: Any) -> FrequencyEstimate | MeanEstimate:
    if isinstance(asked.answers, client.Values):
        return estimate(randomizer_of(asked), reports, asked.answers.texts)
    return estimate_mean(mean_randomizer_of(asked), reports)
