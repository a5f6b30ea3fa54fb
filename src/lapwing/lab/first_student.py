"""Whom attacks are about: the first student of a table, and the questions that single that student out."""

from dataclasses import dataclass
from datetime import date
from typing import Self, final

import pyarrow as pa
import pyarrow.compute as pc

from lapwing.errors import InvalidParameter
from lapwing.lab.naive import HIDDEN_BELOW
from lapwing.lab.students import students

_COUNT = "SELECT COUNT(*) AS n FROM students WHERE"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStudent:
    """The first student, called Bob whatever the table, and how many use the same editor.

    Args:
        table: With Bob in it.
    """

    table: pa.Table
    editor: str
    born: date
    users: int

    @classmethod
    def of(cls, data: pa.Table | None) -> Self:
        """Return the first student of a table, or of the course's.

        Raises:
            InvalidParameter: Unless editor and day of birth are that student's alone, in a group that is large enough
                for its counts to be shown with and without them.
        """
        table = students() if data is None else data
        editor, born = table["editor"][0].as_py(), table["birth_date"][0].as_py()
        same = pc.equal(table["editor"], editor)
        alone = int(pc.sum(pc.and_(same, pc.equal(table["birth_date"], born))).as_py())
        users = int(pc.sum(same).as_py())
        if alone > 1 or users <= HIDDEN_BELOW:
            raise InvalidParameter(
                f"The attack is about the first student, who uses {editor!r} and was born on {born}. Of these there "
                f"are {alone:,}, and with this editor {users:,}; the first must be the only one, among more than "
                f"{HIDDEN_BELOW}. Put another student first."
            )
        return cls(table=table, editor=editor, born=born, users=users)

    @property
    def without(self) -> pa.Table:
        """The others."""
        return self.table.slice(1)

    @property
    def uses_editor(self) -> str:
        """The condition for who uses the same editor."""
        return f"editor = '{self.editor.replace(chr(39), chr(39) * 2)}'"

    @property
    def is_bob(self) -> str:
        """The condition that nobody else meets."""
        return f"({self.uses_editor} AND birth_date = DATE '{self.born}')"

    @property
    def group(self) -> str:
        """The question for all who use the same editor."""
        return f"{_COUNT} {self.uses_editor}"

    @property
    def alone(self) -> str:
        """The question for Bob alone."""
        return f"{self.group} AND birth_date = DATE '{self.born}'"

    @property
    def others(self) -> str:
        """The question for all of the group but Bob."""
        return f"{self.group} AND birth_date <> DATE '{self.born}'"
