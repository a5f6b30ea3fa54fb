"""Who has which rights at a data set: grants, accounts that cannot sign in, and curators and auditors without a grant.

Curators decided all of it. Everybody who may see the grants may see it. It has names, and roles at this
data set. So an auditor of a single data set does not learn of other data sets or of teams.
"""

from collections.abc import Iterable

from lapwing.documents.people_document import DatasetRole, Grants
from lapwing.server.accounts import ServiceAccount
from lapwing.server.people import Person


def overview(grants: Grants, people: Iterable[Person], accounts: Iterable[ServiceAccount], dataset: str) -> Grants:
    """Return the grants of a data set, with who of them is disabled, and who has rights without a grant."""
    found: list[Person | ServiceAccount] = [*people, *accounts]
    roles: dict[str, DatasetRole] = {}
    disabled: list[str] = []
    for one in found:
        may_sign_in = one.let_in if isinstance(one, ServiceAccount) else one.active
        role = role_at(one, dataset)
        if not may_sign_in:
            if one.name in grants["people"]:
                disabled.append(one.name)
        elif role is not None:
            roles[one.name] = role
    return {
        "people": grants["people"],
        "teams": grants["teams"],
        "trusted_with_time": grants["trusted_with_time"],
        "disabled": disabled,
        "roles": roles,
    }


def role_at(one: Person | ServiceAccount, dataset: str) -> DatasetRole | None:
    """Return what somebody is at a data set by a role: the one with more rights, if they have two."""
    held = {one.role, one.datasets.get(dataset)}
    return "curator" if "curator" in held else "auditor" if "auditor" in held else None
