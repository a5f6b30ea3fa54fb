"""What every mechanism is made of: coins of exact laws, and rules: its integers, their worst ratio, how it draws."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from importlib import import_module
from typing import ClassVar, Final, Generic, TypeVar, final


class TaskRefused(ValueError):
    """The task makes no sense, or states another ε than its thresholds have; nothing was sent."""


class AnswerRefused(ValueError):
    """The task does not allow this answer; nothing was sent."""


# Random words.

WHOLE: Final = 1 << 64
"""How many words there are: a coin of threshold T falls with probability T / WHOLE."""

Read = Callable[[int], bytes]
"""A source of so many random bytes, such as `os.urandom`."""


class NoRandomness(OSError):
    """The source of randomness gave too few bytes; nothing was sent."""


def exactly(read: Read, size: int) -> bytes:
    """Return so many random bytes, or raise NoRandomness."""
    data = read(size)
    if len(data) != size:
        raise NoRandomness(f"The source of randomness gave {len(data)} of {size} bytes; nothing was sent.")
    return data


def coin(threshold: int, read: Read) -> bool:
    """Return True with probability threshold / 2^64, exactly."""
    return int.from_bytes(exactly(read, 8), "little") < threshold


def below(bound: int, read: Read) -> int:
    """Return a uniform integer below a bound: words beyond the last whole multiple of it are dropped."""
    limit = WHOLE - WHOLE % bound
    while True:
        word = int.from_bytes(exactly(read, 8), "little")
        if word < limit:
            return word % bound


def others(count: int, bound: int, true: int, read: Read) -> list[int]:
    """Return a uniform set of integers below a bound, none of which is `true` (Floyd's sampling)."""
    chosen: set[int] = set()
    for last in range(bound - 1 - count, bound - 1):
        pick = below(last + 1, read)
        chosen.add(last if pick in chosen else pick)
    return [index + (index >= true) for index in chosen]


# Rules.

PLACES: Final = Decimal("1e-12")
"""Every ε of a task is rounded up to a multiple of this."""
_BITS: Final = 512
THRESHOLDS: Final = range(1, WHOLE)
"""What a coin's threshold may be."""
UNCHANGED: Final = "epsilon_unchanged"
"""The ε of all reports together, however many, of an answer that never changes."""
ALL: Final = "epsilon_all"
"""The ε of all reports together, of every answer that the mechanism's parameters allow."""

Said = int | str | Sequence["Said"]
"""What a report says."""
Parameters = Mapping[str, int]
Memory = Mapping[str, object]
"""What a device keeps between reports of one task, as JSON can hold it."""
Ratio = Callable[[Parameters, int], Fraction]
After = Callable[[Parameters, int, int], tuple[Fraction, Fraction | None]]

Code = TypeVar("Code", int, str)
"""An answer as a mechanism takes it: the number of a value or of a point, or a text."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Generic[Code]):
    """One mechanism whose reports depend on the answer and on fresh randomness only.

    Args:
        ranges: Its parameters in order, with what they may be, given the size of what may be answered: the number of
            values or points, or the most bytes of a text.
        ratio: The most by which a report can be likelier for one answer than for another, exactly, given parameters and
            size.
        draw: What a report says, given parameters, size, answer and randomness.
    """

    remembers: ClassVar[bool] = False
    ranges: Callable[[int], Mapping[str, range]]
    ratio: Ratio
    draw: Callable[[Parameters, int, Code, Read], Said]
    more: Mapping[str, Ratio] = field(default_factory=dict)

    def say(
        self, parameters: Parameters, size: int, true: Code, read: Read, memory: Memory, period: int
    ) -> tuple[Said | None, Memory]:
        """Return what a report says, and the memory as it was."""
        return self.draw(parameters, size, true, read), memory

    def together(self, parameters: Parameters, size: int, reports: int) -> tuple[Fraction, Fraction | None]:
        """Return the ratio of so many reports together, twice: nothing depends on whether the answer changes."""
        whole = self.ratio(parameters, size) ** reports
        return whole, whole


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRule(Generic[Code]):
    """One mechanism whose reports depend on what the device kept, too.

    Args:
        ranges: As of a `Rule`; ratio is that of any one report by itself.
        ratio: As of a `Rule`; ratio is that of any one report by itself.
        more: The ratios of all reports together, by the name of the ε that a task states for each: `epsilon_unchanged`,
            `epsilon_all`.
        draw: Also gets the memory, empty at first, and the period's number, from 1; returns what the report says, or
            None if none is due in this period, and the memory to keep.
        after: The ratio of so many reports together, for an answer that never changes and for answers that may, given
            parameters, size and number; None for the latter if there is no bound. Without it, `epsilon_all` holds after
            the first report.
    """

    remembers: ClassVar[bool] = True
    ranges: Callable[[int], Mapping[str, range]]
    ratio: Ratio
    more: Mapping[str, Ratio]
    draw: Callable[[Parameters, int, Code, Read, Memory, int], tuple[Said | None, Memory]]
    after: After | None = None

    def say(
        self, parameters: Parameters, size: int, true: Code, read: Read, memory: Memory, period: int
    ) -> tuple[Said | None, Memory]:
        """Return what a report says, if one is due, and the memory to keep."""
        return self.draw(parameters, size, true, read, memory, period)

    def together(self, parameters: Parameters, size: int, reports: int) -> tuple[Fraction, Fraction | None]:
        """Return the ratio of so many reports together: for an answer that never changes, and for any; None: no bound.

        Raises:
            KeyError: For a rule that says neither `after` nor `epsilon_all`.
        """
        if not reports:
            return Fraction(1), Fraction(1)
        if self.after is not None:
            return self.after(parameters, size, reports)
        whole = self.more[ALL](parameters, size)
        return whole, whole


AnyRule = Rule[Code] | MemoryRule[Code]


@final
class RuleTable(Mapping[str, AnyRule[Code]]):
    """Mechanisms by name. The file of one is read when it is first asked for: a coin needs no sketches.

    Args:
        homes: For each name the file, and the table in it.
    """

    def __init__(self, homes: Mapping[str, str]) -> None:
        self.homes = homes

    def __getitem__(self, name: str) -> AnyRule[Code]:
        file, table = self.homes[name].split(":")
        rule: AnyRule[Code] = getattr(import_module(f".{file}", __package__), table)[name]
        return rule

    def __iter__(self) -> Iterator[str]:
        return iter(self.homes)

    def __len__(self) -> int:
        return len(self.homes)

    def __contains__(self, name: object) -> bool:
        return name in self.homes

    def without(self, *names: str) -> "RuleTable[Code]":
        """Return the table without some."""
        return RuleTable({name: home for name, home in self.homes.items() if name not in names})


def either(ratio: Fraction) -> Fraction:
    """Return a ratio or its inverse, whichever is larger."""
    return max(ratio, 1 / ratio)


def response_ratio(threshold: int, count: int) -> Fraction:
    """Return p(k − 1)/(1 − p): the ratio of k-ary randomized response that tells the truth with probability p."""
    return either(Fraction(threshold * (count - 1), WHOLE - threshold))


def epsilon_up(ratio: Fraction) -> Decimal:
    """Return ln(ratio), for a ratio ≥ 1, rounded up to 12 decimal places.

    Python's decimal logarithm is correctly rounded, so with 60 digits the difference errs by less than 1e-50. Of long
    integers, such as those of many reports together, the first 512 bits do: the ratio is larger by less than 2^-500.
    """
    if ratio == 1:
        return Decimal(0)
    shift = max(0, ratio.denominator.bit_length() - _BITS)
    top, bottom = (ratio.numerator >> shift) + bool(shift), ratio.denominator >> shift
    context = Context(prec=60)
    logarithm = context.subtract(context.ln(Decimal(top)), context.ln(Decimal(bottom)))
    return context.add(logarithm, Decimal("1e-50")).quantize(PLACES, rounding=ROUND_CEILING, context=context)
