"""Answers of respondents: typed unseen, or lines of standard input; and those of many people, for tests."""

import csv
import getpass
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import lapwing as lw
from lapwing.cli.local.task_mechanisms import answer_of
from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    from lapwing.local.client import Answer, Answers, Task

LISTED: Final = 8
"""Values that a prompt lists."""
MOST_TYPED: Final = 1 << 20


def typed_answer(task: "Task") -> "Answer":
    """Return the answer to each question, typed without being shown, or as the lines of standard input."""
    each = _questions(task)
    if not sys.stdin.isatty():
        return answer_of(
            task, [line.rstrip("\r") for line in sys.stdin.read(MOST_TYPED).removesuffix("\n").split("\n")]
        )
    return answer_of(task, [getpass.getpass(f"{name} ({_allowed(what)}; it is not shown) ") for name, what in each])


def answers_of_people(task: "Task", file: Path) -> Iterator["Answer"]:
    """Yield the answers of many people from a CSV file: a column for each question, or one without regard to its name.

    Raises:
        InvalidParameter: If a column is missing.
    """
    names = [name for name, _ in _questions(task)]
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            rows = csv.DictReader(opened, strict=True)
            header = list(rows.fieldnames or ())
            columns = names if set(names) <= set(header) else header if len(header) == len(names) == 1 else []
            if not columns:
                raise InvalidParameter(f"{file} must have the columns {', '.join(names)}; it has {', '.join(header)}.")
            for row in rows:
                yield answer_of(task, [row[column] or "" for column in columns])
    except (UnicodeDecodeError, csv.Error):
        raise InvalidParameter(f"{file} is no CSV file in UTF-8 with a line of names.") from None


def _questions(task: "Task") -> "list[tuple[str, Answers]]":
    asked = task.asked
    if isinstance(asked, lw.local.client.Attributes):
        return [(question, one.answers) for question, one in asked.each]
    return [(task.question, asked.answers)]


def _allowed(answers: "Answers") -> str:
    if isinstance(answers, lw.local.client.Values):
        more = " / …" if len(answers.texts) > LISTED else ""
        return " / ".join(answers.texts[:LISTED]) + more
    if isinstance(answers, lw.local.client.Number):
        return f"a number from {answers.lower} to {answers.upper}"
    return f"a text of at most {answers.most_bytes} bytes"
