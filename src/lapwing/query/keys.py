"""Group keys: what an answer has one row for."""

from dataclasses import dataclass

from lapwing.query.expressions.expression import Column, Constant, Expression, written_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A grouping expression.

    Its values are public, and each of them appears in the answer; `other` names the cell of all unlisted and NULL
    values. Or, if `values` is None, they are private: those that enough units hold are released at a price.
    """

    expression: Expression
    values: tuple[Constant, ...] | None
    other: str | None = None

    def __str__(self) -> str:
        return str(self.expression)

    @property
    def private(self) -> bool:
        """Whether the key's values are private."""
        return self.values is None

    @property
    def name(self) -> str:
        """The key's name for people: of a column what the question calls it, else the columns that it is made of."""
        columns = " and ".join(sorted(written_in(self.expression)))
        return columns if isinstance(self.expression, Column) else f"an expression of {columns or 'nothing'}"

    @property
    def domain(self) -> tuple[Constant, ...]:
        """Every value of a public key, in order; none of a private one."""
        listed = self.values or ()
        return listed if self.other is None else (*listed, self.other)
