"""Graphs of which nobody holds more than her own list: who her friends are, reported with noise.

Neighbours are graphs that differ by one edge. Who takes part, and the order of the people's numbers, is public. An edge
is in two lists. So either each person reports of those with a lower number alone, and the edge is in one report; or
each reports of all, and what an edge loses is the sum of both.
"""
