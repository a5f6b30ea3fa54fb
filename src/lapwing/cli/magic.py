"""Questions in the cells of a notebook: `%load_ext lapwing`, `%lapwing connect`, `%%lapwing --epsilon 0.5`.

IPython is no dependency: this module is imported when a notebook loads the extension, so IPython is there. A cell goes
to `Session.sql` and `Session.explain` as any text does; what is refused shows its message, without a traceback.
"""

import re
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from pathlib import Path
from typing import Final, final

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic_arguments import MagicArgumentParser
from IPython.display import display

from lapwing.answer import Answer
from lapwing.cli.asking import price_line
from lapwing.cli.console import pointer, rendered
from lapwing.cli.explain import as_page
from lapwing.cli.figures import gauge
from lapwing.cli.options import TOKEN, neighbouring_of, number, open_session
from lapwing.cli.streams import NOTEBOOK, coded
from lapwing.client import RemoteAnswer, RemoteSession
from lapwing.errors import InvalidParameter, LapwingError, QueryRefused
from lapwing.preview import Preview
from lapwing.session import Session

_LINE: Final = f"""\
%lapwing connect [CATALOG]       open the data set of a catalog, lapwing.toml if none is given; returns the session
%lapwing connect URL [DATASET]   open one of a server, which knows you by the token in {TOKEN}
%lapwing use NAME                ask the session in a variable
%lapwing budget                  show what is spent and left
%%lapwing --epsilon 0.5          answer the cell's SQL; see %%lapwing --help"""
_SERVER: Final = re.compile(r"(?P<server>https?://\S+)(\s+(?P<dataset>\S+))?\s*")


def load_ipython_extension(ipython: InteractiveShell) -> None:
    """Define `%lapwing` and `%%lapwing` in a notebook. Called by `%load_ext lapwing`."""
    ipython.register_magic_function(Magic(shell=ipython), "line_cell", "lapwing")  # type: ignore[arg-type]


@final
@dataclass(slots=True, kw_only=True)
class Magic:
    """The magic of one notebook, and the session that it asks."""

    shell: InteractiveShell
    session: Session | RemoteSession | None = None
    __name__: str = "lapwing"

    def __call__(self, line: str, cell: str | None = None) -> Session | RemoteSession | Answer | RemoteAnswer | None:
        """Do what a line says, or ask what a cell says."""
        with _plainly(cell or ""):
            return self._line(line) if cell is None else self._cell(line, cell)

    def _line(self, line: str) -> Session | RemoteSession | None:
        match line.split(maxsplit=1):
            case ["connect", *where]:
                self.session = _connected(where[0] if where else "lapwing.toml")
                return self.session
            case ["use", name]:
                session = self.shell.user_ns.get(name.strip())
                if not isinstance(session, Session | RemoteSession):
                    raise InvalidParameter(f"There is no session in a variable {name.strip()[:40]!r}.")
                self.session = session
                return None
            case ["budget"]:
                view = self._asked().budget()
                sys.stdout.write(f"{gauge(view.share_spent)}\n")
                return None
        raise UsageError(f"Write one of\n{_LINE}")

    def _cell(self, line: str, cell: str) -> Answer | RemoteAnswer | None:
        line, name = _named(line)
        if line.strip() in ("--help", "-h"):
            sys.stdout.write(_PARSER.format_help())
            return None
        given = _PARSER.parse_argstring(line)  # type: ignore[no-untyped-call]
        session, parameters = self._asked(), self._parameters(given)
        epsilon, error, delta = (_number(given, name) for name in ("epsilon", "error", "delta"))
        shown: Answer | RemoteAnswer | Preview
        if given.explain:
            shown = session.explain(cell, parameters, epsilon=epsilon, error=error, delta=delta)
            sys.stdout.write(rendered(sys.stdout, *as_page(shown, neighbouring_of(session), ways=NOTEBOOK)))
        else:
            shown = session.sql(cell, parameters, epsilon=epsilon, error=error, delta=delta, label=given.label)
            display(PriceLine(price=price_line(shown, session.budget())))  # type: ignore[no-untyped-call]
        if name is not None:
            self.shell.user_ns[name] = shown
        return None if isinstance(shown, Preview) else shown

    def _asked(self) -> Session | RemoteSession:
        if self.session is None:
            raise InvalidParameter("No data set is open. Write %lapwing connect lapwing.toml, or %lapwing use session.")
        return self.session

    def _parameters(self, given: Namespace) -> dict[str, object]:
        missing = next((name for name in given.value if name not in self.shell.user_ns), None)
        if missing is not None:
            raise InvalidParameter(f"--value {missing[:40]}: there is no variable of this name in the notebook.")
        return {name: self.shell.user_ns[name] for name in given.value}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PriceLine:
    """What an answer cost and what is left, above its table."""

    price: str

    def __repr__(self) -> str:
        return f"cost  {self.price}"

    def _repr_html_(self) -> str:
        return f"<small>cost {escape(self.price)}</small>"


def _connected(where: str) -> Session | RemoteSession:
    """Open what `connect` names: the path of a catalog, or the address of a server and a data set."""
    remote = _SERVER.fullmatch(where)
    if remote is not None:
        return open_session(Path(), remote["server"], remote["dataset"])
    return open_session(Path(where.strip().strip("\"'")), None, None)


def _parser() -> MagicArgumentParser:
    parser = MagicArgumentParser(  # type: ignore[no-untyped-call]
        prog="%%lapwing", usage="%%lapwing [options] [name <<]", description="Run the SQL of a cell."
    )
    add: Callable[..., object] = parser.add_argument
    add("--epsilon", metavar="EPSILON", help="the cost of the query")
    add("--error", metavar="ERROR", help="instead of a cost: the wanted 95 %% half-width of every COUNT and SUM")
    add(
        "--delta",
        metavar="DELTA",
        help="for GROUP BY without listed values: what finding the groups may use of the delta for that",
    )
    add("--label", metavar="TEXT", help="the name of the query in the history; in quotes")
    add("--explain", action="store_true", help="show the cost and the promised errors only; free")
    add("--value", metavar="NAME", action="append", default=[], help="$NAME in the query is the variable NAME")
    return parser


_PARSER: Final = _parser()


def _named(line: str) -> tuple[str, str | None]:
    """Return what stands before `name <<`, and the name."""
    before, arrow, after = line.rstrip().rpartition("<<")
    if not arrow or after:
        return line, None
    *options, name = before.split() or [""]
    if not name.isidentifier():
        raise UsageError("Write the name of a variable before <<, as in %%lapwing --epsilon 0.5 answer <<")
    return " ".join(options), name


def _number(given: Namespace, name: str) -> Fraction | None:
    text = getattr(given, name)
    if text is None:
        return None
    value = number(text)
    if value is None:
        raise InvalidParameter(f"--{name} is {text[:40]!r}; it must be a number such as 0.5.")
    return value


@contextmanager
def _plainly(cell: str) -> Iterator[None]:
    """Show an error as its message, and where a question is not understood, the place."""
    try:
        yield
    except QueryRefused as refused:
        shown = f"\n{pointer(cell, refused.position)}" if refused.position else ""
        raise UsageError(f"{coded(refused, NOTEBOOK)}{shown}") from refused
    except LapwingError as error:
        raise UsageError(coded(error, NOTEBOOK)) from error
