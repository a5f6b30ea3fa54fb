"""Texts are for people: no code compares the words of an error, a note or a verdict, as anybody may better them.

An error says to code what it is about by its class and its `cause`, and a note by its `code`. So the source is searched
for comparisons with such words, and for what takes them apart; the places that were mended serve as planted ones.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "lapwing"
WORDS = frozenset({"reason", "remedy", "message", "note", "notes", "verdict", "verdicts"})
"""Variables and attributes that hold what is said to people."""
SAYING = re.compile(r"(notes_|verdicts$|unusable$)")
"""Functions that return notes."""
RAISED = re.compile(r"(Error|Exception|Refused|Fault)$")
APART = frozenset(
    {
        "startswith", "endswith", "find", "rfind", "index", "rindex", "count", "partition", "rpartition", "split",
        "removeprefix", "removesuffix", "replace",
    }
)  # fmt: skip
SPEAKING = re.compile(r"reason|remedy|message|note|verdict|unusable|\bexcept\b|(?:Error|Exception|Refused|Fault)\b")
"""What is in the text of every file where words can decide, by all of the above: others need not be parsed."""
LOOKED_UP = frozenset({"match", "search", "fullmatch", "get"})
ALLOWED = {
    ("server/readiness.py", ".reason"): "why a data set is not ready is one of a few codes",
    ("server/gauges.py", "standing.reason in STOPPED"): "why a data set is not ready is one of a few codes",
    ("cli/shell/shell.py", "note not in self._said"): "what was said once in a shell is not said again",
    ("collector/collector.py", "reasons[reason]"): "they are counted for the operator, whatever they say",
    ("server/console/catalog/positions.py", "search(message)"): "the page marks the place that an error names",
    # Where a sentence of a message is left out, so that another can say it.
    ("learn/candidates.py", "Nothing was charged."): "what the sentence says is said of the whole",
    ("learn/model_selection.py", "Nothing was charged."): "what the sentence says is said of the whole",
    ("local/simulation/task_reports.py", "; nothing was sent"): "nobody sends anything in a simulation",
    ("secure/device.py", "; nothing was sent."): "it is the remedy there",
}
"""What shows words, or other words for them, and decides nothing else."""


def decisions(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield what rests on the words of an error, a note or a verdict."""
    nodes = [*ast.walk(tree)]
    errors = {node.name for node in nodes if isinstance(node, ast.ExceptHandler)}
    errors |= {
        node.arg
        for node in nodes
        if isinstance(node, ast.arg) and node.annotation is not None and RAISED.search(ast.unparse(node.annotation))
    }

    def says(node: ast.AST) -> bool:
        match node:
            case ast.Name(id=name):
                return name in WORDS
            case ast.Attribute(attr=name):
                return name in WORDS
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="args")):
                return name in errors
            case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=name), *_]):
                return name in WORDS
            case ast.Call(func=ast.Name(id="str" | "repr"), args=[ast.Name(id=name)]):
                return name in errors or name in WORDS
            case ast.Call(func=ast.Name(id="str" | "repr"), args=[inner]):
                return says(inner)
            case ast.Call(func=ast.Attribute(value=inner, attr="lower" | "casefold" | "strip" | "rstrip")):
                return says(inner)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                return bool(SAYING.match(name))
            case ast.Subscript(value=inner, slice=place):  # of a message of a protocol, a field is no words
                return says(inner) and not isinstance(place, ast.Constant | ast.Slice)
        return False

    for node in nodes:
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others):
                sides = [left, *others]
                compared = any(isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for op in ops)
                empty = any(isinstance(side, ast.Constant) and side.value == "" for side in sides)
                if compared and any(map(says, sides)) and not empty:
                    yield node
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in APART and says(value):
                yield node
            case ast.Call(func=ast.Attribute(attr=name), args=arguments) if name in LOOKED_UP:
                if any(map(says, arguments)):
                    yield node
            case ast.Subscript(slice=place) if says(place):
                yield node
            case ast.Match(subject=subject) if says(subject):
                yield node


def found_in(file: str, source: str) -> list[str]:
    """Return the places of a file where words decide."""
    places = []
    for node in decisions(ast.parse(source)) if SPEAKING.search(source) else ():
        written = ast.unparse(node)
        if not any(file == path and part in written for path, part in ALLOWED):
            places.append(f"{file}:{getattr(node, 'lineno', 0)}: {written}")
    return places


def test_no_words_are_compared() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}
    found = [place for path, source in sources.items() for place in found_in(str(path.relative_to(SOURCE)), source)]
    assert found == []


@pytest.mark.parametrize(
    "planted",
    [
        "if NEEDS_BOUNDS in refused.remedy: pass",
        "if refused.reason.startswith(UNIT_SHOWN): pass",
        "if again.reason == NOT_RELEASED: pass",
        "if UNUSABLE in str(notes): pass",
        "kept = [note for note in said if note not in notes_on_choices(priced)]",
        "place = notes.index(said[0])",
        "shown = [instead.get(note, note) for note in notes]",
        "candidate = counted.reason.partition(', each in')[0]",
        "try: pass\nexcept sqlite3.Error as error:\n    held = 'locked' in str(error)",
        "try: pass\nexcept ValueError as error:\n    held = error.args[0] == 'x'",
        "def told(error: LapwingError) -> bool:\n    return re.search('charged', str(error)) is not None",
        "match refused.reason:\n    case 'Grouping': pass",
        "wording = REMEDIES[refused.reason]",
        "assumable = 'assuming_count' in document.get('remedy', '')",
    ],
)
def test_a_comparison_that_is_planted_is_found(planted: str) -> None:
    assert found_in("query/bind/bind.py", planted)


def test_what_decides_nothing_is_let_be() -> None:
    for source in (
        "try: pass\nexcept QueryRefused as refused:\n    raise rows.refusal(node, refused.reason, refused.remedy)",
        "shown = refused.remedy != ''",
        "if refused.cause is RefusalCause.UNBOUNDED: pass",
        "kept = [note for note in notes if code_of(note) != RANK_ERROR]",
    ):
        assert found_in("query/bind/bind.py", source) == []
