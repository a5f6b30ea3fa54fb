"""Check an installation with the wheel alone: its catalog, its path from a query to its answer, and its records."""

from lapwing.audit.comparison import AuditChanges
from lapwing.audit.findings import AuditCheck, AuditFinding, Severity
from lapwing.audit.report import AuditReport
from lapwing.audit.running import audit
from lapwing.audit.subject import AuditEffort, Subject

__all__ = ["AuditChanges", "AuditCheck", "AuditEffort", "AuditFinding", "AuditReport", "Severity", "Subject", "audit"]
