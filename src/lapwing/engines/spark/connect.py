"""A session of a Spark Connect server, which somebody else started: what it tells of itself is verified first.

Theory of operation. Here the driver is not this program's: the server's operator gave it its logs, its page and its
settings. All of that can be read through Connect, and a server is refused that is of another version than the Spark
installed here, has a logger or a page or writes an event log, or has settings of `spark.sql` that are neither Spark's
defaults nor Lapwing's. The settings of the session are Lapwing's own; they are set, and read back.

What cannot be seen is left to the operator, as with any cluster: that the server tells the truth, what stands on its
class path, and who else may use it. Sessions share no views and no settings.

A server forgets a session after an hour without a request, and all of them when it is started anew. So before a
question is paid it is asked for a setting, and begun anew if it does not answer (`Cluster.renew`).

A cancel interrupts the server's thread of a query, once, and cancels the jobs that there are. But other threads begin
stages. A stage that begins a moment later runs to its end, and no call of Connect reaches it. In an application of this
program a cancelled job fails, and then Spark gives up all stages of its query.
"""

import warnings
from contextlib import suppress
from importlib import import_module
from typing import Any, Final
from urllib.parse import urlsplit
from weakref import finalize

from lapwing.engines.spark.settings import CLOSED, PARSER, SETTINGS, foreign, shut_logger
from lapwing.errors import CatalogError, Fault

ADDRESS: Final = "sc://"
"""How the address of a Connect server begins."""
TRIES: Final = 5
"""How often a request is sent again to a server that is not there: 17 seconds in all, of Spark's own 10 minutes."""
_HERE: Final = ("localhost", "127.0.0.1", "::1")
_OPTIONS: Final = ("use_ssl", "user_id", "user_agent")


def require_address(address: str) -> None:
    """Refuse an address that holds a secret, or over which exact integers would travel in the clear.

    Raises:
        CatalogError: If the catalog says what cannot be meant.
    """
    place, _, given = address.removeprefix(ADDRESS).partition("/;")
    options = dict(option.partition("=")[::2] for option in given.split(";") if option)
    if "token" in options:
        raise CatalogError(
            "dataset.cluster holds a token, which a catalog must not; put the token into "
            "SPARK_CONNECT_AUTHENTICATE_TOKEN."
        )
    unknown = sorted(options.keys() - set(_OPTIONS))
    parts = urlsplit(f"{ADDRESS}{place}")
    try:
        host = parts.hostname if parts.port != 0 else None
    except ValueError:  # no port is so large
        host = None
    if host is None or unknown:
        raise CatalogError(
            f"dataset.cluster = {address!r:.80} is no address of a Spark Connect server; write "
            "sc://host:15002/;use_ssl=true, or sc://localhost:15002."
        )
    if host not in _HERE and options.get("use_ssl") != "true":
        raise CatalogError(
            f"dataset.cluster = {address!r:.80} would send exact numbers without encryption. Write /;use_ssl=true "
            "after the port, or reach the server through a tunnel, as sc://localhost:15002."
        )


def opened(address: str) -> Any:
    """Return a new session of a server, whose settings are Lapwing's.

    Raises:
        CatalogError: If its client is not installed.
        Fault: If there is no server, or one that must not be asked.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are about pandas, which is not used
        try:
            from pyspark import __version__
            from pyspark.sql.connect.client.retries import DefaultPolicy
            from pyspark.sql.connect.session import SparkSession

            import_module("pyspark.testing.utils")  # which is loaded later otherwise, and warns
        except ImportError:
            raise CatalogError(
                'dataset.cluster = "sc://…" needs the client of Spark Connect; install it with: '
                'pip install "lapwing-dp[spark-connect]"'
            ) from None
        shut_logger()
        session, problem = None, None
        try:
            session = SparkSession(address)
            finalize(session, _end, session.client)
            session.client.set_retry_policies([DefaultPolicy(max_retries=TRIES)])
            problem = _problem(session.version, __version__, session.conf.getAll)
            for name, value in () if problem else (*PARSER.items(), *SETTINGS.items()):
                session.conf.set(name, value)
                if session.conf.get(name) != value:
                    problem = f"keeps {name} at another value than {value}"
        except Exception:
            problem = "does not answer"
    if problem is None:
        return session
    if session is not None:
        session.stop()
    raise Fault(f"The Spark Connect server {address} {problem}.")


def _end(client: Any) -> None:
    """Close a client while its threads run: one that is still open when Python ends waits for them for ever."""
    with suppress(Exception):
        client.close()


def is_lost(session: Any) -> bool:
    """Tell whether a server has forgotten a session, or is not there."""
    try:
        lost: bool = session.conf.get("spark.sql.session.timeZone") != SETTINGS["spark.sql.session.timeZone"]
    except Exception:
        return True
    return lost


def _problem(version: str, ours: str, told: dict[str, str]) -> str | None:
    """Return what is wrong with a server that tells these settings, None if nothing is."""
    if version != ours:
        return f"runs Spark {version}; Lapwing's proofs hold only for the version that is installed here, {ours}"
    for process in ("driver", "executor"):
        closed = CLOSED[f"spark.{process}.defaultJavaOptions"]
        options = " ".join(told.get(f"spark.{process}.{kind}JavaOptions", "") for kind in ("default", "extra")).split()
        if closed not in options or sum("slf4j.provider" in option for option in options) > 1:
            return f"may log values of rows; start it with --conf spark.{process}.defaultJavaOptions={closed}"
    for name, usual in (("spark.ui.enabled", "true"), ("spark.eventLog.enabled", "false")):
        if told.get(name, usual) != CLOSED[name]:
            return f"keeps a record of queries that shows numbers of rows; start it with --conf {name}={CLOSED[name]}"
    if others := foreign(told):
        return f"sets {', '.join(others)}; Lapwing's proofs hold only for Spark's defaults"
    return None
