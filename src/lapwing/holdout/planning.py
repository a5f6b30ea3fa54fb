"""What each strategy promises, before anything is asked: of public numbers alone."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import sqrt
from typing import TYPE_CHECKING, Final, final

from lapwing.errors import InvalidParameter
from lapwing.exact.floats import float_up
from lapwing.generalisation.gaussian_answers import GaussianAnswers
from lapwing.holdout.described import GuessAndCheck, Rounding
from lapwing.holdout.gaussian import GaussianStrategy
from lapwing.holdout.splitting import Splitting
from lapwing.holdout.strategy import Strategy
from lapwing.holdout.subsampling import Subsampling
from lapwing.holdout.thresholdout import Thresholdout
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number, positive, probability
from lapwing.privacy.measures import GaussianDP

if TYPE_CHECKING:
    from lapwing.plots import Plot

FREE: Final = ("gaussian", "rounding", "splitting")
"""Strategies that answer so many questions whatever is asked."""
GUESSING: Final = ("thresholdout", "guess-and-check")
"""Strategies that answer many questions as long as few guesses fail."""
NAMES: Final = (*FREE, *GUESSING, "subsampling")
USUAL_FAILURES: Final = 10
_MOST_QUESTIONS: Final = 10**9
_CONFIDENCE: Final = 0.95


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """The promise of a strategy.

    Args:
        half_width: The distance of all answers from the population's means, in parts of the range of values; None if
            the strategy promises nothing.
        said: The strategy, in words.
        condition: Further conditions of the promise, in words.
    """

    strategy: str
    questions: int
    half_width: float | None
    said: str
    condition: str = ""


def made(
    name: str,
    people: int,
    questions: int,
    chance: Fraction,
    *,
    failures: int | None = None,
    guessed_from: int | None = None,
    width: Fraction | None = None,
    besides: GaussianDP | None = None,
) -> Strategy:
    """Return a strategy for so many questions.

    Args:
        width: What guess-and-check keeps to; without, the least that it can for so many questions.
    """
    some = USUAL_FAILURES if failures is None else failures
    besides = besides or GaussianDP(0)
    match name:
        case "gaussian":
            answers = GaussianAnswers.best(people, questions, 1 - chance, besides=besides)
            return GaussianStrategy(answers=answers, chance=chance)
        case "thresholdout":
            return Thresholdout.best(people, some, questions, chance, guessed_from=guessed_from, besides=besides)
        case _ if besides.mu_squared:
            raise InvalidParameter(
                f"Other releases of these people have a loss, and {name} does not add up losses; "
                "use the strategy gaussian or thresholdout."
            )
        case "splitting":
            return Splitting(people=people, questions=questions, chance=chance)
        case "subsampling":
            return Subsampling(people=people, questions=questions)
        case "rounding":
            return Rounding.best(people, questions, chance)
        case "guess-and-check":
            return _guess_and_check(people, questions, some, chance, width, guessed_from or people)
    raise InvalidParameter(f"The strategy is {name!r:.40}; it must be best or one of {', '.join(NAMES)}.")


def _guess_and_check(
    people: int, questions: int, failures: int, chance: Fraction, width: Fraction | None, guessed_from: int
) -> GuessAndCheck:
    if width is not None:
        return GuessAndCheck.of_width(people, width, chance)
    # The least width, in thousandths, that is enough for so many questions and failures, and that leaves room for what
    # the mean of another sample is off by, up to three standard deviations.
    low, high = 0, 1000
    room = Fraction(3 * sqrt(0.25 / people + 0.25 / guessed_from))

    def enough(thousandths: int) -> bool:
        tried = GuessAndCheck.of_width(people, Fraction(thousandths, 1000), chance)
        last = max(questions, failures + 1)
        return tried.admits(last, failures) and tried.strays(last, failures) + room <= tried.width

    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return GuessAndCheck.of_width(people, Fraction(high, 1000), chance)


def outlook(
    people: int,
    questions: int,
    confidence: Number = _CONFIDENCE,
    *,
    failures: int | None = None,
    guessed_from: int | None = None,
) -> tuple[Outlook, ...]:
    """Return the promise of each strategy for this many questions about this many people, the best first.

    Args:
        people: drawn independently from the population, one row each.
        confidence: that all answers are right at once.
        failures: how many guesses may fail, for the strategies that live by guesses; guessed_from: the size of the
            sample that guesses are made from.
    """
    n, k, chance = _public(people, questions, confidence)
    names = [name for name in NAMES if name != "splitting" or k <= n]
    rows = [
        _outlook(made(name, n, k, chance, failures=failures, guessed_from=guessed_from), k, failures) for name in names
    ]
    return tuple(sorted(rows, key=lambda row: (row.half_width is None, row.half_width)))


def _outlook(strategy: Strategy, questions: int, failures: int | None) -> Outlook:
    promised, condition = strategy.half_width(), ""
    if strategy.name in GUESSING:
        condition = f"as long as {failures or USUAL_FAILURES:,} guesses fail at most"
    return Outlook(
        strategy=strategy.name,
        questions=questions,
        half_width=None if promised is None else float_up(promised),
        said=strategy.said(),
        condition=condition,
    )


def how_many(
    people: int,
    width: Number,
    confidence: Number = _CONFIDENCE,
    *,
    failures: int | None = None,
    guessed_from: int | None = None,
) -> dict[str, int]:
    """Return how many questions each strategy answers to within ± width of the population's means, all at once.

    0 where not even one can be promised; a billion stands for more. Strategies that live by guesses count as long as no
    more than `failures` of them fail. For subsampling nothing is promised, so it is not there.

    Args:
        people: Drawn independently from the population, one row each.
        width: As a share of the range of values.
    """
    n, _, chance = _public(people, 1, confidence)
    wanted = _width(width)
    some = USUAL_FAILURES if failures is None else failures
    gaussian = (
        GaussianAnswers.most(n, wanted - Fraction(1, 1 << 20), 1 - chance) if wanted > Fraction(1, 1 << 19) else None
    )
    kept: dict[str, Callable[[int], bool]] = {
        name: partial(_keeps, name, n, chance, wanted, failures=some, guessed_from=guessed_from)
        for name in ("rounding", "splitting", "thresholdout")
    }
    return {
        "gaussian": gaussian.questions if gaussian else 0,
        **{name: _most(keeps) for name, keeps in kept.items()},
        "guess-and-check": min(_MOST_QUESTIONS, GuessAndCheck.of_width(n, wanted, chance).most(some)),
    }


def _keeps(
    name: str, people: int, chance: Fraction, width: Fraction, k: int, *, failures: int, guessed_from: int | None
) -> bool:
    if name == "splitting" and k > people:
        return False
    promised = made(name, people, k, chance, failures=failures, guessed_from=guessed_from).half_width()
    return promised is not None and promised <= width


def _most(keeps: Callable[[int], bool]) -> int:
    """Return the most questions that are kept; a search that takes the promise to fall with their number."""
    if not keeps(1):
        return 0
    low, high = 1, 2
    while keeps(high):
        low, high = high, 2 * high
        if high > _MOST_QUESTIONS:
            return _MOST_QUESTIONS
    while high - low > max(1, low // 1000):
        middle = (low + high) // 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def chosen(people: int, questions: int, chance: Fraction, besides: GaussianDP | None) -> tuple[Strategy, str]:
    """Return the strategy that promises the narrowest intervals for so many questions whatever is asked, and why."""
    counted = bool(besides and besides.mu_squared)
    names = [name for name in FREE if not counted or name == "gaussian"]
    several = [
        made(name, people, questions, chance, besides=besides)
        for name in names
        if name != "splitting" or questions <= people
    ]
    widths = [(promised, strategy) for strategy in several if (promised := strategy.half_width()) is not None]
    widths.sort(key=lambda pair: pair[0])
    promises = ", ".join(f"{strategy.name} ± {float(promised):.3g}" for promised, strategy in widths)
    return widths[0][1], f"for {questions:,} questions about {people:,} people, {promises}"


def width_chart(
    people: int,
    confidence: Number = _CONFIDENCE,
    *,
    most: int = 100_000,
    failures: int | None = None,
    guessed_from: int | None = None,
) -> "Plot":
    """Draw the half-width that each strategy promises against the number of questions, up to a largest number."""
    from lapwing.plots import lines  # here: most who plan want numbers

    rows = []
    for questions in _ladder(whole_number(most, "most", least=1)):
        for row in outlook(people, questions, confidence, failures=failures, guessed_from=guessed_from):
            if row.half_width is not None:
                rows.append({"questions": questions, "half-width": row.half_width, "strategy": row.strategy})
    plot = lines(
        rows,
        x="questions",
        y="half-width",
        series="strategy",
        title=f"Intervals that hold for a population, from {people:,} people",
    )
    plot.specification["encoding"]["x"]["scale"] = {"type": "log"}
    return plot


def _ladder(most: int) -> Iterable[int]:
    """Return numbers from 1 to the most, eight in each power of ten."""
    steps = sorted({min(most, round(10 ** (i / 8))) for i in range(8 * len(str(most)) + 1)} | {most})
    return [step for step in steps if step <= most]


def _public(people: int, questions: int, confidence: Number) -> tuple[int, int, Fraction]:
    return (
        whole_number(people, "people", least=1, most=1 << 40),
        whole_number(questions, "questions", least=1, most=_MOST_QUESTIONS),
        1 - probability(confidence, "confidence"),
    )


def _width(width: Number) -> Fraction:
    wanted = positive(width, "width")
    if wanted >= 1:
        raise InvalidParameter(f"width is {width}; as a share of the range of values it must be less than 1.")
    return wanted
