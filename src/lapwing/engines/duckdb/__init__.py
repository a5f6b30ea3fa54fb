"""DuckDB as an engine: its dialect, its files and the index beside them."""
