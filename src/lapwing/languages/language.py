"""Languages of readers: texts from gettext catalogues, and numbers and dates as their language writes them.

A catalogue is a file `xx.mo` in this folder, compiled from `xx.po` by `scripts/catalogues.py` once every text of it is
translated. Numbers and dates are written in the language of the texts. If a language has no catalogue, its readers get
English. A region of the language may write them in its own way, as `de-CH` does.
"""

import gettext
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, final

from lapwing.languages.phrases import Figure, JoinedTexts, Moment, Phrase

FOLDER: Final = Path(__file__).parent
ENGLISH: Final = "en"
MOST_ACCEPTED: Final = 20
"""Languages of a reader that are looked at."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Convention:
    """How numbers and dates are written.

    Args:
        point: Between the whole part and its decimals.
        group: Between thousands.
        day: The form of a day, for `strftime`.
        from_five: Whether numbers of four digits have no separator.
    """

    point: str = "."
    group: str = ","
    day: str = "%Y-%m-%d"
    from_five: bool = False


_SPACE, _NARROW = "\u00a0", "\u202f"
_DOTS: Final = Convention(point=",", group=".", day="%d.%m.%Y")
_SPACES: Final = Convention(point=",", group=_SPACE, day="%d.%m.%Y")
_SLASHES: Final = Convention(point=",", group=".", day="%d/%m/%Y")
CONVENTIONS: Final[dict[str, Convention]] = {
    "en": Convention(),
    **dict.fromkeys(("de", "da", "tr"), _DOTS),
    **dict.fromkeys(("fi", "nb", "no", "ru", "uk"), _SPACES),
    **dict.fromkeys(("el", "id", "vi", "pt"), _SLASHES),
    "es": Convention(point=",", group=".", day="%d/%m/%Y", from_five=True),
    "it": Convention(point=",", group=".", day="%d/%m/%Y", from_five=True),
    "nl": Convention(point=",", group=".", day="%d-%m-%Y"),
    "fr": Convention(point=",", group=_NARROW, day="%d/%m/%Y"),
    "pl": Convention(point=",", group=_SPACE, day="%d.%m.%Y", from_five=True),
    "pt-pt": Convention(point=",", group=_SPACE, day="%d/%m/%Y", from_five=True),
    "cs": Convention(point=",", group=_SPACE, day="%d. %m. %Y"),
    "sv": Convention(point=",", group=_SPACE, day="%Y-%m-%d"),
    "de-at": Convention(point=",", group=_SPACE, day="%d.%m.%Y"),
    "de-ch": Convention(point=".", group="\u2019", day="%d.%m.%Y"),
}
"""By language; those that are not listed are written as in English. Source: Unicode CLDR, numbers and short dates."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """How a page is written for a reader.

    Args:
        tag: The language of its texts, one that has a catalogue.
        convention: How it writes numbers and dates.
        catalogue: Its texts.
    """

    tag: str
    convention: Convention
    catalogue: gettext.NullTranslations

    def text(self, content: str) -> str:
        """Return a text in this language: a plain one as it is, a phrase from the catalogue.

        The texts are not escaped: code that writes HTML has to escape them.
        """
        match content:
            case Phrase():
                values = {name: self.text(value) for name, value in content.values.items()}
                return self._template(content).format(**values)
            case JoinedTexts():
                return self.catalogue.gettext(content.separator).join(map(self.text, content.parts))
            case Figure():
                return self._figure(content)
            case Moment():
                return content.time.strftime(f"{self.convention.day} %H:%M")
            case _:
                return content

    def _template(self, phrase: Phrase) -> str:
        if phrase.plural is None:
            return self.catalogue.gettext(phrase.template)
        return self.catalogue.ngettext(phrase.template, phrase.plural, phrase.number)

    def _figure(self, digits: str) -> str:
        """Return a number with the separators of this language.

        >>> from dataclasses import replace
        >>> pages = [replace(language_for("en"), convention=CONVENTIONS[tag]) for tag in ("de", "es", "en")]
        >>> [page.text(Figure("1,234.5")) for page in pages]
        ['1.234,5', '1234,5', '1,234.5']
        """
        convention = self.convention
        if convention.from_five:
            digits = re.sub(r"(?<![\d,])(\d),(\d{3})(?![\d,])", r"\1\2", digits)
        return digits.translate({ord(","): convention.group, ord("."): convention.point})


def language_for(accepted: str) -> Language:
    """Return the language for a reader.

    Args:
        accepted: A language tag such as "de-CH", or several with weights, in the form of the header Accept-Language.
    """
    known = catalogues()
    matching = ((asked, tag) for asked in _by_weight(accepted) for tag in _wider(asked) if tag in known)
    asked, tag = next(matching, (ENGLISH, ENGLISH))
    convention = next((CONVENTIONS[found] for found in _wider(asked) if found in CONVENTIONS), CONVENTIONS[ENGLISH])
    return Language(tag=tag, convention=convention, catalogue=_catalogue(FOLDER, tag))


def is_translated(tag: str) -> bool:
    """Tell whether pages are whole in a language, of which the tag may name a region: "de-CH"."""
    return any(wider in catalogues() for wider in _wider(tag.lower()))


def catalogues() -> tuple[str, ...]:
    """Return the languages that have a catalogue."""
    return _names(FOLDER)


@cache
def _names(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in folder.glob("*.mo")))


@cache
def _catalogue(folder: Path, tag: str) -> gettext.NullTranslations:
    if tag not in _names(folder):
        return gettext.NullTranslations()
    with (folder / f"{tag}.mo").open("rb") as file:
        return gettext.GNUTranslations(file)


def _by_weight(accepted: str) -> list[str]:
    """Return the tags of an Accept-Language header in lower case, the most wanted first."""
    weighted = []
    for part in accepted.split(",")[:MOST_ACCEPTED]:
        found = re.fullmatch(r"\s*([A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*)\s*(?:;\s*q=([01](?:\.[0-9]{0,3})?)\s*)?", part)
        if found is not None and float(found[2] or 1) > 0:
            weighted.append((float(found[2] or 1), found[1].lower()))
    return [tag for _, tag in sorted(weighted, key=lambda pair: -pair[0])]


def _wider(tag: str) -> list[str]:
    """Return a tag, and what is left as its last parts are cut off: "de-ch", "de"."""
    parts = tag.split("-")
    return ["-".join(parts[:length]) for length in range(len(parts), 0, -1)]
