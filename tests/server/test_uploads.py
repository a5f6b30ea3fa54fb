"""Uploads of data files: who may, how large and how slow, under which name, and what is left of those that fail."""

import asyncio
import gzip
import http.client
import io
import os
import socket
import stat
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pyarrow as pa
import pytest
from pyarrow import parquet

from lapwing.server.audit_log import note
from lapwing.server.service import Service
from lapwing.server.store import Kind, migrations
from lapwing.server.store_places import open_store
from lapwing.server.uploads import inspection, parts, reader
from lapwing.server.uploads.arriving import in_time
from lapwing.server.uploads.limits import UploadLimits
from lapwing.server.uploads.names import is_same_name, stored_name
from lapwing.server.uploads.refused import UploadCause, UploadRefused
from lapwing.server.uploads.uploads import BEGUN, DONE
from tests.support.server.world import QUICK, Reply, World, service_in, serving

ROWS = b"person,plan,cost\n1,a,7\n2,b,9\n"
SMALL = UploadLimits(most_bytes=1 << 21, folder_bytes=3 << 20, person_bytes=3 << 20, reserve=0)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def registry(tmp_path: Path, data: Path) -> Iterator[World]:
    with serving(service_in(tmp_path, replace(QUICK, folders=(data,), uploads=SMALL))) as running:
        yield running


def send(world: World, name: str, content: bytes = ROWS, who: str | None = "carol", more: str = "") -> Reply:
    headers = {"Content-Type": "application/octet-stream"}
    return world.ask("PUT", f"/v1/files?name={quote(name)}{more}", who, content, headers)


def cause(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.document.get("cause", reply.document["code"])


def kept(data: Path) -> list[str]:
    return sorted(path.name for path in data.iterdir())


# ---- stored --------------------------------------------------------------------------------------------------------


def test_a_file_is_checked_stored_and_written_down(registry: World, data: Path) -> None:
    reply = send(registry, "C:\\data\\..\\Visits 2.CSV")
    assert reply.status == 201, reply.content
    digest = sha256(ROWS).hexdigest()
    assert reply.document == {
        "folder": str(data), "file": "Visits 2.csv", "size": len(ROWS), "sha256": digest, "rows": 2, "columns": 3,
        "replaced": False, "datasets": [],
    }  # fmt: skip
    assert (data / "Visits 2.csv").read_bytes() == ROWS
    assert stat.S_IMODE((data / "Visits 2.csv").stat().st_mode) == 0o600
    assert kept(data) == ["Visits 2.csv"]
    assert {"folder": str(data), "file": "Visits 2.csv"} in registry.ask("GET", "/v1/files", "carol").document
    log = registry.ask("GET", "/v1/audit", "carol").content.decode()
    done = [line for line in log.splitlines() if '"file uploaded"' in line]
    assert len(done) == 1
    assert all(word in done[0] for word in ('"carol"', '"Visits 2.csv"', digest, f'"size": {len(ROWS)}'))


@pytest.mark.parametrize("who", [None, "alice", "bob", "audrey"])
def test_only_curators_upload(registry: World, data: Path, who: str | None) -> None:
    reply = send(registry, "a.csv", who=who)
    assert reply.status == (401 if who is None else 403)
    assert registry.ask("GET", "/v1/uploads", who).status == (401 if who is None else 403)
    assert kept(data) == []
    assert b"upload" not in registry.ask("GET", "/v1/audit", "carol").content


@pytest.mark.long
def test_the_limit_of_other_requests_stays(tmp_path: Path, data: Path) -> None:
    settings = replace(QUICK, folders=(data,), uploads=SMALL, most_bytes=4096)
    large = b"id,text\n" + b"".join(b"%d,%s\n" % (row, b"x" * 50) for row in range(2000))
    with serving(service_in(tmp_path, settings)) as world:
        assert send(world, "large.csv", large).status == 201
        for method, path in (("POST", "/v1/files"), ("POST", "/v1/files/columns"), ("PUT", "/v1/files/")):
            reply = world.ask(method, path, "carol", large)
            assert (reply.status, reply.document["code"]) == (413, "request_too_large")


@pytest.mark.long
def test_parquet_and_compressed_text_are_stored(registry: World, data: Path) -> None:
    sink = io.BytesIO()
    parquet.write_table(pa.table({"id": [1, 2, 3], "plan": ["a", "b", None]}), sink)
    assert send(registry, "a.parquet", sink.getvalue()).document["rows"] == 3
    assert send(registry, "b.csv.gz", gzip.compress(ROWS, mtime=0)).document["columns"] == 3
    assert kept(data) == ["a.parquet", "b.csv.gz"]


# ---- a name that is taken ------------------------------------------------------------------------------------------


def test_a_file_is_replaced_only_if_that_is_said(registry: World, data: Path) -> None:
    assert send(registry, "a.csv").status == 201
    assert cause(send(registry, "A.csv", b"x,y\n1,2\n")) == (409, "file_exists")
    assert (data / "a.csv").read_bytes() == ROWS
    reply = send(registry, "A.csv", b"x,y\n1,2\n", more="&replace=true")
    assert (reply.status, reply.document["file"], reply.document["replaced"]) == (201, "a.csv", True)
    assert kept(data) == ["a.csv"]
    assert (data / "a.csv").read_bytes() == b"x,y\n1,2\n"


@pytest.mark.long
def test_of_two_files_that_differ_by_case_the_named_one_is_replaced(registry: World, data: Path) -> None:
    """Whichever of them the folder lists first."""
    names = ["a.csv", "A.csv", "a.CSV"]
    for name in names:
        (data / name).write_bytes(ROWS)
    if len(kept(data)) < len(names):
        pytest.skip("the file system knows no case")
    for name in ("a.csv", "A.csv"):
        content = f"id,name\n1,{name}\n".encode()
        assert send(registry, name, content, more="&replace=true").document["file"] == name
        assert (data / name).read_bytes() == content
    assert (data / "a.CSV").read_bytes() == ROWS
    assert cause(send(registry, "A.csv")) == (409, "file_exists")


def test_a_link_and_a_folder_are_not_replaced(registry: World, data: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.csv"
    outside.write_bytes(b"secret\n1\n")
    (data / "link.csv").symlink_to(outside)
    (data / "folder.csv").mkdir()
    for name in ("link.csv", "folder.csv"):
        assert cause(send(registry, name, more="&replace=true")) == (409, "file_exists")
    assert outside.read_bytes() == b"secret\n1\n"


@pytest.mark.long
def test_replaced_data_of_a_data_set_wait_for_the_curator(registry: World, data: Path) -> None:
    rows = b"person,plan\n" + b"".join(b"%d,a\n" % person for person in range(50))
    assert send(registry, "trips.csv", rows).status == 201
    draft = {"file": "trips.csv", "privacy_unit": "person", "epsilon": 3, "max_rows_per_unit": 1}
    catalog = registry.ask("POST", "/v1/catalogs/draft", "carol", draft).document["catalog"]
    assert registry.ask("POST", "/v1/datasets", "carol", {"catalog": catalog}).status == 201
    question = {"sql": "SELECT COUNT(*) AS n FROM trips", "epsilon": 0.1}
    assert registry.query("carol", question, "trips").status == 200
    assert cause(send(registry, "trips.csv", rows + b"99,b\n")) == (409, "file_exists")
    reply = send(registry, "trips.csv", rows + b"99,b\n", more="&replace=true")
    assert (reply.status, reply.document["datasets"]) == (201, ["trips"])
    other = {"sql": "SELECT COUNT(*) AS n FROM trips WHERE plan = 'a'", "epsilon": 0.1}
    refused = registry.query("carol", other, "trips")
    assert (refused.status, refused.document["code"]) == (409, "data_changed")


@pytest.mark.long
def test_a_file_that_a_pattern_would_take_up_is_as_one_that_is_used(registry: World, data: Path) -> None:
    catalog = registry.session("open").catalog
    (table,) = catalog.tables
    object.__setattr__(catalog, "folder", data)
    object.__setattr__(table, "source", "*.csv")
    assert cause(send(registry, "more.csv")) == (409, "file_exists")
    assert kept(data) == []
    assert send(registry, "more.csv", more="&replace=true").document["datasets"] == ["open"]


# ---- limits --------------------------------------------------------------------------------------------------------


def test_too_many_bytes_are_refused_and_leave_nothing(registry: World, data: Path) -> None:
    large = b"a\n" + b"1\n" * (1 << 20) + b"2\n"
    assert cause(send(registry, "a.csv", large)) == (413, "too_large")
    assert cause(chunked(registry, "a.csv", large)) == (413, "too_large")
    assert kept(data) == []


def chunked(world: World, name: str, content: bytes) -> Reply:
    """Send a body whose length nobody says."""
    connection = http.client.HTTPConnection(urlsplit(world.address).netloc, timeout=60)
    pieces = (content[place : place + 65536] for place in range(0, len(content), 65536))
    headers = {"Authorization": f"Bearer {world.tokens['carol']}"}
    try:
        connection.request("PUT", f"/v1/files?name={name}", pieces, headers, encode_chunked=True)
        response = connection.getresponse()
        return Reply(status=response.status, headers=dict(response.headers), content=response.read())
    finally:
        connection.close()


@pytest.mark.long
def test_a_body_without_a_length_is_stored(registry: World, data: Path) -> None:
    assert chunked(registry, "a.csv", ROWS).status == 201
    assert (data / "a.csv").read_bytes() == ROWS


@pytest.fixture
def narrow(tmp_path: Path, data: Path) -> Iterator[World]:
    limits = replace(SMALL, folder_bytes=3000)
    with serving(service_in(tmp_path, replace(QUICK, folders=(data,), uploads=limits))) as running:
        yield running


@pytest.mark.long
def test_quotas_count_what_is_there(narrow: World, data: Path) -> None:
    registry, content = narrow, b"a\n" + b"1\n" * 600
    assert [send(registry, f"{name}.csv", content).status for name in "abc"] == [201, 201, 413]
    (data / "operator.csv").write_bytes(content * 3)  # no upload
    assert cause(send(registry, "c.csv", content)) == (413, "quota")
    assert cause(chunked(registry, "c.csv", content)) == (413, "quota")
    assert send(registry, "b.csv", content, more="&replace=true").status == 201
    (data / "a.csv").unlink()
    assert send(registry, "c.csv", content).status == 201


@pytest.mark.long
def test_a_person_has_a_quota(tmp_path: Path, data: Path) -> None:
    limits = replace(SMALL, person_bytes=2 * len(ROWS))
    with serving(service_in(tmp_path, replace(QUICK, folders=(data,), uploads=limits))) as world:
        world.service.people.add("cleo", "curator", None, by="carol")
        world.tokens["cleo"] = world.service.people.issue(
            "cleo", label="t", scopes=frozenset({"admin"}), seconds=600, by="carol"
        )[0]
        assert [send(world, f"{name}.csv").status for name in "abc"] == [201, 201, 413]
        assert send(world, "c.csv", who="cleo").status == 201


def test_quotas_read_no_audit_line_and_follow_the_store(narrow: World, data: Path) -> None:
    """A sum of a table, which the step of the schema fills from the audit log of an older version."""
    registry, content, store = narrow, b"a\n" + b"1\n" * 600, narrow.service.store
    assert send(registry, "a.csv", content).status == 201
    assert send(registry, "a.csv", content + b"1\n", more="&replace=true").status == 201
    rows = "SELECT folder, name, person, size FROM uploaded_files"
    kept_rows = store.look(rows)
    assert kept_rows == [(str(data), "a.csv", "carol", len(content) + 2)]
    fill = filling("sqlite")
    with store.transaction() as connection:
        connection.execute("DELETE FROM uploaded_files")
        connection.execute(fill)
    assert store.look(rows) == kept_rows
    with store.transaction() as connection:
        connection.execute("DELETE FROM audit")
    assert send(registry, "b.csv", content).status == 201
    assert cause(send(registry, "c.csv", content)) == (413, "quota")


def filling(kind: Kind) -> str:
    """Return the statement of the schema that fills the table."""
    step = next(text for text in migrations(kind) if "uploaded_files" in text)
    return next(statement for statement in step.split(";\n") if statement.startswith("INSERT"))


@pytest.mark.long
def test_a_store_in_postgres_counts_what_was_uploaded_before(postgres: str) -> None:
    store = open_store(postgres)
    try:
        with store.transaction() as connection:
            for name, size in (("a.csv", 7), ("b.csv", 1 << 40), ("a.csv", 9)):
                note(connection, "carol", BEGUN, name, folder="/data", size=size)
            note(connection, "carol", DONE, "c.csv", folder="/data", size=1)
            connection.execute(filling("postgres"))
        rows = "SELECT folder, name, person, size FROM uploaded_files ORDER BY name"
        assert store.look(rows) == [("/data", "a.csv", "carol", 9), ("/data", "b.csv", "carol", 1 << 40)]
    finally:
        store.close()


@pytest.mark.long
def test_so_many_files_are_checked_at_once(tmp_path: Path, data: Path) -> None:
    limits = replace(SMALL, checks=1)
    with serving(service_in(tmp_path, replace(QUICK, folders=(data,), uploads=limits))) as world:
        world.service.people.add("cleo", "curator", None, by="carol")
        world.tokens["cleo"] = world.service.people.issue(
            "cleo", label="t", scopes=frozenset({"admin"}), seconds=600, by="carol"
        )[0]
        turns = world.service.uploads.turns
        with ThreadPoolExecutor(2) as pool:
            with world.service.registry.exclusive():  # so that no check ends
                sent = [pool.submit(send, world, f"{who}.csv", who=who) for who in ("carol", "cleo")]
                wait_until(lambda: turns.statistics().tasks_waiting == 1)
                assert turns.borrowed_tokens == 1
                assert world.ask("GET", "/v1/uploads", "carol").status == 200  # nobody else waits
            assert [one.result().status for one in sent] == [201, 201]
        assert turns.borrowed_tokens == 0


def test_a_service_may_take_no_uploads(tmp_path: Path, data: Path) -> None:
    settings = replace(QUICK, folders=(data,), uploads=replace(SMALL, most_bytes=0))
    with serving(service_in(tmp_path, settings)) as world:
        assert cause(send(world, "a.csv")) == (422, "uploads_switched_off")
    assert kept(data) == []


def test_one_upload_of_a_person_at_a_time(registry: World, data: Path) -> None:
    uploads, carol = registry.service.uploads, registry.service.people.caller(registry.tokens["carol"])
    first = uploads.begin(carol, None, "a.csv", size=None, replace=False)
    try:
        assert cause(send(registry, "b.csv")) == (429, "too_many_requests")
        assert registry.ask("GET", "/v1/files", "carol").document == []  # no list names a part
    finally:
        first.close()
    assert send(registry, "b.csv").status == 201


# ---- what breaks off -----------------------------------------------------------------------------------------------


def test_a_lost_connection_leaves_nothing(registry: World, data: Path) -> None:
    host, port = urlsplit(registry.address).netloc.split(":")
    with socket.create_connection((host, int(port))) as line:
        line.sendall(
            b"PUT /v1/files?name=a.csv HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n"
            b"Authorization: Bearer " + registry.tokens["carol"].encode() + b"\r\n\r\na,b\n1,2\n"
        )
        wait_until(lambda: kept(data) != [])
    wait_until(lambda: kept(data) == [])
    assert send(registry, "a.csv").status == 201


def wait_until(holds: Any) -> None:
    gone = threading.Event()
    while not holds():
        gone.wait(0.01)


def test_what_a_crash_left_is_removed_and_what_is_under_way_is_not(registry: World, data: Path, tmp_path: Path) -> None:
    left = data / f"{parts.PREFIX}{'0' * 24}{parts.SUFFIX}"
    left.write_bytes(b"a,b\n1")
    carol = registry.service.people.caller(registry.tokens["carol"])
    under_way = registry.service.uploads.begin(carol, None, "a.csv", size=None, replace=False)
    other = Service(tmp_path / "people.db", [], replace(QUICK, folders=(data,)))
    try:
        other.uploads.remove_stale()
        assert [path.name for path in data.iterdir()] == [under_way.part.path.name]
        under_way.write(ROWS)
        assert under_way.finish()["rows"] == 2
    finally:
        under_way.close()
        other.close()
    assert kept(data) == ["a.csv"]


def test_a_full_disk_answers_clearly(registry: World, data: Path) -> None:
    carol = registry.service.people.caller(registry.tokens["carol"])
    upload = registry.service.uploads.begin(carol, None, "a.csv", size=len(ROWS), replace=False)
    with open("/dev/full", "wb") as full, open(os.dup(upload.part._file), "wb") as real:
        os.dup2(full.fileno(), upload.part._file)
        with pytest.raises(UploadRefused) as refused:
            upload.write(ROWS)
        os.dup2(real.fileno(), upload.part._file)
    upload.close()
    assert refused.value.cause is UploadCause.NO_SPACE
    assert kept(data) == []


def test_uploads_leave_room_for_ledgers(tmp_path: Path, data: Path) -> None:
    settings = replace(QUICK, folders=(data,), uploads=replace(SMALL, reserve=1 << 60))
    with serving(service_in(tmp_path, settings)) as world:
        assert cause(send(world, "a.csv")) == (507, "no_space")
    assert kept(data) == []


def test_a_slow_sender_is_ended_and_a_long_one_is_not() -> None:
    quick = UploadLimits(seconds=0.01, least_bytes=1000)

    async def taken(*sizes: int | None) -> int:
        async def body() -> AsyncIterator[bytes]:
            for size in sizes:
                if size is None:
                    await asyncio.Event().wait()
                yield b"x" * (size or 0)

        return sum([len(chunk) async for chunk in in_time(body(), quick)])

    assert asyncio.run(taken(1, 2)) == 3
    with pytest.raises(UploadRefused) as refused:
        asyncio.run(taken(1, None))
    assert (refused.value.cause, refused.value.document["status"]) == (UploadCause.TOO_SLOW, 408)


# ---- names ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("../../etc/cron.d/x.csv", "x.csv"),
        ("..\\..\\x.csv", "x.csv"),
        (".hidden.csv", "hidden.csv"),
        ("a\x00b\r\nc.csv", "a_b__c.csv"),
        ("x\u202egnp.csv", "x_gnp.csv"),
        ("cafe\u0301.csv", "caf\xe9.csv"),
        ("*?[a].csv", "a_.csv"),
        ("k=v.parquet", "k_v.parquet"),
        ("ünï 東京.TSV.GZ", "ünï 東京.tsv.gz"),
        ("x" * 500 + ".csv", "x" * 120 + ".csv"),
        ("=SUM(A1).csv", "SUM_A1_.csv"),
        ("a\u3164b\uffa0\u115f\u1160.csv", "a_b___.csv"),
    ],
)
def test_names_are_made_safe(given: str, stored: str) -> None:
    assert stored_name(given) == stored
    assert "/" not in stored_name(given)


@pytest.mark.parametrize(
    "given", ["", ".csv", "/", "x", "x.exe", "x.csv/", "a.registered.toml", "...csv", "x.jsonl", "_.csv", "\u3164.csv"]
)
def test_names_that_are_none_are_refused(given: str) -> None:
    with pytest.raises(UploadRefused) as refused:
        stored_name(given)
    assert refused.value.cause is UploadCause.NAME


def test_names_that_differ_in_case_or_form_are_the_same() -> None:
    assert is_same_name("CAF\xc9.csv", "cafe\u0301.csv")
    assert not is_same_name("a.csv", "b.csv")


# ---- hostile files -------------------------------------------------------------------------------------------------


def written(tmp_path: Path, name: str, content: bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


def table(tmp_path: Path, columns: dict[str, Any], **how: Any) -> bytes:
    parquet.write_table(pa.table(columns), tmp_path / "made.parquet", **how)
    return (tmp_path / "made.parquet").read_bytes()


def refused_by(path: Path, inside: int = 1 << 20) -> str:
    with pytest.raises(reader.FileRefused) as refused:
        reader.read(path, 1000, inside)
    return refused.value.cause


@pytest.mark.parametrize(
    ("name", "content", "cause"),
    [
        ("bomb.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * (1 << 19), mtime=0), "expands_too_far"),
        ("line.csv.gz", gzip.compress(b"a" * (1 << 22), mtime=0), "long_row"),
        ("line.csv", b"a,b\n1," + b"x" * (1 << 19), "long_row"),
        ("quote.csv", b'a,b\n1,"' + b"x\n" * (1 << 20), "damaged"),
        ("row.csv", b"a" + b',"\n"' * (1 << 19), "long_row"),
        ("wide.csv", b",".join(b"%d" % place for place in range(30_000)) + b"\n1\n", "too_many_columns"),
        ("million.csv.gz", gzip.compress(b"c," * 1_000_000 + b"c\n1\n", mtime=0), "long_row"),
        ("twice.csv.gz", gzip.compress(gzip.compress(b"a,b\n" + b"1,2\n" * (1 << 16), mtime=0), mtime=0), "nul"),
        ("nul.csv", b"a,b\n1,\x00\n", "nul"),
        ("neither.csv", b"a,b\n1,\x81\n", "encoding"),
        ("surrogate.csv", b"a,b\n1,\xed\xb2\x81\n", "encoding"),
        ("control.csv", b"a,b\x1b[2J\n1,2\n", "column_name"),
        ("bidi.csv", "a,b\u202e\n1,2\n".encode(), "column_name"),
        ("filler.csv", "a,b\u3164\n1,2\n".encode(), "column_name"),
        ("long.csv", b"a," + b"b" * 300 + b"\n1,2\n", "column_name"),
        ("short.csv", b"a,b\n1\n", "uneven_rows"),
        ("none.csv", b"a,b\n", "no_rows"),
        ("empty.csv", b"\n\n", "empty"),
        ("cut.csv.gz", gzip.compress(ROWS * 999, mtime=0)[:-20], "damaged"),
        ("text.csv.gz", ROWS, "damaged"),
        ("text.csv.zst", ROWS, "damaged"),
        ("text.parquet", ROWS, "wrong_kind"),
        ("short.parquet", b"PAR1PAR1", "wrong_kind"),
        ("footer.parquet", b"PAR1" + b"x" * 20 + b"\xff\xff\xff\x7fPAR1", "metadata"),
        ("thrift.parquet", b"PAR1" + b"\x15\xf8" * 40 + (80).to_bytes(4, "little") + b"PAR1", "damaged"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_hostile_texts_and_parquet_are_refused(tmp_path: Path, name: str, content: bytes, cause: str) -> None:
    assert refused_by(written(tmp_path, name, content)) == cause


def test_parquet_that_expands_is_refused(tmp_path: Path) -> None:
    same = table(tmp_path, {"a": ["x" * 1000] * 20_000}, compression="zstd")
    assert len(same) < 1 << 16
    assert refused_by(written(tmp_path, "a.parquet", same), 1 << 20) == "expands_too_far"


def test_parquet_with_many_columns_or_no_row_is_refused(tmp_path: Path) -> None:
    wide = table(tmp_path, {f"c{place}": [1] for place in range(1001)})
    assert refused_by(written(tmp_path, "wide.parquet", wide)) == "too_many_columns"
    none = table(tmp_path, {"a": pa.array([], pa.int64())})
    assert refused_by(written(tmp_path, "none.parquet", none)) == "no_rows"


def test_parquet_with_more_metadata_than_memory_should_hold_is_refused(tmp_path: Path) -> None:
    """Its metadata are refused by their size, before anything reads them: a million columns are 150 MB of them."""
    path, footer = tmp_path / "a.parquet", reader.MOST_FOOTER + 1
    with path.open("wb") as file:
        file.write(b"PAR1")
        file.seek(footer + 4)
        file.write(footer.to_bytes(4, "little") + b"PAR1")
    assert refused_by(path) == "metadata"
    few = table(tmp_path, {f"c{place}": [1] for place in range(20)})
    assert int.from_bytes(few[-8:-4], "little") > 20 * 50  # so that 10⁶ columns exceed the limit


def test_every_byte_of_parquet_is_read(tmp_path: Path) -> None:
    whole = table(tmp_path, {"a": list(range(5000))}, compression="zstd", write_page_checksum=True)
    place = len(whole) // 3
    broken = whole[:place] + bytes(byte ^ 255 for byte in whole[place : place + 64]) + whole[place + 64 :]
    assert reader.read(written(tmp_path, "a.parquet", whole), 1000, 1 << 22) == (5000, 1)
    assert refused_by(written(tmp_path, "b.parquet", broken)) == "damaged"


def test_names_with_formulas_are_names(tmp_path: Path) -> None:
    content = b"=cmd|' /C calc'!A0,\"a,b\",+1\n1,2,3\n"
    assert reader.read(written(tmp_path, "a.csv", content), 1000, 1 << 20) == (1, 3)


@pytest.mark.parametrize("limit", [{"check_memory": 64 << 20}, {"check_seconds": 0}])
def test_a_reader_beyond_its_limits_is_stopped(tmp_path: Path, limit: dict[str, int]) -> None:
    part = written(tmp_path, "x.part", table(tmp_path, {"a": [1]}))
    with pytest.raises(UploadRefused) as refused:
        inspection.inspected(part, ".parquet", replace(SMALL, **limit))
    assert refused.value.cause is UploadCause.CHECK_STOPPED


@pytest.mark.long
def test_what_a_row_holds_is_in_no_message_and_no_log(registry: World, capfd: pytest.CaptureFixture[str]) -> None:
    secret = b"97753136"
    for content in (b"a,b\n1," + secret + b",3\n", b"a,b\n1,\x81" + secret + b"\n", b'a,b\n1,"' + secret + b"\n"):
        reply = send(registry, "a.csv", content)
        assert reply.status == 422
        assert secret not in reply.content
    assert secret not in registry.ask("GET", "/v1/audit", "carol").content
    assert secret.decode() not in "".join(capfd.readouterr())
