"""How the mark of a ledger is made: whole (written beside, then linked), at sequence 0, before the ledger's file."""

import os
import tempfile
from pathlib import Path

from lapwing.ledger.entries import GENESIS
from lapwing.ledger.mark import Mark, path_of, text_of
from lapwing.machine.drafts import sync_folder


def create(ledger: Path) -> None:
    """Create the mark of a ledger that does not exist yet; leave an existing mark alone."""
    path = path_of(ledger)
    descriptor, draft = tempfile.mkstemp(prefix=path.name, dir=path.parent)  # mode 0600
    try:
        os.write(descriptor, text_of(Mark(0, GENESIS)))
        # Synced before it has its name: a mark that is found is whole, also after a power failure.
        os.fsync(descriptor)
        os.link(draft, path)
    except FileExistsError:
        return
    finally:
        os.close(descriptor)
        os.unlink(draft)
    sync_folder(path.parent)
