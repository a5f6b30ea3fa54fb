"""A plan as the SQL of an engine."""
