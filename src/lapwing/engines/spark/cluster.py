"""A Spark application: started once a process, with its logs closed, and asked with a time limit.

Theory of operation. The driver's JVM is started by this process and ends with it. Nothing that a JVM writes is kept:
what the driver's prints goes nowhere, in the driver and in every executor there is no logger, there is no event log and
no page that shows queries. For Spark writes values that it could not convert into its errors, and its errors into its
logs. PySpark itself writes the text of an error to stderr, as JSON; that logger is shut too.

Every session of this process that asks the same master shares one application, in which each has a session of its own:
its settings and its views are its own. A process can have one application at a time; that is Spark's rule. Behind a
Connect server the application is the server's (`connect`), and a session is all there is here.

Queries run under `settings.SETTINGS`. What they prove rests on these and on Spark's defaults, so that other settings of
`spark.sql` are refused, wherever they come from. All others are the operator's, as in `spark-defaults.conf`: memory,
executors, authentication, encryption. Speculation and retries may be on: nothing here draws anything (`cleaned`).

A query runs in a thread of its own, under a tag, so that a time limit, Ctrl-C or a want of executors (`workers`) can
cancel its jobs, and no others.
"""

import os
import shutil
import signal
import subprocess
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar, final
from uuid import uuid4

from lapwing.engines.spark.beside import FileMetadata, rows_of
from lapwing.engines.spark.settings import CLOSED, LEAN, SETTINGS, foreign, shut_logger
from lapwing.engines.spark.workers import BEFORE, MEANWHILE, PROBE, ExecutorWatch, executors_of, no_workers
from lapwing.errors import CatalogError, Fault
from lapwing.machine.interrupts import deferred

if TYPE_CHECKING:
    import pyarrow as pa

LOCAL: Final = "local[*]"
"""The master of a catalog that names no cluster: this machine."""
MASTERS: Final = ("local", "spark://", "yarn", "k8s://", "sc://")
"""How the address of a master begins."""
ROWS_A_PARTITION: Final = 1_000_000
MOST_PARTITIONS: Final = 20_000
FRESH: Final = 30.0
"""Seconds after an answer in which a server that does not tell of its executors is not asked whether it has any."""
_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_USUAL: Final = 200
"""Spark's own number of partitions, however few or many rows there are."""

Taken = TypeVar("Taken")


@final
@dataclass(slots=True)
class _Application:
    master: str
    context: Any
    users: int = 0


_lock = threading.Lock()
_running: list[_Application] = []


@final
class Cluster:
    """A session of a Spark application, which is started when it is first asked. Thread-safe.

    Args:
        master: where the application runs, as Spark writes it.
        seconds: the longest that a query may take.
        further: settings of the application, as those of `spark-defaults.conf`.
    """

    def __init__(self, master: str, *, seconds: float, further: Mapping[str, str] = MappingProxyType({})) -> None:
        if not master.startswith(MASTERS):
            raise CatalogError(
                f"dataset.cluster = {master!r:.80} is no master of Spark; write spark://host:7077, yarn, "
                "k8s://https://host:443, sc://host:15002/;use_ssl=true or local[*]."
            )
        self._served = master.startswith("sc://")
        if self._served:
            from lapwing.engines.spark.connect import require_address

            require_address(master)
        self._master, self._seconds, self._further = master, seconds, further
        self._application: _Application | None = None
        self._session: Any = None
        self._opening = threading.Lock()
        self._number = 0  # of the newest view
        self._views: set[str] = set()
        self._partitions: int | None = None
        self._answered = float("-inf")  # when a query last was

    def open(self) -> None:
        """Start the application, or join the one that there is.

        Raises:
            CatalogError: If Spark is not installed.
            Fault: If it does not start.
        """
        with self._opening:
            if self._session is None:
                self._begin()

    def renew(self) -> bool:
        """Begin another session where this one was lost, with all views, and tell whether it was.

        A Connect server loses a session, or the application ends: its JVM is killed, or gives up for want of memory.
        """
        with self._opening:
            if self._session is None or not self._is_lost():
                return False
            self._leave()  # so that what does not begin now is begun when it is asked again
            self._begin()
            return True

    def require_workers(self) -> None:
        """Wait until an executor answers, for a limited time; in local mode the driver is one.

        Raises:
            Fault: If none does.
        """
        self.open()
        executors, since = self._executors(), time.monotonic() - self._answered
        if self._master.startswith("local") or executors or (executors is None and since < FRESH):
            return
        fault = None
        try:
            self._run(lambda session: session.sql(PROBE).collect(), ExecutorWatch(lambda: 0, BEFORE, "workers"))
        except Exception:  # Spark's own is long; raised out here, it is not dragged along
            fault = no_workers()
        if fault is not None:
            fault.charged = False
            raise fault

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return self._run(lambda session: [tuple(row) for row in session.sql(query).collect()])

    def columns(self, query: str) -> "pa.Table":
        """Return the columns of a query."""
        return self._run(lambda session: session.sql(query).toArrow())

    def driver(self) -> Any:
        """Return the application, whose driver has the file systems of the cluster."""
        self.open()
        return self._session.sparkContext

    def read(self, paths: Sequence[str], schema: str, beside: FileMetadata | None = None, *, root: str = "") -> str:
        """Return the name of a view of Parquet files; no row is read.

        Args:
            schema: Columns and types, as DDL.
            beside: Values and deleted rows that stand beside them.
            root: Of the object store that they are in.
        """
        return self._run(lambda session: self._view(rows_of(session, root, paths, schema, beside)))

    def load(self, table: "pa.Table") -> str:
        """Return the name of a view of public rows, which are sent to the cluster."""
        return self._run(lambda session: self._view(session.createDataFrame(table)))

    def keep(self, query: str) -> str:
        """Return the name of a view of a query's rows, which executors keep from when it is first asked."""
        return self._run(lambda session: self._view(session.sql(query).persist()))

    def keep_again(self, view: str) -> None:
        """Have executors keep the rows of a view again where another session, which kept equal rows, dropped them."""

        def kept(session: Any) -> None:
            if not session.catalog.isCached(view):
                session.table(view).persist()

        self._run(kept)

    def forget(self, view: str) -> None:
        """Drop a view, and what is kept of it."""
        self._run(lambda session: _drop(session, view))
        with self._opening:
            self._views.discard(view)

    def release(self, view: str) -> None:
        """Drop the rows of a view from the executors. The next query reads the files."""
        self._run(lambda session: session.table(view).unpersist())

    def close(self) -> None:
        """Let go of the session, and end the application with its last one. Others keep none of its views."""
        with self._opening:
            if self._served or (self._application is not None and self._application.users > 1):
                with suppress(Exception):  # it may be lost
                    for view in self._views:
                        _drop(self._session, view)
            self._leave()

    def _is_lost(self) -> bool:
        if self._application is not None:
            return _has_ended(self._application)
        from lapwing.engines.spark.connect import is_lost

        return is_lost(self._session)

    def _leave(self) -> None:
        application, session, self._application, self._session = self._application, self._session, None, None
        if self._served and session is not None:
            session.stop()
        if application is None:
            return
        with _lock:
            application.users -= 1
            if not application.users and application in _running:
                _running.remove(application)
                _stop(application)

    def _begin(self) -> None:
        if self._served:
            from lapwing.engines.spark.connect import opened

            session = opened(self._master)
        else:
            with _lock:
                self._application = _started(self._master, self._further)
                self._application.users += 1
            session = _session(self._application.context)
        self._partitions = None
        if _PARTITIONS not in session.conf.getAll:
            self._partitions = 2 * (os.cpu_count() or 1) if self._master.startswith("local") else _USUAL
            session.conf.set(_PARTITIONS, str(self._partitions))
        self._session = session
        self._views.clear()

    def spread(self, rows: int) -> None:
        """Shuffle so many rows in as many partitions as they need, unless the operator says in how many."""
        with self._opening:
            if self._session is not None and self._partitions is not None:
                wanted = partitions_of(rows, self._partitions)
                if wanted != self._partitions:
                    self._session.conf.set(_PARTITIONS, str(wanted))
                    self._partitions = wanted

    def _view(self, frame: Any) -> str:
        with self._opening:
            self._number += 1
            name = f"lapwing_{self._number}"
            self._views.add(name)
        frame.createOrReplaceTempView(name)
        return name

    def _executors(self) -> int | None:
        """Return how many executors there are beside the driver; None where nobody knows, or none is needed."""
        application = self._application
        if application is None or self._master.startswith("local"):
            return None
        return executors_of(application.context)

    def _run(self, take: Callable[[Any], Taken], watch: ExecutorWatch | None = None) -> Taken:
        self.open()
        watch = watch or ExecutorWatch(self._executors, MEANWHILE, "lost workers")
        session, tag, deadline = self._session, f"lapwing-{uuid4().hex}", time.monotonic() + self._seconds
        if self._served:
            begin, end, cancel = session.addTag, session.removeTag, session.interruptTag
        else:  # here, the session's own tags can be interrupted by none but the thread that set them
            context = session.sparkContext
            begin, end, cancel = context.addJobTag, context.removeJobTag, context.cancelJobsWithTag

        def work() -> Taken:
            begin(tag)
            try:
                return take(session)
            finally:
                end(tag)

        with deferred() as pressed, ThreadPoolExecutor(max_workers=1, thread_name_prefix="spark") as worker:
            future: Future[Taken] = worker.submit(work)
            wait_and_cancel(
                future, lambda: watch.gave_up() or bool(pressed) or time.monotonic() > deadline, lambda: cancel(tag)
            )
            watch.end()
            try:
                result = future.result()
                self._answered = time.monotonic()
                return result
            finally:
                del future  # its error holds this frame


def wait_and_cancel(future: Future[Any], is_due: Callable[[], bool], cancel: Callable[[], object]) -> None:
    """Wait until work has ended. Once it is to be cancelled, cancel it until it ends.

    A server or a driver under load may fail to take a cancel. If that ended this wait, the program would stand still
    until the work ends by itself. So a cancel that fails is tried again.
    """
    while not wait([future], timeout=0.05).done:
        if is_due():
            with suppress(Exception):
                cancel()


def _drop(session: Any, view: str) -> None:
    session.table(view).unpersist()
    session.catalog.dropTempView(view)


def partitions_of(rows: int, least: int) -> int:
    """Return in how many partitions rows are shuffled: each is then sorted in the memory of one task."""
    return max(least, min(-(-rows // ROWS_A_PARTITION), MOST_PARTITIONS))


# ---- the application -------------------------------------------------------------------------------------------------


def _started(master: str, further: Mapping[str, str]) -> _Application:
    """Return the application of this process, started if there is none, or if it has ended."""
    if _running and _has_ended(_running[0]):
        _stop(_running.pop())
    if _running:
        if _running[0].master != master:
            raise Fault(
                f"This process already uses the Spark master {_running[0].master}, and Spark allows one master at a "
                f"time. Close the sessions that use it, or use {master} in another process."
            )
        return _running[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are about pandas, which is not used
        try:
            from pyspark import SparkConf, SparkContext
            from pyspark.java_gateway import launch_gateway

            import_module("pyspark.testing.utils")  # which is loaded later otherwise, and warns
        except ImportError:
            raise CatalogError(
                'engine = "spark" needs pyspark; install it with: pip install "lapwing-dp[spark]"'
            ) from None
    if SparkContext._active_spark_context is not None:
        raise Fault(
            "This process has a Spark application of its own, with settings and logs of its own. Run the query in "
            "another process, or stop that application first."
        )
    java = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and (java is None or shutil.which(f"{java}/bin/java") is None):
        raise CatalogError('engine = "spark" needs Java 17 or later; on Debian: apt install openjdk-17-jre-headless')
    shut_logger()
    conf = SparkConf(loadDefaults=False).setMaster(master).setAll([*LEAN.items(), *_local(master).items()])
    conf.setAll([*further.items(), *CLOSED.items(), *SETTINGS.items()])
    heard = signal.getsignal(signal.SIGINT)
    try:
        if SparkContext._gateway is None:
            silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            SparkContext._gateway = launch_gateway(conf, silent)
            SparkContext._jvm = SparkContext._gateway.jvm
        context = SparkContext(conf=SparkConf(_jvm=SparkContext._jvm).setAll(conf.getAll()))
    except Exception:
        context = None
    finally:
        # Spark's own handler cancels what all threads ask, of which only one was told to stop.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, heard)
    if context is None:  # raised out here: Spark's own error is long, and speaks of what is none of a user's doing
        raise Fault(f"Spark did not start with the master {master}; is it running, and can this machine reach it?")
    if others := foreign(dict(context.getConf().getAll())):
        context.stop()
        raise Fault(
            f"spark-defaults.conf sets {', '.join(others)}; Lapwing's proofs hold only for Spark's defaults. Remove "
            f"these settings, or set SPARK_CONF_DIR to a folder for Lapwing"
        )
    _running.append(_Application(master=master, context=context))
    return _running[0]


def _has_ended(application: _Application) -> bool:
    """Return whether an application's JVM has ended, or has stopped the application."""
    try:
        return application.context._gateway.proc.poll() is not None or application.context._jsc.sc().isStopped()
    except Exception:  # it does not answer
        return True


def _stop(application: _Application) -> None:
    """End an application, also one whose JVM has ended, of which PySpark would go on to ask."""
    from pyspark import SparkContext

    context, gateway = application.context, SparkContext._gateway
    try:
        context.stop()
    except Exception:
        context.stop()  # what is left of it here; the first try found that its JVM has none of it
    if gateway is not None and gateway.proc.poll() is not None:
        with suppress(OSError):
            gateway.proc.stdin.close()
        gateway.shutdown()
        SparkContext._gateway = SparkContext._jvm = None


def _local(master: str) -> dict[str, str]:
    """Return settings of an application that runs in its driver alone: nobody else reaches it."""
    if not master.startswith("local"):
        return {}
    return {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def _session(context: Any) -> Any:
    from pyspark.sql import SparkSession

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = SparkSession(context).newSession()
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    return session
