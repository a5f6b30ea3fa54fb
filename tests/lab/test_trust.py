"""*trust* holds, has the figures of the comparison, and notices servers that add no noise."""

from fractions import Fraction

import numpy as np
import pytest

from lapwing.exact.arrays import IntArray
from lapwing.lab import Finding, Settings
from lapwing.lab import trust as experiment
from lapwing.secure.joint_noise import Messages
from lapwing.secure.noisy_totals import noisy_total


def wrong(found: Finding) -> set[str]:
    return {check.what for check in found.checks if not check.holds}


@pytest.mark.long
def test_it_holds_and_has_the_figures_of_the_comparison() -> None:
    found = experiment.run(Settings(short=True))
    assert found.holds
    errors = {row["road"]: float(row["error, predicted"] or 0) for row in found.rows}
    assert errors["curator"] == pytest.approx(1.36, abs=0.005)
    assert errors["secure"] == pytest.approx(2.35, abs=0.005)
    assert errors["local"] == pytest.approx(95.95, abs=0.005)
    assert errors["joint"] == errors["curator"]
    assert errors["secure"] < errors["shuffled"] < errors["combined"] < errors["local"]


@pytest.mark.long
def test_another_epsilon_holds() -> None:
    assert experiment.run(Settings(epsilon=Fraction(3), short=True)).holds


@pytest.mark.long
def test_noise_by_one_server_only_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: two servers of three add nothing."""
    calls = iter(range(10**9))

    class Silent:
        def release(self, values: IntArray, entropy: object) -> IntArray:
            return values

    def lazy(totals: list[int], noise: object) -> tuple[int, ...]:
        return noisy_total(totals, noise if next(calls) % 3 == 0 else Silent())  # type: ignore[arg-type]

    monkeypatch.setattr(experiment, "noisy_total", lazy)
    assert "squared error, secure" in wrong(experiment.run(Settings(short=True)))


@pytest.mark.long
def test_joint_noise_of_two_servers_only_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: one server's part is left out."""

    def left_out(server: Messages, message: bytes) -> list[int]:
        parts = ended(server, message)
        return [0] * len(parts) if next(calls) % 3 == 2 else parts

    ended, calls = experiment._ended, iter(range(10**9))
    monkeypatch.setattr(experiment, "_ended", left_out)
    assert {"count, joint", "squared error, joint"} & wrong(experiment.run(Settings(short=True)))


def test_one_error_at_a_large_epsilon_is_no_surprise() -> None:
    """At ε = 15 one of 2,000 totals is wrong in about 1 of 1,000 runs; 200 would be a surprise."""
    for several, holds in ((1, True), (200, False)):
        counts = np.full(2_000, 3_000)
        counts[:several] += 1
        _, checks = experiment._road("curator", "", 7.8e-4, counts, 3_000)
        assert all(check.holds for check in checks) is holds
