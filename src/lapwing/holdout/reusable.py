"""The holdout: it holds the rows, takes questions one after another, and refuses when it can promise no more."""

import os
from fractions import Fraction
from threading import Lock
from typing import NoReturn, final

from lapwing.client import RemoteSession
from lapwing.errors import InvalidParameter
from lapwing.exact.entropy import SYSTEM
from lapwing.exact.floats import float_up
from lapwing.holdout.answer import HoldoutAnswer, Reply
from lapwing.holdout.choosing import strategy_for
from lapwing.holdout.planning import GUESSING, how_many
from lapwing.holdout.remote import RemoteAnswering
from lapwing.holdout.sql import SessionAnswering
from lapwing.holdout.strategy import Answering, mean
from lapwing.holdout.values import Bounds, Question, RowsLike, asking, bounds_of, people_of
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number, exact, positive, probability
from lapwing.privacy.measures import GaussianDP
from lapwing.session import Session


@final
class ReusableHoldout:
    """Answer questions about a population from a sample that stays here, each chosen after the answers before.

    A question is a function of one person with values between bounds. The answer is an estimate of its mean in the
    population, with an interval. Under three conditions **all intervals hold at once with the confidence, for any
    choice of questions**:

    - The people were drawn independently from the population, one row each, and their number is public. If a person
      has several rows, make one: the person's mean.
    - The analyst knows nothing of the rows except the answers: the holdout is in somebody else's hands, or behind a
      service. Anyone who can read the array can overfit it, and the holdout cannot notice.
    - `besides` names everything else that was released of the same people.

    With a `Session` it takes `query_sql`, and charges the session's ledger like the analyst's other questions. With
    rows it takes `query`, and has an account of its own, which ends with this object. With a `RemoteSession` the
    service stores it and counts its questions: so it outlives this object, and the analyst cannot reach the rows.
    Thread-safe; of one process. You can neither copy nor pickle it: two copies would promise what one can.

    Args:
        data: an array, Arrow table, data frame or list, one row a person; or a session, here or at a service.
        strategy: best (the narrowest promise for this many questions), gaussian, thresholdout, guess-and-check,
            rounding, splitting, or subsampling (without intervals). Gaussian and thresholdout are private as well. On a
            session only best: the noise that its ledger takes.
        questions: the largest number of questions.
        width: the half-width of all intervals, in units of the range of values, with as many questions as it allows.
            Give at least one of them, and for guess-and-check a width.
        confidence: that all intervals are right.
        training: another sample of the same population, of the same kind as the data, that the analyst may see and
            work with. For the strategies that check guesses, its mean is the guess, unless a question brings its own.
            No person may be in both.
        failures: how many guesses may fail, for thresholdout; the usual number is 10.
        bounds: of the values of questions, unless a question brings its own.
        besides: what else was and will be released of these people, for `replace_one` neighbours: twice the μ of a loss
            for `add_remove`.
        people: only of a session: the public number of rows of the table.
        id: only of a service: a holdout that was made earlier, in the place of everything else.

    Raises:
        InvalidParameter: For what cannot be meant.
        BudgetExhausted: If not even one question can be promised.
    """

    def __init__(
        self,
        data: RowsLike | Session | RemoteSession,
        *,
        strategy: str = "best",
        questions: int | None = None,
        width: Number | None = None,
        confidence: Number = 0.95,
        training: RowsLike | None = None,
        failures: int | None = None,
        bounds: Bounds = (0, 1),
        besides: GaussianDP | None = None,
        people: int | None = None,
        id: str | None = None,
    ) -> None:
        self._lock, self._process = Lock(), os.getpid()
        self._bounds = bounds_of(bounds)
        self._confidence = probability(confidence, "confidence")
        self._asked, self._given = 0, list[HoldoutAnswer]()
        chance = 1 - self._confidence
        if questions is not None:
            whole_number(questions, "questions", least=1, most=10**9)
        if failures is not None:
            whole_number(failures, "failures", least=1, most=10**6)
        if besides is not None and not isinstance(besides, GaussianDP):
            raise InvalidParameter(f"besides is a {type(besides).__name__}; give a GaussianDP, for replace_one.")
        self._session: SessionAnswering | None = None
        self._remote: RemoteAnswering | None = None
        self._answering: Answering | None = None
        self._data: RowsLike | None = None
        self._training = training
        if isinstance(data, Session | RemoteSession):
            for name, value in (("training", training), ("failures", failures), ("width", width), ("besides", besides)):
                if value is not None:
                    raise InvalidParameter(
                        f"{name} is only for rows; for a session give questions and people. Its ledger counts the rest."
                    )
        if isinstance(data, RemoteSession):
            if strategy != "best":
                raise InvalidParameter(f"The strategy is {strategy!r:.40}; at a service it must be best.")
            far = self._remote = RemoteAnswering.of(data, id, people, questions, self._confidence)
            self.people, self.strategy, self.why = far.terms["people"], far.terms["strategy"], far.terms["why"]
            self._confidence = exact(far.terms["confidence"], "confidence")
            self._promised: Fraction | None = Fraction(far.terms["half_width"])
            return
        if id is not None:
            raise InvalidParameter("id names a holdout of a service; give it with a RemoteSession.")
        if isinstance(data, Session):
            held = self._session = SessionAnswering.of(data, strategy, people, questions, chance)
            self.people, self.strategy, self.why = held.terms.people, held.strategy, held.said()
            self._promised = held.half_width()
            return
        if people is not None:
            raise InvalidParameter("people is only for a session; rows count themselves.")
        self._data = data
        self.people = people_of(data)
        guessed_from = None if training is None else people_of(training)
        chosen, self.why = strategy_for(
            strategy, self.people, questions, width, chance, failures, guessed_from, besides
        )
        self.strategy = chosen.name
        self._promised = chosen.half_width()
        if width is not None and self._promised is not None and self._promised > positive(width, "width"):
            raise InvalidParameter(
                f"{chosen.name} promises ± {float(self._promised):.3g} for this number of queries. For ± {width} "
                f"it answers {how_many(self.people, width, confidence).get(chosen.name, 0):,}."
            )
        self._answering = chosen.start(SYSTEM)

    # ---- asking ------------------------------------------------------------------------------------------------------

    def query(self, question: Question, *, guess: Number | None = None, bounds: Bounds | None = None) -> HoldoutAnswer:
        """Answer a question: a function from a table of one person's row to one value, in an array or a list.

        A formula of columns, such as `lambda rows: rows["age"] > 65`, is computed of all people at once. Any other
        function sees one person at a time, in a process of its own, which takes 4 to 20 ms of a processor. So it cannot
        look at other people. Values outside the bounds count as the nearer bound, NaN and NULL as the lower one, and so
        does a person for whom it fails. The question is counted before it is run.

        Args:
            guess: Your guess of the mean, for strategies that check guesses.
            bounds: Of this question.

        Raises:
            BudgetExhausted: If no more can be promised.
            QueryRefused: For a question that fails on a row of zeros and empty texts, which nobody has: it is not
                counted.
        """
        low, high = self._bounds if bounds is None else bounds_of(bounds)
        guessed = None if guess is None else (exact(guess, "guess") - low) / (high - low)
        if guessed is not None and not 0 <= guessed <= 1:
            raise InvalidParameter(
                f"guess is {guess}; it must be between the bounds, {float(low):g} and {float(high):g}."
            )
        self._require_here()
        if self._answering is None or self._data is None:
            raise InvalidParameter("This holdout is for a session, whose rows stay in its engine. Use query_sql.")
        guesses = guessed is None and self._training is not None and self.strategy in GUESSING
        with asking(question, self._data, self.people) as values:
            if guesses and self._training is not None:
                guessed = _mean_of(question, self._training, low, high)
            with self._lock:
                self._answering.admit()
                self._asked += 1
                reply = self._answering.answer(values(low, high), guessed)
                return self._answered(reply, low, high)

    def query_sql(self, text: str, *, table: str | None = None, label: str | None = None) -> HoldoutAnswer:
        """Answer `AVG(…)` over all rows of a table of the session, charged to its ledger.

        Rows where the expression is NULL count as 0. The bounds are those that the catalog implies, 0 between them.

        Args:
            text: Such as "AVG(CASE WHEN age > 65 THEN 1 ELSE 0 END)".
            table: Which, if there are several.

        Raises:
            LapwingError: As `Session.sql`.
            QueryRefused: For anything but one AVG, and for an answer that was bought before.
        """
        self._require_here()
        if self._remote is not None:
            return self._remote.answer(text, table, label)
        if self._session is None:
            raise InvalidParameter(
                "This holdout is for rows. Use query with a function. For SQL, make it for a session."
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
        """The half-width of every interval, ±, in parts of the range of values; None if nothing is promised."""
        return None if self._promised is None else float_up(self._promised)

    @property
    def asked(self) -> int:
        """How many questions were counted."""
        return self._asked if self._remote is None else self._remote.asked

    @property
    def left(self) -> int | None:
        """How many more are surely answered; None if it depends on the answers (guess-and-check)."""
        keeper = self._session or self._remote
        return self._started.left if keeper is None else keeper.left

    @property
    def loss(self) -> GaussianDP | None:
        """The loss of the answers so far under `replace_one`; None if they are not private, or a ledger counts it."""
        return self._started.loss if self._answering is not None else None

    @property
    def id(self) -> str | None:
        """By which a service knows it; None unless one keeps it."""
        return None if self._remote is None else self._remote.id

    def answers(self) -> tuple[HoldoutAnswer, ...]:
        """Return what it answered so far, in order; of a service, what that keeps."""
        return tuple(self._given) if self._remote is None else self._remote.answers()

    def __repr__(self) -> str:
        promised = "no interval" if self._promised is None else f"± {float(self._promised):.3g}"
        state = f"{self._asked:,} asked" if self._remote is None else f"kept as {self._remote.id}"
        return f"<ReusableHoldout: {self.people:,} people, {self.strategy}, {promised}, {state}>"

    def __reduce__(self) -> NoReturn:
        raise InvalidParameter(
            "A holdout can be neither copied nor pickled, because two copies would answer twice as many queries."
        )

    @property
    def _started(self) -> Answering:
        if self._answering is None:
            raise InvalidParameter("This holdout is for a session; the ledger of the session keeps the account.")
        return self._answering

    def _require_here(self) -> None:
        if os.getpid() != self._process:
            raise InvalidParameter("A holdout belongs to the process that made it; nothing was counted.")

    def _answered(self, reply: Reply, low: Fraction, high: Fraction) -> HoldoutAnswer:
        answer = HoldoutAnswer.of(
            reply, low, high, confidence=self._confidence, question=self._asked, strategy=self.strategy
        )
        self._given.append(answer)
        return answer


def _mean_of(question: Question, training: RowsLike, low: Fraction, high: Fraction) -> Fraction:
    """Return the mean of another sample, each person's value made as those of the holdout are."""
    with asking(question, training, len(training)) as values:
        return mean(values(low, high))
