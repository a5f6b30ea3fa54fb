"""Synthetic tables: rows that nobody has, drawn from tables that were measured with noise, chosen by AIM or MST.

import lapwing as lw

session = lw.connect("lapwing.toml")
synthetic = session.synthesize(["age", "plan", "ill"], epsilon=1)

It needs the extra `synthesis` (mbi, with JAX), which nothing else imports.
"""

from lapwing.synthesis.asking import SynthesisOptions, synthesize
from lapwing.synthesis.synthetic_table import MarginalReport, SyntheticTable, WorkloadError

__all__ = ["MarginalReport", "SynthesisOptions", "SyntheticTable", "WorkloadError", "synthesize"]
