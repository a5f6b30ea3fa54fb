"""Make the data set that Lapwing ships: the RAND Health Insurance Experiment as one small Parquet file.

    python scripts/make_rand_hie.py [folder]

The source is the panel of Deb and Trivedi as it lies in the statsmodels package (public domain): 20,190 person-years
of 5,912 people. The output depends on the source and on the version of pyarrow only.

The source names an insurance plan by a number and has no key to it. The words below rest on what the source says about
each number (`check_plans` verifies it): the share of a medical bill that the family pays (`coins`, in percent), the
most it pays in a year (`mdeoff`, in dollars), and whether the plan has an individual deductible (`idp`).

- Plan 11 has no share and no maximum: free care.
- Plans 1 and 13 are marked `idp`, their `coins` is 0 (nothing is charged beyond the deductible), and their maximum is
  150, 300 or 450 dollars, that is 150 a person for up to three: the individual deductible plans. (31 rows of plan 1
  hold 0 or 113.)
- Plans 5–7 and 17–19 charge 25 percent, 8–10 charge 50, 14–16 charge 95, up to a maximum that varies with income and is
  at most 1,000 dollars. (The experiment had both a pure 25 percent plan and one with 50 percent for dental and mental
  care; the source does not say which of the two groups of numbers is which, so both are "25 percent" of medical bills.)
- Plans 2–4, used in one site only, charge 100 percent up to such a maximum. They too are marked `idp`, but a maximum
  that varies with income is not a deductible for each person, so the word says only what is certain: "100 percent".

Sites keep their numbers, for the source has no names for them.
"""

import sys
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

PLANS = {
    "free": (11,),
    "25 percent": (5, 6, 7, 17, 18, 19),
    "50 percent": (8, 9, 10),
    "95 percent": (14, 15, 16),
    "100 percent": (2, 3, 4),
    "deductible": (1, 13),
}
SHARES = {"free": 0, "25 percent": 25, "50 percent": 50, "95 percent": 95, "100 percent": 100, "deductible": 0}
ROWS, PEOPLE = 20_190, 5_912


def main(folder: Path) -> Path:
    """Write rand_hie.parquet into a folder and return its path."""
    source = read_source()
    check_plans(source)
    table = friendly(source)
    if (table.num_rows, pc.count_distinct(table["person_id"]).as_py()) != (ROWS, PEOPLE):
        raise SystemExit(f"The source has changed: {table.num_rows} rows instead of {ROWS}, or other people.")
    path = folder / "rand_hie.parquet"
    pyarrow.parquet.write_table(
        table, path, compression="zstd", compression_level=19, store_decimal_as_integer=True, row_group_size=ROWS
    )
    return path


def read_source() -> pa.Table:
    """Read the panel from the installed statsmodels package."""
    with (files("statsmodels") / "datasets" / "randhie" / "src" / "randhie.csv").open("rb") as file:
        return pyarrow.csv.read_csv(file)


def check_plans(source: pa.Table) -> None:
    """Stop if a plan's number does not behave as its word says."""
    for word, numbers in PLANS.items():
        rows = source.filter(pc.is_in(source["plan"], pa.array(numbers)))
        if pc.unique(rows["coins"]).to_pylist() != [SHARES[word]]:
            raise SystemExit(f"The plans {numbers} do not all charge {SHARES[word]} percent.")
        largest = pc.max(rows["mdeoff"]).as_py()
        if largest > {"free": 0, "deductible": 450}.get(word, 1000):
            raise SystemExit(f"The plans {numbers} have a maximum of {largest} dollars, which is not that of {word}.")
        if word == "deductible" and not {150, 300, 450} >= set(pc.unique(rows["mdeoff"].drop_null()).to_pylist()) - {
            0,
            113,
        }:
            raise SystemExit(f"The plans {numbers} have a maximum that does not go by persons.")
        marked = set(pc.unique(rows["idp"]).to_pylist())
        if marked != {int(word in ("deductible", "100 percent"))}:
            raise SystemExit(f"The plans {numbers} are not marked alike as individual deductible plans.")
    if set(pc.unique(source["plan"]).to_pylist()) != {number for numbers in PLANS.values() for number in numbers}:
        raise SystemExit("There are plans without a word.")


def friendly(source: pa.Table) -> pa.Table:
    """Return the chosen columns under their new names, ordered by person and year."""
    columns = {
        "person_id": whole(source["zper"], pa.int32()),
        "year": whole(source["year"], pa.int8()),
        "site": whole(source["site"], pa.int8()),
        "plan": words(source["plan"], {number: word for word, numbers in PLANS.items() for number in numbers}),
        "coinsurance": whole(source["coins"], pa.int8()),
        "sex": words(source["female"], {0: "male", 1: "female"}),
        "age": whole(source["xage"], pa.int8()),
        "education": whole(source["educdec"], pa.int8()),
        "income": whole(source["income"], pa.int32()),
        "family_size": whole(source["num"], pa.int8()),
        "health": words(health_code(source), {0: "excellent", 1: "good", 2: "fair", 3: "poor"}),
        "outpatient_visits": whole(source["mdvis"], pa.int16()),
        "hospital_admissions": whole(source["totadm"], pa.int8()),
        "outpatient_dollars": cents(source["outpdol"]),
        "drug_dollars": cents(source["drugdol"]),
        "hospital_dollars": cents(source["inpdol"]),
        "total_dollars": cents(source["meddol"]),
    }
    return pa.table(columns).sort_by([("person_id", "ascending"), ("year", "ascending")])


def health_code(source: pa.Table) -> pa.ChunkedArray:
    """Join the three indicators of self-rated health; none set means excellent (statsmodels says so)."""
    fair, poor = pc.multiply(source["hlthf"], 2), pc.multiply(source["hlthp"], 3)
    return pc.add(pc.add(source["hlthg"], fair), poor)


def words(codes: pa.ChunkedArray, meanings: dict[int, str]) -> pa.ChunkedArray:
    """Replace each code by its word."""
    return pc.take(pa.array(meanings.values()), pc.index_in(codes, pa.array(meanings.keys(), pa.int64())))


def whole(numbers: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Drop the fraction: completed years of age and of education, whole dollars of income. A missing value stays so."""
    return pc.cast(pc.floor(pc.cast(numbers, pa.float64())), kind)


def cents(dollars: pa.ChunkedArray) -> pa.ChunkedArray:
    """Round dollars to cents, as an exact decimal."""
    return pc.cast(pc.round(pc.cast(dollars, pa.float64()), 2), pa.decimal128(9, 2))


if __name__ == "__main__":
    default = Path(__file__).resolve().parent.parent / "src" / "lapwing" / "datasets"
    print(main(Path(sys.argv[1]) if len(sys.argv) > 1 else default))
