"""Forms that upload a file (RFC 7578): their fields, and then the file in pieces.

The file is the last field of a form. So the console knows who sent the form before it reads a byte of the file. The
reader holds no more than a piece of the file.
"""

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn, final

from starlette.requests import ClientDisconnect, Request

from lapwing.server.middleware import media_type_of
from lapwing.server.uploads.arriving import in_time
from lapwing.server.uploads.limits import UploadLimits
from lapwing.server.uploads.refused import UploadCause, UploadRefused

KIND: Final = "multipart/form-data"
MOST_FIELDS: Final = 20
MOST_HEAD: Final = 8 << 10
"""Bytes of the headers of a field."""
MOST_VALUE: Final = 8 << 10
MOST_EPILOGUE: Final = 1 << 10
"""Bytes after the end of a form. Browsers send a line end there, or nothing."""
_BOUNDARY: Final = re.compile(r'boundary="?([A-Za-z0-9\'()+_,./:=? -]{1,70})"?(?:;|$)', re.ASCII)
_NAME: Final = re.compile(r'[; ]name="([^"\r\n]*)"')
_FILE: Final = re.compile(r'[; ]filename="([^"\r\n]*)"')


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SentFile:
    """A file of a form: its name from the browser, and its bytes in pieces."""

    field: str
    name: str
    chunks: AsyncIterator[bytes]


def is_multipart(request: Request) -> bool:
    """Tell whether a request is a form that may hold a file."""
    return media_type_of(request.scope["headers"]) == KIND


async def upload_of(request: Request, limits: UploadLimits) -> tuple[Mapping[str, str], SentFile | None]:
    """Return the fields before the file, and the file, which is read later.

    Raises:
        UploadRefused: If the form cannot be read.
    """
    boundary = _BOUNDARY.search(request.headers.get("content-type", ""))
    if boundary is None:
        refuse()
    return await FormReader(boundary[1].rstrip().encode("ascii"), in_time(request.stream(), limits)).form()


@final
class FormReader:
    """Reads one form.

    Args:
        chunks: The body.
    """

    def __init__(self, boundary: bytes, chunks: AsyncIterator[bytes]) -> None:
        self._chunks, self._held = chunks, b"\r\n"  # so that the first delimiter is like the others
        self._delimiter = b"\r\n--" + boundary

    async def form(self) -> tuple[dict[str, str], SentFile | None]:
        """Return the fields before the file, and the file.

        Raises:
            UploadRefused: If the form cannot be read.
        """
        fields: dict[str, str] = {}
        await self._until(self._delimiter, 2)
        while await self._follows():
            head = (await self._until(b"\r\n\r\n", MOST_HEAD)).decode("utf-8", "replace")
            name, file = _NAME.search(head), _FILE.search(head)
            if name is None or name[1] in fields or len(fields) == MOST_FIELDS:
                refuse()
            if file is not None:
                return fields, SentFile(field=name[1], name=file[1].replace("%22", '"'), chunks=self._content())
            fields[name[1]] = (await self._until(self._delimiter, MOST_VALUE)).decode("utf-8", "replace")
        return fields, None

    async def _follows(self) -> bool:
        """Tell whether another field follows a delimiter; else the form ends with it."""
        while len(self._held) < 2:
            await self._more()
        end, self._held = self._held[:2], self._held[2:]
        if end not in (b"\r\n", b"--"):
            refuse()
        if end == b"\r\n":
            self._held = b"\r\n" + self._held  # headers may be none, and end with an empty line all the same
        return end == b"\r\n"

    async def _until(self, mark: bytes, most: int) -> bytes:
        """Return what stands before a mark, and go on after it."""
        while mark not in self._held:
            if len(self._held) > most + len(mark):
                refuse()
            await self._more()
        before, _, self._held = self._held.partition(mark)
        return before if len(before) <= most else refuse()

    async def _content(self) -> AsyncIterator[bytes]:
        """Yield the bytes of the file, and then read the end of the form."""
        while self._delimiter not in self._held:
            ready = len(self._held) - len(self._delimiter) + 1  # the rest may be the beginning of a delimiter
            if ready > 0:
                yield self._held[:ready]
                self._held = self._held[ready:]
            await self._more()
        last, _, self._held = self._held.partition(self._delimiter)
        if last:
            yield last
        if await self._follows():
            refuse()  # the file is the last field
        left = MOST_EPILOGUE - len(self._held)
        while left >= 0:
            try:
                left -= len(await anext(self._chunks))
            except StopAsyncIteration:
                return
        refuse()

    async def _more(self) -> None:
        try:
            self._held += await anext(self._chunks)
        except StopAsyncIteration:
            refuse()
        except ClientDisconnect:
            refuse()  # there is nobody to answer


def refuse() -> NoReturn:
    """Refuse a form.

    Raises:
        UploadRefused: Always.
    """
    raise UploadRefused(UploadCause.FORM, "Lapwing cannot read this form. Reload the page and try again.")
