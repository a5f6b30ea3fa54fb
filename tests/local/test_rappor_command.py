"""`lapwing local rappor` and what `report` and `estimate` do with its tasks."""

import csv
import io
import json
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from lapwing import local
from lapwing.cli import main
from lapwing.local import client
from lapwing.local.rappor import rappor_estimate
from tests.support.cli.command import Run, run
from tests.support.effort import one_in
from tests.support.fixed_entropy import StreamEntropy

__all__ = ["run"]

TASK = (
    *("local", "rappor", "--question", "Your home page?", "--opens", "2026-01-01", "--closes", "2099-12-31"),
    *("--epsilon", "4"),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(run: Run, *more: str) -> client.Task:
    outcome = run(*TASK, *more, "--output", "task.toml")
    assert outcome.status == 0, outcome.err
    return client.read_task(Path("task.toml").read_text(encoding="utf-8"))


def asked(folder: Path, task: client.Task, people: int = 4000) -> None:
    """Half have the page a.example, a quarter b.example, and a quarter one that is no candidate."""
    entropy, pages = StreamEntropy("pages"), ("a.example", "b.example", "a.example", "z.example")
    lines = [client.report_with_memory(task, pages[i % 4], entropy.read, {})[0] or b"" for i in range(people)]
    (folder / "reports.ndjson").write_bytes(b"\n".join([*lines, b"nonsense"]))
    (folder / "pages.txt").write_text("a.example\nb.example\n\nc.example\na.example\n", encoding="utf-8")


ASK = ("local", "estimate", "task.toml", "reports.ndjson", "--candidates", "pages.txt")


@pytest.mark.long
def test_from_task_to_shares(folder: Path, run: Run) -> None:
    asked(folder, made(run))
    outcome = run(*ASK, "--forged", "10", "--plot", "chart.json", "--together")
    rows = list(csv.DictReader(io.StringIO(outcome.out)))
    assert [row["value"] for row in rows] == ["a.example", "b.example", "c.example"]
    assert [row["seen"] for row in rows] == ["true", "true", "false"]
    for row, truth in zip(rows, (0.5, 0.25, 0), strict=True):
        assert abs(float(row["share"]) - truth) <= 6 * float(row["standard_error"])
        assert float(row["low"]) < float(row["share"]) < float(row["high"])
    assert "line 4001 rejected" in outcome.err
    assert "10 forged reports" in outcome.err
    assert "for all other texts" in outcome.err
    assert "list more texts" in outcome.err
    assert json.loads((folder / "chart.json").read_text())["title"]["text"] == "Your home page?"

    document = json.loads(run(*ASK, "--format", "json").out)
    assert (document["reports"], document["candidates"], document["chosen_by"]) == (4000, 3, 0)
    assert abs(document["unallocated"]["share"] - 0.25) < 6 * document["unallocated"]["standard_error"]
    assert document["misfit"] > 1.5
    assert [line["line"] for line in document["rejected"]] == [4001]
    assert "consistent" in run(*ASK, "--format", "table").out
    assert "too few" not in outcome.err


def check_few(run: Run) -> None:
    """Ten reports have shares, and nothing that rests on the normal law, however they are written."""
    outcome = run(*ASK)
    assert "10 reports are too few for intervals" in outcome.err
    assert "each interval holds" not in outcome.err
    assert "±" not in outcome.err
    for row in csv.DictReader(io.StringIO(outcome.out)):
        assert (row["low"], row["high"], row["significance"], row["seen"]) == ("", "", "", "false")
        float(row["share"])
    for row in json.loads(run(*ASK, "--format", "json").out)["estimates"]:
        assert (row["low"], row["high"], row["significance"], row["seen"]) == (None, None, None, False)
    for line in run(*ASK, "--format", "table").out.splitlines()[2:]:
        assert (line.split()[2:4], line.split()[-1]) == (["?", "?"], "?")


def test_few_reports_have_no_intervals(folder: Path, run: Run) -> None:
    asked(folder, made(run), 10)
    check_few(run)


def test_intervals_of_few_reports_are_noticed(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked(folder, made(run), 10)
    monkeypatch.setattr(rappor_estimate, "FEW", 0)
    with pytest.raises(AssertionError):
        check_few(run)


def test_arrow_of_few_reports_has_the_same_columns(folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    schemas = []
    assert main([*TASK, "--output", "task.toml"]) == 0
    for people in (10, 400):
        asked(folder, client.read_task((folder / "task.toml").read_text()), people)
        capsysbinary.readouterr()
        assert main([*ASK, "--format", "arrow", "--plot", "chart.json"]) == 0
        schemas.append(pa.ipc.open_stream(capsysbinary.readouterr().out).read_all().schema)
    assert schemas[0] == schemas[1]


def test_options_that_mean_nothing_are_refused(folder: Path, run: Run) -> None:
    asked(folder, made(run), 40)
    outcome = run(*ASK, "--whom", "respondents")
    assert (outcome.status, outcome.out) == (2, "")
    assert "--whom respondents means nothing for texts of RAPPOR" in outcome.err
    document = json.loads(run(*ASK, "--whom", "population", "--format", "json").out)
    assert (document["whom"], document["confidence"], document["reports"]) == ("population", 0.95, 40)
    assert "1 forged report moves a share" in run(*ASK, "--forged", "1").err


def test_a_task_that_is_there_is_not_overwritten(folder: Path, run: Run) -> None:
    made(run)
    before = (folder / "task.toml").read_bytes()
    outcome = run(*TASK, "--bits", "64", "--output", "task.toml")
    assert (outcome.status, outcome.out) == (2, "")
    assert "task.toml exists already" in outcome.err
    assert (folder / "task.toml").read_bytes() == before
    assert run(*TASK, "--bits", "64", "--output", "task.toml", "--force").status == 0
    assert 'bits = "64"' in (folder / "task.toml").read_text()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--bits", "300"), "--bits is 300; it must be from 2 to 256"),
        (("--hashes", "4", "--bits", "4"), "--bits is 4; it must be from 8 to 256"),
        (("--hashes", "0"), "--hashes is 0; it must be from 1 to 16"),
        (("--cohorts", "5000"), "--cohorts is 5,000; it must be from 1 to 1,024"),
        (("--most-bytes", "0"), "--most-bytes is 0"),
        (("--forever", "5", "--value", "a", "--value", "b", "--bits", "64"), "--bits means nothing with --value"),
        (("--forever", "5", "--value", "a", "--value", "b", "--most-bytes", "9"), "--most-bytes means nothing with"),
        (("--forever", "5", "--value", "a"), "--value gives one value"),
        (("--forever", "7/2"), "One report cannot lose 4 if all may lose 3.5"),
    ],
)
def test_errors_name_the_option(run: Run, more: tuple[str, ...], said: str) -> None:
    outcome = run(*TASK, *more)
    assert (outcome.status, outcome.out) == (2, "")
    assert said in outcome.err


@pytest.mark.long
def test_many_candidates_are_chosen_first(folder: Path, run: Run) -> None:
    asked(folder, made(run))
    (folder / "pages.txt").write_text("\n".join(["a.example", *(f"{i}.example" for i in range(1500))]))
    outcome = run(*ASK)
    rows = list(csv.DictReader(io.StringIO(outcome.out)))
    assert (rows[0]["value"], rows[0]["seen"]) == ("a.example", "true")
    assert len(rows) < 100
    assert f"reports chose {len(rows)} of 1,501 candidates" in outcome.err


def test_arrow(folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main([*TASK, "--output", "task.toml"]) == 0
    asked(folder, client.read_task((folder / "task.toml").read_text()), 400)
    capsysbinary.readouterr()
    assert main([*ASK, "--format", "arrow"]) == 0
    table = pa.ipc.open_stream(capsysbinary.readouterr().out).read_all()
    assert table.column("value").to_pylist() == ["a.example", "b.example", "c.example"]


@pytest.mark.parametrize(
    ("more", "mechanism", "unchanged"),
    one_in(
        3,
        [
            ((), "rappor-once", None),
            (("--forever", "4"), "rappor", Fraction(4)),
            (("--forever", "6", "--bits", "64", "--hashes", "2", "--cohorts", "8"), "rappor", Fraction(6)),
            (("--forever", "6", "--value", "no", "--value", "yes"), "basic-rappor", Fraction(6)),
            (("--forever", "4", "--value", "no", "--value", "yes"), "basic-rappor", Fraction(4)),
        ],
        many=True,
    ),
)
def test_every_form_can_be_asked_for(
    folder: Path, run: Run, more: tuple[str, ...], mechanism: str, unchanged: Fraction | None
) -> None:
    task = made(run, *more)
    stated = dict(task.epsilons)
    assert task.mechanism == mechanism
    assert abs(stated["epsilon"] - 4) < 1e-9
    assert (
        stated.get("epsilon_unchanged") is None
        if unchanged is None
        else abs(stated["epsilon_unchanged"] - unchanged.numerator) < 1e-9
    )
    assert run(*TASK, *more).out == (folder / "task.toml").read_text()


def test_a_device_that_remembers_sends_the_same_report(folder: Path, run: Run) -> None:
    task = made(run, "--forever", "4")
    for page in ("a.example", "a.example"):
        assert (
            run(
                "local", "report", "task.toml", "--device", "device.json", "-o", "reports.ndjson", stdin=page.encode()
            ).status
            == 0
        )
    first, second = (json.loads(line)["r"] for line in (folder / "reports.ndjson").read_bytes().splitlines())
    assert first == second
    assert run("local", "report", "task.toml", stdin=b"a.example").status == 2
    rows = list(csv.DictReader(io.StringIO(run("local", "device", "device.json").out)))
    assert [(row["mechanism"], row["reports"], row["epsilon_unchanged"], row["epsilon"]) for row in rows] == [
        ("rappor", "2", "4", "")
    ]
    assert task.mechanism == "rappor"


@pytest.mark.long
def test_basic_reports_are_estimated_as_a_list(folder: Path, run: Run) -> None:
    task, entropy = made(run, "--forever", "6", "--value", "no", "--value", "yes"), StreamEntropy("basic")
    lines = [
        client.report_with_memory(task, ("yes", "no", "yes")[i % 3], entropy.read, {})[0] or b"" for i in range(900)
    ]
    (folder / "reports.ndjson").write_bytes(b"\n".join(lines))
    rows = list(csv.DictReader(io.StringIO(run("local", "estimate", "task.toml", "reports.ndjson").out)))
    assert abs(float(rows[1]["share"]) - 2 / 3) <= 6 * float(rows[1]["standard_error"])


@pytest.mark.parametrize(
    "more",
    [("--forever", "3"), ("--value", "a", "--value", "b"), ("--bits", "2", "--hashes", "2"), ("--most-bytes", "0")],
)
def test_what_cannot_be_meant_is_refused(folder: Path, run: Run, more: tuple[str, ...]) -> None:
    assert run(*TASK, *more).status == 2


def test_bits_tell_nothing_without_candidates(folder: Path, run: Run) -> None:
    asked(folder, made(run), 10)
    outcome = run(*ASK[:4])
    assert (outcome.status, outcome.out) == (2, "")
    assert "--candidates" in outcome.err


def test_help_has_an_example(run: Run) -> None:
    outcome = run("local", "rappor", "--help")
    assert (outcome.status, outcome.err) == (0, "")
    assert "  lapwing local rappor" in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 100
    assert local.Rappor is not None
