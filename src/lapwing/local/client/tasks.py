"""What is asked, and exactly how an answer is made noisy: a task that states another ε than it has is refused."""

import hashlib
import json
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Final, final

from .answers import Values, plain, printable
from .asked import EPSILON, Asked, Attributes
from .refusals import TaskRefused
from .rules import ALL, UNCHANGED, epsilon_up

VERSION: Final = 1
_OF: Final = {UNCHANGED: "all reports of an answer that never changes", ALL: "all reports together"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is asked, and exactly how an answer is made noisy; all of it is public.

    Args: asked: what may be answered, and the mechanism. epsilons: every ε that applies, by name; "epsilon" is that of
        one report. unit: whose answer is hidden. opens, closes: the days on which reports are taken. retention_days:
        for how long after that they are kept.
    Raises: TaskRefused if that cannot be meant, or an ε is not that of the thresholds.
    """

    question: str
    asked: Asked | Attributes
    epsilons: tuple[tuple[str, Decimal], ...]
    unit: str
    opens: date
    closes: date
    retention_days: int

    def __post_init__(self) -> None:
        _check(self)
        true = true_epsilons(self.asked)
        if [name for name, _ in self.epsilons] != [name for name, _ in true]:
            raise TaskRefused(f"The mechanism {self.mechanism} has {', '.join(name for name, _ in true)}; state them.")
        for (name, stated), (_, computed) in zip(self.epsilons, true, strict=True):
            if stated != computed:
                raise TaskRefused(
                    f"The task states {name} {stated}, but its thresholds have {name} {plain(computed)}; send nothing."
                )

    @property
    def values(self) -> tuple[str, ...]:
        """What may be answered, if that is a list, and else nothing."""
        answers = self.asked.answers if isinstance(self.asked, Asked) else None
        return answers.texts if isinstance(answers, Values) else ()

    @property
    def mechanism(self) -> str:
        """The mechanism's name."""
        return self.asked.mechanism

    @property
    def parameters(self) -> tuple[tuple[str, int], ...]:
        """The mechanism's integers, by name."""
        return self.asked.parameters

    @property
    def epsilon(self) -> Decimal:
        """ε of one report."""
        return dict(self.epsilons)[EPSILON]

    @property
    def ratio(self) -> Fraction:
        """The most by which a report can be likelier for one answer than for another."""
        return self.asked.ratios[EPSILON]

    @property
    def document(self) -> dict[str, object]:
        """The task as JSON holds it; integers that may have 64 bits, and each ε, are texts."""
        return {
            "version": VERSION,
            "question": self.question,
            **self.asked.document,
            **{name: plain(epsilon) for name, epsilon in self.epsilons},
            "unit": self.unit,
            "opens": self.opens.isoformat(),
            "closes": self.closes.isoformat(),
            "retention_days": self.retention_days,
        }

    @property
    def digest(self) -> str:
        """SHA-256 of the document in JSON with sorted keys, without spaces, in UTF-8."""
        text = json.dumps(self.document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()

    @property
    def id(self) -> str:
        """The first 128 bits of the digest, which every report names."""
        return self.digest[:32]

    @property
    def promise(self) -> str:
        """What reports can tell at most, in words; the percentage is rounded up."""
        sure = -(-1000 * self.ratio.numerator // (self.ratio.numerator + self.ratio.denominator)) / 10
        one = (
            f"epsilon {plain(self.epsilon)}: whoever held two answers for equally likely can, after any report, "
            f"hold one of them for {sure:g} % likely at most"
        )
        more = (f"{_OF[name]} have epsilon {plain(epsilon)}" for name, epsilon in self.epsilons if name in _OF)
        return "; ".join([one, *more, *self._links])

    @property
    def _links(self) -> list[str]:
        """What tells reports of one device from those of others, whatever its answers are."""
        cohorts = dict(self.parameters).get("cohorts")
        linked = cohorts is not None and self.asked.remembers
        return [f"every report names the device's cohort, one of {cohorts:,}, always the same"] if linked else []


def true_epsilons(asked: Asked | Attributes) -> tuple[tuple[str, Decimal], ...]:
    """Return every ε that a task has to state, computed from its thresholds and rounded up."""
    return tuple((name, epsilon_up(ratio)) for name, ratio in asked.ratios.items())


def _check(task: Task) -> None:
    printable("question", task.question)
    printable("unit", task.unit)
    if task.opens > task.closes or not 0 <= task.retention_days <= 36_500:
        raise TaskRefused("A task opens before it closes, and keeps its reports for 0 to 36500 days after that.")
