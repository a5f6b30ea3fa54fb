"""Who watches hears of the work around it, in steps, and of its end."""

from io import StringIO

import pytest

from lapwing.cli.progress import BLANK, WAITS, ProgressLine, shown
from lapwing.machine import progress, waiting


class Heard:
    def __init__(self) -> None:
        self.lines: list[tuple[str, float]] = []
        self.cleared = 0

    def show(self, what: str, fraction: float) -> None:
        self.lines.append((what, round(fraction, 6)))

    def clear(self) -> None:
        self.cleared += 1


def test_steps_are_parts_of_the_work_around_them() -> None:
    heard = Heard()
    with progress.watched(heard), progress.work("reading"):
        for index in range(2):
            with progress.step(index, 2):
                progress.report(0.5)
                with progress.step(3, 4):
                    progress.report(1)
        progress.report(1)
    assert heard.lines == [("reading", x) for x in (0.25, 0.5, 0.75, 1.0, 1.0)]
    assert heard.cleared == 1


def test_what_an_engine_says_stays_between_nothing_and_all() -> None:
    heard = Heard()
    with progress.watched(heard), progress.work("reading"):
        progress.report(-0.01)
        progress.report(7)
    assert [fraction for _, fraction in heard.lines] == [0, 1]


def test_nobody_need_watch() -> None:
    progress.report(0.5)
    with progress.step(0, 2), progress.work("reading"):
        progress.report(0.5)


def test_it_ends_when_the_work_fails() -> None:
    heard = Heard()
    with pytest.raises(KeyError), progress.watched(heard), progress.work("reading"):
        raise KeyError
    assert heard.cleared == 1
    progress.report(0.5)
    assert heard.lines == []


class Terminal:
    def __init__(self) -> None:
        self.written = ""

    def write(self, text: str) -> None:
        self.written += text

    def flush(self) -> None:
        pass


def test_a_line_is_written_after_a_second_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("lapwing.cli.progress.time.monotonic", lambda: now[0])
    terminal = Terminal()
    line = ProgressLine(terminal)  # type: ignore[arg-type]
    for second in (100.0, 100.9):
        now[0] = second
        line.show("Reading visits", 0.1)
    line.clear()
    assert terminal.written == ""
    for second in (200.0, 201.0, 201.01, 201.5):
        now[0] = second
        line.show("Reading visits", 0.5)
    assert terminal.written == f"{BLANK}Reading visits …  50 %" * 2
    line.clear()
    assert terminal.written.endswith(BLANK)
    terminal.written = ""
    now[0] += 10
    line.show("a\x1b[2Jb" + "x" * 100, 1)
    now[0] += 2
    line.show("a\x1b[2Jb" + "x" * 100, 1)
    assert terminal.written == f"{BLANK}a?[2Jb{'x' * 54} … 100 %"


def test_several_short_works_of_one_command_are_one_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("lapwing.cli.progress.time.monotonic", lambda: now[0])
    terminal = Terminal()
    line = ProgressLine(terminal)  # type: ignore[arg-type]
    for begin, what in ((100.0, "Reading a"), (100.8, "Reading b"), (103.0, "Reading c")):
        for second in (begin, begin + 0.7):
            now[0] = second
            line.show(what, 0.5)
        line.clear()
    assert terminal.written == f"{BLANK}Reading b …  50 %{BLANK}", "the third begins after a pause"


def test_a_wait_is_said_to_whoever_listens(capsys: pytest.CaptureFixture[str]) -> None:
    """On a terminal in the line of progress; else in one line that stays. Nobody else hears of it."""
    waiting.say("workers")
    with shown():  # what tests write to is no terminal
        waiting.say("workers")
        waiting.say(None)
    assert capsys.readouterr().err == f"lapwing: {WAITS['workers']}.\n"
    stream = StringIO()
    line = ProgressLine(stream)
    with waiting.heard(line.wait):
        waiting.say("lost workers")
        waiting.say(None)
    assert stream.getvalue() == f"{BLANK}{WAITS['lost workers']} …{BLANK}"
