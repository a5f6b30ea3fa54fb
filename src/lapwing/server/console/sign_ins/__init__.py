"""Who signed in and who failed to, the newest first: the lines of the audit log that tell of it, for auditors."""

import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from lapwing.documents.audit_words import CONSOLE
from lapwing.server.console.visits import ConsolePage, PageRequest

LINES: Final = 100
SAID: Final[Mapping[str, str]] = {
    "login failed": "failed",
    "second factor added": "second factor on",
    "second factor removed": "second factor off",
    "recovery code used": "recovery code used",
    "recovery codes made": "new recovery codes",
    "identity bound": "first sign-in with the identity provider",
    "token revoked": "token or session revoked",
}
"""Acts of the audit log, as the page calls them."""
BAD: Final = frozenset({"login failed", "second factor removed", "recovery code used"})


async def show(visit: PageRequest) -> Response:
    """Show the sign-ins."""
    reply = await visit.api.send("GET", "audit")
    lines = await run_in_threadpool(lambda: [json.loads(line) for line in reply.content.splitlines()])
    chosen = [line for line in lines if line["act"] in SAID or is_sign_in(line)]
    wanted = visit.asked("about").strip()
    if wanted:
        chosen = [line for line in chosen if line["subject"] == wanted]
    before = visit.asked("before")
    if before.isascii() and before.isdigit():
        chosen = [line for line in chosen if line["sequence"] < int(before[:15])]
    shown = chosen[: -LINES - 1 : -1]
    return visit.show(
        "sign_ins/page.html",
        lines=[_line(line) for line in shown],
        about=wanted,
        earlier=shown[-1]["sequence"] if len(chosen) > len(shown) else None,
    )


def is_sign_in(line: Mapping[str, Any]) -> bool:
    """Tell whether a line is of a token that somebody got for their own password, or by the identity provider."""
    return bool(line["act"] == "token made" and line["actor"] == line["subject"])


def _line(line: Mapping[str, Any]) -> dict[str, Any]:
    details = line["details"]
    label = details.get("label", "")
    made = "signed in: console" if label == CONSOLE else f"API token: {label or 'no label'}"
    more = details.get("more")
    return {
        "sequence": line["sequence"],
        "time": line["time"],
        "who": line["subject"],
        "what": SAID.get(line["act"], made),
        "bad": line["act"] in BAD,
        "address": details.get("address", ""),
        "more": f"and {more:,} earlier attempts without a line" if isinstance(more, int) else "",
        "by": line["actor"] if line["actor"] not in (line["subject"], "(nobody)") else "",
    }


PAGES: Final = (ConsolePage(method="GET", path="/console/sign-ins", handle=show, query=("about", "before")),)
