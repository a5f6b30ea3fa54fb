"""Requests for access or more budget as JSON: what the service answers, and what its commands show."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict  # pydantic describes those of `typing` from Python 3.12 on only

RequestKind = Literal["access", "budget"]
RequestState = Literal["open", "approved", "declined", "withdrawn"]


class CurrentLimit(TypedDict):
    """The access and the limit that the person of a request has now; `newer` if it was set after the request."""

    granted: bool
    share: str | None
    newer: bool


class GivenLimit(TypedDict):
    """The limit that a curator approved: a share of the budget, or null for no limit."""

    share: str | None


class AccessRequestDocument(TypedDict):
    """A request of a person for access to a data set, or for a larger limit there.

    `share` is the limit that they want: a share of the budget, or null for no limit. `answer` is the reason of the
    curator who decided it; an approval may have none. `decided_by` is null for everybody but curators. Curators see
    `now` of open requests. `given` is the limit of an approved one, which may differ from `share`. Older approvals
    have none.
    """

    id: str
    person: str
    dataset: str
    kind: RequestKind
    share: str | None
    reason: str
    created: str
    state: RequestState
    decided: str | None
    decided_by: str | None
    answer: str | None
    now: NotRequired[CurrentLimit]
    given: NotRequired[GivenLimit]


class ListedDataset(TypedDict):
    """A listed data set for people without access."""

    name: str
    title: NotRequired[str]
    description: NotRequired[str]
    contact: NotRequired[str]


class ListingDocument(TypedDict):
    """Whether people without access see that a data set exists."""

    listed: bool
