"""Plant every known kind of privacy bug into a copy of the package, audit with it, and write how long that took.

    python scripts/audit_planted_bugs.py [--write] [KIND ...]

Each bug is audited with `lapwing audit --quick`. One that it misses, as its power is small, is audited for ten minutes.
`--write` writes the table into docs/how-to/audit-bugs.md.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

ROOT: Final = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.planted_bugs import BUGS, PlantedBug, audited, installation, planted, seconds_until  # noqa: E402

PAGE: Final = ROOT / "docs" / "how-to" / "audit-bugs.md"
BEGIN: Final = "<!-- planted bugs: written by scripts/audit_planted_bugs.py -->\n"
END: Final = "<!-- end of the planted bugs -->"
ATTEMPTS: Final = (("--quick",), ("--minutes", "10"))


def minutes_until(bug: PlantedBug, catalog: Path) -> tuple[float, str] | None:
    """Return the minutes until an audit reports a bug, and the codes that it reports; None if it does not."""
    spent = 0.0
    for options in ATTEMPTS:
        with TemporaryDirectory() as folder:
            status, report = audited(catalog, planted(bug, Path(folder)), *options)
        seconds = seconds_until(report, bug.codes)
        if status == 1 and seconds is not None:
            codes = {finding["code"] for check in report["checks"] for finding in check["findings"]}
            return (spent + seconds) / 60, ", ".join(f"`{code}`" for code in sorted(codes & bug.codes))
        spent += sum(check["seconds"] for check in report["checks"])
    return None


def main() -> int:
    """Audit with every bug, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("kinds", nargs="*")
    options = parser.parse_args()
    rows, missed = ["| Bug | Minutes | Reported as |", "|---|---:|---|"], 0
    with TemporaryDirectory() as folder:
        catalog = installation(Path(folder))
        for bug in BUGS:
            if options.kinds and bug.kind not in options.kinds:
                continue
            found = minutes_until(bug, catalog)
            missed += found is None
            rows.append(f"| {bug.kind} | {'not found | ' if found is None else f'{found[0]:.1f} | {found[1]}'} |")
            print(rows[-1], flush=True)
    if options.write:
        text = PAGE.read_text(encoding="utf-8")
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        PAGE.write_text(before + BEGIN + "\n".join(rows) + "\n" + END + after, encoding="utf-8")
    return missed


if __name__ == "__main__":
    sys.exit(main())
