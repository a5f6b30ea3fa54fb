"""A test that replaces a private name breaks when code moves, although the code does the same as before.

What a test replaces should be a value that it passes: a clock, a store, an engine. So the places that replace a private
name are counted, and become only fewer. Lower the number where you remove one.
"""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
MOST = 191
"""How many places there are."""
PLACE = re.compile(
    r"""
    \b(?:setattr|delattr|patch\.object)\(\s*       # of a thing
        (?: [^,"'()]* (?: \([^()]*\) [^,"'()]* )? ,\s*["']_(?!_)\w+["']   # its private name
          | [^,"'()]*\b_(?!_)\w+ [^,"'()]* ,                              # or a thing that is reached by one
          | ["'][\w.]*\b_(?!_)\w+ )                                       # or a path that holds one
    | \bpatch\(\s*["'][\w.]*\b_(?!_)\w+
    """,
    re.VERBOSE,
)


def places(source: str) -> int:
    """Return how many times a file replaces something under a private name."""
    return len(PLACE.findall(source))


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
