"""People, their tokens, who may ask and how much, as JSON: what the service answers, and what its commands show."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict  # pydantic describes those of `typing` from Python 3.12 on only

Role = Literal["curator", "analyst", "auditor"]
DatasetRole = Literal["curator", "auditor"]
Right = Literal["read", "ask", "audit", "admin"]
Division = Literal["share", "split"]


class PersonDocument(TypedDict):
    """Somebody who may use the service, if `active`; `datasets` has the roles of data sets that they look after.

    `invite_expires` is when the invite ends by which they can set a first password, null without one.
    """

    name: str
    role: Role
    team: str | None
    active: bool
    created: str
    second_factor: bool
    has_password: bool
    invite_expires: str | None
    datasets: dict[str, DatasetRole]


class InviteDocument(TypedDict):
    """The token of an invite, which is shown this once, whom it is for, and when it ends."""

    token: str
    person: str
    expires: str


class ServiceAccountDocument(TypedDict):
    """A service account: a name for programs, with tokens and nothing else.

    `let_in` says whether it may come in: it is `active`, has not ended (`expires`), and its `owner` may come in.
    """

    name: str
    role: Role
    team: str | None
    owner: str
    active: bool
    let_in: bool
    created: str
    expires: str
    datasets: dict[str, DatasetRole]


class TeamShareDocument(TypedDict):
    """What a team has of a data set: its `share` of the budget, null without one, and the part of it that is `spent`.

    What counts is all that those were charged who are in the team or ever were.
    """

    dataset: str
    share: str | None
    spent: float


class TeamDocument(TypedDict):
    """A team: who is in it, and who was; `datasets` only of one team that is asked for by name."""

    name: str
    created: str | None
    members: list[str]
    earlier: list[str]
    datasets: list[TeamShareDocument]


class SecondFactorDocument(TypedDict):
    """How somebody's second factor stands; `since` is when it was switched on, null if it is off."""

    on: bool
    since: str | None
    recovery_codes_left: int


class NewSecondFactor(TypedDict):
    """A secret for an authenticator app, as text and as the address in a QR code; shown this once."""

    secret: str
    address: str


class RecoveryCodes(TypedDict):
    """Codes that let in once each, in the place of the app; shown this once."""

    recovery_codes: list[str]


class PersonChange(TypedDict, total=False):
    """What is to be changed about somebody; what is not given stays."""

    role: Role
    password: str
    active: bool
    team: str
    leave_team: bool


class TokenDocument(TypedDict):
    """A token, without its secret."""

    id: str
    person: str
    label: str
    scopes: list[Right]
    created: str
    expires: str
    revoked: bool


class IssuedToken(TypedDict):
    """A token with its secret, which is shown this once."""

    token: str
    id: str
    person: str
    label: str
    scopes: list[Right]
    created: str
    expires: str


class Grants(TypedDict):
    """The shares of people and of teams, by name, and the people who are trusted with time.

    `disabled` names the people with a grant who may not sign in. `roles` names the curators and auditors who may. They
    need no grant.
    """

    people: dict[str, str | None]
    teams: dict[str, str]
    trusted_with_time: list[str]
    disabled: NotRequired[list[str]]
    roles: NotRequired[dict[str, DatasetRole]]


class GrantDocument(TypedDict):
    """A data set that somebody may ask: their `share` of its budget, null without one of their own."""

    dataset: str
    share: str | None
    trusted_with_time: bool


class DefaultCostDocument(TypedDict):
    """The cost of a query over PostgreSQL's protocol that names none; no `epsilon`: it is refused.

    `daily_share` is the share of the budget that such queries may cost in a day (UTC), `spent_today` what they cost.
    """

    epsilon: str | None
    daily_share: str
    spent_today: str


class StopDocument(TypedDict):
    """A stop of a data set, its end, or a review of its failures; `act` as the audit log names it."""

    sequence: int
    time: str
    person: str
    act: str
    reason: str | None


class PolicyDocument(TypedDict):
    """How a budget is shared out."""

    division: Division
    most_epsilon: str | None
    least_share: str
    stopped: bool
