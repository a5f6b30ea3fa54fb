"""Write a report: JSON, HTML, and a manifest of both, signed like the manifest of a release."""

import json
import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from lapwing.audit.report import AuditReport
from lapwing.machine.drafts import draft_of
from lapwing.tabulation.signing import SigningKey


def write(content: str, file: Path) -> None:
    """Write a whole file that only its owner can read."""
    with draft_of([content], file) as draft:
        os.replace(draft, file)


def write_manifest(report: AuditReport, files: Iterable[Path], key: SigningKey) -> Path:
    """Write and sign the manifest of a report's files, beside the first of them, and return its path.

    `lapwing release verify MANIFEST --public-key FILE` checks it, and that no file was changed.
    """
    listed = list(files)
    manifest = listed[0].with_name(f"{listed[0].stem}.manifest.json")
    document = {
        "audit": report.dataset,
        "catalog": report.catalog,
        "time": report.time,
        "lapwing": report.version,
        "ledger": {"entries": report.entries, "seal": report.seal},
        "violated": report.violated,
        "tables": [],
        "files": [{"file": file.name, "sha256": sha256(file.read_bytes()).hexdigest()} for file in listed],
    }
    write(json.dumps(document, indent=2) + "\n", manifest)
    key.sign(manifest)
    return manifest
