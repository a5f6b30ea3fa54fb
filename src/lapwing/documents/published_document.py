"""Published pages as JSON: what the service answers, and what its commands show."""

from typing import NotRequired

from typing_extensions import TypedDict  # pydantic describes those of `typing` from Python 3.12 on only


class PublishingDocument(TypedDict):
    """Whether results of a data set may be published, and by which `origins` pages may be shown in a frame."""

    allowed: bool
    origins: list[str]


class PublishedDocument(TypedDict):
    """A published page. `datasets` are all of which it shows results. `name` is null if its address cannot be guessed.

    `address` is where readers find it; of a page without a name only the answer that published it has it. `withdrawn`
    is null as long as it can be read. `left_out` is how many tiles of a dashboard it does not show. `frame_height` is
    how many pixels a frame needs that shows `address` with `?frame`; lists leave it out.
    """

    id: str
    dataset: str
    person: str
    title: str
    name: str | None
    created: str
    withdrawn: str | None
    withdrawn_by: str | None
    datasets: list[str]
    address: NotRequired[str]
    left_out: NotRequired[int]
    frame_height: NotRequired[int]
