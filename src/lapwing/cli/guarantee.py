"""`lapwing guarantee`: what is promised to the people in the data, as a page to be printed."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from lapwing.cli.characters import to_json, visible
from lapwing.cli.console import note, print_text
from lapwing.cli.options import DEFAULT_CATALOG, CatalogFile, Dataset, Server, open_session

EXAMPLE: Final = """\b
Examples:
  lapwing guarantee
  lapwing guarantee --output guarantee.html"""


class PageFormat(StrEnum):
    """How the page is written."""

    text = "text"
    html = "html"
    json = "json"


ENDINGS: Final = {".html": PageFormat.html, ".json": PageFormat.json}


def command(
    form: Annotated[PageFormat | None, typer.Option("--format", help="The format; default text.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to a file; .html or .json sets the format."),
    ] = None,
    seal: Annotated[
        bool,
        typer.Option(
            "--seal",
            help="Show the seal (a hash) of the ledger's newest entry: for auditors, not to publish. A server "
            "shows it only to "
            "auditors and curators.",
        ),
    ] = False,
    language: Annotated[
        str | None,
        typer.Option("--language", metavar="TAG", help="The language of the page, if Lapwing has a translation: en."),
    ] = None,
    catalog: CatalogFile = DEFAULT_CATALOG,
    server: Server = None,
    dataset: Dataset = None,
) -> None:
    """Show the promise to the people in the data: in plain words, then exactly. The HTML prints on A4. Free."""
    # Here, so that `lapwing --help` loads no engine.
    from lapwing.guarantee import as_document, as_html, as_text, require_translated

    if language is not None:
        require_translated(language)
    chosen = form or (ENDINGS.get(output.suffix.lower()) if output is not None else None) or PageFormat.text
    with open_session(catalog, server, dataset) as session:
        page = session.guarantee(sealed=seal, language=language)
    if chosen is PageFormat.json:
        content = to_json(as_document(page))
    else:
        content = as_html(page) if chosen is PageFormat.html else visible(as_text(page), keep="\n")
    if output is None:
        print_text(content)
        return
    fresh = output.with_name(f".{output.name}.{os.getpid()}")
    fresh.write_text(content, encoding="utf-8")
    fresh.replace(output)
    note("written", str(output))
