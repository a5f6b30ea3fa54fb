"""Roles of people and rights of tokens, one sentence each: for help texts, and for the forms where they are chosen."""

from typing import Final

ROLES: Final = {
    "analyst": "runs queries on the data sets that a curator granted, and sees their own results.",
    "auditor": "sees all queries, costs, access and the audit log. An auditor runs no queries and changes nothing.",
    "curator": "registers data, grants access, sets limits and manages people. A curator may also run queries.",
}
DATASET_ROLES: Final = {
    "auditor": "sees all queries, costs and access of this data set.",
    "curator": "grants access, sets limits, and changes catalog, data and budget of this data set.",
}
RIGHTS: Final = {
    "read": "see data sets, costs, budgets and one's own results. It spends no budget.",
    "ask": "run queries, which spend budget.",
    "audit": "see everybody's queries, people, access, the audit log and metrics.",
    "admin": "change people, tokens, access, limits and data.",
}
ROLES_HELP: Final = " ".join(f"{role.capitalize()}: {says}" for role, says in ROLES.items())
RIGHTS_HELP: Final = " ".join(f"{right}: {says}" for right, says in RIGHTS.items())
