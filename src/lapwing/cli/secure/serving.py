"""`lapwing secure join`, `serve` and `relay`: what operators run."""

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from lapwing.cli.console import note
from lapwing.cli.listening_options import RequestRate, TlsCertificate, TlsKey
from lapwing.cli.options import above_zero, amount, part_of_one
from lapwing.cli.secure.task_files import TaskFile, task_in
from lapwing.errors import InvalidParameter
from lapwing.privacy.amount_texts import short


def join(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The name of the server, for people.", show_default=False)
    ],
    address: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="The address at which clients reach it.", show_default=False)
    ],
    folder: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="A new folder; NAME unless given.", show_default=False)
    ] = None,
) -> None:
    """Make a folder for a server that you run: its private key, and the certificate to give to the organiser."""
    from lapwing.secure.identity import make_identity

    certificate = make_identity(folder or Path(name), name, address)
    note("written", f"{certificate}: give only this file to the organiser. The key next to it never leaves the folder.")


def serve(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of the server.", show_default=False)],
    file: TaskFile,
    epsilon: Annotated[
        Fraction | None,
        amount(
            above_zero("--epsilon"), "Budget for all tasks of this folder; default: the task's.", show_default=False
        ),
    ] = None,
    delta: Annotated[
        Fraction | None,
        amount(part_of_one("--delta"), "The same for delta; default: the task's.", show_default=False),
    ] = None,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Listen there; by default the task's.", show_default=False)
    ] = None,
) -> None:
    """Take parts of answers, and release noisy totals once a task is closed. Ctrl-C ends it and loses nothing."""
    from lapwing.secure.adding import AddingServer, budget_of
    from lapwing.secure.identity import CERTIFICATE
    from lapwing.secure.repeating_server import RepeatingServer

    try:
        from lapwing.secure import repeating_service, service
        from lapwing.secure.serving import run
    except ImportError:
        raise InvalidParameter(
            "A server needs packages that are not installed: `pip install 'lapwing-dp[server]'`."
        ) from None

    task = task_in(file)
    certificate = (folder / CERTIFICATE).read_text(encoding="ascii", errors="replace")
    mine = [each for each in task.servers if each.certificate == certificate]
    if not mine:
        raise InvalidParameter(
            f"The task names another certificate than {folder / CERTIFICATE}, so it is not for this server."
        )
    promised = task.epsilon if epsilon is None else epsilon, task.delta if delta is None else delta
    budget_for = budget_of(task.measure, *promised)
    server = RepeatingServer(folder, task, budget_for) if task.repeats else AddingServer(folder, task, budget_for)
    try:
        server.require_affordable()
        spent, budget = server.spent()
        note("serving", f"{mine[0].name} at https://{mine[0].address}: {task.question}")
        note("promise", task.promise)
        place = host or mine[0].host, mine[0].port
        if isinstance(server, RepeatingServer):
            note("spent", f"{spent} of {budget}")
            run(service.served(repeating_service.application(server, mine[0].close_key), folder, *place))
        else:
            delta, kept = server.delta_spent()
            note("spent", f"{spent} of {budget}" + (f", and delta {short(delta)} of {short(kept)}" if kept else ""))
            run(service.configured(server, folder, mine[0].name, *place))
    except KeyboardInterrupt:  # how a service is told to end
        note("ended", "everything that was acknowledged or charged is stored")
    finally:
        server.close()


def relay(
    file: TaskFile,
    listen: Annotated[str, typer.Option(metavar="ADDRESS:PORT", help="Where to listen.")] = "127.0.0.1:8480",
    folder: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the relay stores envelopes.")] = Path("relay"),
    rate: RequestRate = 20.0,
    tls_cert: TlsCertificate = None,
    tls_key: TlsKey = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy on this machine speaks TLS with clients.")
    ] = False,
) -> None:
    """Take sealed parts from clients and browsers, and pass them on to the servers. Only the servers can read them.

    Ctrl-C ends it. When you run it again, it passes on what it had acknowledged.
    """
    from lapwing.cli.local.collect import is_loopback, place_of
    from lapwing.secure.relay import Relay

    try:
        from lapwing.secure.relay_service import configured
        from lapwing.secure.serving import run
    except ImportError:
        raise InvalidParameter(
            "A relay needs packages that are not installed: `pip install 'lapwing-dp[server]'`."
        ) from None
    host, port = place_of(listen)
    if (tls_cert is None) != (tls_key is None):
        raise InvalidParameter("TLS takes both, --tls-cert and --tls-key; give the other one too.")
    if not (tls_cert or behind_proxy or is_loopback(host)):
        raise InvalidParameter(
            f"Without TLS, whoever is between a client and {host} could change the module that browsers load. Give "
            "--tls-cert and --tls-key; or, if a proxy on this machine speaks TLS, --behind-proxy."
        )
    passing = Relay(folder, task_in(file))
    try:
        scheme = "https" if tls_cert or behind_proxy else "http"
        note("relaying", f"{scheme}://{listen}/secure/{passing.task.digest}/: {passing.task.question}")
        run(configured(passing, host=host, port=port, rate=rate, certificate=tls_cert, key=tls_key))
    except KeyboardInterrupt:  # how a service is told to end
        note("ended", "everything that was acknowledged is stored, and passed on next time")
    finally:
        passing.close()
