"""The list of questions for people: what is asked of them, what leaves their device, and what epsilon means for them.

All of it is in the public documents of the tasks. The page has no script.
"""

from collections.abc import Iterable
from decimal import ROUND_CEILING, Decimal
from html import escape
from typing import Final

from lapwing.collector.collector import Collector
from lapwing.languages import Language, Phrase, say
from lapwing.local import client

STEP: Final = Decimal("0.0001")
LEAVING: Final = (
    say(
        "Your device draws random noise before it sends anything. Only a noisy report leaves it. Your answer stays on "
        "your device."
    ),
    say("The page of a question shows you the report before it is sent."),
    say(
        "A report names its question, but not you. Lapwing sets no cookie and stores no network address. Someone who "
        "watches your network can see that you sent a report."
    ),
)
MEANING: Final = (
    say(
        "Epsilon (ε) limits what anyone can learn about your answer from a report. A small ε means much noise and "
        "strong protection. At ε = 0 a report would say nothing about you."
    ),
    say(
        "Each question above says what its ε means for one report. If you send several reports, they can say more "
        "together. The page of the question counts them."
    ),
)


def task_list(template: str, collectors: Iterable[Collector], language: Language) -> str:
    """Return the page for a reader, in HTML."""
    tasks = [_task(one.task, language, closed=one.closed) for one in collectors]
    return template.format(
        language=escape(language.tag),
        title=escape(language.text(say("Questions"))),
        tasks="\n".join(tasks) or _paragraph(say("There is no question here now."), language),
        leaves=escape(language.text(say("Your device sends only noisy reports"))),
        leaving="\n".join(_paragraph(one, language) for one in LEAVING),
        means=escape(language.text(say("Your protection: epsilon"))),
        meaning="\n".join(_paragraph(one, language) for one in MEANING),
    )


def _task(task: client.Task, language: Language, *, closed: bool) -> str:
    day = task.closes.strftime(language.convention.day)
    until = say("This question takes no reports today.") if closed else say("You can answer until {day}.", day=day)
    name = f'<a href="{escape(task.id)}/">{escape(task.question)}</a>'
    return (
        f"<section>\n<h2>{name}</h2>\n{_paragraph(until, language)}\n{_paragraph(_promise(task), language)}\n</section>"
    )


def _promise(task: client.Task) -> Phrase:
    """Return what one report can tell at most; both figures are rounded up."""
    upper, lower = task.ratio.numerator, task.ratio.denominator
    percent = -(-1000 * upper // (upper + lower)) / 10
    return say(
        "Someone who thought two answers equally likely can become at most {percent} sure of one. This is true for "
        "anyone, with any other knowledge. It is the meaning of ε = {epsilon}.",
        percent=f"{percent:g} %",
        epsilon=f"{task.epsilon.quantize(STEP, ROUND_CEILING).normalize():f}",
    )


def _paragraph(text: Phrase, language: Language) -> str:
    return f"<p>{escape(language.text(text))}</p>"
