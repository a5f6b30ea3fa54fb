"""Normalise: each rule writes a SELECT in the words that binding knows."""
