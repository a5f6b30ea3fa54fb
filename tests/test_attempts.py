"""A refusal is seldom an answer: where `query` tries to bind something, the causes that answer it are named.

A place that catches every refusal takes a fault of the text for an answer, and reads it as something else. So refusals
are caught in three functions alone: one adds to a refusal on its way out (`refused_as`), another takes those of a few
causes for an answer (`attempted`), and `bind` searches for bounds if they are wanting. Who tries is listed here with
the reason, and becomes only fewer.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "lapwing" / "query"
CATCHING = {("bind/bind.py", "over_rows"), ("expressions/rows.py", "refused_as"), ("expressions/rows.py", "attempted")}
CAUGHT = frozenset({"QueryRefused", "LapwingError", "Exception", "BaseException"})
READ = "of values as they are read, which reach further than bounded ones, it may not be total"
PUBLIC = "what shows public rows alone may be written as constants; only FROM and its conditions say whether it does"
ATTEMPTS = {
    ("aggregates/outputs.py", "_key"): "an item of the answer may be a key, or computed from noisy numbers and keys",
    (
        "bind/compositions.py",
        "_is_between",
    ): "names are looked up in the order of FROM; those of later sources are unknown",
    ("bind/implicit_bounds.py", "_bounded"): "a search: one aggregate after the other gets bounds",
    ("bind/public_answers.py", "public_rows"): PUBLIC,
    ("bind/public_conditions.py", "_with"): "a condition may be asked of rows, or only of what is shown of them",
    ("bind/stages.py", "_over_result"): "a search: one pass over an answer may be enough, or two are needed",
    ("classify/kinds.py", "_is_so"): "whose rows FROM gives; where rows of several units may meet is known later",
    ("expressions/calls.py", "_either"): READ,
    ("expressions/calls.py", "_seen"): READ,
    ("expressions/calls.py", "bind_both"): READ,
    ("expressions/calls.py", "looked_at"): READ,
    (
        "from_clause/comma_joins.py",
        "_asked_of_clusters",
    ): "a subquery is asked of the first tables that have its columns",
    ("from_clause/equalities.py", "binds"): "whose columns a side names",
    ("from_clause/groupings.py", "_collect"): "a part of an expression may be a group, or have aggregates inside",
    ("from_clause/groupings.py", "_read"): READ,
    ("from_clause/memberships.py", "_names_only"): "whose columns a condition names",
    (
        "from_clause/outer_joins.py",
        "_is_dark",
    ): "an argument may have no meaning in one row; its aggregate is refused then",
    ("from_clause/shared_joins.py", "_unit_named"): "whose unit a side names",
    (
        "from_clause/subqueries.py",
        "bind_composed",
    ): "a search: rows of different units meet only where nothing else answers",
    ("from_clause/unit_joins.py", "_is_unit"): "whose unit a side names",
    ("from_clause/unit_windows.py", "_window"): READ,
    ("from_clause/unit_windows.py", "bind_windows"): READ,
    ("normalise/public_constants.py", "_public_column"): PUBLIC,
    ("normalise/public_numbers.py", "_rows"): PUBLIC,
    ("relations/row_numbers.py", "_may_hold"): "an expression may have no type of its own for one row number",
}
"""The functions that try once or more, and why."""
MOST = 27
"""How many attempts there are; a lower number is better."""


def functions(tree: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield each node of a file with the name of the function around it."""

    def walk(node: ast.AST, around: str) -> Iterator[tuple[str, ast.AST]]:
        for child in ast.iter_child_nodes(node):
            yield around, child
            yield from walk(child, child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else around)

    yield from walk(tree, "")


def caught_in(source: str) -> list[str]:
    """Return the functions that catch refusals, each as often as it does."""
    found = []
    for around, node in functions(ast.parse(source)):
        match node:
            case ast.ExceptHandler(type=None):
                found.append(around)
            case ast.ExceptHandler(type=kinds) if kinds is not None and _names(kinds) & CAUGHT:
                found.append(around)
            case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress")) if _names(node) & CAUGHT:
                found.append(around)
    return found


def attempts_in(source: str) -> list[str]:
    """Return the functions that try to bind something, each as often as it does."""
    return [
        around
        for around, node in functions(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "attempted"
    ]


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} | {
        part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)
    }


def sources(word: str) -> Iterator[tuple[str, str]]:
    """Yield the files that have a word, and their texts."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if word in text:
            yield path.relative_to(SOURCE).as_posix(), text


def test_refusals_are_caught_in_three_functions() -> None:
    words = ("except", "suppress")
    found = {(file, function) for word in words for file, text in sources(word) for function in caught_in(text)}
    assert found == CATCHING


def test_attempts_become_only_fewer() -> None:
    found = Counter((file, function) for file, text in sources("attempted(") for function in attempts_in(text))
    assert set(found) == set(ATTEMPTS)
    assert found.total() == MOST


@pytest.mark.parametrize(
    "planted",
    [
        "try: pass\nexcept QueryRefused: pass",
        "try: pass\nexcept (QueryRefused, ValueError) as refused: raise",
        "try: pass\nexcept errors.LapwingError: pass",
        "try: pass\nexcept Exception: pass",
        "try: pass\nexcept: pass",
        "with suppress(QueryRefused): pass",
        "with contextlib.suppress(errors.QueryRefused): pass",
    ],
)
def test_a_place_that_catches_is_found(planted: str) -> None:
    assert caught_in(planted) == [""]
    assert caught_in("def bind():\n    try: pass\n    except ArithmeticError: pass") == []


def test_an_attempt_that_is_planted_is_found() -> None:
    assert attempts_in("def bind():\n    return attempted(VALUES, bind_both, node, rows)") == ["bind"]
