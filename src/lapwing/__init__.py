"""Lapwing: ask questions of a sensitive table and get noisy answers with proven privacy.

import lapwing as lw

session = lw.connect("lapwing.toml")
answer = session.sql("SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan", epsilon=0.5)
"""

from importlib import import_module
from typing import TYPE_CHECKING

from lapwing.installation import DISTRIBUTION as DISTRIBUTION

if TYPE_CHECKING:
    from lapwing import generalisation as generalisation
    from lapwing import graphs as graphs
    from lapwing import holdout as holdout
    from lapwing import lab as lab
    from lapwing import learn as learn
    from lapwing import local as local
    from lapwing import mechanisms as mechanisms
    from lapwing import monitors as monitors
    from lapwing import noise as noise
    from lapwing import privacy as privacy
    from lapwing import synthesis as synthesis
    from lapwing import tabulation as tabulation
    from lapwing.answer import Answer as Answer
    from lapwing.budget import BudgetView as BudgetView
    from lapwing.client import Pending as Pending
    from lapwing.client import RemoteAnswer as RemoteAnswer
    from lapwing.client import RemoteSession as RemoteSession
    from lapwing.errors import AllowanceExhausted as AllowanceExhausted
    from lapwing.errors import AnswerDropped as AnswerDropped
    from lapwing.errors import AnswerFault as AnswerFault
    from lapwing.errors import BudgetExhausted as BudgetExhausted
    from lapwing.errors import CatalogError as CatalogError
    from lapwing.errors import CatalogMismatch as CatalogMismatch
    from lapwing.errors import DataChanged as DataChanged
    from lapwing.errors import DataFault as DataFault
    from lapwing.errors import DataStopped as DataStopped
    from lapwing.errors import EngineFault as EngineFault
    from lapwing.errors import EntropyFault as EntropyFault
    from lapwing.errors import Fault as Fault
    from lapwing.errors import Interrupted as Interrupted
    from lapwing.errors import InvalidParameter as InvalidParameter
    from lapwing.errors import KeyConflict as KeyConflict
    from lapwing.errors import LapwingError as LapwingError
    from lapwing.errors import LedgerFault as LedgerFault
    from lapwing.errors import NotAuthorised as NotAuthorised
    from lapwing.errors import NotFound as NotFound
    from lapwing.errors import QueryRefused as QueryRefused
    from lapwing.errors import ServiceFault as ServiceFault
    from lapwing.errors import TooManyRequests as TooManyRequests
    from lapwing.opening import connect as connect
    from lapwing.opening import protect as protect
    from lapwing.opening import refresh_data as refresh_data
    from lapwing.preview import Preview as Preview
    from lapwing.privacy.measures import ApproxDP as ApproxDP
    from lapwing.privacy.measures import ApproximateGaussianDP as ApproximateGaussianDP
    from lapwing.privacy.measures import ApproximateZeroConcentratedDP as ApproximateZeroConcentratedDP
    from lapwing.privacy.measures import GaussianDP as GaussianDP
    from lapwing.privacy.measures import PureDP as PureDP
    from lapwing.privacy.measures import ZeroConcentratedDP as ZeroConcentratedDP
    from lapwing.privacy.renyi import RenyiDP as RenyiDP
    from lapwing.session import Session as Session

__version__ = "0.2.0.dev0"

_MODULES = (
    "generalisation",
    "graphs",
    "holdout",
    "lab",
    "learn",
    "local",
    "mechanisms",
    "monitors",
    "noise",
    "privacy",
    "synthesis",
    "tabulation",
)
_HOMES = {
    "answer": "Answer",
    "client": "Pending RemoteAnswer RemoteSession",
    "preview": "Preview",
    "privacy.measures": (
        "ApproxDP ApproximateGaussianDP ApproximateZeroConcentratedDP GaussianDP PureDP ZeroConcentratedDP"
    ),
    "privacy.renyi": "RenyiDP",
    "budget": "BudgetView",
    "cli.magic": "load_ipython_extension",
    "opening": "connect protect refresh_data",
    "session": "Session",
    "errors": (
        "AllowanceExhausted AnswerDropped AnswerFault BudgetExhausted CatalogError CatalogMismatch DataChanged "
        "DataFault DataStopped EngineFault EntropyFault Fault Interrupted InvalidParameter KeyConflict LapwingError "
        "LedgerFault NotAuthorised NotFound QueryRefused ServiceFault TooManyRequests"
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = sorted({*_MODULES, *_HOME_OF} - {"load_ipython_extension"})  # which notebooks call by themselves


def __getattr__(name: str) -> object:
    """Import a public name when it is first used (PEP 562), so that `import lapwing` costs nothing."""
    if name in _MODULES:
        return import_module(f"lapwing.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'lapwing' has no attribute {name!r}")
    return getattr(import_module(f"lapwing.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_HOME_OF})
