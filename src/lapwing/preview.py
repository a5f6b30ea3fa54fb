"""What a question would cost and how good its answer would be, from public facts alone (`release.explaining`)."""

from dataclasses import dataclass
from fractions import Fraction

from lapwing.privacy import figures
from lapwing.privacy.guesses import WITHOUT, in_words, right_guesses_up, times_of_100
from lapwing.privacy.measures import Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurePreview:
    """One noisy number of the answer.

    One privacy unit moves it by at most `sensitivity` (over all cells, in the norm of the mechanism). `scale` is the
    parameter of the mechanism, and `half_width` is of the 95 % interval. All have the measure's own unit.
    """

    measure: str
    sensitivity: float
    reason: str
    mechanism: str
    scale: float
    half_width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionPreview:
    """How the private keys of an answer are chosen.

    Args:
        keys: The columns of the chosen values.
        price_share: The part of the price that the choice takes.
        delta: Of the delta for keys.
        scale: The noise, in weights that have length 1 for one unit. None if the mechanism flips coins.
        threshold: The weight that a key needs with its noise, in the same unit, None likewise.
        fewest_units: From this many units on, each with no other key, a key appears with 95 % probability.
        most_units: The same if each holds `keys_per_unit` keys, the most there can be; None beyond billions.
    """

    keys: tuple[str, ...]
    mechanism: str
    price_share: float
    delta: float
    scale: float | None
    threshold: float | None
    fewest_units: int | None
    most_units: int | None
    keys_per_unit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPreview:
    """One column of the answer; `half_width` is None where the error is not a public fact.

    For an AVG, `half_width` is given only with `assuming_count`: then the true mean is within it, for any data.
    `selected` tells that it shows chosen values, of private keys or of the largest groups. Each value is exact, but
    the choice is noisy.
    """

    name: str
    rests_on: tuple[str, ...]
    half_width: float | None
    selected: bool = False

    @property
    def error(self) -> str:
        """The promised ± as a text, or why there is none."""
        if self.half_width is not None:
            return figures.margin(self.half_width)
        if self.rests_on:
            return "depends on the data"
        return "chosen privately" if self.selected else "public"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartPreview:
    """A part of the data that a question is charged to: what it has spent, and what is left for it."""

    part: str
    spent: Loss
    remaining: Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerPreview:
    """What a question of the same epsilon would get from a fresh ledger of another kind, with the same budget.

    Args:
        measure: "pure" or "gdp".
        delta: Of its budget.
        half_widths: Of each noisy number, in order.
        fits: How many such questions it holds in all.
    """

    measure: str
    delta: Fraction
    half_widths: tuple[float, ...]
    fits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The price and the promised error of a question.

    Args:
        cost: the charge if you ask now: zero if the answer is already bought.
        price: the loss of the question's mechanisms.
        epsilon: the (epsilon, delta) reading of only that price.
        share_of_remaining: price over what is left for the caller (above 1: refused), of the loss or of the delta for
            private keys; the larger of both.
        share_of_budget: price over the whole budget; None of a service that does not say it.
        remaining: what is left of the budget, and of the share that a service gives its caller.
        fits: how many questions of this price it holds.
        refusal: the refusal if you ask now; None if there would be none.
        refusal_code: its code, the same that the error would have.
        larger_limit: a share of the budget that would bear it as the limit of the caller; None if there is none.
        cells: the number of cells in the answer, None if its keys are private.
        unit: whom it protects.
        bound: the rows of one unit that count, in words.
        delta: the part of the delta for keys that the selection of private keys takes.
        selection: how these are chosen, None if all keys are public.
        sharpens: whether the price is only what a stored, less accurate answer lacks.
        epsilon_before: the (epsilon, delta) reading of what that answer cost; None if it sharpens none, or several.
        epsilon_in_all: the same of both together.
        parts: of data in parts, those that the question reads and is charged to; None if it is charged to all. Then
            `remaining` and `share_of_remaining` count only these parts.
        elsewhere: what the other kind of ledger would give, as long as nothing was charged and it can still be chosen.
    """

    cost: Loss
    price: Loss
    epsilon: float
    share_of_remaining: float
    remaining: Loss
    fits: int
    cells: int | None
    unit: str
    bound: str
    measures: tuple[MeasurePreview, ...]
    columns: tuple[ColumnPreview, ...]
    notes: tuple[str, ...]
    delta: Fraction = Fraction(0)
    sharpens: bool = False
    assuming_count: int | None = None
    parts: tuple[PartPreview, ...] | None = None
    selection: SelectionPreview | None = None
    refusal: str | None = None
    refusal_code: str | None = None
    larger_limit: Fraction | None = None
    elsewhere: LedgerPreview | None = None
    share_of_budget: float | None = None
    epsilon_before: float | None = None
    epsilon_in_all: float | None = None

    @property
    def stored(self) -> bool:
        """Whether the answer was bought before, so that asking again is free."""
        return self.cost.amount == 0

    @property
    def free(self) -> str:
        """Why it is free, if it is. The text does not name the buyer, because this may be somebody else."""
        return figures.FREE if self.price.amount else figures.NOTHING_PROTECTED

    @property
    def times_of_100(self) -> int | None:
        """The most guesses about one person that can be right with this result, out of 100; without it 50 are.

        None if nothing new is shown, or if a stored result is made more exact: then both count together.
        """
        if self.stored or self.sharpens:
            return None
        return times_of_100(right_guesses_up(self.price, self.delta))

    @property
    def guess(self) -> str:
        """The words for `times_of_100`; empty if it is None."""
        times = self.times_of_100
        return "" if times is None else f"about {self.unit}: {in_words(times)} with this result, {WITHOUT} without"

    @property
    def part_of_budget(self) -> str:
        """The share of the budget that it takes, and how many such queries fit in what is left for the caller.

        If the delta for private keys limits their number, the text adds its share.
        """
        if self.share_of_budget is None:
            part = f"{figures.share(self.share_of_remaining)} of what is left for you"
        else:
            part = f"{figures.share(self.share_of_budget)} of the budget"
        loss = float(self.price.amount / self.remaining.amount) if self.remaining.amount else self.share_of_remaining
        if self.delta and self.share_of_remaining > loss:
            part += f", and {figures.share(self.share_of_remaining)} of the delta that is left for finding groups"
        return f"{part}; {figures.such_queries(self.fits)} in what is left for you"

    def __str__(self) -> str:
        wide = ", ".join(f"{one.name} {one.error}" for one in self.columns if one.half_width is not None)
        cost = self.free if self.stored else f"epsilon {figures.epsilon(self.epsilon)}; {self.part_of_budget}"
        refused = "" if self.refusal is None else f"; it would be refused: {self.refusal}"
        return f"{f'{wide} at 95 %; ' if wide else ''}{cost}{refused}"

    def _repr_html_(self) -> str:
        keys = f", δ = {figures.delta(self.delta)}" if self.delta else ""
        price = f"ε = {figures.epsilon(self.epsilon)}{keys}"
        whole = "" if self.epsilon_in_all is None else f", in all {figures.epsilon(self.epsilon_in_all)} for this query"
        cost = self.free if self.stored else f"{price}{whole}; {self.part_of_budget}"
        rows = [[column.name, column.error, ", ".join(column.rests_on)] for column in self.columns]
        return "".join(
            (
                figures.html_heading(f"Preview: {'free' if self.stored else price}. Lapwing read no rows."),
                figures.html_table(["column", "± at 95 %", "computed from"], rows, caption="", numbers=["± at 95 %"]),
                figures.html_facts(
                    ("cost", cost),
                    *([] if self.refusal is None else [("refused", self.refusal)]),
                    ("protects", self.unit),
                    *([("guess", self.guess)] if self.guess else []),
                    ("uses", self.bound),
                    ("groups", "not known before" if self.cells is None else f"{self.cells:,}"),
                    *(("note", f"{note}.") for note in self.notes),
                ),
            )
        )
