"""How a cost is divided among tables, so that the stated objective is the least.

Theory of operation. Table w has numbers i with standard errors σ_wi. Each has a public reference r_wi
(`AllocationProblem.references`). The error of the table is e_w² = max_i (σ_wi/r_wi)². An amount of loss l, which is μ²
or ρ, buys noise of variance 1/l times a constant. In pure ledgers l is ε, and the variance falls with l². Let p be 1 or
2 for that power. Tables that share noise form a group (`offer`). A group gets the amount L_g of the total L.

Largest error. Let b_w^p be the e_w² that table w has at the whole cost. Within a group, w gets a part proportional to
b_w. Then noise of each table by itself has the same e_w² for all w. A workload makes the largest ratio of its variances
to that noise the least (`residual_marginals`). So it makes max e_w² the least, and that is κ_g/L_g^p. Among groups the
largest of these is the least where all are equal. Hence L_g ∝ κ_g^(1/p). One step from any shares finds it: multiply
the amounts of a group by its (max e_w²)^(1/p).

Sum of variances. The sum of (σ/r)² over the cells of a group is A_g/L_g^p. By Hölder's inequality the total is the
least at L_g ∝ A_g^(1/(p + 1)). Within a workload the least sum has a closed form, and variances v_w
(`ResidualMarginals.for_total_variance`). Give w an amount proportional to 1/v_w. Then noise by itself has variances
proportional to v_w. The batch makes the largest ratio t to these the least. At the same loss v_w itself is possible, so
t is at most 1 in units of v_w. If t were below 1, all variances would be below v_w, and their sum would not be the
least. So the batch measures an optimum, within the 0.2 % of its solver.

Guarantee:
    Shares are a function of plans and catalog, so they need no privacy guarantee. The proof above is of optimality. It
    holds under `add_remove`, in gdp and zcdp ledgers, if each table has one number with normal noise
    (`Offer.is_linear`). It compares all precisions of residuals, and all divisions of the loss among the groups.
    Elsewhere the same steps are a good guess.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import frexp
from typing import Final, final

from lapwing.catalog.model import Budget
from lapwing.errors import InvalidParameter
from lapwing.mechanisms.noisy import vector
from lapwing.mechanisms.residual_marginals import ResidualMarginals, RowsOfUnit
from lapwing.privacy.amounts import Number, exact
from lapwing.privacy.measures import GaussianDP, PureDP
from lapwing.query.plan.plan import Plan
from lapwing.query.pricing.quote import NoisyMeasure
from lapwing.release.nested_keys import NestedKeys
from lapwing.release.workloads import Workload
from lapwing.tabulation.declaration import Objective, TableRelease
from lapwing.tabulation.offer import Offer, offer_for

STEPS: Final = 3
QUANTILE: Final = 1.959964
"""Of the normal law at 95 %: how many standard errors a half-width has."""
_DIGITS: Final = 12
"""Binary digits of a share: so that two machines whose floats differ in the last digit divide alike."""
_LEAST: Final = 1e-12
"""The least squared error, so that a table of public numbers has some share."""
_NOTHING: Final = 1 / 16
"""Steps: a standard error below this counts as this. At most one cell in 256 is off then. At a large loss the error of
rounded noise falls faster than by any power of the loss. Its ratios would take the shares of all other tables."""
References = tuple[tuple[float, ...], ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationProblem:
    """A cost, and the tables among which it is divided.

    Args:
        references: For each number of each table, the number that its standard error is divided by.
        cells: The number of cells of each table; 1 where nobody knows it.
        nestings: Keys that lie inside others.
    """

    plans: tuple[Plan, ...]
    budget: Budget
    epsilon: Fraction
    delta: Number | None
    objective: Objective
    references: References
    cells: tuple[int, ...]
    nestings: tuple[NestedKeys, ...] = ()

    @property
    def power(self) -> int:
        """The power of the amount that a variance falls with."""
        return 2 if self.budget.measure == PureDP.kind else 1

    def squares(self, place: int, terms: Sequence[NoisyMeasure]) -> list[float]:
        """Return (σ/r)² of each number of a table; 1 for a table of which nothing but a choice is released."""
        pairs = zip(terms, self.references[place], strict=True)
        squares = [(_deviation(term) / of) ** 2 for term, of in pairs]
        return [max(square, _LEAST) for square in squares] or [1.0]

    def error(self, offer: Offer, place: int) -> float:
        """Return the squared error of a table."""
        return max(self.squares(place, offer.terms[place]))

    def total(self, offer: Offer, place: int) -> float:
        """Return the sum of squares over all cells of a table."""
        return self.cells[place] * sum(self.squares(place, offer.terms[place]))

    def offer(self, shares: Sequence[float]) -> Offer:
        """Return what the tables get for some shares."""
        parts = [_rounded(one / sum(shares)) for one in shares]
        return offer_for(self.plans, self.budget, self.epsilon, self.delta, parts, self.nestings)


def problem_of(
    plans: Sequence[Plan], release: TableRelease, budget: Budget, nestings: Sequence[NestedKeys] = ()
) -> AllocationProblem:
    """Return the problem of a release: each table is compared with itself at the whole cost, or with its wanted error.

    Raises:
        InvalidParameter: For a sum of variances over cells that are private, and for an error of several numbers.
        LapwingError: As `offer_for`.
    """
    references: list[tuple[float, ...]] = []
    cells: list[int] = []
    for plan, table in zip(plans, release.tables, strict=True):
        if plan.question.cells is None and release.objective is Objective.SUM_OF_VARIANCES:
            raise InvalidParameter(
                f"{table.name!r} has private keys, so that its number of cells is not known. Use the objective "
                f'"{Objective.LARGEST_ERROR.value}".'
            )
        (terms,) = offer_for([plan], budget, release.epsilon, release.delta, [Fraction(1)]).terms
        if table.error is not None and len(terms) != 1:
            raise InvalidParameter(
                f"{table.name!r} has {len(terms)} noisy numbers in a cell, so that one error does not say how exact "
                "each must be. Give it an importance, or write a table for each number."
            )
        if table.error is not None:
            references.append((float(table.error) / QUANTILE / float(terms[0].measure.step),))
        else:
            deviations = (_deviation(term) or 1.0 for term in terms)
            references.append(tuple(one / float(table.importance) for one in deviations))
        cells.append(plan.question.cells or 1)
    return AllocationProblem(
        plans=tuple(plans),
        budget=budget,
        epsilon=exact(release.epsilon, "epsilon"),
        delta=release.delta,
        objective=release.objective,
        references=tuple(references),
        cells=tuple(cells),
        nestings=tuple(nestings),
    )


def shares_for(problem: AllocationProblem) -> tuple[float, ...]:
    """Return the share of the loss for each table, by the objective."""
    every, power = range(len(problem.plans)), problem.power
    alone = [_alone(problem, place) for place in every]
    if problem.objective is Objective.LARGEST_ERROR:
        shares = [square ** (1 / power) for square in alone]
    else:
        shares = [(square * problem.cells[place]) ** (1 / (power + 1)) for place, square in enumerate(alone)]
    for _ in range(STEPS):
        offer = problem.offer(shares)
        if problem.objective is Objective.LARGEST_ERROR:
            largest = {group: max(problem.error(offer, place) for place in group) for group in offer.groups}
            amounts = {group: sum(shares[i] for i in group) * largest[group] ** (1 / power) for group in offer.groups}
            within = shares
        else:
            totals = {group: sum(problem.total(offer, place) for place in group) for group in offer.groups}
            amounts = {
                group: (totals[group] * sum(shares[i] for i in group) ** power) ** (1 / (power + 1))
                for group in offer.groups
            }
            within = _within(problem, offer, shares)
        for group, amount in amounts.items():
            whole = sum(within[place] for place in group)
            for place in group:
                shares[place] = amount * within[place] / whole
    return tuple(shares)


def _alone(problem: AllocationProblem, place: int) -> float:
    (terms,) = offer_for([problem.plans[place]], problem.budget, problem.epsilon, problem.delta, [Fraction(1)]).terms
    return max(problem.squares(place, terms))


def _within(problem: AllocationProblem, offer: Offer, shares: Sequence[float]) -> list[float]:
    """Return amounts in proportion to which tables of a workload share its loss, where the sum is to be the least."""
    within = list(shares)
    for workload in offer.workloads:
        inverse = _inverse_variances(problem, offer, workload)
        whole = sum(shares[place] for place in inverse)
        for place, amount in inverse.items():
            within[place] = whole * amount / sum(inverse.values())
    return within


def _inverse_variances(problem: AllocationProblem, offer: Offer, workload: Workload) -> dict[int, float]:
    """Return 1/v_w of each table in a workload, with v_w the variances whose weighted sum is the least."""
    marginals = workload.mechanism.marginals
    weights = [0.0] * len(marginals)
    for (place, at), marginal in workload.members.items():
        references = problem.references[place]
        reference = references[at] if len(references) > at else max(references)
        weights[marginal] += problem.cells[place] / reference**2
    least = ResidualMarginals.for_total_variance(
        GaussianDP(1),
        sizes=workload.mechanism.sizes,
        marginals=marginals,
        unit=RowsOfUnit(),
        weights=[Fraction(weight / max(weights)) for weight in weights],
    )
    inverse: dict[int, float] = {}
    for (place, _), marginal in workload.members.items():
        inverse[place] = inverse.get(place, 0.0) + 1 / float(least.variance(marginals[marginal]))
    return inverse


def _deviation(term: NoisyMeasure) -> float:
    """Return the standard error of a number in steps, as shares count it; 0 if no unit changes the number."""
    deviation = term.mechanism.standard_deviation
    if deviation is None or vector(term.candidate.sensitivity).l1 == 0:
        return 0.0
    return max(deviation, _NOTHING)


def _rounded(share: float) -> Fraction:
    mantissa, exponent = frexp(share)
    return Fraction(max(1, round(mantissa * 2**_DIGITS))) * Fraction(2) ** (exponent - _DIGITS)
