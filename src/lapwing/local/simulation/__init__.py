"""The same data collected in several ways, to compare their errors."""
