"""What relations have in common that are made from one selection, or from the rows of two.

These two classes are abstract: each relation is one of their final descendants, in a file of its own that proves its
step of what `relation` claims, and states its facts where they differ from these.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from lapwing.query.expressions.expression import ColumnReference, Expression, columns_of
from lapwing.query.relations.public_rows import PublicRows
from lapwing.query.relations.relation import FilteredRows


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSource:
    """A relation made from one selection."""

    source: FilteredRows

    row_by_row: ClassVar[bool] = False
    meets: ClassVar[bool] = False
    hands_on: ClassVar[bool] = False
    reads_whole_rows: ClassVar[bool] = False

    def __post_init__(self) -> None:
        # What does not go row by row looks at several rows of a unit: nothing is proven of that if units share them.
        if not self.row_by_row:
            self.source.require_one_unit()

    @property
    def sources(self) -> tuple[FilteredRows, ...]:
        """The selection."""
        return (self.source,)

    @property
    def uses(self) -> tuple[str, ...]:
        """Nothing beside its construct."""
        return ()

    @property
    def public(self) -> PublicRows | None:
        """None: it reads no public rows."""
        return None

    def rebuilt(self, sources: Sequence[FilteredRows]) -> Self:
        """Return the same of another selection."""
        return replace(self, source=sources[0])

    def narrowed(self, read: frozenset[str]) -> Self:
        """Return itself: it has no second source."""
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSources:
    """A selection's rows joined with rows of another, on equalities.

    Args:
        shown: What is taken of the other rows.
        added: That, under names of its own.
        on: Pairs of an expression over the source and one over the other side.
    """

    source: FilteredRows
    other: FilteredRows
    shown: tuple[Expression, ...]
    added: tuple[ColumnReference, ...]
    on: tuple[tuple[Expression, Expression], ...]

    row_by_row: ClassVar[bool] = False
    meets: ClassVar[bool] = False
    hands_on: ClassVar[bool] = True
    reads_whole_rows: ClassVar[bool] = False
    public: ClassVar[PublicRows | None] = None

    def __post_init__(self) -> None:
        if not self.row_by_row:
            self.source.require_one_unit()
        self.other.require_one_unit()

    @property
    def sources(self) -> tuple[FilteredRows, ...]:
        """Both sides."""
        return (self.source, self.other)

    @property
    def condition(self) -> Expression | None:
        """A condition on the pair, over the source's columns and the added ones."""
        return None

    @property
    def computed(self) -> tuple[tuple[Expression, ...], ...]:
        """What either side compares, the condition on the pair, and what is shown."""
        condition = () if self.condition is None else (self.condition,)
        return (*(left for left, _ in self.on), *condition), (*self.shown, *(right for _, right in self.on))

    def rebuilt(self, sources: Sequence[FilteredRows]) -> Self:
        """Return the same of other sides."""
        return replace(self, source=sources[0], other=sources[1])

    def narrowed(self, read: frozenset[str]) -> Self:
        """Return the join that shows only what is read, of which its own condition is a part."""
        read |= columns_of(self.condition)
        taken = [pair for pair in zip(self.shown, self.added, strict=True) if pair[1].name in read]
        return replace(self, shown=tuple(value for value, _ in taken), added=tuple(column for _, column in taken))
