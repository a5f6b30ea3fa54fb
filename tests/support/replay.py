"""Neighbour replay: ask the same question of two neighbouring tables and compare everything but the noise.

What an analyst can see may depend on private rows only through the inputs of mechanisms, and those may differ by no
more than the declared sensitivities. A replay runs the real path (bind, calibrate, engine, ledger, release, answer)
twice. The first run records each mechanism's input and output; the second, on the neighbour, gets the recorded outputs
back. Then SQL text, plan, price, mechanisms, ledger, rows, order, intervals and errors must be equal, and the inputs
close. Tables are bags: the neighbour's rows come in another order. Of private keys, what was selected is put back;
what a selection is given has tests of its own (`test_linked_fuzz`, `test_one_noise`).

To extend it: add a column to `CATALOG` and `rows`, or a shape to `strategies.questions`. Questions across several
tables are replayed on `Data`, as `query.shop` draws it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.answer import Answer
from lapwing.catalog.model import Catalog
from lapwing.engines.duckdb import engine as duckdb_engine
from lapwing.engines.duckdb import held_keys, leaves, queries, stored_rows
from lapwing.engines.duckdb.index import SUFFIX
from lapwing.engines.spark import cleaned as spark_cleaned
from lapwing.engines.spark import queries as spark_queries
from lapwing.exact.entropy import SystemEntropy
from lapwing.mechanisms import GeneralisedExponential
from lapwing.mechanisms.first_of_thresholds import FirstOfThresholds, Threshold
from lapwing.mechanisms.largest_cells import LargestCells
from lapwing.mechanisms.quantile_of_counts import QuantileOfCounts
from lapwing.mechanisms.quantiles_of_counts import QuantilesOfCounts
from lapwing.opening import open_session
from lapwing.query.measures.distribution import Distribution
from lapwing.query.pricing.quote import NoisyMeasure
from lapwing.release import release as release_module
from lapwing.release import workloads
from lapwing.session import Session
from tests.support.engines.reused import reusing

Row = dict[str, Any]

SCHEMA = pa.schema(
    [
        ("person", pa.int64()),
        ("plan", pa.string()),
        ("member", pa.bool_()),
        ("age", pa.int32()),
        ("cost", pa.float64()),
        ("score", pa.int64()),
        ("note", pa.string()),
        ("day", pa.date32()),
        ("pay", pa.decimal128(12, 2)),
        ("seen", pa.timestamp("us")),
    ]
)


@dataclass
class Seen:
    """What one run shows (everything outside the mechanisms) and what its mechanisms were given.

    `outputs` are those of each time that noise was added: a question whose bounds are found adds some more than once.
    `choices` are those among measures, as a level is chosen; `selected` are keys, and answers that come whole.
    """

    shown: dict[str, Any] = field(default_factory=dict)
    terms: list[NoisyMeasure] = field(default_factory=list)
    inputs: list[list[int]] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    choices: list["Chosen"] = field(default_factory=list)
    selected: list[Any] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """What a choice among measures was given, and what it chose."""

    sensitivities: tuple[int, ...]
    scores: tuple[int, ...]
    place: int


PRINTERS = (
    (duckdb_engine, "layer"),
    (stored_rows, "layer"),
    (duckdb_engine, "public_layer"),
    (queries, "answer"),
    (held_keys, "holders"),
    (leaves, "leaves"),
    (spark_cleaned, "rows_of"),
    (spark_queries, "answer"),
    (spark_queries, "holders"),
    (spark_queries, "leaves"),
)
"""What prints the SQL of either engine."""


def write(rows: Sequence[Row], path: Path, schema: pa.Schema = SCHEMA) -> None:
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), path)


@contextmanager
def watching(seen: Seen, replayed: Seen | None) -> Iterator[None]:
    """Record SQL texts and mechanism inputs; with a recording, put its outputs in the place of fresh ones."""
    add_noise, choose = release_module.add_noise, GeneralisedExponential.release
    released_together, numbered = workloads.released_together, workloads._numbered
    texts: list[str] = []

    def noisy(terms: Any, sums: Any, entropy: Any) -> Any:
        seen.terms += terms
        seen.inputs += [[int(value) for value in np.ravel(values)] for values in sums]
        recorded = replayed.outputs[len(seen.outputs)] if replayed is not None else None
        seen.outputs.append(recorded if recorded is not None else add_noise(terms, sums, entropy))
        return seen.outputs[-1]

    def chosen(mechanism: GeneralisedExponential, scores: Any, entropy: Any) -> int:
        recorded = replayed.choices[len(seen.choices)].place if replayed is not None else None
        place = recorded if recorded is not None else choose(mechanism, scores, entropy)
        whole = tuple(map(int, scores))
        seen.choices.append(Chosen(sensitivities=mechanism.sensitivities, scores=whole, place=place))
        return place

    def whole(release: Callable[..., Any]) -> Callable[..., Any]:
        def again(*arguments: Any) -> Any:
            recorded = replayed.selected[len(seen.selected)] if replayed is not None else None
            fresh = release(*arguments)
            seen.selected.append(fresh if recorded is None else recorded)
            return seen.selected[-1]

        return again

    def together(lists: Any, buying: Any, *rest: Any) -> Any:
        def noted(place: int, sums: Any) -> Any:
            seen.terms.extend(buying[place].bought.terms)
            seen.inputs.extend([int(value) for value in np.ravel(values)] for values in sums)
            return numbered(place, sums)

        with patch.object(workloads, "_numbered", noted):
            return whole(released_together)(lists, buying, *rest)

    def printed(printer: Callable[..., str]) -> Callable[..., str]:
        def show(*arguments: Any) -> str:
            texts.append(printer(*arguments))
            return texts[-1]

        return show

    with ExitStack() as patches:
        patches.enter_context(patch.object(release_module, "add_noise", noisy))
        patches.enter_context(patch.object(GeneralisedExponential, "release", chosen))
        patches.enter_context(patch.object(workloads, "released_together", together))
        for name in ("selected_keys", "selected_by_counts"):
            patches.enter_context(patch.object(release_module, name, whole(vars(release_module)[name])))
        for place, name in PRINTERS:
            patches.enter_context(patch.object(place, name, printed(vars(place)[name])))
        yield
    seen.shown["sql"] = [text.replace(str(seen.shown.get("folder", "")), "") for text in texts]


@dataclass(frozen=True, kw_only=True)
class Data:
    """The rows of tables, by the names of their files, and what columns they have."""

    rows: Mapping[str, Sequence[Row]]
    schemas: Mapping[str, pa.Schema]


@dataclass(frozen=True)
class Batch:
    """Questions that are asked together."""

    texts: tuple[str, ...]


Rows = Sequence[Row] | Data
Question = str | Batch
Questions = Question | Sequence[Question]


def run(catalog: Catalog, rows: Rows, question: Questions, ask: dict[str, Any], replayed: Seen | None = None) -> Seen:
    """Ask questions of one table, or of several, in a fresh folder, and return everything that can be seen."""
    seen = Seen()
    data = rows if isinstance(rows, Data) else Data(rows={"visits": rows}, schemas={"visits": SCHEMA})
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.db.mark"):
        (catalog.folder / name).unlink(missing_ok=True)
    for index in catalog.folder.glob(f"*{SUFFIX}*"):  # that enough questions before made of the same rows
        index.unlink()
    for name, schema in data.schemas.items():
        write(data.rows[name], catalog.folder / f"{name}.parquet", schema)
    with reusing(), open_session(catalog, entropy=SystemEntropy()) as session, watching(seen, replayed):
        if isinstance(question, Question):
            seen.shown |= _ask(session, question, ask)
        else:
            for place, one in enumerate(question):
                seen.shown |= {f"{place} {name}": shown for name, shown in _ask(session, one, ask).items()}
    return seen


def _ask(session: Session, question: Question, ask: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    try:
        if isinstance(question, str):
            shown["preview"] = session.explain(question, **ask)
            shown |= _shown(session.sql(question, **ask))
            shown["again"] = session.sql(question, **ask).rows()
        else:
            for place, answer in enumerate(session.batch(question.texts, **ask)):
                shown |= {f"{place} {name}": what for name, what in _shown(answer).items()}
            shown["again"] = [answer.rows() for answer in session.batch(question.texts, **ask)]
    except Exception as error:  # a crash is as visible as a refusal
        shown["error"] = (type(error), str(error))
    budget = session.budget()
    shown["budget"] = (budget.spent, budget.remaining, [(h.sequence, h.question, h.loss) for h in budget.history])
    shown["version"] = budget.version
    return shown


def _shown(answer: Answer) -> dict[str, Any]:
    """Return everything that an answer shows."""
    return {
        "rows": answer.rows(),
        "intervals": {name: [list(map(str, end)) for end in ends] for name, ends in answer.interval().items()},
        "arrow": answer.to_arrow(confidence=0.9).to_pydict(),
        "html": answer._repr_html_(),
        "facts": answer.describe(),
        "cost": answer.cost,
        "notes": answer.notes,
        "mechanisms": dict(answer.mechanisms),
    }


def violations(first: Seen, second: Seen) -> list[str]:
    """Return what tells the two runs apart beyond what the guarantee allows."""
    keys = sorted({*first.shown, *second.shown})
    found = [f"{k}: {first.shown.get(k)} / {second.shown.get(k)}" for k in keys if _differ(first, second, k)]
    if any(len(ours) != len(theirs) for ours, theirs in zip(_mechanisms(first), _mechanisms(second), strict=True)):
        return [*found, "different numbers of mechanisms"]
    for ours, theirs in zip(first.choices, second.choices, strict=True):
        apart = [abs(x - y) for x, y in zip(ours.scores, theirs.scores, strict=True)]
        if any(distance > most for distance, most in zip(apart, ours.sensitivities, strict=True)):
            found.append(f"scores moved by {apart}, allowed {ours.sensitivities}")
    for term, one, other in zip(first.terms, first.inputs, second.inputs, strict=True):
        if len(one) != len(other):
            found.append(f"{term.measure}: {len(one)} cells / {len(other)} cells")
            continue
        moved = [abs(x - y) for x, y in zip(counted(term, one), counted(term, other), strict=True)]
        allowed = term.candidate.sensitivity
        if isinstance(term.mechanism, LargestCells):
            shift = [x - y for x, y in zip(one, other, strict=True)]
            if max(shift) - min(shift) > allowed.l1:
                found.append(f"{term.measure}: moved by {shift}, and differences by more than {allowed.l1}")
        elif sum(moved) > allowed.l1 or sum(d * d for d in moved) > allowed.l2_squared:
            found.append(f"{term.measure}: moved by {moved}, allowed {allowed}")
    return [*found, *_turned(first, second)]


def _turned(first: Seen, second: Seen) -> list[str]:
    """Return which numbers move towards and away from their thresholds, though all are said to move one way."""
    ways: dict[tuple[Threshold, ...], set[bool]] = {}
    for term, one, other in zip(first.terms, first.inputs, second.inputs, strict=True):
        law = term.mechanism
        if isinstance(law, FirstOfThresholds) and law.one_way and one != other:
            ways.setdefault(law.thresholds, set()).add((one > other) == law.thresholds[law.place].at_least)
    return [f"{thresholds}: numbers moved both ways" for thresholds, seen in ways.items() if len(seen) > 1]


def _mechanisms(seen: Seen) -> tuple[list[Any], ...]:
    return seen.inputs, seen.choices, seen.selected


def counted(term: NoisyMeasure, values: Sequence[int]) -> Sequence[int]:
    """Return what a mechanism looks at: of trees, of which it chooses quantiles, the leaves alone."""
    mechanism, measure = term.mechanism, term.measure
    if not isinstance(mechanism, QuantileOfCounts | QuantilesOfCounts) or not isinstance(measure, Distribution):
        return values
    trees = np.array(values, dtype=object).reshape(-1, sum(measure.sizes))
    leaves: list[int] = trees[:, -mechanism.points :].reshape(-1).tolist()
    return leaves


def _differ(first: Seen, second: Seen, key: str) -> bool:
    return repr(first.shown.get(key)) != repr(second.shown.get(key))


def compare(catalog: Catalog, rows: Rows, neighbour: Rows, question: Questions, ask: dict[str, Any]) -> list[str]:
    """Replay questions on two tables, or on two times several, and return the violations."""
    recorded = run(catalog, rows, question, ask)
    return violations(recorded, run(catalog, neighbour, question, ask, replayed=recorded))


def with_budget(catalog: Catalog, **changes: Any) -> Catalog:
    return replace(catalog, budget=replace(catalog.budget, **changes))
