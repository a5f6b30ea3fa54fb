"""Tables that are planned, bought and published together.

import lapwing as lw

release = lw.tabulation.TableRelease.from_file("release.toml")
with lw.connect("lapwing.toml") as session:
    plan = lw.tabulation.plan_release(session, release)
"""

from lapwing.tabulation.declaration import Objective, ReleaseTable, TableRelease
from lapwing.tabulation.planning import PlanAlternative, PlannedNumber, PlannedTable, ReleasePlan, plan_release

__all__ = [
    "Objective",
    "PlanAlternative",
    "PlannedNumber",
    "PlannedTable",
    "ReleasePlan",
    "ReleaseTable",
    "TableRelease",
    "plan_release",
]
