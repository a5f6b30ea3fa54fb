"""One's own account: tokens and sessions, which one can end, and the password."""

from typing import Final

from starlette.responses import Response

from lapwing.server.console.account import second_factor
from lapwing.server.console.acting import act
from lapwing.server.console.visits import ConsolePage, PageRequest
from lapwing.server.problems import Problem, problem

HERE: Final = "/console/account"
MOST: Final = 100


async def show(visit: PageRequest, refused: Problem | None = None) -> Response:
    """Show who one is, and one's tokens."""
    me = await visit.api.get("me")
    tokens = await visit.api.get("me", "tokens", limit=MOST)
    factor = await visit.api.get("me", "second-factor")
    status = refused["status"] if refused else 200
    return visit.show("account/page.html", status, me=me, tokens=tokens, factor=factor, refused=refused)


async def change_password(visit: PageRequest) -> Response:
    """Change the password, which ends all sessions."""
    if visit.form.get("new_password", "") != visit.form.get("again", ""):
        return await show(
            visit,
            problem("invalid_parameter", 422, "The two new passwords differ. Type the same password twice.", "again"),
        )
    body = {"password": visit.form.get("password", ""), "new_password": visit.form.get("new_password", "")}
    change = visit.api.send("POST", "me", "password", body=body)
    return await act(visit, change, "/console/sign-in?out=1", show)


async def end_token(visit: PageRequest) -> Response:
    """End one of one's tokens; with that of this session, sign out."""
    token = visit.form.get("token", "")
    end = visit.api.send("DELETE", "me", "tokens", token)
    return await act(
        visit, end, f"{HERE}?done=ended" if token != visit.caller.token else "/console/sign-in?out=1", show
    )


PAGES: Final = (
    ConsolePage(method="GET", path=HERE, handle=show, query=("done",)),
    ConsolePage(method="POST", path=f"{HERE}/password", handle=change_password),
    ConsolePage(method="POST", path=f"{HERE}/end-token", handle=end_token),
    *second_factor.PAGES,
)
