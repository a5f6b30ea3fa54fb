"""Run a release: buy all of its tables at once, and publish them as files with a manifest.

Guarantee:
    The tables are one batch (`release.answering.answer_all`), at the shares of the plan: one transaction charges all of
    them before any row is read, or none. The batch adds the noise, so its proofs hold as they are. The shares add up to
    at most the loss of `epsilon`, and each table is charged its own. Everything after that is post-processing of
    released numbers. The released number and its public interval decide whether it is unreliable, and nothing else.

The shares follow from the release and the catalog, and not from what was bought before. So a second run asks the same
questions at the same prices: the ledger has their answers, which cost nothing and are the same numbers.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import lapwing.tabulation
from lapwing.answer.spreadsheet_csv import csv_of
from lapwing.answer.workbooks import can_write_workbooks
from lapwing.errors import InvalidParameter
from lapwing.mechanisms.combined_noise import CombinedNoise
from lapwing.mechanisms.merged_gaussian import MergedGaussian
from lapwing.privacy.amounts import exact, written
from lapwing.privacy.measures import Loss
from lapwing.release.answering import answer_all
from lapwing.release.nested_keys import NestedKeys
from lapwing.release.request import Request
from lapwing.session import access_of
from lapwing.tabulation.adjusted_columns import AdjustedTable, adjusted_tables
from lapwing.tabulation.coarser_cells import with_coarser_cells
from lapwing.tabulation.csvw import METADATA, release_metadata
from lapwing.tabulation.declaration import Adjustment, FileFormat, TableRelease, UnreliableCells
from lapwing.tabulation.method_report import method_report
from lapwing.tabulation.planning import UNRELIABLE, PlannedTable, PreparedRelease, ReleasePlan, prepared
from lapwing.tabulation.public_totals import as_facts
from lapwing.tabulation.published import PublishedRelease
from lapwing.tabulation.rounding import rounded
from lapwing.tabulation.row_order import in_natural_order
from lapwing.tabulation.signing import SigningKey
from lapwing.tabulation.workbook import NAME, workbook_of_release

if TYPE_CHECKING:
    import pyarrow as pa

    from lapwing.answer import Answer
    from lapwing.session import Session

CONFIDENCE: Final = 0.95
MANIFEST: Final = "manifest.json"
METHOD: Final = "method.html"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedTable:
    """A table of a release, with its result.

    Args:
        planned: Its plan, which is public.
        answer: The released numbers.
    """

    planned: PlannedTable
    answer: "Answer"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedTables:
    """The tables of a release, with their results.

    Args:
        adjusted: Of each table the numbers that add up, if the release has them.
        paid: All charges for their numbers. It is more than the plan's cost if numbers were bought before, with less
            noise.
        delta: Of the tables with private keys.
        nestings: The levels of the hierarchies, which are public.
    """

    release: TableRelease
    plan: ReleasePlan
    tables: tuple[ReleasedTable, ...]
    paid: Loss
    delta: Fraction
    dataset: str
    catalog_digest: str
    neighbouring: str
    adjusted: tuple[AdjustedTable, ...] = ()
    nestings: tuple[NestedKeys, ...] = ()

    @property
    def stored(self) -> bool:
        """Whether all of it was bought before, so that this run was free."""
        return all(table.answer.stored for table in self.tables)

    def arrow(self, place: int) -> "pa.Table":
        """Return one table with the ends of its 95 % intervals, a mark for unreliable numbers, and adjusted numbers."""
        rows = self._rows(place)
        if self.release.unreliable_cells is UnreliableCells.COARSEN:
            plans = [table.answer.plan for table in self.tables]
            rows = with_coarser_cells(rows, place, plans, self._rows, self.nestings)
        rows = self.adjusted[place].beside(rows, self.release) if self.adjusted else rows
        return in_natural_order(rows, self.tables[place].answer.plan)

    def _rows(self, place: int) -> "pa.Table":
        answer = self.tables[place].answer
        rows = marked(answer, self.release)
        if self.release.rounding > 1:
            rows = rounded(rows, answer.interval(CONFIDENCE), self.release.rounding)
        return rows

    def write(
        self,
        folder: str | Path,
        *,
        signing_key: SigningKey | None = None,
        previous: PublishedRelease | None = None,
    ) -> Path:
        """Write all tables, the method report and the manifest into a new folder; return the manifest.

        Args:
            previous: The release of the last period, with which the report compares.
            signing_key: Signs the manifest, which has the hashes of all other files.

        Raises:
            InvalidParameter: If the folder has files already, or cannot be made.
        """
        target = require_new(folder)
        target.mkdir(exist_ok=True)
        documents, shown = [], []
        for place, table in enumerate(self.tables):
            rows = self.arrow(place)
            shown.append(rows)
            files = [
                _written(target, file_name(place, table.planned.name), rows, form)
                for form in self.release.formats
                if form is not FileFormat.XLSX
            ]
            document = _document(table, rows.num_rows, files)
            documents.append({**document, **self.adjusted[place].facts()} if self.adjusted else document)
        facts = {**self._facts(), "tables": documents}
        report = target / METHOD
        report.write_text(method_report(PublishedRelease.of(facts, shown), previous), encoding="utf-8")
        others = [report]
        if FileFormat.CSV in self.release.formats:
            others.append(_written_json(target / METADATA, release_metadata(facts, shown)))
        if FileFormat.XLSX in self.release.formats:
            others.append(target / NAME)
            others[-1].write_bytes(workbook_of_release(facts, shown))
        manifest = _written_json(target / MANIFEST, {**facts, "files": [_listed(file) for file in others]})
        if signing_key is not None:
            signing_key.sign(manifest)
        return manifest

    def _facts(self) -> dict[str, Any]:
        """Return the facts of the release, without times: a second run writes the same."""
        entries = sorted({entry for table in self.tables for entry in table.answer.entries})
        as_planned = self.paid.amount <= self.plan.cost.amount
        more = self.release.epsilon if as_planned else self.paid.to_epsilon(delta=self.plan.delta)
        return {
            "title": self.release.title,
            "lapwing": lapwing.__version__,
            "dataset": self.dataset,
            "catalog": self.catalog_digest,
            "unit": self.plan.unit,
            "neighbouring": self.neighbouring,
            "measure": self.plan.measure,
            "epsilon": written(exact(more, "epsilon")),
            "delta": self.plan.delta,
            "delta_keys": written(self.delta),
            "cost": self.paid.to_record(),
            "objective": self.release.objective.value,
            "unreliable": written(exact(self.release.unreliable, "unreliable")),
            "unreliable_cells": self.release.unreliable_cells.value,
            **({"adjustment": Adjustment.TOP_DOWN.value} if self.release.adjustment is Adjustment.TOP_DOWN else {}),
            **({"rounding": self.release.rounding} if self.release.rounding > 1 else {}),
            **({"public_totals": as_facts(self.release.public_totals)} if self.release.public_totals else {}),
            **({"incomplete_keys": list(map(asdict, self.plan.incomplete_keys))} if self.plan.incomplete_keys else {}),
            "ledger_entries": entries,
        }


def run_release(session: "Session", release: TableRelease) -> ReleasedTables:
    """Buy all tables of a release, in one transaction; a second run is free and returns the same numbers.

    Guarantee:
        As `Session.batch`, for a loss of at most `Session.price(release.epsilon)`.

    Raises:
        LapwingError: As `plan_release`, and as `Session.batch`. If it raises before the charge, nothing is charged.
    """
    return run_prepared(session, release, prepared(session, release))


def run_prepared(session: "Session", release: TableRelease, ready: PreparedRelease) -> ReleasedTables:
    """Buy all tables of a release that is planned; as `run_release`."""
    if FileFormat.XLSX in release.formats and not can_write_workbooks():
        raise InvalidParameter("A workbook needs an extra: pip install 'lapwing-dp[xlsx]'. Nothing was charged.")
    return bought(session, release, ready)


def bought(
    session: "Session", release: TableRelease, ready: PreparedRelease, *, simulates: bool = True
) -> ReleasedTables:
    """Buy all tables of a release that is planned; as `run_release`.

    Args:
        simulates: Whether the effect of adjusting is simulated; without, the tables cannot be written.
    """
    answers = answer_all(requests_of(release, ready), replace(access_of(session), nestings=ready.nestings))
    paid, delta = _charges(session, answers)
    return ReleasedTables(
        release=release,
        plan=ready.described,
        tables=tuple(
            ReleasedTable(planned=planned, answer=answer)
            for planned, answer in zip(ready.described.tables, answers, strict=True)
        ),
        paid=paid,
        delta=delta,
        dataset=session.dataset,
        catalog_digest=session.catalog.digest,
        nestings=ready.nestings,
        neighbouring=session.catalog.budget.neighbouring,
        adjusted=tuple(
            adjusted_tables(
                answers,
                ready.offer,
                ready.nestings,
                ready.fixed,
                top_down=release.adjustment is Adjustment.TOP_DOWN,
                simulates=simulates,
            )
        )
        if release.adjusted
        else (),
    )


def requests_of(release: TableRelease, ready: PreparedRelease) -> list[Request]:
    """Return what is asked for the tables of a release, in order."""
    return [
        Request(text=table.query, parameters=(), plan=bound, priced=quote, label=_label(release, table.name))
        for table, bound, quote in zip(release.tables, ready.plans, ready.offer.quotes, strict=True)
    ]


def _charges(session: "Session", answers: Sequence["Answer"]) -> tuple[Loss, Fraction]:
    """Return all that was charged for the numbers of some answers, and their delta.

    A number that was sharpened is computed from numbers of earlier charges for the same question. So these count, too.
    """
    entries, history = {entry for answer in answers for entry in answer.entries}, session.history()
    sharpened = {entry for answer in answers if _is_sharpened(answer) for entry in answer.entries}
    last = {(row.question, row.version): row.sequence for row in history if row.sequence in sharpened}
    before = {row.sequence for row in history if row.sequence <= last.get((row.question, row.version), -1)}
    paid = [row for row in history if row.sequence in entries | before]
    amounts = sum((row.loss.amount for row in paid), Fraction(0))
    return paid[0].loss.from_amount(amounts), sum((row.delta for row in paid), Fraction(0))


def _is_sharpened(answer: "Answer") -> bool:
    """Tell whether some number of an answer is the mean of several that were bought one after the other."""
    laws = list(answer.mechanisms.values())
    parts = [part for law in laws if isinstance(law, CombinedNoise) for part in law.laws]
    return any(isinstance(law, MergedGaussian) for law in (*laws, *parts))


def _label(release: TableRelease, name: str) -> str:
    """Return the label of a table in the history: one short line."""
    label = f"{release.title}: {name}"[:200]
    return "".join(character if character.isprintable() else " " for character in label)


def marked(answer: "Answer", release: TableRelease) -> "pa.Table":
    """Return an answer with its intervals, and with a column for each noisy number that says if it is unreliable.

    Guarantee:
        Post-processing of released numbers.
    """
    import pyarrow as pa  # here: a plan needs no Arrow
    import pyarrow.compute as pc

    rows = answer.to_arrow(CONFIDENCE)
    for name, (low, _) in answer.interval(CONFIDENCE).items():
        if low.dtype.kind == "M":  # dates have no size that a part could be of
            continue
        number, ends = pc.cast(rows[name], pa.float64(), safe=False), (f"{name}_low", f"{name}_high")
        low_end, high_end = (pc.cast(rows[end], pa.float64(), safe=False) for end in ends)
        half = pc.divide(pc.subtract(high_end, low_end), 2.0)
        reliable = pc.less_equal(half, pc.multiply(pc.abs(number), float(release.unreliable)))
        unreliable = pc.invert(pc.fill_null(reliable, False))
        rows = rows.append_column(f"{name}{UNRELIABLE}", unreliable)
        if release.unreliable_cells is not UnreliableCells.MARK:
            for column in (name, *ends):
                place, kind = rows.schema.get_field_index(column), rows.schema.field(column)
                left = pc.if_else(unreliable, pa.scalar(None, kind.type), rows[column])
                rows = rows.set_column(place, kind.with_nullable(True), left)
    return rows


def require_new(folder: str | Path) -> Path:
    """Return a folder that is empty or can be made.

    Raises:
        InvalidParameter: For any other.
    """
    target = Path(folder)
    if target.is_dir() and not any(target.iterdir()):
        return target
    if target.exists() or not target.absolute().parent.is_dir():
        raise InvalidParameter(
            f"{target} has files already, or its folder does not exist. Give the name of a new folder. "
            "Nothing was charged."
        )
    return target


def file_name(place: int, name: str) -> str:
    """Return the name of a table's file, without its ending.

    >>> file_name(0, "Years by sex, plan")
    '01-years-by-sex-plan'
    """
    return f"{place + 1:02}-{re.sub('[^a-z0-9]+', '-', name.lower()).strip('-')[:80]}".rstrip("-")


def _written(folder: Path, name: str, rows: "pa.Table", form: FileFormat) -> dict[str, object]:
    """Write one file; return its name, size and hash."""
    import pyarrow.parquet as pq  # here: a plan needs no Arrow

    file = folder / f"{name}.{form.value}"
    if form is FileFormat.PARQUET:
        pq.write_table(rows, file)
    else:
        file.write_bytes(csv_of(rows))
    return _listed(file)


def _written_json(file: Path, document: Mapping[str, Any]) -> Path:
    file.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return file


def _listed(file: Path) -> dict[str, object]:
    """Return a file as the manifest lists it."""
    content = file.read_bytes()
    return {"file": file.name, "bytes": len(content), "sha256": sha256(content).hexdigest()}


def _document(table: ReleasedTable, rows: int, files: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Return a table of the manifest."""
    planned, columns = table.planned, [column for column in table.answer.describe() if column.measures]
    noises = {noise.measure: noise for column in columns for noise in column.measures}
    return {
        "name": planned.name,
        "query": planned.query,
        "rows": rows,
        "ledger_entries": sorted(table.answer.entries),
        "share": planned.share,
        # Of what was released: a table that was bought before has another error than the plan of a new one.
        "half_widths": {column.name: column.half_width for column in columns},
        "planned_half_widths": {number.name: number.half_width for number in planned.numbers},
        "noise": [
            {"number": noise.measure, "mechanism": noise.mechanism, "scale": noise.scale} for noise in noises.values()
        ],
        "notes": [str(note) for note in table.answer.notes],
        "files": list(files),
    }
