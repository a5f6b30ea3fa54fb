"""What a curator sees before a data set is registered, as JSON: files, columns, a draft, and what the data are like."""

from typing import Any, Literal

from typing_extensions import TypedDict


class DataFileDocument(TypedDict):
    """A file of data, by its path in one of the folders of the service."""

    folder: str
    file: str


class ColumnDocument(TypedDict):
    """A column of a file; `type` is null if a catalog has no such type.

    `reading` has the settings for its stored values that a catalog seems to need, in the form of
    `POST /v1/catalogs/draft`. They are read off the first rows, and private.
    """

    name: str
    type: str | None
    stored_as: str
    reading: dict[str, Any]


class FileColumnsDocument(TypedDict):
    """The columns of a file. If it has not `declared` their types, these are read off its first rows, and private.

    So is the `encoding` that a draft takes for a text; it is null for other files.
    """

    declared: bool
    encoding: str | None
    columns: list[ColumnDocument]


class CatalogDraft(TypedDict):
    """A draft of a catalog, as the text of a TOML file, and what to look at in it."""

    catalog: str
    notes: list[str]


class CheckDocument(TypedDict):
    """What the data of a catalog are like: exact figures without noise, which are private.

    `passes` says whether they would be accepted; `tables` are those of `lapwing data check --format json`, with
    `findings` in words.
    """

    private: Literal[True]
    passes: bool
    tables: list[dict[str, Any]]


class UploadDocument(TypedDict):
    """A file that was uploaded and checked, and is in its place.

    `file` is its name there, which may differ from the name that was sent. `replaced` says whether a file was replaced.
    `datasets` names the data sets that use it. Queries of each are refused until its curator accepts the new data.
    """

    folder: str
    file: str
    size: int
    sha256: str
    rows: int
    columns: int
    replaced: bool
    datasets: list[str]


class UploadRulesDocument(TypedDict):
    """The folders and the limits of uploads; `max_bytes` is 0 if the service takes none."""

    folders: list[str]
    max_bytes: int
    folder_bytes: int
    person_bytes: int
    max_columns: int
    endings: list[str]
