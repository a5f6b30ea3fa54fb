"""Responses of routes: what a document is described by, and how one that may be large is written.

A document is described by its type: a `TypedDict` of `lapwing.documents`, or a pydantic model beside its route. Small
ones are returned as they are, and FastAPI writes them. Large and frequent ones are described in the same way, and
written at once (`json_response`) without being checked value by value: their types were checked by mypy.
"""

from collections.abc import Mapping
from typing import Any, Final

from fastapi import Response
from pydantic_core import to_json

ARROW: Final = "application/vnd.apache.arrow.stream"
HTML: Final = "text/html"
JSON: Final = "application/json"
DCAT: Final = "application/ld+json"
CSVW: Final = "application/csvm+json"
LINES: Final = "application/x-ndjson"


def described_by(
    model: Any, about: str = "Successful Response", *media_types: str, status: int = 200
) -> dict[int | str, dict[str, Any]]:
    """Describe a response by the type of its document (`responses=`), and by other media types that it may have."""
    return {status: {"model": model, "description": about, "content": {kind: {} for kind in media_types}}}


def json_response(
    document: object, headers: Mapping[str, str] | None = None, status: int = 200, kind: str = JSON
) -> Response:
    """Return a document as a response; a number that JSON does not have is null."""
    return Response(to_json(document, inf_nan_mode="null"), status, headers, kind)
