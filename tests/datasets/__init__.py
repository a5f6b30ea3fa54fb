"""Tests of the shipped data set."""
