"""Group keys: what an answer has one row for."""

from dataclasses import dataclass

from lapwing.query.expression import Column, Constant


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A grouping column whose values are public; `other` names the cell of all unlisted and NULL values."""

    column: Column
    values: tuple[Constant, ...]
    other: str | None = None

    def __str__(self) -> str:
        return str(self.column)

    @property
    def domain(self) -> tuple[Constant, ...]:
        """Every value of the key that appears in the answer, in order."""
        return self.values if self.other is None else (*self.values, self.other)
