"""Executors that are waited for: for a limited time, and said. A clock of numbers stands for the real one."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future

import pytest

from lapwing.engines.spark import workers
from lapwing.engines.spark.cluster import Cluster, wait_and_cancel
from lapwing.engines.spark.workers import BEFORE, PAUSE, SILENCE, ExecutorWatch
from lapwing.machine import waiting


def watched(executors: Sequence[int | None], patience: float = BEFORE) -> Iterator[tuple[float, bool, list[object]]]:
    """Look every half second at a cluster that has so many executors in each second; the last number stays."""
    now, heard = [0.0], list[object]()
    with waiting.heard(heard.append):
        watch = ExecutorWatch(
            lambda: executors[min(int(now[0]), len(executors) - 1)], patience, "workers", lambda: now[0]
        )
        while True:
            now[0] += PAUSE / 2
            yield now[0], watch.gave_up(), list(heard)


def test_a_wait_is_said_after_a_while_and_ends() -> None:
    seen = {}
    for second, gave_up, heard in watched([0]):
        seen[second] = gave_up, heard
        if gave_up:
            break
    assert second == BEFORE
    assert seen[SILENCE - PAUSE / 2] == (False, [])
    assert seen[SILENCE] == (False, ["workers"])
    assert seen[BEFORE] == (True, ["workers"])  # said once


def test_workers_that_come_end_the_wait() -> None:
    for second, gave_up, heard in watched([0] * 20 + [2]):
        assert (gave_up, heard[:1] == ["workers"]) == (False, second >= SILENCE)
        if second > 2 * BEFORE:
            break
    assert heard == ["workers", None]


@pytest.mark.parametrize("executors", [[1], [None], [1, 0, 1, 0, 0, 0, 0, 2]])
def test_a_cluster_with_workers_or_that_does_not_tell_is_not_given_up(executors: list[int | None]) -> None:
    for second, gave_up, heard in watched(executors):
        assert (gave_up, heard) == (False, [])
        if second > 2 * BEFORE:
            break


def test_a_cancel_that_fails_is_tried_again() -> None:
    work, failures = Future[int](), iter((OSError("busy"), RuntimeError("lost")))

    def cancel() -> None:
        failure = next(failures, None)
        if failure is not None:
            raise failure
        work.set_result(3)

    wait_and_cancel(work, lambda: True, cancel)
    assert work.result(timeout=0) == 3


def test_a_query_that_is_given_up_leaves_nothing_running(cluster: Cluster) -> None:
    """A query of hours stands for one that waits."""
    endless = "SELECT COUNT(*) FROM range(4000000000) AS a, range(1000) AS b WHERE hash(a.id, b.id) = 1"
    with pytest.raises(Exception, match="cancel"):
        cluster._run(lambda session: session.sql(endless).collect(), ExecutorWatch(lambda: 0, 2.0, "workers"))
    assert cluster.rows("SELECT 1") == [(1,)]
    assert not cluster._application.context.statusTracker().getActiveJobsIds()  # type: ignore[union-attr]


def newest_job(cluster: Cluster) -> int:
    """Return the number of the newest job; a driver remembers only the last few."""
    tracker = cluster._application.context.statusTracker()  # type: ignore[union-attr]
    return max(tracker.getJobIdsForGroup(None), default=-1)


def test_a_probe_is_a_task(cluster: Cluster) -> None:
    """It is worth nothing if the driver could answer it alone, from its plan."""
    before = newest_job(cluster)
    assert cluster.rows(workers.PROBE) == [(1,)]
    assert newest_job(cluster) > before


def test_local_mode_needs_no_workers(cluster: Cluster) -> None:
    before = newest_job(cluster)
    cluster.require_workers()
    assert newest_job(cluster) == before
