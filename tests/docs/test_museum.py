"""Each fault of the museum names a test that there is."""

import ast
import re

import pytest

from tests.support.docs.pages import DOCS, ROOT

PAGE = (DOCS / "theory" / "museum.md").read_text(encoding="utf-8")
FAULTS = PAGE.split("\n### ")[1:]


def named_tests(text: str) -> list[str]:
    """Return the tests that a fault names; a page without one has no line for it."""
    return re.findall(r"^\*\*Test:\*\* `(tests/[^`]+)`$", text, re.MULTILINE)


def is_there(name: str) -> bool:
    """Tell whether a file of tests is there, and has the function that is named, or any test."""
    file, _, function = name.partition("::")
    if not (ROOT / file).is_file():
        return False
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return function in functions if function else any(one.startswith("test_") for one in functions)


def test_each_fault_has_an_example_and_a_test_that_is_there() -> None:
    assert len(FAULTS) >= 20
    for fault in FAULTS:
        (name,) = named_tests(fault)
        assert "```python\n" in fault, name
        assert is_there(name), name


def test_faults_of_others_have_a_public_report() -> None:
    others = PAGE.partition("## Faults that others reported")[2].split("\n### ")[1:]
    assert len(others) >= 9
    assert all("](https://github.com/" in fault for fault in others)


@pytest.mark.parametrize(
    "name",
    [
        "tests/query/test_that_was_renamed.py",
        "tests/query/test_replay.py::test_that_was_renamed",
        "tests/support/docs/pages.py",
    ],
)
def test_twin_a_test_that_is_gone_is_noticed(name: str) -> None:
    assert not is_there(name)
