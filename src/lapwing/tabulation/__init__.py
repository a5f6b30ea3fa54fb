"""Tables that are planned, bought and published together.

import lapwing as lw

release = lw.tabulation.TableRelease.from_file("release.toml")
with lw.connect("lapwing.toml") as session:
    plan = lw.tabulation.plan_release(session, release)  # free
    lw.tabulation.run_release(session, release).write("published")  # charged, once
"""

from lapwing.tabulation.advice import TableSaving, UnreliableTable, savings, unreliable_tables
from lapwing.tabulation.budget_plan import (
    BudgetEntry,
    BudgetPlan,
    BudgetPlanEntry,
    entries_from_file,
    plan_budget,
)
from lapwing.tabulation.cell_errors import CellErrors
from lapwing.tabulation.comparison_document import comparison_document
from lapwing.tabulation.declaration import (
    Adjustment,
    FileFormat,
    Objective,
    ReleaseTable,
    TableRelease,
    UnreliableCells,
)
from lapwing.tabulation.hierarchy import Hierarchy, all_margins_of
from lapwing.tabulation.incomplete_keys import IncompleteKeys
from lapwing.tabulation.method_report import method_report
from lapwing.tabulation.period_comparison import (
    CellChange,
    CombinedPromise,
    NumberChanges,
    changes_between,
    combined_promise,
)
from lapwing.tabulation.plan_document import plan_document
from lapwing.tabulation.planning import PlanAlternative, PlannedNumber, PlannedTable, ReleasePlan, plan_release
from lapwing.tabulation.public_totals import PublicTotal
from lapwing.tabulation.published import PublishedFigure, PublishedNumber, PublishedRelease
from lapwing.tabulation.rehearsal import Rehearsal, RehearsedNumber, rehearse_release
from lapwing.tabulation.running import ReleasedTable, ReleasedTables, require_new, run_release
from lapwing.tabulation.signing import SigningKey, faults_of, unlisted_files

__all__ = [
    "Adjustment",
    "BudgetEntry",
    "BudgetPlan",
    "BudgetPlanEntry",
    "CellChange",
    "CellErrors",
    "CombinedPromise",
    "FileFormat",
    "Hierarchy",
    "IncompleteKeys",
    "NumberChanges",
    "Objective",
    "PlanAlternative",
    "PlannedNumber",
    "PlannedTable",
    "PublicTotal",
    "PublishedFigure",
    "PublishedNumber",
    "PublishedRelease",
    "Rehearsal",
    "RehearsedNumber",
    "ReleasePlan",
    "ReleaseTable",
    "ReleasedTable",
    "ReleasedTables",
    "SigningKey",
    "TableRelease",
    "TableSaving",
    "UnreliableCells",
    "UnreliableTable",
    "all_margins_of",
    "changes_between",
    "combined_promise",
    "comparison_document",
    "entries_from_file",
    "faults_of",
    "method_report",
    "plan_budget",
    "plan_document",
    "plan_release",
    "rehearse_release",
    "require_new",
    "run_release",
    "savings",
    "unlisted_files",
    "unreliable_tables",
]
