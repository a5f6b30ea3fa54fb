"""A ledger in PostgreSQL that cannot be trusted or reached: it says so, and nothing is answered uncharged."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors

from lapwing.catalog.ledger import place_of
from lapwing.catalog.toml import load
from lapwing.errors import CatalogError, EngineFault, LedgerFault
from lapwing.ledger import ledger as ledgers
from lapwing.ledger import opening
from lapwing.ledger.entries import Entry
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.postgres import chain, connection, tables
from lapwing.ledger.postgres.log import PostgresLog
from lapwing.ledger.postgres.presence import PostgresPresence
from lapwing.ledger.settling import settled
from lapwing.privacy.filters import Refused
from lapwing.privacy.measures import PureDP
from tests.ledger.test_crash import TENTH, killed
from tests.ledger.test_waiting import CATALOG
from tests.support.effort import one_in
from tests.support.ledger.ledgers import charged, opened, registration, spend, survey
from tests.support.ledger.places import GRACE, Place
from tests.support.ledger.worker import unlocked_head
from tests.support.postgres import Postgres

COLUMNS = ("sequence", "time", "kind", "subject", "body", "previous", "hash")


@pytest.fixture
def empty(postgres: str, tmp_path: Path) -> Place:
    return Place.of_database(postgres, tmp_path)


@pytest.fixture
def place(empty: Place) -> Place:
    """A closed ledger with two charges, both answered: entries 1 to 6."""
    with opened(empty) as ledger:
        ledger.record_answer(charged(ledger, 0.1), "42")
        ledger.record_answer(charged(ledger, 0.2, "sum"), "43")
    return empty


def tell(place: Place, statement: str, *values: object) -> None:
    with place.connection() as connection:
        connection.execute(statement.encode(), values or None)


def refuses(place: Place, words: str) -> None:
    with pytest.raises(LedgerFault, match=words) as caught:
        place.open(registration(), patience=0.5).close()
    assert "/tmp" not in str(caught.value), "a message is public: it says no path, address or user"
    assert "lapwing@" not in str(caught.value)


# Tampering.


@pytest.mark.parametrize("column", one_in(4, COLUMNS))
def test_a_changed_field_is_seen(place: Place, column: str) -> None:
    change = "sequence + 100" if column == "sequence" else f"{column} || 'x'"
    tell(place, f"UPDATE lapwing.entries SET {column} = {change} WHERE sequence = %s", 3)
    refuses(place, "entry|Entry")


@pytest.mark.parametrize("sequence", [1, 3, 6])
def test_a_removed_entry_is_seen(place: Place, sequence: int) -> None:
    tell(place, "DELETE FROM lapwing.entries WHERE sequence = %s", sequence)
    refuses(place, "entry|Entry")


def test_an_open_ledger_does_not_serve_an_edited_answer(place: Place) -> None:
    with opened(place) as ledger:
        tell(place, "UPDATE lapwing.entries SET body = replace(body, '42', '43') WHERE sequence = 4")
        for look in (lambda: ledger.answers("count"), ledger.verify):
            with pytest.raises(LedgerFault, match="Entry 4"):
                look()


@pytest.mark.parametrize(
    "statement",
    one_in(
        3,
        [
            "CREATE TABLE lapwing.more (x integer)",
            "DROP INDEX lapwing.answers",
            "ALTER TABLE lapwing.entries ADD COLUMN note text",
            "ALTER TABLE lapwing.entries ENABLE ROW LEVEL SECURITY",
            "ALTER TABLE lapwing.entries SET UNLOGGED",
            "CREATE RULE forget AS ON INSERT TO lapwing.entries DO INSTEAD NOTHING",
        ],
    ),
)
def test_tables_that_were_changed_are_refused(place: Place, statement: str) -> None:
    tell(place, statement)
    refuses(place, "other tables in PostgreSQL than Lapwing made")


def test_tables_of_another_program_are_left_alone(empty: Place) -> None:
    tell(empty, "CREATE SCHEMA lapwing; CREATE TABLE lapwing.entries (x integer)")
    refuses(empty, "tables of another program")
    with empty.connection() as session:
        assert session.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'lapwing'").fetchall() == [
            ("entries",)
        ]


def test_a_newer_schema_is_refused(place: Place) -> None:
    tell(place, "INSERT INTO lapwing.steps VALUES (2)")
    refuses(place, "schema version 2 and this Lapwing knows version 1")


# Older copies.


def restore(place: Place, sequence: int) -> None:
    """Put back the database as it was when this was the newest entry."""
    tell(place, "DELETE FROM lapwing.entries WHERE sequence > %s", sequence)
    tell(
        place,
        "UPDATE lapwing.ledgers SET (sequence, hash) = (SELECT sequence, hash FROM lapwing.entries"
        " WHERE sequence = %s)",
        sequence,
    )


def check_older_copies(place: Place) -> None:
    with opened(place) as ledger:
        restore(place, 4)
        with pytest.raises(LedgerFault, match="no longer holds its entry 6"):
            spend(ledger, 0.1)
    refuses(place, "no longer holds its entry 6")


def test_an_older_database_is_refused_by_who_has_seen_more(place: Place) -> None:
    check_older_copies(place)
    with opened(place.seen_from("a host that was never here")) as ledger:
        assert ledger.verify() == 4, "which trusts what it finds at first"


def test_twin_a_mark_that_is_ignored(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "advance", lambda *_: None)
    with pytest.raises(pytest.fail.Exception):
        check_older_copies(place)


def test_a_database_without_the_ledger_is_refused(place: Place) -> None:
    tell(place, "DELETE FROM lapwing.entries; DELETE FROM lapwing.ledgers")
    refuses(place, "is not in the database, and its mark says that it had 6 entries")


def test_a_head_row_that_disagrees_is_refused(place: Place) -> None:
    tell(place, "UPDATE lapwing.ledgers SET sequence = 7")
    refuses(place, "no longer holds its entry 7")


def test_the_chain_is_that_of_a_file(empty: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same questions at the same times leave the same hash, whatever store keeps them."""
    monkeypatch.setattr(ledgers, "now", lambda: "2030-01-01T00:00:00.000000+00:00")
    for store in ("sqlite", "postgres"):
        monkeypatch.setattr(f"lapwing.ledger.{store}.presence.new_asker", lambda: "a" * 32)
    hashes = set()
    for place in (empty, Place.of_file(empty.folder / "visits.db")):
        with opened(place) as ledger:
            ledger.record_answer(charged(ledger, 0.1, "naïve \N{SNOWMAN} \0 '\""), "{}")
            ledger.record_unanswered([charged(ledger, 0.2)], "fault")
            hashes.add((ledger.verify(), ledger.state().hash))
    assert len(hashes) == 1


def test_several_ledgers_share_a_database(place: Place) -> None:
    other = Place(place.name.replace("ledger=visits", "ledger=others"), place.folder)
    with opened(other) as ledger, opened(place) as first:
        assert isinstance(charged(ledger, 1), int)
        assert ledger.answers("count") == ()
        assert (ledger.verify(), first.verify()) == (3, 6)
        assert first.state().account.spent == PureDP(0.3)
        ledger.record_unanswered([3], "interrupt")


# Races and deaths.


def check_alone(place: Place, patch: pytest.MonkeyPatch) -> None:
    """While one host charges, another finds the ledger held, and decides nothing on a state that is about to be old."""
    insert, tried = PostgresLog.insert, list[Entry]()

    def meanwhile(self: PostgresLog, entry: Entry) -> None:
        if not tried:
            tried.append(entry)
            with pytest.raises(LedgerFault, match="locked by others for too long"):
                spend(other, 0.7)
        insert(self, entry)

    with opened(place) as one, opened(place.seen_from("other"), patience=0.2) as other:
        patch.setattr(PostgresLog, "insert", meanwhile)
        last = charged(one, 0.7)
        assert isinstance(spend(other, 0.7), Refused)
        one.record_answer(last, "42")


def test_one_host_at_a_time_decides(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    check_alone(place, monkeypatch)


def test_twin_without_the_row_lock_a_charge_is_decided_on_an_old_state(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresLog, "locked_head", unlocked_head)
    with pytest.raises(pytest.fail.Exception):
        check_alone(place, monkeypatch)


def test_a_death_while_committing_wastes_at_most_one_charge(empty: Place) -> None:
    reported = killed("die", empty, "while committing")
    assert len(reported) == 3
    assert survey(empty, reported) in (3 * TENTH, 4 * TENTH)


def test_twin_a_commit_that_is_not_awaited(empty: Place) -> None:
    reported = killed("die", empty, "after a commit that is not awaited")
    with pytest.raises((AssertionError, LedgerFault)):
        survey(empty, reported)


# Connections that are cut, and servers that restart.


def cut(place: Place, but: int = 0) -> None:
    """End all sessions of the database, as an administrator does."""
    tell(
        place,
        "SELECT pg_terminate_backend(pid, 300000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid NOT IN (pg_backend_pid(), %s)",
        but,
    )


def test_a_ledger_goes_on_after_its_connections_were_cut(place: Place) -> None:
    with opened(place) as ledger:
        waiting = charged(ledger, 0.1)
        for _ in range(3):
            cut(place)
            ledger.record_answer(charged(ledger, 0.01), "42")
        ledger.record_answer(waiting, "42")
        assert (ledger.faults(), ledger.verify()) == ((), 14)


@pytest.mark.parametrize("step", one_in(3, ["insert", "move", "commit"]))
def test_a_connection_that_is_cut_in_the_middle_charges_nothing(
    place: Place, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner: Any = chain if step == "commit" else PostgresLog
    whole = getattr(owner, step)

    def severed(*given: object) -> None:
        cut(place)
        whole(*given)

    with opened(place) as ledger:
        with monkeypatch.context() as patch:
            patch.setattr(owner, step, severed)
            with pytest.raises(LedgerFault, match="Nobody knows" if step == "commit" else "cannot be reached"):
                spend(ledger, 0.1)
        assert ledger.state().account.spent == PureDP(0.3)
        charged(ledger, 0.7)
        assert ledger.verify() == 7
        ledger.record_unanswered([7], "interrupt")


def check_unknown_commit(place: Place, patch: pytest.MonkeyPatch) -> None:
    """The commit is done, and the word of it is lost: charged, unanswered, and ended by the next charge."""
    whole = chain.commit

    def unheard(session: Any, name: str) -> None:
        whole(session, name)
        session.close()
        raise chain._unknown(name)

    with opened(place) as ledger:
        with patch.context() as once:
            once.setattr(chain, "commit", unheard)
            with pytest.raises(LedgerFault, match="Nobody knows yet whether it was charged"):
                spend(ledger, 0.1, "lost")
        assert ledger.state().account.spent == PureDP(0.4)
        ledger.record_answer(charged(ledger, 0.1, "lost"), "42")
        assert [row.unanswered for row in ledger.history()] == [None, None, "interrupt", None]
        assert (ledger.state().faults, ledger.verify()) == (0, 10)


def test_a_commit_that_nobody_heard_of_is_wasted_and_blocks_nobody(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_unknown_commit(place, monkeypatch)


def test_twin_charges_that_nobody_was_told_of_stay_under_way(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = settled
    monkeypatch.setattr(
        ledgers, "settled", lambda state, owed, _told, *more: whole(state, owed, state.under_way, *more)
    )
    with pytest.raises(AssertionError):
        check_unknown_commit(place, monkeypatch)


def test_an_answer_survives_a_commit_that_nobody_heard_of(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, heard = chain.commit, list[str]()

    def unheard_once(session: Any, name: str) -> None:
        whole(session, name)
        if not heard:
            heard.append(name)
            session.close()
            raise chain._unknown(name)

    with opened(place) as ledger:
        charge = charged(ledger, 0.1)
        monkeypatch.setattr(chain, "commit", unheard_once)
        ledger.record_answer(charge, "44")
        assert [row.answered for row in ledger.history()] == [True, True, True]
        assert ledger.verify() == 8


@pytest.mark.parametrize("doubt", ["rolled back", "warned"])
def test_a_commit_that_is_in_doubt_is_none(place: Place, doubt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL answers a commit of a failed transaction by ROLLBACK, and by a warning if it did not wait."""
    whole = chain.commit

    def doubtful(session: Any, name: str) -> None:
        if doubt == "rolled back":
            with pytest.raises(errors.DivisionByZero):
                session.execute("SELECT 1 / 0")
        else:
            session.execute(
                "CREATE FUNCTION pg_temp.warn() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN RAISE WARNING 'canceling wait for synchronous replication'; RETURN NULL; END $$;"
                "CREATE TEMP TABLE late (x integer);"
                "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON late INITIALLY DEFERRED FOR EACH ROW"
                " EXECUTE FUNCTION pg_temp.warn(); INSERT INTO late VALUES (1)"
            )
        whole(session, name)

    with opened(place) as ledger:
        monkeypatch.setattr(chain, "commit", doubtful)
        with pytest.raises(LedgerFault, match="Nobody knows"):
            spend(ledger, 0.1)


def test_every_transaction_waits_for_the_disk(own_postgres: Postgres, tmp_path: Path) -> None:
    seen = []
    with own_postgres.database() as address:
        place = Place.of_database(address, tmp_path)
        tell(place, "ALTER ROLE lapwing SET synchronous_commit = off; ALTER ROLE lapwing SET default_transaction_isolation = 'serializable'")  # fmt: skip  # noqa: E501
        with opened(place) as ledger, ledger._chain.transaction() as transaction:
            session: Any = transaction.log._connection  # type: ignore[attr-defined]
            for setting in ("synchronous_commit", "transaction_isolation", "fsync"):
                seen += session.execute(f"SHOW {setting}".encode()).fetchone()
    assert seen == ["on", "read committed", "on"]


def test_a_server_that_does_not_sync_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    execute = psycopg.Connection.execute

    def forgetful(self: Any, statement: Any, *more: Any, **named: Any) -> Any:
        return execute(self, "SELECT 'off'" if statement == "SHOW fsync" else statement, *more, **named)

    monkeypatch.setattr(psycopg.Connection, "execute", forgetful)
    refuses(place, "fsync = off")


@pytest.mark.long
def test_a_restart_kills_no_question(own_postgres: Postgres, tmp_path: Path) -> None:
    """Charged before, answered after; meanwhile others charge, and nobody is taken for dead."""
    with own_postgres.database() as address:
        place = Place.of_database(address, tmp_path)
        with opened(place) as slow, opened(place) as other:
            first = charged(slow, 0.1, "slow")
            for immediate in (True, False):
                own_postgres.restart(immediate=immediate)
                other.record_answer(charged(other, 0.1), "42")
            assert other.state().faults == 0
            slow.record_answer(first, "42")
            assert (slow.verify(), slow.faults()) == (8, ())
            assert slow.state().under_way == {}


def test_a_server_that_dies_in_the_middle_charges_nothing(
    own_postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash of PostgreSQL itself, in a transaction and before it was told to commit."""
    with own_postgres.database() as address, opened(Place.of_database(address, tmp_path)) as ledger:
        for owner, step in ((PostgresLog, "insert"), (chain, "commit")):
            whole = getattr(owner, step)

            def crashing(*given: object, whole: Callable[..., None] = whole) -> None:
                own_postgres.restart(immediate=True)
                whole(*given)

            with monkeypatch.context() as patch:
                patch.setattr(owner, step, crashing)
                with pytest.raises(LedgerFault, match=r"cannot be reached|Nobody knows"):
                    spend(ledger, 0.1)
            assert ledger.state().account.spent == PureDP(0)
        ledger.record_answer(charged(ledger, 1), "42")
        assert (ledger.verify(), ledger.faults()) == (4, ())


@pytest.mark.long
def test_a_server_that_is_away_is_a_fault_and_charges_nothing(own_postgres: Postgres, tmp_path: Path) -> None:
    with own_postgres.database() as address:
        place = Place.of_database(address, tmp_path)
        with opened(place, patience=0.3) as ledger:
            own_postgres.stop()
            with pytest.raises(LedgerFault, match="cannot be reached"):
                spend(ledger, 0.1)
            refuses(place, "cannot be reached")
            own_postgres.start()
            assert ledger.state().account.spent == PureDP(0)
            charged(ledger, 1)


# Who is asking.


def test_who_is_missing_is_not_dead_before_its_time(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(place) as lost, opened(place) as other:
        under_way = charged(lost, 0.1, "lost")
        monkeypatch.setattr("lapwing.ledger.postgres.presence.PULSE_SECONDS", 300.0)
        monkeypatch.setattr(PostgresPresence, "pulse", lambda *_: None)
        cut(place)
        charged(other, 0.1)
        assert other.state().faults == 0
        assert len(other.state().under_way) == 2
        monkeypatch.setattr(GRACE, 0.0)
        charged(other, 0.1)
        assert other.state().faults == 1
        with pytest.raises(EngineFault, match="gave up"):
            lost.record_answer(under_way, "42")


def test_the_keeper_takes_the_lock_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing.ledger.postgres.presence.PULSE_SECONDS", 0.02)
    pulsed, pulse = threading.Semaphore(0), PostgresPresence.pulse

    def counted(self: PostgresPresence, name: str) -> None:
        pulse(self, name)
        pulsed.release()

    monkeypatch.setattr(PostgresPresence, "pulse", counted)
    with opened(place) as kept, opened(place) as other:
        under_way = charged(kept, 0.1, "kept")
        cut(place)
        for _ in range(3):  # one that was under way, one that finds the cut, one that has the lock
            assert pulsed.acquire(timeout=300)
        monkeypatch.setattr(GRACE, 0.0)
        charged(other, 0.1)
        assert other.state().faults == 0
        kept.record_answer(under_way, "42")


def check_missing(place: Place) -> None:
    """Three that are missing could be three deaths: nothing is charged until it is known."""
    gone = [place.open(registration(), patience=5) for _ in range(3)]
    try:
        for number, ledger in enumerate(gone):
            charged(ledger, 0.01, f"{number}")
        cut(place)
        with opened(place) as other:
            with pytest.raises(LedgerFault, match="cannot be reached"):
                spend(other, 0.1)
            assert other.state().faults == 0
            for ledger in gone:
                ledger._presence.name()  # they come back
            charged(other, 0.1)
    finally:
        for ledger in gone:
            ledger.close()


def test_who_is_missing_counts_like_a_fault_while_it_is(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PostgresPresence, "pulse", lambda *_: None)
    check_missing(place)


def test_twin_who_is_missing_counts_for_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PostgresPresence, "pulse", lambda *_: None)
    monkeypatch.setattr("lapwing.ledger.settling.Settled.require_counted", lambda _settled: None)
    with pytest.raises(pytest.fail.Exception):
        check_missing(place)


def test_a_child_leaves_its_parents_sessions_alone(place: Place) -> None:
    with opened(place) as ledger:
        under_way = charged(ledger, 0.1, "parent")
        name = ledger._presence.current
        child = os.fork()
        if child == 0:
            try:
                ledger.record_answer(charged(ledger, 0.1, "child"), "42")
                os._exit(0 if ledger._presence.current != name else 1)
            except BaseException:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert ledger._presence.name() == name
        ledger.record_answer(under_way, "42")
        assert (ledger.faults(), ledger.verify()) == ((), 10)


# What cannot be written, or not by this user.


def test_a_user_who_may_only_read_is_told_so(place: Place) -> None:
    role = f"reader_{os.getpid()}"
    tell(place, f"CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA lapwing TO {role};"
         f" GRANT SELECT ON ALL TABLES IN SCHEMA lapwing TO {role}")  # fmt: skip
    try:
        refuses(Place(place.name.replace("lapwing@", f"{role}@"), place.folder), "may not be used by this user. Grant")
    finally:
        tell(place, f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_a_server_that_is_read_only_is_a_fault(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = chain.begin

    def standby(session: Any, patience: float) -> None:
        begin(session, patience)
        session.execute("SET TRANSACTION READ ONLY")

    with opened(place) as ledger:
        monkeypatch.setattr(chain, "begin", standby)
        with pytest.raises(LedgerFault, match="standby"):
            spend(ledger, 0.1)


def test_a_full_disk_is_a_fault_and_costs_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise errors.DiskFull

    with opened(place) as ledger:
        with monkeypatch.context() as patch:
            patch.setattr(PostgresLog, "insert", full)
            with pytest.raises(LedgerFault, match="disk of its server is full"):
                spend(ledger, 0.1)
        assert ledger.state().account.spent == PureDP(0.3)
        charged(ledger, Fraction(7, 10))


def test_a_row_that_another_program_holds_is_a_fault(place: Place) -> None:
    with opened(place, patience=0.2) as ledger, psycopg.connect(place.at.address) as other:
        other.execute("SELECT FROM lapwing.ledgers FOR UPDATE")
        with pytest.raises(LedgerFault, match="locked by others for too long"):
            spend(ledger, 0.1)
        other.rollback()
        charged(ledger, 0.7)


def test_an_interruption_leaves_the_ledger_usable(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    with opened(place) as ledger:
        for owner, step in ((chain, "begin"), (PostgresLog, "insert"), (chain, "commit")):
            with monkeypatch.context() as patch:
                patch.setattr(owner, step, interrupt)
                handler = signal.signal(signal.SIGINT, signal.default_int_handler)
                try:
                    with pytest.raises(KeyboardInterrupt):
                        spend(ledger, 0.1)
                finally:
                    signal.signal(signal.SIGINT, handler)
            assert ledger.state().account.spent == PureDP(0.3)
        charged(ledger, 0.7)


def test_threads_share_a_ledger(place: Place) -> None:
    with opened(place) as ledger, ThreadPoolExecutor(8) as pool:
        prices = list(pool.map(lambda key: charged(ledger, 0.01, f"{key}"), range(30)))
        assert len(set(prices)) == 30
        assert ledger.state().account.spent == PureDP(0.6)


# Addresses.


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgres://ann:secret@db/shop?ledger=visits", "holds a password"),
        ("postgres://ann@db/shop?ledger=visits&password=secret", "holds a password"),
        ("postgres://ann@db/shop?ledger=visits&sslpassword=secret", "holds a password"),
        ("postgres://ann@db/shop", "needs .ledger=NAME"),
        ("postgres://ann@db/shop?ledger=", "needs .ledger=NAME"),
        ("postgres://ann@db/shop?ledger=a/b", "needs .ledger=NAME"),
        ("postgres://ann@db/shop?ledger=a&ledger=b", "needs .ledger=NAME"),
        ("postgres://[ann/shop?ledger=a", "not the address"),
        ("postgres://ann:secret/word@db/shop?ledger=a", "not the address"),
        ("postgres://ann/secret@db/shop?ledger=a", "not the address"),
        ("postgre://ann:secret@db/shop?ledger=a", "not a ledger"),
        ("mysql://ann@db/shop?ledger=a", "not a ledger"),
        ("sqlite:", "not a ledger"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(address: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        place_of(address)
    assert "secret" not in str(caught.value)
    path = tmp_path / "lapwing.toml"
    path.write_text(CATALOG.format(ledger=address), encoding="utf-8")
    with pytest.raises(CatalogError, match=words) as refused:
        load(path)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("postgres://ann@db/shop?ledger=visits", "postgresql://ann@db/shop"),
        (
            "postgresql://db:5433/shop?ledger=visits&sslmode=verify-full",
            "postgresql://db:5433/shop?sslmode=verify-full",
        ),
        ("postgres:///shop?host=/run/db&ledger=visits", "postgresql:///shop?host=%2Frun%2Fdb"),
        ("postgres://?service=prod&ledger=visits", "postgresql://?service=prod"),
    ],
)
def test_an_address_is_that_of_postgresqls_client(text: str, address: str) -> None:
    place = place_of(text)
    assert (place.address, place.ledger, str(place.file)) == (address, "visits", "visits.postgres")
    psycopg.conninfo.conninfo_to_dict(place.address)


def test_an_address_that_the_client_does_not_know_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(LedgerFault, match="Correct the address"):
        Place("postgres://db/shop?colour=red&ledger=visits", tmp_path).open(registration())


def test_without_the_client_the_remedy_is_named(empty: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "lapwing.ledger.postgres.chain", None)
    with pytest.raises(LedgerFault, match=r"pip install 'lapwing-dp\[postgres\]'"):
        opening.open_ledger(empty.name, empty.folder, registration())


def test_the_catalogs_words_open_it(place: Place) -> None:
    with closing(opening.open_ledger(place.name, place.folder, registration())) as ledger:
        assert ledger.verify() == 6


def test_a_ledger_is_begun_wherever_one_looks(place: Place) -> None:
    elsewhere = place.folder / "another host"
    elsewhere.mkdir()
    for folder in (place.folder, elsewhere):
        assert opening.is_begun(place.name, folder)
        assert not opening.is_begun(f"{place.name}2", folder)


def test_nothing_is_begun_in_an_empty_database(empty: Place) -> None:
    assert not opening.is_begun(empty.name, empty.folder)


def test_the_description_of_the_tables_is_what_the_steps_make(place: Place) -> None:
    with place.connection() as session:
        assert tables.described(session) == tables._MADE


def ways(ledger: Ledger) -> Iterator[Callable[[], object]]:
    yield lambda: repr(ledger._chain)
    yield lambda: ledger.history()
    yield lambda: spend(ledger, 2)


def test_a_password_of_the_environment_is_shown_nowhere(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "open sesame")
    shown: list[object] = []
    with opened(place, patience=0.2) as ledger:
        shown += [way() for way in ways(ledger)]
        monkeypatch.setattr(connection, "connect", None)
        with pytest.raises(LedgerFault) as caught, ledger._chain.closed():
            Place("postgres://127.0.0.1:1/shop?ledger=visits", place.folder).open(registration())
        error: BaseException | None = caught.value
        while error is not None:
            shown.append(str(error))
            error = error.__cause__ or error.__context__
    assert "sesame" not in str(shown)
