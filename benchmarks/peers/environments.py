"""Environments of their own for peers: made once, with pinned versions, in a folder of the user's cache.

A peer pins what it needs (OpenDP one version of Polars, SmartNoise one of pandas), so no one environment suits them
all. What cannot be installed or does not run ends the benchmark with what the peer's process said: a comparison that
leaves out a peer in silence is none.
"""

import hashlib
import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any, Final

PINS: Final = {
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn==1.5.2", "pandas==2.2.3"),
    "OpenDP": ("opendp[polars]==0.16.0",),
    "OpenDP-mbi": ("opendp[mbi]==0.16.0", "pandas==2.2.3"),  # which its synthetic rows need without saying so
    "PipelineDP": ("pipeline-dp==0.3.1",),
    "jax-privacy": ("jax-privacy==2.0.0",),
    "SmartNoise": ("smartnoise-sql==1.0.10",),
    # With the Spark that it asks for, below 4; the newest core that it takes.
    "Tumult": ("tmlt.analytics==0.21.0", "tmlt.core==0.19.1", "pyspark==3.5.9"),
}
HERE: Final = Path(__file__).parent


def interpreter(peer: str) -> Path:
    """Return the Python of a peer's environment; one that is not there, or of other pins, is made first."""
    pins = PINS[peer]
    named = hashlib.sha256(" ".join((sys.version, *pins)).encode()).hexdigest()[:8]
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = cache / "lapwing-benchmarks" / f"{peer.lower()}-{named}"
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists():
        print(f"installing {', '.join(pins)} into {folder}", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *pins])
        ready.touch()
    return python


def ask(peer: str, script: str, request: object) -> Any:
    """Return what a script of this folder prints as JSON, in a peer's environment, for a request as JSON."""
    return json.loads(_run([str(interpreter(peer)), str(HERE / script), json.dumps(request)]))


def _run(command: list[str]) -> str:
    """Return what a command prints, with no package of ours in sight; its failure ends the benchmark."""
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    outside["PYSPARK_PYTHON"] = command[0]  # Spark takes the one that is first on PATH otherwise
    ended = subprocess.run(command, capture_output=True, text=True, env=outside, check=False)
    if ended.returncode:
        raise SystemExit(f"{' '.join(command[:2])} failed:\n{ended.stderr[-3000:]}")
    return ended.stdout
