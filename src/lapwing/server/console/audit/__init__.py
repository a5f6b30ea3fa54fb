"""The audit log, the newest lines first, each time checked from its first line to its last."""

import json
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from lapwing.documents.audit_words import act_in_words, details_in_words
from lapwing.server.audit_log import first_broken
from lapwing.server.console.searching import LONGEST, matches
from lapwing.server.console.visits import ConsolePage, PageRequest

LINES: Final = 100


async def show(visit: PageRequest) -> Response:
    """Show the log."""
    reply = await visit.api.send("GET", "audit")
    lines = await run_in_threadpool(lambda: [json.loads(line) for line in reply.content.splitlines()])
    broken = await run_in_threadpool(lambda: first_broken(iter(lines)))
    wanted, chosen = visit.asked("about").strip()[:LONGEST], lines
    if wanted:
        chosen = [line for line in lines if matches(wanted, _texts(line))]
    before = visit.asked("before")
    if before.isascii() and before.isdigit():
        chosen = [line for line in chosen if line["sequence"] < int(before[:15])]
    shown = chosen[: -LINES - 1 : -1]
    return visit.show(
        "audit/page.html",
        lines=[{**line, "done": act_in_words(line), "said": details_in_words(line)} for line in shown],
        all_lines=len(lines),
        last=lines[-1] if lines else None,
        broken=broken,
        about=wanted,
        earlier=shown[-1]["sequence"] if len(chosen) > len(shown) else None,
    )


def _texts(line: dict[str, Any]) -> tuple[object, ...]:
    """Return the texts of a line in which words are looked for: its own, and those that the page shows."""
    return line["actor"], line["subject"], line["act"], act_in_words(line), details_in_words(line)


PAGES: Final = (ConsolePage(method="GET", path="/console/audit", handle=show, query=("about", "before")),)
