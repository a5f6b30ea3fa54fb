"""The report of an audit: its checks and their findings."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self, final

from lapwing.audit.findings import AuditCheck, AuditFinding, Severity
from lapwing.errors import InvalidParameter

FORM: Final = "lapwing audit 1"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """The result of auditing an installation.

    Args:
        dataset: Its name.
        catalog: The digest of its catalog.
        time: Of the audit, in UTC.
        version: Of Lapwing, with its build.
        quick: Whether checks that take longer than a minute were left out.
        entries: The number of entries in the ledger.
        seal: Of its newest entry, "" if there is none.
        checks: In order.
        graphs: The number of entries and the newest seal of each ledger that a graph has of its own.
    """

    dataset: str
    catalog: str
    time: str
    version: str
    quick: bool
    entries: int
    seal: str
    checks: tuple[AuditCheck, ...]
    graphs: Mapping[str, tuple[int, str]] = field(default_factory=dict)

    @property
    def violated(self) -> bool:
        """Whether something that is promised does not hold."""
        return any(check.violated for check in self.checks)

    @property
    def findings(self) -> Iterator[AuditFinding]:
        """All findings, the worst first."""
        order = list(Severity)
        every = [finding for check in self.checks for finding in check.findings]
        yield from sorted(every, key=lambda finding: order.index(finding.severity))

    def count(self, severity: Severity) -> int:
        """Return how many findings are of a severity."""
        return sum(finding.severity is severity for finding in self.findings)

    @property
    def head(self) -> tuple[str, ...]:
        """Its subject, its claims and what it leaves open, in sentences."""
        seal = f"The ledger has {self.entries:,} entries. The seal of the newest is {self.seal}." if self.seal else ""
        sentences = (
            f"Audit of the data set {self.dataset}, {self.time}, with Lapwing {self.version}.",
            f"The digest of the catalog is {self.catalog}.",
            seal,
            *(
                f"The ledger of graph {name} has {entries:,} entries. The seal of the newest is {newest}."
                for name, (entries, newest) in self.graphs.items()
                if newest
            ),
            "This report says of each check what it tried, what it can find, and what it left out.",
            "It does not say whether the curator took bounds from the data, or whether somebody rewrote all records.",
        )
        return tuple(filter(None, sentences))

    def to_record(self) -> dict[str, object]:
        """Return the report as JSON."""
        return {
            "form": FORM,
            "dataset": self.dataset,
            "catalog": self.catalog,
            "time": self.time,
            "version": self.version,
            "quick": self.quick,
            "ledger": {"entries": self.entries, "seal": self.seal},
            "graphs": {name: {"entries": entries, "seal": seal} for name, (entries, seal) in self.graphs.items()},
            "violated": self.violated,
            "checks": [check.to_record() for check in self.checks],
        }

    @classmethod
    def from_record(cls, record: Any) -> Self:
        """Read what `to_record` wrote.

        Raises:
            InvalidParameter: If a later release wrote it.
        """
        form = str(record["form"])
        if form != FORM and re.fullmatch(r"lapwing audit [0-9]{1,9}", form):
            raise InvalidParameter(
                f"The report has the form '{form}', and this Lapwing knows '{FORM}'. Use the release that wrote it, "
                f"or a newer one."
            )
        if form != FORM:
            raise ValueError("the form of a report")
        texts = {name: str(record[name]) for name in ("dataset", "catalog", "time", "version")}
        ledger = record["ledger"]
        return cls(
            quick=bool(record["quick"]),
            entries=int(ledger["entries"]),
            seal=str(ledger["seal"]),
            graphs={name: (int(one["entries"]), str(one["seal"])) for name, one in record.get("graphs", {}).items()},
            checks=tuple(map(AuditCheck.from_record, record["checks"])),
            **texts,
        )

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read an earlier report in JSON.

        Raises:
            InvalidParameter: If the file is none.
        """
        try:
            return cls.from_record(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InvalidParameter(
                f"{path} is not a report that `lapwing audit --json FILE` wrote; give one of this form: {FORM}."
            ) from None
