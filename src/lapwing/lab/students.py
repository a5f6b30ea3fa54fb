"""The data set of a course: a thousand computing students, made up, the same on every machine.

Nobody in it is real. It is drawn from a fixed stream of SHAKE-256, so that you can follow examples figure by figure.
One student was born on 1994-09-23 and codes with Notepad; the first is called Bob and gets 4,500.
"""

from datetime import date, timedelta
from hashlib import shake_256
from typing import Final

import pyarrow as pa

COUNT: Final = 1_000
EDITORS: Final = ("Notepad", "Vim", "Emacs", "Atom", "Sublime")
GENDERS: Final = ("f", "m")
LARGEST_SCHOLARSHIP: Final = 6_000
BOB: Final = 0
"""The id of Bob, whom the attacks are about."""
BOBS_BIRTHDAY: Final = date(1994, 9, 23)
BOBS_SCHOLARSHIP: Final = 4_500
FIRST_DAY, DAYS = date(1990, 1, 1), 3_652
_SHARES: Final = (55, 340, 180, 150, 275)
"""Of a thousand students: how many use each editor."""


def students() -> pa.Table:
    """Return the table: id, birth_date, gender, editor, scholarship (0 to 6,000) and cheated (in an exam).

    Exactly 55 of them use Notepad, and of these Bob alone was born on 1994-09-23.
    """
    words = _words(6 * COUNT)
    editors = [editor for editor, many in zip(EDITORS, _SHARES, strict=True) for _ in range(many)]
    order = [BOB, *sorted(range(1, COUNT), key=lambda student: words[student])]
    editor_of = dict(zip(order, editors, strict=True))
    born = [FIRST_DAY + timedelta(days=words[COUNT + student] % DAYS) for student in range(COUNT)]
    born = [
        day + timedelta(days=1) if day == BOBS_BIRTHDAY and editor_of[student] == "Notepad" else day
        for student, day in enumerate(born)
    ]
    scholarships = [
        0 if words[2 * COUNT + student] % 10 < 6 else 100 * (1 + words[3 * COUNT + student] % 60)
        for student in range(COUNT)
    ]
    born[BOB], scholarships[BOB] = BOBS_BIRTHDAY, BOBS_SCHOLARSHIP
    return pa.table(
        {
            "id": pa.array(range(COUNT), pa.int64()),
            "birth_date": pa.array(born, pa.date32()),
            "gender": [GENDERS[student == BOB or words[4 * COUNT + student] % 3 > 0] for student in range(COUNT)],
            "editor": [editor_of[student] for student in range(COUNT)],
            "scholarship": pa.array(scholarships, pa.int64()),
            "cheated": [words[5 * COUNT + student] % 100 < 28 for student in range(COUNT)],
        }
    )


def _words(count: int) -> list[int]:
    """Return numbers of 64 bits from a fixed stream."""
    stream = shake_256(b"a thousand computing students").digest(8 * count)
    return [int.from_bytes(stream[start : start + 8], "little") for start in range(0, len(stream), 8)]
