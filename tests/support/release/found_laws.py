"""The law of a bound that is found and of the number that is asked with it, together, of a table of a few people."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

from mpmath import mp

from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import Entropy
from lapwing.query.aggregates.approximate_bounds import ApproximateBounds
from lapwing.query.bind.bind import bind
from lapwing.query.expressions.magnitudes import Magnitudes, ValueBounds
from lapwing.query.plan.search import Search
from lapwing.query.pricing.calibrate import calibrate
from lapwing.query.pricing.joint_price import calibrate_found
from lapwing.query.pricing.quote import Quote
from lapwing.release.cells import cells_of, exact_values
from lapwing.release.release import add_noise
from tests.support.enumeration import Law, law_of
from tests.support.release.small import PURE, Row, catalog, exact, row

EPSILON = 18
WITH = [row(1, age=2), row(2, age=2), row(3, age=1), row(4, age=0)]

Values = Sequence[IntArray]
Finds = Callable[[Search, Quote, Values, Entropy], ValueBounds]
"""Finds bounds, as a search priced does, from exact integers."""
FromCounts = Callable[[Sequence[int], Any, Magnitudes], ApproximateBounds]


def laws(
    folder: Path, option: str, finds: FromCounts, *, counted: bool = True, noise_of: int | None = None
) -> tuple[Law, Law]:
    """Return the laws of bounds and sum together with a person, and without.

    Args:
        option: what leaves the bounds of a sum to be found. finds: finds them from noisy counts.
        counted: whether the search adds noise, a bug if not.
        noise_of: the bound whose noise is added, whatever is found, a bug.
    """

    def found(search: Search, bought: Quote, values: Values, entropy: Entropy) -> ValueBounds:
        (noisy,) = add_noise(bought.terms, values, entropy)
        counts = (noisy if counted else values[0])[0].tolist()
        return finds(counts, bought.terms[0].mechanism, search.magnitudes).bounds

    text = f"SELECT SUM(LEAST(GREATEST(age, 0), 2), {option}) AS s FROM visits"
    return laws_of(folder, text, WITH, found, noise_of=noise_of)


def laws_of(
    folder: Path, text: str, people: list[Row], finds: Finds, *, noise_of: int | None = None
) -> tuple[Law, Law]:
    """Return the laws of bounds and number together of some people, and of those after the first."""
    one, other = (_law(folder / name, text, rows, finds, noise_of) for name, rows in (("a", people), ("b", people[1:])))
    return one, other


def _law(folder: Path, text: str, people: list[Row], finds: Finds, noise_of: int | None) -> Law:
    folder.mkdir()
    described = catalog(folder, budget=PURE, most=1)
    plan = bind(text, described)
    (search,) = plan.searches
    priced = calibrate(plan, described.budget, epsilon=EPSILON)
    (bought,) = priced.searches
    found = exact(search.question, described, people)
    seen = exact_values(search.question, found.cells, cells_of(search.question), found.leaves)

    def settled(bounds: ValueBounds) -> tuple[Quote, Any]:
        bound = bind(text, described, bounds={search.bounded: bounds})
        sums = exact(bound.question, described, people)
        values = exact_values(bound.question, sums.cells, cells_of(bound.question))
        return calibrate_found(bound, described.budget, priced), values

    def law_of_numbers(bounds: ValueBounds) -> Law:
        chosen, values = settled(bounds)
        if noise_of is not None:
            chosen, _ = settled((Fraction(0), Fraction(noise_of)))
        return law_of(lambda entropy: int(add_noise(chosen.terms, values, entropy)[0][0]))

    # Nothing but its bounds goes from the search into the number, so that the one law follows the other.
    return {
        (bounds, number): before * after
        for bounds, before in law_of(lambda entropy: finds(search, bought, seen, entropy)).items()
        for number, after in law_of_numbers(cast(ValueBounds, bounds)).items()
    }


def loss(first: Law, second: Law) -> Any:
    """Return the largest logarithm of a ratio of probabilities that are not cut off."""
    worst = mp.mpf(0)
    for one, other in ((first, second), (second, first)):
        for outcome, probability in one.items():
            if probability > mp.mpf(10) ** -5:  # as likely as e^-18 times that, the other is not cut off
                worst = max(worst, mp.log(probability / other[outcome]) if outcome in other else mp.inf)
    return worst
