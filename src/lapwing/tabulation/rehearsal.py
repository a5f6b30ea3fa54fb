"""Rehearse a release: run it several times on data that are not protected, and compare its errors with the plan.

The data are a stand-in of the same shape (`stand_in`), or an earlier release, whose published numbers are taken for the
truth. Each repetition has noise of its own from the operating system.

Guarantee:
    No protected row is read, so it is free. A rehearsal shows facts of the stand-in, or of what was published.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.machine import progress
from lapwing.privacy.measures import GaussianDP, PureDP, ZeroConcentratedDP
from lapwing.query.derivation.derived import measures_of
from lapwing.tabulation.adjusted_columns import SUFFIX
from lapwing.tabulation.cell_errors import CellErrors, Floats, Truths
from lapwing.tabulation.declaration import TableRelease, UnreliableCells
from lapwing.tabulation.planning import UNRELIABLE, PlannedNumber, ReleasePlan, plan_release, prepared
from lapwing.tabulation.published import PublishedNumber, PublishedRelease
from lapwing.tabulation.running import ReleasedTables, bought, marked
from lapwing.tabulation.stand_in import StandIn, stand_in

if TYPE_CHECKING:
    import pyarrow as pa

    from lapwing.answer import Answer
    from lapwing.session import Session

TIMES: Final = 20
MOST_TIMES: Final = 1_000
WITHOUT_NOISE: Final = {PureDP.kind: 2**16, GaussianDP.kind: 10**7, ZeroConcentratedDP.kind: 10**7}
"""The cost, as epsilon, of the numbers that errors are measured from. A release that costs up to 10 has more than a
thousand times their noise. Mostly they have none."""
Keys = tuple[object, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsedNumber:
    """The errors of one number in a rehearsal.

    Args:
        planned: As the plan has it.
        is_adjusted: Whether these are the errors of its adjusted numbers.
        unreliable: The part of cells that were marked as unreliable.
        missing: The part of cells that were not released, as their private keys were not chosen.
    """

    table: str
    planned: PlannedNumber
    is_adjusted: bool
    errors: CellErrors
    unreliable: float | None
    missing: float

    @property
    def ratio(self) -> float | None:
        """The observed standard error, divided by the planned one."""
        planned, observed = self.planned.standard_error, self.errors.standard_error
        return observed / planned if planned and observed is not None and not self.is_adjusted else None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """A release that was tried several times on data that are not protected.

    Args:
        earlier: The title of the earlier release that it is rehearsed on, if it is.
    """

    plan: ReleasePlan
    times: int
    numbers: tuple[RehearsedNumber, ...]
    earlier: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cells:
    """The cells of one number: with noise also the intervals and marks."""

    keys: Sequence[Keys]
    values: Floats
    low: Floats | None = None
    high: Floats | None = None
    unreliable: Truths | None = None


_ByNumber = Mapping[tuple[str, str], _Cells]


def rehearse_release(
    session: "Session",
    release: TableRelease,
    data: Mapping[str, str | Path] | PublishedRelease,
    *,
    times: int = TIMES,
) -> Rehearsal:
    """Try a release several times on data that are not protected. Free.

    Args:
        session: Of the protected data, of which the catalog and the ledger are read, and no row.
        data: A file of the same columns for each protected table, by name; or an earlier release.
        times: How many repetitions, each with noise of its own.

    Raises:
        InvalidParameter: If a file is known to be protected data, or does not fit.
        LapwingError: As `plan_release`.
    """
    if not isinstance(times, int) or isinstance(times, bool) or not 1 <= times <= MOST_TIMES:
        raise InvalidParameter(f"times is {times!r}; it must be a whole number from 1 to {MOST_TIMES:,}.")
    plan = plan_release(session, release)
    if isinstance(data, PublishedRelease):
        numbers = tuple(_on_published(plan, release, data, times))
        return Rehearsal(plan=plan, times=times, numbers=numbers, earlier=data.manifest["title"])
    with stand_in(session, data) as standing_in:
        truth = _without_noise(standing_in, release, plan)
        runs, planned = [], None
        for place in range(times):
            with progress.work("Rehearsing"), progress.step(place, times), standing_in.session(f"run-{place}") as own:
                progress.report(0)
                planned = planned or prepared(own, release)  # each run has the same plan
                runs.append(_released(bought(own, release, planned, simulates=False)))  # it measures itself
    return Rehearsal(plan=plan, times=times, numbers=tuple(_numbers(plan, truth, runs)))


def _without_noise(standing_in: StandIn, release: TableRelease, plan: ReleasePlan) -> _ByNumber:
    """Return the cells of each number at a cost that leaves no noise to speak of, each table by itself."""
    private = sum(table.cells is None for table in plan.tables)
    found: dict[tuple[str, str], _Cells] = {}
    with standing_in.session("without-noise") as session:
        for table, planned in zip(release.tables, plan.tables, strict=True):
            delta = None if planned.cells is not None else plan.delta_keys / private
            answer = session.sql(table.query, epsilon=WITHOUT_NOISE[plan.measure], delta=delta)
            rows, keys = answer.to_arrow(), _keys(answer)
            for number in planned.numbers:
                found[table.name, number.name] = _Cells(keys=keys, values=_floats(rows, number.name))
    return found


def _released(released: ReleasedTables) -> _ByNumber:
    """Return the cells of each number of a run; an adjusted one has the name of its column."""
    rule = replace(released.release, unreliable_cells=UnreliableCells.MARK)
    found: dict[tuple[str, str], _Cells] = {}
    for place, table in enumerate(released.tables):
        rows, keys, name = marked(table.answer, rule), _keys(table.answer), table.planned.name
        for number in (number.name for number in table.planned.numbers):
            if f"{number}{UNRELIABLE}" in rows.column_names:
                low, high = (_floats(rows, f"{number}_{end}") for end in ("low", "high"))
                marks = rows[f"{number}{UNRELIABLE}"].to_numpy()
                cells = _Cells(keys=keys, values=_floats(rows, number), low=low, high=high, unreliable=marks)
                found[name, number] = cells
        if released.adjusted:
            adjusted = released.adjusted[place]
            view = adjusted.view.to_arrow()
            found |= {
                (name, f"{one}_adjusted"): _Cells(keys=keys, values=_floats(view, one)) for one in adjusted.columns
            }
    return found


def _keys(answer: "Answer") -> list[Keys]:
    """Return the keys of each row."""
    rows = answer.to_arrow()
    names = [output.name for output in answer.plan.outputs if not measures_of(output.value)]
    return list(zip(*(rows[name].to_pylist() for name in names), strict=True)) or [()] * rows.num_rows


def _floats(rows: "pa.Table", name: str) -> Floats:
    """Return a column as floats; NaN where it is NULL."""
    import pyarrow as pa  # here: a plan needs no Arrow
    import pyarrow.compute as pc

    values: Floats = pc.cast(rows[name], pa.float64(), safe=False).to_numpy()
    return values


def _numbers(plan: ReleasePlan, truth: _ByNumber, runs: Sequence[_ByNumber]) -> Iterator[RehearsedNumber]:
    for table in plan.tables:
        for number in table.numbers:
            for name in (number.name, f"{number.name}{SUFFIX}"):
                if (table.name, name) in runs[0]:
                    without = truth[table.name, number.name]
                    cells = [run[table.name, name] for run in runs]
                    yield _rehearsed(table.name, number, without, cells, is_adjusted=name != number.name)


def _rehearsed(
    table: str, planned: PlannedNumber, truth: _Cells, runs: Sequence[_Cells], *, is_adjusted: bool
) -> RehearsedNumber:
    """Compare the cells of all runs with those without noise, by their keys."""
    places = {keys: place for place, keys in enumerate(truth.keys)}
    without, noisy, within, marks, missing = [], [], [], [], 0
    for run in runs:
        own, there = _in_both(places, truth, run)
        missing += len(truth.keys) - len(there)
        without.append(truth.values[there])
        noisy.append(run.values[own])
        if run.low is not None and run.high is not None and run.unreliable is not None:
            ends = np.isfinite(run.low[own]) & np.isfinite(run.high[own])  # a median has none
            within.append(((run.low[own] <= without[-1]) & (without[-1] <= run.high[own]))[ends])
            marks.append(run.unreliable[own])
    every = np.concatenate(marks) if marks else np.array([], dtype=bool)
    return RehearsedNumber(
        table=table,
        planned=planned,
        is_adjusted=is_adjusted,
        errors=CellErrors.of(without, noisy, within or None),
        unreliable=float(every.mean()) if len(every) else None,
        missing=missing / max(1, len(truth.keys) * len(runs)),
    )


def _in_both(places: Mapping[Keys, int], truth: _Cells, run: _Cells) -> tuple[Any, Any]:
    """Return the places of the cells that have a number in a run and without noise: in the run, and in the truth."""
    pairs = [(own, places[keys]) for own, keys in enumerate(run.keys) if keys in places]
    own, there = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    both = np.isfinite(run.values[own]) & np.isfinite(truth.values[there])
    return own[both], there[both]


def _on_published(
    plan: ReleasePlan, release: TableRelease, earlier: PublishedRelease, times: int
) -> Iterator[RehearsedNumber]:
    """Rehearse on published numbers: normal noise of the planned size is added to each."""
    generator = np.random.default_rng()
    known = {(number.table, number.name): number for number in earlier.numbers}
    pairs = [
        (table.name, number, known[table.name, number.name])
        for table in plan.tables
        for number in table.numbers
        if number.standard_error is not None and (table.name, number.name) in known
    ]
    if not pairs:
        raise InvalidParameter(
            "No table of the earlier release has the same name and a count or a sum of the same name. "
            "Give an earlier release of the same tables, or files."
        )
    for table, planned, number in pairs:
        truth = _published_cells(number)
        runs = [_with_noise(truth, planned, release, generator) for _ in range(times)]
        yield _rehearsed(table, planned, truth, runs, is_adjusted=False)


def _published_cells(number: PublishedNumber) -> _Cells:
    values = [np.nan if figure.value is None else figure.value for figure in number.figures.values()]
    return _Cells(keys=list(number.figures), values=np.array(values, dtype=np.float64))


def _with_noise(truth: _Cells, planned: PlannedNumber, release: TableRelease, generator: np.random.Generator) -> _Cells:
    half = planned.half_width or 0.0
    values = truth.values + generator.normal(scale=planned.standard_error or 0.0, size=len(truth.values))
    unreliable = half > float(release.unreliable) * np.abs(values)
    return _Cells(keys=truth.keys, values=values, low=values - half, high=values + half, unreliable=unreliable)
