"""Where JavaScript runs in tests: Node, and Chromium with the files of a folder behind an address."""

import functools
import http.server
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import lapwing.local

MODULE: Final = Path(lapwing.local.__file__).parent / "browser" / "lapwing-local.mjs"
NODE: Final = shutil.which("node") or shutil.which("nodejs")
_SCRIPT: Final = """
import { webcrypto } from "node:crypto";
globalThis.crypto ??= webcrypto;
let input = "";
for await (const chunk of process.stdin) input += chunk;
const { run } = await import(process.argv[1]);
console.log(JSON.stringify(await run(await import(process.argv[2]), JSON.parse(input))));
"""


def in_node(script: Path, given: object, module: Path = MODULE) -> Any:
    """Return what `run(module, given)` of a script returns in Node."""
    assert NODE is not None
    command = [NODE, "--input-type=module", "-e", _SCRIPT, script.as_uri(), module.as_uri()]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[:2000]
    return json.loads(done.stdout)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map = {".mjs": "text/javascript", ".html": "text/html", ".json": "application/json"}  # noqa: RUF012

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder at an address of this machine."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
