"""A class name means one thing: who reads `Task` or searches for it should not have to ask which.

Names that begin with an underscore are known in their own file only and do not count. A name may have a second meaning
if both are the field's own word and users write both, each with its package before it. Those are listed here with the
reason. Before you add one, look for a whole name: `GroupingColumn` instead of a second `Key`.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "lapwing"
TWO_MEANINGS = {
    "Device": "users read what their device revealed, by `local.client.device` or by `secure`, which adds its own sums",
    "Mechanism": "a mechanism is one of the curator's (`mechanisms`) or of a respondent's device (`local`)",
    "Number": "a kind of answer in a task: of `local.client` and of `secure`, whose files state different fields",
    "Task": "what respondents are asked: by `local.client` without any trust, by `secure` of servers that add up",
    "Values": "a kind of answer in a task: of `local.client` and of `secure`, whose files state different fields",
}


def places_by_name(sources: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the files in which each public class is defined, with a file once for each definition."""
    found: dict[str, list[str]] = defaultdict(list)
    for file, text in sources:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(file)
    return found


def shared(sources: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the names that several classes have."""
    return {name: files for name, files in places_by_name(sources).items() if len(files) > 1}


def test_a_class_name_means_one_thing() -> None:
    files = sorted(SOURCE.rglob("*.py"))
    found = shared((str(file.relative_to(SOURCE)), file.read_text(encoding="utf-8")) for file in files)
    assert {name: places for name, places in found.items() if name not in TWO_MEANINGS} == {}
    assert {name: len(places) for name, places in found.items()} == dict.fromkeys(TWO_MEANINGS, 2)


@pytest.mark.parametrize(
    ("second", "seen"),
    [
        ("class Key:\n    pass", ["Key"]),
        ("def outer():\n    class Key: ...", ["Key"]),
        ("class _Key: ...", []),
        ("class GroupingColumn: ...\nKey = int", []),
    ],
)
def test_a_second_meaning_is_seen(second: str, seen: list[str]) -> None:
    assert list(shared([("query.py", "class Key: ...\nclass _Key: ..."), ("console.py", second)])) == seen
