"""Privacy bugs to plant into a copy of the installed package, and an installation to audit with the copy.

Each kind is one that this repository's tests know, or that other systems have had. An edit exchanges a text of a file,
which must be there: a bug that was not planted would prove nothing.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import lapwing

CATALOG = """
[dataset]
name = "audited"
ledger = "sqlite:ledger.db"
[budget]
epsilon = 10
delta = 1e-6
delta_keys = 1e-7
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = 3
[tables.visits.columns]
plan = { type = "string", values = ["a", "b", "it's"] }
member = { type = "boolean" }
age = { type = "integer", lower = 0, upper = 110 }
cost = { type = "float", lower = -10, upper = 100 }
note = { type = "string" }
"""
QUERIES = ("SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan", "SELECT SUM(age) AS s FROM visits WHERE member")


@dataclass(frozen=True)
class Edit:
    """A text of a file of the package, and what stands in its place."""

    file: str
    before: str
    after: str


@dataclass(frozen=True)
class PlantedBug:
    """A kind of bug, how it is planted, and the codes of findings of which one must be reported."""

    kind: str
    edits: Sequence[Edit]
    codes: frozenset[str]


def _bug(kind: str, codes: str, *edits: tuple[str, str, str]) -> PlantedBug:
    return PlantedBug(kind=kind, edits=[Edit(*edit) for edit in edits], codes=frozenset(codes.split()))


NOISE = "mechanisms/rounded_gaussian.py"
RELEASE = "release/release.py"
STORED = "release/stored.py"
STABILITY = "query/sensitivity/stability.py"
BUGS = (
    _bug(
        "noise of 0.9 times its scale",
        "noise_law noise_promise",
        (NOISE, "(self.sigma**2, size, entropy)", "(self.sigma**2 * 81 / 100, size, entropy)"),
    ),
    _bug(
        "a loss that is 0.9 times the noise's own",
        "path_loss noise_promise",
        (NOISE, "self.sigma**2).to_kind", "self.sigma**2 * Fraction(9, 10)).to_kind"),
        (NOISE, "check_positive(loss)\n", "loss = loss.from_amount(loss.amount * Fraction(10, 9))\n"),
    ),
    _bug(
        "no noise",
        "path_no_noise",
        (RELEASE, "return tuple(term.mechanism.release(values, entropy) for", "return tuple(values for"),
    ),
    _bug(
        "noise that is drawn and not added",
        "path_release",
        (
            RELEASE,
            "return tuple(term.mechanism.release(values, entropy) for",
            "return tuple((term.mechanism.release(values, entropy), values)[1] for",
        ),
    ),
    _bug(
        "tables of a batch priced as if a unit had one row",
        "path_loss",
        ("release/workloads.py", "RowsOfUnit(rows=rows,", "RowsOfUnit(rows=1,"),
    ),
    _bug(
        "noise that is used again for every cell",
        "noise_law",
        ("mechanisms/noisy.py", "    noise = draw(whole.size)\n", "    noise = np.repeat(draw(1), whole.size)\n"),
    ),
    _bug(
        "noise that is used again for the next query",
        "noise_law",
        ("exact/entropy.py", "def _from_system(", "@__import__('functools').cache\ndef _from_system("),
    ),
    _bug(
        "values that are not moved to their bounds",
        "path_movement",
        (
            "engines/duckdb/bounded_values.py",
            '        f"CASE WHEN {name} <= {low} THEN {whole(low)} WHEN {name} >= {high} THEN {whole(high)} "\n'
            '        f"ELSE TRY_CAST({name} AS BIGINT) END"',
            '        f"CASE WHEN {name} <= {low} THEN {whole(low)} ELSE TRY_CAST({name} AS BIGINT) END"',
        ),
    ),
    _bug(
        "a sensitivity of one row where a unit has several",
        "path_movement path_loss",
        (STABILITY, "by_rows = _rows(measure, rows_per_unit,", "by_rows = _rows(measure, 1,"),
    ),
    _bug(
        "a sensitivity for add_remove that forgets one row",
        "path_movement path_loss",
        (STABILITY, "most, width = rows_per_unit *", "most, width = max(1, rows_per_unit - 1) *"),
    ),
    _bug(
        "one row too many of each unit",
        "path_movement path_loss",
        ("engines/duckdb/cleaned.py", "<= {table.max_rows_per_unit}", "<= {table.max_rows_per_unit + 1}"),
    ),
    _bug(
        "a charge of half the price",
        "path_loss",
        (STORED, "        loss=priced.loss,\n", "        loss=priced.loss.from_amount(priced.loss.amount / 2),\n"),
    ),
    _bug(
        "a charge that is skipped",
        "path_loss",
        (STORED, "        loss=priced.loss,\n", "        loss=priced.loss.nothing(),\n"),
    ),
    _bug(
        "a query that fails where a group is small",
        "path_control_flow",
        (
            RELEASE,
            "    if bought.choosing is not None:\n",
            "    if any(0 < abs(int(one)) < 3 for values in sums for one in values.flat):\n"
            "        raise ValueError('too few')\n    if bought.choosing is not None:\n",
        ),
    ),
    _bug(
        "groups that are left out where nobody is in them",
        "path_control_flow",
        (
            RELEASE,
            "    cells = cells_of(question, keys)\n",
            "    cells = tuple(cell for cell in cells_of(question, keys) if cell in exact.cells)\n",
        ),
    ),
    _bug(
        "a group of a value that the catalog does not list",
        "path_control_flow",
        (
            "engines/duckdb/expressions.py",
            "    if key.values is None:\n",
            "    if key.values is not None:\n        return 'TRUE'\n    if key.values is None:\n",
        ),
        (
            RELEASE,
            "    cells = cells_of(question, keys)\n",
            "    cells = tuple(dict.fromkeys((*cells_of(question, keys), *exact.cells)))\n",
        ),
    ),
    _bug(
        "private keys without noise or threshold",
        "path_control_flow",
        (
            "mechanisms/weighted_gaussian.py",
            "return partitions.reaching(noisy, self.threshold) & (units >= self.minimum)",
            "return units >= self.minimum",
        ),
        ("mechanisms/thresholding.py", "partitions.reaching(noisy, self.threshold) & (", "("),
    ),
    _bug(
        "a text that ends a query",
        "path_control_flow",
        (
            "engines/duckdb/printers.py",
            "NULLIF(TRY_CAST({a[0]} AS DOUBLE), 'nan'",
            "NULLIF(CAST({a[0]} AS DOUBLE), 'nan'",
        ),
    ),
    _bug(
        "a stored answer that is charged and drawn again",
        "path_repeated",
        (STORED, "    kept = answers(key)\n    if not kept:\n", "    kept = ()\n    if not kept:\n"),
    ),
)


def installation(folder: Path) -> Path:
    """Make data, a catalog and a ledger of two queries, and return the catalog's file."""
    rows = [
        {"person": p, "plan": "ab"[p % 2], "member": p % 3 == 0, "age": p % 90, "cost": p / 3, "note": f"n{p % 4}"}
        for p in range(200)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "visits.parquet")
    (folder / "lapwing.toml").write_text(CATALOG)
    with lapwing.connect(folder / "lapwing.toml") as session:
        for query in QUERIES:
            session.sql(query, epsilon=0.1)
    return folder / "lapwing.toml"


def planted(bug: PlantedBug, folder: Path) -> Path:
    """Copy the installed package into a folder, and plant a bug in the copy."""
    source = Path(lapwing.__file__).parent
    shutil.copytree(source, folder / "lapwing", ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    for edit in bug.edits:
        path = folder / "lapwing" / edit.file
        text = path.read_text(encoding="utf-8")
        assert text.count(edit.before) == 1, (
            f"{bug.kind}: {edit.file} has {edit.before!r} {text.count(edit.before)} times"
        )
        path.write_text(text.replace(edit.before, edit.after), encoding="utf-8")
    return folder


def audited(catalog: Path, package: Path | None, *options: str) -> tuple[int, Any]:
    """Run `lapwing audit` of a copy of the package, or of the installed one; return its exit status and report."""
    environment = dict(os.environ)
    if package is not None:
        environment |= {"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "lapwing", "audit", str(catalog), "--json", "-", *options]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=catalog.parent, check=False)
    try:
        return run.returncode, json.loads(run.stdout)
    except ValueError:
        raise AssertionError(run.stderr[-2_000:]) from None


def seconds_until(report: dict[str, Any], codes: frozenset[str]) -> float | None:
    """Return the time until the end of the first check that has a violation of one of the codes; None if none has."""
    whole = 0.0
    for check in report["checks"]:
        whole += float(check["seconds"])
        if any(one["code"] in codes and one["severity"] == "violated" for one in check["findings"]):
            return whole
    return None
