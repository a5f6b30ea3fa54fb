"""Which build of Lapwing runs: a name that follows from its files, so that two hosts can be compared.

A version alone does not say it: between releases many builds bear the same one. The name is made of what is installed,
not of what somebody wrote into it, so it cannot be forgotten, and a file that was changed by hand changes it.
"""

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

LEFT_OUT: Final = ("__pycache__",)
"""What Python writes beside the files."""


@cache
def build_id() -> str:
    """Return the first 12 digits of the SHA-256 of all files of this package, by their names and contents, in hex.

    The same wheel has the same name wherever it is installed. It takes some 20 ms, once in a process.
    """
    folder, digest = Path(__file__).parents[1], sha256()
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not {*path.parts} & {*LEFT_OUT})
    for path in files:
        name = path.relative_to(folder).as_posix().encode()
        digest.update(sha256(name).digest() + sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:12]
