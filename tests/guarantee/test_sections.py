"""What the page says, and that it says it of the relation and the budget that hold."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist

import pytest

from lapwing.catalog.dictionary import Dictionary, Texts
from lapwing.catalog.large_delta import delta_warnings
from lapwing.guarantee import as_html, as_text, page_of
from lapwing.guarantee.meaning import odds_factor_up
from lapwing.opening import open_session
from lapwing.privacy import figures
from lapwing.session import Session
from tests.support.browser.chromium import find_chromium, shared
from tests.support.effort import one_in
from tests.support.release import small

GDP = "epsilon = 3\ndelta = 1e-6\ndelta_keys = 1e-7"
PURE = 'epsilon = 3\nmeasure = "pure"'


@contextmanager
def opened(folder: Path, budget: str, **facts: str) -> Iterator[Session]:
    small.write(folder, [small.row(person, plan="ab"[person % 2]) for person in range(20)])
    session = open_session(small.catalog(folder, budget=budget, **facts))  # type: ignore[arg-type]
    try:
        yield session
    finally:
        session.close()


def said(session: Session) -> str:
    return " ".join(as_text(session.guarantee()).split())


def test_odds_are_those_of_the_relation(tmp_path: Path) -> None:
    """Under add_remove what a unit's rows hold is two steps away: its odds are not those of whether it is there."""
    with opened(tmp_path, PURE) as session:
        text = said(session)
    assert "whether one person is in the data. All results together" in text
    assert f"by a factor of at most {FACTOR}." in text
    assert "the figures for a group of two hold" in text
    assert "a guess between them may be right nearly always" in text
    assert "Someone may try to learn which of two sets" not in text


def test_the_words_of_the_curator_are_shown_as_texts(tmp_path: Path) -> None:
    with opened(tmp_path, PURE) as session:
        plain = said(session)
        catalog = session.catalog
        name = catalog.tables[0].name
        entries: dict[tuple[str, ...], Texts] = {
            (name,): Texts(description="One row for each visit."),
            (name, "plan"): Texts(title="Plan of care", unit="letters", labels=(("a", "<b>Small"),)),
        }
        dictionary = Dictionary.of(entries, Texts(title="Visits <i>", owner="Statistics"))
        page = page_of(replace(catalog, dictionary=dictionary), session._state(), 0)
    shown, html = " ".join(as_text(page).split()), as_html(page)
    for part in (
        "Visits <i>",
        "Owner: Statistics",
        "One row for each visit.",
        "Plan of care; in letters",
        "(<b>Small)",
    ):
        assert part in shown
        assert part not in plain
    assert "<b>Small" not in html
    assert "&lt;b&gt;Small" in html


def test_replaced_rows_are_one_step_away(tmp_path: Path) -> None:
    with opened(tmp_path, PURE + '\nneighbouring = "replace_one"') as session:
        text = said(session)
    assert "which of two sets of rows one person has. All results together" in text
    assert f"by a factor of at most {FACTOR}." in text
    assert "is in the data" not in text
    assert "two data sets that differ in the rows of one person" in text
    assert "unit" not in text.replace("privacy unit", "")


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_rows_are_said_where_each_row_is_protected(tmp_path: Path, relation: str) -> None:
    with opened(tmp_path, f'{PURE}\nneighbouring = "{relation}"', unit="row") as session:
        text = said(session)
    assert "Each row is protected separately." in text
    assert "all its rows" not in text
    assert "unit" not in text.replace("privacy unit", "")


FACTOR = figures.epsilon(odds_factor_up(Fraction(3)))


def test_the_power_of_a_test_is_rounded_once(tmp_path: Path) -> None:
    """Rounded up twice it would be 4.8 % where 4.7 % is proven."""
    with opened(tmp_path, GDP) as session:
        text, mu = said(session), float(session.budget().total.amount) ** 0.5
        keys = float(session.catalog.budget.delta_keys)
    assert "a guess between them is right at most 75 times out of 100" in text  # two steps away
    for level in (0.01, 0.05, 0.1):
        power = keys + (1 - keys) * NormalDist().cdf(NormalDist().inv_cdf(level / (1 - keys)) + mu)
        assert f"{100 * level:g} % {math.ceil(1000 * power) / 10:g} %" in text


def test_a_large_factor_is_a_power_of_ten_and_never_too_small(tmp_path: Path) -> None:
    with opened(tmp_path, PURE.replace("3", "100", 1)) as session:
        text = said(session)
    assert "at most 2.7·10^43." in text
    assert Fraction(27, 10) * 10**43 >= odds_factor_up(Fraction(100))


def test_delta_widens_the_odds(tmp_path: Path) -> None:
    with opened(tmp_path, GDP) as session:
        text = said(session)
    assert "at most 40.2, except with a probability of less than 3e-6. These are 2·e^ε and 3δ" in text
    assert "part of δ for finding groups that are not listed 1e-7" in text


@pytest.mark.parametrize(
    ("budget", "guess"),
    [
        (GDP, "it is right at most 63 times out of 100"),
        (PURE, "it is right at most 96 times out of 100"),
        (PURE.replace("3", "100", 1), "it may be right nearly always"),
        (f'{PURE}\nneighbouring = "replace_one"', "it is right at most 96 times out of 100"),
    ],
)
def test_the_page_begins_with_words_to_be_read_aloud(tmp_path: Path, budget: str, guess: str) -> None:
    with opened(tmp_path, budget) as session:
        sections = session.guarantee().sections
    first = " ".join(sections[0].paragraphs)
    assert guess in first
    assert first.count("out of 100") == 2 - ("nearly always" in guess)  # one figure, beside that of a guess alone
    assert "person" not in first  # no column's name
    asked = "which of two things the data say about you" if "replace_one" in budget else "whether you are in the data"
    assert f"Someone may try to find out {asked}." in first
    assert first.isascii()
    assert not set("=<>^·") & set(first)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize(
    ("unit", "other"), [("row", "each row about you in {} separately"), ("person", "everything that {} has about you")]
)
def test_numbers_are_about_one_of_several_kinds_of_units(tmp_path: Path, relation: str, unit: str, other: str) -> None:
    """Somebody with two rows of a table of rows is two units: the number of one is not that of all of them."""
    with opened(tmp_path, f'{PURE}\nneighbouring = "{relation}"') as session:
        state, (table, *_) = session._state(), session.catalog.tables
        own = replace(table, name="labs", privacy_unit=unit, max_rows_per_unit=1 if unit == "row" else 3)
        both = page_of(replace(session.catalog, tables=(table, own)), state, 0)
        alone = page_of(session.catalog, state, 0)
    first, second = (" ".join(page.sections[0].paragraphs) for page in (both, alone))
    assert f"everything that {table.name} has about you under one number or name and" in first
    assert other.format("labs") in first
    assert "a guess about all of them together may be right more often" in first
    assert "everything that is stored about you under one number or name" in second
    assert "all of them together" not in second


@pytest.mark.long
def test_parts_are_listed_with_what_they_spent(tmp_path: Path) -> None:
    with opened(tmp_path, GDP, part="plan") as session:
        session.sql("SELECT COUNT(*) AS n FROM visits WHERE plan = 'a'", epsilon=0.5)
        text = said(session)
    assert 'in 2 parts, "a", "b"' in text
    assert 'spent of "a" 0.0' in text
    assert 'spent of "b" 0 ' in text


def raised(folder: Path, budget: str, delta: object) -> str:
    with opened(folder, budget) as session:
        session.raise_budget(was=(3, Fraction(str(delta))), epsilon=4, delta=Fraction(str(delta)))
        return said(session)


def test_a_raised_budget_says_when_it_holds(tmp_path: Path) -> None:
    text = raised(tmp_path, GDP, "0.000001")
    assert "It was" not in text
    assert "it was ε = 3, δ = 1e-6" in text
    assert "hold if that raise did not depend on results" in text
    assert "δ = 1.9e-6, no matter why the budget was raised" in text


def test_a_raised_pure_budget_holds_in_any_case(tmp_path: Path) -> None:
    text = raised(tmp_path, PURE, 0)
    assert "holds for all that was released, before and after" in text
    assert "did not depend" not in text


@pytest.mark.parametrize("budget", one_in(2, [GDP, PURE]))
def test_nothing_of_the_page_comes_from_rows(tmp_path: Path, budget: str) -> None:
    """Two tables of which one has one person more have the same page but for its time."""
    pages = []
    for people in (20, 21):
        folder = tmp_path / str(people)
        folder.mkdir()
        small.write(folder, [small.row(person) for person in range(people)])
        session = open_session(small.catalog(folder, budget=budget))
        try:
            pages.append(session.guarantee().sections)
        finally:
            session.close()
    assert pages[0] == pages[1]


@pytest.mark.parametrize(
    ("delta", "people", "warned"),
    one_in(2, [("0.0009", 1_000, False), ("0.001", 1_000, True)], many=True),
)
def test_a_delta_that_protects_nobody_is_warned_of(
    tmp_path: Path, delta: str, people: int | None, warned: bool
) -> None:
    small.write(tmp_path, [small.row(person) for person in range(20)])
    budget = f'epsilon = 3\ndelta = {delta}\nneighbouring = "replace_one"'
    described = small.catalog(tmp_path, budget=budget, most=1)
    (table,) = described.tables
    with open_session(replace(described, tables=(replace(table, people=people),))) as session:
        promise = session.guarantee().sections[1].paragraphs
    warnings = delta_warnings(Fraction(delta), [people])
    assert bool(warnings) is warned
    assert [text for text in promise if text.startswith("Warning: ")] == [f"Warning: {text}" for text in warnings]


@pytest.mark.long
@pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (apt install chromium)")
def test_the_page_fits_on_a_phone_and_is_dark_where_the_reader_wants_that(tmp_path: Path) -> None:
    with opened(tmp_path, GDP) as session:
        html = as_html(session.guarantee(sealed=True))
    file = tmp_path / "guarantee.html"
    file.write_text(html)
    runs_over = "return document.documentElement.scrollWidth > document.documentElement.clientWidth"
    with shared() as browser:
        page = browser.page()
        page.go(file.as_uri())
        page.size(360, 900, dark=True)
        page.run("document.querySelector('details').open = true")
        assert not page.run(runs_over)
        assert page.run("return getComputedStyle(document.body).color") == "rgb(255, 255, 255)"
        page.run("document.styleSheets[0].insertRule('td { min-width: 30rem }')")
        assert page.run(runs_over)
