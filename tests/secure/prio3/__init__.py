"""Prio3 against its vectors, and around them."""

import json
from pathlib import Path
from typing import Any

from lapwing.secure.prio3.circuits import Circuit, CountCircuit, HistogramCircuit, SumCircuit, SumVecCircuit
from lapwing.secure.prio3.prio3 import Prio3

FOLDER = Path(__file__).parents[2] / "fixtures" / "secure" / "prio3"


def vector(name: str) -> dict[str, Any]:
    """Return a vector as its file has it."""
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def circuit_of(name: str, found: dict[str, Any]) -> Circuit:
    """Return the circuit that a vector is for."""
    match name.split("_")[0].removeprefix("Prio3"):
        case "Count":
            return CountCircuit()
        case "Sum":
            return SumCircuit(found["max_measurement"])
        case "SumVec":
            return SumVecCircuit(found["length"], found["max_measurement"], found["chunk_length"])
        case "Histogram":
            return HistogramCircuit(found["length"], found["chunk_length"])
    raise AssertionError(name)


def prio3_of(name: str, found: dict[str, Any]) -> Prio3:
    """Return what a vector is of."""
    return Prio3(circuit=circuit_of(name, found), context=bytes.fromhex(found["ctx"]), servers=found["shares"])
