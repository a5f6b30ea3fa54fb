"""`lapwing serve`: answer questions over HTTP, for people with tokens."""

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

import lapwing as lw
from lapwing.catalog.ledger import POSTGRES
from lapwing.catalog.several_files import named
from lapwing.catalog.source_names import catalog_beside, ending
from lapwing.cli.column_options import bounds_of, types_of, values_of
from lapwing.cli.console import complain
from lapwing.cli.options import DEFAULT_CATALOG, Unreadable, above_zero, amount, part_of_one
from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.collector.collector import Collector

EXAMPLE: Final = """\b
Examples:
  lapwing serve
  lapwing serve visits.lapwing.toml --task question.toml
  lapwing serve visits.lapwing.toml staff.lapwing.toml --port 8080
  lapwing serve visits.parquet --privacy-unit person_id --epsilon 3 --delta 1e-6 \\
      --max-rows 5 --bounds cost=0:5000 --values plan=a,b

\b
The first start makes the curator: it asks for a password on a terminal, or takes
LAPWING_CURATOR_PASSWORD. Ctrl-C or SIGTERM ends it when open questions are done."""


def command(
    sources: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="CATALOG | DATA", help="Catalogs, or with --privacy-unit one file of data.", show_default=False
        ),
    ] = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="The port.")] = 8000,
    people: Annotated[
        str | None,
        typer.Option(
            metavar="FILE | ADDRESS",
            help="People, tokens and policies: a file, or a PostgreSQL database as postgres://user@host/db. Where the "
            "first ledger is, unless given.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER",
            help="Let curators register data sets whose files lie in it; may be repeated.",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[int, typer.Option(metavar="N", min=1, max=64, help="Processes.")] = 1,
    tls_cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A certificate with its chain, in PEM form.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its key, in PEM form.")] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy on this machine speaks TLS with the callers.")
    ] = False,
    public_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where callers find it, for the pages that tell them; needed behind a proxy, as https://dp.example.org.",
            show_default=False,
        ),
    ] = None,
    max_request: Annotated[int, typer.Option(metavar="BYTES", min=1024, help="The largest request.")] = 1 << 20,
    request_time: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="For a request to arrive.")] = 10.0,
    answer_time: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="For a request to wait for its answer.")
    ] = 120.0,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=64,
            help="Questions at once, of each worker; unless given as many as processors, and at least 2.",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[
        float,
        typer.Option(metavar="N", min=0, help="Requests a second of one person at one worker; 0 for no limit."),
    ] = 50.0,
    keep_answers: Annotated[
        int | None,
        typer.Option(
            metavar="DAYS",
            min=1,
            max=36_500,
            help="For how long answers can be opened again; for ever, unless given.",
            show_default=False,
        ),
    ] = None,
    padding: Annotated[
        bool,
        typer.Option(
            "--padding/--no-padding",
            help="Answer people who are not trusted with time at moments fixed before the charge. Without it, how long "
            "an answer takes can tell them about single people.",
        ),
    ] = True,
    tasks: Annotated[
        list[Path] | None,
        typer.Option(
            "--task",
            metavar="TASK",
            help="Also serve the page of a task for respondents, and collect their reports, below /local/; may be "
            "repeated.",
            show_default=False,
        ),
    ] = None,
    reports: Annotated[
        str,
        typer.Option(metavar="FOLDER | ADDRESS", help="With --task: where reports are kept; as --people."),
    ] = "reports",
    batch: Annotated[
        int, typer.Option(metavar="COUNT", help="With --task: count and release so many reports together, or more.")
    ] = 1,
    shuffle_delta: Annotated[
        Fraction | None,
        amount(
            part_of_one("--shuffle-delta"),
            "With --task: state what shuffling a batch promises at this delta.",
            show_default=False,
        ),
    ] = None,
    forged: Annotated[
        int, typer.Option(metavar="COUNT", help="With --shuffle-delta: of a batch, so many reports may be forged.")
    ] = 0,
    candidates: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --task, for texts: the words, one a line.", show_default=False),
    ] = None,
    openid: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="An identity provider (OpenID Connect) by which people may sign in to the console, as a TOML file.",
            show_default=False,
        ),
    ] = None,
    refresh: Annotated[
        int | None,
        typer.Option(
            metavar="SECONDS", min=1, help="Fetch what comes from sources anew, that often.", show_default=False
        ),
    ] = None,
    parallel: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Queries of one person under way at one worker; 0 for no limit."),
    ] = 64,
    webhook: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="LAPWING_WEBHOOK",
            help="Send alarms there, as JSON: a full disk, a stopped data set, a process that died.",
            show_default=False,
        ),
    ] = None,
    grace: Annotated[
        int, typer.Option(metavar="SECONDS", min=0, help="For open requests, when the service ends.")
    ] = 30,
    privacy_unit: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Protect a file: whose row it is.", show_default=False)
    ] = None,
    epsilon: Annotated[Fraction | None, amount(above_zero("--epsilon"), "With a file: its budget.")] = None,
    delta: Annotated[Fraction | None, amount(part_of_one("--delta"), "With a file: its delta.")] = None,
    max_rows: Annotated[int | None, typer.Option(metavar="K", help="With a file: rows of a unit.")] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=TYPE,…", help="With a CSV file or JSON lines: types; columns not named are text."),
    ] = None,
    bounds: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=LOWER:UPPER", help="With a file: public bounds.")
    ] = None,
    values: Annotated[list[str] | None, typer.Option(metavar="COLUMN=A,B,…", help="With a file: public keys.")] = None,
    unreadable: Unreadable = None,
) -> None:
    """Serve data sets over HTTP, with people, tokens and allowances under one budget for each."""
    try:
        from lapwing.server import listener  # here: all of these need the extra `server`
        from lapwing.server.first_curator import ensure_curator
        from lapwing.server.log import log, open_log
        from lapwing.server.openid.settings import read_settings
        from lapwing.server.service import ServiceSettings
        from lapwing.server.workers import ProcessConfig, opened, run_workers
    except ModuleNotFoundError as missing:
        raise InvalidParameter(
            f"The service needs {missing.name}, which is not installed. Run `pip install 'lapwing-dp[server]'`."
        ) from None
    endpoint = listener.Endpoint(
        host=host,
        port=port,
        certificate=tls_cert,
        key=tls_key,
        behind_proxy=behind_proxy,
        public_url=public_url,
        grace=grace,
    )
    settings = ServiceSettings(
        most_bytes=max_request,
        request_seconds=request_time,
        answer_seconds=answer_time,
        threads=threads or max(2, os.cpu_count() or 2),
        rate=rate,
        workers=workers,
        keep_answers=keep_answers,
        padded=padding,
        folders=tuple(data or ()),
        refresh=refresh,
        openid=None if openid is None else read_settings(openid),
        webhook=webhook,
        parallel=parallel,
    )
    if openid is not None and endpoint.callers_address == listener.UNSAID:
        raise InvalidParameter("With --openid, say by --public-url where callers find it: they are sent back there.")
    usual = [] if data else [Path(os.environ.get("LAPWING_CATALOG", DEFAULT_CATALOG))]
    paths = sources or usual
    amounts = {"--epsilon": epsilon, "--delta": delta, "--max-rows": max_rows}
    described = {**amounts, "--types": types, "--bounds": bounds, "--values": values, "--unreadable": unreadable}
    beside = [option for option, value in described.items() if value is not None]
    if privacy_unit is None and beside:
        raise InvalidParameter(f"{beside[0]} goes with --privacy-unit and a file of data; a catalog says it itself.")
    if privacy_unit is None and any(ending(path) or path.is_dir() for path in paths):
        raise InvalidParameter(
            "To serve a file of data, say by --privacy-unit whose rows they are, and by --epsilon what all answers may "
            "reveal; or write a catalog with `lapwing init`, and serve that."
        )
    if privacy_unit is not None:
        if len(paths) != 1 or epsilon is None:
            raise InvalidParameter("With --privacy-unit, give one file of data and --epsilon.")
        lw.protect(
            paths[0],
            privacy_unit=privacy_unit,
            epsilon=epsilon,
            delta=delta or 0,
            max_rows_per_unit=max_rows,
            types=None if types is None else types_of(types),
            bounds=None if bounds is None else bounds_of(bounds),
            domains=None if values is None else values_of(values),
            unreadable=unreadable and unreadable.value,
        ).close()
        paths = [catalog_beside(named(paths[0]))]
    of_tasks = {"--batch": batch != 1, "--shuffle-delta": shuffle_delta is not None, "--forged": forged != 0}
    for option, stated in {**of_tasks, "--candidates": candidates is not None}.items():
        if stated and not tasks:
            raise InvalidParameter(f"{option} is of the reports of respondents: give the task by --task.")
    if tasks and workers > 1:
        raise InvalidParameter(
            "One process takes the reports of a task. Serve with --workers 1, or serve tasks by a process of their "
            "own, `lapwing local collect`."
        )
    config = ProcessConfig(catalogs=tuple(paths), people=people, settings=settings, endpoint=endpoint)
    open_log()
    try:
        with ExitStack() as stack:
            service = stack.enter_context(opened(config, asking=workers == 1))
            collecting = _collecting(tasks or [], reports, batch, (shuffle_delta, forged), candidates)
            collectors = stack.enter_context(collecting)
            curator = ensure_curator(service.people)
            if curator is not None:
                _say(f"{curator} was made the curator; the people are in {service.store.name}")
                log("curator made", person=curator)
            names = [served.name for served in service.datasets.everything()]
            _say(f"Serving {', '.join(names)} at {endpoint.callers_address}")
            if endpoint.callers_address == listener.UNSAID:
                _say("Say by --public-url where callers find it: its pages name no address to send tokens to.")
            else:
                _say(f"Open {endpoint.callers_address}/console in a browser")
                if curator is not None:
                    _say(f"or log in by `lapwing login {curator} --server {endpoint.callers_address}`")
            log("serving", datasets=names)
            for collector in collectors.values():
                _say(f"Collecting at {endpoint.callers_address}/local/{collector.task.id}/: {collector.task.question}")
                _say_promises(collector)
            if workers == 1:
                service.executor.start()
                listener.run(service, endpoint, collectors)
        if workers > 1:
            run_workers(config, workers)
    except KeyboardInterrupt:  # uvicorn raises it again when all is closed
        _say("Ended.")


def _collecting(
    tasks: Sequence[Path], reports: str, batch: int, shuffle: tuple[Fraction | None, int], candidates: Path | None
) -> AbstractContextManager[dict[str, "Collector"]]:
    """Return the opened collectors of tasks, whose reports are in a folder or a database."""
    from lapwing.cli.local.collect import collecting, shuffling_of, words_for
    from lapwing.cli.local.estimate import read_task
    from lapwing.server.log import log

    def say(_: str, place: str) -> None:
        _say(f"Released {place}")
        log("reports released", place=place)

    database = reports if reports.startswith(POSTGRES) else None
    each = [read_task(task) for task in tasks]
    shuffling = shuffling_of(*shuffle, "--shuffle-delta")
    return collecting(
        each, Path(reports), database, words_for(each, candidates), batch=batch, shuffling=shuffling, say=say
    )


def _say_promises(collector: "Collector") -> None:
    from lapwing.cli.local.collect import promises_of

    for promise in promises_of(collector):
        _say(f"Shuffled: {promise}")


def _say(message: str) -> None:
    """Tell somebody at a terminal; elsewhere standard error is the log, of lines of JSON and nothing else."""
    if sys.stderr.isatty():
        complain(message)
