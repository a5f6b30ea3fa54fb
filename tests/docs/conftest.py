"""Sessions of this room use one database after another: what one may open is a matter of `tests/engines`.

The site is built once for all tests that read it.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.docs.pages import ROOT
from tests.support.engines.reused import reused_databases

__all__ = ["reused_databases"]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site, where a warning is an error, and return its folder."""
    folder = tmp_path_factory.mktemp("site")
    build = ["-W", "ignore", "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run([sys.executable, *build], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder
