"""Checks of an audit, and the findings of each.

A check that found nothing says little without its power. So each says what was tried, the smallest violation that it
would have found, and what it did not try.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self, final

from lapwing.audit.headings import CheckHeading, heading_of


class Severity(StrEnum):
    """Classes of findings, the worst first.

    `violated`: something that Lapwing promises does not hold here. `warning`: the promise holds, and may be worth less
    than people think. `remark`: good to know.
    """

    violated = "violated"
    warning = "warning"
    remark = "remark"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFinding:
    """One thing that an audit found.

    Args:
        code: The kind of finding, in lower case with underscores. Stable: reports are compared by it.
        severity: Its class.
        about: The subject, such as "table visits, column age" or "entry 17". Reports are compared by it, too.
        what: The fact, in whole sentences. No row of the protected data decides it.
        remedy: The steps to take, in whole sentences.
    """

    code: str
    severity: Severity
    about: str
    what: str
    remedy: str

    @property
    def identity(self) -> tuple[str, str]:
        """The key by which two reports are compared."""
        return self.code, self.about

    def to_record(self) -> dict[str, str]:
        """Return the finding as JSON."""
        return {
            "code": self.code,
            "severity": self.severity.value,
            "about": self.about,
            "what": self.what,
            "remedy": self.remedy,
        }

    @classmethod
    def from_record(cls, record: Any) -> Self:
        """Read what `to_record` wrote."""
        severity = Severity(record["severity"])
        texts = {name: str(record[name]) for name in ("code", "about", "what", "remedy")}
        return cls(severity=severity, **texts)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCheck:
    """One check of an audit.

    Args:
        name: Of the check, for people. Stable.
        tried: The number of things that were tried.
        what_was_tried: These things, such as "entries of the ledger".
        power: The smallest violation that would have been found.
        not_tried: Things that the check leaves out, "" if there are none.
        findings: Of this check.
        seconds: The time that it took.
    """

    name: str
    tried: int
    what_was_tried: str
    power: str
    not_tried: str = ""
    findings: tuple[AuditFinding, ...] = ()
    seconds: float = 0.0

    @property
    def violated(self) -> bool:
        """Whether something that is promised does not hold."""
        return any(finding.severity is Severity.violated for finding in self.findings)

    @property
    def heading(self) -> CheckHeading:
        """Its heading for people."""
        return heading_of(self.name)

    @property
    def outcome(self) -> str:
        """The outcome in a word or two, for people: nothing passes that was not tried."""
        if self.violated:
            return "violated"
        return "passed" if self.tried else "not tried"

    def to_record(self) -> dict[str, object]:
        """Return the check as JSON."""
        return {
            "name": self.name,
            "tried": self.tried,
            "what_was_tried": self.what_was_tried,
            "power": self.power,
            "not_tried": self.not_tried,
            "seconds": round(self.seconds, 3),
            "findings": [finding.to_record() for finding in self.findings],
        }

    @classmethod
    def from_record(cls, record: Any) -> Self:
        """Read what `to_record` wrote."""
        texts = {name: str(record[name]) for name in ("name", "what_was_tried", "power", "not_tried")}
        findings = tuple(map(AuditFinding.from_record, record["findings"]))
        return cls(tried=int(record["tried"]), findings=findings, seconds=float(record["seconds"]), **texts)
