"""*pseudonyms*: what it helps to replace names by numbers.

Derivation. A table has a student number of six digits for each of 1,000 students. Before it is published, the numbers
are replaced by

- a *secret formula*, 7·x + 13 modulo 10⁶ here. Who knows three of the students tries every factor, and finds the one
  that fits them, and so all others.
- a *hash*, SHA-256. It cannot be inverted, but all 10⁶ numbers can be hashed in a second: a table to look up everybody.
- a hash with a *salt* of 16 bits that nobody tells. There are 65,536 tables; one known student finds the right one,
  with one hash for each salt.
- a *keyed hash*, HMAC with 128 bits. No formula, table or search helps. The pseudonym of nobody is found.

What the last leaves is the rest of the row. Birth date, gender and editor tell most students apart (*unicity*), and
whoever knows these of somebody finds the row, with all else in it, whatever the pseudonym is. Of n people over cells of
chances p_c, on average n·Σ p_c(1 − p_c)^(n−1) are alone in theirs.
"""

import hashlib
import hmac
from collections.abc import Callable
from typing import Final

import pyarrow as pa

from lapwing.exact.entropy import SYSTEM, read_exactly
from lapwing.lab.agreement import Check, exactly
from lapwing.lab.chance import generator
from lapwing.lab.drawing import chart, data, layer, nominal, numeric
from lapwing.lab.experiment import Experiment, Finding, Part, Row, Settings, columns
from lapwing.lab.students import students
from lapwing.lab.unicity import alone
from lapwing.plots import Plot

NUMBERS: Final = 1_000_000
"""Numbers of six digits."""
FACTOR, CONSTANT = 7, 13
SALTS: Final = 1 << 16
FORMULA, HASH, SALTED, KEYED = "secret formula", "hash", "hash with a short salt", "keyed hash"
KNOWN: Final = ("birth_date", "gender", "editor")

Pseudonym = Callable[[int], bytes]


def run(settings: Settings) -> Finding:
    """Publish tables with pseudonyms of four kinds, and find the students in them."""
    people = students() if settings.data is None else settings.data
    many = people.num_rows
    numbers = generator().choice(NUMBERS, many, replace=False).tolist()
    salt, key = read_exactly(SYSTEM, 2), read_exactly(SYSTEM, 16)
    kinds: tuple[tuple[str, Pseudonym, Callable[[list[bytes], list[int]], int], float], ...] = (
        (FORMULA, by_formula, _solve, 1.0),
        (HASH, hashed, _look_up, 1.0),
        (SALTED, lambda number: hashed(number, salt), _search, 1.0),
        (KEYED, lambda number: hmac.digest(key, _bytes(number), "sha256"), _look_up, 0.0),
    )
    parts: list[Part] = []
    for name, pseudonym, attack, predicted in kinds:
        published = [pseudonym(number) for number in numbers]
        found = attack(published, numbers) / many
        parts.append((_row(name, "the pseudonym", predicted, found), [_found(name, predicted, found)]))
    unique = alone(people, KNOWN) / many
    parts.append((_row(KEYED, "birth date, gender, editor", unique, _matched(people) / many), []))
    rows = [row for row, _ in parts]
    return Finding.of(
        parts,
        exactly("found by the rest of the row", unique, float(rows[-1]["observed"] or 0)),
        plot=_plot(rows),
        conclusion=(
            "A formula, a hash and a hash with a short salt give every student away. A keyed hash gives nobody away, "
            f"and the rest of the row still tells who {100 * unique:.1f} % of them are. A pseudonym hides a name, and "
            "not a person."
        ),
        sample=f"{many:,} students, all {NUMBERS:,} numbers tried; each figure is a count, and no chance is in it",
    )


def by_formula(number: int) -> bytes:
    """Return a number by the formula that only the publisher knows."""
    return _bytes((FACTOR * number + CONSTANT) % NUMBERS)


def hashed(number: int, salt: bytes = b"") -> bytes:
    """Return the hash of a number."""
    return hashlib.sha256(salt + _bytes(number)).digest()


def _bytes(number: int) -> bytes:
    return f"{number:06d}".encode()


def _solve(published: list[bytes], numbers: list[int]) -> int:
    """Solve the formula by the first three students, who are known, undo it for all others, and count who is found."""
    codes = [int(code) for code in published]
    steps = [((numbers[i] - numbers[0]) % NUMBERS, (codes[i] - codes[0]) % NUMBERS) for i in (1, 2)]
    fits = (a for a in range(1, NUMBERS) if all(a * x % NUMBERS == y for x, y in steps))
    for factor in fits:
        constant = (codes[0] - factor * numbers[0]) % NUMBERS
        undone = {(factor * number + constant) % NUMBERS: number for number in numbers}
        if all(code in undone for code in codes):
            return sum(undone[code] == number for code, number in zip(codes, numbers, strict=True))
    return 0


def _look_up(published: list[bytes], numbers: list[int], salt: bytes = b"") -> int:
    """Hash every number there is, and look up each pseudonym."""
    wanted = set(published)
    table = {code: number for number in range(NUMBERS) if (code := hashed(number, salt)) in wanted}
    return sum(table.get(code) == number for code, number in zip(published, numbers, strict=True))


def _search(published: list[bytes], numbers: list[int]) -> int:
    """Find the salt by the first student, who is known, and look up all others."""
    salts = (salt.to_bytes(2, "big") for salt in range(SALTS))
    salt = next((salt for salt in salts if hashed(numbers[0], salt) == published[0]), b"")
    return _look_up(published, numbers, salt)


def _matched(people: pa.Table) -> int:
    """Count those whom the rest of their row gives away, by going through the table for each."""
    rows: list[tuple[object, ...]] = list(zip(*(people[name].to_pylist() for name in KNOWN), strict=True))
    seen: dict[tuple[object, ...], list[int]] = {}
    for place, row in enumerate(rows):
        seen.setdefault(row, []).append(place)
    return sum(seen[row] == [place] for place, row in enumerate(rows))


def _found(name: str, predicted: float, observed: float) -> Check:
    return exactly(f"found by the pseudonym, {name}", predicted, observed)


_row = columns("pseudonym", "found by", "predicted", "observed")


def _plot(rows: list[Row]) -> Plot:
    bars = [{**row, "case": f"{row['pseudonym']}, by {row['found by']}"} for row in rows]
    drawn = layer(
        "bar",
        x=numeric("observed", "share of students who are found", scale={"domain": [0, 1]}),
        y=nominal("case", sort=None, title=None, axis={"labelLimit": 360}),
    )
    return chart("People found behind a pseudonym", width=380, **data(bars), **drawn)


EXPERIMENT: Final = Experiment(
    name="pseudonyms", title="Does it hide people to replace their names?", run=run, takes_data=True
)
