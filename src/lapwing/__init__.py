"""Lapwing: ask questions of a sensitive table and get noisy answers with proven privacy."""
