"""The page for respondents in the reader's language: its script says which texts it needs, the catalogue has them."""

import json
import re
from html import escape
from typing import Final

from lapwing.languages import Language, say

COMMAND: Final = "lapwing local report"
SAID: Final = re.compile(r"\bsay\(\s*(\"(?:[^\"\\\n]|\\.)*\")")
"""A text in the page's script."""


def texts_of(script: str) -> list[str]:
    """Return the texts that the page's script says, in English."""
    return list(dict.fromkeys(json.loads(text) for text in SAID.findall(script)))


def survey_page(template: str, texts: list[str], language: Language) -> str:
    """Return the page for a reader: HTML, with the texts of its script as data that no browser runs."""
    known = {text: language.catalogue.gettext(text) for text in texts}
    without = language.text(
        say(
            "This page needs JavaScript to add noise to your answer on your device. Without JavaScript, nothing is "
            "sent. You can also answer with the command {command}.",
            command=COMMAND,
        )
    )
    return template.format(
        language=escape(language.tag),
        title=escape(language.text(say("Question"))),
        texts=json.dumps(known, ensure_ascii=False).replace("<", "\\u003c"),
        noscript=escape(without).replace(COMMAND, f"<code>{COMMAND}</code>"),
    )
