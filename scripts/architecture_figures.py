"""Count what makes it hard to find one's way in the code, and hold it within bounds.

`docs/architecture.md` shows the counts, beside those of an earlier commit.

    python scripts/architecture_figures.py            check the bounds, and that the page shows what is so
    python scripts/architecture_figures.py --write    write the counts into the page

A *room* is a folder, or a file that stands beside folders; an *arrow* leads from a room to one that it imports, be it
for types alone; a *circle* is made of rooms that import each other.

A *walk* is the order in which files are read when one follows a question from top to bottom: each function where it is
first entered, and none of fewer than six lines of code, whose name is enough. Here it is the question of the trusted
path, from `Session.sql` to its answer, in one thread. A *return* is a step back to a file that was left before.
"""

import ast
import gc
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType

ROOT = Path(__file__).resolve().parents[1]
SOURCE, TESTS = ROOT / "src" / "lapwing", ROOT / "tests"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- figures: written by scripts/architecture_figures.py -->", "<!-- end of the figures -->"
SLACK = 0.05  # how far a count may be from what the page says: of how many patches, say, each change has a few
LEAST_LINES = 6
MOST_PARAMETERS, MOST_LINES = 12, 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A count: what it was once, at commit 8ef8aea5, and what it may be at most, which is only ever lowered."""

    what: str
    once: int
    most: int


_WIDE = f"Functions of `cli` and `server` with more than {MOST_PARAMETERS} parameters"
FIGURES: Mapping[str, Figure] = {
    "loose": Figure(what="Loose files of the package", once=23, most=10),
    "rooms": Figure(what="Rooms of the package", once=49, most=43),
    "arrows": Figure(what="Arrows between rooms of the package", once=316, most=328),
    "circles": Figure(what="Rooms of the package in circles, or between two", once=4, most=0),
    "query loose": Figure(what="Loose files of `query`", once=39, most=0),
    "query rooms": Figure(what="Rooms of `query`", once=45, most=13),
    "query arrows": Figure(what="Arrows between rooms of `query`", once=189, most=49),
    "query circles": Figure(what="Rooms of `query` in circles, or between two", once=10, most=0),
    "attempts": Figure(what="Places in `query` that catch a refusal, or try to bind something", once=36, most=30),
    "compared texts": Figure(what="Places that compare the words of a message", once=9, most=0),
    "facades": Figure(what="Modules that import their names when they are used", once=10, most=5),
    "parameters": Figure(what=_WIDE, once=9, most=0),
    "lines": Figure(what=f"Functions of `cli` and `server` of more than {MOST_LINES} lines", once=11, most=0),
    "dialect": Figure(what="`Args:` whose names stand in one line with it", once=746, most=0),
    "patches": Figure(what="`monkeypatch.setattr` in tests", once=1023, most=1150),
    "private patches": Figure(what="Patches of private names in tests", once=263, most=180),
    "files": Figure(what="Files of the walk", once=50, most=51),
    "returns": Figure(what="Returns of the walk", once=55, most=26),
}


# ---- texts -----------------------------------------------------------------------------------------------------------


@cache
def texts_of(folder: Path) -> Mapping[Path, str]:
    """Return the texts of all Python files of a folder."""
    return {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))}


_IMPORT = re.compile(
    r"^[ \t]*from lapwing(?:\.([\w.]+))? import (\([^)]*\)|.+)$|^import lapwing\.([\w.]+)", re.MULTILINE
)


def imports_of(text: str) -> Iterator[str]:
    """Yield what a file imports of the package, name by name, by its dotted path below it."""
    for match in _IMPORT.finditer(text):
        module, names, whole = match.groups()
        if whole:
            yield whole
        for name in re.findall(r"(\w+)(?: as \w+)?", re.sub(r"#.*", "", names or "")):
            yield f"{module}.{name}" if module else name


def room_of(path: tuple[str, ...], base: tuple[str, ...]) -> str | None:
    """Return the room below a base that a dotted path leads to; None if it leads elsewhere, or to the base itself."""
    return path[len(base)] if path[: len(base)] == base and len(path) > len(base) else None


def rooms_and_arrows(texts: Mapping[Path, str], *base: str) -> tuple[set[str], set[tuple[str, str]]]:
    """Return the rooms below a base, and who imports whom."""
    rooms: set[str] = set()
    arrows: set[tuple[str, str]] = set()
    found = [(path.relative_to(SOURCE).with_suffix("").parts, text) for path, text in texts.items()]
    rooms = {room for parts, _ in found if (room := room_of(parts, base)) and room != "__init__"}
    for parts, text in found:
        room = room_of(parts, base)
        for name in imports_of(text) if room in rooms else ():
            other = room_of(tuple(name.split(".")), base)
            if other in rooms and other != room:
                arrows.add((str(room), str(other)))
    return rooms, arrows


def circles_of(arrows: set[tuple[str, str]]) -> int:
    """Return how many rooms are in circles, or between two.

    They are what is left when rooms that import none, or that none imports, are taken away, again and again.
    """
    while True:
        ends = {a for a, _ in arrows} & {b for _, b in arrows}
        left = {(a, b) for a, b in arrows if a in ends and b in ends}
        if left == arrows:
            return len(ends)
        arrows = left


def loose_in(folder: Path) -> int:
    """Return how many files stand beside the folders of a folder."""
    return len([path for path in folder.glob("*.py") if path.name != "__init__.py"])


def functions_of(folder: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return all functions of a folder."""
    trees = [ast.parse(text) for text in texts_of(folder).values()]
    return [
        node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def from_texts() -> dict[str, int]:
    """Return the counts that follow from the texts of the code."""
    source, tests = texts_of(SOURCE), "\n".join(texts_of(TESTS).values())
    counts: dict[str, int] = {}
    for prefix, base in (("", ()), ("query ", ("query",))):
        rooms, arrows = rooms_and_arrows(source, *base)
        counts[f"{prefix}loose"] = loose_in(SOURCE.joinpath(*base))
        counts |= {f"{prefix}rooms": len(rooms), f"{prefix}arrows": len(arrows), f"{prefix}circles": circles_of(arrows)}
    functions = [*functions_of(SOURCE / "cli"), *functions_of(SOURCE / "server")]
    patches = re.findall(r'monkeypatch\.setattr\(\s*(?:"[\w.]*?(\w+)"|[^,()]+(?:\([^()]*\))?,\s*"(\w+)")', tests)
    query = [text for path, text in source.items() if path.is_relative_to(SOURCE / "query")]
    counts["attempts"] = sum(len(re.findall(r"except QueryRefused|(?<!def )\battempted\(", text)) for text in query)
    counts["facades"] = sum(bool(re.search(r"^def __getattr__", text, re.MULTILINE)) for text in source.values())
    counts["parameters"] = sum(parameters_of(function) > MOST_PARAMETERS for function in functions)
    counts["lines"] = sum((node.end_lineno or 0) - node.lineno >= MOST_LINES for node in functions)
    counts["dialect"] = sum(len(re.findall(r"^ +Args: \S", text, re.MULTILINE)) for text in source.values())
    counts["patches"] = tests.count("monkeypatch.setattr(")
    counts["private patches"] = sum((whole or name).startswith("_") for whole, name in patches)
    return counts


def parameters_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return how many parameters a function has."""
    args = function.args
    return len([*args.posonlyargs, *args.args, *args.kwonlyargs])


def compared_texts() -> int:
    """Return at how many places the words of a message are compared, as the test of that finds them."""
    sys.path.insert(0, str(ROOT))
    from tests.test_texts_decide_nothing import found_in

    return sum(len(list(found_in(str(path.relative_to(SOURCE)), text))) for path, text in texts_of(SOURCE).items())


# ---- the walk --------------------------------------------------------------------------------------------------------


def walk() -> list[str]:
    """Return the files in the order in which they are read, each as often as it is come to."""
    import trusted_path

    from lapwing.session import Session

    entered: dict[CodeType, None] = {}
    here, asked = threading.get_ident(), list[FrameType]()

    def note(frame: FrameType, event: str) -> None:
        if threading.get_ident() != here:
            return
        if event == "call" and frame.f_code is Session.sql.__code__:
            asked.append(frame)
        if event == "call" and asked:
            entered.setdefault(frame.f_code)
        if event == "return" and frame in asked:
            asked.remove(frame)

    trusted_path.ask(note)
    sizes: dict[str, Mapping[int, int]] = {}
    read = []
    for code in entered:
        path = Path(code.co_filename)
        if path.is_relative_to(SOURCE):
            lines = sizes.setdefault(code.co_filename, lines_of_functions(path))
            if lines.get(code.co_firstlineno, 0) >= LEAST_LINES:
                read.append(path.relative_to(SOURCE).as_posix())
    return [file for file, _ in groupby(read)]


def lines_of_functions(path: Path) -> dict[int, int]:
    """Return how many lines of code the functions of a file have, by the line on which each begins, as Python says."""
    lines: dict[int, int] = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[ast.get_docstring(node, clean=False) is not None :]
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            lines[first] = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
    return lines


def measured() -> dict[str, int]:
    """Return all counts, in the order of the page."""
    stays = walk()
    files = len(set(stays))
    counts = {**from_texts(), "compared texts": compared_texts(), "files": files, "returns": len(stays) - files}
    return {name: counts[name] for name in FIGURES}


# ---- the page --------------------------------------------------------------------------------------------------------


def listing(counts: Mapping[str, int]) -> str:
    """Return the counts as a table for the page."""
    head = ["| Count | at 8ef8aea5 | now | at most |", "|---|---:|---:|---:|"]
    rows = [f"| {one.what} | {one.once} | {counts[name]} | {one.most} |" for name, one in FIGURES.items()]
    return "\n".join([*head, *rows])


def shown() -> dict[str, int]:
    """Return the counts that the page shows."""
    table = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    cells = [[cell.strip() for cell in row.split("|")] for row in table.splitlines() if row.endswith(" |")][1:]
    return {name: int(row[3]) for name, row in zip(FIGURES, cells, strict=True)}


def complaints(counts: Mapping[str, int], page: Mapping[str, int]) -> list[str]:
    """Return what is wrong: counts beyond their bound, and those of which the page says something else."""
    beyond = [
        f"{FIGURES[name].what}: {count}, at most {FIGURES[name].most}"
        for name, count in counts.items()
        if count > FIGURES[name].most
    ]
    stale = [
        f"docs/architecture.md says {page.get(name)} of: {FIGURES[name].what}; it is {count}. "
        "Run: python scripts/architecture_figures.py --write"
        for name, count in counts.items()
        if name not in page or abs(page[name] - count) > SLACK * count
    ]
    return [*beyond, *stale]


def main() -> int:
    """Check, or write; return the exit code."""
    gc.disable()  # each search for garbage would go through the trees of all files
    counts = measured()
    if "--write" in sys.argv[1:]:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{listing(counts)}\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    wrong = complaints(counts, shown())
    print("\n".join(wrong) or f"Architecture: {counts['rooms']} rooms, {counts['arrows']} arrows, "
          f"{counts['returns']} returns in {counts['files']} files")  # fmt: skip
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
