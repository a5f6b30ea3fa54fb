"""The package from outside: cheap to import, complete in its exports, no way to turn the noise off."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import lapwing

SOURCE = Path(lapwing.__file__).parent


def test_importing_it_loads_nothing_heavy() -> None:
    heavy = ("duckdb", "numpy", "pyarrow", "sqlglot", "flint")
    script = f"import sys, lapwing; print([m for m in {heavy} if m in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


def test_every_public_name_exists() -> None:
    for name in lapwing.__all__:
        assert getattr(lapwing, name) is not None


MAY_DRAW = (
    "audit/made_data.py",
    "audit/made_expressions.py",
    "audit/made_queries.py",
    "audit/made_readings.py",
    "audit/made_values.py",
    "audit/neighbours.py",
    "cli/demo/city.py",
    "lab/chance.py",
    "local/simulation/drawn_counts.py",
    "local/simulation/roads.py",
    "tabulation/coverage.py",
    "tabulation/rehearsal.py",
)
"""Experiments, simulations, made-up data, which release nothing; what releases may import none (import-linter)."""


def nodes(text: str, mentioned: str) -> list[ast.AST]:
    """Return all that a source is made of if it has a word; parsing those without it would take seconds."""
    return list(ast.walk(ast.parse(text))) if re.search(rf"\b({mentioned})\b", text) else []


def test_no_other_source_of_randomness_is_imported() -> None:
    """Only the entropy door reads the operating system; nothing seeds anything."""
    for file in SOURCE.rglob("*.py"):
        text = file.read_text()
        for node in nodes(text, "random|secrets"):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            module = node.module if isinstance(node, ast.ImportFrom) else ""
            imported = {*names, module} - ({"random"} if str(file.relative_to(SOURCE)) in MAY_DRAW else set())
            assert not {"random", "secrets"} & imported, file
        if file.name != "entropy.py":
            assert "urandom" not in text.replace("os.urandom`", ""), file
        assert "np.random" not in text or str(file.relative_to(SOURCE)) in MAY_DRAW, file


def test_no_guard_is_an_assert() -> None:
    for file in SOURCE.rglob("*.py"):
        asserts = [node for node in nodes(file.read_text(), "assert") if isinstance(node, ast.Assert)]
        assert not asserts, file
