"""What the tests stand on: worlds, oracles, random questions, processes to be stopped; no test is in here."""
