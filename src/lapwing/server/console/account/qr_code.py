"""QR codes as one path of an SVG: a square of modules, of which the dark ones are drawn."""

from dataclasses import dataclass
from typing import Final, final

import segno

QUIET: Final = 4
"""Light modules around it, without which cameras do not find it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QrCode:
    """What is drawn: `size` is the width of the square, with its margin."""

    size: int
    path: str


def qr_code(text: str) -> QrCode:
    """Return a text as a QR code."""
    rows = [bytes(row) for row in segno.make(text, error="m", micro=False).matrix]
    runs = []
    for y, row in enumerate(rows):
        x = 0
        while x < len(row):
            dark = 0
            while x + dark < len(row) and row[x + dark]:
                dark += 1
            if dark:
                runs.append(f"M{x + QUIET} {y + QUIET}h{dark}v1h-{dark}z")
            x += dark or 1
    return QrCode(size=len(rows) + 2 * QUIET, path="".join(runs))
