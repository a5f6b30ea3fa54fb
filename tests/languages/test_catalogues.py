"""Pages for the public in another language: every text is in the catalogue, and numbers and dates are the reader's."""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from gettext import NullTranslations
from pathlib import Path
from typing import Protocol
from unittest.mock import patch

import catalogues
import pytest

from lapwing.collector.survey_page import survey_page, texts_of
from lapwing.guarantee import Page, as_html, as_text
from lapwing.languages import (
    ENGLISH,
    Figure,
    JoinedTexts,
    Moment,
    is_translated,
    language,
    language_for,
    say,
    say_count,
)
from lapwing.opening import open_session
from tests.local.test_module import needs_chromium
from tests.support.browser.chromium import shared
from tests.support.release import small

MADE_UP = "qps"
PAGES = catalogues.PACKAGE / "collector" / "pages"
EVIL = "<script>alert(1)</script>"


class Speaking(Protocol):
    """Makes a made-up language the only one that has a catalogue."""

    def __call__(self, around: str = ..., /) -> None: ...


def made_up(folder: Path, around: str = "⟦{}⟧") -> None:
    """Write the catalogue of a language in which every text is the English one between brackets."""
    entries = {}
    for key, entry in catalogues.said().items():
        forms = (entry.template,) if entry.plural is None else (entry.template, entry.plural)
        entries[key] = replace(entry, texts=tuple(around.format(form) for form in forms))
    header = catalogues.HEADER.format(tag=MADE_UP)
    assert list(catalogues.faults(MADE_UP, header, entries)) == []
    (folder / f"{MADE_UP}.mo").write_bytes(catalogues.compiled(header, entries))


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Speaking:
    """Return what makes a catalogue of the made-up language the only one there is."""

    def speak(around: str = "⟦{}⟧", /) -> None:
        made_up(tmp_path, around)
        monkeypatch.setattr(language, "FOLDER", tmp_path)

    return speak


# ---- every text ------------------------------------------------------------------------------------------------------


def test_catalogues_are_complete_and_compiled() -> None:
    """All that pages say is in `en.po`, and what is compiled is of today."""
    assert catalogues.main([]) == 0
    _, entries = catalogues.read((catalogues.FOLDER / "en.po").read_text(encoding="utf-8"))
    assert set(entries) == set(catalogues.said())
    assert all(all(entry.texts) for entry in entries.values())


def test_a_source_reads_as_it_was_written() -> None:
    text = (catalogues.FOLDER / "en.po").read_text(encoding="utf-8")
    assert catalogues.written(*catalogues.read(text)) == text


def test_a_translation_with_other_places_is_found() -> None:
    for text in ("jede {person}", "jede", "jede {name", "jede {name.real}"):
        entries = {"each {name}": catalogues.Entry(template="each {name}", texts=(text,))}
        assert len(list(catalogues.faults("de", catalogues.HEADER, entries))) == 1, text
    plural = catalogues.Entry(template="{count} row", plural="{count} rows", texts=("eine Zeile", "{count} Zeilen"))
    assert list(catalogues.faults("de", catalogues.HEADER, {plural.key: plural})) == []


PROSE = re.compile(r"[A-Za-z]{2,}[,.:;]? [a-z]+\b|^[\"`]?[A-Z][a-z]+[\"`]?$")
"""What reads like prose, or like a label."""


def unsaid(source: str) -> list[str]:
    """Return the texts of Python source for people that are no argument of `say`."""
    tree = ast.parse(source)
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("say", "say_count"):
            left_out |= {id(part) for argument in node.args for part in ast.walk(argument)}
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left_out.add(id(node.value))
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in left_out)
    return [node.value for node in constants if isinstance(node.value, str) and PROSE.search(node.value)]


def test_the_guarantee_says_nothing_outside_the_catalogue() -> None:
    source = (catalogues.PACKAGE / "guarantee" / "sections.py").read_text(encoding="utf-8")
    assert unsaid(source) == []
    planted = source.replace('say("nothing is promised")', '"nothing is promised"')
    assert unsaid(planted) == ["nothing is promised"]


def unsaid_in_script(script: str) -> list[str]:
    """Return the texts of a script for people that are no argument of `say`."""
    code = re.sub(r"(?m)(?:^|\s)//.*$", "", script)
    code = re.sub(r"\bsay\(\s*\"(?:[^\"\\\n]|\\.)*\"", "say(", code)
    return [
        text for text in re.findall(r"\"[^\"\n]*\"|`[^`]*`", code) if PROSE.search(re.sub(r"\$\{[^}]*\}", "", text))
    ]


def test_the_survey_says_nothing_outside_the_catalogue() -> None:
    script = (PAGES / "survey.mjs").read_text(encoding="utf-8")
    allowed = {"input:checked"}
    assert [text for text in unsaid_in_script(script) if text.strip('"') not in allowed] == []
    planted = script.replace('say("Set a limit")', '"Set a limit"')
    assert unsaid_in_script(planted) == ['"Set a limit"']


# ---- another language ------------------------------------------------------------------------------------------------


def shown(folder: Path, tag: str | None) -> Iterator[Page]:
    budget = 'epsilon = 3\ndelta = 0.01\ndelta_keys = 1e-7\nneighbouring = "replace_one"'
    small.write(folder, [small.row(person, plan="ab"[person % 2]) for person in range(20)])
    with open_session(small.catalog(folder, budget=budget)) as session:
        session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.5)
        yield session.guarantee(language=tag)
        session.raise_budget(was=(3, Fraction(1, 100)), epsilon=4, delta=Fraction(1, 100))
        session.close_for_ever()
        yield session.guarantee(language=tag)


@pytest.mark.long
def test_a_page_is_wholly_in_another_language(tmp_path: Path, other: Speaking) -> None:
    """Each title and each sentence is from the catalogue; what is left are names, numbers and values."""
    other()
    for page in shown(tmp_path, MADE_UP):
        assert page.language == MADE_UP
        for section in page.sections:
            for text in (section.title, *section.paragraphs):
                assert text.startswith("⟦"), text
                assert text.endswith("⟧"), text
            for cell in (cell for row in section.table for cell in row if PROSE.search(cell)):
                assert cell.startswith("⟦"), cell
        html = as_html(page)
        assert f'<html lang="{MADE_UP}">' in html
        assert "⟦What small promises⟧" in html
        assert "⟦As of " in as_text(page)


def test_english_is_the_same_with_a_catalogue_and_without(tmp_path: Path) -> None:
    (tmp_path / "en").mkdir()
    plain, english = (list(shown(folder, tag)) for folder, tag in ((tmp_path, None), (tmp_path / "en", "en")))
    for one, same in zip(plain, english, strict=True):
        assert [section.paragraphs for section in one.sections] == [section.paragraphs for section in same.sections]


def test_what_is_translated_is_escaped(tmp_path: Path, other: Speaking) -> None:
    other(EVIL + "{}")
    for page in shown(tmp_path, MADE_UP):
        assert EVIL not in as_html(page)
        assert "&lt;script&gt;" in as_html(page)
    script = (PAGES / "survey.mjs").read_text(encoding="utf-8")
    template = (PAGES / "survey.html").read_text(encoding="utf-8")
    html = survey_page(template, texts_of(script), language_for(MADE_UP))
    assert EVIL not in html
    assert html.count("<script") == template.count("<script")
    assert f'<html lang="{MADE_UP}">' in html


# ---- numbers and dates -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accepted", "tag", "number", "day"),
    [
        ("", "en", "12,345.5", "2026-11-05 07:08"),
        ("de-DE,de;q=0.9,en;q=0.8", "de", "12.345,5", "05.11.2026 07:08"),
        ("en;q=0.8,de-CH", "de", "12’345.5", "05.11.2026 07:08"),
        ("xx;q=0.1, fr;q=0.5, en;q=0.4", "fr", "12\u202f345,5", "05/11/2026 07:08"),
        ("es, de;q=0.5", "de", "12.345,5", "05.11.2026 07:08"),
        ("de;q=0, en", "en", "12,345.5", "2026-11-05 07:08"),
        ("../../etc, *, ;;, de", "de", "12.345,5", "05.11.2026 07:08"),
    ],
)
def test_numbers_and_dates_are_of_the_language_of_the_texts(
    tmp_path: Path, accepted: str, tag: str, number: str, day: str
) -> None:
    def written(found: language.Language) -> tuple[str, str, str]:
        moment = Moment(datetime(2026, 11, 5, 7, 8, tzinfo=UTC))
        return found.tag, found.text(Figure("12,345.5")), found.text(moment)

    assert written(language_for(accepted)) == (ENGLISH, "12,345.5", "2026-11-05 07:08")
    for name in ("en", "de", "fr"):
        (tmp_path / f"{name}.mo").write_bytes(catalogues.compiled(catalogues.HEADER.format(tag=name), {}))
    with patch.object(language, "FOLDER", tmp_path):
        assert written(language_for(accepted)) == (tag, number, day)


def test_a_catalogue_is_used_once_it_is_whole(tmp_path: Path) -> None:
    english = (catalogues.FOLDER / "en.po").read_text(encoding="utf-8")
    german = english.replace("Language: en", "Language: de")
    for text, whole in ((german.replace('msgstr ", then "', 'msgstr ""'), False), (german, True)):
        folder = tmp_path / str(whole)
        folder.mkdir()
        (folder / "de.po").write_text(text, encoding="utf-8")
        with patch.object(catalogues, "FOLDER", folder), patch.object(language, "FOLDER", folder):
            assert catalogues.main(["--write"]) == 0
            assert (folder / "de.mo").exists() is whole
            assert is_translated("de-AT") is whole
            assert catalogues.main([]) == 0


def test_a_figure_within_a_sentence_within_a_list(other: Speaking, monkeypatch: pytest.MonkeyPatch) -> None:
    other()
    monkeypatch.setitem(language.CONVENTIONS, MADE_UP, language.CONVENTIONS["de"])
    text = JoinedTexts((say("ε = {epsilon}", epsilon=Figure("0.5")), "0.5"), ", ")
    assert language_for(MADE_UP).text(text) == "⟦ε = 0,5⟧⟦, ⟧0.5"
    part = say_count(1, "and {count} part more", "and {count} parts more")
    parts = say_count(1200, "and {count} part more", "and {count} parts more")
    assert [language_for(MADE_UP).text(one) for one in (part, parts)] == [
        "⟦and 1 part more⟧",
        "⟦and 1.200 parts more⟧",
    ]


@needs_chromium
@pytest.mark.long
def test_conventions_are_those_of_the_browser() -> None:
    with shared() as browser:
        page = browser.page()
        for tag, convention in language.CONVENTIONS.items():
            found = language.Language(tag=tag, convention=convention, catalogue=NullTranslations())
            for value, text in ((1234.5, "1,234.5"), (1234567.5, "1,234,567.5"), (0.25, "0.25")):
                written = page.run(f"return new Intl.NumberFormat('{tag}').format({value})")
                assert found.text(Figure(text)).replace("’", "'") == written.replace("’", "'"), tag
            if tag != "en":
                parts = '{day: "2-digit", month: "2-digit", year: "numeric", timeZone: "UTC"}'
                day = page.run(f"return new Intl.DateTimeFormat('{tag}', {parts}).format(Date.UTC(2026, 10, 5))")
                assert datetime(2026, 11, 5, tzinfo=UTC).strftime(convention.day) == day, tag
