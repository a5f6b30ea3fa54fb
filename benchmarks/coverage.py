"""How much of a folder of other people's statements is answered, why the rest is not, and whether answers are right.

A folder holds `queries.json`, a list of `{"name": …, "group": …, "sql": …}`, `lapwing.toml`, and the tables that it
names, or a `data.sql` with which DuckDB makes them. It is copied first, so nothing is written there.

    python benchmarks/coverage.py FOLDER [--check] [--json FILE] [--only TEXT] [--delta 1e-6]

Every statement is explained: answered, or refused with a reason. Refusals are counted by their reason, without names
and numbers. With `--check` what is answered is asked at ε = 10¹⁰, where noise rounds away: at 10⁶, sums of many steps
still moved by a few. DuckDB says what the same statement is over the raw files: "equal", "noted" with the code of a
note by which a rank may be off, "differs", or why it cannot say. A person has to read what differs: values are
clamped, unlisted keys have no row, and of rows that tie others may come first.
"""

import argparse
import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import duckdb
import numpy as np

import lapwing as lw
from lapwing.answer.notes import RANK_ERROR, code_of
from lapwing.errors import LapwingError

EPSILON: Final = 10**10
TOLERANCE: Final = 1e-6


def copied(folder: Path, scratch: Path) -> Path:
    """Copy a folder, make its data, and give its catalog a budget that no run exhausts; return the catalog."""
    place = scratch / "folder"
    shutil.copytree(folder, place)
    script = place / "data.sql"
    if script.exists():
        made = duckdb.connect(config={"file_search_path": str(place)})
        text = re.sub(r"(?i)\bTO '(?=[^/'])", f"TO '{place}/", script.read_text(encoding="utf-8"))
        made.execute(text)
        made.close()
    catalog = place / "lapwing.toml"
    text = catalog.read_text(encoding="utf-8")
    text = re.sub(r"(?m)^epsilon *= *[\d_.e+]+", "epsilon = 1000000000000000", text, count=1)
    catalog.write_text(text, encoding="utf-8")
    return catalog


def raw(catalog: Path) -> duckdb.DuckDBPyConnection:
    """Return DuckDB over the raw files, by the names of the catalog's tables."""
    import tomllib

    connection = duckdb.connect()
    said = tomllib.loads(catalog.read_text(encoding="utf-8"))
    tables = said["tables"]
    for name, table in tables.items():
        connection.execute(f"CREATE VIEW \"{name}\" AS SELECT * FROM '{catalog.parent / table['source']}'")
    for schema in ("public", said["dataset"]["name"]):
        connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
        for name in tables:
            connection.execute(f'CREATE VIEW "{schema}"."{name}" AS SELECT * FROM main."{name}"')
    return connection


def kind(reason: str) -> str:
    """Return a reason without what differs between statements: names in quotes, numbers."""
    return re.sub(r"\d[\d,.]*", "N", re.sub(r"'[^']*'|\"[^\"]*\"", "…", reason))[:90]


def plain(value: object) -> object:
    """Return a value as both sides have it."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float | Decimal):
        return float(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    return str(value)


def rows_of(rows: Sequence[Sequence[object]]) -> dict[tuple[object, ...], list[list[float]]]:
    """Return the numbers of rows by what else is in them."""
    by_key: dict[tuple[object, ...], list[list[float]]] = {}
    for row in rows:
        values = [plain(value) for value in row]
        key = tuple("" if isinstance(v, float) else str(v) for v in values)
        by_key.setdefault(key, []).append([v for v in values if isinstance(v, float)])
    return {key: sorted(each) for key, each in by_key.items()}


def close(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """Tell whether numbers are the same but for rounding."""
    return len(ours) == len(theirs) and bool(np.allclose(ours, theirs, rtol=TOLERANCE, atol=0.02, equal_nan=True))


def compared(ours: Sequence[Sequence[object]], theirs: Sequence[Sequence[object]]) -> str:
    """Say whether two answers are the same: each of their rows is one of ours, and what is more of ours is zero."""
    if not ours and not theirs:
        return "equal"
    own, other = rows_of(ours), rows_of(theirs)
    missing = 0
    for key, rows in other.items():
        left = list(own.get(key, []))
        for row in rows:
            found = next((mine for mine in left if close(mine, row)), None)
            if found is None:
                missing += 1
            else:
                left.remove(found)
    return (
        "equal" if not missing else f"differs: {missing} of {len(theirs)} rows of DuckDB are not among our {len(ours)}"
    )


def measured(folder: Path, *, check: bool, only: str, delta: str | None) -> Iterator[dict[str, object]]:
    """Yield what becomes of each statement of a folder."""
    with TemporaryDirectory() as scratch:
        catalog = copied(folder, Path(scratch))
        queries = json.loads((catalog.parent / "queries.json").read_text(encoding="utf-8"))
        truth = raw(catalog) if check else None
        with lw.connect(catalog) as session:
            for query in queries:
                if only and only not in f"{query.get('group', '')} {query['name']}":
                    continue
                text = query["sql"]
                record: dict[str, object] = {"name": query["name"], "group": query.get("group", ""), "sql": text}
                start = time.process_time()
                try:
                    try:
                        session.explain(text, epsilon=1)
                    except LapwingError:
                        if delta is None:
                            raise
                        session.explain(text, epsilon=1, delta=Fraction(delta))
                        record["delta"] = delta
                    record["state"] = "answered"
                except LapwingError as error:
                    record |= {"state": "refused", "reason": getattr(error, "reason", str(error)), "error": str(error)}
                except Exception as error:  # a fault of ours, which is what this looks for
                    record |= {"state": "crashed", "reason": repr(error)}
                record["seconds"] = time.process_time() - start
                if truth is not None and record["state"] == "answered":
                    record["check"] = checked(session, truth, record)
                yield record


def checked(session: lw.Session, truth: duckdb.DuckDBPyConnection, record: dict[str, object]) -> str:
    """Ask a statement at a price at which noise rounds away, and compare."""
    text, delta = str(record["sql"]), record.get("delta")
    try:
        answer = session.sql(text, epsilon=EPSILON, delta=None if delta is None else Fraction(str(delta)))
        ours = [tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in answer.rows()]
    except LapwingError as error:
        return f"fault: {error}"
    try:
        theirs = truth.execute(text).fetchall()
    except duckdb.Error as error:
        return f"unknown to DuckDB: {str(error).splitlines()[0][:100]}"
    verdict = compared(ours, theirs)
    noted = verdict.startswith("differs") and RANK_ERROR in map(code_of, answer.notes)
    return f"noted: {RANK_ERROR}" if noted else verdict


def main() -> None:
    """Print a table for one folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true", help="compare with DuckDB over the raw files")
    parser.add_argument("--json", type=Path, help="write what became of each statement")
    parser.add_argument("--only", default="", help="only names or groups with this text")
    parser.add_argument("--delta", help="what choosing private keys may take, where a statement needs it")
    asked = parser.parse_args()
    records = list(measured(asked.folder, check=asked.check, only=asked.only, delta=asked.delta))
    states = Counter(str(record["state"]) for record in records)
    milliseconds = [1000 * float(str(record["seconds"])) for record in records]
    print(f"{states['answered']} of {len(records)} answered, {states['refused']} refused, {states['crashed']} crashed")
    print(f"explain: median {np.median(milliseconds):.1f} ms, most {max(milliseconds):.0f} ms of processor time")
    for reason, number in Counter(kind(str(r["reason"])) for r in records if "reason" in r).most_common():
        names = [str(r["name"]) for r in records if kind(str(r.get("reason", ""))) == reason]
        print(f"  {number:4}  {reason}   [{', '.join(names[:4])}]")
    if asked.check:
        print("against DuckDB:", dict(Counter(str(r["check"]).split(":")[0] for r in records if "check" in r)))
        for record in records:
            if not str(record.get("check", "equal")).startswith("equal"):
                print(f"  {record['name']}: {record['check']}")
    if asked.json is not None:
        asked.json.write_text(json.dumps(records, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
