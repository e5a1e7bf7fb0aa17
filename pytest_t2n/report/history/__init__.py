"""Runs over time: each is a Parquet file, DuckDB answers questions of all of them, and a page shows the answers."""
