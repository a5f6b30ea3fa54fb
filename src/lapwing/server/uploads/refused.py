"""Why an upload is refused: for who uploads, with a stable code."""

from enum import Enum
from typing import final

from lapwing.errors import LapwingError
from lapwing.server.problems import Problem, problem


class UploadCause(Enum):
    """The kind of a refusal. The values are stable."""

    SWITCHED_OFF = "uploads_switched_off"
    TOO_LARGE = "too_large"
    TOO_SLOW = "too_slow"
    QUOTA = "quota"
    NO_SPACE = "no_space"
    FOLDER = "folder_not_writable"
    NAME = "file_name"
    EXISTS = "file_exists"
    EMPTY = "empty"
    FORM = "form"
    WRONG_KIND = "wrong_kind"
    DAMAGED = "damaged"
    EXPANDS = "expands_too_far"
    CHECK_STOPPED = "check_stopped"
    ENCODING = "encoding"
    NUL = "nul"
    LONG_ROW = "long_row"
    COLUMNS = "too_many_columns"
    COLUMN_NAME = "column_name"
    UNEVEN = "uneven_rows"
    NO_ROWS = "no_rows"
    METADATA = "metadata"


STATUS = {
    UploadCause.TOO_LARGE: ("request_too_large", 413),
    UploadCause.TOO_SLOW: ("request_timeout", 408),
    UploadCause.QUOTA: ("upload_refused", 413),
    UploadCause.NO_SPACE: ("insufficient_storage", 507),
    UploadCause.EXISTS: ("upload_refused", 409),
}
"""The code and the status of those that are not `upload_refused` with 422."""


@final
class UploadRefused(LapwingError):
    """An upload was refused; no file was added or replaced."""

    code = "upload_refused"
    charged = False

    def __init__(self, cause: UploadCause, detail: str, field: str | None = "file") -> None:
        code, status = STATUS.get(cause, ("upload_refused", 422))
        self.cause = cause
        self.document: Problem = problem(code, status, f"{detail} Nothing was stored.", field)
        self.document["cause"] = cause.value
        super().__init__(self.document["detail"])
