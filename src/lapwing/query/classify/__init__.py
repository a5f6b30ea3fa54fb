"""Classify: what stands in FROM, and what a SELECT is; how it is bound follows from that."""
