"""Pages of refused forms: the error stands at its field, the field has the focus, and what was typed is still there.

This works on the text of a page, so that it holds for every form: a template has its fields, and nothing about errors.
A page never has a password or a code of a second factor. Scripts keep what was typed, passwords too, and take only the
errors from here (`static/console.js`).
"""

from collections.abc import Mapping
from html import escape
from html.parser import HTMLParser
from typing import Final, final

KEPT: Final = frozenset({"hidden", "password", "file", "radio", "checkbox"})
"""Types of inputs whose value a refused form does not write again; of the last two it writes whether they are on."""
CODE: Final = "one-time-code"
"""The autocomplete of fields for codes of a second factor and recovery codes."""
FIELDS: Final = frozenset({"input", "select", "textarea"})
LONGEST: Final = 1500


def with_error(page: str, action: str, field: str, text: str, typed: Mapping[str, str]) -> str | None:
    """Return a page with an error at a field of a form; None if the page has no such field to type into.

    Args:
        action: Where the form was sent.
        field: The name of the field.
        typed: The fields that were sent; none if the page has them already.
    """
    forms = _Forms(action)
    forms.feed(page)
    forms.close()
    sent = forms.sent(field, typed)
    writer = _RefusedForm(sent, field, text, typed, forms.around.get(sent, ()))
    writer.feed(page)
    writer.close()
    return "".join(writer.parts) if writer.shown else None


@final
class _Forms(HTMLParser):
    """Reads which of several forms with one action was sent: one with the field at fault and the fields that came."""

    def __init__(self, action: str) -> None:
        super().__init__()
        self._action, self._forms, self._inside = action, 0, False
        self._needed: dict[int, set[str]] = {}
        self._possible: dict[int, set[str]] = {}
        self._hidden: dict[int, set[tuple[str, str]]] = {}
        self._details, self._open = 0, list[int]()
        self.around: dict[int | None, tuple[int, ...]] = {}
        """The numbers of the `<details>` that a form is in."""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attributes}
        if tag == "details":
            self._open.append(self._details)
            self._details += 1
        if tag == "form":
            self.around[self._forms] = tuple(self._open)
            number, self._forms = self._forms, self._forms + 1
            self._inside = named.get("action") == self._action and named.get("method") == "post"
            if self._inside:
                self._needed[number], self._possible[number], self._hidden[number] = set(), set(), set()
        name, kind = named.get("name"), named.get("type")
        if not self._inside or name is None or (tag not in FIELDS and tag != "button"):
            return
        number = self._forms - 1
        self._possible[number].add(name)
        if tag != "button" and kind not in ("checkbox", "radio"):
            self._needed[number].add(name)
        if kind == "hidden":
            self._hidden[number].add((name, named.get("value", "")))

    def handle_endtag(self, tag: str) -> None:
        if tag == "details" and self._open:
            self._open.pop()
        if tag == "form":
            self._inside = False

    def sent(self, field: str, typed: Mapping[str, str]) -> int | None:
        """Return the number of the form on the page; None if the page has no form with this action."""

        def differences(number: int) -> tuple[bool, int]:
            missing = self._needed[number] - typed.keys()
            unknown = typed.keys() - self._possible[number]
            elsewhere = len(self._hidden[number] - set(typed.items()))
            return field not in self._possible[number], len(missing) + len(unknown) + elsewhere

        return min(self._needed, key=differences, default=None)


@final
class _RefusedForm(HTMLParser):
    """Copies a page, but for the form that was refused."""

    def __init__(
        self, sent: int | None, field: str, text: str, typed: Mapping[str, str], around: tuple[int, ...]
    ) -> None:
        super().__init__(convert_charrefs=False)
        self._details, self._around = 0, around
        self._sent, self._field, self._typed = sent, field, typed
        self._forms = 0
        self._text = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
        self._inside = self._skipping = False
        self._choice: str | None = None
        self._ending = ""
        self.parts: list[str] = []
        self.shown = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attributes}
        if tag == "form":
            self._inside = self._forms == self._sent
            self._forms += 1
        if tag == "details":
            opened = {"open": ""} if self._details in self._around else {}
            self._details += 1
            self._copy(_written(tag, {**named, **opened}))
            return
        if not self._inside or (tag not in FIELDS and tag != "option"):
            self._copy(self.get_starttag_text() or "")
            return
        name, kind = named.get("name", ""), named.get("type", "")
        faulty = name == self._field and kind != "hidden" and not self.shown and tag in FIELDS
        changes = self._typed_into(tag, named)
        if faulty:
            self.shown = True
            about = " ".join(filter(None, (f"error-{named.get('id') or name}", named.get("aria-describedby"))))
            changes |= {"aria-invalid": "true", "aria-describedby": about, "autofocus": ""}
        self._copy(_written(tag, {key: value for key, value in {**named, **changes}.items() if value is not None}))
        if faulty:
            id_ = escape(f"error-{named.get('id') or name}")
            message = f'<span class="fault" role="alert" id="{id_}"><bdi>{escape(self._text)}</bdi></span>'
            self._ending = message if tag != "input" else ""
            self._copy(message if tag == "input" else "")
        if tag == "textarea" and name in self._typed:
            self._copy("\n" + escape(self._typed[name], quote=False))
            self._skipping = True

    def _typed_into(self, tag: str, named: Mapping[str, str]) -> dict[str, str | None]:
        """Return the attributes by which a field has what was typed; None takes one away."""
        name, kind = named.get("name", ""), named.get("type", "")
        if not self._typed:  # the page has what was typed
            return {}
        if tag == "select":
            self._choice = name
        if tag == "option" and self._choice in self._typed and "value" in named:
            return {"selected": "" if named["value"] == self._typed[self._choice or ""] else None}
        if tag != "input" or not name:
            return {}
        if kind == "checkbox":
            return {"checked": "" if name in self._typed else None}
        if kind == "radio":
            return {"checked": "" if self._typed.get(name) == named.get("value") else None}
        kept = kind in KEPT or named.get("autocomplete") == CODE
        return {"value": self._typed[name]} if name in self._typed and not kept else {}

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._skipping = False
        self._copy(f"</{tag}>")
        if tag in ("select", "textarea"):
            self._choice = None
            self._copy(self._ending)
            self._ending = ""
        if tag == "form":
            self._inside = False

    def handle_data(self, data: str) -> None:
        self._copy(data)

    def handle_entityref(self, name: str) -> None:
        self._copy(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._copy(f"&#{name};")

    def handle_decl(self, decl: str) -> None:
        self._copy(f"<!{decl}>")

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._copy(self.get_starttag_text() or "")

    def _copy(self, text: str) -> None:
        if not self._skipping:
            self.parts.append(text)


def _written(tag: str, attributes: Mapping[str, str]) -> str:
    return f"<{tag}" + "".join(f' {name}="{escape(value)}"' for name, value in attributes.items()) + ">"
