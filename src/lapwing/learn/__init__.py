"""Models of protected tables, charged to the same ledger as questions, with exact noise.

Estimators have scikit-learn's manners, but for one: `fit` takes a session, a table, columns and a price in the place of
rows. A name is imported when it is first used (PEP 562).
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lapwing.learn.additive import AdditiveModel as AdditiveModel
    from lapwing.learn.kmeans import KMeans as KMeans
    from lapwing.learn.linear import LinearRegression as LinearRegression
    from lapwing.learn.linear import Ridge as Ridge
    from lapwing.learn.logistic import LogisticRegression as LogisticRegression
    from lapwing.learn.model_selection import ModelSelection as ModelSelection
    from lapwing.learn.naive_bayes import CategoricalNB as CategoricalNB
    from lapwing.learn.naive_bayes import GaussianNB as GaussianNB
    from lapwing.learn.opacus_accountant import OpacusAccountant as OpacusAccountant
    from lapwing.learn.pate import PATE as PATE
    from lapwing.learn.pca import PCA as PCA
    from lapwing.learn.scaling import StandardScaler as StandardScaler
    from lapwing.learn.scoring import Score as Score
    from lapwing.learn.scoring import score as score
    from lapwing.learn.select_features import SelectKBest as SelectKBest
    from lapwing.learn.tree import DecisionTree as DecisionTree

_HOMES = {
    "AdditiveModel": "additive",
    "CategoricalNB": "naive_bayes",
    "GaussianNB": "naive_bayes",
    "DecisionTree": "tree",
    "KMeans": "kmeans",
    "LinearRegression": "linear",
    "LogisticRegression": "logistic",
    "ModelSelection": "model_selection",
    "OpacusAccountant": "opacus_accountant",
    "PATE": "pate",
    "PCA": "pca",
    "Ridge": "linear",
    "Score": "scoring",
    "SelectKBest": "select_features",
    "StandardScaler": "scaling",
    "score": "scoring",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'lapwing.learn' has no attribute {name!r}")
    return getattr(import_module(f"lapwing.learn.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
