"""Questions in SQL about a protected table, charged to its ledger, with intervals for the population."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Self, final

from lapwing.errors import BudgetExhausted, InvalidParameter, QueryRefused, RefusalCause
from lapwing.holdout.answer import Reply
from lapwing.holdout.terms import NAME, HoldoutTerms, bought_before, question_of, strategy_of, sum_of
from lapwing.session import Session


@final
@dataclass(slots=True)
class SessionAnswering:
    """Asks a session for sums, on the terms of a holdout, and counts them."""

    session: Session
    terms: HoldoutTerms
    asked: int = field(default=0)

    @classmethod
    def of(cls, session: Session, strategy: str, people: int | None, questions: int | None, chance: Fraction) -> Self:
        """Return what answers so many questions out of what is left of a session's budget."""
        own = strategy_of(session.catalog.budget)
        if strategy not in ("best", own):
            raise InvalidParameter(f"The strategy is {strategy!r:.40}; on this session it must be best or {own}.")
        if people is None or questions is None:
            raise InvalidParameter(
                "For a session, give people (the public number of rows) and questions (the maximum number)."
            )
        view = session.budget(history=False)
        terms = HoldoutTerms.of(
            session.catalog.budget, view, view.remaining, people=people, questions=questions, chance=chance
        )
        return cls(session=session, terms=terms)

    @property
    def left(self) -> int:
        """The questions that are left, if others leave their part of the budget."""
        return self.terms.questions - self.asked

    def half_width(self) -> Fraction:
        """Return about what an answer is within."""
        return self.terms.half_width(self.session.catalog.budget)

    @property
    def strategy(self) -> str:
        """Its name."""
        return strategy_of(self.session.catalog.budget)

    def said(self) -> str:
        """Say what it does."""
        return self.terms.said(self.session.catalog.budget)

    def answer(self, text: str, table: str | None, label: str | None) -> tuple[Reply, Fraction, Fraction]:
        """Answer and charge; return the reply in units of the range, and the range."""
        terms, session = self.terms, self.session
        if self.asked >= terms.questions:
            raise BudgetExhausted(f"All {terms.questions:,} questions that the promise was made for were asked.")
        terms.require_same(session.budget(history=False))
        question = question_of(text, table, [each.name for each in session.catalog.tables])
        epsilon = terms.price(session.catalog.budget)
        measure = sum_of(session.plan(question, (), epsilon=epsilon))
        shown = session.explain(question, epsilon=epsilon)
        if shown.stored or shown.sharpens:
            raise bought_before()
        answer = session.sql(question, epsilon=epsilon, label=label)
        self.asked += 1
        if answer.stored:  # another asked the same in between
            raise QueryRefused(
                "The noise of the result is not fresh, so Lapwing promises nothing here",
                cause=RefusalCause.NOISE_NOT_FRESH,
            )
        law = answer.mechanisms[measure]
        total = Fraction(answer.rows()[0][NAME])  # type: ignore[arg-type]  # an int or a Decimal, by its measure
        return terms.reply(total, measure, law.name, law.scale)
