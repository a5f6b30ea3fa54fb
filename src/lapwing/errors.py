"""The errors of Lapwing, by whose fault they are.

Every error that Lapwing raises on purpose descends from `LapwingError`. The leaves are split by who can mend the
matter: the caller (a parameter, a catalog), the policy (a refusal), the budget, or nobody in the conversation (a fault
of file, ledger or engine). `code` is stable and documented. `str(error)` has only public facts, so that an analyst may
see it: what was given, what is allowed, what to do next.
"""

from typing import ClassVar

import lapwing.installation  # noqa: F401 - it warns of another distribution, which may have overwritten `__init__.py`
from lapwing.refusal_causes import RefusalCause as RefusalCause


class LapwingError(Exception):
    """Root of all errors that Lapwing raises on purpose.

    `charged` says whether a query that ended so was charged; None: nobody knows, or it depends. `searches_charged` says
    that bounds were found and charged before this was raised (`release.searches`).
    """

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 6
    charged: bool | None = None
    searches_charged: bool = False

    def __reduce__(self) -> tuple[object, ...]:
        """Be sent to another process as it is, whatever its class wants to be made with."""
        return _as_it_was, (type(self), self.args, self.__dict__)


def _as_it_was(kind: type[LapwingError], arguments: tuple[object, ...], facts: dict[str, object]) -> LapwingError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(facts)
    return error


class InvalidParameter(LapwingError):
    """A parameter has a value that is not allowed; nothing was read, drawn or charged."""

    code = "invalid_parameter"
    exit_status = 2
    charged = False


class CatalogError(LapwingError):
    """A catalog is missing, unreadable or says something that cannot be meant."""

    code = "invalid_catalog"
    exit_status = 2
    charged = False


class CatalogMismatch(LapwingError):
    """A catalog contradicts what its ledger was opened with; nothing was changed."""

    code = "catalog_mismatch"
    exit_status = 2
    charged = False


class QueryRefused(LapwingError):
    """A question is not understood or not allowed; it costs nothing.

    `cause` tells programs what `reason` and the remedies tell people. `remedy` is what an analyst can do: sentences.
    `curator_remedy` is what only the curator can do. It is a verb and what follows, in plain words and without a full
    stop: "declare bounds of the column in the catalog". `position` is the (line, column) in the question, both from 1,
    if it is known. `suggestion` is the name to write at `position`, in SQL, if only one name resembles the one there.
    """

    code = "query_refused"
    exit_status = 3
    charged = False

    def __init__(
        self,
        reason: str,
        *,
        cause: RefusalCause = RefusalCause.UNKNOWN,
        remedy: str = "",
        curator_remedy: str = "",
        position: tuple[int, int] | None = None,
        suggestion: str | None = None,
    ) -> None:
        self.reason = reason
        self.cause = cause
        self.remedy = remedy
        self.curator_remedy = curator_remedy
        self.position = position
        self.suggestion = suggestion
        super().__init__(self._said(joined(remedy, curator_remedy, "The curator can")))

    @property
    def analyst_remedy(self) -> str:
        """The remedies for an analyst, who cannot edit the catalog."""
        return joined(self.remedy, self.curator_remedy, "Ask the curator to")

    @property
    def analyst_text(self) -> str:
        """The whole message, for an analyst who cannot edit the catalog; `str` is for those who may."""
        return self._said(self.analyst_remedy)

    def _said(self, remedy: str) -> str:
        where = f" (line {self.position[0]}, column {self.position[1]})" if self.position else ""
        return f"{self.reason}{where}." + (f" {remedy}" if remedy else "")

    def reworded(self, reason: str, remedy: str) -> "QueryRefused":
        """Return the same refusal in other words."""
        return QueryRefused(
            reason,
            cause=self.cause,
            remedy=remedy,
            curator_remedy=self.curator_remedy,
            position=self.position,
            suggestion=self.suggestion,
        )

    def pointing_at(self, position: tuple[int, int] | None, reason: str = "") -> "QueryRefused":
        """Return the same refusal of another place, where no name is suggested."""
        remedies = {"remedy": self.remedy, "curator_remedy": self.curator_remedy}
        return QueryRefused(reason or self.reason, cause=self.cause, position=position, **remedies)


def joined(remedy: str, curator_remedy: str, asking: str) -> str:
    """Return what an analyst can do, then what a curator can, as one text."""
    return " ".join(part for part in (remedy, curator_remedy and f"{asking} {curator_remedy}.") if part)


class DataChanged(LapwingError):
    """The data are not those that the ledger's current version was opened with; nothing was charged."""

    code = "data_changed"
    exit_status = 3
    charged = False


class DataStopped(LapwingError):
    """Too many questions failed after their charge since the curator last looked; nothing was charged."""

    code = "data_stopped"
    exit_status = 3
    charged = False


class BudgetExhausted(LapwingError):
    """The question costs more than the budget has left; nothing was charged."""

    code = "budget_exhausted"
    exit_status = 4
    charged = False


class AllowanceExhausted(LapwingError):
    """The question costs more than who asks may be charged, or than one question may cost; nothing was charged."""

    code = "allowance_exhausted"
    exit_status = 4
    charged = False


class NotAuthorised(LapwingError):
    """The server does not know who asks, or who asks may not do this; nothing was read or charged."""

    code = "not_authorised"
    exit_status = 5
    charged = False


class SecondFactorNeeded(LapwingError):
    """The password is right, and its owner has a second factor, of which no code was sent; nothing was read."""

    code = "second_factor_needed"
    exit_status = 5
    charged = False


class NotFound(LapwingError):
    """The server has no such object, or none that who asks may know of."""

    code = "not_found"
    exit_status = 2
    charged = False


class KeyConflict(LapwingError):
    """An idempotency key was used for another request, or for one of which nobody knows how it ended."""

    code = "key_conflict"
    exit_status = 2


class AnswerDropped(LapwingError):
    """The server kept this answer no longer than its operator lets it; nothing was charged."""

    code = "answer_dropped"
    exit_status = 2
    charged = False


class TooManyRequests(LapwingError):
    """The caller has sent too many requests in too short a time; nothing was charged."""

    code = "too_many_requests"
    exit_status = 3
    charged = False


class Fault(LapwingError):
    """Something outside the conversation failed: a file, the ledger, the engine, the source of randomness."""

    code = "fault"


class DataFault(Fault):
    """The source of a table is missing, unreadable or not of the kind that the catalog says."""

    code = "data_fault"
    charged = False


class AnswerFault(Fault):
    """The answer to a query could not be shown, which is a fault of Lapwing; nothing was charged."""

    code = "answer_fault"
    charged = False


class EngineFault(Fault):
    """The question failed after the charge; the message is the same for every cause."""

    code = "engine_fault"
    charged = True


class LedgerFault(Fault):
    """The ledger cannot be trusted or written; nothing is answered until that is mended."""

    code = "ledger_fault"


class ServiceFault(Fault):
    """The server, or the way to it, failed; whether a question was charged is in its history."""

    code = "service_fault"


class EntropyFault(Fault):
    """The operating system gave no, or too little, randomness; nothing was drawn."""

    code = "entropy_fault"
    charged = True


class Interrupted(LapwingError):
    """The user stopped a question; `charged` says whether its price was already paid."""

    code = "interrupted"
    exit_status = 130

    def __init__(self, *, charged: bool) -> None:
        self.charged = charged
        super().__init__(
            "Interrupted after the charge: the cost is charged and nothing was released."
            if charged
            else "Interrupted before the charge: nothing was paid."
        )


def was_charged(error: LapwingError) -> bool | None:
    """Tell whether a query that ended so was charged, its searches included; None if nobody knows."""
    return True if error.searches_charged else error.charged


def charge_in_words(charged: bool | None) -> str:
    """Say whether a query that ended without an answer was charged, as `was_charged` tells it."""
    if charged is None:
        return "We could not confirm whether this query ran. The history shows it if it was charged."
    return "This query was charged, and has no answer." if charged else "This query did not run. Nothing was charged."
