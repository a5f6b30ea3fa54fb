"""For the documentation: `Guarantee: …`, `Args: …` in running text begin a paragraph, and are no box with a title.

Docstrings here say short sections in one sentence, which the parser of Google style takes for an admonition whose title
is the first line, or for plain text. Sections whose heading stands alone on its line are left to it.
"""

import re

import griffe

SECTION = re.compile(r"^(Guarantee|Args|Returns|Raises|Source): (\S.*(?:\n[ \t]+\S.*)*)", re.MULTILINE)


def in_bold(text: str) -> str:
    """Return a docstring with its short sections as paragraphs that begin with the heading in bold."""
    return SECTION.sub(lambda found: f"\n**{found[1]}.** " + re.sub(r"\n[ \t]+", "\n", found[2]), text)


class ShortSections(griffe.Extension):
    """Change each docstring before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Change the docstring of one module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = in_bold(obj.docstring.value)
