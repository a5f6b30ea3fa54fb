"""What docstrings say in sections is in the form that editors and the documentation read, and is about what exists."""

import ast
import builtins
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "lapwing"
SECTIONS = r"(Guarantee|Args|Returns|Yields|Raises|Source|Example)"
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@cache
def trees() -> dict[Path, ast.Module]:
    """Return what every file of the package parses to."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}


@cache
def classes() -> dict[str, ast.ClassDef]:
    """Return the classes of the package by name."""
    return {node.name: node for tree in trees().values() for node in parts_of(tree) if isinstance(node, ast.ClassDef)}


def names_of(node: ast.AST) -> set[str]:
    """Return the parameters of a function, or those that make an object of a class: its fields, or of `__init__`."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        given = node.args
        lists = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        return {name.arg for name in lists if name is not None} - {"self", "cls"}
    names: set[str] = set()
    if isinstance(node, ast.ClassDef):
        for base in node.bases:
            for part in ast.walk(base):
                if isinstance(part, ast.Name) and classes().get(part.id, node) is not node:
                    names |= names_of(classes()[part.id])
        for each in node.body:
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                names.add(each.target.id)
            elif isinstance(each, ast.FunctionDef) and each.name in ("__init__", "__new__"):
                names |= names_of(each)
    return names


def wrong_in(node: Documented) -> Iterator[str]:
    """Yield what is wrong with the sections of one docstring."""
    text = ast.get_docstring(node) or ""
    for found in re.finditer(rf"(?m)^{SECTIONS}: +\S", text):
        yield f"{found[1]} begins its text on the line of its heading"
    for title, body in re.findall(rf"(?m)^{SECTIONS}:\n((?: +\S.*\n?|\n(?= ))+)", text + "\n"):
        entries = re.findall(r"(?m)^(\S[^:\n]*):", inspect.cleandoc("\n" + body))
        if title == "Args":
            if not entries:
                yield "Args names no parameter"
            yield from (f"{name} is no parameter" for name in entries if name.lstrip("*") not in names_of(node))
        elif title == "Raises":
            known = [name.rpartition(".")[2] for name in entries]
            foreign = {"HTTPException", "HTTPError", "OutOfMemoryException", "Error"}
            yield from (
                f"{name} is no error"
                for name in known
                if name not in classes().keys() | vars(builtins).keys() | foreign
            )


PLANTED = (
    ("Args:\n        gone: What is no longer taken.", "gone is no parameter"),
    ("Args:\n        What it takes.", "Args names no parameter"),
    ("Args: kept: what it takes.", "Args begins its text on the line of its heading"),
    ("Raises:\n        NoSuchError: Never.", "NoSuchError is no error"),
    (
        "Args:\n        kept: It takes,\n            gone: as text.\n\n    Raises:\n        ValueError: If not.",
        None,
    ),
)
"""The text of a docstring's sections, and what is wrong there."""


def parts_of(node: ast.AST) -> Iterator[Documented]:
    """Yield a file's or a class's own docstring, and those of what is in it; of what is in functions, none."""
    if isinstance(node, Documented):
        yield node
    if isinstance(node, ast.Module | ast.ClassDef | ast.If | ast.Try):
        for each in node.body:
            yield from parts_of(each)


def test_sections_of_docstrings_name_what_exists() -> None:
    for text, wrong in PLANTED:  # first, so that what finds nothing is noticed
        [function] = ast.parse(f'def example(kept):\n    """Return it.\n\n    {text}\n    """\n').body
        assert isinstance(function, ast.FunctionDef)
        assert list(wrong_in(function)) == ([] if wrong is None else [wrong])
    found = [
        f"{path.relative_to(SOURCE)}:{getattr(node, 'lineno', 1)}: {wrong}"
        for path, tree in trees().items()
        for node in parts_of(tree)
        for wrong in wrong_in(node)
    ]
    trees.cache_clear()  # else each search for garbage looks through them while this process lives
    classes.cache_clear()
    assert not found, "\n".join(found)
