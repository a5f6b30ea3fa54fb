"""Counts on a grid as a map in the terminal, and many of them as a film strip in SVG."""

from collections.abc import Sequence
from html import escape
from typing import Final

from rich.text import Text

SHADES: Final = " ░▒▓█"
_COLOURS: Final = ((13, 8, 64), (84, 15, 109), (158, 42, 99), (220, 80, 57), (250, 160, 48), (252, 250, 180))
"""From little to much; neighbours differ in lightness, so that it reads without colours, too."""


def colour(share: float) -> str:
    """Return a colour for a share from 0 to 1, as #rrggbb."""
    place = min(max(share, 0.0), 1.0) * (len(_COLOURS) - 1)
    low = min(int(place), len(_COLOURS) - 2)
    parts = (a + (b - a) * (place - low) for a, b in zip(_COLOURS[low], _COLOURS[low + 1], strict=True))
    return "#" + "".join(f"{round(part):02x}" for part in parts)


def terminal_map(counts: Sequence[float], columns: int, highest: float) -> Text:
    """Return a map of a grid: each cell has its count in hundreds, on its colour, and a shade where there are none."""
    drawn = Text()
    for place, count in enumerate(counts):
        share = max(0.0, count) / highest
        shade = SHADES[min(len(SHADES) - 1, round(share * (len(SHADES) - 1)))]
        ink = "#000000" if share > 0.55 else "#ffffff"
        drawn.append(f"{shade}{max(0, round(count / 100)):>3} ", f"{ink} on {colour(share)}")
        if place % columns == columns - 1:
            drawn.append("\n")
    return drawn


def film_strip(
    frames: Sequence[tuple[str, Sequence[float]]], columns: int, highest: float, title: str, below: str
) -> str:
    """Return frames as one picture, each a small map under its label, with a scale.

    Args:
        frames: Labels and counts.
        below: What is written under it all.
    """
    rows = len(frames[0][1]) // columns
    size, gap, across = 12, 18, min(6, len(frames))
    width, height = columns * size + gap, rows * size + 34
    down = -(-len(frames) // across)
    total, bottom = across * width + gap, 46 + down * height
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {bottom + 52}" width="{total}" '
        f'font-family="sans-serif" font-size="11" role="img"><title>{escape(title)}</title>',
        f'<rect width="{total}" height="{bottom + 52}" fill="#ffffff"/>',
        f'<text x="{gap}" y="26" font-size="15" font-weight="bold">{escape(title)}</text>',
    ]
    for number, (label, counts) in enumerate(frames):
        x, y = gap + (number % across) * width, 46 + (number // across) * height
        parts.append(f'<text x="{x}" y="{y + 12}">{escape(label)}</text>')
        for place, count in enumerate(counts):
            across_by, down_by = place % columns * size, place // columns * size
            shown = colour(max(0.0, count) / highest)
            parts.append(
                f'<rect x="{x + across_by}" y="{y + 18 + down_by}" width="{size}" height="{size}" fill="{shown}"/>'
            )
    for step in range(60):
        parts.append(f'<rect x="{gap + 3 * step}" y="{bottom + 8}" width="3" height="10" fill="{colour(step / 59)}"/>')
    parts += [
        f'<text x="{gap + 190}" y="{bottom + 17}">0 to {highest:,.0f} people in a cell, or more</text>',
        f'<text x="{gap}" y="{bottom + 38}">{escape(below)}</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"
