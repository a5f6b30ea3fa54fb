"""The body of an upload while it arrives. A body that arrives too slowly ends the upload."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from lapwing.server.uploads.limits import UploadLimits
from lapwing.server.uploads.refused import UploadCause, UploadRefused

AT_ONCE: Final = 1 << 20
"""Bytes that are written at a time."""
LINGER_SECONDS: Final = 5.0
LINGER_BYTES: Final = 64 << 20


async def in_time(body: AsyncIterator[bytes], limits: UploadLimits) -> AsyncIterator[bytes]:
    """Yield what arrives, as long as enough arrives in each stretch of `limits.seconds`.

    So a sender who stops, or sends a byte now and then, holds a connection and a part for a short time. A large file
    may take long.

    Raises:
        UploadRefused: If too little arrives.
    """
    clock = asyncio.get_running_loop().time
    since, arrived = clock(), 0
    while True:
        try:
            async with asyncio.timeout(limits.seconds):
                chunk = await anext(body)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise _slow(limits) from None
        arrived += len(chunk)
        if clock() - since >= limits.seconds:
            if arrived < limits.least_bytes:
                raise _slow(limits)
            since, arrived = clock(), 0
        yield chunk


async def gathered(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield what arrives in larger pieces."""
    parts, size = [], 0
    async for chunk in body:
        parts.append(chunk)
        size += len(chunk)
        if size >= AT_ONCE:
            yield b"".join(parts)
            parts, size = [], 0
    if size:
        yield b"".join(parts)


async def drain(body: AsyncIterator[bytes]) -> None:
    """Read on for a moment after a refusal: who is still sending would lose the answer with the connection."""
    size = 0
    with suppress(Exception):
        async with asyncio.timeout(LINGER_SECONDS):
            async for chunk in body:
                size += len(chunk)
                if size > LINGER_BYTES:
                    return


def _slow(limits: UploadLimits) -> UploadRefused:
    return UploadRefused(
        UploadCause.TOO_SLOW,
        f"Less than {limits.least_bytes:,} bytes arrived within {limits.seconds:g} seconds, so the upload was ended.",
    )
