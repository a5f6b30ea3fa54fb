"""The true answers of the demo: for teaching only.

This is what Lapwing exists to prevent. It is possible here because the shipped data are public: the function takes no
path and reads no other file, so it cannot be turned on data that anybody protects, and nothing outside the demo
imports it (a test walks the imports). It shares no code with the release path: no catalog, no engine, no ledger.
"""

from lapwing.datasets import rand_hie_data

Fact = bool | int | float | str | None


def truth(query: str) -> list[dict[str, Fact]]:
    """Return the exact answer of a query on the shipped data set, as plain DuckDB computes it."""
    import duckdb  # here, so that `lapwing --help` loads no engine

    with duckdb.connect() as connection:
        connection.read_parquet(str(rand_hie_data())).create_view("rand_hie")
        result = connection.execute(query)
        names = [column[0] for column in result.description]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]
