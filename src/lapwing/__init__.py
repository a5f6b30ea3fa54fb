"""Lapwing: ask questions of a sensitive table and get noisy answers with proven privacy.

import lapwing as lw

session = lw.connect("lapwing.toml")
answer = session.sql("SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan", epsilon=0.5)
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lapwing import mechanisms, noise, privacy
    from lapwing.answer import Answer
    from lapwing.errors import (
        BudgetExhausted,
        CatalogError,
        CatalogMismatch,
        DataChanged,
        DataFault,
        EngineFault,
        EntropyFault,
        Fault,
        Interrupted,
        InvalidParameter,
        LapwingError,
        LedgerFault,
        QueryRefused,
    )
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
    from lapwing.session import BudgetView, Session, connect, protect

__version__ = "0.1.0"

__all__ = [
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
    "EngineFault",
    "EntropyFault",
    "Fault",
    "GaussianDP",
    "Interrupted",
    "InvalidParameter",
    "LapwingError",
    "LedgerFault",
    "Preview",
    "PureDP",
    "QueryRefused",
    "RenyiDP",
    "Session",
    "ZeroConcentratedDP",
    "connect",
    "mechanisms",
    "noise",
    "privacy",
    "protect",
]

_MODULES = ("mechanisms", "noise", "privacy")
_HOMES = {
    "answer": ("Answer",),
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
    "session": ("BudgetView", "Session", "connect", "protect"),
    "errors": (
        "BudgetExhausted",
        "CatalogError",
        "CatalogMismatch",
        "DataChanged",
        "DataFault",
        "EngineFault",
        "EntropyFault",
        "Fault",
        "Interrupted",
        "InvalidParameter",
        "LapwingError",
        "LedgerFault",
        "QueryRefused",
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
    return sorted({*globals(), *__all__})
