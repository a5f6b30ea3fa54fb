"""List the files that one COUNT runs through, from its text to its answer, and hold them within bounds.

Whoever wants to trust an answer has to read these files and no others. They are listed in the order in which the
question first enters them, with how much of each there is to read; `docs/architecture.md` shows the list.

    python scripts/trusted_path.py            check the bounds, and that the page shows what is so
    python scripts/trusted_path.py --write    write the list into the page
"""

import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import pyarrow as pa
import pyarrow.parquet as pq

import lapwing as lw
from lapwing.machine import progress
from lapwing.release.trial import try_showing

QUESTION = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"
# Only ever lowered: the aim is 45 files and 8,000 lines.
MOST_FILES, MOST_LINES = 60, 10_000

SOURCE = Path(lw.__file__).parent
PAGE = SOURCE.parents[1] / "docs" / "architecture.md"
BEGIN, END = "<!-- trusted path: written by scripts/trusted_path.py -->", "<!-- end of the trusted path -->"


def entered() -> list[Path]:
    """Return the files of which a function runs for the question, in the order of the first."""
    files: dict[str, None] = {}

    def note(frame: FrameType, event: str) -> None:
        if event == "call":
            files.setdefault(frame.f_code.co_filename)

    ask(note)
    return [path for path in map(Path, files) if path.is_relative_to(SOURCE)]


def ask(note: Callable[[FrameType, str], None]) -> None:
    """Ask the question of a small table, and tell of every call and return of a function on the way."""
    trials: list[FrameType] = []  # nothing of them is kept, so that nobody has to trust what they run

    def hear(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code is try_showing.__code__:
            trials.append(frame)
        if not trials:
            note(frame, event)
        if event == "return" and frame in trials:
            trials.remove(frame)

    with TemporaryDirectory() as folder:
        table = pa.table({"person": [1, 1, 2, 3], "plan": ["a", "b", "a", "a"]})
        pq.write_table(table, Path(folder) / "visits.parquet")
        with lw.protect(
            Path(folder) / "visits.parquet",
            privacy_unit="person",
            epsilon=3,
            delta=1e-6,
            max_rows_per_unit=5,
            domains={"plan": ["a", "b"]},
        ) as session:
            # How far it is would be shown of a question that takes long, as on a busy machine.
            progress.report = lambda done: None
            # In the background a shell has Ctrl-C ignored; there, questions are asked by another way.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            threading.setprofile(hear)
            sys.setprofile(hear)
            try:
                session.sql(QUESTION, epsilon=0.5).rows()
            finally:
                sys.setprofile(None)
                threading.setprofile(None)


def lines_of(path: Path) -> int:
    """Return the number of lines of a file."""
    return path.read_text(encoding="utf-8").count("\n")


def summary_of(path: Path) -> str:
    """Return the first sentence of what a file says of itself."""
    first = path.read_text(encoding="utf-8").partition('"""')[2].partition("\n")[0]
    return first.removesuffix('"""').strip()


def listing(files: list[Path]) -> str:
    """Return the list as a table for the page; lines rounded, so that a changed comment does not make it stale."""
    total = sum(map(lines_of, files))
    rows = [f"| `{path.relative_to(SOURCE)}` | {summary_of(path)} |" for path in files]
    head = f"{len(files)} files, about {round(total, -2):,} lines, in the order in which the question enters them:"
    return "\n".join([head, "", "| File | Its first sentence |", "|---|---|", *rows])


def main() -> int:
    """Check, or write; return the exit code."""
    files = entered()
    total = sum(map(lines_of, files))
    if len(files) > MOST_FILES or total > MOST_LINES:
        print(f"A COUNT runs through {len(files)} files of {total:,} lines; at most {MOST_FILES} of {MOST_LINES:,}.")
        print("\n".join(f"{lines_of(path):6} {path.relative_to(SOURCE)}" for path in files))
        return 1
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    wanted = f"{before}{BEGIN}\n{listing(files)}\n{END}{after}"
    if "--write" in sys.argv[1:]:
        PAGE.write_text(wanted, encoding="utf-8")
    elif page != wanted:
        print("docs/architecture.md shows another trusted path; run: python scripts/trusted_path.py --write")
        return 1
    print(f"Trusted path: {len(files)} files, {total:,} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
