"""A run: one charge, free a second time, the noise that was planned, and files that can be checked."""

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from lapwing.engines import DuckDB
from lapwing.errors import BudgetExhausted, InvalidParameter
from lapwing.mechanisms.reconstructed_gaussian import ReconstructedGaussian
from lapwing.release import workloads
from lapwing.session import Session
from lapwing.tabulation import (
    FileFormat,
    ReleasedTables,
    ReleaseTable,
    SigningKey,
    TableRelease,
    UnreliableCells,
    faults_of,
    run_release,
    unlisted_files,
)
from tests.support.cli.command import Run
from tests.support.effort import one_in
from tests.support.release.small import GDP, PURE, ZCDP, opened, row, shown

ROWS = [row(n, plan="ab"[n % 2], size=5 * (n % 3), age=n % 5 - 1) for n in range(60)]
COUNTS = ReleaseTable.margins("n", select="COUNT(*) AS n", source="visits", by=[[], ["plan"], ["plan", "size"]])
IMPORTANT = tuple(replace(table, importance=weight) for table, weight in zip(COUNTS, (1, 3, 2), strict=True))
SUMS = ReleaseTable(name="s", query="SELECT plan, SUM(age) AS s FROM visits GROUP BY plan")
RELEASE = TableRelease(title="Visits", epsilon=2, tables=(*IMPORTANT, SUMS))


def numbers(released: ReleasedTables) -> list[Any]:
    return [shown(table.answer) for table in released.tables]


@pytest.mark.parametrize("budget", one_in(3, [GDP, PURE, ZCDP]))
def test_it_is_charged_once_and_free_again(tmp_path: Path, budget: str) -> None:
    with opened(tmp_path, ROWS, budget=budget) as session:
        first = run_release(session, RELEASE)
        spent = session.budget().spent
        assert spent == first.plan.cost
        assert spent <= session.price(2)
        assert Fraction(999, 1000) * session.price(2).amount < spent.amount
        assert not first.stored
        first.write(tmp_path / "first")
        again = run_release(session, RELEASE)
        assert again.stored
        assert numbers(again) == numbers(first)
        assert session.budget().spent == spent
        again.write(tmp_path / "again")
        other = run_release(session, replace(RELEASE, epsilon=1))  # whose numbers need not be as exact
        assert other.stored
    files = sorted(file.name for file in (tmp_path / "first").iterdir())
    assert files == [
        "01-n-in-all.csv",
        "02-n-by-plan.csv",
        "03-n-by-plan-size.csv",
        "04-s.csv",
        "csv-metadata.json",
        "manifest.json",
        "method.html",
    ]
    for name in files:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_all_or_nothing_is_charged(tmp_path: Path) -> None:
    with opened(tmp_path, ROWS, budget="epsilon = 1\ndelta = 1e-3") as session:
        with pytest.raises(BudgetExhausted):
            run_release(session, RELEASE)
        assert not session.budget().spent.amount
        assert not session.history()


def test_the_measurements_lose_no_more_than_is_charged(tmp_path: Path) -> None:
    """At uneven shares, too."""
    found: list[tuple[Any, Any]] = []
    right = workloads.workloads_of

    def watched(buying: Any, *rest: Any) -> Any:
        found.append((buying, right(buying, *rest)))
        return found[-1][1]

    with opened(tmp_path, ROWS) as session, patch.object(workloads, "workloads_of", watched):
        run_release(session, RELEASE)
    ((buying, (workload,)),) = found
    terms = [buying[place].bought.terms[at] for place, at in workload.members]
    assert len({term.mechanism.sigma for term in terms}) == 3  # by importance
    unit = workloads._unit(buying[0].bought.question, terms[0].measure, "add_remove")
    paid = sum(term.loss("gdp").amount for term in terms)
    assert workload.mechanism.loss(unit, "gdp").amount <= paid
    # Every engine's answer to a unit more is within that unit of the tables: `tests/release/test_workloads.py`.


def as_planned(released: ReleasedTables, answers: list[Any]) -> bool:
    """Whether the noise of answers is the noise that the plan promises."""
    laws = [law for answer in answers for law in answer.mechanisms.values()]
    promised = [table.planned.numbers[0].standard_error for table in released.tables]
    return [law.standard_deviation for law in laws] == promised


def test_the_noise_is_the_planned_one(tmp_path: Path) -> None:
    """The twin: each table charged by itself, for its own share, has other noise."""
    with opened(tmp_path, ROWS) as session:
        released = run_release(session, RELEASE)
    assert as_planned(released, [table.answer for table in released.tables])
    laws = [next(iter(table.answer.mechanisms.values())) for table in released.tables]
    assert [isinstance(law, ReconstructedGaussian) for law in laws] == [True, True, True, False]
    (tmp_path / "apart").mkdir()
    with opened(tmp_path / "apart", ROWS) as session:
        each = [run_release(session, replace(RELEASE, tables=(table,), epsilon=1)) for table in RELEASE.tables]
    assert not as_planned(released, [one.tables[0].answer for one in each])


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Session]:
    with opened(tmp_path, ROWS) as session:
        yield session


def test_unreliable_is_decided_by_the_released_number(small: Session, tmp_path: Path) -> None:
    release = TableRelease(title="t", epsilon=8, tables=COUNTS, unreliable=0.5)
    released = run_release(small, release)
    rows = [told for place in range(3) for told in released.arrow(place).to_pylist()]
    assert {row["n_unreliable"] for row in rows} == {True, False}
    for told in rows:
        half = (told["n_high"] - told["n_low"]) / 2
        assert told["n_unreliable"] == (half > 0.5 * abs(told["n"]))
    left = replace(release, unreliable_cells=UnreliableCells.LEAVE_OUT, formats=(FileFormat.PARQUET,))
    again = run_release(small, left)
    assert again.stored
    after_all = [told for place in range(3) for told in again.arrow(place).to_pylist()]
    for before, after in zip(rows, after_all, strict=True):
        nothing = {"n": None, "n_low": None, "n_high": None}
        assert after == ({**before, **nothing} if before["n_unreliable"] else before)
    again.write(tmp_path / "out")
    assert pq.read_table(tmp_path / "out" / "03-n-by-plan-size.parquet").to_pylist() == again.arrow(2).to_pylist()


def test_the_manifest_has_the_errors_of_what_was_released(small: Session, tmp_path: Path) -> None:
    """Not those of a new release: one table was bought before, with less noise."""
    before = small.sql(COUNTS[0].query, epsilon=20)
    released = run_release(small, replace(RELEASE, epsilon=1))
    assert shown(released.tables[0].answer) == shown(before)
    document = json.loads(released.write(tmp_path / "out").read_text())
    facts = [table["half_widths"]["n"] for table in document["tables"][:2]]
    assert facts[0] == before.describe()[0].half_width
    assert facts[0] < facts[1]
    assert facts[0] != released.plan.tables[0].numbers[0].half_width


@pytest.mark.long
def test_tables_of_other_numbers_are_written(small: Session, tmp_path: Path) -> None:
    """What is charged must be written: means follow from several numbers, and medians have no interval."""
    queries = ("AVG(cost) AS x", "MEDIAN(age) AS x", "MAX(cost) AS x, MIN(cost) AS y", "MODE(plan) AS x")
    tables = [ReleaseTable(name=text, query=f"SELECT {text} FROM visits") for text in queries]
    released = run_release(small, TableRelease(title="t", epsilon=9, tables=(*COUNTS, *tables)))
    assert not released.plan.is_optimal
    document = json.loads(released.write(tmp_path / "out").read_text())
    assert [len(table["noise"]) > 0 for table in document["tables"]] == [True] * 6 + [False]
    assert not run_release(small, TableRelease(title="t", epsilon=1, tables=(tables[2],))).plan.is_optimal


def manifest_of(session: Session, release: TableRelease, folder: Path) -> Any:
    return json.loads(run_release(session, release).write(folder).read_text())


def test_the_manifest_has_the_loss_of_what_was_released(tmp_path: Path) -> None:
    """Of numbers that were bought before, too, and of all that they were sharpened by."""
    one = replace(RELEASE, epsilon=Fraction(1, 10), tables=COUNTS[:1])
    with opened(tmp_path, ROWS) as session:
        session.sql(COUNTS[0].query, epsilon=Fraction(1, 5))
        session.sql(COUNTS[0].query, epsilon=Fraction(1, 2))  # which pays the difference
        spent = session.budget().spent
        assert spent.amount < session.price(0.2).amount + session.price(0.5).amount
        document = manifest_of(session, one, tmp_path / "sharpened")
        assert session.budget().spent == spent
        assert document["cost"] == spent.to_record()
        assert 0.5 <= float(document["epsilon"]) < 0.55
        session.sql(COUNTS[0].query, epsilon=20)  # afresh: its noise is too small to be merged
        (*_, last) = session.history()
        document = manifest_of(session, one, tmp_path / "afresh")
        assert document["cost"] == last.loss.to_record()
        assert 19.9 < float(document["epsilon"]) < 20.1


def test_the_manifest_has_the_delta_of_private_keys(tmp_path: Path) -> None:
    query = "SELECT code, COUNT(*) AS n FROM visits GROUP BY code"
    with opened(tmp_path, ROWS, budget="epsilon = 100\ndelta = 1e-3\ndelta_keys = 5e-4") as session:
        release = TableRelease(title="t", epsilon=1, delta=1e-5, tables=(ReleaseTable(name="c", query=query),))
        document = manifest_of(session, release, tmp_path / "out")
        (charge,) = session.history()
        assert charge.delta > 0
        assert (document["delta"], Fraction(document["delta_keys"])) == (5e-4, charge.delta)


def test_a_name_of_a_mark_is_refused_before_the_charge(small: Session) -> None:
    query = "SELECT COUNT(*) AS n, SUM(age) AS N_unreliable FROM visits"
    with pytest.raises(InvalidParameter, match="the name of the mark"):
        run_release(small, replace(RELEASE, tables=(ReleaseTable(name="x", query=query),)))
    assert not small.history()


def keys(folder: Path, name: str) -> tuple[Path, Path]:
    key = Ed25519PrivateKey.generate()
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return private, public


def test_files_can_be_checked(small: Session, tmp_path: Path) -> None:
    private, public = keys(tmp_path, "mine")
    _, another = keys(tmp_path, "another")
    released = run_release(small, replace(RELEASE, tables=(SUMS,)))
    manifest = released.write(tmp_path / "out", signing_key=SigningKey.from_file(private))
    assert faults_of(manifest, public) == []
    assert faults_of(manifest, another) == ["the signature of the manifest does not match this key"]
    table = tmp_path / "out" / "01-s.csv"
    table.write_text(table.read_text().replace("a", "b"))
    assert faults_of(manifest, public) == ["01-s.csv is not the file that was published"]
    table.unlink()
    assert faults_of(manifest) == ["01-s.csv is missing"]
    manifest.write_text(manifest.read_text().replace("Visits", "Visit"))
    assert faults_of(manifest, public)[0] == "the signature of the manifest does not match this key"
    (tmp_path / "out" / "manifest.json.sig").unlink()
    assert faults_of(manifest, public)[0] == "the manifest has no signature"
    for wrong in (public, tmp_path / "nowhere"):
        with pytest.raises(InvalidParameter, match="no Ed25519 private key"):
            SigningKey.from_file(wrong)
    for content in ("{}", '{"tables": [{"files": [{"file": 1, "sha256": 1}]}]}', "[" * 100_000):
        public.write_text(content)
        with pytest.raises(InvalidParameter, match="not the manifest"):
            faults_of(public)


def test_files_that_nobody_signed_are_named(small: Session, tmp_path: Path) -> None:
    private, public = keys(tmp_path, "mine")
    released = run_release(small, replace(RELEASE, tables=(SUMS,)))
    manifest = released.write(tmp_path / "out", signing_key=SigningKey.from_file(private))
    assert unlisted_files(manifest) == []
    beside = manifest.with_name("mine.pub")
    beside.write_bytes(public.read_bytes())
    (tmp_path / "out" / "more").mkdir()
    (tmp_path / "out" / "02-s.csv").write_text("s\n7\n")
    assert unlisted_files(manifest) == ["02-s.csv", "mine.pub", "more"]
    assert unlisted_files(manifest, beside) == ["02-s.csv", "more"]
    assert faults_of(manifest, beside) == []  # which looks at what is listed


FILE = """
title = "Visits"
epsilon = 0.5
[tables.visits]
select = "COUNT(*) AS n"
from = "visits"
by = [[], ["plan"]]
"""


@pytest.mark.usefixtures("visits")
def test_the_command(run: Run) -> None:
    Path("release.toml").write_text(FILE)
    private, public = keys(Path(), "mine")
    arguments = ("release", "run", "release.toml", "--key", str(private), "-o", "out")
    outcome = run(*arguments)
    assert outcome.status == 0, outcome.err
    document = json.loads(Path("out/manifest.json").read_text())
    assert [table["rows"] for table in document["tables"]] == [1, 2]
    assert len(document["ledger_entries"]) == 2
    assert "signature matches" in run("release", "verify", "out/manifest.json", "--public-key", str(public)).out
    with patch.object(DuckDB, "run", None):  # what is free reads no row
        again = run(*arguments[:-1], "again")
    assert again.status == 0, again.err
    assert "bought before" in again.err
    assert Path("again/manifest.json").read_bytes() == Path("out/manifest.json").read_bytes()
    refused = run(*arguments)
    assert refused.status == 2
    assert "Nothing was charged" in refused.err
    Path("again/note.txt").write_text("a note")
    stray = run("release", "verify", "again/manifest.json")
    assert stray.status == 2
    assert "note.txt" in stray.err
    Path("out/01-visits-in-all.csv").write_text("n\n7\n")
    assert run("release", "verify", "out/manifest.json").status == 2
