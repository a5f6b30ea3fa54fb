"""Lapwing: ask questions of a sensitive table and get noisy answers with proven privacy.

import lapwing as lw

session = lw.connect("lapwing.toml")
answer = session.sql("SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan", epsilon=0.5)
answer = session.table("visits").group_by("plan").agg(n=lw.count()).answer(epsilon=0.5)
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lapwing import lab as lab
    from lapwing import local as local
    from lapwing import mechanisms as mechanisms
    from lapwing import noise as noise
    from lapwing import privacy as privacy
    from lapwing.answer import Answer as Answer
    from lapwing.budget import BudgetView as BudgetView
    from lapwing.builder.functions import asc as asc
    from lapwing.builder.functions import cases as cases
    from lapwing.builder.functions import coalesce as coalesce
    from lapwing.builder.functions import corr as corr
    from lapwing.builder.functions import count as count
    from lapwing.builder.functions import count_where as count_where
    from lapwing.builder.functions import cov as cov
    from lapwing.builder.functions import cube as cube
    from lapwing.builder.functions import dense_rank as dense_rank
    from lapwing.builder.functions import desc as desc
    from lapwing.builder.functions import greatest as greatest
    from lapwing.builder.functions import grouping as grouping
    from lapwing.builder.functions import grouping_sets as grouping_sets
    from lapwing.builder.functions import ifelse as ifelse
    from lapwing.builder.functions import least as least
    from lapwing.builder.functions import max as max
    from lapwing.builder.functions import mean as mean
    from lapwing.builder.functions import median as median
    from lapwing.builder.functions import min as min
    from lapwing.builder.functions import nunique as nunique
    from lapwing.builder.functions import quantile as quantile
    from lapwing.builder.functions import rank as rank
    from lapwing.builder.functions import rollup as rollup
    from lapwing.builder.functions import row_number as row_number
    from lapwing.builder.functions import std as std
    from lapwing.builder.functions import sum as sum
    from lapwing.builder.functions import var as var
    from lapwing.builder.values import col as col
    from lapwing.builder.values import interval as interval
    from lapwing.builder.values import literal as literal
    from lapwing.client import Pending as Pending
    from lapwing.client import RemoteAnswer as RemoteAnswer
    from lapwing.client import RemoteSession as RemoteSession
    from lapwing.errors import AllowanceExhausted as AllowanceExhausted
    from lapwing.errors import AnswerDropped as AnswerDropped
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
    from lapwing.preview import Preview as Preview
    from lapwing.privacy.measures import ApproxDP as ApproxDP
    from lapwing.privacy.measures import ApproximateGaussianDP as ApproximateGaussianDP
    from lapwing.privacy.measures import ApproximateZeroConcentratedDP as ApproximateZeroConcentratedDP
    from lapwing.privacy.measures import GaussianDP as GaussianDP
    from lapwing.privacy.measures import PureDP as PureDP
    from lapwing.privacy.measures import ZeroConcentratedDP as ZeroConcentratedDP
    from lapwing.privacy.renyi import RenyiDP as RenyiDP
    from lapwing.session import Session as Session

__version__ = "0.1.0"

_MODULES = ("lab", "local", "mechanisms", "noise", "privacy")
_HOMES = {
    "answer": "Answer",
    "client": "Pending RemoteAnswer RemoteSession",
    "preview": "Preview",
    "privacy.measures": (
        "ApproxDP ApproximateGaussianDP ApproximateZeroConcentratedDP GaussianDP PureDP ZeroConcentratedDP"
    ),
    "privacy.renyi": "RenyiDP",
    "budget": "BudgetView",
    "magic": "load_ipython_extension",
    "opening": "connect protect",
    "session": "Session",
    "builder.functions": (
        "asc cases coalesce corr count count_where cov cube dense_rank desc greatest grouping grouping_sets "
        "ifelse least max mean median min nunique quantile rank rollup row_number std sum var"
    ),
    "builder.values": "col interval literal",
    "errors": (
        "AllowanceExhausted AnswerDropped BudgetExhausted CatalogError CatalogMismatch DataChanged DataFault "
        "DataStopped EngineFault EntropyFault Fault Interrupted InvalidParameter KeyConflict LapwingError LedgerFault "
        "NotAuthorised NotFound QueryRefused ServiceFault TooManyRequests"
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

# Without those that `from lapwing import *` would put in the place of Python's own, and what notebooks call by itself.
__all__ = sorted({*_MODULES, *_HOME_OF} - {"load_ipython_extension", "max", "min", "sum"})


def __getattr__(name: str) -> object:
    """Import a public name when it is first used (PEP 562), so that `import lapwing` costs nothing."""
    if name in _MODULES:
        return import_module(f"lapwing.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'lapwing' has no attribute {name!r}")
    return getattr(import_module(f"lapwing.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_HOME_OF})
