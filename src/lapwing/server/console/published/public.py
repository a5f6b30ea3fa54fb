"""A published page as one HTML file: no script, no form, no cookie, and nothing from elsewhere.

It is a function of the snapshot, and of nothing else. A reader and an export get the same bytes.
"""

import base64
import json
from collections.abc import Mapping
from functools import cache, lru_cache
from hashlib import sha256
from typing import Any, Final

from markupsafe import Markup

from lapwing.server.console.answer_table import cells_of, numeric_columns
from lapwing.server.console.charts.answer_chart import chart_of
from lapwing.server.console.templates import FOLDER, all_templates

KEPT: Final = 32
"""Pages that a process remembers."""


@cache
def style() -> str:
    """Return the style of every page."""
    return (FOLDER / "published" / "public.css").read_text("utf-8")


@cache
def policy() -> str:
    """Return what browsers let a page do: have its own style, and nothing else."""
    digest = base64.b64encode(sha256(style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


@lru_cache(maxsize=KEPT)
def page_of(content: str) -> str:
    """Return the page of a snapshot, which is JSON."""
    page = json.loads(content)
    results = [_shown(result) for result in page["results"]]
    # What the policy has a hash of must be in the page as it is. It is a file of this package.
    facts = {"page": page, "results": results, "policy": policy(), "style": Markup(style()), "alone": False}  # noqa: S704
    return all_templates().render("published/public.html", **facts)


def _shown(result: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "document": result,
        "title": result["title"],
        "cells": cells_of(result, range(len(result["rows"]))),
        "chart": chart_of(result, result["column"]),
        "numeric": numeric_columns(result),
    }
