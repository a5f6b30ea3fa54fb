"""Pages for the public in the reader's language: sentences that can be translated, catalogues, numbers and dates."""

from lapwing.languages.language import ENGLISH, Language, catalogues, is_translated, language_for
from lapwing.languages.phrases import Figure, JoinedTexts, Moment, Phrase, say, say_count

__all__ = [
    "ENGLISH",
    "Figure",
    "JoinedTexts",
    "Language",
    "Moment",
    "Phrase",
    "catalogues",
    "is_translated",
    "language_for",
    "say",
    "say_count",
]
