"""The price of a statistic: with a loss, the mechanisms that it buys, and what they promise before anything is read.

Three tenths of a price choose a level, where there is one to be chosen; the numbers share the rest by their weights. A
ladder gives a tenth of its share to the noisy base from which its interval follows. Losses add up, though the second
mechanism is chosen by what the first released (`privacy.filters`).

Where a neighbour replaces an edge or a node by another (`replace_one`), it is two steps away: sensitivities double,
but for what is bought with a delta in the place of a ladder (`mechanisms.graphs.local_sensitivity`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np

from lapwing.engines.graph_rows import GraphRows
from lapwing.errors import InvalidParameter, QueryRefused, RefusalCause
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import Entropy
from lapwing.graphs.recipe import (
    BestOf,
    LadderCount,
    LevelSearch,
    NoisyVector,
    Number,
    PublicNumber,
    Recipe,
    ReleasedNumber,
)
from lapwing.mechanisms.additive import Mechanism
from lapwing.mechanisms.drawn import DrawnMechanism
from lapwing.mechanisms.generalised import GeneralisedExponential
from lapwing.mechanisms.graphs.ladder import Ladder
from lapwing.mechanisms.graphs.local_sensitivity import NoisyLocalSensitivity
from lapwing.mechanisms.graphs.truncation import LEVEL_SHARE
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.private_selection import PermuteAndFlip
from lapwing.mechanisms.scores import ScoreSensitivity
from lapwing.mechanisms.top_k import TopK
from lapwing.privacy.measures import Loss, PureDP, privacy_measure_of
from lapwing.query.pricing.quote import MECHANISMS

CONFIDENCE: Final = Fraction(95, 100)
LEVEL_CONFIDENCE: Final = Fraction(99, 100)
"""Of the handicap by which a higher level is chosen only if it adds more than noise explains."""
BOUGHT: Final = ", bound => bought"
"""Stands after a question whose bounds were bought: another question than with a ladder."""
BASE_SHARE: Final = Fraction(1, 10)
"""The part of a ladder's price that its noisy base takes."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PricedNumber:
    """A number with its mechanism, None of a public one; of a ladder also that of its base."""

    number: Number
    mechanism: "Mechanism | Ladder | NoisyLocalSensitivity | PermuteAndFlip | TopK | None"
    sensitivity: Sensitivity
    base: Mechanism | None = None

    def loss(self, kind: str) -> Loss:
        """Return what it loses, but for `delta`."""
        if self.mechanism is None:
            return privacy_measure_of(kind).from_amount(Fraction(0))
        if isinstance(self.mechanism, Ladder):
            beside = self.base.loss(self.sensitivity, kind) if self.base is not None else None
            return self.mechanism.loss(kind) if beside is None else self.mechanism.loss(kind) + beside
        if isinstance(self.mechanism, NoisyLocalSensitivity):
            return self.mechanism.loss(kind)
        if isinstance(self.mechanism, PermuteAndFlip | TopK):
            return self.mechanism.loss(_range_of(self.sensitivity), kind)
        return self.mechanism.loss(self.sensitivity, kind)

    @property
    def delta(self) -> Fraction:
        """What it takes of the delta that the budget keeps."""
        return self.mechanism.delta if isinstance(self.mechanism, NoisyLocalSensitivity) else Fraction(0)

    def drawn(self, base: int | None) -> tuple[DrawnMechanism, ...]:
        """Return its mechanisms with their sensitivities.

        Args:
            base: The noisy base or bound that was released with the number.
        """
        law, moved = self.mechanism, self.sensitivity
        if law is None:
            return ()
        if isinstance(law, Ladder):
            beside = () if self.base is None else (DrawnMechanism.of(self.base.name, self.base.record(), moved),)
            return (DrawnMechanism.of(law.name, law.record(), moved), *beside)
        if isinstance(law, PermuteAndFlip | TopK):
            rounds = law.count if isinstance(law, TopK) else 1
            return (DrawnMechanism.of(law.name, [law.scale, rounds], moved),)
        if isinstance(law, NoisyLocalSensitivity):
            if base is None:
                raise InvalidParameter("a bound was bought; this is a bug in Lapwing")
            first, second, bought = law.first, law.noise(base), Sensitivity.from_l1(base)
            return (
                DrawnMechanism.of(first.name, first.record(), law.moved),
                DrawnMechanism.of(second.name, second.record(), bought),
            )
        return (DrawnMechanism.of(law.name, law.record(), moved),)

    def release(self, rows: GraphRows, entropy: Entropy) -> ReleasedNumber:
        """Return the released integers."""
        number, mechanism = self.number, self.mechanism
        if isinstance(number, PublicNumber):
            return restored(self, [number.exact(rows)], None)
        if isinstance(number, BestOf):
            if not isinstance(mechanism, PermuteAndFlip | TopK):
                raise InvalidParameter("candidates are chosen among; this is a bug in Lapwing")
            chosen = mechanism.release(np.array(number.scores(rows), dtype=np.int64), entropy)
            return restored(self, [int(place) for place in np.atleast_1d(chosen)], None)
        if isinstance(number, NoisyVector):
            if mechanism is None or isinstance(mechanism, Ladder | NoisyLocalSensitivity | PermuteAndFlip | TopK):
                raise InvalidParameter("a vector gets noise; this is a bug in Lapwing")
            return restored(self, [int(value) for value in mechanism.release(number.exact(rows), entropy)], None)
        if isinstance(mechanism, NoisyLocalSensitivity) and number.local is not None:
            bought, value = mechanism.release(number.exact(rows), number.local.exact(rows), entropy)
            return restored(self, [value], bought)
        if not isinstance(mechanism, Ladder) or self.base is None:
            raise InvalidParameter("a ladder has a base; this is a bug in Lapwing")
        base = number.base(rows)
        noisy = int(self.base.release(np.array([base]), entropy)[0])
        return restored(self, [mechanism.release(number.exact(rows), number.steps(base), entropy)], noisy)


def restored(priced: PricedNumber, values: Sequence[int], base: int | None) -> ReleasedNumber:
    """Return released integers with what is known of their error."""
    number, mechanism = priced.number, priced.mechanism
    if mechanism is None:
        return ReleasedNumber(values=list(values), half_width=lambda _: 0)
    if isinstance(mechanism, NoisyLocalSensitivity):
        if base is None:
            raise InvalidParameter("a bound was bought; this is a bug in Lapwing")
        return ReleasedNumber(values=list(values), base=base, half_width=mechanism.noise(base).half_width)
    if isinstance(mechanism, Ladder):
        if not isinstance(number, LadderCount) or priced.base is None or base is None:
            raise InvalidParameter("a ladder has a base; this is a bug in Lapwing")
        noise, steps, known = priced.base, number.steps, base

        def half_width(confidence: Fraction) -> int:
            apart = 1 - (1 - confidence) / 2  # the base is no larger than this, and then the choice is within that
            return mechanism.half_width(steps(max(0, known + noise.half_width(apart))), apart)

        return ReleasedNumber(values=list(values), base=base, half_width=half_width)
    if isinstance(mechanism, PermuteAndFlip | TopK):
        if not isinstance(number, BestOf):
            raise InvalidParameter("candidates are chosen among; this is a bug in Lapwing")
        candidates, choice = number.candidates, mechanism
        return ReleasedNumber(
            values=list(values), half_width=lambda confidence: choice.shortfall(candidates, confidence)
        )
    return ReleasedNumber(values=list(values), half_width=mechanism.half_width)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A recipe with its price.

    Args:
        loss: All that it takes.
        chooser: Of a level.
        shared: What the numbers take together.
        delta: Of what the budget keeps, all that it takes, for bounds in the place of ladders.
    """

    recipe: Recipe
    loss: Loss
    shared: Loss
    chooser: GeneralisedExponential | None
    factor: int
    delta: Fraction = Fraction(0)

    @property
    def text(self) -> str:
        """The canonical question: what a stored answer is found by."""
        return f"{self.recipe.text}{BOUGHT if self.delta else ''}"

    def numbers(self, level: int | None) -> tuple[PricedNumber, ...]:
        """Return the numbers at a level, with mechanisms that together lose at most `shared`."""
        numbers = self.recipe.numbers(level)
        weights = sum(number.weight for number in numbers)
        bought = sum(is_local(number) for number in numbers)
        priced = tuple(
            _mechanism(
                number,
                self.shared.from_amount(self.shared.amount * number.weight / weights),
                self.factor,
                self.delta / bought if is_local(number) else Fraction(0),
            )
            for number in numbers
        )
        spent = self.shared.nothing()
        for one in priced:
            spent = spent + one.loss(self.shared.kind)
        if not spent <= self.shared or not sum(one.delta for one in priced) <= self.delta:
            raise InvalidParameter("the numbers of a statistic lose more than its cost; this is a bug in Lapwing")
        return priced

    def at(self, loss: Loss, delta: Fraction = Fraction(0)) -> "Priced":
        """Return the same recipe at another loss, and another delta."""
        return priced(self.recipe, loss, "add_remove" if self.factor == 1 else "replace_one", delta)

    def drawn(self, level: int | None, released: Sequence[ReleasedNumber]) -> list[DrawnMechanism]:
        """Return the mechanisms that released numbers at a level, with their sensitivities.

        Scores of levels are compared in units of their sensitivities, so a unit moves the difference of two by 2.
        """
        chooser = self.chooser
        choice = [] if chooser is None else [DrawnMechanism.of(chooser.name, [chooser.scale], Sensitivity.from_l1(2))]
        numbers = zip(self.numbers(level), released, strict=True)
        return [*choice, *(one for number, found in numbers for one in number.drawn(found.base))]

    def choose(self, rows: GraphRows, entropy: Entropy) -> int | None:
        """Return the level: what was asked for, or the one above the level that was chosen."""
        search = self.recipe.search
        if search is None or self.chooser is None:
            return self.recipe.level
        scores = search.scores(rows, search.levels)
        chosen: IntArray = np.array(scores, dtype=object)
        return above(search, self.chooser.release(chosen, entropy))


def above(search: LevelSearch, place: int) -> int:
    """Return the level after the one at a place.

    The handicap lets a level be chosen that is a little too low, and twice the noise costs less than what it cuts off.
    """
    return search.levels[min(place + 1, len(search.levels) - 1)]


def is_local(number: Number) -> bool:
    """Tell whether a bound on a number's local sensitivity may be bought."""
    return isinstance(number, LadderCount) and number.local is not None


def takes_delta(recipe: Recipe) -> bool:
    """Tell whether a statistic takes a delta, for bounds in the place of ladders."""
    return recipe.search is None and any(map(is_local, recipe.numbers(recipe.level)))


def priced(recipe: Recipe, loss: Loss, neighbouring: str, delta: Fraction = Fraction(0)) -> Priced:
    """Return the price of a recipe; with a delta, that of bounds in the place of ladders.

    Raises:
        QueryRefused: If so small a loss leaves nothing but noise, or if there is nothing to buy with a delta.
    """
    if delta and not takes_delta(recipe):
        raise QueryRefused(
            "The statistic takes no delta",
            cause=RefusalCause.COST_NOT_ALLOWED,
            remedy="Leave it out. Only triangles, wedges and clustering take a delta, where edges are protected.",
        )
    factor = 2 if neighbouring == "replace_one" else 1
    chooser, shared, search = None, loss, recipe.search
    if search is not None and len(search.levels) == 1:
        chooser = None
    elif search is not None:
        part = loss.from_amount(loss.amount * LEVEL_SHARE)
        chooser = GeneralisedExponential.for_loss(
            part, [factor * search.sensitivity(level) for level in search.levels], LEVEL_CONFIDENCE
        )
        shared = loss.from_amount(loss.amount - part.amount)
    if search is not None and chooser is None:  # there is one level: nothing is to be chosen
        recipe = Recipe(
            text=recipe.text, numbers=recipe.numbers, show=recipe.show, level=search.levels[0], public=recipe.public
        )
    found = Priced(recipe=recipe, loss=loss, shared=shared, chooser=chooser, factor=factor, delta=delta)
    for level in levels(found):
        _require_in_range(found, level)
    _require_usable(found)
    return found


def _require_in_range(priced: Priced, level: int | None) -> None:
    """Refuse noise that is out of range at a level, whichever will be chosen: after the charge it would be a fault."""
    try:
        priced.numbers(level)
    except InvalidParameter as error:
        if level is None:
            raise
        raise QueryRefused(
            f"At level {level:,} the noise would be out of range",
            cause=RefusalCause.EPSILON_TOO_SMALL,
            remedy="Give a larger epsilon or a lower level.",
        ) from error


def levels(priced: Priced) -> tuple[int | None, ...]:
    """Return the levels at which the numbers may be released."""
    search = priced.recipe.search
    return (priced.recipe.level,) if search is None else search.levels[1:]


def _require_usable(priced: Priced) -> None:
    """Refuse what would be nothing but noise at every level, by public figures, before it is paid."""
    widths = []
    for level in levels(priced)[:1]:
        for number in priced.numbers(level):
            if isinstance(number.number, PublicNumber):
                continue
            if not isinstance(number.number, NoisyVector) or number.number.most is None:
                return
            if number.mechanism is None or isinstance(
                number.mechanism, Ladder | NoisyLocalSensitivity | PermuteAndFlip | TopK
            ):
                return
            widths.append((number.mechanism.half_width(CONFIDENCE), number.number.most, number.number.name))
    if widths and all(width >= most for width, most, _ in widths):
        width, most, name = widths[0]
        raise QueryRefused(
            f"{name} would be off by up to {width:,}, and there are at most {most:,}",
            cause=RefusalCause.EPSILON_TOO_SMALL,
            remedy="Give a larger epsilon.",
        )


def _mechanism(number: Number, loss: Loss, factor: int, delta: Fraction) -> PricedNumber:
    if isinstance(number, PublicNumber):
        return PricedNumber(number=number, mechanism=None, sensitivity=Sensitivity.from_l1(0))
    if isinstance(number, NoisyVector):
        moved = Sensitivity(l1=factor * number.sensitivity.l1, l2_squared=factor**2 * number.sensitivity.l2_squared)
        return PricedNumber(number=number, mechanism=_narrowest(loss, moved), sensitivity=moved)
    if isinstance(number, BestOf):
        moved = Sensitivity.from_l1(factor * number.range)
        return PricedNumber(number=number, mechanism=_chooser(number, loss, moved), sensitivity=moved)
    if delta and number.local is not None:
        local = NoisyLocalSensitivity.for_loss(loss, delta, number.local.moved, number.local.cap, _narrowest)
        return PricedNumber(number=number, mechanism=local, sensitivity=local.moved)
    part = loss.from_amount(loss.amount * BASE_SHARE)
    moved = Sensitivity.from_l1(factor)
    ladder = Ladder.for_loss(loss.from_amount(loss.amount - part.amount), factor)
    return PricedNumber(number=number, mechanism=ladder, sensitivity=moved, base=_narrowest(part, moved))


def _range_of(moved: Sensitivity) -> ScoreSensitivity:
    """Return the sensitivity of scores whose differences move by so much."""
    return ScoreSensitivity(bound=Fraction(moved.l1), monotonic=True)


def _chooser(number: BestOf, loss: Loss, moved: Sensitivity) -> PermuteAndFlip | TopK:
    """Return what chooses: of one candidate in a pure ledger, permute-and-flip errs least."""
    if number.count == 1 and isinstance(loss, PureDP):
        return PermuteAndFlip.for_loss(loss, _range_of(moved))
    return TopK.for_loss(loss, _range_of(moved), number.count)


def _narrowest(loss: Loss, sensitivity: Sensitivity) -> Mechanism:
    options = [mechanism.for_loss(loss, sensitivity) for mechanism in MECHANISMS[loss.kind]]
    return min(options, key=lambda option: (option.half_width(CONFIDENCE), option.standard_deviation))
