"""A curator uploads a file in the console: the form, what was found, and what forms from elsewhere come to."""

import asyncio
import http.client
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from lapwing.server.console.forms import FIELD
from lapwing.server.console.multipart import MOST_EPILOGUE, MOST_HEAD, MOST_VALUE, FormReader
from lapwing.server.uploads.refused import UploadCause, UploadRefused
from tests.server.console.conftest import with_passwords
from tests.server.console.test_refused_forms import faults
from tests.server.test_uploads import SMALL, kept
from tests.support.server.browsing import Shown, Visitor, visitor
from tests.support.server.world import QUICK, World, service_in, serving

MESSY = b"person,note,age,pay\n1,x,34,12\n2,y,NA,many\n3,z,51,9\n"
HERE = "/console/register/upload"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def registry(tmp_path: Path, data: Path) -> Iterator[World]:
    with serving(service_in(tmp_path, replace(QUICK, folders=(data,), uploads=SMALL))) as running:
        yield with_passwords(running)


def body(fields: Mapping[str, str], name: str, content: bytes, boundary: str = "----x") -> bytes:
    """Return a form as browsers write it."""
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
        for key, value in fields.items()
    ]
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="upload"; filename="{name}"\r\n'
    file = head.encode() + b"Content-Type: text/csv\r\n\r\n" + content
    return b"".join(parts) + file + f"\r\n--{boundary}--\r\n".encode()


def upload(who: Visitor, name: str, content: bytes = MESSY, secret: str | None = None, **headers: str) -> Shown:
    fields = {FIELD: who.secret() if secret is None else secret}
    sent = {"Content-Type": "multipart/form-data; boundary=----x", **headers}
    return who._sent("POST", HERE, body(fields, name, content), sent, follow=True)


def test_an_upload_leads_to_what_was_found(registry: World, data: Path) -> None:
    carol = visitor(registry, "carol")
    page = carol.go("/console/register")
    assert page.form("/register/upload").fields == {FIELD: carol.secret(), "upload": ""}
    found = upload(carol, "../My visits.CSV")
    assert found.status == 200
    assert "Lapwing found 3 rows and 4 columns." in found.text
    assert kept(data) == ["My visits.csv"]
    fields = found.form("/register/file").fields
    assert (fields["file"], fields["type-2"], fields["missing-2"]) == ("My visits.csv", "integer", "NA")
    assert not any("3 rows" in link or "rows=" in link for link in found.page.links)

    typed = {"unit": "person", "rows": "1", "out-1": "on", "unreadable": "on", "type-3": "integer", "missing-2": "NA"}
    typed["unreadable-2"] = "refuse"
    drafted = carol.submit(found, "/register/file", **typed)
    catalog = drafted.form("/console/register").fields["catalog"]
    assert "note" not in catalog
    assert "cannot use them" not in drafted.text  # which would name the column that is left out, and no other
    assert 'unreadable = "null"' in catalog
    assert 'missing = ["NA"], unreadable = "refuse"' in catalog
    checked = carol.post("/console/register/check", drafted.form("/console/register").fields)
    assert "This data would be accepted" in checked.text


def test_a_file_as_excel_writes_it_in_germany_is_drafted_as_the_form_proposes(registry: World) -> None:
    """The form proposed "decimal" without a step and refused it, and ends of ranges that looked like the file's."""
    carol = visitor(registry, "carol")
    rows = "Nr;Straße;Tag;Preis\n1;Süd;31.12.2023;1,50\n2;Nord;01.02.2024;12,25\n"
    found = upload(carol, "besuche.csv", rows.encode("cp1252"))
    assert "Lapwing reads it as windows-1252" in found.text
    fields = found.form("/register/file").fields
    assert (fields["column-1"], fields["type-3"], fields["format-2"]) == ("Straße", "decimal:0.01", "%d.%m.%Y")
    ends = {"lower-2": "01.01.2023", "upper-2": "2024-12-31", "lower-3": "0,5", "upper-3": "20"}
    refused = carol.submit(found, "/register/file", unit="Nr", rows="1", **{**ends, "lower-2": "32.01.2023"})
    assert (refused.status, faults(refused).fields[0]["name"]) == (422, "lower-2")
    assert "tables." not in refused.text
    drafted = carol.submit(found, "/register/file", unit="Nr", rows="1", **ends)
    catalog = drafted.form("/console/register").fields["catalog"]
    assert 'encoding = "windows-1252"' in catalog
    assert "lower = 2023-01-01, upper = 2024-12-31" in catalog
    assert "lower = 0.5, upper = 20, step = 0.01" in catalog
    checked = carol.post("/console/register/check", drafted.form("/console/register").fields)
    assert "This data would be accepted" in checked.text


@pytest.mark.long
def test_a_new_file_of_the_same_name_leads_to_its_review(registry: World) -> None:
    """From the page of versions to the upload, and back to where the curator accepts what was uploaded."""
    carol = visitor(registry, "carol")
    found = upload(carol, "trips.csv", b"person,cost\n1,7\n2,9\n")
    typed = {"unit": "person", "rows": "1", "epsilon": "1", "lower-1": "0", "upper-1": "100", "dataset": "trips"}
    drafted = carol.submit(found, "/register/file", **typed)
    carol.post("/console/register", drafted.form("/console/register").fields)
    versions = carol.go("/console/data/trips/versions")
    assert "upload a new file of the same name" in versions.text
    assert "/console/register" in versions.page.links
    assert upload(carol, "trips.csv", b"person,cost\n1,7\n").status == 409

    fields = {FIELD: carol.secret(), "replace": "on"}
    sent = {"Content-Type": "multipart/form-data; boundary=----x"}
    content = b"person,cost\n1,7\n2,9\n3,40\n"
    replaced = carol._sent("POST", HERE, body(fields, "trips.csv", content), sent, follow=True)
    assert replaced.path == "/console/data/trips/versions?done=replaced"
    assert "Lapwing refuses queries until you accept the new data." in replaced.text
    assert 'class="primary">Review current data' in replaced.content.decode()
    reviewed = carol.submit(replaced, "/versions/next")
    assert "The current data would become version 2." in reviewed.text
    assert "Queries use only version 2." in carol.submit(reviewed, "/versions/accept").text


def test_a_refused_file_is_said_at_the_field(registry: World, data: Path) -> None:
    carol = visitor(registry, "carol")
    for name, content, status in (("a.exe", MESSY, 422), ("a.csv", b"a,b\n1\n", 422), ("", b"", 422)):
        refused = upload(carol, name, content)
        (marked,) = faults(refused).fields
        assert (refused.status, marked["name"]) == (status, "upload")
    assert upload(carol, "a.csv").status == 200
    again = upload(carol, "a.csv")
    assert (again.status, faults(again).fields[0]["name"]) == (409, "upload")
    assert kept(data) == ["a.csv"]


def test_no_form_from_elsewhere_and_of_nobody_else_is_taken(registry: World, data: Path) -> None:
    carol, alice, audrey = (visitor(registry, name) for name in ("carol", "alice", "audrey"))
    foreign = [
        upload(carol, "a.csv", secret=""),
        upload(carol, "a.csv", secret=alice.secret()),
        upload(carol, "a.csv", Origin="https://elsewhere.example"),
        upload(carol, "a.csv", Sec_Fetch_Site="cross-site"),
        upload(alice, "a.csv"),
        upload(audrey, "a.csv"),
    ]
    assert [shown.status for shown in foreign] == [403] * 6
    assert upload(Visitor(registry), "a.csv", secret="x").path.startswith("/console/sign-in")
    assert kept(data) == []


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", ""])
def test_only_a_form_that_can_hold_a_file_may_be_large(kind: str, registry: World) -> None:
    """Anybody who is signed in could let the service hold any other body, of any size, before it was refused."""
    alice, sent = visitor(registry, "alice"), 0

    def pieces() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(64):
            sent += 1 << 16
            yield b"a" * (1 << 16)

    headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in alice.cookies.items())}
    headers |= {"Content-Type": kind} if kind else {}
    with closing(http.client.HTTPConnection(urlsplit(registry.address).netloc, timeout=60)) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.request("POST", HERE, pieces(), headers, encode_chunked=True)
        reply = connection.getresponse()
        assert reply.status == 413
    assert sent > QUICK.most_bytes


# ---- the form, as it arrives ---------------------------------------------------------------------------------------


def read(content: bytes, step: int = 1) -> tuple[dict[str, str], str | None, bytes]:
    """Return fields, the name of the file and its content, of a form that arrives in pieces of some size."""

    async def chunks() -> AsyncIterator[bytes]:
        for place in range(0, len(content), step):
            yield content[place : place + step]

    async def all_of() -> tuple[dict[str, str], str | None, bytes]:
        fields, file = await FormReader(b"----x", chunks()).form()
        if file is None:
            return fields, None, b""
        return fields, file.name, b"".join([chunk async for chunk in file.chunks])

    return asyncio.run(all_of())


HARD = b"\r\n--x\r\n------\r\n----\r\n------y\r\n\r\n"


@pytest.mark.parametrize("step", [1, 2, 3, 7, 64, 10_000])
@pytest.mark.parametrize("content", [b"", HARD, b"\r\n", b"a,b\r\n1,2\r\n" * 9])
def test_a_form_is_read_whatever_the_pieces(content: bytes, step: int) -> None:
    assert read(body({"a": "1", "b": "ü"}, "x.csv", content), step) == ({"a": "1", "b": "ü"}, "x.csv", content)


def test_an_epilogue_is_short() -> None:
    for step in (1, 10_000):
        assert read(body({}, "x.csv", b"1,2") + b"x" * (MOST_EPILOGUE - 2), step) == ({}, "x.csv", b"1,2")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"------x",
        b"------x\r\nContent-Disposition: form-data\r\n\r\n1\r\n------x--\r\n",
        body({"a": "1"}, "x.csv", b"1,2")[:-10],
        body({"a": "1"}, "x.csv", b"1,2") + b"x" * (MOST_EPILOGUE + 1),
        body({"a": "1" * (MOST_VALUE + 1)}, "x.csv", b""),
        body({"a" * MOST_HEAD: "1"}, "x.csv", b""),
        body({str(number): "1" for number in range(30)}, "x.csv", b""),
        body({"a": "1"}, "x.csv", b"")[:-4] + b"\r\n" + body({"a": "2"}, "y.csv", b""),
        b"x" * 100_000,
    ],
)
def test_a_form_that_is_none_is_refused(content: bytes) -> None:
    with pytest.raises(UploadRefused) as refused:
        read(content, 1000)
    assert refused.value.cause is UploadCause.FORM


def test_a_form_holds_no_more_than_a_piece_of_its_file() -> None:
    """The reader holds what has not been handed on: less than a delimiter, and the piece that came last."""

    async def largest() -> int:
        async def chunks() -> AsyncIterator[bytes]:
            yield body({}, "x.csv", b"")[:-11]
            for _ in range(500):
                yield b"\r\n--" * 250
            yield b"\r\n------x--\r\n"

        reader = FormReader(b"----x", chunks())
        _, file = await reader.form()
        assert file is not None
        return max([len(reader._held) async for _ in file.chunks])

    assert asyncio.run(largest()) < 3000
