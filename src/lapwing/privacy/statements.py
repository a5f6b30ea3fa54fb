"""What a list of mechanisms loses together, by every method that is valid for it, side by side.

Two kinds of statement. Some hold for an account with this total as its cap, whatever is asked along the way: the sums
of losses in a measure, whose filters are in `filters`. The others hold if the list had been fixed in advance: optimal
composition and the loss distribution; no account may grant by them.

Gaussian noise has no ε of its own. Where a method needs one, each such mechanism gets an equal share of what δ the list
leaves, in all of it for basic composition and half of it for the methods that need the other half themselves.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Final, NamedTuple, final

from lapwing.errors import InvalidParameter
from lapwing.exact.floats import float_up
from lapwing.privacy.advanced_composition import advanced_loss
from lapwing.privacy.amount_texts import short
from lapwing.privacy.amounts import Number, exact, non_negative, probability
from lapwing.privacy.approximate import approximate
from lapwing.privacy.guesses import right_guesses_up, times_of_100
from lapwing.privacy.listed_mechanisms import ListedMechanism, Neighbouring
from lapwing.privacy.listing import NEIGHBOURING, Listed
from lapwing.privacy.loss_distribution import LossDistribution, compose
from lapwing.privacy.measures import ApproxDP, PureDP
from lapwing.privacy.pairs import ApproximatePair, Pair, RandomizedResponsePair
from lapwing.privacy.profile import Profiled
from lapwing.privacy.search import largest

ADAPTIVE: Final = "as a budget, even if each query is chosen after earlier results"
FIXED: Final = "only if the list was fixed before the first result"

_STEPS = 1 << 8

Uses = tuple[tuple[ListedMechanism, int], ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """The statement of a method about a list.

    Args:
        method: Its name.
        epsilon: The list is (epsilon, delta)-DP, one as asked and the other rounded up, and None where the method says
            nothing.
        delta: As `epsilon`.
        lower: Only of the loss distribution: less than this is not true of the mechanisms (for a class of mechanisms,
            of its worst). None where no bound is known to be attained.
        total: The quantity that adds up.
        holds: When the statement does.
        adaptive: Whether that is also for mechanisms chosen along the way.
        refused: Why the method says nothing, else empty.
    """

    method: str
    epsilon: float | None = None
    delta: float | None = None
    lower: float | None = None
    total: str = ""
    holds: str
    adaptive: bool
    refused: str = ""

    @property
    def times_of_100(self) -> int | None:
        """The most guesses about one person that can be right, out of 100; None if the statement says nothing."""
        if self.epsilon is None or self.delta is None:
            return None
        if not math.isfinite(self.epsilon):
            return 100
        return times_of_100(right_guesses_up(PureDP(self.epsilon), exact(self.delta, "delta")))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilePoint:
    """A method's statement at an ε: the list is (epsilon, upper)-DP, and for no δ below `lower` (epsilon, δ)-DP."""

    method: str
    epsilon: float
    upper: float
    lower: float | None


class _Result(NamedTuple):
    """What a method says: an upper bound, perhaps a lower one, and the total that it rests on."""

    upper: float
    total: str
    lower: float | None = None


class _Method(NamedTuple):
    """A method: its name, when it holds, ε at a δ, and δ at an ε."""

    name: str
    holds: str
    epsilon_at: Callable[[Uses, Fraction], _Result]
    delta_at: Callable[[Uses, Fraction], _Result]


def statements_of(
    parts: Sequence[Listed],
    *,
    delta: Number | None = None,
    epsilon: Number | None = None,
    neighbouring: Neighbouring = "add_remove",
) -> tuple[Statement, ...]:
    """Return what each method says of a list, at a δ or at an ε; a method that is not valid says why.

    Args:
        parts: The list, as `listed` makes it.
        delta: Above 0 and below 1, or epsilon: at least 0.
        neighbouring: The relation that is asked about.

    Raises:
        InvalidParameter: For an empty list, none or both of delta and epsilon, numbers outside, or a part that is not
            known for the relation.
    """
    uses = uses_of(parts, neighbouring)
    if (delta is None) == (epsilon is None):
        raise InvalidParameter("Give either delta or epsilon: what is asked is the other, such as delta=1e-6.")
    if delta is not None:
        target = probability(delta, "delta")
        return tuple(_statement(method, method.epsilon_at, uses, target, delta=target) for method in METHODS)
    level = non_negative(exact(epsilon if epsilon is not None else 0, "epsilon"), "epsilon")
    return tuple(_statement(method, method.delta_at, uses, level, delta=None) for method in METHODS)


def profiles_of(
    parts: Sequence[Listed],
    epsilons: Sequence[Number],
    *,
    neighbouring: Neighbouring = "add_remove",
    width: Number | None = None,
) -> tuple[ProfilePoint, ...]:
    """Return δ at each ε by the measures that add up, where they say something, and by the loss distribution.

    Args:
        parts: As for `statements_of`.
        neighbouring: As for `statements_of`.
        width: Of the distribution's intervals, as for `compose`.

    Raises:
        InvalidParameter: Where `statements_of` does, or if the list has no loss distribution.
    """
    uses = uses_of(parts, neighbouring)
    levels = [non_negative(epsilon, "epsilon") for epsilon in epsilons]
    law, points = composed(uses, width), []
    for method in SUMS:
        try:
            deltas = [method.delta_at(uses, level).upper for level in levels]
        except InvalidParameter:
            continue
        points += [
            ProfilePoint(method=method.name, epsilon=float(level), upper=delta, lower=None)
            for level, delta in zip(levels, deltas, strict=True)
        ]
    points += [
        ProfilePoint(method=METHODS[-1].name, epsilon=float(level), upper=upper, lower=_attained(uses, lower))
        for level, (lower, upper) in zip(levels, law.to_deltas(levels), strict=True)
    ]
    return tuple(points)


def uses_of(parts: Sequence[Listed], neighbouring: Neighbouring) -> Uses:
    """Return the mechanisms of a list as stated for a relation."""
    if neighbouring not in NEIGHBOURING:
        raise InvalidParameter(f"neighbouring is {neighbouring!r:.60}; it must be add_remove or replace_one.")
    if not parts:
        raise InvalidParameter("The list is empty; give at least one mechanism, such as 100 laplace epsilon=0.1.")
    return tuple((part.stated_for(neighbouring), part.times) for part in parts)


def _statement(
    method: _Method, ask: Callable[[Uses, Fraction], _Result], uses: Uses, asked_at: Fraction, *, delta: Fraction | None
) -> Statement:
    adaptive = method.holds == ADAPTIVE
    try:
        result = ask(uses, asked_at)
    except InvalidParameter as refused:
        return Statement(method=method.name, holds=method.holds, adaptive=adaptive, refused=str(refused))
    asked = float(asked_at)
    return Statement(
        method=method.name,
        epsilon=asked if delta is None else result.upper,
        delta=result.upper if delta is None else asked,
        lower=result.lower,
        total=result.total,
        holds=method.holds,
        adaptive=adaptive,
    )


def _failures(uses: Uses) -> Fraction:
    """Return the sum of the δ that the mechanisms bring."""
    return sum((times * mechanism.failure for mechanism, times in uses), Fraction(0))


def _needy(uses: Uses) -> int:
    """Return how many mechanisms have an ε only with a share of δ."""
    return sum(times for mechanism, times in uses if not mechanism.has_epsilon)


def _share(uses: Uses, delta: Fraction, part: Fraction) -> Fraction:
    """Return the δ of each mechanism that needs one: an equal share of this part of the δ that is left."""
    left = delta - _failures(uses)
    if left < 0 or (left == 0 and _needy(uses)):
        raise InvalidParameter(
            f"The mechanisms' own δ sum to {short(_failures(uses))}, and {short(delta)} is asked for; ask for more."
        )
    return part * left / max(1, _needy(uses))


def _sharing(
    name: str, holds: str, part: Fraction, total_of: Callable[[Uses, Fraction], tuple[Profiled, str]]
) -> _Method:
    """Return a method that needs an ε of each mechanism.

    Args:
        part: Of the δ that is left, what those that have an ε only with a share of it take together.
        total_of: What adds up at such a share, and what is said of it.
    """

    def epsilon_at(uses: Uses, delta: Fraction) -> _Result:
        share = _share(uses, delta, part)
        total, said = total_of(uses, share)
        each = f", δ = {short(share)} for each Gaussian" if _needy(uses) else ""
        return _Result(total.to_epsilon(delta=delta), f"{said}{each}")

    def delta_at(uses: Uses, epsilon: Fraction) -> _Result:
        if _needy(uses):
            return _searched(lambda delta: epsilon_at(uses, delta), epsilon)
        total, said = total_of(uses, _share(uses, Fraction(1), part))
        return _Result(total.to_delta(epsilon=epsilon), said)

    return _Method(name, holds, epsilon_at, delta_at)


def _basic(uses: Uses, share: Fraction) -> tuple[Profiled, str]:
    losses = [times * mechanism.at(share) for mechanism, times in uses]
    total = sum(losses[1:], losses[0])
    return total, f"Σε = {short(total.epsilon)}"


def _advanced(uses: Uses, share: Fraction) -> tuple[Profiled, str]:
    losses = [times * advanced_loss(mechanism.at(share)) for mechanism, times in uses]
    total = sum(losses[1:], losses[0])
    return total, f"ρ = Σ ε·tanh(ε/2) = {short(total.rho)}"


class _UpperEnds(NamedTuple):
    """A loss distribution of which only upper bounds are wanted."""

    law: LossDistribution

    def to_epsilon(self, *, delta: Number) -> float:
        return self.law.to_epsilon(delta).upper

    def to_delta(self, *, epsilon: Number) -> float:
        return self.law.to_delta(epsilon).upper


def _optimal(uses: Uses, share: Fraction) -> tuple[Profiled, str]:
    def worst(loss: ApproxDP) -> Pair:
        return ApproximatePair(loss.epsilon, loss.delta) if loss.delta else RandomizedResponsePair(loss.epsilon)

    law = compose([(worst(mechanism.at(share)), times) for mechanism, times in uses])
    return _UpperEnds(law), "the worst mechanisms of these (ε, δ)"


def _searched(epsilon_at: Callable[[Fraction], _Result], epsilon: Fraction) -> _Result:
    """Return about the least δ at which a method states at most ε: it states so there, and 0.4 % below it does not."""

    def nth(n: int) -> Fraction:
        power, part = divmod(n, _STEPS)
        return Fraction(2 * _STEPS - part, (2 * _STEPS) << power)

    def states(n: int) -> bool:
        try:
            return epsilon_at(nth(n)).upper <= epsilon
        except InvalidParameter:  # a δ below the mechanisms' own, or below any
            return False

    if not states(1):
        return _Result(1.0, "no promise holds at this ε")
    n = largest(states, guess=20 * _STEPS, least=1)
    return _Result(float_up(nth(n)), epsilon_at(nth(n)).total)


def _adding(name: str, total_of: Callable[[Uses], Profiled]) -> _Method:
    """Return the method that adds up losses which say something at every δ."""

    def epsilon_at(uses: Uses, delta: Fraction) -> _Result:
        total = total_of(uses)
        return _Result(total.to_epsilon(delta=delta), str(total))

    def delta_at(uses: Uses, epsilon: Fraction) -> _Result:
        total = total_of(uses)
        return _Result(total.to_delta(epsilon=epsilon), str(total))

    return _Method(name, ADAPTIVE, epsilon_at, delta_at)


def _summed(kind: str, uses: Uses) -> Profiled:
    losses = [times * mechanism.loss(kind) for mechanism, times in uses]
    total, failures = sum(losses[1:], losses[0]), _failures(uses)
    return approximate(total, min(failures, Fraction(1)), f"approx_{kind}") if failures else total


def _curves(uses: Uses) -> Profiled:
    curves = [times * mechanism.curve() for mechanism, times in uses]
    return sum(curves[1:], curves[0])


def composed(uses: Uses, width: Number | None = None) -> LossDistribution:
    """Return what mechanisms lose together."""
    return compose([(mechanism.pair(), times) for mechanism, times in uses], width=width)


def _attained(uses: Uses, lower: float) -> float | None:
    """Return a lower bound where mechanisms attain it; for bounded range none is known to in composition (`pairs`)."""
    return lower if all(mechanism.attained for mechanism, _ in uses) else None


def _distribution_epsilon(uses: Uses, delta: Fraction) -> _Result:
    interval = composed(uses).to_epsilon(delta)
    if math.isinf(interval.upper):
        chance = _failures(uses)
        why = f"anything may be shown with a probability of {short(chance)}" if chance else "the losses are too large"
        raise InvalidParameter(f"No ε is found that holds at this δ: {why}.")
    return _Result(interval.upper, "the exact law of each loss", _attained(uses, interval.lower))


def _distribution_delta(uses: Uses, epsilon: Fraction) -> _Result:
    interval = composed(uses).to_delta(epsilon)
    return _Result(interval.upper, "the exact law of each loss", _attained(uses, interval.lower))


SUMS: Final = (
    _adding("zCDP", partial(_summed, "zcdp")),
    _adding("Gaussian DP", partial(_summed, "gdp")),
    _adding("Rényi DP", _curves),
)
"""The methods that add up a loss which says something at every δ."""

METHODS: Final = (
    _sharing("basic composition", ADAPTIVE, Fraction(1), _basic),
    _sharing("advanced composition", ADAPTIVE, Fraction(1, 2), _advanced),
    _sharing("optimal composition", FIXED, Fraction(1, 2), _optimal),
    *SUMS,
    _Method("loss distribution", FIXED, _distribution_epsilon, _distribution_delta),
)
"""All methods, in the order in which they are shown."""
