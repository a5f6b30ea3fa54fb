"""The promise of the budget, and differences between catalog and ledger. The check reads no row."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, Final

from lapwing.audit.findings import AuditCheck, AuditFinding, Severity
from lapwing.audit.subject import AuditEffort, Subject, bodies
from lapwing.catalog.model import Catalog
from lapwing.privacy import figures

EPSILON_LARGE: Final = 10
DELTA_LARGE: Final = Fraction(1, 100)
FAR_BELOW: Final = Fraction(1, 100)
"""The part of one in the number of people that δ should be at most."""


def checks(subject: Subject, effort: AuditEffort) -> Iterator[AuditCheck]:
    """Yield the check of the budget."""
    findings = [*_of_epsilon(subject.catalog), *_of_delta(subject.catalog), *_of_ledger(subject)]
    yield AuditCheck(
        name="budget",
        tried=1,
        what_was_tried="budget: epsilon, delta against the number of people, and the ledger's registration",
        power=f"An epsilon above {EPSILON_LARGE}. A delta above a hundredth of one in the number of people, if the "
        "catalog tells it. Any difference between catalog and ledger.",
        not_tried="The number of people in the data: it is private. Other ledgers about the same people.",
        findings=tuple(findings),
    )


def _of_epsilon(catalog: Catalog) -> Iterator[AuditFinding]:
    budget = catalog.budget
    if budget.epsilon > EPSILON_LARGE:
        shown = figures.epsilon(budget.epsilon)
        yield AuditFinding(
            code="epsilon_large",
            severity=Severity.warning,
            about="budget",
            what=f"Epsilon is {shown}. A fully spent budget can change the odds about a person by a "
            f"factor of e^{shown}: that is hardly a protection.",
            remedy="See `lapwing guarantee` for what it means, and use a smaller budget for the next data set.",
        )
    if budget.neighbouring == "replace_one":
        yield AuditFinding(
            code="presence_is_not_hidden",
            severity=Severity.remark,
            about="budget",
            what="Neighbours replace one unit. Results hide a person's rows, but not how many people there are.",
            remedy="Use add_remove where being in the data is a secret.",
        )


def _of_delta(catalog: Catalog) -> Iterator[AuditFinding]:
    delta = catalog.budget.delta
    people = max((table.people for table in catalog.tables if table.people is not None), default=None)
    rows = max((table.rows_at_most for table in catalog.tables if table.rows_at_most is not None), default=None)
    most, whom = (people, f"{people:,} people") if people is not None else (rows, f"at most {rows or 0:,} people")
    if not delta:
        return
    if delta >= DELTA_LARGE or (most is not None and delta * most >= 1):
        yield AuditFinding(
            code="delta_too_large",
            severity=Severity.warning,
            about="budget",
            what=f"Delta is {figures.delta(delta)}"
            + (f", for {whom}" if most is not None else "")
            + ". Giving away the rows of one person would not contradict it.",
            remedy="Choose a delta of a hundredth of one in the number of people, or less.",
        )
    elif most is not None and delta * most > FAR_BELOW:
        yield AuditFinding(
            code="delta_large",
            severity=Severity.remark if people is None else Severity.warning,
            about="budget",
            what=f"Delta is {figures.delta(delta)}, for {whom}: the chance that somebody is given away can reach "
            f"{float(100 * delta * most):.2g} %.",
            remedy="Choose a delta of a hundredth of one in the number of people, or less.",
        )
    elif most is None:
        yield AuditFinding(
            code="people_unknown",
            severity=Severity.remark,
            about="budget",
            what=f"Delta is {figures.delta(delta)}, and the catalog does not say how many rows or people there are "
            "at most.",
            remedy=f"Check that there are fewer than {int(FAR_BELOW / delta):,} people, and declare `rows_at_most`.",
        )


def _of_ledger(subject: Subject) -> Iterator[AuditFinding]:
    raises = list(bodies(subject.entries, "raise"))
    opened = next(bodies(subject.entries, "open"), None)
    if opened is None:
        return
    for place, body in enumerate(raises, 1):
        yield AuditFinding(
            code="budget_raised",
            severity=Severity.remark,
            about=f"raise {place}",
            what=f"The budget was raised to epsilon {_of(body, 'now', 'epsilon')}, delta {_of(body, 'now', 'delta')}. "
            f"People were promised epsilon {_of(body, 'was', 'epsilon')} before.",
            remedy="Tell the people in the data, as `lapwing guarantee` explains.",
        )
    budget, now = subject.catalog.budget, opened | (raises[-1].get("now", {}) if raises else {})
    declared = {
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "delta_keys": budget.delta_keys,
        "neighbouring": budget.neighbouring,
        "privacy_unit": opened.get("privacy_unit") if _same_unit(subject.catalog, opened) else "another one",
    }
    different = [name for name, value in declared.items() if _value(now.get(name)) != value]
    if different:
        yield AuditFinding(
            code="catalog_differs_from_ledger",
            severity=Severity.violated,
            about="budget",
            what=f"Catalog and ledger differ in {', '.join(different)}. The ledger limits by what it was opened with, "
            "so the catalog promises something else.",
            remedy="Write the ledger's figures into the catalog, or use `lapwing budget raise`.",
        )


def _same_unit(catalog: Catalog, opened: Mapping[str, Any]) -> bool:
    """Tell whether the ledger was opened for the catalog's privacy unit, as it names it."""
    named = ", ".join(sorted({table.unit_name for table in catalog.tables}))
    return not catalog.tables or named == opened.get("privacy_unit")


def _of(body: Mapping[str, Any], when: str, name: str) -> str:
    figures = body.get(when)
    return str(figures.get(name)) if isinstance(figures, dict) else "an unknown value"


def _value(text: object) -> object:
    try:
        return Fraction(str(text))
    except (ValueError, ZeroDivisionError):
        return text
