"""Models of protected tables, charged to the same ledger as questions, with exact noise.

Estimators have scikit-learn's manners, but for one: `fit` takes a session, a table, columns and a price in the place of
rows. A name is imported when it is first used (PEP 562).
"""

from typing import TYPE_CHECKING

from lapwing.machine.exports import exports

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

__all__, __getattr__, __dir__ = exports(
    __name__,
    {
        "additive": "AdditiveModel",
        "kmeans": "KMeans",
        "linear": "LinearRegression Ridge",
        "logistic": "LogisticRegression",
        "model_selection": "ModelSelection",
        "naive_bayes": "CategoricalNB GaussianNB",
        "opacus_accountant": "OpacusAccountant",
        "pate": "PATE",
        "pca": "PCA",
        "scaling": "StandardScaler",
        "scoring": "Score score",
        "select_features": "SelectKBest",
        "tree": "DecisionTree",
    },
)
