"""Files as people have them, asked at an epsilon that shows the truth: no answer is wrong without a note."""

import csv
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.answer.notes import LONG_TEXTS, UNLISTED_KEYS
from lapwing.session import Session

USUAL: dict[str, Any] = {"max_rows_per_unit": 4, "epsilon": 10_000_000}
Row = Mapping[str, str]


def rows_of(file: Path, delimiter: str = ",") -> list[Row]:
    with file.open(newline="", encoding="utf-8") as content:
        return list(csv.DictReader(content, delimiter=delimiter))


def wrong(session: Session, sql: str, truth: Any, note: str | None = None) -> list[object]:
    """Return a query that is answered otherwise, or without its note. Args: truth: a number, or one for each key."""
    answer = session.sql(sql, epsilon=100_000)
    rows: list[Any] = [tuple(row.values()) for row in answer.rows()]
    found: Any = dict(rows) if isinstance(truth, dict) else rows[0][0]
    pairs = [(found.get(key), value) for key, value in truth.items()] if isinstance(truth, dict) else [(found, truth)]
    same = all(got is not None and abs(float(got) - float(value)) <= 0.5 + abs(value) / 1000 for got, value in pairs)
    said = note is None or note in [getattr(one, "code", "") for one in answer.notes]
    return [] if same and said else [(sql, found, truth, answer.notes)]


def counted(rows: Sequence[Row], key: Callable[[Row], object], of: Sequence[object]) -> dict[object, int]:
    found = Counter(map(key, rows))
    return {value: found[value] for value in of}


@pytest.mark.long
def test_a_survey_with_codes(tmp_path: Path) -> None:
    chance, sexes = random.Random(1), {"1": "male", "2": "female"}
    lines = ["id,age,sex,income,day,region"]
    for person in range(600):
        age = chance.choice([*range(18, 90), -99, -99, -99])
        day = chance.choice(["03/04/2023", "12/31/2023", "7/9/2023", "NA", "00/00/0000"])
        income = chance.choice([1000, 25000, 80000, 999999])
        region = chance.choice(["North", "South", "north ", ""])
        lines.append(f"{person},{age},{chance.choice('1239')},{income},{day},{region}")
    (tmp_path / "survey.csv").write_text("\n".join(lines) + "\n")
    rows = rows_of(tmp_path / "survey.csv")
    ages = [int(row["age"]) for row in rows if row["age"] != "-99"]
    known = [int(row["income"]) for row in rows if row["income"] != "999999"]
    days = [row["day"] for row in rows if row["day"] not in ("NA", "00/00/0000")]
    with lw.protect(
        tmp_path / "survey.csv",
        **USUAL,
        privacy_unit="id",
        types={"id": "integer", "age": "integer", "income": "integer", "day": "date"},
        bounds={"age": (0, 110), "income": (0, 200_000)},
        domains={"sex": [*sexes.values()], "region": ["North", "South"]},
        missing={"age": [-99], "sex": [9], "income": [999_999], "day": ["NA", "00/00/0000"]},
        recode={"sex": sexes},
        format={"day": "%m/%d/%Y"},
    ) as session:
        assert not [
            *wrong(session, "SELECT AVG(age) AS m FROM survey", sum(ages) / len(ages)),
            *wrong(session, "SELECT COUNT(age) AS n FROM survey", len(ages)),
            *wrong(session, "SELECT COUNT(*) AS n FROM survey WHERE age = -99", 0),
            *wrong(session, "SELECT COUNT(*) AS n FROM survey WHERE age <> 50", sum(age != 50 for age in ages)),
            *wrong(session, "SELECT COUNT(*) AS n FROM survey WHERE age IS NULL", 600 - len(ages)),
            *wrong(session, "SELECT SUM(income) AS s FROM survey", sum(known)),
            *wrong(session, "SELECT COUNT(*) AS n FROM survey WHERE income > 50000", known.count(80_000)),
            *wrong(
                session,
                "SELECT sex, COUNT(*) AS n FROM survey GROUP BY sex",
                counted(rows, lambda row: sexes.get(row["sex"]), [*sexes.values()]),
                UNLISTED_KEYS,
            ),
            *wrong(
                session,
                "SELECT region, COUNT(*) AS n FROM survey GROUP BY region",
                counted(rows, lambda row: row["region"], ["North", "South"]),
                UNLISTED_KEYS,
            ),
            *wrong(session, "SELECT COUNT(day) AS n FROM survey", len(days)),
            *wrong(
                session,
                "SELECT COUNT(*) AS n FROM survey WHERE day >= DATE '2023-07-01'",
                sum(datetime.strptime(day, "%m/%d/%Y").date() >= date(2023, 7, 1) for day in days),
            ),
        ]


@pytest.mark.long
def test_a_trial_as_r_writes_it(tmp_path: Path) -> None:
    chance = random.Random(2)
    lines = ['"","patient","arm","sbp","dropout"']
    for number in range(900):
        arm, dropout = chance.choice(["placebo", "drug"]), chance.choice(["TRUE", "FALSE", "NA"])
        lines.append(f'"{number}",{number // 4},"{arm}",{chance.choice(["NA", "131.5", "128", "150.2"])},{dropout}')
    (tmp_path / "trial.csv").write_text("\n".join(lines) + "\n")
    rows = rows_of(tmp_path / "trial.csv")
    pressures = [float(row["sbp"]) for row in rows if row["sbp"] != "NA"]
    with lw.protect(
        tmp_path / "trial.csv",
        **USUAL,
        privacy_unit="patient",
        types={"patient": "integer", "sbp": "decimal:0.1", "dropout": "boolean"},
        bounds={"sbp": (50, 250)},
        domains={"arm": ["placebo", "drug"]},
        missing={"*": ["NA"]},
    ) as session:
        assert not [
            *wrong(session, "SELECT COUNT(*) AS n FROM trial", 900),
            *wrong(session, "SELECT AVG(sbp) AS m FROM trial", sum(pressures) / len(pressures)),
            *wrong(session, "SELECT COUNT(*) AS n FROM trial WHERE sbp >= 131.5", sum(p >= 131.5 for p in pressures)),
            *wrong(
                session,
                "SELECT dropout, COUNT(*) AS n FROM trial GROUP BY dropout",
                counted(rows, lambda row: {"TRUE": True, "FALSE": False}.get(row["dropout"]), [True, False]),
                UNLISTED_KEYS,
            ),
        ]
        assert [column.name for column in session.tables["trial"].columns] == ["patient", "arm", "sbp", "dropout"]


@pytest.mark.long
def test_salaries_with_semicolons_and_decimal_commas(tmp_path: Path) -> None:
    chance, text = random.Random(3), "person;pay;since;team\r\n"
    for person in range(500):
        cents = chance.randrange(150_000, 1_200_000)
        pay = f"{cents // 100:,}".replace(",", ".") + f",{cents % 100:02}"
        since = f"{chance.randint(1, 28):02}.{chance.randint(1, 12):02}.{chance.randint(2000, 2023)}"
        text += f"{person};{pay} €;{since};{chance.choice(['IT', 'Lager', 'k.A.'])}" + chance.choice(["\n", "\r\n"])
    (tmp_path / "pay.csv").write_text(text, encoding="utf-8", newline="")
    rows = rows_of(tmp_path / "pay.csv", ";")
    pays = [float(row["pay"].removesuffix(" €").replace(".", "").replace(",", ".")) for row in rows]
    with lw.protect(
        tmp_path / "pay.csv",
        **USUAL,
        privacy_unit="person",
        types={"person": "integer", "pay": "decimal:0.01", "since": "date"},
        bounds={"pay": (0, 15_000)},
        domains={"team": ["IT", "Lager"]},
        missing={"team": ["k.A."]},
        format={"since": "%d.%m.%Y"},
        decimal_mark={"pay": ","},
        thousands_mark={"pay": "."},
        currency={"pay": "€"},
    ) as session:
        assert not [
            *wrong(session, "SELECT AVG(pay) AS m FROM pay", sum(pays) / len(pays)),
            *wrong(session, "SELECT COUNT(*) AS n FROM pay WHERE pay > 5000", sum(pay > 5000 for pay in pays)),
            *wrong(
                session,
                "SELECT COUNT(*) AS n FROM pay WHERE EXTRACT(DAY FROM since) = 13",
                sum(row["since"].startswith("13.") for row in rows),
            ),
            *wrong(session, "SELECT COUNT(*) AS n FROM pay WHERE team IS NULL", sum(r["team"] == "k.A." for r in rows)),
            *wrong(session, "SELECT COUNT(*) AS n FROM pay WHERE team = 'k.A.'", 0),
        ]


@pytest.mark.long
def test_police_reports_in_a_table_called_order(tmp_path: Path) -> None:
    chance = random.Random(4)
    lines = ["person,date,district,value,notes"]
    for number in range(800):
        at = (
            f"{chance.randint(1, 12)}/{chance.randint(1, 28)}/2022 {chance.choice(['12:05 AM', '1:30 PM', '12:00 PM'])}"
        )
        value = chance.choice(['"$1,250.00"', "$80.50", "", "UNKNOWN"])
        notes = chance.choice(["short", "x" * 300, "NA", ""])
        lines.append(f"{number // 4},{at},{chance.choice(['A1', 'A15', 'B2', 'External', ''])},{value},{notes}")
    (tmp_path / "order.csv").write_text("\n".join(lines) + "\n")
    rows = rows_of(tmp_path / "order.csv")
    values = [float(row["value"].replace("$", "").replace(",", "")) for row in rows if row["value"][:1] == "$"]
    with lw.protect(
        tmp_path / "order.csv",
        **USUAL,
        privacy_unit="person",
        types={"person": "integer", "date": "timestamp", "value": "decimal:0.01"},
        bounds={"value": (0, 10_000)},
        domains={"district": ["A1", "B2"]},
        missing={"value": ["UNKNOWN"], "notes": ["NA"]},
        format={"date": "%m/%d/%Y %I:%M %p"},
        thousands_mark={"value": ","},
        currency={"value": "$"},
    ) as session:
        short = sum(row["notes"] == "short" for row in rows)
        assert not [
            *wrong(session, 'SELECT SUM(value) AS s FROM "order"', sum(values)),
            *wrong(session, 'SELECT COUNT(value) AS n FROM "order"', len(values)),
            *wrong(
                session,
                'SELECT district, COUNT(*) AS n FROM "order" GROUP BY district',
                counted(rows, lambda row: row["district"], ["A1", "B2"]),
                UNLISTED_KEYS,
            ),
            *wrong(session, "SELECT COUNT(*) AS n FROM \"order\" WHERE notes <> 'x'", short, LONG_TEXTS),
            *wrong(
                session,
                'SELECT COUNT(*) AS n FROM "order" WHERE EXTRACT(HOUR FROM date) >= 12',
                sum(row["date"].endswith("PM") for row in rows),
            ),
            *wrong(
                session,
                'SELECT COUNT(*) AS n FROM "order" WHERE EXTRACT(HOUR FROM date) = 0',
                sum(row["date"].endswith("AM") for row in rows),
            ),
        ]


@pytest.mark.long
def test_a_twin_whose_missing_values_are_not_declared_is_seen(tmp_path: Path) -> None:
    (tmp_path / "poll.csv").write_text("id,x\n" + "".join(f"{i},{-99 if i % 5 == 0 else 30}\n" for i in range(500)))
    said: dict[str, Any] = {"privacy_unit": "id", "types": {"id": "integer", "x": "integer"}, "bounds": {"x": (0, 60)}}
    with lw.protect(tmp_path / "poll.csv", **USUAL, **said) as session:
        assert wrong(session, "SELECT AVG(x) AS m FROM poll", 30)
    with lw.protect(tmp_path / "poll.csv", **USUAL, **said, missing={"x": [-99]}) as session:
        assert not wrong(session, "SELECT AVG(x) AS m FROM poll", 30)


@pytest.mark.parametrize("value", ["'NA'", "'northern'"])
def test_comparing_with_what_is_not_listed_is_noted(value: str, tmp_path: Path) -> None:
    (tmp_path / "poll.csv").write_text("id,region\n1,North\n")
    with lw.protect(tmp_path / "poll.csv", **USUAL, privacy_unit="id", domains={"region": ["North"]}) as session:
        notes = session.explain(f"SELECT COUNT(*) AS n FROM poll WHERE region = {value}", epsilon=1).notes
    assert any("is compared with" in note for note in notes)
