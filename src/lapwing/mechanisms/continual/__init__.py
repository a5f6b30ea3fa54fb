"""Sums that are released again and again while data come in, with noise that does not add up."""
