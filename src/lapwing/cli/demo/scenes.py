"""The questions of the demo, and what there is to learn from each."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final, final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A question and the words around it.

    Args:
        before: What to know before and after reading the answer.
        after: What to know before and after reading the answer.
        epsilon: Its price, or the error it is wanted at.
        error: Its price, or the error it is wanted at.
        truth: The query that plain DuckDB answers beside it, with the same keys and column names, where that is not the
            question itself; what it has besides is shown too.
        wider: The question without its tighter bound, to compare promised errors.
        rows: At so many rows in a cell.
    """

    title: str
    before: str
    sql: str
    after: str = ""
    epsilon: Decimal | None = None
    error: Decimal | None = None
    truth: str | None = None
    wider: str | None = None
    rows: int | None = None

    @property
    def price(self) -> str:
        """The option that names the price."""
        return f"--error {self.error}" if self.epsilon is None else f"--epsilon {self.epsilon}"


PEOPLE: Final = """SELECT plan, COUNT(DISTINCT person_id) AS people
FROM rand_hie GROUP BY plan"""

BY_YEAR: Final = """SELECT year, COUNT(*) AS person_years,
  100.0 * COUNT(CASE WHEN hospital_admissions > 0 THEN 1 END)
    / COUNT(*) AS hospital_percent
FROM rand_hie GROUP BY year"""

IN_HOSPITAL: Final = """SELECT COUNT(DISTINCT person_id) AS in_hospital
FROM rand_hie WHERE hospital_admissions > 0"""

SCENES: Final = (
    Scene(
        title="How many people had each insurance plan?",
        before="The privacy unit is the person: no answer may depend noticeably on any one of them.",
        sql=PEOPLE,
        epsilon=Decimal("0.5"),
        after=(
            "Every plan gets noise of the same size, which matters most for the smallest plans. There is room for 26 "
            "more such queries, not 5, because Gaussian losses add up as squares (μ²), and small squares are tiny."
        ),
    ),
    Scene(
        title="How often did they see a doctor?",
        before=(
            "A sum must hide the person who could change it most. By the catalog, that is five years of 52 visits. "
            "Few people come near that, so the query sets its own tighter bounds. They cut off hardly anything, and "
            "there is much less to hide."
        ),
        sql="""SELECT plan, sex, AVG(outpatient_visits, contribution_bounds_per_row => (0, 20)) AS visits
FROM rand_hie GROUP BY plan, sex""",
        epsilon=Decimal("1.5"),
        truth="""SELECT plan, sex, AVG(LEAST(outpatient_visits, 20)) AS visits, AVG(outpatient_visits) AS unbounded
FROM rand_hie GROUP BY plan, sex""",
        wider="SELECT plan, sex, AVG(outpatient_visits) AS visits FROM rand_hie GROUP BY plan, sex",
        rows=3000,
        after=(
            "People with free care used more of it, and women more than men. That shows through the noise. The small "
            "plans stay blurred, because the same noise hides fewer people."
        ),
    ),
    Scene(
        title="What did all care together cost?",
        before="The catalog bounds a year at 5,000 dollars, from public knowledge. More expensive years count as "
        "5,000.",
        sql="""SELECT SUM(total_dollars) AS dollars
FROM rand_hie""",
        epsilon=Decimal("0.5"),
        truth="SELECT SUM(LEAST(total_dollars, 5000)) AS dollars, SUM(total_dollars) AS unbounded FROM rand_hie",
        after="The ± covers the noise. It does not cover values that the bound cuts off. The notes state that choice.",
    ),
    Scene(
        title="Name the error, and pay what it costs",
        before=(
            "Instead of a cost, say how good the answer must be: ±50. Counting people in one cell is cheap, because "
            "each counts once."
        ),
        sql=IN_HOSPITAL,
        error=Decimal(50),
    ),
    Scene(
        title="Arithmetic, HAVING and ORDER BY",
        before=(
            "Anything computed from noisy numbers is as private as they are: quotients, filters and sorting are free."
        ),
        sql=f"""{BY_YEAR} HAVING COUNT(*) > 3000
ORDER BY person_years DESC""",
        epsilon=Decimal("0.8"),
        truth=BY_YEAR,
        after="HAVING left out years 4 and 5, which had fewer people. It used only the noisy counts.",
    ),
    Scene(
        title="The first query again, sorted, and for less",
        before=(
            "Lapwing stores every result that was bought. If you run the query again, reworded or for less, you get "
            "the same noisy numbers. So nobody gains by averaging many results of one query."
        ),
        sql=f"{PEOPLE} ORDER BY people DESC",
        epsilon=Decimal("0.3"),
        truth=PEOPLE,
    ),
    Scene(
        title="Rows of persons: refused",
        before="Lapwing releases only aggregates. A refusal is free and says what to write instead.",
        sql="""SELECT person_id, age, outpatient_visits
FROM rand_hie WHERE income > 20000""",
        epsilon=Decimal("0.5"),
    ),
    Scene(
        title="More than is left: refused",
        before="No sequence of queries and no number of analysts can spend more than the budget.",
        sql="""SELECT site, AVG(income) AS income
FROM rand_hie GROUP BY site""",
        epsilon=Decimal("2.9"),
    ),
)
