"""What a curator says of one data set: who may ask it, shares of its budget, its policy, and whether it is stopped.

Each is written into the store together with its line of the audit log. Then it is waited for until the ledger has
written down every charge that was decided before (`ServedDataset.settle`): so what was said holds once a call returns.
The routes call it for who sent a request, and the command line for the operator, beside a service that runs.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import final

from lapwing.documents.people_document import DefaultCostDocument, Division, Grants, PolicyDocument
from lapwing.errors import InvalidParameter
from lapwing.ledger.state import Spent
from lapwing.privacy.amounts import written
from lapwing.server.datasets import ServedDataset
from lapwing.server.default_costs import USUAL_DAILY_SHARE, DefaultCost, DefaultCosts
from lapwing.server.faulty_field import at_field
from lapwing.server.policies import Grant, Policies, Policy, grant_of, make_grant
from lapwing.server.store import StoreConnection


@final
class DatasetAccess:
    """Who may ask one data set, and how much.

    Args:
        by: Who says so, for the audit log.
    """

    def __init__(self, served: ServedDataset, policies: Policies, default_costs: DefaultCosts, by: str) -> None:
        self._served, self._policies, self._default_costs, self._by = served, policies, default_costs, by
        self.dataset = served.name

    def grants(self) -> Grants:
        """Return who may ask, and the shares of people and teams."""
        grants = self._policies.grants(self.dataset)
        return {
            "people": {grant.person: _text(grant.share) for grant in grants},
            "teams": {team: written(share) for team, share in self._policies.team_shares(self.dataset).items()},
            "trusted_with_time": [grant.person for grant in grants if grant.trusted_with_time],
        }

    def grant(self, person: str, share: Fraction | None, *, trusted_with_time: bool) -> None:
        """Let somebody ask, with a share of the budget or without one of their own."""
        view = self._served.session.budget(history=False)
        spending, cap, keys = view.spending, view.total, view.delta_keys
        self._policies.grant(
            self.dataset, person, share, spending, cap, keys, by=self._by, trusted_with_time=trusted_with_time
        )
        self._served.settle()

    def granting(self, person: str, share: Fraction | None) -> Callable[[StoreConnection], None]:
        """Return a function that makes a grant in a transaction. Call `settle` after it."""
        view = self._served.session.budget(history=False)
        grant, whole = Grant(person=person, share=share), Spent(amount=view.total.amount, delta=view.delta_keys)

        def make(connection: StoreConnection) -> None:
            make_grant(connection, self.dataset, grant, view.spending, whole, by=self._by)

        return make

    def approving(self, person: str, share: Fraction | None, *, needs_grant: bool) -> Callable[[StoreConnection], None]:
        """Return a function that makes a grant with another share. Call `settle` after it.

        Args:
            needs_grant: Refuse somebody who has no access any more.
        """
        view = self._served.session.budget(history=False)
        whole = Spent(amount=view.total.amount, delta=view.delta_keys)

        def make(connection: StoreConnection) -> None:
            before = grant_of(connection, self.dataset, person)
            if before is None and needs_grant:
                raise InvalidParameter(f"{person} has no access any more. Decline the request, or grant access first.")
            trusted = before is not None and before.trusted_with_time
            grant = Grant(person=person, share=share, trusted_with_time=trusted)
            make_grant(connection, self.dataset, grant, view.spending, whole, by=self._by)

        return make

    def settle(self) -> None:
        """Wait until the ledger has every charge from before a change."""
        self._served.settle()

    def withdraw(self, person: str) -> None:
        """Let somebody ask no more."""
        self._policies.withdraw(self.dataset, person, by=self._by)
        self._served.settle()

    def give_team(self, team: str, share: Fraction | None) -> None:
        """Give a team a share of the budget, or with None take it away."""
        view = self._served.session.budget(history=False)
        self._policies.give_team(self.dataset, team, share, view.spending, view.total, view.delta_keys, by=self._by)
        self._served.settle()

    def policy(self) -> PolicyDocument:
        """Return how the budget is shared out."""
        return _document(self._policies.policy(self.dataset))

    def set_policy(
        self, division: Division, most_epsilon: Fraction | None, least_share: Fraction | None
    ) -> PolicyDocument:
        """Say whether allowances share or split the budget, and the most and the least that one question costs."""
        if most_epsilon is not None and not self._served.session.price(most_epsilon).amount > 0:
            raise at_field("most_epsilon", InvalidParameter("most_epsilon must be above 0."))
        view = self._served.session.budget(history=False)
        spending, cap, keys = view.spending, view.total, view.delta_keys
        policy = self._policies.divide(
            self.dataset, division, most_epsilon, spending, cap, keys, least_share=least_share, by=self._by
        )
        self._served.settle()
        return _document(policy)

    def default_costs(self) -> dict[str, DefaultCostDocument]:
        """Return what queries cost that name no cost, by person."""
        return {person: _cost_document(cost) for person, cost in self._default_costs.all(self.dataset).items()}

    def default_cost(self, person: str) -> DefaultCostDocument:
        """Return what a query of somebody costs that names no cost."""
        return _cost_document(self._default_costs.of(self.dataset, person))

    def set_default_cost(
        self, person: str, epsilon: Fraction | None, daily_share: Fraction | None
    ) -> DefaultCostDocument:
        """Set what a query of somebody costs that names no cost, or with None let it be refused.

        Args:
            daily_share: Of the budget, for all such queries of a day; None for the usual.
        """
        if epsilon is not None and not self._served.session.price(epsilon).amount > 0:
            raise at_field("epsilon", InvalidParameter("epsilon must be above 0."))
        share = USUAL_DAILY_SHARE if daily_share is None else daily_share
        self._default_costs.set(self.dataset, person, epsilon, share, by=self._by)
        return self.default_cost(person)

    def stop(self, *, stopped: bool, reason: str | None = None) -> PolicyDocument:
        """Stop the data set: nothing is charged once this returns; or let it go on."""
        policy = self._policies.stop(self.dataset, stopped=stopped, by=self._by, reason=reason)
        self._served.settle()
        return _document(policy)


def _document(policy: Policy) -> PolicyDocument:
    return {
        "division": policy.division,
        "most_epsilon": _text(policy.most_epsilon),
        "least_share": written(policy.least_share),
        "stopped": policy.stopped,
    }


def _cost_document(cost: DefaultCost) -> DefaultCostDocument:
    return {
        "epsilon": _text(cost.epsilon),
        "daily_share": written(cost.daily_share),
        "spent_today": written(cost.spent),
    }


def _text(number: Fraction | None) -> str | None:
    return None if number is None else written(number)
