"""What a data set promises to the people in it, as one page: the numbers, the words, and how they are shown."""

from lapwing.guarantee.page import Page
from lapwing.guarantee.rendering import as_document, as_html, as_text, require_translated
from lapwing.guarantee.sections import page_of, translated

__all__ = ["Page", "as_document", "as_html", "as_text", "page_of", "require_translated", "translated"]
