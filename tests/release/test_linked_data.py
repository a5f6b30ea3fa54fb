"""Data of linked tables through a session: what the curator accepts, and what an analyst gets when they change."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.errors import DataChanged, DataFault
from lapwing.release import release, versions
from lapwing.release.stored import key_of
from lapwing.session import Session

TEXT = """\
[dataset]
name = "shop"
ledger = "sqlite:shop.db"
[budget]
epsilon = 10

[tables.people]
source = "people.parquet"
privacy_unit = "who"
max_rows_per_unit = 1
[tables.people.columns]
who = { type = "integer" }

[tables.orders]
source = "orders.parquet"
link = { table = "people", on = { by = "who" } }
max_rows_per_unit = 5
[tables.orders.columns]
id = { type = "integer" }
by = { type = "integer" }
"""
ITEMS = """
[tables.items]
source = "items.parquet"
link = { table = "orders", on = { order = "id" } }
max_rows_per_unit = 9
[tables.items.columns]
order = { type = "integer" }
"""
FILES: dict[str, dict[str, list[Any]]] = {
    "people": {"who": list(range(50))},
    "orders": {"id": list(range(100)), "by": [n % 60 for n in range(100)]},
    "items": {"order": [n % 110 for n in range(300)]},
}
COUNT = "SELECT COUNT(*) AS n FROM orders"


def write(folder: Path, **changed: dict[str, list[Any]]) -> None:
    for name, columns in {**FILES, **changed}.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    write(tmp_path)
    (tmp_path / "lapwing.toml").write_text(TEXT + ITEMS, encoding="utf-8")
    return tmp_path / "lapwing.toml"


def spent(session: Session) -> Any:
    return session.budget().spent


def check_parents(shop: Path) -> None:
    """A parent's data that are not those of the version refuse the question, and it costs nothing."""
    with lw.connect(shop) as session:
        session.sql(COUNT, epsilon=1)
        before = spent(session)
        write(shop.parent, people={"who": list(range(40))})
        for text in ("SELECT COUNT(*) + 1 AS n FROM orders", COUNT, "SELECT COUNT(*) AS n FROM items"):
            with pytest.raises(DataChanged, match=r"The data of people have changed since version 1\. Nothing was"):
                session.sql(text, epsilon=1)
        assert spent(session) == before
        assert session.accept_data() == 2
        assert not session.sql(COUNT, epsilon=1).stored
        (shop.parent / "people.parquet").unlink()
        with pytest.raises(DataFault, match="The data of people are missing, or cannot be read"):
            session.sql("SELECT COUNT(*) AS n FROM items", epsilon=1)


def test_a_parent_that_changed_refuses_its_children_s_questions(shop: Path) -> None:
    check_parents(shop)


def test_a_look_at_the_child_alone_is_found(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = versions.current_digests

    def leftmost(tables: Any, engine: Any, state: Any) -> Any:
        return right(tables[-1:], engine, state)

    monkeypatch.setattr(release, "current_digests", leftmost)
    with pytest.raises((AssertionError, lw.LapwingError, KeyError, pytest.fail.Exception)):
        check_parents(shop)


def test_shared_keys_are_refused_when_data_are_first_taken(shop: Path) -> None:
    write(shop.parent, orders={"id": [1, 1], "by": [2, 3]})
    with pytest.raises(DataFault, match=r"orders\.parquet of table orders has several rows with the same id"):
        lw.connect(shop)
    assert not (shop.parent / "shop.db").exists()
    write(shop.parent)
    lw.connect(shop).close()


def test_shared_keys_are_refused_when_data_are_accepted(shop: Path) -> None:
    with lw.connect(shop) as session:
        write(shop.parent, orders={"id": [1, 1], "by": [2, 3]})
        with pytest.raises(DataFault, match=r"several rows with the same id. The link of items needs"):
            session.accept_data()
        with pytest.raises(DataFault, match="The data of orders are missing, or cannot be read as the catalog") as said:
            session.sql(COUNT, epsilon=1)
        assert "id" not in str(said.value).replace("said", "").split()
        assert spent(session).amount == 0


@pytest.mark.long
def test_a_link_that_comes_later_is_looked_at(shop: Path) -> None:
    """The data were accepted before anything led to their keys: what is refused then costs nothing either."""
    shop.write_text(TEXT, encoding="utf-8")
    write(shop.parent, orders={"id": [1, 1], "by": [2, 3]})
    with lw.connect(shop) as session:
        session.sql(COUNT, epsilon=1)
        before = spent(session)
    shop.write_text(TEXT + ITEMS, encoding="utf-8")
    with lw.connect(shop) as session:
        with pytest.raises(DataFault, match="The data of orders are missing, or cannot be read as the catalog"):
            session.sql("SELECT COUNT(*) AS n FROM orders WHERE id > 0", epsilon=1)
        assert spent(session) == before


def test_a_stored_answer_is_of_what_all_parents_mean(shop: Path) -> None:
    with lw.connect(shop) as session:
        session.sql(COUNT, epsilon=1)
        assert session.sql(COUNT, epsilon=1).stored
    shop.write_text((TEXT + ITEMS).replace("max_rows_per_unit = 9", "max_rows_per_unit = 8"), encoding="utf-8")
    with lw.connect(shop) as session:
        assert session.sql(COUNT, epsilon=1).stored, "items is no parent of orders"
    changed = TEXT.replace("max_rows_per_unit = 1\n", "max_rows_per_unit = 2\n")
    shop.write_text(changed + ITEMS, encoding="utf-8")
    with lw.connect(shop) as session:
        assert not session.sql(COUNT, epsilon=1).stored


def test_the_key_of_a_stored_answer_names_all_tables_of_a_question(shop: Path) -> None:
    from lapwing.catalog.toml import load
    from lapwing.query.bind.bind import bind

    text = "SELECT COUNT(*) AS n FROM orders JOIN items ON items.order = orders.id"
    fewer = shop.with_name("fewer.toml")
    fewer.write_text((TEXT + ITEMS).replace("max_rows_per_unit = 9", "max_rows_per_unit = 8"), encoding="utf-8")
    keys = {key_of(bind(text, load(path)).question) for path in (shop, fewer)}
    assert len(keys) == 2
