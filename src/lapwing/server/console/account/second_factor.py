"""One's second factor, on and off: the QR code for the app, a code of it, and recovery codes, each shown once."""

from typing import Any, Final

from starlette.responses import Response

from lapwing.server.console.account.qr_code import qr_code
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.visits import ConsolePage, PageRequest, redirect
from lapwing.server.problems import Problem

HERE: Final = "/console/account/second-factor"


async def show(visit: PageRequest, refused: Problem | None = None, **facts: Any) -> Response:
    """Show how it stands, and what can be done."""
    factor = await visit.api.get("me", "second-factor")
    shown = {"begun": None, "qr": None, "codes": None, "waiting": False, **facts}
    status = refused["status"] if refused else 200
    return visit.show("account/second_factor.html", status, factor=factor, refused=refused, **shown)


async def begin(visit: PageRequest) -> Response:
    """Make a secret for the app, and show it."""
    body = {"password": visit.form.get("password", "")}
    try:
        begun = (await visit.api.send("POST", "me", "second-factor", body=body)).document
    except ApiRefusal as refusal:
        return await show(visit, refusal.document)
    return await show(visit, begun=begun, qr=qr_code(begun["address"]), waiting=True)


async def confirm(visit: PageRequest) -> Response:
    """Switch it on, by a code that the app shows; and show the recovery codes."""
    body = {"code": visit.form.get("code", "")}
    try:
        made = (await visit.api.send("POST", "me", "second-factor", "confirm", body=body)).document
    except ApiRefusal as refusal:
        return await show(visit, refusal.document, waiting=True)
    return await show(visit, codes=made["recovery_codes"])


async def renew(visit: PageRequest) -> Response:
    """Make new recovery codes, and show them."""
    try:
        made = (await visit.api.send("POST", "me", "second-factor", "recovery-codes", body=_proofs(visit))).document
    except ApiRefusal as refusal:
        return await show(visit, refusal.document)
    return await show(visit, codes=made["recovery_codes"])


async def remove(visit: PageRequest) -> Response:
    """Switch it off."""
    try:
        await visit.api.send("POST", "me", "second-factor", "remove", body=_proofs(visit))
    except ApiRefusal as refusal:
        return await show(visit, refusal.document)
    return redirect(f"{HERE}?done=removed")


def _proofs(visit: PageRequest) -> dict[str, str]:
    return {name: visit.form.get(name, "") for name in ("password", "code")}


PAGES: Final = (
    ConsolePage(method="GET", path=HERE, handle=show, query=("done",)),
    ConsolePage(method="POST", path=HERE, handle=begin),
    ConsolePage(method="POST", path=f"{HERE}/confirm", handle=confirm),
    ConsolePage(method="POST", path=f"{HERE}/recovery-codes", handle=renew),
    ConsolePage(method="POST", path=f"{HERE}/remove", handle=remove),
)
