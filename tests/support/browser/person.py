"""Somebody at a browser who goes by what is on the page: fields by their labels, buttons and links by their texts."""

import json
from dataclasses import dataclass
from typing import Final, final

from tests.support.browser.chromium import Page

NAMED: Final = """
    const text = (element) => (element.innerText ?? "").trim().replace(/\\s+/g, " ");
    const seen = (element) => element.getClientRects().length > 0 && !element.disabled;
"""
PRESSED: Final = (
    NAMED
    + """
    const all = [...document.querySelectorAll("button, a, summary, input[type=submit]")].filter(seen);
    const found = all.find((one) => (text(one) || one.value) === name);
    if (!found) return null;
    found.scrollIntoView({ block: "center" });
    const box = found.getClientRects()[0];
    return [box.x + box.width / 2, box.y + box.height / 2];
"""
)
FIELD: Final = (
    NAMED
    + """
    const label = [...document.querySelectorAll("label")].filter(seen).find((one) => text(one).startsWith(name));
    const field = label?.control ?? document.querySelector(`[aria-label="${name}"], [placeholder="${name}"]`);
    if (!field) return null;
    field.focus();
    if (field.select) field.select();
    return field.tagName;
"""
)


FOCUSED: Final = (
    NAMED
    + """
    const at = document.activeElement, shown = at.closest(".cm-editor") ?? at;
    const ring = () => getComputedStyle(shown).outlineStyle !== "none";
    for (let looks = 0; looks < 25 && !ring(); looks++) await new Promise((done) => setTimeout(done, 20));
    return [at.getAttribute("aria-label") ?? at.labels?.[0]?.innerText ?? text(at), ring()];
"""
)


@final
@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who sees one tab; `home` is where the service is."""

    page: Page
    home: str

    def opens(self, path: str) -> None:
        """Open an address, wherever it leads."""
        self.page.run("window.left = true")
        self.page.ask("Page.navigate", {"url": f"{self.home}{path}"})
        self.page.wait("!window.left && document.readyState == 'complete'")

    def reads(self, text: str) -> None:
        """Wait until the page says something."""
        self._until(f"document.body?.innerText.replace(/\\s+/g, ' ').includes({json.dumps(text)})")

    def sees_nothing_of(self, text: str) -> None:
        assert text not in self.page.run("return document.body.innerText")

    def types(self, label: str, text: str) -> None:
        """Type into the field of a label, in the place of what is there."""
        self._until(f"(() => {{ const name = {json.dumps(label)}; {FIELD} }})()")
        self.page.ask("Input.insertText", {"text": text})

    def strikes(self, key: str, code: int = 0, *, held: int = 0) -> None:
        """Strike a key; held: 2 with Ctrl, 8 with Shift."""
        text = "\r" if key == "Enter" else key if len(key) == 1 and not held else ""
        told = {"key": key, "code": key, "windowsVirtualKeyCode": code or ord(key[0].upper()), "modifiers": held}
        self.page.ask("Input.dispatchKeyEvent", {"type": "keyDown", "text": text, **told})
        self.page.ask("Input.dispatchKeyEvent", {"type": "keyUp", **told})

    def tabs_to(self, name: str, most: int) -> None:
        """Go on by Tab, so many times at most, to what has a name; all on the way shows that it has the focus."""
        for _ in range(most):
            self.strikes("Tab", 9)
            at, ring = self.page.run(FOCUSED)
            assert ring, f"{at} does not show that it has the focus"
            if at == name:
                return
        raise AssertionError(f"{name} is not within {most} steps: {at}")

    def chooses(self, label: str, text: str) -> None:
        """Choose from a list."""
        self._until(f"(() => {{ const name = {json.dumps(label)}; {FIELD} }})()")
        self.page.run(
            "const list = document.activeElement; "
            f"list.value = [...list.options].find((one) => one.text === {json.dumps(text)}).value; "
            "list.dispatchEvent(new Event('change', { bubbles: true }))"
        )

    def writes(self, sql: str) -> None:
        """Write a question into the editor."""
        self.page.wait("document.querySelector('.cm-content')")
        self.page.run("document.querySelector('.cm-content').focus(); document.execCommand('selectAll')")
        self.page.ask("Input.insertText", {"text": sql})

    def presses(self, text: str) -> None:
        """Press a button or follow a link, with the mouse."""
        self._until("document.readyState === 'complete'")  # an editor that comes later moves what is below it
        self._until(f"(() => {{ const name = {json.dumps(text)}; {PRESSED} }})()")
        x, y = self.page.run(f"const name = {json.dumps(text)}; {PRESSED}")
        for kind in ("mousePressed", "mouseReleased"):
            self.page.ask("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1})

    def signs_in(self, name: str, password: str) -> None:
        self.opens("/console/sign-in")
        self.types("Name", name)
        self.types("Password", password)
        self.presses("Sign in")

    def _until(self, condition: str) -> None:
        try:
            self.page.wait(condition)
        except AssertionError as error:
            shown = self.page.run("return location.href + ' ' + document.body.innerText")
            raise AssertionError(f"{error}\nIt shows: {shown[:3000]}") from None

    @property
    def elsewhere(self) -> list[str]:
        """What pages of the service asked of anybody but the service so far."""
        sent = [
            (event["documentURL"], event["request"]["url"]) for event in self.page.events("Network.requestWillBeSent")
        ]
        return [url for page, url in sent if page.startswith(self.home) and not url.startswith((self.home, "data:"))]
