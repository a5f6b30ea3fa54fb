"""Lists from and for other accountants: dp-accounting's events, and the privacy maps of OpenDP's measurements.

Neither library is needed to import this module: what is passed in brings it along, and `to_dp_event` imports
dp-accounting. Numbers of an event are floats, which are read as their shortest decimals, and written likewise; a number
that is no float's shortest decimal is rounded towards more loss: noise down, rates up. Where another library has no
event for a mechanism, what is written is one that loses more, the mechanism's ρ, or there is an error; nothing is left
out.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import enclose_tightly
from lapwing.exact.floats import float_down, float_near, float_up
from lapwing.privacy.amounts import exact
from lapwing.privacy.listing import Listed, listed
from lapwing.privacy.measures import ApproxDP, PureDP, ZeroConcentratedDP
from lapwing.privacy.renyi import RenyiDP

_BITS = 100


def from_dp_event(event: object) -> tuple[Listed, ...]:
    """Return the list that an event of dp-accounting describes, for `distribution_of` and the others.

    Poisson samples are for add_remove, and samples without replacement for replace_one. The numbers of the mechanisms
    are for the relation that you ask for, like in dp-accounting.

    Args:
        event: A `dp_accounting.DpEvent`.

    Raises:
        InvalidParameter: For an event that is none of those, or that says nothing of a loss; the message names it.
    """
    return tuple(_listed(event, 1, {}))


def _listed(event: Any, times: int, sample: Mapping[str, Any]) -> list[Listed]:
    """Return the mechanisms of an event, each run so many times on a sample."""
    name = type(event).__name__.removesuffix("DpEvent")
    match name:
        case "NoOp":
            return []
        case "Composed" if not sample:
            return [one for each in event.events for one in _listed(each, times, sample)]
        case "Composed":
            return [_on_one_sample(event, times, sample)]
        case "SelfComposed" if not sample:
            return _listed(event.event, times * int(event.count), sample)
        case "SelfComposed":
            return [_on_one_sample(event, times, sample)]
        case "PoissonSampled" if not sample:
            return _listed(event.event, times, {"rate": exact(event.sampling_probability, "sampling_probability")})
        case "SampledWithoutReplacement" if not sample:
            return _listed(event.event, times, {"size": event.sample_size, "population": event.source_dataset_size})
    if name not in _FROM:
        allowed = ", ".join(sorted({*_FROM, "NoOp", "Composed", "SelfComposed", "PoissonSampled"}))
        raise InvalidParameter(
            f"An event {name}{' on a sample' if sample else ''} is not supported; the events are {allowed} and "
            "SampledWithoutReplacement, each of the last two of mechanisms without a sample."
        )
    kind, numbers = _FROM[name](event)
    return [listed(kind, times, **sample, **numbers)]


def _on_one_sample(event: Any, times: int, sample: Mapping[str, Any]) -> Listed:
    """Return several mechanisms on one sample, which is one mechanism if all are Gaussian noise: μ² adds up."""
    inner = _listed(event, 1, {})
    if not inner or any(one.kind != "gaussian" or len(one.numbers) != 1 for one in inner):
        raise InvalidParameter(
            "Several mechanisms can share one sample only if each is Gaussian noise. Give each a sample of its own, or "
            "sample first and compose the samples."
        )
    mu_squared = sum((one.times / dict(one.numbers)["sigma"] ** 2 for one in inner), Fraction(0))
    mu = enclose_tightly(lambda m: m.sqrt(), mu_squared, bits=_BITS).upper
    return listed("gaussian", times, mu=mu, **sample)


def _response(event: Any) -> tuple[str, dict[str, Any]]:
    """Return randomized response that draws its answer from all k with a probability of p: e^ε is 1 + k(1 − p)/p."""
    p, choices = exact(event.noise_parameter, "noise_parameter"), int(event.num_buckets)
    if not 0 < p < 1:
        raise InvalidParameter(f"The noise_parameter is {event.noise_parameter}; it must be above 0 and below 1.")
    epsilon = enclose_tightly(lambda odds: odds.log1p(), choices * (1 - p) / p, bits=_BITS).upper
    return "randomized-response", {"epsilon": epsilon, "choices": choices}


def _tree(event: Any) -> tuple[str, dict[str, Any]]:
    counts = event.step_counts if isinstance(event.step_counts, Sequence) else [event.step_counts]
    return "tree", {"sigma": event.noise_multiplier, "steps": int(max(counts))}


def _concentrated(event: Any) -> tuple[str, dict[str, Any]]:
    if event.xi:
        raise InvalidParameter("A ZCDpEvent with an xi is not supported; state it as a RenyiDP.")
    return "zcdp", {"rho": event.rho}


_FROM: Final[Mapping[str, Callable[[Any], tuple[str, dict[str, Any]]]]] = {
    "Gaussian": lambda event: ("gaussian", {"sigma": event.noise_multiplier}),
    "Laplace": lambda event: ("laplace", {"scale": event.noise_multiplier}),
    "DiscreteLaplace": lambda event: (
        "discrete-laplace",
        {"scale": 1 / exact(event.noise_parameter, "noise_parameter"), "sensitivity": event.sensitivity},
    ),
    "RandomizedResponse": _response,
    "SingleEpochTreeAggregation": _tree,
    "ZC": _concentrated,
}


def to_dp_event(parts: Sequence[Listed]) -> Any:
    """Return a list as an event of dp-accounting, for any of its accountants.

    Guarantee:
        The event's mechanisms lose as much as the list's, or more. Discrete Gaussian noise is written by its ρ, and so
        is a mechanism known only by an ε, a bounded range or a ρ.

    Raises:
        InvalidParameter: For a part with a δ or a Rényi curve, or on a sample for which there is no event. For one
            whose numbers are stated for another relation.
        ImportError: Without dp-accounting.
    """
    from dp_accounting import dp_event

    events = []
    for part in parts:
        if part.neighbouring is not None or part.text.endswith("neighbouring=add_remove"):
            raise InvalidParameter(f"{part.text!r} names a relation, which an event does not; state it for the list's.")
        event = _event(part, dp_event)
        events.append(event if part.times == 1 else dp_event.SelfComposedDpEvent(event, part.times))
    return events[0] if len(events) == 1 else dp_event.ComposedDpEvent(events)


def _event(part: Listed, dp_event: Any) -> Any:
    given = dict(part.numbers)
    rate, size, population = (given.pop(name, None) for name in ("rate", "size", "population"))
    if part.kind in EVENT_MAKERS:
        event = EVENT_MAKERS[part.kind](dp_event, {"sensitivity": Fraction(1), "choices": Fraction(2), **given})
        if rate is not None:
            event = dp_event.PoissonSampledDpEvent(_float(rate, float_up), event)
        if size is not None and population is not None:
            event = dp_event.SampledWithoutReplacementDpEvent(int(population), int(size), event)
        return event
    if part.mechanism.failure or part.kind == "renyi" or rate is not None or size is not None:
        raise InvalidParameter(f"dp-accounting has no event for {part.text!r}; account for it here.")
    loss = part.mechanism.loss("zcdp")
    return dp_event.ZCDpEvent(_float(loss.amount, float_up))


def _float(number: Fraction, rounding: Callable[[Fraction], float]) -> float:
    near = float_near(number)
    return near if exact(near, "a number") == number else rounding(number)


def _gaussian_event(dp_event: Any, n: Mapping[str, Fraction]) -> Any:
    return dp_event.GaussianDpEvent(_float(n["sigma"] / n["sensitivity"] if "sigma" in n else 1 / n["mu"], float_down))


def _laplace_event(dp_event: Any, n: Mapping[str, Fraction]) -> Any:
    return dp_event.LaplaceDpEvent(
        _float(n["scale"] / n["sensitivity"] if "scale" in n else 1 / n["epsilon"], float_down)
    )


def _response_event(dp_event: Any, n: Mapping[str, Fraction]) -> Any:
    """Return the event whose chance of another answer is k/(e^ε + k − 1)."""
    chance = enclose_tightly(lambda e, k: k / (e.exp() + k - 1), n["epsilon"], n["choices"], bits=_BITS).lower
    return dp_event.RandomizedResponseDpEvent(_float(chance, float_down), int(n["choices"]))


EVENT_MAKERS: Final[Mapping[str, Callable[[Any, Mapping[str, Fraction]], Any]]] = {
    "gaussian": _gaussian_event,
    "laplace": _laplace_event,
    "discrete-laplace": lambda dp_event, n: dp_event.DiscreteLaplaceDpEvent(
        _float(1 / n["scale"], float_up), int(n["sensitivity"])
    ),
    "randomized-response": _response_event,
    "tree": lambda dp_event, n: dp_event.SingleEpochTreeAggregationDpEvent(
        _float(n["sigma"] / n["sensitivity"], float_down), int(n["steps"])
    ),
}


def from_opendp(measurement: Any, d_in: object, *, orders: Sequence[Fraction] | None = None) -> Any:
    """Return the loss that an OpenDP measurement's privacy map states at an input distance, to account with it.

    Guarantee:
        At least what `measurement.map(d_in)` states, in its measure, for data sets at that distance.

    Args:
        measurement: An `opendp.Measurement`.
        d_in: A distance of its input metric.
        orders: Of a Rényi curve.

    Returns:
        PureDP, ZeroConcentratedDP, ApproxDP or RenyiDP.

    Raises:
        InvalidParameter: For another measure; the message says what to make of the measurement.
    """
    measure, stated = str(measurement.output_measure), measurement.map(d_in)
    match measure.partition("(")[0], measure:
        case "MaxDivergence", _:
            return PureDP(_exactly(stated))
        case "ZeroConcentratedDivergence", _:
            return ZeroConcentratedDP(_exactly(stated))
        case "RenyiDivergence", _:
            chosen = {} if orders is None else {"orders": orders}
            return RenyiDP.from_function(lambda order: _exactly(stated(float_up(order))), **chosen)
        case "Approximate", "Approximate(MaxDivergence)":
            epsilon, delta = stated
            return ApproxDP(_exactly(epsilon), _exactly(delta))
    raise InvalidParameter(
        f"The measurement's output measure is {measure:.60}; it must be MaxDivergence, ZeroConcentratedDivergence, "
        "RenyiDivergence or Approximate(MaxDivergence): make_fix_delta makes the last of a privacy profile."
    )


def _exactly(number: float) -> Fraction:
    """Return a float that was rounded up, exactly: its shortest decimal may be less."""
    return Fraction(number)
