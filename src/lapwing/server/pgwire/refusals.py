"""Refusals of statements, with the codes that PostgreSQL has for them."""

from collections.abc import Mapping
from typing import Final, final

from lapwing import errors
from lapwing.server.pgwire.messages import Report

PRICE_HINT: Final = (
    "Say what queries of this connection may cost: SET lapwing.epsilon = 0.1, or SET lapwing.error = 50 for a wanted "
    "95 % half-width. Or connect with options='-c lapwing.epsilon=0.1', or set a default cost in your account."
)
BOTH_HINT: Final = "Keep one of them: SET lapwing.epsilon = '' or SET lapwing.error = ''."
DELTA_HINT: Final = " Here: SET lapwing.delta = 1e-8."
MORE_HINT: Final = " The console has a form for it, on the page Requests."
ROWS_HINT: Final = "Say how many you assume: SET lapwing.assuming_count = 1000. Or SET lapwing.epsilon = 0.1."
CATALOG_HINT: Final = "To query the data, name a table of the data set in FROM: \\dt lists them."
STATES: Final[Mapping[type[errors.LapwingError], str]] = {
    errors.QueryRefused: "42501",
    errors.InvalidParameter: "22023",
    errors.NotAuthorised: "42501",
    errors.NotFound: "3D000",
    errors.BudgetExhausted: "53400",
    errors.AllowanceExhausted: "53400",
    errors.TooManyRequests: "53000",
    errors.DataChanged: "55000",
    errors.DataStopped: "55000",
    errors.AnswerDropped: "55000",
    errors.Interrupted: "57014",
}
"""The SQLSTATE of an error; of all others, 58000."""


@final
class StatementRefused(Exception):
    """A statement is refused."""

    def __init__(self, state: str, text: str, hint: str = "") -> None:
        self.report = Report(severity="ERROR", state=state, message=text, hint=hint)
        super().__init__(text)


def fatal(state: str, text: str, hint: str = "") -> Report:
    """Return the report with which a connection ends."""
    return Report(severity="FATAL", state=state, message=text, hint=hint)
