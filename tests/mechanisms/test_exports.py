"""The names of `lapwing.mechanisms`: imported when they are used, the same for Python and for type checkers."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import lapwing as lw
from lapwing import mechanisms


def for_type_checkers() -> dict[str, str]:
    """Return the module of each name, as the imports for type checkers have it."""
    tree = ast.parse(Path(mechanisms.__file__).read_text(encoding="utf-8"))
    return {
        name.asname or name.name: (node.module or "").removeprefix("lapwing.mechanisms.")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and node.module is not None
        and node.module.startswith("lapwing.mechanisms.")
        for name in node.names
    }


def test_python_and_type_checkers_find_the_same_names_in_the_same_places() -> None:
    homes = for_type_checkers()
    assert set(mechanisms.__all__) == homes.keys() <= set(dir(mechanisms))
    for name, home in homes.items():
        assert getattr(lw.mechanisms, name).__module__ == f"lapwing.mechanisms.{home}"
    with pytest.raises(AttributeError, match=r"module 'lapwing\.mechanisms' has no attribute 'Nothing'"):
        mechanisms.Nothing  # noqa: B018


@pytest.mark.long
def test_a_session_imports_no_mechanism_that_questions_do_not_use() -> None:
    code = (
        "import sys, lapwing.session; print(*(name for name in sys.modules if name.startswith('lapwing.mechanisms')))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    imported = {name.rpartition(".")[2] for name in shown.split() if name.startswith("lapwing.mechanisms.")}
    assert "rounded_gaussian" in imported
    unused = ("adaptive_degree", "clipping", "fixed_point", "quantile_tree", "randomized_response", "sparse_vector")
    assert not imported & {*unused, "subsampling", "top_k", "selection", "interval_exponential"}
