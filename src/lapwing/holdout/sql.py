"""Questions in SQL about a protected table, charged to its ledger, with intervals for the population."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Self, final

from lapwing.errors import BudgetExhausted, InvalidParameter, QueryRefused
from lapwing.generalisation.answers import gaussian_reach_up
from lapwing.generalisation.posterior import posterior_gap_up
from lapwing.holdout.answer import Reply
from lapwing.mechanisms.parameters import whole_number
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.privacy.additive import GaussianDP
from lapwing.privacy.approximate import ApproximateGaussianDP
from lapwing.privacy.neighbours import replaced
from lapwing.query.derivation.derived import MeasureValue
from lapwing.query.measures import Sum
from lapwing.query.plan import Plan
from lapwing.query.relations.relation import ProtectedRows
from lapwing.session import Session

_ALLOWED = "Ask for one AVG of an expression over all rows, such as AVG(CASE WHEN age > 65 THEN 1 ELSE 0 END)."
_NAME = "total"


@final
@dataclass(slots=True)
class SessionAnswering:
    """Means over all rows of a table with Gaussian noise, so many at most, out of what the budget has left.

    Guarantee: all that is ever released of the people, by this holdout and by everybody else, is within the ledger's
        cap. So the posterior's gap is that of the cap, as a loss for `replace_one` neighbours: twice the μ under
        `add_remove`, and the δ for keys with it. The noise of each answer is fresh and its law is known: `answers`.
        An answer that was bought before is refused: which of many old answers is looked at may depend on their noise.

    Args: people: the public number of rows, one a person; questions: at most; part: the budget of each, as μ²; gap: of
        the posterior; noise_chance: what is left for the noise of all; cap: the μ² of the whole budget.
    """

    session: Session
    people: int
    questions: int
    part: Fraction
    gap: Fraction
    noise_chance: Fraction
    cap: Fraction
    asked: int = field(default=0)

    @classmethod
    def of(cls, session: Session, strategy: str, people: int | None, questions: int | None, chance: Fraction) -> Self:
        """Return what answers so many questions out of what is left of a session's budget."""
        if strategy not in ("best", "gaussian"):
            raise InvalidParameter(f"The strategy is {strategy!r:.40}; on a session it must be gaussian.")
        if people is None or questions is None:
            raise InvalidParameter(
                "For a session, give people, the public number of rows, and questions, how many at most."
            )
        n, k = whole_number(people, "people", least=1, most=1 << 40), whole_number(questions, "questions", least=1)
        budget = session.catalog.budget
        if budget.measure != "gdp":
            raise InvalidParameter(
                f"The ledger's measure is {budget.measure}; the holdout's theorem is used with a gdp ledger alone."
            )
        view = session.budget(history=False)
        cap, remaining = view.total, view.remaining
        if not isinstance(cap, GaussianDP) or not isinstance(remaining, GaussianDP):
            raise InvalidParameter("The budget is no Gaussian loss; the holdout's theorem needs one.")
        whole = ApproximateGaussianDP.of(cap, budget.delta_keys)
        loss = replaced(whole) if budget.neighbouring == "add_remove" else whole
        part = remaining.mu_squared / k
        if not part:
            raise BudgetExhausted("Nothing is left of the budget; no question can be paid.")
        return cls(
            session=session,
            people=n,
            questions=k,
            part=part,
            gap=posterior_gap_up(loss, chance / 2),
            noise_chance=chance / 2,
            cap=cap.mu_squared,
        )

    @property
    def left(self) -> int:
        """The questions that are left, if others leave their part of the budget."""
        return self.questions - self.asked

    def half_width(self) -> Fraction:
        """Return about what an answer is within, for values from 0 to 1 in 2^20 steps; that of an answer is its own."""
        sigma = Fraction(1) / self.people / Fraction(float(self.part) ** 0.5)
        return self.gap + gaussian_reach_up(sigma, self.questions, self.noise_chance)

    def said(self) -> str:
        """Say what it does."""
        return (
            f"sums with Gaussian noise, each for μ² = {float(self.part):.3g} of the ledger's budget; what is released "
            f"within the whole budget moves the posterior by {float(self.gap):.3g} at most"
        )

    def answer(self, text: str, table: str | None, label: str | None) -> tuple[Reply, Fraction, Fraction]:
        """Answer and charge; return the reply in units of the range, and the range."""
        if self.asked >= self.questions:
            raise BudgetExhausted(f"All {self.questions:,} questions that the promise was made for were asked.")
        if self.session.budget(history=False).total.amount != self.cap:
            raise QueryRefused(
                "The budget was raised since this holdout was made, and its promise counts all that may be released",
                remedy="Make another one for the budget as it is; its intervals are wider.",
            )
        question = f"SELECT SUM({_argument(text)}) AS {_NAME} FROM {self._table(table)}"
        epsilon = self._price()
        plan = self.session.plan(question, (), epsilon=epsilon)
        measure = _sum_of(plan)
        shown = self.session.explain(question, epsilon=epsilon)
        if shown.stored or shown.sharpens:
            raise QueryRefused(
                "This sum was bought before, here or elsewhere, and an old answer cannot be promised anew",
                remedy="Keep the answer that you have.",
            )
        answer = self.session.sql(question, epsilon=epsilon, label=label)
        self.asked += 1
        law = answer.mechanisms[measure]
        if answer.stored or not isinstance(law, RoundedGaussian):  # another asked the same in between
            raise QueryRefused("The noise of the answer is not fresh Gaussian noise, so it promises nothing here")
        total = Fraction(answer.rows()[0][_NAME])  # type: ignore[arg-type]  # an int or a Decimal, by its measure
        least, most = measure.row_range
        low, high = least * measure.step, most * measure.step
        reach = gaussian_reach_up(law.sigma, self.questions, self.noise_chance) + Fraction(1, 2)
        half_width = reach * measure.step / (self.people * (high - low)) + self.gap
        value = (total / self.people - low) / (high - low)
        return Reply(value=value, half_width=half_width, source="noise"), low, high

    def _table(self, table: str | None) -> str:
        names = [each.name for each in self.session.catalog.tables]
        chosen = table if table is not None else names[0] if len(names) == 1 else None
        if chosen not in names:
            raise InvalidParameter(f"The table is {table!r:.40}; name one of {', '.join(names)}.")
        return '"' + chosen.replace('"', '""') + '"'

    def _price(self) -> Fraction:
        """Return an ε whose loss is the part of one question, or less by a rounding."""
        budget = self.session.catalog.budget
        epsilon = Fraction(GaussianDP.from_mu_squared(self.part).to_epsilon(delta=budget.delta - budget.delta_keys))
        return epsilon * (1 - Fraction(1, 10**9))


def _argument(text: str) -> str:
    """Return what stands between AVG( and the parenthesis that closes it, at the end of the text."""
    stripped = text.strip() if isinstance(text, str) else ""
    head, _, rest = stripped.partition("(")
    if head.strip().upper() != "AVG" or not rest.endswith(")"):
        raise QueryRefused(f"The question is {stripped[:40]!r}", remedy=_ALLOWED)
    depth, quote = 1, ""
    for place, character in enumerate(rest):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        else:
            depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0 and place < len(rest) - 1:
            raise QueryRefused(f"The question is {stripped[:40]!r}, which goes on after the AVG", remedy=_ALLOWED)
    if depth or quote:
        raise QueryRefused(
            f"The question is {stripped[:40]!r}, whose parentheses or quotes do not close", remedy=_ALLOWED
        )
    return rest[:-1]


def _sum_of(plan: Plan) -> Sum:
    """Return the one sum that a plan is of, over all rows of a table with one row a person.

    Raises: QueryRefused for anything else; the plan is what is checked, whatever the text was.
    """
    question = plan.question
    values = [output.value for output in plan.outputs]
    plain = (
        len(values) == 1
        and isinstance(values[0], MeasureValue)
        and isinstance(values[0].measure, Sum)
        and values[0].measure.clamp is None
        and values[0].measure.origin == 0
        and question.measures == (values[0].measure,)
        and not question.keys
        and question.where is None
        and isinstance(question.selection.relation, ProtectedRows)
        and not plan.searches
        and not plan.constants
        and plan.composition is None
    )
    if not plain:
        raise QueryRefused("This is no mean of an expression over all rows of one table", remedy=_ALLOWED)
    if question.selection.rows_per_unit != 1:
        raise QueryRefused(
            "A person may have several rows in this table, so rows are not drawn independently",
            remedy="Ask a table with one row a person (max_rows_per_unit = 1), or a row each as the unit.",
        )
    measure = question.measures[0]
    if not isinstance(measure, Sum):  # as was checked above
        raise QueryRefused("This is no mean of an expression", remedy=_ALLOWED)
    return measure
