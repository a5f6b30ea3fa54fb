"""`lapwing serve`: answer questions over HTTP, for people with tokens."""

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Final, final
from urllib.parse import urlsplit

import typer

import lapwing as lw
from lapwing.catalog.ledger import POSTGRES
from lapwing.catalog.several_files import named
from lapwing.catalog.source_names import catalog_beside, ending
from lapwing.cli.column_options import bounds_of, types_of, values_of
from lapwing.cli.console import complain
from lapwing.cli.listening_options import TlsCertificate, TlsKey
from lapwing.cli.options import DEFAULT_CATALOG, Unreadable, above_zero, amount, grouped, part_of_one, quantity
from lapwing.cli.serve_demo import CATALOG, HOSTS, UPLOADS, DemoOptions, introduce
from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.collector.collector import Collector
    from lapwing.server.listener import Endpoint
    from lapwing.server.service import Service, ServiceSettings
    from lapwing.server.workers import ProcessConfig

EXAMPLE: Final = """\b
Examples:
  lapwing serve
  lapwing serve --demo
  lapwing serve lapwing.toml --task question.toml
  lapwing serve visits.lapwing.toml staff.lapwing.toml --port 8080
  lapwing serve visits.parquet --privacy-unit person_id --epsilon 3 --delta 1e-6 \\
      --max-rows 5 --bounds cost=0:5000 --values plan=a,b

\b
The first start makes the curator: it asks for a password on a terminal, or takes
LAPWING_CURATOR_PASSWORD. Ctrl-C or SIGTERM ends it when running queries are done."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ListeningOptions:
    """Where the service listens."""

    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1"
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="The port.")] = 8000
    postgres: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=0,
            max=65535,
            help="Also answer PostgreSQL clients, such as psql, at this port; 5432 is usual.",
            show_default=False,
        ),
    ] = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StorageOptions:
    """What the service rests on: its people, the folders of data, its processes."""

    people: Annotated[
        str | None,
        typer.Option(
            metavar="FILE | ADDRESS",
            help="The store of people, tokens and policies: a file, or postgres://user@host/db. Default: next to the "
            "first ledger.",
            show_default=False,
        ),
    ] = None
    data: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER",
            help="Let curators register data sets from files in this folder; may be repeated. With it, lapwing.toml is "
            "served only if you name it.",
            show_default=False,
        ),
    ] = None
    workers: Annotated[
        int, typer.Option(metavar="N", min=1, max=64, help="The number of processes that serve requests.")
    ] = 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateOptions:
    """How callers reach the service safely, and by which address."""

    tls_cert: TlsCertificate = None
    tls_key: TlsKey = None
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy on this machine speaks TLS with the callers.")
    ] = False
    public_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The public address of the service, like https://dp.example.org; needed behind a proxy.",
            show_default=False,
        ),
    ] = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOptions:
    """What requests and answers are limited to."""

    max_request: Annotated[int, typer.Option(metavar="BYTES", min=1024, help="The most bytes of a request.")] = 1 << 20
    request_time: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", parser=quantity("--request-time", "0.1"), help="The time for a request to arrive."
        ),
    ] = 10.0
    answer_time: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            parser=quantity("--answer-time", "0.1"),
            help="The time that a request waits for its result.",
        ),
    ] = 120.0
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=64,
            help="Queries at once in each worker; default: the number of processors, at least 2.",
            show_default=False,
        ),
    ] = None
    rate: Annotated[
        float,
        typer.Option(metavar="N", min=0, help="Requests per second of one person at one worker; 0 for no limit."),
    ] = 50.0
    keep_answers: Annotated[
        int | None,
        typer.Option(
            metavar="DAYS",
            min=1,
            max=36_500,
            help="How long results can be opened again; default: for ever.",
            show_default=False,
        ),
    ] = None
    padding: Annotated[
        bool,
        typer.Option(
            "--padding/--no-padding",
            help="Fix the time of each result before reading the data, for people who are not trusted with time. "
            "Without it, "
            "the time of a result can reveal single people.",
        ),
    ] = True


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UploadOptions:
    """Limits of uploads of data files."""

    max_upload: Annotated[
        int, typer.Option(metavar="BYTES", min=0, help="The most bytes of an uploaded file; 0 for no uploads.")
    ] = 1 << 30
    upload_quota: Annotated[
        int, typer.Option(metavar="BYTES", min=0, help="The most bytes of all uploaded files in a data folder.")
    ] = 20 << 30
    upload_share: Annotated[
        int, typer.Option(metavar="BYTES", min=0, help="The most bytes of the files that one person uploaded.")
    ] = 10 << 30


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """The reports of respondents that the service collects."""

    tasks: Annotated[
        list[Path] | None,
        typer.Option(
            "--task",
            metavar="TASK",
            help="Also serve the page of a task for respondents, and collect their reports, below /local/; may be "
            "repeated.",
            show_default=False,
        ),
    ] = None
    reports: Annotated[
        str,
        typer.Option(metavar="FOLDER | ADDRESS", help="With --task: where the service stores reports; like --people."),
    ] = "reports"
    batch: Annotated[
        int, typer.Option(metavar="COUNT", help="With --task: count and release at least COUNT reports together.")
    ] = 1
    shuffle_delta: Annotated[
        Fraction | None,
        amount(
            part_of_one("--shuffle-delta"),
            "With --task: state what shuffling a batch promises at this delta.",
            show_default=False,
        ),
    ] = None
    forged: Annotated[
        int, typer.Option(metavar="COUNT", help="With --shuffle-delta: how many reports of a batch may be forged.")
    ] = 0
    candidates: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --task, for texts: the words, one a line.", show_default=False),
    ] = None

    def require_served(self, workers: int) -> None:
        """Refuse options of reports without a task, and tasks in several processes.

        Raises:
            InvalidParameter: If a value is not allowed.
        """
        stated = {
            "--batch": self.batch != 1,
            "--shuffle-delta": self.shuffle_delta is not None,
            "--forged": self.forged != 0,
            "--candidates": self.candidates is not None,
        }
        for option, present in stated.items():
            if present and not self.tasks:
                raise InvalidParameter(f"{option} is for reports of respondents; give the task with --task.")
        if self.tasks and workers > 1:
            raise InvalidParameter(
                "Only one process can collect the reports of a task. Serve with --workers 1, or use `lapwing local "
                "collect` for the tasks."
            )

    def collecting(self) -> AbstractContextManager[dict[str, "Collector"]]:
        """Return the opened collectors of the tasks, whose reports are in a folder or a database."""
        from lapwing.cli.local.collect import collecting, shuffling_of, words_for
        from lapwing.cli.local.estimate import read_task
        from lapwing.server.log import log

        def say(_: str, place: str) -> None:
            _say(f"Released {place}")
            log("reports released", place=place)

        database = self.reports if self.reports.startswith(POSTGRES) else None
        tasks = [read_task(task) for task in self.tasks or ()]
        shuffling = shuffling_of(self.shuffle_delta, self.forged, "--shuffle-delta")
        words = words_for(tasks, self.candidates)
        return collecting(tasks, Path(self.reports), database, words, batch=self.batch, shuffling=shuffling, say=say)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OperationOptions:
    """What the service does beside its answers, and how it ends."""

    openid: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The TOML settings of an identity provider (OpenID Connect) for sign-in to the console.",
            show_default=False,
        ),
    ] = None
    refresh: Annotated[
        int | None,
        typer.Option(
            metavar="SECONDS", min=1, help="How often to fetch data from their sources again.", show_default=False
        ),
    ] = None
    parallel: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="How many queries of one person may run at once, at each worker; 0 for no limit."
        ),
    ] = 64
    webhook: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="LAPWING_WEBHOOK",
            help="Send alarms as JSON to this address: a full disk, a stopped data set, a dead process.",
            show_default=False,
        ),
    ] = None
    grace: Annotated[
        int, typer.Option(metavar="SECONDS", min=0, help="The time for open requests when the service stops.")
    ] = 30


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ServedFileOptions:
    """What protects a file of data, in the place of a catalog; all of it must be public knowledge."""

    privacy_unit: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="With a file: the column that says whose row it is.", show_default=False),
    ] = None
    epsilon: Annotated[Fraction | None, amount(above_zero("--epsilon"), "With a file: its budget, in epsilon (ε).")] = (
        None
    )
    delta: Annotated[Fraction | None, amount(part_of_one("--delta"), "With a file: its delta.")] = None
    max_rows: Annotated[
        int | None,
        typer.Option(metavar="K", help="With a file: use at most this many rows for each value of --privacy-unit."),
    ] = None
    types: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=TYPE,…", help="With a CSV file or JSON lines: types; columns not named are text."),
    ] = None
    bounds: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=LOWER:UPPER", help="With a file: public bounds.")
    ] = None
    values: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=A,B,…", help="With a file: the values for GROUP BY.")
    ] = None
    unreadable: Unreadable = None

    def catalogs(self, paths: list[Path]) -> list[Path]:
        """Return the catalogs to serve: those that are given, or that of the one file that this protects.

        Raises:
            InvalidParameter: For data that nothing protects, and for what protects no data.
            LapwingError: As `lw.protect`.
        """
        if self.privacy_unit is None:
            self._require_catalogs(paths)
            return paths
        if len(paths) != 1 or self.epsilon is None:
            raise InvalidParameter("With --privacy-unit, give one data file and --epsilon.")
        lw.protect(
            paths[0],
            privacy_unit=self.privacy_unit,
            epsilon=self.epsilon,
            delta=self.delta or 0,
            max_rows_per_unit=self.max_rows,
            types=None if self.types is None else types_of(self.types),
            bounds=None if self.bounds is None else bounds_of(self.bounds),
            domains=None if self.values is None else values_of(self.values),
            unreadable=self.unreadable and self.unreadable.value,
        ).close()
        return [catalog_beside(named(paths[0]))]

    def _require_catalogs(self, paths: list[Path]) -> None:
        amounts = {"--epsilon": self.epsilon, "--delta": self.delta, "--max-rows": self.max_rows}
        columns = {"--types": self.types, "--bounds": self.bounds, "--values": self.values}
        described = {**amounts, **columns, "--unreadable": self.unreadable}
        beside = [option for option, value in described.items() if value is not None]
        if beside:
            raise InvalidParameter(
                f"{beside[0]} needs --privacy-unit and a data file; a catalog already has this setting."
            )
        if any(ending(path) or path.is_dir() for path in paths):
            raise InvalidParameter(
                "To serve a data file, give --privacy-unit: the column that says whose row it is. Give --epsilon: how "
                "much all results together may reveal. Or write a catalog with `lapwing init`, and serve that."
            )


def unserved(folders: list[Path] | None) -> Path | None:
    """Return the usual catalog if it is there: beside folders of data only the catalogs that are named are served."""
    catalog = _usual()
    return catalog if folders and catalog.exists() else None


def _usual() -> Path:
    return Path(os.environ.get("LAPWING_CATALOG", DEFAULT_CATALOG))


@grouped
def command(
    sources: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="CATALOG | DATA", help="Catalogs, or with --privacy-unit one data file.", show_default=False
        ),
    ] = None,
    *,
    listening: ListeningOptions,
    foundation: StorageOptions,
    certificates: CertificateOptions,
    limits: LimitOptions,
    uploads: UploadOptions,
    reports: ReportOptions,
    operation: OperationOptions,
    protection: ServedFileOptions,
    demo: DemoOptions,
) -> None:
    """Serve data sets over HTTP, with people, tokens and limits under one budget for each."""
    demo.require_alone(
        sources,
        host=listening.host != ListeningOptions().host,
        people=foundation.people,
        data=foundation.data,
        workers=foundation.workers > 1,
        tls_cert=certificates.tls_cert,
        behind_proxy=certificates.behind_proxy,
        public_url=certificates.public_url,
        task=reports.tasks,
        privacy_unit=protection.privacy_unit,
    )
    try:
        from lapwing.server import listener  # here: all of these need the extra `server`
        from lapwing.server.log import log, open_log
        from lapwing.server.workers import ProcessConfig
    except ModuleNotFoundError as missing:
        raise InvalidParameter(
            f"The service needs {missing.name}, which is not installed. Run `pip install 'lapwing-dp[server]'`."
        ) from None
    endpoint = listener.Endpoint(
        host=listening.host,
        port=listening.port,
        certificate=certificates.tls_cert,
        key=certificates.tls_key,
        behind_proxy=certificates.behind_proxy,
        public_url=certificates.public_url,
        grace=operation.grace,
        postgres=listening.postgres,
    )
    settings = _settings(foundation, limits, uploads, operation)
    if operation.openid is not None and endpoint.callers_address == listener.UNSAID:
        raise InvalidParameter(
            "With --openid, give the public address by --public-url, because the provider sends people back there."
        )
    if demo.demo:
        _serve_demo(demo, settings, endpoint, reports)
        return
    catalogs = protection.catalogs(sources or ([] if foundation.data else [_usual()]))
    reports.require_served(foundation.workers)
    config = ProcessConfig(catalogs=tuple(catalogs), people=foundation.people, settings=settings, endpoint=endpoint)
    open_log()
    if not sources and (left := unserved(foundation.data)):
        _say(f"{left} is not served, because --data is given. To serve it, too: `lapwing serve {left} --data …`.")
        log("catalog not served", catalog=str(left))
    try:
        _serve(config, foundation.workers, reports)
    except KeyboardInterrupt:  # uvicorn raises it again when all is closed
        _say("Ended.")


def _serve_demo(demo: DemoOptions, settings: "ServiceSettings", endpoint: "Endpoint", reports: ReportOptions) -> None:
    """Serve the shipped data set from a folder of its own, until the process is told to end."""
    from lapwing.server.log import open_log
    from lapwing.server.workers import ProcessConfig

    open_log()
    introduced = Event()

    def prepare(service: "Service") -> None:
        introduce(service, endpoint.callers_address)
        introduced.set()

    try:
        with demo.folder(introduced.is_set) as folder:
            toured = replace(settings, tour=folder.name, hosts=HOSTS, folders=(folder / UPLOADS,))
            config = ProcessConfig(catalogs=(folder / CATALOG,), people=None, settings=toured, endpoint=endpoint)
            _serve(config, 1, reports, prepare)
    except KeyboardInterrupt:
        _say("Ended." if demo.keep else "Ended. The demo and its folder are removed.")


def _settings(
    foundation: StorageOptions, limits: LimitOptions, uploads: UploadOptions, operation: OperationOptions
) -> "ServiceSettings":
    from lapwing.server.openid.settings import read_settings
    from lapwing.server.service import ServiceSettings
    from lapwing.server.uploads.limits import UploadLimits

    return ServiceSettings(
        most_bytes=limits.max_request,
        request_seconds=limits.request_time,
        answer_seconds=limits.answer_time,
        threads=limits.threads or max(2, os.cpu_count() or 2),
        rate=limits.rate,
        workers=foundation.workers,
        keep_answers=limits.keep_answers,
        padded=limits.padding,
        folders=tuple(foundation.data or ()),
        refresh=operation.refresh,
        openid=None if operation.openid is None else read_settings(operation.openid),
        webhook=operation.webhook,
        parallel=operation.parallel,
        uploads=UploadLimits(
            most_bytes=uploads.max_upload,
            folder_bytes=uploads.upload_quota,
            person_bytes=uploads.upload_share,
        ),
    )


def _serve(
    config: "ProcessConfig",
    workers: int,
    reports: ReportOptions,
    prepare: "Callable[[Service], None]" = lambda _: None,
) -> None:
    """Open all that is served, say where, and answer until the process is told to end.

    Args:
        prepare: What is done with the service before it listens.
    """
    from lapwing.server import listener
    from lapwing.server.workers import opened, run_workers

    listener.require_free(config.endpoint)
    with ExitStack() as stack:
        service = stack.enter_context(opened(config, asking=workers == 1))
        if workers == 1:
            service.executor.start()  # before anybody reads an address: it may take minutes, and nothing is answered
        prepare(service)
        collectors = stack.enter_context(reports.collecting())
        announce = _announcement(service, config.endpoint, collectors.values())
        if workers == 1:
            announce()
            listener.run(service, config.endpoint, collectors)
    if workers > 1:
        run_workers(config, workers, announce)


def _announcement(service: "Service", endpoint: "Endpoint", collectors: "Iterable[Collector]") -> "Callable[[], None]":
    """Make the first curator, if there is none; return what says where people and programs find what is served.

    The texts are made here, because with several workers the service is closed before somebody listens.
    """
    from lapwing.server.first_curator import ensure_curator
    from lapwing.server.log import log

    curator = ensure_curator(service.people)
    if curator is not None:
        _say(f"{curator} is the curator; the people are in {service.store.name}")
        log("curator made", person=curator)
    names = [served.name for served in service.datasets.everything()]
    lines = [
        *_addresses(endpoint, names, curator),
        *(line for one in collectors for line in _collecting(one, endpoint)),
    ]
    wire = {} if endpoint.postgres is None else {"postgres": endpoint.postgres}

    def announce() -> None:
        for line in lines:
            _say(line)
        log("serving", datasets=names, address=endpoint.public_url or endpoint.address, **wire)

    return announce


def _addresses(endpoint: "Endpoint", names: Sequence[str], curator: str | None) -> "Iterator[str]":
    """Say where people and programs find the data sets."""
    from lapwing.server.listener import UNSAID

    yield f"Serving {', '.join(names) or 'no data set yet'} at {endpoint.callers_address}"
    if endpoint.callers_address == UNSAID:
        yield "Give the public address by --public-url; without it, the pages cannot show where to send tokens."
    else:
        yield f"Open {endpoint.callers_address}/console in a browser"
        if curator is not None:
            yield f"or log in with `lapwing login {curator} --server {endpoint.callers_address}`"
    if endpoint.postgres is not None:
        yield f"PostgreSQL clients: {psql_command(endpoint, names, curator)}, with an API token as the password"


def psql_command(endpoint: "Endpoint", datasets: Sequence[str], curator: str | None) -> str:
    """Return the command by which psql connects; words in capitals stand for what is not known here."""
    from lapwing.server.listener import UNSAID

    known = endpoint.callers_address != UNSAID
    host = urlsplit(endpoint.callers_address).hostname if known else "ADDRESS"
    name = datasets[0] if len(datasets) == 1 else "DATASET"
    if not re.fullmatch(r"[\w.-]+", name):
        name = "'" + re.sub(r"(['\\])", r"\\\1", name) + "'"
    tls = " sslmode=verify-full" if endpoint.certificate is not None else ""
    said = f"host={host} port={endpoint.postgres or 'PORT'} dbname={name} user={curator or 'PERSON'}{tls}"
    return f"psql {shlex.quote(said)}" if re.search(r'["$`\\!]', said) else f'psql "{said}"'


def _collecting(collector: "Collector", endpoint: "Endpoint") -> "Iterator[str]":
    """Say where a task collects reports, and what shuffling them promises."""
    from lapwing.cli.local.collect import promises_of

    yield f"Collecting at {endpoint.callers_address}/local/{collector.task.id}/: {collector.task.question}"
    yield from (f"Shuffled: {promise}" for promise in promises_of(collector))


def _say(message: str) -> None:
    """Tell somebody at a terminal; elsewhere standard error is the log, of lines of JSON and nothing else."""
    if sys.stderr.isatty():
        complain(message)
