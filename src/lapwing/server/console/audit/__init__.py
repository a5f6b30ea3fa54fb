"""The audit log, the newest lines first, each time checked from its first line to its last."""

import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from lapwing.documents.audit_words import act_in_words, details_in_words
from lapwing.server.audit_log import first_broken
from lapwing.server.console.days import DAYS, days_of, yesterday
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.searching import LONGEST, matches
from lapwing.server.console.visits import ConsolePage, PageRequest
from lapwing.server.responses import LINES

MOST: Final = 100
OF_PAGES: Final = ("page published", "page withdrawn")
BATCH: Final = 1000
"""Lines of the file that are in memory at once."""


async def show(visit: PageRequest) -> Response:
    """Show the log."""
    reply = await visit.api.send("GET", "audit")
    lines = await run_in_threadpool(lambda: [json.loads(line) for line in reply.content.splitlines()])
    broken = await run_in_threadpool(lambda: first_broken(iter(lines)))
    wanted, chosen = visit.asked("about").strip()[:LONGEST], lines
    if wanted:
        chosen = [line for line in lines if matches(wanted, _texts(line))]
    days = days_of(visit)
    if days.chosen:
        chosen = [line for line in chosen if days.holds(line["time"])]
    before = visit.asked("before")
    if before.isascii() and before.isdigit():
        chosen = [line for line in chosen if line["sequence"] < int(before[:15])]
    shown = chosen[: -MOST - 1 : -1]
    titles = await _titles(visit, lines, shown)
    return visit.show(
        "audit/page.html",
        lines=[
            {
                **line,
                "done": act_in_words(line),
                "said": details_in_words(line),
                "title": titles.get(line["subject"]) if line["act"] in OF_PAGES else None,
            }
            for line in shown
        ],
        all_lines=len(lines),
        last=lines[-1] if lines else None,
        broken=broken,
        about=wanted,
        days=days,
        yesterday=yesterday(),
        earlier=shown[-1]["sequence"] if len(chosen) > len(shown) else None,
    )


async def _titles(visit: PageRequest, lines: list[dict[str, Any]], shown: list[dict[str, Any]]) -> dict[str, str]:
    """Return the titles of the published pages in the lines that are shown, as the service lists them to the caller."""
    pages = {line["subject"] for line in shown if line["act"] in OF_PAGES}
    published = (line for line in lines if line["act"] == "page published" and line["subject"] in pages)
    titles: dict[str, str] = {}
    for dataset in sorted({str(line["details"].get("dataset")) for line in published}):
        with suppress(ApiRefusal):  # the service does not have the data set any more
            listed = await visit.api.get("datasets", dataset, "published", limit=1000)
            titles |= {one["id"]: one["title"] for one in listed}
    return titles


def _texts(line: dict[str, Any]) -> tuple[object, ...]:
    """Return the texts of a line in which words are looked for: its own, and those that the page shows."""
    return line["actor"], line["subject"], line["act"], act_in_words(line), details_in_words(line)


async def export(visit: PageRequest) -> Response:
    """Return the log as a file: the lines that the service exports, byte for byte, a batch at a time.

    The log only grows, so the batches are together the log as it is when the last one is read. Who may not read it is
    refused before the file begins.
    """
    first = await visit.api.send("GET", "audit", query={"limit": BATCH})

    async def batches() -> AsyncIterator[bytes]:
        reply = first
        yield reply.content
        while reply.following:
            last = json.loads(reply.content.splitlines()[-1])["sequence"]
            reply = await visit.api.send("GET", "audit", query={"limit": BATCH, "after": last})
            yield reply.content

    headers = {"Content-Disposition": 'attachment; filename="audit-log.jsonl"'}
    return StreamingResponse(batches(), media_type=LINES, headers=headers)


PAGES: Final = (
    ConsolePage(method="GET", path="/console/audit", handle=show, query=("about", "before", *DAYS)),
    ConsolePage(method="GET", path="/console/audit/file.jsonl", handle=export),
)
