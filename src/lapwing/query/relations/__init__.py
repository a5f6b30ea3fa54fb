"""Relations that are made unit by unit: sources, joins, subqueries, unions, windows, and how much a unit holds."""
