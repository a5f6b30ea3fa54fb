"""A list of mechanisms for an accountant, from the numbers that people give.

A mechanism's numbers hold for one neighbouring relation, by default that of the list. Some are bound to one: randomized
response to replace_one, as a unit without a report would be noticed, a Poisson sample to add_remove, and a subset of a
fixed size to replace_one. A list for replace_one may hold what is stated for add_remove: to replace a unit is to remove
one and to add another, so that distances, ε and η double (`neighbours`). The other way there is nothing to say.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, final

from lapwing.errors import InvalidParameter
from lapwing.privacy import listed_mechanisms as mechanisms
from lapwing.privacy.amount_texts import short
from lapwing.privacy.amounts import Number, exact, non_negative, written
from lapwing.privacy.amplification import sampling_rate, subset_rate
from lapwing.privacy.listed_mechanisms import ListedMechanism, Neighbouring
from lapwing.privacy.measures import ApproxDP, GaussianDP, Loss, PureDP, ZeroConcentratedDP
from lapwing.privacy.pairs import positive, whole
from lapwing.privacy.renyi import RenyiDP

NEIGHBOURING: Final[tuple[Neighbouring, ...]] = ("add_remove", "replace_one")

_MOST_TIMES: Final = 10**9
_MOST_CHOICES: Final = 1 << 40
_LEAST_SIZE, _MOST_SIZE = Fraction(1, 10**30), Fraction(10**4)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A mechanism of a list; made by `listed`.

    Args:
        text: As it was given.
        mechanism: Its loss.
        times: How many such, from 1.
        neighbouring: The relation that its numbers hold for; None for the list's own.
        kind: As they were given, without defaults.
        numbers: As they were given, without defaults.
    """

    text: str
    mechanism: ListedMechanism = field(compare=False)  # the other fields say which it is
    times: int
    neighbouring: Neighbouring | None
    kind: str
    numbers: tuple[tuple[str, Fraction], ...]

    def stated_for(self, neighbouring: Neighbouring) -> ListedMechanism:
        """Return the mechanism for the relation of a list.

        Raises:
            InvalidParameter: If what it loses for that relation is not known.
        """
        own = self.neighbouring or self.mechanism.neighbouring or neighbouring
        if own == neighbouring:
            return self.mechanism
        if own == "replace_one":
            raise InvalidParameter(
                f"{self.text!r} is stated for replace_one, which implies nothing for add_remove; make the list one for "
                "replace_one."
            )
        if self.mechanism.doubled is None:
            raise InvalidParameter(
                f"{self.text!r} is stated for add_remove, and what it loses as a unit is replaced is not known; make "
                "the list one for add_remove."
            )
        return self.mechanism.doubled()


def listed(
    kind: str | Loss | ApproxDP | RenyiDP,
    times: int = 1,
    *,
    rate: Number | None = None,
    size: Number | None = None,
    population: Number | None = None,
    neighbouring: str | None = None,
    **numbers: Number,
) -> Listed:
    """Return a mechanism for a list, used a number of times.

    Each is of one answer: a number for Laplace and the discrete kinds, of any dimension for gaussian. An answer of d
    numbers that each move is d of them.

    Args:
        kind: Laplace (epsilon, or scale and sensitivity), discrete-laplace (scale, sensitivity), gaussian (mu, or sigma
            and sensitivity), discrete-gaussian (sigma, sensitivity). Or randomized-response (epsilon, choices),
            exponential (epsilon: its bounded range). Or pure (epsilon), approx (epsilon, delta), zcdp (rho), or a loss,
            for any mechanism that has it. Or tree (sigma, steps and sensitivity): sums of all steps so far by a binary
            tree with Gaussian noise on each node. It needs that a unit is in one step. A sensitivity is 1 and choices
            are 2 unless given.
        rate: Of a secret Poisson sample that it is run on; or size, population: of a secret subset of `size` units that
            it is run on.
        neighbouring: The relation that its numbers hold for; the list's own unless given.

    Raises:
        InvalidParameter: For a kind, number or relation that is none of these.
    """
    if not isinstance(kind, str):
        if numbers or not rate is size is population is None:
            raise InvalidParameter("A loss takes no numbers and no sample; give the kind of the mechanism for that.")
        return _of_loss(kind, times, neighbouring)
    if kind not in KINDS:
        raise InvalidParameter(f"The kind is {kind!r:.60}; it must be one of {', '.join(KINDS)}.")
    relation = _checked(times, neighbouring)
    amounts = {name: exact(value, name) for name, value in numbers.items()}
    ways = KINDS[kind]
    way = next((way for way in ways if way.takes(amounts)), None)
    if way is None:
        said = ", ".join(amounts) or "no number"
        allowed = " or ".join(way.described() for way in ways)
        raise InvalidParameter(f"A {kind} was given {said}; it takes {allowed}.")
    mechanism = way.make({**way.defaults, **amounts})
    sample = {name: exact(value, name) for name, value in (("rate", rate), ("size", size), ("population", population))
              if value is not None and not (name == "rate" and value == 1)}  # fmt: skip
    given = tuple({**amounts, **sample}.items())
    text = " ".join([str(times), kind, *(f"{name}={written(value)}" for name, value in given)])
    text += f" neighbouring={relation}" if relation else ""
    if sample.keys() & {"size", "population"}:
        mechanism, relation = _in_subset(mechanism, sample, kind, relation), None
    elif sample:
        mechanism = _sampled(mechanism, sampling_rate(sample["rate"]), kind)
    if relation is not None and mechanism.neighbouring not in (None, relation):
        raise InvalidParameter(
            f"A {kind} like this is bound to {mechanism.neighbouring}; it cannot be stated for {relation}."
        )
    return Listed(text=text, mechanism=mechanism, times=times, neighbouring=relation, kind=kind, numbers=given)


def _checked(times: int, neighbouring: str | None) -> Neighbouring | None:
    whole(times, "the number of times", 1)
    if times > _MOST_TIMES:
        raise InvalidParameter(f"The number of times is above {_MOST_TIMES:,}; it must be at most that.")
    if neighbouring is not None and neighbouring not in NEIGHBOURING:
        raise InvalidParameter(f"neighbouring is {neighbouring!r:.60}; it must be add_remove or replace_one.")
    return next((name for name in NEIGHBOURING if name == neighbouring), None)


def _of_loss(loss: Loss | ApproxDP | RenyiDP, times: int, neighbouring: str | None) -> Listed:
    """Return any mechanism with a loss."""
    relation = _checked(times, neighbouring)
    said = f" neighbouring={relation}" if relation else ""
    match loss:
        case PureDP():
            return listed("pure", times, neighbouring=neighbouring, epsilon=loss.epsilon)
        case ApproxDP():
            return listed("approx", times, neighbouring=neighbouring, epsilon=loss.epsilon, delta=loss.delta)
        case ZeroConcentratedDP():
            return listed("zcdp", times, neighbouring=neighbouring, rho=loss.rho)
        case GaussianDP():
            mechanism = mechanisms.gaussian_noise(_size(loss.mu_squared, "mu_squared"))
            kind, numbers = "gaussian", [("mu", Fraction(loss.mu))]
        case RenyiDP():
            mechanism = mechanisms.renyi_private(loss)
            kind, numbers = "renyi", [(written(order), at) for order, at in loss.points]
        case _:
            raise InvalidParameter(
                f"A {type(loss).__name__} is no loss of one mechanism; give a PureDP, GaussianDP, ZeroConcentratedDP, "
                "ApproxDP or RenyiDP, or a kind, such as 'laplace'."
            )
    return Listed(
        text=f"{times} {kind} {loss}{said}",
        mechanism=mechanism,
        times=times,
        neighbouring=relation,
        kind=kind,
        numbers=tuple(numbers),
    )


def _sampled(mechanism: ListedMechanism, rate: Fraction, kind: str) -> ListedMechanism:
    if mechanism.neighbouring not in (None, "add_remove"):
        raise InvalidParameter(f"A {kind} is for replace_one and a Poisson sample for add_remove; leave out the rate.")
    if mechanism.failure:
        raise InvalidParameter(f"A {kind} with a delta cannot be run on a sample here; leave out the rate.")
    return mechanisms.sampled(mechanism, rate)


def _in_subset(
    mechanism: ListedMechanism, sample: Mapping[str, Fraction], kind: str, relation: str | None
) -> ListedMechanism:
    """Return a mechanism on a subset, of which the numbers hold for a relation: replace_one unless given."""
    if mechanism.failure:
        raise InvalidParameter(f"A {kind} with a delta cannot be run on a sample here; leave out size and population.")
    if sample.keys() != {"size", "population"}:
        raise InvalidParameter(
            f"A sample was given {', '.join(sample)}; give the rate of a Poisson sample, or the size of a subset and "
            "the population."
        )
    whole_sizes = [_integer(sample, name, 1) for name in ("size", "population")]
    subset_rate(*whole_sizes)
    if relation == "add_remove":
        if mechanism.doubled is None:
            raise InvalidParameter(f"A {kind} like this is bound to replace_one; leave out the neighbouring relation.")
        mechanism = mechanism.doubled()
    return mechanisms.in_subset(mechanism, *whole_sizes)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Parameterisation:
    """A way to give a mechanism's numbers: those that are needed, those with a default, and what they make."""

    needed: tuple[str, ...]
    defaults: Mapping[str, Fraction]
    make: Callable[[Mapping[str, Fraction]], ListedMechanism]

    def takes(self, amounts: Mapping[str, Fraction]) -> bool:
        return set(self.needed) <= amounts.keys() <= {*self.needed, *self.defaults}

    def described(self) -> str:
        return " ".join([*(f"{name}=…" for name in self.needed), *(f"[{name}=…]" for name in self.defaults)])


def _way(needed: str, make: Callable[[Mapping[str, Fraction]], ListedMechanism], **defaults: int) -> _Parameterisation:
    return _Parameterisation(
        needed=tuple(needed.split()), defaults={name: Fraction(value) for name, value in defaults.items()}, make=make
    )


def _integer(numbers: Mapping[str, Fraction], name: str, least: int) -> int:
    value = numbers[name]
    if value.denominator != 1 or not least <= value <= _MOST_CHOICES:
        raise InvalidParameter(f"{name} is {short(value)}; it must be a whole number from {least} to 2^40.")
    return int(value)


def _size(value: Fraction, name: str) -> Fraction:
    """Return an ε or μ that means something, and can be computed with."""
    if not _LEAST_SIZE <= value <= _MOST_SIZE:
        raise InvalidParameter(f"{name} is {short(value)}; it must be above 0, from 1e-30 to 10,000.")
    return value


def _ratio(numbers: Mapping[str, Fraction], noise: str) -> Fraction:
    ratio = positive(numbers["sensitivity"], "sensitivity") / positive(numbers[noise], noise)
    return _size(ratio, f"sensitivity over {noise}")


def _discrete_laplace(numbers: Mapping[str, Fraction]) -> ListedMechanism:
    _ratio(numbers, "scale")
    return mechanisms.discrete_laplace_noise(numbers["scale"], _integer(numbers, "sensitivity", 1))


def _discrete_gaussian(numbers: Mapping[str, Fraction]) -> ListedMechanism:
    _ratio(numbers, "sigma")
    return mechanisms.discrete_gaussian_noise(numbers["sigma"] ** 2, _integer(numbers, "sensitivity", 1))


def _tree(numbers: Mapping[str, Fraction]) -> ListedMechanism:
    """Return the Gaussian noise of all nodes that hold a step, of those that end by the last step.

    A step is in one node of each height, and the first step in one of each height that there is: ⌊log₂ steps⌋ + 1.
    """
    heights = _integer(numbers, "steps", 1).bit_length()
    return mechanisms.gaussian_noise(heights * _ratio(numbers, "sigma") ** 2)


def _zero_concentrated(numbers: Mapping[str, Fraction]) -> ListedMechanism:
    return mechanisms.zero_concentrated(_size(numbers["rho"], "rho"))


def _randomized_response(numbers: Mapping[str, Fraction]) -> ListedMechanism:
    return mechanisms.randomized_response(_size(numbers["epsilon"], "epsilon"), _integer(numbers, "choices", 2))


def _private(numbers: Mapping[str, Fraction]) -> ListedMechanism:
    failure = non_negative(numbers.get("delta", Fraction(0)), "delta")
    if failure >= 1:
        raise InvalidParameter(f"delta is {short(failure)}; it must be at least 0 and below 1.")
    return mechanisms.any_private(_size(numbers["epsilon"], "epsilon"), failure)


KINDS: Final[Mapping[str, tuple[_Parameterisation, ...]]] = {
    "laplace": (
        _way("epsilon", lambda n: mechanisms.laplace_noise(_size(n["epsilon"], "epsilon"))),
        _way("scale", lambda n: mechanisms.laplace_noise(_ratio(n, "scale")), sensitivity=1),
    ),
    "discrete-laplace": (_way("scale", _discrete_laplace, sensitivity=1),),
    "gaussian": (
        _way("sigma", lambda n: mechanisms.gaussian_noise(_ratio(n, "sigma") ** 2), sensitivity=1),
        _way("mu", lambda n: mechanisms.gaussian_noise(_size(n["mu"], "mu") ** 2)),
    ),
    "discrete-gaussian": (_way("sigma", _discrete_gaussian, sensitivity=1),),
    "randomized-response": (
        _way(
            "epsilon",
            _randomized_response,
            choices=2,
        ),
    ),
    "exponential": (_way("epsilon", lambda n: mechanisms.bounded_range(_size(n["epsilon"], "epsilon"))),),
    "tree": (_way("sigma steps", _tree, sensitivity=1),),
    "pure": (_way("epsilon", _private),),
    "approx": (_way("epsilon delta", _private),),
    "zcdp": (_way("rho", _zero_concentrated),),
}
"""The mechanisms that a list may hold, by name."""
