"""From text to a priced plan, reading the question and the catalog, never data.

Stages: `text` parses; `normalise` rewrites a SELECT in the words that binding knows; `classify` says what it is over;
`bind` makes a `plan` of it; `pricing` finds noise and cost, by what `sensitivity` proves of one unit. `bind` works with
`from_clause` and `relations` (the rows), `expressions` (the values in a row), `aggregates` and `measures` (what is
measured of rows), and `derivation` (what is computed from noisy numbers).
"""
