"""Models of diffprivlib, fit and scored in its own environment: what `learning.py` asks for, as JSON.

The request names a file of arrays (scaled features and a target, to train and to test), an ε and repetitions. Of
clusters and principal components it tells what they are, not a score.
"""

import importlib
import json
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

warnings.simplefilter("ignore")  # of accountants and of convergence: the figures say what came out
models: Any = importlib.import_module("diffprivlib.models")


def fits(width: int, epsilon: float, target: str) -> Iterator[tuple[str, Any]]:
    """Return the models of classes, or those of a number."""
    low, high = np.full(width, -1.0), np.full(width, 1.0)
    classes = {"bounds": (low, high), "classes": np.array([0, 1]), "max_depth": 4}
    if target == "number":
        yield "linear regression", models.LinearRegression(epsilon=epsilon, bounds_X=(low, high), bounds_y=(-1.0, 1.0))
        return
    yield (
        "logistic regression",
        models.LogisticRegression(epsilon=epsilon, data_norm=float(np.sqrt(width)), max_iter=500),
    )
    yield "naive Bayes", models.GaussianNB(epsilon=epsilon, bounds=(low, high))
    yield "tree", models.RandomForestClassifier(n_estimators=1, epsilon=epsilon, **classes)
    yield "forest of ten trees", models.RandomForestClassifier(n_estimators=10, epsilon=epsilon, **classes)


def found(width: int, epsilon: float) -> Iterator[tuple[str, Any, str]]:
    """Return the models that have no target, and where they keep what they found."""
    low, high = np.full(width, -1.0), np.full(width, 1.0)
    yield "clusters", models.KMeans(n_clusters=3, epsilon=epsilon, bounds=(low, high)), "cluster_centers_"
    norm = float(np.sqrt(width))
    peer = models.PCA(n_components=2, epsilon=epsilon, data_norm=norm, bounds=(low, high))
    yield "principal components", peer, "components_"


def main() -> None:
    request: Any = json.loads(sys.argv[1])
    with np.load(request["file"]) as arrays:
        x, y, x_test, y_test = (arrays[name] for name in ("x", "y", "x_test", "y_test"))
    scores: dict[str, list[Any]] = {}
    for _ in range(request["repetitions"]):
        for name, model in fits(x.shape[1], request["epsilon"], request["target"]):
            model.fit(x, y)
            scores.setdefault(name, []).append(float(model.score(x_test, y_test)))
        if request["target"] == "class":
            for name, model, place in found(x.shape[1], request["epsilon"]):
                scores.setdefault(name, []).append(np.asarray(getattr(model.fit(x), place)).tolist())
    print(json.dumps(scores))


main()
