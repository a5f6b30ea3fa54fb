"""The errors of Lapwing, by whose fault they are.

Every error that Lapwing raises on purpose descends from `LapwingError`. The leaves are split by who can mend the
matter: the caller (a parameter, a catalog), the policy (a refusal), the budget, or nobody in the conversation (a fault
of file, ledger or engine). `code` is stable and documented. `str(error)` has only public facts, so that an analyst may
see it: what was given, what is allowed, what to do next.
"""

from enum import Enum
from fractions import Fraction
from typing import ClassVar

import lapwing.installation  # noqa: F401 - it warns of another distribution, which may have overwritten `__init__.py`


class LapwingError(Exception):
    """Root of all errors that Lapwing raises on purpose.

    `charged` says whether a query that ended so was charged; None: nobody knows, or it depends. `searches_charged` says
    that bounds were found and charged before this was raised (`release.searches`). `message` is what happened, and what
    anybody can do. `curator_remedy` is what only the curator can do: a verb and what follows. `command` is what the
    curator types for it, in backticks, or without a `curator_remedy` what anybody types. `str` has all three, and
    `analyst_text` is for readers who have no command line. `missing` names a parameter that has to be given:
    each door for people adds how that is done there.
    """

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 6
    charged: bool | None = None
    searches_charged: bool = False
    message: str = ""
    curator_remedy: str = ""
    command: str = ""
    missing: str = ""

    def __init__(self, message: str = "", *, curator_remedy: str = "", command: str = "") -> None:
        self.message, self.curator_remedy, self.command = message, curator_remedy, command
        typed = ": ".join(filter(None, (curator_remedy, command)))
        super().__init__(joined(message, typed, "The curator can" if curator_remedy else "You can type"))

    @property
    def analyst_text(self) -> str:
        """The whole message, for an analyst who cannot edit the catalog or type a command."""
        return joined(self.message, self.curator_remedy, "Ask the curator to")

    def after(self, before: str) -> "LapwingError":
        """Return the same error with a sentence before it."""
        error = type(self)(f"{before} {self.message}", curator_remedy=self.curator_remedy, command=self.command)
        error.charged = self.charged
        return error

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


class RefusalCause(Enum):
    """The kind of a refusal. The values are stable: more may come, and none goes. Texts are for people.

    `docs/reference/refusals.md` lists them all. `RefusalCause(value)` of a value that this version does not know is
    `UNKNOWN`: a service may be newer than its client, or older.
    """

    @classmethod
    def _missing_(cls, value: object) -> "RefusalCause":
        return cls.UNKNOWN

    UNKNOWN = "unknown"
    """This version of Lapwing does not know the code."""
    INTERNAL = "internal"
    """Lapwing contradicts itself: a bug."""

    # Text
    NOT_A_QUERY = "not_a_query"
    """The text is empty or another statement, or the value is no text."""
    SEVERAL_STATEMENTS = "several_statements"
    """The text has more than one statement."""
    SYNTAX_ERROR = "syntax_error"
    """The text does not follow the grammar: a part is missing or misplaced."""
    INVALID_CHARACTER = "invalid_character"
    """The text has a character that is not text."""
    INVALID_NUMBER = "invalid_number"
    """A number is misspelled, too large or too fine."""
    INVALID_DATE = "invalid_date"
    """A date or a timestamp is misspelled, or has a time zone."""
    QUERY_TOO_LONG = "query_too_long"
    """The text has too many characters, words, levels or operators in a chain."""
    EXPLAIN_NEEDS_ITS_CALL = "explain_needs_its_call"
    """EXPLAIN PRIVACY asks for a cost, and the call runs queries."""

    # Parameters and options
    INVALID_PLACEHOLDER = "invalid_placeholder"
    """A parameter is misspelled, or stands where no value may stand."""
    MISSING_PARAMETER = "missing_parameter"
    """A parameter has no value, or the values do not match the parameters."""
    UNUSABLE_VALUE = "unusable_value"
    """A value has a type that cannot stand in a condition, or is a number that is infinite, huge or tiny."""
    UNKNOWN_OPTION = "unknown_option"
    """No option or argument has this name."""
    DUPLICATE_OPTION = "duplicate_option"
    """An option is given twice, or two clauses contradict each other."""
    MISPLACED_OPTION = "misplaced_option"
    """An option clause or a named argument stands in the wrong place."""
    INVALID_OPTION = "invalid_option"
    """The value of an option or argument is not allowed."""
    INAPPLICABLE_OPTION = "inapplicable_option"
    """An option or argument has no meaning for this query."""
    NOTHING_RELEASED = "nothing_released"
    """Options or named arguments stand in a part of the query in which nothing is released."""

    # Names
    UNKNOWN_TABLE = "unknown_table"
    """No table, view or graph has this name, or FROM does not name it."""
    UNKNOWN_COLUMN = "unknown_column"
    """No column has this name."""
    UNKNOWN_WINDOW = "unknown_window"
    """No window has this name."""
    AMBIGUOUS_COLUMN = "ambiguous_column"
    """Several tables, or several columns of the SELECT list, have this name."""
    DUPLICATE_NAME = "duplicate_name"
    """Two tables, columns or windows have one name."""
    COLUMN_LIST_MISMATCH = "column_list_mismatch"
    """A list of column names does not fit the columns that it names."""
    UNLISTED_VALUE = "unlisted_value"
    """A column is compared with a text that the catalog does not list."""
    INVALID_VIEW = "invalid_view"
    """A view of the catalog cannot be opened."""

    # Aggregates and groups
    NO_AGGREGATE = "no_aggregate"
    """The query has no aggregate, and rows are never shown."""
    NOT_GROUPED = "not_grouped"
    """A column is neither a key of GROUP BY nor inside an aggregate."""
    SHOWS_UNITS = "shows_units"
    """The result would have a group for each privacy unit."""
    PRIVACY_UNIT_AS_VALUE = "privacy_unit_as_value"
    """The privacy unit stands where its value would be read or shown."""
    STAR_NOT_SUPPORTED = "star_not_supported"
    """`*` or a pattern of columns stands where columns must be named."""
    INVALID_GROUP_KEY = "invalid_group_key"
    """GROUP BY has an aggregate, a constant or a number without steps."""
    KEYS_WITHOUT_NUMBER = "keys_without_number"
    """A subquery shows only keys, public ones even where no row has them."""
    VALUES_NOT_PUBLIC = "values_not_public"
    """The query needs keys with public values, and the values of a key are not public, or too many."""
    NO_POSSIBLE_KEYS = "no_possible_keys"
    """A condition compares with a result that is empty for all data."""
    NEEDS_DELTA = "needs_delta"
    """Groups whose keys are not public need a delta, which the query or the budget does not give."""
    PRIVATE_KEYS_UNPROVEN = "private_keys_unproven"
    """No proof covers private keys under these neighbours, or after this join or union."""
    NEEDS_MAX_GROUPS = "needs_max_groups"
    """One privacy unit may have too many keys for a selection by noise."""
    TOO_MANY_GROUPS = "too_many_groups"
    """The result would have too many groups."""
    TOO_MANY_COLUMNS = "too_many_columns"
    """A SELECT list has too many columns."""
    TOO_MANY_GROUPING_SETS = "too_many_grouping_sets"
    """GROUP BY has too many grouping sets."""
    GROUPING_SETS_NOT_SUPPORTED = "grouping_sets_not_supported"
    """This does not go with grouping sets."""
    TWICE_OVER_ANSWER = "twice_over_answer"
    """The SELECT list needs a second pass over the rows of a result."""

    # Bounds
    UNBOUNDED = "unbounded"
    """A value needs bounds, and neither the catalog nor the query states any."""
    UNBOUNDED_TIME = "unbounded_time"
    """A date or an order needs bounds, and neither the catalog nor the query states any."""
    BOUNDS_TOO_WIDE = "bounds_too_wide"
    """The bounds of a value are so wide that the noise would hide the result."""
    INVALID_BOUNDS = "invalid_bounds"
    """No value lies between the contribution bounds, or the aggregate needs other bounds."""
    BOUNDS_NOT_SEARCHABLE = "bounds_not_searchable"
    """Lapwing cannot find the bounds of these values by itself."""
    NEEDS_NONNEGATIVE = "needs_nonnegative"
    """The numbers may be negative, and the method needs numbers that are not."""
    NUMBER_OVERFLOW = "number_overflow"
    """A value may become larger or finer than an engine computes exactly."""
    EMPTY_CONDITION = "empty_condition"
    """A condition or filter can never hold."""

    # Types and arguments
    WRONG_TYPE = "wrong_type"
    """A value has another type than the function or operator needs."""
    INCOMPATIBLE_TYPES = "incompatible_types"
    """Values of different types are compared or combined."""
    NOT_A_CONDITION = "not_a_condition"
    """A condition is needed, and the expression is none."""
    CAST_CAN_FAIL = "cast_can_fail"
    """A cast fails for some values, so the failure could tell of a row."""
    CAST_NOT_SUPPORTED = "cast_not_supported"
    """Lapwing has no cast between these types."""
    WRONG_ARGUMENT_COUNT = "wrong_argument_count"
    """A function has too many or too few arguments."""
    NOT_CONSTANT = "not_constant"
    """An argument must be a constant."""
    INVALID_ARGUMENT = "invalid_argument"
    """An argument is outside its range, or not of the form that the function needs."""
    UNKNOWN_TIME_UNIT = "unknown_time_unit"
    """The unit or part of time is not one that the function has."""
    INVALID_PATTERN = "invalid_pattern"
    """A pattern is misspelled, or uses what Lapwing does not support."""
    PATTERN_TOO_LARGE = "pattern_too_large"
    """A pattern is too long, too deep or repeats too much."""
    INVALID_FORMAT = "invalid_format"
    """The format of a date is misspelled, or has a part that Lapwing does not support."""
    TEXT_TOO_LONG = "text_too_long"
    """A text may become too long."""
    DEPENDS_ON_CLOCK = "depends_on_clock"
    """The result would change with the time of day."""

    # Functions, clauses and windows
    FUNCTION_NOT_SUPPORTED = "function_not_supported"
    """Lapwing does not support the function or operator, or not here."""
    CLAUSE_NOT_SUPPORTED = "clause_not_supported"
    """Lapwing does not support the clause, or not here."""
    DISTINCT_NOT_SUPPORTED = "distinct_not_supported"
    """DISTINCT does not go with this aggregate or SELECT."""
    FILTER_NOT_SUPPORTED = "filter_not_supported"
    """FILTER does not go with this function."""
    HAVING_WITHOUT_GROUP_BY = "having_without_group_by"
    """HAVING stands in a SELECT that has no groups."""
    WINDOW_NOT_SUPPORTED = "window_not_supported"
    """Lapwing does not support the window or the window function, or not here."""
    WINDOW_NEEDS_ORDER = "window_needs_order"
    """A window function needs an ORDER BY, or one without ties."""
    INVALID_FRAME = "invalid_frame"
    """The frame of a window is misspelled, or not one that Lapwing supports."""
    NO_INTERVAL = "no_interval"
    """The column has no noise interval."""

    # Tables, joins and subqueries
    NO_FROM = "no_from"
    """The query names a column or counts rows, but has no FROM."""
    ONLY_PUBLIC_TABLES = "only_public_tables"
    """The query joins the protected table too late."""
    TABLE_NOT_QUERIED = "table_not_queried"
    """The table protects persons and days, so only a monitor may read it."""
    TOO_MANY_TABLES = "too_many_tables"
    """FROM names too many tables or views, or joins the rows of too many people."""
    JOIN_NOT_SUPPORTED = "join_not_supported"
    """Lapwing does not support this kind of join, or not of these tables."""
    JOIN_CONDITION_MISSING = "join_condition_missing"
    """A join has no equality that says which rows belong together."""
    JOIN_CONDITION_NOT_SUPPORTED = "join_condition_not_supported"
    """The condition of a join is not of the form that Lapwing supports."""
    UNLINKED_TABLES = "unlinked_tables"
    """Nothing says that the joined rows belong to one privacy unit."""
    DIFFERENT_UNITS = "different_units"
    """The tables have different privacy units."""
    ROWS_ARE_UNITS = "rows_are_units"
    """Each row is a privacy unit of its own, and the query needs several rows of one."""
    MIXES_UNITS = "mixes_units"
    """A subquery would merge, choose or compare rows of different privacy units."""
    SHARED_ROWS_NOT_SUPPORTED = "shared_rows_not_supported"
    """Rows in which different privacy units meet do not go with this part of the query."""
    SUBQUERY_NOT_SUPPORTED = "subquery_not_supported"
    """Lapwing does not support a subquery here, or not of this kind."""
    SUBQUERY_NOT_ONE_ROW = "subquery_not_one_row"
    """A subquery stands for one value, and may have several rows."""
    SUBQUERY_NOT_ONE_COLUMN = "subquery_not_one_column"
    """A subquery stands for one value, and has several columns."""
    INVALID_EXISTS = "invalid_exists"
    """EXISTS has another form than Lapwing supports."""
    PUBLIC_ROWS_NOT_DISTINCT = "public_rows_not_distinct"
    """A public table has too many rows for this query, or a value that no result can show, such as infinity."""
    SET_OPERATION_NOT_SUPPORTED = "set_operation_not_supported"
    """Lapwing does not support this UNION, INTERSECT or EXCEPT."""
    SET_OPERATION_MISMATCH = "set_operation_mismatch"
    """The sides of a UNION, INTERSECT or EXCEPT do not have the same columns."""

    # Work and time
    QUERY_TOO_COMPLEX = "query_too_complex"
    """The expressions, subqueries or joins grow larger than an engine plans in a moment."""
    RESULT_TOO_LARGE = "result_too_large"
    """The query is made of too many results, or of results with too many rows."""
    TIME_DEPENDS_ON_DATA = "time_depends_on_data"
    """The time of the query depends on the data, and the caller is not trusted with time."""
    TAKES_TOO_LONG = "takes_too_long"
    """The query may take longer than the service lets a caller wait."""
    NOT_SUPPORTED_BY_ENGINE = "not_supported_by_engine"
    """The engine of the data set does not have a part of the query."""
    MISSING_EXTRA = "missing_extra"
    """The query needs a library that is not installed."""

    # Costs and errors
    ERROR_NOT_PUBLIC = "error_not_public"
    """The error depends on the data, so Lapwing cannot find a cost for a wanted error."""
    ERROR_NOT_SINGLE = "error_not_single"
    """The query has no single error for which Lapwing could find a cost."""
    ERROR_TOO_SMALL = "error_too_small"
    """No cost reaches the wanted error."""
    ASSUMES_ROWS = "assumes_rows"
    """A wanted error of a mean needs `assuming_count`, the number of rows that you assume."""
    SHARES_EXCEED_COST = "shares_exceed_cost"
    """The aggregates ask for more than the cost of the query."""
    COST_NOT_ALLOWED = "cost_not_allowed"
    """A cost or a delta stands where none may be given."""
    COST_BELOW_MINIMUM = "cost_below_minimum"
    """The query costs less than the curator lets a query cost."""
    EPSILON_TOO_SMALL = "epsilon_too_small"
    """The noise would be out of range, or larger than any result."""

    # Graphs
    UNKNOWN_STATISTIC = "unknown_statistic"
    """No graph statistic has this name."""
    STATISTIC_NOT_SUPPORTED = "statistic_not_supported"
    """Lapwing does not release the statistic for a graph of this kind or with this protection."""
    GRAPH_TOO_LARGE = "graph_too_large"
    """The graph may have more edges than the statistic is computed for."""
    GRAPH_QUERY_NOT_SUPPORTED = "graph_query_not_supported"
    """The query of a graph has another form than Lapwing supports."""
    GRAPH_CONDITION_NOT_SUPPORTED = "graph_condition_not_supported"
    """The condition on edges has another form than Lapwing supports, or counts edges twice."""
    SEVERAL_GRAPHS = "several_graphs"
    """The query reads several graphs, another graph than the open one, or edges that two graphs protect differently."""
    NEEDS_DEGREE_LIMIT = "needs_degree_limit"
    """The statistic reads protected people, and the catalog has no limit on their edges."""

    # Holdouts, monitors and synthesis
    NOT_A_MEAN = "not_a_mean"
    """A holdout computes the mean of an expression over the rows of one table, and the query is another."""
    ROWS_NOT_INDEPENDENT = "rows_not_independent"
    """A person may have several rows, so a holdout's rows are not drawn independently."""
    NOISE_NOT_FRESH = "noise_not_fresh"
    """A holdout needs fresh noise, and the result was bought before or shares its noise."""
    HOLDOUT_OUTDATED = "holdout_outdated"
    """The data or the budget changed since the holdout was made."""
    STATISTIC_FAILS = "statistic_fails"
    """A Python statistic raises, or returns no number, for a row of zeros and empty texts."""
    NOT_MONITORED = "not_monitored"
    """A monitor cannot watch this query."""
    INVALID_SCHEDULE = "invalid_schedule"
    """The schedule of a monitor cannot be read."""
    NOT_COUNTED_ALONE = "not_counted_alone"
    """Synthesis cannot count these rows by themselves."""

    # Local collection and secure sums
    INVALID_TASK = "invalid_task"
    """The file is no task, or the task contradicts itself."""
    TASK_CLOSED = "task_closed"
    """The task is not open now."""
    TASK_FULL = "task_full"
    """The task takes no more clients or reports."""
    TOO_FEW_CLIENTS = "too_few_clients"
    """Fewer clients took part than the task needs."""
    ALREADY_REPORTED = "already_reported"
    """The device answered the task before."""
    REPORT_REFUSED = "report_refused"
    """The limits or the settings of the device forbid the report."""
    DELTA_TOO_LARGE = "delta_too_large"
    """The task asks for a larger delta than its clients can accept."""
    NEEDS_CANDIDATES = "needs_candidates"
    """The estimate needs a list of words to look for."""
    REPORTS_DELETED = "reports_deleted"
    """The estimate needs the reports, which were deleted."""


class QueryRefused(LapwingError):
    """A question is not understood or not allowed; it costs nothing.

    `cause` tells programs what `reason` and the remedies tell people. `remedy` is what an analyst can do: sentences.
    `curator_remedy` is what only the curator can do. It is a verb and what follows, in plain words and without a full
    stop: "declare bounds of the column in the catalog". `command` is for readers at a command line. `position` is the
    (line, column) in the question, both from 1, if it is known. `suggestion` is the name to write at `position`, in
    SQL, if only one name resembles the one there.
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
        command: str = "",
        position: tuple[int, int] | None = None,
        suggestion: str | None = None,
    ) -> None:
        self.reason = reason
        self.cause = cause
        self.remedy = remedy
        self.position = position
        self.suggestion = suggestion
        super().__init__(self._said(remedy), curator_remedy=curator_remedy, command=command)

    @property
    def analyst_remedy(self) -> str:
        """The remedies for an analyst, who cannot edit the catalog."""
        return joined(self.remedy, self.curator_remedy, "Ask the curator to")

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
            command=self.command,
            position=self.position,
            suggestion=self.suggestion,
        )

    def pointing_at(self, position: tuple[int, int] | None, reason: str = "") -> "QueryRefused":
        """Return the same refusal of another place, where no name is suggested."""
        remedies = {"remedy": self.remedy, "curator_remedy": self.curator_remedy, "command": self.command}
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
    """The question costs more than who asks may be charged, or than one question may cost; nothing was charged.

    `larger_limit` is a limit of the person that would bear it: a share of the budget. It is None if there is none, or
    if other limits are in the way, too. `dataset` is the data set's name, where it is known.
    """

    code = "allowance_exhausted"
    exit_status = 4
    charged = False
    larger_limit: Fraction | None = None
    dataset: str = ""


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
