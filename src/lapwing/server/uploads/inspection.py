"""Check an uploaded file in a process of its own, whose memory and time are limited, and which can be killed.

A file may be hostile. A few bytes may decompress to terabytes, and metadata may claim a million columns.
So no process that answers people opens it before this process has read it to its end.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

from lapwing.machine.scratch import temporary_folder
from lapwing.server.uploads.limits import UploadLimits
from lapwing.server.uploads.refused import UploadCause, UploadRefused

READER: Final = "lapwing.server.uploads.reader"
STOPPED: Final = (
    "Lapwing stopped reading the file, because that took more memory or time than allowed. The file may be damaged."
)


def inspected(part: Path, kind: str, limits: UploadLimits) -> tuple[int, int]:
    """Return how many rows and columns a file has.

    Args:
        kind: The ending of its name to be.

    Raises:
        UploadRefused: If it cannot be read as what its name says, within the limits.
    """
    with temporary_folder("lapwing-upload-") as folder:
        named = folder / f"data{kind}"
        named.symlink_to(part)
        said = {
            "path": str(named),
            "columns": limits.most_columns,
            "inside": limits.most_inside,
            "seconds": limits.check_seconds,
            "memory": limits.check_memory,
        }
        found = _read(said, limits.check_seconds)
    if "cause" in found:
        raise UploadRefused(UploadCause(found["cause"]), str(found["detail"]))
    return int(found["rows"]), int(found["columns"])


def _read(said: dict[str, object], seconds: int) -> dict[str, str | int]:
    command = [sys.executable, "-P", "-m", READER]
    try:
        ended = subprocess.run(  # noqa: S603 - this interpreter, and a module of ours
            command, input=json.dumps(said).encode(), capture_output=True, timeout=2 * seconds, check=False
        )
        found: dict[str, str | int] = json.loads(ended.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        return {"cause": UploadCause.CHECK_STOPPED.value, "detail": STOPPED}
    return found
