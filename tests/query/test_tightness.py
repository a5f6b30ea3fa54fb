"""The worst neighbours that were ever found, again: they lose no more than is charged, and as much as the page says.

More are searched for by `benchmarks/tightness.py`, which keeps what it finds.
"""

import random
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lapwing.mechanisms import Sensitivity
from lapwing.query.measures.measures import Measure
from lapwing.query.sensitivity import stability
from lapwing.query.sensitivity.stability import SensitivityBound
from tests.support.docs.pages import ROOT
from tests.support.effort import is_long, some
from tests.support.query.tightness import (
    FORMS,
    SETTINGS,
    Club,
    Form,
    Kept,
    Setting,
    club,
    kept,
    rounded_down,
    with_table,
    worst,
)

KEPT = kept()
ONE_IN = 13
PAGE = ROOT / "docs" / "theory" / "tightness.md"


class Clubs:
    """Tables with a ledger of each kind, each made once."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.stack = folder, stack
        self.made: dict[tuple[Setting, int], Club] = {}

    def of(self, setting: Setting, rows: int) -> Club:
        if (setting, rows) not in self.made:
            place = self.folder / str(len(self.made))
            place.mkdir()
            self.made[setting, rows] = self.stack.enter_context(club(place, setting, rows))
        return self.made[setting, rows]

    def ratio(self, case: Kept) -> Fraction:
        here = self.of(case.setting, case.form.rows)
        (ratio,) = here.realised(here.priced(case.form), [case.neighbours])
        return ratio


@pytest.fixture(scope="module")
def clubs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clubs]:
    with ExitStack() as stack:
        yield Clubs(tmp_path_factory.mktemp("club"), stack)


def case_of(name: str, measure: str, neighbouring: str) -> Kept:
    setting = Setting(measure=measure, neighbouring=neighbouring)
    return next(case for case in KEPT if case.form.name == name and case.setting == setting)


def violations(case: Kept, ratio: Fraction) -> list[str]:
    """Return what is wrong with a ratio: it is a breach, or what was reached once is not reached any more."""
    found = ["more is lost than is charged"] if ratio > 1 else []
    return [*found, *(["less is lost than before"] if rounded_down(ratio) < case.ratio else [])]


def test_worst_neighbours_lose_no_more_than_is_charged_and_no_less_than_before(clubs: Clubs) -> None:
    cases = some(ONE_IN, KEPT)
    assert [(case, clubs.ratio(case)) for case in cases if violations(case, clubs.ratio(case))] == []


@pytest.mark.parametrize(
    ("factor", "seen"), [(Fraction(9, 10), "more is lost than is charged"), (2, "less is lost than before")]
)
def test_a_bound_that_is_off_by_a_factor_is_found(
    factor: Fraction, seen: str, clubs: Clubs, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_of("sum", "gdp", "add_remove")
    assert violations(case, clubs.ratio(case)) == []
    bounds = stability.sensitivity_bounds

    def wrong(*arguments: object, **facts: object) -> tuple[SensitivityBound, ...]:
        found = bounds(*arguments, **facts)  # type: ignore[arg-type]
        return tuple(replace(one, sensitivity=scaled(one.sensitivity, factor)) for one in found)

    monkeypatch.setattr(stability, "sensitivity_bounds", wrong)
    assert violations(case, clubs.ratio(case)) == [seen]


def scaled(moved: Sensitivity, factor: Fraction) -> Sensitivity:
    return Sensitivity(l1=int(moved.l1 * factor), l2_squared=int(moved.l2_squared * factor**2))


def test_noise_that_is_too_narrow_is_found(clubs: Clubs) -> None:
    """A scale of nine tenths of what is charged loses more than is charged."""
    case = case_of("count of rows", "pure", "add_remove")
    here = clubs.of(case.setting, case.form.rows)
    priced = here.priced(case.form)
    assert here.realised(priced, [case.neighbours]) == [1]
    (term,) = priced.terms
    narrow = replace(term.mechanism, scale=term.mechanism.scale * Fraction(9, 10))  # type: ignore[type-var]
    ((lost,),) = (
        [of.mechanism.loss(of.candidate.sensitivity, "pure").amount] for of in [replace(term, mechanism=narrow)]
    )
    assert lost / priced.lost(priced.terms).amount == Fraction(10, 9)


def test_the_search_finds_neighbours_that_lose_all(clubs: Clubs, monkeypatch: pytest.MonkeyPatch) -> None:
    """And with a planted bug, some that lose more: here the values of a row are taken for half as wide."""
    setting = Setting(measure="gdp", neighbouring="add_remove")
    form = Form("sum of a product", "SELECT SUM(x * y) FROM visits")
    here = clubs.of(setting, form.rows)
    assert worst(here, form, random.Random(1), starts=2, rounds=10)[0] == 1
    right = stability.sensitivity_bounds

    def half(measure: Measure, **facts: Any) -> tuple[SensitivityBound, ...]:
        found = right(measure, **facts)
        return tuple(replace(one, sensitivity=scaled(one.sensitivity, Fraction(1, 2))) for one in found)

    monkeypatch.setattr(stability, "sensitivity_bounds", half)
    assert worst(here, form, random.Random(1), starts=2, rounds=10)[0] > 1


def test_every_form_has_neighbours_or_is_refused(clubs: Clubs) -> None:
    found = {(case.form.name, case.setting) for case in KEPT}
    missing = [(form.name, str(setting)) for form in FORMS for setting in SETTINGS if (form.name, setting) not in found]
    assert {name for name, _ in missing} <= {"private keys"}  # proven for add_remove alone, and for a delta


def test_forms_below_one_say_why() -> None:
    reached = {
        form.name: min((case.ratio for case in KEPT if case.form == form), default=Fraction(1)) for form in FORMS
    }
    assert [form.name for form in FORMS if bool(form.reason) != (reached[form.name] < 1)] == []


def test_the_page_shows_what_is_kept() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_table(text, KEPT) == text
    assert with_table(text, KEPT[1:]) != text, "the twin: a ratio that the page lacks"


@pytest.mark.long
def test_random_starts_find_nothing_worse_than_the_charge(clubs: Clubs) -> None:
    for form in some(1 if is_long() else 10, FORMS):
        for setting in SETTINGS:
            case = next((one for one in KEPT if one.form == form and one.setting == setting), None)
            if case is not None:
                here = clubs.of(setting, form.rows)
                assert worst(here, form, random.Random(f"{form.name} {setting}"), starts=1, rounds=2)[0] <= 1, case
