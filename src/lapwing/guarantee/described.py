"""The data dictionary on the page of the guarantee: the curator's own words, which no catalogue translates."""

from lapwing.catalog.dictionary import Texts
from lapwing.languages import say


def paragraphs_of(texts: Texts) -> tuple[str, ...]:
    """Return title, description and background of a data set or a table, as paragraphs."""
    background = (
        None if texts.owner is None else say("Owner: {text}", text=texts.owner, code="owner"),
        None if texts.provenance is None else say("Provenance: {text}", text=texts.provenance, code="provenance"),
        None if texts.licence is None else say("Licence: {text}", text=texts.licence, code="licence"),
        None if texts.contact is None else say("Contact: {text}", text=texts.contact, code="contact"),
    )
    described = () if texts.description is None else texts.description.split("\n")
    return tuple(text for text in (texts.title, *described, *background) if text)


def meaning_of(texts: Texts) -> str:
    """Return title, unit and description of a column, in one line."""
    unit = None if texts.unit is None else say("in {unit}", unit=texts.unit)
    return "; ".join(" ".join(part.split()) for part in (texts.title, unit, texts.description) if part)
