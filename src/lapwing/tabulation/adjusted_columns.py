"""Adjusted numbers as columns beside the released ones, with what adjusting does to their errors."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from lapwing.answer.consistent import ConsistentAnswer, released_numbers
from lapwing.machine import progress
from lapwing.query.derivation.derived import MeasureValue
from lapwing.release.nested_keys import NestedKeys
from lapwing.tabulation.common_table import Integers
from lapwing.tabulation.consistency import adjusted_groups
from lapwing.tabulation.coverage import AdjustmentEffect, JointNoise, effects
from lapwing.tabulation.declaration import TableRelease, UnreliableCells
from lapwing.tabulation.offer import Offer
from lapwing.tabulation.public_totals import FixedCells, Number

if TYPE_CHECKING:
    import pyarrow as pa

    from lapwing.answer import Answer

SUFFIX: Final = "_adjusted"
SAID: Final = (
    "Simulated from the adjusted numbers, on average over the cells of this table. The interval of a released number "
    "has a guarantee. An adjusted number has none."
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AdjustedTable:
    """The adjusted numbers of a table: none where its numbers do not add up.

    Args:
        view: Its rows with adjusted numbers.
        columns: The names of the numbers that are adjusted.
        effects: By column; empty if they were not simulated.
    """

    view: ConsistentAnswer
    columns: tuple[str, ...]
    effects: Mapping[str, AdjustmentEffect]

    def beside(self, rows: "pa.Table", release: TableRelease) -> "pa.Table":
        """Return rows with the adjusted columns; where a released number is left out, the adjusted one is, too."""
        import pyarrow as pa  # here: a plan needs no Arrow
        import pyarrow.compute as pc

        adjusted = self.view.to_arrow()
        for name in self.columns:
            numbers = adjusted[name]
            if release.unreliable_cells is not UnreliableCells.MARK:
                numbers = pc.if_else(rows[f"{name}_unreliable"], pa.scalar(None, numbers.type), numbers)
            rows = rows.append_column(f"{name}{SUFFIX}", numbers)
        return rows

    def facts(self) -> dict[str, Any]:
        """Return what the manifest has of it."""
        if not self.effects:
            return {}
        columns = {
            f"{name}{SUFFIX}": {
                "whole_numbers": True,
                "average_coverage": effect.average_coverage,
                "error_relative_to_released": effect.error / effect.raw_error if effect.raw_error else 1.0,
                "simulations": effect.simulations,
            }
            for name, effect in self.effects.items()
        }
        return {"adjusted": {"columns": columns, "note": SAID}}


def adjusted_tables(
    answers: Sequence["Answer"],
    offer: Offer,
    nestings: Sequence[NestedKeys] = (),
    fixed: FixedCells | None = None,
    *,
    top_down: bool = False,
    simulates: bool = True,
) -> Iterator[AdjustedTable]:
    """Yield the adjusted numbers of each table.

    Guarantee:
        Post-processing of released numbers: `consistency` and `coverage` have the argument.

    Args:
        offer: Says which numbers were measured together.
        nestings: Keys that lie inside others.
        fixed: The cells that public totals fix.
        top_down: Whether tables with few cells come first.
        simulates: Whether the effect of adjusting is simulated, which is most of the work.
    """
    questions = [answer.plan.question for answer in answers]
    laws = {(place, m): law for place, answer in enumerate(answers) for m, law in answer.mechanisms.items()}
    joint = [
        JointNoise(
            workload=workload,
            numbers={
                number: member
                for member in workload.members
                if (number := (member[0], offer.measure(member))) in laws
                if laws[number] == workload.noise(member)
            },
        )
        for workload in offer.workloads
    ]
    adjusted: dict[Number, Integers] = {}
    found: dict[Number, AdjustmentEffect] = {}
    with progress.work("Adjusting numbers so that they add up"):
        groups = adjusted_groups(answers, nestings, fixed, top_down=top_down)
    for group in groups:
        adjusted.update(group.numbers)
        if simulates:
            mine = [one for one in joint if one.numbers.keys() & set(group.numbers)]
            with progress.work("Simulating what adjusting does"):
                found.update(effects(group, laws, mine, questions))
    for place, answer in enumerate(answers):
        numbers = {
            measure: adjusted.get((place, measure), values) for measure, values in released_numbers(answer).items()
        }
        moved = [measure for measure in numbers if (place, measure) in adjusted]
        columns = {
            output.name: output.value.measure
            for output in answer.plan.outputs
            if isinstance(output.value, MeasureValue)
        }
        yield AdjustedTable(
            view=ConsistentAnswer.of(answer, numbers, moved),
            columns=tuple(name for name, m in columns.items() if m in moved),
            effects={name: found[place, m] for name, m in columns.items() if (place, m) in found},
        )
