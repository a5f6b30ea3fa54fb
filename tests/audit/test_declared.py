"""What a catalog promises less than people think is found without reading a row."""

import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from lapwing.audit import AuditEffort, Subject, declared_budget, declared_columns, declared_unit
from lapwing.audit.findings import AuditCheck
from lapwing.audit.running import CHECKS
from lapwing.catalog import toml

CATALOG = """
[dataset]
name = "visits"
ledger = "sqlite:visits.lapwing.db"
[budget]
epsilon = {epsilon}
delta = {delta}
measure = "gdp"
neighbouring = "add_remove"
[tables.visits]
source = "visits.parquet"
privacy_unit = "{unit}"
max_rows_per_unit = {rows}
rows_at_most = 10000
[tables.visits.columns]
{column}
"""


def found(tmp_path: Path, *, column: str = "", unit: str = "person_id", **changes: object) -> list[str]:
    file = tmp_path / "lapwing.toml"
    values = {"epsilon": 3, "delta": "1e-6", "rows": 5, "column": column or 'age = { type = "integer" }'} | changes
    file.write_text(CATALOG.format(unit=unit, **values), encoding="utf-8")
    subject = Subject(catalog=toml.load(file))
    every: Iterable[AuditCheck] = (
        check
        for source in (declared_unit, declared_columns, declared_budget)
        for check in source.checks(subject, AuditEffort())
    )
    return [finding.code for check in every for finding in check.findings]


def test_an_ordinary_catalog_has_no_findings(tmp_path: Path) -> None:
    bounds = 'income = { type = "integer", lower = 0, upper = 30000 }\nday = { type = "date" }'
    assert found(tmp_path, column=bounds) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"unit": "row", "rows": 1}, "unit_is_row"),
        ({"unit": "order_id"}, "unit_may_be_an_event"),
        ({"unit": "household"}, "unit_may_be_a_group"),
        ({"rows": 100}, "max_rows_large"),
        ({"rows": 10_000}, "max_rows_very_large"),
        ({"epsilon": 12}, "epsilon_large"),
        ({"delta": "0.02"}, "delta_too_large"),
        ({"delta": "1e-4"}, "delta_too_large"),
        ({"delta": "2e-6"}, "delta_large"),
        ({"column": 'email = { type = "string", values = ["a", "b"] }'}, "personal_values_public"),
        ({"column": 'contact = { type = "string", values = ["ann@example.org"] }'}, "values_look_personal"),
        ({"column": 'last_name = { type = "string" }'}, "personal_column"),
        (
            {
                "column": "birth_date = { type = 'date', lower = 1920-01-01, upper = 2020-12-31 }\n"
                "zip = { type = 'integer', lower = 0, upper = 99999 }"
            },
            "quasi_identifiers",
        ),
        ({"column": 'x = { type = "float", lower = 0, upper = 17.3826 }'}, "bound_looks_learned"),
        ({"column": 'x = { type = "integer", lower = -7, upper = 48213 }'}, "bound_looks_learned"),
        ({"column": "x = { type = 'date', lower = 2020-01-01, upper = 2024-03-17 }"}, "bound_looks_learned"),
        (
            {
                "column": 'x = { type = "integer", lower = 0, upper = 90, '
                'description = "The largest value observed is 90." }'
            },
            "bound_said_observed",
        ),
    ],
)
def test_a_weak_promise_is_found(tmp_path: Path, changes: dict[str, object], expected: str) -> None:
    assert found(tmp_path, **changes) == [expected]  # type: ignore[arg-type]


@pytest.mark.parametrize("upper", ["99999", "65535", "86400", "30000", "99.99", "0.05", "1048576"])
def test_a_round_or_common_bound_is_no_finding(tmp_path: Path, upper: str) -> None:
    assert found(tmp_path, column=f'x = {{ type = "float", lower = 0, upper = {upper} }}') == []


def test_a_catalog_that_promises_something_else_than_its_ledger(catalog: Path) -> None:
    catalog.write_text(catalog.read_text().replace("epsilon = 3", "epsilon = 1"), encoding="utf-8")
    (check,) = declared_budget.checks(Subject.from_file(catalog), AuditEffort())
    assert "catalog_differs_from_ledger" in [finding.code for finding in check.findings]


def test_no_row_is_read(catalog: Path) -> None:
    """The data are replaced by an empty folder, which nobody can read a row of."""
    data = catalog.parent / "visits.parquet"
    data.unlink()
    data.mkdir()
    before = {path: path.read_bytes() for path in catalog.parent.iterdir() if path.is_file()}
    subject, effort = Subject.from_file(catalog), AuditEffort()
    checks = [
        check for source in CHECKS if source.__module__ != "lapwing.audit.path" for check in source(subject, effort)
    ]
    assert not any(check.violated for check in checks)
    assert {check.name for check in checks if check.tried} >= {"privacy unit", "bounds", "ledger chain", "charges"}
    after = {path: path.read_bytes() for path in catalog.parent.iterdir() if path.is_file()}
    assert after == before
    shutil.rmtree(data)
