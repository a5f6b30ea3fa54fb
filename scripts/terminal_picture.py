"""Draw the moving picture of the README: real commands in a terminal, as an SVG that plays by itself.

    python scripts/terminal_picture.py [FILE]

The commands run on the data that comes with Lapwing, in a terminal of their own, and only the noise is another one each
time. The SVG holds texts and a few lines of CSS. Whoever asks the browser for less motion sees the last frame.
"""

import fcntl
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

from lapwing.datasets import rand_hie_catalog, rand_hie_data

ROOT: Final = Path(__file__).parents[1]
PICTURE: Final = ROOT / "docs" / "assets" / "terminal.svg"
COLUMNS: Final = 88
CHARACTER, LINE, EDGE = 8.43, 19, 18
BY_PLAN: Final = "SELECT plan, COUNT(DISTINCT person_id) AS people\n  FROM rand_hie GROUP BY plan"
SCENES: Final = (
    ("# What does it cost, and how wrong will it be? Lapwing reads no row for this.", ""),
    (f'lapwing explain "{BY_PLAN}" --epsilon 0.5', r"^(protects|cost|budget) |^people +±"),
    ("# Run it. Lapwing charges the cost to the budget before it reads a row.", ""),
    (f'lapwing query "{BY_PLAN}" --epsilon 0.5 --plot', r"^(?!note|  +\S)"),
    ("# The same query again is free.", ""),
    (f'lapwing query "{BY_PLAN}" --epsilon 0.5', r"^cost "),
)
"""Commands, and which of their lines are shown; a remark has none."""
TYPING, PAUSE, END = 0.45, 1.1, 5.0
"""Seconds: for a line that is typed, before what it prints, and at the end."""
STYLES: Final = {"1": "b", "2": "d", "36": "c"}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the terminal, as pieces of text with their style, and when it appears."""

    pieces: list[tuple[str, str]]
    seconds: float


def main(file: Path) -> None:
    """Run the commands and write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        for source in (rand_hie_data(), rand_hie_catalog()):
            name = "lapwing.toml" if source.suffix == ".toml" else source.name
            (Path(folder) / name).write_bytes(source.read_bytes())
        lines, end = played(Path(folder))
    file.write_text(svg(lines, end + END), encoding="utf-8")
    print(f"{file}: {len(lines)} lines, {end + END:.0f} seconds")


def played(folder: Path) -> tuple[list[Line], float]:
    """Return what a terminal shows, line by line, and when it is done."""
    lines, now = list[Line](), 0.5
    for command, shown in SCENES:
        typed = command.split("\n")
        for place, part in enumerate(typed):
            pieces = [(part, "d")] if not shown else [("$ " if not place else "", "d"), (part, "p")]
            lines.append(Line(pieces, now))
            now += TYPING
        if not shown:
            continue
        now += PAUSE
        wanted = [line for line in printed(command, folder) if re.search(shown, plain(line))]
        lines += [Line(list(pieces_of(line)), now) for line in wanted]
        lines.append(Line([], now))
        now += PAUSE
    return lines, now


def printed(command: str, folder: Path) -> list[str]:
    """Run a command in a terminal of its own, and return its lines."""
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 60, COLUMNS, 0, 0))
    words = [str(Path(sys.executable).parent / "lapwing"), *shlex.split(command)[1:]]
    environment = {**os.environ, "TERM": "xterm", "LOGNAME": "ana"}
    running = subprocess.Popen(words, cwd=folder, stdin=inner, stdout=inner, stderr=inner, env=environment)
    os.close(inner)
    output = b""
    while True:
        try:
            more = os.read(outer, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        output += more
    assert running.wait() == 0, output.decode()
    text = re.sub(r"\x1b\[\??[0-9;]*[A-HJKSTfhl]", "", output.decode()).replace("\r\n", "\n")
    return [line.rpartition("\r")[2].rstrip() for line in text.split("\n")]


def plain(line: str) -> str:
    """Return a line without its colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", line)


def pieces_of(line: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a line, each with its style."""
    style = ""
    for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
        if piece.startswith("\x1b"):
            style = STYLES.get(piece[2:-1].split(";")[-1], "")
        elif piece:
            yield piece, style


def svg(lines: list[Line], length: float) -> str:
    """Return the picture: each line appears at its time, again and again."""
    width, height = round(2 * EDGE + COLUMNS * CHARACTER), 2 * EDGE + 24 + LINE * len(lines)
    rules, texts = [], []
    for place, line in enumerate(lines):
        if not line.pieces:
            continue
        start = 100 * line.seconds / length
        rules.append(f"@keyframes k{place}{{0%,{start:.2f}%{{opacity:0}}{start + 0.3:.2f}%,100%{{opacity:1}}}}")
        rules.append(f".l{place}{{animation:k{place} {length:.1f}s infinite}}")
        spans = "".join(
            f'<tspan class="{style}">{escape(text)}</tspan>' if style else escape(text) for text, style in line.pieces
        )
        texts.append(f'<text class="l{place}" x="{EDGE}" y="{EDGE + 36 + LINE * place}">{spans}</text>')
    dots = "".join(f'<circle cx="{EDGE + 4 + 18 * n}" cy="18" r="5" fill="#5b6b64"/>' for n in range(3))
    style = (
        "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d7e2dc;"
        "white-space:pre}.b{font-weight:700}.d{fill:#8fa39a}.c{fill:#6fc7b2}.p{fill:#fff}"
        + "".join(rules)
        + "@media (prefers-reduced-motion:reduce){text{animation:none!important}}"
    )
    about = "A terminal: Lapwing shows the cost and the error of a query, runs it, and gives the result again for free."
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{about}"><style>{style}</style>'
        f'<rect width="100%" height="100%" rx="8" fill="#17211d"/>{dots}{"".join(texts)}</svg>\n'
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE)
