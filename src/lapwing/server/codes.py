"""Which codes a request may be answered with where it goes wrong, for the description of all requests.

Codes come from what a request is made of (a token, names in its path, a body, a data set) and from what it does.
"""

from collections.abc import Mapping
from typing import Any, Final

ASKING: Final = (
    "query_refused", "invalid_parameter", "budget_exhausted", "allowance_exhausted", "data_changed", "data_stopped",
    "key_conflict", "interrupted", "data_fault", "engine_fault", "entropy_fault", "service_fault", "too_many_requests",
)  # fmt: skip
REOPENING: Final = ("data_changed", "invalid_parameter", "service_fault", "too_many_requests")
SHARING: Final = ("invalid_parameter",)
OF: Final[Mapping[str, tuple[str, ...]]] = {
    "POST /v1/datasets/{dataset}/explain": ("query_refused", "invalid_parameter"),
    "POST /v1/datasets/{dataset}/query": ASKING,
    "POST /v1/datasets/{dataset}/batch": ASKING,
    "POST /v1/datasets/{dataset}/queries": ("key_conflict", "invalid_parameter", "query_refused"),
    "GET /v1/answers/{answer}": REOPENING,
    "GET /v1/answers/{answer}/consistent": REOPENING,
    "POST /v1/datasets": ("invalid_catalog", "invalid_parameter", "catalog_mismatch", "data_fault", "ledger_fault"),
    "PUT /v1/datasets/{dataset}/cap": ("invalid_parameter", "invalid_catalog", "catalog_mismatch", "data_stopped"),
    "PUT /v1/datasets/{dataset}/policy": SHARING,
    "PUT /v1/datasets/{dataset}/teams/{team}": SHARING,
    "PUT /v1/datasets/{dataset}/grants/{name}": SHARING,
    "POST /v1/datasets/{dataset}/accept": ("data_fault", "data_stopped", "catalog_mismatch"),
    "POST /v1/people": ("invalid_parameter",),
    "PATCH /v1/people/{name}": ("invalid_parameter",),
    "POST /v1/people/{name}/tokens": ("invalid_parameter",),
    "POST /v1/me/password": ("invalid_parameter",),
    "POST /v1/login": ("not_authorised", "invalid_parameter", "too_many_requests"),
}


def codes(method: str, path: str, operation: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the codes of a request, in the order in which what they stand for is looked at."""
    found: list[str] = []
    if operation.get("security"):
        found += ["not_authorised", "too_many_requests"]
    if operation.get("parameters") or "requestBody" in operation:
        found += ["invalid_request"]
    if "requestBody" in operation:
        found += ["request_too_large", "request_timeout"]
    if "{" in path:
        found += ["not_found"]
    found += OF.get(f"{method} {path}", ())
    if "{dataset}" in path or "{answer}" in path:
        found += ["ledger_fault"]
    return tuple(dict.fromkeys([*found, "fault", "internal"]))
