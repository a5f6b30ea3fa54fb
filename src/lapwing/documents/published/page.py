"""A published page as one HTML file: no script, no form, no cookie, and nothing from elsewhere.

It is a function of the snapshot, and of nothing else. A reader and an export get the same bytes. A frame of another
site may ask for a shorter view: the same snapshot, with less of it unfolded.
"""

import base64
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache
from hashlib import sha256
from typing import Any, Final

from jinja2 import Template
from markupsafe import Markup

from lapwing.answer.answer_table import cells_of, numeric_columns
from lapwing.answer.charts.answer_chart import chart_of, table_of
from lapwing.answer.charts.chart_options import ChartOptions
from lapwing.documents.published.snapshots import FULL, read
from lapwing.documents.templates import FOLDER, new_environment
from lapwing.documents.tile_text import blocks_of

_STYLE: Final = re.compile("<style>(.*?)</style>", re.DOTALL)
KEPT: Final = 32
"""Pages that a process remembers."""
MOST_ROWS: Final = 24
"""Rows of a table that stands open below its chart."""


@cache
def style() -> str:
    """Return the style of every page."""
    return (FOLDER / "published" / "page.css").read_text("utf-8")


@cache
def policy() -> str:
    """Return what browsers let a page do: have its own style, and nothing else."""
    return _policy_with(style())


@lru_cache(maxsize=KEPT)
def policy_of(content: str) -> str:
    """Return the policy of the page of a snapshot. A method report has a style of its own.

    Raises:
        Fault: If a later release wrote the snapshot.
    """
    page = read(content)
    return policy() if "method_page" not in page else _policy_with(_STYLE.findall(page["method_page"])[0])


def _policy_with(style: str) -> str:
    digest = base64.b64encode(sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


@cache
def _template() -> Template:
    return new_environment().get_template("published/page.html")


@lru_cache(maxsize=KEPT)
def page_of(content: str, *, framed: bool = False) -> str:
    """Return the page of a snapshot, which is JSON.

    Args:
        framed: Whether a frame shows it: tables, method and privacy are then folded.

    Raises:
        Fault: If a later release wrote the snapshot.
    """
    page = read(content)
    if "method_page" in page:  # the bytes of the file, whose hash the manifest has
        return str(page["method_page"])
    return _template().render(facts_of(page), framed=framed)


def facts_of(page: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the template shows of a snapshot of results."""
    results = [_shown(result) for result in page["results"]]
    order = page.get("parts") or [{"result": place, "width": FULL} for place in range(len(results))]
    # What the policy has a hash of must be in the page as it is. It is a file of this package.
    return {
        "page": page,
        "datasets": _datasets(page),
        "level": _level(page),
        "results": results,
        "parts": [_part(part) for part in order],
        "most": MOST_ROWS,
        "policy": policy(),
        "style": Markup(style()),  # noqa: S704
    }


def _datasets(page: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what a page says of its data sets; a page of an older format has one."""
    if "datasets" in page:
        return list(page["datasets"])
    together = page["together"] or page["results"][0]["meaning"]
    return [{**page["dataset"], "protects": page["protects"], "count": len(page["results"]), "together": together}]


def _level(page: Mapping[str, Any]) -> float | None:
    """Return the confidence of all intervals of a page; None if they have several, or there are none."""
    levels = {result["confidence"] for result in page["results"] if result["intervals"]}
    return levels.pop() if len(levels) == 1 else None


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    return {**part, "blocks": blocks_of(part["text"])} if "text" in part else dict(part)


def _shown(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result as a tile of a dashboard shows it, with the table of its rows in the order of its chart."""
    options = ChartOptions.from_texts(result.get("chart", {}))
    chart = chart_of(result, result["column"], options)
    places, heads = table_of(result, result["column"], options, chart)
    if chart is not None and chart.narrow is not None and result["title"]:
        titled = {"title": result["title"]}
        chart = replace(chart, narrow=replace(chart.narrow, **titled), **titled)
    return {
        "document": result,
        "title": result["title"],
        "cells": cells_of(result, places),
        "heads": heads,
        "chart": chart,
        "numeric": numeric_columns(result),
    }
