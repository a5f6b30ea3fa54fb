from pathlib import Path

import pytest

from tests.support import proofs


@pytest.fixture(scope="session")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all proofs compiled."""
    folder = tmp_path_factory.mktemp("proofs")
    proofs.compile_all(folder)
    return folder
