"""`lapwing local rappor`: a task for any text, by Bloom filters and two layers of noise."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Final, final

import typer

import lapwing as lw
from lapwing.cli.local import task_options as options
from lapwing.cli.options import above_zero, amount, grouped
from lapwing.errors import InvalidParameter
from lapwing.local.client import MOST_BYTES
from lapwing.local.client.rappor import MOST_BITS, MOST_COHORTS, MOST_HASHES

if TYPE_CHECKING:
    from lapwing.local import BasicRappor, Rappor

EXAMPLE: Final = """\b
Examples:
  lapwing local rappor --question "Your home page?" --epsilon 1 --forever 3
    --opens 2027-01-01 --closes 2027-12-31 --output task.toml
  lapwing local estimate task.toml reports.ndjson --candidates pages.txt"""
BYTES: Final = 200
BITS: Final = 32
COHORTS: Final = 64
"""Of a task, unless others are given."""

Amount = Annotated[Fraction, amount(above_zero("--epsilon"), "The privacy loss of one report.", show_default=False)]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeOptions:
    """What a report is made of: a Bloom filter, in cohorts."""

    bits: Annotated[int, typer.Option(metavar="COUNT", help="Bits of the Bloom filter.")] = BITS
    hashes: Annotated[int, typer.Option(metavar="COUNT", help="Bits that an answer sets.")] = 1
    cohorts: Annotated[int, typer.Option(metavar="COUNT", help="Cohorts that devices are in.")] = COHORTS


@grouped
def rappor(
    question: options.Question,
    opens: options.Opens,
    closes: options.Closes,
    epsilon: Amount,
    *,
    forever: Annotated[
        Fraction | None,
        amount(
            above_zero("--forever"),
            "The privacy loss of all reports of an answer that never changes. Without it, one report without memory.",
        ),
    ] = None,
    value: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="A possible answer, if answers are a list; repeat for each."),
    ] = None,
    most_bytes: Annotated[int, typer.Option(metavar="COUNT", help="The most bytes of an answer.")] = BYTES,
    shape: ShapeOptions,
    unit: Annotated[str, typer.Option(metavar="TEXT", help="The unit that noise hides.")] = "one answer of one person",
    written: options.TaskFileOptions,
) -> None:
    """Write a task for RAPPOR: people may answer any text, and you look for candidate texts later.

    With --forever, the device remembers its answer. If --forever equals --epsilon, it always sends the same report.
    Several hashes are for compatibility; one is the most accurate. With --value, each value has a bit, without hashing.
    """
    options.check_whole("--most-bytes", most_bytes, 1, MOST_BYTES)
    if value:
        filters = {"--bits": shape.bits != BITS, "--hashes": shape.hashes != 1, "--cohorts": shape.cohorts != COHORTS}
        options.check_unused(filters | {"--most-bytes": most_bytes != BYTES}, "with --value")
    answers = tuple(value) if value else lw.local.client.Text(most_bytes)
    mechanism = (
        _basic(epsilon, forever, value) if value else _made(epsilon, forever, shape.bits, shape.hashes, shape.cohorts)
    )
    task = lw.local.new_task(
        question, answers, mechanism, opens=opens, closes=closes, unit=unit, retention_days=written.retention_days
    )
    options.write_task(task, written.output, force=written.force)


def _made(epsilon: Fraction, forever: Fraction | None, bits: int, hashes: int, cohorts: int) -> "Rappor":
    options.check_whole("--hashes", hashes, 1, MOST_HASHES)
    options.check_whole("--bits", bits, 2 * hashes, MOST_BITS)
    options.check_whole("--cohorts", cohorts, 1, MOST_COHORTS)
    shape = {"bits": bits, "hashes": hashes, "cohorts": cohorts}
    if forever is None:
        return lw.local.Rappor.once(epsilon, **shape)
    if forever == epsilon:
        return lw.local.Rappor.memoised(epsilon, **shape)
    return lw.local.Rappor.full(epsilon, forever, **shape)


def _basic(epsilon: Fraction, forever: Fraction | None, values: Sequence[str]) -> "BasicRappor":
    options.check_values("--value", values)
    if forever is None:
        raise InvalidParameter("A list of values without memory is symmetric unary encoding: use `lapwing local task`.")
    if forever == epsilon:
        return lw.local.BasicRappor.memoised(epsilon, len(values))
    return lw.local.BasicRappor.full(epsilon, forever, len(values))
