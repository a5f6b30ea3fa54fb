"""From a priced question to an answer: compare, charge, run, add noise, record."""
