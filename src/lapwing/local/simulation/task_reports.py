"""Simulated reports to any task, from answers as respondents would give them: one spelling for all mechanisms."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.local import client
from lapwing.local.heavy_hitters.prefix_extending import PrefixExtending
from lapwing.local.heavy_hitters.sketches import CountMeanSketch, HadamardSketch
from lapwing.local.longitudinal.dyadic_tree import DyadicTree
from lapwing.local.longitudinal.memoised import Memoised, MemoisedUnary
from lapwing.local.means.mean_randomizer import on_grid
from lapwing.local.rappor.full import Rappor
from lapwing.local.registry import mean_randomizer_of, mechanism_of, randomizer_of

Answers = Sequence[Any]
OVER_TIME: Final = (Memoised, MemoisedUnary, DyadicTree)


def simulate_reports(task: client.Task, answers: Answers, entropy: Entropy = SYSTEM) -> Any:
    """Return reports as `collect_for` would gather them, with the law of devices that answer a task.

    For simulations: devices run `client.report`. Pass the result to `estimate`, `estimate_mean`, `estimate_record`,
    `estimate_joint`, `estimate_over_time`, `estimate_sketch`, `decode` or `find_words`.

    Args:
        answers: One of each respondent: a value, a number, a text, or for several questions a mapping of each to its
            answer. Of mechanisms over time instead a sequence of answers of each respondent, one a period.

    Raises:
        InvalidParameter: For answers that the task does not allow.
    """
    if not len(answers):
        return mechanism_of(task.asked).gather([])
    if isinstance(task.asked, client.Attributes):
        return _records(task.asked, answers, entropy)
    return _reports(task.asked, answers, entropy)


def _reports(asked: client.Asked, answers: Answers, entropy: Entropy) -> Any:
    mechanism = mechanism_of(asked)
    if isinstance(mechanism, OVER_TIME):
        return _histories(asked, mechanism, answers, entropy)
    if isinstance(asked.answers, client.Values):
        return randomizer_of(asked).randomize(_codes(asked.answers, answers), entropy)
    if isinstance(asked.answers, client.Number):
        return mean_randomizer_of(asked).randomize(on_grid(asked.answers, _numbers(answers), entropy), entropy)
    for answer in answers:
        _check(asked.answers, answer)
    texts = [normalize("NFC", answer) for answer in answers]
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    own = np.array([numbers[text] for text in texts], dtype=np.int64)
    if isinstance(mechanism, PrefixExtending):
        return mechanism.randomize([text.encode() for text in texts], entropy)
    if isinstance(mechanism, CountMeanSketch | HadamardSketch):
        return mechanism.among(list(numbers)).randomize(own, entropy)
    if isinstance(mechanism, Rappor):
        return mechanism.randomize(list(numbers), own, entropy)
    raise InvalidParameter(f"Reports of the mechanism {asked.mechanism} are not simulated.")


def _histories(
    asked: client.Asked, mechanism: Memoised | MemoisedUnary | DyadicTree, answers: Answers, entropy: Entropy
) -> Any:
    if not isinstance(asked.answers, client.Values) or any(isinstance(each, str) for each in answers):
        raise InvalidParameter(f"The mechanism {asked.mechanism} takes a sequence of answers of each respondent.")
    if len({len(each) for each in answers}) > 1:
        raise InvalidParameter("All respondents must have as many answers, one a period.")
    codes = np.array([_codes(asked.answers, each) for each in answers], dtype=np.int64)
    reports = mechanism.simulate(codes, entropy)
    if isinstance(mechanism, DyadicTree):
        return reports
    return reports.reshape(-1, *reports.shape[2:])  # whose they are is not known, as when they are collected


def _records(asked: client.Attributes, answers: Sequence[Mapping[str, Any]], entropy: Entropy) -> tuple[Any, ...]:
    questions = {question for question, _ in asked.each}
    if any(set(answer) != questions for answer in answers):
        raise InvalidParameter("There must be an answer to each question.")
    if asked.mechanism == client.ALL_ATTRIBUTES:
        chosen = [np.arange(len(answers))] * len(asked.each)
    else:
        drawn = np.asarray(samplers.uniform_integers(len(asked.each), len(answers), entropy))
        chosen = [np.flatnonzero(drawn == number) for number in range(len(asked.each))]
    return tuple(
        _reports(each, [answers[i][question] for i in own.tolist()], entropy)
        if own.size
        else mechanism_of(each).gather([])
        for (question, each), own in zip(asked.each, chosen, strict=True)
    )


def _codes(values: client.Values, answers: Answers) -> NDArray[np.int64]:
    numbers = {text: number for number, text in enumerate(values.texts)}
    for answer in answers:
        if answer not in numbers:
            _check(values, answer)
    return np.array([numbers[answer] for answer in answers], dtype=np.int64)


def _numbers(answers: Answers) -> NDArray[np.float64]:
    try:
        numbers = np.array([float(answer) for answer in answers])
    except (TypeError, ValueError):
        numbers = np.array([np.nan])
    if not np.isfinite(numbers).all():
        raise InvalidParameter("The answers must be numbers, such as 12.5.")
    return numbers


def _check(allowed: client.Values | client.Text, answer: object) -> None:
    try:
        allowed.check(answer if isinstance(answer, str) else "")
    except client.AnswerRefused as refused:
        raise InvalidParameter(str(refused).replace("; nothing was sent", "")) from None
