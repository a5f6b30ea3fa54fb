"""The catalog of a data set that is served, as JSON: its text, what another one would change, and what was in force."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from lapwing.documents.answer_document import Record
from lapwing.documents.budget_document import GuaranteeDocument


class CatalogDocument(TypedDict):
    """A catalog as text. `state` tells it from any other, for who changes it; `number` is 0 if it was never changed."""

    catalog: str
    state: str
    number: int
    file: str | None


class ChangeDocument(TypedDict):
    """An entry that another catalog has otherwise; `refusal` says why it cannot be changed under a ledger, or null."""

    place: str
    was: str | None
    now: str | None
    refusal: str | None


class ConsequenceDocument(TypedDict):
    """What a change means, of a table: in words, and by a `kind`."""

    kind: str
    about: str
    said: str


class ColumnErrorDocument(TypedDict):
    """A column of an answer with noise: the half-width of its 95 % interval, null where none is promised before."""

    name: str
    half_width: float | None


class QuestionPriceDocument(TypedDict):
    """What a question is charged, as a `share` of the budget, and its errors; or the `refusal` that it meets."""

    refusal: str | None
    stored: bool
    share: float | None
    cells: int | None
    columns: list[ColumnErrorDocument]


class PriceChangeDocument(TypedDict):
    """A question by the catalog in force and by another one. `source`: who wrote it down; no row is read for it.

    A saved question that wants an `error` is priced by it. Then `epsilon` is its present cost, rounded up.
    """

    sql: str
    epsilon: str
    error: NotRequired[str]
    delta: NotRequired[str]
    assuming_count: NotRequired[int]
    source: Literal["given", "saved", "asked", "example"]
    before: QuestionPriceDocument
    after: QuestionPriceDocument


class CatalogPreviewDocument(TypedDict):
    """What another catalog would change: `allowed` says whether it can be under this ledger; `prices` only then."""

    allowed: bool
    refusal: str | None
    changes: list[ChangeDocument]
    consequences: list[ConsequenceDocument]
    prices: list[PriceChangeDocument]


class CatalogChangedDocument(TypedDict):
    """The number of the catalog that is in force now, and the tables whose data are to be accepted first."""

    number: int
    state: str
    unaccepted: list[str]


class DataVersionDocument(TypedDict):
    """A version of the data that was accepted: by whom, when, and the digest of each table's data, which is secret.

    If `by_service`, `person` is an account of the operating system: the one of the process that opened the ledger.
    """

    version: int
    time: str
    person: str
    by_service: bool
    digests: dict[str, str]


class CatalogVersionDocument(TypedDict):
    """A catalog that was in force; `created` and `person` are empty for the one before the first change."""

    number: int
    created: str
    person: str
    digest: str


class CatalogChangesDocument(TypedDict):
    """The entries that a catalog changed, compared with the one before it.

    `earlier` is the number of that one, null for the first. `changes` is null if this version of Lapwing cannot read
    one of the two.
    """

    number: int
    earlier: int | None
    changes: list[ChangeDocument] | None


class BudgetRaiseDocument(TypedDict):
    """An entry of the ledger that made the budget larger: by whom, when, and both budgets.

    `was_total` is the earlier budget as the ledger counts it. `reason` is what the curator gave the service, or null.
    """

    sequence: int
    time: str
    person: str
    was: GuaranteeDocument
    now: GuaranteeDocument
    was_total: Record
    reason: str | None


class VersionsDocument(TypedDict):
    """The versions of the data and the catalogs of a data set, the newest first, and which are in force.

    `catalog` is the digest of the one in force; if it is not `newest_in_force`, the operator wrote it into its file.
    The digest is of what the tables mean. So a larger budget leaves it, and `raises` lists these.
    """

    data: list[DataVersionDocument]
    catalogs: list[CatalogVersionDocument]
    version: int
    number: int
    catalog: str
    newest_in_force: bool
    raises: list[BudgetRaiseDocument]


class NextVersionDocument(TypedDict):
    """What accepting the data would do now.

    `same` says of each table whether its data are those of the current version; `version` is the number that they would
    have, or have; `refusal` says why they would not be accepted, or null. Exact, and read for this: for curators.
    """

    version: int
    same: dict[str, bool]
    refusal: str | None
