"""The ledgers of graphs whose edges are protected, and charges that a graph makes in two ledgers.

Such a graph has a ledger of its own. It gets the same checks as the ledger of people. A query about edges may also be
charged to people, as a group of edges, and a query about nodes to edges (`graphs.asking`). So each charge of one ledger
must have its charge in the other. A group of k loses at most k·ε in a pure ledger. In gdp and zcdp ledgers it loses
k²·μ² and k²·ρ.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Final

from lapwing.audit import chain, charges, files, kept_totals, totals
from lapwing.audit.findings import AuditCheck, AuditFinding, Severity
from lapwing.audit.headings import OF_GRAPH
from lapwing.audit.subject import AuditEffort, Subject, body_of
from lapwing.catalog.graph import EDGE, Graph
from lapwing.graphs.asking import key_of_text
from lapwing.graphs.pricing import BOUGHT

CHECKS: Final[tuple[Callable[[Subject, AuditEffort], Iterator[AuditCheck]], ...]] = (
    chain.checks,
    totals.checks,
    kept_totals.checks,
    charges.checks,
    files.ledger_checks,
)
REMEDY: Final = (
    "Run no query about this graph. Restore the newest copies of both ledgers. If both copies have these entries, "
    "report a bug with this report. Count the missing loss as spent."
)


def checks(subject: Subject, effort: AuditEffort) -> Iterator[AuditCheck]:
    """Yield the checks of each ledger that a graph has of its own, and of charges in two ledgers."""
    for name, own in subject.graphs:
        yield from (_named(check, name) for source in CHECKS for check in source(own, effort))
    for graph in subject.catalog.graphs:
        pair = _ledgers(graph, subject)
        if pair is not None:
            yield _named(_in_two_ledgers(graph, *pair), graph.name)


def since(subject: Subject, earlier: Mapping[str, tuple[int, str]]) -> Iterator[AuditCheck]:
    """Yield the check of each graph's ledger that it still has the newest entry of an earlier report."""
    for name, own in subject.graphs:
        if name in earlier:
            yield _named(chain.since(own, *earlier[name]), name)


def _named(check: AuditCheck, graph: str) -> AuditCheck:
    """Return a check with the name of its graph, so that no two checks or findings are taken for each other."""
    findings = tuple(replace(one, about=f"graph {graph}, {one.about}") for one in check.findings)
    return replace(check, name=f"{check.name}{OF_GRAPH}{graph}", findings=findings)


def _ledgers(graph: Graph, people: Subject) -> tuple[Subject, Subject, int] | None:
    """Return the ledger of a graph, the other one in which its queries count, and the size of the group there."""
    owned, replaced = dict(people.graphs), people.catalog.budget.neighbouring == "replace_one"
    if graph.privacy == EDGE:
        if graph.public_nodes or graph.degree_at_most is None:
            return None
        return owned[graph.name], people, graph.degree_at_most * (2 if replaced else 1)
    edges = next((one for one in people.catalog.graphs if one.name in owned and one.edges == graph.edges), None)
    if edges is None or edges.budget is None:
        return None
    group = (1 if replaced else 2) * (2 if edges.budget.neighbouring == "replace_one" else 1)
    return people, owned[edges.name], group


def _in_two_ledgers(graph: Graph, own: Subject, other: Subject, group: int) -> AuditCheck:
    """Return the check that each charge of a graph has a charge in the other ledger that is large enough."""
    kind, same = other.catalog.budget.measure, own.catalog.budget.measure == other.catalog.budget.measure
    opened = next((entry.time for entry in other.entries if entry.kind == "open"), "")
    ending = f", of {'edges' if graph.privacy == EDGE else 'nodes'}, as a group of {group}"
    paid: dict[str, list[Fraction]] = {}
    for _, question, amount, _ in _charges(other):
        paid.setdefault(question, []).append(amount)
    tried, findings = 0, list[AuditFinding]()
    for sequence, question, amount, key in sorted(_charges(own), key=lambda one: one[2], reverse=True):
        if key != key_of_text(graph, question):
            continue  # of another query, or under an earlier description of the graph
        if not opened or own.entries[sequence - 1].time < opened:
            continue  # the other ledger came later
        tried += 1
        least = amount * (group if kind == "pure" else group**2) if same else Fraction(0)
        found = paid.get(f"{question.removesuffix(BOUGHT)}{ending}", [])  # there, no bound is named
        enough = [one for one in found if one + charges.GRID * group**2 >= least]  # both are rounded up
        if enough:
            found.remove(min(enough))
        else:
            findings.append(_missing(sequence, question, group, float(least)))
    return AuditCheck(
        name="charges in two ledgers",
        tried=tried,
        what_was_tried=f"charges of the graph, each with its charge in the other ledger, for a group of {group}",
        power="One missing charge"
        + (", or one that is smaller than the loss of the group by any amount" if same else ""),
        not_tried="" if same else "The sizes of the charges: the two ledgers have different measures.",
        findings=tuple(findings),
    )


def _charges(subject: Subject) -> Iterator[tuple[int, str, Fraction, str]]:
    """Yield the number, query, amount and key of each charge that can be read."""
    for place, entry in enumerate(subject.entries, 1):
        body = body_of(entry) if entry.kind == "charge" and entry.sequence == place else None
        try:
            if body is not None:
                yield place, str(body["question"]), Fraction(body["loss"]["amount"]), str(body["key"])
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            continue  # it is a finding of another check


def _missing(sequence: int, question: str, group: int, least: float) -> AuditFinding:
    what = f" of {least:.6g} or more" if least else ""
    return AuditFinding(
        code="charge_missing_beside",
        severity=Severity.violated,
        about=f"entry {sequence}",
        what=f"Entry {sequence} charges the query {question[:200]}. The other ledger has no charge{what} for it, as a "
        f"group of {group}.",
        remedy=REMEDY,
    )
