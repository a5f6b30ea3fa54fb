"""A headless Chromium, driven by its DevTools protocol over a pipe: no port, no driver, no package.

Messages are JSON, each ended by a zero byte; the browser reads descriptor 3 and writes descriptor 4.
"""

import atexit
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, final

FLAGS: Final = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-pipe",
)  # fmt: skip


PATIENCE: Final = 120
"""Seconds without a word from a browser, after which a test ends rather than to wait for ever."""


def find_chromium() -> str | None:
    """Return the path of Chromium, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@final
class Page:
    """One tab: what it shows, and what its scripts return."""

    def __init__(self, browser: "Browser", target: str) -> None:
        self._browser, self.target = browser, target
        self._session = browser.ask("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")
        self.ask("Emulation.setScrollbarsHidden", {"hidden": True})  # as on telephones: they lie over the page

    def ask(self, method: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        return self._browser.ask(method, arguments, self._session)

    def run(self, script: str) -> Any:
        """Return what an async function body returns; what it throws is an AssertionError."""
        expression = f"(async () => {{ {script} }})()"
        arguments = {"expression": expression, "awaitPromise": True, "returnByValue": True, "userGesture": True}
        found = self.ask("Runtime.evaluate", arguments)
        if "exceptionDetails" in found:
            raise AssertionError(json.dumps(found["exceptionDetails"])[:2000])
        return found["result"].get("value")

    def go(self, url: str) -> None:
        """Open an address, and wait until it is loaded."""
        self.run("window.left = true")
        self.ask("Page.navigate", {"url": url})
        self.wait(f"!window.left && document.readyState == 'complete' && location.href.startsWith({json.dumps(url)})")

    def wait(self, condition: str, seconds: float = 20) -> None:
        """Wait until an expression is true."""
        loop = f"""
            const end = Date.now() + {1000 * seconds};
            while (!({condition})) {{
                if (Date.now() > end) return false;
                await new Promise((done) => setTimeout(done, 20));
            }}
            return true;"""
        for _ in range(3):  # a page that is left takes its script along
            with suppress(AssertionError, LookupError):
                assert self.run(loop), f"not within {seconds} s: {condition}"
                return
        assert self.run(loop), f"not within {seconds} s: {condition}"

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press and release a key."""
        arguments = {"key": key, "windowsVirtualKeyCode": code, "text": text}
        self.ask("Input.dispatchKeyEvent", {"type": "keyDown", **arguments})
        self.ask("Input.dispatchKeyEvent", {"type": "keyUp", **arguments})

    def offline(self, off: bool) -> None:
        """Cut the network, or give it back."""
        network = {"offline": off, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        self.ask("Network.emulateNetworkConditions", network)

    def look(self, file: Path, width: int, height: int, *, dark: bool = False) -> None:
        """Write a picture of the whole page, as wide as stated."""
        self.size(width, height, dark=dark)
        shot = self.ask("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True})
        file.write_bytes(base64.b64decode(shot["data"]))

    def size(self, width: int, height: int, *, dark: bool = False) -> None:
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", {"features": scheme})
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", metrics)

    def events(self, method: str) -> list[dict[str, Any]]:
        """Return what was told of this page so far, such as "Log.entryAdded"."""
        return [
            event["params"]
            for event in self._browser.told
            if event["method"] == method and event.get("sessionId") == self._session
        ]


@final
class Browser:
    """A running Chromium with a profile of its own, which is gone when it ends."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read, self._number, self._rest = write, read, 0, b""
        self._contexts: list[str] = []
        self.told: list[dict[str, Any]] = []

    def ask(self, method: str, arguments: dict[str, Any] | None = None, session: str | None = None) -> dict[str, Any]:
        number = self._sent(method, arguments, session)
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise LookupError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            if "method" in answer:
                self.told.append(answer)
            if answer.get("method") == "Page.javascriptDialogOpening":  # a tab waits until somebody has said yes
                self._sent("Page.handleJavaScriptDialog", {"accept": True}, answer["sessionId"])

    def _sent(self, method: str, arguments: dict[str, Any] | None, session: str | None) -> int:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": arguments or {}}
        if session:
            message["sessionId"] = session
        rest = memoryview(json.dumps(message).encode() + b"\0")
        while rest:  # a pipe takes less than the whole where a signal comes between
            rest = rest[os.write(self._write, rest) :]
        return self._number

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._read], [], [], PATIENCE)[0]:
                raise TimeoutError(f"Chromium said nothing for {PATIENCE} seconds.")
            data = os.read(self._read, 1 << 20)
            if not data:
                raise EOFError("Chromium ended.")
            self._rest += data
        whole, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(whole)
        return message

    def page(self, *, private: bool = True) -> Page:
        """Open a tab; a private one shares nothing with others."""
        arguments: dict[str, Any] = {"url": "about:blank"}
        if private:
            arguments["browserContextId"] = self.ask("Target.createBrowserContext")["browserContextId"]
            self._contexts.append(arguments["browserContextId"])
        return Page(self, self.ask("Target.createTarget", arguments)["targetId"])

    def forget(self) -> None:
        """Close the private tabs, and drop what they kept and told."""
        for context in self._contexts:
            self.ask("Target.disposeBrowserContext", {"browserContextId": context})
        self._contexts, self.told = [], []


@contextmanager
def shared() -> Iterator[Browser]:
    """Use the Chromium of this process, which runs until the process ends; its private tabs are closed afterwards."""
    browser = _kept()
    try:
        yield browser
    finally:
        browser.forget()


@cache
def _kept() -> Browser:
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(running(find_chromium() or ""))


@contextmanager
def running(program: str) -> Iterator[Browser]:
    """Start Chromium, and end it."""
    ours_in, theirs_out = os.pipe()
    theirs_in, ours_out = os.pipe()

    def take() -> None:  # the two ends as descriptors 3 and 4, whatever they are here
        os.dup2(spare_in, 3)
        os.dup2(spare_out, 4)

    spare_in, spare_out = os.dup2(theirs_in, 203), os.dup2(theirs_out, 204)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={profile}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=take, pass_fds=(3, 4), start_new_session=True,
        )  # fmt: skip
        for descriptor in (theirs_in, theirs_out, spare_in, spare_out):
            os.close(descriptor)
        browser = Browser(ours_out, ours_in)
        try:
            yield browser
        finally:
            with suppress(OSError, EOFError, LookupError):
                browser.ask("Browser.close")
            os.close(ours_in)
            os.close(ours_out)
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            if process.poll() is None:
                process.kill()
                process.wait()
