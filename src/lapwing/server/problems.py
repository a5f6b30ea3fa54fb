"""Every error as a problem document (RFC 9457), with the stable code of `lapwing.errors`.

What an analyst is told is the message of a `LapwingError`, which holds public facts only, or a constant. Of anything
else that goes wrong the log gets the kind and the place, never the message: that could hold a value.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Annotated, Any, Final, NotRequired

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ConfigDict, Field, TypeAdapter, with_config
from starlette.exceptions import HTTPException
from typing_extensions import TypedDict

from lapwing import errors
from lapwing.privacy.amounts import written
from lapwing.server.faulty_field import field_of
from lapwing.server.log import log

MEDIA_TYPE: Final = "application/problem+json"
STATUS: Final[Mapping[type[errors.LapwingError], int]] = {
    errors.InvalidParameter: 422,
    errors.QueryRefused: 422,
    errors.CatalogError: 422,
    errors.CatalogMismatch: 409,
    errors.NotAuthorised: 403,
    errors.SecondFactorNeeded: 401,
    errors.NotFound: 404,
    errors.KeyConflict: 409,
    errors.AnswerDropped: 410,
    errors.DataChanged: 409,
    errors.DataStopped: 409,
    errors.BudgetExhausted: 409,
    errors.AllowanceExhausted: 409,
    errors.Interrupted: 409,
    errors.TooManyRequests: 429,
    errors.AnswerFault: 500,
    errors.DataFault: 503,
    errors.LedgerFault: 503,
    errors.EntropyFault: 503,
    errors.Fault: 503,
    errors.ServiceFault: 504,
}
TITLES: Final = {
    "not_authorised": "Not authorised",
    "not_found": "Not found",
    "second_factor_needed": "A second factor is needed",
    "query_refused": "The query was refused",
    "budget_exhausted": "The budget is exhausted",
    "allowance_exhausted": "The allowance is exhausted",
    "too_many_requests": "Too many requests",
    "invalid_parameter": "Invalid parameter",
    "invalid_request": "Invalid request",
}
UNREAD: Final = frozenset({"invalid_request", "request_too_large", "request_timeout", "method_not_allowed"})
"""Codes of requests that are no request, so that nothing was charged. What a `LapwingError` says of it, it says."""
FROM_HTTP: Final = {401: "not_authorised", 404: "not_found", 405: "method_not_allowed", 413: "request_too_large"}
ALL_REQUESTS: Final = "All requests are described at /docs, and at /openapi.json."
MOST_PLACES: Final = 5
FAULTS: Final[Mapping[str, str]] = {
    "missing": "Fill in this field.",
    "string_too_long": "Write at most {max_length:,} characters.",
    "too_long": "Write at most {max_length:,} characters.",
    "string_too_short": "Write at least {min_length:,} characters.",
    "greater_than_equal": "Write a number of at least {ge}.",
    "greater_than": "Write a number above {gt}.",
    "less_than_equal": "Write a number of at most {le}.",
    "less_than": "Write a number below {lt}.",
    "literal_error": "Choose one of {expected}.",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "Write a whole number, such as 10."),
    **dict.fromkeys(("float_type", "float_parsing"), "Write a number, such as 0.5."),
}
"""Advice for a field, by the type of its fault."""
LOOK: Final[Mapping[type[errors.LapwingError], str]] = {
    errors.Fault: "the store of people: its disk or database, and the rights of the service's user; workers of Spark",
    errors.DataFault: "the files or the source of the data set: `lapwing data check`",
    errors.EngineFault: "memory, the disk of temporary files, and the data: `lapwing data faults`",
    errors.LedgerFault: "the disk or database of the ledger: `df`, then `lapwing ledger verify`",
    errors.ServiceFault: "the load of the machine, and lines about the question process",
    errors.EntropyFault: "the random numbers of the operating system",
}
"""Where an operator looks first, by what failed; `docs/operate/faults.md` says more."""
STORE: Final = (
    "The service's store cannot be used; its log says why. Run it again later: a query that was charged is free then."
)
DESCRIBED: Final[dict[str, Any]] = {
    "description": "A problem document.",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


@with_config(ConfigDict(extra="forbid"))
class Problem(TypedDict):
    """What went wrong (RFC 9457). `code` is stable. The fields of refused queries begin at `reason`.

    `cause` is the stable code of the refusal. `remedy` says what an analyst can do, `curator_remedy` what only the
    curator can; other errors may have it, too. `larger_limit` is a share of the budget that would bear the
    query as the limit of its person. `charged` is there if it is known. `field` is the field of the body
    that is at fault, such as `days` or `bounds.age`, if there is one. `fault` says what to write there, if the body
    does not match the description.
    """

    type: str
    title: str
    status: Annotated[int, Field(ge=400, le=599)]
    code: str
    detail: str
    reason: NotRequired[str]
    remedy: NotRequired[str]
    position: NotRequired[Annotated[list[int], Field(min_length=2, max_length=2)]]
    cause: NotRequired[str]
    curator_remedy: NotRequired[str]
    larger_limit: NotRequired[str]
    suggestion: NotRequired[str]
    charged: NotRequired[bool]
    field: NotRequired[str]
    fault: NotRequired[str]


SCHEMA: Final = TypeAdapter(Problem).json_schema()


def may_raise(*kinds: type[errors.LapwingError]) -> dict[str, Any]:
    """Return what a route's description says of the errors that are its own (`openapi_extra`)."""
    return {"x-codes": [kind.code for kind in kinds]}


def codes(path: str, operation: Mapping[str, Any]) -> list[str]:
    """Return all codes of a request, in the order in which what they stand for is looked at.

    To those that its route declares are added those of what a request is made of: a token, names in its path, a body,
    a data set.
    """
    parts = [
        (("not_authorised", "too_many_requests"), "security" in operation),
        (("invalid_request",), True),
        (("request_too_large", "request_timeout"), "requestBody" in operation),
        (("not_found",), "{" in path),
        (operation.get("x-codes", ()), True),
        (("ledger_fault",), "{dataset}" in path or "{answer}" in path),
        (("fault", "internal"), True),
    ]
    return list(dict.fromkeys(code for kinds, applies in parts if applies for code in kinds))


def status_of(error: errors.LapwingError) -> int:
    """Return the HTTP status of an error."""
    return STATUS.get(type(error), 500)


def problem(code: str, status: int, detail: str, field: str | None = None) -> Problem:
    """Return a problem document."""
    title = TITLES.get(code, code.replace("_", " ").capitalize())
    said: Problem = {
        "type": f"urn:lapwing:problem:{code}",
        "title": title,
        "status": status,
        "code": code,
        "detail": detail,
    }
    if field is not None:
        said["field"] = field
    return {**said, "charged": False} if code in UNREAD else said


def problem_of(error: errors.LapwingError, status: int | None = None) -> Problem:
    """Return the problem document of an error."""
    document = problem(error.code, status or status_of(error), error.analyst_text, field_of(error))
    if error.curator_remedy:
        document["curator_remedy"] = error.curator_remedy
    if isinstance(error, errors.QueryRefused):
        document |= {"reason": error.reason, "remedy": error.analyst_remedy, "cause": error.cause.value}
        if error.position is not None:
            document["position"] = list(error.position)
        if error.suggestion is not None:
            document["suggestion"] = error.suggestion
    if isinstance(error, errors.AllowanceExhausted) and error.larger_limit is not None:
        document["larger_limit"] = written(error.larger_limit)
    charged = errors.was_charged(error)
    if charged is not None:
        document["charged"] = charged
    return document


def response(document: Problem, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return a problem document as a response."""
    return JSONResponse(dict(document), status_code=document["status"], media_type=MEDIA_TYPE, headers=headers)


def refusal(error: errors.LapwingError, request: Request) -> JSONResponse:
    """Return what a request is answered that ended in an error."""
    status, headers = status_of(error), {}
    caller = getattr(request.state, "caller", None)
    error = told(error, None if caller is None else caller.name, request.path_params.get("dataset"))
    if isinstance(error, errors.NotAuthorised) and caller is None:
        status, headers = 401, {"WWW-Authenticate": "Bearer"}
    if isinstance(error, errors.TooManyRequests):
        headers = {"Retry-After": "1"}
    return response(problem_of(error, status), headers)


def told(error: errors.LapwingError, person: str | None, dataset: str | None) -> errors.LapwingError:
    """Log a fault, and return the error that the caller sees: about the store, only that it cannot be used.

    Args:
        person: None for somebody who is nobody yet, of whom the log says nothing.
    """
    if isinstance(error, errors.Fault):
        facts = {"dataset": dataset, "person": person}
        known = {name: fact for name, fact in facts.items() if person is not None and fact is not None}
        # When it leaves, and not when it happened. Of the store, it says where that is: for the operator to know.
        detail = {"detail": str(error)} if type(error) is errors.Fault else {}
        log("fault", code=error.code, look=LOOK.get(type(error), ""), **known, **detail)
    return errors.Fault(STORE) if type(error) is errors.Fault else error


def install(app: FastAPI, description: Callable[[], Mapping[str, Any]]) -> None:
    """Make every error of an application a problem document.

    Args:
        description: Returns that of all requests, as OpenAPI.
    """

    @app.exception_handler(errors.LapwingError)
    async def refused(request: Request, error: errors.LapwingError) -> JSONResponse:
        return refusal(error, request)

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> JSONResponse:
        places = [_place(fault) for fault in error.errors()[:MOST_PLACES]]
        detail = f"The request does not match the API description. {'; '.join(places)}."
        plain = detail.encode("ascii", "replace").decode()[:2000]
        document = problem("invalid_request", 422, plain, _field(error.errors()[0]))
        return response({**document, "fault": _in_words(error.errors()[0])})

    @app.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> JSONResponse:
        code = FROM_HTTP.get(error.status_code, "invalid_request")
        headers = dict(error.headers or {})
        if error.status_code == 405:  # FastAPI names the methods of one route of the path
            headers["Allow"] = ", ".join(_allowed(description(), request.url.path)) or headers.get("Allow", "")
        return response(problem(code, error.status_code, _plainly(error, headers.get("Allow"))), headers)

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        log("bug", kind=type(error).__name__, place=place_of(error))
        return response(internal())


def _allowed(description: Mapping[str, Any], path: str) -> list[str]:
    """Return the methods that a path allows, by the description of all requests."""
    described = description["paths"].items()
    matching = (methods for template, methods in described if re.fullmatch(re.sub(r"{[^}]*}", "[^/]+", template), path))
    return sorted({method.upper() for methods in matching for method in methods})


def _plainly(error: HTTPException, allowed: str | None) -> str:
    """Say what is wrong with a path or a method, which FastAPI says in two words; the path as sent is not repeated."""
    if error.status_code == 404:
        return f"This path does not exist. {ALL_REQUESTS}"
    if error.status_code == 405:
        return f"This path does not allow this method, but {allowed or 'others'}. {ALL_REQUESTS}"
    return f"{error.detail}."


def _place(fault: Mapping[str, Any]) -> str:
    """Say what is wrong with a request, and where."""
    if fault["type"] == "json_invalid":
        return f"The body is not JSON, from character {int(fault['loc'][-1]) + 1} on"
    return ".".join(map(str, fault["loc"])) + f": {fault['msg']}"


def _in_words(fault: Mapping[str, Any]) -> str:
    """Say to somebody who fills in a form what to write in the field.

    >>> _in_words({"type": "string_too_long", "ctx": {"max_length": 1000}, "msg": "String should have ..."})
    'Write at most 1,000 characters.'
    >>> _in_words({"type": "value_error", "msg": "Value error, odd"})
    'Write something else here: Value error, odd.'
    """
    pattern = FAULTS.get(fault["type"])
    if pattern is not None:
        with suppress(KeyError, ValueError):
            return pattern.format(**fault.get("ctx", {}))
    return f"Write something else here: {fault['msg']}.".encode("ascii", "replace").decode()[:500]


def _field(fault: Mapping[str, Any]) -> str | None:
    """Return the field of a body that does not match the description; None if the fault is elsewhere."""
    place, *path = fault["loc"]
    if place != "body" or fault["type"] == "json_invalid" or not path:
        return None
    return ".".join(map(str, path)).encode("ascii", "replace").decode()[:200]


def internal() -> Problem:
    """Return the one problem of what nobody expected."""
    return problem("internal", 500, "Something went wrong in the service; its log says where. Ask the curator.")


def place_of(error: BaseException) -> str:
    """Return where an error was raised: a module and a line, which are public."""
    trace, place = error.__traceback__, "unknown"
    while trace is not None:
        place = f"{trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
