"""Apache Spark over Parquet files: rows stay where they are, exact integers of the cells come back."""
