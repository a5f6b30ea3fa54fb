"""The builder's tests have teeth: with a bug planted, the law that should notice it does."""

from collections.abc import Callable

import pytest

import lapwing as lw
from lapwing.builder import literals, nodes, writing
from lapwing.errors import QueryRefused
from tests.builder import test_injection, test_literals
from tests.builder.test_random import bare
from tests.builder.test_same_plans import PAIRS
from tests.support.builder.world import World, same


def broken(world: World) -> int:
    """Return how many pairs of the law are not one plan."""
    count = 0
    for text, build in PAIRS:
        try:
            count += bool(same(world.plan(text), world.plan(build(world))))
        except (QueryRefused, lw.InvalidParameter, ValueError, AttributeError):
            count += 1
    return count


def test_without_a_bug_there_is_no_difference(world: World) -> None:
    assert broken(world) == 0


def is_a_parameter(value: object) -> None:
    test_literals.test_a_value_is_what_a_parameter_is.hypothesis.inner_test(value)  # type: ignore[attr-defined]


def fails(check: Callable[[], object]) -> bool:
    try:
        check()
    except (AssertionError, QueryRefused, IndexError, AttributeError):
        return True
    return False


def test_a_quote_that_is_not_doubled(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(literals, "_between", lambda quote, text: f"{quote}{text}{quote}")
    assert fails(lambda: is_a_parameter("it's"))
    assert fails(lambda: test_literals.test_a_name_is_itself.hypothesis.inner_test('a"b'))  # type: ignore[attr-defined]
    assert fails(lambda: test_injection.test_a_text_is_only_compared(world, "' OR '1' = '1"))
    assert fails(lambda: test_injection.test_an_alias_is_only_a_name(world, 'n", person AS "who'))


def test_a_backslash_that_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        literals, "_between", lambda quote, text: f"{quote}{text.replace(quote, chr(92) + quote)}{quote}"
    )
    assert fails(lambda: is_a_parameter("it's"))


def test_names_without_quotes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "quoted", lambda name: name)
    assert fails(lambda: test_injection.test_an_alias_is_only_a_name(world, "/*"))


def wrongly_grouped() -> int:
    """Return for how many chains the text is not the tree."""
    col = lw.col
    chains = [
        (col.age - (col.cost - 1), "age - (cost - 1)"),
        (col.age - col.cost - 1, "(age - cost) - 1"),
        ((col.age + 1) * 2, "(age + 1) * 2"),
        (~(col.member & (col.age > 3)), "NOT (member AND (age > 3))"),
        ((col.age == 1) == (col.cost == 2), "(age = 1) = (cost = 2)"),
    ]
    return sum(bare(nodes.sql(value.node)) != bare(text) for value, text in chains)


def test_too_few_parentheses(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wrongly_grouped() == 0
    monkeypatch.setattr(nodes, "sql", lambda node, binds=0, real=nodes.sql: real(node, 0))
    assert wrongly_grouped() == 4


def test_a_chain_that_leans_to_the_right(monkeypatch: pytest.MonkeyPatch) -> None:
    real = nodes.sql
    monkeypatch.setattr(nodes, "sql", lambda node, binds=0: real(node, binds - 1))
    assert wrongly_grouped() > 0


def test_names_of_the_answer_that_are_taken_for_columns(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "substituted", lambda node, _columns: node)
    assert broken(world)


def test_a_filter_that_is_lost(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "conjunction", lambda found: next(iter(found)))
    assert broken(world)


def test_a_float_that_is_not_its_shortest_decimal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(literals, "_digits", lambda value: f"{float(value):.6f}")
    assert fails(lambda: is_a_parameter(1e-7))
