"""Several questions to one person: a report answers one of them with all of ε, or all of them with a part each."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any, ClassVar, final

import numpy as np

from lapwing.local.mechanism import Mechanism
from lapwing.local.public_draws import EqualDraw, PublicDraw
from lapwing.local.report_formats import list_of, number_below


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneAttribute(Mechanism):
    """Draw one of d attributes, each as likely, and report it, and which, by its own mechanism.

    Guarantee:
        PureDP(ln ratio) for one respondent's whole record: two records may differ in all attributes. A report (j, r)
        has the probability P_j(r | x_j)/d for the record x, as j is drawn without regard to it. For any two records the
        ratio is a ratio of P_j at two values. So it is at most the largest ratio of any attribute, and equal to it
        where only that attribute differs. Nothing is gained by hiding j: two records that differ everywhere differ in
        each attribute that may be drawn. So the
        published claim that fake answers to the others amplify ε (random sampling plus fake data) is wrong.

    Args:
        questions: d names.
        each: Their mechanisms.

    Source:
        Wang et al. 2019 (one attribute); Arcolezi et al. 2021 (RS+FD, refuted by the tests).
    """

    name: ClassVar[str] = "one-attribute"
    questions: tuple[str, ...]
    each: tuple[Mechanism, ...]

    @property
    def parameters(self) -> Mapping[str, int]:
        """None: each attribute has its own."""
        return {}

    @property
    def ratio(self) -> Fraction:
        """The largest of the attributes'."""
        return max(mechanism.ratio for mechanism in self.each)

    def read(self, said: object) -> tuple[int, Hashable]:
        """Return the attribute's number and the report on it."""
        number, report = list_of(said, 2, "a list of 2: an attribute, and the report on it")
        chosen = number_below(number, len(self.each), "the first number of r")
        return chosen, self.each[chosen].read(report)

    def gather(self, said: Sequence[tuple[int, Hashable]]) -> tuple[Any, ...]:
        """Return the reports of each attribute, as its mechanism gathers them."""
        reports: list[list[Hashable]] = [[] for _ in self.each]
        for chosen, report in said:
            reports[chosen].append(report)
        return tuple(mechanism.gather(part) for mechanism, part in zip(self.each, reports, strict=True))

    def public_draws(self, reports: tuple[Any, ...]) -> list[PublicDraw]:
        """Return the question that each device drew, and what was drawn for each."""
        seen = np.repeat(np.arange(len(reports)), [len(own) for own in reports])
        return [EqualDraw(name="question", outcomes=len(self.each), seen=seen), *_of_each(self, reports)]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AllAttributes(Mechanism):
    """Report all d attributes, each by its own mechanism with randomness of its own, for joint tables.

    Guarantee:
        PureDP(ln ratio) for one respondent's whole record. The parts of a report are independent given the record, so
        its probability is the product of theirs. The ratio for two records is then the product of ratios of the
        attributes. It is at most the product of their largest, and equal to it where all differ. Shares of one question
        are far less accurate than by `OneAttribute` at the same ε. Shares of pairs are less accurate than if you ask
        for the pair as one question. Use it if you want several tables.

    Args:
        questions: d names.
        each: Their mechanisms.
    """

    name: ClassVar[str] = "all-attributes"
    questions: tuple[str, ...]
    each: tuple[Mechanism, ...]

    @property
    def parameters(self) -> Mapping[str, int]:
        """None: each attribute has its own."""
        return {}

    @property
    def ratio(self) -> Fraction:
        """The product of the attributes'."""
        return prod((mechanism.ratio for mechanism in self.each), start=Fraction(1))

    def read(self, said: object) -> tuple[Hashable, ...]:
        """Return the report on each attribute."""
        parts = list_of(said, len(self.each), f"a list of {len(self.each)}: the report on each attribute")
        return tuple(mechanism.read(part) for mechanism, part in zip(self.each, parts, strict=True))

    def gather(self, said: Sequence[tuple[Hashable, ...]]) -> tuple[Any, ...]:
        """Return the reports of each attribute, as its mechanism gathers them; all have as many, in the same order."""
        return tuple(mechanism.gather([one[i] for one in said]) for i, mechanism in enumerate(self.each))

    def public_draws(self, reports: tuple[Any, ...]) -> list[PublicDraw]:
        """Return what was drawn for each question."""
        return _of_each(self, reports)


def _of_each(mechanism: OneAttribute | AllAttributes, reports: tuple[Any, ...]) -> list[PublicDraw]:
    return [
        replace(draw, name=f"{draw.name}, {question}")
        for question, one, own in zip(mechanism.questions, mechanism.each, reports, strict=True)
        for draw in one.public_draws(own)
    ]
