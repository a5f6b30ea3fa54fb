"""Changes between two audits of the same installation."""

from dataclasses import dataclass
from typing import Self, final

from lapwing.audit.findings import AuditFinding
from lapwing.audit.report import AuditReport


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditChanges:
    """Findings of a report, compared with an earlier report by their codes and subjects.

    Args:
        earlier: The time of the earlier audit.
        new: Findings that the earlier report does not have.
        gone: Findings that only the earlier report has.
        unchanged: Findings of both, in the words of the later report.
    """

    earlier: str
    new: tuple[AuditFinding, ...]
    gone: tuple[AuditFinding, ...]
    unchanged: tuple[AuditFinding, ...]

    @classmethod
    def between(cls, earlier: AuditReport, now: AuditReport) -> Self:
        """Compare two reports."""
        before = {finding.identity: finding for finding in earlier.findings}
        after = {finding.identity: finding for finding in now.findings}
        return cls(
            earlier=earlier.time,
            new=tuple(finding for name, finding in after.items() if name not in before),
            gone=tuple(finding for name, finding in before.items() if name not in after),
            unchanged=tuple(finding for name, finding in after.items() if name in before),
        )

    def to_record(self) -> dict[str, object]:
        """Return the changes as JSON."""
        return {
            "earlier": self.earlier,
            "new": [finding.to_record() for finding in self.new],
            "gone": [finding.to_record() for finding in self.gone],
            "unchanged": [finding.to_record() for finding in self.unchanged],
        }
