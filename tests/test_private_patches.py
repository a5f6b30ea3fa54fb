"""A test that replaces a private name breaks when code moves, although the code does the same as before.

What a test replaces should be a value that it passes: a clock, a store, an engine. So the places that replace a private
name are counted, and become only fewer. Lower the number where you remove one.
"""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
MOST = 190
"""How many places there are."""
PATCHING = frozenset({"setattr", "delattr", "setitem", "delitem", "object", "dict", "patch"})
"""How a MonkeyPatch, whatever name it is bound to, and `mock.patch` replace things."""
PRIVATE = re.compile(r"(?:^|\.)_(?!_)\w+")


def places(source: str) -> int:
    """Return how many times a file replaces something under a private name."""
    tree = ast.parse(source)
    aliases = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute) and node.value.attr in PATCHING
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return sum(_patches(call.func, aliases) and _is_private(call) for call in calls)


def _patches(called: ast.expr, aliases: set[str]) -> bool:
    if isinstance(called, ast.Attribute):
        return called.attr in PATCHING
    return isinstance(called, ast.Name) and called.id in {"patch", *aliases}


def _is_private(call: ast.Call) -> bool:
    """Tell whether the thing is reached by a private name, or the name is private by which it is replaced."""
    if not call.args:
        return False
    thing, *more = call.args
    names = [node.attr for node in ast.walk(thing) if isinstance(node, ast.Attribute)]
    names += [node.id for node in ast.walk(thing) if isinstance(node, ast.Name)]
    texts = [
        part.value for part in (thing, *more[:1]) if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    paths = texts if isinstance(thing, ast.Constant) else texts[:1]
    return any(PRIVATE.search(name) for name in (*names, *paths))


def test_they_become_only_fewer() -> None:
    found = {path: places(path.read_text(encoding="utf-8")) for path in TESTS.rglob("*.py") if path != Path(__file__)}
    assert sum(found.values()) == MOST, "fewer: lower MOST; more: pass what you replace as a value instead"


@pytest.mark.parametrize(
    "planted",
    [
        'monkeypatch.setattr(clock, "_now", later)',
        'patch.setattr(\n    engine_of(session), "_run", fail)',
        "monkeypatch.setattr(session._engine, 'run', fail)",
        'monkeypatch.setattr("lapwing.ledger.chain._lock", free)',
        'with patch.object(Reader, "_read", telling): pass',
        'with mock.patch("lapwing.ledger._lock"): pass',
        'monkeypatch.delattr(module, "_cache")',
        'with monkeypatch.context() as own: own.setattr(clock, "_now", later)',
        'with pytest.MonkeyPatch.context() as before:\n    before.setattr(type(last(ledger._chain)), "now", later)',
        'replace = monkeypatch.setattr\nreplace(clock, "_now", later)',
        'planted.setitem(transitions._FOLDS, "close", keep)',
    ],
)
def test_each_way_is_counted(planted: str) -> None:
    assert places(planted) == 1


@pytest.mark.parametrize(
    "allowed",
    [
        'monkeypatch.setattr(clock, "now", later)',
        'monkeypatch.setattr(Query, "__call__", fail)',
        'monkeypatch.setattr("lapwing.monitors.table_source.PATIENCE", 0.05)',
        "clock._now()",
    ],
)
def test_nothing_else_is(allowed: str) -> None:
    assert places(allowed) == 0
