"""`lapwing local` from task to shares, and the documents that describe it."""

import csv
import gzip
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lapwing import local
from lapwing.cli import main
from lapwing.cli.local import estimate_options, output, report_files, task_options, typed_answers
from lapwing.collector.collector import Collector
from lapwing.local import client
from tests.docs.test_reference import unmentioned
from tests.support.cli.command import Run, run
from tests.support.docs.pages import DOCS
from tests.support.effort import one_in, only
from tests.support.fixed_entropy import StreamEntropy

__all__ = ["run"]

TASK = (
    *("local", "task", "--question", "Which?", "--epsilon", "1", "--opens", "2026-01-01", "--closes", "2099-12-31"),
    *("--value", "no", "--value", "yes", "--value", "perhaps"),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def task(folder: Path, run: Run) -> client.Task:
    assert run(*TASK, "--output", "task.toml").status == 0
    return client.read_task((folder / "task.toml").read_text())


@pytest.mark.parametrize("command", ["", "advise", "task", "report", "estimate"])
def test_help_has_an_example(run: Run, command: str) -> None:
    outcome = run(*f"local {command}".split(), "--help")
    assert (outcome.status, outcome.err) == (0, "")
    assert f"  lapwing local {command}".rstrip() in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 100


@pytest.mark.long
def test_from_task_to_shares(task: client.Task, folder: Path, run: Run) -> None:
    """Of 3,000 people two thirds say yes; seven standard errors."""
    entropy = StreamEntropy("commands")
    lines = [client.report(task, ("yes", "yes", "no")[i % 3], entropy.read) for i in range(3000)]
    (folder / "reports.ndjson").write_bytes(b"\n".join([*lines, b"nonsense", lines[0]]))
    ask = ("local", "estimate", "task.toml", "reports.ndjson")
    outcome = run(*ask, "--forged", "30", "--plot", "chart.json")
    rows = list(csv.DictReader(io.StringIO(outcome.out)))
    assert [row["value"] for row in rows] == ["no", "yes", "perhaps"]
    for row, truth in zip(rows, (1 / 3, 2 / 3, 0), strict=True):
        assert abs(float(row["share"]) - truth) <= 7 * float(row["standard_error"])
        assert float(row["low"]) < float(row["share"]) < float(row["high"])
        assert 0 <= float(row["likeliest"]) <= 1
    assert "line 3001 rejected: the line is not a JSON object" in outcome.err
    assert "line 3002 rejected: the id was seen before" in outcome.err
    assert "30 forged reports move a share" in outcome.err
    for wrong in ("3001", "-1"):
        refused = run(*ask, "--forged", wrong)
        assert (refused.status, refused.out) == (2, "")
        assert f"--forged is {wrong}; it must be from 0 to 3,000" in refused.err
    drawn = json.loads((folder / "chart.json").read_text())
    assert drawn["title"]["text"] == "Which?"
    pale = {row["value"]: row["too close to 0 to tell"] for row in drawn["data"]["values"]}
    assert pale == {row["value"]: row["seen"] == "false" for row in rows}
    assert pale["perhaps"]

    wider = list(csv.DictReader(io.StringIO(run(*ask, "--whom", "population", "--together").out)))
    assert all(
        float(w["high"]) - float(w["low"]) > float(r["high"]) - float(r["low"])
        for w, r in zip(wider, rows, strict=True)
    )

    document = json.loads(run(*ask, "--format", "json").out)
    assert document["reports"] == 3000
    assert [line["line"] for line in document["rejected"]] == [3001, 3002]
    assert [f"{share['share']}" for share in document["estimates"]] == [row["share"] for row in rows]
    assert "consistent" in run(*ask, "--format", "table").out


NUMBER = ("local", "task", "--question", "Minutes?", "--number", "-10:110", "--epsilon", "2", *TASK[6:10])
RECORD = (
    *("local", "task", "--question", "Way?", "--epsilon", "2", *TASK[6:10]),
    *("--attribute", "How?=walk,bus", "--attribute", "a=b?=0.5:120", "--steps", "10"),
)


def write_reports(folder: Path, answer: Callable[[int], client.Answer], people: int, label: str) -> client.Task:
    task, entropy = client.read_task((folder / "task.toml").read_text()), StreamEntropy(label)
    lines = [client.report(task, answer(i), entropy.read) for i in range(people)]
    (folder / "reports.ndjson").write_bytes(b"\n".join([*lines, b"{}"]))
    return task


@pytest.mark.long
def test_from_numbers_to_a_mean(folder: Path, run: Run) -> None:
    assert run(*NUMBER, "--output", "task.toml").status == 0
    task = write_reports(folder, lambda i: str(i % 41), 4100, "number")
    assert (task.mechanism, task.asked.document["number"]) == (
        "hybrid",
        {"lower": "-10", "upper": "110", "steps": 1000},
    )
    ask = ("local", "estimate", "task.toml", "reports.ndjson")
    outcome = run(*ask, "--forged", "5", "--plot", "chart.json")
    assert "line 4101 rejected" in outcome.err
    assert "numbers below -10 or above 110 count as these" in outcome.err
    assert "forged" in outcome.err
    (row,) = csv.DictReader(io.StringIO(outcome.out))
    assert row["value"] == "mean"
    assert abs(float(row["estimate"]) - 20) < 6 * float(row["standard_error"])
    assert float(row["low"]) < float(row["estimate"]) < float(row["high"])
    (wider,) = csv.DictReader(io.StringIO(run(*ask, "--whom", "population", "--confidence", "0.99").out))
    assert float(wider["high"]) > float(row["high"])
    document = json.loads(run(*ask, "--format", "json").out)
    assert document["estimates"][0]["reports"] == 4100
    assert [line["line"] for line in document["rejected"]] == [4101]
    assert "mean" in run(*ask, "--format", "table").out
    assert json.loads((folder / "chart.json").read_text())["title"]["text"] == "Minutes?"


@pytest.mark.long
def test_from_records_to_estimates(folder: Path, run: Run) -> None:
    assert run(*RECORD, "--output", "task.toml").status == 0
    task = write_reports(folder, lambda i: {"How?": ("walk", "bus")[i % 4 == 0], "a=b?": str(i % 60)}, 4000, "record")
    assert task.unit == "all answers of one person"
    ask = ("local", "estimate", "task.toml", "reports.ndjson")
    outcome = run(*ask, "--forged", "5", "--plot", "chart.json")
    rows = list(csv.DictReader(io.StringIO(outcome.out)))
    assert [(row["question"], row["value"]) for row in rows] == [("How?", "walk"), ("How?", "bus"), ("a=b?", "mean")]
    assert "no report tells" not in outcome.err
    for row, truth in zip(rows, (0.75, 0.25, 29.5), strict=True):
        assert abs(float(row["estimate"]) - truth) < 6 * float(row["standard_error"])
        assert abs(int(row["reports"]) - 2000) < 6 * 32
    assert outcome.err.count("5 forged reports move an estimate of") == 2
    wider = list(csv.DictReader(io.StringIO(run(*ask, "--together").out)))
    assert all(float(w["high"]) > float(r["high"]) for w, r in zip(wider, rows, strict=True))
    assert len(json.loads((folder / "chart.json").read_text())["vconcat"]) == 2

    lines = (folder / "reports.ndjson").read_bytes().splitlines()
    (folder / "reports.ndjson").write_bytes(b"\n".join(line for line in lines if b'"r":[0,' in line))
    assert "no report tells 'a=b?'" in run(*ask).err


def test_a_report_of_a_record(folder: Path, run: Run) -> None:
    assert run(*RECORD, "--output", "task.toml").status == 0
    outcome = run("local", "report", "task.toml", stdin=b"bus\n7.5\n")
    task = client.read_task((folder / "task.toml").read_text())
    mechanism = local.record_mechanism_of(task)
    assert local.collect_for(mechanism, task, outcome.out.encode().splitlines()).rejected == ()
    for answers in (("bus",), ("bus", "7", "7"), ("7.5", "bus"), ("bus", "many")):
        wrong = run("local", "report", "task.toml", stdin="\n".join(answers).encode())
        assert (wrong.status, wrong.out) == (2, "")


@pytest.mark.parametrize(
    "change",
    one_in(4, [
        *[("--number", bounds) for bounds in ("5", "a:b", "5:1", "1:2:3", "0:1e30", "nan:1")],
        *[("--attribute", given) for given in ("How?", "=a,b", "x=", "x=a", 'x="a,b', "x=5:1")],
        ("--number", "0:1", "--value", "a"), ("--number", "0:1", "--mechanism", "k-ary"), (),
        ("--number", "0:1", "--steps", "0"), ("--attribute", "x=a,b"), ("--attribute", "x=a,b", "--attribute", "x=a,b"),
        ("--attribute", "x=a,b", "--attribute", "y=a,b", "--mechanism", "k-ary"),
    ]),
)  # fmt: skip
def test_questions_that_mean_nothing_are_refused(run: Run, change: tuple[str, ...]) -> None:
    assert run("local", "task", "--question", "Which?", *TASK[4:10], *change).status == 2


@pytest.mark.long
def test_advice_for_a_mean(run: Run) -> None:
    ask = ("local", "advise", "--number", "0:300", "--epsilon", "1")
    outcome = run(*ask, "--respondents", "5000")
    assert [line.split()[0] for line in outcome.out.splitlines()[2:]] == ["hybrid", "duchi", "piecewise"]
    document = json.loads(run(*ask, "--respondents", "5000", "--format", "json").out)
    advice = local.advise_mean(1, local.grid(0, 300), 5000)
    assert [option["error"] for option in document["options"]] == [option.error for option in advice.options]
    for change in ((), ("--respondents", "5", "--values", "3"), ("--respondents", "5", "--within", "0.1")):
        assert run(*ask, *change).status == 2
    assert run("local", "advise", "--epsilon", "1", "--respondents", "5").status == 2


@pytest.mark.long
def test_what_an_accuracy_of_a_mean_takes(run: Run) -> None:
    number = local.grid(0, 300)
    people = local.mean_respondents_needed(1, number, 5)
    outcome = run("local", "advise", "--number", "0:300", "--epsilon", "1", "--within", "5")
    assert f"{people:,} respondents for ±5 at epsilon 1, by hybrid" in outcome.err
    ask = ("local", "advise", "--number", "0:300", "--respondents", "5000", "--within", "10", "--confidence", "0.9")
    outcome = run(*ask)
    epsilon = float(local.mean_epsilon_needed(5000, number, 10, 0.9))
    assert f"epsilon {epsilon:g} for ±10 with 5,000 respondents" in outcome.err
    options = json.loads(run(*ask, "--format", "json").out)["options"]
    assert all(option["worst"] >= option["error"] for option in options)
    for line in outcome.out.splitlines()[2:]:
        assert len({len(cell.partition(".")[2]) for cell in line.split()[1:3]}) == 1
    for kind, within, below in (("--number", "150", "150"), ("--number", "151", "150"), ("--values", "1", "1")):
        what = "0:300" if kind == "--number" else "3"
        refused = run("local", "advise", kind, what, "--epsilon", "1", "--within", within)
        assert (refused.status, refused.out) == (2, "")
        assert f"--within is {within}; it must be below {below}" in refused.err


OVER_TIME = (*("local", "over-time", "--question", "At home?", "--epsilon", "1"), *TASK[6:10], *TASK[10:14])


def check_not_overwritten(folder: Path, run: Run, command: tuple[str, ...]) -> None:
    assert run(*command, "--output", "task.toml").status == 0
    before = (folder / "task.toml").read_bytes()
    outcome = run(*command, "--unit", "another", "--output", "task.toml")
    assert (outcome.status, outcome.out) == (2, "")
    assert "task.toml exists already; nothing was changed" in outcome.err
    assert (folder / "task.toml").read_bytes() == before
    assert run(*command, "--unit", "another", "--output", "task.toml", "--force").status == 0
    assert 'unit = "another"' in (folder / "task.toml").read_text()


@pytest.mark.parametrize("command", [TASK, (*OVER_TIME, "--forever", "2")], ids=["task", "over-time"])
def test_a_task_that_is_there_is_not_overwritten(folder: Path, run: Run, command: tuple[str, ...]) -> None:
    check_not_overwritten(folder, run, command)


def test_overwriting_unasked_is_noticed(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write_task = task_options.write_task
    monkeypatch.setattr(task_options, "write_task", lambda made, output, *, force: write_task(made, output, force=True))
    with pytest.raises(AssertionError):
        check_not_overwritten(folder, run, TASK)


@pytest.mark.parametrize(
    ("command", "said"),
    one_in(
        4,
        [
            ("task --value a --value b --number 0:3", "but --value and --number are given"),
            ("task --text 5 --attribute A=a,b --value c", "but --value and --text and --attribute are given"),
            ("task", "Give what may be answered"),
            ("task --value a", "--value gives one value; give 2 to 100,000"),
            ("task --value a --value a", "--value gives 2 values, 1 of them different"),
            ("task --number 3:0", "--number '3:0' has bounds in the wrong order"),
            ("task --number 5", "--number '5' has no pair of bounds"),
            ("task --number 0:5 --steps 0", "--steps is 0; it must be from 1 to 1,000,000"),
            ("task --attribute A=x --attribute B=x,y", "an attribute needs two values or more, or LOWER:UPPER"),
            ("task --attribute A=x,x --attribute B=x,y", "--attribute 'A' gives 2 values, 1 of them different"),
            ("task --attribute A=5:1 --attribute B=x,y", "--attribute 'A': '5:1' has bounds in the wrong order"),
            ("over-time --value a --value b --changes 3", "--days is 1, which makes 27,028 periods"),
            ("over-time --value a --value b --changes 0", "--changes is 0; it must be from 1 to 1,000"),
            ("over-time --value a --value b --changes 1 --days 0", "--days is 0; it must be from 1 to 366"),
            ("task --value a --value b --steps 10", "--steps means nothing without a number"),
            ("task --text 5 --steps 10", "--steps means nothing without a number"),
            ("over-time --value a --value b --forever 2 --days 7", "--days means nothing with --forever"),
            ("over-time --value a --forever 2", "--value gives one value"),
            ("over-time --value a --value b --forever 2/5", "--epsilon is 1 and --forever is 0.4"),
        ],
        many=True,
    ),
)
def test_errors_name_the_option(run: Run, command: str, said: str) -> None:
    kind, *more = command.split()
    outcome = run("local", kind, *TASK[2:10], *more)
    assert (outcome.status, outcome.out) == (2, "")
    assert said in outcome.err


def test_errors_of_advice_name_the_option(run: Run) -> None:
    ask = ("local", "advise", "--epsilon", "1")
    for more, said in (
        (("--values", "1", "--respondents", "5"), "--values is 1; it must be from 2 to 100,000"),
        (("--values", "3", "--respondents", "5", "--confidence", "0.9"), "--confidence means nothing without --within"),
        (("--values", "3", "--respondents", "0"), "--respondents is 0; it must be 1 or more"),
        (("--number", "3:1", "--respondents", "5"), "--number '3:1' has bounds in the wrong order"),
    ):
        outcome = run(*ask, *more)
        assert (outcome.status, outcome.out) == (2, "")
        assert said in outcome.err


def check_ignored(folder: Path, run: Run, made: str, given: tuple[str, ...], said: str) -> None:
    tree = (*OVER_TIME, "--changes", "1", "--days", "366")
    assert run(*{"number": NUMBER, "record": RECORD, "tree": tree}[made], "-o", "task.toml").status == 0
    (folder / "reports.ndjson").write_bytes(b"")
    outcome = run("local", "estimate", "task.toml", "reports.ndjson", *given)
    assert (outcome.status, outcome.out) == (2, "")
    assert said in outcome.err


@pytest.mark.parametrize(
    ("made", "given", "said"),
    one_in(
        2,
        [
            ("number", ("--together",), "--together means nothing for a number"),
            ("number", ("--candidates", "task.toml"), "--candidates means nothing for a number"),
            ("record", ("--whom", "respondents"), "--whom respondents means nothing for several questions"),
            ("record", ("--candidates", "task.toml"), "--candidates means nothing for several questions"),
            ("tree", ("--whom", "respondents"), "--whom respondents means nothing for a yes or no over time"),
            ("tree", ("--candidates", "task.toml"), "--candidates means nothing for a yes or no over time"),
        ],
        many=True,
    ),
)
def test_options_that_an_estimate_ignores_are_refused(
    folder: Path, run: Run, made: str, given: tuple[str, ...], said: str
) -> None:
    check_ignored(folder, run, made, given, said)


def test_an_ignored_option_is_noticed(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate_options.EstimateOptions, "refuse", lambda *given: None)
    with pytest.raises(AssertionError):
        check_ignored(folder, run, "tree", ("--whom", "respondents"), "--whom respondents means nothing")


@pytest.mark.long
def test_documents_say_for_whom_and_how_sure(folder: Path, run: Run) -> None:
    ask = ("local", "estimate", "task.toml", "reports.ndjson", "--format", "json", "--confidence", "0.9")
    answers: dict[tuple[str, ...], Callable[[int], client.Answer]] = {
        TASK: lambda i: "yes",
        NUMBER: lambda i: "7",
        RECORD: lambda i: {"How?": "bus", "a=b?": "7"},
    }
    for command, answer in answers.items():
        assert run(*command, "-o", "task.toml", "--force").status == 0
        write_reports(folder, answer, 40, "documents")
        document = json.loads(run(*ask, "--whom", "population").out)
        assert (document["whom"], document["confidence"], document["together"]) == ("population", 0.9, False)
        assert (document["reports"], [line["line"] for line in document["rejected"]]) == (40, [41])
        assert document["estimates"]
        assert json.loads(run(*ask).out)["whom"] == ("population" if command is RECORD else "respondents")
    assert json.loads(run(*ask, "--together").out)["together"] is True


def test_arrow_is_not_for_terminals(task: client.Task, folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "reports.ndjson").write_bytes(client.report(task, "no", StreamEntropy("terminal").read))
    monkeypatch.setattr(output, "on_terminal", lambda: True)
    outcome = run("local", "estimate", "task.toml", "reports.ndjson", "--format", "arrow")
    assert (outcome.status, outcome.out) == (2, "")
    assert "Arrow is binary, and this is a terminal" in outcome.err
    forged = run("local", "estimate", "task.toml", "reports.ndjson", "--forged", "1")
    assert "every report behind a share may be forged" in forged.err


@pytest.mark.parametrize("kind", only([0], ["duchi", "piecewise", "hybrid"]))
def test_every_mechanism_for_a_mean_can_be_asked_for(run: Run, kind: str) -> None:
    assert client.read_task(run(*NUMBER, "--mechanism", kind).out).mechanism == kind


def test_arrow_of_numbers(folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main([*NUMBER, "--output", "task.toml"]) == 0
    write_reports(folder, lambda i: "20", 3, "arrow of numbers")
    assert main(["local", "estimate", "task.toml", "reports.ndjson", "--format", "arrow"]) == 0
    table = pa.ipc.open_stream(capsysbinary.readouterr().out).read_all()
    assert table.column("reports").to_pylist() == [3]


def test_arrow(folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main([*TASK, "--output", "task.toml"]) == 0
    task = client.read_task((folder / "task.toml").read_text())
    (folder / "reports.ndjson").write_bytes(client.report(task, "no", StreamEntropy("arrow").read))
    assert main(["local", "estimate", "task.toml", "reports.ndjson", "--format", "arrow"]) == 0
    table = pa.ipc.open_stream(capsysbinary.readouterr().out).read_all()
    assert table.column("value").to_pylist() == ["no", "yes", "perhaps"]


def test_a_line_that_never_ends_is_rejected_in_parts(task: client.Task, folder: Path, run: Run) -> None:
    honest = client.report(task, "no", StreamEntropy("long").read)
    (folder / "reports.ndjson").write_bytes(b"[" * (2 * report_files.MOST_LINE) + b"\n" + honest)
    document = json.loads(run("local", "estimate", "task.toml", "reports.ndjson", "--format", "json").out)
    assert document["reports"] == 1
    assert {line["reason"] for line in document["rejected"]} == {"the line has more than 460 bytes"}


def test_a_report_is_one_line_and_says_nothing_else(task: client.Task, folder: Path, run: Run) -> None:
    outcome = run("local", "report", "task.toml", stdin=b"perhaps\r\n")
    assert outcome.status == 0
    assert local.collect(task, outcome.out.encode().splitlines()).rejected == ()
    assert "epsilon 1" in outcome.err
    assert "perhaps" not in outcome.out + outcome.err
    for _ in range(2):
        assert run("local", "report", "task.toml", "-o", "reports.ndjson", stdin=b"no").out == ""
    assert len(local.collect(task, (folder / "reports.ndjson").read_bytes().splitlines()).reports) == 2


def test_what_a_respondent_is_protected_from(task: client.Task, folder: Path, run: Run) -> None:
    text = (folder / "task.toml").read_text()
    (folder / "lie.toml").write_text(text.replace("epsilon = 1\n", "epsilon = 0.1\n"))
    (folder / "old.toml").write_text(text.replace("2099-12-31", "2026-01-02"))
    (folder / "none.toml").write_bytes(b"\xff\x00")
    for name, said in (
        ("lie", "its thresholds have epsilon 1;"),
        ("old", "was open from 2026-01-01"),
        ("none", "neither"),
    ):
        outcome = run("local", "report", f"{name}.toml", "-o", "reports.ndjson", stdin=b"yes")
        assert (outcome.status, outcome.out) == (3, "")
        assert said in outcome.err
    outcome = run("local", "report", "task.toml", "-o", "reports.ndjson", stdin=b"maybe")
    assert (outcome.status, outcome.out) == (2, "")
    assert not (folder / "reports.ndjson").exists()


@pytest.mark.long
def test_advice(run: Run) -> None:
    outcome = run("local", "advise", "--values", "2", "--epsilon", "1", "--within", "0.03")
    assert "4,997 respondents" in outcome.err
    assert outcome.out.splitlines()[2].startswith("binary")
    document = json.loads(
        run("local", "advise", "--values", "9", "--epsilon", "1", "--respondents", "50", "--format", "json").out
    )
    assert len(document["options"]) == 5
    assert "epsilon" in run("local", "advise", "--values", "2", "--respondents", "5000", "--within", "0.03").err
    assert run("local", "advise", "--values", "2", "--epsilon", "1").status == 2


@pytest.mark.parametrize("kind", ["k-ary", "subset", "optimised-unary", "symmetric-unary", "hashing"])
def test_every_mechanism_can_be_asked_for(run: Run, kind: str) -> None:
    outcome = run(*TASK, "--mechanism", kind)
    assert client.read_task(outcome.out).mechanism in kind
    assert outcome.status == 0


@pytest.mark.parametrize(
    "change",
    [
        ("--mechanism", "binary"),
        ("--value", "yes"),
        ("--opens", "soon"),
        ("--retention-days", "-1"),
        ("--epsilon", "99"),
    ],
)
def test_tasks_that_mean_nothing_are_refused(run: Run, change: tuple[str, str]) -> None:
    assert run(*TASK, *change).status == 2


def test_every_name_is_documented() -> None:
    page = (DOCS / "reference" / "local.md").read_text(encoding="utf-8")
    public = [
        name for kind in (local.FrequencyEstimate, local.Randomizer) for name in dir(kind) if not name.startswith("_")
    ]
    assert not unmentioned([*local.__all__, *public, *client.RULES], page)
    assert not unmentioned((name for rule in client.RULES.values() for name in rule.ranges(5)), page)


def test_names_are_complete() -> None:
    for name in local.__all__:
        assert getattr(local, name) is not None
    assert set(local.__all__) == {*local._HOME_OF, "client"}
    with pytest.raises(AttributeError):
        local.nothing  # noqa: B018
    assert re.match("Local differential privacy", local.__doc__ or "")


def test_reports_come_from_several_files(task: client.Task, folder: Path, run: Run) -> None:
    """Plain, compressed, from standard input, and as a collector released them; what is in two files counts once."""
    entropy = StreamEntropy("files")
    lines = [client.report(task, "yes", entropy.read) for _ in range(40)]
    (folder / "a.ndjson").write_bytes(b"\n".join(lines[:20]))
    (folder / "b.ndjson.gz").write_bytes(gzip.compress(b"\n".join([*lines[10:30], b"nonsense"])))
    collector = Collector(folder / "reports", task)
    collector.bring(b"\n".join(lines[30:])).result()
    (released,) = collector.release()
    collector.close()
    ask = ("local", "estimate", "task.toml", "--format", "json")
    outcome = run(*ask, "a.ndjson", "b.ndjson.gz", str(released), str(released))
    document = json.loads(outcome.out)
    assert document["reports"] == 40
    assert [(one["line"], one["reason"]) for one in document["rejected"]][10:12] == [
        (21, "the line is not a JSON object in UTF-8"), (1, "the id was seen before"),
    ]  # fmt: skip
    assert "b.ndjson.gz: line 1 rejected: the id was seen before" in outcome.err
    assert json.loads(run(*ask, "-", stdin=b"\n".join(lines)).out)["reports"] == 40


@pytest.mark.long
def test_reports_that_a_collector_released_into_a_database(
    task: client.Task, folder: Path, run: Run, postgres: str
) -> None:
    ask = ("local", "estimate", "task.toml", postgres, "--format", "json")
    assert (run(*ask).status, "no released reports" in run(*ask).err) == (2, True)
    lines = [client.report(task, "yes", StreamEntropy(f"{i}").read) for i in range(30)]
    collector = Collector(folder / "unused", task, database=postgres)
    assert collector.bring(b"\n".join(lines)).result().taken == 30
    collector.release()
    collector.close()
    assert not (folder / "unused").exists()
    found = json.loads(run(*ask).out)
    (folder / "lines.ndjson").write_bytes(b"\n".join(lines))
    expected = json.loads(run("local", "estimate", "task.toml", "lines.ndjson", "--format", "json").out)
    assert (found["reports"], found["estimates"]) == (30, expected["estimates"])
    assert run("local", "estimate", "task.toml", "postgres://a:secret@host/db").status == 2


def test_files_that_are_none_are_refused(task: client.Task, folder: Path, run: Run) -> None:
    (folder / "cut.gz").write_bytes(gzip.compress(b"x" * 1000)[:-9])
    (folder / "not.gz").write_bytes(b"x")
    (folder / "not.parquet").write_bytes(b"x")
    for name, reason in (("cut.gz", "whole gzip"), ("not.gz", "whole gzip"), ("not.parquet", "collector released")):
        outcome = run("local", "estimate", "task.toml", name)
        assert (outcome.status, outcome.out) == (2, "")
        assert reason in outcome.err
    other = client.task_of({**task.document, "question": "Another?"})
    collector = Collector(folder / "reports", other)
    collector.bring(client.report(other, "yes", StreamEntropy("other").read)).result()
    (released,) = collector.release()
    collector.close()
    assert "another task" in run("local", "estimate", "task.toml", str(released)).err


def test_an_answer_in_the_command_is_refused_with_the_reason(task: client.Task, run: Run) -> None:
    outcome = run("local", "report", "task.toml", "--answer", "yes", stdin=b"no")
    assert (outcome.status, outcome.out) == (2, "")
    assert "stays in the shell's history" in outcome.err
    assert "--answer" not in run("local", "report", "--help").out.replace("--answer:", "")


def test_answers_are_typed_unseen_on_a_terminal(task: client.Task, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def typed(prompt: str) -> str:
        asked.append(prompt)
        return "yes"

    monkeypatch.setattr("getpass.getpass", typed)
    monkeypatch.setattr("sys.stdin", Terminal())
    answer = typed_answers.typed_answer(task)
    assert answer == "yes"
    assert asked == ["Which? (no / yes / perhaps; it is not shown) "]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_many_people_from_a_csv(task: client.Task, folder: Path, run: Run) -> None:
    (folder / "people.csv").write_text("\ufeffanswer\nyes\nno\nyes\n")
    outcome = run("local", "report", "task.toml", "--people", "people.csv")
    assert (outcome.status, len(outcome.out.splitlines())) == (0, 3)
    assert local.collect(task, outcome.out.encode().splitlines()).rejected == ()
    (folder / "wrong.csv").write_text("a,b\nyes,no\n")
    for file, more in (("wrong.csv", ()), ("people.csv", ("--device", "device.json"))):
        assert run("local", "report", "task.toml", "--people", file, *more).status == 2
    (folder / "none.csv").write_text("answer\nyes\nmaybe\n")
    assert (run("local", "report", "task.toml", "--people", "none.csv").status) == 2


def test_values_come_from_a_file(folder: Path, run: Run) -> None:
    """Many values do not fit a command line; what a file may not have is refused by its option."""
    values = [f"value {number}" for number in range(3000)]
    (folder / "values.txt").write_text("\r\n".join(values) + "\n\n")
    asked = (
        "local",
        "task",
        "--question",
        "Which?",
        "--epsilon",
        "1",
        "--opens",
        "2026-01-01",
        "--closes",
        "2099-12-31",
    )
    assert client.read_task(run(*asked, "--values", "values.txt").out).values == tuple(values)
    for content in (b"one", b"a\na", b"\xff\nb"):
        (folder / "values.txt").write_bytes(content)
        outcome = run(*asked, "--values", "values.txt")
        assert (outcome.status, outcome.out) == (2, "")
        assert "--values" in outcome.err
    assert run(*asked, "--values", "values.txt", "--value", "a", "--value", "b").status == 2
