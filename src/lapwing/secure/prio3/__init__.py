"""Prio3 of the IETF's draft on verifiable distributed aggregation, checked against its vectors.

The version is draft-irtf-cfrg-vdaf-20. docs/reference/secure.md lists the names.
"""

from lapwing.secure.prio3.circuits import CountCircuit, HistogramCircuit, SumCircuit, SumVecCircuit
from lapwing.secure.prio3.prio3 import Prio3, Prio3Report, Verification
from lapwing.secure.prio3.proofs import soundness_error
from lapwing.secure.prio3.server import Prio3Server
from lapwing.secure.prio3.task import Prio3Task

__all__ = [
    "CountCircuit",
    "HistogramCircuit",
    "Prio3",
    "Prio3Report",
    "Prio3Server",
    "Prio3Task",
    "SumCircuit",
    "SumVecCircuit",
    "Verification",
    "soundness_error",
]
