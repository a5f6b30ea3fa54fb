"""The attack on the clock: its classifier finds what is there and nothing else, and its questions are answered."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

import lapwing as lw
from lapwing.release.request import Timing
from tests.support.effort import only
from tests.support.refusals import refused_as

FILE = Path(__file__).parents[2] / "benchmarks" / "timing.py"


def benchmark() -> Any:
    """Return the module, which is not part of the package."""
    spec = spec_from_file_location("timing_benchmark", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look for it there
    sys.path.insert(0, str(FILE.parent))  # it shares functions with another benchmark
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(FILE.parent))
    return module


timing = benchmark()
TRIALS, COLUMNS = 1000, len(timing.FEATURES)


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng()


def right(seen: Any, within: Any, generator: np.random.Generator) -> float:
    hits, count, _ = timing.guessed(seen, within, generator)
    assert count == len(within) - len(within) // 2
    return float(hits / count)


@pytest.mark.long
def test_it_finds_a_shift_in_one_of_many_features(generator: np.random.Generator) -> None:
    seen, within = generator.random((TRIALS, COLUMNS)), generator.random(TRIALS) < 0.5
    seen[:, 5] += 0.9 * within  # which nine in ten times is enough to tell, and else half of the time
    assert right(seen, within, generator) > 0.88


def test_it_finds_what_no_single_feature_tells(generator: np.random.Generator) -> None:
    seen = generator.random((TRIALS, 3))
    assert right(seen, (seen[:, 0] > 0.5) ^ (seen[:, 1] > 0.5), generator) > 0.8


@pytest.mark.long
def test_of_noise_it_guesses_half(generator: np.random.Generator) -> None:
    """Which is 500 of 1,000 held out; 580 are five standard deviations more."""
    seen, within = generator.random((2 * TRIALS, COLUMNS)), generator.random(2 * TRIALS) < 0.5
    assert 0.42 < right(seen, within, generator) < 0.58


@pytest.mark.long
def test_of_trials_that_it_has_seen_it_guesses_more_even_of_noise(generator: np.random.Generator) -> None:
    """So that what is said of the half that is held out says something."""
    seen, within = generator.random((TRIALS, COLUMNS)), generator.random(TRIALS) < 0.5
    assert max((learner(seen, within)(seen) == within).mean() for learner in timing.LEARNERS) > 0.7


def test_what_does_not_vary_is_guessed_by_what_is_more_frequent(generator: np.random.Generator) -> None:
    within = np.arange(TRIALS) % 4 > 0
    assert right(np.ones((TRIALS, COLUMNS)), within, generator) == pytest.approx(0.75, abs=0.1)


def test_the_interval_is_wilsons() -> None:
    expected = binomtest(570, 1000).proportion_ci(0.95, method="wilson")
    assert timing.interval(570, 1000) == pytest.approx((expected.low, expected.high), abs=1e-4)


@pytest.fixture(scope="module")
def analyst(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("timing")
    timing.make(folder)
    with lw.connect(folder / timing.DATASETS[1] / "lapwing.toml") as session:
        yield session.acting_for("analyst", timing=Timing(trusted=False))


@pytest.mark.parametrize("family", only([0], [*timing.BOUNDED, timing.CONTROL]), ids=lambda family: family.name)
def test_what_counts_is_answered_to_people_who_are_not_trusted(analyst: Any, family: Any) -> None:
    """And the first forms of what was found are refused before the charge."""
    asked = timing.body(family.text, 1, family.body)
    asked_with = {key: value for key, value in asked.items() if key != "sql"}
    if family.name.endswith("first form"):
        with refused_as("time_depends_on_data"):
            analyst.explain(asked["sql"], **asked_with)
    else:
        analyst.explain(asked["sql"], **asked_with)


def test_trials_in_the_ten_minutes_after_two_late_answers_are_told_apart(tmp_path: Path) -> None:
    """One late answer doubles nothing. Two do, from the second on, until one of them is ten minutes old."""
    log, second = tmp_path / "log", datetime(2026, 11, 2, 12, 1, tzinfo=UTC).timestamp()
    ticks = ["2026-11-02T12:00:00.000+00:00", "2026-11-02T12:01:00.000+00:00"]
    lines = [{"event": "answers late", "dataset": "within", "tick": tick, "person": "analyst0"} for tick in ticks]
    log.write_text("".join(json.dumps(line) + "\n" for line in [{"event": "listening"}, *lines]))
    late = timing.late_answers(log)
    assert late == {"absent": [], "within": ticks}
    begins = [second - 30, second + 30, second + 539, second + 541]
    trials = [timing.Trial(family="f", within=False, status="200", seen=(), began=began) for began in begins]
    assert [trial.began for trial in timing.undoubled(trials, late)] == [begins[0], begins[3]]


@pytest.mark.long
def test_it_attacks_a_service_with_every_family() -> None:
    command = [sys.executable, str(FILE), "--quick", "--no-padding"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    for family in timing.BOUNDED:
        (line,) = (line for line in done.stdout.splitlines() if line.startswith(f"{family.name:20}"))
        statuses = set(re.findall(r"(?:absent|within) (\d+)", line.split(";")[1]))
        assert statuses == ({"200"} if family.counted else {"422"}), line
    assert "asked again: none" in done.stdout
    assert re.search(r"all that are charged +7 ", done.stdout)
