"""Local differential privacy: the respondent adds the noise, and nobody is trusted with the answers.

`client` is what a respondent's device runs, and needs nothing else. The rest is for who asks: mechanisms, advice which
to take, tasks, and estimates from reports. Names are loaded when they are first used, so that the client stays alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lapwing.local import client
    from lapwing.local.attributes import OneAttribute
    from lapwing.local.lists.advice import Advice, Option, advise, epsilon_needed, respondents_needed
    from lapwing.local.lists.binary import BinaryResponse
    from lapwing.local.lists.consistency import Likeliest, likeliest
    from lapwing.local.lists.estimates import FrequencyEstimate, estimate
    from lapwing.local.lists.hashing import LocalHashing
    from lapwing.local.lists.kary import KaryResponse
    from lapwing.local.lists.randomizer import Randomizer, Rates, Transitions
    from lapwing.local.lists.subset import SubsetSelection
    from lapwing.local.lists.unary import UnaryEncoding
    from lapwing.local.mechanism import Mechanism
    from lapwing.local.numbers.advice import (
        MeanAdvice,
        MeanOption,
        advise_mean,
        mean_epsilon_needed,
        mean_respondents_needed,
    )
    from lapwing.local.numbers.duchi import DuchiMean
    from lapwing.local.numbers.estimates import MeanEstimate, estimate_mean
    from lapwing.local.numbers.hybrid import HybridMean
    from lapwing.local.numbers.means import MeanRandomizer, Parabola, grid, on_grid
    from lapwing.local.numbers.piecewise import PiecewiseMean
    from lapwing.local.over_time.memoised import Memoised
    from lapwing.local.over_time.memoised_unary import MemoisedUnary
    from lapwing.local.over_time.repeated import Repeated, over_days, repeated_reports
    from lapwing.local.over_time.tree import DyadicTree
    from lapwing.local.over_time.tree_estimates import TreeEstimate, estimate_over_time
    from lapwing.local.rappor.basic import BasicRappor
    from lapwing.local.rappor.decoding import decode
    from lapwing.local.rappor.estimate import RapporEstimate
    from lapwing.local.rappor.full import Rappor
    from lapwing.local.rappor.noise import Noise
    from lapwing.local.record_estimates import estimate_record
    from lapwing.local.reports import Collected, Rejected, collect, collect_for
    from lapwing.local.shuffling.bounds import Amplified, amplified_delta, amplified_epsilon, local_epsilon
    from lapwing.local.simulation.roads import Simulated, simulate
    from lapwing.local.tasks import (
        mean_randomizer_of,
        mechanism_of,
        new_record_task,
        new_task,
        randomizer_of,
        read_task,
        record_mechanism_of,
        to_toml,
    )
    from lapwing.local.words.compared import Compared, compare_sketches
    from lapwing.local.words.found import FoundWords, find_words
    from lapwing.local.words.hadamard import HadamardSketch
    from lapwing.local.words.prefixes import PrefixExtending
    from lapwing.local.words.sketch import CountMeanSketch, estimate_sketch

_HOMES = {
    "attributes": ("OneAttribute",),
    "lists.advice": ("Advice", "Option", "advise", "epsilon_needed", "respondents_needed"),
    "lists.binary": ("BinaryResponse",),
    "lists.consistency": ("Likeliest", "likeliest"),
    "numbers.duchi": ("DuchiMean",),
    "lists.estimates": ("FrequencyEstimate", "estimate"),
    "lists.hashing": ("LocalHashing",),
    "numbers.hybrid": ("HybridMean",),
    "lists.kary": ("KaryResponse",),
    "over_time.memoised": ("Memoised",),
    "over_time.memoised_unary": ("MemoisedUnary",),
    "numbers.advice": ("MeanAdvice", "MeanOption", "advise_mean", "mean_epsilon_needed", "mean_respondents_needed"),
    "numbers.estimates": ("MeanEstimate", "estimate_mean"),
    "numbers.means": ("MeanRandomizer", "Parabola", "grid", "on_grid"),
    "mechanism": ("Mechanism",),
    "numbers.piecewise": ("PiecewiseMean",),
    "record_estimates": ("estimate_record",),
    "lists.randomizer": ("Randomizer", "Rates", "Transitions"),
    "rappor.full": ("Rappor",),
    "rappor.basic": ("BasicRappor",),
    "rappor.decoding": ("decode",),
    "rappor.estimate": ("RapporEstimate",),
    "rappor.noise": ("Noise",),
    "reports": ("Collected", "Rejected", "collect", "collect_for"),
    "simulation.roads": ("Simulated", "simulate"),
    "shuffling.bounds": ("Amplified", "amplified_delta", "amplified_epsilon", "local_epsilon"),
    "lists.subset": ("SubsetSelection",),
    "tasks": (
        "mean_randomizer_of",
        "mechanism_of",
        "new_record_task",
        "new_task",
        "randomizer_of",
        "read_task",
        "record_mechanism_of",
        "to_toml",
    ),
    "over_time.tree": ("DyadicTree",),
    "over_time.tree_estimates": ("TreeEstimate", "estimate_over_time"),
    "words.compared": ("Compared", "compare_sketches"),
    "words.found": ("FoundWords", "find_words"),
    "words.hadamard": ("HadamardSketch",),
    "words.prefixes": ("PrefixExtending",),
    "over_time.repeated": ("Repeated", "over_days", "repeated_reports"),
    "words.sketch": ("CountMeanSketch", "estimate_sketch"),
    "lists.unary": ("UnaryEncoding",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Advice",
    "Amplified",
    "BasicRappor",
    "BinaryResponse",
    "Collected",
    "Compared",
    "CountMeanSketch",
    "DuchiMean",
    "DyadicTree",
    "FoundWords",
    "FrequencyEstimate",
    "HadamardSketch",
    "HybridMean",
    "KaryResponse",
    "Likeliest",
    "LocalHashing",
    "MeanAdvice",
    "MeanEstimate",
    "MeanOption",
    "MeanRandomizer",
    "Mechanism",
    "Memoised",
    "MemoisedUnary",
    "Noise",
    "OneAttribute",
    "Option",
    "Parabola",
    "PiecewiseMean",
    "PrefixExtending",
    "Randomizer",
    "Rappor",
    "RapporEstimate",
    "Rates",
    "Rejected",
    "Repeated",
    "Simulated",
    "SubsetSelection",
    "Transitions",
    "TreeEstimate",
    "UnaryEncoding",
    "advise",
    "advise_mean",
    "amplified_delta",
    "amplified_epsilon",
    "client",
    "collect",
    "collect_for",
    "compare_sketches",
    "decode",
    "epsilon_needed",
    "estimate",
    "estimate_mean",
    "estimate_over_time",
    "estimate_record",
    "estimate_sketch",
    "find_words",
    "grid",
    "likeliest",
    "local_epsilon",
    "mean_epsilon_needed",
    "mean_randomizer_of",
    "mean_respondents_needed",
    "mechanism_of",
    "new_record_task",
    "new_task",
    "on_grid",
    "over_days",
    "randomizer_of",
    "read_task",
    "record_mechanism_of",
    "repeated_reports",
    "respondents_needed",
    "simulate",
    "to_toml",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used (PEP 562)."""
    if name == "client":
        return import_module("lapwing.local.client")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'lapwing.local' has no attribute {name!r}")
    return getattr(import_module(f"lapwing.local.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
