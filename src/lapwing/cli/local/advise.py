"""`lapwing local advise`: every mechanism with its error, and what an accuracy takes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

from rich.table import Table

import lapwing as lw
from lapwing.cli.characters import to_json
from lapwing.cli.console import Fitted, new_table, note, print_text, show, text
from lapwing.cli.local.output import aligned
from lapwing.cli.local.task_options import check_whole, in_decimals
from lapwing.cli.options import ReportFormatName
from lapwing.errors import InvalidParameter
from lapwing.local.client import MOST_VALUES

if TYPE_CHECKING:
    from lapwing.local import Advice, MeanAdvice, MeanOption, Option
    from lapwing.local.client import Number


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Two of the ε of a report, the number of respondents and the half-width of an interval; the third follows."""

    epsilon: Fraction | None
    respondents: int | None
    within: Fraction | None
    confidence: Fraction

    def met(
        self,
        respondents_needed: Callable[[Fraction, Fraction], int],
        epsilon_needed: Callable[[int, Fraction], Fraction],
    ) -> tuple[Fraction, int, str]:
        """Return ε and respondents, and what to say of the third.

        Args:
            respondents_needed: Given ε and half-width.
            epsilon_needed: Given respondents and half-width.
        """
        if self.within is None:
            return self.epsilon or Fraction(1), self.respondents or 1, ""
        width = f"±{in_decimals(self.within)}"
        if self.epsilon is not None:
            people = respondents_needed(self.epsilon, self.within)
            return self.epsilon, people, f"{people:,} respondents for {width} at epsilon {in_decimals(self.epsilon)}"
        people = self.respondents or 1
        epsilon = epsilon_needed(people, self.within)
        return epsilon, people, f"epsilon {in_decimals(epsilon)} for {width} with {people:,} respondents"


def advise_shares(values: int, goal: Goal, form: ReportFormatName) -> None:
    """Show every mechanism for a list of values."""
    check_whole("--values", values, 2, MOST_VALUES)
    _check_within(goal, Fraction(1), "a share is from 0 to 1")
    epsilon, respondents, needed = goal.met(
        lambda epsilon, width: lw.local.respondents_needed(epsilon, values, width, goal.confidence),
        lambda people, width: lw.local.epsilon_needed(people, values, width, goal.confidence),
    )
    advice = lw.local.advise(epsilon, values, respondents)
    _show(advice, "error of a share", needed, form)


def advise_number(number: "Number", goal: Goal, form: ReportFormatName) -> None:
    """Show every mechanism for a mean."""
    half = (Fraction(number.upper) - Fraction(number.lower)) / 2
    _check_within(goal, half, "half of what is between the bounds")
    epsilon, respondents, needed = goal.met(
        lambda epsilon, width: lw.local.mean_respondents_needed(epsilon, number, width, goal.confidence),
        lambda people, width: lw.local.mean_epsilon_needed(people, number, width, goal.confidence),
    )
    advice = lw.local.advise_mean(epsilon, number, respondents)
    needed = f"{needed}, by {advice.best.name}" if needed else ""
    _show(advice, "error of the mean", needed, form)


def _check_within(goal: Goal, below: Fraction, why: str) -> None:
    if goal.within is not None and goal.within >= below:
        raise InvalidParameter(f"--within is {in_decimals(goal.within)}; it must be below {in_decimals(below)}: {why}.")


def _show(advice: "Advice | MeanAdvice", error: str, needed: str, form: ReportFormatName) -> None:
    if form is ReportFormatName.json:
        options = [_option(option) for option in advice.options]
        document = {"epsilon": float(advice.epsilon), "respondents": advice.respondents, "options": options}
        print_text(to_json(document))
    else:
        show(Fitted(_table(advice, error)))
    if needed:
        note("needed", needed)


def _table(advice: "Advice | MeanAdvice", error: str) -> Table:
    """Return every mechanism with its error and what it takes, the most accurate first."""
    of_shares = isinstance(advice, lw.local.Advice)
    names = (error, "at worst", "bytes", *(("steps",) if of_shares else ()))
    table = new_table("mechanism", *(("parameters",) if of_shares else ()), *names, numbers=names)
    errors = aligned([option.error for option in advice.options])
    worst = aligned([option.worst for option in advice.options])
    options: Sequence[Option | MeanOption] = advice.options
    for option, accuracy, most in zip(options, errors, worst, strict=True):
        cells = [option.name, accuracy, most, f"{option.report_bytes:,}"]
        if isinstance(option, lw.local.Option):
            sizes = {name: value for name, value in option.mechanism.parameters.items() if "threshold" not in name}
            cells.insert(1, ", ".join(f"{name} {value:,}" for name, value in sizes.items()))
            cells.append(f"{option.operations:,}")
        table.add_row(*map(text, cells))
    return table


def _option(option: "Option | MeanOption") -> dict[str, object]:
    """Return one mechanism, thresholds of 64 bits as texts; for shares also its name in a task, which two may share."""
    of_shares = isinstance(option, lw.local.Option)
    return {
        "name": option.name,
        **({"mechanism": option.mechanism.name} if of_shares else {}),
        "parameters": {name: str(value) for name, value in option.mechanism.parameters.items()},
        "error": option.error,
        "worst": option.worst,
        "report_bytes": option.report_bytes,
        **({"operations": option.operations} if isinstance(option, lw.local.Option) else {}),
    }
