"""The names of results in a list: labels, or texts of queries, shortened so that different ones look different."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

SEVERAL: Final = "several queries"
CONTEXT: Final = 12
"""Characters before the first difference that are shown, such as the name of the column that is compared."""


def query_texts(results: Sequence[Mapping[str, Any]], longest: int, labels: bool = True) -> list[str]:
    """Return the name of each result.

    Args:
        labels: Whether a label stands for its query.
    """
    requests = [result["request"] for result in results]
    return shortened(
        [(labels and request.get("label")) or request.get("sql") or SEVERAL for request in requests], longest
    )


def shortened(texts: Sequence[str], longest: int) -> list[str]:
    """Return texts of some length at most; of those that begin alike, the beginning and what differs.

    >>> one, other = (f"SELECT plan, COUNT(*) FROM visits WHERE sex = '{sex}' GROUP BY plan" for sex in "fm")
    >>> shortened([one, other, "SELECT 1"], 40)
    ["SELECT plan, COUNT(…HERE sex = 'f' GROU…", "SELECT plan, COUNT(…HERE sex = 'm' GROU…", 'SELECT 1']
    """
    found = []
    for text in texts:
        alike = {other for other in texts if other[: longest - 1] == text[: longest - 1] and len(other) > longest}
        if len(text) <= longest or len(alike) < 2:
            found.append(_cut(text, longest))
            continue
        half = longest // 2
        start = max(half, _alike(min(alike), max(alike)) - CONTEXT)
        found.append(f"{text[: half - 1]}…{_cut(text[start:], longest - half)}")
    return found


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _alike(one: str, other: str) -> int:
    """Return how many characters two texts begin with in common; of the first and the last of several, that all do."""
    return next((place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one))
