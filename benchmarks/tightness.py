"""How close each form of query comes to what it is charged for: a search for the worst neighbours, and its table.

The realised loss of two neighbours is what the mechanisms of a query lose between these two. For each form, kind of
ledger and kind of neighbours the search looks for the greatest one over what is charged. The worst neighbours that were
ever found are kept in `tests/fixtures/query/worst_neighbours.jsonl`, and a test replays them.

    python benchmarks/tightness.py [--form WORDS] [--starts N] [--rounds N] [--seed N] [--all] [--keep] [--table]

`--form` searches forms with these words in their names alone; `--all` also those where 1 has been reached. `--keep`
keeps what is worse than before. `--table` writes the table of `docs/theory/tightness.md` from what is kept.
"""

import argparse
import random
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.query.tightness import (
    FORMS,
    SETTINGS,
    Kept,
    club,
    keep,
    kept,
    rounded_down,
    with_table,
    worst,
)

from lapwing.errors import QueryRefused

PAGE = Path(__file__).parents[1] / "docs" / "theory" / "tightness.md"


def main() -> None:
    """Read the options, search, and print what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--form", default="")
    parser.add_argument("--starts", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if not options.table:
        search(options)
        return
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), kept()), encoding="utf-8")


def search(options: argparse.Namespace) -> None:
    """Search the forms one after the other."""
    known = {(one.form.name, one.setting): one for one in kept()}
    for form in FORMS:
        if options.form not in form.name:
            continue
        for setting in SETTINGS:
            before = known.get((form.name, setting))
            if before is not None and before.ratio >= 1 and not options.all:
                continue
            chance = random.Random(f"{options.seed} {form.name} {setting}")
            with TemporaryDirectory() as folder, club(Path(folder), setting, form.rows) as here:
                try:
                    ratio, neighbours = worst(here, form, chance, starts=options.starts, rounds=options.rounds)
                except QueryRefused as refused:
                    print(f"{form.name} | {setting} | refused: {refused.reason}", flush=True)
                    continue
            now = Kept(form=form, setting=setting, ratio=rounded_down(ratio), neighbours=neighbours)
            most = Fraction(0) if before is None else before.ratio
            print(f"{form.name} | {setting} | {now.loss:.3f}, before {replace(now, ratio=most).loss:.3f}", flush=True)
            if options.keep and now.ratio > most:
                known[form.name, setting] = now
                keep(list(known.values()))


if __name__ == "__main__":
    main()
