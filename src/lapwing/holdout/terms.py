"""What a holdout of a protected table promises, how it asks, and what its answers say: functions of public numbers.

Whoever asks, this process or a service, keeps count of the questions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Self, final

from lapwing.budget import BudgetView
from lapwing.catalog.model import Budget
from lapwing.errors import BudgetExhausted, InvalidParameter, QueryRefused, RefusalCause
from lapwing.exact.bounds import square_root_up
from lapwing.generalisation.answers import discrete_laplace_reach_up, gaussian_reach_up
from lapwing.generalisation.posterior import posterior_gap_up
from lapwing.holdout.answer import Reply
from lapwing.holdout.strategy import STEPS
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.parameters import whole_number
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.privacy.approximate import ApproximateZeroConcentratedDP, approximate
from lapwing.privacy.measures import PRIVACY_MEASURES, GaussianDP, Loss, PureDP
from lapwing.privacy.neighbours import replaced
from lapwing.privacy.profile import Profiled
from lapwing.query.derivation.derived import MeasureValue
from lapwing.query.measures.measures import Sum
from lapwing.query.plan.plan import Plan
from lapwing.query.relations.relation import ProtectedRows

_ALLOWED: Final = "Ask for one AVG of an expression over all rows, such as AVG(CASE WHEN age > 65 THEN 1 ELSE 0 END)."
NAME: Final = "total"
"""Of the column of the sum that is asked for."""

_WITH_DELTA: Final = {"pure": "approx", "gdp": "approx_gdp", "zcdp": "approx_zcdp"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HoldoutTerms:
    """Means over all rows of a table, so many at most, out of what a budget has left.

    Guarantee:
        All that is ever released of the people, by this holdout and by everybody else, is within the ledger's cap. So
        the posterior's gap is that of the cap, in whatever measure the ledger adds, as a loss for `replace_one`
        neighbours: of two persons under `add_remove`, and with the δ for keys. The noise of each answer is fresh and
        its law is known, which is all that `generalisation.answers` needs: `reach`. An answer that was bought before is
        refused: which of many old answers is looked at may depend on their noise.

    Args:
        people: The public number of rows, one a person.
        questions: At most.
        part: The amount of the budget for each.
        gap: Of the posterior.
        noise_chance: What is left for the noise of all.
        cap: The amount of the whole budget.
        version: Of the data.
    """

    people: int
    questions: int
    part: Fraction
    gap: Fraction
    noise_chance: Fraction
    cap: Fraction
    version: int

    @classmethod
    def of(
        cls, budget: Budget, view: BudgetView, remaining: Loss, *, people: int, questions: int, chance: Fraction
    ) -> Self:
        """Return the terms of a holdout of so many questions.

        Args:
            view: Of the ledger.
            remaining: What whoever asks may still spend.
            chance: That any interval is wrong.

        Raises:
            InvalidParameter: If a value is not allowed.
            BudgetExhausted: If nothing is left.
        """
        n, k = whole_number(people, "people", least=1, most=1 << 40), whole_number(questions, "questions", least=1)
        part = remaining.amount / k
        if not part:
            raise BudgetExhausted("Nothing is left of the budget; no question can be paid.")
        return cls(
            people=n,
            questions=k,
            part=part,
            gap=posterior_gap_up(_as_replaced(view.total, budget), chance / 2),
            noise_chance=chance / 2,
            cap=view.total.amount,
            version=view.version,
        )

    def require_same(self, view: BudgetView) -> None:
        """Refuse if budget or data are no longer those of the promise.

        Raises:
            QueryRefused: If the question is not understood or not allowed.
        """
        if view.total.amount != self.cap:
            raise QueryRefused(
                "The budget was raised since this holdout was made, and its promise counts all that may be released",
                cause=RefusalCause.HOLDOUT_OUTDATED,
                remedy="Make another one for the budget as it is; its intervals are wider.",
            )
        if view.version != self.version:
            raise QueryRefused(
                "The data were changed since this holdout was made, and its promise is for the people of that time",
                cause=RefusalCause.HOLDOUT_OUTDATED,
                remedy="Make another one, for the people of now and their number.",
            )

    def price(self, budget: Budget) -> Fraction:
        """Return an ε whose loss is the part of one question, or less by a rounding."""
        loss = PRIVACY_MEASURES[budget.measure].from_amount(self.part)
        epsilon = loss.to_epsilon(delta=budget.delta - budget.delta_keys)
        return Fraction(f"{epsilon * (1 - 1e-9):.12e}")

    def half_width(self, budget: Budget) -> Fraction:
        """Return about what an answer is within, for values from 0 to 1 in 2^20 steps; that of an answer is its own."""
        if budget.measure == PureDP.kind:
            reach = discrete_laplace_reach_up(STEPS / self.part, self.questions, self.noise_chance) / STEPS
        else:
            squared = 1 / (self.part if budget.measure == GaussianDP.kind else 2 * self.part)
            reach = gaussian_reach_up(square_root_up(squared), self.questions, self.noise_chance)
        return min(Fraction(1), self.gap + reach / self.people)

    def said(self, budget: Budget) -> str:
        """Say what it does."""
        part = PRIVACY_MEASURES[budget.measure].from_amount(self.part)
        return (
            f"sums with noise, each for {part} of the ledger's budget; what is released within the whole budget moves "
            f"the posterior by {float(self.gap):.3g} at most"
        )

    def reply(self, total: Fraction, measure: Sum, noise: str, scale: Fraction) -> tuple[Reply, Fraction, Fraction]:
        """Return what a noisy sum says, in units of the range of values, and the range.

        Args:
            noise: The name of its law.
            scale: Of it, in steps of the measure.

        Raises:
            QueryRefused: Unless the noise is that of one fresh draw.
        """
        if noise not in REACHES:  # such as that of an answer that was merged with an earlier one
            raise QueryRefused(
                f"The noise of the answer is {noise}, so it promises nothing here", cause=RefusalCause.NOISE_NOT_FRESH
            )
        low, high = (end * measure.step for end in measure.row_range)
        reach = REACHES[noise](scale, self.questions, self.noise_chance) * measure.step
        half_width = reach / (self.people * (high - low)) + self.gap
        value = (total / self.people - low) / (high - low)
        return Reply(value=value, half_width=half_width, source="noise"), low, high


def _rounded_reach(sigma: Fraction, answers: int, chance: Fraction) -> Fraction:
    return gaussian_reach_up(sigma, answers, chance) + Fraction(1, 2)


REACHES: Final[Mapping[str, Callable[[Fraction, int, Fraction], Fraction]]] = {
    RoundedGaussian.name: _rounded_reach,
    DiscreteLaplace.name: discrete_laplace_reach_up,
}
"""How far the answers stray by their noise, by its name: each has one parameter, in steps of the sum."""


def _as_replaced(cap: Loss, budget: Budget) -> Profiled:
    """Return what a whole budget may lose of a person who is replaced by another."""
    keys, single = budget.delta_keys, budget.neighbouring == "replace_one"
    if not keys:
        return cap if single else replaced(cap)
    whole = approximate(cap, keys, _WITH_DELTA[budget.measure])
    if isinstance(whole, ApproximateZeroConcentratedDP) and not single:
        raise InvalidParameter(
            "This budget keeps a delta for keys; with a zcdp ledger and add_remove no loss of a person who is replaced "
            "is known then. Use a gdp ledger, or delta_keys = 0."
        )
    return whole if single or isinstance(whole, ApproximateZeroConcentratedDP) else replaced(whole)


def strategy_of(budget: Budget) -> str:
    """Return the name of what answers within a budget: the kind of noise that its ledger takes for one sum."""
    return "laplace" if budget.measure == PureDP.kind else "gaussian"


def question_of(text: str, table: str | None, tables: Sequence[str]) -> str:
    """Return the question for the sum of an `AVG(…)` over all rows of a table.

    Raises:
        QueryRefused: For another text.
        InvalidParameter: For no such table.
    """
    argument = argument_of(text)
    chosen = table if table is not None else tables[0] if len(tables) == 1 else None
    if chosen is None or chosen not in tables:
        raise InvalidParameter(f"The table is {table!r:.40}; name one of {', '.join(tables)}.")
    quoted = '"' + chosen.replace('"', '""') + '"'
    return f"SELECT SUM({argument}) AS {NAME} FROM {quoted}"


def bought_before() -> QueryRefused:
    """Return the refusal of a sum that was bought, or is to be sharpened."""
    return QueryRefused(
        "This sum was bought before, here or elsewhere, and an old answer cannot be promised anew",
        cause=RefusalCause.NOISE_NOT_FRESH,
        remedy="Keep the answer that you have.",
    )


def argument_of(text: str) -> str:
    """Return what stands between AVG( and the parenthesis that closes it, at the end of the text."""
    stripped = text.strip() if isinstance(text, str) else ""
    head, _, rest = stripped.partition("(")
    if head.strip().upper() != "AVG" or not rest.endswith(")"):
        raise QueryRefused(f"The question is {stripped[:40]!r}", cause=RefusalCause.NOT_A_MEAN, remedy=_ALLOWED)
    depth, quote = 1, ""
    for place, character in enumerate(rest):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        else:
            depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0 and place < len(rest) - 1:
            raise QueryRefused(
                f"The question is {stripped[:40]!r}, which goes on after the AVG",
                cause=RefusalCause.NOT_A_MEAN,
                remedy=_ALLOWED,
            )
    if depth or quote:
        raise QueryRefused(
            f"The question is {stripped[:40]!r}, whose parentheses or quotes do not close",
            cause=RefusalCause.NOT_A_MEAN,
            remedy=_ALLOWED,
        )
    return rest[:-1]


def sum_of(plan: Plan) -> Sum:
    """Return the one sum that a plan is of, over all rows of a table with one row a person.

    Raises:
        QueryRefused: For anything else; the plan is what is checked, whatever the text was.
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
        raise QueryRefused(
            "This is no mean of an expression over all rows of one table",
            cause=RefusalCause.NOT_A_MEAN,
            remedy=_ALLOWED,
        )
    if question.selection.rows_per_unit != 1:
        raise QueryRefused(
            "A person may have several rows in this table, so rows are not drawn independently",
            cause=RefusalCause.ROWS_NOT_INDEPENDENT,
            remedy="Ask a table with one row a person (max_rows_per_unit = 1), or a row each as the unit.",
        )
    measure = question.measures[0]
    if not isinstance(measure, Sum):  # as was checked above
        raise QueryRefused("This is no mean of an expression", cause=RefusalCause.NOT_A_MEAN, remedy=_ALLOWED)
    return measure
