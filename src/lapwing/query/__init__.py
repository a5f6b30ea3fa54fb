"""From text to a priced plan, reading the question and the catalog, never data.

`text` parses; `bind` makes a `plan` of `expressions`, `relations` (which `from_clause` makes), `measures` and
what `aggregates` ask for; `stability` bounds what a unit can change; `calibrate` finds noise and cost; `derivation`
makes columns of noisy numbers.
"""
