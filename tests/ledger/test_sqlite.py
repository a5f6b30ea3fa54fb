"""What only a ledger in a file has: its files."""

import os
import stat
from pathlib import Path

from lapwing.privacy.measures import PureDP
from tests.support.ledger.ledgers import NAME, charged, opened


def test_only_the_owner_may_read_the_files(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        with opened(tmp_path / NAME) as ledger:
            charged(ledger, 0.1)
            files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    finally:
        os.umask(mask)
    assert set(files.values()) == {0o600}
    kinds = {name.removeprefix(NAME).split("-")[0] for name in files if not name.endswith(("-wal", "-shm"))}
    assert kinds == {"", ".mark", ".asker"}


def test_odd_file_names_and_links_lead_to_the_same_ledger(tmp_path: Path) -> None:
    path = tmp_path / "a %20?mode=memory#é.db"
    with opened(path) as ledger:
        charged(ledger, 0.5)
    (tmp_path / "link.db").symlink_to(path)
    with opened(tmp_path / "link.db") as ledger:
        assert ledger.state().account.spent == PureDP(0.5)
