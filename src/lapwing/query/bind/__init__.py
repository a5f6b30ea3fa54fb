"""Bind: each kind of SELECT becomes a plan, whatever it is over."""
