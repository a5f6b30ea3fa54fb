"""Which strategy a holdout of rows has: what is asked for, made; or the best, and why."""

from fractions import Fraction

from lapwing.errors import InvalidParameter
from lapwing.generalisation.gaussian_answers import GaussianAnswers
from lapwing.holdout.described import GuessAndCheck
from lapwing.holdout.planning import GUESSING, USUAL_FAILURES, chosen, how_many, made
from lapwing.holdout.strategy import Strategy
from lapwing.privacy.amounts import Number, exact, positive
from lapwing.privacy.measures import GaussianDP


def strategy_for(
    name: str,
    people: int,
    questions: int | None,
    width: Number | None,
    chance: Fraction,
    failures: int | None,
    guessed_from: int | None,
    besides: GaussianDP | None,
) -> tuple[Strategy, str]:
    """Return the strategy and why it is that one."""
    if not isinstance(name, str):
        raise InvalidParameter(f"The strategy is a {type(name).__name__}; it must be a name, such as 'best'.")
    if questions is None and width is None:
        raise InvalidParameter("Give the maximum number of questions, or a width; lapwing.holdout.how_many helps.")
    wanted = None if width is None else positive(width, "width")
    if wanted is not None and wanted >= 1:
        raise InvalidParameter(f"width is {width}; as a share of the range of values it must be less than 1.")
    if name == "guess-and-check" and wanted is not None:
        strategy: Strategy = made(name, people, questions or 1, chance, width=wanted, besides=besides)
        if isinstance(strategy, GuessAndCheck) and not strategy.admits(1, 0):
            raise InvalidParameter(_too_narrow(name, people, width))
        return strategy, strategy.said()
    if questions is None:
        name, questions = _as_many(name, people, width, chance, failures, guessed_from, besides)
    if name == "best":
        strategy, why = chosen(people, questions, chance, besides)
        return strategy, f"{why}: {strategy.said()}"
    strategy = made(
        name, people, questions, chance, failures=failures, guessed_from=guessed_from, width=wanted, besides=besides
    )
    return strategy, strategy.said()


def _as_many(
    name: str,
    people: int,
    width: Number | None,
    chance: Fraction,
    failures: int | None,
    guessed_from: int | None,
    besides: GaussianDP | None,
) -> tuple[str, int]:
    """Return the strategy, of the best the one with most questions, and how many it answers within the width."""
    if width is None or name == "subsampling":
        raise InvalidParameter(f"{name} promises no width; give the maximum number of questions.")
    if besides is not None and besides.mu_squared:
        if name not in ("best", "gaussian"):
            raise InvalidParameter(f"Next to other releases, give the number of questions that {name} is for.")
        answers = GaussianAnswers.most(people, exact(width, "width"), 1 - chance, besides=besides)
        counts = {"gaussian": answers.questions if answers else 0}
    else:
        some = failures or USUAL_FAILURES
        counts = how_many(people, width, 1 - chance, failures=some, guessed_from=guessed_from)
    free = {each: count for each, count in counts.items() if each not in GUESSING}
    best = max(free, key=lambda each: free[each]) if name == "best" else name
    if best not in counts:
        raise InvalidParameter(f"The strategy is {name!r:.40}; it must be best or one of {', '.join(counts)}.")
    if not counts[best]:
        raise InvalidParameter(_too_narrow(best, people, width))
    return best, counts[best]


def _too_narrow(name: str, people: int, width: Number | None) -> str:
    return f"{name} cannot promise ± {width} for even one question about {people:,} people; ask for a larger width."
