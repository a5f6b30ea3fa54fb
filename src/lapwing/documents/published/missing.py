"""The page at an address that has no published page: it is the same whether one was there or not."""

from functools import cache
from typing import Final

from lapwing.documents.published.page import style

_PAGE: Final = (
    '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    '<meta name="color-scheme" content="light dark">\n<title>No such page</title>\n<style>{style}</style>\n</head>\n'
    "<body>\n<main>\n<section>\n<h1>No such page</h1>\n"
    "<p>The page was withdrawn, or its address is unknown.</p>\n</section>\n</main>\n</body>\n</html>\n"
)


@cache
def missing_page() -> str:
    """Return the page."""
    return _PAGE.format(style=style())
