"""How fast a machine is: measured on made-up rows, the least of several runs, in steps, and again when all is quiet."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from math import log2
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lapwing.server.deadline import asking, speed
from lapwing.server.deadline.asking import AGAIN, _Quiet, _Warming
from lapwing.server.deadline.cost import Speed, cost_of
from lapwing.server.deadline.plain import QUERIES
from lapwing.server.deadline.process import Opened
from lapwing.server.deadline.speed import Calibration, Found, _Times, least, published

STEPS = dict.fromkeys(("compared", "known", "null", "branched", "summed", "count_filtered", "sum_filtered"), 1e-9)
FAST = Speed(question=0.004, nanosecond=2e-10, row=5e-7, number=4e-6, part=5e-5, plan=1e-3, **STEPS)


@pytest.fixture(scope="module")
def calibration() -> Iterator[Calibration]:
    made = Calibration(rows=2_000, plain_rows=4_000)
    yield made
    made.close()


def test_what_is_published_is_in_steps_and_never_below() -> None:
    for figure, step in asdict(published(FAST)).items():
        assert (4 * log2(step)).is_integer()
        assert asdict(FAST)[figure] <= step < 1.2 * asdict(FAST)[figure]
    assert published(replace(FAST, question=0.00401)) == published(FAST)


def runs(busy: float) -> Found:
    times = [
        _Times(engine=0.001 * busy * n, beside=0.002 * busy * n, nanoseconds=1e7, numbers=1000, parts=50 * n)
        for n in range(1, 6)
    ]
    steps = {name: 1e-9 * busy * n for n, name in enumerate(QUERIES, start=4)}
    return Found(each=0.005 * busy, times=tuple(times), plan=0.001 * busy, steps=steps)


def test_of_two_runs_the_least_counts_time_by_time() -> None:
    assert least(runs(2), runs(1)) == least(runs(1), runs(2)) == runs(1)
    nothing = replace(
        runs(1),
        times=tuple(replace(one, engine=0.0, beside=0.0) for one in runs(1).times),
        steps=dict.fromkeys(QUERIES, 0.0),
    )
    assert all(figure > 0 for figure in asdict(nothing.speed(1e-7)).values())


@pytest.mark.long
def test_a_busy_start_is_not_kept(calibration: Calibration, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run finds too much on a busy machine; later ones lower what is published, and none raises it."""
    monkeypatch.setattr(calibration, "_least", None)
    seen = []
    slow, fast = runs(2), runs(1)
    for found in (slow, slow, fast, slow):
        monkeypatch.setattr(Calibration, "_found", lambda _self, _go_on, found=found: found)
        seen.append((calibration.run(), calibration.speed))
    assert [changed for changed, _ in seen] == [True, False, True, False]
    assert [figures for _, figures in seen] == [
        published(one.speed(calibration._row)) for one in (slow, slow, fast, fast)
    ]


@pytest.mark.long
def test_what_is_measured_is_charged_and_kept_anew(calibration: Calibration) -> None:
    """A stored answer would take less than what people ask, as it was once."""
    before = len(calibration._service.session.budget().history)
    assert calibration.run()
    asked = len(calibration._service.session.budget().history) - before
    assert asked == (len(speed.OTHERS) + 3) * (speed.TIMES + 1) + speed.AT_ONCE + speed.TIMES
    found = calibration._least
    assert found is not None
    assert all(figure > 0 for figure in asdict(calibration.speed).values())
    (plan,) = calibration._service.plans("SELECT COUNT(*) FROM plain WHERE amount < 500")
    small = calibration._service.seconds("SELECT COUNT(*) FROM plain WHERE amount < 500")
    assert cost_of([plan], calibration.speed, indexed=True).seconds > small / 4
    handed = cost_of([plan], calibration.speed, indexed=True, handed=True).seconds
    assert cost_of([plan], calibration.speed, indexed=True).seconds == handed + calibration.speed.plan


@pytest.mark.long
def test_a_run_ends_where_somebody_comes(calibration: Calibration) -> None:
    asked = iter([True, True, False])
    before = calibration._least
    assert not calibration.run(lambda: next(asked))
    assert next(asked, None) is None
    assert calibration._least == before


def test_it_is_measured_again_when_nothing_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, said, runs = [0.0], list[Opened](), list[float]()
    monkeypatch.setattr(asking, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    class Measuring:
        speed = FAST

        def run(self, go_on: Any) -> bool:
            runs.append(clock[0])
            return len(runs) == 1

    quiet = _Quiet()
    line: Any = SimpleNamespace(say=said.append)
    warming = _Warming(cast(Any, None), cast(Any, None), line, cast(Any, Measuring()), quiet)
    warming.measure_again()
    assert runs == []  # it was measured just now
    clock[0] = AGAIN + 1
    quiet.until(clock[0] + 0.25)
    warming.measure_again()
    assert runs == []
    quiet.later(0.5)  # a late answer moves what is under way
    clock[0] += 0.5
    warming.measure_again()
    assert runs == []
    clock[0] += 0.5
    for _ in range(3):
        warming.measure_again()
    assert len(runs) == 1
    assert [one.speed for one in said] == [FAST]
    clock[0] += 2 * AGAIN
    warming.measure_again()
    assert len(runs) == 2
    assert len(said) == 1  # nothing has changed
