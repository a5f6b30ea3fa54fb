"""Every mechanism by its name in a task, and how it is made: a new mechanism gets a row here.

The client's `Rule` of the same name says what a device does. A mechanism that `advise` should compare also gets a row
among the makers.
"""

from collections.abc import Callable, Mapping
from typing import Final

from lapwing.errors import InvalidParameter
from lapwing.local import client
from lapwing.local.attributes import AllAttributes, OneAttribute
from lapwing.local.frequencies.binary import BinaryResponse
from lapwing.local.frequencies.hashing import LocalHashing
from lapwing.local.frequencies.kary import KaryResponse
from lapwing.local.frequencies.randomizer import Randomizer
from lapwing.local.frequencies.subset import SubsetSelection
from lapwing.local.frequencies.unary import UnaryEncoding
from lapwing.local.heavy_hitters.prefix_extending import PrefixExtending
from lapwing.local.heavy_hitters.sketches import CountMeanSketch, HadamardSketch
from lapwing.local.longitudinal.dyadic_tree import DyadicTree
from lapwing.local.longitudinal.memoised import Memoised, MemoisedUnary
from lapwing.local.means.duchi import DuchiMean
from lapwing.local.means.hybrid import HybridMean
from lapwing.local.means.mean_randomizer import MeanRandomizer
from lapwing.local.means.piecewise import PiecewiseMean
from lapwing.local.mechanism import Mechanism
from lapwing.local.rappor.basic import BasicRappor
from lapwing.local.rappor.full import Rappor
from lapwing.privacy.amounts import Number

FREQUENCIES: Final[Mapping[str, Callable[..., Randomizer]]] = {
    BinaryResponse.name: lambda categories, **thresholds: BinaryResponse(**thresholds),
    KaryResponse.name: KaryResponse,
    SubsetSelection.name: SubsetSelection,
    UnaryEncoding.name: UnaryEncoding,
    LocalHashing.name: LocalHashing,
    Memoised.name: Memoised.from_thresholds,
    MemoisedUnary.name: MemoisedUnary.from_thresholds,
    BasicRappor.name: BasicRappor.from_thresholds,
}
"""Of shares of a list of values: made from the number of values and the parameters."""
MEANS: Final[Mapping[str, Callable[..., MeanRandomizer]]] = {
    DuchiMean.name: DuchiMean,
    PiecewiseMean.name: PiecewiseMean,
    HybridMean.name: HybridMean.from_parameters,
}
"""Of the mean of a number: made from the grid and the parameters."""
OTHERS: Final[Mapping[str, Callable[[client.Asked], Mechanism]]] = {
    CountMeanSketch.name: lambda asked: CountMeanSketch(**dict(asked.parameters)),
    HadamardSketch.name: lambda asked: HadamardSketch(**dict(asked.parameters)),
    PrefixExtending.name: lambda asked: PrefixExtending(most_bytes=asked.answers.size, **dict(asked.parameters)),
    "rappor": lambda asked: Rappor.from_parameters(dict(asked.parameters)),
    "rappor-once": lambda asked: Rappor.from_parameters(dict(asked.parameters)),
    DyadicTree.name: lambda asked: DyadicTree(**dict(asked.parameters)),
}
"""Of anything else: made from what is asked."""

FREQUENCY_MAKERS: Final[Mapping[str, Callable[[Number, int], Randomizer]]] = {
    "binary": lambda epsilon, k: BinaryResponse.for_epsilon(epsilon),
    "k-ary": KaryResponse.for_epsilon,
    "subset": SubsetSelection.for_epsilon,
    "optimised unary": UnaryEncoding.optimised,
    "symmetric unary": UnaryEncoding.symmetric,
    "hashing": LocalHashing.for_epsilon,
}
"""What `advise` compares, by the name that it shows: made from ε and the number of values."""
MEAN_MAKERS: Final[Mapping[str, Callable[[Number, client.Number], MeanRandomizer]]] = {
    "duchi": DuchiMean.for_epsilon,
    "piecewise": PiecewiseMean.for_epsilon,
    "hybrid": HybridMean.for_epsilon,
}
"""What `advise_mean` compares: made from ε and the grid."""


def mechanism_of(asked: client.Asked | client.Attributes) -> Mechanism:
    """Return the mechanism of a question of any kind.

    Raises:
        InvalidParameter: If its reports would say nothing: a client sends them, but no estimate follows.
    """
    if isinstance(asked, client.Attributes):
        questions, each = zip(*asked.each, strict=True)
        kind = OneAttribute if asked.mechanism == client.ONE_ATTRIBUTE else AllAttributes
        return kind(questions=questions, each=tuple(mechanism_of(one) for one in each))
    if asked.mechanism in FREQUENCIES:
        return randomizer_of(asked)
    if asked.mechanism in MEANS:
        return mean_randomizer_of(asked)
    return OTHERS[asked.mechanism](asked)


def randomizer_of(task: client.Task | client.Asked) -> Randomizer:
    """Return the mechanism of a task that asks for one of a list of values, by which shares are estimated.

    Raises:
        InvalidParameter: For another task, or if reports would say nothing.
    """
    asked = task.asked if isinstance(task, client.Task) else task
    if not isinstance(asked, client.Asked) or asked.mechanism not in FREQUENCIES:
        raise InvalidParameter(f"The mechanism {asked.mechanism} is not for the shares of a list of values.")
    return FREQUENCIES[asked.mechanism](categories=asked.answers.size, **dict(asked.parameters))


def mean_randomizer_of(task: client.Task | client.Asked) -> MeanRandomizer:
    """Return the mechanism of a task that asks for a number, by which the mean is estimated.

    Raises:
        InvalidParameter: For another task, or if reports would say nothing.
    """
    asked = task.asked if isinstance(task, client.Task) else task
    if not (isinstance(asked, client.Asked) and isinstance(asked.answers, client.Number)):
        raise InvalidParameter(f"The mechanism {asked.mechanism} is not for the mean of a number.")
    return MEANS[asked.mechanism](number=asked.answers, **dict(asked.parameters))


def record_mechanism_of(task: client.Task) -> OneAttribute | AllAttributes:
    """Return the mechanism of a task that asks for several attributes.

    Raises:
        InvalidParameter: For another task, or if reports would say nothing.
    """
    made = mechanism_of(task.asked)
    if not isinstance(made, OneAttribute | AllAttributes):
        raise InvalidParameter(f"The mechanism {task.mechanism} is not for several attributes.")
    return made
