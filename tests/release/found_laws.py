"""The law of a bound that is found and of the sum that is asked with it, together, of a table of a few people."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from mpmath import mp

from lapwing.query.aggregates.searches import Found
from lapwing.query.bind import bind
from lapwing.query.calibrate import Priced, calibrate, calibrate_found
from lapwing.query.expressions.magnitudes import Magnitudes
from lapwing.release.cells import cells_of, exact_values
from lapwing.release.release import add_noise
from tests.enumeration import Law, law_of
from tests.release.small import PURE, catalog, exact, row

EPSILON = 18
WITH = [row(1, age=2), row(2, age=2), row(3, age=1), row(4, age=0)]
WITHOUT = WITH[1:]

Finder = Callable[[Sequence[int], Any, Magnitudes], Found]


def laws(
    folder: Path, option: str, finds: Finder, *, counted: bool = True, noise_of: int | None = None
) -> tuple[Law, Law]:
    """Return the laws of bounds and sum together with a person, and without.

    Args:
        option: what leaves the bounds of a sum to be found. finds: finds them from noisy counts.
        counted: whether the search adds noise, a bug if not.
        noise_of: the bound whose noise is added, whatever is found, a bug.
    """
    text = f"SELECT SUM(LEAST(GREATEST(age, 0), 2), {option}) AS s FROM visits"
    one, other = (
        _law(folder / name, text, people, finds, counted, noise_of) for name, people in (("a", WITH), ("b", WITHOUT))
    )
    return one, other


def _law(
    folder: Path, text: str, people: list[dict[str, Any]], finds: Finder, counted: bool, noise_of: int | None
) -> Law:
    folder.mkdir()
    described = catalog(folder, budget=PURE, most=1)
    plan = bind(text, described)
    (search,) = plan.searches
    priced = calibrate(plan, described.budget, epsilon=EPSILON)
    terms = priced.searches[0].terms
    found = exact(search.question, described, people)
    counts = exact_values(search.question, found.cells, cells_of(search.question), found.leaves)

    @cache
    def settled(bounds: tuple[Fraction, Fraction]) -> tuple[Priced, Any]:
        bound = bind(text, described, found={search.bounded: bounds})
        sums = exact(bound.question, described, people)
        values = exact_values(bound.question, sums.cells, cells_of(bound.question))
        return calibrate_found(bound, described.budget, priced), values

    def run(entropy: Any) -> tuple[Any, int]:
        (noisy,) = add_noise(terms, counts, entropy)
        seen = finds((noisy if counted else counts[0])[0].tolist(), terms[0].mechanism, search.magnitudes)
        chosen, values = settled(seen.bounds)
        if noise_of is not None:
            chosen, _ = settled((Fraction(0), Fraction(noise_of)))
        ((sum_,),) = add_noise(chosen.terms, values, entropy)
        return seen.bounds, int(sum_)

    return law_of(run)


def loss(first: Law, second: Law) -> Any:
    """Return the largest logarithm of a ratio of probabilities that are not cut off."""
    worst = mp.mpf(0)
    for one, other in ((first, second), (second, first)):
        for outcome, probability in one.items():
            if probability > mp.mpf(10) ** -5:  # as likely as e^-18 times that, the other is not cut off
                worst = max(worst, mp.log(probability / other[outcome]) if outcome in other else mp.inf)
    return worst
