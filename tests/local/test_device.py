"""The device's ledger: counted before it is sent, whatever crashes, and added up exactly."""

import decimal
import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from math import log
from pathlib import Path
from typing import Any

import pytest

from lapwing.local import DyadicTree, KaryResponse, Memoised, client, new_task
from lapwing.local.client import device as devices
from lapwing.local.client import private_file
from tests.local.test_client import VECTORS, alone
from tests.support.effort import one_in
from tests.support.fixed_entropy import StreamEntropy
from tests.support.processes import CONTEXT

DAY = date(2027, 1, 4)
OPEN: dict[str, Any] = {"opens": DAY, "closes": date(2027, 12, 31)}
FRESH = new_task("Which?", ["a", "b", "c"], KaryResponse.for_epsilon(Fraction(3, 10), 3), **OPEN)
OTHER = new_task("And?", ["a", "b", "c"], KaryResponse.for_epsilon(Fraction(34567, 100_000), 3), **OPEN)
KEPT = Memoised.for_epsilons(Fraction(1, 2), 2, 3)
MEMOISED = new_task("Which, always?", ["a", "b", "c"], KEPT, **OPEN)
TREE = new_task("At home?", ["no", "yes"], DyadicTree.for_epsilon(1, 8, 2, days=7), **OPEN)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "device.json")


def send(path: str, task: client.Task, answer: str, day: date = DAY, read: client.Read = os.urandom) -> bytes | None:
    return devices.report_from_device(path, task, answer, read, day)


def count(path: str, task: client.Task) -> int:
    return devices.read_device(path).of(task).until()


# What it adds up


def test_fresh_reports_multiply(path: str) -> None:
    """Ten reports of three tenths are three, exactly."""
    for number in range(10):
        line = send(path, FRESH, "abc"[number % 3], DAY + timedelta(days=number // 4))
        assert json.loads(line or b"")["task"] == FRESH.id
    found = devices.read_device(path)
    assert found.began == DAY
    assert found.epsilon() == found.epsilon_unchanged() == 3
    assert [str(found.epsilon(day)) for day in found.days()] == ["1.200000000000", "2.400000000000", "3.000000000000"]
    assert found.epsilon(DAY - timedelta(days=1)) == 0
    assert FRESH.asked.together(10)[0] == FRESH.ratio**10


def test_memoised_reports_follow_the_curve_if_nothing_changed(path: str) -> None:
    for reports in range(1, 6):
        send(path, MEMOISED, "a")
        found = devices.read_device(path)
        assert float(found.epsilon_unchanged()) == pytest.approx(log(KEPT.unchanged_ratio(reports)), abs=2e-12)
        always = found.epsilon()
        assert always is not None
        assert float(always) == pytest.approx(log(KEPT.changing_ratio(reports)), abs=2e-12)
        assert (found.epsilon_unchanged() < always) == (reports > 1)


def test_a_tree_counts_once(path: str) -> None:
    level, sent = None, []
    for week in range(8):
        line = send(path, TREE, ("no", "yes")[week % 2], DAY + timedelta(weeks=week, days=week % 7))
        sent += [] if line is None else [line]
        level = devices.read_device(path).of(TREE).memory["level"]
        assert devices.read_device(path).epsilon() == (1 if sent else 0)
    assert isinstance(level, int)
    assert len(sent) == count(path, TREE) == 8 >> level
    with pytest.raises(client.AnswerRefused, match="Period 8 of 8 cannot follow period 8"):
        send(path, TREE, "no", DAY + timedelta(weeks=7, days=6))
    with pytest.raises(client.AnswerRefused, match="Period 9"):
        send(path, TREE, "no", DAY + timedelta(weeks=8))
    assert len(sent) == count(path, TREE)


def test_tasks_add_up(path: str) -> None:
    for task in (FRESH, FRESH, MEMOISED):
        send(path, task, "b")
    found = devices.read_device(path)
    assert found.epsilon() == Decimal("1.1")
    assert [each.task for each in found.reported.values()] == [FRESH, MEMOISED]


def test_several_questions_of_a_record(path: str) -> None:
    assert isinstance(FRESH.asked, client.Asked)
    asked = client.Attributes((("Which?", FRESH.asked), ("Where?", FRESH.asked)))
    task = client.Task(
        question="Two things",
        asked=asked,
        epsilons=client.true_epsilons(asked),
        unit="one record",
        retention_days=1,
        **OPEN,
    )
    for _ in range(2):
        devices.report_from_device(path, task, {"Which?": "a", "Where?": "b"}, os.urandom, DAY)
    assert devices.read_device(path).epsilon() == Decimal("0.6")


def test_a_new_file_counts_as_new(path: str) -> None:
    send(path, FRESH, "a")
    os.remove(path)
    with pytest.raises(devices.DeviceRefused, match="no such file"):
        devices.read_device(path)
    send(path, FRESH, "a", DAY + timedelta(days=9))
    found = devices.read_device(path)
    assert found.began == DAY + timedelta(days=9)
    assert found.epsilon() == Decimal("0.3")


def test_reports_of_every_mechanism_can_be_added_up() -> None:
    """The more reports, the more is lost; and an answer that never changes loses no more than one that may."""
    seen = set()
    for page in VECTORS:
        for vector in json.loads(page.read_text(encoding="utf-8"))["reports"]:
            task = client.task_of(vector["task"])
            seen.add(task.mechanism)
            ratios = [task.asked.together(reports) for reports in (0, 1, 3)]
            assert ratios[0] == (Fraction(1), Fraction(1))
            assert 1 < ratios[1][0] <= ratios[2][0]
            for unchanged, always in ratios:
                assert always is None or unchanged <= always
    assert seen >= set(client.RULES)


def check_that_two_tasks_with_one_id_count_twice(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client.Task, "id", property(lambda self: "0" * 32))
    for task in (FRESH, OTHER):
        send(path, task, "a")
    assert devices.read_device(path).epsilon() == FRESH.epsilon + OTHER.epsilon


def test_two_tasks_with_one_id_count_twice(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_that_two_tasks_with_one_id_count_twice(path, monkeypatch)


def test_a_ledger_that_takes_them_for_one_is_caught(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client.Task, "digest", property(lambda self: self.id, lambda self, digest: None))
    with pytest.raises(AssertionError):
        check_that_two_tasks_with_one_id_count_twice(path, monkeypatch)


def check_that_it_adds_up_in_its_own_arithmetic(path: str) -> None:
    """A program that rounds to two digits, downwards, still counts all."""
    for task in (FRESH, FRESH, MEMOISED):
        send(path, task, "a")
    send(path, OTHER, "a")
    devices.set_limit(path, Decimal("1.745670"), DAY)
    with decimal.localcontext() as narrow:
        narrow.prec, narrow.rounding = 2, decimal.ROUND_FLOOR
        found = devices.read_device(path)
        assert str(found.epsilon()) == str(found.epsilon_unchanged()) == "1.445670000000"
        send(path, FRESH, "a")
        with pytest.raises(devices.LimitReached, match=r"epsilon 2\.04567 in all"):
            send(path, FRESH, "a")


def test_it_adds_up_in_its_own_arithmetic(path: str) -> None:
    check_that_it_adds_up_in_its_own_arithmetic(path)


def test_a_ledger_in_the_arithmetic_of_the_caller_is_caught(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_sum", lambda each: sum(each, Decimal(0)))
    with pytest.raises(AssertionError):
        check_that_it_adds_up_in_its_own_arithmetic(path)


@pytest.mark.parametrize("day", [OPEN["opens"] - timedelta(days=1), OPEN["closes"] + timedelta(days=1)])
def test_nothing_is_sent_while_a_task_is_closed(path: str, day: date) -> None:
    for task, answer in ((FRESH, "a"), (TREE, "yes")):
        with pytest.raises(client.AnswerRefused, match="open from 2027-01-04 to 2027-12-31"):
            send(path, task, answer, day)
    assert not Path(path).exists()
    for border in (OPEN["opens"], OPEN["closes"]):
        assert send(path, FRESH, "a", border)


# The limit


def test_the_limit_is_kept_and_reached_exactly(path: str) -> None:
    devices.set_limit(path, Decimal("0.9"), DAY)
    for _ in range(3):
        send(path, FRESH, "a")
    before = Path(path).read_bytes()
    for task in (FRESH, MEMOISED):
        with pytest.raises(devices.LimitReached, match=r"above its limit of 0\.9"):
            send(path, task, "a")
    assert Path(path).read_bytes() == before
    devices.set_limit(path, None, DAY)
    assert send(path, FRESH, "a") is not None


@pytest.mark.parametrize("limit", ["NaN", "sNaN", "Infinity", "-1", "1e13", "1e-13"])
def test_a_limit_that_is_none_is_refused(path: str, limit: str) -> None:
    with pytest.raises(devices.DeviceRefused, match="A limit is a number"):
        devices.set_limit(path, Decimal(limit), DAY)
    assert not Path(path).exists()
    assert devices.set_limit(path, Decimal("1e2"), DAY) == devices.read_device(path)


def test_so_many_reports_are_counted(path: str) -> None:
    send(path, FRESH, "a")
    rewrite(path, days={DAY.isoformat(): devices.MOST_REPORTS})
    assert devices.read_device(path).epsilon() == 3 * Decimal(devices.MOST_REPORTS) / 10
    before = Path(path).read_bytes()
    with pytest.raises(devices.LimitReached, match="the maximum"):
        send(path, FRESH, "a")
    assert Path(path).read_bytes() == before


def rewrite(path: str, **parts: Any) -> None:
    """Change parts of a device's file, or of its first task."""
    document = json.loads(Path(path).read_text())
    for key, value in parts.items():
        (document if key in document else document["reported"][0])[key] = value
    Path(path).write_text(json.dumps(document))


def refusals(path: Path, answers: str) -> list[bool]:
    """After which of several memoised reports the limit is reached."""
    devices.set_limit(str(path), Decimal("1.5"), DAY)
    refused = []
    for answer in answers:
        try:
            send(str(path), MEMOISED, answer)
            refused.append(False)
        except devices.LimitReached:
            refused.append(True)
    return refused


def check_that_refusals_say_nothing(folder: Path) -> None:
    steady, changing = (refusals(folder / answers, answers) for answers in ("aaaa", "abca"))
    assert steady == changing
    assert steady == sorted(steady)
    assert steady[-1]


def test_refusals_do_not_depend_on_answers(tmp_path: Path) -> None:
    check_that_refusals_say_nothing(tmp_path)


def test_a_limit_that_looks_at_answers_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes the curve as long as the device kept one answer: who is refused has changed theirs."""
    true = devices.Reported.epsilon

    def looking(self: devices.Reported, reports: int) -> Decimal | None:
        return self.epsilon_unchanged(reports) if len(self.memory) <= 1 else true(self, reports)

    monkeypatch.setattr(devices.Reported, "epsilon", looking)
    with pytest.raises(AssertionError):
        check_that_refusals_say_nothing(tmp_path)


# Crashes


class Crash(BaseException):
    """Stands for a process that dies."""


CALLS = ("open", "fsync", "replace", "link", "unlink")


def crash_at(step: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the process die before its so many-th call that changes the file; return the calls made."""
    made: list[str] = []
    for name in CALLS:
        monkeypatch.setattr(os, name, dying(name, step, made))
    return made


def dying(name: str, step: int, made: list[str]) -> Any:
    """A function of the system before whose so many-th call the process dies."""
    real = getattr(os, name)

    def call(*given: Any, **more: Any) -> Any:
        made.append(name)
        if len(made) == step:
            raise Crash
        return real(*given, **more)

    return call


def check_crashes(path: str) -> None:
    """Whatever step a device dies at, no report left that is not counted, and the kept answer is one for ever."""
    send(path, MEMOISED, "a")
    steps = 0
    while True:
        steps += 1
        before = devices.read_device(path).of(MEMOISED)
        line = None
        with pytest.MonkeyPatch.context() as patched:
            made = crash_at(steps, patched)
            with suppress(Crash):
                line = send(path, MEMOISED, "b")
        after = devices.read_device(path).of(MEMOISED)
        assert after.until() >= before.until() + (line is not None)
        assert before.memory.items() <= after.memory.items()
        if line is not None:
            assert "1" in after.memory
            assert made == ["open", "unlink", "open", "fsync", "replace", "open", "fsync"]
            assert steps == len(made) + 1
            return


def test_a_crash_never_sends_what_is_not_counted(path: str) -> None:
    check_crashes(path)
    assert os.listdir(os.path.dirname(path)) == ["device.json"]


def test_whatever_step_a_first_report_dies_at_there_is_a_whole_file_or_none(tmp_path: Path) -> None:
    for step in range(1, 30):
        path, line = str(tmp_path / f"{step}.json"), None
        with pytest.MonkeyPatch.context() as patched:
            made = crash_at(step, patched)
            with suppress(Crash):
                line = send(path, MEMOISED, "b")
        if os.path.exists(path):
            assert count(path, MEMOISED) >= (line is not None)
        assert send(path, MEMOISED, "b")
        if line is not None:
            assert made[:6] == ["open", "open", "fsync", "link", "unlink", "open"]
            assert step == len(made) + 1
            return
    pytest.fail("it never came to its end")


def test_a_device_that_sends_first_is_caught(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It returns the report, and records it if it can."""
    real = vars(devices)["put"]

    def later(path: str, content: bytes) -> None:
        with suppress(Crash):
            real(path, content)

    monkeypatch.setattr(devices, "put", later)
    with pytest.raises(AssertionError):
        check_crashes(path)


def test_a_file_that_is_written_in_place_is_caught(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def in_place(path: str, content: bytes) -> None:
        with open(path, "wb") as file:
            for half in (content[: len(content) // 2], content[len(content) // 2 :]):
                file.write(half)
                file.flush()
                os.fsync(file.fileno())

    monkeypatch.setattr(devices, "put", in_place)
    with pytest.raises(devices.DeviceRefused):
        check_crashes(path)


def test_what_is_not_needed_is_not_kept(path: str) -> None:
    """The file of a tree has the last answer, and no history of answers."""
    sizes = set()
    for week in range(8):
        send(path, TREE, ("yes", "no")[week % 2], DAY + timedelta(weeks=week))
        document = json.loads(Path(path).read_text())
        (only,) = document["reported"]
        assert set(only["memory"]) == {"level", "slot", "period", "answer", "changes", "change"}
        sizes.add(Path(path).read_text().count("answer"))
    assert sizes == {2}  # the unit says "answer" too


# Two at once


def report_many(path: str, times: int) -> None:
    for _ in range(times):
        send(path, FRESH, "a")


def test_two_processes_add_up(path: str) -> None:
    workers = [CONTEXT.Process(target=report_many, args=(path, 20)) for _ in range(2)]
    for worker in workers:
        worker.start()
    report_many(path, 20)
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    assert count(path, FRESH) == 60


def interrupted(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another reports while one has read the file, and not written it yet; if it is kept out, it goes second."""
    other = threading.Thread(target=send, args=(path, FRESH, "a"))
    real = vars(devices)["held"]

    @contextmanager
    def holding(*given: Any) -> Iterator[bytes]:
        with real(*given) as content:
            if threading.current_thread() is threading.main_thread() and not other.ident:
                other.start()
                other.join(0.3)
            yield content

    send(path, FRESH, "a")
    with monkeypatch.context() as patched:
        patched.setattr(devices, "held", holding)
        send(path, FRESH, "a")
        other.join(60)
    assert count(path, FRESH) == 3


def test_another_waits_for_the_lock(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(path, monkeypatch)


def test_a_device_without_a_lock_is_caught(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", lambda file, kind: None)
    with pytest.raises(AssertionError):
        interrupted(path, monkeypatch)


def test_a_lock_of_a_file_that_was_replaced_is_caught(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_file, "_is_at", lambda handle, path: True)
    with pytest.raises(AssertionError):
        interrupted(path, monkeypatch)


# The file


def test_it_is_for_its_owner_alone(path: str) -> None:
    mask = os.umask(0)
    try:
        send(path, FRESH, "a")
        send(path, FRESH, "a")
    finally:
        os.umask(mask)
    assert os.stat(path).st_mode & 0o777 == 0o600
    os.chmod(path, 0o640)
    for use in (lambda: send(path, FRESH, "a"), lambda: devices.read_device(path)):
        with pytest.raises(devices.DeviceRefused, match="chmod 600"):
            use()
    os.chmod(path, 0o600)
    assert count(path, FRESH) == 2


def check_that_nobody_gets_a_look(path: str) -> None:
    """Nothing is written into a file that stands where the new one is to be, nor where a link there leads."""
    victim, new = Path(path).with_name("victim"), Path(path + ".new")
    for planted in (os.symlink, os.link):
        victim.write_text("precious")
        victim.chmod(0o644)
        planted(victim, new)
        send(path, FRESH, "a")
        assert victim.read_text() == "precious"
        assert not os.path.islink(path)
        assert os.stat(path).st_mode & 0o777 == 0o600
        assert not os.path.lexists(new)


def test_nobody_gets_a_look(path: str) -> None:
    check_that_nobody_gets_a_look(path)


def test_a_file_that_takes_what_stands_there_is_caught(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_file, "_NEW", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    real = os.unlink
    monkeypatch.setattr(os, "unlink", lambda path: None if path.endswith("json.new") else real(path))
    with pytest.raises(AssertionError):
        check_that_nobody_gets_a_look(path)


def check_that_lost_memory_is_noticed(path: str) -> None:
    """Drawing again what was kept would reveal more than the ledger says."""
    for task, answer in ((MEMOISED, "a"), (TREE, "no")):
        with suppress(FileNotFoundError):
            os.remove(path)
        send(path, task, answer)
        rewrite(path, memory={})
        before = Path(path).read_bytes()
        with pytest.raises(devices.DeviceRefused, match="again, which reveals more"):
            send(path, task, answer, DAY + timedelta(weeks=1))
        assert Path(path).read_bytes() == before


def test_lost_memory_is_noticed(path: str) -> None:
    check_that_lost_memory_is_noticed(path)


def test_a_device_that_draws_again_is_caught(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = devices._reported

    def trusting(given: Any) -> devices.Reported:
        if given["memory"]:
            return real(given)
        days = {date.fromisoformat(day): number for day, number in given["days"].items()}
        return devices.Reported(task=client.task_of(given["task"]), days=days)

    monkeypatch.setattr(devices, "_reported", trusting)
    with pytest.raises(pytest.fail.Exception):
        check_that_lost_memory_is_noticed(path)


def test_a_link_leads_to_one_file(path: str, tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    send(path, FRESH, "a")
    link.symlink_to(path)
    send(str(link), FRESH, "a")
    assert link.is_symlink()
    assert count(path, FRESH) == 2


@pytest.mark.parametrize(
    "change",
    one_in(4, [
        {"format": 2}, {"began": "soon"}, {"limit": "much"}, {"limit": 3.5j}, {"reported": None}, {"reported": [{}]},
        {"days": {"2027-01-04": 0}}, {"days": {"2027-01-04": True}}, {"days": {"then": 1}}, {"days": []},
        {"memory": 3}, {"memory": []}, {"task": {}}, {"task": {**FRESH.document, "epsilon": "0.1"}},
        {"memory": {"1": 0}}, {"days": {"2027-01-04": 10**18}}, {"limit": 3}, {"limit": "NaN"}, {"limit": "sNaN"},
        {"limit": "Infinity"}, {"limit": "-1"}, {"limit": "1e9"},
        {"days": {"2027-01-04": 1, "2027-01-05": devices.MOST_REPORTS}},
    ]),
)  # fmt: skip
def test_a_damaged_file_is_never_begun_anew(path: str, change: dict[str, Any]) -> None:
    send(path, FRESH, "a")
    rewrite(path, **{key: value if value != 3.5j else [3] for key, value in change.items()})
    check_that_it_is_damaged(path)


def check_that_it_is_damaged(path: str) -> None:
    with pytest.raises(devices.DeviceRefused, match="damaged"):
        send(path, FRESH, "a")
    with pytest.raises(devices.DeviceRefused, match="damaged"):
        devices.read_device(path)


def test_what_stands_there_twice_is_damage(path: str) -> None:
    """Of two entries the second would count, and the first be forgotten."""
    for days in range(3):
        send(path, FRESH, "a", DAY + timedelta(days=days))
    text = Path(path).read_text()
    document = json.loads(text)
    document["reported"] += [{**document["reported"][0], "days": {"2027-01-04": 1}}]
    Path(path).write_text(json.dumps(document))
    check_that_it_is_damaged(path)
    Path(path).write_text(text.replace('"2027-01-04": 1,', '"2027-01-04": 5, "2027-01-04": 1,'))
    check_that_it_is_damaged(path)
    Path(path).write_text(text.replace('"2027-01-04": 1,', '"2027-01-04": 5, "20270104": 1,'))
    check_that_it_is_damaged(path)
    Path(path).write_text(text)
    assert count(path, FRESH) == 3


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, "\xff"])
def test_what_is_no_device_is_refused(path: str, text: str) -> None:
    Path(path).write_text(text, encoding="latin-1")
    os.chmod(path, 0o600)
    with pytest.raises(devices.DeviceRefused, match="damaged"):
        send(path, FRESH, "a")
    assert Path(path).read_text(encoding="latin-1") == text


def test_a_refused_answer_changes_nothing(path: str) -> None:
    send(path, FRESH, "a")
    before = Path(path).read_bytes()
    with pytest.raises(client.AnswerRefused):
        send(path, FRESH, "d")
    with pytest.raises(client.NoRandomness):
        send(path, FRESH, "a", read=lambda size: b"")
    assert Path(path).read_bytes() == before


def test_a_first_report_that_is_refused_begins_a_file_without_reports(path: str) -> None:
    with pytest.raises(client.AnswerRefused):
        send(path, FRESH, "d")
    assert devices.read_device(path) == devices.Device(began=DAY)
    send(path, FRESH, "a", DAY + timedelta(days=1))
    found = devices.read_device(path)
    assert (found.began, found.epsilon()) == (DAY, FRESH.epsilon)


def test_it_reads_what_it_writes(path: str) -> None:
    for task in (FRESH, MEMOISED, MEMOISED):
        send(path, task, "b", read=StreamEntropy("same").read)
    devices.set_limit(path, Decimal("7.5"), DAY)
    found = devices.read_device(path)
    assert devices._read(json.dumps(devices._document(found)).encode()) == found
    assert found.of(MEMOISED).memory == {"1": found.of(MEMOISED).memory["1"]}
    assert "1" not in repr(found.of(FRESH).memory)
    assert "memory" not in repr(found)


def test_it_needs_the_standard_library_only() -> None:
    said = alone("from lapwing.local.client import device; print(device.FORMAT)")
    assert said.strip() == "1", said
