"""The law of the builder across linked tables: a join by verbs and one in SQL are one plan, or one refusal."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from typing import Any

import pytest

import lapwing as lw
from lapwing.builder import table as builder_table
from lapwing.builder import writing
from lapwing.builder.relations import Joined
from lapwing.builder.table import Table
from lapwing.engines.duckdb.public_data import PublicData
from tests.support.builder.world import World, same
from tests.support.query import shop

col = lw.col
Build = Callable[[Callable[[str], Table[lw.Answer]]], Table[lw.Answer]]
Shops = Mapping[str, World]


@pytest.fixture(scope="module")
def shops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shops]:
    """The linked tables, in both ways in which they are linked."""
    folder = tmp_path_factory.mktemp("shops")
    with ExitStack() as opened:
        found = {}
        for linked in shop.UNITS:
            catalog = shop.catalog(folder, linked=linked)
            found[linked] = World(catalog, opened.enter_context(closing(PublicData(catalog))))
        yield found


OF_ORDER = [("iok", "ok"), ("iday", "day")]
PAIRS: list[tuple[str, str, Build]] = [
    (
        "by unit",
        "SELECT plan, COUNT(*) AS n, SUM(pay) AS s FROM customers JOIN orders ON ck = ock GROUP BY plan",
        lambda t: t("customers").join(t("orders"), [("ck", "ock")]).group_by("plan").agg(n=lw.count(), s=lw.sum("pay")),
    ),
    (
        "by unit",
        "SELECT plan, SUM(cost) AS s, COUNT(DISTINCT ck) AS people FROM customers, orders, items "
        "WHERE ck = ock AND iok = ok GROUP BY plan",
        lambda t: (
            t("customers")
            .join(t("orders"), [("ck", "ock")])
            .join(t("items"), [("ok", "iok")])
            .group_by("plan")
            .agg(s=lw.sum("cost"), people=lw.nunique("ck"))
        ),
    ),
    (
        "by unit",
        "SELECT kind, SUM(cost) AS s FROM items JOIN orders ON iok = ok JOIN customers ON ock = ck "
        "WHERE age > 30 AND cost > 1 GROUP BY kind",
        lambda t: (
            t("items")
            .join(t("orders"), [("iok", "ok")])
            .join(t("customers"), [("ock", "ck")])
            .filter(col.age > 30, col.cost > 1)
            .group_by("kind")
            .agg(s=col.cost.sum())
        ),
    ),
    (
        "by unit",
        "SELECT COUNT(*) AS n, COUNT(pay) AS paid FROM customers "
        "LEFT JOIN (SELECT * FROM orders WHERE kind = 'x') AS o ON ck = ock",
        lambda t: (
            t("customers")
            .left_join(t("orders").filter(col.kind == "x"), [("ck", "ock")])
            .agg(n=lw.count(), paid=col.pay.count())
        ),
    ),
    (
        "by unit",
        "SELECT COUNT(*) AS n FROM customers WHERE ck IN (SELECT ock FROM orders WHERE kind = 'x')",
        lambda t: (
            t("customers").semi_join(t("orders").filter(col.kind == "x"), [("ck", "ock")]).count().select(n="count")
        ),
    ),
    (
        "by unit",
        "SELECT COUNT(*) AS n FROM customers WHERE NOT EXISTS (SELECT 1 FROM orders WHERE ock = ck AND pay > 3)",
        lambda t: t("customers").anti_join(t("orders").filter(col.pay > 3), [("ck", "ock")]).agg(n=lw.count()),
    ),
    (
        "by unit",
        "SELECT COUNT(*) AS n FROM orders WHERE EXISTS (SELECT 1 FROM items WHERE iok = ok AND unit = 'kg')",
        lambda t: t("orders").semi_join(t("items").filter(col.unit == "kg"), [("ok", "iok")]).agg(n=lw.count()),
    ),
    (
        "by unit",
        "SELECT COUNT(*) AS n FROM orders AS a JOIN orders AS b USING (ock) WHERE a.ok < b.ok",
        lambda t: t("orders").join(t("orders"), "ock").filter(col.ok < col.ok_right).agg(n=lw.count()),
    ),
    (
        "by unit",
        "SELECT COUNT(*) AS n FROM calls JOIN customers ON caller = ck AND topic = plan",
        lambda t: t("calls").join(t("customers"), [("caller", "ck"), ("topic", "plan")]).agg(n=lw.count()),
    ),
    (
        "by unit",
        "SELECT spent, COUNT(*) AS n FROM (SELECT ok, SUM(cost) > 50 AS spent FROM orders JOIN items ON iok = ok "
        "GROUP BY ok) GROUP BY spent",
        lambda t: (
            t("orders")
            .join(t("items"), [("ok", "iok")])
            .group_by("ok")
            .agg(s=lw.sum("cost"))
            .mutate(spent=col.s > 50)
            .group_by("spent")
            .agg(n=lw.count())
        ),
    ),
    (
        "by unit",
        "SELECT tier, MEDIAN(pay) AS half FROM orders JOIN customers ON ock = ck "
        "JOIN codes ON customers.plan = codes.plan GROUP BY tier",
        lambda t: (
            t("orders")
            .join(t("customers"), [("ock", "ck")])
            .join(t("codes"), "plan")
            .group_by("tier")
            .agg(half=col.pay.median())
        ),
    ),
    (
        "by key",
        "SELECT kind, SUM(cost) AS s FROM items, orders WHERE iok = ok AND iday = day GROUP BY kind",
        lambda t: t("items").join(t("orders"), OF_ORDER).group_by("kind").agg(s=lw.sum("cost")),
    ),
    (
        "by key",
        "SELECT COUNT(*) AS n, COUNT(DISTINCT who) AS people FROM customers JOIN orders ON ck = ock",
        lambda t: t("customers").join(t("orders"), [("ck", "ock")]).agg(n=lw.count(), people=lw.nunique("who")),
    ),
    (
        "by key",
        "SELECT COUNT(*) AS n FROM customers JOIN calls ON who = caller",
        lambda t: t("customers").join(t("calls"), [("who", "caller")]).agg(n=lw.count()),
    ),
    (
        "by key",
        "SELECT COUNT(*) AS n FROM orders ANTI JOIN items ON iok = ok AND iday = day",
        lambda t: t("orders").anti_join(t("items"), [("ok", "iok"), ("day", "iday")]).agg(n=lw.count()),
    ),
    (
        "by key",
        "SELECT AVG(top) AS a FROM (SELECT ock, MAX(pay) AS top FROM customers JOIN orders ON ck = ock GROUP BY ock)",
        lambda t: (
            t("customers")
            .join(t("orders"), [("ck", "ock")])
            .group_by("ock")
            .agg(top=col.pay.max())
            .agg(a=lw.mean("top"))
        ),
    ),
]
REFUSED: list[tuple[str, str, Build]] = [
    (
        "by unit",
        "SELECT COUNT(*) AS n FROM orders JOIN items ON orders.ok = items.tag",
        lambda t: t("orders").join(t("items"), [("ok", "tag")]).agg(n=lw.count()),
    ),
    (
        "by key",
        "SELECT COUNT(*) AS n FROM items JOIN orders ON items.iok = orders.ok",
        lambda t: t("items").join(t("orders"), [("iok", "ok")]).agg(n=lw.count()),
    ),
    (
        "by key",
        "SELECT COUNT(*) AS n FROM orders SEMI JOIN customers ON orders.kind = customers.plan",
        lambda t: t("orders").semi_join(t("customers"), [("kind", "plan")]).agg(n=lw.count()),
    ),
]


def differs(world: World, text: str, build: Build) -> bool:
    return bool(same(world.plan(text), world.plan(build(world.table))))


@pytest.mark.parametrize(("linked", "text", "build"), PAIRS, ids=[text[:90] for _, text, _ in PAIRS])
def test_same_plan(shops: Shops, linked: str, text: str, build: Build) -> None:
    world = shops[linked]
    assert same(world.plan(text), world.plan(build(world.table))) == []


@pytest.mark.parametrize(("linked", "text", "build"), REFUSED, ids=[text[:90] for _, text, _ in REFUSED])
def test_same_refusal(shops: Shops, linked: str, text: str, build: Build) -> None:
    world = shops[linked]
    assert world.refusal(text) == world.refusal(build(world.table))


def test_both_sides_know_their_columns(shops: Shops) -> None:
    world = shops["by unit"]
    joined = world.table("customers").join(world.table("orders"), [("ck", "ock")])
    assert joined.columns == ("ck", "plan", "age", "member", "ok", "day", "kind", "pay")
    with pytest.raises(lw.QueryRefused, match="There is no column 'cost'"):
        joined.filter(col.cost > 1)


# ---- planted bugs ----------------------------------------------------------------------------------------------------


def caught(shops: Shops) -> int:
    """Count the pairs that are not one plan."""
    count = 0
    for linked, text, build in PAIRS:
        try:
            count += differs(shops[linked], text, build)
        except lw.QueryRefused:
            count += 1
    return count


def test_an_inner_join_for_a_left_one_is_caught(shops: Shops, monkeypatch: pytest.MonkeyPatch) -> None:
    assert caught(shops) == 0
    monkeypatch.setitem(builder_table._JOINS, "left", "JOIN")
    assert caught(shops) == 1


def test_the_first_equality_alone_is_caught(shops: Shops, monkeypatch: pytest.MonkeyPatch) -> None:
    written = writing._Text.join

    def first(text: Any, relation: Joined) -> list[str]:
        lines = written(text, relation)
        return [*lines[:-1], lines[-1].partition(" AND ")[0]]

    monkeypatch.setattr(writing._Text, "join", first)
    assert caught(shops) == 3


def test_an_anti_join_for_a_semi_join_is_caught(shops: Shops, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(builder_table._JOINS, "semi", "ANTI JOIN")
    assert caught(shops) == 2
