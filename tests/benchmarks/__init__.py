"""Tests of what the benchmarks ask."""
