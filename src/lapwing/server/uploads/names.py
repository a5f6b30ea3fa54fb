"""The name of a stored file: made from the name that was sent, and safe in a folder."""

import unicodedata
from pathlib import Path
from typing import Final

from lapwing.catalog.source_names import DATA, ending, is_json
from lapwing.catalog.spelling import is_seen
from lapwing.server.uploads.refused import UploadCause, UploadRefused

LONGEST: Final = 120
"""Bytes of a name without its ending. A ledger and a catalog get longer names from it; systems allow 255."""
KINDS: Final = tuple(known for known in DATA if not is_json(Path(f"x{known}")))
"""The endings of files that can be uploaded."""
_KEPT: Final = frozenset("-_. ")


def stored_name(given: str) -> str:
    r"""Return the name of a file without folders, leading dots, what patterns are made of, and what nobody sees.

    Raises:
        UploadRefused: If it does not end as a file of data, or nothing is left of it.

    >>> stored_name("C:\\Users\\eve\\..\\my visits (2).CSV"), stored_name("../../etc/.%2e\u202epasswd\0.tsv.gz")
    ('my visits _2_.csv', '2e_passwd_.tsv.gz')
    >>> stored_name("cafe\u0301.parquet") == "caf\xe9.parquet", stored_name("=cmd|'/c'!A1.csv")
    (True, "c'!A1.csv".replace("'", "_").replace("!", "_"))
    """
    last = unicodedata.normalize("NFC", given.encode("utf-8", "replace").decode()).replace("\\", "/").rpartition("/")[2]
    kind = ending(Path(last or "x"))
    if kind not in KINDS:
        listed = f"{', '.join(KINDS[:-1])} or {KINDS[-1]}"
        raise UploadRefused(UploadCause.NAME, f"The name of the file does not end in {listed}.")
    plain = "".join(letter if _is_kept(letter) else "_" for letter in last[: -len(kind)])
    plain = plain.lstrip("._- ").rstrip(". ")
    while len(plain.encode()) > LONGEST:
        plain = plain[:-1]
    if not plain.strip("_"):
        raise UploadRefused(UploadCause.NAME, "The name of the file has no letter or digit. Rename the file.")
    return f"{plain}{kind}"


def _is_kept(letter: str) -> bool:
    return letter in _KEPT or (letter.isalnum() and is_seen(letter))


def is_same_name(one: str, other: str) -> bool:
    """Tell whether two names are the same on a system that knows no case."""
    return unicodedata.normalize("NFC", one).casefold() == unicodedata.normalize("NFC", other).casefold()
