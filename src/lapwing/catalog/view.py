"""A view: a question's text under a name, written by the curator."""

from dataclasses import dataclass
from typing import final

from lapwing.catalog import spelling
from lapwing.catalog.checks import check_text
from lapwing.catalog.place import refuse, within

LONGEST_VIEW = 65_536  # bytes of UTF-8


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A subquery with a name: a question that names the view means its text in parentheses.

    A view says nothing that an analyst could not say too. So it is kept as text, and each question that uses it binds
    and checks it.

    Args:
        name: As questions call it.
        sql: A SELECT, at most 64 KiB.

    Raises:
        CatalogError: Starting with `views.<name>.sql`.
    """

    name: str
    sql: str

    def __post_init__(self) -> None:
        with within(f"views.{spelling.key(self.name)}"):
            check_text("", self.name)
            check_text(".sql", self.sql.strip() if spelling.storable(self.sql) else self.sql)
            size = len(self.sql.encode())
            if size > LONGEST_VIEW:
                refuse(".sql", f"{size} bytes; at most {LONGEST_VIEW} are allowed, write several views")
