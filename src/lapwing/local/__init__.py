"""Local differential privacy: the respondent adds the noise, and nobody else is trusted with the answer.

`client` is what a respondent's device runs, and needs nothing else. The rest is for whoever asks: mechanisms, advice on
which to take, tasks, and estimates from reports. A name is loaded when it is first used, so that the client can run
without the rest.
"""

from typing import TYPE_CHECKING

from lapwing.machine.exports import exports

if TYPE_CHECKING:
    from lapwing.local import client as client
    from lapwing.local.advice import Advice as Advice
    from lapwing.local.advice import MeanAdvice as MeanAdvice
    from lapwing.local.advice import MeanOption as MeanOption
    from lapwing.local.advice import Option as Option
    from lapwing.local.advice import advise as advise
    from lapwing.local.advice import advise_mean as advise_mean
    from lapwing.local.advice import epsilon_needed as epsilon_needed
    from lapwing.local.advice import mean_epsilon_needed as mean_epsilon_needed
    from lapwing.local.advice import mean_respondents_needed as mean_respondents_needed
    from lapwing.local.advice import respondents_needed as respondents_needed
    from lapwing.local.attributes import AllAttributes as AllAttributes
    from lapwing.local.attributes import OneAttribute as OneAttribute
    from lapwing.local.collection import Collected as Collected
    from lapwing.local.collection import Rejected as Rejected
    from lapwing.local.collection import collect as collect
    from lapwing.local.collection import collect_for as collect_for
    from lapwing.local.frequencies.binary import BinaryResponse as BinaryResponse
    from lapwing.local.frequencies.consistency import Likeliest as Likeliest
    from lapwing.local.frequencies.consistency import likeliest as likeliest
    from lapwing.local.frequencies.frequency_estimate import FrequencyEstimate as FrequencyEstimate
    from lapwing.local.frequencies.frequency_estimate import estimate as estimate
    from lapwing.local.frequencies.hashing import LocalHashing as LocalHashing
    from lapwing.local.frequencies.kary import KaryResponse as KaryResponse
    from lapwing.local.frequencies.randomizer import Randomizer as Randomizer
    from lapwing.local.frequencies.randomizer import Rates as Rates
    from lapwing.local.frequencies.randomizer import Transitions as Transitions
    from lapwing.local.frequencies.subset import SubsetSelection as SubsetSelection
    from lapwing.local.frequencies.unary import UnaryEncoding as UnaryEncoding
    from lapwing.local.graphs.edge_count import EdgeCount as EdgeCount
    from lapwing.local.graphs.edge_count import EdgeCountEstimate as EdgeCountEstimate
    from lapwing.local.graphs.two_rounds import FirstReport as FirstReport
    from lapwing.local.graphs.two_rounds import NoisyGraph as NoisyGraph
    from lapwing.local.graphs.two_rounds import RoundLoss as RoundLoss
    from lapwing.local.graphs.two_rounds import TrianglesEstimate as TrianglesEstimate
    from lapwing.local.graphs.two_rounds import TwoRoundTriangles as TwoRoundTriangles
    from lapwing.local.graphs.two_rounds import simulate_triangles as simulate_triangles
    from lapwing.local.heavy_hitters.prefix_extending import PrefixExtending as PrefixExtending
    from lapwing.local.heavy_hitters.prefix_search import FoundWords as FoundWords
    from lapwing.local.heavy_hitters.prefix_search import find_words as find_words
    from lapwing.local.heavy_hitters.sketch_comparison import Compared as Compared
    from lapwing.local.heavy_hitters.sketch_comparison import compare_sketches as compare_sketches
    from lapwing.local.heavy_hitters.sketches import CountMeanSketch as CountMeanSketch
    from lapwing.local.heavy_hitters.sketches import HadamardSketch as HadamardSketch
    from lapwing.local.heavy_hitters.sketches import estimate_sketch as estimate_sketch
    from lapwing.local.joint_estimates import JointEstimate as JointEstimate
    from lapwing.local.joint_estimates import estimate_joint as estimate_joint
    from lapwing.local.longitudinal.dyadic_tree import DyadicTree as DyadicTree
    from lapwing.local.longitudinal.memoised import Memoised as Memoised
    from lapwing.local.longitudinal.memoised import MemoisedUnary as MemoisedUnary
    from lapwing.local.longitudinal.repeated import Repeated as Repeated
    from lapwing.local.longitudinal.repeated import over_days as over_days
    from lapwing.local.longitudinal.repeated import repeated_reports as repeated_reports
    from lapwing.local.longitudinal.tree_estimate import TreeEstimate as TreeEstimate
    from lapwing.local.longitudinal.tree_estimate import estimate_over_time as estimate_over_time
    from lapwing.local.means.duchi import DuchiMean as DuchiMean
    from lapwing.local.means.hybrid import HybridMean as HybridMean
    from lapwing.local.means.mean_estimate import MeanEstimate as MeanEstimate
    from lapwing.local.means.mean_estimate import estimate_mean as estimate_mean
    from lapwing.local.means.mean_randomizer import MeanRandomizer as MeanRandomizer
    from lapwing.local.means.mean_randomizer import Parabola as Parabola
    from lapwing.local.means.mean_randomizer import grid as grid
    from lapwing.local.means.mean_randomizer import on_grid as on_grid
    from lapwing.local.means.piecewise import PiecewiseMean as PiecewiseMean
    from lapwing.local.mechanism import Mechanism as Mechanism
    from lapwing.local.rappor.basic import BasicRappor as BasicRappor
    from lapwing.local.rappor.bit_noise import Noise as Noise
    from lapwing.local.rappor.decoding import decode as decode
    from lapwing.local.rappor.full import Rappor as Rappor
    from lapwing.local.rappor.rappor_estimate import RapporEstimate as RapporEstimate
    from lapwing.local.record_estimates import estimate_record as estimate_record
    from lapwing.local.registry import mean_randomizer_of as mean_randomizer_of
    from lapwing.local.registry import mechanism_of as mechanism_of
    from lapwing.local.registry import randomizer_of as randomizer_of
    from lapwing.local.registry import record_mechanism_of as record_mechanism_of
    from lapwing.local.shuffling.amplification import Amplified as Amplified
    from lapwing.local.shuffling.amplification import amplified_delta as amplified_delta
    from lapwing.local.shuffling.amplification import amplified_epsilon as amplified_epsilon
    from lapwing.local.shuffling.amplification import local_epsilon as local_epsilon
    from lapwing.local.simulation.roads import Simulated as Simulated
    from lapwing.local.simulation.roads import simulate as simulate
    from lapwing.local.simulation.task_reports import simulate_reports as simulate_reports
    from lapwing.local.tasks import new_record_task as new_record_task
    from lapwing.local.tasks import new_task as new_task
    from lapwing.local.tasks import read_task as read_task
    from lapwing.local.tasks import to_toml as to_toml

__all__, __getattr__, __dir__ = exports(
    __name__,
    {
        "advice": (
            "Advice MeanAdvice MeanOption Option advise advise_mean epsilon_needed mean_epsilon_needed "
            "mean_respondents_needed respondents_needed"
        ),
        "attributes": "AllAttributes OneAttribute",
        "collection": "Collected Rejected collect collect_for",
        "frequencies.binary": "BinaryResponse",
        "frequencies.consistency": "Likeliest likeliest",
        "frequencies.frequency_estimate": "FrequencyEstimate estimate",
        "frequencies.hashing": "LocalHashing",
        "frequencies.kary": "KaryResponse",
        "frequencies.randomizer": "Randomizer Rates Transitions",
        "frequencies.subset": "SubsetSelection",
        "frequencies.unary": "UnaryEncoding",
        "graphs.edge_count": "EdgeCount EdgeCountEstimate",
        "graphs.two_rounds": "FirstReport NoisyGraph RoundLoss TrianglesEstimate TwoRoundTriangles simulate_triangles",
        "heavy_hitters.prefix_extending": "PrefixExtending",
        "heavy_hitters.prefix_search": "FoundWords find_words",
        "heavy_hitters.sketch_comparison": "Compared compare_sketches",
        "heavy_hitters.sketches": "CountMeanSketch HadamardSketch estimate_sketch",
        "joint_estimates": "JointEstimate estimate_joint",
        "longitudinal.dyadic_tree": "DyadicTree",
        "longitudinal.memoised": "Memoised MemoisedUnary",
        "longitudinal.repeated": "Repeated over_days repeated_reports",
        "longitudinal.tree_estimate": "TreeEstimate estimate_over_time",
        "means.duchi": "DuchiMean",
        "means.hybrid": "HybridMean",
        "means.mean_estimate": "MeanEstimate estimate_mean",
        "means.mean_randomizer": "MeanRandomizer Parabola grid on_grid",
        "means.piecewise": "PiecewiseMean",
        "mechanism": "Mechanism",
        "rappor.basic": "BasicRappor",
        "rappor.bit_noise": "Noise",
        "rappor.decoding": "decode",
        "rappor.full": "Rappor",
        "rappor.rappor_estimate": "RapporEstimate",
        "record_estimates": "estimate_record",
        "registry": "mean_randomizer_of mechanism_of randomizer_of record_mechanism_of",
        "shuffling.amplification": "Amplified amplified_delta amplified_epsilon local_epsilon",
        "simulation.roads": "Simulated simulate",
        "simulation.task_reports": "simulate_reports",
        "tasks": "new_record_task new_task read_task to_toml",
    },
    modules="client",
)
