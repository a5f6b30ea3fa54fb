"""Across linked tables an expression and SQL are one plan, or one refusal."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from typing import Any

import ibis
import pytest
from ibis import _
from tests.support.effort import only
from tests.support.query import shop
from tests.support.query.ibis_world import World, same

from lapwing.engines.duckdb.public_data import PublicData

Build = Callable[[Callable[[str], Any]], Any]
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
        lambda t: t("customers").join(t("orders"), [("ck", "ock")]).group_by("plan").agg(n=_.count(), s=_.pay.sum()),
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
            .agg(s=_.cost.sum(), people=_.ck.nunique())
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
            .filter(_.age > 30, _.cost > 1)
            .group_by("kind")
            .agg(s=_.cost.sum())
        ),
    ),
    (
        "by unit",
        "SELECT COUNT(*) AS n, COUNT(pay) AS paid FROM customers "
        "LEFT JOIN (SELECT * FROM orders WHERE kind = 'x') AS o ON ck = ock",
        lambda t: (
            t("customers")
            .left_join(t("orders").filter(_.kind == "x"), [("ck", "ock")])
            .agg(n=_.count(), paid=_.pay.count())
        ),
    ),
    (
        "by unit",
        "SELECT COUNT(*) AS n FROM customers WHERE ck IN (SELECT ock FROM orders WHERE kind = 'x')",
        lambda t: t("customers").semi_join(t("orders").filter(_.kind == "x"), [("ck", "ock")]).agg(n=_.count()),
    ),
    (
        "by unit",
        "SELECT COUNT(*) AS n FROM customers WHERE NOT EXISTS (SELECT 1 FROM orders WHERE ock = ck AND pay > 3)",
        lambda t: t("customers").anti_join(t("orders").filter(_.pay > 3), [("ck", "ock")]).agg(n=_.count()),
    ),
    (
        "by unit",
        "SELECT COUNT(*) AS n FROM orders WHERE EXISTS (SELECT 1 FROM items WHERE iok = ok AND unit = 'kg')",
        lambda t: t("orders").semi_join(t("items").filter(_.unit == "kg"), [("ok", "iok")]).agg(n=_.count()),
    ),
    (
        "by unit",
        "SELECT COUNT(*) AS n FROM orders AS a JOIN orders AS b USING (ock) WHERE a.ok < b.ok",
        lambda t: t("orders").join(t("orders").view(), "ock").filter(_.ok < _.ok_right).agg(n=_.count()),
    ),
    (
        "by unit",
        "SELECT COUNT(*) AS n FROM calls JOIN customers ON caller = ck AND topic = plan",
        lambda t: t("calls").join(t("customers"), [("caller", "ck"), ("topic", "plan")]).agg(n=_.count()),
    ),
    (
        "by unit",
        "SELECT spent, COUNT(*) AS n FROM (SELECT ok, SUM(cost) > 50 AS spent FROM orders JOIN items ON iok = ok "
        "GROUP BY ok) GROUP BY spent",
        lambda t: (
            t("orders")
            .join(t("items"), [("ok", "iok")])
            .group_by("ok")
            .agg(s=_.cost.sum())
            .mutate(spent=_.s > 50)
            .group_by("spent")
            .agg(n=_.count())
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
            .agg(half=_.pay.median())
        ),
    ),
    (
        "by key",
        "SELECT kind, SUM(cost) AS s FROM items, orders WHERE iok = ok AND iday = day GROUP BY kind",
        lambda t: t("items").join(t("orders"), OF_ORDER).group_by("kind").agg(s=_.cost.sum()),
    ),
    (
        "by key",
        "SELECT COUNT(*) AS n, COUNT(DISTINCT who) AS people FROM customers JOIN orders ON ck = ock",
        lambda t: t("customers").join(t("orders"), [("ck", "ock")]).agg(n=_.count(), people=_.who.nunique()),
    ),
    (
        "by key",
        "SELECT COUNT(*) AS n FROM customers JOIN calls ON who = caller",
        lambda t: t("customers").join(t("calls"), [("who", "caller")]).agg(n=_.count()),
    ),
    (
        "by key",
        "SELECT COUNT(*) AS n FROM orders ANTI JOIN items ON iok = ok AND iday = day",
        lambda t: t("orders").anti_join(t("items"), [("ok", "iok"), ("day", "iday")]).agg(n=_.count()),
    ),
    (
        "by key",
        "SELECT AVG(top) AS a FROM (SELECT ock, MAX(pay) AS top FROM customers JOIN orders ON ck = ock GROUP BY ock)",
        lambda t: (
            t("customers").join(t("orders"), [("ck", "ock")]).group_by("ock").agg(top=_.pay.max()).agg(a=_.top.mean())
        ),
    ),
]
REFUSED: list[tuple[str, str, Build]] = [
    (
        "by unit",
        "SELECT COUNT(*) AS n FROM orders JOIN items ON orders.ok = items.tag",
        lambda t: t("orders").join(t("items"), [("ok", "tag")]).agg(n=_.count()),
    ),
    (
        "by key",
        "SELECT COUNT(*) AS n FROM items JOIN orders ON items.iok = orders.ok",
        lambda t: t("items").join(t("orders"), [("iok", "ok")]).agg(n=_.count()),
    ),
    (
        "by key",
        "SELECT COUNT(*) AS n FROM orders SEMI JOIN customers ON orders.kind = customers.plan",
        lambda t: t("orders").semi_join(t("customers"), [("kind", "plan")]).agg(n=_.count()),
    ),
]


def title(text: object) -> str | None:
    return text[:90] if isinstance(text, str) else None


@pytest.mark.parametrize(("linked", "text", "build"), only([0], PAIRS, many=True), ids=title)
def test_same_plan(shops: Shops, linked: str, text: str, build: Build) -> None:
    question = build(shops[linked].tables.table)
    assert not same(shops[linked].plan(text), shops[linked].plan(question)), ibis.to_sql(question)


@pytest.mark.parametrize(("linked", "text", "build"), REFUSED, ids=title)
def test_same_refusal(shops: Shops, linked: str, text: str, build: Build) -> None:
    world = shops[linked]
    assert world.refusal(text)[0].split()[0] == world.refusal(build(world.tables.table))[0].split()[0]
