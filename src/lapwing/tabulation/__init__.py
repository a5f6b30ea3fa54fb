"""Tables that are planned, bought and published together.

import lapwing as lw

release = lw.tabulation.TableRelease.from_file("release.toml")
with lw.connect("lapwing.toml") as session:
    plan = lw.tabulation.plan_release(session, release)  # free
    lw.tabulation.run_release(session, release).write("published")  # charged, once
"""

from lapwing.tabulation.declaration import FileFormat, Objective, ReleaseTable, TableRelease, UnreliableCells
from lapwing.tabulation.planning import PlanAlternative, PlannedNumber, PlannedTable, ReleasePlan, plan_release
from lapwing.tabulation.running import ReleasedTable, ReleasedTables, require_new, run_release
from lapwing.tabulation.signing import SigningKey, faults_of

__all__ = [
    "FileFormat",
    "Objective",
    "PlanAlternative",
    "PlannedNumber",
    "PlannedTable",
    "ReleasePlan",
    "ReleaseTable",
    "ReleasedTable",
    "ReleasedTables",
    "SigningKey",
    "TableRelease",
    "UnreliableCells",
    "faults_of",
    "plan_release",
    "require_new",
    "run_release",
]
