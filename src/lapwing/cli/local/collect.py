"""`lapwing local collect`: the page for respondents, and the place where their reports are counted."""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from fractions import Fraction
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lapwing.cli.console import note
from lapwing.cli.listening_options import RequestRate, TlsCertificate, TlsKey
from lapwing.cli.local.estimate import read_task
from lapwing.cli.local.task_options import lines_of
from lapwing.cli.options import amount, part_of_one
from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.collector.collector import Collector, Shuffling
    from lapwing.local.client import Task

EXAMPLE: Final = """\b
Examples:
  lapwing local collect task.toml
  lapwing local collect task.toml other.toml --listen 0.0.0.0:8443
    --tls-cert cert.pem --tls-key key.pem
  lapwing local collect task.toml --batch 1000 --delta 1e-6 --forged 50
  lapwing local collect words.toml --candidates words.txt
    --database postgres://user@host/surveys"""
PORT: Final = 8700


def collect(
    tasks: Annotated[list[Path], typer.Argument(metavar="TASK…", help="Tasks, in TOML or JSON.")],
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS:PORT", help="Where to listen; port 0 for any.")
    ] = f"127.0.0.1:{PORT}",
    folder: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where the collector stores and releases reports.")
    ] = Path("reports"),
    database: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Keep and release reports in PostgreSQL, not in FOLDER.", show_default=False
        ),
    ] = None,
    candidates: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With tasks for texts: the words, one a line.", show_default=False),
    ] = None,
    batch: Annotated[int, typer.Option(metavar="COUNT", help="Count and release at least COUNT reports together.")] = 1,
    delta: Annotated[
        Fraction | None,
        amount(part_of_one("--delta"), "State what shuffling a batch promises at this delta.", show_default=False),
    ] = None,
    forged: Annotated[
        int, typer.Option(metavar="COUNT", help="With --delta: how many reports of a batch may be forged.")
    ] = 0,
    rate: RequestRate = 20.0,
    tls_cert: TlsCertificate = None,
    tls_key: TlsKey = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy on this machine speaks TLS with respondents.")
    ] = False,
) -> None:
    """Serve a page for each task, take each report once, and estimate from them at any time.

    A report is on the disk before it is acknowledged. The collector stores what reports say, the day, and while the
    task is open their identities. It stores no address. Released reports are in FOLDER/TASK-NUMBER.parquet, in no
    order. Ctrl-C ends the collector, and releases whole batches. Reports are deleted after the days that a task states.
    """
    try:
        from lapwing.collector.service import configured, run
    except ModuleNotFoundError as missing:
        raise InvalidParameter(
            f"The collector needs {missing.name}, which is not installed. Run `pip install 'lapwing-dp[server]'`."
        ) from None
    host, port = place_of(listen)
    if (tls_cert is None) != (tls_key is None):
        raise InvalidParameter("TLS takes both, --tls-cert and --tls-key; give the other one too.")
    if not (tls_cert or behind_proxy or is_loopback(host)):
        raise InvalidParameter(
            f"Without TLS, whoever is between a respondent and {host} can change the page, and take the true answers. "
            "Give --tls-cert and --tls-key; or, if a proxy on this machine speaks TLS, --behind-proxy."
        )
    shuffling = shuffling_of(delta, forged, "--delta")
    each_task = [read_task(file) for file in tasks]
    words = words_for(each_task, candidates)
    with (
        suppress(KeyboardInterrupt),  # uvicorn raises it again when all is closed
        collecting(each_task, folder, database, words, batch=batch, shuffling=shuffling) as collectors,
    ):
        for each in collectors.values():
            scheme = "https" if tls_cert or behind_proxy else "http"
            note("collecting", f"{scheme}://{listen}/local/{each.task.id}/  {each.task.question}")
            for promise in promises_of(each):
                note("shuffled", promise)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        run(configured(collectors, host=host, port=port, rate=rate, certificate=tls_cert, key=tls_key))


def shuffling_of(delta: Fraction | None, forged: int, option: str) -> "Shuffling | None":
    """Return what the options say of shuffling: nothing, or the δ of its promise and how many reports are forged."""
    from lapwing.collector.collector import Shuffling

    if delta is None and forged:
        raise InvalidParameter(f"--forged goes with {option}: it is of what shuffling promises.")
    return None if delta is None else Shuffling(delta=delta, forged=forged)


def words_for(tasks: Sequence["Task"], candidates: Path | None) -> Sequence[str] | None:
    """Return the words whose shares are estimated, refusing those that no task has a use for."""
    from lapwing.collector.tally import LOOKED_FOR

    words = None if candidates is None else lines_of(candidates, "--candidates")
    if words is not None and not any(asked.mechanism in LOOKED_FOR for asked in tasks):
        raise InvalidParameter("--candidates is for tasks for texts, and none is among these that has a use for them.")
    return words


def promises_of(collector: "Collector") -> list[str]:
    """Return what a collector states of shuffling, in words, if it does."""
    stated = collector.shuffled
    if stated is None:
        return []
    return [f"epsilon {stated['epsilon']} at delta {stated['delta']}, trusting {stated['trust']}"]


@contextmanager
def collecting(
    tasks: Sequence["Task"],
    folder: Path,
    database: str | None = None,
    candidates: Sequence[str] | None = None,
    *,
    batch: int = 1,
    shuffling: "Shuffling | None" = None,
    say: Callable[[str, str], None] = note,
) -> Iterator[dict[str, "Collector"]]:
    """Open the collectors of tasks, by the ids of these; at the end release what makes whole batches, and say where."""
    from lapwing.collector.collector import Collector
    from lapwing.collector.tally import LOOKED_FOR

    collectors: dict[str, Collector] = {}
    with ExitStack() as stack:
        for task in tasks:
            if task.id not in collectors:
                collectors[task.id] = Collector(
                    folder,
                    task,
                    batch=batch,
                    shuffling=shuffling,
                    database=database,
                    candidates=candidates if task.mechanism in LOOKED_FOR else None,
                )
                stack.callback(collectors[task.id].close)
        try:
            yield collectors
        finally:
            for each in collectors.values():
                for place in each.release():
                    say("released", place)


def place_of(listen: str) -> tuple[str, int]:
    """Return the address and port of an option such as 127.0.0.1:8700."""
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise InvalidParameter(f"--listen is {listen!r:.60}; it must be an address and a port, like 127.0.0.1:{PORT}.")
    return host.strip("[]"), int(port)


def is_loopback(host: str) -> bool:
    """Tell whether an address is this machine's own."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
