"""FROM, JOIN, WHERE and subqueries, bound to relations over rows that carry the privacy unit."""
