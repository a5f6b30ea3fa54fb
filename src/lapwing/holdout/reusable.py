"""The holdout: it holds the rows, takes questions one after another, and refuses when it can promise no more."""

import os
from collections.abc import Callable
from fractions import Fraction
from threading import Lock
from typing import Any, NoReturn, final

from lapwing.errors import InvalidParameter, QueryRefused
from lapwing.exact.entropy import SYSTEM
from lapwing.exact.floats import float_down, float_up
from lapwing.generalisation.gaussian_answers import GaussianAnswers
from lapwing.holdout.answer import HoldoutAnswer, Reply
from lapwing.holdout.described import GuessAndCheck
from lapwing.holdout.planning import GUESSING, USUAL_FAILURES, chosen, how_many, made
from lapwing.holdout.sql import SessionAnswering
from lapwing.holdout.strategy import Answering, Strategy, mean
from lapwing.holdout.values import Bounds, Rows, bounds_of, people_of, values_in_steps
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number, exact, positive, probability
from lapwing.privacy.measures import GaussianDP
from lapwing.session import Session

_FAILED = (
    "The question failed; it counts as asked. It must take the rows and return one number for each, which depends on "
    "that row alone: such as lambda rows: rows['age'] > 65."
)


@final
class ReusableHoldout:
    """Answer questions about a population from a sample that stays here, each chosen after the answers before.

    A question is a function of one person with values between bounds; the answer is an estimate of its mean in the
    population, with an interval. **All intervals hold at once with the confidence, however the questions were chosen**,
    if

    - the people were drawn independently from the population, one row each, and their number is public (of a person
    with
      several rows, make one: the person's mean);
    - whoever asks knows nothing of the rows but the answers: the holdout is in somebody else's hands, or behind a
      service. Who can read the array can overfit it, and nothing here would notice;
    - everything else that was released of the same people is named in `besides`, or is nothing.

    Made for a `Session`, it takes `query_sql`, which the session's ledger is charged for, as its analyst's other
    questions are; made for rows, it takes `query`, and keeps an account of its own, which ends with this object.
    Thread-safe; of one process; it can be neither copied nor pickled, as two of it would promise what one can.

    Args:
        data: an array, Arrow table, data frame or list, one row a person; or a session.
        strategy: best (the narrowest promise for so many questions), gaussian, thresholdout, guess-and-check, rounding,
            splitting, or subsampling (without intervals). Gaussian and thresholdout are private as well. On a session
            best alone: the noise that its ledger takes.
        questions: how many will be asked at most; or width: what all intervals shall be within, ±, in units of the
            range of values, and as many questions as that allows. One of them at least, but for guess-and-check a
            width.
        confidence: that all intervals are right.
        training: another sample of the same population, of the same kind as the data, that whoever asks may see and
        work
            with: its mean is the guess, for the strategies that check guesses, unless a question brings its own. No
            person may be in both.
        failures: how many guesses may fail, for thresholdout; the usual number is 10.
        bounds: of the values of questions, unless a question brings its own.
        besides: what else was and will be released of these people, for `replace_one` neighbours: twice the μ of a loss
            for `add_remove`.
        people: of a session alone: the public number of rows of the table.
    Raises: InvalidParameter for what cannot be meant; BudgetExhausted if not even one question can be promised.
    """

    def __init__(
        self,
        data: Rows | Session,
        *,
        strategy: str = "best",
        questions: int | None = None,
        width: Number | None = None,
        confidence: Number = 0.95,
        training: Rows | None = None,
        failures: int | None = None,
        bounds: Bounds = (0, 1),
        besides: GaussianDP | None = None,
        people: int | None = None,
    ) -> None:
        self._lock, self._process = Lock(), os.getpid()
        self._bounds = bounds_of(bounds)
        self._confidence = probability(confidence, "confidence")
        self._asked = 0
        chance = 1 - self._confidence
        if questions is not None:
            whole_number(questions, "questions", least=1, most=10**9)
        if failures is not None:
            whole_number(failures, "failures", least=1, most=10**6)
        if besides is not None and not isinstance(besides, GaussianDP):
            raise InvalidParameter(f"besides is a {type(besides).__name__}; give a GaussianDP, for replace_one.")
        self._session: SessionAnswering | None = None
        self._data: Rows | None = None
        self._training = training
        if isinstance(data, Session):
            for name, value in (("training", training), ("failures", failures), ("width", width), ("besides", besides)):
                if value is not None:
                    raise InvalidParameter(
                        f"{name} is for rows; for a session give questions and people. Its ledger counts the rest."
                    )
            self._session = SessionAnswering.of(data, strategy, people, questions, chance)
            held = self._session
            self.people, self.strategy, self.why = held.terms.people, held.strategy, held.said()
            self._answering: Answering | None = None
            self._promised: Fraction | None = self._session.half_width()
            return
        if people is not None:
            raise InvalidParameter("people is for a session; of rows there are as many as there are.")
        self._data = data
        self.people = people_of(data)
        guessed_from = None if training is None else people_of(training)
        started, self.why = _started(strategy, self.people, questions, width, chance, failures, guessed_from, besides)
        self.strategy = started.name
        self._promised = started.half_width()
        if width is not None and self._promised is not None and self._promised > positive(width, "width"):
            raise InvalidParameter(
                f"{started.name} promises ± {float(self._promised):.3g} for so many questions; ± {width} was asked "
                f"for, and so narrow it answers {how_many(self.people, width, confidence).get(started.name, 0):,}."
            )
        self._answering = started.start(SYSTEM)

    # ---- asking ------------------------------------------------------------------------------------------------------

    def query(
        self, question: Callable[[Any], Any], *, guess: Number | None = None, bounds: Bounds | None = None
    ) -> HoldoutAnswer:
        """Answer a question: a function from the rows to one value for each, which depends on that row alone.

        Values outside the bounds count as the nearer bound, NaN and NULL as the lower one. The question is counted
        before it is run; one that fails says so in constant words.

        Args: guess: what the mean is thought to be, for strategies that check guesses; bounds: of this question.
        Raises: BudgetExhausted if no more can be promised; QueryRefused if the question fails, which counts as asked.
        """
        low, high = self._bounds if bounds is None else bounds_of(bounds)
        guessed = None if guess is None else (exact(guess, "guess") - low) / (high - low)
        if guessed is not None and not 0 <= guessed <= 1:
            raise InvalidParameter(
                f"guess is {guess}; it must be between the bounds, {float(low):g} and {float(high):g}."
            )
        self._require_here()
        if self._answering is None or self._data is None:
            raise InvalidParameter("This holdout is of a session, whose rows stay in its engine: use query_sql.")
        if guessed is None and self._training is not None and self.strategy in GUESSING:
            trained = values_in_steps(question, self._training, len(self._training), low, high)
            guessed = None if trained is None else mean(trained)
        with self._lock:
            self._answering.admit()
            self._asked += 1
            values = values_in_steps(question, self._data, self.people, low, high)
            if values is None:
                raise QueryRefused(_FAILED.rstrip("."))
            reply = self._answering.answer(values, guessed)
            return self._answered(reply, low, high)

    def query_sql(self, text: str, *, table: str | None = None, label: str | None = None) -> HoldoutAnswer:
        """Answer `AVG(…)` over all rows of a table of the session, charged to its ledger.

        Rows where the expression is NULL count as 0. The bounds are those that the catalog implies, 0 between them.

        Args: text: such as "AVG(CASE WHEN age > 65 THEN 1 ELSE 0 END)"; table: which, if there are several.
        Raises: as `Session.sql`; QueryRefused for anything but one AVG, and for an answer that was bought before.
        """
        self._require_here()
        if self._session is None:
            raise InvalidParameter(
                "This holdout is of rows: use query with a function. For SQL, make it for a session."
            )
        with self._lock:
            reply, low, high = self._session.answer(text, table, label)
            self._asked += 1
            return self._answered(reply, low, high)

    # ---- what is promised --------------------------------------------------------------------------------------------

    @property
    def confidence(self) -> float:
        """That all intervals hold at once."""
        return float(self._confidence)

    @property
    def half_width(self) -> float | None:
        """What every interval is within, ±, as a share of the range of values; None if nothing is promised."""
        return None if self._promised is None else float_up(self._promised)

    @property
    def asked(self) -> int:
        """How many questions were counted."""
        return self._asked

    @property
    def left(self) -> int | None:
        """How many more are surely answered; None if it depends on the answers (guess-and-check)."""
        return self._session.left if self._session is not None else self._started.left

    @property
    def loss(self) -> GaussianDP | None:
        """What the answers so far lose under `replace_one`; None if they are not private, or a ledger counts it."""
        return None if self._session is not None else self._started.loss

    def __repr__(self) -> str:
        promised = "no interval" if self._promised is None else f"± {float(self._promised):.3g}"
        return f"<ReusableHoldout: {self.people:,} people, {self.strategy}, {promised}, {self._asked:,} asked>"

    def __reduce__(self) -> NoReturn:
        raise InvalidParameter("A holdout can be neither copied nor pickled: two of it would answer twice as much.")

    @property
    def _started(self) -> Answering:
        if self._answering is None:
            raise InvalidParameter("This holdout is of a session; its ledger keeps the account.")
        return self._answering

    def _require_here(self) -> None:
        if os.getpid() != self._process:
            raise InvalidParameter("A holdout belongs to the process that made it; nothing was counted.")

    def _answered(self, reply: Reply, low: Fraction, high: Fraction) -> HoldoutAnswer:
        value = low + (high - low) * reply.value
        ends: tuple[float | None, float | None] = (None, None)
        if reply.half_width is not None:
            reach = (high - low) * reply.half_width
            # A noisy value far outside the bounds leaves the end of the bounds that it is nearest to.
            ends = (
                float_down(min(high, max(low, value - reach))) + 0.0,  # which makes no 0 of a −0
                float_up(max(low, min(high, value + reach))),
            )
        return HoldoutAnswer(
            value=float(value),
            low=ends[0],
            high=ends[1],
            confidence=float(self._confidence),
            question=self._asked,
            strategy=self.strategy,
            source=reply.source,
            bounds=(float(low), float(high)),
        )


def _started(
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
        raise InvalidParameter(
            "Say how many questions there will be at most, or a width; lapwing.holdout.how_many helps."
        )
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
        raise InvalidParameter(f"{name} promises no width; say how many questions there will be at most.")
    if besides is not None and besides.mu_squared:
        if name not in ("best", "gaussian"):
            raise InvalidParameter(f"Beside other releases, say how many questions {name} is for.")
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
