"""Syntax trees: their nodes are those that sqlglot finds, and a copy shares none of them."""

import pytest
import sqlglot
from sqlglot import exp

from lapwing.query.text.parse import parse
from lapwing.query.text.trees import copied, has, nodes_of

TEXTS = (
    "SELECT 1",
    "WITH a AS (SELECT site, COUNT(*) AS n FROM visits WHERE cost > 3 AND plan IN ('a', 'b') GROUP BY 1) "
    "SELECT site /* where */, n::DOUBLE, SUM(n) OVER (ORDER BY site ROWS 3 PRECEDING) FROM a LEFT JOIN s USING (site) "
    "WHERE EXISTS (SELECT 1 FROM b WHERE b.x = a.n) ORDER BY n DESC LIMIT 10",
    "SELECT CASE WHEN a > INTERVAL '3' DAY THEN 1 END FROM t UNION ALL SELECT y FROM (VALUES (1, 2)) AS v (y, z)",
)


@pytest.mark.parametrize("text", TEXTS)
def test_nodes_are_those_that_sqlglot_finds_in_its_order(text: str) -> None:
    tree = sqlglot.parse_one(text, read="duckdb")
    assert [*map(id, nodes_of(tree))] == [*map(id, tree.walk())]
    for kinds in ((exp.Column,), (exp.Query,), (exp.Select, exp.In), (exp.AggFunc, exp.Literal), (exp.Pivot,)):
        assert [*map(id, nodes_of(tree, *kinds))] == [*map(id, tree.find_all(*kinds))]
        assert has(tree, *kinds) == (tree.find(*kinds) is not None)


@pytest.mark.parametrize("text", TEXTS)
def test_a_copy_is_the_same_tree_of_other_nodes(text: str) -> None:
    tree = sqlglot.parse_one(text, read="duckdb")
    new, other = copied(tree), tree.copy()
    assert repr(new) == repr(tree)
    for mine, theirs in zip(new.walk(), other.walk(), strict=True):
        for name in ("meta", "comments", "type", "arg_key", "index"):
            assert getattr(mine, name) == getattr(theirs, name)
        assert type(mine.parent) is type(theirs.parent)
    assert {*map(id, nodes_of(new))}.isdisjoint(map(id, nodes_of(tree)))
    for node in nodes_of(new):
        node.meta["changed"] = node.args["changed"] = True
    assert repr(tree) == repr(other)
    assert not any("changed" in node.meta for node in tree.walk())


def test_a_copy_is_of_a_part_alone() -> None:
    select = parse("SELECT a, b FROM t WHERE a > 3").select
    where = copied(select.args["where"])
    assert (where.parent, where.arg_key) == (None, None)
    assert where.this.meta == select.args["where"].this.meta
    assert where.this.parent is where
