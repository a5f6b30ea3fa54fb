"""The page of a guarantee as text, as JSON, and as HTML that prints on A4: no script, nothing from elsewhere."""

import base64
import textwrap
from collections.abc import Iterator, Mapping
from hashlib import sha256
from html import escape
from typing import Any, Final, cast

from typing_extensions import TypedDict

from lapwing.errors import InvalidParameter
from lapwing.guarantee.page import CodedSentence, Page, PageSection, PromisedFiguresDocument, Row
from lapwing.languages import ENGLISH, catalogues, is_translated, language_for, say

PRINT: Final = """@page { size: A4; margin: 18mm 20mm;
  @bottom-right { content: counter(page) " / " counter(pages); font: 9pt sans-serif; }
}
@media print {
  body { font-size: 10.5pt; max-width: none; margin: 0; padding: 0; color: #000; background: #fff; }
  p, tr, table:not(:has(tr:nth-child(9))) { break-inside: avoid; }
  summary { display: none; } ::details-content { content-visibility: visible; }
  h2, p:has(+ table) { break-after: avoid; } h2 { margin-top: 1.2em; }
  table { width: 100%; } td, th { border-bottom: 1px solid #bbb; } td { overflow-wrap: anywhere; }
  td:first-child { min-width: 6em; }
}
"""
STYLE: Final = """body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
summary { font-weight: bold; margin-top: 2rem; cursor: pointer; }
h2 { margin-top: 2rem; } table { border-collapse: collapse; }
td, th { padding: 0.2rem 0.8rem 0.2rem 0; text-align: left; vertical-align: top; } .short { white-space: nowrap; }
:root { color-scheme: light dark; }
@media (max-width: 48rem) { h1, td, th { overflow-wrap: anywhere; } .short { white-space: normal; } }
"""
OWN_STYLE: Final = f"'sha256-{base64.b64encode(sha256((STYLE + PRINT).encode()).digest()).decode()}'"
"""The style of the page, as a content security policy names it."""
_FIGURES: Final = tuple(PromisedFiguresDocument.__annotations__)
EXACT: Final = say("The exact statement")
"""All sections of a page but the first."""
WIDTH: Final = 100
SHORT: Final = 24
"""Letters of a cell that is not broken into lines; longer ones are, wherever it must be."""


class CodedSentenceDocument(TypedDict):
    """A sentence for programs: a stable code, and the values in the sentence.

    The code `text` is one of the curator's own texts.
    """

    code: str
    values: dict[str, str]


class SectionDocument(TypedDict):
    """A heading, paragraphs, and a table.

    The codes are stable, and the same in each language. `statements` has the sentences of each paragraph. `row_codes`
    has a code for each row, empty if the row begins with a value.
    """

    code: str
    title: str
    paragraphs: list[str]
    statements: list[list[CodedSentenceDocument]]
    columns: list[str]
    rows: list[list[str]]
    row_codes: list[str]


class PageDocument(TypedDict):
    """The page of the guarantee."""

    dataset: str
    date: str
    language: str
    """Of the texts."""
    promise: PromisedFiguresDocument | None
    """None if the page is from an older service."""
    sections: list[SectionDocument]


def as_document(page: Page) -> PageDocument:
    """Return the page as JSON has it."""
    sections = [_section_document(section) for section in page.sections]
    return {
        "dataset": page.dataset,
        "date": page.date,
        "language": page.language,
        "promise": page.figures,
        "sections": sections,
    }


def page_from(document: Mapping[str, Any]) -> Page:
    """Read what `as_document` wrote; what a later version adds is left out."""
    sections = (
        PageSection(
            title=section["title"],
            paragraphs=tuple(section["paragraphs"]),
            table=(tuple(section["columns"]), *map(tuple, section["rows"])) if section["columns"] else (),
            code=section.get("code", ""),
            statements=tuple(tuple(map(_sentence, said)) for said in section.get("statements", ())),
            row_codes=tuple(section.get("row_codes", ())),
        )
        for section in document["sections"]
    )
    promise = document.get("promise")
    return Page(
        dataset=document["dataset"],
        date=document["date"],
        sections=tuple(sections),
        language=document.get("language", ENGLISH),
        figures=None if promise is None else cast("PromisedFiguresDocument", {one: promise[one] for one in _FIGURES}),
    )


def _sentence(document: Mapping[str, Any]) -> CodedSentence:
    return CodedSentence(code=document["code"], values=document["values"])


def _section_document(section: PageSection) -> SectionDocument:
    names, *rows = section.table or ((),)
    return {
        "code": section.code,
        "title": section.title,
        "paragraphs": list(section.paragraphs),
        "statements": [[{"code": one.code, "values": dict(one.values)} for one in said] for said in section.statements],
        "columns": list(names),
        "rows": [list(row) for row in rows],
        "row_codes": list(section.row_codes),
    }


def as_text(page: Page) -> str:
    """Return the page as plain text, at most 100 columns wide but for tables that need more."""
    return "\n".join(_text_lines(page)) + "\n"


def _text_lines(page: Page) -> Iterator[str]:
    yield from _headings(page)
    for section in page.sections:
        yield from ("", section.title, "-" * len(section.title))
        for paragraph in section.paragraphs:
            yield from textwrap.wrap(paragraph, WIDTH)
        yield from _text_table(section.table)


def _headings(page: Page) -> tuple[str, str]:
    """Return the title of a page and the line below it, in its language."""
    text = language_for(page.language).text
    return text(say("What {dataset} promises", dataset=page.dataset)), text(say("As of {date} UTC.", date=page.date))


def _text_table(rows: tuple[Row, ...]) -> Iterator[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))] if rows else []
    for row in rows:
        yield "  " + "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def as_html(page: Page) -> str:
    """Return the page as HTML that needs no other file; all but the plain words is folded, but on paper."""
    title, date = _headings(page)
    plain, *exact = map(html_section, page.sections)
    summary = escape(language_for(page.language).text(EXACT))
    body = f"{plain}<details><summary>{summary}</summary>{''.join(exact)}</details>"
    return standing_alone(title, date, body, page.language)


def standing_alone(title: str, line: str, body: str, language: str) -> str:
    """Return a page of HTML with its style inside, and a policy that allows the style and nothing else.

    Args:
        line: The text below the title.
        body: The rest, as HTML.
    """
    title = escape(title)
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>'
    policy = f"default-src 'none'; style-src {OWN_STYLE}; base-uri 'none'; form-action 'none'"
    head += f'<meta http-equiv="Content-Security-Policy" content="{policy}"><style>{STYLE + PRINT}</style>'
    top = f"<h1>{title}</h1><p>{escape(line)}</p>"
    return f'<!doctype html><html lang="{escape(language)}"><head>{head}</head><body>{top}{body}</body></html>\n'


def html_section(section: PageSection, chart: str = "") -> str:
    """Return a section as HTML, with a chart after its table."""
    paragraphs = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in section.paragraphs)
    return f"<section><h2>{escape(section.title)}</h2>{paragraphs}{_html_table(section.table)}{chart}</section>"


def _html_table(rows: tuple[Row, ...]) -> str:
    if not rows:
        return ""
    head, *others = rows
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    body = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in others)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _html_cell(cell: str) -> str:
    start = '<td class="short">' if len(cell) <= SHORT else "<td>"
    return f"{start}{escape(cell)}</td>"


def require_translated(language: str) -> None:
    """Refuse a language in which the page would not be whole.

    Raises:
        InvalidParameter: If it is not translated.
    """
    if not is_translated(language):
        raise InvalidParameter(
            f"The page is not translated into the language {language[:40]!r}. Choose one of {', '.join(catalogues())}. "
            "docs/contributing/translate.md says how to add a language."
        )
