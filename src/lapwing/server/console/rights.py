"""Forms on the page of a person and on that of a service account: tokens, and roles at data sets."""

from dataclasses import dataclass
from typing import Any, Final, Protocol, final

from starlette.responses import Response

from lapwing.server.console.acting import act, renamed
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.templates import segment
from lapwing.server.console.toasts import Toast, named
from lapwing.server.console.visits import ConsolePage, PageRequest
from lapwing.server.problems import Problem

DAYS: Final = "30"


class PageOfName(Protocol):
    """What shows the page of a name."""

    async def __call__(self, visit: PageRequest, refused: Problem | None = None, issued: Any = None) -> Response:
        """Show it, with a refusal, or with a token that was made just now."""
        ...


async def names_of_datasets(visit: PageRequest) -> list[str]:
    """Return the names of all data sets."""
    return [one["name"] for one in await visit.api.get("datasets", limit=1000)]


@final
@dataclass(frozen=True, slots=True)
class RightsForms:
    """The forms of one kind of names.

    Args:
        here: The page above theirs.
        show: Their own page.
    """

    here: str
    show: PageOfName

    @property
    def pages(self) -> tuple[ConsolePage, ...]:
        """Return where the forms are sent."""
        of_name = f"{self.here}/{{name}}"
        return (
            ConsolePage(method="POST", path=f"{of_name}/role", handle=self.give_role),
            ConsolePage(method="POST", path=f"{of_name}/token", handle=self.make_token),
            ConsolePage(method="POST", path=f"{of_name}/end-token", handle=self.end_token),
        )

    async def give_role(self, visit: PageRequest) -> Response:
        """Make a name the curator or auditor of a data set, or no longer."""
        name, dataset, role = visit.part("name"), visit.form.get("dataset", ""), visit.form.get("role")
        method, body = ("PUT", {"role": role}) if role else ("DELETE", None)
        giving = visit.api.send(method, "people", name, "datasets", dataset, body=body)
        here, was = f"{self.here}/{segment(name)}", visit.form.get("was", "")
        if role:
            toast = Toast(at=here, text=f"{named(name)} is now {role} of {named(dataset)}.")
        else:
            undo = {"dataset": dataset, "role": was}
            text = f"Removed the role {was} on {named(dataset)}."
            toast = Toast(at=here, text=text, action=f"{here}/role" if was else "", fields=undo)
        return await act(visit, giving, toast, self.show, {"not_found": "dataset"})

    async def make_token(self, visit: PageRequest) -> Response:
        """Make a token, and show it this once."""
        name, form = visit.part("name"), visit.form
        body: dict[str, Any] = {"label": form.get("label", ""), "days": days_of(form.get("days", DAYS))}
        scopes = [scope for scope in ("read", "ask", "audit", "admin") if scope in form]
        if scopes:
            body["scopes"] = scopes
        try:
            reply = await visit.api.send("POST", "people", name, "tokens", body=body)
        except ApiRefusal as refusal:
            return await self.show(visit, renamed(refusal.document, {"scopes": "read"}))
        return await self.show(visit, issued=reply.document)

    async def end_token(self, visit: PageRequest) -> Response:
        """End a token."""
        name = visit.part("name")
        ending = visit.api.send("DELETE", "people", name, "tokens", visit.form.get("token", ""))
        return await act(visit, ending, f"{self.here}/{segment(name)}?done=ended", self.show)


def days_of(text: str) -> int:
    """Return a number of days, 0 for what is none, which is refused."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
