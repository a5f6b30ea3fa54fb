"""Estimates of every attribute, from reports that are about one attribute each, or about all."""

from typing import Any

from lapwing.errors import InvalidParameter
from lapwing.local import client
from lapwing.local.frequencies.frequency_estimate import FrequencyEstimate, estimate
from lapwing.local.means.mean_estimate import MeanEstimate, estimate_mean
from lapwing.local.registry import mean_randomizer_of, randomizer_of


def estimate_record(task: client.Task, reports: tuple[Any, ...]) -> dict[str, FrequencyEstimate | MeanEstimate]:
    """Return the estimate of each question, from the reports that answer it; a question without reports is left out.

    Those who report on an attribute are a random sample of all respondents. So `whom="population"` gives intervals for
    all respondents too, somewhat too wide, and for the population that they are a random sample of.

    Args:
        reports: As `collect_for` returns them, a part for each question.

    Raises:
        InvalidParameter: For a task that does not ask for several attributes.
    """
    if not isinstance(task.asked, client.Attributes) or len(reports) != len(task.asked.each):
        raise InvalidParameter("These reports are not from a task with several attributes.")
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
