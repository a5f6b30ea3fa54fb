"""Lapwing: ask questions of a sensitive table and get noisy answers with proven privacy.

import lapwing as lw

session = lw.connect("lapwing.toml")
answer = session.sql("SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan", epsilon=0.5)
answer = session.table("visits").group_by("plan").agg(n=lw.count()).answer(epsilon=0.5)
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lapwing import lab, local, mechanisms, noise, privacy
    from lapwing.answer import Answer
    from lapwing.budget import BudgetView
    from lapwing.builder.functions import (
        asc,
        cases,
        coalesce,
        corr,
        count,
        count_where,
        cov,
        cube,
        dense_rank,
        desc,
        greatest,
        grouping,
        grouping_sets,
        ifelse,
        least,
        mean,
        median,
        nunique,
        quantile,
        rank,
        rollup,
        row_number,
        std,
        var,
    )
    from lapwing.builder.functions import (
        max as max,
    )
    from lapwing.builder.functions import (
        min as min,
    )
    from lapwing.builder.functions import (
        sum as sum,
    )
    from lapwing.builder.values import col, interval, literal
    from lapwing.client import Pending, RemoteAnswer, RemoteSession
    from lapwing.errors import (
        AllowanceExhausted,
        BudgetExhausted,
        CatalogError,
        CatalogMismatch,
        DataChanged,
        DataFault,
        DataStopped,
        EngineFault,
        EntropyFault,
        Fault,
        Interrupted,
        InvalidParameter,
        KeyConflict,
        LapwingError,
        LedgerFault,
        NotAuthorised,
        NotFound,
        QueryRefused,
        ServiceFault,
        TooManyRequests,
    )
    from lapwing.opening import connect, protect
    from lapwing.preview import Preview
    from lapwing.privacy.measures import (
        ApproxDP,
        ApproximateGaussianDP,
        ApproximateZeroConcentratedDP,
        GaussianDP,
        PureDP,
        ZeroConcentratedDP,
    )
    from lapwing.privacy.renyi import RenyiDP
    from lapwing.session import Session

__version__ = "0.1.0"

# Without those that `from lapwing import *` would put in the place of Python's own: max, min and sum.
__all__ = [
    "AllowanceExhausted",
    "Answer",
    "ApproxDP",
    "ApproximateGaussianDP",
    "ApproximateZeroConcentratedDP",
    "BudgetExhausted",
    "BudgetView",
    "CatalogError",
    "CatalogMismatch",
    "DataChanged",
    "DataFault",
    "DataStopped",
    "EngineFault",
    "EntropyFault",
    "Fault",
    "GaussianDP",
    "Interrupted",
    "InvalidParameter",
    "KeyConflict",
    "LapwingError",
    "LedgerFault",
    "NotAuthorised",
    "NotFound",
    "Pending",
    "Preview",
    "PureDP",
    "QueryRefused",
    "RemoteAnswer",
    "RemoteSession",
    "RenyiDP",
    "ServiceFault",
    "Session",
    "TooManyRequests",
    "ZeroConcentratedDP",
    "asc",
    "cases",
    "coalesce",
    "col",
    "connect",
    "corr",
    "count",
    "count_where",
    "cov",
    "cube",
    "dense_rank",
    "desc",
    "greatest",
    "grouping",
    "grouping_sets",
    "ifelse",
    "interval",
    "lab",
    "least",
    "literal",
    "local",
    "mean",
    "mechanisms",
    "median",
    "noise",
    "nunique",
    "privacy",
    "protect",
    "quantile",
    "rank",
    "rollup",
    "row_number",
    "std",
    "var",
]

_MODULES = ("lab", "local", "mechanisms", "noise", "privacy")
_HOMES = {
    "answer": ("Answer",),
    "client": ("Pending", "RemoteAnswer", "RemoteSession"),
    "preview": ("Preview",),
    "privacy.measures": (
        "ApproxDP",
        "ApproximateGaussianDP",
        "ApproximateZeroConcentratedDP",
        "GaussianDP",
        "PureDP",
        "ZeroConcentratedDP",
    ),
    "privacy.renyi": ("RenyiDP",),
    "budget": ("BudgetView",),
    "magic": ("load_ipython_extension",),
    "opening": ("connect", "protect"),
    "session": ("Session",),
    "builder.functions": (
        "asc",
        "cases",
        "coalesce",
        "corr",
        "count",
        "count_where",
        "cov",
        "cube",
        "dense_rank",
        "desc",
        "greatest",
        "grouping",
        "grouping_sets",
        "ifelse",
        "least",
        "max",
        "mean",
        "median",
        "min",
        "nunique",
        "quantile",
        "rank",
        "rollup",
        "row_number",
        "std",
        "sum",
        "var",
    ),
    "builder.values": ("col", "interval", "literal"),
    "errors": (
        "AllowanceExhausted",
        "BudgetExhausted",
        "CatalogError",
        "CatalogMismatch",
        "DataChanged",
        "DataFault",
        "DataStopped",
        "EngineFault",
        "EntropyFault",
        "Fault",
        "Interrupted",
        "InvalidParameter",
        "KeyConflict",
        "LapwingError",
        "LedgerFault",
        "NotAuthorised",
        "NotFound",
        "QueryRefused",
        "ServiceFault",
        "TooManyRequests",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used (PEP 562), so that `import lapwing` costs nothing."""
    if name in _MODULES:
        return import_module(f"lapwing.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'lapwing' has no attribute {name!r}")
    return getattr(import_module(f"lapwing.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_HOME_OF})
