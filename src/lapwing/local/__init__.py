"""Local differential privacy: the respondent adds the noise, and nobody else is trusted with the answer.

`client` is what a respondent's device runs, and needs nothing else. The rest is for whoever asks: mechanisms, advice on
which to take, tasks, and estimates from reports. A name is loaded when it is first used, so that the client can run
without the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lapwing.local import client
    from lapwing.local.advice import (
        Advice,
        MeanAdvice,
        MeanOption,
        Option,
        advise,
        advise_mean,
        epsilon_needed,
        mean_epsilon_needed,
        mean_respondents_needed,
        respondents_needed,
    )
    from lapwing.local.attributes import AllAttributes, OneAttribute
    from lapwing.local.collection import Collected, Rejected, collect, collect_for
    from lapwing.local.frequencies.binary import BinaryResponse
    from lapwing.local.frequencies.consistency import Likeliest, likeliest
    from lapwing.local.frequencies.frequency_estimate import FrequencyEstimate, estimate
    from lapwing.local.frequencies.hashing import LocalHashing
    from lapwing.local.frequencies.kary import KaryResponse
    from lapwing.local.frequencies.randomizer import Randomizer, Rates, Transitions
    from lapwing.local.frequencies.subset import SubsetSelection
    from lapwing.local.frequencies.unary import UnaryEncoding
    from lapwing.local.graphs.edge_count import EdgeCount, EdgeCountEstimate
    from lapwing.local.graphs.two_rounds import (
        FirstReport,
        NoisyGraph,
        RoundLoss,
        TrianglesEstimate,
        TwoRoundTriangles,
        simulate_triangles,
    )
    from lapwing.local.heavy_hitters.prefix_extending import PrefixExtending
    from lapwing.local.heavy_hitters.prefix_search import FoundWords, find_words
    from lapwing.local.heavy_hitters.sketch_comparison import Compared, compare_sketches
    from lapwing.local.heavy_hitters.sketches import CountMeanSketch, HadamardSketch, estimate_sketch
    from lapwing.local.joint_estimates import JointEstimate, estimate_joint
    from lapwing.local.longitudinal.dyadic_tree import DyadicTree
    from lapwing.local.longitudinal.memoised import Memoised, MemoisedUnary
    from lapwing.local.longitudinal.repeated import Repeated, over_days, repeated_reports
    from lapwing.local.longitudinal.tree_estimate import TreeEstimate, estimate_over_time
    from lapwing.local.means.duchi import DuchiMean
    from lapwing.local.means.hybrid import HybridMean
    from lapwing.local.means.mean_estimate import MeanEstimate, estimate_mean
    from lapwing.local.means.mean_randomizer import MeanRandomizer, Parabola, grid, on_grid
    from lapwing.local.means.piecewise import PiecewiseMean
    from lapwing.local.mechanism import Mechanism
    from lapwing.local.public_draws import Crowded, DrawCheck, check_draws
    from lapwing.local.rappor.basic import BasicRappor
    from lapwing.local.rappor.bit_noise import Noise
    from lapwing.local.rappor.decoding import decode
    from lapwing.local.rappor.full import Rappor
    from lapwing.local.rappor.rappor_estimate import RapporEstimate
    from lapwing.local.record_estimates import estimate_record
    from lapwing.local.registry import mean_randomizer_of, mechanism_of, randomizer_of, record_mechanism_of
    from lapwing.local.shuffling.amplification import Amplified, amplified_delta, amplified_epsilon, local_epsilon
    from lapwing.local.simulation.roads import Simulated, simulate
    from lapwing.local.simulation.task_reports import simulate_reports
    from lapwing.local.tasks import new_record_task, new_task, read_task, to_toml

_HOMES = {
    "advice": ("Advice", "MeanAdvice", "MeanOption", "Option", "advise", "advise_mean", "epsilon_needed",
        "mean_epsilon_needed", "mean_respondents_needed", "respondents_needed"),
    "attributes": ("AllAttributes", "OneAttribute"),
    "collection": ("Collected", "Rejected", "collect", "collect_for"),
    "frequencies.binary": ("BinaryResponse",),
    "frequencies.consistency": ("Likeliest", "likeliest"),
    "frequencies.frequency_estimate": ("FrequencyEstimate", "estimate"),
    "frequencies.hashing": ("LocalHashing",),
    "frequencies.kary": ("KaryResponse",),
    "frequencies.randomizer": ("Randomizer", "Rates", "Transitions"),
    "frequencies.subset": ("SubsetSelection",),
    "frequencies.unary": ("UnaryEncoding",),
    "graphs.edge_count": ("EdgeCount", "EdgeCountEstimate"),
    "graphs.two_rounds": ("FirstReport", "NoisyGraph", "RoundLoss", "TrianglesEstimate", "TwoRoundTriangles",
        "simulate_triangles"),
    "heavy_hitters.prefix_extending": ("PrefixExtending",),
    "heavy_hitters.prefix_search": ("FoundWords", "find_words"),
    "heavy_hitters.sketch_comparison": ("Compared", "compare_sketches"),
    "heavy_hitters.sketches": ("CountMeanSketch", "HadamardSketch", "estimate_sketch"),
    "joint_estimates": ("JointEstimate", "estimate_joint"),
    "longitudinal.dyadic_tree": ("DyadicTree",),
    "longitudinal.memoised": ("Memoised", "MemoisedUnary"),
    "longitudinal.repeated": ("Repeated", "over_days", "repeated_reports"),
    "longitudinal.tree_estimate": ("TreeEstimate", "estimate_over_time"),
    "means.duchi": ("DuchiMean",),
    "means.hybrid": ("HybridMean",),
    "means.mean_estimate": ("MeanEstimate", "estimate_mean"),
    "means.mean_randomizer": ("MeanRandomizer", "Parabola", "grid", "on_grid"),
    "means.piecewise": ("PiecewiseMean",),
    "mechanism": ("Mechanism",),
    "public_draws": ("Crowded", "DrawCheck", "check_draws"),
    "rappor.basic": ("BasicRappor",),
    "rappor.bit_noise": ("Noise",),
    "rappor.decoding": ("decode",),
    "rappor.full": ("Rappor",),
    "rappor.rappor_estimate": ("RapporEstimate",),
    "record_estimates": ("estimate_record",),
    "registry": ("mean_randomizer_of", "mechanism_of", "randomizer_of", "record_mechanism_of"),
    "shuffling.amplification": ("Amplified", "amplified_delta", "amplified_epsilon", "local_epsilon"),
    "simulation.roads": ("Simulated", "simulate"),
    "simulation.task_reports": ("simulate_reports",),
    "tasks": ("new_record_task", "new_task", "read_task", "to_toml"),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Advice", "AllAttributes", "Amplified", "BasicRappor", "BinaryResponse", "Collected", "Compared",
    "CountMeanSketch", "Crowded", "DrawCheck", "DuchiMean", "DyadicTree", "EdgeCount", "EdgeCountEstimate",
    "FirstReport", "FoundWords", "FrequencyEstimate", "HadamardSketch", "HybridMean", "JointEstimate",
    "KaryResponse", "Likeliest", "LocalHashing", "MeanAdvice", "MeanEstimate", "MeanOption", "MeanRandomizer",
    "Mechanism", "Memoised", "MemoisedUnary", "Noise", "NoisyGraph", "OneAttribute", "Option", "Parabola",
    "PiecewiseMean", "PrefixExtending", "Randomizer", "Rappor", "RapporEstimate", "Rates", "Rejected", "Repeated",
    "RoundLoss", "Simulated", "SubsetSelection", "Transitions", "TreeEstimate", "TrianglesEstimate",
    "TwoRoundTriangles", "UnaryEncoding", "advise", "advise_mean", "amplified_delta", "amplified_epsilon",
    "check_draws", "client", "collect", "collect_for", "compare_sketches", "decode", "epsilon_needed", "estimate",
    "estimate_joint", "estimate_mean", "estimate_over_time", "estimate_record", "estimate_sketch", "find_words",
    "grid", "likeliest", "local_epsilon", "mean_epsilon_needed", "mean_randomizer_of", "mean_respondents_needed",
    "mechanism_of", "new_record_task", "new_task", "on_grid", "over_days", "randomizer_of", "read_task",
    "record_mechanism_of", "repeated_reports", "respondents_needed", "simulate", "simulate_reports",
    "simulate_triangles", "to_toml",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Import a public name when it is first used (PEP 562)."""
    if name == "client":
        return import_module("lapwing.local.client")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'lapwing.local' has no attribute {name!r}")
    return getattr(import_module(f"lapwing.local.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
