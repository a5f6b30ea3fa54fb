"""The totals of a ledger, computed again by the audit's own sums: charges, budget and results.

The ledger's own reading of its entries is run, too, and both must agree.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import nlargest
from typing import Any, Final, final

from lapwing.audit.findings import AuditCheck, AuditFinding, Severity
from lapwing.audit.subject import AuditEffort, Subject, body_of
from lapwing.errors import LapwingError, LedgerFault
from lapwing.ledger.entries import Entry
from lapwing.ledger.reading import verified

RESTORE: Final = "Run no query. Restore the newest copy with `lapwing ledger restore COPY`, or find out who changed it."
TOLERANCE: Final = Fraction(1, 10**7)
"""The part of a budget by which it may be too large without being found."""
STEPS: Final = 2000
"""Of an integral; even."""


@final
@dataclass(slots=True, kw_only=True)
class PartTotals:
    """Amounts charged to all parts, and to single ones besides.

    Args:
        differ: In how many parts neighbours differ.
    """

    differ: int = 1
    everywhere: Fraction = Fraction(0)
    single: dict[str, Fraction] = field(default_factory=dict)

    def add(self, amount: Fraction, parts: Sequence[str] | None) -> None:
        """Add a charge to some parts, or to all."""
        if parts is None:
            self.everywhere += amount
        for part in parts or ():
            self.single[part] = self.single.get(part, Fraction(0)) + amount

    def level(self) -> None:
        """Charge every part with the total: units may be in other parts of the next version of the data."""
        self.everywhere, self.single = self.total, {}

    @property
    def total(self) -> Fraction:
        """The most that two neighbours have lost."""
        return self.everywhere + sum(nlargest(self.differ, self.single.values()), Fraction(0))


@final
@dataclass(slots=True, kw_only=True)
class LedgerTotals:
    """Totals of the entries so far."""

    budget: Fraction = Fraction(0)
    kind: str = ""
    delta_keys: Fraction = Fraction(0)
    divided: bool = False
    values: frozenset[str] = frozenset()
    losses: PartTotals = field(default_factory=PartTotals)
    deltas: PartTotals = field(default_factory=PartTotals)
    open_charges: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    findings: list[AuditFinding] = field(default_factory=list)


def checks(subject: Subject, effort: AuditEffort) -> Iterator[AuditCheck]:
    """Yield two checks: of the totals, and of the stored results."""
    yield from of_entries(subject.entries, f"ledger {subject.catalog.ledger_path.name}")


def of_entries(entries: Sequence[Entry], about: str) -> Iterator[AuditCheck]:
    """Yield both checks of some entries.

    Args:
        about: The name of the ledger, for people.
    """
    totals = LedgerTotals()
    for entry in entries:
        try:
            _add(totals, entry, body_of(entry) or {})
        except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError):
            totals.findings.append(_of_entry(entry, "entry_unreadable", "says something that no ledger says."))
    of_results = [one for one in totals.findings if one.code.startswith("answer_")]
    others = [one for one in totals.findings if not one.code.startswith("answer_")]
    yield AuditCheck(
        name="totals",
        tried=len(entries),
        what_was_tried="entries, added up again and compared with the budget and with the ledger's own total",
        power="Any charge beyond the budget, in any part; a budget that is larger than its epsilon and delta allow by "
        "one part in ten million",
        findings=(*others, *_differences(entries, about, totals)),
    )
    yield AuditCheck(
        name="stored results",
        tried=len(totals.answered),
        what_was_tried="stored results, each of which needs an earlier charge that has no other result",
        power="One result that nobody paid for",
        not_tried="Results that a service keeps for its console: they do not name their charges.",
        findings=tuple(of_results),
    )


def _add(totals: LedgerTotals, entry: Entry, body: Mapping[str, Any]) -> None:
    match entry.kind:
        case "open":
            differ = 2 if body["neighbouring"] == "replace_one" else 1
            totals.losses, totals.deltas = PartTotals(differ=differ), PartTotals(differ=differ)
            totals.delta_keys = Fraction(body["delta_keys"])
            _set_budget(totals, entry, body)
        case "raise":
            _set_budget(totals, entry, body["now"])
        case "parts":
            totals.divided, totals.values = True, frozenset(body["values"])
        case "data" if totals.divided:
            totals.losses.level()
            totals.deltas.level()
        case "charge":
            _charge(totals, entry, body)
        case "answer":
            _answer(totals, entry)
        case "unanswered":
            totals.open_charges -= {entry.subject, *map(str, body.get("also", ()))}
        case "restored" if body["declared"] == "lost":
            totals.losses.everywhere, totals.losses.single = totals.budget, {}
            totals.deltas.everywhere, totals.deltas.single = totals.delta_keys, {}


def _set_budget(totals: LedgerTotals, entry: Entry, body: Mapping[str, Any]) -> None:
    totals.budget, totals.kind = Fraction(body["budget"]["amount"]), str(body["budget"]["measure"])
    delta = Fraction(body["delta"]) - totals.delta_keys
    if not _implies(totals.kind, totals.budget, Fraction(body["epsilon"]), delta):
        what = f"promises ε = {body['epsilon']}, δ = {body['delta']}, and its budget is larger than that allows."
        totals.findings.append(_of_entry(entry, "budget_too_large", what))


def _implies(kind: str, amount: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Tell whether a budget implies (ε, δ): by the exact profile of Gaussian noise in gdp, and a bound in zcdp."""
    if kind == "pure":
        return bool(amount <= epsilon)
    if delta <= 0:
        return False
    bound, most = float(amount * (1 - TOLERANCE)), math.log(delta.numerator) - math.log(delta.denominator)
    if kind == "gdp":
        return gaussian_log_delta(math.sqrt(bound), float(epsilon)) <= most
    return concentrated_log_delta(bound, float(epsilon)) <= most


def gaussian_log_delta(mu: float, epsilon: float) -> float:
    """Return the logarithm of δ(ε) of N(μ, 1) against N(0, 1).

    It is φ(x)·∫ (1 − e^(−μt))·e^(−xt − t²/2) dt over t ≥ 0. The loss is μ²/2 + μz with normal z, and exceeds ε by
    μ(z − x) for x = ε/μ − μ/2. No term is negative, so nothing cancels. The integral is by Simpson's rule, where the
    integrand is not negligible.
    """
    x = epsilon / mu - mu / 2
    first, last = max(0.0, -x - 10), -x + math.sqrt(x * x + 90)
    width = (last - first) / STEPS
    peak = 0.0 if x >= 0 else x * x / 2

    def at(t: float) -> float:
        return -math.expm1(-mu * t) * math.exp(-x * t - t * t / 2 - peak)

    inner = sum((4 if step % 2 else 2) * at(first + step * width) for step in range(1, STEPS))
    total = (at(first) + inner + at(last)) * width / 3
    return peak - x * x / 2 - math.log(2 * math.pi) / 2 + math.log(total)


def concentrated_log_delta(rho: float, epsilon: float) -> float:
    """Return a bound on the logarithm of δ(ε) under ρ-zCDP: the least over all orders α > 1.

    Source:
        Canonne, Kamath and Steinke 2020, Proposition 12.
    """

    def at(exponent: float) -> float:
        order = 1 + math.exp(exponent)
        return (order - 1) * (order * rho - epsilon) + (order - 1) * math.log1p(-1 / order) - math.log(order)

    low, high = -30.0, 30.0
    for _ in range(6):  # each time the grid is drawn around its lowest point
        width = (high - low) / 40
        best = min((low + width * step for step in range(41)), key=at)
        low, high = best - width, best + width
    return at(best)


def _charge(totals: LedgerTotals, entry: Entry, body: Mapping[str, Any]) -> None:
    if body["loss"]["measure"] != totals.kind:
        totals.findings.append(_of_entry(entry, "charge_of_another_kind", "charges in the unit of another ledger."))
        return
    parts = body.get("parts") if totals.divided else None
    parts = None if parts is not None and frozenset(parts) == totals.values else parts
    amount, delta = Fraction(body["loss"]["amount"]), Fraction(body.get("delta", 0))
    if amount < 0 or delta < 0:
        totals.findings.append(_of_entry(entry, "charge_below_zero", "charges less than nothing."))
    totals.losses.add(amount, parts)
    totals.deltas.add(delta, parts)
    totals.open_charges.add(str(entry.sequence))
    if totals.losses.total > totals.budget:
        totals.findings.append(_of_entry(entry, "budget_exceeded", "charges more than the budget had left."))
    if totals.deltas.total > totals.delta_keys:
        what = "takes more of delta than the budget keeps for private keys."
        totals.findings.append(_of_entry(entry, "delta_exceeded", what))


def _answer(totals: LedgerTotals, entry: Entry) -> None:
    if entry.subject in totals.answered:
        totals.findings.append(_of_entry(entry, "answer_twice", "is a second result of one charge."))
    elif entry.subject not in totals.open_charges:
        totals.findings.append(_of_entry(entry, "answer_without_charge", "is a result that nobody paid for."))
    totals.open_charges.discard(entry.subject)
    totals.answered.add(entry.subject)


def _differences(entries: Sequence[Entry], about: str, totals: LedgerTotals) -> Iterator[AuditFinding]:
    """Yield where the ledger's own reading says something else, or refuses to read."""
    try:
        state = verified(entries)
    except LedgerFault as error:
        yield AuditFinding(
            code="ledger_refused",
            severity=Severity.violated,
            about=about,
            what=f"Lapwing refuses to read this ledger: {error}",
            remedy=RESTORE,
        )
        return
    except (LapwingError, ValueError):
        return
    if state is None:
        return
    if (state.account.spent.amount, state.delta_spent) != (totals.losses.total, totals.deltas.total):
        yield AuditFinding(
            code="totals_differ",
            severity=Severity.violated,
            about=about,
            what=f"The charges add up to {float(totals.losses.total):.8g}, and Lapwing counts "
            f"{float(state.account.spent.amount):.8g} as spent.",
            remedy="Report a bug with this report. Until then, use the larger of both numbers.",
        )


def _of_entry(entry: Entry, code: str, what: str) -> AuditFinding:
    return AuditFinding(
        code=code,
        severity=Severity.violated,
        about=f"entry {entry.sequence}",
        what=f"Entry {entry.sequence} {what}",
        remedy=RESTORE,
    )
