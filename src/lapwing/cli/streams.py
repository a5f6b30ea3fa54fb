"""The two streams: results on standard output, everything said about them on standard error; texts as they are."""

import shlex
import shutil
import sys
import textwrap
from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import Final

from lapwing.cli.characters import visible
from lapwing.errors import AllowanceExhausted, LapwingError, QueryRefused, RefusalCause


def on_terminal() -> bool:
    """Tell whether a person reads standard output."""
    return sys.stdout.isatty()


def print_text(content: str) -> None:
    """Write a result as it is, at once: a program that reads it may wait for it while the command goes on."""
    sys.stdout.write(content)
    sys.stdout.flush()


def print_bytes(content: bytes) -> None:
    """Write a binary result as it is."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def complain(message: str) -> None:
    """Write a message as it is on standard error."""
    sys.stdout.flush()
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()


Ways = Mapping[str, str]
"""By the name of a parameter that is missing, or of what only a curator gives: how to get it at one door."""
ASK_FOR_MORE: Final = "To ask for it: `lapwing requests ask {} --share {}% --reason TEXT`."
"""With the data set and a limit in percent that is enough."""
OF_CAUSE: Final = {RefusalCause.ASSUMES_ROWS: "assuming_count", RefusalCause.NEEDS_DELTA: "delta"}
"""By the cause of a refusal: the parameter that is missing."""
COMMAND_LINE: Final[Ways] = {
    "epsilon": "Give --epsilon 0.5. Or give --error 50, the ± that its 95 % intervals may have. "
    "`lapwing explain` shows for free how good a result is at a cost.",
    "assuming_count": "Say how many you assume: --assuming-count 1000. Or give --epsilon 0.5.",
    "delta": "Here: --delta 1e-8.",
    "larger_limit": ASK_FOR_MORE,
}
SHELL: Final[Ways] = {
    "epsilon": "Type `.epsilon 0.5`. Or type `.error 50`, the ± that its 95 % intervals may have.",
    "assuming_count": "The shell has no assuming_count; set `.epsilon 0.5`.",
    "delta": "Here: `.delta 1e-8`.",
    "larger_limit": ASK_FOR_MORE,
}
NOTEBOOK: Final[Ways] = {
    "epsilon": "Write `%%lapwing --epsilon 0.5`. Or write `%%lapwing --error 50`, the ± of its 95 % intervals.",
    "assuming_count": "Cells have no assuming_count; write `%%lapwing --epsilon 0.5`.",
    "delta": "Here: `%%lapwing --delta 1e-8`.",
    "larger_limit": "To ask for it, use the page Requests of the console.",
}


def coded(error: Exception, ways: Ways = COMMAND_LINE) -> str:
    """Return the message of an error, and after a refusal its code, by which people find it in the reference.

    Args:
        ways: How what is missing is given where the message is read.
    """
    if isinstance(error, QueryRefused):
        way = "" if error.curator_remedy else ways.get(OF_CAUSE.get(error.cause, ""), "")
        if way and error.cause is RefusalCause.ASSUMES_ROWS:  # all that there is to do, by its name at this door
            error, way = error.reworded(error.reason, way), ""
        return " ".join(filter(None, (str(error), way, f"[{error.cause.value}]")))
    way = ways.get(error.missing, "") if isinstance(error, LapwingError) else ""
    if isinstance(error, LapwingError) and error.missing == "epsilon" and way:
        return f"The query has no cost yet. {way}"
    if isinstance(error, AllowanceExhausted) and error.larger_limit is not None:
        way = larger_limit_from(error.dataset, error.larger_limit, ways)
    return " ".join(filter(None, (str(error), way)))


def larger_limit_from(dataset: str, share: Fraction, ways: Ways = COMMAND_LINE) -> str:
    """Say how to ask for a larger limit where the message is read."""
    return ways["larger_limit"].format(shlex.quote(dataset) if dataset else "DATASET", ceil(100 * share))


def complain_of(error: Exception, ways: Ways = COMMAND_LINE) -> None:
    """Write what was wrong on standard error, with what was added to it; for a person, broken between words."""
    message = f"lapwing: {visible(coded(error, ways))}"
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        message = textwrap.fill(message, width, break_long_words=False, break_on_hyphens=False)
    complain("\n".join([message, *getattr(error, "__notes__", ())]))
