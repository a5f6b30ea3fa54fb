"""Exactness: the entropy door, proven bounds, samplers whose law no rounding can change."""
