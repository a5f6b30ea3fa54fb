"""The price of a plan, and the mechanisms that it buys."""
