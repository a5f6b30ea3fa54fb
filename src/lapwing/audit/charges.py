"""Each charge against the loss of what it bought, recomputed from the stored mechanisms.

A stored result names the mechanism of every number, with its parameters. How far one unit moves the numbers follows
from the query (`charged_questions`, `largest_movements`), and the loss from both (`loss_formulas`). A charge below that
loss is a violation: then the ledger says that less was spent than was.

Each charge is compared with a lower bound on the loss. Several numbers of the same rows may lose less than their sum.
There the bound is the loss of the dearest number, and of a count of the same rows if that was released, too. Both can
move together. Losses of other numbers add up. Marginals that were measured together are paid by all charges of their
batch, so these charges are compared with the loss of the sharpest cell. Where the query cannot be bound again, the
bound is the loss of numbers that a unit moves by one step.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby
from typing import Final, final

from lapwing.audit.charged_questions import ChargedQuestions, opened
from lapwing.audit.drawn_mechanisms import drawn_amount
from lapwing.audit.findings import AuditCheck, AuditFinding, Severity
from lapwing.audit.largest_movements import ONE_STEP, is_sum_of_rows, movements
from lapwing.audit.loss_formulas import TOGETHER, WRAPPED, chosen_measure, least_amount, selection_amount
from lapwing.audit.subject import AuditEffort, Subject, body_of
from lapwing.errors import LapwingError
from lapwing.ledger.entries import Charge, Entry
from lapwing.query.measures.measures import Count, Measure
from lapwing.query.plan.plan import Question

MERGED: Final = "merged Gaussians"
REMEDY: Final = (
    "Run no query. Compare the ledger with a copy: if the copy has the same charge, report a bug with this report; "
    "otherwise restore the copy. Count the missing loss as spent."
)
QUICKLY: Final = 20.0
"""Seconds for binding queries in a quick audit; charges whose queries were not bound are compared by one step."""
OTHER: Final = "charges for models, monitors or other results without stored mechanisms"
GROUPS: Final = "charges for a group, which are compared with the other ledger of their graph"
FOR_GROUP: Final = re.compile(r"^GRAPH .*, of (?:edges|nodes), as a group of [0-9]+$", re.DOTALL)
GRID: Final = Fraction(1, 10**20)
"""More than how far a charge is rounded up."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResult:
    """The stored result of a charge.

    Args:
        laws: The mechanism of each measure, by name and parameters.
        measures: Their canonical texts.
        selection: The mechanism that chose private keys, if any are.
        choice: The scale of the choice among measures, if one was chosen.
        drawn: Of a graph statistic or a synthetic table, its mechanisms with their sensitivities.
    """

    laws: tuple[tuple[object, ...], ...] = ()
    measures: tuple[str, ...] = ()
    selection: tuple[object, ...] | None = None
    choice: str | None = None
    drawn: object = None

    @classmethod
    def from_payload(cls, payload: object) -> "StoredResult | None":
        """Read a stored result of a query; None if it is of another kind, such as a model's."""
        try:
            record = json.loads(str(payload))
            if isinstance(record, dict) and "drawn" in record:
                return cls(drawn=record["drawn"])
            if not isinstance(record, dict) or not {"measures", "mechanisms"} <= record.keys():
                return None
            return cls(
                laws=tuple(map(tuple, record["mechanisms"])),
                measures=tuple(map(str, record["measures"])),
                selection=tuple(record["selection"]) if "selection" in record else None,
                choice=str(record["choice"][1]) if "choice" in record else None,
            )
        except (ValueError, TypeError, LookupError, RecursionError):
            return None


@final
@dataclass(slots=True, kw_only=True)
class ChargeComparison:
    """Counts of the charges that were compared and of those that were not, and the findings."""

    exactly: int = 0
    as_drawn: int = 0
    by_one_step: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    findings: list[AuditFinding] = field(default_factory=list)


def checks(subject: Subject, effort: AuditEffort) -> Iterator[AuditCheck]:
    """Yield the check of charges."""
    catalog, found = subject.catalog, ChargeComparison()
    with opened(catalog) as facts:
        questions = ChargedQuestions(catalog, facts, QUICKLY if effort.quick else math.inf)
        for priced in _priced(subject.entries, found):
            same = priced.charge.catalog_digest == catalog.digest
            question = questions.of(priced.charge, priced.entry.time) if same else None
            _compare(priced, question, found, replaced=catalog.budget.neighbouring == "replace_one")
    yield _check(found)


def of_entries(entries: Sequence[Entry]) -> AuditCheck:
    """Return the check of charges without a catalog: all of them by a sensitivity of one step."""
    found = ChargeComparison()
    for priced in _priced(entries, found):
        _compare(priced, None, found, replaced=False)
    return _check(found)


def _check(found: ChargeComparison) -> AuditCheck:
    left_out = [f"{count:,} {what}" for what, count in sorted(found.skipped.items())]
    return AuditCheck(
        name="charges",
        tried=found.exactly + found.as_drawn + found.by_one_step,
        what_was_tried=f"charges against their losses: {found.exactly:,} with the sensitivity of their "
        f"query, {found.as_drawn:,} with a stored one, "
        f"{found.by_one_step:,} with one step",
        power="With the sensitivity of the query: a charge that is smaller than the loss by one part in a billion, if "
        "it bought one number. Of several numbers of the same rows: a charge below the loss of the dearest of them, "
        "with a count of these rows. Of tables that were measured together: a batch of charges below the loss of one "
        "cell of the sharpest table. With a sensitivity of one step: a charge below the loss of a count.",
        not_tried="; ".join(left_out),
        findings=tuple(found.findings),
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PricedResult:
    """A charge with what it bought.

    Args:
        paid: The sum of the charges for this query and version of the data, up to this one.
        batch: The sum of the charges that were made with this one, None if one of them cannot be read.
    """

    entry: Entry
    charge: Charge
    result: StoredResult
    paid: Fraction
    batch: Fraction | None


def _priced(entries: Sequence[Entry], found: ChargeComparison) -> Iterator[PricedResult]:
    """Yield the charges whose results are stored in a form that names mechanisms."""
    answers = {entry.subject: body_of(entry) for entry in entries if entry.kind == "answer"}
    paid: dict[tuple[str, int], Fraction] = {}
    batches = _batches(entries)
    for entry in (one for one in entries if one.kind == "charge"):
        charge = _charge(entry)
        if charge is None:
            found.skipped["charges that cannot be read"] += 1
            continue
        body = answers.get(str(entry.sequence))
        if body is None:
            found.skipped["charges that bought nothing"] += 1
            continue
        name = charge.key, charge.version
        paid[name] = paid.get(name, Fraction(0)) + charge.loss.amount
        result = StoredResult.from_payload(body.get("payload"))
        if result is None:
            found.skipped[GROUPS if FOR_GROUP.search(charge.question) else OTHER] += 1
            continue
        batch = batches[entry.sequence]
        yield PricedResult(entry=entry, charge=charge, result=result, paid=paid[name], batch=batch)


def _charge(entry: Entry) -> Charge | None:
    try:
        return Charge.from_record(body_of(entry) or {})
    except (LapwingError, KeyError, TypeError, ValueError):
        return None


def _batches(entries: Sequence[Entry]) -> dict[int, Fraction | None]:
    """Return the sum of the charges of each charge's batch: one transaction writes them, so they are neighbours.

    Two batches may be neighbours, too. Their sum is larger, so that no honest charge is a finding.
    """
    sums: dict[int, Fraction | None] = {}
    for kind, run in groupby(entries, lambda entry: entry.kind):
        if kind == "charge":
            listed = {entry.sequence: _charge(entry) for entry in run}
            known = [charge.loss.amount for charge in listed.values() if charge is not None]
            total = sum(known, Fraction(0)) if len(known) == len(listed) else None
            sums |= dict.fromkeys(listed, total)
    return sums


def _compare(priced: PricedResult, question: Question | None, found: ChargeComparison, *, replaced: bool) -> None:
    charge, result, kind = priced.charge, priced.result, priced.charge.loss.kind
    if result.drawn is not None:
        _compare_drawn(priced, found)
        return
    of_measure = {} if question is None else {str(measure): measure for measure in question.measures}
    amounts: list[tuple[Measure | None, Fraction]] = []
    together = Fraction(0)
    for text, law in zip(result.measures, result.laws, strict=False):
        measure = of_measure.get(text)
        amount = _amount(law, question, measure, kind, replaced=replaced)
        if amount is None:
            found.skipped[f"numbers by {law[0]}, of which the audit has no formula"] += 1
        elif law[0] == TOGETHER:
            together = max(together, amount)
        else:
            amounts.append((measure, amount))
    least, delta = _besides(result, kind)
    least += _jointly(amounts, replaced=replaced)
    if amounts or least or together:
        found.exactly += question is not None
        found.by_one_step += question is None
    paid = priced.paid if any(_bare(law)[0] == MERGED for law in result.laws) else charge.loss.amount
    if paid + GRID < least:
        found.findings.append(_too_small(priced, paid, least, kind))
    if priced.batch is not None and priced.batch + GRID < together:
        found.findings.append(_too_small(priced, priced.batch, together, kind))
    if charge.delta + GRID < delta:
        found.findings.append(_too_small(priced, charge.delta, delta, "delta"))


def _compare_drawn(priced: PricedResult, found: ChargeComparison) -> None:
    """Compare a charge with the sum of what its stored mechanisms lose."""
    kind, paid = priced.charge.loss.kind, priced.charge.loss.amount
    least = drawn_amount(priced.result.drawn, kind)
    if least is None:
        found.skipped[OTHER] += 1
        return
    found.as_drawn += 1
    if paid + GRID < least:
        found.findings.append(_too_small(priced, paid, least, kind))


def _bare(law: tuple[object, ...]) -> tuple[object, ...]:
    return (law[1], *law[4:]) if law[0] == WRAPPED else law


def _amount(
    law: tuple[object, ...], question: Question | None, measure: Measure | None, kind: str, *, replaced: bool
) -> Fraction | None:
    """Return what a number loses at least: the least over all bounds on how far a unit moves it."""
    moves = (ONE_STEP,) if question is None or measure is None else movements(question, measure, replaced=replaced)
    try:
        amounts = [least_amount(law, one, kind) for one in moves]
    except (ValueError, TypeError, ZeroDivisionError, OverflowError):
        return None
    known = [amount for amount in amounts if amount is not None]
    return min(known) if len(known) == len(amounts) else None


def _jointly(amounts: Iterable[tuple[Measure | None, Fraction]], *, replaced: bool) -> Fraction:
    """Return what all numbers of a result lose together at least."""
    rows: dict[Measure, Fraction] = {}
    unknown, others = [Fraction(0)], Fraction(0)
    for measure, amount in amounts:
        if measure is None:
            unknown.append(amount)
        elif is_sum_of_rows(measure):
            rows[measure] = amount
        else:
            others += amount
    return others + max(unknown) + _dearest(rows, replaced=replaced)


def _dearest(rows: Mapping[Measure, Fraction], *, replaced: bool) -> Fraction:
    """Return what numbers of the same rows lose at least: the dearest, with a count of the rows that it is of.

    A row that moves a sum as far as can be has a value, so COUNT(*) and the count of these values count it.
    """
    found = [*rows.values(), Fraction(0)]
    counts = [] if replaced else [measure for measure in rows if isinstance(measure, Count)]
    for count in counts:
        for other, amount in rows.items():
            same = count.argument is None or str(count.argument) == str(getattr(other, "argument", None))
            if other != count and same:
                found.append(rows[count] + amount)
    return max(found)


def _besides(result: StoredResult, kind: str) -> tuple[Fraction, Fraction]:
    """Return what the choices in a result lose at least: an amount and a δ."""
    amount = Fraction(0) if result.choice is None else chosen_measure(result.choice, kind)
    if result.selection is None:
        return amount, Fraction(0)
    selected, delta = selection_amount(result.selection, kind)
    return amount + (selected or 0), delta


def _too_small(priced: PricedResult, paid: Fraction, least: Fraction, kind: str) -> AuditFinding:
    sequence = priced.entry.sequence
    what = {"delta": "δ", "pure": "ε", "gdp": "μ²", "zcdp": "ρ"}[kind]
    return AuditFinding(
        code="charge_below_loss",
        severity=Severity.violated,
        about=f"entry {sequence}",
        what=f"Entry {sequence} charges {what} = {float(paid):.6g}, and its stored result lost {what} = "
        f"{float(least):.6g} or more. Query: {priced.charge.question[:200]}",
        remedy=REMEDY,
    )
